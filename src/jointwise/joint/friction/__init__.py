"""Friction of a joint over its speed: constant-speed runs, the curve, and what it is worth."""

from jointwise.joint.friction.fit import Form
from jointwise.joint.friction.identify import identify_friction
from jointwise.joint.friction.law import VelocityLaw, velocity_law_of
from jointwise.joint.friction.plateaus import Plateaus, find_plateaus

__all__ = ["Form", "Plateaus", "VelocityLaw", "find_plateaus", "identify_friction", "velocity_law_of"]
