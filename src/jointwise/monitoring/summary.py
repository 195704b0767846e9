"""What the monitor found in a log or a stream: a status, the numbers behind it, and their uncertainty."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from jointwise.finding import Finding, Severity, most_severe_first
from jointwise.monitoring.events import Contact, Fault
from jointwise.monitoring.wear import JointStiffness
from jointwise.result.plausibility import Setup

REPEATED = 60.0
"""Errors of a joint that moved little are larger by this time (s) relative to that in motion: those of the model repeat
at the few poses of a short log; logs of half a minute of a UR10e on other days show up to 12 %."""
LEAST_MOTION = 20.0
"""Time (s) that a joint must move for its friction to be judged."""

Status = Literal["ok", "watch", "worn", "contact", "fault", "unknown"]
SEVERITIES: dict[Status, Severity] = {
    "ok": "ok", "unknown": "info", "watch": "warning", "worn": "error", "contact": "error", "fault": "error",
}  # fmt: skip
"""Severity of what a monitor found."""


@dataclass(frozen=True)
class PayloadEstimate:
    """The payload at the tool.

    Attributes:
        status: ok: as declared; watch: it differs from what was declared; unknown: not determined yet.
        mass: Mass, kg.
        mass_interval: Its 95 % confidence interval, kg.
        com: Centre of mass in the tool frame, m; None where the mass is not different from zero.
        com_interval: Intervals of its coordinates (3, 2), m; None likewise.
        declared: Mass that the model includes, kg.

    """

    status: Status
    mass: float
    mass_interval: tuple[float, float]
    com: tuple[float, ...] | None
    com_interval: tuple[tuple[float, float], ...] | None
    declared: float

    def to_dict(self) -> dict[str, Any]:
        """Return the payload for JSON."""
        com = None if self.com is None else list(self.com)
        limits = None if self.com_interval is None else [list(pair) for pair in self.com_interval]
        return {
            "status": self.status,
            "mass": self.mass,
            "mass_interval": list(self.mass_interval),
            "com": com,
            "com_interval": limits,
            "declared": self.declared,
        }


@dataclass(frozen=True)
class FrictionEstimate:
    """Friction of a joint against the model: ``a1 · dry + a2 · q̇``; nominal a1 = 1, a2 = 0.

    Attributes:
        joint: Joint, 1-based.
        status: "ok", "watch" or "unknown"; it refers to `unexplained`.
        a1: Factor of the dry friction of the model.
        a1_deviation: Standard error of a1.
        a2: Change of the viscous coefficient, Nm s/rad.
        a2_deviation: Standard error of a2, Nm s/rad.
        moved: How long the joint moved, s.
        change: Change of friction in this motion relative to dry friction, ``a1 - 1 + a2 mean|q̇| / mean|dry|``: what a
            model of one log attributes to speed instead of dry friction cancels.
        change_deviation: Standard error of the change.
        unexplained: Part of the change that the temperature of the joint does not explain.
        reason: Why the status is "unknown", and how much more motion would determine it; empty otherwise.
    """

    joint: int
    status: Status
    a1: float
    a1_deviation: float
    a2: float
    a2_deviation: float
    moved: float
    change: float
    change_deviation: float
    unexplained: float
    reason: str = ""

    @property
    def change_error(self) -> float:
        """Standard error of `change` with the errors of the model that repeat in short motions."""
        return repetition(self.moved) * self.change_deviation

    def to_dict(self) -> dict[str, Any]:
        """Return the friction for JSON."""
        return {**asdict(self), "change_error": self.change_error}


@dataclass(frozen=True)
class TemperatureRange:
    """Joint temperatures of a stream, (joints,) each.

    Attributes:
        status: "watch" if a joint is outside the temperatures for which its friction is known, else "ok".
        lowest: Lowest temperatures, °C.
        highest: Highest temperatures, °C.
        last: Temperatures at the end, °C.
    """

    status: Status
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    last: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the temperatures for JSON."""
        return {
            "status": self.status,
            "lowest": list(self.lowest),
            "highest": list(self.highest),
            "last": list(self.last),
        }


@dataclass(frozen=True)
class DataQuality:
    """How many samples of a stream were of use.

    Attributes:
        status: "fault" or "watch" where samples or channels were not of use, else "ok".
        samples: Number of samples that were used.
        dropped: Number of samples that were not, by reason.
        breaks: Number of breaks after which the signals began again, by reason.
        malformed: Number of lines that could not be read at all.
        faults: Channels of joints that were of no use for a time.
    """

    status: Status
    samples: int
    dropped: dict[str, int]
    breaks: dict[str, int]
    malformed: int
    faults: tuple[Fault, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "status": self.status,
            "samples": self.samples,
            "dropped": self.dropped,
            "breaks": self.breaks,
            "malformed": self.malformed,
            "faults": [fault.to_dict() for fault in self.faults],
        }


