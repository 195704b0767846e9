"""How sure a friction part is: parts that are as good as it, one deviation away to either side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.joint.typed import items, numbers, texts
from jointwise.spatial import Array

NAMES = ("F_C", "F_S-F_C", "V_S", "F_V1", "F_V2", "F_V3")
"""Numbers of a friction part that a fit of hysteresis takes as known."""


def given_rivals(part: Part) -> list[tuple[Part, Part]]:
    """Return pairs of parts, one deviation along either side of every axis of the covariance of what is taken as known.

    V_S moves by its logarithm. A part that does not tell its covariance has independent numbers.
    """
    names = [value.name for value in part.values if value.name in NAMES]
    variances, axes = np.linalg.eigh(_covariance(part, names))
    steps = (axes * np.sqrt(np.maximum(variances, 0.0))).T
    return [(_moved(part, names, step), _moved(part, names, -step)) for step in steps if step.any()]


def told_covariance(part: Part) -> tuple[tuple[str, ...], Array]:
    """Return the names of numbers whose covariance a part tells, and that covariance; () where it does not."""
    told = part.settings.get("covariance")
    if told is None:
        return (), np.empty((0, 0))
    names, rows = texts(told["names"], "covariance"), items(told["values"], "covariance")
    if len(rows) != len(names):
        raise ModelError(f"covariance must be {len(names)} rows. Got {len(rows)} instead.")
    return names, np.array([numbers(row, "covariance", len(names)) for row in rows])


def _covariance(part: Part, names: list[str]) -> Array:
    """Return the covariance of some numbers, ln V_S instead of V_S."""
    known, told = told_covariance(part)
    if set(names) <= set(known):
        at = [known.index(name) for name in names]
        result: Array = told[np.ix_(at, at)]
        return result
    deviations = [part.value(name).deviation / (part[name] if name == "V_S" else 1.0) for name in names]
    return np.diag(np.square(deviations))


def _moved(part: Part, names: list[str], step: Array) -> Part:
    """Return a part with its numbers moved by a step; ln V_S moves by at most one."""
    moves = dict(zip(names, step.tolist(), strict=True))
    if "V_S" in moves:
        moves["V_S"] = part["V_S"] * float(np.expm1(np.clip(moves["V_S"], -1.0, 1.0)))
    values = tuple(replace(own, value=own.value + moves.get(own.name, 0.0)) for own in part.values)
    return replace(part, values=values)
