"""A validation as text and as a data frame: errors of every joint, their means, and uses of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jointwise.errors import MissingExtraError
from jointwise.formatting import rounded, rounded_r2, table
from jointwise.result.metrics import IGNORED, JointMetrics, Validation
from jointwise.result.verdict import log_verdict

if TYPE_CHECKING:
    from pandas import DataFrame

USES = {
    "sensor": "sensor-based model (all channels that it uses)",
    "feed-forward": "feed-forward model (positions only)",
}
SUSPECT = "the training data make the set-up of the model suspect (see its report): at most fair for every use"
REST = "at rest: no R2 for a joint that does not move, where static friction can hold any torque up to break-away"


def validation_text(validation: Validation) -> str:
    """Return the errors on one log as a table: all samples, and those at which the joint moves."""
    judged = [(j, joint) for j, joint in enumerate(validation.joints, start=1) if not joint.ignored]
    rows = [_row(j, "at rest" if joint.still else "all", joint) for j, joint in judged]
    rows += [_row(j, "moving", joint) for j, joint in enumerate(validation.moving, start=1) if joint is not None]
    unit = validation.unit
    errors = tuple(f"{name} [{unit}]" for name in ("RMSE", "mean", "max", "offset"))
    used = [] if validation.use is None else [USES[validation.use]]
    errors_table = table(("j", "samples", *errors, "MSE/variance", "fit %", "R2"), rows)
    training = [] if validation.training_text is None else [validation.training_text]
    lines = [validation.file, *used, *training, errors_table, *_remarks(validation), *_means(validation)]
    return "\n".join([*lines, *_log_lines(validation)])


def _remarks(validation: Validation) -> list[str]:
    """Return what the table does not show: joints at rest, and joints without errors."""
    ignored = [str(j) for j, joint in enumerate(validation.joints, start=1) if joint.ignored]
    rest = [REST] if any(joint.still for joint in validation.joints) else []
    return [*rest, f"joint {', '.join(ignored)}: {IGNORED}"] if ignored else rest


def _means(validation: Validation) -> list[str]:
    """Return the mean errors over the joints, or why there are none."""
    if validation.reason is not None:
        return [validation.reason]
    joints = "joints that move" if any(joint.still for joint in validation.joints) else "joints"
    nmse, r2 = rounded(validation.mean_nmse), rounded_r2(validation.mean_r2)
    motion = rounded(validation.motion_nmse)
    return [
        f"from the first to the last movement, mean over the {joints}: MSE/variance {motion}",
        f"all samples, mean over the {joints}: MSE/variance {nmse}, R2 {r2}",
        *_feed_forward_lines(validation),
    ]


def _log_lines(validation: Validation) -> list[str]:
    """Return what contradicts that a log belongs to the model, and what the model can be used for by this log."""
    found = [f"log {check.status} ({check.check}): {check.line()}" for check in validation.plausibility]
    setup = [SUSPECT] if validation.setup == "suspect" else []
    return [*found, replace(log_verdict(validation), cause="").line(), *setup]


def _feed_forward_lines(validation: Validation) -> list[str]:
    """Return the error of the prediction from positions only, if the model also uses other channels of the log."""
    bare = validation.from_positions
    if bare is None or bare.reason is not None:
        return []
    parts = (
        ("first to last movement", bare.motion_nmse, validation.motion_nmse),
        ("all samples", bare.mean_nmse, validation.mean_nmse),
        ("moving samples", bare.moving_nmse, validation.moving_nmse),
    )
    known = [(name, rounded(alone), rounded(full)) for name, alone, full in parts]
    texts = [f"{name} {alone} instead of {full}" for name, alone, full in known if alone is not None]
    return [f"feed-forward (from positions only), MSE/variance: {'; '.join(texts)}"]


def _row(joint: int, which: str, metrics: JointMetrics) -> tuple[object, ...]:
    figures = (metrics.rmse, metrics.mean, metrics.max, metrics.offset, metrics.nmse, metrics.nrmse_percent)
    return (str(joint), which, *(rounded(value) for value in figures), rounded_r2(metrics.r2))


def validation_frame(validation: Validation) -> DataFrame:
    """Return the errors on one log as a pandas data frame.

    Args:
        validation: Errors of a model on a log.

    Returns:
        Index ``joint`` (from 1) and ``samples`` (`all` or `moving`). Columns ``rmse``, ``mean``, ``max`` and ``offset``
        of the error and ``variance`` of the measurement (unit of the output and its square), ``nmse``, ``r2`` (NaN
        where a joint does not move) and ``still``.

    Raises:
        MissingExtraError: pandas is not installed.

    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("pandas", "dataframe", "A data frame") from None
    names = ("rmse", "mean", "max", "offset", "variance", "nmse", "r2", "still")
    parts = {"all": validation.joints, "moving": validation.moving}
    rows = {
        (j, which): [getattr(errors, name) for name in names]
        for which, joints in parts.items()
        for j, errors in enumerate(joints, start=1)
        if errors is not None
    }
    index = pd.MultiIndex.from_tuples(rows, names=["joint", "samples"])
    frame = pd.DataFrame(list(rows.values()), index=index, columns=list(names))
    numbers = [name for name in names if name != "still"]
    return frame.astype(dict.fromkeys(numbers, float))
