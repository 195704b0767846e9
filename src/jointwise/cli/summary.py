"""Results as tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jointwise.formatting import condition_text, rounded, rounded_r2, shortened, table
from jointwise.result.metrics import pool
from jointwise.result.predict import EXTRAS
from jointwise.result.text import explain_structure, joint_friction_lines
from jointwise.result.verdict import parameters_line

if TYPE_CHECKING:
    from jointwise.estimation.essential import Essential
    from jointwise.estimation.physical import PhysicalParameters
    from jointwise.finding import Finding
    from jointwise.result import Calibration, Validation

STATUS = {
    "weak": "weak: the 95 % confidence interval contains zero, because the value is small or correlated with others",
    "at bound": "at bound: the estimate is at its lower bound of zero; normal for slip elements that are not needed",
    "dropped": "dropped: set to zero; the data do not determine it, and the prediction does not need it",
    "given": "given: fixed at a known value",
}


def training_text(calibration: Calibration) -> str:
    """Return the joint model, the training error and the status of the parameters."""
    robot = calibration.model.robot
    joints = zip(robot.joints, calibration.estimate.sigma, calibration.gains, calibration.training.nmse, strict=True)
    rows = [
        (str(j), joint.name, None if nmse is None else rounded(float(sigma / gain)), rounded(nmse))
        for j, (joint, sigma, gain, nmse) in enumerate(joints, start=1)
    ]
    head = f"residual [{calibration.unit}]"
    lines = [calibration.scale_text] if calibration.scale_text else []
    lines += [*_structure_lines(calibration), *joint_friction_lines(calibration.choices)]
    lines += _particular_lines(calibration)
    lines += ["training error (not a validation)", table(("j", "joint", head, "MSE/variance"), rows)]
    lines += _training_feed_forward(calibration)
    lines += [_parameters_text(calibration), *essential_lines(calibration.essential)]
    lines += physical_lines(calibration.physical)
    return "\n".join([*lines, *plausibility_lines(calibration.plausibility), parameters_line(calibration)])


def _structure_lines(calibration: Calibration) -> list[str]:
    """Return robot, output, joint model and filters."""
    robot, filters = calibration.model.robot, calibration.filters
    parallel = f", parallel {filters.parallel_cutoff:g} Hz" if filters.parallel_cutoff else ""
    planned = calibration.for_use("feed-forward").filters.position_cutoff
    alone = f" (feed-forward {planned:g} Hz)" if planned != filters.position_cutoff else ""
    return [
        f"{robot.title or robot.name}, output {calibration.output} [{calibration.unit}]; gains: "
        f"{calibration.gain_source}",
        f"joint model: {calibration.structure_text}",
        *(f"  {line}" for line in explain_structure(calibration.structure)),
        f"filters: position {filters.position_cutoff:g} Hz{alone}{parallel}, lag {1e3 * filters.lag:.1f} ms",
    ]


def _particular_lines(calibration: Calibration) -> list[str]:
    """Return what is particular: ignored outputs, payload, repetitions, a load iteration that did not converge."""
    lines = []
    if calibration.ignored:
        names = ", ".join(str(j + 1) for j in calibration.ignored)
        lines.append(f"outputs ignored: joint {names} (not measured, or not used); the model does not predict them")
    lines += filter(None, [calibration.provenance.payload_text(), calibration.provenance.repetition_text()])
    if not calibration.load.converged:
        lines.append("the load iteration did not converge: the load dependence is inaccurate")
    return lines


def plausibility_lines(checks: Sequence[Finding]) -> list[str]:
    """Return what contradicts the set-up or makes it suspect, one line each; or that nothing does."""
    from jointwise.result.plausibility import undecided_text
    from jointwise.result.plausibility.wording import SETUP

    found = [check for check in checks if check.severity != "ok"]
    if checks and not found:
        return ["; ".join(filter(None, [f"set-up: plausible ({len(checks)} checks)", undecided_text(checks)]))]
    return [f"set-up {SETUP[each.severity]} ({each.subject}): {each.sentence}" for each in found]


def _training_feed_forward(calibration: Calibration) -> list[str]:
    """Return the training error of the prediction from positions only, if the model also uses other channels."""
    bare = [error for error in calibration.training.from_positions or () if error is not None]
    used = " and ".join(EXTRAS[name] for name in calibration.extras)
    text = f"sensor-based model: uses {used}; feed-forward (from positions only): training MSE/variance "
    return [f"{text}{rounded(sum(bare) / len(bare))}"] if bare else []


def _parameters_text(calibration: Calibration) -> str:
    """Return the status of the parameters of bodies and joints, and the names of those that are not identifiable."""
    counts = "; ".join(f"{whose} {number} ({kinds})" for whose, number, kinds in calibration.counts())
    lines = [f"parameters: {counts}; condition number {condition_text(calibration.estimate.condition_scaled)}"]
    lost = calibration.undetermined()
    lines += [f"not identifiable from these data: {shortened(lost)}"] if lost else []
    return "\n".join([*lines, *(f"  {why}" for kind, why in STATUS.items() if kind in calibration.estimate.status)])


def essential_lines(essential: Essential | None) -> list[str]:
    """Return which base parameters were dropped and kept, and what that cost."""
    if essential is None:
        return []
    lines = [
        f"essential parameters: {len(essential.dropped)} dropped, held-out error {100.0 * essential.change:+.2g} % "
        f"(tolerance {100.0 * essential.tolerance:g} %)",
    ]
    reasons = [
        f"{item.name} (not determined)" if item.relative_error is None else f"{item.name} ({item.relative_error:.0f} %)"
        for item in essential.dropped
    ]
    lines += [f"  dropped (relative standard error): {shortened(tuple(reasons))}"] if reasons else []
    needed = shortened(essential.needed)
    return lines + ([f"  kept, as the held-out error grows without them: {needed}"] if needed else [])


def physical_lines(physical: PhysicalParameters | None) -> list[str]:
    """Return the masses of the consistent bodies, their cost, and what rests on the prior."""
    if physical is None:
        return []
    bodies = ", ".join(f"{link.name} {link.mass:.3g} kg" for link in physical.links)
    lines = [f"physically consistent bodies ({physical.prior} prior: {physical.prior_source}): {bodies}"]
    if physical.held_out is not None:
        lines.append(f"  cost of consistency: {100.0 * physical.held_out.cost:+.2g} % held-out error")
    suspect = ", ".join(physical.suspect_masses)
    lines += [f"  warning: {suspect}. Check the description, the payload and the drive gains"] if suspect else []
    edge = [physical.names[j] for j in physical.boundary]
    lines += [f"  at the boundary of physical consistency: {', '.join(edge)}"] if edge else []
    share = [*(float(value) for row in physical.share for value in row), *physical.rotor_share]
    few = sum(value < 0.5 for value in share)
    return [*lines, f"  {few} of {len(share)} standard parameters depend more on the prior than on the data"]


def cost_line(validation: Validation, consistent: Validation) -> str:
    """Return the validation error with physically consistent bodies beside that without; empty where there is none."""
    if validation.reason is not None or consistent.reason is not None:
        return ""
    error, bodies = validation.mean_nmse, consistent.mean_nmse
    return (
        f"with physically consistent bodies: MSE/variance {rounded(bodies)} instead of {rounded(error)} on "
        f"{validation.file}"
    )


def pooled_text(validations: Sequence[Validation]) -> list[str]:
    """Return the errors of every joint over several logs as a table; nothing for a single log."""
    if len(validations) < 2:
        return []
    pooled = [pool(column) for column in zip(*(log.joints for log in validations), strict=True)]
    rows = [
        (str(j), rounded(joint.rmse), rounded(joint.nmse), None if joint.nmse is None else rounded_r2(1.0 - joint.nmse))
        for j, joint in enumerate(pooled, start=1)
    ]
    head = ("j", f"RMSE [{validations[0].unit}]", "MSE/variance", "R2")
    return [f"all {len(validations)} logs, over those in which the joint moves\n{table(head, rows)}"]
