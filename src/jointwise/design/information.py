"""Information that a motion gives about the parameters of a robot, and its exact gradient with respect to the motion.

With the regressor ``C_j`` (parameters, samples) and the torque noise ``σ_j`` of joint j the information matrix is
``M = Σ_j C_j C_jᵀ / σ_j²``, and ``M⁻¹`` is the covariance of the weighted least-squares estimate.

Torques and regressors are trigonometric polynomials of degree 2 in the angle of a joint (of degree 2 in the position of
a prismatic one), quadratic in q̇ and linear in q̈, so that differences at suitable shifts are derivatives without error.
Motions are those of the joints; torques, friction and noise are those of the motors where a transmission couples them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jointwise.call_settings import Goal
from jointwise.description.robot import Robot
from jointwise.design.trajectory import States
from jointwise.model.base import BaseParameters, group_columns
from jointwise.model.dynamics import Dynamics
from jointwise.model.rigid import Regressor, RegressorStructure
from jointwise.model.terms import Coulomb, Offset, Term, Viscous, direction
from jointwise.model.transmission import joint_torque, motor_regressor, motor_structure, motor_values
from jointwise.spatial import INERTIAL_UNITS, Array

# -- exact derivatives by few shifted evaluations --

SHIFTS = ((0.25 * np.pi, 0.5 * (np.sqrt(0.5) + 1.0)), (0.75 * np.pi, 0.5 * (np.sqrt(0.5) - 1.0)))
"""Shifts (rad) and weights with f'(q) = Σ w (f(q + s) - f(q - s)) for every trigonometric polynomial of degree 2."""

Rule = tuple[tuple[int, int, float, float], ...]
"""Evaluations for the derivatives: order (0 for q), joint, shift and weight."""


def derivative_rule(revolute: Iterable[bool]) -> Rule:
    """Return the evaluations for the derivatives with respect to q, q̇ and q̈ of joints that turn or slide."""
    central = ((1.0, 0.5),)
    rules: list[tuple[int, int, float, float]] = []
    for joint, turns in enumerate(revolute):
        pairs = [(0, s, w) for s, w in (SHIFTS if turns else central)]
        pairs += [(order, s, w) for order in (1, 2) for s, w in central]
        rules += [(order, joint, side * s, side * w) for order, s, w in pairs for side in (1.0, -1.0)]
    return tuple(rules)


def exact_gradient(
    rule: Rule, q: Array, qd: Array, qdd: Array, contracted: Callable[[Array, Array, Array], Array]
) -> Array:
    """Return the gradient (3, samples, joints) of a sum of rigid-body functions with respect to q, q̇, q̈.

    Args:
        rule: Of `derivative_rule`.
        q: Positions (samples, joints), rad or m.
        qd: Speeds.
        qdd: Accelerations.
        contracted: Returns the weighted function (evaluations, samples) at motions of (evaluations * samples, joints).

    """
    samples, dof = q.shape
    moved = np.repeat(np.stack([q, qd, qdd])[:, None], len(rule), axis=1)
    for k, (order, joint, shift, _) in enumerate(rule):
        moved[order, k, :, joint] += shift
    sums = contracted(*moved.reshape(3, -1, dof))
    result = np.zeros((3, samples, dof))
    for (order, joint, _, factor), total in zip(rule, sums, strict=True):
        result[order, :, joint] += factor * total
    return result


Index = NDArray[np.intp]
"""What a motion is optimised for."""
WIDTH = 0.05
"""Speed (rad/s) over which dry friction changes its sign: wide enough that the samples of a motion resolve it."""


def friction_terms() -> tuple[Term, ...]:
    """Return the terms of a joint: offset, dry friction with load dependence, viscous friction."""
    return Offset(), Coulomb("absolute", "tanh", WIDTH), Viscous()


@dataclass(frozen=True)
class Columns:
    """Regressor of a motion.

    Attributes:
        blocks: Columns of every joint, (count, samples).
        load: Torque of the bodies, (samples, joints), Nm.
    """

    blocks: list[Array]
    load: Array


