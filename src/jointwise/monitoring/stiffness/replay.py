"""Online stiffness along recorded logs, sample by sample as it would run beside the robot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.call_settings import Side, StiffnessSettings, Variant
from jointwise.data.conditioning import UniformSpan, clean_log
from jointwise.data.coordinates import mounting_of_logs
from jointwise.data.log import Log, check_joints, log_list
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot
from jointwise.document import finite_or_none
from jointwise.errors import DataError, EstimationError
from jointwise.joint.model import JointModel
from jointwise.joint.record import SHORTEST, LinkLoad, LoadModel
from jointwise.monitoring.stiffness.estimate import StiffnessEstimate
from jointwise.monitoring.stiffness.estimator import (
    StiffnessEstimator,
    StiffnessState,
    StiffnessTrace,
)
from jointwise.monitoring.stiffness.signals import JointSamples
from jointwise.monitoring.stiffness.status import StiffnessLimits, StiffnessStatus, stiffness_status, torque_fit
from jointwise.runtime.observers import observed_joint
from jointwise.spatial import Array

POINTS = 500
"""Largest number of points of a trace in a report."""


@dataclass(frozen=True, eq=False)
class StiffnessReport:
    """Online stiffness of a joint along some logs.

    Attributes:
        robot: Name of the robot.
        joint: Index of the joint, from 0.
        logs: Names of the logs.
        duration: Time in the logs, s.
        used: Samples in use.
        dropped: Faulty samples: not finite, jumping or frozen.
        outside: Fraction of the samples at angles that the gear maps of the joint do not cover, which are not used.
        rate: Sampling rate, Hz.
        side: Side of the virtual measurement.
        estimate: The curve after the last sample.
        status: Status against the stored stiffness, with the fit of the predicted torque.
        friction_change: Relative change of the friction since it was identified; 0 for the link side.
        time: Times of the trace, s, (points,).
        trace: a_1 and a_2 along the logs, (points, 2).
        state: State after the last sample, to go on with.

    """

    robot: str
    joint: int
    logs: tuple[str, ...]
    duration: float
    used: int
    dropped: int
    outside: float
    rate: float
    side: str
    estimate: StiffnessEstimate
    status: StiffnessStatus
    friction_change: float
    time: Array
    trace: Array
    state: StiffnessState

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON; joints count from 1, what the logs do not determine is None."""
        status = self.status
        a1, a2 = self.estimate.values.tolist() if self.used else (None, None)
        return {
            "robot": self.robot,
            "joint": self.joint + 1,
            "logs": list(self.logs),
            "status": status.status,
            "duration": self.duration,
            "samples_used": self.used,
            "samples_dropped": self.dropped,
            "outside_of_transmission": self.outside,
            "side": self.side,
            "a1": a1,
            "a2": a2,
            "stiffness_at_rest": _interval(status.at_rest) if self.used else None,
            "secant": {"deflection": status.deflection, **_interval(status.secant)} if self.used else None,
            "stored_at_rest": status.stored_at_rest,
            "stored_secant": status.stored_secant,
            "loss": None if status.loss is None else _interval(status.loss),
            "loss_at_rest": None if status.loss_at_rest is None else _interval(status.loss_at_rest),
            "friction_change": self.friction_change if self.used else None,
            "prediction_nrmse": status.prediction,
            "is_stiffer": status.is_stiffer,
        }


def _interval(values: tuple[float, float, float]) -> dict[str, float | None]:
    """Return value and bounds for JSON; None for a bound that is infinite."""
    return {name: finite_or_none(x) for name, x in zip(("value", "low", "high"), values, strict=True)}


@checked
def monitor_stiffness(
    logs: Log | Sequence[Log],
    robot: Robot,
    model: JointModel,
    *,
    side: Side = StiffnessSettings.side,
    variant: Variant = StiffnessSettings.variant,
    links: LoadModel | None = None,
    mounting: Mounting | None = None,
    payload: Payload | None = None,
    gain: float | None = None,
    limits: StiffnessLimits | None = None,
    before: StiffnessState | None = None,
) -> StiffnessReport:
    """Estimate the stiffness of a joint along logs with both encoders, and compare it with what is stored.

    Args:
        logs: One log or several, in the order of time; the estimate goes on from one to the next.
        robot: The robot.
        model: Joint file of the joint: "friction" or "hysteresis" must be there. "stiffness" is the knowledge to
            compare with, "transmission" removes the errors of the gear (else the largest of them are estimated along).
        side: Side of the virtual measurement: "motor", "link", or "fused" by inverse variances.
        variant: How old samples are forgotten, see `jointwise.estimation.recursive`.
        links: Torque that the links require; by default the described bodies with the payload.
        mounting: Mounting of the base, or gravity in the base frame, m/s²; by default as the logs state, else "table".
        payload: Payload carried in the logs.
        gain: Drive gain, Nm/A; by default the identified or the described one.
        limits: Losses of stiffness from which on the joint is to be watched or worn.
        before: State of an earlier report, to go on with.

    Returns:
        The estimate after the last sample, its status and its course.

    Raises:
        DataError: A log lacks rotor positions or currents, or is of another robot.
        EstimationError: No segment of the logs is long enough.
        ModelError: The joint file lacks what the method needs.

    """
    recordings = log_list(logs)
    for log in recordings:
        _check(log, robot, model.joint)
    bodies = links or LinkLoad(robot, gravity_vector(mounting_of_logs(recordings, mounting)), payload)
    estimator = StiffnessEstimator(
        observed_joint(robot, model, gain=gain), model.joint, robot.dof, recordings[0].clock.uniform_rate,
        bodies, side, variant, temperature=all(log.temperature is not None for log in recordings),
    )  # fmt: skip
    return _report(estimator, robot.name, recordings, limits, before)


