"""The response of the drive to ripple of the speed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array

LONGEST_HISTORY = 64
"""Samples that the term may look back in a stream."""


@dataclass(frozen=True)
class SpeedRipple(Term):
    """``τ = Σ_k c_k u(t + k step)``, k = -1, 0, 1: the response of the drive to fast ripple u of the measured speed.

    u is the measured speed above the bandwidth of the model's motion: the speed loop and the inertia of the rotor
    respond to it, the links do not. A planned motion has no ripple, so the term is zero in a feed-forward. `known`
    (rad/s, 0 for no limit) is the largest ripple of the training data: u is limited to it, since glitches are larger.
    """

    step: float
    known: float = 0.0

    kind = "speed_ripple"
    role = "drive"

    def __post_init__(self) -> None:
        """Check the settings."""
        if not self.step > 0.0:
            raise ValueError(f"step must be a positive time in s. Got {self.step} instead")
        if not self.known >= 0.0:
            raise ValueError(f"known must be a speed in rad/s, or 0. Got {self.known} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the three coefficients."""
        return tuple(Parameter(f"ripple{k:+d}", "Nm s/rad") for k in (-1, 0, 1))

    def uses_speed(self) -> bool:
        """Return True: the columns depend on the measured speed."""
        return True

    def causal_state(self, rate: float) -> State:
        """Return the ripple of the samples before the first one, zero, as far back as one step."""
        return np.zeros(math.ceil(self.step * rate))

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return u one step earlier, now and one step later, constant beyond the ends.

        With a state (the u of the samples before) no later sample is used: u one step later is that of now.
        """
        if joint.ripple is None:
            raise ValueError("speed_ripple needs a measured speed")
        ripple = np.clip(joint.ripple, -self.known, self.known) if self.known > 0.0 else joint.ripple
        shift, past = self.step * joint.rate, np.zeros(0) if state is None else state
        known = np.concatenate([past, ripple])
        index = np.arange(len(past), len(known), dtype=float)
        grid = np.arange(len(known), dtype=float)
        before = np.interp(index - shift, grid, known)
        after = np.interp(index + shift, grid, known) if state is None else ripple
        return np.column_stack([before, ripple, after]), None if state is None else known[len(ripple) :]

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return zeros: a constant speed has no ripple."""
        return np.zeros((len(speed), 3))

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `ripple` of the core."""
        lag = self.step / period
        if lag > LONGEST_HISTORY:
            raise ModelError(
                f"rate must be at most {LONGEST_HISTORY / self.step:g} Hz for this model. Got {1.0 / period:g} instead."
            )
        return (CoreTerm("ripple", (*values, lag, self.known), count=math.ceil(lag)),)