@dataclass(frozen=True)
class InformationModel:
    """Parameters that a motion shall determine, and the noise of the measured torques.

    Attributes:
        dynamics: Model with the terms of `friction_terms`.
        values: Reference values, (parameters,), which determine the load of the friction.
        noise: Standard deviation of the noise of the torques, (joints,), Nm.
        goal: What the motion is optimised for; with "payload" the bodies of the arm are known, and those of the last
            link are estimated.
    """

    dynamics: Dynamics
    values: Array
    noise: Array
    goal: Goal = "all"

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.dynamics.robot

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """Names of the parameters of bodies: base parameters, or those of the last link with its payload."""
        return self._payload_base.names if self.goal == "payload" else self.dynamics.base.names

    @cached_property
    def _payload_base(self) -> BaseParameters:
        """Identifiable parameters of the last link if all other bodies are known."""
        dof = self.robot.dof
        q, qd, qdd = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, 10 * dof, dof))
        last = slice(10 * (dof - 1), 10 * dof)
        rows = self._regressor(States(np.empty(0), q, qd, qdd)).stacked()[:, last]
        return group_columns(rows, self.dynamics.base.standard_names[last])

    @property
    def bodies(self) -> int:
        """Number of parameters of bodies; those of the friction follow them."""
        return len(self.body_names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (*self.body_names, *(info.name for info in self.dynamics.parameters[self.dynamics.base.count :]))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters."""
        units = [info.unit for info in self.dynamics.parameters]
        if self.goal != "payload":
            return tuple(units)
        kept = [INERTIAL_UNITS[k] for k in self._payload_base.kept]
        return (*kept, *units[self.dynamics.base.count :])

    @property
    def values_shown(self) -> Array:
        """Reference values of the parameters (parameters,); those of the last link if a payload is estimated."""
        count = self.dynamics.base.count
        payload = self.goal == "payload"
        bodies = self._payload_base.from_standard(self.robot.inertials[-1]) if payload else self.values[:count]
        return np.concatenate([bodies, self.values[count:]])

    @cached_property
    def target(self) -> NDArray[np.bool_]:
        """Which parameters shall be determined, (parameters,); the others are unknown too but do not count."""
        body = np.arange(len(self.names)) < self.bodies
        return body if self.goal in ("bodies", "payload") else ~body if self.goal == "friction" else body | True

    @cached_property
    def series(self) -> tuple[tuple[Index, Index], ...]:
        """For each joint: the series of the regressor that count, and the index of their parameters."""
        if self.goal != "payload":
            return self.dynamics.rigid_index
        structure = self._structure
        index = np.full(structure.parameters, -1, dtype=np.intp)
        index[10 * (self.robot.dof - 1) + self._payload_base.kept] = np.arange(self.bodies)
        counts = index[structure.columns] >= 0
        rows = [np.flatnonzero((structure.rows == j) & counts) for j in range(self.robot.dof)]
        return tuple((mine, index[structure.columns[mine]]) for mine in rows)

    @cached_property
    def _structure(self) -> RegressorStructure:
        return motor_structure(self.robot, self.dynamics.gravity, rotors=True)

    @cached_property
    def indices(self) -> tuple[Index, ...]:
        """Indices of the parameters that act on each joint, in the order of the rows of its block."""
        per_joint = (len(self.names) - self.bodies) // self.robot.dof
        starts = self.bodies + per_joint * np.arange(self.robot.dof + 1)
        spans = [np.arange(a, b) for a, b in pairwise(starts)]
        return tuple(np.concatenate([which, span]) for (_, which), span in zip(self.series, spans, strict=True))

    def columns(self, states: States) -> Columns:
        """Return the regressor of a motion."""
        Y = self._regressor(states).series
        index = self.dynamics.rigid_index
        load = np.column_stack([self.values[which] @ Y[mine] for mine, which in index])
        speed = motor_values(self.robot, states.qd)
        h, one = direction(speed, WIDTH), np.ones(len(speed))
        blocks = [
            np.vstack([Y[mine], one, h[:, j], np.abs(load[:, j]) * h[:, j], speed[:, j]])
            for j, (mine, _) in enumerate(self.series)
        ]
        return Columns(blocks, load)

    def information(self, columns: Columns, noise: Array | None = None) -> Array:
        """Return the information matrix M (parameters, parameters) of the samples of a regressor.

        `noise` (joints,), Nm, replaces that of the model.
        """
        M = np.zeros((len(self.names), len(self.names)))
        deviations = self.noise if noise is None else noise
        for block, index, deviation in zip(columns.blocks, self.indices, deviations, strict=True):
            M[np.ix_(index, index)] += block @ block.T / deviation**2
        return M

    def torque(self, columns: Columns, states: States) -> Array:
        """Return the torque (samples, joints), Nm, with the reference values."""
        speed, friction = motor_values(self.robot, states.qd), self.friction
        dry = (friction[:, 1] + friction[:, 2] * np.abs(columns.load)) * direction(speed, WIDTH)
        total: Array = columns.load + friction[:, 0] + dry + friction[:, 3] * speed
        return total

    @cached_property
    def friction(self) -> Array:
        """Reference values of the friction (joints, 4): offset, F_C0, F_C1, F_v."""
        return self.values[self.dynamics.base.count :].reshape(self.robot.dof, -1)

    def gradient(
        self, states: States, columns: Columns, slopes: Sequence[Array], torque_slope: Array
    ) -> tuple[Array, Array, Array]:
        """Return the gradient (samples, joints) of a function of all C_j C_jᵀ and torques with respect to q, q̇, q̈.

        `slopes` are the derivatives (parameters, parameters) with respect to the C_j C_jᵀ, symmetric; `torque_slope`
        (samples, joints) is that with respect to the torque. The weight of dC_j is ``2 slope_j C_j``.
        """
        h = direction(motor_values(self.robot, states.qd), WIDTH)
        steep = (1.0 - h**2) / WIDTH
        contracted = np.zeros((len(self._structure.rows), len(h)))
        by_speed = np.zeros_like(h)
        for j, (block, index, slope) in enumerate(zip(columns.blocks, self.indices, slopes, strict=True)):
            weight = 2.0 * slope[np.ix_(index, index)] @ block
            count, load, torque = len(index) - 4, columns.load[:, j], torque_slope[:, j]
            _, dry, loaded, viscous = self.friction[j]
            dry_weight, load_weight = weight[-3] + torque * dry, weight[-2] + torque * loaded
            by_speed[:, j] = (dry_weight + load_weight * np.abs(load)) * steep[:, j] + weight[-1] + torque * viscous
            contracted[self.series[j][0]] += weight[:count]
            mine, which = self.dynamics.rigid_index[j]
            by_load = torque + load_weight * np.sign(load) * h[:, j]
            contracted[mine] += np.multiply.outer(self.values[which], by_load)
        gradient = self._contracted_gradient(states, contracted)
        return gradient[0], gradient[1] + joint_torque(self.robot, by_speed), gradient[2]

    def _contracted_gradient(self, states: States, weights: Array) -> Array:
        """Return the gradient (3, samples, joints) of Σ weights Y with respect to q, q̇, q̈."""
        samples = len(states.q)

        def contracted(q: Array, qd: Array, qdd: Array) -> Array:
            Y = self._regressor(States(np.empty(0), q, qd, qdd)).series.reshape(len(weights), -1, samples)
            result: Array = np.einsum("kus,ks->us", Y, weights)
            return result

        return exact_gradient(self._rule, states.q, states.qd, states.qdd, contracted)

    @cached_property
    def _rule(self) -> Rule:
        return derivative_rule(self.robot.revolute)

    def _regressor(self, states: States) -> Regressor:
        gravity = self.dynamics.gravity
        return motor_regressor(self.robot, states.q, states.qd, states.qdd, gravity=gravity, rotors=True)
