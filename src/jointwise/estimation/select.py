"""The automatic choice: filters and structure by cross-validation inside the training logs.

All on factors: a candidate is a subset of the columns of a dictionary that is computed once, so a comparison costs no
pass over the data. Stretches of time are left out in contiguous folds and predicted by the rest. A
richer candidate replaces a simpler one only if it is better by more than the standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.coupled import Layout, stacked, weighted_least_squares
from jointwise.estimation.dictionary import Dictionary, load_dictionary, plain_dictionary
from jointwise.estimation.factors import JointFactors, fold_edges, scaled_factors
from jointwise.estimation.problem import LoadOf, Problem
from jointwise.estimation.rivals import CREDIBLE, Moves, filter_moves, structure_moves
from jointwise.estimation.solve import bounded_least_squares, squared_error, triangle
from jointwise.estimation.structure import Structure, element_shapes
from jointwise.model.terms import Coulomb, Hysteresis, Term
from jointwise.spatial import Array

WORTHWHILE = 0.01
"""A richer candidate must lower the held-out error by at least this part of it."""
SURE = 4.0
"""Standard errors of a difference between folds that chance exceeds once in 200 times (Student, six folds)."""
CUTOFFS = (2.5, 4.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0, 30.0, 40.0, 60.0)
"""Position cut-offs (Hz) to choose from; the walk starts at the middle of what arms need."""
FIRST_CUTOFF = 8.0
SHARP_CUTOFF = 20.0
"""Position cut-off (Hz) under which lags are compared: a smoother motion starts before the real one."""
LAGS = tuple(np.arange(-16, 17, 4) * 1e-3)
"""Lags of the output (s) to choose from."""
LAG_CUTOFF = 10.0
"""Parallel filter (Hz) through which lags are compared: a spline through noise is quieter between the samples than on
them, so raw errors would favour lags of half a sample."""
SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Factors of the slip limits to choose from, where their scale is chosen joint by joint."""
POWERS = ((1.0,), (1.0, 0.5), (1.0, 2.0))
RELAXATIONS = (0.0, 1.0, 3.0, 10.0)
STRIBECK = (0.0, 0.05, 0.2)
LOADS = ("none", "absolute", "square")
PROBE = Structure("hysteresis", limits=tuple(np.geomspace(4e-6, 2e-2, 6).tolist()), relaxation=3.0)
"""Structure under which filters are compared: able to follow, quick to fit."""


@dataclass(frozen=True)
class Score:
    """Held-out error of a candidate, MSE / variance, shape (folds, joints).

    Joints are compared by ratios (logarithms), so that one whose noise hides everything does not drown the others.
    """

    errors: Array
    joints: Array

    @property
    def mean(self) -> float:
        """Geometric mean over the joints."""
        return float(np.exp(np.log(self.joints).mean()))

    def beats(self, simpler: Score) -> bool:
        """Tell whether this is clearly better than a simpler candidate.

        By more than `WORTHWHILE`, and by more than the standard error of the difference between folds.
        """
        gain = np.log(simpler.errors / self.errors).mean(axis=1)
        return float(gain.mean()) > max(WORTHWHILE, _standard_error(gain))

    def shows_at_a_joint(self, simpler: Score) -> bool:
        """Tell whether this is surely better over all joints, and worthwhile at one of them at least.

        What only some joints can show (friction that grows with the load, where there is one) is lost in a mean.
        """
        gain = np.log(simpler.errors / self.errors).mean(axis=1)
        most = float(np.log(simpler.joints / self.joints).max())
        return most > WORTHWHILE and float(gain.mean()) > SURE * _standard_error(gain)


def _standard_error(folds: Array) -> float:
    return float(folds.std(ddof=1) / np.sqrt(len(folds)))


@dataclass(frozen=True)
class Choice:
    """One decision: the question, every alternative with its held-out error, and the one taken."""

    question: str
    alternatives: tuple[tuple[str, float], ...]
    taken: str


def cross_validate(factors: Sequence[JointFactors], layout: Layout, sigma: Array) -> Score:
    """Return the held-out error: all joints are fitted together on the other folds, each divided by its `sigma`."""
    folds = fold_edges(len(factors[0].triangles))
    if len(folds) < 3:
        raise EstimationError("the log is too short to cross-validate: choose the joint model by hand.")
    parts = [[own.merged(fold) for own in factors] for fold in folds]
    wide = [triangle(stacked(part, layout, sigma)) for part in parts]
    errors = np.zeros((len(folds), len(factors)))
    for f, part in enumerate(parts):
        rest = np.vstack([own for k, own in enumerate(wide) if k != f])
        values = bounded_least_squares(rest, layout.bound)
        errors[f] = [squared_error(R, values[places]) for R, places in zip(part, layout.index, strict=True)]
    weight = np.array([[sum(own.weight[k] for k in fold) for own in factors] for fold in folds])
    variance = np.array([max(own.variance, 1e-300) for own in factors])
    by_joint = errors.sum(axis=0) / weight.sum(axis=0) / variance
    tiny = 1e-12 * variance * weight
    return Score(np.maximum(errors, tiny) / (weight * variance), np.maximum(by_joint, 1e-12))


