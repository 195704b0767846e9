"""A plan: the experiments on one joint of a robot, checked against its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.payload import Payload
from jointwise.description.robot import Robot
from jointwise.errors import ModelError, nearest
from jointwise.model.rigid import forward_kinematics, gravity_torque, inverse_dynamics
from jointwise.model.skeleton import Tool
from jointwise.plan.purpose import PURPOSES, Purpose
from jointwise.simulation.references import (
    APART,
    Body,
    Experiment,
    Nearest,
    make_experiment,
    straight_way,
    upright_posture,
)
from jointwise.simulation.references.clearance import ClearanceError, passed, told_gap, told_height
from jointwise.simulation.references.trajectory import States
from jointwise.spatial import Array

LOOKED_AT = 100.0
"""Rate (Hz) at which motions are looked at for their extremes."""
CLEARANCE = 0.05
"""Height (m) above the mounting plane that plans keep unless told otherwise."""
STRAIGHT = np.cos(np.deg2rad(2.0))
"""Cosine of the angle within which an axis counts as along (or across) gravity."""
UNLOADED = 0.01
"""Load of gravity, as a part of the effort limit, up to which a joint counts as not loaded by it."""


@dataclass(frozen=True)
class Step:
    """One experiment of a plan: its `purpose`, the `experiment` itself, the `joint` (0-based) under test.

    `gravity` (3,) m/s² in the base frame is that of the robot as it stands, `payload` what it carries (where it does).
    A step with a `refusal` is not to be made: its experiment was planned without looking at what must be clear, and is
    not. `called` is how commands name the robot, `seed` what the motion was drawn with.
    """

    purpose: Purpose
    experiment: Experiment
    robot: Robot
    joint: int
    gravity: Array
    payload: Payload | None
    refusal: str | None = None
    called: str = ""
    seed: int = 0

    @property
    def clearance(self) -> float | None:
        """Height (m) above the mounting plane that is kept; None if nobody looks at it."""
        height = self.experiment.clearance
        return None if height is None or np.isinf(height) else height

    @cached_property
    def states(self) -> States:
        """The motion, looked at often enough for its extremes."""
        return self.experiment.motion.sample(LOOKED_AT)

    @cached_property
    def body(self) -> Body:
        """The arm and its tool as they are looked at."""
        return Body(self.robot, self.experiment.tool)

    @cached_property
    def lowest(self) -> float:
        """Lowest height (m above the mounting plane) of the arm and its tool along the motion."""
        return float(self.body.heights(passed(self.states.q)).min())

    @cached_property
    def reach(self) -> float:
        """Largest distance (m) of the arm and its tool from the axis of the base along the motion."""
        return self.body.reach(passed(self.states.q))

    @cached_property
    def nearest(self) -> Nearest | None:
        """Where two links come nearest along the motion; None for an arm that cannot meet itself."""
        return self.body.nearest(passed(self.states.q))

    @cached_property
    def home(self) -> Array:
        """Pose (joints,), upright, from which the motion is begun and where it ends."""
        return upright_posture(self.robot)

    @cached_property
    def approach(self) -> Array:
        """Postures (points, joints) on the ways from the upright pose to the motion and back."""
        return np.concatenate([straight_way(self.home, self.states.q[k]) for k in (0, -1)])

    @cached_property
    def approach_lowest(self) -> float:
        """Lowest height (m above the mounting plane) on the ways from the upright pose to the motion and back."""
        return float(self.body.heights(self.approach).min())

    @cached_property
    def approach_nearest(self) -> Nearest | None:
        """Where two links come nearest on those ways."""
        return self.body.nearest(self.approach)

    @cached_property
    def turned(self) -> bool:
        """Whether the joint's axis stands to gravity as it should."""
        return self.purpose.axis == "any" or self._angle_suits(self.gravity)

    @cached_property
    def suits(self) -> bool:
        """Whether the robot may stand as it does: the axis is as it should, or gravity does not load the joint."""
        effort = self.robot.joints[self.joint].limits.effort
        unloaded = effort is not None and self.largest_gravity < UNLOADED * effort
        return self.turned or (self.purpose.axis == "vertical" and unloaded)

    def _angle_suits(self, gravity: Array) -> bool:
        rotations = forward_kinematics(self.robot, self.states.q[:1]).rotation
        share = abs(float(rotations[0, self.joint, :, 2] @ gravity)) / float(np.linalg.norm(gravity))
        return bool(share > STRAIGHT if self.purpose.axis == "vertical" else share < np.sqrt(1.0 - STRAIGHT**2))

    @cached_property
    def largest_gravity(self) -> float:
        """Largest load of gravity on the joint along the motion as the robot stands, Nm; to the µNm."""
        load = gravity_torque(self.robot, self.states.q, gravity=self.gravity, payload=self.payload)
        return round(float(np.abs(load[:, self.joint]).max()), 6)

    def facts(self) -> dict[str, Any]:
        """Return the numbers of this step as plain JSON; angles in rad."""
        states, own = self.states, self.purpose
        moving = np.flatnonzero(np.ptp(states.q, axis=0) > 1e-6)
        return {
            "name": own.name,
            "experiment": own.experiment,
            "identifies": list(own.phenomena),
            "title": own.title,
            "why": own.why,
            "prepare": own.prepare,
            "motion": self.experiment.note,
            "duration_s": self.experiment.motion.duration,
            "runs": 2 if own.twice else 1,
            "pose_rad": states.q[0].tolist(),
            "clearance_m": self.clearance,
            "lowest_m": self.lowest,
            "reach_m": self.reach,
            "links_m": _distance(self.nearest),
            "links_nearest": None if self.nearest is None else list(self.nearest.parts),
            "home_rad": self.home.tolist(),
            "approach_lowest_m": self.approach_lowest,
            "approach_links_m": _distance(self.approach_nearest),
            "refused": self.refusal,
            "moving_joints": (moving + 1).tolist(),
            "lowest_rad": states.q.min(axis=0).tolist(),
            "highest_rad": states.q.max(axis=0).tolist(),
            "speeds_rad_s": self.speeds(),
            "fastest_rad_s": np.abs(states.qd).max(axis=0).tolist(),
            "strongest_rad_s2": np.abs(states.qdd).max(axis=0).tolist(),
            "axis": own.axis,
            "gravity_wanted": None if own.axis == "any" else self.experiment.gravity.tolist(),
            "gravity": self.gravity.tolist(),
            "mounting_suits": self.suits,
            "gravity_load_Nm": self.largest_gravity,
            "payload_kg": None if self.payload is None else self.payload.mass,
            "torque_Nm": None if self.experiment.torque is None else np.unique(self.experiment.torque.torques).tolist(),
            "log": list(own.log),
            "helps": list(own.helps),
            "log_rate_Hz": own.rate,
        }

    def speeds(self) -> list[float]:
        """Return the constant speeds of the joint under test, rad/s: those that it keeps without acceleration."""
        v, a = self.states.qd[:, self.joint], self.states.qdd[:, self.joint]
        kept = np.round(np.abs(v[(np.abs(a) < 1e-9) & (np.abs(v) > 1e-9)]), 6)
        values, counts = np.unique(kept, return_counts=True)
        return [float(value) for value, count in zip(values, counts, strict=True) if count >= 5]


