"""Limits of an excitation as a smooth penalty for its optimisation, and as a strict check of its result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jointwise.description.robot import Robot
from jointwise.design.clearance import APART, RESERVE, Clearance, straight_path
from jointwise.design.limits import MotionLimits, motion_limits, unit_of, upright_posture
from jointwise.design.trajectory import States, check_positive
from jointwise.errors import ModelError
from jointwise.spatial import Array

REQUIRED = ("lower", "upper", "velocity", "effort")
"""Limits that the description of every joint must have."""
USED = 0.98
"""Share of a limit beyond which the penalty begins: the rest covers what a penalty cannot enforce exactly."""
GAP = 0.05
"""Length (m) by which a violated clearance counts as much as a limit exceeded by its whole size."""
NARROWEST = 0.01
"""Range (rad, m) of a joint below which its position limits permit no excitation."""
STEP = 1e-6
"""Step (rad, m) of the finite differences of distances."""
APPROACH = 5
"""Every how many postures of the straight path to the first pose are part of the penalty."""


def check_described(robot: Robot, what: str = "an excitation") -> None:
    """Raise `ModelError` with the limits that the description of a robot lacks for `what`."""
    missing: dict[tuple[int, ...], list[str]] = {}
    for name in REQUIRED:
        without = tuple(j + 1 for j, joint in enumerate(robot.joints) if getattr(joint.limits, name) is None)
        missing.setdefault(without, []).append(name)
    everywhere = len(robot.joints)
    lacking = [
        f"{', '.join(names)} of {'all joints' if len(which) == everywhere else f'joint {_listed(which)}'}"
        for which, names in missing.items()
        if which
    ]
    if lacking:
        raise ModelError(
            f"robot '{robot.name}' must have limits for {what}. Its description lacks {'; '.join(lacking)}: "
            "state lower, upper, velocity and effort of every [[joint]] (TOML), or <limit> of every joint (URDF)."
        )


def _listed(joints: tuple[int, ...]) -> str:
    return ", ".join(map(str, joints))


@dataclass(frozen=True)
class Use:
    """The largest use of a kind of limit along a motion.

    Attributes:
        kind: Kind of limit.
        where: Joint or part at which it occurs.
        share: Share of the limit; above 1 it is exceeded.
    """

    kind: str
    where: str
    share: float


@dataclass(frozen=True)
class ExcitationLimits:
    """Limits of an excitation: motion, torque, and clearance with the path to the first pose.

    Where a transmission is coupled, torques are those of the motors, and the speed limit of a joint is also that of its
    motor.

    Attributes:
        motion: Limits of position, speed and acceleration.
        effort: Largest torques, (joints,), Nm.
        clearance: Distances to keep.
        home: Posture from which the arm moves straight to the first pose, (joints,), rad or m.
        reserve: Distance that the penalty adds to the clearance, m.
    """

    motion: MotionLimits
    effort: Array
    clearance: Clearance
    home: Array
    reserve: float = 2.0 * RESERVE

    @cached_property
    def turning(self) -> Array:
        """What has a speed limit, as a function of the joint speeds, (limits, joints): joints, then coupled motors."""
        coupling, joints = self.clearance.body.robot.transmission, np.eye(len(self.effort))
        return joints if coupling is None else np.vstack([joints, coupling.matrix[self._coupled]])

    @cached_property
    def _coupled(self) -> NDArray[np.intp]:
        """The motors (0-based) that turn with other joints than their own."""
        coupling = self.clearance.body.robot.transmission
        apart = np.empty((0, 0)) if coupling is None else coupling.matrix - np.eye(len(coupling.matrix))
        return np.flatnonzero(apart.any(axis=1))

    @property
    def speeds(self) -> Array:
        """Largest speeds of what turns, (limits,), rad/s or m/s."""
        return np.concatenate([self.motion.velocity, self.motion.velocity[self._coupled]])

    def penalty(self, states: States, torque: Array, center: Array) -> tuple[float, list[Array], Array]:
        """Return Σ max(0, excess)² over samples and limits, and its gradient.

        The gradient is that with respect to q, q̇, q̈ and torque, (samples, joints) each, and to the first pose
        `center` (joints,), which is the end of the path from `home`.
        """
        total, gradients = self.excess(states, torque)
        path = straight_path(self.home, center)[::APPROACH]
        close, slope = self.closeness(np.concatenate([states.q, path]))
        gradients[0] = gradients[0] + slope[: len(states.q)]
        at_center = np.linspace(0.0, 1.0, len(path)) @ slope[len(states.q) :]
        return total + close, gradients, at_center

    def excess(self, states: States, torque: Array) -> tuple[float, list[Array]]:
        """Return Σ max(0, excess)² of position, speed, acceleration and torque, and its gradient to these four."""
        limits, span = self.motion, self.motion.upper - self.motion.lower
        middle = 0.5 * (limits.lower + limits.upper)
        total, gradients = 0.0, []
        signals = (states.q - middle, states.qd @ self.turning.T, states.qdd, torque)
        for values, limit in zip(signals, (0.5 * span, self.speeds, limits.acceleration, self.effort), strict=True):
            excess = np.maximum(np.abs(values) / limit - USED, 0.0)
            total += float(np.square(excess).sum())
            gradients.append(2.0 * excess * np.sign(values) / limit)
        gradients[1] = gradients[1] @ self.turning
        return total, gradients

    def closeness(self, q: Array) -> tuple[float, Array]:
        """Return Σ max(0, lacking distance)² over postures q (samples, joints), and its gradient."""
        lacking = self._lacking(q)
        slope = np.zeros_like(q)
        near = np.flatnonzero((lacking > 0.0).any(axis=0))
        if len(near):
            dof = q.shape[1]
            moved = q[near][None] + STEP * np.eye(dof)[:, None]
            changed = self._lacking(moved.reshape(-1, dof)).reshape(2, dof, len(near))
            rates = (changed - lacking[:, None, near]) / STEP
            slope[near] = 2.0 * np.einsum("cs,cjs->sj", np.maximum(lacking[:, near], 0.0), rates)
        return float(np.square(np.maximum(lacking, 0.0)).sum()), slope

    def _lacking(self, q: Array) -> Array:
        """Return by how much of `GAP` postures are too close to plane and links, (2, samples); negative if clear."""
        body, plane = self.clearance.body, self.clearance.plane
        heights = np.minimum(body.heights(q), 1e3) - max(plane, -1e3)
        distances = np.minimum(body.distances(q), 1e3) - APART
        result: Array = (self.reserve - np.stack([heights, distances])) / GAP
        return result

    def uses(self, states: States, torque: Array) -> list[Use]:
        """Return the largest use of the limits of position, speed, acceleration and torque."""
        limits = self.motion
        middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
        shares = {
            "position": (states.q - middle) / half,
            "speed": states.qd @ self.turning.T / self.speeds,
            "acceleration": states.qdd / limits.acceleration,
            "torque": torque / self.effort,
        }
        peaks = {kind: np.abs(values).max(axis=0) for kind, values in shares.items()}
        return [Use(kind, self._name(int(peak.argmax())), float(peak.max())) for kind, peak in peaks.items()]

    def _name(self, k: int) -> str:
        dof = len(self.effort)
        return f"joint {k + 1}" if k < dof else f"motor {self._coupled[k - dof] + 1}"

    def is_clear(self, q: Array, center: Array, reserve: float = 0.0) -> bool:
        """Return whether a motion q (samples, joints) and the path to its first pose `center` are clear."""
        return self.clearance.is_clear(np.concatenate([q, straight_path(self.home, center)]), reserve)


def excitation_limits(
    robot: Robot, speed: float, clearance: Clearance, acceleration: float | None = None
) -> ExcitationLimits:
    """Return the limits of an excitation at a share of the speed limits.

    `acceleration` (rad/s², m/s²) is the limit of joints whose description has none; None for those of `DEFAULTS`.

    Raises:
        ModelError: If the description lacks limits, or they permit no motion.

    """
    check_described(robot)
    if acceleration is not None:
        check_positive(acceleration=acceleration)
    limits = motion_limits(robot, speed)
    if acceleration is not None:
        missing = np.array([joint.limits.acceleration is None for joint in robot.joints])
        limits = replace(limits, acceleration=np.where(missing, acceleration, limits.acceleration))
    for j, (lower, upper) in enumerate(zip(limits.lower, limits.upper, strict=True)):
        if upper - lower < NARROWEST:
            raise ModelError(
                f"the position limits of joint {j + 1} '{robot.joints[j].name}' permit no excitation: lower "
                f"{robot.joints[j].limits.lower:.4g}, upper {robot.joints[j].limits.upper:.4g} {unit_of(robot, j)}."
            )
    home = np.clip(upright_posture(robot), limits.lower, limits.upper)
    if not clearance.is_clear(home[None], RESERVE):
        raise clearance.error("the upright pose, where an excitation begins,", home[None])
    effort = np.array([cast(float, joint.limits.effort) for joint in robot.joints])
    return ExcitationLimits(limits, effort, clearance, home)
