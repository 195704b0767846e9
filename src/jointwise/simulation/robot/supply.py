"""The DC supply of the digital robot: standing power, losses of the drives, and the voltage and current of the bus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointwise.errors import ModelError, check_range
from jointwise.model.motor import dq_power, dq_voltages, drawn_power, drive_loss
from jointwise.simulation.robot.joint import JointPlant
from jointwise.spatial import Array


@dataclass(frozen=True)
class Supply:
    """Bus of all drives: `voltage` V without load, `source` resistance Ω, `standing` power W of controller and brakes.

    Iron and drive losses of a joint are ``no_load_current K |ω| + conversion |K i ω|`` (A and a share); `braking` power
    that no joint uses is "stored" or "burnt". The defaults are near those identified on a UR3e.
    """

    voltage: float = 48.0
    source: float = 0.1
    standing: float = 36.0
    no_load_current: float = 0.08
    conversion: float = 0.0
    braking: Literal["stored", "burnt"] = "stored"

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        check_range("supply", 0.0, above=True, voltage=self.voltage)
        losses = {name: getattr(self, name) for name in ("source", "standing", "no_load_current", "conversion")}
        check_range("supply", 0.0, **losses)
        if self.braking not in ("stored", "burnt"):
            raise ModelError(f"supply: braking must be stored or burnt. Got '{self.braking}' instead.")

    def power(self, joints: tuple[JointPlant, ...], current: Array, speed: Array) -> Array:
        """Return the power from the supply (samples,), W, at steady currents (A) and speeds (rad/s) of the motors."""
        gains = np.array([joint.motor.gain for joint in joints])
        voltages = motor_voltages(joints, current, np.zeros_like(current), speed)
        motors = dq_power((voltages[0], np.zeros_like(current)), (voltages[1], current))
        losses = drive_loss(gains * current * speed, speed, self.no_load_current * gains, self.conversion)
        return drawn_power(motors + losses, self.standing, self.braking == "burnt")

    def bus(self, power: Array) -> tuple[Array, Array]:
        """Return voltage (V) and current (A) of the bus (samples,) at a power (W): ``V = U - R I``, ``P = V I``.

        Raises:
            ModelError: The source cannot deliver the power.
        """
        root = self.voltage**2 - 4.0 * self.source * power
        if (root < 0.0).any():
            most = self.voltage**2 / (4.0 * self.source)
            raise ModelError(f"supply: at most {most:.0f} W. The motion draws {power.max():.0f} W.")
        voltage = 0.5 * (self.voltage + np.sqrt(root))
        return voltage, power / voltage


def motor_voltages(joints: tuple[JointPlant, ...], current: Array, slope: Array, speed: Array) -> tuple[Array, Array]:
    """Return v_d and v_q (samples, joints), V, at currents (A), their derivatives (A/s) and rotor speeds (rad/s)."""
    motors = [joint.motor for joint in joints]
    return dq_voltages(
        current,
        slope,
        speed,
        resistance=np.array([motor.resistance for motor in motors]),
        inductance=np.array([motor.inductance for motor in motors]),
        gain=np.array([motor.gain for motor in motors]),
        pole_speed=np.array([joint.motor.pole_pairs * joint.gear_ratio for joint in joints]),
    )
