"""What a motion can tell: which parameters a log determines, before anything is estimated from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from jointwise.estimation.coupled import stacked
from jointwise.estimation.problem import Problem
from jointwise.estimation.solve import triangle
from jointwise.model.terms import Coulomb, Offset, Term, Viscous

Known = Literal["alone", "combination", "none"]

TOLERANCE = 1e-2
"""Directions that the log excites less than this, relative to the best excited one (columns of unit length), are open:
as much as noise and quantisation make of any column."""
SHARE = 0.3
"""A parameter takes part in an open direction if its component of the unit vector is larger than this."""
SILENT = 1e-6
"""A column is silent below this part of the longest one."""


@dataclass(frozen=True)
class Identifiability:
    """How well a log can determine each parameter of a plain model (bodies, offset, Coulomb and viscous friction).

    `known` by name: alone, only in combination with others, or not at all (no effect in this log); `condition` of the
    observation matrix with columns of unit length, without those that have no effect.
    """

    known: dict[str, Known]
    condition: float

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of the parameters that the log does not determine."""
        return tuple(name for name, how in self.known.items() if how != "alone")

    def to_dict(self) -> dict[str, Any]:
        """Return the judgement for JSON."""
        return {
            "determined": [name for name, how in self.known.items() if how == "alone"],
            "only_in_combination": [name for name, how in self.known.items() if how == "combination"],
            "without_effect": [name for name, how in self.known.items() if how == "none"],
            "condition": self.condition if np.isfinite(self.condition) else None,
        }


def identifiability(problem: Problem) -> Identifiability:
    """Return what the recordings of a problem can determine; every parameter is structurally identifiable."""
    terms: tuple[Term, ...] = (Offset(), Coulomb(direction="tanh"), Viscous((1.0,)))
    joints = problem.bodies.robot.dof
    names = [info.name for info in replace(problem.bodies, terms=(terms,) * joints).parameters]
    factors = [own.merged() for own in problem.factors([terms] * joints)]
    R = triangle(stacked(factors, problem.layout(terms), np.ones(joints)))[:, :-1]
    lengths = np.linalg.norm(R, axis=0)
    heard = lengths > SILENT * lengths.max(initial=1e-300)
    _, sizes, directions = np.linalg.svd(R[:, heard] / lengths[heard])
    whole = np.zeros(int(heard.sum()))
    whole[: len(sizes)] = sizes
    unclear = np.abs(directions[whole < TOLERANCE * whole.max(initial=0.0)]).max(axis=0, initial=0.0) > SHARE
    known = np.full(len(names), "none", dtype=object)
    known[heard] = np.where(unclear, "combination", "alone")
    condition = float(whole[0] / whole[-1]) if whole.size and whole[-1] > 1e-12 * whole[0] else float("inf")
    return Identifiability(dict(zip(names, known.tolist(), strict=True)), condition)
