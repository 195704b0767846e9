"""The description of a robot: an immutable serial chain of joints and links.

One canonical form serves every source (DH, MDH, URDF): frame {j} sits on joint axis j with its z along the
axis, and moves with link j. `Joint.rotation` and `Joint.translation` place {j} in {j-1} at q = 0, so::

    revolute :  T_j(q) = (R, p) · Rot_z(q)         prismatic :  T_j(q) = (R, p) · Trans_z(q)

Gravity, mounting and payload are not part of a robot: they are arguments of the computations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from jointwise import spatial
from jointwise.arguments import checked_fields
from jointwise.errors import DescriptionError, ModelError
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.description.transmission import Transmission


@checked_fields
@dataclass(frozen=True)
class Payload:
    """A body fixed to the tool.

    Attributes:
        mass: Mass, kg.
        center_of_mass: Centre of mass in the tool frame, m, (3,).
        inertia: Inertia tensor about the centre of mass in the axes of the tool, kg m², (3, 3).
    """

    mass: float
    center_of_mass: Array | Sequence[float] = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        """Reject what cannot be a body."""
        if not (np.isfinite(self.mass) and self.mass >= 0.0):
            raise DescriptionError(f"payload mass must be finite and >= 0 kg. Got {self.mass} instead.")
        object.__setattr__(self, "center_of_mass", frozen_array(self.center_of_mass, (3,), "payload centre of mass"))
        object.__setattr__(self, "inertia", frozen_array(self.inertia, (3, 3), "payload inertia"))
        if (problem := unphysical_tensor(self.inertia)) is not None:
            raise DescriptionError(f"payload inertia must be that of a body about its centre of mass. {problem}")

    def inertial_at_last_link(self, robot: Robot) -> Array:
        """Return the ten parameters in the frame of the robot's last joint, shape (10,)."""
        at_tool = spatial.inertial_vector(self.mass, self.center_of_mass, self.inertia)
        return spatial.move_inertial(at_tool, robot.tool_rotation, robot.tool_translation)


def unphysical_tensor(tensor: Array) -> str | None:
    """Return why no body has this tensor (3, 3) about its centre of mass, kg m²; None if one can have it."""
    if not np.allclose(tensor, tensor.T, rtol=1e-9, atol=0.0):
        return "It is not symmetric."
    small, middle, large = np.linalg.eigvalsh(tensor).tolist()
    if small < -1e-9 * abs(large):
        return f"It has a negative principal moment, {small:.4g} kg m^2."
    if large > (1.0 + 1e-9) * (small + middle):
        return f"It violates the triangle inequality: {large:.4g} > {small:.4g} + {middle:.4g} kg m^2."
    return None


def loaded_inertials(robot: Robot, payload: Payload | None) -> Array:
    """Return the robot's nominal parameters with the payload added to the last link, shape (joints, 10)."""
    inertials = robot.inertials.copy()
    if payload is not None:
        inertials[-1] += payload.inertial_at_last_link(robot)
    return inertials


LARGEST = 1e6
"""Largest number of a robot in SI units (kg, m, kg m², Nm); limits and motors may have 1000 times that."""
JointKind = Literal["revolute", "prismatic"]
NDArrayBool = NDArray[np.bool_]


TORQUE_NOISE = 1.2e-3
"""Usual noise of a current: its torque over the effort limit of the drive (UR10e at rest: 0.10 to 0.15 %)."""