def probe_structure(problem: Problem) -> Structure:
    """Return the structure under which filters and gains are found; it hears ripple where the log has it."""
    hears = problem.has_speed and problem.filters.parallel_cutoff is None
    return replace(PROBE, ripple=problem.period if hears else 0.0)


def choose_filters(
    problem: Problem, gains: Array, lag: float | None, cutoff: float | None
) -> tuple[Problem, list[Choice]]:
    """Return the problem with the lag and position cut-off that predict best; given values are kept.

    Of long recordings an excerpt is enough to choose.
    """
    choices: list[Choice] = []
    sample = problem.excerpt().treated(position_cutoff=cutoff or SHARP_CUTOFF, lag=lag or 0.0)
    if lag is None:
        sample, choice = _choose_lag(sample, gains)
        choices.append(choice)
    if cutoff is None:
        sample, choice = _choose_cutoff(sample.treated(position_cutoff=FIRST_CUTOFF), gains)
        choices.append(choice)
    return replace(problem, filters=sample.filters), choices


def choose_structure(
    problem: Problem, gains: Array, start: Structure, free: Iterable[str]
) -> tuple[Structure, list[Choice], list[Moves]]:
    """Return the structure that predicts best, starting from `start` and deciding only the `free` choices.

    `free` are names of `Structure` fields: ripple, direction, relaxation, powers, stribeck, load. Of long recordings an
    excerpt is enough to choose. With it come the choices, and how far the bodies move under their rivals.
    """
    free, problem = set(free), problem.excerpt()
    relaxations = tuple(dict.fromkeys((*RELAXATIONS, start.relaxation)))  # what is given need not be on the menu
    stribeck = tuple(dict.fromkeys((*STRIBECK, start.stribeck)))
    powers = (*POWERS, start.powers)
    plain = plain_dictionary(problem, gains, start.limits, powers, relaxations, stribeck, start.width)
    current = replace(start, load="none", power_flow=False)
    if "direction" in free:
        current = replace(current, direction="hysteresis", relaxation=RELAXATIONS[2])
    if "ripple" in free and problem.has_speed:
        current = replace(current, ripple=problem.period)
    ask = Questions(plain, plain.spread(current))
    if "ripple" in free and problem.has_speed:
        current = ask("answer to speed ripple", [replace(current, ripple=own) for own in (0.0, problem.period)])
    if "direction" in free:
        current = ask("direction of dry friction", _directions(current, problem))
    if "direction" in free and current.direction == "hysteresis":
        current = ask("relaxation of hysteresis", [replace(current, relaxation=time) for time in RELAXATIONS])
    if "powers" in free:
        current = ask("viscous powers", [replace(current, powers=own) for own in POWERS])
    if "stribeck" in free:
        current = ask("Stribeck velocity", [replace(current, stribeck=own) for own in STRIBECK])
    moves = ask.moves(current)
    if "load" in free:
        ask.dictionary = load_dictionary(problem, gains, current, plain, LOADS[1:])
        current = ask("load dependence", [replace(current, load=own) for own in LOADS], local=True)
        moves += ask.moves(current)
    else:
        current = replace(current, load=start.load, power_flow=start.power_flow)
    return current, ask.answered, moves


def filter_rivals(problem: Problem, gains: Array, structure: Structure, lag: bool, cutoff: bool) -> list[Moves]:
    """Return how far the bodies move under other filters, of those that were chosen: `lag`, position `cutoff`."""
    allowed = [own for own in CUTOFFS if own < 0.4 / problem.period]
    now = problem.filters.position_cutoff
    below, above = [own for own in allowed if own < now][-1:], [own for own in allowed if own > now][:1]
    return filter_moves(problem, gains, structure, below + above if cutoff else [], lag)


