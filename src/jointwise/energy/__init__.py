"""Power and energy of a robot: from a log or a planned motion to the power on its DC bus.

`fit_power` identifies a `PowerModel` from the measured power on the bus, `energy_balance` reports where the energy of a
motion goes. `read_calibration_sheet` and `motor_data` estimate motor constants from the maker's sheet, and `park`
converts phase currents. `optimize_motion` finds the motion of a task with the least energy.
"""

from jointwise.energy.balance import EnergyBalance, energy_balance, write_power
from jointwise.energy.calibration_sheet import (
    JointSheet,
    MotorData,
    motor_data,
    power_from_motors,
    read_calibration_sheet,
)
from jointwise.energy.fit import fit_power
from jointwise.energy.minimum import MinimumEnergyMotion, optimize_motion
from jointwise.energy.motion_power import MotionPower, motion_power
from jointwise.energy.power_model import JointPowers, PowerModel, is_power_file, load_power_model
from jointwise.energy.signals import bus_power, controller_gains, gains_from_joints, inverse_park, park, read_power_log

__all__ = [
    "EnergyBalance",
    "JointPowers",
    "JointSheet",
    "MinimumEnergyMotion",
    "MotionPower",
    "MotorData",
    "PowerModel",
    "bus_power",
    "controller_gains",
    "energy_balance",
    "fit_power",
    "gains_from_joints",
    "inverse_park",
    "is_power_file",
    "load_power_model",
    "motion_power",
    "motor_data",
    "optimize_motion",
    "park",
    "power_from_motors",
    "read_calibration_sheet",
    "read_power_log",
    "write_power",
]
