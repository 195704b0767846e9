"""Stiffness of a gear, from a locked output or from free motion with two encoders.

A spring is fitted to all torques at once, together with offsets, rotor friction, damping and errors of the gear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from jointwise.arguments import checked
from jointwise.data.filters import differences, low_pass
from jointwise.data.statistics import group_means, noise, quantum
from jointwise.errors import EstimationError
from jointwise.estimation.cross_validation import SIGNIFICANT, held_out_predictions, simplest_candidate, unit_errors
from jointwise.estimation.jackknife import equal_blocks, newton_replicates, standard_error, student_factor
from jointwise.estimation.linear_fit import scaled_solution
from jointwise.joint.checks import check_gravity, check_unsaturated, refuse
from jointwise.joint.curve import CURVE_BINS, LINE_POINTS, Curve, make_curve, slope_curve
from jointwise.joint.gear import CATALOGUE, GearMaps, StiffnessSettings, full_lag, transmission_of
from jointwise.joint.part import (
    MIN_QUALITY,
    TINY,
    Part,
    TriedModel,
    Value,
    identified_part,
    nrmse_percent,
    rms,
    tried_model,
    value_of,
)
from jointwise.joint.record import MIN_TRAVEL, JointRecord
from jointwise.model.spring import Spring, even_polynomial, hinges, segment_slopes
from jointwise.model.terms import LOAD_POWERS, load_growth, slip_elements, slip_state
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
    maps = None if transmission is None else transmission_of(transmission)
    if maps is not None and record.theta is not None and not maps.knows(record.theta):
        maps = None
    if is_locked(record) or maps is not None:
        every = stiffness_rows(record, maps)
    else:
        every = min((stiffness_rows(record, None, reach) for reach in REACHES), key=_linear_residual)
    rows = every.reduced()
    training, test = rows.take(~rows.held_out), every.take(every.held_out)
    family = _choose_terms(training)
    trained = fit_spring(family, training)
    quality = trained.undamped.quality(test)  # damping alone can follow a torque of another time
    if not quality >= MIN_QUALITY:
        reason = f"the torque does not follow the deformation (fit {quality:.0f} % on data held out)"
        raise refuse(record, "stiffness", reason)
    fit, segments = fit_spring(family, rows), fit_spring(SegmentedSpring(), rows)
    split = fit.layout.split
    slope, error = (float(x) for x in fit.with_error(lambda x: fit.stiffness(x, np.zeros(1))[0]))
    if slope <= 0.0 or error > MAX_RELATIVE_ERROR * slope:
        size = max(float(np.ptp(torque)) for torque in rows.torques.values())
        relative = error / max(abs(slope), TINY)
        reason = f"the load varies by {size:.2g} Nm only, so the stiffness has a standard error of {relative:.0%}"
        raise refuse(record, "stiffness", reason)
    damping, note = find_damping(fit, maps is not None)
    notes = [*_notes(fit, every, maps), note]
    if transmission is not None and maps is None:
        notes.append("the transmission part does not cover these angles and was not used; reciprocate over them")
    values, curves = [*_values(fit, maps), *_values(segments, maps)], _curves(fit, segments, every, maps)
    if damping is not None:
        values.append(damping)
        curves.append(_damping_curve(fit, every, damping))
    offset = fit.with_error(lambda x: fit.largest * split(x)["offset"][0])
    values.append(value_of("offset", "rad", *offset, fit.factor))
    if fit.layout.slips:
        values.append(value_of("coulomb", "Nm", *fit.with_error(lambda x: split(x)["friction"].sum()), fit.factor))
    coefficients = tuple(fit.physical(fit.values).tolist())
    return identified_part(
        record,
        "stiffness",
        model=family.title,
        values=tuple(values),
        fitted=fit.quality(every),
        held_out=trained.quality(test),
        settings=StiffnessSettings("polynomial", coefficients, every.kind, fit.offset),
        ranges={"phi": fit.deformation(every), **every.torques},
        alternatives=_alternatives(training, test),
        curves=tuple(curves),
        notes=tuple(notes),
    )


def _choose_terms(training: StiffnessRows) -> PolynomialSpring:
    """Return the polynomial chosen by the one-standard-error rule on held-out blocks; a gear does not soften."""
    springs = []
    for spring in map(PolynomialSpring, TERMS):
        fit = fit_spring(spring, training)
        at_rest, at_end = fit.stiffness(fit.values, np.array([0.0, fit.largest]))
        springs += [spring] if spring.terms == 1 or at_end > at_rest else []
    return simplest_candidate({spring: _held_out_errors(spring, training) for spring in springs})


def _held_out_errors(family: SpringFamily, rows: StiffnessRows) -> Array:
    """Return the squared error of every block, predicted from the other folds; channels over their variance."""

    def predict(training: NDArray[np.bool_]) -> Array:
        return np.column_stack(list(fit_spring(family, rows.take(training)).predicted(rows).values()))

    measured = np.column_stack(list(rows.torques.values()))
    residual = (measured - held_out_predictions(rows.block, predict)) / measured.std(axis=0)
    return unit_errors(np.linalg.norm(residual, axis=1), rows.block)


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
CHANNELS = {"gauge": "the gauge", "motor": "the current", "links": "the links"}


def _gear_errors_of(maps: GearMaps | None) -> tuple[float, float]:
    """Return the standard errors due to the gear: relative where its maps are unknown, else that of φ_max, rad."""
    return (UNKNOWN_GEAR_ERROR, 0.0) if maps is None else (0.0, GEAR_ENDS * maps.deviation)


def _values(fit: SpringFit, maps: GearMaps | None) -> list[Value]:
    """Return the parameters of a spring, with standard errors that include those of the gear at either end of φ."""
    family, (relative, angle) = fit.layout.family, _gear_errors_of(maps)
    values, error = fit.with_error(fit.physical)
    if isinstance(family, PolynomialSpring):
        gear = family.physical(np.full(len(values), abs(values[0]) * angle), fit.largest)
    else:
        gear = np.abs(values) * (angle / fit.largest)
    total = np.sqrt(error**2 + (relative * values) ** 2 + gear**2)
    rows = zip(family.names, family.units, values, total, strict=True)
    return [value_of(name, unit, value, deviation, fit.factor) for name, unit, value, deviation in rows]


# -- damping --

SMOOTHING_ERROR = 0.005
"""Relative standard error added to the damping: the error due to smoothing."""


def find_damping(fit: SpringFit, is_gear_known: bool) -> tuple[Value | None, str]:
    """Return D (Nm s/rad), None where the data do not determine it, and a note."""
    if not fit.layout.damping:
        reason = "rotor friction hides it in the current; a gauge at the output, or free motion, can determine it"
        return None, f"damping is not determined: {reason}"
    if not is_gear_known and fit.layout.shifts:
        found, error = fit.with_error(lambda x: fit.layout.split(x)["shifts"])
        if (np.abs(found) > SIGNIFICANT * error).any():  # higher orders then hide the damping
            reason = "kinematic errors mask it in free motion: identify the transmission first, or lock the output"
            return None, f"damping is not determined: {reason}"
    found, error = fit.with_error(lambda x: fit.layout.split(x)["damping"][0])
    value = value_of("damping", "Nm s/rad", found, float(np.hypot(error, SMOOTHING_ERROR * found)), fit.factor)
    slope = float(fit.stiffness(fit.values, np.zeros(1))[0])
    if value.high < 0.0:
        delay = f"as if the torque were stamped {-1e3 * found / slope:.2g} ms late"
        return None, f"damping is not determined: the torque is behind the twist, {delay}"
    limit = f"the time stamps of torque and twist must agree to well below {1e3 * value.high / slope:.2g} ms"
    return value, f"damping makes the torque lead the twist: {limit}"


def _damping_curve(fit: SpringFit, rows: StiffnessRows, value: Value) -> Curve:
    """Return the torque beyond the spring over the speed of the twist, as means of equally many samples."""
    name = "gauge" if "gauge" in rows.torques else "links"
    beyond = rows.torques[name] - fit.torque(fit.values, fit.deformation(rows))
    groups = np.array_split(np.argsort(rows.rate, kind="stable"), min(CURVE_BINS, len(beyond)))
    x, y = (np.array([values[group].mean() for group in groups]) for values in (rows.rate, beyond))
    labels = ("Damping: torque beyond the spring", "speed of the twist [rad/s]", "torque beyond the spring [Nm]")
    return slope_curve(labels, (x, y), value.value, (value.low, value.high), residual=y - value.value * x)


# -- curves --


def _curves(fit: SpringFit, segments: SpringFit, rows: StiffnessRows, maps: GearMaps | None) -> list[Curve]:
    """Return torque and stiffness over deformation, three segments, and the hysteresis of a locked rotor."""
    phi, predicted = fit.deformation(rows), fit.predicted(rows)
    line = np.linspace(phi.min(), phi.max(), LINE_POINTS)
    relative, angle = _gear_errors_of(maps)
    spring, none = fit.torque(fit.values, phi), (np.empty(0), np.empty(0))

    def curve(
        title: str,
        label: str,
        law: Callable[[Array, Array], Array],
        points: tuple[Array, Array] = none,
        residual: Array | None = None,
    ) -> Curve:
        y, error = (segments if law == segments.torque else fit).with_error(lambda x: law(x, line))
        half = fit.factor * np.hypot(error, max(relative, angle / fit.largest) * np.abs(y))
        return make_curve((title, "deformation [rad]", label), points, (line, y), half, residual=residual)

    curves = [
        curve(f"Torque over deformation ({name})", "torque [Nm]", fit.torque, (phi, torque), torque - predicted[name])
        for name, torque in rows.torques.items()
    ]
    curves.append(curve("Stiffness over deformation", "stiffness [Nm/rad]", fit.stiffness))
    curves.append(curve("Three segments", "torque [Nm]", segments.torque, (phi, spring)))
    if "motor" in rows.torques:
        loop = ("Hysteresis of the locked rotor", "deformation [rad]", "friction [Nm]")
        curves.append(make_curve(loop, (phi, rows.torques["motor"] - spring), kind="line"))
    return curves


def _notes(fit: SpringFit, rows: StiffnessRows, maps: GearMaps | None) -> list[str]:
    used = " and ".join(CHANNELS[name] for name in rows.torques)
    data = "output locked" if rows.kind == "locked" else "free motion"
    blocks = len(fit.replicates)
    notes = [f"{data}, torque from {used}; standard errors by a jackknife over {blocks} blocks of time"]
    if fit.layout.sizes["spring"] == 1:
        notes.append("these torques do not determine the curvature: a_1 is the mean stiffness over the range")
    if maps is not None:
        return [*notes, "kinematic error and lost motion of the gear were subtracted from the deformation"]
    fitted = f"fitted: {', '.join(rows.shift_names)}" if rows.shift_names else "cannot be separated from the spring"
    notes.append(
        f"kinematic error and lost motion are not known ({fitted}): {UNKNOWN_GEAR_ERROR:.0%} is added to every "
        "standard error. Identify the transmission first ('joint transmission')"
    )
    return notes


# -- rows: deformation and torques, sample by sample --

# == stiffness/data.py ==

BLOCKS = 32
"""Blocks of time, an even number: the jackknife leaves each out in turn, the test holds every other one out."""
MAX_ROWS = 2000
"""Rows of a fit: longer records are averaged (locked) or thinned (free)."""
SLIP_ELEMENTS = 8
"""Slip elements that represent the rotor friction in the motor torque."""
SLIP_RANGE = (3e-4, 0.2)
"""Smallest and largest slip limit as fractions of the range of θ: from the first samples after a reversal to
presliding over a fifth of the motion."""
MIN_RESOLUTION = 8.0
"""Smallest range of deformation and torque, in encoder counts and in standard deviations of the noise."""
LARGEST = 0.995
"""Quantile of a deformation that counts as the largest one: outliers do not."""
MIN_CORRELATION = 0.5
"""Smallest correlation between the torques of gauge and current."""
EDGE_TIME = 0.2
"""Time (s) at the ends of a segment in which smoothing lacks neighbours."""


@dataclass(frozen=True)
class StiffnessRows:
    """Rows of a fit, (rows,) each unless stated.

    Attributes:
        kind: Whether the output is locked or moves freely.
        phi: Deflection without the known part of the gear errors, rad.
        rate: Its rate, rad/s.
        torques: Torques by channel, Nm: "gauge" and "motor" where the output is locked, "links" in free motion.
        shifts: Unknown gear errors that may be part of the deflection, (rows, shifts).
        shift_names: Names of the columns of `shifts`.
        slips: States of slip elements of the rotor, (rows, elements).
        block: Number of the block of time.
    """

    kind: Literal["locked", "free"]
    phi: Array
    rate: Array
    torques: dict[str, Array]
    shifts: Array
    shift_names: tuple[str, ...]
    slips: Array
    block: NDArray[np.intp]

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Flags of the rows held out for the test: every other block."""
        result: NDArray[np.bool_] = self.block % 2 == 1
        return result

    @property
    def without_slips(self) -> StiffnessRows:
        """The rows without slip elements."""
        return replace(self, slips=np.zeros((len(self.phi), 0)))

    def take(self, which: NDArray[np.bool_]) -> StiffnessRows:
        """Return a selection of rows."""
        return self._mapped(lambda values: values[which])

    def reduced(self) -> StiffnessRows:
        """Return at most about `MAX_ROWS` rows: averaged where the output is locked, else thinned."""
        size = -(-len(self.phi) // MAX_ROWS)
        if self.kind == "locked":
            return self._averaged(size)
        return self.take(np.arange(len(self.phi)) % size == 0)

    def _averaged(self, size: int) -> StiffnessRows:
        """Return means over `size` rows of the same block."""
        if size <= 1:
            return self
        cuts, counts = group_means(self.block, size)

        def mean(values: Array) -> Array:
            sums = np.add.reduceat(values, cuts, axis=0)
            return sums / (counts if values.ndim == 1 else counts[:, None])

        return replace(self._mapped(mean), block=self.block[cuts])

    def _mapped(self, change: Callable[[Array], Array]) -> StiffnessRows:
        return replace(
            self,
            phi=change(self.phi),
            rate=change(self.rate),
            torques={name: change(torque) for name, torque in self.torques.items()},
            shifts=change(self.shifts),
            slips=change(self.slips),
            block=change(self.block),  # type: ignore[arg-type]
        )


def stiffness_rows(record: JointRecord, maps: GearMaps | None = None, reach: float | None = None) -> StiffnessRows:
    """Return deformation and torques of a record; raises if they do not determine a stiffness.

    Args:
        record: Signals of the joint.
        maps: Known kinematic error and lost motion, subtracted from the deformation.
        reach: Travel (rad) over which unknown lost motion may build up in free motion; None for no lost motion.
    """
    if record.phi is None or record.theta is None:
        raise refuse(record, "stiffness", "no rotor position (theta) in the log, so no deformation")
    count = float(quantum(np.column_stack([record.theta, record.theta - record.phi])).max())
    spread = float(np.ptp(np.quantile(record.phi, (1.0 - LARGEST, LARGEST))))
    if spread <= MIN_RESOLUTION * max(count, float(noise(record.phi[:, None])[0])):
        reason = (
            f"the gear deforms by {spread:.2g} rad only, less than {MIN_RESOLUTION:g} counts or standard deviations of "
            "the noise"
        )
        raise refuse(record, "stiffness", reason)
    if is_locked(record):
        return _locked(record, record.phi, record.theta, maps)
    return _free(record, record.theta, maps, reach)


def is_locked(record: JointRecord) -> bool:
    """Return whether the output is locked: the link hardly moves."""
    return bool(np.ptp(record.q) < MIN_TRAVEL)


def _locked(record: JointRecord, phi: Array, theta: Array, maps: GearMaps | None) -> StiffnessRows:
    torques = _locked_torques(record, theta, maps)
    if maps is not None:
        phi = phi - maps.error(theta) - _by_segment(record, theta, maps.lag)
    limits = np.ptp(theta) * np.geomspace(*SLIP_RANGE, SLIP_ELEMENTS)
    slips = _by_segment(record, theta, lambda path: slip_elements(path, limits, slip_state(path[0], SLIP_ELEMENTS))[0])
    if "gauge" in torques:  # smoothed like the deformation, whose rate would lag behind it otherwise
        phi, torques["gauge"] = (_smoothed(record, values) for values in (phi, torques["gauge"]))
    return StiffnessRows(
        "locked",
        phi,
        _rate(record, phi),
        torques,
        np.zeros((len(phi), 0)),
        (),
        slips,
        equal_blocks(record.samples, BLOCKS),
    )


def _locked_torques(record: JointRecord, theta: Array, maps: GearMaps | None) -> dict[str, Array]:
    """Return the torques of gauge and motor, Nm; raises if there is none, or they do not vary or contradict."""
    torques = {} if record.gauge is None else {"gauge": record.gauge}
    if record.unit == "Nm":
        check_unsaturated(record, "stiffness")
        ratio = 1.0 if maps is None else 1.0 - _by_segment(record, theta, maps.slope)
        torques["motor"] = (record.motor - record.inertia * record.acceleration) / ratio
    if not torques:
        raise EstimationError(
            f"{record.place}: a gauge or a drive gain (Nm/A) is needed for the torque; stiffness is not fitted."
        )
    for name, torque in torques.items():
        if np.ptp(torque) < MIN_RESOLUTION * float(noise(torque[:, None])[0]) or np.ptp(torque) == 0.0:
            raise refuse(record, "stiffness", f"the load never varies beyond noise ({name})")
    if len(torques) == 2 and not (correlation := float(np.corrcoef([*torques.values()])[0, 1])) > MIN_CORRELATION:
        reason = (
            f"the gauge and the current contradict each other (correlation {correlation:.2f}): sign, order or joint"
        )
        raise refuse(record, "stiffness", reason)
    return torques


# -- free motion --


def _free(record: JointRecord, theta: Array, maps: GearMaps | None, reach: float | None) -> StiffnessRows:
    """Return the rows of free motion; the deformation is smoothed like the torque of the links."""
    phi = record.position - record.q
    if np.allclose(record.load, record.load.mean()):
        raise refuse(record, "stiffness", f"the load never varies: it stays at {record.load.mean():.3g} Nm")
    shifts: dict[str, Array] = {}
    if maps is None:
        shifts = _gear_errors(record, reach)
    else:
        phi = phi - _smoothed(record, maps.error(theta) + _by_segment(record, theta, maps.lag))
    edges = np.array([0, *(np.flatnonzero(np.diff(record.segment)) + 1), record.samples])
    here = np.arange(record.samples)
    after = np.searchsorted(edges, here, side="right")  # at the ends of a segment smoothing lacks neighbours
    inside = np.minimum(here - edges[after - 1], edges[after] - here) > EDGE_TIME * record.rate
    return StiffnessRows(
        "free",
        phi,
        _rate(record, phi),
        {"links": record.load},
        np.column_stack([np.empty((len(phi), 0)), *shifts.values()]),
        tuple(shifts),
        np.zeros((len(phi), 0)),
        equal_blocks(record.samples, BLOCKS),
    ).take(inside)


def _gear_errors(record: JointRecord, reach: float | None) -> dict[str, Array]:
    """Return regressors of an unknown gear: the two lowest orders of the kinematic error, and lost motion."""
    theta = record.position
    shapes = {"sin θ": np.sin(theta), "cos θ": np.cos(theta), "sin 2θ": np.sin(2 * theta), "cos 2θ": np.cos(2 * theta)}
    if reach is not None:
        lag = _by_segment(record, theta, lambda path: full_lag(path, reach))
        shapes |= {"lost motion": lag, "its sin θ": lag * np.sin(theta), "its cos θ": lag * np.cos(theta)}
    return shapes


def _smoothed(record: JointRecord, values: Array) -> Array:
    return _by_segment(record, values, lambda piece: low_pass(piece, record.cutoff, record.rate))


def _rate(record: JointRecord, phi: Array) -> Array:
    return _by_segment(record, phi, lambda piece: differences(piece, record.rate)[0])


def _by_segment(record: JointRecord, values: Array, function: Callable[[Array], Array]) -> Array:
    """Return a function of values (samples,) evaluated on each gap-free segment."""
    segments = [values[record.segment == k] for k in np.unique(record.segment)]
    return np.concatenate([function(np.ascontiguousarray(segment)) for segment in segments])


# -- families of springs, in units of the largest deformation --

KNEE_STARTS = ((0.15, 0.4), (0.3, 0.7), (0.5, 0.8), (0.1, 0.6))
"""Starts of the two knees of segments, as fractions of the largest deformation."""
KNEE_BOUNDS = (0.03, 0.9)
"""Bounds of the first knee and of the distance to the second: each segment must contain data."""
KNEE_RISE = 0.1
"""Start of the change of slope at a knee, as a fraction of the mean slope."""


@dataclass(frozen=True)
class PolynomialSpring:
    """``Σ_p c_p u^(2p-1)`` with ``u = φ / φ_max``: parameters c_p in Nm."""

    terms: int

    @property
    def title(self) -> str:
        """Name of the law."""
        return {1: "linear", 2: "cubic"}.get(self.terms, f"odd polynomial of degree {2 * self.terms - 1}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters: a_1, a_3, ..."""
        return tuple(f"a_{2 * p + 1}" for p in range(self.terms))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters."""
        return ("Nm/rad", *(f"Nm/rad^{2 * p + 1}" for p in range(1, self.terms)))

    def starts(self, slope: float) -> list[Array]:
        """Return starts of the parameters for a slope in Nm per φ_max."""
        return [np.append(slope, np.zeros(self.terms - 1))]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds of the parameters: none."""
        return np.full(self.terms, -np.inf), np.full(self.terms, np.inf)

    def torque(self, values: Array, u: Array) -> Array:
        """Return τ_J in Nm."""
        return u * even_polynomial(u, values)

    def slope(self, values: Array, u: Array) -> Array:
        """Return dτ_J/du in Nm."""
        return even_polynomial(u, (2 * np.arange(self.terms) + 1) * values)

    def physical(self, values: Array, largest: float) -> Array:
        """Return the parameters in SI units for φ_max in rad."""
        return values / largest ** (2 * np.arange(self.terms) + 1)


@dataclass(frozen=True)
class SegmentedSpring:
    """Three lines over ``u = φ / φ_max``: slopes K_1, K_2 - K_1, K_3 - K_2 (Nm), knees u_1 and u_2 - u_1.

    Attributes:
        title: Name of the law.
        names: Names of its parameters in SI units.
        units: Units of these.
    """

    title: str = "segments, fitted"
    names: tuple[str, ...] = ("K1", "K2", "K3", "T1", "T2")
    units: tuple[str, ...] = ("Nm/rad", "Nm/rad", "Nm/rad", "Nm", "Nm")

    def starts(self, slope: float) -> list[Array]:
        """Return starts of the parameters that stiffen at each knee."""
        rise = KNEE_RISE * slope
        return [np.array([slope - rise, rise, rise, a, b - a]) for a, b in KNEE_STARTS]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds: a gear stiffens, and its knees lie within the data."""
        low, high = KNEE_BOUNDS
        return np.array([0.0, 0.0, 0.0, low, low]), np.array([np.inf, np.inf, np.inf, high, high])

    def torque(self, values: Array, u: Array) -> Array:
        """Return τ_J in Nm."""
        slopes, knees = self._split(values)
        return hinges(u, knees) @ slopes

    def slope(self, values: Array, u: Array) -> Array:
        """Return dτ_J/du in Nm."""
        slopes, knees = self._split(values)
        return segment_slopes(u, knees, np.cumsum(slopes))

    def physical(self, values: Array, largest: float) -> Array:
        """Return the parameters in SI units for φ_max in rad; ``T_1 = K_1 φ_1``, ``T_2 = T_1 + K_2 (φ_2 - φ_1)``."""
        changes, _ = self._split(values)
        slopes = np.cumsum(changes)
        return np.concatenate([slopes / largest, np.cumsum(slopes[:2] * values[len(changes) :])])

    def _split(self, values: Array) -> tuple[Array, list[float]]:
        """Return the changes of slope and the knees."""
        return values[:-2], np.cumsum(values[-2:]).tolist()


SpringFamily = PolynomialSpring | SegmentedSpring


# -- fit --

WEIGHT_STEPS = 3
"""Rounds of weighting the channels by their residuals."""
FTOL = 1e-7
"""Relative change of the cost at which a search ends: the last steps change the spring by less than 1e-4 of its
standard error, and springs of three segments converge slowly."""
FRICTION_START = 0.1
"""Start of the rotor friction as a fraction of the torque at the largest deformation."""


@dataclass(frozen=True)
class SpringLayout:
    """Order of the parameters of a fit: spring, encoder offset, gear errors (in φ_max), damping, friction.

    ``x = φ/φ_max - x_0 - N f``; gauge and links ``= τ(x) + D φ̇``, motor
    ``= τ(x) + (z w + h |z w|) (1 + g (τ/τ_max)²) + c``: rotor friction that grows with the load and differs by
    direction; D cannot be separated from it.

    Attributes:
        family: Family of springs, which has their parameters.
        shifts: Number of unknown gear errors f.
        slips: Number of slip elements w of the rotor; 0 without a motor channel.
        damping: Whether D is estimated.
        gauge: Whether a gauge measures the torque too, so that the motor has an offset c.
    """

    family: SpringFamily
    shifts: int
    slips: int
    damping: bool
    gauge: bool

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of parameters of each kind, in order."""
        motor = 1 if self.slips else 0
        return {
            "spring": len(self.family.bounds[0]),
            "offset": 1,
            "shifts": self.shifts,
            "damping": int(self.damping),
            "friction": self.slips,
            "growth": motor,
            "asymmetry": motor,
            "motor offset": motor if self.gauge else 0,
        }

    @property
    def others(self) -> int:
        """Number of parameters besides those of the spring."""
        return sum(self.sizes.values()) - self.sizes["spring"]

    def split(self, values: Array) -> dict[str, Array]:
        """Return the parameters by kind."""
        edges = np.cumsum(list(self.sizes.values()))[:-1]
        return dict(zip(self.sizes, np.split(values, edges), strict=True))


@dataclass(frozen=True)
class SpringFit:
    """A fitted spring.

    Attributes:
        layout: Order of the parameters.
        largest: φ_max, rad.
        top: Largest torque τ_max, Nm.
        values: Parameters in the order of the layout, (parameters,).
        replicates: The same without one block each, (blocks, parameters).
    """

    layout: SpringLayout
    largest: float
    top: float
    values: Array
    replicates: Array

    @property
    def offset(self) -> float:
        """Encoder offset φ_0, rad."""
        return float(self.largest * self.layout.split(self.values)["offset"][0])

    def physical(self, values: Array) -> Array:
        """Return the spring parameters of `values` (of the fit or a replicate) in SI units."""
        return self.layout.family.physical(self.layout.split(values)["spring"], self.largest)

    def torque(self, values: Array, phi: Array) -> Array:
        """Return τ_J in Nm at deformations φ, rad, for the values of the fit or a replicate."""
        return self.layout.family.torque(self.layout.split(values)["spring"], phi / self.largest)

    def stiffness(self, values: Array, phi: Array) -> Array:
        """Return dτ_J/dφ in Nm/rad at deformations φ, rad, for the values of the fit or a replicate."""
        return self.layout.family.slope(self.layout.split(values)["spring"], phi / self.largest) / self.largest

    @property
    def factor(self) -> float:
        """Half width of a 95 % confidence interval in standard errors."""
        return student_factor(len(self.replicates) - 1)

    def with_error(self, quantity: Callable[[Array], Any]) -> tuple[Any, Any]:
        """Return a number or array that follows from the parameters, and its standard error."""
        return quantity(self.values), standard_error(np.array([quantity(x) for x in self.replicates]))

    def deformation(self, rows: StiffnessRows) -> Array:
        """Return the deformation of the spring, rad: φ without offset and gear errors."""
        parts = self.layout.split(self.values)
        return rows.phi - self.largest * (parts["offset"] + rows.shifts @ parts["shifts"])

    @property
    def undamped(self) -> SpringFit:
        """The same spring without damping."""
        parts = self.layout.split(self.values)
        return replace(self, values=np.concatenate(list((parts | {"damping": 0.0 * parts["damping"]}).values())))

    def predicted(self, rows: StiffnessRows) -> dict[str, Array]:
        """Return the modelled torque of every channel, Nm."""
        return predict(self.layout, self.values, rows, self.largest, self.top)

    def quality(self, rows: StiffnessRows) -> float:
        """Return the NRMSE % of all channels together."""
        predicted = self.predicted(rows)
        measured, modelled = (np.concatenate([t[n] for n in rows.torques]) for t in (rows.torques, predicted))
        return nrmse_percent(measured, modelled)


def predict(layout: SpringLayout, values: Array, rows: StiffnessRows, largest: float, top: float) -> dict[str, Array]:
    """Return the modelled torque of every channel, Nm (rows,)."""
    parts = layout.split(values)
    u = rows.phi / largest - parts["offset"] - rows.shifts @ parts["shifts"]
    spring = layout.family.torque(parts["spring"], u)
    damped = spring + parts["damping"] * rows.rate if layout.damping else spring
    predicted = dict.fromkeys(rows.torques, damped)
    if "motor" in predicted and layout.slips:
        growth = 1.0 + parts["growth"] * load_growth(spring / top, LOAD_POWERS["square"])
        offset = parts["motor offset"] if layout.gauge else 0.0
        friction = rows.slips @ parts["friction"]
        predicted["motor"] = spring + (friction + parts["asymmetry"] * np.abs(friction)) * growth + offset
    return predicted


def fit_spring(family: SpringFamily, rows: StiffnessRows) -> SpringFit:
    """Return the least-squares spring on all torques, each channel weighted by its residual."""
    layout = SpringLayout(
        family,
        rows.shifts.shape[1],
        rows.slips.shape[1] if "motor" in rows.torques else 0,
        "motor" not in rows.torques or "gauge" in rows.torques,
        "gauge" in rows.torques,
    )
    largest = float(np.quantile(np.abs(rows.phi - np.median(rows.phi)), LARGEST))
    top = max(float(np.max(np.abs(torque))) for torque in rows.torques.values())
    problem = _Problem(layout, rows, largest, top)
    weights = dict.fromkeys(rows.torques, 1.0 / top)
    values = None
    for _ in range(WEIGHT_STEPS if len(weights) > 1 else 0):
        values, residual, _ = problem.solve(weights, values)
        weights = problem.weights(residual, weights)
    values, residual, jacobian = problem.solve(weights, values)
    block = np.tile(rows.block, len(rows.torques))
    return SpringFit(layout, largest, top, values, newton_replicates(values, residual, jacobian, block))


@dataclass(frozen=True)
class _Problem:
    """Nonlinear least squares of one layout on some rows."""

    layout: SpringLayout
    rows: StiffnessRows
    largest: float
    top: float

    def solve(self, weights: dict[str, float], start: Array | None) -> tuple[Array, Array, Array]:
        """Return parameters, residuals and Jacobian (rows of all channels)."""

        def residual(values: Array) -> Array:
            if self.rows.kind == "free":
                return self._deformation_residual(values)
            predicted = predict(self.layout, values, self.rows, self.largest, self.top)
            return np.concatenate([weights[n] * (predicted[n] - tau) for n, tau in self.rows.torques.items()])

        low, high = self.layout.family.bounds
        free = np.full(self.layout.others, np.inf)
        bounds = (np.append(low, -free), np.append(high, free))
        starts = [start] if start is not None else self._starts()
        fits = [least_squares(residual, x, bounds=bounds, x_scale="jac", ftol=FTOL) for x in starts]
        best = min(fits, key=lambda fit: float(fit.cost))
        return best.x, best.fun, best.jac

    def weights(self, residual: Array, weights: dict[str, float]) -> dict[str, float]:
        """Return one over the rms residual of every channel, 1/Nm."""
        parts = np.split(residual, len(self.rows.torques))
        sizes = {name: rms(part) / weights[name] for name, part in zip(weights, parts, strict=True)}
        least = np.finfo(np.float64).eps * self.top
        return {name: 1.0 / max(size, least) for name, size in sizes.items()}

    def _deformation_residual(self, values: Array) -> Array:
        """Return ``(τ - D φ̇ - τ_J(u)) / k(u)``, ``u = φ/φ_max - x_0 - N f``: the error of u to first order.

        In free motion the gear errors are part of φ, not of the torque. A trial step to a spring without stiffness has
        no finite residual, and the search then takes a shorter one.
        """
        parts, family = self.layout.split(values), self.layout.family
        u = self.rows.phi / self.largest - parts["offset"] - self.rows.shifts @ parts["shifts"]
        torque = self.rows.torques["links"] - parts["damping"] * self.rows.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            return (torque - family.torque(parts["spring"], u)) / family.slope(parts["spring"], u)

    def _starts(self) -> list[Array]:
        """Return starts: a linear spring on the first torque, with what it implies for the other parameters."""
        slope, others = self._free_start() if self.rows.kind == "free" else self._locked_start()
        return [np.concatenate([spring, others]) for spring in self.layout.family.starts(slope)]

    def _locked_start(self) -> tuple[float, Array]:
        """Return slope (Nm) and other parameters: the offset centres the deformation, the slope is that of extremes."""
        torque = next(iter(self.rows.torques.values()))
        slope = float(np.std(torque) / np.std(self.rows.phi / self.largest))
        others = np.zeros(self.layout.others)
        others[0] = np.median(self.rows.phi) / self.largest
        others[1 : 1 + self.layout.slips] = FRICTION_START * slope / max(self.layout.slips, 1)
        return slope, others

    def _free_start(self) -> tuple[float, Array]:
        """Return slope (Nm) and offset, gear errors, damping of a linear spring: ``u = c τ - c D φ̇ + x_0 + N f``."""
        found, _ = linear_motion(self.rows, self.largest)
        slope = 1.0 / max(found[0], TINY)
        return slope, np.concatenate([found[2:], [-found[1] * slope]])


def linear_motion(rows: StiffnessRows, largest: float) -> tuple[Array, float]:
    """Return c, -c D, x_0, f of a linear spring by least squares, and the rms residual of φ/φ_max."""
    columns = [rows.torques["links"], rows.rate, np.ones(len(rows.phi)), *rows.shifts.T]
    W, y = np.column_stack(columns), rows.phi / largest
    found = scaled_solution(W, y)
    return found, rms(W @ found - y)


def _linear_residual(rows: StiffnessRows) -> float:
    """Return the residual (rad) of a linear spring on the training rows."""
    reduced = rows.reduced()
    return linear_motion(reduced.take(~reduced.held_out), 1.0)[1]
