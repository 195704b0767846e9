"""A joint as observers model it, and the torque of its transmission from three sides.

    link side     τ_J = M q̈ + C q̇ + g + s f
    deflection    τ_J = τ_E(φ) + D φ̇,  φ = θ - q - e(θ) - d(θ) P
    motor side    τ_J = K_τ i - B θ̈ - (1 - s) f

f is the friction of the joint and s the share of it that acts at the link; the rest acts at the rotor. Experiments at
constant speed identify their sum only, and s is 0 unless it is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jointwise.description.robot import Robot
from jointwise.description.transmission import refuse_coupled
from jointwise.errors import ModelError
from jointwise.joint.calibration_terms import drive_gain
from jointwise.joint.gear import GearMaps, StiffnessLaw, stiffness_of, transmission_of
from jointwise.joint.laws import OnlineFriction, online_friction
from jointwise.joint.model import JointModel
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class ObservedJoint:
    """One joint at the joint side.

    Attributes:
        gain: K_τ, Nm/A.
        inertia: B of the rotor, kg m².
        friction: f.
        damping: D of the gear, Nm s/rad.
        spring: τ_E(φ); None where it is not known.
        maps: Kinematic error e(θ) and lost motion d(θ) P of the gear; None where they are not known.
        link_share: s in [0, 1].
        name: Name for messages.

    """

    gain: float
    inertia: float
    friction: OnlineFriction
    damping: float = 0.0
    spring: StiffnessLaw | None = None
    maps: GearMaps | None = None
    link_share: float = 0.0
    name: str = "joint"

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        if not (math.isfinite(self.gain) and self.gain > 0.0):
            raise ModelError(f"{self.name}: gain must be > 0 Nm/A. Got {self.gain} instead.")
        for name in ("inertia", "damping"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ModelError(f"{self.name}: {name} must be finite and >= 0. Got {value} instead.")
        if not 0.0 <= self.link_share <= 1.0:
            raise ModelError(f"{self.name}: link_share must be in [0, 1]. Got {self.link_share} instead.")

    def motor_torque(self, current: Array, acceleration: Array, friction: Array) -> Array:
        """Return τ_J of the motor side, Nm, from current (A), rotor acceleration (rad/s²) and friction (Nm)."""
        result: Array = self.gain * current - self.inertia * acceleration - (1.0 - self.link_share) * friction
        return result

    def link_torque(self, links: Array, friction: Array) -> Array:
        """Return τ_J of the link side, Nm, from the torque that the links require and friction (Nm)."""
        result: Array = links + self.link_share * friction
        return result

    def deflection_torque(self, phi: Array, rate: Array) -> Array:
        """Return ``τ_E(φ) + D φ̇``, Nm, from the deflection (rad) and its rate (rad/s)."""
        if self.spring is None:
            raise ModelError(
                f"{self.name}: the deflection gives a torque with a known spring only: identify stiffness."
            )
        return self.spring.torque(phi) + self.damping * rate


def observed_joint(
    robot: Robot, model: JointModel, *, link_share: float = 0.0, gain: float | None = None
) -> ObservedJoint:
    """Return a joint as observers model it, from its identified phenomena.

    Args:
        robot: The robot; its description provides rotor inertia and, unless identified, the drive gain.
        model: Joint file of the joint; "friction" or "hysteresis" must be there, "stiffness" and "transmission" are
            used where they are.
        link_share: Share of the friction that acts at the link.
        gain: Drive gain, Nm/A; None for the identified or the described one.

    Raises:
        ModelError: Friction, drive gain or rotor inertia is not known.
        DescriptionError: The joint is coupled.

    """
    refuse_coupled(robot, "an observer of a single joint", model.joint)
    motor, name = robot.joints[model.joint].motor, f"joint {model.joint + 1}"
    found = drive_gain(model, motor.joint_gain) if gain is None else gain
    if found is None:
        raise ModelError(f"{name}: no drive gain is known. Give it (--gain, Nm/A), or identify it ('joint motor').")
    if motor.reflected_inertia is None:
        raise ModelError(f"{name}: no rotor inertia is described; the motor side needs it. Add it to the robot.")
    parts = model.parts
    spring = stiffness_of(parts["stiffness"]) if "stiffness" in parts else None
    return ObservedJoint(
        gain=found,
        inertia=motor.reflected_inertia,
        friction=online_friction(parts),
        damping=0.0 if spring is None else spring.damping,
        spring=spring,
        maps=transmission_of(parts["transmission"]) if "transmission" in parts else None,
        link_share=link_share,
        name=name,
    )
