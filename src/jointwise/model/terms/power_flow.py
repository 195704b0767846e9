"""Dry friction by the direction in which power flows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.direction import check_driver, check_width, direction, term_direction
from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


def power_flow_columns(speed: Array, load: Array, width: float = 0.0) -> Array:
    """Return the direction where the joint drives its load (ω τ > 0), and elsewhere: the factors of T_dir and T_rev.

    Args:
        speed: Joint speeds ω (samples,), rad/s.
        load: Transmitted torques τ (samples,), Nm.
        width: As in `direction`.

    Returns:
        Two columns, (samples, 2); each is zero where the other one is not.

    """
    h, drives = direction(speed, width), speed * load > 0.0
    return np.column_stack([np.where(drives, h, 0.0), np.where(drives, 0.0, h)])


@dataclass(frozen=True)
class PowerFlow(Term):
    """``τ = T_dir tanh(v/width)`` where the joint drives its load (v τ_load > 0), else ``T_rev tanh(v/width)``.

    Attributes:
        width: Speed over which friction changes its sign, rad/s.
        driver: `speed`, or the driver of the slip elements in whose direction it acts in place of tanh.
        power: P_0 (W) over which one level turns into the other, ``½ (T_dir + T_rev) + ½ (T_dir - T_rev)
            tanh(v τ_load / P_0)``; 0 for at once.
    """

    width: float = 0.01
    driver: str = "speed"
    power: float = 0.0

    kind = "power_flow"
    role = "dry"
    needs_load = True

    def __post_init__(self) -> None:
        """Check the settings."""
        check_width(self.width)
        check_driver(self.driver)
        if not self.power >= 0.0:
            raise ValueError(f"power must be 0 (at once) or a power in W. Got {self.power} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return T_dir and T_rev."""
        return (Parameter("Tdir", "Nm", non_negative=True), Parameter("Trev", "Nm", non_negative=True))

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the direction function where power flows to the load, and elsewhere."""
        h, power = term_direction(joint, self.driver, self.width), joint.qd * joint.known_load(self.kind)
        driving = 0.5 + 0.5 * np.tanh(power / self.power) if self.power > 0.0 else (power > 0.0).astype(float)
        return np.column_stack([driving * h, (1.0 - driving) * h]), None

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `power_flow` of the core."""
        core = CoreTerm("power_flow", (*values, self.power), load="mixed", driver=self.driver, width=self.width)
        return (core,)
