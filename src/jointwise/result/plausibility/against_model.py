"""Whether a log belongs to a calibrated model: signs, order, payload and mounting from the residual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jointwise.data.log import Log
from jointwise.finding import Finding
from jointwise.formatting import listed
from jointwise.model.transmission import motor_regressor
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.result.calibration import Calibration

ROWS = 600
"""Samples of a log that are compared."""
CLEAR = 4.0
"""Factor by which another reading of the log must reduce its squared error."""
UNUSUAL = 2.0
"""Ratio of the residual to that of the training data from which a log needs an explanation."""
EXPLAINED_SUSPECT, EXPLAINED_CONTRADICTED = 0.5, 0.8
"""Parts of the squared residual that a payload or another gravity must explain."""
LEAST_MASS, LEAST_TILT = 0.3, 3.0
"""Smallest payload (kg) and tilt (degrees) that are named."""


def check_log(calibration: Calibration, log: Log, prediction: Array) -> tuple[Finding, ...]:
    """Return what contradicts that a log was recorded with the arm of a model, as the model describes it.

    Args:
        calibration: The model.
        log: A log with the measured output.
        prediction: The predicted output, (samples, joints).

    Returns:
        Contradictions and suspicions; empty where the log is as the model expects.

    """
    step = max(log.samples // ROWS, 1)
    measured, predicted = np.asarray(log.channel(calibration.output))[::step], prediction[::step]
    used = np.isfinite(measured[0]) & np.isfinite(predicted[0]) & (np.asarray(log.q).std(axis=0) > 0.02)
    if not used.any() or not _is_unusual(calibration, measured - predicted, used):
        return ()
    signs = tuple(_signs(log, calibration.output, measured, predicted, used))
    swapped = signs or tuple(_orders(log, calibration.output, measured, predicted, used))
    return swapped or tuple(_loads(calibration, np.asarray(log.q)[::step], measured - predicted, used))


def _is_unusual(calibration: Calibration, residual: Array, used: NDArray[np.bool_]) -> bool:
    """Return whether the residual of a joint is larger than that of the training data."""
    usual = calibration.estimate.sigma / calibration.gains
    size = np.sqrt(np.mean(residual**2, axis=0))
    return bool((size[used] > UNUSUAL * usual[used]).any())


def _squares(error: Array, reference: Array) -> Array:
    """Return mean squares relative to the variance of the reference, (joints,)."""
    return np.asarray(np.mean(error**2, axis=0) / np.maximum(reference.var(axis=0), 1e-12))


def _signs(log: Log, output: str, measured: Array, predicted: Array, used: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield outputs that are predicted with the opposite sign."""
    as_is, turned = _squares(measured - predicted, predicted), _squares(measured + predicted, predicted)
    for j in np.flatnonzero(used & (as_is > CLEAR * turned)):
        text = f"{log.names[output][j]} has the opposite sign of the prediction"
        yield Finding("error", "output sign", text, "Invert this column, or the sign of the joint in the model.")


def _orders(log: Log, output: str, measured: Array, predicted: Array, used: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield pairs of outputs that fit exchanged."""
    for i, j in combinations(np.flatnonzero(used).tolist(), 2):
        both = predicted[:, [i, j]]
        as_is = _squares(measured[:, [i, j]] - both, both)
        crossed = _squares(measured[:, [j, i]] - both, both)
        if (as_is > CLEAR * crossed).all():
            names = log.names[output]
            text = f"{names[i]} and {names[j]} fit the prediction when they are exchanged"
            yield Finding("error", "output order", text, "Check the order of the columns (--columns).")


def _loads(calibration: Calibration, q: Array, residual: Array, used: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield the payload or the gravity that explains the residual, whichever explains more."""
    rows = np.flatnonzero(used)
    torque = (residual * calibration.gains)[:, rows]
    weight = 1.0 / np.maximum(calibration.estimate.sigma[rows], 1e-9)
    found = [_payload(calibration, q, torque, weight, rows), _gravity(calibration, q, torque, weight, rows)]
    share, check = max(found, key=lambda pair: pair[0])
    if share > EXPLAINED_SUSPECT and check is not None:
        yield replace(check, severity="error" if share > EXPLAINED_CONTRADICTED else "warning")


def _payload(
    calibration: Calibration, q: Array, torque: Array, weight: Array, rows: NDArray[np.intp]
) -> tuple[float, Finding | None]:
    """Return the part of a torque that a mass at the tool explains, and the check if it is large enough."""
    model = calibration.model
    columns = motor_regressor(model.robot, q, gravity=model.gravity).matrices()[:, rows, -4:]
    payload, share = _explained(columns, torque, weight)
    mass = float(payload[3])
    if abs(mass) < LEAST_MASS:
        return share, None
    joints = _largest(columns @ payload, torque, rows)
    what = f"a payload of about {mass:.1f} kg" if mass > 0.0 else f"{-mass:.1f} kg less at the tool"
    text = f"the residual of {joints} has the signature of {what}"
    advice = (
        "Identify it (jointwise payload MODEL LOG), declare it when calibrating (--payload), or use a model with the "
        "payload of this log."
    )
    return share, Finding("warning", "payload", text, advice)


def _explained(columns: Array, torque: Array, weight: Array) -> tuple[Array, float]:
    """Return the weighted least squares of a torque (samples, joints) on columns, and the part of it explained."""
    matrix = (columns * weight[:, None]).reshape(-1, columns.shape[2])
    target = (torque * weight).ravel()
    values: Array = np.asarray(np.linalg.lstsq(matrix, target, rcond=1e-8)[0], dtype=float)
    return values, 1.0 - float(np.sum((target - matrix @ values) ** 2) / max(np.sum(target**2), 1e-300))


def _gravity(
    calibration: Calibration, q: Array, torque: Array, weight: Array, rows: NDArray[np.intp]
) -> tuple[float, Finding | None]:
    """Return the part of a torque that another gravity explains, and the check if the angle is large enough."""
    model = calibration.model
    bodies = model.base.to_standard(calibration.estimate.values[: model.base.count])
    base, *columns = (
        motor_regressor(model.robot, q, gravity=axis, rotors=model.rotors).torque(bodies)
        for axis in (np.zeros(3), *np.eye(3))
    )
    change, share = _explained(np.stack([x - base for x in columns], axis=2)[:, rows], torque, weight)
    before = np.array(model.gravity)
    after = before + change
    size = max(float(np.linalg.norm(before) * np.linalg.norm(after)), 1e-12)
    cosine = float(before @ after) / size
    degrees = float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    if degrees < LEAST_TILT:
        return share, None
    direction = ", ".join(f"{g:.2f}" for g in after)
    text = f"the residual is explained by gravity ({direction}) m/s^2, {degrees:.0f} degrees from that of the model"
    return share, Finding("warning", "mounting", text, "Use a model of this mounting.")


def _largest(part: Array, torque: Array, rows: NDArray[np.intp]) -> str:
    """Return the joints whose residual the part explains, at most three, as text."""
    share = 1.0 - np.sum((torque - part) ** 2, axis=0) / np.maximum(np.sum(torque**2, axis=0), 1e-12)
    best = sorted(int(rows[k]) + 1 for k in np.argsort(-share)[:3] if share[k] > EXPLAINED_SUSPECT)
    return f"joint{'s' * (len(best) != 1)} {listed(map(str, best))}" if best else "several joints"
