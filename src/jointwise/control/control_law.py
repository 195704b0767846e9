"""The affine control law, the form in which a controller runs inside the native loop."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ShapeError
from jointwise.model.rigid.chain import Chain
from jointwise.spatial import Array

REFERENCES = ("torque", "q", "qd", "theta", "speed")
GAINS = ("kp", "kd", "k_theta", "k_speed", "ki")
FEEDS = {"kp": "q", "kd": "qd", "k_theta": "theta", "k_speed": "speed", "ki": "q"}
"""Which reference each gain needs."""


@dataclass(frozen=True)
class ControlSample:
    """What a controller measures at the start of a period: `time` s; (joints,) rad, rad/s, A, °C.

    `q`, `qd` of the links, `theta`, `speed` of the rotors after the gear.
    """

    time: float
    q: Array
    qd: Array
    theta: Array
    speed: Array
    current: Array
    temperature: Array


@dataclass(frozen=True)
class AffineControl:
    """``u = u_ff - Kp (q - q_d) - Kd (q̇ - q̇_d) - Kθ (θ - θ_d) - Kω (ω - ω_d) - Ki ∫ (q - q_d) dt + g(q)`` in Nm.

    References are (periods, joints): `torque` u_ff (Nm), `q`, `qd`, `theta`, `speed` (rad, rad/s). Gains (Nm/rad,
    Nm s/rad, Nm/(rad s)) are (joints,), (joints, joints), or with a leading axis of periods. `gravity` adds g(q) of a
    robot at the measured position: a chain of `make_chain`, so that the controller may assume another payload than the
    arm carries.
    """

    q: Array | None = None
    qd: Array | None = None
    theta: Array | None = None
    speed: Array | None = None
    torque: Array | None = None
    kp: Array | None = None
    kd: Array | None = None
    k_theta: Array | None = None
    k_speed: Array | None = None
    ki: Array | None = None
    gravity: Chain | None = None

    def __post_init__(self) -> None:
        """Take the arrays as float64, equally long; a gain needs its reference."""
        for name in (*REFERENCES, *GAINS):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, np.ascontiguousarray(value, dtype=np.float64))
        lengths = {len(value) for name in REFERENCES if (value := getattr(self, name)) is not None}
        if len(lengths) != 1:
            raise ShapeError(
                f"at least one reference is required, all of the same length. Got lengths {sorted(lengths)} instead."
            )
        for name, reference in FEEDS.items():
            if getattr(self, name) is not None and getattr(self, reference) is None:
                raise ShapeError(f"{name} needs the reference {reference}.")

    @property
    def periods(self) -> int:
        """Number of control periods."""
        return next(len(value) for name in REFERENCES if (value := getattr(self, name)) is not None)

    def part(self, first: int, last: int) -> AffineControl:
        """Return the controller of periods first .. last - 1."""
        return self.take(slice(first, last))

    def take(self, periods: slice | NDArray[np.intp]) -> AffineControl:
        """Return the controller of some periods."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in (*REFERENCES, *GAINS):
            if values[name] is not None and (name in REFERENCES or self._varies(name)):
                values[name] = values[name][periods]
        return AffineControl(**values)

    def gain_at(self, name: str, period: int) -> Array | None:
        """Return one of `GAINS` in a period, (joints,) or (joints, joints); None where there is none."""
        value: Array | None = getattr(self, name)
        return value[period] if value is not None and self._varies(name) else value

    def checked(self, dof: int) -> AffineControl:
        """Return itself if every array fits a robot of `dof` joints, or say which does not."""
        periods = self.periods
        for name in (*REFERENCES, *GAINS):
            value = getattr(self, name)
            if value is None:
                continue
            shapes = {(periods, dof)} if name in REFERENCES else self._gain_shapes(dof)
            if value.shape not in shapes:
                raise ShapeError(f"{name} must have shape {' or '.join(map(str, sorted(shapes)))}. Got {value.shape}.")
            if not np.isfinite(value).all():
                raise ShapeError(f"{name} must be finite.")
        return self

    def native(self, dof: int) -> tuple[object, ...]:
        """Return the arrays in the order of the native side, gains that vary from period to period unfolded."""
        return (*(getattr(self, name) for name in REFERENCES), *(self._gain(name, dof) for name in GAINS), self.gravity)

    def _gain_shapes(self, dof: int) -> set[tuple[int, ...]]:
        return {(dof,), (dof, dof), (self.periods, dof), (self.periods, dof, dof)}

    def _varies(self, name: str) -> bool:
        value: Array = getattr(self, name)
        joints = next(getattr(self, r).shape[1] for r in REFERENCES if getattr(self, r) is not None)
        return value.ndim == 3 or (value.ndim == 2 and len(value) == self.periods and value.shape != (joints, joints))

    def _gain(self, name: str, dof: int) -> Array | None:
        """Return a gain in a size that cannot be mistaken: n, n², or for few periods the full (periods, n, n)."""
        value: Array | None = getattr(self, name)
        if value is None or value.ndim == 1 or value.shape == (dof, dof):
            return value
        if value.ndim == 2:
            value = value[:, :, None] * np.eye(dof)
        return np.ascontiguousarray(value[0] if len(value) == 1 else value)
