"""Terms of a calibration from an identified joint, as a start or with fixed values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from jointwise.arguments import checked
from jointwise.errors import ModelError
from jointwise.estimation.structure import JointTerms
from jointwise.joint.laws import TemperatureLaw, load_law_of, temperature_law_of
from jointwise.joint.model import JointModel
from jointwise.joint.motor import MotorSettings, implausible_gain
from jointwise.joint.part import Part
from jointwise.model.terms import Coulomb, Hysteresis, JointSignals, Offset, Stribeck, Temperature, Term, Viscous

USED = ("friction", "load", "temperature", "hysteresis")
"""Phenomena that enter a calibration as terms; the motor enters as its drive gain."""
RATE_DEPENDENT = ("lugre", "rate-gms")
"""Hysteresis models that depend on the speed: they contain the Stribeck effect."""

Estimate = tuple[float, float]
"""A value and its standard error."""


@dataclass(frozen=True)
class _Piece:
    """Terms of one effect, the estimates of their parameters by name, and the choices left to the calibration."""

    terms: tuple[Term, ...] = ()
    known: dict[str, Estimate] = field(default_factory=dict)
    open: tuple[str, ...] = ()


def joint_terms(model: JointModel, known: bool = False, rotor: bool = False) -> JointTerms:
    """Return the friction terms of an identified joint for a calibration.

    Dry friction is that of the hysteresis, with the size of the friction over speed where both are identified. An
    offset is always estimated: it absorbs differences between the directions. The effect of temperature is always
    fixed, as a log that is not a warm-up does not determine it. What was not identified is left to the calibration.

    Args:
        model: The identified joint.
        known: Whether the values are fixed; else they are estimated again.
        rotor: Whether the logs have rotor positions, which then drive the hysteresis.

    Returns:
        The terms, fixed values, and open choices.

    Raises:
        ModelError: If the joint has no phenomenon that a calibration can use.
    """
    if not any(name in model.parts for name in USED):
        raise ModelError(
            f"joint {model.joint + 1} of {model.robot}: nothing known that a calibration could use "
            f"(one of {', '.join(USED)}). Found: {', '.join(model.parts) or 'nothing'}."
        )
    thermal = _thermal(model.parts.get("temperature"))
    dry, viscous = _dry(model, rotor, known), _viscous(model)
    terms = (Offset(), *dry.terms, *viscous.terms, *thermal.terms)
    values = dry.known | viscous.known | thermal.known
    choices = (*dry.open, *viscous.open, *thermal.open, "ripple")
    return JointTerms(terms, values if known else thermal.known, choices, firm=known)


@checked
def drive_gain(model: JointModel, described: float | None = None, *, accept_implausible: bool = False) -> float | None:
    """Return the drive gain (Nm/A) of a joint: the identified one, unless its interval contains the `described` one.

    A described gain within the 95 % confidence interval is not contradicted, and more precise. A gain from the load of
    the described links never replaces it, as their masses may be wrong; nor does an implausible one.

    Args:
        model: The identified joint.
        described: Gain of the robot description, Nm/A.
        accept_implausible: Use a gain that was marked as implausible.

    Returns:
        The gain to use; None if none is known.
    """
    part = model.parts.get("motor")
    if part is None or (implausible_gain(part) and not accept_implausible):
        return described
    found = part.value("gain")
    is_from_links = part.settings_as("motor", MotorSettings).method == "links"
    is_consistent = is_from_links or (described is not None and found.covers(described))
    return described if described is not None and is_consistent else found.value


# -- dry friction --


@dataclass(frozen=True)
class _DryFriction:
    """Size of dry friction and its growth with the load, as identified by their own experiments; None if not."""

    level: Estimate | None
    load_law: str
    growth: Estimate | None


def _dry_friction(model: JointModel) -> _DryFriction:
    level = _find(model.parts.get("friction"), "F_C")
    load = model.parts.get("load")
    law = None if load is None else load_law_of(load)
    if load is None or law is None or law.kind == "none":
        return _DryFriction(level, "none", None)
    error = _find(load, "F_l")
    return _DryFriction(level, law.kind, (law.factor, 0.0 if error is None else error[1]))


def _dry(model: JointModel, rotor: bool, known: bool) -> _Piece:
    """Return dry friction: slip elements where they were identified, else Coulomb friction.

    The direction in which Coulomb friction acts is left to the calibration, even where its size is known.
    """
    dry = _dry_friction(model)
    if "hysteresis" in model.parts:
        part = model.parts["hysteresis"]
        return _rate_dependent(part, dry, rotor) if _is_rated(model) else _slip_elements(part, dry, rotor, known)
    values = {"FC0": dry.level, "FC1": dry.growth}
    choices = ("direction",) if dry.growth is not None else ("direction", "load")
    known_values = {name: estimate for name, estimate in values.items() if estimate is not None}
    return _Piece((Coulomb(dry.load_law, "tanh"),), known_values, choices)


def _is_rated(model: JointModel) -> bool:
    """Return whether the hysteresis of a joint depends on the speed and so contains the Stribeck effect."""
    return "hysteresis" in model.parts and model.parts["hysteresis"].model in RATE_DEPENDENT


def _rate_dependent(part: Part, dry: _DryFriction, rotor: bool) -> _Piece:
    """Return rate-dependent hysteresis; size and growth with the load from `dry` where known, else its own."""
    from jointwise.joint.laws import rated_term

    term = rated_term(part, "rotor" if rotor else "q")
    term = term if dry.growth is None else replace(term, load=dry.load_law)
    growth = dry.growth or _find(part, "F_C1")
    values = {"FCd": dry.level or _estimate(part, "F_C")} | ({} if growth is None else {"FCd1": growth})
    return _Piece((term,), values, () if term.uses_load() else ("load",))


def _slip_elements(part: Part, dry: _DryFriction, rotor: bool, known: bool) -> _Piece:
    """Return slip elements; size and growth with the load from `dry` where known, else their own."""
    from jointwise.joint.laws import friction_law, hysteresis_term

    law, term = friction_law(part), hysteresis_term(part)
    shares = tuple((law.forces / law.forces.sum()).tolist())
    load = term.load if dry.growth is None else dry.load_law
    term = replace(term, driver="rotor" if rotor else "q", load=load, shape=shares)
    choices = ("relaxation",) if rotor or known else ("drivers", "relaxation")
    return _Piece((term,), _slip_values(part, dry, term), (*choices, "load") if load == "none" else choices)


def _slip_values(part: Part, dry: _DryFriction, term: Hysteresis) -> dict[str, Estimate]:
    """Return the estimates of the parameters of slip elements, in the order of their shares."""
    size, error = dry.level or _estimate(part, "F_S" if _rises_with_speed(part) else "F_C")
    estimates = [(share * size, share * error) for share in term.shape]
    growth = dry.growth or _find(part, "F_C1")
    names = [parameter.name for parameter in term.parameters()]
    return dict(zip(names, estimates if growth is None else [*estimates, growth], strict=False))


def _rises_with_speed(part: Part) -> bool:
    """Return whether friction is smallest at rest: its rise with the speed is left to viscous friction."""
    static = _find(part, "F_S")
    return static is not None and static[0] < part["F_C"]


# -- viscous friction and Stribeck effect --


def _viscous(model: JointModel) -> _Piece:
    """Return viscous friction and the Stribeck effect; what was not identified is left to the calibration."""
    part = model.parts.get("friction")
    if part is None:
        return _Piece(open=("viscous",)) if _is_rated(model) else _hysteresis_rise(model.parts.get("hysteresis"))
    powers = [power for power in (1, 2, 3) if _find(part, f"F_V{power}") is not None]
    viscous = _Piece(
        (Viscous(tuple(map(float, powers))),) if powers else (),
        {f"Fv{power}": _estimate(part, f"F_V{power}") for power in powers},
    )
    rise = _find(part, "F_S-F_C")
    if rise is None or _is_rated(model):
        return viscous
    exponent = _find(part, "mu") or (1.0, 0.0)
    return _Piece((*viscous.terms, Stribeck(part["V_S"], exponent[0])), viscous.known | {"FS": rise})


def _hysteresis_rise(part: Part | None) -> _Piece:
    """Return the Stribeck effect that was identified with the hysteresis; viscous friction is open."""
    if part is None or _rises_with_speed(part) or _find(part, "V_S") is None:
        return _Piece(open=("viscous", "stribeck"))
    from jointwise.joint.laws import friction_law

    rise = Stribeck(part["V_S"], friction_law(part).exponent)
    return _Piece((rise,), {"FS": _estimate(part, "F_S-F_C")}, ("viscous",))


# -- temperature --

GRID = 12
"""Speeds, and temperatures, at which a temperature law is approximated."""


def _thermal(part: Part | None) -> _Piece:
    """Return the effect of temperature; an affine-exponential law is approximated by the term."""
    if part is None:
        return _Piece()
    law = temperature_law_of(part)
    term = Temperature(law.reference, law.coldest, law.hottest)
    if law.kind == "affine-exponential":
        return _Piece((term,), _projected(term, law))
    return _Piece((term,), {"FT1": _estimate(part, "F_T2"), "FT2": _find(part, "F_T3") or (0.0, 0.0)})


def _projected(term: Temperature, law: TemperatureLaw) -> dict[str, Estimate]:
    """Return the values with which the term approximates a law over its range, with the misfit as standard error."""
    speeds, temperatures = np.meshgrid(
        np.linspace(0.0, law.fastest, GRID + 1)[1:], np.linspace(law.coldest, law.hottest, GRID)
    )
    w, T = speeds.ravel(), temperatures.ravel()
    zero = np.zeros_like(w)
    J = term.columns(JointSignals(1.0, zero, w, zero, temperature=T))[0]
    scale = np.linalg.norm(J, axis=0)
    y = law.torque(w, T)
    values, _, _, singular_values = np.linalg.lstsq(J / scale, y)
    misfit = float(np.std(y - J / scale @ values)) / float(singular_values[0])
    names = [parameter.name for parameter in term.parameters()]
    return {name: (float(x / s), misfit / float(s)) for name, x, s in zip(names, values, scale, strict=True)}


def _find(part: Part | None, name: str) -> Estimate | None:
    """Return the estimate of a parameter, None if the part does not have it."""
    if part is None or all(value.name != name for value in part.values):
        return None
    return _estimate(part, name)


def _estimate(part: Part, name: str) -> Estimate:
    value = part.value(name)
    return value.value, value.deviation
