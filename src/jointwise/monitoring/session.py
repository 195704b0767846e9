"""A monitored stream from its first sample to its result: rate, samples, events, timeline, summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.description.robot import Payload
from jointwise.errors import DataError, ModelError
from jointwise.estimation.least_squares import Mask
from jointwise.joint.model import JointModel
from jointwise.monitoring.core import Reports, Samples
from jointwise.monitoring.events import Contact, Events, Fault, advance, finish
from jointwise.monitoring.monitor import FALSE_ALARMS, Monitor, MonitorState, declared
from jointwise.monitoring.settings import known_spread
from jointwise.monitoring.signals import FIRST, log_samples, stream_rate
from jointwise.monitoring.summary import (
    MonitorResult,
    Status,
    TemperatureRange,
    data_quality,
    friction_estimates,
    payload_estimate,
)
from jointwise.monitoring.timeline import Timeline
from jointwise.monitoring.warming import temperature_range, thermal_note, warmer_than_known
from jointwise.monitoring.wear import NOT_OF_STREAMS, Wear, check_joints, log_wear
from jointwise.result.metrics import MOVING_SPEED
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

CHUNK = 20_000
"""Samples of a log that are evaluated at a time."""
MISMATCH_SHARE = 0.5
"""Share of the time in contact above which the stream is not of this robot ..."""
MISMATCH_ADOPTED = 3
"""... or the number of contacts that lasted so long that they were taken as the new state ..."""
MISMATCH_TIME = 5.0
"""... if the stream is longer than this, s."""

EventCallback = Callable[[Contact | Fault], object]


@dataclass
class Session:
    """A stream that is monitored sample by sample; `feed` as they come, `result` at any time.

    Attributes:
        model: The calibrated robot.
        source: Name of the stream.
        false_alarms: Contacts an hour that may be reported without any.
        payload: The payload that the robot is said to carry; None for that of the model.
        rate: Rate of the stream, Hz; None to take it from the first stamps.
        wear: Stiffness of the joints; `monitor_log` determines it from a whole log.

    """

    model: RobotModel
    source: str = "stream"
    false_alarms: float = FALSE_ALARMS
    payload: Payload | None = None
    rate: float | None = None
    malformed: int = 0
    wear: Wear = NOT_OF_STREAMS
    timeline: Timeline = field(default_factory=Timeline)
    contacts: list[Contact] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _waiting: list[Samples] = field(default_factory=list, repr=False)
    _monitor: Monitor | None = field(default=None, repr=False)
    _state: MonitorState | None = field(default=None, repr=False)
    _events: Events = field(default_factory=Events, repr=False)
    _sums: _Sums | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Put the declared payload into the model."""
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
        return _result(self, self._monitor, self._state, self._sums, _without_faults(contacts, faults), faults)

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
        self._state, self._sums = self._monitor.init(), _Sums(self.model.dof, float(first.t[0]), 1.0 / rate)
        self._waiting = []
        return self._advance(first)

    def _advance(self, samples: Samples) -> list[Contact | Fault]:
        assert self._monitor is not None
        assert self._state is not None
        assert self._sums is not None
        found: list[Contact | Fault] = []
        for first in range(0, len(samples), CHUNK):
            part = part_of(samples, slice(first, first + CHUNK))
            reports, self._state = self._monitor.steps(self._state, part)
            used = np.isfinite(part.t)
            part, reports = (part, reports) if used.all() else (part_of(part, used), _rows(reports, used))
            events, self._events = advance(self.model, self._events, part, reports)
            self._sums.add(part, reports)
            self.timeline.add(part.t, reports)
            found += events
        self.contacts += [event for event in found if isinstance(event, Contact) and event.end is not None]
        self.faults += [event for event in found if isinstance(event, Fault)]
        return found


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


