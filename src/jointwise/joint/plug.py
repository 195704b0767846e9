"""From what a joint is known to be to the terms of a calibration, as a start or with known values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.errors import ModelError
from jointwise.estimation.given import GivenTerms
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part
from jointwise.joint.temperature import TemperatureLaw, temperature_law_of
from jointwise.model.terms import Coulomb, JointSignals, Offset, Stribeck, Temperature, Term, Viscous

USED = ("friction", "load", "temperature", "hysteresis")
"""Phenomena that enter a calibration as terms; the motor enters as its drive gain."""

GRID = 12
"""Speeds, and temperatures, on which a law is met."""

Known = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class _Piece:
    """Terms of one effect, value and deviation of their parameters by name, and what is left to the calibration."""

    terms: tuple[Term, ...]
    known: Known
    open: tuple[str, ...] = ()


def given_terms(model: JointModel, known: bool = False, rotor: bool = False) -> GivenTerms:
    """Return the terms of a joint's friction; with `known` their values are held, else estimated again.

    `rotor` tells whether the logs have rotor positions, which then drive the hysteresis. Dry friction is that of the
    hysteresis, its size that of the friction over speed where both are there. An offset is always estimated: it takes
    up what differs between the directions. What temperature does is always held: a log that is not a warm-up cannot
    tell it. What the joint's experiments did not tell stays open: the calibration completes it with its own choice.
    """
    if not any(name in model.parts for name in USED):
        raise ModelError(
            f"joint {model.joint + 1} of {model.robot}: nothing known that a calibration could use "
            f"(one of {', '.join(USED)}). Found: {', '.join(model.parts) or 'nothing'}."
        )
    warmth = _warmth(model.parts.get("temperature"))
    pieces = [_dry(model, rotor, known), _viscous(model), warmth]
    terms = (Offset(), *(term for piece in pieces for term in piece.terms))
    values: Known = {name: pair for piece in pieces for name, pair in piece.known.items()}
    left = tuple(name for piece in pieces for name in piece.open)
    return GivenTerms(terms, values if known else warmth.known, (*left, "ripple"), firm=known)


def _dry(model: JointModel, rotor: bool, known: bool) -> _Piece:
    """Return dry friction: slip elements where they were identified, else the sign of the speed.

    How it turns with the motion is open where no slip elements were identified, also where its size is known.
    """
    from jointwise.joint.load import load_law_of

    friction, load = model.parts.get("friction"), model.parts.get("load")
    law = None if load is None else load_law_of(load)
    law = None if law is None or law.kind == "none" else law
    growth = None if law is None else (law.factor, _deviation(load, "F_l"))
    kind = "none" if law is None else law.kind
    level = _pair(friction, "F_C") if friction is not None and _has(friction, "F_C") else None
    if _rated(model):
        return _with_rate(model.parts["hysteresis"], level, kind, growth, rotor)
    if "hysteresis" in model.parts:
        return _slipping(model.parts["hysteresis"], level, kind, growth, rotor, known)
    values = {"FC0": level, "FC1": growth}
    left = ("direction", *(("load",) if law is None else ()))
    return _Piece((Coulomb(kind, "tanh"),), {name: pair for name, pair in values.items() if pair is not None}, left)


def _rated(model: JointModel) -> bool:
    """Tell whether the hysteresis of a joint depends on the rate; the rise at low speed is inside it then."""
    return "hysteresis" in model.parts and model.parts["hysteresis"].model in ("lugre", "rate-gms")


def _with_rate(
    part: Part, level: tuple[float, float] | None, kind: str, growth: tuple[float, float] | None, rotor: bool
) -> _Piece:
    """Return friction with memory and rate; its size is `level` where it is known, else its own; so is its growth."""
    from jointwise.joint.hysteresis import rated_term

    term = rated_term(part, "rotor" if rotor else "q")
    term = term if growth is None else replace(term, load=kind)
    found = growth or _growth(part)
    values = {"FCd": level or _pair(part, "F_C"), **({} if found is None else {"FCd1": found})}
    return _Piece((term,), values, () if term.uses_load() else ("load",))


def _growth(part: Part) -> tuple[float, float] | None:
    """Return how the hysteresis itself was seen to grow with the load, None where it was not."""
    return _pair(part, "F_C1") if _has(part, "F_C1") else None


def _slipping(
    part: Part,
    level: tuple[float, float] | None,
    kind: str,
    growth: tuple[float, float] | None,
    rotor: bool,
    known: bool,
) -> _Piece:
    """Return slip elements; their size is `level` where it is known, else their own."""
    from jointwise.joint.hysteresis import hysteresis_term

    term, shares = hysteresis_term(part), _shares(part)
    loaded = kind if growth is not None else term.load
    driver = "rotor" if rotor else "q"
    term = replace(term, driver=driver, load=loaded, shape=tuple(shares), backlash=_backlash(part))
    size, deviation = level or _pair(part, "F_S" if _fall(part) else "F_C")
    pairs = [(float(share * size), float(share * deviation)) for share in shares]
    names, found = [own.name for own in term.parameters()], growth or _growth(part)
    values = dict(zip(names, pairs if found is None else [*pairs, found], strict=False))
    left = (*(() if rotor or known else ("drivers",)), "relaxation", *(("load",) if loaded == "none" else ()))
    return _Piece((term,), values, left)


def _viscous(model: JointModel) -> _Piece:
    """Return viscous friction and the rise at low speed; what was not identified is open."""
    part = model.parts.get("friction")
    if part is None:
        return _Piece((), {}, ("viscous",)) if _rated(model) else _risen(model.parts.get("hysteresis"))
    powers = tuple(float(k) for k in (1, 2, 3) if _has(part, f"F_V{k}"))
    known = {f"Fv{p:g}": _pair(part, f"F_V{p:g}") for p in powers}
    terms: tuple[Term, ...] = (Viscous(powers),) if powers else ()
    if _has(part, "F_S-F_C") and _has(part, "V_S") and not _rated(model):
        terms += (Stribeck(part["V_S"], part["mu"] if _has(part, "mu") else 1.0),)
        known["FS"] = _pair(part, "F_S-F_C")
    return _Piece(terms, known)


def _risen(part: Part | None) -> _Piece:
    """Return the rise at low speed that was found with the hysteresis; viscous friction is open."""
    if part is None or _fall(part) or not _has(part, "V_S"):
        return _Piece((), {}, ("viscous", "stribeck"))
    return _Piece((Stribeck(part["V_S"]),), {"FS": _pair(part, "F_S-F_C")}, ("viscous",))


def _warmth(part: Part | None) -> _Piece:
    """Return the temperature's part; a law that is not linear in its parameters is met as well as the term can."""
    if part is None:
        return _Piece((), {})
    law = temperature_law_of(part)
    term = Temperature(law.reference, law.coldest, law.hottest)
    if law.kind == "affine-exponential":
        return _Piece((term,), _projected(term, law))
    known = {"FT1": _pair(part, "F_T2"), "FT2": _pair(part, "F_T3") if _has(part, "F_T3") else (0.0, 0.0)}
    return _Piece((term,), known)


