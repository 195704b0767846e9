"""The prior of physically consistent bodies: the described ones, and simple shapes where nothing is described."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise import spatial
from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.errors import EstimationError
from jointwise.estimation.least_squares import Problem, Solution
from jointwise.estimation.semidefinite import symmetric
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


@dataclass(frozen=True)
class BodyPrior:
    """Prior knowledge of the bodies.

    Attributes:
        names: Names of the links.
        inertials: Prior bodies, (links, 10), in the order of `spatial.INERTIAL_NAMES`, SI units.
        rotors: Reflected rotor inertias, (links,), kg m²; NaN where unknown, empty if the model has none.
        regions: Box that contains the centre of mass of each link, (2, 3), m; None where unknown.
        source: Origin of the bodies, as text.
        mass_tolerance: Relative standard deviation of the masses, (links,).

    """

    names: tuple[str, ...]
    inertials: Array
    rotors: Array
    regions: tuple[Array | None, ...]
    source: str
    mass_tolerance: Array

    @property
    def described_masses(self) -> Array:
        """Masses of the description (links,), kg; NaN where the prior is a simple shape."""
        return np.where(self.mass_tolerance < 1.0, self.inertials[:, 9], np.nan)

    def from_relative(self) -> Array:
        """Return the matrix from (entries of Q_j, relative rotor inertias) to standard parameters; block diagonal.

        Q_j is the pseudo-inertia of link j relative to its prior: ``J_j = C_j Q_j C_jᵀ``, with ``C_j C_jᵀ`` the prior.
        """
        links, rotors = len(self.names), len(self.rotors)
        B = np.zeros((10 * links + rotors, 10 * links + rotors))
        for j, inertial in enumerate(self.inertials):
            C = np.linalg.cholesky(spatial.pseudo_inertia(inertial))
            for k, unit in enumerate(np.eye(10)):
                B[10 * j : 10 * j + 10, 10 * j + k] = spatial.from_pseudo_inertia(C @ symmetric(unit) @ C.T)
        B[10 * links :, 10 * links :] = np.diag(np.where(np.isnan(self.rotors), 1.0, self.rotors))
        return B

    def __post_init__(self) -> None:
        """Reject a prior that contradicts itself, with the name of the link."""
        for name, inertial, region in zip(self.names, self.inertials, self.regions, strict=True):
            smallest = float(np.linalg.eigvalsh(spatial.pseudo_inertia(inertial))[0])
            if not smallest > 0.0:
                raise EstimationError(
                    f"link '{name}': the described body cannot exist (smallest eigenvalue of its pseudo-inertia "
                    f"{smallest:.3g}). Correct or remove it, or calibrate without physical parameters (--no-physical)."
                )
            center = inertial[6:9] / inertial[9]
            if region is not None and not (np.all(center >= region[0]) and np.all(center <= region[1])):
                point, low, high = (f"({', '.join(f'{c:.3g}' for c in p + 0.0)})" for p in (center, *region))
                raise EstimationError(
                    f"link '{name}': the described centre of mass {point} m lies outside the region described for it, "
                    f"{low} to {high} m (all in the frame of the joint). Correct one of them, or use --no-physical."
                )


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
    _check_masses(robot, described[:, 9])
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


def _check_masses(robot: Robot, masses: Array) -> None:
    """Reject described masses (links,), kg, below zero; zero means that no body is described."""
    for link, mass in zip(robot.links, masses, strict=True):
        if mass < 0.0:
            raise EstimationError(
                f"link '{link.name}': the described body cannot exist (mass {mass:.4g} kg). Correct or remove it, or "
                "calibrate without physical parameters (--no-physical)."
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
