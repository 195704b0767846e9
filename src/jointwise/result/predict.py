"""Prediction: the two estimates of a calibration, and its output (current or torque) along a log.

Both estimates have the same bodies: the sensor-based one uses measured channels, the feed-forward one positions only.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import atomic_write
from jointwise.data.channels import default_names
from jointwise.data.conditioning import Filters, clean_log, interpolate, motion_chunks
from jointwise.data.coordinates import logged_output, model_log
from jointwise.data.log import Log
from jointwise.errors import ModelError
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.structure import Structure
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import Term
from jointwise.motion import Motion, with_substitutes
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.result.calibration import CalibratedModel, Calibration, Status

Use = Literal["sensor", "feed-forward"]
"""sensor: with the measured speeds and rotor positions that the model uses; feed-forward: from positions only."""
ROWS = 8192
"""Samples per chunk of text."""
EXTRAS = {"qd": "measured speed (qd)", "theta": "rotor positions (theta)"}
"""Channels that a sensor-based model can use in addition to positions."""


@dataclass(frozen=True)
class FeedForward:
    """Friction for predictions from positions only; the bodies are those of the sensor-based estimate.

    Attributes:
        terms: Terms of every joint.
        values: Their parameters, joint by joint, shape (parameters,).
        deviation: Standard errors with the bodies held fixed, shape (parameters,).
        status: Status of every parameter, as in `Estimate`.
        sigma: Residual standard deviation of each joint, Nm, shape (joints,).
        structure: The joint model.
        structure_text: The joint model in words.
        choices: The automatic selections with their candidates.
        position_cutoff: Low-pass of measured positions, Hz; None for that of the sensor-based model.

    """

    terms: tuple[tuple[Term, ...], ...]
    values: Array
    deviation: Array
    status: tuple[Status, ...]
    sigma: Array
    structure: Structure
    structure_text: str
    choices: tuple[Choice, ...]
    position_cutoff: float | None = None

    def __post_init__(self) -> None:
        """Reject arrays of another length than the parameters of the terms."""
        count = sum(len(term.parameters()) for joint in self.terms for term in joint)
        if not len(self.values) == len(self.deviation) == len(self.status) == count:
            raise ModelError(f"feed_forward must have {count} parameters. Got {len(self.values)} instead.")


def applicable_use(calibration: Calibration, available: Collection[str], use: Use | None = None) -> Use:
    """Return the use of a model on a log with some channels: `use`, by default sensor if the log has all it needs.

    Raises:
        ModelError: The sensor-based model was requested, but the log lacks a channel that it uses.

    """
    lacking = [name for name in calibration.extras if name not in available]
    if use == "sensor" and lacking:
        channels = " and ".join(EXTRAS[name] for name in lacking)
        raise ModelError(f"the sensor-based model needs {channels}, which the log does not have.")
    return use or ("sensor" if calibration.extras and not lacking else "feed-forward")


def use_text(calibration: Calibration, use: Use) -> str:
    """Return in words which estimate a prediction uses."""
    if use == "sensor":
        return f"sensor-based model (positions, {', '.join(EXTRAS[name] for name in calibration.extras)})"
    return "feed-forward model (positions only)"


@checked
def for_use(calibration: Calibration, use: Use) -> Calibration:
    """Return the calibration with the estimate of a use as its only one."""
    friction = calibration.feed_forward
    if use == "sensor" or friction is None:
        return calibration
    count, old = calibration.model.base.count, calibration.estimate
    covariance = np.diag(np.concatenate([np.zeros(count), friction.deviation**2]))
    covariance[:count, :count] = old.covariance[:count, :count]
    estimate = replace(
        old,
        values=np.concatenate([old.values[:count], friction.values]),
        covariance=covariance,
        status=(*old.status[:count], *friction.status),
        sigma=friction.sigma,
    )
    physical = calibration.physical
    if physical is not None:
        physical = replace(physical, values=np.concatenate([physical.values[:count], friction.values]))
    cutoff = friction.position_cutoff or calibration.filters.position_cutoff
    return replace(
        calibration,
        filters=replace(calibration.filters, position_cutoff=cutoff),
        physical=physical,
        model=replace(calibration.model, terms=friction.terms),
        estimate=estimate,
        structure=friction.structure,
        structure_text=friction.structure_text,
        choices=friction.choices,
        feed_forward=None,
    )


@checked
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


def predicted_names(calibration: Calibration, log: Log) -> tuple[str, ...]:
    """Return one column name per joint: that of the measured output in the log or the default, with suffix `_pred`."""
    names = log.names.get(calibration.output) or default_names(calibration.output, log.joints)
    return tuple(f"{name}_pred" for name in names)


def write_prediction(
    calibration: Calibration,
    log: Log,
    path: str | Path,
    names: Sequence[str] | None = None,
    time: str = "t",
    progress: Callable[[float], None] | None = None,
    use: Use | None = None,
) -> None:
    """Write the predicted output at every stamp of a log as CSV, in chunks; the file appears when it is complete.

    Args:
        calibration: The model.
        log: A log with the channels that the model needs.
        path: The CSV file.
        names: Names of the output columns, in the unit of the model; `predicted_names` if None.
        time: Name of the time column (s, exactly as in the log).
        progress: Called with the completed share, 0 to 1.
        use: `sensor` or `feed-forward`, as in `predict`.

    """
    with atomic_write(path) as file:
        csv.writer(file, lineterminator="\n").writerow((time, *(names or predicted_names(calibration, log))))
        for piece, values in predict_chunks(calibration, log, use):
            for start in range(piece.start, piece.stop, ROWS):
                stop = min(start + ROWS, piece.stop)
                stamps = log.t[start:stop].tolist()
                rows = values[start - piece.start : stop - piece.start].tolist()
                file.writelines(",".join(map(repr, (t, *row))) + "\n" for t, row in zip(stamps, rows, strict=True))
            if progress is not None:
                progress(piece.stop / log.samples)


def write_parameters(calibration: Calibration, path: str | Path) -> None:
    """Write a CSV table of the parameters: name, unit, value, standard error, 95 % confidence interval, and status.

    The numbers of a parameter that is not identifiable are empty. Where the scale of the gains is unknown, units are
    relative to it and there are no standard errors and intervals.
    """
    estimate, intervals = calibration.estimate, calibration.conf_int()
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "unit", "value", "deviation", "low", "high", "status"))
        for k, (info, status) in enumerate(zip(calibration.model.parameters, estimate.status, strict=True)):
            numbers = (float(estimate.values[k]), float(estimate.deviation[k]), *map(float, intervals[k]))
            shown = [""] * 4 if status == "undetermined" else [repr(number) for number in numbers]
            if not calibration.scale_known:
                shown[1:] = [""] * 3
            writer.writerow((info.name, calibration.unit_of(k), *shown, status))
