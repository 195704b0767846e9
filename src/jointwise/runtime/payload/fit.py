"""Least squares of the ten parameters of a payload on the rows of logs, with their covariance.

``y - W β = Y_tool π + W L z + s f``: β are the parameters of the arm without payload, π those of the payload in the
tool frame. β has the covariance ``L Lᵀ`` of the calibration, so z has zero mean and unit variance: the logs correct
what the training data left uncertain, such as the growth of friction with a load that they did not contain. s is the
change of the friction f of every joint and moving log (joints warm up between logs). Y_tool is a combination of the
columns of base parameters, ``Y_tool = Y_b P_last T``, so the factors [W | y] of a log are all that is needed.

With H the normal matrix including the precision Λ of the prior, the covariance is the block jackknife over moving logs,
plus static friction of poses at rest ``H⁻¹ A_rᵀ A_r H⁻¹``, plus the prior ``H⁻¹ Λ H⁻¹``, plus that of the drive
gains: an error of a gain scales the torque of the payload at its joint. It is not estimated, as the logs cannot
separate it from the mass. Where residuals are larger than those of the training data, all is scaled by their ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise import spatial
from jointwise.estimation.bounded import RIDGE
from jointwise.estimation.factors import JointFactors
from jointwise.estimation.jackknife import student_factor
from jointwise.model.terms import Offset
from jointwise.result.calibration import Calibration
from jointwise.runtime.motion import term_values
from jointwise.runtime.payload.rows import LogRows
from jointwise.spatial import Array

GYRATION = 0.1
"""Radius of gyration (m) that an inertia about the centre of mass is expected to have at most, one standard deviation:
that of grippers and workpieces on robots of this size."""
FRICTION_CHANGE = 0.2
"""Standard deviation of the relative change of friction between logs: it falls by about that in a warm-up."""
GAIN_ERROR = 0.01
"""Standard deviation of the relative error of drive gains: the spread of torque constants of motors of one type."""
PASSES = 6
"""Passes over weights and prior; they settle in three."""
SMALLEST_VARIANCE = 1e-10
"""Part of the largest variance (in standard errors) below which a direction of the parameters is exact."""
LIGHTEST = 0.05
"""Mass (kg) whose inertia the prior allows at least, so that it does not vanish with the mass."""


@dataclass(frozen=True, eq=False)
class PayloadFit:
    """Fit of a payload to the rows of some logs.

    Attributes:
        inertial: Parameters π in the tool frame, (10,): XX XY XZ YY YZ ZZ in kg m², mX mY mZ in kg m, m in kg.
        covariance: Their covariance, (10, 10).
        factor: Half-width of a 95 % confidence interval per standard error (Student).
        friction: Relative change of friction in each moving log, (logs, joints).
        residual: Residual standard deviation, (logs, joints), Nm.
        columns: Weighted columns of π of all logs, (rows, 10).
    """

    inertial: Array
    covariance: Array
    factor: float
    friction: Array
    residual: Array
    columns: Array


def fit_payload(calibration: Calibration, logs: Sequence[LogRows], *, prior: bool = True) -> PayloadFit:
    """Return the fit of a payload on the rows of logs.

    Args:
        calibration: The calibrated model of the arm without payload.
        logs: Rows of every log.
        prior: Whether the inertia about the centre of mass has the prior of `GYRATION`.

    """
    system = _System(calibration, tuple(logs), _deviation_factor(calibration.estimate.covariance))
    sigma: Array = system.first_deviations()
    x: Array = np.zeros(system.unknowns)
    for _ in range(PASSES):
        precision, mean = system.prior(x[:10], prior)
        H, g = system.normal(sigma)
        H += np.diag(precision)
        x = np.asarray(np.linalg.solve(H, g + precision * mean))
        sigma = system.deviations(x)
    covariance, factor = system.covariance(x, sigma, H, precision)
    columns = np.vstack([A[:, :10] for A, _ in system.blocks(sigma)])
    friction = x[system.changes].reshape(len(logs), -1)
    return PayloadFit(x[:10], covariance[:10, :10], factor, friction, system.residuals(x), columns)


def _deviation_factor(covariance: Array) -> Array:
    """Return L with ``L Lᵀ`` the covariance, (parameters, rank)."""
    deviation = np.sqrt(np.diag(covariance))
    scale = np.where(deviation > 0.0, deviation, 1.0)
    sizes, directions = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = sizes > SMALLEST_VARIANCE * max(float(sizes[-1]), 0.0)
    result: Array = scale[:, None] * directions[:, kept] * np.sqrt(sizes[kept])
    return result


@dataclass(frozen=True, eq=False)
class _System:
    """The regression of π, changes of friction, and z on the rows of all logs; `spread` is L."""

    calibration: Calibration
    logs: tuple[LogRows, ...]
    spread: Array

    @property
    def unknowns(self) -> int:
        return int(self.changes.stop + self.spread.shape[1])

    @property
    def changes(self) -> slice:
        """The changes of friction among the unknowns."""
        return slice(10, 10 + len(self.logs) * self.calibration.model.robot.dof)

    def first_deviations(self) -> Array:
        trained = self.calibration.estimate.sigma
        return np.array([trained if rows.deviation is None else rows.deviation for rows in self.logs])

    def part(self, log: int, joint: int, R: Array) -> tuple[Array, Array]:
        """Return the columns of the unknowns and the rest of the output of one factor [W | y]."""
        model, values = self.calibration.model, self.calibration.estimate.values
        rigid, index = model.rigid_index[joint][1], model.joint_index(joint)
        A = np.zeros((len(R), self.unknowns))
        A[:, :10] = R[:, : len(rigid)] @ payload_columns(self.calibration)[rigid]
        if not self.logs[log].at_rest:
            A[:, 10 + log * model.robot.dof + joint] = R[:, len(rigid) : -1] @ friction_values(self.calibration, joint)
        A[:, self.changes.stop :] = R[:, :-1] @ self.spread[index]
        return A, R[:, -1] - R[:, :-1] @ values[index]

    def blocks(self, sigma: Array) -> list[tuple[Array, Array]]:
        """Return `part` of every block, all joints in one matrix, divided by their deviations."""
        result = []
        for k, rows in enumerate(self.logs):
            for b in range(rows.blocks):
                parts = [self.part(k, j, joint.triangles[b]) for j, joint in enumerate(rows.factors)]
                A = np.vstack([part[0] / sigma[k, j] for j, part in enumerate(parts)])
                result.append((A, np.concatenate([part[1] / sigma[k, j] for j, part in enumerate(parts)])))
        return result

    def normal(self, sigma: Array) -> tuple[Array, Array]:
        """Return AᵀA and Aᵀy."""
        blocks = self.blocks(sigma)
        H = sum((A.T @ A for A, _ in blocks), np.zeros((self.unknowns, self.unknowns)))
        return H, sum((A.T @ y for A, y in blocks), np.zeros(self.unknowns))

    def prior(self, inertial: Array, inertia: bool) -> tuple[Array, Array]:
        """Return the diagonal precision Λ and the mean of the prior.

        The inertia is that of the mass at its centre, with `GYRATION`; friction is unchanged, with `FRICTION_CHANGE`.
        """
        precision, mean = np.ones(self.unknowns), np.zeros(self.unknowns)
        precision[:10] = RIDGE
        precision[self.changes] = FRICTION_CHANGE**-2
        if inertia:
            mass = max(float(inertial[9]), LIGHTEST)
            precision[:6] = (mass * GYRATION**2) ** -2
            mean[:6] = spatial.tensor_to_six(spatial.steiner(mass, inertial[6:9] / mass))
        return precision, mean

    def residuals(self, x: Array) -> Array:
        """Return the residual standard deviation of every log and joint, 0 where the output was not measured."""
        result = np.zeros((len(self.logs), self.calibration.model.robot.dof))
        for k, rows in enumerate(self.logs):
            for j, joint in enumerate(rows.factors):
                if not joint.empty:
                    A, y = self.part(k, j, joint.merged())
                    result[k, j] = np.sqrt(np.square(y - A @ x).sum() / sum(joint.weight))
        return result

    def deviations(self, x: Array) -> Array:
        """Return the standard deviation of the errors: residuals of a moving log, static friction of a pose at rest."""
        first, left = self.first_deviations(), self.residuals(x)
        moving = np.array([[not rows.at_rest] for rows in self.logs])
        return np.where(moving & (left > 0.0), np.maximum(left, 1e-6 * first), first)

    def covariance(self, x: Array, sigma: Array, H: Array, precision: Array) -> tuple[Array, float]:
        """Return the covariance of the unknowns, and Student's factor."""
        steps, known = [], np.diag(precision)
        resting = [rows.at_rest for rows in self.logs for _ in range(rows.blocks)]
        for (A, y), rests in zip(self.blocks(sigma), resting, strict=True):
            if rests:
                known += A.T @ A
            else:
                steps.append(np.linalg.solve(H - A.T @ A, A.T @ (A @ x - y)))
        inverse = np.asarray(np.linalg.inv(H))
        covariance = inverse @ known @ inverse + self.gain_covariance(x, sigma, inverse)
        if len(steps) > 1:
            D = np.array(steps)
            covariance += (len(D) - 1) / len(D) * D.T @ D
        factor = student_factor(len(steps) - 1) if len(steps) > 1 else 0.0
        return self.misfit(sigma) * covariance, max(factor, self.calibration.estimate.factor)

    def misfit(self, sigma: Array) -> float:
        """Return the mean variance of the residuals over that of the training data, at least 1 (squared Birge ratio).

        Residuals larger than those of the training data show errors of the joint model, which last longer than a block.
        """
        used = [[k, j] for k, rows in enumerate(self.logs) for j, f in enumerate(rows.factors) if _counts(rows, f)]
        if not used:
            return 1.0
        k, j = np.array(used).T
        return max(1.0, float(np.mean(np.square(sigma[k, j] / self.calibration.estimate.sigma[j]))))

    def gain_covariance(self, x: Array, sigma: Array, inverse: Array) -> Array:
        """Return the covariance by the errors of the drive gains, zero where torque is measured."""
        error = GAIN_ERROR if self.calibration.output == "current" else 0.0
        effects = np.zeros((self.calibration.model.robot.dof, self.unknowns))
        for k, rows in enumerate(self.logs):
            for j, joint in enumerate(rows.factors):
                A = self.part(k, j, joint.merged())[0] / sigma[k, j]
                effects[j] += A.T @ (A[:, :10] @ x[:10])
        steps = error * effects @ inverse
        result: Array = steps.T @ steps
        return result


def _counts(rows: LogRows, factors: JointFactors) -> bool:
    """Return whether a joint of a moving log has a measured output."""
    return not (rows.at_rest or factors.empty)


def payload_columns(calibration: Calibration) -> Array:
    """Return the matrix from π in the tool frame to the base parameters, (base parameters, 10)."""
    model = calibration.model
    robot = model.robot
    last = slice(10 * (robot.dof - 1), 10 * robot.dof)
    moved = spatial.move_inertial_matrix(robot.tool_rotation, robot.tool_translation)
    result: Array = model.base.projection[:, last] @ moved
    return result


def friction_values(calibration: Calibration, joint: int) -> Array:
    """Return the values of the terms of a joint (0-based) with zero for its offset."""
    pairs = term_values(calibration.model, joint, calibration.estimate.values)
    parts = [0.0 * value if isinstance(term, Offset) else value for term, value in pairs]
    return np.concatenate(parts) if parts else np.zeros(0)
