"""Exports a model for use elsewhere, with a report of what the target cannot express."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from jointwise.call_settings import DirectorySettings
from jointwise.cli.command import Common, UsageError
from jointwise.cli.inputs import Carried, LogFormat
from jointwise.cli.output import Progress, note, read_model, show
from jointwise.settings import Hertz, option

EXAMPLES = """\
examples:
  jointwise export model.json --to c --output ur10e_c --rate 1000
  jointwise export model.json --to fmu --output fmu --log other.csv
  jointwise export model.json --to urdf --urdf ur10e.urdf --output urdf
  jointwise export model.json --to ur --reference delivered.json --output script
  jointwise export model.json --to all --output exports --payload 2.5,0,0,0.08

targets: c (C99 library), fmu (FMI 2.0 and 3.0, inverse and forward), urdf, mjcf (MuJoCo), ros2 (feed-forward package),
ur (URScript: payload and friction scales), all (each into a directory of its name).

Every export is compared with the model before it is written; one that does not agree is an error. --log measures what
is lost on your data. urdf, mjcf and ros2 need physically consistent bodies (calibrate without --no-physical)."""


@dataclass(frozen=True, kw_only=True)
class Settings(DirectorySettings, Carried, LogFormat, Common):
    """The model, the target and its options."""

    model: str = option(help="model file of 'jointwise calibrate'", argument=True)
    to: str = option(help="c, fmu, urdf, mjcf, ros2, ur or all", metavar="TARGET")
    rate: Hertz | None = option(None, "sampling rate", metavar="HZ", standard="that of the training logs")
    log: tuple[str, ...] = option(
        (), "log on which the loss of accuracy is measured; can be repeated", metavar="LOG", many="repeat"
    )
    mounting: str | None = option(None, "table, ceiling, wall or tilt:AXIS:ANGLE", metavar="HOW")
    urdf: str | None = option(None, "for urdf: file in which to replace inertials and dynamics", metavar="FILE")
    tip: str | None = option(None, "for --urdf: last link of the chain, where the file branches", metavar="LINK")
    use: Literal["feed-forward", "sensor"] | None = option(
        None, "for c: friction estimate to export", standard="feed-forward"
    )
    reference: str | None = option(
        None, "for ur: model of an arm as delivered, which the friction model of the controller fits", metavar="MODEL"
    )


def run(settings: Settings) -> int:
    """Write the export and print its report."""
    from jointwise.export import unavailable, write, write_all
    from jointwise.result.logs import read_log_for
    from jointwise.runtime import RobotModel

    with Progress(settings.silent) as progress:
        progress("reading")
        model = RobotModel(read_model(settings.model))
        if settings.mounting is not None:
            model = model.with_mounting(settings.mounting)
        if (payload := settings.load()) is not None:
            model = model.with_payload(payload.mass, payload.center_of_mass)
        logs = [read_log_for(model, path, **settings.reading(), warn=note) for path in settings.log]
        common: dict[str, Any] = {"rate": settings.rate, "logs": logs, "force": settings.force}
        progress(f"exporting to {settings.to}")
        if settings.to == "all":
            exports = write_all(model, settings.output, **common)
            for name, reason in unavailable(model).items():
                note(f"without {name}: {reason}.")
        else:
            exports = [write(model, settings.to, settings.output, **common, **_options(settings))]
    titles = (f"{export.directory}: {export.target}, {len(export.files)} files" for export in exports)
    show(
        settings,
        lambda: [export.to_dict() for export in exports],
        lambda: "\n".join(f"{title}\n{export.summary()}\n" for title, export in zip(titles, exports, strict=True)),
    )
    return 0


def _options(settings: Settings) -> dict[str, Any]:
    """Return the options of the target; those of another target are wrong usage."""
    from jointwise.runtime import RobotModel

    stated = {name: getattr(settings, name) for name in ("urdf", "tip", "reference", "use")}
    options = {name: value for name, value in stated.items() if value is not None}
    allowed = {"c": ("use",), "urdf": ("urdf", "tip"), "ur": ("reference",)}.get(settings.to, ())
    for name in options:
        if name not in allowed:
            raise UsageError(f"--{name} is not for --to {settings.to}")
    if "reference" in options:
        options["reference"] = RobotModel(read_model(options["reference"]))
    return options
