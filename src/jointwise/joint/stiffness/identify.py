"""Stiffness of a gear from a locked output or from free motion with two encoders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.joint.gear_maps import GearMaps, transmission_of
from jointwise.joint.jackknife import spread
from jointwise.joint.part import Alternative, Curve, Part, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.joint.springs import CATALOGUE
from jointwise.joint.stiffness.damping import damping_curve, find_damping
from jointwise.joint.stiffness.families import Family, Polynomial, ThreeSegments
from jointwise.joint.stiffness.fit import SpringFit, fit_spring, linear_motion
from jointwise.joint.stiffness.signals import Signals, kind_of, rows_of, stiffness_signals
from jointwise.model.spring import Segments, Spring
from jointwise.spatial import Array

TERMS = (1, 2, 3)
"""Terms of the odd polynomials that are tried."""
REACHES = (0.005, 0.015, 0.03, 0.06)
"""Travels (rad) over which lost motion may build up."""
WORTH = {2: 1.05, 3: 0.98}
"""What the polynomial of so many terms may leave of unseen blocks, over what one term fewer leaves: gears stiffen, so
the cubic term need not win, it must only do no harm."""
SURE = {2: 2.0, 3: 3.0}
"""Deviations by which the last coefficient must differ from zero."""
LEAST_QUALITY = 30.0
"""NRMSE % on held-out blocks below which torque and deformation have nothing to do with each other."""
UNSURE = 0.25
"""Relative deviation of the stiffness at rest from which on nothing is known."""
UNKNOWN_GEAR = 0.02
"""Relative deviation added to the numbers of a spring where the gear's own error is not known: over the milliradians of
a locked output its slope Σ a m and that of lost motion reach 1 to 3 %; in free motion its higher orders stay."""
UNSEEN = "the transmission part does not know the gear at these angles: it was not used; reciprocate over them"
ENDS = 2.0
"""Deviations of a known gear error at φ_max that each number of a spring may take: a slope at rest takes both ends'."""
FOLDS = 4
"""Parts of the training data that are left out in turn to choose the terms."""
LINE = 201
"""Points of a curve."""


def identify_stiffness(
    record: JointRecord,
    *,
    transmission: Part | None = None,
    catalogue: Mapping[str, Segments] = CATALOGUE,
) -> Part:
    """Return the spring of a gear: an odd polynomial, with the catalogue's three segments beside it.

    A locked output gives the torque by a gauge, by the current (less the rotor's friction, found as slip elements) or
    by both together; free motion gives it by the inverse dynamics of the links. `transmission` takes kinematic error
    and lost motion out of the deformation; in free motion orders 1 and 2 and a lag are found along otherwise.
    `catalogue` gives gears whose printed numbers are compared. Damping is told with it where a gauge or free motion
    shows it and nothing of the gear hides it. Refused where the data cannot tell.
    """
    maps = _known_maps(record, transmission)
    every = _signals(record, maps)
    rows = rows_of(every)
    train, test = rows.take(~rows.held_out), every.take(every.held_out)
    family = _terms(train)
    tested = fit_spring(family, train)
    held_out = tested.quality(test)
    spring = tested.undamped.quality(test)  # damping alone can follow a torque of another time
    if not spring >= LEAST_QUALITY:
        what = f"the torque does not follow the deformation (fit {spring:.0f} % on data held out)"
        raise refuse(record, "stiffness", what)
    fit = fit_spring(family, rows)
    _refuse_unsure(record, fit, rows)
    segments = fit_spring(ThreeSegments(), rows)
    alternatives = _alternatives(train, test, catalogue)
    unknown = UNKNOWN_GEAR if maps is None else 0.0
    gear = 0.0 if maps is None else ENDS * maps.deviation
    damping, about = find_damping(fit, every, maps is not None)
    damped = () if damping is None else (damping,)
    return Part(
        phenomenon="stiffness",
        model=family.title,
        values=(*_values(fit, unknown, gear), *_values(segments, unknown, gear), *damped, *_others(fit)),
        fitted=fit.quality(every),
        held_out=held_out,
        settings=_settings(fit, every),
        ranges={"phi": _range(fit.deformation(every))} | {n: _range(tau) for n, tau in every.torques.items()},
        alternatives=alternatives,
        curves=(
            *_curves(fit, segments, every, max(unknown, gear / fit.largest)),
            *(damping_curve(fit, every, own) for own in damped),
        ),
        notes=(*_notes(fit, every, maps), about, *((UNSEEN,) if transmission is not None and maps is None else ())),
        logs=record.logs,
    )


