"""What the monitor found as text."""

from __future__ import annotations

from jointwise.monitoring.events import Contact, Fault
from jointwise.monitoring.summary import MonitorResult
from jointwise.monitoring.wear import JointStiffness

SHOWN = 20
"""Contacts that are listed one by one."""


def result_text(result: MonitorResult) -> str:
    """Return what the monitor found in a log as lines of text."""
    head = f"{result.source}: {result.status}, {result.duration:.1f} s at {result.rate:g} Hz"
    lines = [head, *(f"  {reason}" for reason in result.reasons)]
    lines += [f"    {event_text(contact)}" for contact in result.contacts[:SHOWN]]
    if len(result.contacts) > SHOWN:
        lines.append(f"    and {len(result.contacts) - SHOWN} more (--json lists all)")
    rms = "  ".join(f"{value:.2f}" for value in result.external_torque_rms)
    spread = "  ".join(f"{value:.2f}" for value in result.external_torque_deviation)
    lines += [f"  external torque rms [Nm]   {rms}", f"    without contact (1 sigma) {spread}"]
    lines.append(f"  payload [kg]               {_payload(result)}")
    known = [f"j{j.joint} {j.a1:.2f} ± {1.96 * j.a1_deviation:.2f}" for j in result.friction if j.moved > 0.0]
    lines.append(f"  dry friction / model       {'  '.join(known) or 'no joint moves'}")
    if result.temperature is not None:
        degrees = "  ".join(f"{value:.0f}" for value in result.temperature.last)
        lines.append(f"  temperature [degC]         {degrees}")
    lines += [_stiffness(joint) for joint in result.stiffness or ()]
    lines += [f"  not monitored: {text}" for text in result.missing]
    if result.thresholds == "assumed":
        lines.append("  thresholds are assumed: the model file has no residuals. Calibrate again for better ones.")
    return "\n".join(lines)


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


def _stiffness(joint: JointStiffness) -> str:
    low, high = (f"{value:.0f}" for value in joint.interval)
    least, most = (f"{100.0 * value:+.1f}" for value in joint.loss_interval)
    loss = f"loss {100.0 * joint.loss:+.1f} [{least}, {most}] %"
    return f"  stiffness j{joint.joint} [Nm/rad]      {joint.stiffness:.0f} [{low}, {high}], {loss}: {joint.status}"


def _payload(result: MonitorResult) -> str:
    payload = result.payload
    low, high = payload.mass_interval
    known = "" if payload.status != "unknown" else " (not determined: the tool has to turn)"
    return f"{payload.mass:.2f} [{low:.2f}, {high:.2f}], declared {payload.declared:.2f}{known}"
