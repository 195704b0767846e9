"""Joints as arrays for the native integrator (in the order of `law` in plant.c), and its friction laws alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from jointwise.backend import VARIABLE, native
from jointwise.errors import ModelError
from jointwise.model.spring import packed_spring
from jointwise.simulation.robot.joint import MOST_HARMONICS, JointPlant
from jointwise.spatial import Array


def kernel() -> ModuleType:
    """Return `jointwise._native`, or raise a `ModelError` if it is missing."""
    module = native()
    if module is None:
        raise ModelError(f"the digital robot needs the native kernel. {_remedy()}")
    return module


def _remedy() -> str:
    if os.environ.get(VARIABLE) == "0":
        return f"It is switched off: unset {VARIABLE}."
    return "Reinstall jointwise with a C compiler."


def pack_joints(joints: tuple[JointPlant, ...], complete: bool) -> Array:
    """Return one row per joint; the rotors' spin acts on the links only in the complete model."""
    return np.array([_row(joint, complete) for joint in joints])


def _row(joint: JointPlant, complete: bool) -> Array:
    motor, heat = joint.motor, joint.thermal
    return np.concatenate(
        [
            [joint.inertia, 0.0 if joint.is_rigid else 1.0],
            [joint.inertia / joint.gear_ratio if complete and not joint.is_rigid else 0.0],
            _gear(joint),
            joint.friction.packed(),
            [motor.gain, motor.limit, motor.lag, motor.resistance, motor.inductance],
            [heat.capacity, heat.conductance, heat.ambient],
        ]
    )


def _gear(joint: JointPlant) -> Array:
    """Return the numbers of `gear_law` in gear.h."""
    waves = joint.kinematic_error
    names = ("amplitude", "order", "phase")
    return np.concatenate(
        [
            [*packed_spring(joint.stiffness), joint.damping],
            [joint.lost_motion.fraction, 1.0 / joint.lost_motion.reach],
            [float(len(waves))],
            *(_padded([getattr(wave, name) for wave in waves]) for name in names),
        ]
    )


def _padded(values: list[float]) -> Array:
    result = np.zeros(MOST_HARMONICS)
    result[: len(values)] = values
    return result


def pack_backlash(joints: tuple[JointPlant, ...]) -> Array:
    """Return the maps (joints, points) in rad, resampled to the finest."""
    points = max(len(joint.backlash.values) for joint in joints)
    return np.array([joint.backlash.resampled(points) for joint in joints])


@dataclass(frozen=True)
class SlipPath:
    """Hysteresis along a path of a rotor.

    Attributes:
        H: H at every position, (samples,).
        mean: Mean of H since the position before, (samples,).
        deformation: Deformations δ_i of the slip elements at the end, (elements,), rad.
    """

    H: Array
    mean: Array
    deformation: Array


def follow_path(joint: JointPlant, theta: Array, deformation: Array | None = None) -> SlipPath:
    """Return the hysteresis state along rotor positions θ (samples,) rad, relaxed at the start by default."""
    elements = len(joint.friction.slip.limits)
    path = _checked("theta", theta, "(samples,)", None)
    start = np.zeros(elements) if deformation is None else deformation
    at = _checked("deformation", start, f"({elements},)", elements)
    out = np.empty((len(path), 2))
    kernel().hysteresis(pack_joints((joint,), False), pack_backlash((joint,)), path, at, out)
    return SlipPath(out[:, 0], out[:, 1], at)


def steady_friction(joint: JointPlant, speed: Array, load: Array, temperature: Array) -> tuple[Array, Array]:
    """Return the steady friction of a joint as the native integrator evaluates it.

    `Friction.level` and `Friction.viscous_factor` are its NumPy reference.

    Args:
        joint: Plant of the joint.
        speed: Speeds, (samples,), rad/s.
        load: Loads, (samples,), Nm.
        temperature: Temperatures, (samples,), °C.

    Returns:
        Dry level (Nm) and viscous factor (Nm s/rad), (samples,) each.
    """
    samples = len(speed)
    inputs = [
        _checked(name, values, f"({samples},)", samples)
        for name, values in (("speed", speed), ("load", load), ("temperature", temperature))
    ]
    out = np.empty((samples, 2))
    kernel().steady_friction(pack_joints((joint,), False), *inputs, out)
    return out[:, 0], out[:, 1]


def _checked(name: str, values: Array, shape: str, length: int | None) -> Array:
    """Return a copy; reject other shapes and values that are not finite (one gap would spoil the rest of the path)."""
    numbers = np.array(values, dtype=np.float64)
    if numbers.ndim != 1 or length not in {None, len(numbers)}:
        raise ModelError(f"{name} must have the shape {shape}. Got {numbers.shape} instead.")
    if not (finite := np.isfinite(numbers)).all():
        first = int(np.argmin(finite))
        raise ModelError(f"{name} must be finite. Got {numbers[first]} at index {first} instead: fill or remove gaps.")
    return numbers
