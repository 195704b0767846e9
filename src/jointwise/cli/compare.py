"""Ranks models on one log by the mean of MSE / variance over the joints (of the RMSE for a log at rest)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointwise.cli.command import Common, UsageError
from jointwise.cli.inputs import LogFormat
from jointwise.cli.output import Progress, note, read_model, show
from jointwise.formatting import table
from jointwise.settings import option

if TYPE_CHECKING:
    from jointwise.result.validation import Ranked

EXAMPLES = """\
examples:
  jointwise compare plain.json rich.json other.csv
  jointwise compare *.json other.csv --json"""


@dataclass(frozen=True, kw_only=True)
class Settings(LogFormat, Common):
    """The files: models first, the log last."""

    files: tuple[str, ...] = option(
        help="two models or more, then the log", metavar="MODEL MODEL ... LOG", argument=True
    )


def run(settings: Settings) -> int:
    """Print the ranking."""
    from jointwise.result.logs import check_log_for, read_log_for
    from jointwise.result.validation import compare

    *paths, last = settings.files
    if len(paths) < 2:
        raise UsageError("at least two models and a log are required")
    if len(set(paths)) < len(paths):
        raise UsageError("a model is named twice")
    with Progress(settings.silent) as progress:
        progress("comparing")
        models = {path: read_model(path) for path in paths}
        first, *others = models.values()
        log = read_log_for(first, last, **settings.reading(), warn=note)
        for model in others:
            check_log_for(model, log, note)
        ranked = compare(models, log)
    for entry in ranked:
        if entry.validation.training_text is not None:
            note(f"{entry.name}: {entry.validation.training_text}.")
    show(
        settings,
        lambda: {"file": last, "ranking": [entry.to_dict() for entry in ranked]},
        lambda: f"{last}\n{_table(ranked)}",
    )
    return 0


def _table(ranked: Sequence[Ranked]) -> str:
    """Return the ranking as a table."""
    from jointwise.formatting import rounded, rounded_r2

    rows = [
        (
            str(rank),
            entry.name,
            rounded(entry.validation.mean_nmse),
            rounded_r2(entry.validation.mean_r2),
            rounded(entry.validation.mean_rmse),
            entry.parameters,
            "held out" if entry.validation.held_out else "training",
            entry.validation.setup,
            entry.structure,
        )
        for rank, entry in enumerate(ranked, start=1)
    ]
    best = ranked[0].validation
    header = ("", "model", "MSE/variance", "R2", f"RMSE [{best.unit}]", "parameters", "data", "set-up", "joint model")
    reason = [] if best.reason is None else [f"{best.reason}; ranked by the RMSE, mean over the joints"]
    return "\n".join([table(header, rows), *reason])
