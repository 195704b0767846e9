"""Standing power and losses of a robot from the measured power on its DC bus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.optimize import nnls

from jointwise.arguments import checked
from jointwise.data.coordinates import model_log
from jointwise.data.log import Log, check_joints, log_list
from jointwise.data.overlap import refuse_repeated_samples
from jointwise.description.robot import Robot
from jointwise.energy.power_model import Braking, PowerModel
from jointwise.energy.signals import CURRENT, VOLTAGE, KnownGains, bus_power, check_stamps, controller_gains, speeds
from jointwise.errors import DataError, EstimationError
from jointwise.estimation.gram import block_grams, gram_solution
from jointwise.estimation.jackknife import MIN_BLOCKS, jackknife, recording_blocks, student_factor
from jointwise.joint.part import Value
from jointwise.model.transmission import motor_values
from jointwise.spatial import Array

NAMES = (
    ("standing", "W"),
    ("share", ""),
    ("resistance", "Ohm"),
    ("no_load_current", "A"),
)
"""Parameters of the fit and their units."""
BLOCK_DURATION = 0.2
"""Shortest block of the jackknife (s): the error of the bus power is uncorrelated after two samples at 25 Hz."""
RIDGE = 1e-12
"""Relative to the Gram matrix: keeps its factorisation defined where a joint does not move."""

LEAST_COST = 0.01
"""Part of the variance of the power that a negative loss must explain to be an error of the data. One resistance
and one no-load current for joints of several sizes cost less than 0.001 in simulated logs of a UR5e."""


@checked
def fit_power(
    logs: Log | Sequence[Log], robot: Robot, *, gains: Sequence[float] | None = None, braking: Braking = "stored"
) -> PowerModel:
    """Return the power model of a robot from logs with the voltage and current of its DC bus.

    ``P = P_0 + η Σ K_j i_j w_j + R Σ i_j² + i_0 Σ K_j |w_j|`` by least squares with all parameters at least 0: standing
    power P_0, motor power with a share η (near 1), resistance R, and a no-load current i_0 for iron and drive losses.
    Intervals by the block jackknife.

    Args:
        logs: Logs with measured currents and the RTDE fields `actual_robot_voltage`, `actual_robot_current` in `extra`.
        robot: The robot.
        gains: Joint torque per ampere (joints,), Nm/A; None for those of the controller's targets in the logs, else
            those of the description.
        braking: "stored" or "burnt": what happens to braking power that no joint uses.

    Returns:
        The power model.

    Raises:
        DataError: A log lacks currents, bus voltage or bus current, or no gains are known.
        EstimationError: The logs are too short, only a negative loss explains the power, or the power on the bus does
            not follow that of the motors.

    """
    recordings = log_list(logs)
    for log in recordings:
        _check_log(log, robot)
    recordings = [model_log(log, robot) for log in recordings]
    refuse_repeated_samples(recordings)
    known = controller_gains(recordings, robot) if gains is None else KnownGains(_checked(gains, robot), "given")
    columns, power, block = _rows(recordings, known.values, robot)
    grams = block_grams(np.column_stack([columns, power]), block)
    found, errors = jackknife(_bounded, grams)
    factor = student_factor(len(grams) - 1)
    _check_signs(grams, factor)
    values = tuple(_value(k, found[k], factor * errors[k], errors[k]) for k in range(len(NAMES)))
    _check_share(values[1], recordings[0].origin.path)
    residual = power - columns @ found
    return PowerModel(
        robot=robot.name,
        standing=float(found[0]),
        share=float(found[1]),
        gains=tuple(float(gain) for gain in known.values),
        resistance=(float(found[2]),) * robot.dof,
        drag=tuple(float(found[3] * gain) for gain in known.values),
        braking=braking,
        values=values,
        rmse=float(np.sqrt(np.mean(residual**2))),
        logs=tuple(log.origin.path for log in recordings),
        notes=_notes(found, known),
        **_coupling(robot),
    )


def _check_share(share: Value, path: str) -> None:
    """Reject a share of the motor power on the bus whose interval contains 0."""
    if share.low <= 0.0:
        raise EstimationError(
            f"{path}: the power on the bus does not follow the power of the motors (share {share.value:.3g}, 95 % "
            f"interval from {share.low:.3g}). Are currents, speeds and bus of the same clock?"
        )


def _coupling(robot: Robot) -> dict[str, Any]:
    """Return the entries of a power model for a coupled transmission."""
    if robot.transmission is None:
        return {}
    rows = tuple(tuple(row) for row in robot.transmission.matrix.tolist())
    return {"coupling": rows, "coordinates": robot.transmission.coordinates}


def _check_log(log: Log, robot: Robot) -> None:
    """Reject a log without what the fit needs."""
    check_joints(log, robot)
    check_stamps(log)
    missing = [name for name in (VOLTAGE, CURRENT) if name not in log.extra]
    if missing:
        raise DataError(
            f"{log.origin.path}: no {' and no '.join(missing)}. Record these RTDE fields: their product is the power "
            "on the bus."
        )
    if log.current is None:
        raise DataError(f"{log.origin.path}: no measured currents. Record the RTDE field actual_current.")


def _checked(gains: Sequence[float], robot: Robot) -> Array:
    values = np.asarray(gains, dtype=float)
    if values.shape != (robot.dof,) or not (values > 0.0).all():
        raise DataError(f"gains must be {robot.dof} numbers > 0. Got {len(values)}: {list(gains)} instead.")
    return values


def _rows(logs: Sequence[Log], gains: Array, robot: Robot) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return the columns of the fit (rows, 4), the measured power (rows,) and the block of each row."""
    columns, powers = [], []
    for log in logs:
        power, current, speed = bus_power(log), log.channel("current"), motor_values(robot, speeds(log))
        assert power is not None
        columns.append(power_columns(current, speed, gains))
        powers.append(power)
    block = recording_blocks([(log.samples, log.duration) for log in logs], BLOCK_DURATION)
    if block[-1] + 1 < MIN_BLOCKS:
        raise EstimationError(
            f"{logs[0].origin.path}: {sum(log.duration for log in logs):.3g} s of motion are too short. Record at "
            f"least {MIN_BLOCKS * BLOCK_DURATION:g} s."
        )
    return np.concatenate(columns), np.concatenate(powers), block


