"""What there is to look at: the rise of friction after a reversal, a loop, and the error against the elements."""

from __future__ import annotations

import numpy as np

from jointwise.joint.hysteresis.laws import Motion
from jointwise.joint.hysteresis.loops import Loops
from jointwise.joint.hysteresis.methods import Tried, unknowns
from jointwise.joint.hysteresis.shape import Shape
from jointwise.joint.hysteresis.uncertainty import gram_jackknife
from jointwise.joint.part import Curve, plain
from jointwise.spatial import Array

BINS = 60


def curves_of(loops: Loops, tried: Tried, errors: Array | None, spread: float) -> tuple[Curve, ...]:
    """Return the curves of a fit; `errors` (elements, blocks) of the bank, `spread` the variance of friction (Nm²)."""
    found = [_loop(loops, tried)]
    if tried.fit is not None:
        found.insert(0, _rise(loops, tried))
    if errors is not None:
        found.append(_against_elements(errors, spread))
    return tuple(found)


def _rise(loops: Loops, tried: Tried) -> Curve:
    """Return dry friction against the way since a reversal from full slip, both directions folded onto one."""
    way, friction = _ways(loops, tried)
    edges = np.geomspace(max(loops.smallest, 1e-6), 4.0 * loops.largest, BINS + 1)
    place = np.digitize(way, edges) - 1
    filled = [k for k in range(BINS) if (place == k).sum() >= 3]
    x = np.array([way[place == k].mean() for k in filled])
    y = np.array([friction[place == k].mean() for k in filled])
    line, band = _rise_line(tried, edges)
    return Curve(
        title="Dry friction after a reversal",
        x_label="way since the reversal [mrad]",
        y_label="friction [Nm]",
        x=plain(1e3 * x),
        y=plain(y),
        line_x=plain(1e3 * edges),
        line_y=plain(line),
        low=plain(line - band),
        high=plain(line + band),
        residual=plain(y - np.interp(x, edges, line)),
        scale="log",
    )


def _rise_line(tried: Tried, way: Array) -> tuple[Array, Array]:
    """Return ``Σ W_i clip(s/D_i - 1, -1, 1)`` and half its 95 % band, (points,)."""
    covariance, factor = gram_jackknife(tried.grams)
    law, fit, places = tried.law, tried.fit, unknowns(tried)
    assert fit is not None
    g = np.clip(way[:, None] / law.limits - 1.0, -1.0, 1.0)
    slopes = np.zeros((len(way), len(covariance)))
    slopes[:, places["forces"]] = fit.shape.joined(g)
    by_limit = np.where(np.abs(g) < 1.0, -way[:, None] / law.limits, 0.0) * law.forces
    if "limits" in places:
        slopes[:, places["limits"]] = by_limit
    if "scale" in places:
        slopes[:, places["scale"]] = by_limit.sum(axis=1, keepdims=True)
    variance = np.einsum("ki,ij,kj->k", slopes, covariance, slopes)
    return g @ law.forces, factor * np.sqrt(np.maximum(variance, 0.0))


def _ways(loops: Loops, tried: Tried) -> tuple[Array, Array]:
    """Return for every sample the way since the last reversal and friction along it, without level and nuisance."""
    law = tried.law
    shape = Shape(law.limits, growth=law.growth, extra=law.extra, speed=law.speed, power=law.power)
    dry = (loops.friction - law.viscous * loops.speed - law.offset) / shape.level(loops.load, loops.speed)
    ways, frictions = [], []
    start: int | None = None
    for piece in loops.walk():
        start = piece.start if piece.start in loops.starts else (None if piece.fresh else start)
        if piece.block < 0 or start is None:
            continue
        way = loops.x[piece.rows] - loops.x[start]
        ways.append(np.abs(way))
        frictions.append(np.sign(way) * dry[piece.rows])
    return np.concatenate(ways), np.concatenate(frictions)


def _loop(loops: Loops, tried: Tried) -> Curve:
    """Return friction against position over the last two swings, measured and modelled."""
    starts = sorted(loops.starts)
    rows = slice(starts[-3] if len(starts) > 2 else starts[0], starts[-1] if len(starts) > 1 else len(loops.x))
    motion = Motion(loops.x, loops.speed, loops.load, loops.period)
    model = tried.law.torque(motion)[rows]
    x = 1e3 * (loops.x[rows] - loops.x[rows].mean())
    return Curve(
        title="Friction over two swings",
        x_label="position from the middle of the swing [mrad]",
        y_label="friction [Nm]",
        x=plain(x),
        y=plain(loops.friction[rows]),
        line_x=plain(x),
        line_y=plain(model),
        residual=plain(loops.friction[rows] - model),
        kind="line",
    )


def _against_elements(errors: Array, spread: float) -> Curve:
    quality = 100.0 * (1.0 - np.sqrt(errors.mean(axis=1) / spread))
    count = np.arange(1.0, len(errors) + 1.0)
    return Curve(
        title="Quality on data held out against the number of elements",
        x_label="elements",
        y_label="fit [%]",
        x=plain(count),
        y=plain(quality),
    )
