"""Kinematic error and position-dependent backlash of a gear."""

from jointwise.joint.transmission.identify import identify_transmission
from jointwise.joint.transmission.law import GearMaps, backlash_table, transmission_of

__all__ = ["GearMaps", "backlash_table", "identify_transmission", "transmission_of"]
