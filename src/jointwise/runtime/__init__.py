"""The model at work: `RobotModel` evaluates a calibrated robot on arrays and sample by sample."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointwise.runtime.bodies import Energy
    from jointwise.runtime.model import RobotModel, load_model
    from jointwise.runtime.payload import IdentifiedPayload, identify_payload

__all__ = ["Energy", "IdentifiedPayload", "RobotModel", "identify_payload", "load_model"]

_ORIGIN = {
    "Energy": "bodies",
    "IdentifiedPayload": "payload",
    "RobotModel": "model",
    "identify_payload": "payload",
    "load_model": "model",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: laws and filters of this package load without the calibrated model."""
    if name in _ORIGIN:
        return getattr(import_module(f"jointwise.runtime.{_ORIGIN[name]}"), name)
    raise AttributeError(f"module 'jointwise.runtime' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return sorted(__all__)
