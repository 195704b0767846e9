"""Drives of a robot: gains of all joints from a known payload or the controller's targets, and inertias from targets.

Payload: ``i_with - i_without = g_j (m a_j + B_j x + Δ_j) + friction``, ``g_j = 1/K_j``. The mass m is known and sets
the scale; first moments and inertia x of the payload are estimated with the gains, as every joint moves the same body.
Δ is the torque of the described links for the slightly different motion. Friction changes between the runs by an
offset, a Coulomb and a viscous part (the joints warm up), and with the load. All joints are fitted at once on normal
products, as the sum over samples does not depend on g and x.

References:
    Gautier, Briot: Global identification of joint drive gains and dynamic parameters of robots, ASME J. Dynamic
    Systems, Measurement, and Control 136(5), 2014.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d
from scipy.optimize import least_squares
from scipy.special import chdtrc

from jointwise.arguments import checked
from jointwise.call_settings import DriveSettings
from jointwise.data.coordinates import model_log, mounting_of_logs
from jointwise.data.log import Log, check_joints, log_list
from jointwise.data.overlap import refuse_repeated_samples
from jointwise.data.repetition import MotionPair, align_pair
from jointwise.data.statistics import intervals, quantum
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot, check_joint
from jointwise.description.transmission import refuse_coupled
from jointwise.errors import DataError, EstimationError, JointwiseError
from jointwise.estimation.cross_validation import SIGNIFICANT, exceeds, first_or_best, held_out_predictions, unit_errors
from jointwise.estimation.gram import block_grams, gram_solution, normal_solution
from jointwise.estimation.jackknife import BLOCK_DURATION, MIN_BLOCKS, jackknife, recording_blocks, student_factor
from jointwise.estimation.linear_fit import scaled_solution
from jointwise.joint.curve import Curve, make_curve, slope_curve
from jointwise.joint.model import JointModel
from jointwise.joint.motor import (
    GAIN_TOLERANCE,
    MASS_ERROR,
    RELATION,
    REVERSAL_TIME,
    identify_current_loop,
    identify_motor,
    inverse_value,
    torque_constant,
)
from jointwise.joint.part import (
    MIN_QUALITY,
    TINY,
    Part,
    TriedModel,
    Value,
    nrmse_percent,
    percent_off,
    rms,
    rounding_error,
    value_of,
)
from jointwise.joint.record import MIN_TRAVEL, LinkLoad, joint_record, refuse_faulty
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.model.terms import LOAD_POWERS, direction, load_growth, viscous_columns
from jointwise.model.transmission import motor_values
from jointwise.spatial import Array

# -- inertia from the targets --

TARGETS = {
    "q_des": "target_q",
    "qd_des": "target_qd",
    "qdd_des": "target_qdd",
    "torque_des": "target_moment",
}
"""Channels that determine the inertias, and the RTDE fields that hold them."""
TARGET_BLOCK = 0.5
"""Shortest block of the jackknife (s): targets have neither friction nor noise, only the path correlates residuals."""
SIGNIFICANCE = 0.05
"""Probability below which like drives count as different."""


@dataclass(frozen=True)
class DriveInertia:
    """Inertia of motor and reducer of a joint at the joint side, kg m².

    Attributes:
        joint: Joint, 0-based.
        alone: From this joint.
        shared: From all joints with the same torque limit; `alone` where there is no other.
        alike: Probability of a spread as large among equal drives; None where there is no other.
        r2: Fraction of the variance of the target torque that links and rotor explain.
        rms: Root mean square residual of the target torque, Nm.
    """

    joint: int
    alone: Value
    shared: Value
    alike: float | None
    r2: float
    rms: float

    @property
    def differs(self) -> bool:
        """Whether the drive differs from those with the same torque limit."""
        return self.alike is not None and self.alike < SIGNIFICANCE


@checked
def inertias_from_targets(
    logs: Log | Sequence[Log], robot: Robot, *, mounting: Mounting | None = None, payload: Payload | None = None
) -> tuple[DriveInertia, ...]:
    """Return the inertias of motor and reducer at the joints, one per joint.

    The controller's target torque is that of links and rotors without friction: ``τ_des - f(q, qd, qdd) = B qdd + c``
    at the target motion, f the described links. The constant c takes errors of the described masses in constant poses.

    Args:
        logs: Logs with target positions, speeds, accelerations and torques.
        robot: The robot, whose links are known.
        mounting: Mounting of the base; by default as the logs state, else "table".
        payload: Payload that the controller knows.

    Raises:
        DataError: A log lacks targets; names the RTDE fields.
        EstimationError: The motion is too short, or a joint does not accelerate.
    """
    recordings = log_list(logs)
    for log in recordings:
        _check_log(log, robot)
    recordings = [model_log(log, robot) for log in recordings]
    refuse_repeated_samples(recordings)
    bodies = LinkLoad(robot, gravity_vector(mounting_of_logs(recordings, mounting)), payload)
    q, qd, qdd, torque = (np.concatenate([log.channel(name) for log in recordings]) for name in TARGETS)
    links, acceleration = bodies(q, qd, qdd), motor_values(robot, qdd)
    block = _blocks(recordings)
    found = [_inertia_alone(j, torque[:, j], links[:, j], acceleration[:, j], block) for j in range(robot.dof)]
    return tuple(_shared_inertia(j, found, robot) for j in range(robot.dof))


def _check_log(log: Log, robot: Robot) -> None:
    check_joints(log, robot)
    missing = [field for name, field in TARGETS.items() if name not in log.available]
    if missing:
        raise DataError(
            f"{log.origin.path}: no targets of the controller. Record the RTDE fields {', '.join(missing)} as well."
        )


def _blocks(logs: Sequence[Log]) -> NDArray[np.intp]:
    """Return the jackknife block of every sample."""
    block = recording_blocks([(log.samples, log.duration) for log in logs], TARGET_BLOCK)
    if block[-1] + 1 < MIN_BLOCKS:
        duration = sum(log.duration for log in logs)
        raise EstimationError(f"{logs[0].origin.path}: {duration:.3g} s of motion are too short for inertias.")
    return block


def _inertia_alone(j: int, torque: Array, links: Array, acceleration: Array, block: NDArray[np.intp]) -> DriveInertia:
    if not acceleration.std() > 0.0:
        raise EstimationError(f"joint {j + 1} does not accelerate: its inertia is not determined.")
    columns = np.column_stack([acceleration, np.ones_like(acceleration)])
    rest = torque - links
    found, errors = jackknife(gram_solution, block_grams(np.column_stack([columns, rest]), block))
    residual = rest - columns @ found
    links_error = MASS_ERROR * abs(float(acceleration @ links) / float(acceleration @ acceleration))
    factor = student_factor(len(np.unique(block)) - 1)
    value = value_of("inertia", "kg m²", found[0], float(np.hypot(errors[0], links_error)), factor)
    if value.high <= 0.0:
        raise EstimationError(
            f"joint {j + 1}: the targets lead to a negative inertia ({value.value:.3g} kg m²): the described links or "
            "the payload are heavier than those of the controller."
        )
    variance = max(float(np.var(torque)), TINY)
    return DriveInertia(j, value, value, None, 1.0 - float(np.var(residual)) / variance, float(residual.std()))


def _shared_inertia(j: int, found: Sequence[DriveInertia], robot: Robot) -> DriveInertia:
    """Return an inertia with the mean of like drives and the probability of their spread."""
    limits = [joint.limits.effort for joint in robot.joints]
    like = [each for each, limit in zip(found, limits, strict=True) if limit is not None and limit == limits[j]]
    if len(like) < 2:
        return found[j]
    values = np.array([each.alone.value for each in like])
    least = float(np.finfo(np.float64).eps * np.abs(values).max())  # targets of a simulated controller have no error
    weights = 1.0 / np.maximum([each.alone.deviation for each in like], least) ** 2
    mean = float(weights @ values / weights.sum())
    spread = float(weights @ (values - mean) ** 2)
    shared = value_of("inertia", "kg m²", mean, float(weights.sum() ** -0.5))
    probability = float(chdtrc(len(like) - 1, spread))
    each = found[j]
    return DriveInertia(j, each.alone, shared, probability, each.r2, each.rms)


# -- all drives --


@dataclass(frozen=True)
class DriveIdentification:
    """Inertias and motor parts of the drives of a robot.

    Attributes:
        robot: Name of the robot.
        inertias: Inertia of motor and reducer, one per joint.
        parts: Motor part (gain, offset, friction, inertia), one per joint; None where it is not determined.
        reasons: Why it is not, "" where it is.
        alike: Whether like drives share their inertia.
    """

    robot: str
    inertias: tuple[DriveInertia, ...]
    parts: tuple[Part | None, ...]
    reasons: tuple[str, ...]
    alike: bool

    def models(self) -> list[JointModel]:
        """Return the joints whose motor is determined, for `save_joints` and `calibrate --joint`.

        Raises:
            EstimationError: No motor is determined.
        """
        if not any(self.parts):
            raise EstimationError(f"no motor is determined. {self.reasons[0]}")
        found = enumerate(self.parts)
        return [JointModel(self.robot, j, {"motor": part}) for j, part in found if part is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return inertias, gains and friction as plain JSON; joints count from 1."""
        rows = zip(self.inertias, self.parts, self.reasons, strict=True)
        return {"robot": self.robot, "joints": [self._joint(*row) for row in rows]}

    def _joint(self, inertia: DriveInertia, part: Part | None, reason: str) -> dict[str, Any]:
        used = inertia.shared if self.alike else inertia.alone
        values = {} if part is None else {value.name: vars(value) for value in part.values}
        return {
            "joint": inertia.joint + 1,
            "inertia": vars(used),
            "torque_r2": inertia.r2,
            "torque_rms": inertia.rms,
            "like_drives_probability": inertia.alike,
            "motor": {name: value for name, value in values.items() if name != "inertia"} or None,
            "held_out": None if part is None else part.held_out,
            "reason": reason or None,
        }

    def summary(self) -> str:
        """Return a line per joint, and whether like drives are alike."""
        lines = [self._line(j) for j in range(len(self.inertias))]
        different = [str(each.joint + 1) for each in self.inertias if each.differs]
        if different:
            lines.append(f"joints {', '.join(different)}: the inertias differ: unequal drives, or errors of the links")
        return "\n".join(lines)

    def _line(self, j: int) -> str:
        inertia, part = self.inertias[j], self.parts[j]
        used = inertia.shared if self.alike else inertia.alone
        head = f"joint {j + 1}: inertia {used.value:.4g} [{used.low:.4g}, {used.high:.4g}] kg m², R² {inertia.r2:.4f}"
        if part is None:
            return f"{head}; motor not determined: {self.reasons[j]}"
        listed = (v for v in part.values if v.name not in ("inertia", "offset"))
        return f"{head}; " + ", ".join(f"{v.name} {v.value:.4g} [{v.low:.4g}, {v.high:.4g}] {v.unit}" for v in listed)


