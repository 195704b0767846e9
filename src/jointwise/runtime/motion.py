"""Motions from arrays, and the joint torques beside those of the bodies along them.

Arrays hold one sample (joints,) or many (samples, joints); results have the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from jointwise.data.conditioning import TRACK_TIME, complementary
from jointwise.errors import ModelError, ShapeError
from jointwise.model.dynamics import Dynamics, joint_signals
from jointwise.model.rigid.chain import checked_samples
from jointwise.model.terms import Inertia, Spring, Temperature, joint_columns
from jointwise.model.terms.term import State, Term
from jointwise.motion import Motion, with_substitutes
from jointwise.spatial import Array

CHUNK = 65_536
"""Samples whose regressor columns are in memory at a time."""

States = list[list[State]]
"""State of every term, joint by joint."""


def is_single(values: ArrayLike) -> bool:
    """Return whether an array is that of one sample, (joints,)."""
    return np.ndim(values) == 1


def like(values: ArrayLike, result: Array) -> Array:
    """Return a result (samples, ...) in the form of the input: without its first axis for one sample."""
    return result[0] if is_single(values) else result


def as_samples(values: ArrayLike, joints: int, name: str, samples: int | None = None) -> Array:
    """Return finite float64 (samples, joints) of an array of one sample or many.

    Args:
        values: (joints,) or (samples, joints).
        joints: Number of joints.
        name: Name for error messages.
        samples: Number of samples that it must have; None for any.

    Raises:
        ShapeError: The shape is another, or a number is not finite.

    """
    array = checked_samples(np.atleast_2d(np.asarray(values)), joints, name, samples)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ShapeError(f"{name} must be finite. Got {array[row, column]} at sample {row}, joint {column + 1}.")
    return array


def optional_samples(values: ArrayLike | None, joints: int, name: str, samples: int) -> Array | None:
    """Return a channel as `as_samples` does, None where it is not there."""
    return None if values is None else as_samples(values, joints, name, samples)


def joint_values(values: ArrayLike | float, joints: int, name: str, samples: int) -> Array:
    """Return a number, (joints,) or (samples, joints) broadcast to (samples, joints)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 2 or (array.ndim > 0 and array.shape[-1] != joints):
        raise ShapeError(f"{name} must be a number, ({joints},) or ({samples}, {joints}). Got {array.shape} instead.")
    try:
        whole = np.broadcast_to(array, (samples, joints))
    except ValueError:
        raise ShapeError(
            f"{name} must be a number, ({joints},) or ({samples}, {joints}). Got {array.shape} instead."
        ) from None
    return as_samples(whole, joints, name)


def checked_rate(rate: float) -> float:
    """Return a sampling rate in Hz, or raise a `ModelError`."""
    if not (np.isfinite(rate) and rate > 0.0):
        raise ModelError(f"rate must be a positive number of Hz. Got {rate} instead.")
    return float(rate)


def make_motion(
    model: Dynamics,
    rate: float,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    temperature: ArrayLike | float | None = None,
    measured_speed: ArrayLike | None = None,
    rotor: ArrayLike | None = None,
) -> Motion:
    """Return the motion of arrays on a uniform clock, with everything that the terms need.

    Args:
        model: The model that will be evaluated.
        rate: Sampling rate, Hz.
        q: Positions (samples, joints), rad; those of one sample may be (joints,), as in all arrays.
        qd: Speeds, rad/s.
        qdd: Accelerations, rad/s².
        temperature: Joint temperatures, °C, one number or of the shape of `q`; None for the temperature for which the
            other friction terms hold.
        measured_speed: Measured speeds, rad/s, of a sensor-based model; None for a planned motion.
        rotor: Measured rotor positions at the joint side, rad; None for those of the joints.

    Returns:
        The motion.

    """
    dof = model.robot.dof
    positions = as_samples(q, dof, "q")
    count = len(positions)
    speeds, accelerations = (as_samples(x, dof, name, count) for x, name in ((qd, "qd"), (qdd, "qdd")))
    measured = optional_samples(measured_speed, dof, "measured_speed", count)
    motion = Motion(
        rate,
        positions,
        speeds,
        accelerations,
        track=None if measured is None else complementary(positions, measured, rate, TRACK_TIME),
        ripple=None if measured is None else measured - speeds,
        rotor=optional_samples(rotor, dof, "rotor", count),
        temperature=_temperature(model, temperature, count),
    )
    return with_substitutes(motion)


