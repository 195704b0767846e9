"""Exports a model for use elsewhere, with a report of what the target cannot express."""

from __future__ import annotations

import argparse
from typing import Any

from jointwise.cli.arguments import add_columns, add_json, add_payload, frequency, payload_of
from jointwise.cli.output import Progress, as_json, note, read_model

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the target and its options."""
    parser.add_argument("model", metavar="MODEL", help="model file of 'jointwise calibrate'")
    parser.add_argument("--to", required=True, metavar="TARGET", help="c, fmu, urdf, mjcf, ros2, ur or all")
    parser.add_argument("--output", required=True, metavar="DIR", help="directory for the files, new or empty")
    parser.add_argument(
        "--rate", type=frequency, metavar="HZ", help="sampling rate (default: that of the training logs)"
    )
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="LOG",
        help="log on which the loss of accuracy is measured; can be repeated",
    )
    add_payload(parser)
    parser.add_argument("--mounting", metavar="HOW", help="table, ceiling, wall or tilt:AXIS:ANGLE")
    parser.add_argument("--urdf", metavar="FILE", help="for urdf: file in which to replace inertials and dynamics")
    parser.add_argument("--tip", metavar="LINK", help="for --urdf: last link of the chain, where the file branches")
    parser.add_argument(
        "--use", choices=("feed-forward", "sensor"), help="for c: friction estimate to export (default: feed-forward)"
    )
    parser.add_argument(
        "--reference",
        metavar="MODEL",
        help="for ur: model of an arm as delivered, which the friction model of the controller fits",
    )
    add_columns(parser)
    parser.add_argument("--force", action="store_true", help="overwrite files in a directory that is not empty")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the export and print its report."""
    from jointwise.export import write, write_all
    from jointwise.result.logs import read_log_for
    from jointwise.runtime import RobotModel

    with Progress(args.json) as progress:
        progress("reading")
        model = RobotModel(read_model(args.model))
        if args.mounting is not None:
            model = model.with_mounting(args.mounting)
        if (payload := payload_of(args.payload)) is not None:
            model = model.with_payload(payload.mass, payload.center_of_mass)
        logs = [read_log_for(model, path, columns=args.columns, warn=note) for path in args.log]
        common = {"rate": args.rate, "logs": logs, "force": args.force}
        progress(f"exporting to {args.to}")
        if args.to == "all":
            exports = write_all(model, args.output, **common)
        else:
            exports = [write(model, args.to, args.output, **common, **_options(args))]
    if args.json:
        print(as_json([export.to_dict() for export in exports]))
        return 0
    for export in exports:
        print(f"{export.directory}: {export.target}, {len(export.files)} files\n{export.summary()}\n")
    return 0


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the target; those of another target are wrong usage."""
    from jointwise.cli.arguments import UsageError
    from jointwise.runtime import RobotModel

    options = {
        name: getattr(args, name) for name in ("urdf", "tip", "reference", "use") if getattr(args, name) is not None
    }
    allowed = {"c": ("use",), "urdf": ("urdf", "tip"), "ur": ("reference",)}.get(args.to, ())
    for name in options:
        if name not in allowed:
            raise UsageError(f"--{name} is not for --to {args.to}")
    if "reference" in options:
        options["reference"] = RobotModel(read_model(args.reference))
    return options