@checked
def identify_drives(
    logs: Log | Sequence[Log],
    robot: Robot,
    *,
    mounting: Mounting | None = None,
    payload: Payload | None = None,
    alike: bool = DriveSettings.alike,
) -> DriveIdentification:
    """Return inertias, gains and friction of all drives of a robot.

    First the inertia of motor and reducer from the controller's targets (`inertias_from_targets`), then, per joint,
    gain and friction by the direction of power flow in one regression of the measured current (`identify_motor`).

    Args:
        logs: Logs with targets and measured currents.
        robot: The robot, whose links are known.
        mounting: Mounting of the base; by default as the logs state, else "table".
        payload: Payload in the logs.
        alike: Whether joints with the same torque limit share their inertia.

    Raises:
        DataError: A log lacks targets.
        EstimationError: The motion does not determine the inertias. Motors that are not determined have a reason.
    """
    inertias = inertias_from_targets(logs, robot, mounting=mounting, payload=payload)
    parts: list[Part | None] = []
    reasons: list[str] = []
    for each in inertias:
        value, motor = each.shared if alike else each.alone, robot.joints[each.joint].motor
        gain, inertia = motor.joint_gain or 1.0, max(value.value, 0.0)
        try:
            record = joint_record(
                logs, robot, each.joint, mounting=mounting, payload=payload, gain=gain, inertia=inertia
            )
            part = identify_motor(record, gear_ratio=motor.gear_ratio, friction="power flow")
            others = tuple(v for v in part.values if v.name != "inertia")
            parts.append(replace(part, values=(*others, value)))
            reasons.append("")
        except (DataError, EstimationError) as problem:
            parts.append(None)
            reasons.append(str(problem))
    return DriveIdentification(robot.name, inertias, tuple(parts), tuple(reasons), alike)


