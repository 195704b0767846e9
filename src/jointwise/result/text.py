"""Joint models and their selection in words."""

from __future__ import annotations

from collections.abc import Sequence

from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.select_structure import QUESTION
from jointwise.estimation.structure import Structure

DRIVERS = {
    "q": "on q: driven by the measured position",
    "track": "on track: driven by the integrated measured speed, which shows small reversals that filters remove",
    "rotor": "on rotor: driven by the rotor position (theta), the side on which friction acts",
}
LOADS = {"square": "the square of the load torque", "absolute": "the absolute load torque"}


def explain_structure(structure: Structure) -> list[str]:
    """Return the meaning of the words in the description of a joint model, one line each."""
    lines = []
    if structure.direction == "hysteresis":
        lines.append("hysteresis: after a reversal friction builds up over a small angle instead of jumping")
        lines += [DRIVERS[driver] for driver in structure.drivers]
    remarks = (
        (
            structure.direction == "hysteresis" and structure.relaxation,
            "relaxing: hysteresis decays with this time constant while the joint is at rest",
        ),
        (
            structure.load in LOADS,
            f"{structure.load} load dependence: Coulomb friction grows with {LOADS.get(structure.load)}",
        ),
        (structure.stribeck, "Stribeck: friction is higher at low speed"),
        (structure.ripple, "answer to speed ripple: response of the drive to fast ripple of the measured speed"),
    )
    return [*lines, *(text for applies, text in remarks if applies)]


def joint_friction_lines(choices: Sequence[Choice]) -> list[str]:
    """Return for every joint with a joint file which friction is used, with the difference of the held-out errors."""
    return [
        f"{choice.question}: {choice.taken} (friction from the joint file has {abs(change):.1f} % "
        f"{'more' if change > 0.0 else 'less'} held-out error than the automatic model)"
        for choice, change in _joint_friction(choices)
    ]


def costly_joint_friction_lines(choices: Sequence[Choice]) -> list[str]:
    """Return the lines of the joints whose joint file is used although the automatic model predicts better."""
    costly = [
        choice
        for choice, change in _joint_friction(choices)
        if choice.taken == choice.alternatives[0][0] and change > 0.0
    ]
    return joint_friction_lines(costly)


def _joint_friction(choices: Sequence[Choice]) -> list[tuple[Choice, float]]:
    """Return the choices between a joint file and the automatic model with the excess error of the former in %."""
    found = [choice for choice in choices if choice.question.startswith(QUESTION)]
    errors = [[error for _, error in choice.alternatives] for choice in found]
    return [
        (choice, 100.0 * (known / automatic - 1.0)) for choice, (known, automatic) in zip(found, errors, strict=True)
    ]
