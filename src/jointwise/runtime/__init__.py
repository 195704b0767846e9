"""The model at work: `RobotModel` evaluates a calibrated robot on arrays and sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.lazy import lazy_names

if TYPE_CHECKING:
    from jointwise.runtime.bodies import Energy
    from jointwise.runtime.model import RobotModel, load_model
    from jointwise.runtime.payload import IdentifiedPayload, identify_payload

__all__ = ["Energy", "IdentifiedPayload", "RobotModel", "identify_payload", "load_model"]

__getattr__, __dir__ = lazy_names(__name__)
