"""Controllers with explicit state, and the affine control law, the form in which one runs inside the native loop.

A controller has `init(sample)`, then `step(state, sample)` once a control period.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from jointwise.backend import native
from jointwise.errors import ModelError, ShapeError
from jointwise.model.rigid.chain import Chain, kernels
from jointwise.motion import DriveSignals
from jointwise.spatial import Array

REFERENCES = ("torque", "q", "qd", "theta", "speed")
GAINS = ("kp", "kd", "k_theta", "k_speed", "ki")
FEEDS = {"kp": "q", "kd": "qd", "k_theta": "theta", "k_speed": "speed", "ki": "q"}
"""Which reference each gain needs."""


@dataclass(frozen=True)
class ControlSample(DriveSignals):
    """What a controller measures at the start of a period, (joints,) each, and its `time`, s."""

    time: float

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The signals in their order, as the native kernels take them."""
        signals = (self.q, self.qd, self.theta, self.speed, self.current, self.temperature)
        return tuple(np.ascontiguousarray(values, dtype=np.float64) for values in signals)


@dataclass(frozen=True)
class AffineControl:
    """``u = u_ff - Kp (q - q_d) - Kd (q̇ - q̇_d) - Kθ (θ - θ_d) - Kω (ω - ω_d) - Ki ∫ (q - q_d) dt + g(q)`` in Nm.

    References are (periods, joints); gains are (joints,), (joints, joints), or with a leading axis of periods.

    Attributes:
        q: Reference q_d of the links, rad.
        qd: Reference of their speeds, rad/s.
        theta: Reference θ_d of the rotors, rad.
        speed: Reference ω_d of their speeds, rad/s.
        torque: Feed-forward u_ff, Nm.
        kp: Kp, Nm/rad.
        kd: Kd, Nm s/rad.
        k_theta: Kθ, Nm/rad.
        k_speed: Kω, Nm s/rad.
        ki: Ki, Nm/(rad s).
        gravity: Chain of `make_chain` whose g(q) is added at the measured position, so that the controller may assume
            another payload than the arm carries.
        gravity_shares: Shares of g(q) in the torques of coupled motors, C^-T, (joints, joints).
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
    gravity_shares: Array | None = None

    def __post_init__(self) -> None:
        """Take the arrays as float64, equally long; a gain needs its reference."""
        for name in (*REFERENCES, *GAINS, "gravity_shares"):
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
        references = (getattr(self, name) for name in REFERENCES)
        return (*references, *(self._gain(name, dof) for name in GAINS), self.gravity, self.gravity_shares)

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


Memory = TypeVar("Memory")


class Controller(Protocol[Memory]):
    """Anything that turns samples into torques: its memory goes in and comes out, so that a run can be replayed."""

    def init(self, sample: ControlSample) -> Memory:
        """Return the memory before the first period."""

    def step(self, state: Memory, sample: ControlSample) -> tuple[Array, Memory]:
        """Return the motor torque (joints,), Nm at the joint side, of this period, and the memory for the next."""


class ControlState(NamedTuple):
    """Memory of an affine controller.

    Attributes:
        period: Control period to come.
        integral: ∫ (q - q_d) dt so far, (joints,), rad s.
    """

    period: int
    integral: Array


@dataclass(frozen=True)
class AffineController:
    """A controller that is affine in what it measures.

    All controllers of this package are of this kind: they differ in how references, feed-forward and gains are made. A
    loop may step it, or run its law natively: the torques are the same.

    Attributes:
        law: References, feed-forward and gains.
        rate: Control rate, Hz.
    """

    law: AffineControl
    rate: float

    @property
    def periods(self) -> int:
        """Control periods that the reference lasts."""
        return self.law.periods

    @cached_property
    def packed(self) -> tuple[object, ...]:
        """The law as native kernels take it that have its gravity from elsewhere."""
        dof = next(value.shape[1] for name in REFERENCES if (value := getattr(self.law, name)) is not None)
        return (*self.law.native(dof)[:-2], None, None)

    def init(self, sample: ControlSample) -> ControlState:
        """Return the memory at the start of the reference."""
        return ControlState(0, np.zeros(len(sample.q)))

    def step(self, state: ControlState, sample: ControlSample) -> tuple[Array, ControlState]:
        """Return the torque (joints,), Nm, of this period and the memory for the next.

        What is measured and not finite is not fed back.
        """
        k = state.period
        if k >= self.periods:
            raise ModelError(f"the reference lasts {self.periods} periods. Give it a longer duration.")
        if (kernel := native()) is None:
            return self._numpy_step(state, sample)
        torque, integral = _gravity(self.law, sample.q), state.integral.copy()
        kernel.affine_step(self.packed, k, self.periods, self.rate, sample.arrays[:4], integral, torque)
        return torque, ControlState(k + 1, integral)

    def _numpy_step(self, state: ControlState, sample: ControlSample) -> tuple[Array, ControlState]:
        k, law = state.period, self.law
        torque = _gravity(law, sample.q)
        if law.torque is not None:
            torque = torque + law.torque[k]
        for gain, name in (("kp", "q"), ("kd", "qd"), ("k_theta", "theta"), ("k_speed", "speed")):
            reference = getattr(law, name)
            if reference is not None:
                torque = torque - _times(law.gain_at(gain, k), _error(getattr(sample, name), reference[k]))
        integral = state.integral
        if law.ki is not None and law.q is not None:
            torque = torque - _times(law.gain_at("ki", k), integral)
            integral = integral + _error(sample.q, law.q[k]) / self.rate
        return torque, ControlState(k + 1, integral)


def _error(measured: Array, wanted: Array) -> Array:
    """Return measured - wanted, 0 where it is not finite: such a signal is not fed back."""
    difference = measured - wanted
    return np.where(np.isfinite(difference), difference, 0.0)


def _times(gain: Array | None, error: Array) -> Array | float:
    if gain is None:
        return 0.0
    result: Array = gain * error if gain.ndim == 1 else gain @ error
    return result


def _gravity(law: AffineControl, q: Array) -> Array:
    """Return g(q) of the law's chain, (joints,) Nm; zeros without one."""
    torque: Array = np.zeros(len(q))
    if law.gravity is not None:
        kernels().inverse_dynamics(law.gravity, np.ascontiguousarray(q)[None], None, None, torque[None])
    return torque if law.gravity_shares is None else np.ascontiguousarray(law.gravity_shares @ torque)
