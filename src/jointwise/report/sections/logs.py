"""The logs of a report: verdicts for every use, every metric of every joint, and the findings of the inspection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from jointwise.data.log import Log
from jointwise.data.quality import Measures
from jointwise.data.statistics import MOVING_SPEED
from jointwise.finding import Finding
from jointwise.formatting import fixed, number, percent, r2_text
from jointwise.report.data import EvaluatedLog, ReportData, Role
from jointwise.report.page import Html, badge, element, facts, items, join, paragraph, table
from jointwise.result.calibration import UNITS
from jointwise.result.metrics import JointMetrics
from jointwise.result.provenance import Source
from jointwise.result.verdict import GRADE_TEXT, Grade, log_verdict, parameter_verdict

NOTES: dict[Role, str] = {
    "validation": "Validation error: these samples were not used for training.",
    "training": "Training error: the model was fitted to these samples.",
    "overlap": "Training error: the model was fitted to some or all of these samples.",
}


def accuracy_section(data: ReportData) -> Html:
    """Return two tables per log, validation data first."""
    return join([*(_log(item) for item in data.logs), _legend()])


def _log(item: EvaluatedLog) -> Html:
    role = element("span", item.label, class_=f"role {item.role}")
    return element(
        "article",
        element("h3", element("span", item.name, class_="file"), " ", role),
        paragraph(NOTES[item.role], class_="small"),
        _table(f"All samples, {item.label}", item.validation.joints, item.validation.unit),
        _moving(item),
        class_="log",
    )


def _moving(item: EvaluatedLog) -> Html:
    """Return the table of moving samples, or a note if there are none."""
    moving, unit = item.validation.moving, item.validation.unit
    if all(joint is None for joint in moving):
        return paragraph(
            "No joint moves in this log: the errors are those at rest, and there is no R².", class_="small"
        )
    return _table(f"Moving samples (|speed| > {MOVING_SPEED:g} rad/s), {item.label}", moving, unit)


def _table(caption: str, joints: Sequence[JointMetrics | None], unit: str) -> Html:
    errors = (f"RMSE [{unit}]", f"MSE [{unit}²]", f"Mean |e| [{unit}]", f"Max |e| [{unit}]", f"Mean e [{unit}]")
    head = ("Joint", "R²", "NMSE", "Fit %", *errors, "Samples")
    rows = [_row(j, joint) for j, joint in enumerate(joints) if joint is not None]
    known = [joint for joint in joints if joint is not None and joint.nmse is not None]
    return table(caption, head, [*rows, *([_mean_row(known)] if known else [])])


def _row(j: int, joint: JointMetrics) -> Sequence[object]:
    return (
        f"{j + 1}, at rest" if joint.still else j + 1,
        r2_text(joint.r2),
        number(joint.nmse, 3),
        fixed(joint.nrmse_percent, 1),
        number(joint.rmse, 3),
        number(joint.mse, 3),
        number(joint.mean, 3),
        number(joint.max, 3),
        number(joint.offset, 2),
        f"{joint.samples:,}",
    )


def _mean_row(known: Sequence[JointMetrics]) -> Sequence[object]:
    r2, nmse, fit = (
        float(np.mean([getattr(joint, name) for joint in known])) for name in ("r2", "nmse", "nrmse_percent")
    )
    means = (r2_text(r2), number(nmse, 3), fixed(fit, 1))
    return (element("strong", "mean"), *(element("strong", mean) for mean in means), *[""] * 6)


def _legend() -> Html:
    return paragraph(
        "e = measured − predicted. NMSE = MSE / variance of the measurement; R² = 1 − NMSE; fit = 100 (1 − ‖e‖ / "
        "‖measured − mean‖) %: 100 is perfect, 0 is no better than the mean. They are not defined for a joint at rest, "
        "where static friction can hold any torque up to break-away.",
        class_="small",
    )


# -- data quality --

VERDICTS = {"good": "good", "usable": "fair", "refused": "poor"}
SEVERITIES = {"error": "poor", "warning": "fair", "info": "plain"}
NO_FINDINGS = "The inspection found no problems."


def quality_section(data: ReportData) -> Html:
    """Return one article per log; for training logs that are not available, the facts stored in the model file."""
    articles = [_inspected(item, data.calibration.output) for item in data.logs]
    if not data.training:
        articles += [_stored(source) for source in data.calibration.provenance.logs]
    return join(articles)


def _inspected(item: EvaluatedLog, output: str) -> Html:
    log, numbers = item.log, item.inspection.numbers
    clock = numbers.clock
    pairs: list[tuple[object, object]] = [
        ("Duration", f"{log.duration:.2f} s"),
        ("Samples", f"{log.samples:,}"),
        ("Sampling rate", f"{clock.rate:.2f} Hz"),
        ("Jitter", f"{1e3 * clock.jitter_rms:.2f} ms RMS"),
        ("Gaps", str(len(clock.gaps))),
        ("Standstill", percent(numbers.standstill, 0)),
        ("Channels", ", ".join(log.available)),
    ]
    return element(
        "article",
        _head(item.name, item.label, item.inspection.verdict),
        facts(pairs),
        _findings(item.inspection.findings),
        _motion_table(log, numbers, output),
        items(log.origin.notes, class_="small") if log.origin.notes else "",
        class_="log",
    )


def _head(name: str, label: str, verdict: str) -> Html:
    role = element("span", label, class_="role")
    mark = badge(verdict, VERDICTS.get(verdict, "plain"))
    return element("h3", element("span", name, class_="file"), " ", role, " ", mark)


def _findings(findings: tuple[Finding, ...]) -> Html:
    if not findings:
        return paragraph(NO_FINDINGS)
    return items(
        (
            join([badge(each.severity, SEVERITIES[each.severity]), " ", each.evidence, " ", element("em", each.advice)])
            for each in findings
        ),
        class_="findings",
    )


def _motion_table(log: Log, numbers: Measures, output: str) -> Html:
    q, noise = numbers.channels["q"], numbers.channels[output].noise
    speeds = ("Speed, 95th percentile", "Speed, max.", "Acceleration, 95th percentile", "Acceleration, max.")
    head = ("Joint", "Position, min.", "Position, max.", *speeds, "Moving", f"Noise [{UNITS[output]}]")
    columns = (
        *((values, 2) for values in (q.low, q.high, numbers.speed_95, numbers.speed_max)),
        *((values, 1) for values in (numbers.acceleration_95, numbers.acceleration_max)),
    )
    rows = [
        (
            j + 1,
            *(fixed(float(values[j]), decimals) for values, decimals in columns),
            percent(float(numbers.moving[j]), 0),
            number(float(noise[j]), 2),
        )
        for j in range(log.joints)
    ]
    return table("Motion of every joint (rad, rad/s, rad/s²; m for prismatic joints)", head, rows)


def _stored(source: Source) -> Html:
    pairs: list[tuple[object, object]] = [
        ("Duration", f"{source.duration:.2f} s"),
        ("Samples", f"{source.samples:,}"),
    ]
    found = items(source.findings) if source.findings else paragraph(NO_FINDINGS)
    note = paragraph("The log itself was not available; these facts are stored in the model file.", class_="small")
    head = _head(source.file, "training data", source.verdict)
    return element("article", head, facts(pairs), found, note, class_="log")


LOG_KINDS = {
    "motion": "motion",
    "payload": "another payload",
    "standstill": "standstill",
    "contradiction": "contradicts the model",
}
TONES: dict[Grade, str] = {"unvalidated": "plain", "contradicted": "poor"}
"""Tones of grades that are no tones themselves."""


def uses(data: ReportData) -> Html:
    """Return one row per log: its kind, its errors and a grade for every use; below it causes and next steps."""
    rows = [_use_row(item) for item in data.logs]
    if not rows:
        return Html("")
    errors = ("MSE/variance, first to last movement", "all samples")
    head = ("Log", "Kind", *errors, "Feed-forward", "Monitoring", "Simulation")
    causes = [f"{item.name}: {text}" for item in data.logs if (text := log_verdict(item.validation).cause)]
    found = parameter_verdict(data.calibration)
    parameters = paragraph("Parameters: ", use_badge(cast(Grade, found.code)), f" {found.evidence}.", class_="small")
    listed = items(causes) if causes else Html("")
    return join([table("Verdict by log and use", head, rows, text_columns=(0, 1, 4, 5, 6)), listed, parameters])


def _use_row(item: EvaluatedLog) -> list[object]:
    """Return the row of a log."""
    verdict = log_verdict(item.validation)
    figures = [number(None if math.isnan(x) else x, 2) for x in (verdict.error, verdict.all_samples)]
    name = element("span", f"{item.name} ({item.label})", class_="file")
    return [name, LOG_KINDS[verdict.kind], *figures, *(use_badge(cast(Grade, use.code)) for use in verdict.uses)]


def use_badge(grade: Grade) -> Html:
    """Return the badge of a grade of a use."""
    return badge(GRADE_TEXT[grade], TONES.get(grade, grade))
