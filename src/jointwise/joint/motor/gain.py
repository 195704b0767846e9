"""What is known about the gains of a robot's drives, and how it goes into a joint model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.joint.part import Alternative, Curve, Part, Value
from jointwise.spatial import Array

Status = Literal["determined", "hardly determined", "not determined"]
SHARP = 0.1
"""Half width of a gain's interval, as a part of the gain, up to which it counts as determined."""
EXPLAINED = 75.0
"""NRMSE % on data left out from which a gain counts as determined: below it, something else moved the current."""
BLUNT = 0.5
"""The same up to which it is told at all."""
RELATION = "the torque constant at the shaft is gain / gear ratio = (3 p / 2) Psi, p pole pairs, Psi flux linkage"


@dataclass(frozen=True)
class JointGain:
    """The drive gain of one joint (0-based), Nm/A: None where it is not determined.

    `alone` follows from this joint, `shared` from all joints with the same drive; `offset` of the current, A. `fitted`
    and `held_out` are NRMSE %.
    """

    joint: int
    alone: Value | None
    status: Status
    fitted: float
    held_out: float | None = None
    shared: Value | None = None
    offset: Value | None = None
    model: str = ""
    alternatives: tuple[Alternative, ...] = ()
    curves: tuple[Curve, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gain(self) -> Value | None:
        """The gain to use: that of all like drives where several tell it."""
        return self.alone if self.shared is None else replace(self.shared, name="gain")


@dataclass(frozen=True)
class GainEstimate:
    """Drive gains of a robot: `method` "payload" or "targets", one entry a joint."""

    robot: str
    method: str
    joints: tuple[JointGain, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    logs: tuple[str, ...] = ()

    @property
    def gains(self) -> Array:
        """Gains (joints,), Nm/A; NaN where not determined."""
        return np.array([np.nan if own.gain is None else own.gain.value for own in self.joints])

    def part(self, joint: int, gear_ratio: float | None = None) -> Part:
        """Return what is known about the motor of a joint (0-based); refuse where its gain is not determined."""
        own = self.joints[joint]
        if own.gain is None:
            raise EstimationError(
                f"{', '.join(self.logs)}: joint {joint + 1}: the drive gain is not determined"
                f"{': ' + own.notes[0] if own.notes else ''}."
            )
        alone = [replace(own.alone, name="gain_alone")] if own.alone and own.shared else []
        values = [own.gain, *alone, *([own.offset] if own.offset else [])]
        if gear_ratio:
            values.append(torque_constant(own.gain, gear_ratio))
        return Part(
            phenomenon="motor",
            model=own.model,
            values=tuple(values),
            fitted=own.fitted,
            held_out=own.held_out,
            settings={"method": self.method, "status": own.status, "gear_ratio": gear_ratio, **self.settings},
            alternatives=own.alternatives,
            curves=own.curves,
            notes=(*own.notes, RELATION),
            logs=self.logs,
        )


def inverse_value(name: str, unit: str, inverse: float, deviation: float, factor: float) -> Value | None:
    """Return 1/g with the interval ``1/(g ± factor σ_g)``; None where g is not above zero in all of it or too wide."""
    half = factor * deviation
    if not inverse > half or half > BLUNT * inverse or not np.isfinite(half):
        return None
    gain = 1.0 / float(inverse)
    return Value(
        name, unit, gain, float(deviation) * gain**2, float(1.0 / (inverse + half)), float(1.0 / (inverse - half))
    )


def status_of(value: Value | None, held_out: float = 100.0) -> Status:
    """Return how well a gain is known by its interval and by how much (NRMSE %) of data left out it explains."""
    if value is None:
        return "not determined"
    half = 0.5 * (value.high - value.low)
    sharp = half <= SHARP * value.value and held_out >= EXPLAINED
    return "determined" if sharp else "hardly determined"


def torque_constant(gain: Value, gear_ratio: float) -> Value:
    """Return ``K_τ = K / r`` at the motor shaft, Nm/A, from the gain K at the joint and the gear ratio r."""
    numbers = (gain.value, gain.deviation, gain.low, gain.high)
    return Value("torque_constant", "Nm/A", *(number / gear_ratio for number in numbers))


def flux_linkage(constant: float, pole_pairs: int) -> float:
    """Return Ψ (Vs) of ``K_τ = (3 p / 2) Ψ`` for a torque constant at the shaft (Nm/A) and p pole pairs."""
    if pole_pairs < 1:
        raise EstimationError(f"pole pairs must be 1 or more. Got {pole_pairs} instead.")
    return 2.0 * constant / (3.0 * pole_pairs)


def same_drives(robot: Robot) -> tuple[tuple[int, ...], ...]:
    """Return joints (0-based) that the description gives the same drive: equal gain, ratio, rotor and effort limit.

    Only that they are equal is used of it, not how large. Joints without a described gain stand alone.
    """
    kinds: dict[object, list[int]] = {}
    for k, joint in enumerate(robot.joints):
        motor = joint.motor
        known = motor.joint_gain is not None
        kind = (motor.joint_gain, motor.gear_ratio, motor.rotor_inertia, joint.limits.effort) if known else k
        kinds.setdefault(kind, []).append(k)
    return tuple(tuple(own) for own in kinds.values())
