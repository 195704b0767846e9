"""All columns that candidate structures use, computed once; a candidate is a subset of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.estimation.factors import Index, JointMoments
from jointwise.estimation.least_squares import Layout, QuickProblem, quick_weighted_fit
from jointwise.estimation.regression import Regression
from jointwise.estimation.structure import Structure, element_shapes
from jointwise.model.terms import Coulomb, Hysteresis, Inertia, Offset, SpeedRipple, Stribeck, Term, Viscous
from jointwise.spatial import Array, Mask

Key = tuple[object, ...]
Entry = tuple[Key, Term]


@dataclass(frozen=True)
class Menu:
    """The values that a selection chooses from.

    Attributes:
        limits: Deformation limits of slip elements, rad.
        powers: Sets of powers of viscous friction.
        relaxations: Relaxation times of slip elements, s; 0 for none.
        stribeck: Stribeck velocities, rad/s; 0 for none.
        width: Speed over which dry friction without memory changes its sign, rad/s.
        extra: Further terms.
    """

    limits: tuple[float, ...]
    powers: tuple[tuple[float, ...], ...]
    relaxations: tuple[float, ...]
    stribeck: tuple[float, ...]
    width: float
    extra: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Dictionary:
    """Second moments of [Y_b | every column | y] of each joint by fold, and where the columns of each key are.

    Attributes:
        joints: Second moments of every joint.
        rigid: Base parameters that act on each joint, as indices.
        base: Number of base parameters.
        columns: Columns of every key, counted from the first one after Y_b.
        bound: Which of these columns have a parameter that may not be negative, (columns,).
    """

    joints: list[JointMoments]
    rigid: list[Index]
    base: int
    columns: dict[Key, list[int]]
    bound: Mask

    def select(self, structure: Structure) -> QuickProblem:
        """Return the regression with the columns that a structure uses."""
        chosen = np.array([k for key in keys_of(structure) for k in self.columns[key]], dtype=np.intp)
        joints, index = [], []
        for j, (joint, which) in enumerate(zip(self.joints, self.rigid, strict=True)):
            joints.append(joint.columns(np.concatenate([np.arange(len(which)), len(which) + chosen])))
            index.append(np.concatenate([which, self.base + j * len(chosen) + np.arange(len(chosen))]))
        bound = np.concatenate([np.zeros(self.base, dtype=bool), np.tile(self.bound[chosen], len(self.joints))])
        return QuickProblem(joints, Layout(index, bound))

    def residual_deviations(self, structure: Structure) -> Array:
        """Return the residual standard deviation of each joint under a structure, Nm."""
        return quick_weighted_fit(self.select(structure))[1]

    def base_parameters(self, structure: Structure) -> Array:
        """Return the base parameters (base,) under a structure."""
        return quick_weighted_fit(self.select(structure))[0][: self.base]


def keys_of(structure: Structure) -> list[Key]:
    """Return the keys of the columns of a structure, in the order of its terms."""
    keys: list[Key] = [("offset",)] if structure.offset else []
    keys += [("inertia",)] if structure.rotor_side else []
    keys += [("viscous", power) for power in structure.powers]
    keys += [("stribeck", structure.stribeck)] if structure.stribeck else []
    keys += _dry_keys(structure)
    keys += [("ripple",)] if structure.ripple else []
    return [*keys, *(("extra", kind) for kind in structure.extra)]


def _dry_keys(structure: Structure) -> list[Key]:
    """Return the keys of dry friction: slip elements of every driver, or Coulomb friction."""
    loaded, keys = structure.load != "none", list[Key]()
    if structure.direction != "hysteresis":
        return [("dry", structure.direction), *([("load", structure.load, structure.direction)] if loaded else [])]
    for driver in structure.drivers:
        keys.append(("slip", driver, structure.relaxation))
        keys += [("load", structure.load, driver)] if loaded else []
    return keys


def plain_dictionary(regression: Regression, gains: Array, menu: Menu) -> Dictionary:
    """Return the dictionary of everything that needs no load torque."""
    entries = list(_plain_entries(regression, menu))
    terms = [term for _, term in entries]
    columns, start = {}, 0
    for key, term in entries:
        columns[key] = list(range(start, start + len(term.parameters())))
        start += len(term.parameters())
    problem = regression.quick_problem([terms] * regression.bodies.robot.dof)
    return _dictionary(regression, problem.scaled(gains), columns)


def _plain_entries(regression: Regression, menu: Menu) -> Iterator[Entry]:
    """Yield every term that does not depend on the load, with its key."""
    yield ("offset",), Offset()
    if regression.bodies.rotor_side:
        yield ("inertia",), Inertia()
    yield from _steady_entries(menu)
    for driver in drivers_of(regression):
        for time in menu.relaxations:
            yield ("slip", driver, time), Hysteresis(menu.limits, time, driver)
    if regression.has_speed:
        yield ("ripple",), SpeedRipple(regression.period)
    for term in menu.extra:
        yield ("extra", term.kind), term


def _steady_entries(menu: Menu) -> Iterator[Entry]:
    """Yield viscous, Stribeck and Coulomb friction."""
    for power in sorted({power for group in menu.powers for power in group}):
        yield ("viscous", power), Viscous((power,))
    for velocity in menu.stribeck:
        if velocity > 0.0:
            yield ("stribeck", velocity), Stribeck(velocity, width=menu.width)
    for direction in ("sign", "tanh"):
        yield ("dry", direction), Coulomb("none", direction, menu.width)


def drivers_of(regression: Regression) -> list[str]:
    """Return the positions that can drive hysteresis: link, tracked and rotor position, as far as measured."""
    measured = {"q": True, "track": regression.has_speed, "rotor": regression.has_rotor}
    return [driver for driver, there in measured.items() if there]


def load_dictionary(
    regression: Regression, gains: Array, structure: Structure, plain: Dictionary, dependences: Sequence[str]
) -> Dictionary:
    """Return the dictionary of a structure with the load-dependent columns of each dependence added.

    The load torque is that of the fit without load dependence.
    """
    problem = plain.select(structure)
    values = quick_weighted_fit(problem)[0]
    friction = values[plain.base :].reshape(len(problem.joints), -1)
    terms = [_loaded_terms(structure, joint, dependences) for joint in friction]
    columns, start = {}, 0
    for key, size in _loaded_layout(structure, dependences):
        columns[key] = list(range(start, start + size))
        start += size
    loaded = regression.quick_problem(terms, lambda rigid: regression.bodies.load_torque(rigid, values))
    return _dictionary(regression, loaded.scaled(gains), columns)


def _loaded_terms(structure: Structure, values: Array, dependences: Sequence[str]) -> list[Term]:
    """Return the plain terms of a structure, then its dry friction again for every dependence on load."""
    terms = list(structure.terms())
    if structure.direction != "hysteresis":
        return terms + [Coulomb(load, structure.direction, structure.width) for load in dependences]
    shapes = element_shapes(structure.terms(), values)
    return terms + [
        Hysteresis(structure.limits, structure.relaxation, driver, load, shape)
        for load in dependences
        for driver, shape in zip(structure.drivers, shapes, strict=True)
    ]


def _loaded_layout(structure: Structure, dependences: Sequence[str]) -> list[tuple[Key, int]]:
    """Return keys and widths of the columns of `_loaded_terms`; of a repeated term only the last column is used."""
    elements = len(structure.limits)
    widths: dict[Key, int] = {("extra", term.kind): len(term.parameters()) for term in structure.extra_terms()}
    common = {"slip": elements, "ripple": 3}
    layout: list[tuple[Key, int]] = [(k, widths.get(k, common.get(str(k[0]), 1))) for k in keys_of(structure)]
    slips = structure.direction == "hysteresis"
    sources = structure.drivers if slips else (structure.direction,)
    for load in dependences:
        for source in sources:
            layout += [(("again", load, source), elements if slips else 1), (("load", load, source), 1)]
    return layout


def _dictionary(regression: Regression, problem: QuickProblem, columns: dict[Key, list[int]]) -> Dictionary:
    """Return the dictionary of the columns of a problem in Nm."""
    rigid, base = [which for _, which in regression.bodies.rigid_index], regression.bodies.base.count
    count = sum(len(indices) for indices in columns.values())
    return Dictionary(problem.folded().joints, rigid, base, columns, problem.layout.bound[base : base + count])
