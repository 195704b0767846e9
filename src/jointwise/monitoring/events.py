"""Contacts and faults along a stream: from the reports of single samples to intervals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from jointwise.arguments import checked
from jointwise.model import rigid
from jointwise.model.transmission import motor_torque
from jointwise.monitoring.core import Reports, Samples
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

RINGING = 0.02
"""Time (s) after the begin of a contact in which the elastic joints swing: the momentum observer then shows up to five
times the torque."""
WINDOW = 0.1
"""Length (s) of the windows from then on in which the momentum observer is averaged; torque and force of a contact are
those of the window in which they are largest."""
JOINED = 0.3
"""Pause (s) up to which torques of the same sign are one push: what the direct residual needs to settle."""
WIDEST = 30.0
"""Standard error (N) above which a force at the tool is not determined: the arm is close to singular ..."""
PRECISE = 0.2
"""... and that relative to the force above which a contact has none."""
FORCE_ERROR = 0.05
"""Standard error of a force relative to its size, beside that of the torques: friction grows with the load."""
FAULTS = {1: "position repeats", 2: "output repeats", 4: "output is saturated", 8: "speed repeats"}
"""Names of the bits of `Reports.frozen`."""


Stage = Literal["begin", "update", "end"]


@dataclass(frozen=True)
class Contact:
    """A contact.

    Attributes:
        start: First stamp, s.
        end: Last stamp, s; None as long as it lasts.
        joint: Joint (1-based) whose residual is largest relative to its threshold.
        peak: Largest external torque of that joint, Nm, with its sign, as a mean over 0.1 s; None at the begin, where
            elastic joints swing.
        deviation: Standard deviation of the external torque without contact and of what dry friction may add, Nm.
        ratio: Largest ratio of a residual to its threshold; below 1 where only a sudden change of it was found.
        force: Force at the tool (3,) in the base frame, N, if a force there is what touched the robot; None at the
            begin and where the torques do not determine it.
        force_deviation: Standard error of the size of the force, N.

    """

    start: float
    end: float | None
    joint: int
    peak: float | None
    deviation: float
    ratio: float
    force: tuple[float, float, float] | None = None
    force_deviation: float | None = None

    @property
    def stage(self) -> Stage:
        """Whether a contact begins, lasts and its torque is known (update), or has ended."""
        if self.end is not None:
            return "end"
        return "begin" if self.peak is None else "update"

    def to_dict(self) -> dict[str, Any]:
        """Return the contact for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Fault:
    """A channel of a joint that is of no use: it repeats its value although the joint moves, or is saturated.

    Attributes:
        kind: What is wrong, one of the names of `FAULTS`.
        joint: Joint, 1-based.
        start: Stamp at which it begins, s.
        end: Stamp at which it ends, s.
    """

    kind: str
    joint: int
    start: float
    end: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fault for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class OpenContact:
    """A contact that lasts, or that ended less than `JOINED` before.

    Attributes:
        start: Stamp of its first sample, s.
        last: Stamp of its last sample so far, s.
        ratio: Largest ratio of a residual to its threshold.
        joint: Joint of that ratio, 0-based.
        origin: Stamp from which windows count: that of its begin, or of its continuation after a pause, s.
        window: Number of the present window, -1 before the first one.
        count: Number of samples in it.
        sums: Sums over them of positions (rad), momentum observer and standard deviations (Nm), (3, joints).
        size: Largest sum of squares of the mean torques of a window relative to their standard deviations.
        largest: Means of that window, (3, joints); those of the first sample before a window ends.
        highest: Largest mean torques of all windows, (joints,), Nm; None before a window ends.
        pauses: Whether its last sample was not the last one of the stream.
    """

    start: float
    last: float
    ratio: float
    joint: int
    origin: float
    window: int
    count: int
    sums: Array
    size: float
    largest: Array
    highest: Array | None = None
    pauses: bool = False

    def contact(self, model: RobotModel, stage: Stage) -> Contact:
        """Return the contact so far."""
        at = self.largest if self.highest is not None or not self.count else self.sums / self.count
        deviation = float(at[2, self.joint])
        if stage == "begin":
            return Contact(self.start, None, self.joint + 1, None, deviation, self.ratio)
        peak = float((at[1] if self.highest is None else self.highest)[self.joint])
        end = self.last if stage == "end" else None
        return Contact(self.start, end, self.joint + 1, peak, deviation, self.ratio, *_contact_force(model, *at))

    def continues(self, t: float, residual: Array, joint: int) -> bool:
        """Return whether residuals (joints,) at a stamp (s) are those of the same push, by the sign of one joint."""
        before = self.largest[1] if self.highest is None else self.highest
        return not self.pauses or (bool(residual[joint] * before[joint] > 0.0) and not self.is_over(t))

    def is_over(self, t: Array | float) -> bool:
        """Return whether stamps (s) are too far from the last sample for the same push."""
        return bool((np.abs(t - self.last) > JOINED).any())

    def resumed(self, t: float) -> OpenContact:
        """Return the contact after a pause that ends at a stamp (s), with new windows; as it is without a pause."""
        return replace(self, origin=t, window=-1, count=0, sums=0.0 * self.sums, pauses=False) if self.pauses else self

    def in_window(self, window: int) -> OpenContact:
        """Return the contact in a window: if it is a new one, that before has ended."""
        if window == self.window:
            return self
        new = replace(self, window=window, count=0, sums=0.0 * self.sums)
        if not self.count:
            return new
        means = self.sums / self.count
        size, highest = float(np.square(means[1] / means[2]).sum()), means[1]
        if self.highest is not None:
            highest = np.where(np.abs(highest) > np.abs(self.highest), highest, self.highest)
        new = replace(new, highest=highest)
        return new if self.highest is not None and size <= self.size else replace(new, size=size, largest=means)