@dataclass
class _Sums:
    """Sums over a stream of `joints` from its first stamp `start` (s), sampled every `period` (s)."""

    joints: int
    start: float
    period: float
    last: float = 0.0
    samples: int = 0
    in_contact: int = 0
    square: Array = field(default_factory=lambda: np.zeros(0))
    deviation: Array = field(default_factory=lambda: np.zeros(0))
    moved: Array = field(default_factory=lambda: np.zeros(0))
    temperatures: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start all sums at zero."""
        self.square, self.deviation, self.moved = (np.zeros(self.joints) for _ in range(3))
        self.last = self.start

    def add(self, samples: Samples, reports: Reports) -> None:
        """Add samples."""
        if not len(samples):
            return
        self.samples += len(samples)
        self.last = max(self.last, float(np.max(samples.t)))
        self.in_contact += int((reports.contact != 0.0).sum())
        self.square += np.square(reports.residual).sum(axis=0)
        self.deviation += reports.deviation.sum(axis=0)
        self.moved += self.period * (np.abs(reports.speed) > MOVING_SPEED).sum(axis=0)
        if samples.temperature is not None and np.isfinite(samples.temperature).all(axis=1).any():
            warm = samples.temperature[np.isfinite(samples.temperature).all(axis=1)]
            low, high = warm.min(axis=0), warm.max(axis=0)
            if self.temperatures:
                low, high = np.minimum(low, self.temperatures[0]), np.maximum(high, self.temperatures[1])
            self.temperatures = [low, high, warm[-1]]


def joined(parts: list[Samples]) -> Samples:
    """Return samples one after the other; a channel that one part lacks is left out."""

    def channel(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if any(value is None for value in values) else np.concatenate(values)

    return Samples(channel("t"), channel("q"), channel("output"), channel("qd"), channel("temperature"))


def part_of(samples: Samples, rows: slice | Array) -> Samples:
    """Return some of the samples."""
    return Samples(
        samples.t[rows],
        samples.q[rows],
        samples.output[rows],
        None if samples.qd is None else samples.qd[rows],
        None if samples.temperature is None else samples.temperature[rows],
    )


def _rows(reports: Reports, rows: Array) -> Reports:
    return Reports(*(getattr(reports, name)[rows] for name in reports.__dataclass_fields__))


def _without_faults(contacts: list[Contact], faults: list[Fault]) -> list[Contact]:
    """Return the contacts that no fault of the same joint explains."""

    def explained(contact: Contact) -> bool:
        end = contact.start if contact.end is None else contact.end
        return any(f.joint == contact.joint and f.start <= end + 0.5 and f.end >= contact.start - 0.5 for f in faults)

    return [contact for contact in contacts if not explained(contact)]


def _result(
    session: Session,
    monitor: Monitor,
    state: MonitorState,
    sums: _Sums,
    contacts: list[Contact],
    faults: list[Fault],
) -> MonitorResult:
    model, known = session.model, state.known
    measured = np.ones(model.dof, dtype=bool) if monitor.measured is None else monitor.measured
    payload = payload_estimate(known, model.payload, model.output == "current")
    warmer = warmer_than_known(model, sums.temperatures)
    friction = friction_estimates(known, sums.moved, measured, warmer)
    if payload.status == "watch":  # friction that grows with the load is not a change of the joint
        friction = tuple(replace(joint, status="unknown") if joint.status == "watch" else joint for joint in friction)
    data = data_quality(known, faults, session.malformed)
    temperature = temperature_range(model, sums.temperatures)
    mismatch = _mismatch(sums, known.adopted)
    count = max(sums.samples, 1)
    running, missing = _channels(monitor, measured, temperature is not None)
    wear = session.wear if payload.status != "watch" else session.wear.not_judged()
    reasons = [*([mismatch] if mismatch else []), *_reasons(contacts, payload, friction, temperature, data)]
    reasons += wear.reasons
    statuses = ["contact" if contacts else "ok", payload.status, data.status, *(joint.status for joint in friction)]
    statuses += ["fault"] if mismatch else []
    statuses += [temperature.status] if temperature is not None else []
    statuses += [joint.status for joint in wear.joints]
    worst: Status = next((s for s in ("fault", "contact", "worn", "watch") if s in statuses), "ok")
    return MonitorResult(
        source=session.source,
        robot=model.name,
        status=worst,
        reasons=tuple(reasons),
        start=sums.start,
        duration=sums.last - sums.start,
        rate=monitor.rate,
        contacts=tuple(contacts),
        external_torque_rms=tuple(np.sqrt(sums.square / count).tolist()),
        external_torque_deviation=tuple((sums.deviation / count).tolist()),
        payload=payload,
        friction=friction,
        temperature=temperature,
        data=data,
        thresholds=known_spread(model).source,
        running=(*running, *(["stiffness"] if wear.joints else [])),
        missing=(*missing, *thermal_note(warmer), *wear.missing),
        stiffness=wear.joints or None,
    )


def _mismatch(sums: _Sums, adopted: int) -> str:
    """Return why the stream is not that of this robot; empty if nothing says so."""
    share = sums.in_contact / max(sums.samples, 1)
    if sums.last - sums.start < MISMATCH_TIME or (share < MISMATCH_SHARE and adopted < MISMATCH_ADOPTED):
        return ""
    return (
        f"the model does not explain the stream ({100.0 * share:.0f} % of it is beyond the thresholds): check that it "
        "is of this robot, and the signs, order and units of its channels"
    )


def _channels(monitor: Monitor, measured: Mask, warm: bool) -> tuple[list[str], list[str]]:
    """Return the monitors that run, and those that do not with the reason."""
    running = ["external torque", "contact", "payload", "friction", "data"]
    missing = []
    if warm:
        running.append("temperature")
    else:
        missing.append("temperature: not measured")
    if not monitor.has_speed:
        missing.append("momentum observer: no measured speed (qd); contacts are found by the slower residual")
    elif not monitor.uses_changes:
        missing.append(f"sudden changes: the model has no figures for a stream of {monitor.rate:g} Hz")
    unmeasured = [str(j + 1) for j in range(len(measured)) if not measured[j]]
    if unmeasured:
        missing.append(f"joint {', '.join(unmeasured)}: no measured {monitor.model.output}")
    return running, missing


def _reasons(
    contacts: list[Contact], payload: Any, friction: Any, temperature: TemperatureRange | None, data: Any
) -> list[str]:
    """Return one line for everything that is not ok."""
    lines = []
    if contacts:
        worst = max(contacts, key=lambda contact: contact.ratio)
        lines.append(f"{len(contacts)} contacts, the largest {worst.peak:+.3g} Nm at joint {worst.joint}")
    if payload.status == "watch":
        low, high = payload.mass_interval
        lines.append(f"payload {payload.mass:.2f} kg [{low:.2f}, {high:.2f}] instead of {payload.declared:.2f} kg")
    changed = [
        f"joint {joint.joint} {100.0 * (joint.a1 - 1.0):+.0f} %" for joint in friction if joint.status == "watch"
    ]
    if changed:
        lines.append(f"dry friction changed: {', '.join(changed)}")
    if temperature is not None and temperature.status == "watch":
        lines.append("a joint is outside the temperatures for which its friction is known")
    lines += [f"joint {fault.joint}: {fault.kind} from {fault.start:.3f} to {fault.end:.3f} s" for fault in data.faults]
    lost = {**data.dropped, **({"malformed": data.malformed} if data.malformed else {})}
    if lost:
        lines.append("dropped samples: " + ", ".join(f"{count} {name}" for name, count in lost.items()))
    if data.breaks:
        lines.append("breaks: " + ", ".join(f"{count} {name}" for name, count in data.breaks.items()))
    return lines
