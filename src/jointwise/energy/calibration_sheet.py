"""The joint calibration sheet of a UR: resistance, back-EMF, torque constant and friction of the motors by regression.

At nine constant speeds the sheet lists voltage U, current I, temperature and motor torque of an unloaded joint. The
magnitudes obey ``U = R I + K_b r w`` with the gear ratio r and the speed w of the joint, ``τ = K_τ I``, and, without
load, ``τ = F_c + F_v r w + F_2 (r w)²``: friction on the motor side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import read_limited
from jointwise.call_settings import MotorSheet
from jointwise.energy.power_model import Braking, PowerModel
from jointwise.errors import DataError, EstimationError
from jointwise.estimation.jackknife import student_factor
from jointwise.joint.part import Value, value_of
from jointwise.spatial import Array

LARGEST = 1 << 20
"""Bytes of a sheet at most; one of six joints has 5 kB."""
GEAR_RATIO = MotorSheet.gear_ratio
"""Motor turns per joint turn of the UR e-series, with which the maker's back-EMF constants agree with the voltages."""
MIN_POINTS = 4
"""Fewest speeds other than zero: two parameters and their errors."""
_HEADING = re.compile(r"^\*+\s*Joint\s+(\d{1,3})\b")
_COLUMNS = 6


@dataclass(frozen=True, eq=False)
class JointSheet:
    """Rows of one joint of a maker's calibration sheet; arrays are (rows,).

    Attributes:
        joint: The joint (0-based).
        torque_constant: The maker's K_tau, Nm/A.
        speed: Speed of the joint, rad/s.
        voltage: Voltage, V.
        current: Current, A.
        temperature: Temperature, degC.
        torque: Motor torque, Nm.
    """

    joint: int
    torque_constant: float
    speed: Array
    voltage: Array
    current: Array
    temperature: Array
    torque: Array


@dataclass(frozen=True)
class MotorData:
    """Parameters of one motor with 95 % confidence intervals, and the residuals of the regressions.

    Attributes:
        joint: Joint, 0-based.
        resistance: R, Ω, as seen by the voltage of the sheet.
        back_emf: K_b, V s/rad at the motor.
        torque_constant: K_τ, Nm/A at the motor.
        coulomb: F_c, Nm at the motor.
        viscous: F_v, Nm s/rad at the motor.
        square: F_2, Nm s²/rad² at the motor; negative where friction grows less than in proportion to the speed.
        voltage_rms: Root mean square residual of the voltage, V.
        friction_rms: Root mean square residual of the friction, Nm.

    """

    joint: int
    resistance: Value
    back_emf: Value
    torque_constant: Value
    coulomb: Value
    viscous: Value
    square: Value
    voltage_rms: float
    friction_rms: float


@checked
def read_calibration_sheet(path: str | Path) -> tuple[JointSheet, ...]:
    """Return the rows of a joint calibration sheet, one entry per joint; rows at speed 0 are left out.

    Raises:
        DataError: The file is no calibration sheet, or a row is damaged; one line.

    """
    try:
        lines = read_limited(path, LARGEST, "a calibration sheet").decode("utf-8", errors="replace").splitlines()
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None
    starts = [k for k, line in enumerate(lines) if _HEADING.match(line)]
    if not starts:
        raise DataError(f"{path}: no calibration sheet: no line '**** Joint 0 :'.")
    ends = [*starts[1:], len(lines)]
    return tuple(_joint(path, lines, start, end) for start, end in zip(starts, ends, strict=True))


def _joint(path: str | Path, lines: list[str], start: int, end: int) -> JointSheet:
    heading = _HEADING.match(lines[start])
    assert heading is not None
    constants = _after(lines, start, end, "K_tau")
    first = _after(lines, start, end, "Ang. vel.")
    if constants is None or first is None:
        raise DataError(f"{path}: row {start + 1}: joint {heading[1]} has no K_tau or no table of speeds.")
    rows = []
    for k in range(first, end):
        if not lines[k].strip() or lines[k].startswith("---"):
            break
        rows.append(_numbers(path, lines[k], k)[:_COLUMNS])
    table = np.array(rows)
    table = table[table[:, 0] != 0.0]
    if len(table) < MIN_POINTS:
        raise DataError(
            f"{path}: row {first + 1}: joint {heading[1]} has {len(table)} speeds; {MIN_POINTS} are needed."
        )
    constant = _numbers(path, lines[constants], constants)[0]
    return JointSheet(int(heading[1]), constant, *table[:, :5].T)