def _report(
    estimator: StiffnessEstimator,
    robot: str,
    logs: Sequence[Log],
    limits: StiffnessLimits | None,
    before: StiffnessState | None,
) -> StiffnessReport:
    """Return the report of an estimator along logs of a robot, from the state of an earlier one if there is one."""
    runs, state = _run(estimator, logs, before)
    estimate = estimator.estimate(state)
    fit = torque_fit(estimator.rate)
    for _, trace in runs:
        fit.add(trace.measured[trace.used], trace.predicted[trace.used])
    return StiffnessReport(
        robot=robot,
        joint=estimator.index,
        logs=tuple(log.origin.path for log in logs),
        duration=sum(log.duration for log in logs),
        used=state.used,
        dropped=state.dropped,
        outside=_outside(estimator, logs),
        rate=estimator.rate,
        side=estimator.side,
        estimate=estimate,
        status=stiffness_status(estimate, estimator.joint.spring, limits, fit),
        friction_change=estimator.friction_change(state),
        time=_thinned(np.concatenate([time for time, _ in runs])),
        trace=_thinned(np.concatenate([trace.values for _, trace in runs])),
        state=state,
    )


def _check(log: Log, robot: Robot, joint: int) -> None:
    """Reject a log that the method cannot use."""
    check_joints(log, robot)
    path = log.origin.path
    for name, values in (("rotor positions (theta)", log.theta), ("currents (i)", log.current)):
        if values is None:
            raise DataError(f"{path}: no {name} in the log: online stiffness needs both encoders and the current.")
        if not np.isfinite(values[:, joint]).any():
            raise DataError(f"{path}: joint {joint + 1} has no {name}: online stiffness needs both encoders.")


def _run(
    estimator: StiffnessEstimator, logs: Sequence[Log], state: StiffnessState | None
) -> tuple[list[tuple[Array, StiffnessTrace]], StiffnessState]:
    """Return times (s, from the start of the first log) and traces of all segments, and the state after the last."""
    runs, begin = [], 0.0
    for log in logs:
        for times, samples in _segments(log, estimator):
            state = estimator.init(samples, state)
            trace, state = estimator.steps(state, samples)
            runs.append((begin + times, trace))
        begin += log.duration
    if state is None or not runs:
        raise EstimationError(f"no segment of {SHORTEST:g} s without a gap in the logs.")
    return runs, state


def _segments(log: Log, estimator: StiffnessEstimator) -> Iterator[tuple[Array, JointSamples]]:
    """Yield times (s) and samples of the gap-free segments, from the first whole sample on."""
    joint, theta = estimator.index, log.theta
    assert theta is not None and log.current is not None
    for span in clean_log(log).spans(estimator.rate, SHORTEST):
        T = None if log.temperature is None or not estimator.temperature else log.temperature[:, joint]
        channels = (theta[:, joint], log.q, log.current[:, joint], *(() if T is None else (T,)))
        values = [_on_clock(span, channel) for channel in channels]
        whole = np.all([np.isfinite(x).reshape(len(x), -1).all(axis=1) for x in values], axis=0)
        first = int(np.argmax(whole))
        if whole.any():
            yield span.times[first:], JointSamples(*(x[first:] for x in values))


def _on_clock(span: UniformSpan, channel: Array) -> Array:
    """Return a channel (log samples, ...) on the uniform clock; NaN beside samples that are not finite."""
    values = np.asarray(channel[span.rows])
    whole = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if whole.all() or not whole.any():
        return span.resampled(channel) if whole.any() else np.full((len(span.times), *values.shape[1:]), np.nan)
    kept = replace(span, rows=span.rows[whole], t=span.t[whole])
    clean = kept.resampled(channel)
    near = np.interp(span.times, span.t, whole.astype(float)) < 1.0
    clean[near] = np.nan
    return clean


def _outside(estimator: StiffnessEstimator, logs: Sequence[Log]) -> float:
    """Return the fraction of the samples at angles that the gear maps do not cover."""
    rotors = [log.theta[:, estimator.index] for log in logs if log.theta is not None]
    return sum(map(estimator.outside, rotors)) / sum(map(len, rotors))


def _thinned(values: Array) -> Array:
    """Return at most about `POINTS` rows, the last one among them."""
    step = -(-len(values) // POINTS)
    return values[::-1][::step][::-1]
