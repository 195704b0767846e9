"""Recordings of the digital robot: what its sensors log, and the truth behind the log."""

from jointwise.simulation.recording.recorder import Recorder, Targets
from jointwise.simulation.recording.sampling import Signals, signals_at
from jointwise.simulation.recording.truth import (
    digital_robot_from_truth,
    digital_robot_to_dict,
    joint_from_dict,
    joint_to_dict,
    load_truth,
    payload_to_dict,
    save_truth,
    truth_file,
)

__all__ = [
    "Recorder",
    "Signals",
    "Targets",
    "digital_robot_from_truth",
    "digital_robot_to_dict",
    "joint_from_dict",
    "joint_to_dict",
    "load_truth",
    "payload_to_dict",
    "save_truth",
    "signals_at",
    "truth_file",
]
