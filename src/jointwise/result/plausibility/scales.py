"""The scale of every output, from all that knows it: described bodies, like drives, the controller's set points.

A gain that is wrong by the factor f makes friction, rotor inertia and noise of a joint f times as large as those of
drives of the same size, and its gravity and inertia torques f times as large as those of the described bodies. Each
of these *witnesses* gives log f with a standard deviation; together they are precise enough to doubt a single gain,
also of a last joint that carries nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.data import statistics
from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.estimation.drive_gains import DriveGains
from jointwise.finding import Finding
from jointwise.formatting import listed
from jointwise.result.plausibility.alternatives import with_gain
from jointwise.result.plausibility.channels import SIMILAR, SetPoints
from jointwise.result.plausibility.declaration import Declaration
from jointwise.result.plausibility.evidence import Evidence, evidences
from jointwise.result.plausibility.moments import Moments
from jointwise.result.plausibility.samples import FRICTION, Samples
from jointwise.result.plausibility.wording import ANOTHER, UNDECIDED, joint_text
from jointwise.spatial import Array

FRICTION_SPREAD, ROTOR_SPREAD, NOISE_SPREAD, GAIN_SPREAD = 0.15, 0.15, 0.12, 0.05
"""Standard deviations of the logarithm of friction, rotor inertia, noise at rest and gain between drives of one size.
Those of a UR10e, a UR10 and a UR5e are within twice these."""
WEAK = 0.15
"""Relative standard error from which an estimated gain is not compared: joints that carry little err by more."""
SET_POINT_SPREAD = 0.12
"""The same of output and set point: the controller's friction is that of an average joint."""
BODY_SPREAD, INEXACT = 0.05, 2.0
"""The same of the described bodies, and the factor by which the model's errors exceed its standard errors."""
STEP = 0.2
"""Step of log f by which the curvature of the log evidence is measured."""
TYPICAL_SPEED = 0.3
"""Speed (rad/s) at which friction is compared."""
MOTOR_FRICTION = 0.04
"""Friction, relative to the effort limit, from which a torque is that of the motor: behind the gear there is less."""
REST_SPEED, REST_SAMPLES = 5e-3, 100
"""Speed (rad/s) below which all joints rest, and how many such samples give the noise."""
MOST_NOISE = 2.0
"""Ratio of noises beyond which a channel is filtered or disturbed rather than scaled."""
DOUBT, LEAST_FACTOR = 2.6, 1.2
"""A scale is suspect from this number of standard deviations and from this factor on; right set-ups reach 2.3."""
UNVERIFIED = np.log(2.0) / DOUBT
"""Standard deviation of log f above which even a factor of 2 would not be noticed."""


@dataclass(frozen=True, eq=False)
class Witness:
    """One source of log f, the logarithm of the error of a scale.

    Attributes:
        name: What it is, for messages.
        values: log f of every joint, (joints,).
        spread: Standard deviation of log f, (joints,); infinite where the source knows nothing.
    """

    name: str
    values: Array
    spread: Array


def check_scales(
    declared: Evidence, samples: Samples, declaration: Declaration, moments: Moments, signals: Iterable[Witness]
) -> Finding:
    """Return whether the scale of an output is suspect, and list scales that cannot be verified.

    Args:
        declared: Evidence of the declaration.
        samples: Conditioned samples.
        declaration: What the user declared.
        moments: Second moments of its columns.
        signals: What the logs show without a model, from `signal_witnesses`.

    """
    witnesses = [*_model_witnesses(declared, samples, declaration, moments), *signals]
    weights = np.array([1.0 / witness.spread**2 for witness in witnesses])
    total = np.maximum(weights.sum(axis=0), 1e-12)
    scale = (weights * np.array([witness.values for witness in witnesses])).sum(axis=0) / total
    doubt = np.where(samples.moving & (np.abs(scale) > np.log(LEAST_FACTOR)), np.abs(scale) * np.sqrt(total), 0.0)
    joint = int(np.argmax(doubt))
    if doubt[joint] < DOUBT:
        return _accepted(samples.moving, 1.0 / np.sqrt(total))
    against = [w.name for w, weight in zip(witnesses, weights, strict=True) if weight[joint] > 0.1 * total[joint]]
    text = (
        f"the output of joint {joint + 1} is about {np.exp(scale[joint]):.2f} times what {listed(against)} suggest"
        f" ({doubt[joint]:.1f} standard deviations)"
    )
    return Finding("warning", "gain", text, f"Check the drive gain and the unit of the output of joint {joint + 1}.")


def _accepted(moving: NDArray[np.bool_], spread: Array) -> Finding:
    """Return the check that names the joints whose scale cannot be verified, or the factor that would be noticed.

    Args:
        moving: Which joints move, (joints,).
        spread: Standard deviations of log f, (joints,).

    """
    unverified = np.flatnonzero(moving & (spread > UNVERIFIED)).tolist()
    if unverified:
        joints = joint_text(() if len(unverified) == len(moving) else unverified)
        return Finding("ok", "gain", UNDECIDED.format(ANOTHER.format("gain", joints)), code="undecided")
    joint = int(np.argmax(np.where(moving, spread, 0.0)))
    factor = max(float(np.exp(DOUBT * spread[joint])), LEAST_FACTOR)
    text = "the outputs have the scale that bodies, like drives and set points suggest"
    return Finding("ok", "gain", f"{text} (within a factor of {factor:.1f}, that of joint {joint + 1})")


