"""The model at work: `RobotModel` evaluates a calibrated robot on arrays and sample by sample."""

from jointwise.runtime.bodies import Energy
from jointwise.runtime.model import RobotModel, load_model
from jointwise.runtime.payload import IdentifiedPayload, identify_payload

__all__ = ["Energy", "IdentifiedPayload", "RobotModel", "identify_payload", "load_model"]
