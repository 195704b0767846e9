"""Observers of a joint: torque of the transmission from three sides and their fusion, friction, disturbances.

All of them are `init` and `step` with explicit state: the same on a recorded log, on the digital robot and live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.lazy import lazy_names

if TYPE_CHECKING:
    from jointwise.runtime.observers.fusion import FusedTorque, FusionState, TorqueFusion, fuse
    from jointwise.runtime.observers.joint import ObservedJoint, observed_joint
    from jointwise.runtime.observers.unknown_torque import ObserverState, TorqueObserver

__all__ = [
    "FusedTorque",
    "FusionState",
    "ObservedJoint",
    "ObserverState",
    "TorqueFusion",
    "TorqueObserver",
    "fuse",
    "observed_joint",
]

__getattr__, __dir__ = lazy_names(__name__)
