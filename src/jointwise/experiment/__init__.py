"""Experiments on the digital robot: a named motion, a controller, sensors; a log and its truth come out."""

from jointwise.experiment.controllers import CONTROLLERS
from jointwise.experiment.events import Events, Push
from jointwise.experiment.perform import FEEDBACKS, simulate, usual_sensors
from jointwise.experiment.recording import Recording

__all__ = ["CONTROLLERS", "FEEDBACKS", "Events", "Push", "Recording", "simulate", "usual_sensors"]
