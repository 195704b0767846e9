"""Writes an HTML report of a model on logs. Training logs are recognised by their samples; others are held-out data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jointwise.cli.command import Common
from jointwise.cli.inputs import LogFormat
from jointwise.cli.output import Progress, check_files, check_page, note, read_model, show
from jointwise.settings import option

EXAMPLES = """\
examples:
  jointwise report model.json training.csv other.csv --output report
  jointwise report model.json other.csv --output page.html --json"""


@dataclass(frozen=True, kw_only=True)
class Settings(LogFormat, Common):
    """The files."""

    model: str = option(help="model file of 'jointwise calibrate'", argument=True)
    logs: tuple[str, ...] = option(help="training and held-out logs", metavar="LOG", argument=True)
    output: str = option(help="page to write (.html), or a directory for it", metavar="DIR|HTML")


def run(settings: Settings) -> int:
    """Write the report and print its path."""
    from jointwise.result import validate
    from jointwise.result.logs import read_log_for

    files = [settings.model, *settings.logs, settings.columns]
    check_files(files, {}, check_page(settings.output, "report.html"))
    from jointwise.report import write_report

    with Progress(settings.silent) as progress:
        progress("reading")
        calibration = read_model(settings.model)
        logs = [read_log_for(calibration, path, **settings.reading(), warn=note) for path in settings.logs]
        results = [validate(calibration, log) for log in logs]
        seen = [each for each in results if each.is_training]
        other = [each for each in results if not each.is_training]
        progress("writing the report")
        path = write_report(calibration, Path(settings.output), seen, other, file=settings.model)
    partly = sum(not each.held_out for each in other)
    counts = {"training": len(seen), "partly_training": partly, "held_out": len(other) - partly}
    show(
        settings,
        lambda: {"file": str(path), "setup": calibration.setup, "logs": counts},
        lambda: f"{path}: {len(seen)} training, {partly} partly training, {len(other) - partly} held-out logs",
    )
    return 0
