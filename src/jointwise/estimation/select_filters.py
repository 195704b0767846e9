"""Selection of the filters, lag and position cut-off, by cross-validation inside the training logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from jointwise.estimation.cross_validation import WORTHWHILE, Choice, Score, cross_validate
from jointwise.estimation.least_squares import QuickProblem, quick_weighted_fit
from jointwise.estimation.regression import LoadOf, Regression
from jointwise.estimation.structure import Structure, element_shapes
from jointwise.estimation.uncertainty import WITHIN_CELL, Alternatives
from jointwise.model.terms import Coulomb, Hysteresis, Term
from jointwise.spatial import Array

CUTOFFS = (2.5, 4.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0, 30.0, 40.0, 60.0)
"""Position cut-offs, Hz."""
FIRST_CUTOFF = 8.0
"""Position cut-off (Hz) at which the search begins: the middle of what arms need."""
MAX_CUTOFF = 0.4
"""Largest position cut-off as a part of the sampling rate."""
SHARP_CUTOFF = 20.0
"""Position cut-off (Hz) under which lags are compared: a smoother motion starts before the real one."""
LAGS = tuple(np.arange(-16, 17, 4) * 1e-3)
"""Lags of the output, s."""
LAG_ERROR = 2e-3
"""Greatest error of a lag, s: half a step of the grid that it is selected from."""
LAG_CUTOFF = 10.0
"""Parallel filter (Hz) under which lags are compared: a spline through noise is quieter between the samples than on
them, so raw errors would favour lags of half a sample."""
ROTOR_CUTOFF = 40.0
"""Position cut-off (Hz) under which lags at the rotors are compared, and the highest one there: a low one leaves little
of the accelerations that differ between rotor and link, a higher one mostly noise, with another lag."""
NEAR_BEST = 0.5 * WORTHWHILE
"""Part of the held-out error by which neighbours on a grid must differ for the search to continue."""
PROBE = Structure("hysteresis", limits=tuple(np.geomspace(4e-6, 2e-2, 6).tolist()), relaxation=3.0)
"""Structure under which filters and gains are found: flexible, and quick to fit."""


def probe_structure(regression: Regression) -> Structure:
    """Return the structure under which filters and gains are found.

    With speed ripple where the logs have a speed, and with friction and inertia of the rotors on their side.
    """
    has_ripple = regression.has_speed and regression.filters.parallel_cutoff is None
    probe = replace(PROBE, ripple=regression.period if has_ripple else 0.0, extra=regression.extra)
    return replace(probe, rotor_side=True, drivers=("rotor",)) if regression.bodies.rotor_side else probe


def _probe_problem(regression: Regression, gains: Array) -> QuickProblem:
    """Return the regression of the probe structure, in Nm."""
    terms = probe_structure(regression).terms()
    return regression.quick_problem([terms] * regression.bodies.robot.dof).scaled(gains)


def select_filters(
    regression: Regression, gains: Array, lag: float | None, cutoff: float | None
) -> tuple[Regression, list[Choice]]:
    """Return the regression with the lag (s) and position cut-off (Hz) that predict best; given values are kept.

    Of long logs an excerpt is enough.
    """
    choices: list[Choice] = []
    sample = regression.excerpt().filtered(position_cutoff=cutoff or SHARP_CUTOFF, lag=lag or 0.0)
    if lag is None:
        sample, choice = _select_lag(sample, gains)
        choices.append(choice)
    if cutoff is None:
        sample, choice = _select_cutoff(sample.filtered(position_cutoff=FIRST_CUTOFF), gains)
        choices.append(choice)
    return replace(regression, filters=sample.filters), choices


def alternative_filters(
    regression: Regression, gains: Array, structure: Structure, lag: bool, cutoff: bool
) -> list[Alternatives]:
    """Return the change of the base parameters under other filters, of those that were selected.

    Args:
        regression: The training logs under the selected filters; of long ones an excerpt is used.
        gains: Nm per unit of output, shape (joints,).
        structure: The joint model.
        lag: Whether the lag was selected.
        cutoff: Whether the position cut-off was selected.

    """
    regression, allowed = regression.excerpt(), _allowed_cutoffs(regression)
    now, set_lag = regression.filters.position_cutoff, regression.filters.lag
    lags = (set_lag, set_lag - LAG_ERROR, set_lag + LAG_ERROR)
    selected, before, after = _lagged_fits(regression, gains, structure, lags)
    found = []
    if lag:
        cell = np.full(2, 0.5 * WITHIN_CELL)
        found.append(
            Alternatives("lag of the output", np.stack([before - selected, after - selected]), cell, "filters")
        )
    near = [*[f for f in allowed if f < now][-1:], *[f for f in allowed if f > now][:1]]
    if cutoff and near:
        filtered = (regression.filtered(position_cutoff=f) for f in near)
        steps = np.stack([_lagged_fits(other, gains, structure, lags[:1])[0] - selected for other in filtered])
        cell = np.full(len(near), WITHIN_CELL / 4.0 / len(near))  # half a cell is half the distance to a neighbour
        found.append(Alternatives("position cut-off", steps, cell, "filters"))
    return found


def _lagged_fits(regression: Regression, gains: Array, structure: Structure, lags: Sequence[float]) -> list[Array]:
    """Return the base parameters without load dependence for some lags (s) of the output."""
    joints, base = range(regression.bodies.robot.dof), regression.bodies.base.count
    problems = regression.lagged_problems([structure.without_load().terms(joint=j) for j in joints], lags)
    return [quick_weighted_fit(problem.scaled(gains))[0][:base] for problem in problems]


def _allowed_cutoffs(regression: Regression) -> list[float]:
    highest = ROTOR_CUTOFF if regression.bodies.rotor_side else np.inf
    return [cutoff for cutoff in CUTOFFS if cutoff < MAX_CUTOFF / regression.period and cutoff <= highest]


def _select_lag(regression: Regression, gains: Array) -> tuple[Regression, Choice]:
    """Return the regression with the best lag, 0 unless another one is clearly better.

    Between the grid points by a parabola through the three lowest.
    """
    none = len(LAGS) // 2
    terms, load_of = _lag_terms(regression, gains)
    cutoff = min(LAG_CUTOFF, regression.filters.parallel_cutoff or LAG_CUTOFF)
    smooth = regression.filtered(parallel_cutoff=cutoff)
    problems = [problem.scaled(gains) for problem in smooth.lagged_problems(terms, LAGS, load_of)]
    sigma = quick_weighted_fit(problems[none])[1]
    tried: dict[int, Score] = {}

    def score(k: int) -> float:
        tried[k] = cross_validate(problems[k], sigma)
        return tried[k].mean

    best, scores = descend(len(LAGS), none, score)
    lag = float(LAGS[best]) + _between(scores, best) if tried[best].beats(tried[none]) else 0.0
    alternatives = tuple((f"{LAGS[k] * 1e3:g} ms", scores[k]) for k in sorted(scores))
    return regression.filtered(lag=lag), Choice("lag of the output", alternatives, f"{lag * 1e3:.1f} ms")


def _between(scores: dict[int, float], best: int) -> float:
    """Return the distance (s) from the best lag of the grid to the vertex of the parabola through its neighbours."""
    if best - 1 not in scores or best + 1 not in scores or LAGS[best] == 0.0:
        return 0.0
    return _vertex(scores[best - 1], scores[best], scores[best + 1], float(LAGS[1] - LAGS[0]))


def refine_lag(regression: Regression, gains: Array) -> tuple[Regression, Choice]:
    """Return the regression with its lag between the points of the grid, where rotors are measured.

    Friction and inertia at the rotors have no delay of an elastic gear, so that the lag is known to a part of a sample:
    the vertex of the parabola through the held-out errors of three lags, if it is lower by `NEAR_BEST`, at most
    `LAG_ERROR` away. The lags differ by whole samples, between which noise is alike. An error of the lag would be taken
    for inertia that moves from rotors to links: half a millisecond is 3 % of a rotor inertia.
    """
    cutoff, now = min(ROTOR_CUTOFF, 0.9 * MAX_CUTOFF / regression.period), regression.filters.lag
    sample = regression.excerpt().filtered(position_cutoff=cutoff)
    step = max(round(LAG_ERROR / regression.period), 1) * regression.period
    lags = (now - step, now, now + step)
    terms = [probe_structure(sample).terms()] * regression.bodies.robot.dof
    problems = [problem.scaled(gains) for problem in sample.lagged_problems(terms, lags)]
    sigma = quick_weighted_fit(problems[1])[1]
    left, middle, right = scores = [cross_validate(problem, sigma).mean for problem in problems]
    vertex = _vertex(left, middle, right, step)
    gain = 0.25 * (left - right) / step * vertex  # of the parabola
    lag = now + (min(max(vertex, -LAG_ERROR), LAG_ERROR) if gain > NEAR_BEST * middle else 0.0)
    alternatives = tuple((f"{1e3 * each:g} ms", score) for each, score in zip(lags, scores, strict=True))
    return regression.filtered(lag=lag), Choice("lag of the output", alternatives, f"{lag * 1e3:.2f} ms")


def _vertex(left: float, middle: float, right: float, step: float) -> float:
    """Return the abscissa of the vertex of the parabola through (-step, left), (0, middle) and (step, right).

    0 where the three have no minimum.
    """
    bend = left - 2.0 * middle + right
    return 0.5 * step * (left - right) / bend if bend > 0.0 else 0.0


def _lag_terms(regression: Regression, gains: Array) -> tuple[list[tuple[Term, ...]], LoadOf]:
    """Return terms of every joint under which lags are compared, and the load torque that they depend on.

    Hysteresis reverses late, a sign at once, tension stays or fades at rest, all more under load: a lag would make up
    for what a model lacks of these.
    """
    drivers = ("rotor",) if regression.has_rotor else ("q",)  # an elastic gear makes friction late on the link side
    plain = replace(PROBE, powers=(1.0, 2.0), drivers=drivers, extra=regression.extra)
    joints, base = regression.bodies.robot.dof, regression.bodies.base.count
    values = quick_weighted_fit(regression.quick_problem([plain.terms()] * joints).scaled(gains))[0]
    shapes = [element_shapes(plain.terms(), part) for part in values[base:].reshape(joints, -1)]
    loaded = replace(plain, load="square")
    terms = [
        (*loaded.terms(shape), Coulomb("square"), Hysteresis(PROBE.limits, 0.0, *drivers, "square", shape[0]))
        for shape in shapes
    ]
    return terms, lambda rigid: regression.bodies.load_torque(rigid, values)


def _select_cutoff(regression: Regression, gains: Array) -> tuple[Regression, Choice]:
    """Return the regression with the best position cut-off, or a higher one that is as good.

    Smoothing reduces accelerations and so overestimates inertias: no more of it than the noise requires.
    """
    allowed = _allowed_cutoffs(regression)
    start = min(range(len(allowed)), key=lambda k: abs(allowed[k] - FIRST_CUTOFF))
    first = _probe_problem(regression.filtered(position_cutoff=allowed[start]), gains)
    sigma = quick_weighted_fit(first)[1]

    @cache
    def score(k: int) -> float:
        probe = first if k == start else _probe_problem(regression.filtered(position_cutoff=allowed[k]), gains)
        return cross_validate(probe, sigma).mean

    best, scores = descend(len(allowed), start, score)
    good = (1.0 + NEAR_BEST) * scores[best]
    while best + 1 < len(allowed) and score(best + 1) < good:
        best += 1
        scores[best] = score(best)
    alternatives = tuple((f"{allowed[k]:g} Hz", scores[k]) for k in sorted(scores))
    taken = allowed[best]
    return regression.filtered(position_cutoff=taken), Choice("position cut-off", alternatives, f"{taken:g} Hz")


def descend(count: int, start: int, score: Callable[[int], float]) -> tuple[int, dict[int, float]]:
    """Return the grid point of the lowest score and all scores computed: from `start`, while it gets clearly lower."""
    scores = {start: score(start)}
    place = start
    for direction in (1, -1):
        while 0 <= place + direction < count:
            ahead = place + direction
            if ahead not in scores:
                scores[ahead] = score(ahead)
            if scores[ahead] > (1.0 - NEAR_BEST) * scores[place]:
                break
            place = ahead
    return place, scores
