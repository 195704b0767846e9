"""Identifies mass, centre of mass and inertia of a payload at the tool from logs, with a calibrated model."""

from __future__ import annotations

from dataclasses import dataclass

from jointwise.cli.command import Common
from jointwise.cli.inputs import LogFormat
from jointwise.cli.output import Progress, check_files, note, read_model, show
from jointwise.settings import option

EXAMPLES = """\
examples:
  jointwise payload model.json loaded.csv
  jointwise payload model.json loaded.csv --json
  jointwise payload model.json a.csv b.csv --output loaded.json     the model with the payload, for predict and validate
  jointwise payload model.json pose1.csv pose2.csv pose3.csv pose4.csv     logs at rest: one pose each

Logs with motion must last at least 12 s together; a log in which no joint moves counts as one pose. The centre of mass
is in the tool frame, the inertia about the centre of mass. Exit code 1 if no payload explains a log, for example
because of another robot, wrong signs or wrong columns."""


@dataclass(frozen=True, kw_only=True)
class Settings(LogFormat, Common):
    """The files."""

    model: str = option(help="model file of 'jointwise calibrate'", argument=True)
    logs: tuple[str, ...] = option(help="a log with the payload and the measured output", metavar="LOG", argument=True)
    output: str | None = option(None, "write the model including the payload to this file", metavar="JSON")


def run(settings: Settings) -> int:
    """Print the payload."""
    from jointwise.result import save_model
    from jointwise.result.logs import read_log_for
    from jointwise.runtime import identify_payload

    check_files([settings.model, *settings.logs, settings.columns], {"--output": settings.output})
    with Progress(settings.silent) as progress:
        progress("reading")
        calibration = read_model(settings.model)
        logs = [read_log_for(calibration, path, **settings.reading(), warn=note) for path in settings.logs]
        found = identify_payload(calibration, logs, progress=progress)
    if settings.output:
        save_model(calibration.with_payload(found.payload), settings.output)
    show(settings, lambda: {"model": settings.model, **found.to_dict()}, found.summary)
    return 0
