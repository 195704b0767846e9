"""What a synthetic log was made of."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.design import States
from jointwise.spatial import Array
from synthetic.friction import JointFriction
from synthetic.plant import Plant


@dataclass(frozen=True)
class Truth:
    """The plant behind a synthetic log, and its noise-free signals at every sample of the log.

    `states`: the motion at the times when samples were really taken; `rigid`: the torque of bodies and rotors,
    `torque`: the same with friction, (samples, joints), Nm.
    """

    plant: Plant
    states: States
    rigid: Array
    torque: Array

    @property
    def inertials(self) -> Array:
        """Standard parameters with the payload in the last link, (joints, 10)."""
        return self.plant.inertials

    @property
    def rotor_inertias(self) -> Array:
        """Reflected rotor inertias (joints,), kg m²."""
        return self.plant.rotor_inertias

    @property
    def friction(self) -> tuple[JointFriction, ...]:
        """Friction of every joint."""
        return self.plant.friction

    @property
    def gains(self) -> Array:
        """Drive gains (joints,), Nm/A."""
        return self.plant.gains
