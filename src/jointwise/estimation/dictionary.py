"""All columns that candidates may want, computed once; a candidate is a subset of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.estimation.coupled import Layout, weighted_least_squares
from jointwise.estimation.factors import Index, JointFactors, scaled_factors
from jointwise.estimation.problem import Problem
from jointwise.estimation.solve import Mask
from jointwise.estimation.structure import Structure, element_shapes
from jointwise.model.terms import Coulomb, Hysteresis, Offset, SpeedRipple, Stribeck, Term, Viscous
from jointwise.spatial import Array

Key = tuple[object, ...]


@dataclass(frozen=True)
class Dictionary:
    """Factors of [Y_b | every column | y] of each joint by fold, and where the columns of each key are.

    `rigid` are the base parameters (of `base` in all) that act on each joint. `places` count from the first
    column after Y_b; `bound` tells which of those may not be negative.
    """

    factors: list[JointFactors]
    rigid: list[Index]
    base: int
    places: dict[Key, list[int]]
    bound: Mask

    def select(self, structure: Structure) -> tuple[list[JointFactors], Layout]:
        """Return factors of the columns that a structure uses, and their layout."""
        own = np.array([place for key in keys_of(structure) for place in self.places[key]], dtype=np.intp)
        chosen, index = [], []
        for j, (factors, which) in enumerate(zip(self.factors, self.rigid, strict=True)):
            chosen.append(factors.columns(np.concatenate([np.arange(len(which)), len(which) + own])))
            index.append(np.concatenate([which, self.base + j * len(own) + np.arange(len(own))]))
        bound = np.concatenate([np.zeros(self.base, dtype=bool), np.tile(self.bound[own], len(self.factors))])
        return chosen, Layout(index, bound)

    def spread(self, structure: Structure) -> Array:
        """Return the residual standard deviation of each joint under a structure, Nm."""
        return weighted_least_squares(*self.select(structure)).sigma


def keys_of(structure: Structure) -> list[Key]:
    """Return the keys of the columns of a structure, in the order of its terms."""
    keys: list[Key] = [("offset",)] if structure.offset else []
    keys += [("viscous", power) for power in structure.powers]
    keys += [("stribeck", structure.stribeck)] if structure.stribeck else []
    if structure.direction == "hysteresis":
        for driver in structure.drivers:
            keys.append(("slip", driver, structure.relaxation))
            keys += [("load", structure.load, driver)] if structure.load != "none" else []
    else:
        keys.append(("dry", structure.direction))
        keys += [("load", structure.load, structure.direction)] if structure.load != "none" else []
    keys += [("ripple",)] if structure.ripple else []
    return keys


def plain_dictionary(
    problem: Problem,
    gains: Array,
    limits: tuple[float, ...],
    powers: Sequence[tuple[float, ...]],
    relaxations: Sequence[float],
    stribeck: Sequence[float],
    width: float,
) -> Dictionary:
    """Return the dictionary of everything that needs no load torque."""
    entries: list[tuple[Key, Term]] = [(("offset",), Offset())]
    entries += [(("viscous", p), Viscous((p,))) for p in sorted({p for group in powers for p in group})]
    entries += [(("stribeck", v), Stribeck(v, width=width)) for v in stribeck if v > 0.0]
    entries += [(("dry", way), Coulomb("none", way, width)) for way in ("sign", "tanh")]
    drivers = ("q", *(("track",) if problem.has_speed else ()), *(("rotor",) if problem.has_rotor else ()))
    entries += [(("slip", own, time), Hysteresis(limits, time, own)) for own in drivers for time in relaxations]
    if problem.has_speed:
        entries.append((("ripple",), SpeedRipple(problem.period)))
    terms = [term for _, term in entries]
    places, place = {}, 0
    for key, term in entries:
        places[key] = list(range(place, place + len(term.parameters())))
        place += len(term.parameters())
    factors = scaled_factors(problem.factors([terms] * problem.bodies.robot.dof), gains)
    return _dictionary(problem, factors, places, terms)


def load_dictionary(
    problem: Problem, gains: Array, structure: Structure, plain: Dictionary, dependences: Sequence[str]
) -> Dictionary:
    """Return the dictionary of a structure with the load-dependent columns of each dependence added.

    The load torque is that of the fit without load dependence.
    """
    factors, layout = plain.select(structure)
    values = weighted_least_squares(factors, layout).values
    own = (layout.count - plain.base) // len(factors)
    joints = [values[plain.base + j * own : plain.base + (j + 1) * own] for j in range(len(factors))]
    terms = [_loaded_terms(structure, x, dependences) for x in joints]
    places, place = {}, 0
    for key, size in _loaded_layout(structure, dependences):
        places[key] = list(range(place, place + size))
        place += size
    loaded = problem.factors(terms, lambda rigid: problem.bodies.load_torque(rigid, values))
    return _dictionary(problem, scaled_factors(loaded, gains), places, terms[0])


def _loaded_terms(structure: Structure, values: Array, dependences: Sequence[str]) -> list[Term]:
    """Return the plain terms of a structure, then its dry friction again for every dependence."""
    terms = list(structure.terms())
    if structure.direction != "hysteresis":
        return terms + [Coulomb(own, structure.direction, structure.width) for own in dependences]
    shapes = element_shapes(structure.terms(), values)
    return terms + [
        Hysteresis(structure.limits, structure.relaxation, driver, own, shape)
        for own in dependences
        for driver, shape in zip(structure.drivers, shapes, strict=True)
    ]


def _loaded_layout(structure: Structure, dependences: Sequence[str]) -> list[tuple[Key, int]]:
    """Return keys and widths of the columns of `_loaded_terms`; of a repeated term only the last column is wanted."""
    elements = len(structure.limits)
    widths = {"slip": elements, "ripple": 3}
    layout: list[tuple[Key, int]] = [(key, widths.get(str(key[0]), 1)) for key in keys_of(structure)]
    slips = structure.direction == "hysteresis"
    sources = structure.drivers if slips else (structure.direction,)
    for own in dependences:
        for source in sources:
            layout += [(("again", own, source), elements if slips else 1), (("load", own, source), 1)]
    return layout


def _dictionary(
    problem: Problem, factors: list[JointFactors], places: dict[Key, list[int]], terms: Sequence[Term]
) -> Dictionary:
    rigid = [which for _, which in problem.bodies.rigid_places]
    bound = np.array([parameter.non_negative for term in terms for parameter in term.parameters()])
    return Dictionary([own.folded() for own in factors], rigid, problem.bodies.base.count, places, bound)
