"""Plots as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.errors import MissingExtraError, OutputError
from jointwise.report.figure import MEASURED, PREDICTED, downsample
from jointwise.report.labels import joint_title
from jointwise.result.calibration import Calibration
from jointwise.result.metrics import metrics
from jointwise.spatial import Array

POINTS = 8000
"""Largest number of points of a curve."""


def plot_prediction(calibration: Calibration, log: Log, path: str | Path) -> Path:
    """Write a PNG of the measured and predicted output with one row per joint; no window opens."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a plot") from None
    measured, predicted = np.asarray(log.channel(calibration.output)), calibration.predict(log)
    figure = Figure(figsize=(11.0, 1.2 + 1.7 * log.joints), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(log.joints, 1, sharex=True, squeeze=False)[:, 0]
    for j, axes in enumerate(rows):
        _draw(axes, log.t - log.t[0], measured[:, j], predicted[:, j])
        axes.set_title(joint_title(calibration.model.robot, j), loc="left", fontsize=9)
        axes.set_ylabel(calibration.unit)
    rows[0].legend(loc="upper right", ncols=2, fontsize=8, frameon=False)
    rows[-1].set_xlabel("time [s]")
    return _saved(figure, Path(path))


def _draw(axes: Any, t: Array, measured: Array, predicted: Array) -> None:
    rows = downsample(measured, predicted, most=POINTS)
    axes.plot(t[rows], measured[rows], color=MEASURED, linewidth=0.8, label="measured")
    axes.plot(t[rows], predicted[rows], color=PREDICTED, linewidth=0.9, label="predicted")
    axes.grid(color="#e3e8ef", linewidth=0.6)
    axes.margins(x=0.0)
    r2 = metrics(measured, predicted).r2
    if r2 is not None:
        axes.set_title(f"R² {r2:.4f}", loc="right", fontsize=9)


def _saved(figure: Any, path: Path) -> Path:
    """Write the figure to a temporary file and rename it, so that no partial file remains."""
    part = path.with_name(f".{path.name}.part")
    try:
        figure.savefig(part, format="png", dpi=110)
        part.replace(path)
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written ({problem.strerror}).") from None
    finally:
        part.unlink(missing_ok=True)
    return path