@dataclass(frozen=True)
class Events:
    """What lasts at the end of a stream so far: a contact, and faults by joint (0-based) and bit."""

    contact: OpenContact | None = None
    faults: tuple[tuple[tuple[int, int], Fault], ...] = ()


def advance(
    model: RobotModel, state: Events, samples: Samples, reports: Reports
) -> tuple[list[Contact | Fault], Events]:
    """Return the contacts and faults that begin or end in consecutive samples, and what lasts after them.

    A contact is listed when it begins, with `end` and `peak` None, again with its torque and force after the first
    `WINDOW`, and when it has ended for `JOINED`; a fault when it ends.

    Args:
        model: The calibrated robot.
        state: What lasted before.
        samples: The samples.
        reports: Their reports.

    """
    found: list[Contact | Fault] = []
    current = state.contact
    for rows, active in _groups(reports.contact != 0.0):
        if active:
            events, current = _in_contact(model, current, samples, reports, rows)
            found += events
        elif current is not None:
            current, over = replace(current, pauses=True), current.is_over(samples.t[rows])
            found += [current.contact(model, "end")] if over else []
            current = None if over else current
    faults, ended = _faults(dict(state.faults), samples.t, reports.frozen)
    return [*found, *ended], Events(current, tuple(faults.items()))


def _in_contact(
    model: RobotModel, current: OpenContact | None, samples: Samples, reports: Reports, rows: slice
) -> tuple[list[Contact], OpenContact]:
    """Return what is to be listed of a run of samples in contact, and the contact after it."""
    found, first, start = [], rows.start, float(samples.t[rows.start])
    if current is not None and not current.continues(start, reports.residual[first], int(reports.joint[first])):
        found.append(current.contact(model, "end"))
        current = None
    if current is None:
        current = _begin(samples, reports, first)
        found.append(current.contact(model, "begin"))
    current = current.resumed(start)
    windows = np.floor((samples.t[rows] - current.origin - RINGING) / WINDOW)
    for part, window in _groups(np.maximum(windows, -1.0)):
        known, current = current.highest is not None, current.in_window(int(window))
        current = _added(current, samples, reports, slice(first + part.start, first + part.stop))
        found += [current.contact(model, "update")] if current.highest is not None and not known else []
    return found, current


def _begin(samples: Samples, reports: Reports, row: int) -> OpenContact:
    """Return the contact that begins with a sample."""
    t, joint = float(samples.t[row]), int(reports.joint[row])
    values = _values(samples, reports, slice(row, row + 1))[0]
    return OpenContact(t, t, float(reports.ratio[row, joint]), joint, t, -1, 0, np.zeros_like(values), 0.0, values)


def _values(samples: Samples, reports: Reports, rows: slice) -> Array:
    """Return positions (rad), momentum observer and standard deviations (Nm) of samples, (samples, 3, joints).

    Dry friction may add any torque within its bound.
    """
    deviation = np.hypot(reports.deviation[rows], reports.bound_slow[rows] / np.sqrt(3.0))
    return np.stack([samples.q[rows], reports.external[rows], deviation], axis=1)


