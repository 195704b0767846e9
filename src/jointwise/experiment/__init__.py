"""Experiments on the digital robot: a named motion, a controller, sensors; a log and its truth come out."""

from jointwise.experiment.controllers import CONTROLLERS
from jointwise.experiment.events import Events, Push
from jointwise.experiment.recording import Recording
from jointwise.experiment.trial import simulate, usual_sensors

__all__ = ["CONTROLLERS", "Events", "Push", "Recording", "simulate", "usual_sensors"]
