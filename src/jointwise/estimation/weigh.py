"""Whether the terms of a joint's own experiments predict better than the automatic ones, inside the training logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jointwise.estimation.fit import fit_structure
from jointwise.estimation.given import GivenTerms
from jointwise.estimation.problem import Problem
from jointwise.estimation.select import Choice, cross_validate
from jointwise.estimation.structure import Structure
from jointwise.spatial import Array

QUESTION, OWN, AUTOMATIC = "friction of joint", "own experiments", "automatic"


@dataclass(frozen=True)
class Verdict:
    """The held-out error (MSE / variance) of a joint (0-based) with its own terms and with the automatic ones.

    `kept` tells whether its own terms are taken, `firm` whether that was asked for.
    """

    joint: int
    own: float
    automatic: float
    firm: bool

    @property
    def worse(self) -> bool:
        """Whether the joint's own terms predict worse."""
        return self.own > self.automatic

    @property
    def kept(self) -> bool:
        """Whether the joint's own terms are taken."""
        return self.firm or not self.worse

    def choice(self) -> Choice:
        """Return the decision as it is told with the others."""
        alternatives = ((OWN, self.own), (AUTOMATIC, self.automatic))
        return Choice(f"{QUESTION} {self.joint + 1}", alternatives, OWN if self.kept else AUTOMATIC)


def told(choices: Sequence[Choice]) -> tuple[list[str], list[str]]:
    """Return, of some decisions, what became of the given joints and which of them cost something, a line each."""
    lines, costly = [], []
    for choice in choices:
        if not choice.question.startswith(QUESTION):
            continue
        errors = dict(choice.alternatives)
        change = 100.0 * (errors[OWN] / errors[AUTOMATIC] - 1.0)
        than = f"its own terms have {abs(change):.1f} % {'more' if change > 0.0 else 'less'} held-out error"
        lines.append(f"{choice.question}: {choice.taken} ({than} than the automatic ones)")
        costly += [lines[-1]] if choice.taken == OWN and change > 0.0 else []
    return lines, costly


def weigh_given(
    problem: Problem, structure: Structure, gains: Array, method: str, given: Mapping[int, GivenTerms]
) -> list[Verdict]:
    """Return for every joint with given terms how well they predict stretches of the training logs left out.

    Both models are fitted to all joints and cross-validated in the same folds, errors weighed alike.
    """
    if not given:
        return []
    part = problem.excerpt()
    automatic = fit_structure(part, structure, gains, method)
    own = fit_structure(part, structure, gains, method, given)
    sigma = automatic.solution.sigma
    errors = [cross_validate(fit.factors, fit.layout, sigma).joints for fit in (own, automatic)]
    return [Verdict(j, float(errors[0][j]), float(errors[1][j]), given[j].firm) for j in sorted(given)]
