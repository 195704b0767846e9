"""The joints as the native side takes them: rows of numbers in the order of `law` in plant.c."""

from __future__ import annotations

import numpy as np

from jointwise.simulation.robot.elasticity import spring_numbers
from jointwise.simulation.robot.friction import MOST_ELEMENTS
from jointwise.simulation.robot.gear import MOST_HARMONICS
from jointwise.simulation.robot.joint import JointPlant
from jointwise.spatial import Array


def pack_joints(joints: tuple[JointPlant, ...], complete: bool) -> Array:
    """Return one row a joint; the rotors' spin acts on the links only in the complete model."""
    return np.array([_row(joint, complete) for joint in joints])


def _row(joint: JointPlant, complete: bool) -> Array:
    f, motor, heat = joint.friction, joint.motor, joint.thermal
    warmth, slip = f.warmth, f.slip
    waves = joint.kinematic_error
    elements = len(slip.limits) if f.is_dry else 0
    head = [
        joint.inertia, 0.0 if joint.is_rigid else 1.0, *spring_numbers(joint.stiffness), joint.damping,
        f.coulomb, f.load, f.stribeck.extra, f.stribeck.speed, f.stribeck.shape,
        f.viscous, f.square, f.cube,
        warmth.linear, warmth.cold, warmth.reference, warmth.coldest, warmth.hottest,
        f.asymmetry,
        motor.gain, motor.limit, motor.lag,
        heat.capacity, heat.conductance, heat.ambient,
        joint.inertia / joint.gear_ratio if complete and not joint.is_rigid else 0.0,
        joint.lost_motion.fraction, 1.0 / joint.lost_motion.reach,
        float(elements), float(len(waves)),
    ]  # fmt: skip
    tails = [
        _padded(slip.limits, MOST_ELEMENTS, 1.0),
        1.0 / _padded(slip.limits, MOST_ELEMENTS, 1.0),
        _padded(slip.shares, MOST_ELEMENTS, 0.0),
        *(_padded([getattr(w, name) for w in waves], MOST_HARMONICS, 0.0) for name in ("amplitude", "order", "phase")),
    ]
    return np.concatenate([head, *tails])


def _padded(values: tuple[float, ...] | list[float], length: int, fill: float) -> Array:
    result = np.full(length, fill)
    result[: len(values)] = values
    return result


def pack_backlash(joints: tuple[JointPlant, ...]) -> Array:
    """Return the maps (joints, points) in rad, resampled to the finest."""
    points = max(len(joint.backlash.values) for joint in joints)
    return np.array([joint.backlash.resampled(points) for joint in joints])
