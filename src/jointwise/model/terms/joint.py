"""The terms of a joint in order: their columns, their torque, and their laws in the C core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jointwise.errors import ModelError
from jointwise.model.terms.term import DRY, CoreTerm, JointSignals, Role, State, Term, has_core_law
from jointwise.spatial import Array


def joint_columns(
    terms: Sequence[Term], signals: JointSignals, states: Sequence[State] | None = None
) -> tuple[list[Array], list[State]]:
    """Return the columns of all terms of a joint along a motion, (samples, parameters) each, and their states after it.

    Terms act in the direction of the slip elements that come before them in the list (`JointSignals.directions`).

    Args:
        terms: Terms of the joint.
        signals: Signals of the joint.
        states: State of every term after the samples before; None at the start of a segment.

    """
    driven = {getattr(term, "driver", "speed") for term in terms if term.role != "slip"}
    columns, after = [], []
    for term, before in zip(terms, [None] * len(terms) if states is None else states, strict=True):
        found, state = term.columns(signals, before)
        driver = getattr(term, "driver", "speed")
        if term.role == "slip" and driver in driven:
            H = term.hysteresis(found)
            signals = replace(signals, directions={**(signals.directions or {}), driver: H})
        columns.append(found)
        after.append(state)
    return columns, after


def core_terms(term: Term, values: Array, period: float) -> tuple[CoreTerm, ...]:
    """Return a term with its parameter values as laws of the C core, for a sampling period (s).

    Raises:
        ModelError: The term has no law in the core.

    """
    if not has_core_law(term):
        raise ModelError(f"term '{term.kind}' is not implemented in the C runtime: it can be evaluated on arrays only.")
    return term.pack(values.tolist(), period)


@dataclass(frozen=True, eq=False)
class JointLaw:
    """The torque of a joint: its terms with the values of their parameters.

    Attributes:
        terms: The terms; slip elements before the terms that act in their direction.
        values: Values of the parameters of every term.

    """

    terms: tuple[Term, ...]
    values: tuple[Array, ...]

    def __post_init__(self) -> None:
        """Check that every parameter has a value."""
        sizes, needed = [len(value) for value in self.values], [len(term.parameters()) for term in self.terms]
        if sizes != needed:
            raise ModelError(f"values must be {needed} numbers for these terms. Got {sizes} instead.")

    def torque(self, signals: JointSignals, states: Sequence[State] | None = None) -> tuple[Array, list[State]]:
        """Return the torque along a motion, (samples,), Nm, and the states of the terms after it."""
        columns, after = joint_columns(self.terms, signals, states)
        result = np.zeros(len(signals.q))
        for each, value in zip(columns, self.values, strict=True):
            result += each @ value
        return result, after

    def packed(self, period: float) -> list[float]:
        """Return the terms as the native readers take them (`term_reader.h`), for a sampling period (s)."""
        pairs = zip(self.terms, self.values, strict=True)
        laws = [law for term, value in pairs for law in core_terms(term, value, period)]
        return [float(len(laws)), *(x for law in laws for x in law.packed())]

    @property
    def is_dry(self) -> bool:
        """Whether any term is dry friction."""
        return any(term.role in DRY for term in self.terms)

    def of_role(self, *roles: Role) -> JointLaw:
        """Return the terms with one of these roles."""
        return self._chosen([term.role in roles for term in self.terms])

    def without(self, *roles: Role) -> JointLaw:
        """Return the terms with other roles than these."""
        return self._chosen([term.role not in roles for term in self.terms])

    def scaled(self, factor: float, roles: Sequence[Role]) -> JointLaw:
        """Return the same terms, the values of those with some roles times a factor."""
        pairs = zip(self.terms, self.values, strict=True)
        return JointLaw(self.terms, tuple(factor * value if term.role in roles else value for term, value in pairs))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the terms with their values as a document."""
        return [{**t.to_dict(), "values": v.tolist()} for t, v in zip(self.terms, self.values, strict=True)]

    def _chosen(self, kept: Sequence[bool]) -> JointLaw:
        pairs = [pair for pair, keep in zip(zip(self.terms, self.values, strict=True), kept, strict=True) if keep]
        return JointLaw(tuple(term for term, _ in pairs), tuple(value for _, value in pairs))
