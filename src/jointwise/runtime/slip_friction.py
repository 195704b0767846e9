"""Friction of slip elements along a motion (E-GMS): load, speed and temperature laws that act through H.

``f = level(ω, τ_J, T) H + (F_V1 + F_V2 |ω| + F_V3 ω²) ω``, H in [-1, 1] the state of the slip elements, and its dry
part ``Y1 = (F_C0 + F_C1 τ_J² + Stribeck(ω)) H``: continuous at reversal, as H replaces sgn(ω) in all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked_fields
from jointwise.backend import native
from jointwise.errors import ModelError, ShapeError
from jointwise.model.joint_friction import Friction
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.terms import slip_elements
from jointwise.spatial import Array


class FrictionParts(NamedTuple):
    """Friction and its dry part Y1 in Nm, (joints,) or (samples, joints)."""

    friction: Array
    dry: Array


@checked_fields
@dataclass(frozen=True)
class SlipFriction:
    """The friction of all joints, evaluated sample by sample.

    Attributes:
        laws: Friction of every joint; the limits of its slip elements are relative to the backlash.
        backlash: Backlash B(θ) of every joint over a turn, rad, > 0.

    """

    laws: tuple[Friction, ...]
    backlash: tuple[PeriodicTable, ...]

    def __post_init__(self) -> None:
        """Reject joints without a law or a backlash."""
        if not self.laws or len(self.laws) != len(self.backlash):
            raise ModelError(
                f"laws and backlash must be of as many joints. Got {len(self.laws)}, {len(self.backlash)} instead."
            )

    @property
    def joints(self) -> int:
        """Number of joints."""
        return len(self.laws)

    @property
    def dry_scale(self) -> Array:
        """Dry friction of every joint without load, Nm, (joints,)."""
        return np.array([law.coulomb for law in self.laws])

    @property
    def damping(self) -> Array:
        """Viscous coefficient F_V1 of every joint, Nm s/rad, (joints,)."""
        return np.array([law.viscous for law in self.laws])

    @cached_property
    def _elements(self) -> int:
        return max(len(law.slip.limits) for law in self.laws)

    @cached_property
    def packed(self) -> tuple[Array, Array]:
        """The laws (joints, numbers) and the backlash (joints, points), rad, as the native kernels take them."""
        points = max(len(table.values) for table in self.backlash)
        tables = np.array([table.resampled(points) for table in self.backlash])
        return np.array([law.packed() for law in self.laws]), tables

    def init(self, theta: ArrayLike) -> Array:
        """Return the memory of relaxed elements at rotor positions θ (joints,), rad: (joints, elements + 1)."""
        position = np.asarray(theta, dtype=float)
        if position.shape != (self.joints,):
            raise ShapeError(f"theta must have shape ({self.joints},). Got {position.shape} instead.")
        return np.column_stack([np.zeros((self.joints, self._elements)), position])

    def hysteresis(self, memory: Array, theta: ArrayLike) -> tuple[Array, Array]:
        """Return H of one sample, or of consecutive ones, and the memory after it.

        A position that is not finite counts as the one before it.

        Args:
            memory: From `init` or the samples before; it is not changed.
            theta: Rotor positions after the gear, rad, (joints,) or (samples, joints).

        Returns:
            H in [-1 - a, 1 + a], a the asymmetry, of the shape of `theta`, and the memory.

        """
        path = self._checked(theta)
        if (kernel := native()) is None:
            return self._numpy_hysteresis(memory, path)
        H, after = np.empty(path.shape), memory.copy()
        kernel.slip_hysteresis(*self.packed, after, path, H)
        return H, after

    def torque(self, H: ArrayLike, speed: ArrayLike, load: ArrayLike, temperature: ArrayLike) -> FrictionParts:
        """Return friction and its dry part, Nm, of the shape of `H`.

        Args:
            H: From `hysteresis`, (joints,) or (samples, joints).
            speed: Rotor speeds ω, rad/s.
            load: Transmitted torque τ_J, Nm.
            temperature: Joint temperatures, °C, one number or of the shape of `H`.

        """
        state = self._checked(H)
        rest = [np.ascontiguousarray(np.broadcast_to(x, state.shape), dtype=float) for x in (speed, load, temperature)]
        if (kernel := native()) is None:
            return self._numpy_torque(state, rest)
        friction, dry = np.empty(state.shape), np.empty(state.shape)
        kernel.slip_torque(self.packed[0], state, *rest, friction, dry)
        return FrictionParts(friction, dry)

    def _checked(self, values: ArrayLike) -> Array:
        array, n = np.ascontiguousarray(values, dtype=float), self.joints
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise ShapeError(f"signals must have shape ({n},) or (samples, {n}). Got {array.shape} instead.")
        return array

    def _numpy_hysteresis(self, memory: Array, path: Array) -> tuple[Array, Array]:
        rows, after = np.atleast_2d(path), memory.copy()
        H = np.empty_like(rows)
        for j, (law, table) in enumerate(zip(self.laws, self.backlash, strict=True)):
            theta, count = _held(rows[:, j], memory[j, -1]), len(law.slip.limits)
            state = np.append(memory[j, :count], memory[j, -1])
            u, state = slip_elements(theta, np.array(law.slip.limits), state, backlash=table.at(theta))
            H[:, j] = (u * (1.0 + law.asymmetry * np.sign(u))) @ np.array(law.slip.shares) if law.is_dry else 0.0
            after[j, :count], after[j, -1] = state[:-1], state[-1]
        return H.reshape(path.shape), after

    def _numpy_torque(self, H: Array, rest: list[Array]) -> FrictionParts:
        friction, dry = np.empty_like(H), np.empty_like(H)
        for j, law in enumerate(self.laws):
            speed, load, temperature = (np.atleast_1d(values[..., j]) for values in rest)
            level = law.level(speed, load, temperature).reshape(H[..., j].shape)
            friction[..., j] = level * H[..., j] + law.viscous_factor(rest[0][..., j]) * rest[0][..., j]
            dry[..., j] = law.dry_level(rest[0][..., j], rest[1][..., j]) * H[..., j]
        return FrictionParts(friction, dry)


def _held(values: Array, last: float) -> Array:
    """Return values (samples,) of which those that are not finite are replaced by the ones before them."""
    known = np.append(last, values)
    places = np.maximum.accumulate(np.where(np.isfinite(known), np.arange(len(known)), 0))
    return known[places[1:]]