def _projected(term: Temperature, law: TemperatureLaw) -> Known:
    """Return the values with which the term is nearest to a law over its range, with the misfit as deviation."""
    speeds, temperatures = np.meshgrid(
        np.linspace(0.05, 1.0, GRID) * law.fastest, np.linspace(law.coldest, law.hottest, GRID)
    )
    w, T = speeds.ravel(), temperatures.ravel()
    zero = np.zeros_like(w)
    J = term.columns(JointSignals(1.0, zero, w, zero, temperature=T))[0]
    size = np.linalg.norm(J, axis=0)
    y = law.torque(w, T)
    values, _, _, sizes = np.linalg.lstsq(J / size, y, rcond=1e-6)
    misfit = float(np.std(y - J / size @ values)) / float(sizes[0])
    names = [own.name for own in term.parameters()]
    return {name: (float(x / s), misfit / float(s)) for name, x, s in zip(names, values, size, strict=True)}


def _shares(part: Part) -> list[float]:
    from jointwise.joint.hysteresis import friction_law

    forces = friction_law(part).forces
    return [float(x) for x in forces / forces.sum()]


def _fall(part: Part) -> bool:
    """Tell whether friction is least at rest: what it gains with the speed is left to viscous friction."""
    return _has(part, "F_S") and part["F_S"] < part["F_C"]


def _backlash(part: Part) -> tuple[float, ...]:
    """Return the backlash map relative to its mean, () where it is the same everywhere."""
    from jointwise.joint.hysteresis import friction_law

    table = friction_law(part).backlash
    if table is None:
        return ()
    return tuple(float(x) for x in table / np.mean(table))


def drive_gain(model: JointModel, described: float | None = None) -> float | None:
    """Return the drive gain (Nm/A) to take for a joint: the identified one, unless it holds the `described` one.

    A described gain within the interval of the identified one is not contradicted, and sharper. One from the described
    links never contradicts: it may be their masses that are wrong. None if none is known.
    """
    part = model.parts.get("motor")
    if part is None:
        return described
    found = part.value("gain")
    upheld = part.settings.get("method") == "links" or (described is not None and found.covers(described))
    return described if described is not None and upheld else found.value


def _has(part: Part, name: str) -> bool:
    return any(value.name == name for value in part.values)


def _pair(part: Part, name: str) -> tuple[float, float]:
    own = part.value(name)
    return own.value, own.deviation


def _deviation(part: Part | None, name: str) -> float:
    return part.value(name).deviation if part is not None and _has(part, name) else 0.0
