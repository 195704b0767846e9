"""References: motions to follow, from trapezoids to paths of the tool, and the experiments that use them, by name."""

from jointwise.design.bspline import SplineMotion, bspline_trajectory
from jointwise.design.clearance import (
    APART,
    Body,
    Clearance,
    ClearanceError,
    LinksError,
    Nearest,
    PlaneError,
    straight_path,
)
from jointwise.design.excitation import Excitation, ExcitationOptions, optimize_excitation
from jointwise.design.experiments import EXPERIMENTS, Experiment, make_experiment
from jointwise.design.fourier import fourier_trajectory
from jointwise.design.limits import check_limits, upright_posture
from jointwise.design.piecewise import (
    THESIS_POINTS,
    Piecewise,
    bang_coast_bang,
    hold,
    joint_moves,
    thesis_waypoints,
    waypoint_trajectory,
)
from jointwise.design.plan import PURPOSES, Plan, PlannedExperiment, Purpose, make_plan
from jointwise.design.sampled import sampled_motion
from jointwise.design.single_joint import (
    TorqueProfile,
    constant_speed_runs,
    load_runs,
    reciprocation,
    torque_ramps,
    warm_up,
)
from jointwise.design.trajectory import Differentiable, States, Succession, Trajectory, derivative, succession
from jointwise.design.urscript import urscript
from jointwise.design.workspace import PathMotion, ellipse_trajectory

__all__ = [
    "APART",
    "EXPERIMENTS",
    "PURPOSES",
    "THESIS_POINTS",
    "Body",
    "Clearance",
    "ClearanceError",
    "Differentiable",
    "Excitation",
    "ExcitationOptions",
    "Experiment",
    "LinksError",
    "Nearest",
    "PathMotion",
    "Piecewise",
    "Plan",
    "PlaneError",
    "PlannedExperiment",
    "Purpose",
    "SplineMotion",
    "States",
    "Succession",
    "TorqueProfile",
    "Trajectory",
    "bang_coast_bang",
    "bspline_trajectory",
    "check_limits",
    "constant_speed_runs",
    "derivative",
    "ellipse_trajectory",
    "fourier_trajectory",
    "hold",
    "joint_moves",
    "load_runs",
    "make_experiment",
    "make_plan",
    "optimize_excitation",
    "reciprocation",
    "sampled_motion",
    "straight_path",
    "succession",
    "thesis_waypoints",
    "torque_ramps",
    "upright_posture",
    "urscript",
    "warm_up",
    "waypoint_trajectory",
]
