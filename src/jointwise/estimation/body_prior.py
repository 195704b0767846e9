"""The prior of physically consistent bodies: the described ones, and simple shapes where nothing is described."""

from __future__ import annotations

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.estimation.least_squares import Problem, Solution
from jointwise.estimation.physical import BodyPrior
from jointwise.spatial import Array

THICKNESS = 0.1
"""Radius of gyration of a simple shape across its axis, in lengths of the longest link."""
THIN = 1e-2
"""Part of a simple shape of the same mass that a described body without extent (rod, point) is thickened by."""
FLAT = 1e-9
"""Eigenvalue of a pseudo-inertia, relative to the largest, up to which it counts as zero."""
MASS_TOLERANCE = 0.2
"""Relative standard deviation of a described mass; those of catalogues are right within 10 to 30 %."""
SHAPE_TOLERANCE = 1.0
"""That of the mass of a simple shape: known to a factor of two."""
SMALLEST_LENGTH = 0.1
"""m; longest link of an arm without link lengths."""


def body_prior(
    robot: Robot, payload: Payload | None, rotors: bool, projection: Array, problem: Problem, solution: Solution
) -> BodyPrior:
    """Return the prior bodies of a robot that carries a payload.

    A link with a described mass has its described body. Others get a rod of the length of the link whose density is
    that of the described links or, where none is described, such that all rods together need the torque of the data.

    Args:
        robot: The robot.
        payload: What the tool carries in the training data.
        rotors: Whether the model has rotor inertias.
        projection: P of β = P π, shape (base, standard).
        problem: The regression, whose first unknowns are the base parameters.
        solution: Its solution.

    Returns:
        The prior.

    Raises:
        EstimationError: A described body cannot exist; names the link.

    """
    described, rods = loaded_inertials(robot, payload), _rods(robot)
    known = described[:, 9] > 0.0
    if known.any():
        density = described[known, 9].sum() / rods[known, 9].sum()
    else:
        density = _density(rods, projection, problem, solution)
    bodies = np.where(known[:, None], described, density * rods)
    bodies = np.array([_thickened(body, rod) for body, rod in zip(bodies, rods, strict=True)])
    source = " and ".join(["described bodies"] * bool(known.any()) + ["simple shapes"] * (not known.all()))
    return BodyPrior(
        names=tuple(link.name for link in robot.links),
        inertials=bodies,
        rotors=np.where(robot.rotor_inertias > 0.0, robot.rotor_inertias, np.nan)[: robot.dof * rotors],
        regions=tuple(link.region for link in robot.links),
        source=source,
        mass_tolerance=np.where(known, MASS_TOLERANCE, SHAPE_TOLERANCE),
    )


def _rods(robot: Robot) -> Array:
    """Return rods of density 1 kg/m from each joint to the next, (links, 10)."""
    ends = np.vstack([robot.translations[1:], robot.tool_translation])
    lengths = np.linalg.norm(ends, axis=1)
    thickness = THICKNESS * max(float(lengths.max()), SMALLEST_LENGTH)
    masses = lengths + thickness
    spreads = np.einsum("ji,jk->jik", ends, ends) / 3.0 + thickness**2 * np.eye(3)
    return np.array([_body(m, 0.5 * end, S) for m, end, S in zip(masses, ends, spreads, strict=True)])


def _body(mass: float, center: Array, spread: Array) -> Array:
    """Return the ten parameters of a body with second moments m · spread (m²) about the origin of its frame."""
    J = np.empty((4, 4))
    J[:3, :3], J[:3, 3], J[3, :3], J[3, 3] = mass * spread, mass * center, mass * center, mass
    return spatial.from_pseudo_inertia(J)


def _thickened(body: Array, rod: Array) -> Array:
    """Return a body with some extent where it has none: pseudo-inertia positive definite if it was semidefinite."""
    J = spatial.pseudo_inertia(body)
    shape = spatial.pseudo_inertia(rod) * (body[9] / rod[9])
    inverse = np.linalg.inv(np.linalg.cholesky(shape))
    relative = np.linalg.eigvalsh(inverse @ J @ inverse.T)
    if abs(relative[0]) > FLAT * relative[-1]:
        return body
    return spatial.from_pseudo_inertia(J + THIN * shape)


def _density(rods: Array, projection: Array, problem: Problem, solution: Solution) -> float:
    """Return the density with which the torque of the rods is as large as that of the fitted bodies."""
    base = len(projection)
    R = problem.whole(solution.sigma)[:, :base]
    rod_torque = R @ projection[:, : rods.size] @ rods.ravel()
    fitted = R @ solution.values[:base]
    size = float(np.linalg.norm(rod_torque))
    return float(np.linalg.norm(fitted)) / size if size > 0.0 else 1.0
