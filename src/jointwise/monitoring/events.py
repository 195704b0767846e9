"""Contacts and faults along a stream: from the reports of single samples to intervals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jointwise.model import rigid
from jointwise.model.transmission import motor_torque
from jointwise.monitoring.core import Reports, Samples
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

SHORT = 0.3
"""A contact shorter than this (s) has the peak of the momentum observer, a longer one that of the smoother residual."""
WIDEST = 30.0
"""Standard error (N) above which a force at the tool is not determined: the arm is close to singular."""
FAULTS = {1: "position repeats", 2: "output repeats", 4: "output is saturated"}
"""Names of the bits of `Reports.frozen`."""


@dataclass(frozen=True)
class Contact:
    """A contact.

    Attributes:
        start: First stamp, s.
        end: Last stamp, s; None as long as it lasts.
        joint: Joint (1-based) whose residual is largest relative to its threshold.
        peak: Largest external torque of that joint, Nm, with its sign.
        deviation: Standard deviation of the external torque without contact, Nm.
        ratio: Largest ratio of a residual to its threshold; below 1 where only a sudden change of it was found.
        force: Force at the tool (3,) in the base frame at that sample, N, if a force there is what touched the robot;
            None where the arm is singular.

    """

    start: float
    end: float | None
    joint: int
    peak: float
    deviation: float
    ratio: float
    force: tuple[float, float, float] | None = None

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
    """A contact that lasts.

    Attributes:
        start: Stamp of its first sample, s.
        last: Stamp of its last sample so far, s.
        ratio: Largest ratio of a residual to its threshold.
        joint: Joint of that ratio, 0-based.
        q: Positions at its sample, (joints,), rad.
        torque: External torques at its sample by the momentum observer and by the direct residual, (2, joints), Nm.
        deviation: Standard deviations of the direct residual at its sample, (joints,), Nm.
        highest: Peaks of both external torques over the contact, (2, joints), Nm.
    """

    start: float
    last: float
    ratio: float
    joint: int
    q: Array
    torque: Array
    deviation: Array
    highest: Array

    def contact(self, model: RobotModel, ended: bool) -> Contact:
        """Return the contact so far."""
        kind = int(self.last - self.start >= SHORT)
        force = tool_force(model, self.q, self.torque[kind], self.deviation)
        peak, deviation = float(self.highest[kind, self.joint]), float(self.deviation[self.joint])
        end = self.last if ended else None
        return Contact(self.start, end, self.joint + 1, peak, deviation, self.ratio, force)


@dataclass(frozen=True)
class Events:
    """What lasts at the end of a stream so far: a contact, and faults by joint (0-based) and bit."""

    contact: OpenContact | None = None
    faults: tuple[tuple[tuple[int, int], Fault], ...] = ()


def advance(
    model: RobotModel, state: Events, samples: Samples, reports: Reports
) -> tuple[list[Contact | Fault], Events]:
    """Return the contacts and faults that begin or end in consecutive samples, and what lasts after them.

    A contact is listed when it begins, with `end` None, and again when it ends; a fault when it ends.

    Args:
        model: The calibrated robot.
        state: What lasted before.
        samples: The samples.
        reports: Their reports.

    """
    found: list[Contact | Fault] = []
    current = state.contact
    for rows, active in _runs(reports.contact != 0.0):
        if active:
            begins, current = current is None, _joined(current, _open(samples, reports, rows))
            found += [current.contact(model, ended=False)] if begins else []
        elif current is not None:
            found.append(current.contact(model, ended=True))
            current = None
    faults, ended = _faults(dict(state.faults), samples.t, reports.frozen)
    return [*found, *ended], Events(current, tuple(faults.items()))


def finish(model: RobotModel, state: Events) -> list[Contact | Fault]:
    """Return what lasts at the end of a stream."""
    last: list[Contact | Fault] = [fault for _, fault in state.faults]
    return last if state.contact is None else [*last, state.contact.contact(model, ended=True)]


def _runs(flags: Array) -> Iterator[tuple[slice, bool]]:
    """Yield the runs of equal values."""
    if len(flags):
        edges = [0, *(np.flatnonzero(np.diff(flags)) + 1).tolist(), len(flags)]
        for a, b in itertools.pairwise(edges):
            yield slice(a, b), bool(flags[a])


def _open(samples: Samples, reports: Reports, rows: slice) -> OpenContact:
    """Return the contact of a run of samples."""
    ratio, torque = reports.ratio[rows], np.stack([reports.external[rows], reports.residual[rows]], axis=1)
    row, joint = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    return OpenContact(
        start=float(samples.t[rows.start]),
        last=float(samples.t[rows.stop - 1]),
        ratio=float(ratio[row, joint]),
        joint=int(joint),
        q=np.array(samples.q[rows][row]),
        torque=torque[row],
        deviation=np.array(reports.deviation[rows][row]),
        highest=np.take_along_axis(torque, np.abs(torque).argmax(axis=0)[None], axis=0)[0],
    )


def _joined(one: OpenContact | None, other: OpenContact) -> OpenContact:
    """Return a contact and its continuation as one."""
    if one is None:
        return other
    larger = other if other.ratio > one.ratio else one
    highest = np.where(np.abs(other.highest) > np.abs(one.highest), other.highest, one.highest)
    return replace(larger, start=one.start, last=other.last, highest=highest)


def _faults(
    lasting: dict[tuple[int, int], Fault], t: Array, frozen: Array
) -> tuple[dict[tuple[int, int], Fault], list[Fault]]:
    """Return the faults that last, and those that ended."""
    ended = []
    for joint in range(frozen.shape[1]):
        if not frozen[:, joint].any() and not any(key[0] == joint for key in lasting):
            continue
        for bit, kind in FAULTS.items():
            for rows, active in _runs((frozen[:, joint].astype(int) & bit) != 0):
                before, end = lasting.pop((joint, bit), None), float(t[rows.stop - 1])
                if active:
                    start = float(t[rows.start]) if before is None else before.start
                    lasting[joint, bit] = Fault(kind, joint + 1, start, end)
                elif before is not None:
                    ended.append(before)
    return lasting, ended


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
    if not np.isfinite(q).all():
        return None
    robot = model.calibration.model.robot
    J = motor_torque(robot, rigid.jacobian(robot, np.asarray(q)[None])[0, :3])  # per motor speed: J C⁻¹
    weight = 1.0 / np.maximum(np.ones(len(q)) if deviation is None else deviation, 1e-9)
    if J.shape[1] < 3 or WIDEST * float(np.linalg.svd(J * weight, compute_uv=False)[-1]) < 1.0:
        return None
    force = np.linalg.lstsq((J * weight).T, torque * weight, rcond=None)[0]
    return float(force[0]), float(force[1]), float(force[2])


def event_text(event: Contact | Fault) -> str:
    """Return a contact or a fault in one line."""
    if isinstance(event, Fault):
        return f"{event.start:10.3f} - {event.end:.3f} s  joint {event.joint}  {event.kind}"
    end = "..." if event.end is None else f"{event.end:.3f}"
    force = ""
    if event.force is not None:
        force = f", tool force {sum(value * value for value in event.force) ** 0.5:.0f} N"
    limits = f"± {1.96 * event.deviation:.1f}"
    return f"{event.start:10.3f} - {end} s  joint {event.joint}  {event.peak:+.1f} {limits} Nm{force}"
