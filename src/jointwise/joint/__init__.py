"""What one joint is made of: every phenomenon of a strain-wave joint, each from its own experiment."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointwise.joint.identification import Answers, Settings, identify, identify_all
    from jointwise.joint.model import JointModel, load_joints, save_joints
    from jointwise.joint.part import Alternative, Curve, Part, Surface, Value
    from jointwise.joint.phenomenon import PHENOMENA, Phenomenon
    from jointwise.joint.record import JointRecord, join_records, joint_record

__all__ = [
    "PHENOMENA",
    "Alternative",
    "Answers",
    "Curve",
    "JointModel",
    "JointRecord",
    "Part",
    "Phenomenon",
    "Settings",
    "Surface",
    "Value",
    "identify",
    "identify_all",
    "join_records",
    "joint_record",
    "load_joints",
    "save_joints",
]

_LAZY = {
    "identification": ("Answers", "Settings", "identify", "identify_all"),
    "model": ("JointModel", "load_joints", "save_joints"),
    "part": ("Alternative", "Curve", "Part", "Surface", "Value"),
    "phenomenon": ("PHENOMENA", "Phenomenon"),
    "record": ("JointRecord", "join_records", "joint_record"),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a name of the package on first use, so that the list of phenomena costs nothing to import."""
    if name in _HOME:
        return getattr(import_module(f"jointwise.joint.{_HOME[name]}"), name)
    raise AttributeError(f"module 'jointwise.joint' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the names of the package."""
    return sorted(__all__)
