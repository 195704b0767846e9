"""What the robot is."""

from jointwise.description.files import list_robots, load_robot
from jointwise.description.mounting import gravity_vector
from jointwise.description.robot import Joint, Limits, Link, Motor, Payload, Robot
from jointwise.description.transmission import Transmission

__all__ = [
    "Joint",
    "Limits",
    "Link",
    "Motor",
    "Payload",
    "Robot",
    "Transmission",
    "gravity_vector",
    "list_robots",
    "load_robot",
]
