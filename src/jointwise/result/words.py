"""The words of a joint model, explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DRIVERS = {
    "q": "on q: driven by the measured position",
    "track": "on track: driven by the measured speed, summed up: small reversals show that smoothing hides",
    "rotor": "on rotor: driven by the position of the rotor (theta), the side that rubs",
}
LOADS = {"square": "with the square of the load torque", "absolute": "with the size of the load torque"}


def explained(structure: Mapping[str, Any]) -> list[str]:
    """Return what the words of a joint model (its `structure`) mean, one line each."""
    lines = []
    if structure.get("direction") == "hysteresis":
        lines.append("hysteresis: after a reversal friction builds up over a small angle, it does not jump")
        lines += [DRIVERS[own] for own in structure["drivers"]]
        if structure.get("relaxation"):
            lines.append("relaxing: a joint that stands still loses this wind-up within that time")
    if structure.get("load") in LOADS:
        lines.append(f"{structure['load']} load dependence: dry friction grows {LOADS[structure['load']]}")
    if structure.get("stribeck"):
        lines.append("Stribeck: slow motion rubs more than a little faster motion")
    if structure.get("ripple"):
        lines.append("answer to speed ripple: what the drive does against fast ripple of the measured speed")
    return lines
