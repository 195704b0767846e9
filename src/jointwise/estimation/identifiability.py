"""Identifiability: which parameters the motion of some logs determines, and whether it is enough for a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.regression import Regression
from jointwise.formatting import condition_text
from jointwise.model.terms import Coulomb, Offset, Term, Viscous
from jointwise.spatial import Array

Known = Literal["alone", "combination", "none"]

TOLERANCE = 1e-2
"""Directions with a relative singular value below this (columns of unit length) count as not excited: noise and
quantisation excite every direction by about as much."""
SHARE = 0.3
"""A parameter belongs to a direction that is not excited if its component of the unit vector exceeds this."""
NO_EFFECT = 1e-6
"""A parameter has no effect if the norm of its column is below this share of the largest one."""
MAX_CONDITION = 1000.0
"""Largest condition number of a basic model (columns of unit length). Parts of 3 s and 6 s of a UR10e excitation have
5e6 and 1e4 and predict other motions with 1e6 and 30 times the variance; one of 10 s has 80."""
POOR_CONDITION = 100.0
"""Condition number above which the literature calls an excitation poor."""
UNEXCITED = 1e-9
"""Relative singular value below which a direction has no excitation at all: it is rounding, not motion."""


@dataclass(frozen=True)
class Identifiability:
    """Identifiability of every parameter of a basic model (links, offset, Coulomb and viscous friction) from a log.

    Attributes:
        known: By name of the parameter: "alone" if it is identifiable individually, "combination" if only in linear
            combinations, "none" if it has no effect in this log.
        condition: Condition number of the regressor with columns of unit length, without columns that have no effect.
        condition_excited: The same without the directions that have no excitation at all, as far as joints at rest make
            them.
    """

    known: dict[str, Known]
    condition: float
    condition_excited: float

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "determined": [name for name, how in self.known.items() if how == "alone"],
            "only_in_combination": [name for name, how in self.known.items() if how == "combination"],
            "without_effect": [name for name, how in self.known.items() if how == "none"],
            "condition": self.condition if np.isfinite(self.condition) else None,
        }


def identifiability(regression: Regression) -> Identifiability:
    """Return which of the structurally identifiable parameters the recordings of a regression determine."""
    terms: tuple[Term, ...] = (Offset(), Coulomb(direction="tanh"), Viscous((1.0,)))
    joints = regression.bodies.robot.dof
    names = [info.name for info in replace(regression.bodies, terms=(terms,) * joints).parameters]
    R = regression.problem([terms] * joints).whole(np.ones(joints))[:, :-1]
    lengths = np.linalg.norm(R, axis=0)
    excited = lengths > NO_EFFECT * lengths.max(initial=1e-300)
    _, sizes, directions = np.linalg.svd(R[:, excited] / lengths[excited])
    whole = np.zeros(int(excited.sum()))
    whole[: len(sizes)] = sizes
    combined = np.abs(directions[whole < TOLERANCE * whole.max(initial=0.0)]).max(axis=0, initial=0.0) > SHARE
    known = np.full(len(names), "none", dtype=object)
    known[excited] = np.where(combined, "combination", "alone")
    at_all = whole[whole > UNEXCITED * whole.max(initial=0.0)]
    return Identifiability(dict(zip(names, known.tolist(), strict=True)), _condition(whole), _condition(at_all))


def _condition(sizes: Array) -> float:
    """Return the ratio of the first to the last of some singular values; infinite if there are none."""
    return float(sizes[0] / sizes[-1]) if sizes.size and sizes[-1] > 1e-12 * sizes[0] else float("inf")


def check_excitation(regression: Regression, every_joint_moves: bool) -> list[str]:
    """Reject logs whose motion cannot carry the parameters of even a basic model; return warnings.

    A joint at rest makes directions without any excitation, which a model for such motions does not need; they count
    only if every joint moves.

    Args:
        regression: The regression of the logs, joints at rest without their noise.
        every_joint_moves: Whether every joint moves in some log.

    Raises:
        EstimationError: The condition number is above `MAX_CONDITION`.

    """
    found = identifiability(regression)
    condition = found.condition if every_joint_moves else found.condition_excited
    seconds = sum(clean.log.duration for clean in regression.logs)
    if not condition <= MAX_CONDITION:
        raise EstimationError(
            f"the motion of {seconds:.3g} s excites the parameters too little (condition number "
            f"{condition_text(condition)}, at most {MAX_CONDITION:g}): record longer, with all joints at "
            "once, over large ranges and at several speeds."
        )
    if not condition <= POOR_CONDITION:
        return [
            f"weak excitation: condition number {condition:.2g} (good: below {POOR_CONDITION:g}). Expect larger errors "
            "in other motions; record longer, over larger ranges."
        ]
    return []
