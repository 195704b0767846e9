"""Exports of a calibrated model: C, FMU, URDF, MJCF, ROS 2 and UR; each with a report of what is lost.

`write` exports to a target by name, `write_all` to several; `c`, `fmu`, ... are `write` for one target each.
"""

from jointwise.export.package import Comparison, Cost, Export
from jointwise.export.targets import TARGETS, c, fmu, mjcf, ros2, unavailable, ur, urdf, write, write_all

__all__ = [
    "TARGETS",
    "Comparison",
    "Cost",
    "Export",
    "c",
    "fmu",
    "mjcf",
    "ros2",
    "unavailable",
    "ur",
    "urdf",
    "write",
    "write_all",
]
