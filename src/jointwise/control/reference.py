"""What a controller follows: a motion sampled at the control rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array

ORDERS = ("q", "qd", "qdd", "jerk", "snap")
Curve = Callable[[Array, int], Array]
"""dᵏq/dtᵏ (samples, joints) at times (samples,), s, and k."""


@checked_fields
@dataclass(frozen=True)
class Reference:
    """Samples (periods, joints) of a motion.

    Attributes:
        rate: Rate of the samples, Hz.
        q: Positions, rad.
        qd: Speeds, rad/s.
        qdd: Accelerations, rad/s².
        jerk: Third derivative, rad/s³; None where the motion has none. Only elastic joints need jerk and snap.
        snap: Fourth derivative, rad/s⁴; None likewise.
        curve: The motion itself, where it is known between the samples.
        times: Times of a part of a motion, s, (periods,).
        poses: Poses (any, joints) of the whole motion, from which inertias are taken.
    """

    rate: float
    q: Array
    qd: Array
    qdd: Array
    jerk: Array | None = None
    snap: Array | None = None
    curve: Curve | None = None
    times: Array | None = None
    poses: Array | None = None

    def __post_init__(self) -> None:
        """Reject arrays of different shapes."""
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise ModelError(f"rate must be finite and > 0 Hz. Got {self.rate} instead.")
        for name in ORDERS:
            value = getattr(self, name)
            if value is not None and (np.ndim(value) != 2 or value.shape != self.q.shape):
                raise ShapeError(f"{name} must have the shape (periods, joints) of q, {np.shape(self.q)}.")

    @property
    def periods(self) -> int:
        """Number of control periods."""
        return len(self.q)

    @property
    def t(self) -> Array:
        """Times of the samples, s, (periods,)."""
        return np.arange(self.periods) / self.rate if self.times is None else self.times

    @property
    def inertia_poses(self) -> Array:
        """Positions at which inertias are taken, (any, joints)."""
        return self.q if self.poses is None else self.poses

    def mapped(self, matrix: Array) -> Reference:
        """Return the motion in other coordinates, ``p = C q`` with the matrix C (joints, joints)."""
        values = {name: getattr(self, name) for name in (*ORDERS, "poses")}
        rows: dict[str, Any] = {name: None if x is None else x @ matrix.T for name, x in values.items()}
        curve = self.curve
        return replace(self, **rows, curve=None if curve is None else lambda t, k: curve(t, k) @ matrix.T)

    def shifted(self, lead: float) -> Reference:
        """Return the motion `lead` s later, sample by sample; itself where only samples are known."""
        if self.curve is None:
            return self
        orders = sum(getattr(self, name) is not None for name in ORDERS)
        return _sampled(self.curve, self.rate, self.t + lead, orders, self.poses)


@checked
def as_reference(motion: Any, rate: float, duration: float | None = None) -> Reference:
    """Return a motion as samples from t = 0.

    Args:
        motion: One with `duration` and ``derivative(t, order)`` as those of `design`, or with ``at(t)`` that returns q,
            qd, qdd; a function ``(t, order) -> (samples, joints)`` of order 0 to 4 (then state the duration); or a
            `Reference`.
        rate: Rate of the samples, Hz.
        duration: Duration, s; None for that of the motion.
    """
    if isinstance(motion, Reference):
        if motion.rate != rate:
            raise ModelError(f"the reference is sampled at {motion.rate:g} Hz. The controller wants {rate:g} Hz.")
        return motion
    if not (np.isfinite(rate) and rate > 0.0):
        raise ModelError(f"rate must be finite and > 0 Hz. Got {rate} instead.")
    time = getattr(motion, "duration", None) if duration is None else duration
    if time is None or not (np.isfinite(time) and time > 0.0):
        raise ModelError(f"duration must be a positive number of s. Got {time} instead.")
    t = np.arange(max(1, round(time * rate))) / rate
    curve, orders = _curve(motion)
    return _sampled(curve, rate, t, orders)


@checked
def part_of(motion: Any, rate: float, times: Array, poses: Array) -> Reference:
    """Return some instants of a motion as a reference.

    Args:
        motion: The motion.
        rate: Control rate, Hz.
        times: The instants, (periods,), s.
        poses: Poses that stand for the whole motion, (any, joints).
    """
    curve, orders = _curve(motion)
    return _sampled(curve, rate, times, orders, poses)


def _sampled(curve: Curve, rate: float, t: Array, orders: int, poses: Array | None = None) -> Reference:
    q, qd, qdd, *rest = (_checked(curve(t, k), len(t), k) for k in range(orders))
    jerk, snap = rest if rest else (None, None)
    return Reference(rate, q, qd, qdd, jerk, snap, curve, t, poses)


def _curve(motion: Any) -> tuple[Curve, int]:
    """Return derivatives of a motion as a function, and of how many orders."""
    if hasattr(motion, "derivative"):
        return motion.derivative, 5
    if hasattr(motion, "at"):
        return lambda t, k: getattr(motion.at(t), ORDERS[k]), 3
    if callable(motion):
        return motion, 5
    raise ModelError(f"motion must have derivative(t, order) or at(t), or be a function. Got {type(motion).__name__}.")


def _checked(values: Array, samples: int, order: int) -> Array:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 2 or len(array) != samples or not np.isfinite(array).all():
        raise ShapeError(
            f"{ORDERS[order]} of the motion must be finite, of shape ({samples}, joints). Got {array.shape}."
        )
    return array