def _added(contact: OpenContact, samples: Samples, reports: Reports, rows: slice) -> OpenContact:
    """Return a contact with more samples of its present window."""
    ratio = reports.ratio[rows]
    row, joint = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    if ratio[row, joint] > contact.ratio:
        contact = replace(contact, ratio=float(ratio[row, joint]), joint=int(joint))
    contact = replace(contact, last=float(samples.t[rows.stop - 1]))
    if contact.window < 0:
        return contact
    values = _values(samples, reports, rows)
    sums = np.concatenate([contact.sums[None], values]).sum(axis=0)  # in the order of the samples, as one by one
    return replace(contact, count=contact.count + len(values), sums=sums)


def finish(model: RobotModel, state: Events) -> list[Contact | Fault]:
    """Return what lasts at the end of a stream."""
    last: list[Contact | Fault] = [fault for _, fault in state.faults]
    return last if state.contact is None else [*last, state.contact.contact(model, "end")]


def _groups(values: Array) -> Iterator[tuple[slice, Any]]:
    """Yield the runs of equal values, and the value."""
    if len(values):
        edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
        for a, b in itertools.pairwise(edges):
            yield slice(a, b), values[a]


def _faults(
    lasting: dict[tuple[int, int], Fault], t: Array, frozen: Array
) -> tuple[dict[tuple[int, int], Fault], list[Fault]]:
    """Return the faults that last, and those that ended."""
    ended = []
    for joint in range(frozen.shape[1]):
        if not frozen[:, joint].any() and not any(key[0] == joint for key in lasting):
            continue
        for bit, kind in FAULTS.items():
            for rows, active in _groups((frozen[:, joint].astype(int) & bit) != 0):
                before, end = lasting.pop((joint, bit), None), float(t[rows.stop - 1])
                if active:
                    start = float(t[rows.start]) if before is None else before.start
                    lasting[joint, bit] = Fault(kind, joint + 1, start, end)
                elif before is not None:
                    ended.append(before)
    return lasting, ended


@checked
def tool_force(
    model: RobotModel, q: Array, torque: Array, deviation: Array | None = None
) -> tuple[float, float, float] | None:
    """Return the force at the tool that explains external torques of the motors, N, in the base frame.

    Weighted least squares of ``J_vᵀ f = τ``; None where the arm is singular.

    Args:
        model: The calibrated robot.
        q: Positions (joints,), rad.
        torque: External torques (joints,), Nm.
        deviation: Their standard deviations (joints,), Nm; equal if None.

    """
    found = _force_and_errors(model, q, torque, np.ones(len(q)) if deviation is None else deviation)
    if found is None:
        return None
    x, y, z = found[0].tolist()
    return x, y, z


def _force_and_errors(model: RobotModel, q: Array, torque: Array, deviation: Array) -> tuple[Array, Array] | None:
    """Return the force of `tool_force` (3,), N, and its covariance (3, 3), N²."""
    if not np.isfinite(q).all():
        return None
    robot = model.calibration.model.robot
    J = motor_torque(robot, rigid.jacobian(robot, np.asarray(q)[None])[0, :3])  # per motor speed: J C⁻¹
    weight = 1.0 / np.maximum(deviation, 1e-9)
    U, sizes, Vt = np.linalg.svd(J * weight, full_matrices=False)
    if len(Vt) < 3 or WIDEST * float(sizes[-1]) < 1.0:
        return None
    return U @ (Vt @ (torque * weight) / sizes), U / sizes**2 @ U.T


def _contact_force(
    model: RobotModel, q: Array, torque: Array, deviation: Array
) -> tuple[tuple[float, float, float] | None, float | None]:
    """Return the force of a contact (3,) and the standard error of its size, N; None where `PRECISE` is not reached."""
    found = _force_and_errors(model, q, torque, deviation)
    if found is None:
        return None, None
    force, covariance = found
    size = float(np.linalg.norm(force))
    if float(np.linalg.eigvalsh(covariance)[-1]) > (PRECISE * size) ** 2:
        return None, None
    x, y, z = force.tolist()
    along = float(np.sqrt(force @ covariance @ force)) / size
    return (x, y, z), float(np.hypot(along, FORCE_ERROR * size))


def event_text(event: Contact | Fault) -> str:
    """Return a contact or a fault in one line."""
    if isinstance(event, Fault):
        return f"{event.start:10.3f} - {event.end:.3f} s  joint {event.joint}  {event.kind}"
    end = "..." if event.end is None else f"{event.end:.3f}"
    head = f"{event.start:10.3f} - {end} s  joint {event.joint}"
    if event.peak is None:
        return f"{head}  contact"
    text = f"{head}  {event.peak:+.1f} ± {1.96 * event.deviation:.1f} Nm"
    if event.force is None or event.force_deviation is None:
        return text
    size = sum(value * value for value in event.force) ** 0.5
    return f"{text}, tool force {size:.0f} ± {1.96 * event.force_deviation:.0f} N"
