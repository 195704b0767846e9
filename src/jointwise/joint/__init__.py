"""Single joints: each phenomenon of a strain-wave joint identified from an experiment of one joint.

One function for each `jointwise joint` command. A `JointRecord` holds the signals of one joint; each `identify_...`
function returns a `Part`; a `JointModel` collects the parts and is saved in a joint file::

    record = joint_record(read_log("speeds.csv"), robot, joint=1)
    model = load_joint("joint2.json", robot.name, joint=1).with_part(identify_friction(record))
    save_joint(model, "joint2.json")

`record` prepares the signals, `checks` refuses records, and `windows` finds samples in motion and runs at constant
speed. A phenomenon is one file: what it uses of a record, the laws it fits, and what it reports. Friction over speed,
load and temperature are laws that `engine` fits to rows; stiffness, transmission, hysteresis (its least squares are in
`hysteresis_fit`) and motor have a search of their own, `drives` holds what concerns all joints at once.
`part.identified_part` makes every part; models are selected by `simplest_candidate` on held-out data; standard errors
come from `estimation.jackknife`. Identified laws are in `laws` (friction) and `gear`; `calibration_terms` turns them
into the terms of a calibration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.lazy import lazy_names

if TYPE_CHECKING:
    from jointwise.joint.calibration_terms import drive_gain
    from jointwise.joint.curve import Curve, Surface
    from jointwise.joint.drives import (
        identify_drives,
        identify_motor_from_payload,
        identify_motor_from_targets,
        inertias_from_targets,
    )
    from jointwise.joint.friction import identify_friction
    from jointwise.joint.hysteresis import identify_hysteresis
    from jointwise.joint.identification import (
        HysteresisOptions,
        JointIdentification,
        identify,
        identify_all,
    )
    from jointwise.joint.laws import FrictionMap, friction_map
    from jointwise.joint.load import identify_load
    from jointwise.joint.model import JointModel, load_joint, load_joints, save_joint, save_joints
    from jointwise.joint.motor import identify_motor
    from jointwise.joint.part import Part, TriedModel, Value
    from jointwise.joint.phenomenon import PHENOMENA, Phenomenon
    from jointwise.joint.record import JointRecord, join_records, joint_record
    from jointwise.joint.stiffness import identify_stiffness
    from jointwise.joint.temperature import identify_temperature
    from jointwise.joint.transmission import identify_transmission

__all__ = [
    "PHENOMENA",
    "Curve",
    "FrictionMap",
    "HysteresisOptions",
    "JointIdentification",
    "JointModel",
    "JointRecord",
    "Part",
    "Phenomenon",
    "Surface",
    "TriedModel",
    "Value",
    "drive_gain",
    "friction_map",
    "identify",
    "identify_all",
    "identify_drives",
    "identify_friction",
    "identify_hysteresis",
    "identify_load",
    "identify_motor",
    "identify_motor_from_payload",
    "identify_motor_from_targets",
    "identify_stiffness",
    "identify_temperature",
    "identify_transmission",
    "inertias_from_targets",
    "join_records",
    "joint_record",
    "load_joint",
    "load_joints",
    "save_joint",
    "save_joints",
]

__getattr__, __dir__ = lazy_names(__name__)
