"""Motor side of a joint: drive gain and offset, current loop, and friction by the direction of power flow.

Gains follow from a payload (`payload`, with `data` and `fit`), from the known links (`links`) or from the targets of
the controller (`targets`); `result` holds them. `drives` identifies inertia and gain of all drives from one log.
`current_loop` identifies lag and limit of the current.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.lazy import lazy_names

if TYPE_CHECKING:
    from jointwise.joint.motor.current_loop import CurrentLoop, identify_current_loop
    from jointwise.joint.motor.drives import DriveIdentification, DriveInertia, identify_drives, inertias_from_targets
    from jointwise.joint.motor.links import PowerFlowFriction, identify_motor, power_flow_of
    from jointwise.joint.motor.payload import identify_gains_from_payload
    from jointwise.joint.motor.result import JointGain, RobotGains, implausible_gain, same_drives, torque_constant
    from jointwise.joint.motor.targets import gains_from_targets

__all__ = [
    "CurrentLoop",
    "DriveIdentification",
    "DriveInertia",
    "JointGain",
    "PowerFlowFriction",
    "RobotGains",
    "gains_from_targets",
    "identify_current_loop",
    "identify_drives",
    "identify_gains_from_payload",
    "identify_motor",
    "implausible_gain",
    "inertias_from_targets",
    "power_flow_of",
    "same_drives",
    "torque_constant",
]

_MODULES = {
    "current_loop": (
        "CurrentLoop",
        "identify_current_loop",
    ),
    "drives": (
        "DriveIdentification",
        "DriveInertia",
        "identify_drives",
        "inertias_from_targets",
    ),
    "links": (
        "PowerFlowFriction",
        "identify_motor",
        "power_flow_of",
    ),
    "payload": ("identify_gains_from_payload",),
    "result": (
        "JointGain",
        "RobotGains",
        "implausible_gain",
        "same_drives",
        "torque_constant",
    ),
    "targets": ("gains_from_targets",),
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
