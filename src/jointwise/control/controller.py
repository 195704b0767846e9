"""Controllers with explicit state: `init(sample)`, then `step(state, sample)` once a control period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from jointwise.control.control_law import AffineControl, ControlSample
from jointwise.errors import ModelError
from jointwise.model.rigid.backend import kernels
from jointwise.spatial import Array

Memory = TypeVar("Memory")


class Controller(Protocol[Memory]):
    """Anything that turns samples into torques: its memory goes in and comes out, so that a run can be replayed."""

    def init(self, sample: ControlSample) -> Memory:
        """Return the memory before the first period."""

    def step(self, state: Memory, sample: ControlSample) -> tuple[Array, Memory]:
        """Return the motor torque (joints,), Nm at the joint side, of this period, and the memory for the next."""


class ControlState(NamedTuple):
    """Memory of an affine controller: the `period` to come and `integral` ∫ (q - q_d) dt so far, (joints,) rad s."""

    period: int
    integral: Array


@dataclass(frozen=True)
class AffineController:
    """A controller that is affine in what it measures, at a `rate` (Hz); see `AffineControl` for its `law`.

    All controllers of this package are of this kind: they differ in how references, feed-forward and gains are made.
    A loop may step it, or run its law natively: the torques are the same.
    """

    law: AffineControl
    rate: float

    @property
    def periods(self) -> int:
        """Control periods that the reference lasts."""
        return self.law.periods

    def init(self, sample: ControlSample) -> ControlState:
        """Return the memory at the start of the reference."""
        return ControlState(0, np.zeros_like(sample.q))

    def step(self, state: ControlState, sample: ControlSample) -> tuple[Array, ControlState]:
        """Return the torque (joints,), Nm, of this period and the memory for the next."""
        k, law = state.period, self.law
        if k >= self.periods:
            raise ModelError(f"the reference lasts {self.periods} periods. Give it a longer duration.")
        torque = _gravity(law, sample.q)
        if law.torque is not None:
            torque = torque + law.torque[k]
        for gain, name in (("kp", "q"), ("kd", "qd"), ("k_theta", "theta"), ("k_speed", "speed")):
            reference = getattr(law, name)
            if reference is not None:
                torque = torque - _times(law.gain_at(gain, k), getattr(sample, name) - reference[k])
        integral = state.integral
        if law.ki is not None and law.q is not None:
            torque = torque - _times(law.gain_at("ki", k), integral)
            integral = integral + (sample.q - law.q[k]) / self.rate
        return torque, ControlState(k + 1, integral)


def _times(gain: Array | None, error: Array) -> Array | float:
    if gain is None:
        return 0.0
    result: Array = gain * error if gain.ndim == 1 else gain @ error
    return result


def _gravity(law: AffineControl, q: Array) -> Array:
    """Return g(q) of the law's chain, (joints,) Nm; zeros without one."""
    torque: Array = np.zeros((1, len(q)))
    if law.gravity is not None:
        kernels().inverse_dynamics(law.gravity, np.ascontiguousarray(q)[None], None, None, torque)
    row: Array = torque[0]
    return row
