"""The sections of a report, in order: each has an `ID`, a `TITLE` and a `body` of the evidence."""

from __future__ import annotations

from typing import Protocol, cast

from jointwise.report.evidence import Evidence
from jointwise.report.markup import Html
from jointwise.report.sections import (
    accuracy,
    choices,
    friction,
    leftover,
    motion,
    parameters,
    prediction,
    quality,
    reproduce,
    use,
    verdict,
)


class Section(Protocol):
    """A part of the page."""

    ID: str
    TITLE: str

    @staticmethod
    def body(evidence: Evidence) -> Html:
        """Return what stands under the title."""
        ...


SECTIONS = cast(
    tuple[Section, ...],
    (verdict, motion, quality, prediction, accuracy, friction, leftover, parameters, choices, use, reproduce),
)
