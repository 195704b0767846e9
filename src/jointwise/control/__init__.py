"""Controllers of an arm: PD with gravity, PID, computed torque, torque feedback, adaptive friction, elastic, LQR.

Each function takes a robot (described, or a calibrated `RobotModel` with its gravity), a motion and a rate, and
returns a controller with ``init(sample)`` and ``step(state, sample)`` that any loop can run; `JointDrive` describes the
drives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.control.computed_torque import computed_torque
from jointwise.control.controller import AffineControl, AffineController, Controller, ControlSample, ControlState
from jointwise.control.feedback_linearisation import (
    ChainGains,
    FeedbackLinearisation,
    chain_gains,
    feedback_linearisation,
)
from jointwise.control.flexible import DriveMotion, drive_motion, flexible_feedforward
from jointwise.control.gains import Gains, bandwidth_gains, default_bandwidth, default_gains, effective_inertias
from jointwise.control.joint_drive import JointDrive
from jointwise.control.links import FeedbackOptions, Links, TaskOptions, friction_torques
from jointwise.control.lqr import Tolerances, joint_system, lqr, lqr_gain
from jointwise.control.pd import pd_gravity, pid
from jointwise.control.reference import Reference, as_reference, part_of
from jointwise.control.torque_rates import torque_rates
from jointwise.lazy import lazy_names
from jointwise.model.joint_friction import Friction, Slip, Stribeck, ThermalFriction
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.spring import Cubic, OddPolynomial, Segments, Spring

if TYPE_CHECKING:
    from jointwise.control.adaptive_friction import AdaptiveController, AdaptiveState, adaptive
    from jointwise.control.guiding import HandGuiding, hand_guiding
    from jointwise.control.torque_loop import FeedbackState, TorqueFeedback, TransmissionTorque, torque_feedback
    from jointwise.runtime.friction_adaptation import AdaptationOptions
    from jointwise.runtime.slip_friction import SlipFriction

__all__ = [
    "AdaptationOptions",
    "AdaptiveController",
    "AdaptiveState",
    "AffineControl",
    "AffineController",
    "ChainGains",
    "ControlSample",
    "ControlState",
    "Controller",
    "Cubic",
    "DriveMotion",
    "FeedbackLinearisation",
    "FeedbackOptions",
    "FeedbackState",
    "Friction",
    "Gains",
    "HandGuiding",
    "JointDrive",
    "Links",
    "OddPolynomial",
    "PeriodicTable",
    "Reference",
    "Segments",
    "Slip",
    "SlipFriction",
    "Spring",
    "Stribeck",
    "TaskOptions",
    "ThermalFriction",
    "Tolerances",
    "TorqueFeedback",
    "TransmissionTorque",
    "adaptive",
    "as_reference",
    "bandwidth_gains",
    "chain_gains",
    "computed_torque",
    "default_bandwidth",
    "default_gains",
    "drive_motion",
    "effective_inertias",
    "feedback_linearisation",
    "flexible_feedforward",
    "friction_torques",
    "hand_guiding",
    "joint_system",
    "lqr",
    "lqr_gain",
    "part_of",
    "pd_gravity",
    "pid",
    "torque_feedback",
    "torque_rates",
]

# Controllers that stand on the runtime, which loads SciPy: imported on first use.
__getattr__, __dir__ = lazy_names(__name__)
