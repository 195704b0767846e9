"""Synthetic logs on disk: a CSV that our own reader reads, and the truth beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jointwise.atomic import atomic_write
from jointwise.data.channels import default_names
from jointwise.data.log import Log
from jointwise.simulation.truth import Truth

ROWS = 8192
"""Samples that are turned to text at a time."""


def write_csv(log: Log, path: str | Path) -> None:
    """Write a log with our own column names ``t,q1..,qd1..,i1..``; numbers read back to the last bit.

    The file appears under its name only when it is whole.
    """
    with atomic_write(path) as file:
        file.writelines(_csv_lines(log))


def write_truth(truth: Truth, path: str | Path) -> None:
    """Write the parameters behind a log as JSON (see `Truth.to_dict`); the file appears only when it is whole."""
    with atomic_write(path) as file:
        file.write(json.dumps(truth.to_dict(), indent=1) + "\n")


def _csv_lines(log: Log) -> Iterator[str]:
    """Yield the header, then rows in blocks; every number in its shortest exact form."""
    names = [column for channel in log.available for column in default_names(channel, log.joints)]
    yield ",".join(names) + "\n"
    for chunk in log.chunks(ROWS):
        rows = np.column_stack([chunk.log.channel(name) for name in log.available]).tolist()
        yield "".join(",".join(map(repr, row)) + "\n" for row in rows)
