"""Which gains a calibration uses, where they come from, and what it is worth to know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.estimation.coupled import Layout, weighted_least_squares
from jointwise.estimation.factors import JointFactors, fold_edges, scaled_factors
from jointwise.estimation.gains import gain_scale, relative_gains
from jointwise.estimation.problem import Problem
from jointwise.estimation.rivals import Moves
from jointwise.estimation.select import probe_structure
from jointwise.estimation.structure import Structure, element_shapes
from jointwise.spatial import Array


def drive_gains(
    problem: Problem, robot: Robot, output: str, given: Sequence[float] | None, source: str
) -> tuple[Array, str]:
    """Return Nm per unit of output and where the numbers come from.

    Torque needs none. For current: the user's, else the catalogue's, else estimated: ratios from the coupling of the
    joints, scale from the nominal bodies.
    """
    if output == "torque":
        return np.ones(robot.dof), "torque is measured"
    if given is not None:
        gains = np.asarray(given, dtype=float)
        if gains.shape != (robot.dof,) or not (gains > 0.0).all():
            raise EstimationError(f"gains must be {robot.dof} positive numbers in Nm/A. Got {given} instead.")
        return gains, source
    known = described_gains(robot)
    if not np.isnan(known).any():
        return known, f"description of {robot.name}"
    return _estimated_gains(problem, robot, known)


def _estimated_gains(problem: Problem, robot: Robot, known: Array) -> tuple[Array, str]:
    terms = probe_structure(problem).terms()
    gains = _scaled_gains(problem, robot, problem.factors([terms] * robot.dof), problem.layout(terms), known)
    if not np.isnan(known).all():
        return gains, "estimated beside the known ones"
    if not _nominal_base(problem, robot).any():
        return gains, "ratios estimated; scale unknown: torques are in units of the mean gain"
    return gains, "estimated; scale from the nominal bodies"


def _scaled_gains(problem: Problem, robot: Robot, factors: list[JointFactors], layout: Layout, known: Array) -> Array:
    """Return the gains that some factors tell: ratios, and the scale from known gains or else the nominal bodies."""
    gains = relative_gains(factors, layout, known)
    nominal = _nominal_base(problem, robot)
    if not np.isnan(known).all() or not nominal.any():
        return gains
    places = [which for _, which in problem.bodies.rigid_places]
    values = weighted_least_squares(scaled_factors(factors, gains), layout).values
    rigid = [own.merged()[:, : len(which)] for own, which in zip(factors, places, strict=True)]
    return gains * gain_scale(rigid, places, values, nominal)


def _nominal_base(problem: Problem, robot: Robot) -> Array:
    """Return the described base parameters, zero where no bodies are described."""
    standard = robot.inertials.ravel()
    if problem.bodies.rotors:
        standard = np.concatenate([standard, robot.rotor_inertias])
    return problem.bodies.base.from_standard(standard)


def gain_moves(problem: Problem, robot: Robot, gains: Array, structure: Structure) -> list[Moves]:
    """Return how far the bodies move with gains that are estimated.

    Without each fold (jackknife), under the structure that was chosen, and with friction that grows with the load.
    """
    known, sample = described_gains(robot), problem.excerpt()
    bodies = partial(_bodies_under, sample)
    own = probe_structure(sample).terms()
    factors, layout = sample.factors([own] * robot.dof), sample.layout(own)
    folds = fold_edges(len(factors[0].triangles))
    left = [_scaled_gains(sample, robot, [f.without(fold) for f in factors], layout, known) for fold in folds]
    start = bodies(factors, layout, gains)
    steps = np.stack([bodies(factors, layout, other) - start for other in left])
    spread = np.sqrt(len(folds) - 1.0) * (steps - steps.mean(axis=0))  # the jackknife's variance as a mean of squares
    plain = structure.without_load().terms()
    rivals = [
        _scaled_gains(sample, robot, sample.factors([plain] * robot.dof), sample.layout(plain), known),
        _scaled_gains(sample, robot, *_under_load(sample, scaled_factors(factors, gains)), known),
    ]
    moved = [Moves("drive gains", (bodies(factors, layout, other) - start)[None]) for other in rivals]
    return [Moves("drive gains", spread), *moved]


def _under_load(problem: Problem, factors: list[JointFactors]) -> tuple[list[JointFactors], Layout]:
    """Return factors and layout of the probe with friction that grows with the load, which looks much like a gain."""
    probe = probe_structure(problem)
    joints, base, layout = problem.bodies.robot.dof, problem.bodies.base.count, problem.layout(probe.terms())
    values = weighted_least_squares(factors, layout).values
    shapes = [element_shapes(probe.terms(), part) for part in values[base:].reshape(joints, -1)]
    terms = [replace(probe, load="square").terms(shape) for shape in shapes]
    loaded = problem.factors(terms, lambda rigid: problem.bodies.load_torque(rigid, values))
    return loaded, problem.layout(terms[0])


def _bodies_under(problem: Problem, factors: list[JointFactors], layout: Layout, gains: Array) -> Array:
    values = weighted_least_squares(scaled_factors(factors, gains), layout).values
    return values[: problem.bodies.base.count]


def described_gains(robot: Robot) -> Array:
    """Return the described gains (joints,), Nm/A, NaN where none is."""
    return np.array([np.nan if (gain := joint.motor.joint_gain) is None else gain for joint in robot.joints])
