"""Experiments on the digital robot: closed loops, simulated recordings, files of an experiment plan."""

from jointwise.experiment.closed_loop import drives_of, run_loop, sample_of
from jointwise.experiment.controllers import CONTROLLERS
from jointwise.experiment.options import ControllerOptions, Events, PlantOptions, Push
from jointwise.experiment.result import SimulationResult
from jointwise.experiment.simulator import default_sensors, simulate

__all__ = [
    "CONTROLLERS",
    "ControllerOptions",
    "Events",
    "PlantOptions",
    "Push",
    "SimulationResult",
    "default_sensors",
    "drives_of",
    "run_loop",
    "sample_of",
    "simulate",
]
