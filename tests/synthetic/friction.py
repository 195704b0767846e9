"""Friction of a joint with known parameters: Coulomb with load and hysteresis, viscous, and v |v|."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointwise.description import Joint, Robot
from jointwise.design import Trajectory
from jointwise.errors import ModelError
from jointwise.model.terms import (
    LOAD_POWERS,
    Coulomb,
    Hysteresis,
    Term,
    Viscous,
    load_growth,
    polynomial_limits,
    polynomial_shares,
    slip_elements,
    slip_state,
)
from jointwise.simulation.robot.defaults import joint_size
from jointwise.spatial import Array

LoadDependence = Literal["none", "square", "absolute"]
FINE_RATE = 4000.0
"""Hysteresis is followed at least this often a second, and at least 8 times a sample, so that reversals are caught."""
BLOCK = 16384
"""Samples whose fine steps are in memory at a time."""


@dataclass(frozen=True)
class JointFriction:
    """``τ_f = (F_C0 + F_C1 ℓ(τ_load)) H + F_v v + F_v2 v |v|`` of one joint.

    `coulomb` F_C0 (Nm), `load` F_C1 (1/Nm for ℓ = τ², 1 for ℓ = |τ|), `viscous` F_v (Nm s/rad), `square` F_v2
    (Nm s²/rad²). H in [-1, 1] is sgn(v), or the state of `elements` spring-slip elements with limits
    ``D_i = B (i/M)^4``, B = `scale` (rad), and shares ``W_i = (M+1-i)² / Σ i²``.
    """

    coulomb: float
    load: float
    viscous: float
    square: float
    scale: float = 2e-3
    elements: int = 4

    def __post_init__(self) -> None:
        """Refuse hysteresis without a size."""
        if not (self.scale > 0.0 and self.elements >= 1):
            raise ModelError(
                f"friction needs scale > 0 and elements >= 1. Got {self.scale} and {self.elements} instead."
            )

    @property
    def limits(self) -> Array:
        """Deformation limits D_i (rad), shape (elements,)."""
        return polynomial_limits(self.elements, self.scale)

    @property
    def shares(self) -> Array:
        """Shares W_i of the elements in the friction, shape (elements,); they sum to one."""
        return polynomial_shares(self.elements)

    def terms(self, hysteresis: bool, dependence: LoadDependence) -> tuple[Term, ...]:
        """Return the terms of the model in which this friction is exactly linear."""
        if not hysteresis:
            return Coulomb(load=dependence), Viscous((1.0, 2.0))
        shape = tuple(self.shares.tolist()) if dependence != "none" else ()
        return Hysteresis(tuple(self.limits.tolist()), load=dependence, shape=shape), Viscous((1.0, 2.0))

    def values(self, hysteresis: bool, dependence: LoadDependence) -> Array:
        """Return the parameters of `terms`: F_C0 or the F_C0 W_i, F_C1 where it is there, F_v, F_v2."""
        dry = self.coulomb * self.shares if hysteresis else np.array([self.coulomb])
        load = [] if dependence == "none" else [self.load]
        return np.array([*dry, *load, self.viscous, self.square])


FRICTIONLESS = JointFriction(0.0, 0.0, 0.0, 0.0)
"""No friction at all."""


def default_friction(robot: Robot, dependence: LoadDependence = "square") -> tuple[JointFriction, ...]:
    """Return plausible friction of every joint, by the size of its drive.

    A drive of 150 Nm has 10 Nm Coulomb, 10 Nm s/rad viscous and -1.1 Nm s²/rad² (30 Nm at 3 rad/s), one of 28 Nm a
    tenth. Coulomb friction grows by half under full load. Hysteresis scales go from 1.5 mrad (base) to 4 mrad (tip).
    """
    scales = np.linspace(1.5e-3, 4e-3, robot.dof).tolist()
    return tuple(_default(joint, dependence, scale) for joint, scale in zip(robot.joints, scales, strict=True))


def _default(joint: Joint, dependence: LoadDependence, scale: float) -> JointFriction:
    size, effort = joint_size(joint), joint.limits.effort or 150.0
    growth = {"none": 0.0, "absolute": 0.5 / effort, "square": 0.5 / effort**2}[dependence]
    coulomb = 10.0 * size
    return JointFriction(coulomb, growth * coulomb, 10.0 * size, -1.1 * size, scale)


def friction_torque(
    friction: Sequence[JointFriction], direction: Array, qd: Array, load: Array, dependence: LoadDependence
) -> Array:
    """Return τ_f (Nm) from H, the `direction`, speed (rad/s) and load torque (Nm), each (samples, joints)."""
    F_C0, F_C1, F_v, F_v2 = np.array([[f.coulomb, f.load, f.viscous, f.square] for f in friction]).T
    dry = F_C0 if dependence == "none" else F_C0 + F_C1 * load_growth(load, LOAD_POWERS[dependence])
    result: Array = dry * direction + F_v * qd + F_v2 * qd * np.abs(qd)
    return result


def hysteresis_state(friction: Sequence[JointFriction], trajectory: Trajectory, t: Array, rate: float) -> Array:
    """Return H (samples, joints) of a motion at ascending times t (s); elements are relaxed at the first of them.

    The path between samples is followed in fine steps, so that H is that of the motion and not that of its samples.
    """
    parts = max(8, int(np.ceil(FINE_RATE / rate)))
    H = np.empty((len(t), len(friction)))
    start = trajectory.position(t[:1])[0]
    states = [slip_state(start[j], f.elements) for j, f in enumerate(friction)]
    last = t[0]
    for first in range(0, len(t), BLOCK):
        block = t[first : first + BLOCK]
        path = np.asfortranarray(trajectory.position(_fine_times(last, block, parts)))
        for j, f in enumerate(friction):
            elements, states[j] = slip_elements(path[:, j], f.limits, states[j])
            H[first : first + BLOCK, j] = elements[parts - 1 :: parts] @ f.shares
        last = block[-1]
    return H


def _fine_times(last: float, t: Array, parts: int) -> Array:
    """Return the times t with `parts` - 1 equally spaced ones before each, ascending, (samples · parts,)."""
    before = np.concatenate([[last], t[:-1]])
    steps: Array = np.multiply.outer(t - before, np.arange(1, parts + 1) / parts)
    return (before[:, None] + steps).ravel()
