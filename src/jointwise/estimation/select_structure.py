"""Selection of the joint model by cross-validation inside the training logs.

A candidate is a subset of the columns of a dictionary that is computed once, so a comparison needs no pass over the
data. A more complex candidate replaces a simpler one only if it is better by more than the standard error of the
difference.

The rule of one standard error is that of L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and
Regression Trees", 1984, applied to differences of held-out errors between folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from jointwise.estimation.cross_validation import Choice, Score, cross_validate, exceeds
from jointwise.estimation.dictionary import Dictionary, Menu, drivers_of, load_dictionary, plain_dictionary
from jointwise.estimation.fit import fit_structure
from jointwise.estimation.least_squares import quick_weighted_fit
from jointwise.estimation.regression import Regression
from jointwise.estimation.structure import JointTerms, Structure, listed_drivers
from jointwise.estimation.uncertainty import Alternatives
from jointwise.spatial import Array

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Factors of the slip limits, where their scale is selected joint by joint."""
POWERS = ((1.0,), (1.0, 0.5), (1.0, 2.0))
"""Viscous powers; a cubic term extrapolates badly to faster motions."""
RELAXATIONS = (0.0, 1.0, 3.0, 10.0)
"""Relaxation times of hysteresis, s; 0 for none."""
STRIBECK = (0.0, 0.05, 0.2)
"""Stribeck velocities, rad/s; 0 for none."""
NEGLIGIBLE = 1e-3
"""Probability below which an alternative does not count."""
LOADS = ("none", "absolute", "square")
"""Dependences of dry friction on the load torque."""


@dataclass(frozen=True)
class Candidates:
    """Values to select from.

    Attributes:
        relaxations: Relaxation times, s; 0 for none.
        stribeck: Stribeck velocities, rad/s; 0 for none.
        powers: Sets of powers of viscous friction.
    """

    relaxations: tuple[float, ...] = RELAXATIONS
    stribeck: tuple[float, ...] = STRIBECK
    powers: tuple[tuple[float, ...], ...] = POWERS


def select_structure(
    regression: Regression,
    gains: Array,
    start: Structure,
    free: Iterable[str],
    candidates: Candidates = Candidates(),  # noqa: B008 - immutable
) -> tuple[Structure, Selection]:
    """Return the structure that predicts best, and the selection behind it.

    Args:
        regression: The training logs; of long ones an excerpt is used.
        gains: Nm per unit of output, shape (joints,).
        start: The structure whose other fields are kept.
        free: Names of the fields to select: ripple, direction (with the relaxation), powers, stribeck, load.
        candidates: Values to select from.

    """
    names, regression = set(free), regression.excerpt()
    plain = plain_dictionary(regression, gains, _menu(start, candidates.relaxations))
    current = _first_structure(regression, start, names, candidates.relaxations)
    selection = Selection(plain, plain.residual_deviations(current))
    for name, question in _QUESTIONS.items():
        others = _candidates(name, current, regression, candidates)
        if others and ("direction" if name == "relaxation" else name) in names:
            current = selection.best(question, others)
    if "load" not in names:
        return replace(current, load=start.load, power_flow=start.power_flow), selection
    selection.use(load_dictionary(regression, gains, current, plain, LOADS[1:]))
    current = selection.best("load dependence", [replace(current, load=load) for load in LOADS], local=True)
    return current, selection


_QUESTIONS = {
    "ripple": "speed-ripple response",
    "direction": "direction of dry friction",
    "relaxation": "relaxation of hysteresis",
    "powers": "viscous powers",
    "stribeck": "Stribeck velocity",
}
"""Fields of a structure in the order in which they are selected, and the questions they answer."""


def _menu(start: Structure, relaxations: Sequence[float]) -> Menu:
    """Return the values to choose from, with those of the start, which need not be among them."""
    return Menu(
        limits=start.limits,
        powers=(*POWERS, start.powers),
        relaxations=tuple(dict.fromkeys((*relaxations, start.relaxation))),
        stribeck=tuple(dict.fromkeys((*STRIBECK, start.stribeck))),
        width=start.width,
        extra=tuple(start.extra_terms()),
    )


