"""Friction of an identified joint along a motion, with the state of its hysteresis carried on from call to call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise.errors import ModelError
from jointwise.joint.combined_friction import FrictionMap, friction_map
from jointwise.joint.hysteresis.law import SLIP, FrictionLaw, LawInputs, force_columns, friction_law, rest_state
from jointwise.joint.part import Part
from jointwise.model.friction import direction, slip_elements
from jointwise.model.periodic_table import PeriodicTable
from jointwise.spatial import Array

DIRECTION_WIDTH = 0.005
"""Width (rad/s) of the direction tanh(ω / width) where no hysteresis was identified: speeds below it are not resolved
by common encoders at 1 kHz."""
SLOWEST = 1e-9
"""Speed (rad/s) at which steady friction is evaluated at standstill: its level, which the direction multiplies."""


@dataclass(frozen=True, eq=False)
class JointPath:
    """Samples of one joint, (samples,): rotor `position` rad, `speed` rad/s, `load` Nm, `temperature` °C or None.

    `period` in s.
    """

    position: Array
    speed: Array
    load: Array
    temperature: Array | None
    period: float


@dataclass(frozen=True, eq=False)
class OnlineFriction:
    """``f = H f_s(|ω|, τ, T)``: steady friction f_s of a direction times the state H in [-1, 1] of the hysteresis.

    Attributes:
        steady: f_s over speed, load and temperature; None: f is that of the hysteresis alone.
        hysteresis: Slip elements, whose shares make H; other laws add their own dry friction to the viscous part. None:
            H = tanh(ω / width).
    """

    steady: FrictionMap | None = None
    hysteresis: FrictionLaw | None = None

    def __post_init__(self) -> None:
        """Reject a friction without any law."""
        if self.steady is None and self.hysteresis is None:
            raise ModelError("friction needs a friction or a hysteresis part. Got neither: identify one of them first.")

    def init(self, position: float) -> Array:
        """Return the state of relaxed elements at a rotor position (rad)."""
        return np.zeros(0) if self.hysteresis is None else rest_state(self.hysteresis, position)

    def torque(self, state: Array, path: JointPath) -> tuple[Array, Array, Array]:
        """Return friction (samples,) in Nm, H (samples,), and the state after the last sample."""
        if self.steady is None or not self._has_elements:
            return self._law_torque(state, path)
        H, state = self._direction(state, path)
        size = np.maximum(np.abs(path.speed), SLOWEST)
        forwards, backwards = (self.steady.torque(side * size, path.load, path.temperature) for side in (1.0, -1.0))
        return np.where(H >= 0.0, H * forwards, -H * backwards), H, state

    @property
    def _has_elements(self) -> bool:
        return self.hysteresis is None or self.hysteresis.model in SLIP

    def _direction(self, state: Array, path: JointPath) -> tuple[Array, Array]:
        law = self.hysteresis
        if law is None:
            return direction(path.speed, DIRECTION_WIDTH), state
        u, state = slip_elements(path.position, law.limits, state, backlash=self._backlash(path))
        result: Array = u @ (law.forces / law.forces.sum())
        return result, state

    def _law_torque(self, state: Array, path: JointPath) -> tuple[Array, Array, Array]:
        """Return friction where hysteresis is not a factor of the steady friction: dry and viscous part added."""
        law = self.hysteresis
        assert law is not None
        load = np.clip(path.load, -law.most_load, law.most_load)
        signals = LawInputs(path.position, path.speed, load, self._backlash(path), path.period)
        columns, state = force_columns(law, signals, state)
        dry: Array = columns @ law.forces
        viscous = law.viscous * path.speed if self.steady is None else self.steady.velocity.viscous_torque(path.speed)
        return dry + viscous, dry / max(float(np.abs(law.forces).sum()), SLOWEST), state

    def _backlash(self, path: JointPath) -> Array | None:
        return None if self._table is None else self._table.at(path.position)

    @cached_property
    def _table(self) -> PeriodicTable | None:
        """B(θ) relative to its mean."""
        values = None if self.hysteresis is None else self.hysteresis.backlash
        return None if values is None else PeriodicTable(tuple((values / values.mean()).tolist()))


def online_friction(parts: Mapping[str, Part]) -> OnlineFriction:
    """Return the friction of a joint from its identified phenomena.

    Args:
        parts: Parts by phenomenon: "friction" with "load" and "temperature" where they are there, or "hysteresis", or
            both.

    Raises:
        ModelError: Neither friction nor hysteresis was identified.
    """
    steady = friction_map(list(parts.values())) if "friction" in parts else None
    return OnlineFriction(steady, friction_law(parts["hysteresis"]) if "hysteresis" in parts else None)