def _temperature(model: Dynamics, temperature: ArrayLike | float | None, samples: int) -> Array:
    """Return temperatures (samples, joints), °C; those of the reference where none are known."""
    if temperature is not None:
        return joint_values(temperature, model.robot.dof, "temperature", samples)
    return np.broadcast_to(reference_temperatures(model), (samples, model.robot.dof))


def reference_temperatures(model: Dynamics) -> Array:
    """Return the temperature of every joint (°C) for which its friction terms hold; 0 where there is no dependence."""
    found = [[term.reference for term in terms if isinstance(term, Temperature)] for terms in model.terms]
    return np.array([values[0] if values else 0.0 for values in found])


def start_states(model: Dynamics, rate: float) -> States:
    """Return the states of all terms before the first sample of a stream at a rate (Hz)."""
    return [[term.causal_state(rate) for term in terms] for terms in model.terms]


def term_torques(
    model: Dynamics, motion: Motion, values: Array, load: Array, states: States | None = None
) -> tuple[Array, States]:
    """Return the torque of all terms along a motion, (samples, joints), Nm.

    Args:
        model: The model.
        motion: A motion of `make_motion`.
        values: All parameters of the model.
        load: Load torque of the terms (samples, joints), Nm.
        states: States of the terms after the samples before; None for the start of a stream.

    Returns:
        The torques, and the states after the last sample.

    """
    states = start_states(model, motion.rate) if states is None else [list(joint) for joint in states]
    result = np.zeros((motion.samples, motion.joints))
    for start in range(0, motion.samples, CHUNK):
        rows = slice(start, min(start + CHUNK, motion.samples))
        part = motion.part(rows)
        for j in range(motion.joints):
            signals = joint_signals(part, j, load[rows])
            columns, states[j] = joint_columns(model.terms[j], signals, states[j])
            for each, (_, value) in zip(columns, term_values(model, j, values), strict=True):
                result[rows, j] += each @ value
    return result, states


def steady_torques(
    model: Dynamics,
    speed: Array,
    values: Array,
    load: Array,
    temperature: Array | None = None,
    without: tuple[type[Term], ...] = (),
) -> Array:
    """Return the torque of all terms at constant speeds after all transients, (samples, joints), Nm.

    Args:
        model: The model.
        speed: Speeds (samples, joints), rad/s.
        values: All parameters of the model.
        load: Load torques (samples, joints), Nm.
        temperature: Temperatures (samples, joints), °C; None for the references.
        without: Kinds of terms to leave out.

    """
    result = np.zeros_like(speed)
    for j in range(model.robot.dof):
        T = None if temperature is None else temperature[:, j]
        for term, value in term_values(model, j, values):
            if not isinstance(term, without):
                result[:, j] += term.steady(speed[:, j], load[:, j], T) @ value
    return result


def at_rest_torques(model: Dynamics, motion: Motion, values: Array) -> Array:
    """Return the torque of springs and of the rotor inertias of terms, which steady sliding does not show, Nm."""
    result = np.zeros_like(motion.q)
    for j in range(model.robot.dof):
        signals = joint_signals(motion, j)
        for term, value in term_values(model, j, values):
            if isinstance(term, Spring | Inertia):
                result[:, j] += term.columns(signals)[0] @ value
    return result


def term_values(model: Dynamics, joint: int, values: Array) -> Iterator[tuple[Term, Array]]:
    """Yield the terms of a joint (0-based) with the values of their parameters."""
    start = model.joint_slices[joint].start
    for term in model.terms[joint]:
        count = len(term.parameters())
        yield term, values[start : start + count]
        start += count
