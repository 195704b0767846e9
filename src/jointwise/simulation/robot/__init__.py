"""The digital robot: an arm with elastic joints, hysteretic friction, motors and heat, integrated natively."""

from jointwise.model.joint_friction import Friction, Slip, Stribeck, ThermalFriction
from jointwise.model.spring import Cubic, Rigid, Segments
from jointwise.simulation.robot.defaults import default_joints, load_joints
from jointwise.simulation.robot.digital import DigitalRobot, Supply, digital_robot, motor_voltages
from jointwise.simulation.robot.integrator import (
    BatchError,
    ControlLaw,
    InstabilityError,
    batch,
    carried_over,
    integrate,
    step,
    stored_energy,
)
from jointwise.simulation.robot.joint import (
    GROUPS,
    PHENOMENA,
    SWITCHES,
    Backlash,
    Elasticity,
    Harmonic,
    JointPlant,
    LostMotion,
    MotorPlant,
    Thermal,
    aged_joint,
)
from jointwise.simulation.robot.run import EnergyAccount, Run, Saturation, saturation
from jointwise.simulation.robot.state import State
from jointwise.simulation.sensors import Encoders

__all__ = [
    "GROUPS",
    "PHENOMENA",
    "SWITCHES",
    "Backlash",
    "BatchError",
    "ControlLaw",
    "Cubic",
    "DigitalRobot",
    "Elasticity",
    "Encoders",
    "EnergyAccount",
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
    "State",
    "Stribeck",
    "Supply",
    "Thermal",
    "ThermalFriction",
    "aged_joint",
    "batch",
    "carried_over",
    "default_joints",
    "digital_robot",
    "integrate",
    "load_joints",
    "motor_voltages",
    "saturation",
    "step",
    "stored_energy",
]
