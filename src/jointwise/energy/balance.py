"""Energy balance of a motion: where the energy from the bus goes, per joint and for the robot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import atomic_write
from jointwise.data.coordinates import uncoupled_log
from jointwise.data.log import Log
from jointwise.energy.power_model import JointPowers, PowerModel
from jointwise.energy.signals import bus_power, energy, speeds
from jointwise.errors import DataError
from jointwise.result.calibration import CalibratedModel, Calibration, calibration_of
from jointwise.result.predict import motion_function_chunks, predict
from jointwise.spatial import Array

MIN_ENERGY = 1e-9
"""Electrical energy (J) below which an efficiency is not defined."""


@dataclass(frozen=True, eq=False)
class EnergyBalance:
    """Powers along a log (W) and their energies (J).

    The electrical power of a joint is that of its motor shaft (`mechanical`), copper loss, and iron and drive loss; the
    shaft drives links and rotor against friction. Power flows back while the joint brakes.

    Attributes:
        power_model: The power model.
        t: Stamps (samples,), s.
        joints: Powers of the joints (samples, joints).
        friction: Friction heat of the joints (samples, joints); None where neither a model nor target torques split
            the power at the shaft.
        power: Power on the bus (samples,), predicted.
        measured: The same measured, None where the log has no voltage and current of the bus.
        currents: "measured" or "predicted by the model".

    """

    power_model: PowerModel
    t: Array
    joints: JointPowers
    friction: Array | None
    power: Array
    measured: Array | None
    currents: str

    @property
    def electrical(self) -> Array:
        """Electrical powers of the joints (samples, joints), W."""
        return self.joints.electrical

    @property
    def duration(self) -> float:
        """Duration of the log, s."""
        return float(self.t[-1] - self.t[0])

    @property
    def energy(self) -> float:
        """Energy from the bus, J, predicted."""
        return energy(self.power, self.t)

    @property
    def power_rmse(self) -> float | None:
        """Root mean square error of the predicted power, W; None without a measurement."""
        return None if self.measured is None else float(np.sqrt(np.mean((self.power - self.measured) ** 2)))

    @property
    def measured_energy(self) -> float | None:
        """Energy from the bus, J, measured; None without a measurement."""
        return None if self.measured is None else energy(self.measured, self.t)

    def to_dict(self) -> dict[str, Any]:
        """Return energies (J), efficiencies and errors: `joints`, one entry per joint, and `robot`."""
        joints = [self._joint(k) for k in range(self.power_model.dof)]
        return {"robot": self._robot(joints), "joints": joints}

    def _joint(self, k: int) -> dict[str, float | int | None]:
        """Return the energies of a joint, J."""
        electrical = self.joints.electrical[:, k]
        mechanical, copper, drive = (
            energy(power[:, k], self.t) for power in (self.joints.mechanical, self.joints.copper, self.joints.drive)
        )
        friction = None if self.friction is None else energy(self.friction[:, k], self.t)
        total = mechanical + copper + drive
        return {
            "joint": k + 1,
            "electrical": total,
            "mechanical": mechanical,
            "copper": copper,
            "drive": drive,
            "friction": friction,
            "links": None if friction is None else mechanical - friction,
            "braking": energy(np.maximum(-electrical, 0.0), self.t),
            "efficiency": _efficiency(mechanical, total),
        }

    def _robot(self, joints: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the energies (J), powers (W) and efficiencies of the robot."""
        sums = {name: sum(joint[name] for joint in joints) for name in ("electrical", "mechanical", "copper", "drive")}
        friction = None if self.friction is None else sum(joint["friction"] for joint in joints)
        standing = self.power_model.standing * self.duration
        measured = self.measured_energy
        return {
            "power_rmse": self.power_rmse,
            "energy": self.energy,
            "measured_energy": measured,
            "energy_error": None if measured is None else self.energy / measured - 1.0,
            "efficiency": _efficiency(sums["mechanical"], self.energy),
            "motor_efficiency": _efficiency(sums["mechanical"], sums["electrical"]),
            "standing_power": self.power_model.standing,
            "standing": standing,
            "mechanical": sums["mechanical"],
            "copper": sums["copper"],
            "drive": sums["drive"],
            "friction": friction,
            "links": None if friction is None else sums["mechanical"] - friction,
            "braking": sum(joint["braking"] for joint in joints),
            "burnt": self.energy - standing - sums["electrical"],
            "duration": self.duration,
            "peak_power": float(self.power.max()),
            "braking_power": self.power_model.braking,
            "currents": self.currents,
        }

    def summary(self) -> str:
        """Return the balance as text: one line per joint, one for the robot."""
        result = self.to_dict()
        robot = result["robot"]
        names = ("electrical", "mechanical", "copper", "drive", "friction", "braking")
        lines = ["energies in J   " + "".join(f"{name:>12}" for name in names)]
        lines += [
            f"joint {joint['joint']:<10}" + "".join(_cell(joint[name]) for name in names) for joint in result["joints"]
        ]
        whole = {**robot, "electrical": self.energy - robot["standing"]}
        lines.append(f"{'motors':<16}" + "".join(_cell(whole[name]) for name in names))
        lines.append(
            f"robot: {self.energy:.1f} J in {self.duration:.2f} s, of which standing {robot['standing']:.1f} J "
            f"({self.power_model.standing:.1f} W); efficiency of the motors {_percent(robot['motor_efficiency'])}, of "
            f"the robot {_percent(robot['efficiency'])}; currents {self.currents}"
        )
        if self.measured is not None:
            lines.append(
                f"measured: {robot['measured_energy']:.1f} J, energy error {100.0 * robot['energy_error']:+.2f} %, "
                f"power RMSE {robot['power_rmse']:.2f} W"
            )
        return "\n".join(lines)


