"""Friction of a calibrated joint: steady curves with confidence bands, measured samples, hysteresis loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from jointwise.data.conditioning import clean_log
from jointwise.data.coordinates import model_log
from jointwise.data.log import Log
from jointwise.data.statistics import MOVING_SPEED
from jointwise.estimation.regression import Rows, regression_rows
from jointwise.model.dynamics import joint_signals
from jointwise.model.terms import Hysteresis, JointSignals, Offset, SpeedRipple, Term
from jointwise.model.transmission import motor_motion
from jointwise.motion import Motion, with_substitutes
from jointwise.result.calibration import Calibration
from jointwise.spatial import Array

POINTS = 700
"""Number of measured samples per joint."""
SEGMENTS = 4
"""Segments of a log from which samples are taken, so that long logs cost no more than short ones."""
BEYOND = 1.3
"""Curves extend to this multiple of the greatest speed in the training data."""
LOOP_SIZES = (0.5, 2.0, 8.0)
"""Amplitudes of hysteresis loops as multiples of the deformation at which half of the friction slips."""
CYCLE = 1.0
"""Duration of a hysteresis cycle, s."""


@dataclass(frozen=True)
class FrictionSamples:
    """Measured friction of the joints.

    Attributes:
        speed: Speeds, (points, joints), rad/s.
        torque: Measured torque minus the torque of links, offset and ripple, (points, joints), Nm.
        load: Load torques, (points, joints), Nm.
        typical: Median of the size of the load while the joint moves, (joints,), Nm.
    """

    speed: Array
    torque: Array
    load: Array
    typical: Array


@dataclass(frozen=True)
class FrictionCurve:
    """Steady friction of a joint over speed.

    Attributes:
        speed: Speeds, (points,), rad/s.
        torque: Friction, (points,), Nm.
        half_width: Half-width of the 95 % band, (points,), Nm.
    """

    speed: Array
    torque: Array
    half_width: Array


@dataclass(frozen=True)
class HysteresisLoop:
    """A settled hysteresis loop over one cycle.

    Attributes:
        amplitude: Amplitude of the cycle, rad.
        displacement: Displacements, (samples,), rad.
        torque: Torques, (samples,), Nm.
    """

    amplitude: float
    displacement: Array
    torque: Array


def friction_samples(calibration: Calibration, logs: Sequence[Log]) -> FrictionSamples:
    """Return the measured friction of some logs at about `POINTS` samples that are spread evenly over time."""
    wanted = -(-POINTS // max(len(logs), 1))
    parts = [_samples(calibration, segment, wanted) for log in logs for segment in _segments(calibration, log)]
    joints = calibration.model.robot.dof
    speed, torque, load = (
        (np.concatenate(columns) for columns in zip(*parts, strict=True)) if parts else np.zeros((3, 0, joints))
    )
    keep = slice(None, None, max(-(-len(speed) // POINTS), 1))
    return FrictionSamples(speed[keep], torque[keep], load[keep], _typical(speed, load))


def friction_curve(calibration: Calibration, joint: int, load: float) -> FrictionCurve:
    """Return steady friction over speed at a load torque (Nm): ``J β`` with the band from ``J C Jᵀ``."""
    speed = _speeds(float(calibration.fastest[joint]))
    terms, columns = calibration.model.terms[joint], calibration.model.joint_slices[joint]
    J = np.column_stack([steady_columns(term, speed, load) for term in terms]) if terms else np.zeros((len(speed), 0))
    covariance = calibration.estimate.covariance[columns, columns]
    variance = np.einsum("ij,jk,ik->i", J, covariance, J)
    half_width = calibration.estimate.factor * np.sqrt(np.maximum(variance, 0.0))
    return FrictionCurve(speed, J @ calibration.estimate.values[columns], half_width)


def steady_columns(term: Term, speed: Array, load: float) -> Array:
    """Return the regressor columns of a term at constant speeds (samples,); those of an offset are zero."""
    if isinstance(term, Offset):
        return np.zeros((len(speed), 1))
    return term.steady(speed, np.full(len(speed), load))


def hysteresis_loops(calibration: Calibration, joint: int) -> list[HysteresisLoop]:
    """Return settled loops of small slow cycles without load; none if the joint has no hysteresis."""
    scale = _half_slip(calibration, joint)
    return [_loop(calibration, joint, size * scale) for size in LOOP_SIZES] if scale > 0.0 else []


def term_slices(terms: Sequence[Term]) -> Iterator[tuple[Term, slice]]:
    """Yield terms with the slice of their parameters among the parameters of the joint."""
    start = 0
    for term in terms:
        stop = start + len(term.parameters())
        yield term, slice(start, stop)
        start = stop


def _segments(calibration: Calibration, log: Log) -> Iterator[Rows]:
    inner = model_log(log, calibration.model.robot)
    return islice(regression_rows(clean_log(inner), calibration.output, calibration.filters), SEGMENTS)


def _samples(calibration: Calibration, segment: Rows, wanted: int) -> tuple[Array, Array, Array]:
    """Return speed, friction torque and load of about `wanted` samples of a segment, each (samples, joints)."""
    model, values = calibration.model, calibration.estimate.values
    inner = np.arange(segment.chunk.inner.start, segment.chunk.inner.stop)
    rows = inner[:: max(len(inner) // max(wanted, 1), 1)]
    motion = with_substitutes(segment.motion)
    rigid = model.rigid_columns(_taken(motion, rows))
    torque = segment.outputs[0][rows] * calibration.gains - model.body_torque(rigid, values)
    motor = motor_motion(model.robot, motion, model.rotor_side)
    for j, columns in enumerate(model.joint_slices):
        torque[:, j] -= _not_friction(model.terms[j], motor, j, values[columns])[rows]
    return motor.qd[rows], torque, model.load_torque(rigid, values)


def _taken(motion: Motion, rows: NDArray[np.intp]) -> Motion:
    """Return some samples of a motion; only for terms without memory."""
    return Motion(motion.rate, motion.q[rows], motion.qd[rows], motion.qdd[rows], start=motion.start)


def _not_friction(terms: Sequence[Term], motion: Motion, joint: int, values: Array) -> Array:
    """Return the torque of offset and ripple, (samples,)."""
    total = np.zeros(motion.samples)
    signals = joint_signals(motion, joint)
    for term, columns in term_slices(terms):
        if isinstance(term, Offset | SpeedRipple):
            total += term.columns(signals)[0] @ values[columns]
    return total


def _typical(speed: Array, load: Array) -> Array:
    moving = np.abs(speed) > MOVING_SPEED
    columns = zip(np.abs(load).T, moving.T, strict=True)
    return np.array([float(np.median(size[m])) if m.any() else 0.0 for size, m in columns])


def _speeds(fastest: float) -> Array:
    """Return speeds of both signs, dense near zero, that include the limits of the training data."""
    top = max(fastest, 1e-3)
    right = np.unique(np.concatenate([np.geomspace(1e-4, 1.0, 60), np.linspace(0.02, BEYOND, 65), [1.0]])) * top
    return np.concatenate([-right[::-1], right])


def _half_slip(calibration: Calibration, joint: int) -> float:
    """Return the deformation (rad) at which the elements that carry half of the friction slip; 0 without hysteresis."""
    pairs = sorted(
        (limit, force)
        for term, values in _hysteresis_terms(calibration, joint)
        for limit, force in zip(term.limits, values, strict=False)
    )
    limits, forces = np.array(pairs).reshape(-1, 2).T
    total = np.cumsum(forces)
    return float(limits[np.searchsorted(total, 0.5 * total[-1])]) if total.size and total[-1] > 0.0 else 0.0


def _hysteresis_terms(calibration: Calibration, joint: int) -> list[tuple[Hysteresis, Array]]:
    """Return the hysteresis terms of a joint with their parameter values."""
    values = calibration.estimate.values[calibration.model.joint_slices[joint]]
    terms = term_slices(calibration.model.terms[joint])
    return [(term, values[columns]) for term, columns in terms if isinstance(term, Hysteresis)]


def _loop(calibration: Calibration, joint: int, amplitude: float) -> HysteresisLoop:
    """Return the third cycle of a sinusoidal motion."""
    rate = max(calibration.filters.rate, 200.0 / CYCLE)
    phase = 2.0 * np.pi * np.arange(round(3.0 * CYCLE * rate) + 1) / (CYCLE * rate)
    x, zero = amplitude * np.sin(phase), np.zeros(len(phase))
    signals = JointSignals(rate=rate, q=x, qd=zero, qdd=zero, track=x, ripple=zero, load=zero, rotor=x)
    torque = np.zeros(len(x))
    for term, values in _hysteresis_terms(calibration, joint):
        torque += term.columns(signals)[0] @ values
    settled = slice(-round(CYCLE * rate) - 1, None)
    return HysteresisLoop(amplitude, x[settled], torque[settled])
