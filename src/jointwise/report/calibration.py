"""The report of a calibration: one page of sections, written atomically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from jointwise.arguments import checked
from jointwise.data.log import Log
from jointwise.report.data import ReportData, collect
from jointwise.report.page import Html, Section, compose, robot_title, write_page
from jointwise.report.sections.friction import friction_section
from jointwise.report.sections.logs import accuracy_section, quality_section
from jointwise.report.sections.model_selection import selection_section
from jointwise.report.sections.parameters import parameters_section
from jointwise.report.sections.prediction import motion_section, prediction_section
from jointwise.report.sections.reproduce import reproduce_section, usage_section
from jointwise.report.sections.residuals import residuals_section
from jointwise.report.sections.verdict import summary_section
from jointwise.result.calibration import CalibratedModel, calibration_of
from jointwise.result.metrics import Validation

FILE = "report.html"
SECTIONS: tuple[tuple[str, str, Callable[[ReportData], Html]], ...] = (
    ("summary", "Summary", summary_section),
    ("prediction", "Measured and predicted", prediction_section),
    ("accuracy", "Accuracy", accuracy_section),
    ("parameters", "Parameters", parameters_section),
    ("friction", "Friction", friction_section),
    ("residuals", "Residuals", residuals_section),
    ("motion", "Motion", motion_section),
    ("quality", "Data quality", quality_section),
    ("selection", "Model selection", selection_section),
    ("usage", "Usage", usage_section),
    ("reproduce", "Reproduce", reproduce_section),
)
"""Identifier, title and content of the sections, in order."""


@checked
def write_report(
    model: CalibratedModel,
    directory: str | Path,
    training: Sequence[Log | Validation],
    validation: Sequence[Log | Validation] = (),
    command: str | None = None,
    more: Sequence[Section] = (),
    file: str | Path | None = None,
) -> Path:
    """Write the report of a calibration and return its path. The page is self-contained and needs no network.

    Args:
        model: The calibrated model to report on, a `Calibration` or a `RobotModel`.
        directory: Directory of the page `report.html`, created if it does not exist; or the page itself (.html).
        training: Logs that the calibration was estimated from, or the results of `validate` on them.
        validation: Other logs with a measured output, or the results of `validate` on them, which are then not
            computed again. A log that overlaps the training data is labelled as such.
        command: Command line that reproduces the calibration; composed from the calibration if None.
        more: Sections to append.
        file: Name of the model file, for the examples of use.

    Raises:
        MissingExtraError: If jinja2 is not installed.
        OutputError: If the page cannot be written.

    """
    data = collect(calibration_of(model), training, validation, command, None if file is None else str(file))
    provenance = data.calibration.provenance
    origin = f"Calibrated on {provenance.date[:10]} with Jointwise {provenance.version}"
    sections = [*((id_, title, content(data)) for id_, title, content in SECTIONS), *more]
    page = compose("Calibration report", robot_title(data.robot), origin, sections)
    return write_page(page, directory, FILE)
