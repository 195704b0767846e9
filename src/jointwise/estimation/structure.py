"""The joint model as a handful of choices, and the terms they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jointwise.errors import ModelError
from jointwise.model.terms import Coulomb, Hysteresis, Offset, PowerFlow, SpeedRipple, Stribeck, Term, Viscous
from jointwise.spatial import Array

LADDER = Hysteresis.geometric_limits(9, 4e-6, 4e-2)
"""Deformation limits (rad) that non-negative least squares chooses from: below an encoder count to a wide backlash."""


@dataclass(frozen=True)
class Structure:
    """What friction a joint model has; the same for all joints, the numbers differ.

    `direction`: how dry friction turns with the motion: `sign`, `tanh`, or `hysteresis` (slip elements with
    `limits`, times `scales` joint by joint where given, driven by the positions `drivers`, relaxing within `relaxation`
    s, 0 for never). `load`: dependence of
    dry friction on the load torque: none, square, absolute. `powers` of the viscous polynomial. `stribeck` velocity
    (rad/s, 0 for none). `power_flow`: friction by direction of power. `ripple`: time step (s) of the drive's answer to
    speed ripple, 0 for none. `offset`: a constant.
    """

    direction: str = "sign"
    load: str = "none"
    powers: tuple[float, ...] = (1.0,)
    drivers: tuple[str, ...] = ("q",)
    relaxation: float = 0.0
    limits: tuple[float, ...] = LADDER
    scales: tuple[float, ...] = ()
    width: float = 0.01
    stribeck: float = 0.0
    power_flow: bool = False
    ripple: float = 0.0
    offset: bool = True

    def __post_init__(self) -> None:
        """Refuse unknown choices."""
        if self.direction not in ("sign", "tanh", "hysteresis"):
            raise ModelError(f"direction must be sign, tanh or hysteresis. Got '{self.direction}' instead.")
        try:
            self.terms()
        except ValueError as problem:
            raise ModelError(f"{problem}.") from None

    @property
    def needs_load(self) -> bool:
        """Whether a load torque must be known."""
        return self.load != "none" or self.power_flow

    @property
    def needs_speed(self) -> bool:
        """Whether a measured speed must be in the log."""
        return self.ripple > 0.0 or (self.direction == "hysteresis" and "track" in self.drivers)

    @property
    def needs_rotor(self) -> bool:
        """Whether the position of the rotors must be in the log."""
        return self.direction == "hysteresis" and "rotor" in self.drivers

    def without_load(self) -> Structure:
        """Return the same structure with nothing that depends on load, where a fit starts."""
        return replace(self, load="none", power_flow=False)

    def terms(self, shapes: tuple[tuple[float, ...], ...] = (), joint: int = 0) -> tuple[Term, ...]:
        """Return the terms of a joint (0-based); `shapes` are the shares of the slip elements, one tuple a driver."""
        terms: list[Term] = [Offset()] if self.offset else []
        if self.powers:
            terms.append(Viscous(self.powers))
        if self.stribeck > 0.0:
            terms.append(Stribeck(self.stribeck, width=self.width))
        if self.power_flow:
            terms.append(PowerFlow(self.width))
        if self.direction == "hysteresis":
            even = tuple(np.full(len(self.limits), 1.0 / len(self.limits)).tolist())
            chosen = shapes or tuple(even for _ in self.drivers)
            scale = self.scales[joint] if self.scales else 1.0
            limits = tuple(scale * limit for limit in self.limits)
            terms += [
                Hysteresis(limits, self.relaxation, driver, self.load, shape if self.load != "none" else ())
                for driver, shape in zip(self.drivers, chosen, strict=True)
            ]
        elif not self.power_flow:
            terms.append(Coulomb(self.load, self.direction, self.width))
        if self.ripple > 0.0:
            terms.append(SpeedRipple(self.ripple))
        return tuple(terms)

    def to_dict(self) -> dict[str, Any]:
        """Return the choices as a document."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    def describe(self) -> str:
        """Return the choices in a few words."""
        parts = [f"viscous powers {', '.join(f'{p:g}' for p in self.powers)}" if self.powers else "no viscous friction"]
        if self.direction == "hysteresis":
            memory = f", relaxing in {self.relaxation:g} s" if self.relaxation else ""
            parts.append(f"hysteresis of {len(self.limits)} slip elements on {' and '.join(self.drivers)}{memory}")
        elif self.power_flow:
            parts.append("dry friction by direction of power")
        else:
            parts.append(f"Coulomb friction by {self.direction}")
        parts.append("no load dependence" if self.load == "none" else f"{self.load} load dependence")
        parts += ["Stribeck"] * (self.stribeck > 0.0) + ["answer to speed ripple"] * (self.ripple > 0.0)
        return ", ".join(parts)


def element_shapes(terms: Sequence[Term], values: Array) -> tuple[tuple[float, ...], ...]:
    """Return the share of every slip element in each driver's hysteresis, from the term values of one joint."""
    shapes, place = [], 0
    for term in terms:
        size = len(term.parameters())
        if isinstance(term, Hysteresis):
            forces = np.maximum(values[place : place + len(term.limits)], 0.0)
            total = float(forces.sum())
            even = np.full(len(forces), 1.0 / len(forces))
            shapes.append(tuple((forces / total if total > 0.0 else even).tolist()))
        place += size
    return tuple(shapes)
