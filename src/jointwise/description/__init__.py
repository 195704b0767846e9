"""What the robot is."""

from jointwise.description.catalog import catalog_names, catalog_robot
from jointwise.description.files import load_robot
from jointwise.description.mounting import gravity_vector
from jointwise.description.payload import Payload
from jointwise.description.robot import Joint, Limits, Link, Motor, Robot

__all__ = [
    "Joint",
    "Limits",
    "Link",
    "Motor",
    "Payload",
    "Robot",
    "catalog_names",
    "catalog_robot",
    "gravity_vector",
    "load_robot",
]
