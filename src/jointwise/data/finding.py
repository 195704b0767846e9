"""A finding about the data of a log: how severe it is, where it is, what is wrong and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]
"""error: the log cannot be used for calibration; warning: usable with a loss of accuracy; info: for the record."""


@dataclass(frozen=True)
class Finding:
    """One finding of the inspection of a log.

    Attributes:
        severity: How grave it is.
        code: Name for programs.
        message: What was found, in a sentence.
        advice: What to do about it; empty if there is nothing.
        channel: The channel; None for the whole log.
        joint: The joint (0-based); None for all.
    """

    severity: Severity
    code: str
    message: str
    advice: str = ""
    channel: str | None = None
    joint: int | None = None

    def line(self) -> str:
        """Return the finding as one line of text."""
        return f"{self.severity}: {self.message}" + (f" {self.advice}" if self.advice else "")

    def to_dict(self) -> dict[str, object]:
        """Return the finding for JSON; joints count from 1 there, as in column names."""
        return {
            "severity": self.severity,
            "code": self.code,
            "channel": self.channel,
            "joint": None if self.joint is None else self.joint + 1,
            "message": self.message,
            "advice": self.advice,
        }
