"""The artefact: a calibrated model, its proof and its file."""

from jointwise.result.calibration import Calibration
from jointwise.result.metrics import JointMetrics, Validation
from jointwise.result.model_file import load_calibration, save_model
from jointwise.result.provenance import Provenance, Source
from jointwise.result.validation import validate

__all__ = [
    "Calibration",
    "JointMetrics",
    "Provenance",
    "Source",
    "Validation",
    "load_calibration",
    "save_model",
    "validate",
]
