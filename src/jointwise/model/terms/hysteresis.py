"""Generalised Maxwell-Slip hysteresis with load dependence and relaxation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.model.terms.backlash import check_backlash, evened
from jointwise.model.terms.slip import rest_state, slip_elements
from jointwise.model.terms.term import (
    JointSignals,
    Parameter,
    State,
    Term,
    check_dependence,
    load_factor,
    load_unit,
)
from jointwise.spatial import Array

STEMS = {"q": "W", "track": "Wt", "rotor": "Wr"}
"""Drivers, and what the forces of their elements are called."""


@dataclass(frozen=True)
class Hysteresis(Term):
    """``τ = Σ_i W_i δ_i/D_i + F_C1 ℓ(τ_load) H`` with ``H = Σ_i s_i δ_i/D_i``, ``Σ s_i = 1``.

    M spring-slip elements with deformation limits D_i (rad), forces W_i >= 0 estimated. Deformations relax with the
    time constant `relaxation` (s; 0 for never): a joint that stands still loses its wind-up. `driver` is the position
    that deforms them: `q` (the path), `track`, which sees reversals that smoothing hides, or `rotor`, the side that
    rubs, where the log has it. `shape` s_i (one an element) is the share of each element in the load-dependent part,
    taken from the W_i of the fit before. `backlash` b(θ), relative to its mean, equally spaced over a turn from θ = 0,
    widens the limits where the gear is loose: the elements see ``∫ dθ / b(θ)``; () for the same everywhere.
    """

    limits: tuple[float, ...]
    relaxation: float = 0.0
    driver: str = "q"
    load: str = "none"
    shape: tuple[float, ...] = ()
    backlash: tuple[float, ...] = ()

    kind = "hysteresis"

    def __post_init__(self) -> None:
        """Refuse limits that are no increasing positive numbers, and unknown settings."""
        steps = np.diff(np.array([0.0, *self.limits]))
        if not self.limits or not (steps > 0.0).all() or not math.isfinite(self.limits[-1]):
            raise ValueError(f"limits must be positive and increasing. Got {self.limits} instead")
        if self.driver not in STEMS:
            raise ValueError(f"driver must be {', '.join(STEMS)}. Got '{self.driver}' instead")
        if not self.relaxation >= 0.0:
            raise ValueError(f"relaxation must be 0 (never) or a time in s. Got {self.relaxation} instead")
        check_backlash(self.backlash)
        check_dependence(self.load)
        if self.load != "none" and len(self.shape) != len(self.limits):
            raise ValueError(f"shape must have {len(self.limits)} entries. Got {len(self.shape)} instead")

    @staticmethod
    def polynomial_limits(elements: int, scale: float, power: float = 4.0) -> tuple[float, ...]:
        """Return ``D_i = B (i/M)^r``: M limits up to the scale B (rad), close together near zero."""
        return tuple(scale * (i / elements) ** power for i in range(1, elements + 1))

    @staticmethod
    def geometric_limits(elements: int, smallest: float, largest: float) -> tuple[float, ...]:
        """Return limits (rad) in equal ratios from the smallest to the largest."""
        return tuple(float(limit) for limit in np.geomspace(smallest, largest, elements))

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the W_i, and F_C1 with load dependence."""
        stem = STEMS[self.driver]
        forces = tuple(Parameter(f"{stem}{i}", "Nm", non_negative=True) for i in range(1, len(self.limits) + 1))
        if self.load == "none":
            return forces
        return (*forces, Parameter(f"FC{stem[1:]}1", load_unit(self.load), non_negative=True))

    def uses_load(self) -> bool:
        """Tell whether F_C1 is there."""
        return self.load != "none"

    def uses_speed(self) -> bool:
        """Tell whether the driver is `track`."""
        return self.driver == "track"

    def uses_rotor(self) -> bool:
        """Tell whether the driver is `rotor`."""
        return self.driver == "rotor"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return δ_i/D_i and ℓ H; the state is the deformations and the last position."""
        position = joint.q if joint.path is None else joint.path
        x = {"q": position, "track": joint.track, "rotor": joint.rotor}[self.driver]
        if x is None:
            needed = "a measured speed" if self.driver == "track" else "rotor positions"
            raise ValueError(f"driver {self.driver} needs {needed}")
        x = evened(x, np.array(self.backlash)) if self.backlash else x
        state = rest_state(x, len(self.limits)) if state is None else state.copy()
        decay = math.exp(-1.0 / (joint.rate * self.relaxation)) if self.relaxation > 0.0 else 1.0
        elements = slip_elements(x, np.array(self.limits), decay, state)
        if self.load == "none":
            return elements, state
        loaded = load_factor(joint.known_load(self.kind), self.load) * (elements @ np.array(self.shape))
        return np.column_stack([elements, loaded]), state
