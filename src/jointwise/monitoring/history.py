"""The history of robots over months in one SQLite file: results of the monitor, trends, changes since commissioning."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.errors import DataError
from jointwise.monitoring.estimates import friction_status
from jointwise.monitoring.stiffness.status import StiffnessLimits
from jointwise.monitoring.summary import MonitorResult, Status, repetition

VERSION = 1
"""Version of the tables, SQLite's user_version."""
COMMISSIONING = 3
"""Runs with which the latest ones are compared, and number of the latest ones."""
TREND_RATIO = 3.0
"""Standard errors above which a change of stiffness since commissioning is significant."""
LEAST_MOTION = 10.0
"""Time (s) that a joint must move in a run for its friction to be part of a series: several short runs together show
what one of them does not."""
YEAR = 365.25 * 86400.0
"""s"""
EPOCH = 1e9
"""Stamps above this count seconds since 1970 (they are after 2001)."""

_TABLES = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, robot TEXT NOT NULL, source TEXT NOT NULL, date REAL NOT NULL, duration REAL NOT NULL,
    status TEXT NOT NULL, contacts INTEGER NOT NULL, payload REAL, payload_low REAL, payload_high REAL,
    document TEXT NOT NULL, UNIQUE (robot, source, date));
CREATE TABLE joint (
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, joint INTEGER NOT NULL, torque_rms REAL NOT NULL,
    a1 REAL NOT NULL, a1_deviation REAL NOT NULL, a2 REAL NOT NULL, a2_deviation REAL NOT NULL, moved REAL NOT NULL,
    temperature REAL, stiffness REAL, stiffness_deviation REAL, PRIMARY KEY (run, joint));
