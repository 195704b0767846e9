"""The sections of a calibration report, in order: each module has an `ID`, a `TITLE` and a function `body`."""

from __future__ import annotations

from typing import Protocol, cast

from jointwise.report.data import ReportData
from jointwise.report.markup import Html
from jointwise.report.sections import (
    accuracy,
    data_quality,
    friction,
    model_selection,
    motion,
    parameters,
    prediction,
    reproduce,
    residuals,
    usage,
    verdict,
)


class Section(Protocol):
    """A section of the page."""

    ID: str
    TITLE: str

    @staticmethod
    def body(data: ReportData) -> Html:
        """Return the content below the title."""
        ...


SECTIONS = cast(
    tuple[Section, ...],
    (
        verdict,
        prediction,
        accuracy,
        parameters,
        friction,
        residuals,
        motion,
        data_quality,
        model_selection,
        usage,
        reproduce,
    ),
)
