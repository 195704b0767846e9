"""The verdict on a monitored stream: temperatures, whether the model is of this robot, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.model.terms import Temperature
from jointwise.model.transmission import motor_torque
from jointwise.monitoring.core import MOMENTS, SHARES, Known
from jointwise.monitoring.estimates import (
    NORMAL,
    FrictionMotion,
    colder_hint,
    data_quality,
    friction_estimates,
    payload_estimate,
    where_measured,
)
from jointwise.monitoring.events import Contact, Fault
from jointwise.monitoring.monitor import Monitor, MonitorState
from jointwise.monitoring.settings import VISCOUS_SHARE, known_spread
from jointwise.monitoring.summary import (
    DataQuality,
    FrictionEstimate,
    MonitorResult,
    PayloadEstimate,
    Status,
    TemperatureRange,
)
from jointwise.monitoring.sums import StreamSums
from jointwise.monitoring.wear import Wear
from jointwise.result.metrics import CONTRADICTED
from jointwise.runtime import RobotModel
from jointwise.spatial import Array, Mask

MISMATCH_SHARE = 0.3
"""Share of the time in contact above which the model does not explain the stream ..."""
MISMATCH_ADOPTED = 3
"""... or the number of contacts that lasted so long that they were taken as the new state ..."""
MISMATCH_RATE = 10.0
"""... or the number of contacts a minute: nobody pushes a robot so often ..."""
MISMATCH_COUNT = 8
"""... with at least so many of them ..."""
MISMATCH_TIME = 5.0
"""... if the stream is longer than this, s."""
HELD_MOST = 4.0
"""Torque at rest that friction cannot hold, in its standard deviations: static friction is at most 2.8 of them ..."""
HELD_USUAL = 1.7320508
"""... dry friction in slow motion: torque that a joint at rest may hold in addition to gravity or against it ..."""
HELD_TIME = 1.0
"""... after this time at rest, s: friction and residual settle after a stop ..."""
LEAST_MASS = -0.5
"""... and total mass of a payload (kg) that is none, beyond three standard errors."""
IMPOSSIBLE_RATIO = 3.0
"""Standard errors beyond which a quantity that cannot be negative is."""
POSE_RATIO = 1.5
"""Mean square residual, relative to its standard deviation without contact, that needs an explanation."""
NOTED = 5.0
"""Difference to the temperature of the calibration (K) that is worth a line."""


def temperature_range(model: RobotModel, temperatures: Sequence[Array]) -> TemperatureRange | None:
    """Return the temperatures; watch where a joint leaves the range for which its friction is known.

    Args:
        model: The calibrated robot.
        temperatures: Lowest, highest and last temperatures (joints,), °C; empty where they are not measured.

    """
    if not temperatures:
        return None
    low, high, last = temperatures
    outside = False
    for j, terms in enumerate(model.calibration.model.terms):
        for term in terms:
            if isinstance(term, Temperature):
                outside |= bool(low[j] < term.coldest or high[j] > term.hottest)
    return TemperatureRange("watch" if outside else "ok", *(tuple(values.tolist()) for values in (low, high, last)))


def warmer_than_known(model: RobotModel, temperatures: Sequence[Array]) -> Array:
    """Return by how much the joints are warmer at the end than in the training logs (joints,), K.

    Zero within the range of these logs and for joints whose terms include the temperature, NaN where those of the
    stream or of these logs are not known.

    Args:
        model: The calibrated robot.
        temperatures: As in `temperature_range`.

    """
    known = model.calibration.provenance.temperatures
    if not temperatures:
        return np.full(model.dof, np.nan)
    described = [any(isinstance(term, Temperature) for term in terms) for terms in model.calibration.model.terms]
    warmer = np.full(model.dof, np.nan) if known is None else temperatures[2] - np.clip(temperatures[2], *known)
    return np.where(described, 0.0, warmer)


def thermal_note(warmer: Array) -> list[str]:
    """Return a line where joints are much warmer (K) or colder than the model knows, or where that is not known."""
    if np.isnan(warmer).any():
        return ["friction by temperature: not measured in the stream or at calibration; warming may hide more friction"]
    largest = float(warmer[np.argmax(np.abs(warmer))])
    if abs(largest) < NOTED:
        return []
    word = "warmer" if largest > 0.0 else "colder"
    return [
        f"friction by temperature: joints are up to {abs(largest):.0f} K {word} than at calibration and the model has "
        "no temperature; a change that this may explain is not reported"
    ]


def verdict(
    monitor: Monitor,
    state: MonitorState,
    sums: StreamSums,
    contacts: list[Contact],
    faults: list[Fault],
    *,
    source: str,
    malformed: int,
    wear: Wear,
) -> MonitorResult:
    """Return what was found in a stream.

    Args:
        monitor: The monitor.
        state: Its state after the last sample.
        sums: Sums along the stream.
        contacts: Contacts that no fault explains. Where the model does not explain the stream, they are only counted.
        faults: Faults of the channels.
        source: Name of the stream.
        malformed: Lines that could not be read.
        wear: Stiffness of the joints.

    """
    model, known = monitor.model, state.known
    measured = np.ones(model.dof, dtype=bool) if monitor.measured is None else monitor.measured
    warmer = warmer_than_known(model, sums.temperatures)
    found = _findings(monitor, known, sums, _motion(monitor, sums, warmer), measured, contacts, wear)
    data, temperature = data_quality(known, faults, malformed), temperature_range(model, sums.temperatures)
    running, missing = _channels(monitor, measured, temperature is not None)
    count, setup = max(sums.samples, 1), _setup(model)
    return MonitorResult(
        source=source,
        robot=model.name,
        status=_worst(found, data, temperature, setup),
        reasons=(
            *setup,
            *_fault_reasons(data.faults),  # which may be why the model does not explain the stream
            *found.mismatch,
            *_reasons(found, temperature, data),
            *found.wear.reasons,
        ),
        start=sums.start,
        duration=sums.duration,
        rate=monitor.rate,
        contacts=found.contacts,
        external_torque_rms=where_measured(np.sqrt(sums.square / count), measured),
        external_torque_deviation=where_measured(sums.deviation / count, measured),
        payload=found.payload,
        friction=found.friction,
        temperature=temperature,
        data=data,
        thresholds=known_spread(model).source,
        running=(*running, *(["stiffness"] if found.wear.joints else [])),
        missing=(*missing, *_unchecked_signs(monitor, sums, measured), *thermal_note(warmer), *found.wear.missing),
        stiffness=found.wear.joints or None,
        setup=model.calibration.setup,
    )


def _motion(monitor: Monitor, sums: StreamSums, warmer: Array) -> FrictionMotion:
    """Return the motion in which friction was measured; `warmer` (joints,) in K."""
    time = np.maximum(sums.moved, sums.period)
    viscous = np.array([joint.viscous for joint in monitor.numbers.joints]) / VISCOUS_SHARE
    return FrictionMotion(sums.moved, sums.path / time, sums.dry / time, viscous, warmer)


@dataclass(frozen=True)
class _Findings:
    """What the monitors found, without what a stream that the model does not explain makes meaningless.

    Attributes:
        mismatch: Why the stream is not that of this robot; empty if nothing says so.
        contacts: Contacts; none where the model does not explain the stream.
        payload: Payload.
        friction: Friction of every joint.
        wear: Stiffness of the joints.
    """

    mismatch: tuple[str, ...]
    contacts: tuple[Contact, ...]
    payload: PayloadEstimate
    friction: tuple[FrictionEstimate, ...]
    wear: Wear


def _findings(
    monitor: Monitor,
    known: Known,
    sums: StreamSums,
    motion: FrictionMotion,
    measured: Mask,
    contacts: Sequence[Contact],
    wear: Wear,
) -> _Findings:
    """Return what was found; friction and wear are not judged with another payload or a model of another robot."""
    model = monitor.model
    payload = payload_estimate(known, model.payload, model.output == "current", float(sums.moved.max()))
    friction = friction_estimates(known, motion, measured)
    mismatch = _mismatch(model, sums, len(contacts), known.adopted) or _impossible(
        monitor, known, payload, friction, sums
    )
    if mismatch or payload.status == "watch":  # friction that grows with the load is not a change of the joint
        why = "the model does not explain the stream" if mismatch else "the payload is not the declared one"
        friction = tuple(
            replace(joint, status="unknown", reason=why) if joint.status == "watch" else joint for joint in friction
        )
        wear = wear.not_judged()
    if mismatch or not model.calibration.scale_known:
        payload = replace(payload, status="unknown")
    return _Findings(tuple(mismatch), () if mismatch else tuple(contacts), payload, friction, wear)


def _worst(found: _Findings, data: DataQuality, temperature: TemperatureRange | None, setup: Sequence[str]) -> Status:
    """Return the worst status of all monitors; at least watch with a model whose set-up is contradicted."""
    statuses = {"contact" if found.contacts else "ok", found.payload.status, data.status}
    statuses |= {"fault" if found.mismatch else "ok"}
    statuses |= {joint.status for joint in found.friction} | {joint.status for joint in found.wear.joints}
    statuses |= (set() if temperature is None else {temperature.status}) | ({"watch"} if setup else set())
    worst: Status = next((s for s in ("fault", "contact", "worn", "watch") if s in statuses), "ok")
    return worst


def _setup(model: RobotModel) -> list[str]:
    """Return that the model is for no use, if its training data contradict its set-up."""
    if not model.calibration.implausible:
        return []
    return [f"do not use: {CONTRADICTED}; its thresholds are assumed, and nothing here is reliable"]


def _mismatch(model: RobotModel, sums: StreamSums, contacts: int, adopted: int) -> list[str]:
    """Return why the stream is not that of this robot; empty if nothing says so."""
    share, time = sums.in_contact / max(sums.samples, 1), sums.duration
    often = contacts >= MISMATCH_COUNT and contacts > MISMATCH_RATE * time / 60.0
    if time < MISMATCH_TIME or not (share >= MISMATCH_SHARE or adopted >= MISMATCH_ADOPTED or often):
        return []
    count = f" in {contacts} contact{'' if contacts == 1 else 's'}" if contacts else ""
    return [
        f"the model does not explain the stream ({100.0 * share:.0f} % of it is beyond the thresholds{count})"
        ": check that it is of this robot, its mounting and payload, and the signs, order and units of its channels"
        f"{sums.pairs.hint() or _pose_hint(model, sums)}"
    ]


def _pose_hint(model: RobotModel, sums: StreamSums) -> str:
    """Return the joints whose residuals the uncertainty of the model in the poses of the stream explains.

    A training log that covers few poses does not separate gravity from the offset of a joint: in others the torque is
    uncertain. Empty if a joint has a larger residual than that, or where the uncertainty of a coupled robot is unknown.
    """
    poses = np.array([q for q in sums.poses if np.isfinite(q).all()])
    if not len(poses) or model.calibration.model.robot.transmission is not None:
        return ""
    low, high = model.torque_interval(poses, 0.0 * poses, 0.0 * poses, observation=False)
    half = 0.5 * np.mean(high - low, axis=0)
    residual, usual = np.sqrt(sums.square / sums.samples), sums.deviation / sums.samples
    large = residual > POSE_RATIO * usual
    if not large.any() or (residual > IMPOSSIBLE_RATIO / NORMAL * half)[large].any():
        return ""
    joints = ", ".join(f"joint {j + 1} by {half[j]:.2g} Nm" for j in np.flatnonzero(large).tolist())
    return f"; the training logs leave torques uncertain in these poses ({joints}): calibrate with logs that cover them"


def _impossible(
    monitor: Monitor, known: Known, payload: PayloadEstimate, friction: Sequence[FrictionEstimate], sums: StreamSums
) -> list[str]:
    """Return why the stream is not that of this robot: torques at rest, payload or friction that no robot has.

    Joints count that have been at rest for `HELD_TIME`; friction holds more where it has grown in motion. Once a joint
    has moved, errors of the payload learned from it count for those at rest.
    """
    errors = IMPOSSIBLE_RATIO * np.sqrt(np.maximum(np.diag(known.P), 0.0)) * sums.moved.any()
    sure = (np.abs(known.x) - errors)[MOMENTS + 2 :: SHARES]
    held = np.array([joint.held for joint in monitor.numbers.joints]) * (
        1.0 + np.maximum(known.x[MOMENTS::SHARES], 0.0)
    )
    found_at_rest = known.rest & (sums.rested >= HELD_TIME) & (sure > HELD_MOST * held)
    resting = [str(j + 1) for j in np.flatnonzero(found_at_rest).tolist()]
    half = 0.5 * float(np.diff(payload.mass_interval)[0])
    driving = [
        str(j.joint) for j in friction if j.status != "unknown" and j.a1 + IMPOSSIBLE_RATIO * j.a1_deviation < 0.0
    ]
    if driving:
        found = f"negative friction of joint {', '.join(driving)}"
    elif resting:
        found = f"more torque at rest than friction can hold at joint {', '.join(resting)}"
    elif payload.mass + IMPOSSIBLE_RATIO / NORMAL * half < LEAST_MASS:
        found = f"a negative payload of {payload.mass:.1f} kg"
    else:
        return []
    return [
        f"the model does not explain the stream ({found}): check that it is of this robot, its mounting and payload, "
        "and the signs, order and units of its channels"
    ]


def _unchecked_signs(monitor: Monitor, sums: StreamSums, measured: Mask) -> list[str]:
    """Return joints at rest whose inverted output friction would explain: ``2 |g| < (HELD_MOST + HELD_USUAL) held``."""
    if sums.q is None or not np.isfinite(sums.q).all():
        return []
    gravity = motor_torque(monitor.model.calibration.model.robot, monitor.model.gravity(np.atleast_2d(sums.q)))[0]
    held = np.array([joint.held for joint in monitor.numbers.joints])
    light = 2.0 * np.abs(gravity) < (HELD_MOST + HELD_USUAL) * held
    found = [str(j + 1) for j in np.flatnonzero(light & measured & (sums.moved == 0.0)).tolist()]
    if not found:
        return []
    return [
        f"sign of joint {', '.join(found)}: at rest, where friction may hold more than twice the gravity of this pose"
    ]


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
    if not monitor.model.calibration.scale_known:
        running.remove("payload")
        missing.append("payload: the scale of the drive gains is unknown, torques (Nm) are relative to it")
    unmeasured = [str(j + 1) for j in range(len(measured)) if not measured[j]]
    if unmeasured:
        missing.append(f"joint {', '.join(unmeasured)}: no measured {monitor.model.output}")
    return running, missing


def _reasons(found: _Findings, temperature: TemperatureRange | None, data: DataQuality) -> list[str]:
    """Return one line for everything that is not ok."""
    contacts, payload, friction = found.contacts, found.payload, found.friction
    lines = []
    if contacts:
        lines.append(_contact_reason(contacts))
    if payload.status == "watch":
        low, high = payload.mass_interval
        lines.append(f"payload {payload.mass:.2f} kg [{low:.2f}, {high:.2f}] instead of {payload.declared:.2f} kg")
    changed = [f"joint {j.joint} {100.0 * j.unexplained:+.0f} %" for j in friction if j.status == "watch"]
    if changed:
        lines.append(f"friction changed: {', '.join(changed)} of the dry friction{colder_hint(friction, temperature)}")
    if temperature is not None and temperature.status == "watch":
        lines.append("a joint is outside the temperatures for which its friction is known")
    return lines + _data_reasons(data)


def _contact_reason(contacts: Sequence[Contact]) -> str:
    """Return how many contacts there are, and the one of the largest torque."""
    largest = max(contacts, key=lambda contact: abs(contact.peak or 0.0))
    torque = f"{largest.peak:+.3g} Nm at joint {largest.joint}"
    return f"1 contact, {torque}" if len(contacts) == 1 else f"{len(contacts)} contacts, the largest torque {torque}"


def _fault_reasons(faults: Sequence[Fault]) -> list[str]:
    """Return one line for every kind of fault: the joints, how often, and when first."""
    lines = []
    for kind in dict.fromkeys(fault.kind for fault in faults):
        found = [fault for fault in faults if fault.kind == kind]
        joints = ", ".join(map(str, sorted({fault.joint for fault in found})))
        first, time = min(fault.start for fault in found), sum(fault.end - fault.start for fault in found)
        count = "" if len(found) == 1 else f" {len(found)} times"
        lines.append(f"joint {joints}: {kind}{count}, first at {first:.3f} s, for {time:.1f} s in all")
    return lines


def _data_reasons(data: DataQuality) -> list[str]:
    """Return lines for dropped samples and for breaks."""
    lines = []
    lost = {**data.dropped, **({"malformed": data.malformed} if data.malformed else {})}
    if lost:
        lines.append("dropped samples: " + ", ".join(f"{count} {name}" for name, count in lost.items()))
    if data.breaks:
        lines.append("breaks: " + ", ".join(f"{count} {name}" for name, count in data.breaks.items()))
    return lines
