"""The drive gains of a calibration: from the user, the description or the data, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.errors import EstimationError
from jointwise.estimation.fit import Fit, fit_structure
from jointwise.estimation.gains import GainEstimate, described_gains, estimate_gains, gain_slopes
from jointwise.estimation.least_squares import Problem
from jointwise.estimation.regression import Regression
from jointwise.estimation.select_filters import probe_structure
from jointwise.estimation.structure import Structure
from jointwise.estimation.uncertainty import Alternatives
from jointwise.spatial import Array

EQUAL = 0.5
"""Probability of the other joint model behind the gains: gains do not distinguish the two models."""


@dataclass(frozen=True)
class DriveGains:
    """Drive gains, where they come from, and how certain they are.

    Attributes:
        values: Nm per unit of output, shape (joints,).
        source: Where they come from, in words.
        covariance: Covariance of their logarithms, shape (joints, joints); None where nothing was estimated.
        others: Gains under other joint models, shape (models, joints); None where there are none.
        missing: Mass (kg) at the tool by which the data contradict the bodies that the scale was taken from.
        scale_known: Whether they are in Nm; otherwise only their ratios are known, and their geometric mean is 1.

    """

    values: Array
    source: str
    covariance: Array | None = None
    others: Array | None = None
    missing: float = 0.0
    scale_known: bool = True

    @property
    def estimated(self) -> bool:
        """Whether at least one of them was estimated from the data."""
        return self.covariance is not None

    def alternatives(self, fit: Fit) -> list[Alternatives]:
        """Return how the parameters of a fit change with the uncertainty of the gains, and with the other gains."""
        if self.covariance is None:
            return []
        slopes = gain_slopes(fit.problem, fit.solution)
        sizes, directions = np.linalg.eigh(self.covariance)
        spread = directions * np.sqrt(np.maximum(sizes, 0.0) * len(sizes))  # mean of squares: the covariance
        found = [Alternatives("drive gains", (slopes @ spread).T, cause="drive gains")]
        if self.others is not None:
            steps = np.log(self.others / self.values) @ slopes.T
            found.append(
                Alternatives("joint model behind the drive gains", steps, np.full(len(steps), EQUAL), "drive gains")
            )
        return found


def drive_gains(
    regression: Regression,
    robot: Robot,
    output: str,
    user: Sequence[float] | None,
    source: str,
    payload: Payload | None = None,
) -> DriveGains:
    """Return Nm per unit of output and where the numbers come from.

    A measured torque needs none. For current: those of the user, else of the description, else estimated: ratios from
    the coupling of the joints, scale from the described bodies with the `payload`.
    """
    if output == "torque":
        return DriveGains(np.ones(robot.dof), "torque is measured")
    if user is not None:
        gains = np.asarray(user, dtype=float)
        if gains.shape != (robot.dof,) or not (gains > 0.0).all():
            raise EstimationError(f"gains must be {robot.dof} positive numbers in Nm/A. Got {user} instead.")
        return DriveGains(gains, source)
    known = catalogue_gains(robot)
    needless = np.isin(np.arange(robot.dof), regression.ignored) & np.isnan(known)
    if needless.any() and not np.isnan(known[~needless]).any():
        known[needless] = np.exp(np.mean(np.log(known[~needless])))  # a gain without output: never used
    if not np.isnan(known).any():
        return DriveGains(known, f"description of {robot.name}")
    found = _under_probe(regression, robot, payload)
    source = _source(regression, robot, found, payload)
    known_scale = _scale_known(robot)
    return DriveGains(found.values, source, found.covariance, missing=found.missing, scale_known=known_scale)


def known_gains(robot: Robot, output: str, user: Sequence[float] | None) -> Array | None:
    """Return the drive gains that need not be estimated, (joints,); None where there are none.

    A torque has the gain 1; gains of the user replace those of the description.
    """
    if output == "torque":
        return np.ones(robot.dof)
    gains = catalogue_gains(robot) if user is None else np.asarray(user, dtype=float)
    return None if np.isnan(gains).any() or gains.shape != (robot.dof,) else gains


def gains_again(
    regression: Regression, robot: Robot, structure: Structure, before: DriveGains, payload: Payload | None = None
) -> DriveGains:
    """Return estimated gains anew under the filters and the joint model that were chosen.

    Friction that grows with the load resembles a gain, so the other model is one without it (or with it, where the
    structure has none).
    """
    sample = regression.excerpt()
    found = _under_structure(sample, robot, structure, before.values, payload)
    other = replace(structure, load="square" if structure.load == "none" else "none")
    others = [_under_structure(sample, robot, other, before.values, payload).values]
    source = _source(regression, robot, found, payload)
    return DriveGains(found.values, source, found.covariance, np.stack(others), found.missing, _scale_known(robot))


def catalogue_gains(robot: Robot) -> Array:
    """Return the described gains (joints,), Nm/A, NaN where none is."""
    return np.array([np.nan if (gain := joint.motor.joint_gain) is None else gain for joint in robot.joints])


def _under_probe(regression: Regression, robot: Robot, payload: Payload | None) -> GainEstimate:
    return _estimate(regression, robot, regression.problem([probe_structure(regression).terms()] * robot.dof), payload)


def _under_structure(
    regression: Regression, robot: Robot, structure: Structure, gains: Array, payload: Payload | None
) -> GainEstimate:
    fit = fit_structure(regression, structure, gains)
    return _estimate(regression, robot, fit.problem.scaled(1.0 / gains), payload)


def _estimate(regression: Regression, robot: Robot, problem: Problem, payload: Payload | None) -> GainEstimate:
    described = None
    if robot.inertials.any():
        bodies = _described_columns(regression, robot, payload)
        described = described_gains(problem, bodies, _tool_columns(regression, robot))
    return estimate_gains(problem, catalogue_gains(robot), described)


def _described_columns(regression: Regression, robot: Robot, payload: Payload | None) -> list[Array]:
    """Return how the rigid columns of each joint make its described torque, and that of an undescribed rotor."""
    rotors = np.eye(robot.dof)
    bodies = _base(regression, loaded_inertials(robot, payload), robot.rotor_inertias)
    unknown = (robot.rotor_inertias == 0.0) & regression.bodies.rotors
    return [
        np.column_stack([bodies, *([_base(regression, 0.0 * robot.inertials, rotors[j])] if unknown[j] else [])])[which]
        for j, (_, which) in enumerate(regression.bodies.rigid_index)
    ]


def _tool_columns(regression: Regression, robot: Robot) -> list[Array]:
    """Return how the rigid columns of each joint make the torque of 1 kg at the tool."""
    inertials = loaded_inertials(robot, Payload(1.0)) - robot.inertials
    tool = _base(regression, inertials, np.zeros(robot.dof))
    return [tool[which] for _, which in regression.bodies.rigid_index]


def _base(regression: Regression, inertials: Array, rotors: Array) -> Array:
    """Return the base parameters of bodies (joints, 10) and reflected rotor inertias (joints,)."""
    parts = [inertials.ravel(), rotors] if regression.bodies.rotors else [inertials.ravel()]
    return regression.bodies.base.from_standard(np.concatenate(parts))


def _scale_known(robot: Robot) -> bool:
    """Return whether described bodies or a described gain give the scale of estimated gains."""
    return bool(robot.inertials.any() or not np.isnan(catalogue_gains(robot)).all())


def _source(regression: Regression, robot: Robot, found: GainEstimate, payload: Payload | None) -> str:
    """Return in words where estimated gains come from, their standard errors, and what they assume."""
    known = ~np.isnan(catalogue_gains(robot))
    if not _scale_known(robot):
        return "ratios estimated; scale unknown: torques are in units of the mean gain"
    errors = ", ".join(f"{100.0 * error:.0f}" for error in np.sqrt(np.diag(found.covariance)))
    estimated = f"estimated (standard errors {errors} %)"
    if known.any():
        return f"{estimated} beside the known ones"
    carried = "no payload" if payload is None else f"a payload of {payload.mass:g} kg"
    warning = ""
    if found.missing > 0.0:
        warning = f", which the data contradict by about {found.missing:.2g} kg at the tool: is the payload given?"
    return f"{estimated}; their scale assumes the described bodies and {carried}{warning}"
