"""What a user declares about a log, and the bodies that are to be expected then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.description.transmission import Transmission, coupled
from jointwise.result.plausibility.samples import FRICTION, Samples
from jointwise.spatial import Array

T = TypeVar("T")

Coupling = tuple[int, int, float]
"""Motor and joint (0-based), and the ratio r: the motor turns by q_motor + r q_joint."""

WIDTHS = np.array([0.003, 0.03, 0.1])
"""Speeds (rad/s) over which dry friction reverses: thinned samples do not show the path of slip elements."""
WRIST = 3
"""Joints at the end of an arm whose motors may sit before them, so that each may turn with every earlier one."""

PAYLOAD_MASS, PAYLOAD_CENTER, FREE_CENTER = 0.03, 0.05, 0.2
"""Tolerances of a declared payload: part of its mass, which is weighed, of its centre (m), which is a guess, and of a
centre that is not declared (a mass alone has it at the flange)."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """What a user says about a log, and what may be wrong with it.

    Joint j moves by ``sign[j] · q[order[j]] + offset[j]``; its output is ``factor[j] · output[channel[j]]`` at lag
    index ``lag[j]``.

    Attributes:
        robot: The robot.
        gravity: Gravity in the base frame, (3,), m/s².
        gains: Drive gains, (joints,), Nm per unit of the output.
        order: Position channel of every joint, 0-based, (joints,).
        sign: Sign of its position, 1 or -1, (joints,).
        offset: Offset of its zero, (joints,), rad.
        channel: Output channel of every joint, 0-based, (joints,).
        factor: Factor of its output, (joints,).
        lag: Index of the lag of its output in `Samples.lags`, (joints,).
        payload_mass: Size of a payload that nobody declared, kg; 0 for none.
        logs: Indices of the logs that count; empty for all.
        payload: Declared payload; None for none.
        gains_known: Whether the gains are known; else they are estimated from the described bodies for every
            declaration.
        couplings: Couplings of motors and joints that nobody declared.
        joint_torques: Whether the outputs belong to the joints where there are such couplings; else to the motors.
        removed_mass: Least mass of payloads of single logs, whose torque is not in the samples, kg; 0 where a log has
            none.
        center_deviation: Tolerance of the centre of a declared payload, m.
        springs: Joints with a spring (a counterbalance) that nobody declared, 0-based.
        other_coordinates: Whether the logs of a coupled robot are in coordinates of its motors instead of its joints,
            or the reverse.
    """

    robot: Robot
    gravity: Array
    gains: Array
    order: tuple[int, ...]
    sign: tuple[float, ...]
    offset: tuple[float, ...]
    channel: tuple[int, ...]
    factor: tuple[float, ...]
    lag: tuple[int, ...]
    payload_mass: float = 0.0
    logs: tuple[int, ...] = ()
    payload: Payload | None = None
    gains_known: bool = True
    couplings: tuple[Coupling, ...] = ()
    joint_torques: bool = False
    removed_mass: float = 0.0
    center_deviation: float = PAYLOAD_CENTER
    springs: tuple[int, ...] = ()
    other_coordinates: bool = False

    @classmethod
    def plain(
        cls,
        robot: Robot,
        gravity: Sequence[float] | Array,
        gains: Array,
        samples: Samples,
        payload: Payload | None = None,
        gains_known: bool = True,
    ) -> Declaration:
        """Return the declaration that takes every channel as it is."""
        n = robot.dof
        straight = tuple(range(n))
        ones, zeros = (1.0,) * n, (0.0,) * n
        lag = (samples.zero_lag,) * n
        motion = (straight, ones, zeros)
        channels = (straight, ones, lag)
        declared = cls(
            robot, np.asarray(gravity, float), gains, *motion, *channels, payload=payload, gains_known=gains_known
        )
        known = payload is None or any(payload.center_of_mass)
        return replace(declared, center_deviation=PAYLOAD_CENTER if known else FREE_CENTER)

    def same_motion(self, other: Declaration) -> bool:
        """Return whether both lead to the same regressor and prior, so that only the outputs differ."""
        return (
            self.robot is other.robot
            and (self.couplings, self.other_coordinates) == (other.couplings, other.other_coordinates)
            and np.array_equal(self.gravity, other.gravity)
            and (self.order, self.sign, self.offset, self.logs) == (other.order, other.sign, other.offset, other.logs)
        )

    def described(self) -> bool:
        """Return whether the description has bodies."""
        return any(link.mass > 0.0 for link in self.robot.links)

    @property
    def unknown_rotors(self) -> NDArray[np.bool_]:
        """Which joints have a rotor that is not described, (joints,)."""
        return np.array([not joint.motor.reflected_inertia for joint in self.robot.joints])


def with_item(items: tuple[T, ...], j: int, value: T) -> tuple[T, ...]:
    """Return the items with item j replaced."""
    return (*items[:j], value, *items[j + 1 :])


def swapped(items: tuple[T, ...], i: int, j: int) -> tuple[T, ...]:
    """Return the items with items i and j exchanged."""
    return with_item(with_item(items, i, items[j]), j, items[i])


def coupled_pairs(moving: Sequence[int], joints: int) -> Iterator[tuple[int, int]]:
    """Yield motors and joints (0-based) that are coupled in known arms: in the wrist, and the third with the second."""
    wrist = range(max(joints - WRIST, 0), joints)
    pairs = {(i, j) for i in wrist for j in wrist if i > j} | {(2, 1)}
    yield from sorted(pair for pair in pairs if set(pair) <= set(moving))


def transmission_of(couplings: Sequence[Coupling], joints: int) -> Transmission:
    """Return the transmission of some couplings."""
    return coupled([(motor + 1, joint + 1, ratio) for motor, joint, ratio in couplings], joints)


def with_motor_friction(friction: Array, speed: Array, couplings: Sequence[Coupling]) -> Array:
    """Return friction columns (joints, samples, columns) with those of the coupled motors from their speeds, rad/s.

    Args:
        friction: Columns of every joint: three of dry friction along its position, v, v |v|, then others.
        speed: Speeds of the motors, (samples, joints).
        couplings: The couplings.

    """
    result = friction.copy()
    for motor in {coupling[0] for coupling in couplings}:
        v = speed[:, motor]
        result[motor, :, :FRICTION] = np.column_stack([*np.tanh(v / WIDTHS[:, None]), v, v * np.abs(v)])
    return result


def motor_torques(torque: Array, transmission: Transmission) -> Array:
    """Return torques of the motors, C^-T τ, from torques of the joints, both (samples, joints, columns)."""
    return np.asarray(transmission.inverse.T @ torque)


def motor_columns(regressor: Array, qdd: Array, transmission: Transmission) -> Array:
    """Return the regressor of the motors' torques (samples, joints, 11 joints) from that of the joints' torques."""
    joints = np.arange(qdd.shape[1])
    result = motor_torques(regressor, transmission)
    result[:, :, 10 * len(joints) :] = 0.0
    result[:, joints, 10 * len(joints) + joints] = transmission.motor(qdd)
    return result


@dataclass(frozen=True)
class Tolerance:
    """How far real bodies may be from the described ones (one standard deviation).

    Makers' data of UR and Franka arms are within these.

    Attributes:
        mass: Relative deviation of a mass.
        least_mass: Deviation that is added to that of the mass, kg.
        center: Deviation of a centre of mass, m.
        center_share: Part of the link's length that is added to `center`.
        inertia: Relative deviation of an inertia.
        rotor: Relative deviation of a rotor inertia.
        free_rotor: Deviation of a rotor inertia that is not described, kg m².
    """

    mass: float = 0.05
    least_mass: float = 0.05
    center: float = 0.02
    center_share: float = 0.05
    inertia: float = 0.3
    rotor: float = 0.5
    free_rotor: float = 3.0


def body_prior(declaration: Declaration, tolerance: Tolerance) -> tuple[Array, Array]:
    """Return mean and standard deviation (11 joints,) of standard parameters and reflected rotor inertias."""
    robot = declaration.robot
    bodies = loaded_inertials(robot, declaration.payload)
    lengths = np.linalg.norm([*robot.translations[1:], robot.tool_translation], axis=1).clip(min=0.05)
    if declaration.described():
        deviation = _described_deviation(robot.inertials, lengths, tolerance)
        deviation[-1] = np.hypot(deviation[-1], _payload_deviation(declaration))
    else:
        deviation = _free_deviation(lengths)
    rotors = robot.rotor_inertias
    spread = np.where(rotors > 0.0, tolerance.rotor * rotors, tolerance.free_rotor)
    return np.concatenate([bodies.ravel(), rotors]), np.concatenate([deviation.ravel(), spread])


FREE_MASS = 10.0
"""Standard deviation (kg) of the mass of a link that is not described."""


def _free_deviation(lengths: Array) -> Array:
    """Return standard deviations (links, 10) of the parameters of links that are not described, lengths in m."""
    arm = 0.5 * lengths[:, None] + 0.1
    return FREE_MASS * np.concatenate([np.tile(arm**2, 6), np.tile(arm, 3), np.ones_like(arm)], axis=1)


def _described_deviation(inertials: Array, lengths: Array, tolerance: Tolerance) -> Array:
    """Return standard deviations (links, 10) of parameters from the tolerance of mass, centre and inertia."""
    mass, length = inertials[:, 9:], lengths[:, None]
    center = inertials[:, 6:9] / np.where(mass > 0.0, mass, 1.0)
    center_sd = tolerance.center + tolerance.center_share * length
    size = np.linalg.norm(center, axis=1, keepdims=True) + 0.5 * length + 0.05
    moment = np.hypot(tolerance.mass * mass * center, mass * center_sd)
    inertia = tolerance.inertia * np.abs(inertials[:, :6]) + mass * center_sd * size
    return np.concatenate([inertia + 1e-3, moment + 1e-3, tolerance.mass * mass + tolerance.least_mass], axis=1)


PAYLOAD_ARM = 0.15
"""Distance (m) from the flange within which the centre of a payload is expected."""


def _payload_deviation(declaration: Declaration) -> Array:
    """Return standard deviations (10,) of what payloads add to the last link: the declared one, and an unknown one."""
    carried = declaration.removed_mass + (0.0 if declaration.payload is None else declaration.payload.mass)
    free = declaration.payload_mass
    mass = float(np.hypot(PAYLOAD_MASS * carried, free))
    moment = float(np.hypot(carried * declaration.center_deviation, free * PAYLOAD_ARM))
    return np.array([moment * PAYLOAD_ARM] * 6 + [moment] * 3 + [mass])
