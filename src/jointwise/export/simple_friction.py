"""What targets with Coulomb and linear viscous friction express of a model, and what they lose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from jointwise.description.robot import Robot
from jointwise.export.package import Loss
from jointwise.model.terms import (
    Coulomb,
    Hysteresis,
    Offset,
    PowerFlow,
    Rated,
    Spring,
    Stribeck,
    Temperature,
    Term,
    Viscous,
)
from jointwise.model.transmission import joint_torque, joint_values, motor_torque, motor_values
from jointwise.result.calibration import Status
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

SPEEDS = 50
"""Speeds, up to the largest of the training data, at which friction is approximated."""
SLOWEST = 0.05
"""Smallest of them, as a part of the largest: below, Stribeck friction and hysteresis dominate."""
POSTURES = 200
"""Random postures whose gravity torque is the typical load of friction."""
WIDTH = 0.01
"""Speed (rad/s) over which the Coulomb friction of a prediction changes its sign; the sign of noise is not friction."""


@dataclass(frozen=True)
class SimpleFriction:
    """``τ = coulomb sgn(v) + damping v`` of every motor: Nm and Nm s/rad, (joints,) each.

    The speed v of a motor is that of its joint unless the transmission is coupled.
    """

    coulomb: Array
    damping: Array

    def torque(self, robot: Robot, qd: Array, *, dry: bool = True) -> Array:
        """Return the torque at the joints (samples, joints), Nm, at speeds of the joints, with or without `coulomb`."""
        v = motor_values(robot, qd)
        return joint_torque(robot, self.damping * v + (self.coulomb * np.sign(v) if dry else 0.0))


def simple_friction(model: RobotModel) -> SimpleFriction:
    """Return Coulomb and viscous friction closest to the friction of a model, under its typical gravity load."""
    fastest = np.maximum(model.calibration.fastest, 1e-3)
    shares = np.linspace(SLOWEST, 1.0, SPEEDS)
    robot = model.robot
    load = np.median(np.abs(motor_torque(robot, model.gravity(_postures(model)))), axis=0)
    speeds = joint_values(robot, shares[:, None] * fastest)
    torque = motor_torque(robot, model.friction(speeds, load=joint_torque(robot, load)))
    found = [
        nnls(np.column_stack([np.ones(SPEEDS), shares * top]), column)[0]
        for top, column in zip(fastest, torque.T, strict=True)
    ]
    coulomb, damping = np.array(found).T
    return SimpleFriction(coulomb, damping)


def _postures(model: RobotModel) -> Array:
    """Return random positions within the limits of the joints, or within one turn, (postures, joints)."""
    limits = [joint.limits for joint in model.robot.joints]
    low = np.array([-np.pi if each.lower is None else each.lower for each in limits])
    high = np.array([np.pi if each.upper is None else each.upper for each in limits])
    return np.random.default_rng(0).uniform(low, high, (POSTURES, model.dof))


def with_simple_friction(model: RobotModel, friction: SimpleFriction, *, rotors: bool) -> RobotModel:
    """Return a model with the bodies of `model` and simple friction, with or without its rotor inertias."""
    calibration, n = model.calibration, model.dof
    terms = tuple((Coulomb("none", "tanh", WIDTH), Viscous((1.0,))) for _ in range(n))
    dynamics = replace(calibration.model, terms=terms)
    inertias = model.robot.rotor_inertias if rotors else np.zeros(n)
    standard = [model.robot.inertials.ravel(), *([inertias] if dynamics.rotors else [])]
    pairs = np.column_stack([friction.coulomb, friction.damping]).ravel()
    values = np.concatenate([dynamics.base.from_standard(np.concatenate(standard)), pairs])
    known: Status = "given"
    estimate = replace(
        calibration.estimate,
        values=values,
        covariance=np.zeros((len(values), len(values))),
        status=(known,) * len(values),
    )
    return RobotModel(replace(calibration, model=dynamics, estimate=estimate, physical=None, feed_forward=None))


def planned_losses(model: RobotModel) -> tuple[Loss, ...]:
    """Return the loss of a model that sees the planned motion only: the feed-forward estimate."""
    if not model.extras:
        return ()
    return (Loss("measured speeds and rotor positions are not used", model.for_use("feed-forward").predict),)


def simple_losses(model: RobotModel, consistent: RobotModel, friction: SimpleFriction) -> tuple[Loss, ...]:
    """Return what a target with consistent bodies and simple friction loses of a model.

    It sees the planned motion only, has physically consistent bodies instead of the fitted base parameters, and lacks
    the friction effects that the last loss lists.
    """
    lost = _lost_effects(model)
    listed = f" (lost: {', '.join(lost)})" if lost else ""
    simple = with_simple_friction(consistent, friction, rotors=True)
    return (
        *planned_losses(model),
        Loss("physically consistent bodies instead of free base parameters", consistent.predict),
        Loss(f"friction becomes Coulomb and linear viscous friction{listed}", simple.predict),
    )


def _lost_effects(model: RobotModel) -> list[str]:
    """Return the friction effects of a model that Coulomb and linear viscous friction do not have."""
    terms = [term for terms in model.for_use("feed-forward").calibration.model.terms for term in terms]
    return [name for name, has_effect in _EFFECTS.items() if any(map(has_effect, terms))]


_EFFECTS: dict[str, Callable[[Term], bool]] = {
    "hysteresis": lambda term: isinstance(term, Hysteresis | Rated),
    "growth with the load": lambda term: term.uses_load() and not isinstance(term, PowerFlow),
    "dependence on the direction of power": lambda term: isinstance(term, PowerFlow),
    "Stribeck friction": lambda term: isinstance(term, Stribeck),
    "nonlinear viscous friction": lambda term: isinstance(term, Viscous) and term.powers != (1.0,),
    "temperature": lambda term: isinstance(term, Temperature),
    "springs": lambda term: isinstance(term, Spring),
    "constant offsets": lambda term: isinstance(term, Offset),
}
"""Friction effects beyond Coulomb and linear viscous friction, and whether a term has them."""
