"""Kinematic error and position-dependent backlash of a gear."""

from jointwise.joint.gear_maps import GearMaps, Series, backlash_table, transmission_of
from jointwise.joint.transmission.identify import identify_transmission
from jointwise.model.periodic_table import PeriodicTable

__all__ = ["GearMaps", "PeriodicTable", "Series", "backlash_table", "identify_transmission", "transmission_of"]
