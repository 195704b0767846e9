"""What a robot is: an immutable serial chain of joints and links.

One canonical form serves every source (DH, MDH, URDF): frame {j} sits on joint axis j with its z along the
axis, and moves with link j. `Joint.rotation` and `Joint.translation` place {j} in {j-1} at q = 0, so::

    revolute :  T_j(q) = (R, p) · Rot_z(q)         prismatic :  T_j(q) = (R, p) · Trans_z(q)

Gravity, mounting and payload are not here: they are arguments of the computations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointwise import spatial
from jointwise.errors import DescriptionError
from jointwise.spatial import Array

JointKind = Literal["revolute", "prismatic"]
NDArrayBool = NDArray[np.bool_]


@dataclass(frozen=True)
class Limits:
    """What a joint may do; None where the description is silent. rad or m, rad/s or m/s, rad/s², Nm or N."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    acceleration: float | None = None
    effort: float | None = None


@dataclass(frozen=True)
class Motor:
    """Drive of a joint; None where unknown.

    `gear_ratio` motor turns per joint turn; `rotor_inertia` and `reducer_inertia` in kg m² on the motor side;
    `torque_constant` in Nm/A at the motor shaft; `drive_gain` in Nm/A at the joint; `coulomb` (Nm) and
    `viscous` (Nm s/rad) nominal friction at the joint.
    """

    gear_ratio: float | None = None
    rotor_inertia: float | None = None
    reducer_inertia: float | None = None
    torque_constant: float | None = None
    drive_gain: float | None = None
    coulomb: float | None = None
    viscous: float | None = None

    @property
    def reflected_inertia(self) -> float | None:
        """Inertia of rotor and reducer seen at the joint, ``r² (J_m + J_r)``, kg m²; None if unknown."""
        if self.gear_ratio is None or self.rotor_inertia is None:
            return None
        return self.gear_ratio**2 * (self.rotor_inertia + (self.reducer_inertia or 0.0))

    @property
    def joint_gain(self) -> float | None:
        """Joint torque per ampere: `drive_gain`, else ``torque_constant · gear_ratio``; Nm/A, None if unknown."""
        if self.drive_gain is not None:
            return self.drive_gain
        if self.torque_constant is None or self.gear_ratio is None:
            return None
        return self.torque_constant * self.gear_ratio


@dataclass(frozen=True)
class Joint:
    """A joint and the frame {j} that it moves, placed in the frame before it at q = 0."""

    name: str
    kind: JointKind
    rotation: Array
    translation: Array
    limits: Limits = field(default_factory=Limits)
    motor: Motor = field(default_factory=Motor)

    def __post_init__(self) -> None:
        """Freeze the arrays and refuse what is no placement."""
        if self.kind not in ("revolute", "prismatic"):
            raise DescriptionError(
                f"joint '{self.name}': kind must be 'revolute' or 'prismatic'. Got '{self.kind}' instead."
            )
        for name, shape in (("rotation", (3, 3)), ("translation", (3,))):
            object.__setattr__(self, name, frozen_array(getattr(self, name), shape, f"joint '{self.name}': {name}"))
        if not spatial.is_rotation(self.rotation):
            raise DescriptionError(f"joint '{self.name}': rotation is not orthonormal.")


@dataclass(frozen=True)
class Link:
    """A rigid body with its ten standard parameters in the frame {j} of its joint (see `spatial`)."""

    name: str
    inertial: Array

    def __post_init__(self) -> None:
        """Freeze the array."""
        object.__setattr__(self, "inertial", frozen_array(self.inertial, (10,), f"link '{self.name}': inertial"))

    @classmethod
    def from_center(cls, name: str, mass: float, center: Sequence[float] | Array, inertia: Array) -> Link:
        """Make a link from its mass (kg), centre of mass (m) and tensor about it (kg m², (3, 3))."""
        return cls(name, spatial.inertial_vector(mass, center, inertia))

    @property
    def mass(self) -> float:
        """Mass in kg."""
        return float(self.inertial[9])

    @property
    def center_of_mass(self) -> Array:
        """Centre of mass in frame {j}, m, shape (3,)."""
        return spatial.split_inertial(self.inertial)[1]

    @property
    def inertia_at_center(self) -> Array:
        """Inertia tensor about the centre of mass, axes of {j}, kg m², shape (3, 3)."""
        return spatial.split_inertial(self.inertial)[2]


@dataclass(frozen=True)
class Robot:
    """An immutable serial arm: joints, the links they move, and the fixed tool transform after the last one."""

    name: str
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    tool_rotation: Array = field(default_factory=lambda: np.eye(3))
    tool_translation: Array = field(default_factory=lambda: np.zeros(3))
    title: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the parts fit together and freeze them."""
        object.__setattr__(self, "joints", tuple(self.joints))
        object.__setattr__(self, "links", tuple(self.links))
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))
        object.__setattr__(self, "tool_rotation", frozen_array(self.tool_rotation, (3, 3), "tool rotation"))
        object.__setattr__(self, "tool_translation", frozen_array(self.tool_translation, (3,), "tool translation"))
        if not self.joints:
            raise DescriptionError(f"robot '{self.name}' has no moving joint.")
        if len(self.joints) != len(self.links):
            raise DescriptionError(
                f"robot '{self.name}' must have one link a joint. Got {len(self.joints)} joints "
                f"and {len(self.links)} links instead."
            )
        names = [joint.name for joint in self.joints]
        for name in names:
            if names.count(name) > 1:
                raise DescriptionError(f"robot '{self.name}' has two joints named '{name}'.")
        if not spatial.is_rotation(self.tool_rotation):
            raise DescriptionError(f"robot '{self.name}': tool rotation is not orthonormal.")

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.joints)

    @cached_property
    def revolute(self) -> NDArrayBool:
        """True for revolute joints, shape (joints,)."""
        return np.array([joint.kind == "revolute" for joint in self.joints])

    @cached_property
    def rotations(self) -> Array:
        """Placement rotations, shape (joints, 3, 3)."""
        return np.array([joint.rotation for joint in self.joints])

    @cached_property
    def translations(self) -> Array:
        """Placement translations in m, shape (joints, 3)."""
        return np.array([joint.translation for joint in self.joints])

    @cached_property
    def inertials(self) -> Array:
        """Nominal standard parameters, shape (joints, 10)."""
        return np.array([link.inertial for link in self.links])

    @cached_property
    def rotor_inertias(self) -> Array:
        """Nominal reflected rotor inertias in kg m², shape (joints,); 0 where the motor is not described."""
        return np.array([joint.motor.reflected_inertia or 0.0 for joint in self.joints])


def frozen_array(values: object, shape: tuple[int, ...], what: str) -> Array:
    """Return a read-only float copy of `values`, or say what is wrong with it."""
    array = np.array(values, dtype=float)
    if array.shape != shape:
        raise DescriptionError(f"{what} must have shape {shape}. Got {array.shape} instead.")
    if not np.isfinite(array).all():
        raise DescriptionError(f"{what} must be finite. Got {array.ravel().tolist()} instead.")
    array.setflags(write=False)
    return array
