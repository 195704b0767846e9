"""References: motions to follow, from trapezoids to paths of the tool, and the experiments that use them, by name."""

from jointwise.simulation.references.bang_coast_bang import bang_coast_bang
from jointwise.simulation.references.body import APART, Body, Nearest
from jointwise.simulation.references.bspline import SplineMotion, bspline_trajectory
from jointwise.simulation.references.clearance import (
    Clearance,
    ClearanceError,
    LinksError,
    PlaneError,
    farthest_reach,
    lowest_height,
    nearest_links,
    straight_way,
)
from jointwise.simulation.references.differentiable import Differentiable, derivative
from jointwise.simulation.references.experiments import EXPERIMENTS, Experiment, make_experiment
from jointwise.simulation.references.fourier import fourier_trajectory, single_joint_trajectory
from jointwise.simulation.references.limits import refuse_outside_limits
from jointwise.simulation.references.locked import TorqueProfile, torque_ramps
from jointwise.simulation.references.moves import joint_moves
from jointwise.simulation.references.piecewise import Piecewise, hold
from jointwise.simulation.references.point_to_point import point_to_point_trajectory
from jointwise.simulation.references.sampled import sampled_motion
from jointwise.simulation.references.single_joint import constant_speed_runs, load_runs, reciprocation, warm_up
from jointwise.simulation.references.stance import upright_posture
from jointwise.simulation.references.succession import Succession, succession
from jointwise.simulation.references.trajectory import States, Trajectory
from jointwise.simulation.references.waypoints import THESIS_POINTS, thesis_waypoints, waypoint_trajectory
from jointwise.simulation.references.workspace import PathMotion, ellipse_trajectory, line_trajectory

__all__ = [
    "APART",
    "EXPERIMENTS",
    "THESIS_POINTS",
    "Body",
    "Clearance",
    "ClearanceError",
    "Differentiable",
    "Experiment",
    "LinksError",
    "Nearest",
    "PathMotion",
    "Piecewise",
    "PlaneError",
    "SplineMotion",
    "States",
    "Succession",
    "TorqueProfile",
    "Trajectory",
    "bang_coast_bang",
    "bspline_trajectory",
    "constant_speed_runs",
    "derivative",
    "ellipse_trajectory",
    "farthest_reach",
    "fourier_trajectory",
    "hold",
    "joint_moves",
    "line_trajectory",
    "load_runs",
    "lowest_height",
    "make_experiment",
    "nearest_links",
    "point_to_point_trajectory",
    "reciprocation",
    "refuse_outside_limits",
    "sampled_motion",
    "single_joint_trajectory",
    "straight_way",
    "succession",
    "thesis_waypoints",
    "torque_ramps",
    "upright_posture",
    "warm_up",
    "waypoint_trajectory",
]