@checked
def energy_balance(power: PowerModel, log: Log, *, model: CalibratedModel | None = None) -> EnergyBalance:
    """Return where the energy of a motion goes.

    Args:
        power: Power model.
        log: A log with measured currents, or a planned motion (positions), for which a model predicts them.
        model: Calibrated model of the robot: predicts missing currents, and splits the power at the motor shafts into
            friction heat and power of the links. Without it, target torques of the controller split it.

    Returns:
        The balance.

    Raises:
        DataError: The log has no currents and no model is given, or it has another number of joints.

    """
    calibration = None if model is None else calibration_of(model)
    coupling = power.transmission if calibration is None else calibration.model.robot.transmission
    current, source = _currents(power, log, calibration)
    log = log if coupling is None else uncoupled_log(log, coupling)
    speed = speeds(log) if coupling is None else coupling.motor(speeds(log))
    if not np.isfinite(current).all():
        raise DataError(f"{log.origin.path}: the currents of all joints are needed; some have no value.")
    joints = power.joint_powers(current, speed)
    links = _link_torque(log, calibration)
    return EnergyBalance(
        power_model=power,
        t=np.asarray(log.t),
        joints=joints,
        friction=None if links is None else joints.mechanical - links * speed,
        power=power.bus_power(joints.electrical),
        measured=bus_power(log),
        currents=source,
    )


@checked
def write_power(balance: EnergyBalance, path: str | Path) -> None:
    """Write the predicted power as CSV: columns `t` as in the log and `power_pred`, W."""
    with atomic_write(path) as file:
        file.write("t,power_pred\n")
        for t, power in zip(balance.t.tolist(), balance.power.tolist(), strict=True):
            file.write(f"{t!r},{power:.9g}\n")


def _currents(power: PowerModel, log: Log, calibration: Calibration | None) -> tuple[Array, str]:
    """Return the motor currents (samples, joints), A, and their source."""
    if log.current is not None:
        return log.current, "measured"
    if calibration is None:
        raise DataError(
            f"{log.origin.path}: no measured currents. Record the RTDE field actual_current, or give a calibrated "
            "model that predicts them (--model MODEL)."
        )
    output = predict(calibration, log)
    if calibration.output == "current":
        return output, "predicted by the model"
    coupling = calibration.model.robot.transmission
    if coupling is not None and coupling.coordinates == "joint":
        output = coupling.motor_torque(output)
    return output / np.array(power.gains), "predicted by the model"


def _link_torque(log: Log, calibration: Calibration | None) -> Array | None:
    """Return the torque of links and rotors (samples, joints), Nm: of the model, else of the controller, else None."""
    if calibration is None:
        return log.torque_des
    torque = np.empty((log.samples, log.joints))

    def bodies(motion: Any) -> Array:
        return calibration.body_torque(motion.q, motion.qd, motion.qdd)

    for rows, values in motion_function_chunks(bodies, log, calibration.filters):
        torque[rows] = values
    return torque


def _efficiency(shaft: float, whole: float) -> float | None:
    """Return the share of an energy that reaches the shafts; None where the load drives the shafts in total."""
    return shaft / whole if whole > MIN_ENERGY and shaft >= 0.0 else None


def _percent(value: float | None) -> str:
    return "not defined" if value is None else f"{100.0 * value:.1f} %"


def _cell(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.2f}':>12}"
