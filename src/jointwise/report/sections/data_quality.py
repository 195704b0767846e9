"""Data quality: the findings of the inspection of every log."""

from __future__ import annotations

from jointwise.data.finding import Finding
from jointwise.data.log import Log
from jointwise.data.measures import Measures
from jointwise.formatting import fixed, number, percent
from jointwise.report.data import EvaluatedLog, ReportData
from jointwise.report.markup import Html, badge, element, facts, items, join, paragraph, table
from jointwise.result.calibration import UNITS, Source

ID, TITLE = "quality", "Data quality"

VERDICTS = {"good": "good", "usable": "fair", "refused": "poor"}
SEVERITIES = {"error": "poor", "warning": "fair", "info": "plain"}
NO_FINDINGS = "The inspection found no problems."


def body(data: ReportData) -> Html:
    """Return one article per log; for training logs that are not available, the facts stored in the model file."""
    articles = [_log(item, data.calibration.output) for item in data.logs]
    if not data.training:
        articles += [_stored(source) for source in data.calibration.provenance.logs]
    return join(articles)


def _log(item: EvaluatedLog, output: str) -> Html:
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
        _joints(log, numbers, output),
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
            join([badge(each.severity, SEVERITIES[each.severity]), " ", each.message, " ", element("em", each.advice)])
            for each in findings
        ),
        class_="findings",
    )


def _joints(log: Log, numbers: Measures, output: str) -> Html:
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
