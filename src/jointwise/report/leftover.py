"""What a model leaves unexplained, against what it may depend on: a pattern there is physics the model lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.report.evidence import Exhibit
from jointwise.result.calibration import Calibration
from jointwise.result.validation import MOVING_SPEED
from jointwise.spatial import Array

BINS = 48
"""Most steps over the range of a quantity."""
SLOW = ("temperature", "time")
"""Quantities that come by once: a step needs some blocks of its own, so there are fewer."""
BLOCK = 1.0
"""Seconds whose samples count as one observation."""
FEWEST = 8
"""Blocks that a step needs in a long log; fewer in a short one."""
NOTEWORTHY = 0.05
"""Part of the residual's variance from which a pattern is told in words."""
CAUSES = {
    "position": "kinematic error of the gear, backlash that depends on position, a payload or cable not in the model",
    "speed": "a friction curve with another shape",
    "temperature": "friction that changes as the joint warms up",
    "time": "warming up, wear, or a drift of the sensor",
}
"""Quantities, and what a pattern along each usually is."""


@dataclass(frozen=True)
class Pattern:
    """Mean residual of a joint over a quantity: `x`, `mean`, `half` a 95 % interval (steps,); its share.

    `share` is the part of the residual's variance that the pattern of every other block explains on the rest (below
    zero it explains nothing); over time, which does not come again, that of a straight line.
    """

    quantity: str
    unit: str
    x: Array
    mean: Array
    half: Array
    share: float


def patterns(calibration: Calibration, exhibit: Exhibit, joint: int) -> list[Pattern]:
    """Return the pattern of the residual of a joint over every quantity that the log has and that varies.

    While the joint moves: what holds it at rest is not told by the motion. Over temperature the residual is taken
    against the motion, as friction acts.
    """
    residual = np.asarray(exhibit.log.channel(calibration.output)[:, joint]) - exhibit.predicted[:, joint]
    block = ((exhibit.log.t - exhibit.log.t[0]) / BLOCK).astype(np.intp)
    speed = _speed_of(exhibit, joint)
    moving = np.abs(speed) > MOVING_SPEED
    if not moving.any():
        return []
    against = residual * np.sign(speed)
    found = (
        _pattern(name, unit, x[moving], (against if name == "temperature" else residual)[moving], block[moving])
        for name, unit, x in _quantities(calibration, exhibit, joint)
    )
    return [own for own in found if own is not None]


def _quantities(calibration: Calibration, exhibit: Exhibit, joint: int) -> Iterator[tuple[str, str, Array]]:
    log = exhibit.log
    length = "rad" if calibration.model.robot.joints[joint].kind == "revolute" else "m"
    q = np.asarray(log.q[:, joint])
    yield "position", length, q
    yield "speed", f"{length}/s", _speed_of(exhibit, joint)
    if log.temperature is not None:
        yield "temperature", "°C", np.asarray(log.temperature[:, joint])
    yield "time", "s", np.asarray(log.t - log.t[0])


def _speed_of(exhibit: Exhibit, joint: int) -> Array:
    log = exhibit.log
    return _speed(log.t, np.asarray(log.q[:, joint])) if log.qd is None else np.asarray(log.qd[:, joint])


def _speed(t: Array, q: Array) -> Array:
    """Return the speed over a tenth of a second; stamps need not be even."""
    step = max(int(0.05 / max(float(np.median(np.diff(t))), 1e-9)), 1)
    ahead, back = np.minimum(np.arange(len(t)) + step, len(t) - 1), np.maximum(np.arange(len(t)) - step, 0)
    return (q[ahead] - q[back]) / np.maximum(t[ahead] - t[back], 1e-9)


def _pattern(name: str, unit: str, x: Array, residual: Array, block: NDArray[np.intp]) -> Pattern | None:
    low, high = np.quantile(x, (0.002, 0.998))
    if not high > low:
        return None
    bins = int(np.clip(block[-1] // 4, 4, BINS)) if name in SLOW else BINS
    place = np.clip(((x - low) / (high - low) * bins).astype(np.intp), 0, bins - 1)
    count, mean, half = _means(place, residual, block, bins)
    known = count >= np.clip(int(block[-1]) // BINS, 1, FEWEST)
    centers = low + (np.arange(bins) + 0.5) * (high - low) / bins
    share = _drift(x, residual) if name == "time" else _share(place, residual, block)
    return Pattern(name, unit, centers[known], mean[known], half[known], share) if known.any() else None


def _means(place: NDArray[np.intp], residual: Array, block: NDArray[np.intp], bins: int) -> tuple[Array, Array, Array]:
    """Return blocks, mean residual and half its 95 % interval of every step; blocks are the observations."""
    cells, index = np.unique(place * (block[-1] + 1) + block, return_inverse=True)
    own = np.bincount(index, residual) / np.bincount(index)
    step = (cells // (block[-1] + 1)).astype(np.intp)
    count = np.bincount(step, minlength=bins).astype(float)
    total, square = (np.bincount(step, values, minlength=bins) for values in (own, own**2))
    safe = np.maximum(count, 1.0)
    mean = total / safe
    variance = np.maximum(square / safe - mean**2, 0.0) * safe / np.maximum(safe - 1.0, 1.0)
    variance = np.where(count > 1.0, variance, own.var())
    half: Array = 1.96 * np.sqrt(variance / safe)
    return count, mean, half


def _drift(t: Array, residual: Array) -> float:
    """Return the part of the variance that a straight line over time explains."""
    spread = float(np.std(t) * np.std(residual))
    return float(np.mean((t - t.mean()) * (residual - residual.mean())) / spread) ** 2 if spread > 0.0 else 0.0


def _share(place: NDArray[np.intp], residual: Array, block: NDArray[np.intp]) -> float:
    """Return ``1 - Σ (r - pattern)² / Σ r²`` on every other block, the pattern from the blocks between."""
    fit = (block // 2) % 2 == 0
    if not fit.any() or fit.all():
        return 0.0
    centred = residual - residual[fit].mean()
    count = np.bincount(place[fit], minlength=BINS)
    mean = np.bincount(place[fit], centred[fit], minlength=BINS) / np.maximum(count, 1)
    rest = centred[~fit]
    return 1.0 - float(np.sum((rest - mean[place[~fit]]) ** 2) / max(float(np.sum(rest**2)), 1e-300))
