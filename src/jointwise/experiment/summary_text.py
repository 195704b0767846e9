"""The summary of a simulated experiment as text."""

from __future__ import annotations

from typing import Any

from jointwise.data.coordinates import gravity_text, is_same
from jointwise.description import gravity_vector
from jointwise.formatting import table


def simulation_text(facts: dict[str, Any]) -> str:
    """Return the figures of `SimulationResult.to_dict` as lines."""
    joint = "" if facts["joint"] is None else f", joint {facts['joint']}"
    lines = [
        f"{facts['robot']}, simulated: {facts['experiment']}{joint}: {facts['note']}",
        f"{facts['duration']:.6g} s, {facts['samples']} samples at {facts['rate']:g} Hz",
        f"gravity in the base frame: {gravity_text(facts['gravity'])} m/s^2",
        *_loaded(facts),
        *_below(facts["lowest"], facts["gravity"]),
        *_near(facts["nearest"]),
        *_held(facts["held_temperatures"]),
        *_saturated(facts["joints"]),
        "",
        _moved_text(facts),
    ]
    return "\n".join(lines)


def _locked_text(largest: dict[str, float], unit: str) -> str:
    return (
        f"  largest {_load(unit)} {largest['torque']:.3g} {_effort(unit)}, deformation "
        f"{1e3 * largest['deformation']:.3g} {_small(unit)}, current {largest['current']:.3g} A"
    )


def _moved_text(facts: dict[str, Any]) -> str:
    """Return how the motion was followed or, of a locked joint, the loads."""
    if facts["locked"] is None:
        return _joints_text(facts["joints"])
    return _locked_text(facts["locked"], facts["joints"][facts["joint"] - 1]["unit"])


def _joints_text(joints: list[dict[str, Any]]) -> str:
    rows = [
        (
            joint["joint"],
            *(
                float(f"{value:.3g}")
                for value in (1e3 * joint["tracking_rms"], 1e3 * joint["tracking_max"], joint["current"])
            ),
            round(joint["warming"], 1),
        )
        for joint in joints
    ]
    unit = ", ".join(dict.fromkeys(_small(joint["unit"]) for joint in joints))
    return table(
        ("joint", f"tracking rms [{unit}]", f"max [{unit}]", "largest current [A]", "temperature rise [K]"), rows
    )


def _small(unit: str) -> str:
    """Return the thousandth of a unit: mrad, or mm."""
    return f"m{unit}"


def _effort(unit: str) -> str:
    """Return the unit of the load of a joint that moves in this one."""
    return "Nm" if unit == "rad" else "N"


def _load(unit: str) -> str:
    return "torque" if unit == "rad" else "force"


def _saturated(joints: list[dict[str, Any]]) -> list[str]:
    """Return a warning of motors that reach their current limit."""
    worst = max(joints, key=lambda joint: (joint["saturated"], joint["demand"]))
    if not worst["saturated"]:
        return []
    count = sum(joint["saturated"] > 0.0 for joint in joints)
    return [
        f"{count} of {len(joints)} motors saturate, most that of joint '{worst['joint']}': in "
        f"{100.0 * worst['saturated']:.2g} % of the samples the commanded current exceeds its limit, up to "
        f"{100.0 * worst['demand']:.0f} % of it"
    ]


def _loaded(facts: dict[str, Any]) -> list[str]:
    """Return by how much gravity loads the joint under test."""
    if facts["gravity_load"] is None:
        return []
    unit = facts["joints"][facts["joint"] - 1]["unit"]
    largest = f"{facts['gravity_load']:.3g} {_effort(unit)}"
    return [f"gravity {_load(unit)} of joint {facts['joint']}: at most {largest}"]


def _held(known: tuple[float, float] | None) -> list[str]:
    """Return a warning of temperatures outside the range (°C) that friction knows."""
    if known is None:
        return []
    return [f"temperature dependence of friction is known from {known[0]:g} to {known[1]:g} °C and constant outside"]


def _below(lowest: float | None, gravity: list[float]) -> list[str]:
    """Return a warning of motions through the mounting plane; `lowest` is a height (m), `gravity` that of the base."""
    if lowest is None or lowest >= 0.0:
        return []
    where = ", which a robot on a table cannot do" if is_same(gravity, gravity_vector("table")) else ""
    return [
        f"warning: the arm moves up to {-lowest:.2f} m below the mounting plane (z = 0 of the base){where}; use "
        "--clearance 0.05 for a motion above it"
    ]


def _near(nearest: dict[str, Any] | None) -> list[str]:
    """Return how near links come, and a warning of motions in which an arm meets itself."""
    if nearest is None:
        return []
    first, second = nearest["between"]
    if nearest["distance"] >= 0.0:
        return [f"closest links: {first} and {second}, {nearest['distance']:.3f} m apart"]
    return [
        f"warning: {first} and {second} collide, do not run this motion on a real arm; --clearance keeps links apart"
    ]