def _after(lines: list[str], start: int, end: int, word: str) -> int | None:
    """Return the line after the one that begins with a word, None where there is none."""
    return next((k + 1 for k in range(start, end - 1) if lines[k].strip().startswith(word)), None)


def _numbers(path: str | Path, line: str, k: int) -> list[float]:
    try:
        values = [float(word) for word in line.split()]
    except ValueError:
        values = []
    if len(values) < _COLUMNS or not np.isfinite(values[: _COLUMNS - 1]).all():
        raise DataError(f"{path}: row {k + 1} must have {_COLUMNS} numbers or more. Got '{line.strip()[:60]}' instead.")
    return values


@checked
def motor_data(sheet: JointSheet, gear_ratio: float = GEAR_RATIO) -> MotorData:
    """Return the parameters of a motor by regression over the speeds of its sheet.

    Raises:
        EstimationError: The resistance is not positive: the sheet contradicts ``U = R I + K_b w``.

    """
    speed, current, torque = gear_ratio * np.abs(sheet.speed), np.abs(sheet.current), np.abs(sheet.torque)
    electric, voltage_rms = _regression(
        np.column_stack([current, speed]), sheet.voltage, (("resistance", "Ohm"), ("back_emf", "V s/rad"))
    )
    if electric[0].value <= 0.0:
        raise EstimationError(
            f"joint {sheet.joint + 1}: the regression leads to a resistance of {electric[0].value:.3g} Ohm. A winding "
            "cannot create power: the voltages or currents of the sheet are not those of one motor."
        )
    constant, _ = _regression(current[:, None], torque, (("torque_constant", "Nm/A"),))
    ones = np.ones_like(speed)
    friction, friction_rms = _regression(
        np.column_stack([ones, speed, speed**2]),
        torque,
        (("coulomb", "Nm"), ("viscous", "Nm s/rad"), ("square", "Nm s²/rad²")),
    )
    return MotorData(
        joint=sheet.joint,
        resistance=electric[0],
        back_emf=electric[1],
        torque_constant=constant[0],
        coulomb=friction[0],
        viscous=friction[1],
        square=friction[2],
        voltage_rms=voltage_rms,
        friction_rms=friction_rms,
    )


def _regression(columns: Array, values: Array, names: tuple[tuple[str, str], ...]) -> tuple[list[Value], float]:
    """Return least-squares parameters with Student intervals, and the root mean square residual."""
    found, _, rank, _ = np.linalg.lstsq(columns, values, rcond=None)
    freedom = len(values) - columns.shape[1]
    if rank < columns.shape[1] or freedom < 1:
        raise EstimationError(f"the speeds of the sheet do not determine {' and '.join(name for name, _ in names)}.")
    residual = values - columns @ found
    covariance = np.linalg.inv(columns.T @ columns) * (residual @ residual) / freedom
    errors, factor = np.sqrt(np.diag(covariance)), student_factor(freedom)
    parameters = [value_of(*name, x, e, factor) for name, x, e in zip(names, found, errors, strict=True)]
    return parameters, float(np.sqrt(np.mean(residual**2)))


@checked
def power_from_motors(
    robot: str,
    motors: tuple[MotorData, ...],
    *,
    standing: float = MotorSheet.standing,
    conversion: float = MotorSheet.conversion,
    gear_ratio: float = GEAR_RATIO,
    braking: Braking = "stored",
) -> PowerModel:
    """Return a power model from motor data alone: ``P = P_0 + Σ (R K_τ/K_b i² + K i w + c |K i w|)``.

    Voltage times current of the sheet is the electrical power only up to the convention of voltage and current (peak,
    RMS, line or phase). The power at the air gap is ``K_τ i w_m`` in any convention, so the resistance is multiplied by
    ``K_τ/K_b``.

    Args:
        robot: Name of the robot.
        motors: Parameters of the motors, one per joint.
        standing: Standing power, W: not on the sheet.
        conversion: Loss of the drives per motor power.
        gear_ratio: Motor turns per joint turn.
        braking: "stored" or "burnt".

    """
    constants = [motor.torque_constant.value for motor in motors]
    return PowerModel(
        robot=robot,
        standing=standing,
        share=1.0,
        gains=tuple(gear_ratio * constant for constant in constants),
        resistance=tuple(m.resistance.value * k / m.back_emf.value for m, k in zip(motors, constants, strict=True)),
        drag=(0.0,) * len(motors),
        conversion=conversion,
        braking=braking,
        notes=("from motor data: iron losses are those of the conversion loss only",),
    )