# -- gains of a robot --

Status = Literal["determined", "hardly determined", "not determined"]
DETERMINED = 0.1
"""Half width of the 95 % confidence interval of a gain, relative to it, up to which it is determined."""
EXPLAINED = 75.0
"""NRMSE fit (%) on held-out data from which a gain is determined: below, friction dominates the current."""


@dataclass(frozen=True)
class JointGain:
    """Drive gain of one joint.

    Attributes:
        joint: Joint, 0-based.
        alone: Gain (Nm/A) from this joint, None where it is not determined.
        status: How well the gain is determined.
        fitted: NRMSE fit, %.
        held_out: The same on held-out data, %.
        shared: Gain from all joints with the same drive.
        offset: Offset of the current, A.
        model: Name of the model.
        alternatives: Models for comparison.
        curves: Plots of the fit.
        notes: Remarks for the user.
    """

    joint: int
    alone: Value | None
    status: Status
    fitted: float
    held_out: float | None = None
    shared: Value | None = None
    offset: Value | None = None
    model: str = ""
    alternatives: tuple[TriedModel, ...] = ()
    curves: tuple[Curve, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gain(self) -> Value | None:
        """The gain to use: that of all joints with the same drive where there are several."""
        return self.alone if self.shared is None else replace(self.shared, name="gain")


@dataclass(frozen=True)
class RobotGains:
    """Drive gains of a robot.

    Attributes:
        robot: Name of the robot.
        method: What the gains come from, "payload" or "targets".
        joints: Gain of every joint.
        settings: Results beside the gains, by name: mass and centre of the payload, and its load law.
        logs: Files.
    """

    robot: str
    method: str
    joints: tuple[JointGain, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    logs: tuple[str, ...] = ()

    @property
    def gains(self) -> Array:
        """Gains (joints,), Nm/A; NaN where not determined."""
        return np.array([np.nan if joint.gain is None else joint.gain.value for joint in self.joints])

    def part(self, joint: int, gear_ratio: float | None = None, expected: Value | float | None = None) -> Part:
        """Return the motor part of a joint.

        Args:
            joint: Joint, 0-based.
            gear_ratio: Gear ratio, for the torque constant at the motor shaft.
            expected: Gain (Nm/A) of the description: a number, or a value that follows from the described links. A
                gain that differs by more than `GAIN_TOLERANCE` is marked as implausible.

        Raises:
            EstimationError: Where the gain is not determined.
        """
        found = self.joints[joint]
        if found.gain is None:
            raise EstimationError(
                f"{', '.join(self.logs)}: joint {joint + 1}: the drive gain is not determined"
                f"{': ' + found.notes[0] if found.notes else ''}."
            )
        alone = [replace(found.alone, name="gain_alone")] if found.alone and found.shared else []
        values = [found.gain, *alone, *([found.offset] if found.offset else [])]
        if gear_ratio:
            values.append(torque_constant(found.gain, gear_ratio))
        reason = _contradiction(found.gain.value, expected)
        marked = {"implausible": reason} if reason else {}
        return Part(
            phenomenon="motor",
            model=found.model,
            values=tuple(values),
            fitted=found.fitted,
            held_out=found.held_out,
            settings={
                "method": self.method,
                "status": found.status,
                "gear_ratio": gear_ratio,
                **self.settings,
                **marked,
            },
            alternatives=found.alternatives,
            curves=found.curves,
            notes=(*((f"implausible: {reason}",) if reason else ()), *found.notes, RELATION),
            logs=self.logs,
        )


def _contradiction(gain: float, expected: Value | float | None) -> str:
    """Return why a gain (Nm/A) contradicts the description, "" where it does not or nothing is described."""
    if expected is None:
        return ""
    known, source = (
        (expected, "described") if isinstance(expected, float) else (expected.value, "of the described links")
    )
    if abs(gain / known - 1.0) <= GAIN_TOLERANCE:
        return ""
    return (
        f"the gain is {percent_off(gain, known):+.0f} % off the {known:.4g} Nm/A {source}; later commands do not "
        "use it unless --accept-implausible is given. Weigh the payload again, or correct the description"
    )


def gain_status(value: Value | None, held_out: float | None = None) -> Status:
    """Return how well a gain is determined, by its interval and by its NRMSE fit (%) on held-out data."""
    if value is None:
        return "not determined"
    half = 0.5 * (value.high - value.low)
    determined = half <= DETERMINED * value.value and (held_out is None or held_out >= EXPLAINED)
    return "determined" if determined else "hardly determined"


def same_drives(robot: Robot) -> tuple[tuple[int, ...], ...]:
    """Return groups of joints (0-based) with the same drive: equal described gain, ratio, rotor and effort limit.

    The description decides which drives are equal, not how large their gain is. Joints without a described gain form
    groups of their own.
    """
    kinds: dict[object, list[int]] = {}
    for k, joint in enumerate(robot.joints):
        motor = joint.motor
        known = motor.joint_gain is not None
        kind = (motor.joint_gain, motor.gear_ratio, motor.rotor_inertia, joint.limits.effort) if known else k
        kinds.setdefault(kind, []).append(k)
    return tuple(tuple(joints) for joints in kinds.values())


@checked
def identify_motor_from_payload(
    logs: Sequence[Log],
    loaded: Sequence[Log],
    robot: Robot,
    joint: int,
    payload_mass: float,
    *,
    mounting: Mounting = "table",
) -> Part:
    """Identify the drive gain of a joint from the same motions without and with a payload of known mass.

    Args:
        logs: Logs without the payload.
        loaded: Logs of the same motions with the payload, in the same order.
        robot: The robot.
        joint: Index of the joint, from 0.
        payload_mass: Mass of the payload, kg; its centre of mass is estimated.
        mounting: Mounting of the base, or gravity in the base frame, m/s².

    Returns:
        The phenomenon "motor" of the joint, marked as implausible where it contradicts the described gain or, without
        one, the described links: later commands then do not use it.

    Raises:
        EstimationError: If the logs do not determine the gain of this joint.
    """
    motor = robot.joints[check_joint(robot, joint)].motor
    estimate = identify_gains_from_payload(logs, loaded, robot, payload_mass, mounting=mounting)
    expected = motor.joint_gain or _gain_of_links(logs, robot, joint, mounting)
    return estimate.part(joint, motor.gear_ratio, expected)


def _gain_of_links(logs: Sequence[Log], robot: Robot, joint: int, mounting: Mounting) -> Value | None:
    """Return the drive gain that follows from the described links, None where the logs do not determine it."""
    try:
        return identify_motor(joint_record(logs, robot, joint, mounting=mounting)).value("gain")
    except JointwiseError:
        return None


@checked
def identify_motor_from_targets(logs: Sequence[Log], robot: Robot, joint: int) -> Part:
    """Identify the drive gain of a joint from the target torques and currents of its controller.

    Args:
        logs: Logs with the channels tau_des and i_des; a measured current adds the dynamics of the current loop.
        robot: The robot.
        joint: Index of the joint, from 0.

    Returns:
        The phenomenon "motor" of the joint: what the controller assumes, which need not be true.

    Raises:
        EstimationError: If the logs do not determine the gain of this joint.
    """
    gear_ratio = robot.joints[check_joint(robot, joint)].motor.gear_ratio
    part = gains_from_targets(logs, robot).part(joint, gear_ratio)
    measured = [log for log in logs if log.current is not None]
    if not measured:
        return part
    return identify_current_loop(joint_record(measured, robot, joint, gain=1.0)).added(part)


# -- gains from a payload --

GROWTHS = ("none", *LOAD_POWERS)
"""Growth of friction with the load, the simplest law first."""


def identify_gains_from_payload(
    unloaded: Log | Sequence[Log],
    loaded: Log | Sequence[Log],
    robot: Robot,
    payload_mass: float | None,
    *,
    mounting: Mounting = "table",
    law: str | None = None,
) -> RobotGains:
    """Return the drive gains (Nm/A) of all joints from pairs of logs of the same motion.

    Args:
        unloaded: One or more logs without payload.
        loaded: As many logs of the same motions with the payload.
        robot: The robot.
        payload_mass: Mass of the payload, kg.
        mounting: Mounting of the robot.
        law: Growth of friction with the load, "none", "absolute" or "square"; None for the best on held-out data.

    Raises:
        EstimationError: Where the logs do not show the payload.
    """
    if payload_mass is None or not (np.isfinite(payload_mass) and payload_mass > 0.0):
        raise EstimationError(
            f"the payload's mass must be a positive number of kg: weigh it. Got {payload_mass} instead."
        )
    if law is not None and law not in GROWTHS:
        raise EstimationError(f"law must be one of {', '.join(GROWTHS)}. Got '{law}' instead.")
    refuse_coupled(robot, "the identification of gains by a payload")
    pairs = aligned_pairs(unloaded, loaded, robot)
    data = payload_data(pairs, robot, float(payload_mass), gravity_vector(mounting))
    fits = {name: fit_payload(data, name) for name in (GROWTHS if law is None else (law,))}
    best = fits[first_or_best({name: fit.errors for name, fit in fits.items()})]
    return _estimate(data, robot, fits, best, _rivals(data, fits, best))


def _rivals(data: PayloadData, fits: dict[str, GainFit], best: GainFit) -> list[GainFit]:
    """Return the fits under other laws whose held-out errors do not exceed those of the best one significantly."""
    others = [fit for fit in fits.values() if fit is not best]
    if best.law != "none":
        others.append(fit_payload(data, best.law + ASYMMETRIC, best))
    return [fit for fit in others if not exceeds(fit.errors - best.errors, SIGNIFICANT)]


def _estimate(
    data: PayloadData, robot: Robot, fits: dict[str, GainFit], fit: GainFit, rivals: list[GainFit]
) -> RobotGains:
    drives = same_drives(robot)
    groups = np.array([next(k for k, joints in enumerate(drives) if j in joints) for j in range(data.joints)])
    alone, shared = (_with_errors(data, fit, rivals, numbers) for numbers in (np.arange(data.joints), groups))
    factor = student_factor(data.blocks - 1)
    joints = []
    for j in range(data.joints):
        joint = _gain_from_payload(data, fits, fit, j, (float(alone[0][j]), float(alone[1][j])), factor)
        if len(drives[groups[j]]) > 1:
            joint = replace(joint, shared=inverse_value("gain", "Nm/A", shared[0][j], shared[1][j], factor))
        joints.append(replace(joint, notes=_payload_notes(robot, joint, drives[groups[j]])))
    if all(joint.status != "determined" for joint in joints):
        raise EstimationError(
            f"{', '.join(data.names)}: the difference of the currents does not follow a payload of {data.mass:g} kg; "
            f"no gain is fitted. Record the same motion without and with the payload: "
            f"jointwise joint plan --robot {shlex.quote(robot.name)} --joint 1"
        )
    return RobotGains(robot.name, "payload", tuple(joints), _payload_settings(data, fit), data.names)


def _gain_from_payload(
    data: PayloadData, fits: dict[str, GainFit], fit: GainFit, j: int, inverse: tuple[float, float], factor: float
) -> JointGain:
    """Return the gain of one joint from 1/K with its standard error."""
    gain = inverse_value("gain", "Nm/A", *inverse, factor)
    return JointGain(
        joint=j,
        alone=gain,
        status=gain_status(gain, float(fit.held_out[j])),
        fitted=float(fit.fitted[j]),
        held_out=float(fit.held_out[j]),
        model=f"gain from a payload of {data.mass:g} kg, load-dependent friction: {fit.law}",
        alternatives=tuple(
            TriedModel(f"friction over load: {name}", float(other.fitted[j]), float(other.held_out[j]))
            for name, other in fits.items()
        ),
        curves=_payload_curves(data, fit, j, inverse[1] * factor) if gain else (),
    )


def _with_errors(
    data: PayloadData, fit: GainFit, rivals: list[GainFit], groups: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return 1/K (joints,), shared within groups, and its standard error: jackknife, and laws that are as likely."""

    def inverse_gains(one: GainFit, gram: Array) -> Array:
        means = np.array([one.solution.gains[groups == group].mean() for group in groups])
        start = replace(one.solution, gains=means)
        return solve(Products(gram, groups, body_scales(data.mass)), one.weights, start).gains

    inverse, error = jackknife(lambda gram: inverse_gains(fit, gram), fit.grams)
    others = [inverse_gains(rival, rival.grams.sum(axis=0)) for rival in rivals]
    law_error = np.max([np.zeros(data.joints), *(np.abs(other - inverse) for other in others)], axis=0)
    return inverse, np.hypot(error, law_error)


def _payload_settings(data: PayloadData, fit: GainFit) -> dict[str, object]:
    """Return the results beside the gains: the payload in the frame of the last joint, and the load law."""

    def body(gram: Array) -> Array:
        return solve(Products(gram, np.arange(data.joints), body_scales(data.mass)), fit.weights, fit.solution).body

    moments, errors = (values[-3:] for values in jackknife(body, fit.grams))
    return {
        "payload_mass": data.mass,
        "payload_center": (moments / data.mass).tolist(),
        "payload_center_deviation": (errors / data.mass).tolist(),
        "load_law": fit.law,
        "blocks": data.blocks,
    }


def _payload_notes(robot: Robot, joint: JointGain, alike: tuple[int, ...]) -> tuple[str, ...]:
    notes: list[str] = []
    described = robot.joints[joint.joint].motor.joint_gain
    if joint.status == "not determined":
        notes.append("the payload loads this joint too little in this motion")
    elif joint.status == "hardly determined":
        notes.append(
            f"hardly determined: the payload loads this joint little; {joint.held_out or 0.0:.0f} % of the difference "
            "is explained, and a change of friction between the runs may be part of the gain"
        )
    if joint.gain is not None and described:
        notes.append(f"described gain {described:g} Nm/A: {percent_off(joint.gain.value, described):+.1f} %")
    if joint.shared is not None:
        names = ", ".join(str(k + 1) for k in alike)
        notes.append(f"one gain for joints {names}, which are described with the same drive; gain_alone is of this one")
    return tuple(notes)


def _payload_curves(data: PayloadData, fit: GainFit, j: int, half: float) -> tuple[Curve, ...]:
    """Return the current over the torque of the payload, and the difference of the currents along the motion."""
    used, inverse = data.used[:, j], float(fit.solution.gains[j])
    residual = data.difference[used, j] - fit.modelled[used, j]
    order = np.argsort(fit.payload[used, j], kind="stable")
    torque, scatter = fit.payload[used, j][order], residual[order]
    over_torque = slope_curve(
        (
            "Current of the payload over its torque",
            "torque of the payload [Nm]",
            "difference of the currents without friction [A]",
        ),
        (torque, inverse * torque + scatter),
        inverse,
        (inverse - half, inverse + half),
        residual=scatter,
    )
    sample = np.flatnonzero(used).astype(float)
    along = make_curve(
        ("Difference of the currents along the motion", "sample", "loaded - unloaded [A]"),
        (sample, data.difference[used, j]),
        (sample, fit.modelled[used, j]),
        residual=residual,
    )
    return over_torque, along


# -- rows of a payload: pairs of logs --

SLOW = 0.02
"""Speed (rad/s) below which the sign of friction is uncertain; such samples are left out."""
MIN_MOVING = 0.05
"""Fraction of the samples in which every joint must move."""
BODY = 9
"""Unknown parameters of the payload: six of its inertia tensor, three first moments."""


@dataclass(frozen=True, eq=False)
class PayloadData:
    """Signals of all pairs that do not depend on the unknown payload; arrays (samples, joints).

    Attributes:
        mass: Mass of the payload, kg.
        names: Files.
        difference: Current with minus current without payload, A.
        direction: Direction of motion, -1 or 1.
        speed: Mean speed of the two runs, rad/s.
        pair: Number of the pair, (samples,).
        block: Number of the jackknife block, (samples,).
        used: Samples in motion.
        base: Load of the links without payload, Nm.
        known: ``m a + Δ``, Nm: torque of the known mass at the flange, and of the difference of the two motions.
        body: B (samples, joints, 9), Nm per unit of the unknown parameters of the payload.
    """

    mass: float
    names: tuple[str, ...]
    difference: Array
    direction: Array
    speed: Array
    pair: NDArray[np.intp]
    block: NDArray[np.intp]
    used: NDArray[np.bool_]
    base: Array
    known: Array
    body: Array

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.difference.shape[1])

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self.block.max()) + 1


def aligned_pairs(unloaded: Log | Sequence[Log], loaded: Log | Sequence[Log], robot: Robot) -> list[MotionPair]:
    """Return logs without and with the payload in pairs."""
    first, second = log_list(unloaded), log_list(loaded)
    if not first or len(first) != len(second):
        raise EstimationError(
            f"every log without payload must have one with it. Got {len(first)} without and {len(second)} with it."
        )
    for log in (*first, *second):
        refuse_faulty(log, robot)
        if np.ptp(log.q, axis=0).max() < MIN_TRAVEL:
            raise EstimationError(
                f"{log.origin.path}: nothing moves; gains from a payload need a motion of all joints."
            )
    return [align_pair(a, b) for a, b in zip(first, second, strict=True)]


def payload_data(pairs: list[MotionPair], robot: Robot, mass: float, gravity: Array) -> PayloadData:
    """Return the signals of pairs of logs, and check that they show the payload.

    Args:
        pairs: The same motions without and with payload.
        robot: The robot.
        mass: Mass of the payload, kg.
        gravity: Gravity in the base frame, (3,), m/s².
    """
    torques = [_torques(pair, robot, mass, gravity) for pair in pairs]
    base, known, body = (np.concatenate(arrays) for arrays in zip(*torques, strict=True))
    speed = np.concatenate([pair.speed for pair in pairs])
    data = PayloadData(
        mass=mass,
        names=tuple(dict.fromkeys(name for pair in pairs for name in pair.names)),
        difference=np.concatenate([pair.difference for pair in pairs]),
        direction=direction(speed),
        speed=speed,
        pair=np.repeat(np.arange(len(pairs)), [pair.samples for pair in pairs]),
        block=recording_blocks([(pair.samples, pair.samples / pair.rate) for pair in pairs]),
        used=np.concatenate([_in_motion(pair.speed, pair.rate) for pair in pairs]),
        base=base,
        known=known,
        body=body,
    )
    _check_payload(data)
    return data


def _in_motion(speed: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples (samples, joints) are in motion and away from reversals, whose pulses the filter spreads."""
    slow = np.abs(speed) <= SLOW
    moving: NDArray[np.bool_] = ~maximum_filter1d(slow, 2 * int(REVERSAL_TIME * rate) + 1, axis=0)
    return moving


def _torques(pair: MotionPair, robot: Robot, mass: float, gravity: Array) -> tuple[Array, Array, Array]:
    """Return the load of the links, the known part ``m a + Δ`` (samples, joints) and B (samples, joints, 9), Nm."""
    before, after = (inverse_dynamics(robot, *motion, gravity=gravity) for motion in (pair.before, pair.after))
    last = compute_regressor(robot, *pair.after, gravity=gravity).matrices()[:, :, -BODY - 1 :]
    links = before - robot.rotor_inertias * pair.before[2]  # rotors load the motor, not the gear
    return links, mass * last[:, :, BODY] + after - before, last[:, :, :BODY]


def _check_payload(data: PayloadData) -> None:
    where = ", ".join(data.names)
    if np.allclose(data.difference, 0.0):
        raise EstimationError(f"{where}: the currents of both logs are the same: neither or both carry the payload.")
    if data.blocks < MIN_BLOCKS:
        raise EstimationError(
            f"{where}: too short: {data.blocks} blocks of {BLOCK_DURATION:g} s. At least {MIN_BLOCKS} are needed."
        )
    for j, used in enumerate(data.used.T):
        if used.mean() < MIN_MOVING:
            raise EstimationError(f"{where}: joint {j + 1} stands; gains from a payload need a motion of all joints.")


# -- fit of gains and payload --

LEVER = 0.2
"""Rough distance (m) of a payload from the flange: the scale of its first moments and inertia, a weak prior."""
ASYMMETRIC = ", asymmetric"
"""Suffix of a load law whose growth differs with the direction of motion."""
ASYMMETRY = 0.1
"""That difference, as a fraction. It looks like a gain, so its effect on the gains widens their intervals."""
REWEIGHTINGS = 3
"""Solutions with updated weights and friction under load; the third changes the gains by less than 0.1 %."""


# -- normal products -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Products:
    """Normal products of a data set.

    Attributes:
        grams: Gram matrices of the columns ``[a | B | F | y]``, (joints, columns, columns).
        groups: Group of every joint, (joints,); joints of one group share a gain.
        scales: Rough sizes of x, a prior with the weight of one sample each, (9,): six of the inertia in kg m², three
            first moments in kg m.
    """

    grams: Array
    groups: NDArray[np.intp]
    scales: Array


@dataclass(frozen=True, eq=False)
class GainSolution:
    """Gains, payload and friction that solve the normal products.

    Attributes:
        gains: Inverse gains g, (joints,), A/Nm.
        body: Parameters x of the payload, (9,): six of its inertia in kg m², three first moments in kg m.
        friction: Factors f of the friction columns, (joints, columns), A per unit of a column.
    """

    gains: Array
    body: Array
    friction: Array

    def coefficients(self) -> Array:
        """Return the coefficients (joints, columns) of ``[a | B | F]``."""
        return np.column_stack([np.outer(self.gains, np.append(1.0, self.body)), self.friction])


def solve(products: Products, weights: Array, start: GainSolution | None = None) -> GainSolution:
    """Return the least-squares solution with `weights` 1/σ² (joints,).

    Friction is linear and eliminated from the normal products of every joint; what remains is bilinear in g and x.
    Without a `start` the search begins with one gain for all joints, which is linear in (g, g x).
    """
    kept = np.r_[: BODY + 1, products.grams.shape[1] - 1]
    roots = np.sqrt(weights)[:, None, None] * np.array([_root(gram, kept) for gram in products.grams])
    groups, count = products.groups, int(products.groups.max()) + 1

    def residual(unknowns: Array) -> Array:
        g, x = unknowns[:count][groups], unknowns[count:]
        coefficients = np.column_stack([np.outer(g, np.append(1.0, x)), -np.ones(len(g))])
        return np.append(np.einsum("jab,jb->ja", roots, coefficients).ravel(), x / products.scales)

    members = np.unique(groups, return_index=True)[1]
    first = _one_gain(roots, count) if start is None else np.append(start.gains[members], start.body)
    found = least_squares(residual, first, method="lm", x_scale="jac").x
    gains, body = found[:count][groups], found[count:]
    return GainSolution(gains, body, _friction(products, gains, body))


def _one_gain(roots: Array, count: int) -> Array:
    """Return `count` equal gains and x: one gain for all joints is linear in (g, g x), so it has a single minimum."""
    rows = roots.reshape(-1, BODY + 2)
    found = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
    gain = found[0] or 1.0
    return np.append(np.full(count, gain), found[1:] / gain)


def _friction(products: Products, gains: Array, body: Array) -> Array:
    """Return the least-squares friction f (joints, columns) for known gains and payload."""
    F, torque = slice(BODY + 1, -1), slice(BODY + 1)
    known = np.outer(gains, np.append(1.0, body))
    pairs = zip(products.grams, known, strict=True)
    return np.array([normal_solution(G[F, F], G[F, -1] - G[F, torque] @ c) for G, c in pairs])


def _root(gram: Array, kept: NDArray[np.intp]) -> Array:
    """Return R with ``RᵀR`` the Gram matrix of the kept columns without the component along the friction columns."""
    size = np.sqrt(np.maximum(np.diag(gram), TINY))
    scaled = gram / np.outer(size, size)
    others = np.setdiff1d(np.arange(len(gram)), kept)
    across = scaled[np.ix_(kept, others)]
    reduced = scaled[np.ix_(kept, kept)] - across @ np.linalg.pinv(scaled[np.ix_(others, others)]) @ across.T
    values, vectors = np.linalg.eigh(reduced)
    root: Array = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * size[kept]
    return root


def _squares(products: Products, solution: GainSolution) -> Array:
    """Return the sums of squared residuals (joints,)."""
    c = np.column_stack([solution.coefficients(), -np.ones(len(solution.gains))])
    result: Array = np.einsum("ja,jab,jb->j", c, products.grams, c)
    return result


# -- fit of one law --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GainFit:
    """Fit under one load law.

    Attributes:
        law: "none", "absolute" or "square".
        grams: Normal products (blocks, joints, columns, columns).
        weights: 1/σ² (joints,), 1/A².
        solution: GainSolution over all blocks.
        modelled: Modelled difference of the currents (samples, joints), A.
        payload: Torque of the payload (samples, joints), Nm.
        fitted: NRMSE fit of every joint, %.
        held_out: The same on held-out data, %.
        errors: Held-out mean squared error of every block, (blocks,); over the variance of each current.
    """

    law: str
    grams: Array
    weights: Array
    solution: GainSolution
    modelled: Array
    payload: Array
    fitted: Array
    held_out: Array
    errors: Array


def fit_payload(data: PayloadData, law: str, known: GainFit | None = None) -> GainFit:
    """Return the fit under a load law; weights and friction under load are those of the solution before.

    With a `known` fit they are those of that fit.
    """
    variances = np.array([data.difference[used, j].var() for j, used in enumerate(data.used.T)])
    weights = 1.0 / variances if known is None else known.weights
    body = np.zeros(BODY) if known is None else known.solution.body
    solution: GainSolution | None = None
    for _ in range(REWEIGHTINGS if known is None else 1):
        columns = _payload_columns(data, law, body)
        grams = _products(data, columns)
        products = Products(grams.sum(axis=0), np.arange(data.joints), body_scales(data.mass))
        solution = solve(products, weights, solution)
        variance = np.maximum(_squares(products, solution), 0.0) / np.maximum(data.used.sum(axis=0), 1)
        weights, body = 1.0 / np.maximum(variance, np.finfo(np.float64).eps * variances), solution.body
    assert solution is not None
    modelled = _modelled_difference(columns, solution)
    predicted = _predicted(data, columns, grams, weights, solution)
    return GainFit(
        law=law,
        grams=grams,
        weights=weights,
        solution=solution,
        modelled=modelled,
        payload=data.known + data.body @ body,
        fitted=_qualities(data, modelled),
        held_out=_qualities(data, predicted),
        errors=_block_errors(data, predicted, variances),
    )


def _payload_columns(data: PayloadData, law: str, body: Array) -> Array:
    """Return ``[m a + Δ | B | F]`` (samples, joints, columns); F: friction of every pair, and growth with the load."""
    payload = data.known + data.body @ body
    steady = [data.direction, data.speed, np.ones_like(data.speed)]
    friction = [np.where((data.pair == k)[:, None], values, 0.0) for k in np.unique(data.pair) for values in steady]
    if law != "none":
        power = LOAD_POWERS[law.removesuffix(ASYMMETRIC)]
        growth = load_growth(data.base + payload, power) - load_growth(data.base, power)
        friction.append((data.direction + (ASYMMETRY if law.endswith(ASYMMETRIC) else 0.0)) * growth)
    return np.concatenate([data.known[..., None], data.body, np.stack(friction, axis=-1)], axis=-1)


def _products(data: PayloadData, columns: Array) -> Array:
    """Return the normal products (blocks, joints, columns + 1, columns + 1) of the samples in motion."""
    whole = np.concatenate([columns, data.difference[..., None]], axis=-1)
    grams = np.empty((data.blocks, data.joints, whole.shape[2], whole.shape[2]))
    for block in range(data.blocks):
        inside = data.block == block
        for j in range(data.joints):
            rows = whole[inside & data.used[:, j], j]
            grams[block, j] = rows.T @ rows
    return grams


def _predicted(data: PayloadData, columns: Array, grams: Array, weights: Array, solution: GainSolution) -> Array:
    """Return the prediction (samples, joints) of every block by a fit to the other folds."""

    def predict(training: NDArray[np.bool_]) -> Array:
        gram = grams[np.unique(data.block[training])].sum(axis=0)
        products = Products(gram, np.arange(data.joints), body_scales(data.mass))
        return _modelled_difference(columns, solve(products, weights, solution))

    return held_out_predictions(data.block, predict)


def _modelled_difference(columns: Array, solution: GainSolution) -> Array:
    result: Array = np.einsum("sjc,jc->sj", columns, solution.coefficients())
    return result


def body_scales(mass: float) -> Array:
    """Return rough sizes of the inertia (6, kg m²) and first moments (3, kg m) of a payload."""
    return np.array([mass * LEVER**2] * 6 + [mass * LEVER] * 3)


def _qualities(data: PayloadData, modelled: Array) -> Array:
    """Return the NRMSE fit (%) of every joint over its samples in motion."""
    pairs = enumerate(data.used.T)
    return np.array([nrmse_percent(data.difference[used, j], modelled[used, j]) for j, used in pairs])


def _block_errors(data: PayloadData, modelled: Array, variances: Array) -> Array:
    """Return the mean squared error (blocks,) over the samples in motion of all joints, over their `variances` (A²)."""
    residual = np.where(data.used, data.difference - modelled, np.nan) / np.sqrt(variances)
    return unit_errors(residual.ravel(), np.repeat(data.block, data.joints))


# -- gains of the controller --

STANDSTILL = 2e-3
"""Largest speed (rad/s) of a joint at standstill."""
SETTLING_TIME = 0.3
"""Time (s) left out at both ends of a standstill."""
MIN_CURRENT = 0.01
"""Current (A) below which a ratio of torque and current is noise."""
LABELS = ("Target torque over target current at standstill", "target current [A]", "target torque [Nm]")


def gains_from_targets(logs: Log | Sequence[Log], robot: Robot) -> RobotGains:
    """Return the gains (Nm/A) and offsets (A) with which the controller converts target torque into target current.

    At standstill ``τ_des = K (i_des - i_0)`` holds exactly. A joint that never stands under load is fitted in motion,
    where the controller compensates friction as well: ``τ_des = K i_des - F_c sgn(v) - F_v v - F_2 v|v| - K i_0``.
    These are the gains that the controller assumes, not measured ones.

    Args:
        logs: One or more logs with target currents and target torques.
        robot: The robot.

    Raises:
        EstimationError: Without target signals, or where they do not determine any gain.
    """
    recordings = log_list(logs)
    for log in recordings:
        _check_targets(log, robot)
    joints = tuple(_gain_of_targets(recordings, j) for j in range(robot.dof))
    names = tuple(log.origin.path for log in recordings)
    if all(joint.gain is None for joint in joints):
        raise EstimationError(
            f"{', '.join(names)}: no joint stands under load and none moves enough: the target signals do not "
            "determine any gain."
        )
    return RobotGains(robot.name, "targets", joints, {}, names)


@dataclass(frozen=True, eq=False)
class _TargetSignals:
    """Signals of one joint, (samples,) each.

    Attributes:
        x: Target current, A.
        y: Target torque, Nm.
        v: Speed, rad/s.
        stand: Number of the standstill, -1 elsewhere.
        block: Number of the jackknife block.
    """

    x: Array
    y: Array
    v: Array
    stand: NDArray[np.intp]
    block: NDArray[np.intp]


def _gain_of_targets(logs: list[Log], j: int) -> JointGain:
    signals = _target_signals(logs, j)
    standing = _gain_at_standstill(signals, j)
    moving = _gain_in_motion(signals, j)
    if standing is None and moving is None:
        return JointGain(j, None, "not determined", 0.0, notes=("the joint never stands under load and hardly moves",))
    if standing is None or moving is None or standing.gain is None or moving.gain is None:
        only = standing if standing is not None else moving
        assert only is not None
        return only
    off = percent_off(moving.gain.value, standing.gain.value)
    note = f"in motion {moving.gain.value:.4g} [{moving.gain.low:.4g}, {moving.gain.high:.4g}] Nm/A ({off:+.1f} %)"
    return replace(standing, notes=(*standing.notes, note))


def _target_signals(logs: list[Log], j: int) -> _TargetSignals:
    x, y = (np.concatenate([log.channel(name)[:, j] for log in logs]) for name in ("current_des", "torque_des"))
    speeds = [(np.gradient(log.q, log.t, axis=0) if log.qd is None else log.qd)[:, j] for log in logs]
    stands: list[NDArray[np.intp]] = []
    for log, v in zip(logs, speeds, strict=True):
        stand = _standstills(log.t, v)
        before = max((int(other.max()) for other in stands), default=-1) + 1
        stands.append(np.where(stand < 0, -1, stand + before))
    block = recording_blocks([(log.samples, log.duration) for log in logs])
    return _TargetSignals(x, y, np.concatenate(speeds), np.concatenate(stands), block)


def _standstills(t: Array, v: Array) -> NDArray[np.intp]:
    """Return the number of the standstill of every sample (samples,), -1 in motion and near it."""
    number = np.full(len(t), -1, dtype=np.intp)
    for k, (begin, end) in enumerate(intervals(np.abs(v) < STANDSTILL)):
        first = t[begin] + (SETTLING_TIME if begin else 0.0)
        last = t[end - 1] - (SETTLING_TIME if end < len(t) else 0.0)
        number[begin:end][(t[begin:end] >= first) & (t[begin:end] <= last)] = k
    return number


def _gain_at_standstill(signals: _TargetSignals, j: int) -> JointGain | None:
    """Return the gain at standstill: a line over all samples, through zero where the current does not vary."""
    used = signals.stand >= 0
    x, y = signals.x[used], signals.y[used]
    if np.abs(x).max(initial=0.0) < MIN_CURRENT:
        return None
    varies = bool(np.ptp(x) > MIN_CURRENT)
    gain, level = _robust_line(np.column_stack([x, np.full(len(x), float(varies))]), y)
    if gain <= 0.0:
        return None
    offset = -level / gain
    residual, numbers = y - gain * (x - offset), len(np.unique(signals.stand[used]))
    noise = max(float(residual.std()), gain * rounding_error(float(quantum(signals.x[:, None])[0])))
    spread = rms(x - x.mean()) if varies else rms(x)
    value = value_of("gain", "Nm/A", gain, noise / spread / np.sqrt(numbers))
    return JointGain(
        joint=j,
        alone=value,
        status=gain_status(value),
        fitted=nrmse_percent(y, y - residual) if np.ptp(y) > 0.0 else 100.0,
        offset=value_of("offset", "A", offset, noise / gain / np.sqrt(numbers)) if varies else None,
        model="gain of the controller at standstill",
        curves=(slope_curve(LABELS, (x, y), gain, (value.low, value.high), offset=offset, residual=residual),),
        notes=() if varies else ("one load only: the offset is taken as zero",),
    )


def _robust_line(columns: Array, y: Array) -> tuple[float, float]:
    """Return the two coefficients of columns (samples, 2) with the least sum of absolute residuals, nearly.

    Soft L1 loss beyond the median residual of least squares: single samples in which torque and current do not belong
    together do not count.
    """
    start = scaled_solution(columns, y)
    usual = float(np.median(np.abs(y - columns @ start)))
    if usual == 0.0:
        return float(start[0]), float(start[1])
    found = least_squares(
        lambda c: columns @ c - y, start, lambda c: columns, x_scale="jac", loss="soft_l1", f_scale=usual
    )
    return float(found.x[0]), float(found.x[1])


def _gain_in_motion(signals: _TargetSignals, j: int) -> JointGain | None:
    """Return the gain in motion, with the friction compensation of the controller."""
    used = np.abs(signals.v) > SLOW
    blocks = len(np.unique(signals.block[used]))
    if blocks < MIN_BLOCKS or np.ptp(signals.x[used]) < MIN_CURRENT:
        return None
    v, y = signals.v[used], signals.y[used]
    columns = np.column_stack([signals.x[used], direction(v), viscous_columns(v, (1, 2)), np.ones(len(v)), y])
    found, errors = jackknife(gram_solution, block_grams(columns, signals.block[used]))
    factor = student_factor(blocks - 1)
    without = columns[:, 1:-1] @ np.linalg.lstsq(columns[:, 1:-1], y, rcond=None)[0]
    modelled = columns[:, :-1] @ found
    explained = nrmse_percent(y - without, modelled - without)
    if explained < MIN_QUALITY or found[0] - factor * errors[0] <= 0.0:
        return None
    value = value_of("gain", "Nm/A", found[0], errors[0], factor)
    return JointGain(
        joint=j,
        alone=value,
        status=gain_status(value),
        fitted=nrmse_percent(y, modelled),
        offset=value_of("offset", "A", -found[-1] / found[0], errors[-1] / found[0], factor),
        model="gain of the controller in motion, with its friction compensation",
        notes=("from motion alone: the joint never stands under load",),
    )


def _check_targets(log: Log, robot: Robot) -> None:
    check_joints(log, robot)
    refuse_faulty(log, robot)
    for name, columns in (("current_des", "target currents (i_des1..)"), ("torque_des", "target torques (tau_des1..)")):
        if name not in log.available:
            raise EstimationError(
                f"{log.origin.path}: no {columns}, which determine the gains of the controller. Log them, or use a "
                "pair of logs without and with a known payload."
            )