@checked_fields
@dataclass(frozen=True)
class Limits:
    """Limits of a joint; None where the description has none.

    Attributes:
        lower: Least position, rad (m for a prismatic joint).
        upper: Greatest position, rad or m.
        velocity: Greatest speed, rad/s or m/s.
        acceleration: Greatest acceleration, rad/s² or m/s².
        effort: Greatest torque or force of the motor, Nm or N.
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    acceleration: float | None = None
    effort: float | None = None

    def __post_init__(self) -> None:
        """Reject numbers that are not finite or absurdly large."""
        _check_sizes(self)


@checked_fields
@dataclass(frozen=True)
class Motor:
    """Drive of a joint; None where unknown.

    Attributes:
        gear_ratio: Motor turns per joint turn.
        rotor_inertia: Inertia of the rotor at the motor side, kg m².
        reducer_inertia: Inertia of the reducer at the motor side, kg m².
        torque_constant: Torque per current at the motor shaft, Nm/A.
        drive_gain: Torque per current at the joint, Nm/A.
        coulomb: Nominal Coulomb friction at the joint, Nm.
        viscous: Nominal viscous friction at the joint, Nm s/rad.

    """

    gear_ratio: float | None = None
    rotor_inertia: float | None = None
    reducer_inertia: float | None = None
    torque_constant: float | None = None
    drive_gain: float | None = None
    coulomb: float | None = None
    viscous: float | None = None

    def __post_init__(self) -> None:
        """Reject numbers that are not finite or absurdly large, and a gain that is not positive."""
        _check_sizes(self)
        for name in ("gear_ratio", "torque_constant", "drive_gain"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise DescriptionError(f"{name} must be > 0. Got {value:g} instead.")

    @property
    def reflected_inertia(self) -> float | None:
        """Inertia of rotor and reducer seen at the joint, ``r² (J_m + J_r)``, kg m²; None if unknown."""
        if self.gear_ratio is None or self.rotor_inertia is None:
            return None
        return self.gear_ratio**2 * (self.rotor_inertia + (self.reducer_inertia or 0.0))

    def with_reflected_inertia(self, inertia: float) -> Motor:
        """Return the motor with another inertia at the joint (kg m²), all of it that of the rotor.

        Without a gear ratio the motor counts as geared 1:1, its torque constant (then without meaning) left out.
        """
        if self.gear_ratio is None:
            constant = None
            return replace(self, gear_ratio=1.0, rotor_inertia=inertia, reducer_inertia=None, torque_constant=constant)
        return replace(self, rotor_inertia=inertia / self.gear_ratio**2, reducer_inertia=None)

    @property
    def joint_gain(self) -> float | None:
        """Joint torque per ampere, Nm/A: `drive_gain`, else ``torque_constant · gear_ratio``; None if unknown."""
        if self.drive_gain is not None:
            return self.drive_gain
        if self.torque_constant is None or self.gear_ratio is None:
            return None
        return self.torque_constant * self.gear_ratio


@dataclass(frozen=True)
class Joint:
    """A joint and the frame {j} that it moves.

    Attributes:
        name: Name of the joint.
        kind: `revolute` or `prismatic`; the axis is z of {j}.
        rotation: Axes of {j} in the frame before it at q = 0, (3, 3).
        translation: Origin of {j} in the frame before it at q = 0, m, (3,).
        limits: Limits of position, speed, acceleration and effort.
        motor: Gear ratio, rotor inertia and gain of the motor, where known.
    """

    name: str
    kind: JointKind
    rotation: Array
    translation: Array
    limits: Limits = field(default_factory=Limits)
    motor: Motor = field(default_factory=Motor)

    def __post_init__(self) -> None:
        """Freeze the arrays and reject what is not a placement."""
        if self.kind not in ("revolute", "prismatic"):
            raise DescriptionError(
                f"joint '{self.name}': kind must be 'revolute' or 'prismatic'. Got '{self.kind}' instead."
            )
        for name, shape in (("rotation", (3, 3)), ("translation", (3,))):
            object.__setattr__(self, name, frozen_array(getattr(self, name), shape, f"joint '{self.name}': {name}"))
        if not spatial.is_rotation(self.rotation):
            raise DescriptionError(f"joint '{self.name}': rotation is not orthonormal.")


@checked_fields
@dataclass(frozen=True)
class Link:
    """A rigid body that a joint moves.

    Attributes:
        name: Name of the link.
        inertial: Ten standard parameters in the frame {j} of its joint, (10,); see `spatial`.
        region: Lower and upper corner of a box in {j} that contains the centre of mass, m, (2, 3); None if unknown.
    """

    name: str
    inertial: Array
    region: Array | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays and reject an empty region."""
        object.__setattr__(self, "inertial", frozen_array(self.inertial, (10,), f"link '{self.name}': inertial"))
        if self.region is not None:
            region = frozen_array(self.region, (2, 3), f"link '{self.name}': region")
            if not np.all(region[0] < region[1]):
                raise DescriptionError(
                    f"link '{self.name}': the lower corner of the region of the centre of mass must be below the upper "
                    f"one. Got {region[0].tolist()} and {region[1].tolist()} instead."
                )
            object.__setattr__(self, "region", region)

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


@checked_fields
@dataclass(frozen=True)
class Robot:
    """An immutable serial arm: joints, the links they move, and the fixed tool transform after the last one.

    Attributes:
        name: Name as in the catalogue, or that of the file.
        joints: Joints from base to tool.
        links: The link that each joint moves.
        tool_rotation: Axes of the tool in the last frame, (3, 3).
        tool_translation: Origin of the tool in the last frame, m, (3,).
        title: Name for people; empty if there is none.
        sources: Source of each group of numbers.
        superseded: Whether a calibration has replaced the described bodies: the robot is then good for kinematics, and
            the kernels reject it where they would use the described bodies.
        transmission: Coupling of motors and joints; None where every motor drives its own joint only.
    """

    name: str
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    tool_rotation: Array = field(default_factory=lambda: np.eye(3))
    tool_translation: Array = field(default_factory=lambda: np.zeros(3))
    title: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    superseded: bool = False
    transmission: Transmission | None = None

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
        if self.transmission is not None and len(self.transmission.matrix) != len(self.joints):
            raise DescriptionError(
                f"robot '{self.name}': the coupling matrix must have {len(self.joints)} rows. "
                f"Got {len(self.transmission.matrix)} instead."
            )

    def __repr__(self) -> str:
        """Return name and number of joints in one line."""
        return f"Robot({self.name!r}, {self.dof} joints)"

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


def check_joint(robot: Robot, joint: int) -> int:
    """Return the index of a joint (0-based) if the robot has it; else raise a `ModelError`."""
    if not 0 <= joint < robot.dof:
        raise ModelError(f"joint must be 0 to {robot.dof - 1} (0 is the first joint). Got {joint} instead.")
    return joint


def _check_sizes(numbers: Limits | Motor) -> None:
    """Reject numbers that are not finite or too large for any robot."""
    for name, value in vars(numbers).items():
        if value is not None and not abs(value) <= 1000.0 * LARGEST:
            raise DescriptionError(f"{name} must be finite and at most {1000.0 * LARGEST:g}. Got {value:g} instead.")


def frozen_array(values: object, shape: tuple[int, ...], what: str) -> Array:
    """Return a read-only float copy of `values`, or raise DescriptionError."""
    array = np.array(values, dtype=float)
    if array.shape != shape:
        raise DescriptionError(f"{what} must have shape {shape}. Got {array.shape} instead.")
    if not np.abs(array).max(initial=0.0) <= LARGEST:
        wrong = next(value for value in array.ravel() if not abs(value) <= LARGEST)
        raise DescriptionError(f"{what} must be finite and at most {LARGEST:g} in SI units. Got {wrong:g} instead.")
    array.setflags(write=False)
    return array
