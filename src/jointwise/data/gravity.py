"""The gravity vector under which logs were recorded, if they state it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.document import decode, parse_json
from jointwise.errors import DataError, ModelError
from jointwise.spatial import Array

KEY = b"jointwise.gravity"
"""Name of the gravity, three numbers as JSON (m/s² in the base), among the metadata of a Parquet file."""
LONGEST_ENTRY = 1000
"""Bytes of that entry that are read."""
SAME = 0.1
"""Largest difference (m/s²) of two vectors that count as equal: gravity varies by half as much over the earth."""


def mounting_of_logs(logs: Sequence[Log], requested: Mounting | None = None) -> Mounting:
    """Return the requested mounting, else the gravity (m/s²) that the logs state, else the table.

    Raises:
        DataError: Two logs state different gravities, or one contradicts the requested mounting.
    """
    stating = [log for log in logs if log.origin.gravity is not None]
    if not stating:
        return "table" if requested is None else requested
    first = gravity_vector(stating[0].origin.gravity or ())
    for log in stating[1:]:
        refuse_other_gravity(log, first, f"{stating[0].origin.path} is under")
    if requested is None:
        return "table" if is_same(first, gravity_vector("table")) else first.tolist()
    refuse_other_gravity(stating[0], gravity_vector(requested), "the one given is")
    return requested


def refuse_other_gravity(log: Log, gravity: Array, whose: str) -> None:
    """Raise `DataError` if a log states another gravity than `gravity` (3,), m/s²; `whose` introduces the latter."""
    if log.origin.gravity is not None and not is_same(log.origin.gravity, gravity):
        raise DataError(
            f"{log.origin.path}: recorded under gravity {gravity_text(log.origin.gravity)} m/s^2, but {whose} "
            f"{gravity_text(gravity)}. One of them is wrong."
        )


def is_same(a: Sequence[float] | Array, b: Sequence[float] | Array) -> bool:
    """Return whether two gravity vectors are equal within the variation over the earth."""
    return float(np.linalg.norm(np.subtract(a, b))) <= SAME


def gravity_text(gravity: Sequence[float] | Array) -> str:
    """Return a vector as `--gravity` takes it."""
    return " ".join(f"{round(float(value), 9) + 0.0:.6g}" for value in gravity)


def gravity_bytes(gravity: Sequence[float]) -> bytes:
    """Return the entry of a file's metadata."""
    return json.dumps([float(value) for value in gravity]).encode()


def gravity_from_bytes(entry: bytes | None, where: str) -> tuple[float, ...] | None:
    """Return the gravity in an entry of a file's metadata; reject an entry that is not a gravity vector."""
    if entry is None:
        return None
    try:
        return decode(parse_json(entry[:LONGEST_ENTRY]), tuple[float, float, float])
    except ModelError:
        raise DataError(f"{where}: '{KEY.decode()}' must be three finite numbers in m/s^2.") from None
