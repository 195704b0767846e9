"""The motor side of a joint: torque per ampere, offset, and friction that depends on which way power flows."""

from jointwise.joint.motor.current_loop import CurrentLoop, identify_current_loop
from jointwise.joint.motor.drive import PowerFlow, identify_motor, power_flow_of
from jointwise.joint.motor.gain import GainEstimate, JointGain, flux_linkage, same_drives, torque_constant
from jointwise.joint.motor.pair import Pair, align_pair
from jointwise.joint.motor.payload import identify_gains_from_payload
from jointwise.joint.motor.targets import gains_from_targets

__all__ = [
    "CurrentLoop",
    "GainEstimate",
    "JointGain",
    "Pair",
    "PowerFlow",
    "align_pair",
    "flux_linkage",
    "gains_from_targets",
    "identify_current_loop",
    "identify_gains_from_payload",
    "identify_motor",
    "power_flow_of",
    "same_drives",
    "torque_constant",
]