def _first_structure(
    regression: Regression, start: Structure, names: set[str], relaxations: Sequence[float]
) -> Structure:
    """Return the structure that a selection begins with: flexible in what it selects, without load dependence."""
    first = start.without_load()
    if "direction" in names:
        first = replace(first, direction="hysteresis", relaxation=relaxations[len(relaxations) // 2])
    if "ripple" in names and regression.has_speed:
        first = replace(first, ripple=regression.period)
    return first


def _candidates(name: str, current: Structure, regression: Regression, candidates: Candidates) -> list[Structure]:
    """Return the candidates for a field of the structure, the simplest first; none where there is nothing to select."""
    if name == "direction":
        return _directions(current, regression)
    relaxations = candidates.relaxations
    values: dict[str, Sequence[Any]] = {
        "ripple": (0.0, regression.period) if regression.has_speed else (),
        "relaxation": relaxations if current.direction == "hysteresis" and len(relaxations) > 1 else (),
        "powers": candidates.powers,
        "stribeck": candidates.stribeck,
    }
    return [replace(current, **{name: value}) for value in values[name]]


def _directions(current: Structure, regression: Regression) -> list[Structure]:
    """Return how dry friction may reverse with the motion, the simplest first."""
    measured = drivers_of(regression)
    drivers: list[tuple[str, ...]] = [("q",)]
    drivers += [("track",), ("q", "track")] if "track" in measured else []
    drivers += [("rotor",)] if "rotor" in measured else []
    slips = [replace(current, drivers=driver) for driver in drivers]
    return [replace(current, direction="sign"), replace(current, direction="tanh"), *slips]


_Question = tuple[str, Structure, dict[Structure, float]]
"""A question, the structure taken, and the probabilities that the others are better."""


class Selection:
    """Selects the best of some candidates, question by question, and keeps the choices.

    The first questions are about everything but the load dependence, a second dictionary is for the load dependence.
    """

    def __init__(self, dictionary: Dictionary, sigma: Array) -> None:
        """Use the columns of a dictionary; `sigma` (joints,) are the residual deviations that weight the joints."""
        self.sigma = sigma
        self.choices: list[Choice] = []
        self._stages: list[tuple[Dictionary, list[_Question]]] = [(dictionary, [])]
        self._scores: dict[Structure, tuple[Score, int]] = {}

    def use(self, dictionary: Dictionary) -> None:
        """Use the columns of another dictionary for the next questions."""
        self._stages.append((dictionary, []))
        self._scores.clear()

    def best(self, question: str, candidates: list[Structure], local: bool = False) -> Structure:
        """Return the best candidate, or a simpler one (fewer columns, no relaxation) that it does not clearly beat.

        With `local`, an improvement that is significant and worthwhile at a single joint counts too.
        """
        scores, sizes = zip(*(self._scored(candidate) for candidate in candidates), strict=True)
        order = range(len(candidates))
        best = min(order, key=lambda k: scores[k].mean)

        def worse(k: int) -> bool:
            return scores[best].beats(scores[k]) or (local and scores[best].improves_a_joint(scores[k]))

        simpler = [k for k in order if sizes[k] < sizes[best] and not worse(k)]
        taken = min(simpler, key=lambda k: (sizes[k], scores[k].mean), default=best)
        self._keep(question, candidates, scores, taken)
        return candidates[taken]

    def _scored(self, candidate: Structure) -> tuple[Score, int]:
        """Return the score and the size of a candidate; that of the question before is one of the next question."""
        if candidate not in self._scores:
            problem = self._stages[-1][0].select(candidate)
            self._scores[candidate] = cross_validate(problem, self.sigma), problem.layout.count + relaxes(candidate)
        return self._scores[candidate]

    def _keep(self, question: str, candidates: list[Structure], scores: Sequence[Score], taken: int) -> None:
        names = [_label(question, candidate) for candidate in candidates]
        errors = [score.mean for score in scores]
        self.choices.append(Choice(question, tuple(zip(names, errors, strict=True)), names[taken]))
        others = {
            candidate: scores[k].probability_better(scores[taken])
            for k, candidate in enumerate(candidates)
            if k != taken
        }
        self._stages[-1][1].append((question, candidates[taken], others))

    def alternatives(self, selected: Structure) -> list[Alternatives]:
        """Return how the alternatives of every question move the bodies of the structure that was selected."""
        currents = (selected.without_load(), selected)
        stages = zip(self._stages, currents, strict=False)
        return [found for stage, current in stages for found in _alternatives(*stage, current)]


def _alternatives(dictionary: Dictionary, questions: list[_Question], current: Structure) -> Iterator[Alternatives]:
    """Yield the change of the base parameters from a structure to the alternatives of each question."""
    reference = dictionary.base_parameters(current)
    for question, taken, others in questions:
        likely = {_changed(current, taken, other): chance for other, chance in others.items() if chance > NEGLIGIBLE}
        steps = np.array([dictionary.base_parameters(other) - reference for other in likely])
        yield Alternatives(question, steps.reshape(len(likely), len(reference)), np.array([*likely.values()], float))


def _changed(current: Structure, taken: Structure, other: Structure) -> Structure:
    """Return the current structure with what an alternative had different from the one taken."""
    names = [item.name for item in fields(Structure) if getattr(other, item.name) != getattr(taken, item.name)]
    return replace(current, **{name: getattr(other, name) for name in names})


def relaxes(structure: Structure) -> bool:
    """Return whether hysteresis relaxes: a statement about standstill, which a log without it cannot support."""
    return structure.direction == "hysteresis" and structure.relaxation > 0.0


def _label(question: str, candidate: Structure) -> str:
    """Return the name of a candidate among those of its question."""
    slips = candidate.direction == "hysteresis"
    return {
        "direction of dry friction": f"hysteresis driven by {listed_drivers(candidate.drivers)}"
        if slips
        else candidate.direction,
        "relaxation of hysteresis": f"{candidate.relaxation:g} s" if candidate.relaxation else "never",
        "speed-ripple response": "yes" if candidate.ripple else "no",
        "viscous powers": ", ".join(f"{p:g}" for p in candidate.powers),
        "Stribeck velocity": f"{candidate.stribeck:g} rad/s" if candidate.stribeck else "none",
        "load dependence": candidate.load,
    }[question]


def select_scales(regression: Regression, gains: Array, structure: Structure) -> tuple[Structure, Choice]:
    """Return the structure with the scale of its slip limits selected joint by joint, by the held-out error of each."""
    regression, plain = regression.excerpt(), structure.without_load()
    joints, scores = regression.bodies.robot.dof, []
    sigma: Array | None = None
    for scale in SCALES:
        terms = replace(plain, scales=(scale,) * joints).terms()
        problem = regression.quick_problem([terms] * joints).scaled(gains)
        sigma = quick_weighted_fit(problem)[1] if sigma is None else sigma
        scores.append(cross_validate(problem, sigma))
    best = best_scales(scores)
    scales = tuple(SCALES[k] for k in best)
    sizes = [f"{1e3 * scale * structure.limits[-1]:g}" for scale in SCALES]
    alternatives = tuple((f"{size} mrad", score.mean) for size, score in zip(sizes, scores, strict=True))
    taken = ", ".join(sizes[k] for k in best) + " mrad"
    return replace(structure, scales=scales), Choice("scale of hysteresis, joint by joint", alternatives, taken)


def best_scales(scores: Sequence[Score]) -> list[int]:
    """Return the index of the best of `SCALES` for every joint; 1 unless another is better by a standard error."""
    usual, errors = SCALES.index(1.0), np.log([score.errors for score in scores])
    best = np.argmin([score.joints for score in scores], axis=0)
    return [int(k) if exceeds(errors[usual, :, j] - errors[k, :, j]) else usual for j, k in enumerate(best)]


QUESTION, EXPERIMENTS, AUTOMATIC = "friction of joint", "own experiments", "automatic"
"""Words of the choices; model files hold them."""


@dataclass(frozen=True)
class JointComparison:
    """Held-out errors of a joint with the terms of its experiments and with the automatic ones.

    Attributes:
        joint: Joint, 0-based.
        error: MSE / variance with the terms of the experiments.
        automatic: MSE / variance with the automatic terms.
        firm: Whether the terms of the experiments are kept in any case.
    """

    joint: int
    error: float
    automatic: float
    firm: bool

    @property
    def kept(self) -> bool:
        """Whether the terms of the experiments are used."""
        return self.firm or self.error <= self.automatic

    def choice(self) -> Choice:
        """Return the decision as one of the choices of a calibration."""
        alternatives = ((EXPERIMENTS, self.error), (AUTOMATIC, self.automatic))
        return Choice(f"{QUESTION} {self.joint + 1}", alternatives, EXPERIMENTS if self.kept else AUTOMATIC)


def compare_joint_terms(
    regression: Regression, structure: Structure, gains: Array, method: str, terms: Mapping[int, JointTerms]
) -> list[JointComparison]:
    """Return for every joint with `terms` how well they predict held-out parts of the training logs.

    Both models are fitted to all joints and cross-validated in the same folds, errors weighted alike.
    """
    if not terms:
        return []
    part = regression.excerpt()
    automatic = fit_structure(part, structure, gains, method)
    fit = fit_structure(part, structure, gains, method, terms)
    before, after = (cross_validate(model.problem, automatic.solution.sigma).joints for model in (automatic, fit))
    return [JointComparison(j, float(after[j]), float(before[j]), terms[j].firm) for j in sorted(terms)]
