"""Why each experiment is made, how the robot must stand, what to log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jointwise.joint.phenomenon import PHENOMENA

Axis = Literal["vertical", "horizontal", "any"]
BASIC = ("t", "q", "i")
"""Channels that every experiment needs: time, link positions, currents."""


@dataclass(frozen=True)
class Purpose:
    """One experiment and what it takes.

    `experiment` as `jointwise simulate` names it; `axis` of the joint under test against gravity; `log` the channels
    without which nothing can be identified, `helps` those that make it better; `rate` (Hz) to log with; `twice`: once
    without and once with a payload; `carries`: with one all along.
    """

    name: str
    experiment: str
    title: str
    why: str
    prepare: str
    axis: Axis
    rate: float
    log: tuple[str, ...] = BASIC
    helps: tuple[str, ...] = ()
    twice: bool = False
    carries: bool = False

    @property
    def phenomena(self) -> tuple[str, ...]:
        """What it identifies: the phenomenon of its name, and those whose experiment it is."""
        return tuple(
            own.name for own in PHENOMENA.values() if own.name == self.name or own.experiment == self.experiment
        )


PURPOSES = {
    own.name: own
    for own in (
        Purpose(
            name="temperature",
            experiment="warm-up",
            title="Friction over temperature: the joint warms up by itself",
            why="Minutes of motion at three speeds in turn warm the joint; the same speeds come back at every "
            "temperature, so that friction over temperature shows at each of them.",
            prepare="Start cold: the robot has been off for hours. Repeat without a pause until the temperature rests.",
            axis="vertical",
            rate=125.0,
            log=("t", "q", "i", "temp"),
            helps=("qd",),
        ),
        Purpose(
            name="friction",
            experiment="constant-speed",
            title="Friction over speed: the joint turns to and fro at ten constant speeds",
            why="At constant speed nothing accelerates, and with the axis vertical gravity loads nothing: the current "
            "is friction. Speeds from 1 to 90 % of the limit in equal ratios show the fall after break-away and the "
            "rise beyond; both directions separate friction from offsets.",
            prepare="Straight after the warm-up, so that the temperature does not drift; note it if it is not logged.",
            axis="vertical",
            rate=125.0,
            helps=("qd", "temp", "theta"),
        ),
        Purpose(
            name="load",
            experiment="load",
            title="Friction over load: the joint turns slowly into gravity and back",
            why="At 0.05 rad/s viscous friction is small and hardly changes; the load of gravity changes along the "
            "way. The mean of both directions is the load, half their difference the friction under that load.",
            prepare="Mount the heaviest payload that the robot may carry; weigh it and note its centre of mass.",
            axis="horizontal",
            rate=125.0,
            helps=("qd", "temp"),
            carries=True,
        ),
        Purpose(
            name="transmission",
            experiment="reciprocate",
            title="Kinematic error, backlash and hysteresis: slow reciprocation over up to one turn",
            why="Every 3 degrees the joint turns back, so that each angle is passed in both directions with next to no "
            "speed and no load: the mean of both is the kinematic error, half the difference the backlash, and the "
            "torque after each reversal the hysteresis.",
            prepare="Nothing may touch the robot; a quiet floor helps. Log as fast as the controller can.",
            axis="vertical",
            rate=500.0,
            log=("t", "q", "theta", "i"),
            helps=("temp",),
        ),
        Purpose(
            name="motor",
            experiment="excitation",
            title="Drive gains: the same motion without and with a payload",
            why="The difference of the currents of two equal motions is the payload alone: its known mass tells how "
            "many Nm an ampere is worth. Centre of mass and inertia of the payload are found with the gains.",
            prepare="Weigh the payload (its centre need not be known). Run the program without it, mount it, run again "
            "soon after, while the joints are as warm. All joints move.",
            axis="any",
            rate=125.0,
            helps=("qd", "i_des", "tau_des", "temp"),
            twice=True,
        ),
        Purpose(
            name="stiffness",
            experiment="locked",
            title="Stiffness: the output is locked, the torque rises and falls",
            why="With the output locked all wind-up of the gear shows between the two encoders. Ramps up to four "
            "levels and back, in both directions, show the rising stiffness and leave the loop of hysteresis closed.",
            prepare="Clamp the link of the joint to something stiff, or hold the joint by its controller and pull at "
            "the link with a force gauge at a known lever. Write the torque at the output into the column tau.",
            axis="vertical",
            rate=500.0,
            log=("t", "q", "theta", "i"),
            helps=("tau", "temp"),
        ),
    )
}
"""Experiments of a plan by name, in the order in which they are best made: cold first, the clamp last."""
