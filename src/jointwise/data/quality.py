"""The quality of a log: its clock, channels and motion in numbers, the problems found, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from jointwise.data.channels import CHANNELS, OUTPUTS
from jointwise.data.log import Log
from jointwise.data.measures import Measures, measure
from jointwise.data.suspicions import suspicions
from jointwise.description.robot import Robot
from jointwise.finding import Finding, Severity, most_severe_first, worst

VERDICTS: dict[Severity, str] = {"ok": "good", "info": "good", "warning": "usable", "error": "refused"}
"""Verdict on a log by its most severe finding."""

SHORTEST = 2.0
"""Duration (s) below which a log hardly excites anything."""
SLOWEST_RATE = 20.0
"""Sampling rate (Hz) below which accelerations cannot be estimated."""
MOST_SATURATED = 0.005
"""Share of samples at the extreme of an output above which it counts as saturated."""
MOST_STALE = 0.05
"""Share of repeated samples that is usual where two clocks meet."""
COARSEST = 2e-3
"""Quantisation step (rad) of positions above which speeds are noisy: about 12 bits per turn."""
FEWEST_LEVELS = 12
"""Steps over the range of an output below which its quantisation hides friction and dynamics."""
LONGEST_FROZEN = 0.5
"""Time (s) for which a channel of a moving joint may repeat one value."""


@dataclass(frozen=True)
class DataQuality:
    """The quality of one log.

    Attributes:
        log: The log.
        numbers: Its measures.
        findings: What was found, most severe first.
    """

    log: Log
    numbers: Measures
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """The verdict: "refused" if an error was found, "usable" with a warning, else "good"."""
        return VERDICTS[worst(self.findings)]

    @property
    def advice(self) -> str:
        """What to do: the advice of the most severe finding."""
        if self.verdict == "good":
            return "Ready to calibrate."
        return next((f.advice for f in self.findings if f.severity != "info" and f.advice), "See the findings.")

    def to_dict(self) -> dict[str, object]:
        """Return the result for JSON; units are in `units`, joints count from 1."""
        log, numbers = self.log, self.numbers
        return {
            "file": log.origin.path,
            "sha256": log.origin.sha256,
            "samples": log.samples,
            "joints": log.joints,
            "duration": log.duration,
            "notes": list(log.origin.notes),
            "units": {name: CHANNELS[name].unit for name in log.available},
            "names": {name: list(names) for name, names in log.names.items()},
            "clock": numbers.clock.to_dict(),
            "channels": {name: values.to_dict() for name, values in numbers.channels.items()},
            "motion": self._motion(),
            "findings": [finding.to_dict(message="evidence") for finding in self.findings],
            "verdict": self.verdict,
            "advice": self.advice,
        }

    def _motion(self) -> dict[str, object]:
        """Return the numbers of the motion for JSON."""
        names = ("travel", "speed_95", "speed_max", "acceleration_95", "acceleration_max", "moving")
        values: dict[str, object] = {name: getattr(self.numbers, name).tolist() for name in names}
        return {**values, "standstill": self.numbers.standstill, "stale": self.numbers.stale}

    def lines(self) -> list[str]:
        """Return the result as lines of text."""
        return [*self._head(), *self._table(), *(f"  {f.line()}" for f in self.findings), self._last()]

    def _head(self) -> list[str]:
        """Return the lines about the file and its clock."""
        log, clock = self.log, self.numbers.clock
        channels = ", ".join(f"{name} [{CHANNELS[name].unit}]" for name in log.available)
        return [
            f"{log.origin.path}: {log.samples} samples, {log.joints} joints, {log.duration:.2f} s",
            f"  channels: {channels}",
            *(f"  reading: {note}" for note in log.origin.notes),
            f"  clock: {clock.rate:.2f} Hz, jitter {1e3 * clock.jitter_rms:.3f} ms rms, "
            f"steps {_milliseconds(clock.quantiles)} ms, segments: {len(clock.segments)}",
            f"  standstill: {100 * self.numbers.standstill:.0f} % of the samples",
        ]

    def _table(self) -> list[str]:
        """Return one line a joint."""
        numbers, q = self.numbers, self.numbers.channels["q"]
        output = next((name for name in OUTPUTS if name in numbers.channels), None)
        columns = {
            "from [rad]": q.low,
            "to [rad]": q.high,
            "speed 95 %": numbers.speed_95,
            "speed max": numbers.speed_max,
            "accel. 95 %": numbers.acceleration_95,
            "accel. max": numbers.acceleration_max,
            "q step mrad": 1e3 * q.quantum,
        }
        if output is not None:
            columns["noise " + CHANNELS[output].unit] = numbers.channels[output].noise
        titles = "  joint" + "".join(f"  {title:>11}" for title in columns)
        rows = ["".join(f"  {column[j]:>11.4f}" for column in columns.values()) for j in range(self.log.joints)]
        return [titles, *(f"  {j + 1:>5}{row}" for j, row in enumerate(rows))]

    def _last(self) -> str:
        """Return the verdict as a line."""
        return f"verdict: {self.verdict}. {self.advice}"


def check_quality(log: Log, robot: Robot | None = None) -> DataQuality:
    """Return the quality of a log: clock, channels, motion, suspicious units and signs.

    Args:
        log: The log.
        robot: The robot of the log; adds checks against its joint count, limits and gear ratios.

    Returns:
        The numbers of the log, the findings (the most severe first) and a verdict.
    """
    numbers = _measures(log)
    findings = [*numbers.clock.findings]
    if robot is not None and robot.dof != log.joints:
        message = f"the log has {log.joints} joints, {robot.name} has {robot.dof}."
        findings.append(Finding("error", "joints", message, "Give the robot of this log.", code="joint-count"))
    if numbers.clock.median_step > 0.0:
        findings += [*suspicions(log, numbers, robot), *_extent(log, numbers), *_channels(log, numbers)]
    findings += _motion(log, numbers)
    return DataQuality(log, numbers, tuple(_without_consequences(most_severe_first(findings))))


def _without_consequences(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings without limits of an output that has a few levels only: the least and the largest are two."""
    coarse = {(finding.channel, finding.joint) for finding in findings if finding.code == "coarse-output"}
    consequences = ("saturated", "current-limit")
    return [f for f in findings if f.code not in consequences or (f.channel, f.joint) not in coarse]