def _model_witnesses(
    declared: Evidence, samples: Samples, declaration: Declaration, moments: Moments
) -> Iterator[Witness]:
    """Yield what bodies, friction and rotors say."""
    robot, known = declaration.robot, declaration.gains_known
    if known and declaration.described():
        yield _body_witness(declared, samples, declaration, moments)
    unit = 1.0 if known else declared.gains  # estimated gains hide the scale
    efforts = np.array([joint.limits.effort or np.nan for joint in robot.joints])
    size = declared.friction[:, :FRICTION] @ np.array([1.0, 1.0, 1.0, TYPICAL_SPEED, TYPICAL_SPEED**2])
    size = np.where((not declaration.joint_torques) | (size > MOTOR_FRICTION * efforts), size, np.nan)
    yield like_drives("the friction of like drives", size / unit, np.zeros(robot.dof), FRICTION_SPREAD, robot)
    rotors, errors = declared.values[-robot.dof :], declared.deviation[-robot.dof :]
    errors = errors / np.maximum(rotors, 1e-9)
    yield like_drives("the rotors of like drives", rotors / unit, INEXACT * errors, ROTOR_SPREAD, robot)


def _body_witness(declared: Evidence, samples: Samples, declaration: Declaration, moments: Moments) -> Witness:
    """Return log f from the log evidence, a parabola around the declared gains."""
    joints = np.flatnonzero(samples.moving)
    others = [with_gain(declaration, (int(j),), float(np.exp(s))) for s in (-STEP, STEP) for j in joints]
    found = evidences(samples, [(other.declaration, moments) for other in others])
    gains = np.array([each.log_evidence for each in found]).reshape(2, -1) - declared.log_evidence
    slope, curvature = (gains[1] - gains[0]) / (2.0 * STEP), -(gains[0] + gains[1]) / STEP**2
    values, spread = np.zeros(samples.joints), np.full(samples.joints, np.inf)
    sharp = curvature > 1.0
    values[joints[sharp]] = -slope[sharp] / curvature[sharp]  # the output times exp(s) fits best
    spread[joints[sharp]] = np.hypot(BODY_SPREAD, INEXACT / np.sqrt(curvature[sharp]))
    return Witness("the described bodies", values, spread)


def signal_witnesses(logs: Sequence[Log], output: str, robot: Robot, drives: DriveGains) -> Iterator[Witness]:
    """Yield what estimated gains and noise at rest say."""
    if drives.covariance is not None:
        errors = np.sqrt(np.diag(drives.covariance))
        scales = np.where(errors < WEAK, 1.0 / drives.values, np.nan)
        yield like_drives("the gains of like drives", scales, errors, GAIN_SPREAD, robot)
    levels = [level for log in logs if (level := _rest_noise(log, output)) is not None]
    if levels:
        unit = 1.0 if drives.estimated else drives.values
        noise = unit * np.exp(np.mean(np.log(levels), axis=0))
        found = like_drives("the noise of like drives", noise, np.zeros(robot.dof), NOISE_SPREAD, robot, least=2)
        yield replace(found, spread=np.where(np.abs(found.values) < np.log(MOST_NOISE), found.spread, np.inf))


def set_point_witnesses(logs: Sequence[Log], output: str) -> Iterator[Witness]:
    """Yield what the set points of the first log say, if it has some; the controller knows of no payload."""
    signals = SetPoints.of_log(logs[0], output)
    if signals is not None:
        good = np.diag(signals.correlation) > SIMILAR
        values = np.log(np.where(good, signals.lines[:, 0], 1.0))
        yield Witness("the set points", values, np.where(good, SET_POINT_SPREAD, np.inf))


def _rest_noise(log: Log, output: str) -> Array | None:
    """Return the noise (joints,) of an output while no joint moves, None if that is too short.

    The mean of ``|x[k+1] - 2 x[k] + x[k-1]|``: quantised currents make medians coarse.
    """
    speed = np.abs(statistics.motion(log, log.clock.median_step).speed).max(axis=1)
    rest = np.maximum(np.maximum(speed[:-2], speed[1:-1]), speed[2:]) < REST_SPEED
    if rest.sum() < REST_SAMPLES:
        return None
    level = np.asarray(np.abs(np.diff(np.asarray(log.channel(output)), 2, axis=0))[rest].mean(axis=0))
    return level if (level > 0.0).all() else None


def like_drives(name: str, values: Array, errors: Array, spread: float, robot: Robot, least: int = 1) -> Witness:
    """Return the witness that compares every joint with those of the same effort limit.

    Args:
        name: What is compared, in words.
        values: Positive quantities (joints,) that scale with the output; others are left out.
        errors: Their relative standard errors, (joints,).
        spread: Standard deviation of their logarithm between like drives.
        robot: The description.
        least: Number of like drives that are needed.

    """
    efforts = [joint.limits.effort for joint in robot.joints]
    usable = np.isfinite(values) & (values > 0.0) & (errors < 0.5)
    ratios, spreads = np.zeros(robot.dof), np.full(robot.dof, np.inf)
    for j in np.flatnonzero(usable):
        like = [k for k in np.flatnonzero(usable) if k != j and efforts[j] is not None and efforts[k] == efforts[j]]
        if len(like) >= least:
            ratios[j] = np.log(values[j]) - np.mean(np.log(values[like]))
            variance = spread**2 * (1.0 + 1.0 / len(like)) + errors[j] ** 2 + np.mean(errors[like] ** 2) / len(like)
            spreads[j] = np.sqrt(variance)
    return Witness(name, ratios, spreads)