@dataclass(frozen=True)
class MonitorResult:
    """What the monitor found in a log or a stream.

    Attributes:
        source: Path of the log, or `stdin`.
        robot: Name of the robot.
        status: fault, contact, worn, watch or ok: the worst of all monitors.
        reasons: One line for everything that is not ok.
        start: First stamp, s.
        duration: Last stamp less the first, s; the parts before and after a restart of the clock together.
        rate: Rate of the uniform clock, Hz.
        contacts: Contacts in the order of time.
        external_torque_rms: Root mean square of the external torque of every joint, Nm; None where it is not measured.
        external_torque_deviation: Its standard deviation without contact, mean over the samples, Nm.
        payload: The payload.
        friction: Friction of every joint.
        temperature: Temperatures; None where they are not measured.
        stiffness: Stiffness of the joints with a joint file; None without rotor positions.
        data: Quality of the data.
        thresholds: Where the thresholds come from: `training`, `validation`, `assumed`.
        running: Monitors that run with the channels of the stream.
        missing: Monitors that do not, with the reason.
        setup: Set-up of the model: `suspect` or `contradicted` by its training data, else `ok`.

    """

    source: str
    robot: str
    status: Status
    reasons: tuple[str, ...]
    start: float
    duration: float
    rate: float
    contacts: tuple[Contact, ...]
    external_torque_rms: tuple[float | None, ...]
    external_torque_deviation: tuple[float | None, ...]
    payload: PayloadEstimate
    friction: tuple[FrictionEstimate, ...]
    temperature: TemperatureRange | None
    data: DataQuality
    thresholds: str
    running: tuple[str, ...]
    missing: tuple[str, ...]
    stiffness: tuple[JointStiffness, ...] | None = None
    setup: Setup = "ok"

    @property
    def is_quiet(self) -> bool:
        """Whether neither a contact, a fault nor a worn joint was found."""
        return self.status not in ("contact", "fault", "worn")

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the monitors found, as findings: errors are what `status` reports as contact, fault or worn."""
        last = self.start + self.duration
        found = [
            Finding(
                "error", "contact", "an external torque" if c.peak is None else f"{c.peak:+.3g} Nm",
                code="contact", joint=c.joint - 1, span=(c.start, last if c.end is None else c.end),
            )
            for c in self.contacts
        ]  # fmt: skip
        found += [
            Finding("error", f"joint {f.joint}", f.kind, code="fault", joint=f.joint - 1, span=(f.start, f.end))
            for f in self.data.faults
        ]
        low, high = self.payload.mass_interval
        mass = f"{self.payload.mass:.2f} kg [{low:.2f}, {high:.2f}], declared {self.payload.declared:.2f} kg"
        found.append(Finding(SEVERITIES[self.payload.status], "payload", mass, code=self.payload.status))
        for joint in self.friction:
            change = joint.reason or f"{joint.change:+.1%} ± {1.96 * joint.change_error:.1%} of the dry friction"
            subject = f"friction of joint {joint.joint}"
            found.append(Finding(SEVERITIES[joint.status], subject, change, code=joint.status, joint=joint.joint - 1))
        for wear in self.stiffness or ():
            loss, subject = f"{wear.loss:+.1%} loss of k(0)", f"stiffness of joint {wear.joint}"
            found.append(Finding(SEVERITIES[wear.status], subject, loss, code=wear.status, joint=wear.joint - 1))
        if self.temperature is not None:
            at = self.temperature
            span = f"{min(at.lowest):.0f} to {max(at.highest):.0f} °C"
            found.append(Finding(SEVERITIES[at.status], "temperature", span, code=at.status))
        return tuple(most_severe_first(found))

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "file": self.source,
            "robot": self.robot,
            "status": self.status,
            "reasons": list(self.reasons),
            "findings": [finding.to_dict() for finding in self.findings],
            "setup": self.setup,
            "start": self.start,
            "duration": self.duration,
            "rate": self.rate,
            "contacts": [contact.to_dict() for contact in self.contacts],
            "external_torque_rms": list(self.external_torque_rms),
            "external_torque_deviation": list(self.external_torque_deviation),
            "payload": self.payload.to_dict(),
            "friction": [joint.to_dict() for joint in self.friction],
            "temperature": None if self.temperature is None else self.temperature.to_dict(),
            "stiffness": None if self.stiffness is None else [joint.to_dict() for joint in self.stiffness],
            "data": self.data.to_dict(),
            "thresholds": self.thresholds,
            "running": list(self.running),
            "missing": list(self.missing),
        }


def repetition(moved: float) -> float:
    """Return the factor of standard errors of friction after a time in motion (s): errors repeat at few poses."""
    return 1.0 + REPEATED / max(moved, LEAST_MOTION)
