"""Observers of a torque that no sensor measures: friction, or everything a model does not know.

The speed of a rotor (or of a whole joint) of inertia B obeys ``B ẇ = τ - τ_known - f``. The observer

    B ŵ' = τ - τ_known - f̂,    f̂ = L B (ŵ - w)

gives f̂ = f filtered with a bandwidth L (rad/s), without differentiating w. Between samples w is taken as linear and the
torques as constant, for which the step is exact:

    f̂[k] = E f̂[k-1] + (1 - E) (τ - τ_known - B (w[k] - w[k-1]) / T),    E = exp(-L T)

- Friction observer: B of the rotor, ``τ = K_τ i``, τ_known = τ_J of the transmission; f̂ is the friction.
- Disturbance observer: B = 0 and τ_known the torque of a complete model, or B the inertia that it leaves out; f̂ is what
  the model does not know: changed friction, a wrong payload, contact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointwise.backend import native
from jointwise.errors import ModelError, ShapeError
from jointwise.runtime.motion import checked_rate
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class ObserverState:
    """State of an observer after the samples so far.

    Attributes:
        torque: Estimate f̂, (joints,), Nm.
        speed: Last speed w, (joints,), rad/s.
        dropped: Number of samples with a value that was not finite.
    """

    torque: Array
    speed: Array
    dropped: int = 0


@dataclass(frozen=True, eq=False)
class TorqueObserver:
    """Observer of the unknown torques of some joints.

    Attributes:
        inertia: B, kg m², (joints,).
        bandwidth: L, rad/s.
        rate: Sampling rate, Hz.

    """

    inertia: Array
    bandwidth: float
    rate: float

    def __post_init__(self) -> None:
        """Convert to arrays; reject values outside their range."""
        inertia = np.atleast_1d(np.array(self.inertia, dtype=np.float64))
        if inertia.ndim != 1 or not (np.isfinite(inertia) & (inertia >= 0.0)).all():
            raise ModelError(f"inertia must be finite and >= 0, one value per joint. Got {self.inertia} instead.")
        if not (math.isfinite(self.bandwidth) and self.bandwidth > 0.0):
            raise ModelError(f"bandwidth must be > 0 rad/s. Got {self.bandwidth} instead.")
        checked_rate(self.rate)
        object.__setattr__(self, "inertia", inertia)

    @property
    def decay(self) -> float:
        """E, the share of an estimate that remains after one sample."""
        return math.exp(-self.bandwidth / self.rate)

    def init(self, speed: ArrayLike | None = None, torque: ArrayLike | None = None) -> ObserverState:
        """Return the state at a speed (rad/s) and an estimate (Nm), (joints,) each; zeros by default."""
        zeros = np.zeros(len(self.inertia))
        return ObserverState(
            zeros if torque is None else self._row(torque), zeros if speed is None else self._row(speed)
        )

    def step(
        self, state: ObserverState, torque: ArrayLike, known: ArrayLike, speed: ArrayLike
    ) -> tuple[Array, ObserverState]:
        """Return f̂ (joints,), Nm, after one sample, and the state.

        Args:
            state: From `init` or the last step.
            torque: τ (joints,), Nm, that acted since the last sample.
            known: τ_known (joints,), Nm.
            speed: w (joints,), rad/s, at this sample.

        """
        rows = [np.atleast_1d(np.asarray(values, dtype=np.float64))[None] for values in (torque, known, speed)]
        estimates, state = self.steps(state, *rows)
        return estimates[0], state

    def steps(self, state: ObserverState, torque: Array, known: Array, speed: Array) -> tuple[Array, ObserverState]:
        """Return f̂ (samples, joints) of consecutive samples, arguments (samples, joints), and the state after them.

        A sample that is not finite holds the estimate of its joint and is counted.
        """
        shape = (len(torque), len(self.inertia))
        for name, values in (("torque", torque), ("known", known), ("speed", speed)):
            if np.shape(values) != shape:
                raise ShapeError(f"{name} must be of shape {shape}. Got {np.shape(values)} instead.")
        rows = np.array([torque, known, speed], dtype=np.float64)
        f, w, estimates = state.torque.copy(), state.speed.copy(), np.empty(shape)
        if (kernel := native()) is None:
            dropped = self._numpy_steps(f, w, rows, estimates)
        else:
            dropped = kernel.observer_steps(self.inertia, self.decay, self.rate, f, w, *rows, estimates)
        return estimates, ObserverState(f, w, state.dropped + dropped)

    def _numpy_steps(self, f: Array, w: Array, rows: Array, estimates: Array) -> int:
        """Write estimates (samples, joints) of torque, known torque and speed (3, samples, joints); update f and w.

        Return how many samples could not be used.
        """
        whole = np.logical_and.reduce(np.isfinite(rows))
        for k, (torque, known, speed) in enumerate(rows.swapaxes(0, 1)):
            unknown = torque - known - self.inertia * (speed - w) * self.rate
            f[:] = np.where(whole[k], self.decay * f + (1.0 - self.decay) * unknown, f)
            w[:] = np.where(np.isfinite(speed), speed, w)
            estimates[k] = f
        return int(np.count_nonzero(~whole.all(axis=-1)))

    def _row(self, values: ArrayLike) -> Array:
        row = np.atleast_1d(np.array(values, dtype=np.float64))
        if row.shape != self.inertia.shape or not np.isfinite(row).all():
            raise ShapeError(f"the start must be {len(self.inertia)} finite numbers. Got {row.tolist()} instead.")
        return row
