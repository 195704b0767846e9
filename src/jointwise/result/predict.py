"""Prediction: the output (current or torque) of a model along a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from jointwise.data.conditioning import Filters, clean_log, interpolate, motion_chunks
from jointwise.data.coordinates import logged_output, model_log
from jointwise.data.log import Log
from jointwise.errors import ModelError
from jointwise.model.dynamics import Dynamics
from jointwise.motion import Motion, with_substitutes
from jointwise.result.feed_forward import Use, applicable_use
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.result.calibration import CalibratedModel, Calibration


def predict(model: CalibratedModel, log: Log, *, use: Use | None = None) -> Array:
    """Return the predicted output at every stamp of a log.

    Args:
        model: The calibrated model, a `Calibration` or a `RobotModel`.
        log: A log with positions, and with the speeds and rotor positions that the sensor-based model uses
            (`Calibration.extras`).
        use: `sensor` or `feed-forward` (from positions only); None for the sensor-based model if the log has all
            channels that it uses, else the feed-forward model.

    Returns:
        The output in the unit of the model (A or Nm), shape (samples, joints); NaN for joints whose output was ignored.

    Raises:
        ModelError: The log has another number of joints than the model, or lacks a channel of the requested use.
        DataError: The stamps of the log run backwards.

    """
    from jointwise.result.calibration import calibration_of

    result = np.empty((log.samples, log.joints))
    for rows, values in predict_chunks(calibration_of(model), log, use):
        result[rows] = values
    return result


def predict_chunks(calibration: Calibration, log: Log, use: Use | None = None) -> Iterator[tuple[slice, Array]]:
    """Yield the prediction chunk by chunk: samples of the log and (samples, joints), so that memory stays flat."""
    robot = calibration.model.robot
    if log.joints != robot.dof:
        raise ModelError(f"{log.origin.path}: the log has {log.joints} joints, the model {robot.dof} ({robot.name}).")
    if log.run_in is not None:
        yield from _after(predict_chunks(calibration, log.run_in, use), log.run_in.samples - log.samples)
        return
    if applicable_use(calibration, log.available, use) == "feed-forward":
        log = log.without([name for name in calibration.extras if name in log.available])
        calibration = calibration.for_use("feed-forward")
    values, ignored = _loaded_values(calibration, log), list(calibration.ignored)
    inner = model_log(log, robot)
    for rows, part in output_chunks(calibration.model, values, inner, calibration.filters, calibration.gains):
        part[:, ignored] = np.nan
        yield rows, logged_output(part, calibration.output, robot)


def _after(chunks: Iterator[tuple[slice, Array]], first: int) -> Iterator[tuple[slice, Array]]:
    """Yield the part of chunks after the first samples."""
    for rows, values in chunks:
        if rows.stop > first:
            yield slice(max(rows.start - first, 0), rows.stop - first), values[max(first - rows.start, 0) :]


def _loaded_values(calibration: Calibration, log: Log) -> Array:
    """Return the parameter values with the payload of a log instead of the one that they include."""
    values, before = calibration.estimate.values, calibration.provenance.carried
    if log.payload is None:
        return values
    return values + calibration.model.payload_values(log.payload, before)


def output_chunks(
    model: Dynamics, values: Array, log: Log, filters: Filters, gains: Array
) -> Iterator[tuple[slice, Array]]:
    """Yield the output of a model with some parameter `values` chunk by chunk, as `predict_chunks` does.

    `gains` (joints,) are Nm per unit of the output.
    """
    yield from motion_function_chunks(lambda motion: model.torque(motion, values) / gains, log, filters)


def motion_function_chunks(
    function: Callable[[Motion], Array], log: Log, filters: Filters
) -> Iterator[tuple[slice, Array]]:
    """Yield a function of the motion, (samples, joints), at the stamps of a log, chunk by chunk.

    Samples that conditioning drops have the value at their stamp too.
    """
    clean, done = clean_log(log), 0
    for chunk in motion_chunks(clean, filters):
        output = function(with_substitutes(chunk.motion))
        last = chunk.rows.stop == clean.segments[-1].stop
        rows = slice(done, log.samples if last else int(clean.kept[chunk.rows.stop]))
        times = np.asarray(log.t[rows]) - log.t[0] + filters.lag
        yield rows, interpolate(chunk.motion.start, filters.rate, output, times)
        done = rows.stop