"""

_FRICTION = "json_extract(document, '$.friction[' || (joint - 1) || '].{}')"
COLUMNS = {
    "friction": (_FRICTION.format("unexplained"), _FRICTION.format("change_deviation")),
    "a1": ("a1", "a1_deviation"),
    "a2": ("a2", "a2_deviation"),
    "stiffness": ("stiffness", "stiffness_deviation"),
}
"""Quantities of a series: where their values and standard errors are."""
JUDGED = "AND status != 'fault' AND json_extract(document, '$.payload.status') != 'watch'"
"""Runs whose friction is that of the joints: the model explains the stream, and the payload is the declared one."""


@dataclass(frozen=True)
class Trend:
    """A quantity of a joint (1-based) over the runs of a robot.

    Attributes:
        joint: The joint.
        quantity: `friction` (its change relative to dry friction) or `stiffness` (Nm/rad).
        status: watch where the change is significant and large; unknown with fewer than two runs, or where a change of
            friction is not visible.
        runs: Number of runs in which it was determined.
        first: Weighted mean of the first runs: commissioning.
        last: That of the latest runs.
        change: `last` less `first`.
        deviation: Standard error of the change.
        per_year: Slope of a weighted line through all runs, per year.

    """

    joint: int
    quantity: str
    status: Status
    runs: int
    first: float
    last: float
    change: float
    deviation: float
    per_year: float


class History:
    """Results of the monitor over time in a SQLite file, which is created if it does not exist."""

    def __init__(self, path: str | Path) -> None:
        """Open the file.

        Raises:
            DataError: The file is not a history, or of a newer version.

        """
        self.path = Path(path)
        with self._connected() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version == 0 and tables == 0:
                connection.executescript(_TABLES + f"PRAGMA user_version = {VERSION};")
            elif version != VERSION:
                raise DataError(f"{path}: is not a history of version {VERSION}. Name another file.")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Connect; commit at the end, or leave the file as it was."""
        try:
            with closing(sqlite3.connect(self.path, timeout=10.0)) as connection, connection:
                connection.execute("PRAGMA foreign_keys = ON")
                yield connection
        except sqlite3.DatabaseError as problem:
            raise DataError(f"{self.path}: cannot be used as a history ({problem}).") from None

    def add(self, result: MonitorResult, *, robot: str | None = None, date: datetime | None = None) -> None:
        """Add a result; that of the same log of the same date is replaced.

        Args:
            result: What the monitor found.
            robot: Name or serial number of the robot; None for the name in the model.
            date: When it was recorded; None for its stamps if they count from 1970, else the date of its file,
                else now.

        """
        stamp = _recorded(result) if date is None else date.timestamp()
        name, payload = robot or result.robot, result.payload
        determined = payload.status != "unknown"
        masses = (payload.mass, *payload.mass_interval) if determined else (None, None, None)
        row = (name, Path(result.source).name, stamp, result.duration, result.status, len(result.contacts), *masses)
        with self._connected() as connection:
            connection.execute("DELETE FROM run WHERE robot = ? AND source = ? AND date = ?", row[:3])
            cursor = connection.execute(
                "INSERT INTO run (robot, source, date, duration, status, contacts, payload, payload_low, payload_high, "
                "document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, json.dumps(result.to_dict())),
            )
            rows = [(cursor.lastrowid, *values) for values in _joint_rows(result)]
            connection.executemany("INSERT INTO joint VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def robots(self) -> list[str]:
        """Return the names of all robots."""
        with self._connected() as connection:
            return [row[0] for row in connection.execute("SELECT DISTINCT robot FROM run ORDER BY robot")]

    def runs(self, robot: str) -> list[dict[str, Any]]:
        """Return the runs of a robot in the order of their dates: date, source, duration, status, contacts, payload."""
        names = ("date", "source", "duration", "status", "contacts", "payload", "payload_low", "payload_high")
        with self._connected() as connection:
            found = connection.execute(f"SELECT {', '.join(names)} FROM run WHERE robot = ? ORDER BY date", (robot,))
            return [dict(zip(names, row, strict=True)) for row in found]

    def series(self, robot: str, joint: int, quantity: str = "friction") -> list[tuple[float, float, float]]:
        """Return date (s since 1970), value and standard error of a quantity of a joint (1-based) in all runs.

        `friction` is the number that the status of a run refers to (`FrictionEstimate.unexplained`), `a1` and `a2` are
        its parts, `stiffness` is k(0) in Nm/rad. Of friction, only runs are part of it in which the joint moved long
        enough, with the declared payload and without a fault; errors are larger in short runs (`repetition`).
        """
        if quantity not in COLUMNS:
            raise DataError(f"quantity must be {', '.join(COLUMNS)}. Got '{quantity}' instead.")
        value, error = COLUMNS[quantity]
        judged = "" if quantity == "stiffness" else f"AND moved >= {LEAST_MOTION} {JUDGED}"
        with self._connected() as connection:
            found = connection.execute(
                f"SELECT date, {value} AS value, {error}, moved FROM joint JOIN run ON run.id = joint.run "
                f"WHERE robot = ? AND joint = ? AND value IS NOT NULL {judged} ORDER BY date",
                (robot, joint),
            )
            rows = [[float(number) for number in row] for row in found]
        return [(t, x, e * (1.0 if quantity == "stiffness" else repetition(time))) for t, x, e, time in rows]

    def trends(self, robot: str) -> list[Trend]:
        """Return the trends of friction and stiffness of every joint of a robot."""
        with self._connected() as connection:
            query = "SELECT max(joint) FROM joint JOIN run ON run.id = joint.run WHERE robot = ?"
            joints = connection.execute(query, (robot,)).fetchone()[0]
        keys = [(joint, name) for joint in range(1, (joints or 0) + 1) for name in ("friction", "stiffness")]
        found = [(joint, name, self.series(robot, joint, name)) for joint, name in keys]
        return [_trend(joint, name, values) for joint, name, values in found if values]

    def summary(self, robot: str) -> str:
        """Return runs and trends of a robot as text."""
        runs = self.runs(robot)
        if not runs:
            return f"{robot}: no runs"
        days = (runs[-1]["date"] - runs[0]["date"]) / 86400.0
        contacts = sum(run["contacts"] for run in runs)
        counts = [(len(runs), "run"), (round(days), "day"), (contacts, "contact")]
        texts = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts]
        lines = [f"{robot}: {texts[0]} in {texts[1]}, {texts[2]}"]
        trends = self.trends(robot)
        changed = [trend for trend in trends if trend.status == "watch"]
        lines += [f"  joint {trend.joint}: {change_text(trend)}" for trend in changed]
        quiet = "no significant change of friction or stiffness since commissioning"
        if all(trend.status == "unknown" for trend in trends):
            short = any(trend.runs > 1 for trend in trends)
            quiet = "nothing to compare with yet" + (": the joints moved too little in the runs" if short else "")
        lines += [] if changed else [f"  {quiet}"]
        return "\n".join([*lines, *self._only_against_the_model(robot, trends)])

    def _only_against_the_model(self, robot: str, trends: Sequence[Trend]) -> list[str]:
        """Return a line for joints that the latest run watches although they have not changed between the runs."""
        with self._connected() as connection:
            query = "SELECT document FROM run WHERE robot = ? ORDER BY date DESC LIMIT 1"
            last = json.loads(connection.execute(query, (robot,)).fetchone()[0])
        watched = {j["joint"]: j["unexplained"] for j in last["friction"] if j["status"] == "watch"}
        compared = [trend for trend in trends if trend.quantity == "friction" and trend.runs > 1]
        return [
            f"  joint {trend.joint}: friction {100.0 * watched[trend.joint]:+.0f} % against the model in the latest "
            f"run, but {100.0 * trend.change:+.0f} ± {196.0 * trend.deviation:.0f} % since commissioning"
            for trend in compared
            if trend.joint in watched and trend.status != "watch"
        ]


