"""Residuals: the mean residual over position, speed, temperature and time, and the deformation of the gears."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.data.statistics import MOVING_SPEED
from jointwise.description.robot import Joint
from jointwise.formatting import percent
from jointwise.report.data import EvaluatedLog, ReportData
from jointwise.report.figure import MEASURED, RESIDUAL, Figure, axis, band, line, packed, scatter_figure
from jointwise.report.page import Html, effort_unit, element, items, join, joint_title, length_unit, paragraph, tabs
from jointwise.result.calibration import Calibration
from jointwise.spatial import Array

BINS = 48
"""Largest number of bins over the range of a quantity."""
SLOW = ("temperature", "time")
"""Quantities that pass each value only once: every bin needs several blocks, so there are fewer bins."""
BLOCK = 1.0
"""Duration (s) whose samples count as one observation, because neighbouring residuals are correlated."""
LEAST_BLOCKS = 8
"""Blocks that a bin needs in a long log; fewer in a short one."""
NOTEWORTHY = 0.05
"""Share of the residual variance from which a trend is mentioned in the text."""
CAUSES = {
    "position": "kinematic error of the gear, position-dependent backlash, an undeclared payload or cable forces",
    "speed": "a friction curve of a different shape",
    "temperature": "friction that changes with temperature",
    "time": "warm-up, wear or sensor drift",
}
"""Quantities, and the usual causes of a trend along each."""

MOST_BINS, LEAST_IN_BIN, LEAST_BINS = 20, 3, 8
"""Bins of the runs test: at most 20, of at least 3 points each; fewer than 8 bins decide nothing."""
RUNS_THRESHOLD = 2.6
"""Standard deviations by which the number of runs must fall short of its expectation: 1 % two-sided."""
CLEAR_SHARE = 0.3
"""Share of the variance that a smooth curve must explain to be worth reporting."""


@dataclass(frozen=True)
class ResidualTrend:
    """Mean residual of a joint over a quantity, in bins.

    Attributes:
        quantity: Name of the quantity.
        unit: Its unit.
        x: Centres of the bins, (bins,), in `unit`.
        mean: Mean residuals, (bins,), in the unit of the output.
        half_width: Half-widths of their 95 % confidence intervals, (bins,), in the unit of the output.
        share: Share of the residual variance that the trend of every other block explains in the remaining blocks
            (negative if it explains nothing). Over time, whose values do not recur, it is that of a straight line.
    """

    quantity: str
    unit: str
    x: Array
    mean: Array
    half_width: Array
    share: float


def residual_trends(calibration: Calibration, item: EvaluatedLog, joint: int) -> list[ResidualTrend]:
    """Return the trend of the residual of a joint over every quantity that is logged and varies.

    Only samples at which the joint moves are used, because static friction at rest does not follow from the motion.
    Over temperature the residual is multiplied by the sign of the speed, as friction is.
    """
    residual = np.asarray(item.log.channel(calibration.output)[:, joint]) - item.predicted[:, joint]
    block = ((item.log.t - item.log.t[0]) / BLOCK).astype(np.intp)
    speed = _speed(item, joint)
    moving = np.abs(speed) > MOVING_SPEED
    if not moving.any():
        return []
    resisting = residual * np.sign(speed)
    trends = (
        _trend(name, unit, x[moving], (resisting if name == "temperature" else residual)[moving], block[moving])
        for name, unit, x in _quantities(calibration, item, joint, speed)
    )
    return [trend for trend in trends if trend is not None]


def smooth_share(x: Array, residual: Array) -> float | None:
    """Return the share (0 to 1) of the variance of a residual that is a smooth curve of x; None if it is noise.

    The residual is averaged over bins of equal counts. The signs of the averages of white noise alternate at random,
    those of a curve do not (Wald-Wolfowitz runs test). The share that noise contributes, ``bins / points``, is
    subtracted.

    Args:
        x: Quantity, (points,).
        residual: Residual, (points,).
    """
    count = min(MOST_BINS, len(x) // LEAST_IN_BIN)
    if count < LEAST_BINS or not float(np.var(residual)) > 0.0:
        return None
    parts = np.array_split(residual[np.argsort(x, kind="stable")], count)
    means = np.array([part.mean() for part in parts]) - residual.mean()
    noise = count / len(x)
    share = (float(np.var(means)) / float(np.var(residual)) - noise) / (1.0 - noise)
    return min(share, 1.0) if share > CLEAR_SHARE and _missing_runs(means) > RUNS_THRESHOLD else None


def _missing_runs(values: Array) -> float:
    """Return by how many standard deviations the number of runs of equal sign falls short of its expectation."""
    above = values > 0.0
    a, b = int(above.sum()), int((~above).sum())
    if a < 2 or b < 2:
        return 0.0
    runs, n = 1 + int((above[1:] != above[:-1]).sum()), a + b
    expected = 1.0 + 2.0 * a * b / n
    variance = (expected - 1.0) * (expected - 2.0) / (n - 1.0)
    return float((expected - runs) / np.sqrt(variance))


def _quantities(
    calibration: Calibration, item: EvaluatedLog, joint: int, speed: Array
) -> Iterator[tuple[str, str, Array]]:
    log, length = item.log, length_unit(calibration.model.robot.joints[joint])
    yield "position", length, np.asarray(log.q[:, joint])
    yield "speed", f"{length}/s", speed
    if log.temperature is not None:
        yield "temperature", "°C", np.asarray(log.temperature[:, joint])
    yield "time", "s", np.asarray(log.t - log.t[0])


def _speed(item: EvaluatedLog, joint: int) -> Array:
    """Return the measured speed, or the difference of positions over a tenth of a second; the clock may be uneven."""
    log = item.log
    if log.qd is not None:
        return np.asarray(log.qd[:, joint])
    t, q = log.t, np.asarray(log.q[:, joint])
    step = max(int(0.05 / max(log.clock.median_step, 1e-9)), 1)
    ahead, back = np.minimum(np.arange(len(t)) + step, len(t) - 1), np.maximum(np.arange(len(t)) - step, 0)
    return (q[ahead] - q[back]) / np.maximum(t[ahead] - t[back], 1e-9)


def _trend(name: str, unit: str, x: Array, residual: Array, block: NDArray[np.intp]) -> ResidualTrend | None:
    low, high = np.quantile(x, (0.002, 0.998))
    if not high > low:
        return None
    bins = int(np.clip(block[-1] // 4, 4, BINS)) if name in SLOW else BINS
    index = np.clip(((x - low) / (high - low) * bins).astype(np.intp), 0, bins - 1)
    count, mean, half_width = _bin_means(index, residual, block, bins)
    known = count >= np.clip(int(block[-1]) // BINS, 1, LEAST_BLOCKS)
    if not known.any():
        return None
    centers = low + (np.arange(bins) + 0.5) * (high - low) / bins
    share = _linear_share(x, residual) if name == "time" else _held_out_share(index, residual, block)
    return ResidualTrend(name, unit, centers[known], mean[known], half_width[known], share)


def _bin_means(
    index: NDArray[np.intp], residual: Array, block: NDArray[np.intp], bins: int
) -> tuple[Array, Array, Array]:
    """Return number of blocks, mean and half-width of its 95 % interval of every bin; blocks are the observations."""
    cells, inverse = np.unique(index * (block[-1] + 1) + block, return_inverse=True)
    values = np.bincount(inverse, residual) / np.bincount(inverse)
    bin_of = (cells // (block[-1] + 1)).astype(np.intp)
    count = np.bincount(bin_of, minlength=bins).astype(float)
    total, square = (np.bincount(bin_of, weights, minlength=bins) for weights in (values, values**2))
    safe = np.maximum(count, 1.0)
    mean = total / safe
    variance = np.maximum(square / safe - mean**2, 0.0) * safe / np.maximum(safe - 1.0, 1.0)
    variance = np.where(count > 1.0, variance, values.var())
    half_width: Array = 1.96 * np.sqrt(variance / safe)
    return count, mean, half_width


def _linear_share(t: Array, residual: Array) -> float:
    """Return the share of the variance that a straight line over time explains."""
    spread = float(np.std(t) * np.std(residual))
    return float(np.mean((t - t.mean()) * (residual - residual.mean())) / spread) ** 2 if spread > 0.0 else 0.0


def _held_out_share(index: NDArray[np.intp], residual: Array, block: NDArray[np.intp]) -> float:
    """Return ``1 - Σ (r - trend)² / Σ r²`` on every other block, with the trend of the remaining blocks."""
    fit = (block // 2) % 2 == 0
    if not fit.any() or fit.all():
        return 0.0
    centred = residual - residual[fit].mean()
    count = np.bincount(index[fit], minlength=BINS)
    mean = np.bincount(index[fit], centred[fit], minlength=BINS) / np.maximum(count, 1)
    rest = centred[~fit]
    return 1.0 - float(np.sum((rest - mean[index[~fit]]) ** 2) / max(float(np.sum(rest**2)), 1e-300))


DEFORMATION_POINTS = 800
"""Largest number of points of a deformation plot."""


def residuals_section(data: ReportData) -> Html:
    """Return a list of significant trends, and one panel of plots per joint."""
    item = next(iter(data.held_out or data.logs), None)
    if item is None:
        return paragraph("No log is available.")
    trends = [residual_trends(data.calibration, item, j) for j in range(data.robot.dof)]
    panels = [
        (joint_title(data.robot, j), join([_figures(data, found, j), _deformation(data, item, j)]))
        for j, found in enumerate(trends)
    ]
    return join([_explanation(item), _significant(data, trends), tabs("Joint", panels)])


def _explanation(item: EvaluatedLog) -> Html:
    return paragraph(
        f"Mean residual (measured minus predicted) on {item.name} ({item.label}) while the joint moves, with its 95 % "
        "confidence interval. A flat curve indicates noise, a significant trend an effect that the model does not "
        "describe.",
        class_="hint",
    )


def _significant(data: ReportData, trends: list[list[ResidualTrend]]) -> Html:
    lines = [
        f"{joint_title(data.robot, j)}: {percent(trend.share, 0)} of the residual variance depends on "
        f"{trend.quantity}. Possible causes: {CAUSES[trend.quantity]}."
        for j, found in enumerate(trends)
        for trend in found
        if trend.share >= NOTEWORTHY
    ]
    return items(lines) if lines else paragraph("The residuals show no significant trend.")


def _figures(data: ReportData, trends: list[ResidualTrend], j: int) -> Html:
    unit = data.calibration.unit
    figures = (trend_figure(trend, unit, j).html(_caption(trend)) for trend in trends)
    return element("div", *figures, class_="pair")


def _caption(trend: ResidualTrend) -> str:
    sign = ", times the sign of the speed" if trend.quantity == "temperature" else ""
    return f"Residual over {trend.quantity}{sign}: {percent(max(trend.share, 0.0), 0)} of its variance"


def trend_figure(trend: ResidualTrend, unit: str, j: int) -> Figure:
    """Return the mean residual over a quantity with its confidence band."""
    low, high = trend.mean - trend.half_width, trend.mean + trend.half_width
    traces = [
        band("95 % interval", trend.x, low, high, RESIDUAL, showlegend=False),
        line("mean residual", packed(trend.x), packed(trend.mean), RESIDUAL, 1.8, showlegend=False),
    ]
    layout = {
        "xaxis": axis(f"{trend.quantity} [{trend.unit}]"),
        "yaxis": axis(f"residual [{unit}]", zeroline=True),
        "hovermode": "closest",
    }
    return Figure(traces, layout, f"Joint {j + 1}: mean residual over {trend.quantity}.", 300)


def _deformation(data: ReportData, item: EvaluatedLog, j: int) -> Html:
    """Return θ - q over torque (slope: compliance) and over position (kinematic error), if θ was logged."""
    log = item.log
    if log.theta is None:
        return Html("")
    rows = np.linspace(0, log.samples - 1, min(DEFORMATION_POINTS, log.samples)).astype(np.intp)
    joint, q = data.robot.joints[j], np.asarray(log.q[rows, j])
    torque = item.predicted[rows, j] * data.calibration.gains[j]
    deformation = 1e3 * (np.asarray(log.theta[rows, j]) - q)
    over_torque = _scatter(torque, deformation, f"predicted torque [{effort_unit(joint)}]", joint, j)
    over_position = _scatter(q, deformation, f"position [{length_unit(joint)}]", joint, j)
    return element(
        "div",
        over_torque.html("Deformation of the gear over torque; the slope is its compliance"),
        over_position.html("Deformation of the gear over position; shows its kinematic error where the load is small"),
        class_="pair",
    )


def _scatter(x: Array, deformation: Array, title: str, joint: Joint, j: int) -> Figure:
    titles, marker = (title, f"θ - q [m{length_unit(joint)}]"), {"size": 3.5, "color": MEASURED, "opacity": 0.6}
    return scatter_figure(x, deformation, titles, f"Joint {j + 1}: deformation of the gear over {title}.", marker, 320)
