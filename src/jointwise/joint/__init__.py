"""What one joint is made of: every phenomenon of a strain-wave joint, each from its own experiment."""

from jointwise.joint.identify import Answers, Settings, identify, identify_all
from jointwise.joint.model import JointModel, load_joints, save_joints
from jointwise.joint.part import Alternative, Curve, Part, Surface, Value
from jointwise.joint.record import JointRecord, join_records, joint_record

__all__ = [
    "Alternative",
    "Answers",
    "Curve",
    "JointModel",
    "JointRecord",
    "Part",
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
