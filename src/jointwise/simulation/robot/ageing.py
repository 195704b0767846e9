"""Wear: friction up, stiffness down."""

from __future__ import annotations

from dataclasses import replace

from jointwise.model.spring import Cubic, Rigid, Segments
from jointwise.simulation.robot.checks import check_range
from jointwise.simulation.robot.elasticity import Elasticity
from jointwise.simulation.robot.friction import Friction
from jointwise.simulation.robot.joint import JointPlant


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
        warmth=replace(f.warmth, linear=by * f.warmth.linear, cold=by * f.warmth.cold),
    )


def _scaled_spring(spring: Elasticity, by: float) -> Elasticity:
    """Scale torques at equal deformation."""
    if isinstance(spring, Rigid):
        return spring
    if isinstance(spring, Cubic):
        return Cubic(by * spring.linear, by * spring.cubic)
    return Segments(by * spring.K1, by * spring.K2, by * spring.K3, by * spring.T1, by * spring.T2)