@dataclass(frozen=True)
class Plan:
    """Experiments on one joint (0-based) of a robot, a `clearance` (m) above its mounting plane if one is given.

    `tool` is what the flange carries; links and tool keep apart from each other.
    """

    robot: Robot
    joint: int
    mounting: Mounting
    steps: tuple[Step, ...]
    clearance: float | None = None
    tool: Tool | None = None


def make_plan(
    robot: Robot,
    joint: int,
    names: Sequence[str] | None = None,
    *,
    mounting: Mounting = "table",
    payload: float | None = None,
    seed: int = 0,
    clearance: float | None = CLEARANCE,
    tool: Tool | None = None,
    called: str | None = None,
) -> Plan:
    """Return the experiments (all of `PURPOSES`, or some by name) that identify a joint (0-based) of a robot.

    `mounting` is how the robot stands, `payload` the mass (kg) for the experiments that carry one. Positions,
    speeds, accelerations and torques with the payload are checked against the limits. Links and `tool`
    stay apart from each other and keep a `clearance` (m) above the mounting plane, z = 0 of the base (below 0: the arm
    stands on a pedestal; None: nobody looks at the plane), also on the way from the upright pose; an experiment that
    cannot has a `refusal`. What else stands in the cell is not known. `called` is how commands name the robot: its own
    name unless given.
    """
    if not 0 <= joint < robot.dof:
        raise ModelError(f"joint must be 1 to {robot.dof}. Got {joint + 1} instead.")
    if payload is not None and not (np.isfinite(payload) and payload > 0.0):
        raise ModelError(f"payload must be a positive mass in kg. Got {payload} instead.")
    gravity = gravity_vector(mounting)
    usual = [name for name in PURPOSES if robot.revolute[joint] or name != "load"]
    chosen = usual if names is None else list(dict.fromkeys(_known(name) for name in names))
    base = _Base(robot, joint, gravity, payload, seed, clearance, tool, called or robot.name)
    steps = tuple(_step(base, _suited(PURPOSES[name], bool(robot.revolute[joint]))) for name in chosen)
    for step in steps:
        _refuse_overload(step)
    return Plan(robot, joint, mounting, steps, clearance, tool)