def change_text(trend: Trend) -> str:
    """Return a change since commissioning in words."""
    if trend.quantity == "friction":
        change, limits = 100.0 * trend.change, 196.0 * trend.deviation
        return f"friction {change:+.0f} ± {limits:.0f} % of the dry friction since commissioning"
    change, limits = 100.0 * trend.change / trend.first, 196.0 * trend.deviation / abs(trend.first)
    return f"stiffness {change:+.1f} ± {limits:.1f} % since commissioning"


def _recorded(result: MonitorResult) -> float:
    """Return when a log was recorded, s since 1970: its first stamp, else when its file was written, else now."""
    if result.start > EPOCH:
        return result.start
    try:
        return Path(result.source).stat().st_mtime
    except OSError:  # a stream, or a log that was not read from a file
        return datetime.now(UTC).timestamp()


def _joint_rows(result: MonitorResult) -> list[tuple[Any, ...]]:
    temperatures: Sequence[float | None] = [None] * len(result.friction)
    if result.temperature is not None:
        temperatures = result.temperature.last
    known = {joint.joint: joint for joint in result.stiffness or () if joint.status != "unknown"}
    rows = []
    for k, joint in enumerate(result.friction):
        found = known.get(joint.joint)
        stiffness = (None, None) if found is None else (found.stiffness, found.deviation)
        numbers = (joint.a1, joint.a1_deviation, joint.a2, joint.a2_deviation, joint.moved, temperatures[k])
        rows.append((joint.joint, result.external_torque_rms[k] or 0.0, *numbers, *stiffness))
    return rows


def _trend(joint: int, quantity: str, values: Sequence[tuple[float, float, float]]) -> Trend:
    dates, numbers, errors = np.array(values).T
    weight = 1.0 / np.square(np.maximum(errors, 1e-12))
    count = min(COMMISSIONING, max(len(values) // 2, 1))
    (first, first_error), (last, last_error) = (
        _mean(numbers[rows], weight[rows]) for rows in (slice(count), slice(-count, None))
    )
    change, deviation = last - first, math.hypot(first_error, last_error)
    status: Status = "unknown"
    if len(values) > 1 and quantity == "friction":
        status = friction_status(change, deviation)
    elif len(values) > 1:
        size = StiffnessLimits().watch * abs(first)
        status = "watch" if abs(change) > max(size, TREND_RATIO * deviation) else "ok"
    slope = _slope(dates / YEAR, numbers, weight)
    return Trend(joint, quantity, status, len(values), first, last, change, deviation, slope)


def _mean(values: Any, weight: Any) -> tuple[float, float]:
    """Return the weighted mean and its standard error, that of the scatter if this is larger."""
    mean = float(np.average(values, weights=weight))
    expected = float(1.0 / weight.sum())
    scatter = float(np.average(np.square(values - mean), weights=weight)) / max(len(values) - 1, 1)
    return mean, math.sqrt(max(expected, scatter))


def _slope(years: Any, values: Any, weight: Any) -> float:
    middle = np.average(years, weights=weight)
    spread = float((weight * np.square(years - middle)).sum())
    return float((weight * (years - middle) * values).sum() / spread) if spread > 0.0 else 0.0
