"""Samples of a monitor from files that grow and from JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.data.coordinates import uncoupled_channels
from jointwise.data.row_stream import JsonRows, StreamRows, csv_rows
from jointwise.errors import DataError
from jointwise.monitoring.core import Samples
from jointwise.monitoring.events import Contact, Fault
from jointwise.monitoring.session import Session
from jointwise.runtime import RobotModel

OPTIONAL = ("qd", "temperature", "theta", "current")
"""Channels of samples that a stream may lack."""


def row_samples(model: RobotModel, rows: StreamRows, where: str) -> Samples:
    """Return rows as samples for the monitor of a model.

    Raises:
        DataError: The rows have no output of the model.

    """
    channels = rows.channels
    if model.output not in channels:
        raise DataError(f"{where}: no channel '{model.output}'. Found: {', '.join(channels)}.")
    return row_samples_or_nan(model, rows)


@checked
def follow_csv(
    session: Session,
    path: str | Path,
    *,
    columns: str | Path | Mapping[str, Any] | None = None,
    follow: bool = True,
    idle: float | None = None,
) -> Iterator[Contact | Fault]:
    """Feed a session with a CSV file that may still grow; yield contacts and faults as they are found.

    Args:
        session: The session.
        path: The file.
        columns: Meaning of the columns, as in `read_log`.
        follow: Whether to wait for more rows at the end.
        idle: Time (s) without new rows after which following ends; None for never.

    """
    for rows in csv_rows(path, columns=columns, joints=session.model.dof, follow=follow, idle=idle):
        session.malformed += rows.malformed
        if len(rows):
            yield from session.feed(row_samples(session.model, rows, str(path)))


@checked
def follow_json(session: Session, lines: Iterable[str]) -> Iterator[Contact | Fault]:
    """Feed a session with JSON lines, one sample each; yield contacts and faults as they are found.

    A channel is used from the first line on or not at all: a later sample that lacks it has NaN there, and is dropped.

    Raises:
        DataError: No line is a sample.

    """
    reader, first = JsonRows(session.model.dof), None
    for line in lines:
        rows = reader.read(line)
        session.malformed = reader.malformed
        if rows is None:
            continue
        first = _expected(session.model, rows) if first is None else first
        yield from session.feed(_with_channels(row_samples_or_nan(session.model, rows), first))
    if first is None:
        raise DataError(f"{session.source}: no sample ({reader.first_problem or 'it is empty'}).")


def _expected(model: RobotModel, rows: StreamRows) -> Samples:
    """Return the first sample, whose channels all others must have."""
    return row_samples(model, rows, "stdin")


def row_samples_or_nan(model: RobotModel, rows: StreamRows) -> Samples:
    """Return a row as a sample, with NaN for an output that is missing."""
    channels, coupling = dict(rows.channels), model.calibration.model.robot.transmission
    channels |= {} if coupling is None else uncoupled_channels(channels, coupling)
    output = channels.get(model.output, np.full_like(channels["q"], np.nan))
    return Samples(channels["t"], channels["q"], output, **{name: channels.get(name) for name in OPTIONAL})


def _with_channels(samples: Samples, first: Samples) -> Samples:
    """Return samples with the channels of the first ones: NaN for those that are missing."""
    blank = np.full_like(samples.q, np.nan)

    def chosen(name: str) -> Any:
        if getattr(first, name) is None:
            return None
        return blank if getattr(samples, name) is None else getattr(samples, name)

    return replace(samples, **{name: chosen(name) for name in OPTIONAL})
