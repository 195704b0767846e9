"""Results as CSV tables: predictions at the stamps of a log, parameters with their deviations."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from jointwise.atomic import atomic_write
from jointwise.data.channels import default_names
from jointwise.data.log import Log
from jointwise.result.calibration import Calibration

ROWS = 8192
"""Samples that are turned to text at a time."""


def predicted_names(calibration: Calibration, log: Log) -> tuple[str, ...]:
    """Return a column name a joint: the measured output's in this log, else our own, with the suffix `_pred`."""
    names = log.names.get(calibration.output) or default_names(calibration.output, log.joints)
    return tuple(f"{name}_pred" for name in names)


def write_prediction(
    calibration: Calibration,
    log: Log,
    path: str | Path,
    names: Sequence[str] | None = None,
    time: str = "t",
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write the predicted output at every stamp of a log, piece by piece; the file appears when it is whole.

    Columns: `time` (s, exactly as in the log), then `names` (`predicted_names` by default), in the unit of the model's
    output. `progress` is told the part that is done, 0 to 1.
    """
    with atomic_write(path) as file:
        file.write(",".join((time, *(names or predicted_names(calibration, log)))) + "\n")
        for piece, values in calibration.predict_pieces(log):
            for start in range(piece.start, piece.stop, ROWS):
                stop = min(start + ROWS, piece.stop)
                stamps = log.t[start:stop].tolist()
                rows = values[start - piece.start : stop - piece.start].tolist()
                file.writelines(",".join(map(repr, (t, *row))) + "\n" for t, row in zip(stamps, rows, strict=True))
            if progress is not None:
                progress(piece.stop / log.samples)


def write_parameters(calibration: Calibration, path: str | Path) -> None:
    """Write every parameter: name, unit, value, standard deviation, ends of its 95 % interval, and status.

    An undetermined parameter has no number.
    """
    own = calibration.estimate
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "unit", "value", "deviation", "low", "high", "status"))
        for k, (info, status) in enumerate(zip(calibration.model.parameters, own.status, strict=True)):
            numbers = (float(own.values[k]), float(own.deviation[k]), *calibration.interval(k))
            shown = [""] * 4 if status == "undetermined" else [repr(number) for number in numbers]
            writer.writerow((info.name, info.unit, *shown, status))
