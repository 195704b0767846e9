"""Variants of a joint: phenomena switched off one at a time, and wear."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from jointwise.errors import ModelError, check_range, nearest
from jointwise.model.friction.joint_friction import COULOMB_LIMIT, Friction, Slip, Stribeck, ThermalFriction
from jointwise.model.spring import Cubic, Rigid, Segments
from jointwise.simulation.robot.joint import Backlash, Elasticity, JointPlant, LostMotion

Switch = Callable[[JointPlant], JointPlant]


def _friction(**changes: object) -> Switch:
    def switch(joint: JointPlant) -> JointPlant:
        return replace(joint, friction=replace(joint.friction, **changes))  # type: ignore[arg-type]

    return switch


def _without_hysteresis(joint: JointPlant) -> JointPlant:
    """Reduce hysteresis to sgn ω: one element that slips after 10 µrad of the mean backlash."""
    slip = Slip((COULOMB_LIMIT / joint.backlash.mean,), (1.0,))
    return replace(joint, friction=replace(joint.friction, slip=slip))


def _rigid(joint: JointPlant) -> JointPlant:
    return replace(joint, stiffness=Rigid(), damping=0.0, kinematic_error=(), lost_motion=LostMotion())


SWITCHES: dict[str, tuple[str, Switch]] = {
    "stiffness": ("elastic gears; damping, kinematic error and lost motion go with it", _rigid),
    "damping": ("damping of the gears", lambda joint: replace(joint, damping=0.0)),
    "coulomb": ("dry friction that never varies", _friction(coulomb=0.0, flow=0.0)),
    "hysteresis": ("memory of dry friction: sgn of the speed is left", _without_hysteresis),
    "load": ("growth of dry friction with the load", _friction(load=0.0)),
    "stribeck": ("more dry friction at low speed", _friction(stribeck=Stribeck())),
    "viscous": ("friction that grows with the speed", _friction(viscous=0.0, square=0.0, cube=0.0)),
    "temperature": ("friction by temperature: that at the reference is left", _friction(thermal=ThermalFriction())),
    "asymmetry": ("dry friction that differs by direction", _friction(asymmetry=0.0)),
    "backlash": (
        "backlash that varies over a turn: its mean is left",
        lambda joint: replace(joint, backlash=Backlash((joint.backlash.mean,))),
    ),
    "kinematic_error": ("gears that lead and lag over a turn", lambda joint: replace(joint, kinematic_error=())),
    "lost_motion": ("play between the flanks of the teeth", lambda joint: replace(joint, lost_motion=LostMotion())),
    "current_limit": (
        "largest current of the motors",
        lambda joint: replace(joint, motor=replace(joint.motor, limit=math.inf)),
    ),
    "current_lag": (
        "time that a current takes to follow",
        lambda joint: replace(joint, motor=replace(joint.motor, lag=0.0, inductance=0.0)),
    ),
    "winding": (
        "resistance and inductance of the motors",
        lambda joint: replace(joint, motor=replace(joint.motor, resistance=0.0, inductance=0.0, pole_pairs=1)),
    ),
    "thermal": (
        "warming: joints stay as warm as they start",
        lambda joint: replace(joint, thermal=replace(joint.thermal, capacity=0.0)),
    ),
}
"""One line about each phenomenon, and how it is switched off."""

PHENOMENA = tuple(SWITCHES)
"""What can be switched off; without all of them the arm is rigid and its rotors are part of its inertia."""

GROUPS: dict[str, tuple[str, ...]] = {
    "friction": ("coulomb", "hysteresis", "load", "stribeck", "viscous", "temperature", "asymmetry"),
    "all": PHENOMENA,
}
"""Several phenomena by one name."""


def switched_off(joint: JointPlant, names: tuple[str, ...]) -> JointPlant:
    """Return the joint without the named phenomena or groups of them."""
    for name in names:
        if name not in SWITCHES and name not in GROUPS:
            raise ModelError(f"unknown phenomenon '{name}'. {nearest(name, [*SWITCHES, *GROUPS])}")
        for phenomenon in GROUPS.get(name, (name,)):
            joint = SWITCHES[phenomenon][1](joint)
    return joint


def aged_joint(joint: JointPlant, friction: float = 0.0, stiffness: float = 0.0) -> JointPlant:
    """Return the joint with all friction times 1 + `friction` and the spring's torque times 1 + `stiffness`."""
    check_range("ageing", -1.0, above=True, friction=friction, stiffness=stiffness)
    return replace(
        joint,
        friction=_scaled_friction(joint.friction, 1.0 + friction),
        stiffness=_scaled_spring(joint.stiffness, 1.0 + stiffness),
    )


def _scaled_friction(f: Friction, by: float) -> Friction:
    return replace(
        f,
        coulomb=by * f.coulomb,
        load=by * f.load,
        viscous=by * f.viscous,
        square=by * f.square,
        cube=by * f.cube,
        stribeck=replace(f.stribeck, extra=by * f.stribeck.extra),
        thermal=replace(f.thermal, linear=by * f.thermal.linear, cold=by * f.thermal.cold),
    )


def _scaled_spring(spring: Elasticity, by: float) -> Elasticity:
    """Scale torques at equal deformation."""
    if isinstance(spring, Rigid):
        return spring
    if isinstance(spring, Cubic):
        return Cubic(by * spring.linear, by * spring.cubic)
    return Segments(by * spring.K1, by * spring.K2, by * spring.K3, by * spring.T1, by * spring.T2)
