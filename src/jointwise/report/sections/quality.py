"""Data quality: what the data doctor says of every log."""

from __future__ import annotations

from jointwise.data.finding import Finding
from jointwise.data.log import Log
from jointwise.data.measures import Measures
from jointwise.report.evidence import Evidence, Exhibit
from jointwise.report.markup import Html, badge, element, facts, items, join, paragraph, table
from jointwise.report.numbers import fixed, number, percent
from jointwise.result.calibration import Source

ID, TITLE = "quality", "Data quality"

TONES = {"good": "good", "usable": "fair", "refused": "poor"}
SEVERITIES = {"error": "poor", "warning": "fair", "info": "plain"}


def body(evidence: Evidence) -> Html:
    """Return a card a log; of training logs that were not given, what the model's file remembers."""
    cards = [_exhibit(own, evidence.calibration.output) for own in evidence.all]
    if not evidence.training:
        cards += [_remembered(source) for source in evidence.calibration.provenance.logs]
    return join(cards)


def _exhibit(exhibit: Exhibit, output: str) -> Html:
    log, numbers = exhibit.log, exhibit.examination.numbers
    clock = numbers.clock
    pairs: list[tuple[object, object]] = [
        ("Duration", f"{log.duration:.2f} s"),
        ("Samples", f"{log.samples:,}"),
        ("Rate", f"{clock.rate:.2f} Hz"),
        ("Jitter", f"{1e3 * clock.jitter_rms:.2f} ms rms"),
        ("Gaps", str(len(clock.gaps))),
        ("Standstill", percent(numbers.standstill, 0)),
        ("Channels", ", ".join(log.available)),
    ]
    verdict = exhibit.examination.verdict
    return element(
        "article",
        _head(exhibit.name, exhibit.label, verdict),
        facts(pairs),
        _findings(exhibit.examination.findings),
        _joints(log, numbers, output),
        items(log.origin.notes, class_="small") if log.origin.notes else "",
        class_="log",
    )


def _head(name: str, label: str, verdict: str) -> Html:
    role = element("span", label, class_="role")
    return element(
        "h3", element("span", name, class_="file"), " ", role, " ", badge(verdict, TONES.get(verdict, "plain"))
    )


def _findings(findings: tuple[Finding, ...]) -> Html:
    if not findings:
        return paragraph("The data doctor found nothing wrong.")
    return items(
        (
            join([badge(own.severity, SEVERITIES[own.severity]), " ", own.message, " ", element("em", own.advice)])
            for own in findings
        ),
        class_="findings",
    )


def _joints(log: Log, numbers: Measures, output: str) -> Html:
    q = numbers.channels["q"]
    noise = numbers.channels[output].noise
    unit = "A" if output == "current" else "Nm"
    head = ("Joint", "From", "To", "Speed 95 %", "Speed max", "Accel. 95 %", "Accel. max", "Moving", f"Noise [{unit}]")
    rows = [
        (
            j + 1,
            fixed(float(q.low[j]), 2),
            fixed(float(q.high[j]), 2),
            fixed(float(numbers.speed_95[j]), 2),
            fixed(float(numbers.speed_max[j]), 2),
            fixed(float(numbers.acceleration_95[j]), 1),
            fixed(float(numbers.acceleration_max[j]), 1),
            percent(float(numbers.moving[j]), 0),
            number(float(noise[j]), 2),
        )
        for j in range(log.joints)
    ]
    return table("Motion of every joint (rad, rad/s, rad/s²; m for prismatic joints)", head, rows)


def _remembered(source: Source) -> Html:
    pairs: list[tuple[object, object]] = [
        ("Duration", f"{source.duration:.2f} s"),
        ("Samples", f"{source.samples:,}"),
    ]
    found = items(source.findings) if source.findings else paragraph("The data doctor found nothing wrong.")
    note = paragraph(
        "This log was not at hand for the report: this is what the model's file remembers.", class_="small"
    )
    return element(
        "article", _head(source.file, "training data", source.verdict), facts(pairs), found, note, class_="log"
    )