def choose_scales(problem: Problem, gains: Array, structure: Structure) -> tuple[Structure, Choice]:
    """Return the structure with the scale of its slip limits chosen joint by joint, each by its own held-out error."""
    problem, plain = problem.excerpt(), structure.without_load()
    joints, layout = problem.bodies.robot.dof, problem.layout(plain.terms())
    scores = []
    sigma: Array | None = None
    for scale in SCALES:
        terms = replace(plain, scales=(scale,) * joints).terms()
        factors = scaled_factors(problem.factors([terms] * joints), gains)
        sigma = weighted_least_squares(factors, layout).sigma if sigma is None else sigma
        scores.append(cross_validate(factors, layout, sigma))
    best = np.argmin([score.joints for score in scores], axis=0)
    scales = tuple(SCALES[k] for k in best)
    largest = structure.limits[-1]
    alternatives = tuple(
        (f"{1e3 * scale * largest:g} mrad", score.mean) for scale, score in zip(SCALES, scores, strict=True)
    )
    taken = ", ".join(f"{1e3 * scale * largest:g}" for scale in scales) + " mrad"
    return replace(structure, scales=scales), Choice("scale of hysteresis, joint by joint", alternatives, taken)


class Questions:
    """Asks for the best of some candidates and keeps the answers."""

    def __init__(self, dictionary: Dictionary, sigma: Array) -> None:
        """Use the columns of a dictionary; `sigma` (joints,) are the spreads that weigh the joints."""
        self.dictionary = dictionary
        self.sigma = sigma
        self.answered: list[Choice] = []
        self._rivals: list[tuple[str, Structure, list[Structure]]] = []

    def __call__(self, question: str, candidates: list[Structure], local: bool = False) -> Structure:
        """Return the best candidate, or a simpler one (fewer columns, no relaxation) that it does not clearly beat.

        With `local`, what is sure and worthwhile at a single joint counts too.
        """
        chosen = [self.dictionary.select(candidate) for candidate in candidates]
        scores = [cross_validate(*own, self.sigma) for own in chosen]
        sizes = [own[1].count + relaxes(candidate) for own, candidate in zip(chosen, candidates, strict=True)]
        best = min(range(len(scores)), key=lambda k: scores[k].mean)

        def worse(k: int) -> bool:
            return scores[best].beats(scores[k]) or (local and scores[best].shows_at_a_joint(scores[k]))

        simpler = [k for k in range(len(scores)) if sizes[k] < sizes[best] and not worse(k)]
        taken = min(simpler, key=lambda k: (sizes[k], scores[k].mean), default=best)
        names = [_label(question, candidate) for candidate in candidates]
        alternatives = tuple((name, score.mean) for name, score in zip(names, scores, strict=True))
        self.answered.append(Choice(question, alternatives, names[taken]))
        credible = [k for k in range(len(scores)) if k != taken and scores[k].mean <= CREDIBLE * scores[taken].mean]
        self._rivals.append((question, candidates[taken], [candidates[k] for k in credible]))
        return candidates[taken]

    def moves(self, current: Structure) -> list[Moves]:
        """Return how far the bodies move from the current structure under the rivals of the questions since asked."""
        rivals, self._rivals = self._rivals, []
        return [
            structure_moves(self.dictionary, question, current, [_as_chosen(current, taken, own) for own in others])
            for question, taken, others in rivals
        ]


def _as_chosen(current: Structure, taken: Structure, rival: Structure) -> Structure:
    """Return the current structure with what the rival had different from the one taken."""
    names = [own.name for own in fields(Structure) if getattr(rival, own.name) != getattr(taken, own.name)]
    return replace(current, **{name: getattr(rival, name) for name in names})


def relaxes(structure: Structure) -> bool:
    """Tell whether hysteresis relaxes: a claim about standstill, which a log without it cannot prove."""
    return structure.direction == "hysteresis" and structure.relaxation > 0.0


def _directions(current: Structure, problem: Problem) -> list[Structure]:
    """Return ways to turn dry friction with the motion, simplest first."""
    drivers: list[tuple[str, ...]] = [("q",)]
    drivers += [("track",), ("q", "track")] if problem.has_speed else []
    drivers += [("rotor",)] if problem.has_rotor else []
    slips = [replace(current, drivers=own) for own in drivers]
    return [replace(current, direction="sign"), replace(current, direction="tanh"), *slips]


def _label(question: str, candidate: Structure) -> str:
    """Return a candidate in the words of its question."""
    slips = candidate.direction == "hysteresis"
    return {
        "direction of dry friction": f"hysteresis on {' and '.join(candidate.drivers)}"
        if slips
        else candidate.direction,
        "relaxation of hysteresis": f"{candidate.relaxation:g} s" if candidate.relaxation else "never",
        "answer to speed ripple": "yes" if candidate.ripple else "no",
        "viscous powers": ", ".join(f"{p:g}" for p in candidate.powers),
        "Stribeck velocity": f"{candidate.stribeck:g} rad/s" if candidate.stribeck else "none",
        "load dependence": candidate.load,
    }[question]


