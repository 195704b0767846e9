"""Purpose of each experiment: what it identifies, the mounting it needs, what to log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
