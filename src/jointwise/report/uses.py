"""The verdict on every log and every kind of use, as a table."""

from __future__ import annotations

import math

from jointwise.formatting import number
from jointwise.report.data import EvaluatedLog, ReportData
from jointwise.report.markup import Html, badge, element, items, join, paragraph, table
from jointwise.result.verdict import Grade, log_verdict, parameter_verdict

KINDS = {
    "motion": "motion",
    "payload": "another payload",
    "standstill": "standstill",
    "contradiction": "contradicts the model",
}
WORDS: dict[Grade, str] = {"good": "good", "fair": "with care", "poor": "no", "plain": "not judged"}


def uses(data: ReportData) -> Html:
    """Return one row per log: its kind, its errors and a grade for every use; below it causes and next steps."""
    rows = [_row(item) for item in data.logs]
    if not rows:
        return Html("")
    errors = ("MSE/variance, first to last movement", "all samples")
    head = ("Log", "Kind", *errors, "Feed-forward", "Monitoring", "Simulation")
    causes = [f"{item.name}: {text}" for item in data.logs if (text := log_verdict(item.validation).cause)]
    grade, reason = parameter_verdict(data.calibration)
    parameters = paragraph("Parameters: ", badge(WORDS[grade], grade), f" {reason}.", class_="small")
    found = items(causes) if causes else Html("")
    return join([table("Verdict by log and use", head, rows, text_columns=(0, 1, 4, 5, 6)), found, parameters])


def _row(item: EvaluatedLog) -> list[object]:
    verdict = log_verdict(item.validation)
    grades = (verdict.feed_forward, verdict.monitoring, verdict.simulation)
    figures = [number(None if math.isnan(x) else x, 2) for x in (verdict.error, verdict.all_samples)]
    name = element("span", f"{item.name} ({item.label})", class_="file")
    return [name, KINDS[verdict.kind], *figures, *(badge(WORDS[grade], grade) for grade in grades)]
