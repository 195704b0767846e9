"""A plan of the experiments that identify one joint, checked against the limits of the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from jointwise.arguments import checked
from jointwise.description.check import require_sound
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot, check_joint
from jointwise.design.clearance import (
    APART,
    CLEARANCE,
    Body,
    ClearanceError,
    Nearest,
    describe_gap,
    describe_height,
    straight_path,
    visited_postures,
)
from jointwise.design.experiments import Experiment, make_experiment
from jointwise.design.limits import upright_posture
from jointwise.design.trajectory import States
from jointwise.document import finite_or_none
from jointwise.errors import ModelError, nearest
from jointwise.model.rigid import forward_kinematics, gravity_torque, inverse_dynamics
from jointwise.model.skeleton import Tool
from jointwise.spatial import Array

Axis = Literal["vertical", "horizontal", "any"]
BASIC = ("t", "q", "i")
"""Channels that every experiment needs: time, link positions, currents."""


@dataclass(frozen=True)
class Purpose:
    """An experiment of a plan and its requirements.

    Attributes:
        name: Name in a plan.
        experiment: Name in `jointwise simulate`.
        title: Title.
        why: Why the experiment shows what it shall identify.
        prepare: What to do before it.
        axis: Axis of the joint under test relative to gravity: "vertical", "horizontal" or "any".
        rate: Rate of the log, Hz.
        phenomena: Phenomena that it identifies, as `jointwise joint` names them.
        log: Channels that are required.
        helps: Channels that improve the result.
        twice: Whether it is run once without and once with a payload.
        carries: Whether it is run with a payload throughout.
    """

    name: str
    experiment: str
    title: str
    why: str
    prepare: str
    axis: Axis
    rate: float
    phenomena: tuple[str, ...]
    log: tuple[str, ...] = BASIC
    helps: tuple[str, ...] = ()
    twice: bool = False
    carries: bool = False


PURPOSES = {
    purpose.name: purpose
    for purpose in (
        Purpose(
            name="temperature",
            experiment="warm-up",
            title="Friction over temperature: the joint warms up by its own friction",
            why="Long motion at three speeds in turn warms the joint; the same speeds recur at every temperature, so "
            "that friction over temperature is measured at each of them.",
            prepare="Start cold: the robot has been off for hours. Repeat without a pause until the temperature is "
            "steady.",
            axis="vertical",
            rate=125.0,
            phenomena=("temperature",),
            log=("t", "q", "i", "temp"),
            helps=("qd",),
        ),
        Purpose(
            name="friction",
            experiment="constant-speed",
            title="Friction over speed: the joint moves back and forth at ten constant speeds",
            why="At constant speed nothing accelerates, and with the axis vertical gravity loads nothing: the current "
            "is friction. Speeds from 1 to 90 % of the limit in equal ratios show the Stribeck effect and the viscous "
            "rise; both directions separate friction from offsets.",
            prepare="Straight after the warm-up, so that the temperature does not drift; note it if it is not logged.",
            axis="vertical",
            rate=125.0,
            phenomena=("friction",),
            helps=("qd", "temp", "theta"),
        ),
        Purpose(
            name="load",
            experiment="load",
            title="Friction over load: the joint turns slowly into gravity and back",
            why="At 0.05 rad/s viscous friction is small and hardly changes; the gravity load changes along the "
            "motion. The mean of both directions is the load, half their difference the friction under that load.",
            prepare="Mount the heaviest payload that the robot may carry; weigh it and note its centre of mass.",
            axis="horizontal",
            rate=125.0,
            phenomena=("load", "motor"),
            helps=("qd", "temp"),
            carries=True,
        ),
        Purpose(
            name="transmission",
            experiment="reciprocate",
            title="Kinematic error, backlash and hysteresis: slow reciprocation over up to one turn",
            why="The joint reverses every 3 degrees, so that each angle is passed in both directions at very low "
            "speed and without load: the mean of both is the kinematic error, half the difference the backlash, and "
            "the torque after each reversal the hysteresis.",
            prepare="Nothing may touch the robot; a quiet floor helps. Log as fast as the controller can.",
            axis="vertical",
            rate=500.0,
            phenomena=("transmission", "hysteresis"),
            log=("t", "q", "theta", "i"),
            helps=("temp",),
        ),
        Purpose(
            name="motor",
            experiment="excitation",
            title="Drive gains: the same motion without and with a payload",
            why="The difference of the currents of two equal motions is the payload alone: its known mass gives "
            "the torque per ampere. Centre of mass and inertia of the payload are estimated with the gains.",
            prepare="Weigh the payload (its centre need not be known). Run the program without it, mount it, run again "
            "immediately, at the same joint temperatures. All joints move.",
            axis="any",
            rate=125.0,
            phenomena=("motor",),
            helps=("qd", "i_des", "tau_des", "temp"),
            twice=True,
        ),
        Purpose(
            name="stiffness",
            experiment="locked",
            title="Stiffness: the output is locked, the torque rises and falls",
            why="With the output locked the whole deformation of the gear appears between the two encoders. Ramps to "
            "four levels and back, in both directions, show the increasing stiffness and closed hysteresis loops.",
            prepare="Clamp the link of the joint to something stiff, or hold the joint by its controller and pull at "
            "the link with a force gauge at a known lever. Write the torque at the output into the column tau.",
            axis="vertical",
            rate=500.0,
            phenomena=("stiffness",),
            log=("t", "q", "theta", "i"),
            helps=("tau", "temp"),
        ),
    )
}
"""Experiments of a plan by name, in the recommended order: the cold start first, the clamped output last."""


SAMPLE_RATE = 100.0
"""Rate (Hz) at which motions are sampled to find their extremes."""
ALIGNED = np.cos(np.deg2rad(2.0))
"""Cosine of the largest angle (2 degrees) of an axis that counts as along, or across, gravity."""
UNLOADED = 0.01
"""Gravity load, as a share of the effort limit, below which a joint counts as unloaded."""


@dataclass(frozen=True)
class PlannedExperiment:
    """One experiment of a plan.

    Attributes:
        purpose: What it identifies.
        experiment: Motion and torque.
        robot: The robot.
        joint: The joint (0-based) under test.
        gravity: Gravity of the actual mounting in the base frame, m/s², (3,).
        payload: What the robot carries; None for nothing.
        rejection: Why it must not be performed (it does not keep the clearance); None if it may.
        called: The robot as commands name it.
        seed: Seed of the motion.
    """

    purpose: Purpose
    experiment: Experiment
    robot: Robot
    joint: int
    gravity: Array
    payload: Payload | None
    rejection: str | None = None
    called: str = ""
    seed: int = 0

    @property
    def clearance(self) -> float | None:
        """Height (m) above the mounting plane that is kept; None if it is not checked."""
        height = self.experiment.clearance
        return None if height is None or np.isinf(height) else height

    @cached_property
    def states(self) -> States:
        """The motion, sampled at `SAMPLE_RATE`."""
        return self.experiment.motion.sample(SAMPLE_RATE)

    @cached_property
    def body(self) -> Body:
        """Collision geometry of the arm and its tool."""
        return Body(self.robot, self.experiment.tool)

    @cached_property
    def lowest(self) -> float:
        """Lowest height (m above the mounting plane) of the arm and its tool along the motion."""
        return float(self.body.heights(visited_postures(self.states.q)).min())

    @cached_property
    def reach(self) -> float:
        """Largest distance (m) of the arm and its tool from the axis of the base along the motion."""
        return self.body.reach(visited_postures(self.states.q))

    @cached_property
    def nearest(self) -> Nearest | None:
        """Where two links come nearest along the motion; None if none can collide."""
        return self.body.nearest(visited_postures(self.states.q))

    @cached_property
    def home(self) -> Array:
        """Upright pose (joints,) before and after the motion."""
        return upright_posture(self.robot)

    @cached_property
    def approach(self) -> Array:
        """Postures (points, joints) on the paths from the upright pose to the motion and back."""
        return np.concatenate([straight_path(self.home, self.states.q[k]) for k in (0, -1)])

    @cached_property
    def approach_lowest(self) -> float:
        """Lowest height (m above the mounting plane) on the paths from the upright pose to the motion and back."""
        return float(self.body.heights(self.approach).min())

    @cached_property
    def approach_nearest(self) -> Nearest | None:
        """Where two links come nearest on those paths."""
        return self.body.nearest(self.approach)

    @cached_property
    def turned(self) -> bool:
        """Whether the axis of the joint is oriented to gravity as the experiment requires."""
        return self.purpose.axis == "any" or self._angle_suits(self.gravity)

    @cached_property
    def suits(self) -> bool:
        """Whether the mounting is suitable: the axis is oriented as required, or gravity does not load the joint."""
        effort = self.robot.joints[self.joint].limits.effort
        unloaded = effort is not None and self.largest_gravity < UNLOADED * effort
        return self.turned or (self.purpose.axis == "vertical" and unloaded)

    def _angle_suits(self, gravity: Array) -> bool:
        rotations = forward_kinematics(self.robot, self.states.q[:1]).rotation
        share = abs(float(rotations[0, self.joint, :, 2] @ gravity)) / float(np.linalg.norm(gravity))
        return bool(share > ALIGNED if self.purpose.axis == "vertical" else share < np.sqrt(1.0 - ALIGNED**2))

    @cached_property
    def largest_gravity(self) -> float:
        """Largest gravity load on the joint along the motion in the actual mounting, Nm; rounded to µNm."""
        load = gravity_torque(self.robot, self.states.q, gravity=self.gravity, payload=self.payload)
        return round(float(np.abs(load[:, self.joint]).max()), 6)

    def facts(self) -> dict[str, Any]:
        """Return the figures of this experiment as plain JSON; angles in rad."""
        states, purpose = self.states, self.purpose
        moving = np.flatnonzero(np.ptp(states.q, axis=0) > 1e-6)
        return {
            "name": purpose.name,
            "experiment": purpose.experiment,
            "identifies": list(purpose.phenomena),
            "title": purpose.title,
            "why": purpose.why,
            "prepare": purpose.prepare,
            "motion": self.experiment.note,
            "duration_s": self.experiment.motion.duration,
            "runs": 2 if purpose.twice else 1,
            "pose_rad": states.q[0].tolist(),
            "clearance_m": self.clearance,
            "lowest_m": finite_or_none(self.lowest),
            "reach_m": self.reach,
            "links_m": _distance(self.nearest),
            "links_nearest": None if self.nearest is None else list(self.nearest.parts),
            "home_rad": self.home.tolist(),
            "approach_lowest_m": finite_or_none(self.approach_lowest),
            "approach_links_m": _distance(self.approach_nearest),
            "refused": self.rejection,
            "moving_joints": (moving + 1).tolist(),
            "lowest_rad": states.q.min(axis=0).tolist(),
            "highest_rad": states.q.max(axis=0).tolist(),
            "speeds_rad_s": self.speeds(),
            "fastest_rad_s": np.abs(states.qd).max(axis=0).tolist(),
            "strongest_rad_s2": np.abs(states.qdd).max(axis=0).tolist(),
            "axis": purpose.axis,
            "gravity_wanted": None if purpose.axis == "any" else self.experiment.gravity.tolist(),
            "gravity": self.gravity.tolist(),
            "mounting_suits": self.suits,
            "gravity_load_Nm": self.largest_gravity,
            "payload_kg": None if self.payload is None else self.payload.mass,
            "torque_Nm": None if self.experiment.torque is None else np.unique(self.experiment.torque.torques).tolist(),
            "log": list(purpose.log),
            "helps": list(purpose.helps),
            "log_rate_Hz": purpose.rate,
        }

    def speeds(self) -> list[float]:
        """Return the speeds (rad/s) that the joint under test keeps without acceleration."""
        v, a = self.states.qd[:, self.joint], self.states.qdd[:, self.joint]
        kept = np.round(np.abs(v[(np.abs(a) < 1e-9) & (np.abs(v) > 1e-9)]), 6)
        values, counts = np.unique(kept, return_counts=True)
        return [float(value) for value, count in zip(values, counts, strict=True) if count >= 5]


@dataclass(frozen=True)
class Plan:
    """Experiments on one joint of a robot; links and tool are kept apart.

    Attributes:
        robot: The robot.
        joint: Joint under test, 0-based.
        steps: The experiments in their order.
        clearance: Height kept above the mounting plane, m; None if it is not checked.
        tool: Tool that is kept apart from the links; None for none.
    """

    robot: Robot
    joint: int
    steps: tuple[PlannedExperiment, ...]
    clearance: float | None = None
    tool: Tool | None = None


@checked
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
    """Return the experiments that identify a joint of a robot.

    Positions, speeds, accelerations and torques with the payload are checked against the limits. Links and tool keep
    apart from each other and above the mounting plane, also on the paths from and to the upright pose; an experiment
    that cannot has a `rejection`. Other objects in the cell are not considered.

    Args:
        robot: The robot.
        joint: Index of the joint (0-based).
        names: Names of experiments or phenomena; None for all of `PURPOSES` that apply to the joint.
        mounting: Mounting of the robot.
        payload: Mass (kg) for the experiments that carry a payload.
        seed: Seed of random motions.
        clearance: Height (m) above the mounting plane, z = 0 of the base frame, that is kept; negative for an arm on a
            pedestal, None to ignore the plane.
        tool: Geometry of the tool.
        called: The robot as commands name it; None for its name.

    Raises:
        ModelError: If an argument is invalid or a motion exceeds the limits of the robot.
    """
    check_joint(robot, joint)
    if payload is not None and not (np.isfinite(payload) and payload > 0.0):
        raise ModelError(f"payload must be a positive mass in kg. Got {payload} instead.")
    require_sound(robot)
    gravity, chosen = gravity_vector(mounting), _chosen(names, bool(robot.revolute[joint]))
    setup = _PlanSetup(robot, joint, gravity, payload, seed, clearance, tool, called or robot.name)
    steps = tuple(_step(setup, _suited(PURPOSES[name], bool(robot.revolute[joint]))) for name in chosen)
    for step in steps:
        _check_overload(step)
    return Plan(robot, joint, steps, clearance, tool)


@dataclass(frozen=True)
class _PlanSetup:
    """What all experiments of a plan share."""

    robot: Robot
    joint: int
    gravity: Array
    payload: float | None
    seed: int
    clearance: float | None
    tool: Tool | None
    called: str


def _suited(purpose: Purpose, revolute: bool) -> Purpose:
    """Return the purpose for a revolute or a prismatic joint: gravity does not load a horizontal prismatic axis."""
    return replace(purpose, axis="horizontal") if not revolute and purpose.axis == "vertical" else purpose


def _chosen(names: Sequence[str] | None, revolute: bool) -> list[str]:
    """Return the names of the purposes, without repetitions; by default all that apply to a joint."""
    if names is None:
        return [name for name in PURPOSES if revolute or name != "load"]
    return list(dict.fromkeys(_purpose_name(name) for name in names))


def _purpose_name(name: str) -> str:
    """Return the name of the purpose that has this name, experiment or phenomenon."""
    for purpose in PURPOSES.values():
        if name in (purpose.name, purpose.experiment) or (name in purpose.phenomena and name not in PURPOSES):
            return purpose.name
    raise ModelError(f"unknown experiment '{name}'. {nearest(name, PURPOSES)}")


def _step(setup: _PlanSetup, purpose: Purpose) -> PlannedExperiment:
    """Return an experiment that keeps the clearance; if there is none, the unchecked one with the reason."""
    height = -np.inf if setup.clearance is None else setup.clearance
    try:
        step = _made(setup, purpose, height)
    except ModelError as problem:
        free = _made(setup, purpose, None)
        why = _unclear("", free.lowest, free.nearest, height)
        if why is None and not isinstance(problem, ClearanceError):
            raise
        return replace(free, rejection=why or str(problem).rstrip("."))
    why = _unclear("on the path from the upright pose it ", step.approach_lowest, step.approach_nearest, height)
    return replace(step, rejection=why)


def _made(setup: _PlanSetup, purpose: Purpose, clearance: float | None) -> PlannedExperiment:
    alone = None if purpose.twice else setup.joint
    experiment = make_experiment(
        purpose.experiment, setup.robot, seed=setup.seed, joint=alone, clearance=clearance, tool=setup.tool
    )
    carried = Payload(setup.payload) if setup.payload is not None and (purpose.carries or purpose.twice) else None
    return PlannedExperiment(
        purpose, experiment, setup.robot, setup.joint, setup.gravity, carried, called=setup.called, seed=setup.seed
    )  # fmt: skip


def _unclear(subject: str, lowest: float, nearest: Nearest | None, clearance: float) -> str | None:
    """Return why a motion with this lowest height (m) and nearest links is rejected; None if it is clear."""
    if lowest < clearance:
        return f"{subject}{describe_height(lowest, 'the mounting plane')}: needs a pedestal, then --no-clearance"
    if nearest is not None and nearest.distance < APART:
        return f"{subject}{describe_gap(nearest)}: needs another pose"
    return None


def _distance(nearest: Nearest | None) -> float | None:
    return None if nearest is None else nearest.distance


def _check_overload(step: PlannedExperiment) -> None:
    """Reject a motion whose torque, with the payload at the flange, exceeds the effort limits."""
    if step.rejection is not None:
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
