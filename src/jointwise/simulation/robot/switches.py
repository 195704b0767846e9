"""Switching phenomena off, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from jointwise.errors import ModelError, nearest
from jointwise.model.spring import Rigid
from jointwise.simulation.robot.friction import COULOMB_LIMIT, Friction, Slip, Stribeck, Warmth
from jointwise.simulation.robot.gear import Backlash, LostMotion
from jointwise.simulation.robot.joint import JointPlant

Switch = Callable[[JointPlant], JointPlant]


def _friction(**changes: object) -> Switch:
    def switch(joint: JointPlant) -> JointPlant:
        return replace(joint, friction=replace(joint.friction, **changes))  # type: ignore[arg-type]

    return switch


def _without_hysteresis(joint: JointPlant) -> JointPlant:
    """Leave sgn ω: one element that slips after 10 µrad of the mean backlash."""
    slip = Slip((COULOMB_LIMIT / joint.backlash.mean,), (1.0,))
    return replace(joint, friction=replace(joint.friction, slip=slip))


def _rigid(joint: JointPlant) -> JointPlant:
    return replace(joint, stiffness=Rigid(), damping=0.0, kinematic_error=(), lost_motion=LostMotion())


SWITCHES: dict[str, Switch] = {
    "stiffness": _rigid,
    "damping": lambda joint: replace(joint, damping=0.0),
    "friction": lambda joint: replace(joint, friction=Friction()),
    "hysteresis": _without_hysteresis,
    "load": _friction(load=0.0),
    "stribeck": _friction(stribeck=Stribeck()),
    "viscous": _friction(viscous=0.0, square=0.0, cube=0.0),
    "temperature": _friction(warmth=Warmth()),
    "asymmetry": _friction(asymmetry=0.0),
    "backlash": lambda joint: replace(joint, backlash=Backlash((joint.backlash.mean,))),
    "kinematic_error": lambda joint: replace(joint, kinematic_error=()),
    "lost_motion": lambda joint: replace(joint, lost_motion=LostMotion()),
    "current_limit": lambda joint: replace(joint, motor=replace(joint.motor, limit=math.inf)),
    "current_lag": lambda joint: replace(joint, motor=replace(joint.motor, lag=0.0)),
    "thermal": lambda joint: replace(joint, thermal=replace(joint.thermal, capacity=0.0)),
}

PHENOMENA = tuple(SWITCHES)
"""What can be switched off; without all of them the arm is rigid and its rotors are part of its inertia.

`stiffness` takes damping, kinematic error and lost motion with it; `hysteresis` leaves Coulomb friction sgn ω,
`backlash` its mean, `temperature` the friction at the reference
temperature, `thermal` the temperature as it is at the start.
"""


def switched_off(joint: JointPlant, names: tuple[str, ...]) -> JointPlant:
    """Return the joint without the named phenomena."""
    for name in names:
        if name not in SWITCHES:
            raise ModelError(f"unknown phenomenon '{name}'. {nearest(name, SWITCHES)}")
        joint = SWITCHES[name](joint)
    return joint
