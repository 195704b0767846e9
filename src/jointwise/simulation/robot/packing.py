"""Joints as arrays for the native integrator (in the order of `law` in plant.c)."""

from __future__ import annotations

import os
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
