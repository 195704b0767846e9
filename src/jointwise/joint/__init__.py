"""Single joints: each phenomenon of a strain-wave joint identified from an experiment of one joint.

One function for each `jointwise joint` command. A `JointRecord` holds the signals of one joint; each `identify_...`
function returns a `Part`; a `JointModel` collects the parts and is saved in a joint file::

    record = joint_record(read_log("speeds.csv"), robot, joint=1)
    model = load_joint("joint2.json", robot.name, joint=1).with_part(identify_friction(record))
    save_joint(model, "joint2.json")

Every phenomenon is a package with the same files: `law` is what is identified and how a file stores it; `identify` is
the entry point that selects samples, checks, fits and makes the `Part`. What makes `identify` too long is in `data`
(samples of a record, averaged), `fit` (the estimate) and `result` (the part). Friction laws are those of
`model/friction`; models are selected by `simplest_candidate` on held-out data; standard errors come from
`estimation.jackknife`; `part.identified_part` makes every part. The motor has one file for each source of its gain
instead of one `identify`; hysteresis divides its fit into files that its package lists. What several phenomena say
together is in `combined_friction` and `calibration_terms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.lazy import lazy_names

if TYPE_CHECKING:
    from jointwise.joint.calibration_terms import drive_gain
    from jointwise.joint.combined_friction import FrictionMap, friction_map
    from jointwise.joint.curve import Curve, Surface
    from jointwise.joint.friction.identify import identify_friction
    from jointwise.joint.hysteresis.identify import identify_hysteresis
    from jointwise.joint.identification import (
        HysteresisOptions,
        JointIdentification,
        identify,
        identify_all,
        identify_motor_from_payload,
        identify_motor_from_targets,
    )
    from jointwise.joint.load.identify import identify_load
    from jointwise.joint.model import JointModel, load_joint, load_joints, save_joint, save_joints
    from jointwise.joint.motor.drives import identify_drives, inertias_from_targets
    from jointwise.joint.motor.links import identify_motor
    from jointwise.joint.part import Part, TriedModel, Value
    from jointwise.joint.phenomenon import PHENOMENA, Phenomenon
    from jointwise.joint.record import JointRecord, join_records, joint_record
    from jointwise.joint.stiffness.identify import identify_stiffness
    from jointwise.joint.temperature.identify import identify_temperature
    from jointwise.joint.transmission.identify import identify_transmission

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