_CACHE: WeakKeyDictionary[Log, Measures] = WeakKeyDictionary()


def _measures(log: Log) -> Measures:
    """Return the measures of a log, computed once for it."""
    if log not in _CACHE:
        _CACHE[log] = measure(log)
    return _CACHE[log]


def _milliseconds(quantiles: tuple[float, ...]) -> str:
    """Return least, median and largest step in ms."""
    return " / ".join(f"{1e3 * quantiles[k]:.3g}" for k in (0, 2, 4)) if quantiles else "-"


def _extent(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield the limits that length, sampling rate and missing channels set."""
    if not any(name in log.available for name in OUTPUTS):
        advice = "It can only be predicted, not calibrated or validated."
        yield Finding("warning", "output", "neither current nor torque was measured.", advice, code="no-output")
    if log.duration < SHORTEST:
        yield Finding(
            "warning", "duration", f"only {log.duration:.2f} s long.", "Record some ten seconds or more.", code="short"
        )
    if numbers.clock.rate < SLOWEST_RATE:
        yield Finding(
            "warning",
            "sampling rate",
            f"only {numbers.clock.rate:.3g} Hz.",
            "Record at 100 Hz or more.",
            code="slow-rate",
            channel="t",
        )
    if numbers.stale > MOST_STALE:
        message = f"{100 * numbers.stale:.0f} % of the samples repeat the one before while the robot moves."
        yield Finding("warning", "samples", message, "Record at the robot's own rate.", code="stale")


def _motion(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield what does not move."""
    if not numbers.moved.any():
        yield Finding(
            "error",
            "motion",
            "nothing moves.",
            "Record a motion of every joint; standstill only serves validation.",
            code="no-motion",
            channel="q",
        )
        return
    for j in np.flatnonzero(~numbers.moved):
        message = f"{log.names['q'][j]} never moves (range {numbers.travel[j]:.2g} rad)."
        advice = f"Friction and inertia of joint {j + 1} stay unknown."
        yield Finding("warning", log.names["q"][j], message, advice, code="still-joint", joint=int(j), channel="q")


def _channels(log: Log, numbers: Measures) -> Iterator[Finding]:
    """Yield frozen, saturated and coarse channels."""
    for name in ("q", "qd", "theta", *OUTPUTS):
        if name in numbers.channels:
            for j in range(log.joints):
                yield from _joint(log, numbers, name, j)


def _joint(log: Log, numbers: Measures, name: str, j: int) -> Iterator[Finding]:
    """Yield what is wrong with one channel of one joint."""
    values, label = numbers.channels[name], log.names[name][j]
    longest = max(20.0, LONGEST_FROZEN * numbers.clock.rate)
    if values.high[j] == values.low[j] and _should_move(numbers, name, j):
        severity: Severity = "warning" if name in ("qd", "theta") else "error"
        message = f"{label} is constant ({values.low[j]:.4g}) while the joint moves."
        yield Finding(
            severity,
            label,
            message,
            f"Record it again, or leave it out{_option(name, j)}.",
            code="frozen",
            joint=j,
            channel=name,
        )
    elif values.frozen[j] > longest and values.saturated[j] == 0.0 and name not in ("q", "theta"):
        message = f"{label} repeats one value for {int(values.frozen[j])} samples while the joint moves."
        yield Finding("warning", label, message, "Cut that part out.", code="frozen", joint=j, channel=name)
    yield from _saturated_or_coarse(log, numbers, name, j)


def _option(name: str, j: int) -> str:
    """Return the option that leaves an output out."""
    return f" (--ignore-output {j + 1})" if name in OUTPUTS else ""


def useless_outputs(log: Log) -> tuple[int, ...]:
    """Return the joints (0-based) whose output is constant while they move, or comes in few steps."""
    found = check_quality(log).findings
    useless = [f for f in found if f.code == "coarse-output" or (f.code == "frozen" and f.severity == "error")]
    return tuple(sorted({f.joint for f in useless if f.channel in OUTPUTS and f.joint is not None}))


def coarse_outputs(log: Log, output: str) -> list[int]:
    """Return the joints (0-based) that move and whose output (current or torque) has a few levels only."""
    found = (f.joint for f in check_quality(log).findings if f.code == "coarse-output" and f.channel == output)
    return [joint for joint in found if joint is not None]


def _saturated_or_coarse(log: Log, numbers: Measures, name: str, j: int) -> Iterator[Finding]:
    """Yield an output that stays at its extreme, and outputs and positions in coarse steps."""
    values, label = numbers.channels[name], log.names[name][j]
    levels = (values.high[j] - values.low[j]) / values.quantum[j] if values.quantum[j] > 0.0 else np.inf
    moved = bool(numbers.moved[j])
    if name == "q" and values.quantum[j] > COARSEST and moved:
        message = f"{label} comes in steps of {values.quantum[j]:.2g} rad."
        yield Finding("warning", label, message, "Speeds will be noisy.", code="coarse", joint=j, channel=name)
    if name not in OUTPUTS:
        return
    if levels < FEWEST_LEVELS and moved:
        message = f"{label} has only {levels + 1:.0f} levels, {values.quantum[j]:.2g} {CHANNELS[name].unit} apart."
        yield Finding(
            "warning", label, message, f"Leave it out{_option(name, j)}.", code="coarse-output", joint=j, channel=name
        )
    if values.saturated[j] > MOST_SATURATED and values.high[j] > values.low[j]:
        message = f"{label} sits at its extreme in {100 * values.saturated[j]:.1f} % of the samples."
        yield Finding("warning", label, message, "Move less violently.", code="saturated", joint=j, channel=name)


def _should_move(numbers: Measures, name: str, j: int) -> bool:
    """Return whether other channels say that the joint moved."""
    if name != "q":
        return bool(numbers.moved[j])
    speed, command = numbers.channels.get("qd"), numbers.channels.get("q_des")
    by_speed = speed is not None and max(abs(speed.low[j]), abs(speed.high[j])) > 0.1
    return bool(by_speed or (command is not None and command.high[j] - command.low[j] > 0.05))
