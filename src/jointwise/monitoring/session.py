"""A monitored stream from its first sample to its result: rate, samples, events, timeline, summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.data.log import Log
from jointwise.description.robot import Payload
from jointwise.errors import DataError, ModelError
from jointwise.joint.model import JointModel
from jointwise.monitoring.core import FIRST, Reports, Samples, log_samples, stream_rate
from jointwise.monitoring.events import Contact, Events, Fault, advance, finish
from jointwise.monitoring.monitor import FALSE_ALARMS, Monitor, MonitorState, declared
from jointwise.monitoring.summary import MonitorResult
from jointwise.monitoring.sums import StreamSums
from jointwise.monitoring.verdict import verdict
from jointwise.monitoring.wear import Wear, check_joints, log_wear
from jointwise.monitoring.wear_stream import WearStream
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

CHUNK = 20_000
"""Samples of a log that are evaluated at a time."""

MOST = 4000
"""Most points of a timeline; when there are more, neighbours are merged."""

EventCallback = Callable[[Contact | Fault], object]


@dataclass
class Timeline:
    """Points of a stream for a plot; neighbours are merged so that memory stays bounded.

    Attributes:
        every: Number of samples of a point.
        t: Stamp of the first sample of every point, s.
        torque: External torque farthest from zero, (joints,) for every point, Nm.
        ratio: Largest ratio of a residual to its threshold, (joints,) for every point.
        contact: Whether there is a contact at every point.
    """

    every: int = 1
    t: list[float] = field(default_factory=list)
    torque: list[Array] = field(default_factory=list)
    ratio: list[Array] = field(default_factory=list)
    contact: list[bool] = field(default_factory=list)
    _rest: tuple[Array, Array, Array, Array] | None = field(default=None, repr=False)

    def add(self, t: Array, reports: Reports) -> None:
        """Add samples."""
        arrays = (np.asarray(t), np.asarray(reports.residual), np.asarray(reports.ratio), reports.contact != 0.0)
        if self._rest is not None:
            arrays = tuple(np.concatenate(pair) for pair in zip(self._rest, arrays, strict=True))  # type: ignore[assignment]
        whole = len(arrays[0]) // self.every * self.every
        self._rest = tuple(array[whole:] for array in arrays)  # type: ignore[assignment]
        if whole:
            self._append(*(array[:whole] for array in arrays))
        while len(self.t) > MOST:
            self._halve()

    def _append(self, t: Array, torque: Array, ratio: Array, contact: Array) -> None:
        blocks = torque.reshape(-1, self.every, torque.shape[1])
        self.t += t[:: self.every].tolist()
        self.torque += list(_farthest(blocks))
        self.ratio += list(ratio.reshape(blocks.shape).max(axis=1))
        self.contact += list(map(bool, contact.reshape(-1, self.every).max(axis=1)))

    def _halve(self) -> None:
        """Merge neighbours."""
        last = len(self.t) // 2 * 2
        pairs = np.array(self.torque[:last]).reshape(last // 2, 2, -1)
        tails = (self.t[last:], self.torque[last:], self.ratio[last:], self.contact[last:])
        self.t = self.t[:last:2] + tails[0]
        self.ratio = [*np.array(self.ratio[:last]).reshape(pairs.shape).max(axis=1), *tails[2]]
        self.contact = [a or b for a, b in zip(self.contact[:last:2], self.contact[1:last:2], strict=True)] + tails[3]
        self.torque = [*_farthest(pairs), *tails[1]]
        self.every *= 2


def _farthest(blocks: Array) -> Array:
    """Return of (blocks, samples, joints) the value farthest from zero in every block, (blocks, joints)."""
    index = np.abs(blocks).argmax(axis=1)[:, None]
    result: Array = np.take_along_axis(blocks, index, axis=1)[:, 0]
    return result


@checked_fields
@dataclass
class Session:
    """A stream that is monitored sample by sample; `feed` as they come, `result` at any time.

    Attributes:
        model: The calibrated robot.
        source: Name of the stream.
        false_alarms: Contacts an hour that may be reported without any.
        payload: The payload that the robot is said to carry; None for that of the model.
        rate: Rate of the stream, Hz; None to take it from the first stamps.
        malformed: Number of lines that could not be read so far.
        joints: What is known of joints (`jointwise.joint.load_joints`); their stiffness is monitored.
        wear: Stiffness of the joints as `monitor_log` determines it from a whole log; None to follow it in the stream.
        timeline: Points of the stream so far.
        contacts: Contacts that have ended so far.
        faults: Faults that have ended so far.

    """

    model: RobotModel
    source: str = "stream"
    false_alarms: float = FALSE_ALARMS
    payload: Payload | None = None
    rate: float | None = None
    malformed: int = 0
    joints: Sequence[JointModel] = ()
    wear: Wear | None = None
    timeline: Timeline = field(default_factory=Timeline, repr=False)
    contacts: list[Contact] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _waiting: list[Samples] = field(default_factory=list, repr=False)
    _monitor: Monitor | None = field(default=None, repr=False)
    _state: MonitorState | None = field(default=None, repr=False)
    _events: Events = field(default_factory=Events, repr=False)
    _sums: StreamSums | None = field(default=None, repr=False)
    _wear: WearStream | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Put the declared payload into the model; reject joint files that cannot be used."""
        check_joints(self.model, self.joints)
        self.model = declared(self.model, self.payload)

    def feed(self, samples: Samples) -> list[Contact | Fault]:
        """Take the next samples; return contacts that begin (`end` None) or end, and faults that end.

        The first samples wait until the rate of the stream is known.

        Raises:
            ShapeError: The number of joints is not that of the model.
            DataError: The stamps do not increase, or not at a rate that can be monitored.

        """
        self._refuse_other_joints(samples)
        if self._monitor is None:
            self._waiting.append(samples)
            if sum(map(len, self._waiting)) < FIRST and self.rate is None:
                return []
            return self._start()
        return self._advance(samples)

    def result(self) -> MonitorResult:
        """Return what was found so far; what still lasts ends at the last stamp.

        Raises:
            DataError: There were too few samples to monitor.

        """
        if self._monitor is None:
            self._start()
        assert self._monitor is not None
        assert self._state is not None
        assert self._sums is not None
        last = finish(self.model, self._events)
        contacts = [*self.contacts, *(event for event in last if isinstance(event, Contact))]
        faults = [*self.faults, *(event for event in last if isinstance(event, Fault))]
        return verdict(
            self._monitor, self._state, self._sums, _without_faults(contacts, faults), faults,
            source=self.source, malformed=self.malformed, wear=self._known_wear(),
        )  # fmt: skip

    def _known_wear(self) -> Wear:
        """Return the stiffness of the joints: that of the whole log, else that of the stream so far."""
        if self.wear is not None:
            return self.wear
        assert self._wear is not None
        return self._wear.wear()

    def _refuse_other_joints(self, samples: Samples) -> None:
        if samples.q.ndim != 2 or samples.q.shape[1] != self.model.dof:
            found = samples.q.shape[1] if samples.q.ndim == 2 else samples.q.ndim
            raise ModelError(
                f"{self.source}: the stream has {found} joints, the model {self.model.dof} ({self.model.name})."
            )

    def _start(self) -> list[Contact | Fault]:
        """Make the monitor for what the first samples have, and evaluate them."""
        if not self._waiting:
            raise DataError(f"{self.source}: no samples to monitor.")
        first = joined(self._waiting)
        measured = np.asarray(np.isfinite(first.output).any(axis=0))
        try:
            rate = self.rate or stream_rate(first.t)
        except DataError as problem:
            raise DataError(f"{self.source}: {problem}") from None
        if not measured.any():
            raise DataError(f"{self.source}: no measured {self.model.output} to monitor.")
        self._monitor = Monitor(self.model, rate, self.false_alarms, first.qd is not None, measured)
        self._state, self._sums = (
            self._monitor.init(),
            StreamSums(self.model.dof, float(first.t[0]), 1.0 / rate, np.asarray(self.model.gains)),
        )
        self._wear = WearStream.of(self.model, self.joints, rate, first)
        self._waiting = []
        return self._advance(first)

    def _advance(self, samples: Samples) -> list[Contact | Fault]:
        assert self._wear is not None
        self._wear.feed(samples)
        found: list[Contact | Fault] = []
        for first in range(0, len(samples), CHUNK):
            found += self._advance_chunk(part_of(samples, slice(first, first + CHUNK)))
        self.contacts += [event for event in found if isinstance(event, Contact) and event.end is not None]
        self.faults += [event for event in found if isinstance(event, Fault)]
        return found

    def _advance_chunk(self, part: Samples) -> list[Contact | Fault]:
        assert self._monitor is not None
        assert self._state is not None
        assert self._sums is not None
        reports, self._state = self._monitor.steps(self._state, part)
        used = np.isfinite(part.t)
        part, reports = (part, reports) if used.all() else (part_of(part, used), _rows(reports, used))
        events, self._events = advance(self.model, self._events, part, reports)
        self._sums.add(part, reports)
        self.timeline.add(part.t, reports)
        return events


