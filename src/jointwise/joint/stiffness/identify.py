"""Identification of the stiffness of a gear, from a locked output or from free motion with two encoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked
from jointwise.estimation.cross_validation import (
    SIGNIFICANT,
    held_out_predictions,
    simplest_candidate,
    unit_errors,
)
from jointwise.estimation.jackknife import standard_error
from jointwise.joint.checks import check_gravity, refuse
from jointwise.joint.curve import CURVE_BINS, LINE_POINTS, Curve, make_curve, slope_curve
from jointwise.joint.part import (
    MIN_QUALITY,
    TINY,
    Part,
    TriedModel,
    Value,
    identified_part,
    nrmse_percent,
    tried_model,
    value_of,
)
from jointwise.joint.record import JointRecord
from jointwise.joint.stiffness.data import StiffnessRows, is_locked, stiffness_rows
from jointwise.joint.stiffness.fit import SpringFit, fit_spring, linear_motion
from jointwise.joint.stiffness.law import CATALOGUE, PolynomialSpring, SegmentedSpring, SpringFamily, StiffnessSettings
from jointwise.joint.transmission.law import GearMaps, transmission_of
from jointwise.model.spring import Spring
from jointwise.spatial import Array

TERMS = (1, 2, 3)
"""Terms of the odd polynomials that are fitted."""
REACHES = (0.005, 0.015, 0.03, 0.06)
"""Travels (rad) over which unknown lost motion may build up."""
MAX_RELATIVE_ERROR = 0.25
"""Relative standard error of the stiffness at rest above which nothing is known."""


@checked
def identify_stiffness(record: JointRecord, *, transmission: Part | None = None) -> Part:
    """Identify the spring of a gear, as `jointwise joint stiffness` does: an odd polynomial, and three segments.

    With a locked output the torque is that of a gauge, of the current (without the rotor friction, which is fitted as
    slip elements) or both; in free motion it follows from the inverse dynamics of the links. Damping is estimated where
    a gauge or free motion shows it.

    Args:
        record: Signals of the joint with rotor positions, see `joint_record`.
        transmission: Part from `identify_transmission`; its kinematic error and lost motion are subtracted from the
            deformation. Without it, the two lowest orders and lost motion are fitted in free motion.

    Returns:
        The phenomenon "stiffness".

    Raises:
        EstimationError: If the record does not determine a stiffness.
    """
    check_gravity(record)
    maps = _known_maps(record, transmission)
    every = _rows(record, maps)
    rows = every.reduced()
    training, test = rows.take(~rows.held_out), every.take(every.held_out)
    family = _choose_terms(training)
    trained = fit_spring(family, training)
    quality = trained.undamped.quality(test)  # damping alone can follow a torque of another time
    if not quality >= MIN_QUALITY:
        reason = f"the torque does not follow the deformation (fit {quality:.0f} % on data held out)"
        raise refuse(record, "stiffness", reason)
    fit = fit_spring(family, rows)
    _check_certain(record, fit, rows)
    result = StiffnessResult(
        rows=every,
        fit=fit,
        segments=fit_spring(SegmentedSpring(), rows),
        maps=maps,
        is_gear_unseen=transmission is not None and maps is None,
    )
    return _part(record, result, trained.quality(test), _alternatives(training, test))


def _known_maps(record: JointRecord, transmission: Part | None) -> GearMaps | None:
    """Return the maps of a transmission part if they are known at the angles of the record."""
    maps = None if transmission is None else transmission_of(transmission)
    return maps if maps is None or record.theta is None or maps.knows(record.theta) else None


def _rows(record: JointRecord, maps: GearMaps | None) -> StiffnessRows:
    """Return the rows; in free motion with an unknown gear those with the best reach of lost motion."""
    if is_locked(record) or maps is not None:
        return stiffness_rows(record, maps)

    def residual(rows: StiffnessRows) -> float:
        reduced = rows.reduced()
        return linear_motion(reduced.take(~reduced.held_out), 1.0)[1]

    return min((stiffness_rows(record, None, reach) for reach in REACHES), key=residual)


def _choose_terms(training: StiffnessRows) -> PolynomialSpring:
    """Return the polynomial chosen by the one-standard-error rule on held-out blocks; a gear does not soften."""
    springs = [PolynomialSpring(terms) for terms in TERMS]
    stiffening = [spring for spring in springs if spring.terms == 1 or _stiffens(fit_spring(spring, training))]
    return simplest_candidate({spring: _held_out_errors(spring, training) for spring in stiffening})


def _stiffens(fit: SpringFit) -> bool:
    """Return whether a gear is stiffer at the largest deformation than at rest."""
    at_rest, at_end = fit.stiffness(fit.values, np.array([0.0, fit.largest]))
    return bool(at_end > at_rest)


def _held_out_errors(family: SpringFamily, rows: StiffnessRows) -> Array:
    """Return the squared error of every block, predicted from the other folds; channels over their variance."""

    def predict(training: NDArray[np.bool_]) -> Array:
        return np.column_stack(list(fit_spring(family, rows.take(training)).predicted(rows).values()))

    measured = np.column_stack(list(rows.torques.values()))
    residual = (measured - held_out_predictions(rows.block, predict)) / measured.std(axis=0)
    return unit_errors(np.linalg.norm(residual, axis=1), rows.block)


def _check_certain(record: JointRecord, fit: SpringFit, rows: StiffnessRows) -> None:
    """Raise if the stiffness at rest is not positive or too uncertain."""
    slope = float(fit.stiffness(fit.values, np.zeros(1))[0])
    error = float(standard_error(np.array([fit.stiffness(x, np.zeros(1))[0] for x in fit.replicates])))
    if slope <= 0.0 or error > MAX_RELATIVE_ERROR * slope:
        size = max(float(np.ptp(torque)) for torque in rows.torques.values())
        relative = error / max(abs(slope), TINY)
        reason = f"the load varies by {size:.2g} Nm only, so the stiffness has a standard error of {relative:.0%}"
        raise refuse(record, "stiffness", reason)


def _alternatives(training: StiffnessRows, test: StiffnessRows) -> tuple[TriedModel, ...]:
    """Return every law fitted to the training blocks and tested on the others, and springs from catalogues."""
    families: list[SpringFamily] = [*(PolynomialSpring(p) for p in TERMS), SegmentedSpring()]
    fits = {family.title: fit_spring(family, training) for family in families}
    found = [tried_model(title, fit.quality, training, test) for title, fit in fits.items()]
    cubic = fits[PolynomialSpring(2).title]
    for name, gear in CATALOGUE.items():
        quality = partial(_catalogue_quality, gear, cubic)
        found.append(tried_model(f"segments, {name}", quality, training, test, "values of the catalogue"))
    if "motor" in training.torques:
        note = "motor torque taken as the torque of the gear"
        bare = training.without_slips, test.without_slips
        fit = fit_spring(PolynomialSpring(2), bare[0])
        found.append(tried_model("cubic, friction neglected", fit.quality, *bare, note))
    return tuple(found)


def _catalogue_quality(gear: Spring, cubic: SpringFit, rows: StiffnessRows) -> float:
    """Return the NRMSE % of a catalogue spring, with offset and friction of the fitted cubic."""
    predicted, phi = cubic.predicted(rows), cubic.deformation(rows)
    change = gear.torque(phi) - cubic.torque(cubic.values, phi)
    measured = np.concatenate([rows.torques[n] for n in rows.torques])
    return nrmse_percent(measured, np.concatenate([predicted[n] + change for n in rows.torques]))


# -- result --

UNKNOWN_GEAR_ERROR = 0.02
"""Relative standard error added to spring parameters where the gear errors are unknown: over the milliradians of a
locked output the slope Σ a m of the kinematic error and that of lost motion reach 1 to 3 %; in free motion the higher
orders remain."""
GEAR_ENDS = 2.0
"""Standard errors of a known gear error at φ_max that count for each spring parameter: a slope at rest is affected by
the errors at both ends."""
UNSEEN_GEAR = "the transmission part does not cover these angles and was not used; reciprocate over them"
NO_POINTS = np.empty(0), np.empty(0)
CHANNELS = {"gauge": "the gauge", "motor": "the current", "links": "the links"}


@dataclass(frozen=True)
class StiffnessResult:
    """The fits behind a stiffness part.

    Attributes:
        rows: Rows of the fits.
        fit: Polynomial, fitted to all rows.
        segments: Spring of three segments, fitted to all rows.
        maps: Known gear errors; None if they are unknown.
        is_gear_unseen: Whether a transmission part was available but does not cover the angles.
    """

    rows: StiffnessRows
    fit: SpringFit
    segments: SpringFit
    maps: GearMaps | None
    is_gear_unseen: bool

    @property
    def relative_error(self) -> float:
        """Relative standard error due to unknown gear errors."""
        return UNKNOWN_GEAR_ERROR if self.maps is None else 0.0

    @property
    def angle_error(self) -> float:
        """Standard error (rad) of the known gear errors at the ends of the deformation."""
        return 0.0 if self.maps is None else GEAR_ENDS * self.maps.deviation


def _part(record: JointRecord, result: StiffnessResult, held_out: float, tried: tuple[TriedModel, ...]) -> Part:
    """Return the phenomenon "stiffness"."""
    fit, rows = result.fit, result.rows
    damping, damping_note = find_damping(fit, result.maps is not None)
    damped = () if damping is None else (damping,)
    unseen = (UNSEEN_GEAR,) if result.is_gear_unseen else ()
    coefficients = tuple(fit.physical(fit.values).tolist())
    return identified_part(
        record,
        "stiffness",
        model=fit.layout.family.title,
        values=(*_values(fit, result), *_values(result.segments, result), *damped, *_other_values(fit)),
        fitted=fit.quality(rows),
        held_out=held_out,
        settings=StiffnessSettings("polynomial", coefficients, rows.kind, fit.offset),
        ranges={"phi": fit.deformation(rows), **rows.torques},
        alternatives=tried,
        curves=(*_curves(result), *(damping_curve(fit, rows, value) for value in damped)),
        notes=(*_notes(result), damping_note, *unseen),
    )


# -- parameters --


def _values(fit: SpringFit, result: StiffnessResult) -> list[Value]:
    """Return the parameters of a spring, with standard errors that include those of the gear."""
    family = fit.layout.family
    values = fit.physical(fit.values)
    error = standard_error(np.array([fit.physical(x) for x in fit.replicates]))
    total = np.sqrt(error**2 + (result.relative_error * values) ** 2 + _gear_error(fit, values, result) ** 2)
    rows = zip(family.names, family.units, values, total, strict=True)
    return [value_of(name, unit, value, deviation, fit.factor) for name, unit, value, deviation in rows]


def _gear_error(fit: SpringFit, values: Array, result: StiffnessResult) -> Array:
    """Return the standard error of the parameters due to that of the known gear errors at either end of φ."""
    if isinstance(fit.layout.family, PolynomialSpring):
        return fit.layout.family.physical(np.full(len(values), abs(values[0]) * result.angle_error), fit.largest)
    return np.abs(values) * (result.angle_error / fit.largest)


def _other_values(fit: SpringFit) -> list[Value]:
    """Return the encoder offset, and the rotor friction where it was fitted."""
    parts, replicates = fit.layout.split(fit.values), [fit.layout.split(x) for x in fit.replicates]
    error = float(standard_error(np.array([fit.largest * x["offset"][0] for x in replicates])))
    values = [value_of("offset", "rad", fit.offset, error, fit.factor)]
    if parts["friction"].size:
        error = float(standard_error(np.array([x["friction"].sum() for x in replicates])))
        values.append(value_of("coulomb", "Nm", float(parts["friction"].sum()), error, fit.factor))
    return values


# -- damping --

SMOOTHING_ERROR = 0.005
"""Relative standard error added to the damping: the error due to smoothing."""


def find_damping(fit: SpringFit, is_gear_known: bool) -> tuple[Value | None, str]:
    """Return D (Nm s/rad), None where the data do not determine it, and a note."""
    if not fit.layout.damping:
        reason = "rotor friction hides it in the current; a gauge at the output, or free motion, can determine it"
        return None, f"damping is not determined: {reason}"
    if not is_gear_known and _has_gear_error(fit):
        reason = "kinematic errors mask it in free motion: identify the transmission first, or lock the output"
        return None, f"damping is not determined: {reason}"
    found = float(fit.layout.split(fit.values)["damping"][0])
    error = float(standard_error(np.array([fit.layout.split(x)["damping"][0] for x in fit.replicates])))
    value = value_of("damping", "Nm s/rad", found, float(np.hypot(error, SMOOTHING_ERROR * found)), fit.factor)
    slope = float(fit.stiffness(fit.values, np.zeros(1))[0])
    if value.high < 0.0:
        delay = f"as if the torque were stamped {-1e3 * found / slope:.2g} ms late"
        return None, f"damping is not determined: the torque is behind the twist, {delay}"
    limit = f"the time stamps of torque and twist must agree to well below {1e3 * value.high / slope:.2g} ms"
    return value, f"damping makes the torque lead the twist: {limit}"


def damping_curve(fit: SpringFit, rows: StiffnessRows, value: Value) -> Curve:
    """Return the torque beyond the spring over the speed of the twist, as means of equally many samples."""
    name = "gauge" if "gauge" in rows.torques else "links"
    beyond = rows.torques[name] - fit.torque(fit.values, fit.deformation(rows))
    x, y = _sorted_means(rows.rate, beyond)
    labels = ("Damping: torque beyond the spring", "speed of the twist [rad/s]", "torque beyond the spring [Nm]")
    return slope_curve(labels, (x, y), value.value, (value.low, value.high), residual=y - value.value * x)


def _has_gear_error(fit: SpringFit) -> bool:
    """Return whether one of the fitted gear errors is significant: its higher orders then hide the damping."""
    if fit.layout.shifts == 0:
        return False
    found = fit.layout.split(fit.values)["shifts"]
    error = standard_error(np.array([fit.layout.split(x)["shifts"] for x in fit.replicates]))
    return bool((np.abs(found) > SIGNIFICANT * error).any())


def _sorted_means(x: Array, y: Array) -> tuple[Array, Array]:
    """Return means of both in the order of x, over `CURVE_BINS` groups of equally many samples."""
    groups = np.array_split(np.argsort(x, kind="stable"), min(CURVE_BINS, len(x)))
    return np.array([x[group].mean() for group in groups]), np.array([y[group].mean() for group in groups])


# -- curves --


def _curves(result: StiffnessResult) -> tuple[Curve, ...]:
    """Return torque and stiffness over deformation, three segments, and the hysteresis of a locked rotor."""
    fit, segments, rows = result.fit, result.segments, result.rows
    phi, predicted = fit.deformation(rows), fit.predicted(rows)
    line = np.linspace(phi.min(), phi.max(), LINE_POINTS)
    band = max(result.relative_error, result.angle_error / fit.largest)
    spring, curves = fit.torque(fit.values, phi), []
    for name, torque in rows.torques.items():
        labels, residual = (f"Torque over deformation ({name})", "torque [Nm]"), torque - predicted[name]
        curves.append(_curve(labels, fit, fit.torque, line, band, (phi, torque), residual))
    curves.append(_curve(("Stiffness over deformation", "stiffness [Nm/rad]"), fit, fit.stiffness, line, band))
    labels = ("Three segments", "torque [Nm]")
    curves.append(_curve(labels, segments, segments.torque, line, band, (phi, spring)))
    if "motor" in rows.torques:
        loop = ("Hysteresis of the locked rotor", "deformation [rad]", "friction [Nm]")
        curves.append(make_curve(loop, (phi, rows.torques["motor"] - spring), kind="line"))
    return tuple(curves)


def _curve(
    labels: tuple[str, str],
    fit: SpringFit,
    law: Callable[[Array, Array], Array],
    line: Array,
    relative_error: float,
    points: tuple[Array, Array] = NO_POINTS,
    residual: Array | None = None,
) -> Curve:
    """Return a curve of a law with its 95 % band, which includes a relative error."""
    y = law(fit.values, line)
    error = standard_error(np.array([law(values, line) for values in fit.replicates]))
    half = fit.factor * np.hypot(error, relative_error * np.abs(y))
    title = (labels[0], "deformation [rad]", labels[1])
    return make_curve(title, points, (line, y), half, residual=residual)


# -- notes --


def _notes(result: StiffnessResult) -> tuple[str, ...]:
    fit, rows = result.fit, result.rows
    used = " and ".join(CHANNELS[name] for name in rows.torques)
    data = "output locked" if rows.kind == "locked" else "free motion"
    blocks = len(fit.replicates)
    notes = [f"{data}, torque from {used}; standard errors by a jackknife over {blocks} blocks of time"]
    if fit.layout.sizes["spring"] == 1:
        notes.append("these torques do not determine the curvature: a_1 is the mean stiffness over the range")
    if result.maps is not None:
        return (*notes, "kinematic error and lost motion of the gear were subtracted from the deformation")
    fitted = f"fitted: {', '.join(rows.shift_names)}" if rows.shift_names else "cannot be separated from the spring"
    notes.append(
        f"kinematic error and lost motion are not known ({fitted}): {UNKNOWN_GEAR_ERROR:.0%} is added to every "
        "standard error. Identify the transmission first ('joint transmission')"
    )
    return tuple(notes)
