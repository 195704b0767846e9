"""The digital robot: an arm with elastic joints, hysteretic friction, motors and heat, integrated natively."""

from jointwise.model.control_law import AffineControl
from jointwise.model.spring import Cubic, Rigid, Segments
from jointwise.simulation.encoders import Encoders
from jointwise.simulation.robot.ageing import aged_joint
from jointwise.simulation.robot.batches import batch, simulate_batch
from jointwise.simulation.robot.defaults import default_joints, load_joints
from jointwise.simulation.robot.digital import DigitalRobot, digital_robot
from jointwise.simulation.robot.elasticity import Elasticity
from jointwise.simulation.robot.failure import BatchError, InstabilityError
from jointwise.simulation.robot.friction import Friction, Slip, Stribeck, Warmth
from jointwise.simulation.robot.gear import Backlash, Harmonic, LostMotion
from jointwise.simulation.robot.hysteresis import SlipPath, follow_path
from jointwise.simulation.robot.integrate import carried_over, simulate, step, stored_energy
from jointwise.simulation.robot.joint import JointPlant, MotorPlant, Thermal
from jointwise.simulation.robot.loop import Saturation, drives_of, run_loop, sample_of, saturation
from jointwise.simulation.robot.run import Energy, Run
from jointwise.simulation.robot.state import State
from jointwise.simulation.robot.switches import GROUPS, PHENOMENA, SWITCHES

__all__ = [
    "GROUPS",
    "PHENOMENA",
    "SWITCHES",
    "AffineControl",
    "Backlash",
    "BatchError",
    "Cubic",
    "DigitalRobot",
    "Elasticity",
    "Encoders",
    "Energy",
    "Friction",
    "Harmonic",
    "InstabilityError",
    "JointPlant",
    "LostMotion",
    "MotorPlant",
    "Rigid",
    "Run",
    "Saturation",
    "Segments",
    "Slip",
    "SlipPath",
    "State",
    "Stribeck",
    "Thermal",
    "Warmth",
    "aged_joint",
    "batch",
    "carried_over",
    "default_joints",
    "digital_robot",
    "drives_of",
    "follow_path",
    "load_joints",
    "run_loop",
    "sample_of",
    "saturation",
    "simulate",
    "simulate_batch",
    "step",
    "stored_energy",
]
