"""What the monitor found in a log or a stream as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jointwise.monitoring.estimates import VAGUE
from jointwise.monitoring.events import event_text
from jointwise.monitoring.stiffness.status import WIDEST
from jointwise.monitoring.summary import FrictionEstimate, MonitorResult, PayloadEstimate
from jointwise.monitoring.wear import JointStiffness

SHOWN = 20
"""Contacts that the text lists one by one."""


def result_text(result: MonitorResult) -> str:
    """Return what the monitor found in a log as lines of text."""
    head = f"{result.source}: {result.status}, {result.duration:.1f} s at {result.rate:g} Hz"
    lines = [head, *(f"  {reason}" for reason in result.reasons)]
    lines += [f"    {event_text(contact)}" for contact in result.contacts[:SHOWN]]
    if len(result.contacts) > SHOWN:
        lines.append(f"    and {len(result.contacts) - SHOWN} more (--json lists all)")
    lines += [*_number_lines(result), *(_stiffness_line(joint) for joint in result.stiffness or ())]
    lines += [f"  not monitored: {text}" for text in result.missing]
    if result.thresholds == "assumed" and result.setup != "contradicted":
        lines.append("  thresholds are assumed: the model file has no residuals. Calibrate again for better ones.")
    return "\n".join(lines)


def _number_lines(result: MonitorResult) -> list[str]:
    """Return external torque, payload, friction and temperature as lines of text."""
    rms, spread = (
        "  ".join("-" if value is None else f"{value:.2f}" for value in values)
        for values in (result.external_torque_rms, result.external_torque_deviation)
    )
    lines = [f"  external torque rms [Nm]   {rms}", f"    without contact (1 sigma) {spread}"]
    if "payload" in result.running:
        lines.append(f"  payload [kg]               {_payload_text(result.payload)}")
    lines += _friction_lines(result.friction)
    if result.temperature is not None:
        degrees = "  ".join(f"{value:.0f}" for value in result.temperature.last)
        lines.append(f"  temperature [degC]         {degrees}")
    return lines


def _friction_lines(friction: Sequence[FrictionEstimate]) -> list[str]:
    """Return the change of friction where it is known, its status, and why it is unknown elsewhere."""
    moved = [joint for joint in friction if joint.moved > 0.0 and joint.change_deviation < VAGUE]
    known = [f"j{j.joint} {100.0 * j.change:+.0f} ± {196.0 * j.change_error:.0f}" for j in moved]
    lines = [f"  friction change [% of dry] {'  '.join(known) or 'not determined: no joint moves enough'}"]
    statuses = [
        f"{status} {_joint_list(joint for joint in friction if joint.status == status)}"
        for status in dict.fromkeys(joint.status for joint in friction)
    ]
    lines.append(f"    status                   {', '.join(statuses)}")
    return lines + [
        f"      {_joint_list(joint for joint in friction if joint.reason == reason)} unknown: {reason}"
        for reason in dict.fromkeys(joint.reason for joint in friction if joint.reason)
    ]


def _joint_list(joints: Iterable[FrictionEstimate]) -> str:
    return " ".join(f"j{joint.joint}" for joint in joints)


def _stiffness_line(joint: JointStiffness) -> str:
    low, high = (f"{value:.0f}" for value in joint.interval)
    least, most = (f"{100.0 * value:+.1f}" for value in joint.loss_interval)
    loss = f"loss {100.0 * joint.loss:+.1f} [{least}, {most}] %"
    text = f"  stiffness j{joint.joint} [Nm/rad]      {joint.stiffness:.0f} [{low}, {high}], {loss}: {joint.status}"
    if joint.is_stiffer:
        return f"{text} (gears never become stiffer: check payload, drive gain and joint file)"
    wide = joint.loss_interval[1] - joint.loss_interval[0] > 2.0 * WIDEST
    return f"{text} (the deflection does not determine it)" if wide else text


def _payload_text(payload: PayloadEstimate) -> str:
    low, high = payload.mass_interval
    known = "" if payload.status != "unknown" else " (not determined: the tool has to turn)"
    return f"{payload.mass:.2f} [{low:.2f}, {high:.2f}], declared {payload.declared:.2f}{known}"
