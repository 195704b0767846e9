"""The complete model: a robot under gravity, its base parameters, and the terms of every joint."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError
from jointwise.model.base import BaseParameters, base_parameters
from jointwise.model.terms import JointSignals, Term, joint_columns
from jointwise.model.transmission import motor_motion, motor_regressor, motor_structure
from jointwise.motion import Motion, Signals
from jointwise.spatial import INERTIAL_NAMES, INERTIAL_UNITS, Array

Index = NDArray[np.intp]


@dataclass(frozen=True)
class ParameterInfo:
    """A parameter of the model.

    Attributes:
        name: Name.
        unit: Unit.
        joint: Joint to which it belongs, 0-based; None for bodies.
        non_negative: Whether it cannot be negative.
    """

    name: str
    unit: str
    joint: int | None
    non_negative: bool


@dataclass(frozen=True)
class Dynamics:
    """Torque of a motion as a linear function of parameters.

        τ_j = Y_b,j(q, q̇, q̈) β + Σ_k W_jk(q_j, q̇_j, load_j, ...) x_jk

    with the base parameters β and the terms k of joint j (friction, offset, ...). All parameters form one vector: base
    parameters first, then joint by joint. Motions are in joint coordinates. In a coupled transmission, torques and
    terms are those of the motors.

    Attributes:
        robot: The robot.
        gravity: Gravity in the base frame, m/s².
        rotors: Whether reflected rotor inertias are base parameters.
        terms: Terms of every joint.
        load_basis: Load torque of the terms: `model` for Y_b β, `row_sum` for the sum of the columns of Y_b as in AURT.
        rotor_side: Terms follow the measured motion of the rotors instead of that of the links (two encoders).

    """

    robot: Robot
    gravity: tuple[float, float, float]
    rotors: bool
    terms: tuple[tuple[Term, ...], ...]
    load_basis: str = "model"
    rotor_side: bool = False

    def __post_init__(self) -> None:
        """Check that the terms fit the robot."""
        if self.load_basis not in ("model", "row_sum"):
            raise ModelError(f"load_basis must be model or row_sum. Got '{self.load_basis}' instead.")
        if len(self.terms) != self.robot.dof:
            raise ModelError(f"terms must be those of {self.robot.dof} joints. Got {len(self.terms)} instead.")
        for joint in range(self.robot.dof):
            names = [info.name for info in self.parameters if info.joint == joint]
            for name in names:
                if names.count(name) > 1:
                    raise ModelError(f"joint {joint + 1} has two terms with a parameter '{name}'.")

    def superseding(self) -> Dynamics:
        """Return the same model with a robot whose described bodies are superseded."""
        same = copy(self)
        object.__setattr__(same, "robot", replace(self.robot, superseded=True))
        return same

    @cached_property
    def base(self) -> BaseParameters:
        """The base parameters."""
        return base_parameters(self.robot, self.gravity, self.rotors)

    @cached_property
    def parameters(self) -> tuple[ParameterInfo, ...]:
        """Every parameter, in the order of the vector."""
        units = dict(zip(INERTIAL_NAMES, INERTIAL_UNITS, strict=True)) | {"Ia": "kg m^2"}
        heads = [self.base.standard_names[k].rstrip("0123456789") for k in self.base.kept]
        bodies = [
            ParameterInfo(name, units[head], None, False) for name, head in zip(self.base.names, heads, strict=True)
        ]
        joints = [
            ParameterInfo(f"{parameter.name}_{j + 1}", parameter.unit, j, parameter.non_negative)
            for j, terms in enumerate(self.terms)
            for term in terms
            for parameter in term.parameters()
        ]
        return tuple(bodies + joints)

    @property
    def count(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @cached_property
    def joint_slices(self) -> tuple[slice, ...]:
        """Slices of the parameter vector that hold the term parameters of each joint."""
        sizes = [sum(len(term.parameters()) for term in terms) for terms in self.terms]
        edges = self.base.count + np.concatenate([[0], np.cumsum(sizes)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(edges))

    @cached_property
    def rigid_index(self) -> tuple[tuple[Index, Index], ...]:
        """For each joint: which series of the regressor, and which base parameters they multiply."""
        structure = motor_structure(self.robot, self.gravity, self.rotors)
        base_of = np.full(structure.parameters, -1, dtype=np.intp)
        base_of[self.base.kept] = np.arange(self.base.count)
        index = []
        for j in range(self.robot.dof):
            mine = np.flatnonzero((structure.rows == j) & (base_of[structure.columns] >= 0))
            index.append((mine, base_of[structure.columns[mine]]))
        return tuple(index)

    @cached_property
    def needs_load(self) -> bool:
        """Whether any term depends on the load torque."""
        return any(term.uses_load() for terms in self.terms for term in terms)

    @property
    def needs_temperature(self) -> bool:
        """Whether any term depends on the temperature."""
        return any(term.uses_temperature() for terms in self.terms for term in terms)

    def joint_index(self, joint: int) -> Index:
        """Return the indices in the vector of the parameters that act on one joint."""
        terms = self.joint_slices[joint]
        return np.concatenate([self.rigid_index[joint][1], np.arange(terms.start, terms.stop)])

    def rigid_columns(self, motion: Motion) -> list[Array]:
        """Return the base-parameter columns of each joint as series (count, samples); see `rigid_index`."""
        Y = motor_regressor(self.robot, motion.q, motion.qd, motion.qdd, gravity=self.gravity, rotors=self.rotors)
        return [Y.series[mine] for mine, _ in self.rigid_index]

    def load_torque(self, rigid: list[Array], values: Array) -> Array:
        """Return the load torque of the terms, (samples, joints), from columns of `rigid_columns`."""
        basis = values if self.load_basis == "model" else np.ones(self.base.count)
        return self.body_torque(rigid, basis)

    def body_torque(self, rigid: list[Array], values: Array) -> Array:
        """Return the torque of the bodies Y_b β, (samples, joints), from columns of `rigid_columns`."""
        return np.column_stack(
            [values[which] @ columns for columns, (_, which) in zip(rigid, self.rigid_index, strict=True)]
        )

    def payload_values(self, payload: Payload | None, before: Payload | None = None) -> Array:
        """Return the change of all parameters if the tool carries a payload instead of `before`.

        A payload adds its ten inertial parameters to those of the last link, ``Δβ = P Δπ``.

        Returns:
            Change, shape (parameters,); zero for the terms of the joints.

        """
        standard = np.zeros((len(self.base.standard_names),))
        last = slice(10 * (self.robot.dof - 1), 10 * self.robot.dof)
        for sign, each in ((1.0, payload), (-1.0, before)):
            if each is not None:
                standard[last] += sign * each.inertial_at_last_link(self.robot)
        change = np.zeros(self.count)
        change[: self.base.count] = self.base.from_standard(standard)
        return change

    def term_columns(self, motion: Motion, joint: int, load: Array | None) -> Array:
        """Return the columns of a joint's terms, (samples, count), in a motion of the motors.

        `load` (samples, joints) where it is known.
        """
        signals = joint_signals(motion, joint, load)
        columns, _ = joint_columns(self.terms[joint], signals)
        return np.concatenate(columns, axis=1) if columns else np.empty((motion.samples, 0))

    def torque(self, motion: Motion, values: Array) -> Array:
        """Return the torque of a motion; see the class for the equation.

        Args:
            motion: Motion with the channels that the terms use.
            values: All parameters, (parameters,).

        Returns:
            τ, shape (samples, joints), Nm or N.

        """
        rigid = self.rigid_columns(motion)
        result = self.body_torque(rigid, values)
        load, motor = self.load_torque(rigid, values), motor_motion(self.robot, motion, self.rotor_side)
        for j, terms in enumerate(self.joint_slices):
            result[:, j] += self.term_columns(motor, j, load) @ values[terms]
        return result


def joint_signals(motion: Motion, joint: int, load: Array | None = None) -> JointSignals:
    """Return the signals of one joint; `load` (samples, joints) where it is known."""
    arrays = {name: getattr(motion, name) for name in _JOINT_ARRAYS} | {"load": load}
    columns: dict[str, Any] = {name: value[:, joint] for name, value in arrays.items() if value is not None}
    return JointSignals(rate=motion.rate, **columns)


_JOINT_ARRAYS = tuple(field.name for field in fields(Signals) if field.name != "rate")
