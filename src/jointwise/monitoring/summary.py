"""What the monitor found in a log or a stream: a status, the numbers behind it, and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from jointwise.description.robot import Payload
from jointwise.monitoring.core import DROPPED, MOMENTS, SHARES, Known
from jointwise.monitoring.events import Contact, Fault
from jointwise.monitoring.wear import JointStiffness
from jointwise.result.plausibility.check import Status as SetupStatus
from jointwise.spatial import Array, Mask

NORMAL = 1.959964
"""Quantile of a 95 % confidence interval."""
GAIN_ERROR = 0.01
"""Standard deviation of the relative error of drive gains: the spread of torque constants of motors of one type."""
LIGHTEST = 0.15
"""Change of the payload (kg) that is one: models of one arm from different days differ by less."""
UNKNOWN = 0.3
"""Standard error (kg) above which a payload is not determined: the tool has not turned enough yet."""
MORE_FRICTION, LESS_FRICTION = 0.045, 0.12
"""Changes of friction, relative to dry friction, that are watched: models of one log of a minute are wrong by up to
3 % upwards, so that 10 % more friction exceeds the first and errors do not; joints that run in have less ..."""
FRICTION_RATIO = 2.0
"""... if it is larger than this many standard errors, which include changes within minutes ..."""
REPEATED = 60.0
"""... more where the joint moved little: by this time (s) relative to that in motion. Errors of the model repeat at the
few poses of a short log; logs of half a minute of a UR10e on other days show up to 12 %."""
VISIBLE = 0.1
"""Change of friction, relative to dry friction, that must be visible for friction to be ok; else it is unknown: the
standard errors are too large, or warming or cooling may hide it."""
WARMING_DRY, WARMING_VISCOUS = (0.005, 0.01), (0.02, 0.04)
"""Least and largest relative loss of dry and viscous friction with every kelvin (1/K) that warming explains where the
model does not have the effect of temperature; the least ones are those of the digital robot above 20 °C ..."""
WARMING_RANGE = 5.0
"""... for a difference of this many kelvins; friction falls less in warm joints."""
IMPOSSIBLE_RATIO = 3.0
"""Standard errors beyond which a quantity that cannot be negative is."""
VAGUE = 0.3
"""Standard error of a change of friction (part of the dry friction) from which it is neither judged nor shown."""
LEAST_MOTION = 20.0
"""Time (s) that a joint must move for its friction to be judged."""

Status = Literal["ok", "watch", "worn", "contact", "fault", "unknown"]


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

    @property
    def change_error(self) -> float:
        """Standard error of `change` with the errors of the model that repeat in short motions."""
        return repetition(self.moved) * self.change_deviation

    def to_dict(self) -> dict[str, Any]:
        """Return the friction for JSON."""
        return {**asdict(self), "change_error": self.change_error}


@dataclass(frozen=True, eq=False)
class FrictionMotion:
    """The motion in which friction was measured, (joints,) each.

    Attributes:
        moved: Times in motion, s.
        speed: Mean speeds in motion, rad/s.
        dry: Mean dry friction of the model in motion, Nm.
        viscous: Viscous coefficients of the model, Nm s/rad.
        warmer: Temperatures above those of the calibration, K, as far as the model does not describe their effect; NaN
            where they are not known.

    """

    moved: Array
    speed: Array
    dry: Array
    viscous: Array
    warmer: Array

    @property
    def per_viscous(self) -> Array:
        """Change of friction relative to dry friction with the viscous coefficient, rad/(Nm s)."""
        return np.where(self.dry > 0.0, self.speed / np.maximum(self.dry, 1e-12), 0.0)

    def explained(self, joint: int) -> tuple[float, float]:
        """Return the least and the largest change relative to dry friction that a known temperature explains."""
        warmer, viscous = float(np.nan_to_num(self.warmer[joint])), float((self.per_viscous * self.viscous)[joint])
        near = min(max(warmer, -WARMING_RANGE), WARMING_RANGE)
        least, most = (dry + slope * viscous for dry, slope in zip(WARMING_DRY, WARMING_VISCOUS, strict=True))
        low, high = sorted((-most * warmer, -least * near))
        return low, high

    def hidden(self, joint: int) -> float:
        """Return the change relative to dry friction that warming or cooling may hide; any if it is not measured."""
        low, high = self.explained(joint)
        return np.inf if np.isnan(self.warmer[joint]) else high - low


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
        duration: Last stamp less the first, s.
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
    setup: SetupStatus = "ok"

    @property
    def is_quiet(self) -> bool:
        """Whether neither a contact, a fault nor a worn joint was found."""
        return self.status not in ("contact", "fault", "worn")

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "file": self.source,
            "robot": self.robot,
            "status": self.status,
            "reasons": list(self.reasons),
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


def payload_estimate(known: Known, carried: Payload | None, current: bool, moved: float) -> PayloadEstimate:
    """Return the payload of what a monitor knows; its errors repeat at the few poses of a short motion.

    Args:
        known: What the monitor knows: the change against the payload of the model.
        carried: The payload that the model includes.
        current: Whether the output is a current, whose gain has an error.
        moved: Time in motion of the joint that moved longest, s.

    """
    before = np.zeros(MOMENTS)
    if carried is not None:
        before = carried.mass * np.array([1.0, *carried.center_of_mass])
    total, P = before + known.x[:MOMENTS], repetition(moved) ** 2 * known.P[:MOMENTS, :MOMENTS]
    error = float(np.sqrt(P[0, 0] + (GAIN_ERROR * total[0] if current else 0.0) ** 2))
    half, change = NORMAL * error, abs(float(known.x[0]))
    interval = (float(total[0] - half), float(total[0] + half))
    vague = known.P[0, 0] > UNKNOWN**2
    status: Status = "unknown" if vague else "watch" if change > max(half, LIGHTEST) else "ok"
    com, limits = _center(total, P) if interval[0] > LIGHTEST else (None, None)
    return PayloadEstimate(status, float(total[0]), interval, com, limits, float(before[0]))


def _center(total: Array, P: Array) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
    """Return the centre of mass (m) and the intervals of its coordinates, by linear propagation."""
    com = total[1:] / total[0]
    jacobian = np.column_stack([-com / total[0], np.eye(3) / total[0]])
    half = NORMAL * np.sqrt(np.maximum(np.diag(jacobian @ P @ jacobian.T), 0.0))
    return tuple(com.tolist()), tuple(zip((com - half).tolist(), (com + half).tolist(), strict=True))


def friction_estimates(known: Known, motion: FrictionMotion, measured: Mask) -> tuple[FrictionEstimate, ...]:
    """Return the friction of every joint.

    Args:
        known: What the monitor knows.
        motion: The motion in which it was measured: less friction of a warmer joint, or more of a colder one, is not a
            change as far as the temperature explains it.
        measured: Whether a joint is watched, (joints,).

    """
    deviations, result = np.sqrt(np.maximum(np.diag(known.P), 0.0)), []
    for j, time in enumerate(motion.moved.tolist()):
        dry, viscous = MOMENTS + SHARES * j, MOMENTS + SHARES * j + 1
        weights = np.array([1.0, motion.per_viscous[j]])
        change = float(weights @ known.x[[dry, viscous]])
        error = float(np.sqrt(max(weights @ known.P[dry : viscous + 1, dry : viscous + 1] @ weights, 0.0)))
        low, high = motion.explained(j)
        unexplained = change - min(max(change, low), high)
        judged = time >= LEAST_MOTION and bool(measured[j]) and error < VAGUE
        status: Status = "unknown"
        if judged:
            status = friction_status(unexplained, repetition(time) * error, motion.hidden(j))
        a1, a2 = (
            (float(known.x[dry]) + 1.0, float(deviations[dry])),
            (float(known.x[viscous]), float(deviations[viscous])),
        )
        result.append(FrictionEstimate(j + 1, status, *a1, *a2, time, change, error, unexplained))
    return tuple(result)


def friction_status(change: float, error: float, hidden: float = 0.0) -> Status:
    """Return whether a change of friction relative to dry friction is watched; unknown if one of `VISIBLE` is not seen.

    Args:
        change: The change against the model, or between runs, without what temperatures explain.
        error: Its standard error, with the errors that repeat in short motions.
        hidden: Change that temperatures may hide (`FrictionMotion.hidden`).

    """
    limit = MORE_FRICTION if change > 0.0 else LESS_FRICTION
    if abs(change) > max(limit, FRICTION_RATIO * error):
        return "watch"
    return "ok" if FRICTION_RATIO * error + hidden <= VISIBLE else "unknown"


def colder_hint(friction: Sequence[FrictionEstimate], temperature: TemperatureRange | None) -> str:
    """Return the watched joints whose friction grew with speed alone, as that of cold grease, if temperatures lack."""
    found = [
        str(j.joint)
        for j in friction
        if j.status == "watch" and j.a2 > FRICTION_RATIO * j.a2_deviation and j.a1 - 1 < FRICTION_RATIO * j.a1_deviation
    ]
    if not found or temperature is not None:
        return ""
    return f" (joint {', '.join(found)}: with speed only, as of a colder joint; temperatures are not measured)"


def where_measured(values: Array, measured: Mask) -> tuple[float | None, ...]:
    """Return numbers (joints,), None where a joint has no measured output."""
    return tuple(value if known else None for value, known in zip(values.tolist(), measured.tolist(), strict=True))


def repetition(moved: float) -> float:
    """Return the factor of standard errors of friction after a time in motion (s): errors repeat at few poses."""
    return 1.0 + REPEATED / max(moved, LEAST_MOTION)


def data_quality(known: Known, faults: Sequence[Fault], malformed: int) -> DataQuality:
    """Return the quality of the data: a fault where a channel is frozen, something to watch where samples are lost."""
    dropped = {name: count for name, count in known.counts.items() if name in DROPPED and count}
    breaks = {name: known.counts[name] for name in ("gap", "jump", "restart") if known.counts[name]}
    used = sum(known.counts.values()) - known.dropped
    status: Status = "fault" if faults else "watch" if dropped or breaks or malformed else "ok"
    return DataQuality(status, used, dropped, breaks, malformed, tuple(faults))