def _known_maps(record: JointRecord, transmission: Part | None) -> GearMaps | None:
    """Return the maps of a transmission part if they are known at the angles of the record."""
    maps = None if transmission is None else transmission_of(transmission)
    return maps if maps is None or record.theta is None or maps.knows(record.theta) else None


def _signals(record: JointRecord, maps: GearMaps | None) -> Signals:
    """Return the signals; in free motion with the reach of lost motion that leaves the least."""
    if kind_of(record) == "locked" or maps is not None:
        return stiffness_signals(record, maps)
    tried = [stiffness_signals(record, None, reach) for reach in REACHES]
    return min(tried, key=lambda signals: linear_motion(rows_of(signals).take(~rows_of(signals).held_out), 1.0)[1])


def _terms(train: Signals) -> Polynomial:
    """Return the longest polynomial whose terms pay off on blocks kept from them, within the training data."""
    pair = train.block // 2
    fold = (pair + pair // FOLDS) % FOLDS
    rests = [float(np.mean([_unseen(Polynomial(p), train, fold == k) for k in range(FOLDS)])) for p in TERMS]
    chosen = 0
    for k in range(1, len(TERMS)):
        if rests[k] < WORTH[TERMS[k]] * rests[chosen] and _significant(fit_spring(Polynomial(TERMS[k]), train)):
            chosen = k
    return Polynomial(TERMS[chosen])


def _unseen(family: Family, rows: Signals, fold: NDArray[np.bool_]) -> float:
    """Return what a law leaves, %, of blocks that it was not fitted on."""
    return 100.0 - fit_spring(family, rows.take(~fold)).quality(rows.take(fold))


def _significant(fit: SpringFit) -> bool:
    """Tell whether the last coefficient differs from zero, a cubic one above it."""
    terms = fit.layout.sizes["spring"]
    last = float(fit.numbers[terms - 1])
    size = last if terms == 2 else abs(last)
    return bool(size > SURE[terms] * float(spread(fit.replicates[:, terms - 1])))


def _refuse_unsure(record: JointRecord, fit: SpringFit, rows: Signals) -> None:
    slope = float(fit.stiffness(fit.numbers, np.zeros(1))[0])
    deviation = float(spread(np.array([fit.stiffness(x, np.zeros(1))[0] for x in fit.replicates])))
    if slope <= 0.0 or deviation > UNSURE * slope:
        size = max(float(np.ptp(torque)) for torque in rows.torques.values())
        unsure = deviation / max(abs(slope), 1e-9)
        what = f"the load varies by {size:.2g} Nm only, so the stiffness is unsure by {unsure:.0%}"
        raise refuse(record, "stiffness", what)


def _values(fit: SpringFit, unknown: float, gear: float) -> list[Value]:
    """Return the numbers of a spring; `unknown` is a relative deviation, `gear` that of the gear's error, rad."""
    family = fit.layout.family
    numbers = fit.physical(fit.numbers)
    deviation = spread(np.array([fit.physical(x) for x in fit.replicates]))
    whole = np.sqrt(deviation**2 + (unknown * numbers) ** 2 + _hidden(fit, numbers, gear) ** 2)
    rows = zip(family.names, family.units, numbers, whole, strict=True)
    return [value_of(name, unit, number, own, fit.factor) for name, unit, number, own in rows]


def _hidden(fit: SpringFit, numbers: Array, gear: float) -> Array:
    """Return what a deviation of the gear's error (rad) at either end of φ does to the numbers."""
    if isinstance(fit.layout.family, Polynomial):
        return fit.layout.family.physical(np.full(len(numbers), abs(numbers[0]) * gear), fit.largest)
    result: Array = np.abs(numbers) * (gear / fit.largest)
    return result


def _others(fit: SpringFit) -> list[Value]:
    """Return encoder offset and the friction of the rotor where it was found."""
    parts, own = fit.layout.split(fit.numbers), [fit.layout.split(x) for x in fit.replicates]
    deviation = spread(np.array([fit.largest * x["offset"][0] for x in own]))
    values = [value_of("offset", "rad", fit.offset, float(deviation), fit.factor)]
    if parts["friction"].size:
        deviation = spread(np.array([x["friction"].sum() for x in own]))
        values.append(value_of("coulomb", "Nm", float(parts["friction"].sum()), float(deviation), fit.factor))
    return values


def _settings(fit: SpringFit, signals: Signals) -> dict[str, Any]:
    coefficients = fit.physical(fit.numbers).tolist()
    return {"kind": "polynomial", "coefficients": coefficients, "data": signals.kind, "offset": fit.offset}


def _alternatives(train: Signals, test: Signals, catalogue: Mapping[str, Segments]) -> tuple[Alternative, ...]:
    """Return every law fitted on the training blocks and tested on the others, and gears as catalogues print them."""
    families: list[Family] = [*(Polynomial(p) for p in TERMS), ThreeSegments()]
    fits = {family.title: fit_spring(family, train) for family in families}
    found = [Alternative(title, fit.quality(train), fit.quality(test)) for title, fit in fits.items()]
    cubic = fits[Polynomial(2).title]
    for name, gear in catalogue.items():
        note = "numbers as the catalogue prints them"
        found.append(Alternative(f"segments, {name}", _printed(gear, cubic, train), _printed(gear, cubic, test), note))
    if "motor" in train.torques:
        fit = fit_spring(Polynomial(2), _frictionless(train))
        note = "the motor's torque taken for the gear's"
        found.append(
            Alternative(
                "cubic, friction neglected", fit.quality(_frictionless(train)), fit.quality(_frictionless(test)), note
            )
        )
    return tuple(found)


def _frictionless(signals: Signals) -> Signals:
    return replace(signals, slips=np.zeros((len(signals.phi), 0)))


def _printed(gear: Spring, cubic: SpringFit, signals: Signals) -> float:
    """Return the NRMSE % of a given spring, with offset and friction as the fitted cubic has them."""
    predicted, phi = cubic.predicted(signals), cubic.deformation(signals)
    change = gear.torque(phi) - cubic.torque(cubic.numbers, phi)
    names = list(signals.torques)
    measured = np.concatenate([signals.torques[n] for n in names])
    return nrmse_percent(measured, np.concatenate([predicted[n] + change for n in names]))


def _curves(fit: SpringFit, segments: SpringFit, signals: Signals, unknown: float) -> tuple[Curve, ...]:
    phi = fit.deformation(signals)
    low, high = _range(phi)
    line = np.linspace(low, high, LINE)
    curves = []
    for name, torque in signals.torques.items():
        rest = torque - fit.predicted(signals)[name]
        curves.append(_curve(f"Torque over deformation ({name})", "torque [Nm]", fit, line, unknown, phi, torque, rest))
    curves.append(_curve("Stiffness over deformation", "stiffness [Nm/rad]", fit, line, unknown))
    curves.append(_curve("Three segments", "torque [Nm]", segments, line, unknown, phi, fit.torque(fit.numbers, phi)))
    if "motor" in signals.torques:
        loop = signals.torques["motor"] - fit.torque(fit.numbers, phi)
        curves.append(
            Curve(
                "Hysteresis of the locked rotor",
                "deformation [rad]",
                "friction [Nm]",
                plain(phi),
                plain(loop),
                kind="line",
            )
        )
    return tuple(curves)


def _curve(
    title: str,
    label: str,
    fit: SpringFit,
    line: Array,
    unknown: float,
    phi: Array | None = None,
    torque: Array | None = None,
    residual: Array | None = None,
) -> Curve:
    """Return a curve of torque or stiffness with its band, to which the `unknown` part of it is added."""
    law = fit.stiffness if title.startswith("Stiffness") else fit.torque
    y = law(fit.numbers, line)
    half = fit.factor * np.hypot(spread(np.array([law(x, line) for x in fit.replicates])), unknown * np.abs(y))
    empty = np.zeros(0)
    points = [plain(empty if values is None else values) for values in (phi, torque, residual)]
    return Curve(
        title, "deformation [rad]", label, points[0], points[1],
        plain(line), plain(y), plain(y - half), plain(y + half), points[2],
    )  # fmt: skip


def _notes(fit: SpringFit, signals: Signals, maps: GearMaps | None) -> tuple[str, ...]:
    used = " and ".join(
        {"gauge": "the gauge", "motor": "the current", "links": "the links"}[n] for n in signals.torques
    )
    what = "output locked" if signals.kind == "locked" else "free motion"
    notes = [f"{what}, torque by {used}; intervals by leaving out one of {len(fit.replicates)} blocks of time"]
    if fit.layout.sizes["spring"] == 1:
        notes.append("the torques seen do not tell the curvature: a_1 is the mean stiffness over the range")
    if maps is not None:
        notes.append("kinematic error and lost motion of the gear were taken out of the deformation")
    else:
        what = (
            f"found along: {', '.join(signals.shift_names)}"
            if signals.shift_names
            else "cannot be told from the spring"
        )
        notes.append(
            f"kinematic error and lost motion are not known ({what}): {UNKNOWN_GEAR:.0%} is added to "
            "every deviation; give a transmission part"
        )
    return tuple(notes)


def _range(values: Array) -> tuple[float, float]:
    return float(np.min(values)), float(np.max(values))