def _choose_lag(problem: Problem, gains: Array) -> tuple[Problem, Choice]:
    """Return the problem with the best lag, none unless it is clearly better.

    Between the grid points by a parabola through the three lowest.
    """
    none = len(LAGS) // 2
    terms, load_of = _lag_terms(problem, gains)
    smooth = problem.treated(parallel_cutoff=min(LAG_CUTOFF, problem.filters.parallel_cutoff or LAG_CUTOFF))
    layout = smooth.layout(terms[0])
    factors = [scaled_factors(own, gains) for own in smooth.lagged_factors(terms, LAGS, load_of)]
    sigma = weighted_least_squares(factors[none], layout).sigma
    tried: dict[int, Score] = {}

    def score(k: int) -> float:
        tried[k] = cross_validate(factors[k], layout, sigma)
        return tried[k].mean

    best, scores = walk(len(LAGS), none, score)
    lag = float(LAGS[best]) if tried[best].beats(tried[none]) else 0.0
    if lag and best - 1 in scores and best + 1 in scores:
        left, middle, right = (scores[best + k] for k in (-1, 0, 1))
        lag += float(0.5 * (LAGS[1] - LAGS[0]) * (left - right) / (left - 2.0 * middle + right))
    alternatives = tuple((f"{LAGS[k] * 1e3:g} ms", scores[k]) for k in sorted(scores))
    return problem.treated(lag=lag), Choice("lag of the output", alternatives, f"{lag * 1e3:.1f} ms")


def _lag_terms(problem: Problem, gains: Array) -> tuple[list[tuple[Term, ...]], LoadOf]:
    """Return terms of every joint that leave little for a lag to explain, and the load torque they see.

    Hysteresis turns late, a sign at once, tension stays or fades at rest, all more under load: what a model lacks of
    these, a lag would take over.
    """
    plain = replace(PROBE, powers=(1.0, 2.0))
    joints, base, own = problem.bodies.robot.dof, problem.bodies.base.count, plain.terms()
    layout = problem.layout(own)
    values = weighted_least_squares(scaled_factors(problem.factors([own] * joints), gains), layout).values
    shapes = [element_shapes(plain.terms(), part) for part in values[base:].reshape(joints, -1)]
    loaded = replace(plain, load="square")
    terms = [
        (*loaded.terms(shape), Coulomb("square"), Hysteresis(PROBE.limits, load="square", shape=shape[0]))
        for shape in shapes
    ]
    return terms, lambda rigid: problem.bodies.load_torque(rigid, values)


def _choose_cutoff(problem: Problem, gains: Array) -> tuple[Problem, Choice]:
    """Return the problem with the best position cut-off, or a higher one that is as good.

    Smoothing takes from accelerations and makes inertias too large: no more of it than the noise asks for.
    """
    probe = probe_structure(problem).terms()
    terms, layout = [probe] * problem.bodies.robot.dof, problem.layout(probe)
    allowed = [cutoff for cutoff in CUTOFFS if cutoff < 0.4 / problem.period]
    start = min(range(len(allowed)), key=lambda k: abs(allowed[k] - FIRST_CUTOFF))
    sigma = weighted_least_squares(scaled_factors(problem.factors(terms), gains), layout).sigma

    @cache
    def score(k: int) -> float:
        factors = problem.treated(position_cutoff=allowed[k]).factors(terms)
        return cross_validate(scaled_factors(factors, gains), layout, sigma).mean

    best, scores = walk(len(allowed), start, score)
    good = (1.0 + 0.5 * WORTHWHILE) * scores[best]
    while best + 1 < len(allowed) and score(best + 1) < good:
        best += 1
        scores[best] = score(best)
    alternatives = tuple((f"{allowed[k]:g} Hz", scores[k]) for k in sorted(scores))
    taken = allowed[best]
    return problem.treated(position_cutoff=taken), Choice("position cut-off", alternatives, f"{taken:g} Hz")


def walk(count: int, start: int, score: Callable[[int], float]) -> tuple[int, dict[int, float]]:
    """Return the place of the lowest score and all computed: from `start`, walk while it gets clearly lower."""
    scores = {start: score(start)}
    place = start
    for direction in (1, -1):
        while 0 <= place + direction < count:
            ahead = place + direction
            if ahead not in scores:
                scores[ahead] = score(ahead)
            if scores[ahead] > (1.0 - 0.5 * WORTHWHILE) * scores[place]:
                break
            place = ahead
    return place, scores