@dataclass(frozen=True)
class _Base:
    """What all steps of a plan share."""

    robot: Robot
    joint: int
    gravity: Array
    payload: float | None
    seed: int
    clearance: float | None
    tool: Tool | None
    called: str


def _suited(purpose: Purpose, turns: bool) -> Purpose:
    """Return a purpose for a joint that turns or slides: gravity does not load a slide whose axis is horizontal."""
    return replace(purpose, axis="horizontal") if not turns and purpose.axis == "vertical" else purpose


def _known(name: str) -> str:
    """Return the purpose of a name: its own, one of its phenomena or its experiment."""
    for own in PURPOSES.values():
        if name in (own.name, own.experiment) or (name in own.phenomena and name not in PURPOSES):
            return own.name
    raise ModelError(f"unknown experiment '{name}'. {nearest(name, PURPOSES)}")


def _step(base: _Base, purpose: Purpose) -> Step:
    """Return a step that is clear; where there is none, the step as it would be and why it is refused."""
    height = -np.inf if base.clearance is None else base.clearance
    try:
        step = _made(base, purpose, height)
    except ModelError as problem:
        free = _made(base, purpose, None)
        why = _unclear("", free.lowest, free.nearest, height)
        if why is None and not isinstance(problem, ClearanceError):
            raise
        return replace(free, refusal=why or str(problem).rstrip("."))
    why = _unclear("on the way from the upright pose it ", step.approach_lowest, step.approach_nearest, height)
    return replace(step, refusal=why)


def _made(base: _Base, purpose: Purpose, clearance: float | None) -> Step:
    alone = None if purpose.twice else base.joint
    experiment = make_experiment(
        purpose.experiment, base.robot, seed=base.seed, joint=alone, clearance=clearance, tool=base.tool
    )
    carried = Payload(base.payload) if base.payload is not None and (purpose.carries or purpose.twice) else None
    return Step(
        purpose, experiment, base.robot, base.joint, base.gravity, carried, called=base.called, seed=base.seed
    )  # fmt: skip


def _unclear(subject: str, lowest: float, nearest: Nearest | None, clearance: float) -> str | None:
    """Return why a motion, down to a height `lowest` (m) and with links so near, is refused; None if it is clear."""
    if lowest < clearance:
        return f"{subject}{told_height(lowest, 'the mounting plane')}: needs a pedestal, then --no-clearance"
    if nearest is not None and nearest.distance < APART:
        return f"{subject}{told_gap(nearest)}: needs another pose"
    return None


def _distance(nearest: Nearest | None) -> float | None:
    return None if nearest is None else nearest.distance


def _refuse_overload(step: Step) -> None:
    """Refuse a motion whose torque with the payload at the flange leaves the effort limits."""
    if step.refusal is not None:
        return
    states = step.states
    torque = inverse_dynamics(step.robot, states.q, states.qd, states.qdd, gravity=step.gravity, payload=step.payload)
    for j, joint in enumerate(step.robot.joints):
        peak = float(np.abs(torque[:, j]).max())
        if joint.limits.effort is not None and peak > joint.limits.effort:
            raise ModelError(
                f"{step.purpose.name}: joint {j + 1} would need {peak:.3g} Nm, more than its limit of "
                f"{joint.limits.effort:.3g} Nm. Choose a lighter payload."
            )
