"""Friction over speed, from runs at constant speed."""

from jointwise.joint.friction.data import Plateaus, find_plateaus
from jointwise.joint.friction.identify import identify_friction
from jointwise.joint.friction.law import FrictionForm, VelocityLaw, velocity_law_of

__all__ = ["FrictionForm", "Plateaus", "VelocityLaw", "find_plateaus", "identify_friction", "velocity_law_of"]
