"""Identified drive gains of a robot and their motor parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.joint.curve import Curve
from jointwise.joint.part import Part, TriedModel, Value, percent_off
from jointwise.spatial import Array

Status = Literal["determined", "hardly determined", "not determined"]
DETERMINED = 0.1
"""Half width of the 95 % confidence interval of a gain, relative to it, up to which it is determined."""
EXPLAINED = 75.0
"""NRMSE fit (%) on held-out data from which a gain is determined: below, friction dominates the current."""
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


def gain_status(value: Value | None, held_out: float | None = None) -> Status:
    """Return how well a gain is determined, by its interval and by its NRMSE fit (%) on held-out data."""
    if value is None:
        return "not determined"
    half = 0.5 * (value.high - value.low)
    determined = half <= DETERMINED * value.value and (held_out is None or held_out >= EXPLAINED)
    return "determined" if determined else "hardly determined"


def torque_constant(gain: Value, gear_ratio: float) -> Value:
    """Return ``K_τ = K / r`` at the motor shaft, Nm/A, from the gain K at the joint and the gear ratio r."""
    numbers = (gain.value, gain.deviation, gain.low, gain.high)
    return Value("torque_constant", "Nm/A", *(number / gear_ratio for number in numbers))


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
