"""Ranks models on one log, from best to worst: by the mean over the joints of MSE / variance (of RMSE at rest)."""

from __future__ import annotations

import argparse

from jointwise.cli.files import log_for, note
from jointwise.cli.progress import Progress
from jointwise.cli.text import as_json, table
from jointwise.cli.usage import UsageError, add_columns, add_json

INTERMIXED = True
EXAMPLES = """\
examples:
  jointwise compare plain.json rich.json other.csv
  jointwise compare *.json other.csv --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the files: models first, the log last."""
    parser.add_argument("files", nargs="+", metavar="MODEL MODEL ... LOG", help="two models or more, then the log")
    add_columns(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the ranking."""
    from jointwise.result import load_calibration
    from jointwise.result.compare import compare
    from jointwise.result.digits import rounded, rounded_r2

    *paths, last = args.files
    if len(paths) < 2:
        raise UsageError("at least two models and a log are required")
    if len(set(paths)) < len(paths):
        raise UsageError("a model is named twice")
    with Progress(args.json) as progress:
        progress("comparing")
        models = {path: load_calibration(path) for path in paths}
        logs = [log_for(own, last, args.columns, measured=True) for own in models.values()]
        ranked = compare(models, logs[0])
    for own in ranked:
        if own.seen:
            note(f"{own.name} was trained on {last}: its figures are no proof.")
    if args.json:
        print(as_json({"file": last, "ranking": [own.to_dict() for own in ranked]}))
        return 0
    rows = [
        (
            str(place),
            own.name,
            rounded(own.validation.mean_nmse),
            rounded_r2(own.validation.mean_r2),
            rounded(own.validation.mean_rmse),
            own.parameters,
            own.structure,
        )
        for place, own in enumerate(ranked, start=1)
    ]
    header = ("", "model", "MSE/variance", "R2", f"RMSE [{ranked[0].validation.unit}]", "parameters", "joint model")
    print(f"{last}\n{table(header, rows)}")
    if ranked[0].validation.reason is not None:
        print(f"{ranked[0].validation.reason}; ranked by the RMSE, mean over the joints")
    return 0
