"""The gravity under which logs were recorded, where they tell it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.errors import DataError
from jointwise.spatial import Array

KEY = b"jointwise.gravity"
"""Name of the gravity, three numbers as JSON (m/s² in the base), among the metadata of a Parquet file."""
SAME = 0.1
"""Largest difference (m/s²) of two vectors that say the same: gravity varies by half as much over the earth."""


def mounting_of_logs(logs: Sequence[Log], asked: Mounting | None = None) -> Mounting:
    """Return the mounting asked for, else the gravity (m/s²) that the logs were recorded under, else the table.

    Logs that contradict each other, or what is asked for, are refused.
    """
    told = [log for log in logs if log.origin.gravity is not None]
    if not told:
        return "table" if asked is None else asked
    first = gravity_vector(told[0].origin.gravity or ())
    for log in told[1:]:
        refuse_other_gravity(log, first, f"{told[0].origin.path} is under")
    if asked is None:
        return "table" if is_same(first, gravity_vector("table")) else first.tolist()
    refuse_other_gravity(told[0], gravity_vector(asked), "the one given is")
    return asked


def refuse_other_gravity(log: Log, gravity: Array, whose: str) -> None:
    """Refuse a log that tells another gravity (3,), m/s², than the one that `whose` introduces."""
    if log.origin.gravity is not None and not is_same(log.origin.gravity, gravity):
        raise DataError(
            f"{log.origin.path}: recorded under gravity {gravity_text(log.origin.gravity)} m/s^2, but {whose} "
            f"{gravity_text(gravity)}. One of them is wrong."
        )


def is_same(a: Sequence[float] | Array, b: Sequence[float] | Array) -> bool:
    """Tell whether two gravities are the same but for where on earth they are."""
    return float(np.linalg.norm(np.subtract(a, b))) <= SAME


def gravity_text(gravity: Sequence[float] | Array) -> str:
    """Return a vector as `--gravity` takes it."""
    return " ".join(f"{round(float(value), 9) + 0.0:.6g}" for value in gravity)


def gravity_bytes(gravity: Sequence[float]) -> bytes:
    """Return the entry of a file's metadata."""
    return json.dumps([float(value) for value in gravity]).encode()


def gravity_from_bytes(entry: bytes | None, where: str) -> tuple[float, ...] | None:
    """Return what an entry of a file's metadata tells; refuse one that is no gravity."""
    if entry is None:
        return None
    try:
        values = tuple(float(value) for value in json.loads(entry))
    except (ValueError, TypeError):
        values = ()
    if len(values) != 3 or not all(map(math.isfinite, values)):
        raise DataError(f"{where}: '{KEY.decode()}' must be three finite numbers in m/s^2.")
    return values
