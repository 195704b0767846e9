"""A finding: what an inspection, a check or a monitor says about something, with its evidence and what to do about it.

Inspection of logs and descriptions, set-up checks, validation, monitoring and export return findings. `Finding.line`
writes one as text, `Finding.to_dict` as JSON, and `Finding.__html__` shows it on a page (Jinja2 calls it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, get_args

Severity = Literal["ok", "info", "warning", "error"]
"""ok: checked, and as it should be; info: for the record; warning: usable with a loss of accuracy, or to be examined;
error: not usable."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        severity: How grave it is.
        subject: What it is about: a column, a part of the set-up, a line of a file, a use of a model.
        evidence: What was found, as a sentence or a clause.
        advice: What to do about it; empty if there is nothing to do.
        code: Name of the kind of finding for programs; empty if the subject names it.
        joint: The joint (0-based); None for all.
        channel: The channel of a log; None for the whole log.
        span: First and last stamp (s) of the samples that it concerns; None for all.
    """

    severity: Severity
    subject: str
    evidence: str
    advice: str = ""
    code: str = ""
    joint: int | None = None
    channel: str | None = None
    span: tuple[float, float] | None = None

    @property
    def sentence(self) -> str:
        """Evidence and advice in one line."""
        end = "" if self.evidence.endswith((".", "?", "!")) else "."
        return f"{self.evidence}{end} {self.advice}".rstrip()

    def line(self) -> str:
        """Return the finding as one line of text; the subject is left out where the evidence names it."""
        subject = "" if self.subject in self.evidence else f"{self.subject}: "
        return f"{self.severity}: {subject}{self.sentence}"

    def to_dict(self, **earlier: str) -> dict[str, Any]:
        """Return the finding for JSON; joints count from 1 there, as in column names.

        Args:
            **earlier: Names under which earlier versions wrote an entry, with its present name: `message="evidence"`.
                The entry is written under both.

        """
        entries = {**vars(self), "joint": None if self.joint is None else self.joint + 1}
        return {**entries, **{name: entries[present] for name, present in earlier.items()}}

    def __html__(self) -> str:
        """Return the finding as an element of a page."""
        mark = {"ok": "✓", "info": "·", "warning": "!", "error": "✕"}[self.severity]
        advice = f' <span class="advice">{escape(self.advice)}</span>' if self.advice else ""
        subject = "" if self.subject in self.evidence else f"<strong>{escape(self.subject)}</strong>: "
        sentence = subject + escape(self.evidence) + ("" if self.evidence.endswith((".", "?", "!")) else ".")
        badge = f'<span class="mark" aria-hidden="true">{mark}</span> {self.severity}'
        return f'<p class="finding"><span class="badge {self.severity}">{badge}</span> {sentence}{advice}</p>'


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the highest severity among findings, "ok" of none."""
    return max((finding.severity for finding in findings), key=get_args(Severity).index, default="ok")


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings ordered by severity, those of one severity in their order."""
    return sorted(findings, key=lambda finding: -get_args(Severity).index(finding.severity))


def with_severity(findings: Iterable[Finding], severity: Severity) -> list[Finding]:
    """Return the findings of a severity."""
    return [finding for finding in findings if finding.severity == severity]