def power_columns(current: Array, speed: Array, gains: Array) -> Array:
    """Return the power (samples, 4) per unit of each parameter of `NAMES`."""
    ones = np.ones(len(current))
    return np.column_stack([ones, (current * speed) @ gains, (current**2).sum(axis=1), np.abs(speed) @ gains])


def _factor(gram: Array) -> tuple[Array, Array]:
    """Return R and d of ``|R x - d|²``, the least-squares problem of a Gram matrix of columns and power."""
    size = np.sqrt(np.diag(gram))
    size[size == 0.0] = 1.0
    scaled = gram / np.outer(size, size) + RIDGE * np.eye(len(gram))
    upper = cholesky(scaled) * size
    return upper[:-1, :-1], upper[:-1, -1]


def _bounded(gram: Array) -> Array:
    """Return the parameters >= 0 of a Gram matrix."""
    result: Array = nnls(*_factor(gram))[0]
    return result


def _check_signs(grams: Array, factor: float) -> None:
    """Reject data that only a negative loss explains: its 95 % interval is below 0, and the bound is costly."""
    found, errors = jackknife(gram_solution, grams)
    if _cost_of_bounds(grams.sum(axis=0)) < LEAST_COST:
        return
    for (name, unit), value, error in zip(NAMES, found, errors, strict=True):
        if value + factor * error < 0.0:
            raise EstimationError(
                f"the fit leads to a negative {name} ({value:.3g} [{value - factor * error:.3g}, "
                f"{value + factor * error:.3g}] {unit}), which would create power. The measured power is not that of "
                "these joints: check the voltage and current of the bus, the sign of the currents and the clock."
            )


def _cost_of_bounds(gram: Array) -> float:
    """Return by what part of the variance of the power the squared error grows because losses are at least 0."""
    free, bounded = (np.append(solve(gram), -1.0) for solve in (gram_solution, _bounded))
    variance = gram[-1, -1] - gram[0, -1] ** 2 / gram[0, 0]
    return float((bounded @ gram @ bounded - free @ gram @ free) / variance)


def _value(k: int, value: float, half: float, error: float) -> Value:
    """Return a parameter with its confidence interval, which ends at the bound 0."""
    low = max(0.0, value - half) if k != 1 else value - half
    return Value(NAMES[k][0], NAMES[k][1], float(value), float(error), float(low), float(value + half))


def _notes(found: Array, gains: KnownGains) -> tuple[str, ...]:
    bound = [name for (name, _), value in zip(NAMES, found, strict=True) if value == 0.0]
    notes = [f"gains from: {gains.origin}"]
    if bound:
        notes.append(f"{', '.join(bound)}: at the bound 0, not determined by these logs")
    return tuple(notes)
