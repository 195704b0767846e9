"""What the tool carries: an argument of every computation, never a property of the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Robot, frozen_array
from jointwise.errors import DescriptionError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Payload:
    """A body fixed to the tool: mass (kg), centre of mass in the tool frame (m), tensor about it (kg m²)."""

    mass: float
    center_of_mass: Array | Sequence[float] = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        """Refuse what cannot be a body."""
        if not (np.isfinite(self.mass) and self.mass >= 0.0):
            raise DescriptionError(f"payload mass must be finite and >= 0 kg. Got {self.mass} instead.")
        object.__setattr__(self, "center_of_mass", frozen_array(self.center_of_mass, (3,), "payload centre of mass"))
        object.__setattr__(self, "inertia", frozen_array(self.inertia, (3, 3), "payload inertia"))

    def inertial_at_last_link(self, robot: Robot) -> Array:
        """Return the ten parameters in the frame of the robot's last joint, shape (10,)."""
        own = spatial.inertial_vector(self.mass, self.center_of_mass, self.inertia)
        return spatial.move_inertial(own, robot.tool_rotation, robot.tool_translation)


def loaded_inertials(robot: Robot, payload: Payload | None) -> Array:
    """Return the robot's nominal parameters with the payload added to the last link, shape (joints, 10)."""
    inertials = robot.inertials.copy()
    if payload is not None:
        inertials[-1] += payload.inertial_at_last_link(robot)
    return inertials
