"""Calibrations and validations in words and as data frames: parameters, joint model, errors and uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.select_structure import QUESTION
from jointwise.estimation.structure import Structure
from jointwise.formatting import condition_text, rounded, rounded_r2, table
from jointwise.lazy import import_pandas
from jointwise.result.metrics import IGNORED, JointMetrics, Validation
from jointwise.result.plausibility.wording import SETUP
from jointwise.result.verdict import log_verdict

if TYPE_CHECKING:
    from pandas import DataFrame

    from jointwise.result.calibration import Calibration

SHOWN = 8
"""Number of parameters of the links, and of the joints, in a short summary."""
DRIVER_LINES = {
    "q": "position: the measured joint position (q)",
    "track": "integrated speed: the integral of the measured speed, which shows small reversals that filters remove",
    "rotor": "rotor position: the measured rotor position (theta), the side of the gear on which friction acts",
}
LOADS = {"square": "the square of the load torque", "absolute": "the absolute load torque"}
USES = {
    "sensor": "sensor-based model (all channels that it uses)",
    "feed-forward": "feed-forward model (positions only)",
}
SUSPECT = "the training data make the set-up of the model suspect (see its report): at most fair for every use"
REST = "at rest: no R2 for a joint that does not move, where static friction can hold any torque up to break-away"


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
    """Return robot, output, joint model, payload, condition number, causes of the variance and repetitions."""
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
        calibration.provenance.repetition_text(),
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


def validation_text(validation: Validation) -> str:
    """Return the errors on one log as a table: all samples, and those at which the joint moves."""
    judged = [(j, joint) for j, joint in enumerate(validation.joints, start=1) if not joint.ignored]
    rows = [_row(j, "at rest" if joint.still else "all", joint) for j, joint in judged]
    rows += [_row(j, "moving", joint) for j, joint in enumerate(validation.moving, start=1) if joint is not None]
    unit = validation.unit
    errors = tuple(f"{name} [{unit}]" for name in ("RMSE", "mean", "max", "offset"))
    used = [] if validation.use is None else [USES[validation.use]]
    errors_table = table(("j", "samples", *errors, "MSE/variance", "fit %", "R2"), rows)
    training = [] if validation.training_text is None else [validation.training_text]
    lines = [validation.file, *used, *training, errors_table, *_remarks(validation), *_means(validation)]
    return "\n".join([*lines, *_log_lines(validation)])


def _remarks(validation: Validation) -> list[str]:
    """Return what the table does not show: joints at rest, and joints without errors."""
    ignored = [str(j) for j, joint in enumerate(validation.joints, start=1) if joint.ignored]
    rest = [REST] if any(joint.still for joint in validation.joints) else []
    return [*rest, f"joint {', '.join(ignored)}: {IGNORED}"] if ignored else rest


def _means(validation: Validation) -> list[str]:
    """Return the mean errors over the joints, or why there are none."""
    if validation.reason is not None:
        return [validation.reason]
    joints = "joints that move" if any(joint.still for joint in validation.joints) else "joints"
    nmse, r2 = rounded(validation.mean_nmse), rounded_r2(validation.mean_r2)
    motion = rounded(validation.motion_nmse)
    return [
        f"from the first to the last movement, mean over the {joints}: MSE/variance {motion}",
        f"all samples, mean over the {joints}: MSE/variance {nmse}, R2 {r2}",
        *_feed_forward_lines(validation),
    ]


def _log_lines(validation: Validation) -> list[str]:
    """Return what contradicts that a log belongs to the model, and what the model can be used for by this log."""
    found = [f"log {SETUP[each.severity]} ({each.subject}): {each.sentence}" for each in validation.plausibility]
    setup = [SUSPECT] if validation.setup == "suspect" else []
    return [*found, replace(log_verdict(validation), cause="").line(), *setup]


def _feed_forward_lines(validation: Validation) -> list[str]:
    """Return the error of the prediction from positions only, if the model also uses other channels of the log."""
    bare = validation.from_positions
    if bare is None or bare.reason is not None:
        return []
    parts = (
        ("first to last movement", bare.motion_nmse, validation.motion_nmse),
        ("all samples", bare.mean_nmse, validation.mean_nmse),
        ("moving samples", bare.moving_nmse, validation.moving_nmse),
    )
    known = [(name, rounded(alone), rounded(full)) for name, alone, full in parts]
    texts = [f"{name} {alone} instead of {full}" for name, alone, full in known if alone is not None]
    return [f"feed-forward (from positions only), MSE/variance: {'; '.join(texts)}"]


def _row(joint: int, which: str, metrics: JointMetrics) -> tuple[object, ...]:
    figures = (metrics.rmse, metrics.mean, metrics.max, metrics.offset, metrics.nmse, metrics.nrmse_percent)
    return (str(joint), which, *(rounded(value) for value in figures), rounded_r2(metrics.r2))


def validation_frame(validation: Validation) -> DataFrame:
    """Return the errors on one log as a pandas data frame.

    Args:
        validation: Errors of a model on a log.

    Returns:
        Index ``joint`` (from 1) and ``samples`` (`all` or `moving`). Columns ``rmse``, ``mean``, ``max`` and ``offset``
        of the error and ``variance`` of the measurement (unit of the output and its square), ``nmse``, ``r2`` (NaN
        where a joint does not move) and ``still``.

    Raises:
        MissingExtraError: pandas is not installed.

    """
    pd = import_pandas()
    names = ("rmse", "mean", "max", "offset", "variance", "nmse", "r2", "still")
    parts = {"all": validation.joints, "moving": validation.moving}
    rows = {
        (j, which): [getattr(errors, name) for name in names]
        for which, joints in parts.items()
        for j, errors in enumerate(joints, start=1)
        if errors is not None
    }
    index = pd.MultiIndex.from_tuples(rows, names=["joint", "samples"])
    frame = pd.DataFrame(list(rows.values()), index=index, columns=list(names))
    numbers = [name for name in names if name != "still"]
    result: DataFrame = frame.astype(dict.fromkeys(numbers, float))
    return result


def calibration_frame(calibration: Calibration) -> DataFrame:
    """Return the parameters as a pandas data frame; see `Calibration.to_dataframe`."""
    pd, estimate, parameters = import_pandas(), calibration.estimate, calibration.model.parameters
    undetermined = np.array([each == "undetermined" for each in estimate.status])
    low, high = calibration.conf_int().T
    columns = {
        "joint": pd.array([None if p.joint is None else p.joint + 1 for p in parameters], dtype="Int64"),
        "unit": [calibration.unit_of(k) for k in range(len(parameters))],
        "value": np.where(undetermined, np.nan, estimate.values),
        "std_error": np.where(undetermined, np.nan, estimate.deviation),
        "low": low,
        "high": high,
        "status": estimate.status,
    }
    frame: DataFrame = pd.DataFrame(columns, index=pd.Index([p.name for p in parameters], name="parameter"))
    return frame
