"""A calibration in words: its parameters, the joint model and its selection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.select_structure import QUESTION
from jointwise.estimation.structure import Structure
from jointwise.formatting import condition_text

if TYPE_CHECKING:
    from jointwise.result.calibration import Calibration

SHOWN = 8
"""Number of parameters of the links, and of the joints, in a short summary."""
DRIVER_LINES = {
    "q": "position: the measured joint position (q)",
    "track": "integrated speed: the integral of the measured speed, which shows small reversals that filters remove",
    "rotor": "rotor position: the measured rotor position (theta), the side of the gear on which friction acts",
}
LOADS = {"square": "the square of the load torque", "absolute": "the absolute load torque"}


def calibration_text(calibration: Calibration, full: bool) -> str:
    """Return a calibration as text, with all parameters (`full`) or the most precise ones of bodies and joints."""
    model = calibration.model
    lines = [
        *_heading(calibration),
        f"{'parameter':>10} {'value':>12} {'95 % conf. interval':>27} {'rel.se %':>9}  status",
    ]
    if full:
        return "\n".join([*lines, *(_parameter_line(calibration, k) for k in range(model.count))])
    groups = range(model.base.count), range(model.base.count, model.count)
    for (group, number, kinds), indices in zip(calibration.counts(), groups, strict=False):
        best = sorted(sorted(indices, key=lambda k: _relative_error(calibration, k))[:SHOWN])
        lines.append(f"{group}: {number} parameters, {kinds}; the most precise:")
        lines += [_parameter_line(calibration, k) for k in best]
    return "\n".join([*lines, "all parameters: summary(full=True), or the report (jointwise report)"])


def _heading(calibration: Calibration) -> list[str]:
    """Return robot, output, joint model, payload, condition number and causes of the variance, a line each."""
    robot, estimate = calibration.model.robot, calibration.estimate
    causes = [f"{cause} {100.0 * share:.0f} %" for cause, share in estimate.shares.items()]
    lines = [
        calibration.scale_text,
        f"{robot.title or robot.name}, output {calibration.output} ({calibration.unit}), {estimate.method.upper()}",
        f"joint model: {calibration.structure_text}",
        calibration.provenance.payload_text(),
        f"condition number {condition_text(estimate.condition)}; with columns of unit length "
        f"{condition_text(estimate.condition_scaled)}",
        f"variance of the bodies by cause: {', '.join(causes)}" if causes else "",
    ]
    return [line for line in lines if line]


def _relative_error(calibration: Calibration, k: int) -> float:
    """Return the relative standard error of a parameter for sorting; infinite if it is not estimated."""
    estimate = calibration.estimate
    return float(estimate.relative[k]) if estimate.status[k] in ("determined", "weak") else math.inf


def _parameter_line(calibration: Calibration, k: int) -> str:
    """Return a parameter with its confidence interval, relative standard error and status."""
    info, estimate = calibration.model.parameters[k], calibration.estimate
    value, status = f"{estimate.values[k]:12.5g}", estimate.status[k]
    if status == "undetermined":
        return f"{info.name:>10} {'-':>12} {'-':>27} {'-':>9}  undetermined [{info.unit}]"
    if not calibration.scale_known:
        return f"{info.name:>10} {value} {'-':>27} {'-':>9}  {status} [{calibration.unit_of(k)}]"
    low, high = calibration.conf_int()[k]
    return f"{info.name:>10} {value} [{low:12.5g}, {high:11.5g}] {estimate.relative[k]:9.3g}  {status} [{info.unit}]"


def explain_structure(structure: Structure) -> list[str]:
    """Return the meaning of the words in the description of a joint model, one line each."""
    lines = []
    if structure.direction == "hysteresis":
        lines.append("hysteresis: after a reversal, friction changes its sign gradually over a small angle")
        lines += [DRIVER_LINES[driver] for driver in structure.drivers]
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
        (structure.ripple, "speed-ripple response: response of the drive to ripple of the measured speed"),
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
