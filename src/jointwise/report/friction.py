"""Friction as numbers: steady curves of the model with their bands, what was measured, and hysteresis loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from jointwise.data.log import Log
from jointwise.estimation.problem import Stretch, completed, record, stretches
from jointwise.model.dynamics import joint_signals
from jointwise.model.terms import Hysteresis, JointSignals, Offset, Rated, SpeedRipple, Temperature, Term
from jointwise.motion import Motion
from jointwise.result.calibration import Calibration
from jointwise.result.validation import MOVING_SPEED
from jointwise.spatial import Array

POINTS = 1000
"""Measured points a joint."""
STRETCHES = 4
"""Stretches of a log from which points are taken."""
BEYOND = 1.3
"""A curve goes this much beyond the trained speed."""
LOOP_SIZES = (0.5, 2.0, 8.0)
"""Amplitudes of hysteresis loops, in units of the deformation at which half of the friction slips."""
CYCLE = 1.0
"""Duration of a hysteresis cycle, s."""


@dataclass(frozen=True)
class FrictionData:
    """Measured torque without bodies, offset and ripple, (points, joints) in Nm, over speed (rad/s) and load (Nm).

    `typical` (joints,) is the median of |load| in motion.
    """

    speed: Array
    torque: Array
    load: Array
    typical: Array


@dataclass(frozen=True)
class Curve:
    """Steady friction (Nm) of a joint over speed, with half the width of its 95 % band; `load` in Nm."""

    speed: Array
    torque: Array
    half: Array
    load: float


@dataclass(frozen=True)
class Loop:
    """A settled hysteresis loop: displacement (rad) and torque (Nm) over one cycle of an amplitude (rad)."""

    amplitude: float
    displacement: Array
    torque: Array


def friction_data(calibration: Calibration, logs: Sequence[Log]) -> FrictionData:
    """Return what some logs show of friction, about `POINTS` samples evenly in time."""
    parts = [
        _points(calibration, stretch, -(-POINTS // len(logs))) for log in logs for stretch in _spread(calibration, log)
    ]
    joints = calibration.model.robot.dof
    speed, torque, load = (
        (np.concatenate(own) for own in zip(*parts, strict=True)) if parts else np.zeros((3, 0, joints))
    )
    keep = slice(None, None, max(-(-len(speed) // POINTS), 1))
    return FrictionData(speed[keep], torque[keep], load[keep], _typical(speed, load))


def friction_curve(calibration: Calibration, joint: int, load: float) -> Curve:
    """Return steady friction over speed at a load torque (Nm): J β with the band from J C Jᵀ."""
    speed = _speeds(float(calibration.fastest[joint]))
    terms, own = calibration.model.terms[joint], calibration.model.joint_slices[joint]
    J = np.column_stack([steady_columns(term, speed, load) for term in terms]) if terms else np.zeros((len(speed), 0))
    covariance = calibration.estimate.covariance[own, own]
    variance = np.einsum("ij,jk,ik->i", J, covariance, J)
    half = calibration.estimate.factor * np.sqrt(np.maximum(variance, 0.0))
    return Curve(speed, J @ calibration.estimate.values[own], half, load)


def steady_columns(term: Term, speed: Array, load: float) -> Array:
    """Return the columns of a term at constant speeds (samples,), long after the start; offset and ripple are zero.

    So is what temperature changes: the curve is that at the reference temperature.

    A slip element that relaxes with T is deformed by ``min(D, |v| T)``, one that never does by D.
    """
    if isinstance(term, Offset | SpeedRipple | Temperature):
        return np.zeros((len(speed), len(term.parameters())))
    loads, zero = np.full(len(speed), load), np.zeros(len(speed))
    if isinstance(term, Hysteresis):
        return _slipping(term, speed, loads)
    if isinstance(term, Rated):
        return term.steady(speed, loads)
    return term.columns(JointSignals(1.0, zero, speed, zero, track=zero, ripple=zero, load=loads, rotor=zero))[0]


def hysteresis_loops(calibration: Calibration, joint: int) -> list[Loop]:
    """Return settled loops of small slow cycles without load; none where the joint has no hysteresis."""
    model = calibration.model
    own = [term for term in model.terms[joint] if isinstance(term, Hysteresis)]
    scale = _half_slip(calibration, joint)
    return [_loop(calibration, joint, size * scale) for size in LOOP_SIZES] if own and scale > 0.0 else []


def term_slices(terms: Sequence[Term]) -> Iterator[tuple[Term, slice]]:
    """Yield terms and the places of their parameters among those of the joint."""
    start = 0
    for term in terms:
        stop = start + len(term.parameters())
        yield term, slice(start, stop)
        start = stop


def _spread(calibration: Calibration, log: Log) -> Iterator[Stretch]:
    return islice(stretches(record(log, calibration.output), calibration.filters), STRETCHES)


def _points(calibration: Calibration, stretch: Stretch, wanted: int) -> tuple[Array, Array, Array]:
    """Return speed, friction torque and load of some samples of a stretch, each (samples, joints)."""
    model, values = calibration.model, calibration.estimate.values
    inner = np.arange(stretch.inner.start, stretch.inner.stop)
    rows = inner[:: max(len(inner) // max(wanted, 1), 1)]
    motion = completed(stretch.motion)
    rigid = model.rigid_columns(_taken(motion, rows))
    torque = stretch.outputs[0][rows] * calibration.gains - model.body_torque(rigid, values)
    for j, own in enumerate(model.joint_slices):
        torque[:, j] -= _no_friction(model.terms[j], motion, j, values[own])[rows]
    return motion.qd[rows], torque, model.load_torque(rigid, values)


def _taken(motion: Motion, rows: NDArray[np.intp]) -> Motion:
    """Return some samples, good for what has no memory."""
    return Motion(motion.start, motion.rate, motion.q[rows], motion.qd[rows], motion.qdd[rows])


def _no_friction(terms: Sequence[Term], motion: Motion, joint: int, values: Array) -> Array:
    """Return the torque of offset and ripple, (samples,)."""
    total = np.zeros(motion.samples)
    signals = joint_signals(motion, joint)
    for term, own in term_slices(terms):
        if isinstance(term, Offset | SpeedRipple):
            total += term.columns(signals)[0] @ values[own]
    return total


def _typical(speed: Array, load: Array) -> Array:
    moving = np.abs(speed) > MOVING_SPEED
    columns = zip(np.abs(load).T, moving.T, strict=True)
    return np.array([float(np.median(own[m])) if m.any() else 0.0 for own, m in columns])


def _speeds(fastest: float) -> Array:
    """Return speeds of both signs, dense near zero, with the trained limits among them."""
    top = max(fastest, 1e-3)
    right = np.unique(np.concatenate([np.geomspace(1e-4, 1.0, 60), np.linspace(0.02, BEYOND, 65), [1.0]])) * top
    return np.concatenate([-right[::-1], right])


def _slipping(term: Hysteresis, speed: Array, load: Array) -> Array:
    limits = np.array(term.limits)
    size = np.abs(speed)[:, None] * term.relaxation / limits if term.relaxation > 0.0 else np.ones((len(speed), 1))
    elements: Array = np.sign(speed)[:, None] * np.minimum(np.broadcast_to(size, (len(speed), len(limits))), 1.0)
    if term.load == "none":
        return elements
    factor = np.abs(load) if term.load == "absolute" else load**2
    return np.column_stack([elements, factor * (elements @ np.array(term.shape))])


def _half_slip(calibration: Calibration, joint: int) -> float:
    """Return the deformation (rad) at which the elements that carry half of the friction slip; 0 without friction."""
    values = calibration.estimate.values[calibration.model.joint_slices[joint]]
    own = [(t, s) for t, s in term_slices(calibration.model.terms[joint]) if isinstance(t, Hysteresis)]
    pairs = sorted((limit, force) for t, s in own for limit, force in zip(t.limits, values[s], strict=False))
    limits, forces = np.array(pairs).reshape(-1, 2).T
    total = np.cumsum(forces)
    return float(limits[np.searchsorted(total, 0.5 * total[-1])]) if total.size and total[-1] > 0.0 else 0.0


def _loop(calibration: Calibration, joint: int, amplitude: float) -> Loop:
    """Return the third cycle of a sinusoidal motion."""
    rate = max(calibration.filters.rate, 200.0 / CYCLE)
    phase = 2.0 * np.pi * np.arange(round(3.0 * CYCLE * rate) + 1) / (CYCLE * rate)
    x, zero = amplitude * np.sin(phase), np.zeros(len(phase))
    signals = JointSignals(rate=rate, q=x, qd=zero, qdd=zero, track=x, ripple=zero, load=zero, rotor=x)
    values = calibration.estimate.values[calibration.model.joint_slices[joint]]
    torque = np.zeros(len(x))
    for term, own in term_slices(calibration.model.terms[joint]):
        if isinstance(term, Hysteresis):
            torque += term.columns(signals)[0] @ values[own]
    settled = slice(-round(CYCLE * rate) - 1, None)
    return Loop(amplitude, x[settled], torque[settled])
