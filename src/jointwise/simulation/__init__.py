"""A simulated robot with known parameters: `robot` is the plant, `sensors` and `recording` turn a run into a log."""

from jointwise.simulation.sensors import Sensors

__all__ = ["Sensors"]