@checked
def monitor_log(
    model: RobotModel,
    log: Log,
    *,
    false_alarms: float = FALSE_ALARMS,
    payload: Payload | None = None,
    joints: Sequence[JointModel] = (),
    on_event: EventCallback | None = None,
) -> Session:
    """Return the session of a whole log, the same as of a live stream of its samples.

    Args:
        model: The calibrated robot.
        log: A log with the output of the model.
        false_alarms: Contacts an hour that may be reported without any.
        payload: The payload that the robot is said to carry; None for that of the log, else of the model.
        joints: What is known of joints (`jointwise.joint.load_joints`); their stiffness is monitored.
        on_event: Called with every contact when it begins and ends, and with faults.

    Raises:
        DataError: The log has no output of the model, or cannot be monitored.
        ModelError: The log or a joint file is of another robot, or a joint file cannot be used.

    """
    check_joints(model, joints)
    session = Session(model, log.origin.path, false_alarms, log.payload if payload is None else payload)
    samples = log_samples(model, log)
    for first in range(0, len(samples), CHUNK):
        for event in session.feed(part_of(samples, slice(first, first + CHUNK))):
            if on_event is not None:
                on_event(event)
    session.wear = log_wear(session.model, log, joints)
    return session


def joined(parts: list[Samples]) -> Samples:
    """Return samples one after the other; a channel that one part lacks is left out."""

    def channel(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if any(value is None for value in values) else np.concatenate(values)

    return Samples(**{item.name: channel(item.name) for item in fields(Samples)})


def part_of(samples: Samples, rows: slice | Array) -> Samples:
    """Return some of the samples."""
    channels = {item.name: getattr(samples, item.name) for item in fields(Samples)}
    parts: dict[str, Any] = {name: None if values is None else values[rows] for name, values in channels.items()}
    return Samples(**parts)


def _rows(reports: Reports, rows: Array) -> Reports:
    return Reports(*(getattr(reports, name)[rows] for name in reports.__dataclass_fields__))


def _without_faults(contacts: list[Contact], faults: list[Fault]) -> list[Contact]:
    """Return the contacts that no fault of the same joint explains."""

    def explained(contact: Contact) -> bool:
        end = contact.start if contact.end is None else contact.end
        return any(f.joint == contact.joint and f.start <= end + 0.5 and f.end >= contact.start - 0.5 for f in faults)

    return [contact for contact in contacts if not explained(contact)]
