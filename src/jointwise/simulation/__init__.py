"""Robots whose truth is known: planned motions and the logs that they would leave."""

from jointwise.data.write import write_csv
from jointwise.simulation.files import write_truth
from jointwise.simulation.fourier import fourier_trajectory, single_joint_trajectory
from jointwise.simulation.friction import FRICTIONLESS, JointFriction, default_friction
from jointwise.simulation.plant import Plant
from jointwise.simulation.point_to_point import point_to_point_trajectory
from jointwise.simulation.sensors import Sensors
from jointwise.simulation.synthetic import SyntheticLog, synthetic_log
from jointwise.simulation.trajectory import States, Trajectory
from jointwise.simulation.truth import Truth

__all__ = [
    "FRICTIONLESS",
    "JointFriction",
    "Plant",
    "Sensors",
    "States",
    "SyntheticLog",
    "Trajectory",
    "Truth",
    "default_friction",
    "fourier_trajectory",
    "point_to_point_trajectory",
    "single_joint_trajectory",
    "synthetic_log",
    "write_csv",
    "write_truth",
]
