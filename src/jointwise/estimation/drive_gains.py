"""Which gains a calibration uses, where they come from, and what it is worth to know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.description.payload import Payload, loaded_inertials
from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.estimation.coupled import Layout
from jointwise.estimation.factors import JointFactors, scaled_factors
from jointwise.estimation.fit import Fit, fit_structure
from jointwise.estimation.gains import GainEstimate, described_gains, estimate_gains, gain_slopes
from jointwise.estimation.problem import Problem
from jointwise.estimation.rivals import Moves
from jointwise.estimation.select import probe_structure
from jointwise.estimation.structure import Structure
from jointwise.spatial import Array


@dataclass(frozen=True)
class DriveGains:
    """Gains (joints,), Nm per unit of output, where they come from, and how sure they are.

    `covariance` (joints, joints) is that of their logarithms under the joint model in use, None where nothing was
    estimated; `rivals` (rivals, joints) are gains under other joint models.
    """

    values: Array
    source: str
    covariance: Array | None = None
    rivals: Array | None = None

    @property
    def estimated(self) -> bool:
        """Whether the data told at least one of them."""
        return self.covariance is not None

    def moves(self, fit: Fit) -> list[Moves]:
        """Return how far all parameters of a fit move with the doubt in the gains, and with those of the rivals."""
        if self.covariance is None:
            return []
        slopes = gain_slopes(fit.factors, fit.layout, fit.solution)
        sizes, ways = np.linalg.eigh(self.covariance)
        spread = ways * np.sqrt(np.maximum(sizes, 0.0) * len(sizes))  # the mean of its squares is the covariance
        moves = [Moves("drive gains", (slopes @ spread).T)]
        if self.rivals is not None:
            moves.append(Moves("joint model behind the drive gains", np.log(self.rivals / self.values) @ slopes.T))
        return moves


def drive_gains(
    problem: Problem,
    robot: Robot,
    output: str,
    given: Sequence[float] | None,
    source: str,
    payload: Payload | None = None,
) -> DriveGains:
    """Return Nm per unit of output and where the numbers come from.

    Torque needs none. For current: the user's, else the catalogue's, else estimated: ratios from the coupling of the
    joints, scale from the described bodies with the `payload`.
    """
    if output == "torque":
        return DriveGains(np.ones(robot.dof), "torque is measured")
    if given is not None:
        gains = np.asarray(given, dtype=float)
        if gains.shape != (robot.dof,) or not (gains > 0.0).all():
            raise EstimationError(f"gains must be {robot.dof} positive numbers in Nm/A. Got {given} instead.")
        return DriveGains(gains, source)
    known = catalogue_gains(robot)
    if not np.isnan(known).any():
        return DriveGains(known, f"description of {robot.name}")
    found = _under_probe(problem, robot, payload)
    return DriveGains(found.values, _source(problem, robot, found, payload), found.covariance)


def gains_again(
    problem: Problem, robot: Robot, structure: Structure, before: DriveGains, payload: Payload | None = None
) -> DriveGains:
    """Return estimated gains anew under the filters and the joint model that were chosen.

    Friction that grows with the load looks much like a gain, so the rivals are without it (or with it, where the
    model has none), and the simple model that filters are chosen by.
    """
    sample = problem.excerpt()
    found = _under_structure(sample, robot, structure, before.values, payload)
    other = replace(structure, load="square" if structure.load == "none" else "none")
    rivals = [
        _under_probe(sample, robot, payload).values,
        _under_structure(sample, robot, other, before.values, payload).values,
    ]
    return DriveGains(found.values, _source(problem, robot, found, payload), found.covariance, np.stack(rivals))


def catalogue_gains(robot: Robot) -> Array:
    """Return the described gains (joints,), Nm/A, NaN where none is."""
    return np.array([np.nan if (gain := joint.motor.joint_gain) is None else gain for joint in robot.joints])


def _under_probe(problem: Problem, robot: Robot, payload: Payload | None) -> GainEstimate:
    terms = probe_structure(problem).terms()
    return _estimate(problem, robot, problem.factors([terms] * robot.dof), problem.layout(terms), payload)


def _under_structure(
    problem: Problem, robot: Robot, structure: Structure, gains: Array, payload: Payload | None
) -> GainEstimate:
    fit = fit_structure(problem, structure, gains)
    return _estimate(problem, robot, scaled_factors(fit.factors, 1.0 / gains), fit.layout, payload)


def _estimate(
    problem: Problem, robot: Robot, factors: list[JointFactors], layout: Layout, payload: Payload | None
) -> GainEstimate:
    described = None
    if robot.inertials.any():
        bodies = _described_columns(problem, robot, payload)
        described = described_gains(factors, layout, bodies, _tool_columns(problem, robot))
    return estimate_gains(factors, layout, catalogue_gains(robot), described)


def _described_columns(problem: Problem, robot: Robot, payload: Payload | None) -> list[Array]:
    """Return how the rigid columns of each joint make its described torque, and that of a rotor nobody describes."""
    rotors = np.eye(robot.dof)
    bodies = _base(problem, loaded_inertials(robot, payload), robot.rotor_inertias)
    unknown = (robot.rotor_inertias == 0.0) & problem.bodies.rotors
    return [
        np.column_stack([bodies, *([_base(problem, 0.0 * robot.inertials, rotors[j])] if unknown[j] else [])])[which]
        for j, (_, which) in enumerate(problem.bodies.rigid_places)
    ]


def _tool_columns(problem: Problem, robot: Robot) -> list[Array]:
    """Return how the rigid columns of each joint make the torque of 1 kg at the tool."""
    inertials = loaded_inertials(robot, Payload(1.0)) - robot.inertials
    tool = _base(problem, inertials, np.zeros(robot.dof))
    return [tool[which] for _, which in problem.bodies.rigid_places]


def _base(problem: Problem, inertials: Array, rotors: Array) -> Array:
    """Return the base parameters of bodies (joints, 10) and reflected rotor inertias (joints,)."""
    parts = [inertials.ravel(), rotors] if problem.bodies.rotors else [inertials.ravel()]
    return problem.bodies.base.from_standard(np.concatenate(parts))


def _source(problem: Problem, robot: Robot, found: GainEstimate, payload: Payload | None) -> str:
    """Return in words where estimated gains come from, how sure they are, and what they assume."""
    known = ~np.isnan(catalogue_gains(robot))
    if not robot.inertials.any() and not known.any():
        return "ratios estimated; scale unknown: torques are in units of the mean gain"
    doubt = ", ".join(f"{100.0 * own:.0f}" for own in np.sqrt(np.diag(found.covariance)))
    told = f"estimated (standard deviations {doubt} %)"
    if known.any():
        return f"{told} beside the known ones"
    carried = "no payload" if payload is None else f"a payload of {payload.mass:g} kg"
    doubtful = ""
    if found.missing > 0.0:
        doubtful = f", which the data contradict by about {found.missing:.2g} kg at the tool: is the payload given?"
    return f"{told}; their scale assumes the described bodies and {carried}{doubtful}"
