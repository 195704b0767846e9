"""Motor side of a joint: gain, offset and friction from the known load of its links, and the current loop.

``i = (τ + F_v v + F_2 v|v| + friction(direction)) / K + i_0`` with the torque τ of links and rotor. The friction is one
of: Coulomb; T_dir where the motor drives the load (v τ_load > 0) and T_rev where the load drives the motor; or Coulomb
friction that grows with the load. An offset and Coulomb friction that differs with direction are the same current; it
is reported as an offset.

Current loop: ``y[k] = a y[k-1] + (1 - a) clip(c(t_k - s h), ±L)``, ``i = g y + i_0``, a first-order lag with time
constant T, a = exp(-h/T), after a dead time s h; h is the period of the log, c the target, linear between samples. The
whole lag is ``h (s + a / (1 - a))`` and includes the time that the controller needs to pass a target on.

Gains that do not depend on the described links, and those of all joints of a robot, are in `drives`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from jointwise.arguments import checked
from jointwise.data.statistics import limited, noise
from jointwise.errors import EstimationError, check_positive
from jointwise.estimation.cross_validation import held_out_predictions, simplest_candidate, unit_errors
from jointwise.estimation.gram import block_grams, gram_solution
from jointwise.estimation.jackknife import (
    MIN_BLOCKS,
    block_count,
    equal_blocks,
    jackknife,
    newton_replicates,
    standard_error,
    student_factor,
)
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.curve import Curve, make_curve, slope_curve
from jointwise.joint.part import (
    MIN_QUALITY,
    TINY,
    Part,
    TriedModel,
    Value,
    identified_part,
    nrmse_percent,
    percent_off,
    rms,
    value_of,
)
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import has_both
from jointwise.model.terms import LOAD_POWERS, direction, load_growth, power_flow_columns, viscous_columns
from jointwise.spatial import Array

REVERSAL_TIME = 0.05
"""Time (s) around slow samples that is left out as well: the two runs turn back at slightly different times."""
HARDLY_DETERMINED = 0.5
"""Relative half width of the interval up to which a gain is reported."""
MASS_ERROR = 0.025
"""Relative standard error of the described masses, which the gain and all torques inherit. Data sheets round, leave
out cables and screws, and describe no single arm: on a real one the gain was 2.6 % below that of the controller and 5 %
below that of a weighed payload."""
GAIN_TOLERANCE = 0.15
"""Relative difference to a known gain above which one of them is wrong: six standard errors of described masses
(`MASS_ERROR`); on a real arm the gains of controller, links and payload agree within 5 %."""
RELATION = "the torque constant at the shaft is gain / gear ratio = (3 p / 2) Psi, p pole pairs, Psi flux linkage"


@dataclass(frozen=True)
class MotorSettings:
    """Settings of a motor part.

    Attributes:
        method: What the gain comes from: "links", "payload" or "targets".
        status: How well the gain is determined; "" where the method does not state it.
        friction: Law of friction with which the gain was fitted.
        gear_ratio: Gear ratio; None if not known.
        implausible: Why the gain is implausible; "" where it is not.
    """

    method: str = ""
    status: str = ""
    friction: str = ""
    gear_ratio: float | None = None
    implausible: str = ""


def implausible_gain(part: Part | None) -> str:
    """Return why the gain of a motor part is implausible, "" where it is not."""
    return "" if part is None else part.settings_as("motor", MotorSettings).implausible


def inverse_value(name: str, unit: str, inverse: float, deviation: float, factor: float) -> Value | None:
    """Return 1/g with the 95 % confidence interval ``1/(g ± factor σ_g)``.

    None where the interval of g contains zero or its half width is above `HARDLY_DETERMINED`.
    """
    half = factor * deviation
    if not inverse > half or half > HARDLY_DETERMINED * inverse or not np.isfinite(half):
        return None
    gain = 1.0 / float(inverse)
    return Value(
        name, unit, gain, float(deviation) * gain**2, float(1.0 / (inverse + half)), float(1.0 / (inverse - half))
    )


def torque_constant(gain: Value, gear_ratio: float) -> Value:
    """Return ``K_τ = K / r`` at the motor shaft, Nm/A, from the gain K at the joint and the gear ratio r."""
    numbers = (gain.value, gain.deviation, gain.low, gain.high)
    return Value("torque_constant", "Nm/A", *(number / gear_ratio for number in numbers))


# -- gain from the load of the links --

LAWS = ("Coulomb", "power flow", "load")
"""Laws of friction, the simplest first."""
MIN_LOAD = 0.05
"""Smallest standard deviation of the load relative to that of the motor torque."""


@checked
def identify_motor(
    record: JointRecord, *, gear_ratio: float | None = None, friction: str | None = None, known: float | None = None
) -> Part:
    """Return gain (Nm/A), offset (A) and friction of a joint from its current and the known load of its links.

    The gain is as accurate as the described links, whose uncertainty its interval includes; a gain that does not depend
    on them follows from `identify_gains_from_payload`.

    Args:
        record: Record of one joint in motion under a load that varies.
        gear_ratio: Gear ratio, for the torque constant at the motor shaft.
        friction: "Coulomb", "power flow" or "load"; None for the simplest law within one standard error of the best on
            held-out data.
        known: Gain that is known (Nm/A). A large difference shows a payload that is not described.

    Raises:
        EstimationError: Where the record does not determine a gain, or the gain is far from the known one.
    """
    check_positive("Nm/A", known=known)
    if friction is not None and friction not in LAWS:
        raise EstimationError(f"friction must be one of {', '.join(LAWS)}. Got '{friction}' instead.")
    moving = _moving(record)
    if friction == "power flow":
        moving = moving.take(_certain_flow(moving))
    fits = {law: _LinkFit(moving, law) for law in _possible_laws(moving, friction)}
    best = simplest_candidate({law: fit.errors for law, fit in fits.items()})
    return _part(record, moving, fits, best, gear_ratio, known)


def _moving(record: JointRecord) -> JointRecord:
    """Return the samples in motion; raise an error where a record does not determine a gain."""
    if not record.has_current:
        raise refuse(record, "motor", "torque is measured, not current: there is no gain to identify")
    if not np.ptp(record.motor) > 0.0:
        raise refuse(record, "motor", "the current does not vary")
    check_record(record, "motor")
    if not record.is_sliding.any():
        raise refuse(record, "motor", "the joint does not move")
    moving = record.take(record.is_sliding)
    if not has_both(moving.speed > 0.0):
        raise refuse(record, "motor", "the joint moves in one direction only")
    if moving.load.std() < max(MIN_LOAD * moving.motor.std(), TINY):
        raise refuse(record, "motor", f"the load never varies ({moving.load.std():.3g} Nm rms)")
    return moving


def _certain_flow(moving: JointRecord) -> NDArray[np.bool_]:
    """Return which samples are not near a change of the power flow, which filters shift and friction follows late."""
    drives = moving.speed * moving.load > 0.0
    changes = np.diff(drives, prepend=drives[:1])
    certain: NDArray[np.bool_] = ~maximum_filter1d(changes, 2 * int(REVERSAL_TIME * moving.rate) + 1)
    if not certain.any():
        raise refuse(moving, "motor", "the power flow changes all the time")
    return certain


def _possible_laws(moving: JointRecord, friction: str | None) -> tuple[str, ...]:
    """Return the laws that the data can distinguish."""
    if friction is not None:
        return (friction,)
    return LAWS if has_both(moving.speed * moving.load > 0.0) else ("Coulomb",)


class _LinkFit:
    """Fit of one law to the samples in motion, linear in ``(1, F...)/K``."""

    def __init__(self, moving: JointRecord, law: str) -> None:
        self.current = moving.motor / moving.gain
        self.columns, self.names = _columns(moving, law)
        self.block = _blocks(moving)
        self.grams = block_grams(np.column_stack([self.columns, self.current]), self.block)
        self.found = gram_solution(self.grams.sum(axis=0))
        self.modelled: Array = self.columns @ self.found
        self.predicted = held_out_predictions(self.block, self._predict)
        self.errors = unit_errors(self.current - self.predicted, self.block)
        self.quality = nrmse_percent(self.current, self.modelled), nrmse_percent(self.current, self.predicted)

    def _predict(self, training: NDArray[np.bool_]) -> Array:
        """Return the current (samples,), A, of a fit to whole blocks of samples."""
        return self.columns @ gram_solution(self.grams[np.unique(self.block[training])].sum(axis=0))

    def physical(self) -> tuple[Array, Array]:
        """Return (1/K, offset, F...) in A/Nm, A and Nm, and their standard errors."""

        def parameters(gram: Array) -> Array:
            c = gram_solution(gram)
            return np.concatenate([c[:2], c[2:] / c[0]])

        return jackknife(parameters, self.grams)


def _columns(moving: JointRecord, law: str) -> tuple[Array, tuple[tuple[str, str], ...]]:
    """Return the columns torque, offset, friction and rotor, and names and units from friction on."""
    v, d = moving.speed, direction(moving.speed)
    torque = moving.load + moving.inertia * moving.acceleration
    laws: dict[str, tuple[list[Array], list[tuple[str, str]]]] = {
        "Coulomb": ([d], [("coulomb", "Nm")]),
        "power flow": ([power_flow_columns(v, moving.load)], [("direct", "Nm"), ("reverse", "Nm")]),
        "load": ([d, d * load_growth(moving.load, LOAD_POWERS["absolute"])], [("coulomb", "Nm"), ("load", "Nm/Nm")]),
    }
    dry, names = laws[law]
    columns = [torque, np.ones_like(v), *dry, viscous_columns(v, (1, 2))]
    names += [("viscous", "Nm s/rad"), ("square", "Nm s²/rad²")]
    if moving.inertia == 0.0:  # not described: estimated as well
        columns.append(moving.acceleration)
        names.append(("inertia", "kg m²"))
    return np.column_stack(columns), tuple(names)


def _blocks(moving: JointRecord) -> NDArray[np.intp]:
    count = block_count(moving.samples / moving.rate)
    if count < MIN_BLOCKS:
        raise refuse(moving, "motor", f"only {moving.samples / moving.rate:.3g} s of motion")
    return equal_blocks(moving.samples, count)


def _part(
    record: JointRecord,
    moving: JointRecord,
    fits: dict[str, _LinkFit],
    best: str,
    gear_ratio: float | None,
    known: float | None,
) -> Part:
    fit = fits[best]
    found, errors = fit.physical()
    factor = student_factor(len(fit.grams) - 1)
    if inverse_value("gain", "Nm/A", found[0], errors[0], factor) is None:
        raise refuse(record, "motor", "the current does not follow the load")
    scaled = np.array([True, False, *(unit != "Nm/Nm" for _, unit in fit.names)])  # not currents and ratios
    errors = np.hypot(errors, np.where(scaled, MASS_ERROR * np.abs(found), 0.0))
    gain = inverse_value("gain", "Nm/A", found[0], errors[0], factor)
    assert gain is not None
    if known is not None and abs(gain.value / known - 1.0) > GAIN_TOLERANCE:
        raise _too_far(record, gain.value, known)
    values: list[Value] = [gain, value_of("offset", "A", found[1], errors[1], factor)]
    rows = zip(fit.names, found[2:], errors[2:], strict=True)
    values += [value_of(name, unit, value, error, factor) for (name, unit), value, error in rows]
    if gear_ratio:
        values.append(torque_constant(gain, gear_ratio))
    return identified_part(
        record,
        "motor",
        model=f"gain from the load of the links, friction: {best}",
        values=tuple(values),
        fitted=fit.quality[0],
        held_out=fit.quality[1],
        settings={"method": "links", "friction": best, "gear_ratio": gear_ratio},
        ranges={"speed": np.abs(moving.speed), "load": moving.load},
        alternatives=tuple(TriedModel(f"friction: {law}", *other.quality) for law, other in fits.items()),
        curves=(_curve(fit, gain),),
        notes=_notes(gain, known),
    )


def _too_far(record: JointRecord, gain: float, known: float) -> EstimationError:
    """Return the error of a gain that the uncertainty of the described links does not explain."""
    off = f"{percent_off(gain, known):+.0f} % off the known {known:.4g}"
    return EstimationError(
        f"{record.place}: the load of the links leads to a gain of {gain:.4g} Nm/A, {off}; motor is not fitted. Give "
        "the payload if it carried one (--payload KG,X,Y,Z), or the gain if it is wrong (--gain); a pair of logs "
        "without and with a weighed payload determines it (--loaded)."
    )


def _notes(gain: Value, known: float | None) -> tuple[str, ...]:
    notes = [
        "the gain is as accurate as the described masses, whose standard error is taken as "
        f"{100.0 * MASS_ERROR:g} %; later commands keep a described gain (--gain sets this one)"
    ]
    if known is not None:
        notes.append(f"known gain {known:g} Nm/A: {percent_off(gain.value, known):+.1f} %")
    notes.append("an offset and Coulomb friction that differs with direction are the same current")
    return (*notes, RELATION)


def _curve(fit: _LinkFit, gain: Value) -> Curve:
    """Return the current without friction over the torque of links and rotor."""
    labels = ("Current over the torque of links and rotor", "torque [Nm]", "current without friction [A]")
    order, slope = np.argsort(fit.columns[:, 0], kind="stable"), float(fit.found[0])
    torque, residual = fit.columns[order, 0], (fit.current - fit.modelled)[order]
    return slope_curve(
        labels, (torque, torque * slope + residual), slope, (1.0 / gain.low, 1.0 / gain.high), residual=residual
    )


# -- current loop --

MAX_NOISE = 2.0
"""Residual of the current, relative to its noise, above which the logged target is not that of the drive: some
controllers log a planned target and correct it by feedback."""
TARGET_TOLERANCE = 0.1
"""Relative difference of current and target up to which they are the same quantity."""
MAX_LAG = 100
"""Largest dead time and mean delay, in samples; the curve shows as many to either side of the fastest change."""
RESOLVED = 0.5
"""Part of a sample that a log resolves: a lag is determined where its interval is at most this wide to either side (or
this part of the lag, if more), and a first-order part differs from a dead time where its mean delay is longer."""
BETWEEN_SAMPLES = 0.02
"""Standard error, in samples, added to lag and time constant: the target is unknown between samples."""
LAG_STARTS = ((0.5, 0.1), (1.0, 2.0), (1.0, 10.0))
"""Starts of dead time and mean delay, in samples: a fast, a usual and a slow drive."""


@dataclass(frozen=True)
class CurrentLoop:
    """Current loop of a drive; values are None where they are not determined.

    Attributes:
        lag: Lag of the current behind its target, s.
        constant: Time constant of the first-order part of the lag, s.
        limit: Limit of the current, A.
        curve: Target less current around the fastest change of the target, measured and modelled.
        notes: Remarks for the user.
    """

    lag: Value | None = None
    constant: Value | None = None
    limit: Value | None = None
    curve: Curve | None = None
    notes: tuple[str, ...] = ()

    def added(self, part: Part) -> Part:
        """Return a motor part with these values, curve and notes."""
        values = [value for value in (self.lag, self.constant, self.limit) if value is not None]
        curves = () if self.curve is None else (self.curve,)
        return replace(
            part,
            values=(*part.values, *values),
            curves=(*part.curves, *curves),
            notes=(*part.notes, *self.notes),
        )


def identify_current_loop(record: JointRecord) -> CurrentLoop:
    """Return lag and limit of the current of a record with target currents.

    Data that do not determine them raise no error: the result has a note instead.
    """
    if record.target_current is None or not record.has_current:
        return CurrentLoop()
    signals = _LoopSignals(record.target_current, record.motor / record.gain, record.segment, record.t)
    blocks = block_count(record.samples / record.rate)
    if not np.ptp(signals.target) > 0.0 or blocks < MIN_BLOCKS:
        return CurrentLoop(notes=("lag of the current is not determined: its target hardly varies",))
    block = equal_blocks(record.samples, blocks)
    fit = _fitted(signals, block)
    quality = nrmse_percent(signals.current, signals.current - fit.residual)
    if not quality >= MIN_QUALITY:
        reason = f"the current does not follow its target (fit {quality:.0f} %)"
        return CurrentLoop(notes=(f"lag of the current is not determined: {reason}",))
    return _result(record, signals, fit, block)


def _objection(signals: _LoopSignals, fit: _LoopFit, lag: Value, period: float) -> str:
    """Return why the lag is not determined, "" where it is."""
    gain = fit.gain
    if abs(gain - 1.0) > TARGET_TOLERANCE:
        return f"the current is {gain:.2f} times its target"
    residual, floor = rms(fit.residual), float(noise(signals.current[:, None])[0])
    if residual > MAX_NOISE * floor:
        return (
            f"the current differs from its target by {residual:.2g} A with a noise of {floor:.2g} A: the drive has "
            "another target, or the target changes between samples"
        )
    if lag.high < 0.0:
        return "the current is ahead of its target"
    if 0.5 * (lag.high - lag.low) > RESOLVED * max(lag.value, period):
        return "the target changes too slowly for the noise"
    return ""


@dataclass(frozen=True, eq=False)
class _LoopSignals:
    """Target and current (A), number of the segment and time (s), (samples,) each."""

    target: Array
    current: Array
    segment: NDArray[np.intp]
    t: Array

    def modelled(self, values: Array) -> Array:
        """Return the current of ``s, p, g, i_0[, L]``; p = a / (1 - a) is the mean delay of the first-order part."""
        from scipy.signal import lfilter

        s, p, gain, offset, *limit = values
        a = p / (1.0 + p)
        parts = []
        for k in np.unique(self.segment):
            target = self.target[self.segment == k]
            sample = np.arange(len(target), dtype=float)
            target = np.interp(sample - s, sample, target)
            target = np.clip(target, -limit[0], limit[0]) if limit else target
            parts.append(lfilter([1.0 - a], [1.0, -a], target, zi=a * target[:1])[0])
        result: Array = gain * np.concatenate(parts) + offset
        return result


@dataclass(frozen=True, eq=False)
class _LoopFit:
    """Values s, p, g, i_0[, L] of a fit, its residual (samples,) A, and its Jacobian."""

    values: Array
    residual: Array
    jacobian: Array

    @property
    def delay(self) -> float:
        """Mean delay p of the first-order part, in samples."""
        return float(self.values[1])

    @property
    def gain(self) -> float:
        """Ratio g of current and target."""
        return float(self.values[2])

    @property
    def limit(self) -> float | None:
        """Limit L of the target, A; None where none was fitted."""
        return float(self.values[-1]) if len(self.values) > 4 else None

    @property
    def cost(self) -> float:
        """Sum of squared residuals, A²."""
        return float(self.residual @ self.residual)


def _fitted(signals: _LoopSignals, block: NDArray[np.intp]) -> _LoopFit:
    """Return the best lag, with a limit where one holds the current below its target and improves the fit of blocks."""
    starts = [np.array([s, p, 1.0, 0.0]) for s, p in LAG_STARTS]
    free = min((_least(signals, start) for start in starts), key=lambda fit: fit.cost)
    held = limited(signals.current[:, None], signals.target[:, None])[:, 0]
    if not held.any():
        return free
    level = float(np.median(np.abs(signals.current[held])))
    fits = (_least(signals, np.append(start, level)) for start in (free.values, *starts))
    clipped = min(fits, key=lambda fit: fit.cost)
    return simplest_candidate({fit: unit_errors(fit.residual, block) for fit in (free, clipped)})


def _least(signals: _LoopSignals, start: Array) -> _LoopFit:
    from scipy.optimize import least_squares

    most = float(np.abs(signals.target).max())
    low = np.array([-MAX_LAG, 0.0, -np.inf, -np.inf, 0.0])[: len(start)]
    high = np.array([MAX_LAG, MAX_LAG, np.inf, np.inf, most])[: len(start)]
    found = least_squares(
        lambda x: signals.current - signals.modelled(x),
        np.clip(start, low, high),
        bounds=(low, high),
        x_scale=np.array([1.0, 1.0, 1.0, 1.0, most])[: len(start)],
    )
    return _LoopFit(found.x, found.fun, found.jac)


def _result(record: JointRecord, signals: _LoopSignals, fit: _LoopFit, block: NDArray[np.intp]) -> CurrentLoop:
    replicates = newton_replicates(fit.values, fit.residual, fit.jacobian, block)
    period, factor = 1.0 / record.rate, student_factor(len(replicates) - 1)
    error = np.hypot(float(standard_error(replicates[:, 0] + replicates[:, 1])), BETWEEN_SAMPLES)
    lag = value_of("lag", "s", period * float(fit.values[:2].sum()), period * float(error), factor)
    limit = None if fit.limit is None else _limit(signals, fit, fit.limit, replicates, factor)
    notes = () if limit else (f"no limit of the current is visible up to {np.abs(signals.current).max():.3g} A",)
    if objection := _objection(signals, fit, lag, period):
        return CurrentLoop(limit=limit, notes=(f"lag of the current is not determined: {objection}", *notes))
    scope = (
        "the lag of the current includes the time that the controller needs to pass a target on; a sample takes "
        f"{1e3 * period:.3g} ms"
    )
    constant = _time_constant(fit, replicates, period, factor)
    return CurrentLoop(lag, constant, limit, _loop_curve(signals, fit), (scope, *notes))


def _time_constant(fit: _LoopFit, replicates: Array, period: float, factor: float) -> Value | None:
    """Return T (s) of the first-order part, None where it cannot be distinguished from a dead time."""
    delay = fit.delay
    if delay <= max(RESOLVED, factor * float(standard_error(replicates[:, 1]))):
        return None
    constant = float(_constant(delay, period))
    error = np.hypot(float(standard_error(_constant(replicates[:, 1], period))), BETWEEN_SAMPLES * period)
    return value_of("time_constant", "s", constant, float(error), factor)


def _limit(signals: _LoopSignals, fit: _LoopFit, limit: float, replicates: Array, factor: float) -> Value:
    """Return the limit g L; noise is averaged over the visits to the limit, as it may be correlated within one."""
    at = np.abs(signals.target) > limit
    visits = np.count_nonzero(np.diff(at.astype(np.int8), prepend=0) > 0)
    scatter = float(np.std(fit.residual[at])) / np.sqrt(max(int(visits), 1))
    error = np.hypot(float(standard_error(replicates[:, 2] * replicates[:, -1])), scatter)
    return value_of("limit", "A", fit.gain * limit, float(error), factor)


def _constant(delay: Array | float, period: float) -> Array:
    """Return ``T = -h / ln a`` in s of a mean delay ``p = a / (1 - a)`` in samples."""
    return period / np.log1p(1.0 / np.maximum(delay, TINY))


def _loop_curve(signals: _LoopSignals, fit: _LoopFit) -> Curve:
    """Return the difference of target and current around the fastest change of the target."""
    fastest = int(np.argmax(np.abs(np.diff(signals.target))))
    near = slice(max(fastest - MAX_LAG, 0), fastest + MAX_LAG)
    inside = signals.segment[near] == signals.segment[fastest]
    t, target, current, modelled = (
        x[near][inside] for x in (signals.t, signals.target, signals.current, signals.modelled(fit.values))
    )
    return make_curve(
        ("Current behind its target, at the fastest change", "time [s]", "target less current [A]"),
        (t, target - current),
        (t, target - modelled),
        residual=modelled - current,
    )
