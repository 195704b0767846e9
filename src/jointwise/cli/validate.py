"""Prints the errors of a model on a log for each joint: over all samples, and over those in which the joint moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jointwise.cli.command import Common
from jointwise.cli.inputs import Estimate, LogFormat
from jointwise.cli.output import Progress, note, read_model, show
from jointwise.settings import Number, option

if TYPE_CHECKING:
    from jointwise.result import Calibration, Validation

EXAMPLES = """\
examples:
  jointwise validate model.json other.csv
  jointwise validate model.json other.csv --json
  jointwise validate model.json a.csv b.csv c.csv              every log, and all of them together
  jointwise validate model.json other.csv --min-r2 0.95        exit code 1 if a joint is worse
  jointwise validate model.json other.csv --use feed-forward   from positions only, as in a planned motion

MSE/variance is 1 - R2. "fit %" is 100 for a perfect prediction and 0 for a prediction by the mean. A joint that hardly
moves is listed with its error at rest and without R2, and --min-r2 ignores it. A log that shares samples with the
training data is reported, even if the file differs, and fails --min-r2; so does a model whose training data contradict
its set-up (--accept-implausible)."""


@dataclass(frozen=True, kw_only=True)
class Settings(Estimate, LogFormat, Common):
    """The files and the limit."""

    model: str = option(help="model file of 'jointwise calibrate'", argument=True)
    logs: tuple[str, ...] = option(help="a log with the measured output", metavar="LOG", argument=True)
    min_r2: Number | None = option(None, "exit with code 1 if the R2 of any joint is lower", metavar="R2")


def run(settings: Settings) -> int:
    """Print the errors on every log; 1 if they are too large on one."""
    from jointwise.cli.summary import pooled_text
    from jointwise.result import validate
    from jointwise.result.logs import read_log_for
    from jointwise.result.verdict import parameters_line

    with Progress(settings.silent) as progress:
        progress("validating")
        calibration = read_model(settings.model)
        logs = [read_log_for(calibration, path, **settings.reading(), warn=note) for path in settings.logs]
        validations = [validate(calibration, log, use=settings.use) for log in logs]
    least = settings.min_r2
    failures = [None if least is None else validation.failure(least) for validation in validations]
    _print_notes(validations, failures)
    summaries = (each.summary() for each in validations)
    show(
        settings,
        lambda: _document(settings.model, calibration, validations, least),
        lambda: "\n\n".join([*summaries, *pooled_text(validations), parameters_line(calibration)]),
    )
    return int(any(failure is not None for failure in failures))


def _print_notes(validations: list[Validation], failures: list[str | None]) -> None:
    """Print which logs are training data, and which failed."""
    for validation in validations:
        if validation.training_text is not None:
            note(f"{validation.file}: {validation.training_text}.")
    for validation, failure in zip(validations, failures, strict=True):
        if failure is not None:
            note(f"{validation.file}: failed validation: {failure}.")


def _document(
    model: str, calibration: Calibration, validations: list[Validation], min_r2: float | None
) -> dict[str, Any]:
    """Return the errors for JSON: those of one log, or of several as `logs`; `passed` is None if it was not judged."""
    from jointwise.result.verdict import judged_parameters, judged_validation

    entries = [{**judged_validation(log), "passed": log.passes(min_r2)} for log in validations]
    passed = [entry["passed"] for entry in entries]
    every = None if None in passed else all(passed)
    logs = entries[0] if len(entries) == 1 else {"logs": entries, "passed": every}
    return {"model": model, "setup": calibration.setup, "parameters": judged_parameters(calibration), **logs}
