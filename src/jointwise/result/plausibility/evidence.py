"""How well a declaration (robot, mounting, gains, channels) and the recorded samples belong together.

The torque of joint j is linear in unknown bodies and friction, ``τ_j = Y_j(q, q̇, q̈) π + F_j φ_j + e_j``; F_j has
columns of friction, of the terms that the user declared, of a spring, and the constant offset. With a Gaussian prior on
π around the described bodies, a wide one on φ, and friction that must dissipate energy, the probability of the
measurements under a declaration (its *evidence*) has a closed form. Declarations are compared by their log evidence: a
wrong one fits worse, or fits only with bodies far from the described ones, or with friction that drives the joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from jointwise.result.plausibility.declaration import Declaration, Tolerance, body_prior
from jointwise.result.plausibility.moments import Moments, make_moments
from jointwise.result.plausibility.samples import FRICTION, Samples
from jointwise.spatial import Array

Index = NDArray[np.intp]
DESCRIBED_BODIES = Tolerance()

INDEPENDENT_RATE = 4.0
"""Independent samples per second of motion: residuals are coloured, the bandwidth of an arm is about 2 Hz."""
NOISE_FLOOR = 3e-4
"""Smallest residual variance, relative to the variance of the torque: models of friction are never better than this."""
FRICTION_SCALE = 2.0
"""Prior standard deviation of a friction component, relative to the standard deviation of the torque."""
OFFSET_SCALE = 0.1
"""The same for the constant offset of a channel: sensors and drives are trimmed."""
TERM_SCALE = 20.0
"""The same for a declared term, a spring, and the constant offset beside them (a preload): what balances gravity may be
far larger than the torque that remains."""
MOST_DOUBT = 200.0
"""Largest loss of log evidence by friction that drives a joint, one joint: the linear model is not exact."""
ITERATIONS = 5
"""Alternations between residual variances and parameters; they settle to 1 % in three."""
FEW_ITERATIONS = 2
"""The same where alternatives of one cause are only ranked."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the samples say about a declaration; values of joints that do not move are NaN.

    Attributes:
        log_evidence: Logarithm of the evidence, up to a constant that all declarations share.
        error: MSE / variance of the fit, (joints,).
        distance: Squared distance of bodies and rotors to the described ones, in standard deviations.
        values: Standard parameters of the bodies and rotor inertias, (11 joints,), SI units.
        deviation: Their standard errors, (11 joints,).
        dissipation: Mean friction power in standard errors, (joints,); positive for friction that brakes.
        offset: Constant part of the output relative to its standard deviation, (joints,).
        terms: Torque (rms) of declared terms and springs relative to the standard deviation of the output, (joints,).
        friction: Factors of the columns of `Moments` beside the bodies, (joints, columns), Nm per unit of a column.
        gains: Drive gains, declared or estimated, (joints,), Nm per unit of the output.
    """

    log_evidence: float
    error: Array
    distance: float
    values: Array
    deviation: Array
    dissipation: Array
    offset: Array
    terms: Array
    friction: Array
    gains: Array


STRONG = 0.2
"""Part of the variance of an output that the described bodies must explain to give its gain."""


def gains_from_bodies(
    blocks: Array, bodies: Array, joints: Index, unknown_rotors: NDArray[np.bool_], estimated: Array
) -> Array:
    """Return gains (joints,), Nm per unit of output: least squares of the output on the described torque and friction.

    Joints whose described torque is small take the median of the others; where it is small at all joints (without
    gravity), the gains are the `estimated` ones.

    Args:
        blocks: Second moments of [Y_j | F_j | u_j], (joints, columns, columns).
        bodies: Described bodies and rotors, (11 robot joints,).
        joints: The joints of the blocks.
        unknown_rotors: Which of them have a rotor that is not described; its inertia is fitted too.
        estimated: Their gains from the calibration, (joints,).

    """
    count = len(bodies)
    gains, strong = np.ones(len(blocks)), np.zeros(len(blocks), dtype=bool)
    for k, block in enumerate(blocks):
        basis = np.zeros((len(block), len(block) - count + 1 + int(unknown_rotors[k])))
        basis[:count, 0] = bodies
        basis[count:, 1 : len(block) - count + 1] = np.eye(len(block) - count)
        if unknown_rotors[k]:
            basis[10 * count // 11 + joints[k], -1] = 1.0
        small = basis.T @ block @ basis
        target = len(block) - count
        others = [c for c in range(len(small)) if c != target]
        scale = np.sqrt(np.maximum(np.diag(small), 1e-12))
        normed = small / np.outer(scale, scale)
        values = np.linalg.solve(normed[np.ix_(others, others)] + 1e-6 * np.eye(len(others)), normed[others, target])
        strong[k] = values[0] ** 2 > STRONG
        gains[k] = scale[0] / max(abs(values[0]) * scale[target], 1e-9)
    if not strong.any():
        return estimated
    gains[~strong] = np.median(gains[strong])
    return gains


def evidence(
    samples: Samples,
    declaration: Declaration,
    moments: Moments | None = None,
    iterations: int = ITERATIONS,
) -> Evidence:
    """Return the evidence of a declaration.

    Args:
        samples: Conditioned samples.
        declaration: Robot, gravity, gains and channels.
        moments: Those of a declaration with the same motion, if known.
        iterations: Alternations between residual variances and parameters.

    """
    return evidences(samples, [(declaration, moments or make_moments(samples, declaration))], iterations)[0]


BATCH = 32
"""Declarations that are evaluated together: their matrices fit in a few megabytes."""


def evidences(
    samples: Samples, declared: Iterable[tuple[Declaration, Moments]], iterations: int = ITERATIONS
) -> list[Evidence]:
    """Return the evidence of many declarations with the second moments of their columns; see `evidence`."""
    joints, found = np.flatnonzero(samples.moving), list[Evidence]()
    problems = (_problem(declaration, moments, joints) for declaration, moments in declared)
    while batch := list(islice(problems, BATCH)):
        found += _summaries(_Linear.joined(batch), joints, iterations)
    return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """Parameters and their covariance after the samples, in the units of the parameters.

    Attributes:
        joints: Moving joints, 0-based, (m,).
        bodies: Standard parameters of the bodies and rotor inertias, (11 joints,).
        covariance: Their covariance, (11 joints, 11 joints).
        response: Negative change of the other parameters with the bodies, (m, columns, 11 joints).
        apart: Covariance of the other parameters where the bodies are known, (m, columns, columns).
    """

    joints: Index
    bodies: Array
    covariance: Array
    response: Array
    apart: Array


def posterior(samples: Samples, declaration: Declaration, moments: Moments, tolerance: Tolerance) -> Posterior:
    """Return bodies, friction and terms under a tolerance of the description."""
    joints = np.flatnonzero(samples.moving)
    problem = _Linear.joined([_problem(declaration, moments, joints, tolerance)])
    found, spread, others = problem.solve(), problem.spread[0], problem.friction_spread[0]
    response = found.response[0] * others[:, :, None] / spread
    apart = np.linalg.inv(found.precision[0]) * others[:, :, None] * others[:, None, :]
    bodies, covariance = spread * found.bodies[0], np.outer(spread, spread) * found.covariance[0]
    return Posterior(joints, bodies, covariance, response, np.asarray(apart))


@dataclass(frozen=True, eq=False)
class _Solution:
    """Solutions of d problems: bodies and friction of m moving joints, in prior standard deviations.

    Attributes:
        bodies: Bodies and rotors, (d, p).
        covariance: Their covariance, (d, p, p).
        friction: Friction, (d, m, c).
        response: Negative change of the friction with the bodies, (d, m, c, p).
        precision: Precision of the friction with known bodies, (d, m, c, c).
        residual: Mean squared residual, (d, m), Nm².
        volume: Half of the log determinant of the precision of all parameters, (d,).
    """

    bodies: Array
    covariance: Array
    friction: Array
    response: Array
    precision: Array
    residual: Array
    volume: Array


@dataclass(frozen=True, eq=False)
class _Linear:
    """Bayesian linear problems of d declarations: m moving joints, p body and c friction parameters each.

    Parameters are in units of their prior standard deviations.

    Attributes:
        mean: Prior mean of the bodies, (d, p).
        spread: Prior standard deviations of the bodies, (d, p), SI units.
        friction_spread: Prior standard deviations of the friction, (d, m, c), SI units.
        matrix: Second moments of the columns, (d, m, p + c, p + c).
        right: Their second moments with the torque, (d, m, p + c).
        square: Mean square of the torque, (d, m), Nm².
        variance: Variance of the torque, (d, m), Nm².
        power: Friction power, (d, m, c).
        independent: Number of independent samples, (d,).
        gains: Drive gains, (d, m), Nm per unit of the output.
    """

    mean: Array
    spread: Array
    friction_spread: Array
    matrix: Array
    right: Array
    square: Array
    variance: Array
    power: Array
    independent: Array
    gains: Array

    @classmethod
    def joined(cls, problems: Sequence[_Linear]) -> _Linear:
        """Return problems of one declaration each as one."""
        return cls(*(np.stack([getattr(problem, item.name) for problem in problems]) for item in fields(cls)))

    def solve(self, iterations: int = ITERATIONS) -> _Solution:
        """Return the parameters for residual variances that agree with them; friction is eliminated joint by joint."""
        d, p = self.mean.shape
        c = self.friction_spread.shape[2]
        body_squares = self.matrix[:, :, :p, :p].reshape(d, -1, p * p)
        residual = 0.01 * self.variance
        for _ in range(iterations):
            weight = self.independent[:, None] / np.maximum(residual, NOISE_FLOOR * self.variance)
            local = weight[:, :, None, None] * self.matrix[:, :, p:, p:] + np.eye(c)
            coupling = weight[:, :, None, None] * self.matrix[:, :, p:, :p]
            target = weight[:, :, None] * self.right[:, :, p:]
            solved = np.linalg.solve(local, np.concatenate([coupling, target[:, :, :, None]], axis=3))
            response, free = solved[:, :, :, :p], solved[:, :, :, p]
            across = coupling.reshape(d, -1, p).transpose(0, 2, 1)
            precision = (weight[:, None] @ body_squares).reshape(d, p, p) - across @ response.reshape(d, -1, p)
            precision += np.eye(p)
            right = (weight[:, None] @ self.right[:, :, :p])[:, 0] - (across @ free.reshape(d, -1, 1))[:, :, 0]
            bodies = np.asarray(np.linalg.solve(precision, (self.mean + right)[:, :, None])[:, :, 0], dtype=float)
            friction = free - (response @ bodies[:, None, :, None])[..., 0]
            values = np.concatenate([np.broadcast_to(bodies[:, None], (*friction.shape[:2], p)), friction], axis=2)
            fitted = (self.matrix @ values[..., None])[..., 0] - 2.0 * self.right
            residual = np.maximum(self.square + (values * fitted).sum(axis=2), 0.0)
        volume = 0.5 * (np.linalg.slogdet(precision)[1] + np.linalg.slogdet(local)[1].sum(axis=1))
        covariance = np.asarray(np.linalg.inv(precision), dtype=float)
        return _Solution(bodies, covariance, friction, response, local, residual, volume)

    def dissipation(self, found: _Solution) -> Array:
        """Return the mean friction power (d, m) in standard errors."""
        power = self.power * self.friction_spread
        carried = (power[:, :, None] @ found.response)[:, :, 0]
        shares = np.linalg.solve(found.precision, power[..., None])[..., 0]
        variance = (power * shares).sum(axis=2) + (carried @ found.covariance * carried).sum(axis=2)
        return np.asarray((power * found.friction).sum(axis=2) / np.sqrt(variance + 1e-12))

    def term_squares(self, found: _Solution) -> Array:
        """Return the mean square (d, m) of the torque of declared terms and springs, Nm²."""
        which = slice(self.mean.shape[1] + FRICTION, -1)
        values = found.friction[:, :, FRICTION:-1]
        return np.asarray(np.einsum("dmi,dmij,dmj->dm", values, self.matrix[:, :, which, which], values))


def _problem(
    declaration: Declaration, moments: Moments, joints: Index, tolerance: Tolerance = DESCRIBED_BODIES
) -> _Linear:
    """Return the problem of one declaration, without the first axis."""
    p, c = moments.bodies, moments.friction
    mean, spread = body_prior(declaration, tolerance)
    columns = _output_columns(moments, declaration)[joints]
    matrix, right = moments.matrices[joints, : p + c, : p + c], moments.matrices[joints, columns, : p + c]
    square, gains = moments.matrices[joints, columns, columns], declaration.gains[joints]
    scales = _friction_scales(declaration, c)[joints]
    if not declaration.gains_known and declaration.described():
        used = np.concatenate([np.ones((len(joints), p)), scales > 0.0], axis=1)
        blocks = _blocks(matrix * used[:, :, None] * used[:, None, :], right * used, square)
        unknown = declaration.unknown_rotors[joints]
        gains = gains_from_bodies(blocks, mean, joints, unknown, gains)
    signed = gains * np.array(declaration.factor)[joints]
    right, square = signed[:, None] * right, signed**2 * square
    variance = np.maximum(square - right[:, -1] ** 2, 1e-12)
    size = np.maximum(np.sqrt(np.diagonal(matrix, axis1=1, axis2=2)[:, p:]), 1e-6)
    friction_spread = scales * np.sqrt(variance)[:, None] / size
    wide = np.concatenate([np.tile(spread, (len(joints), 1)), friction_spread], axis=1)
    return _Linear(
        mean / spread,
        spread,
        friction_spread,
        matrix * wide[:, :, None] * wide[:, None, :],
        right * wide,
        square,
        variance,
        moments.power[joints],
        np.asarray(INDEPENDENT_RATE * moments.duration),
        gains,
    )


def _friction_scales(declaration: Declaration, count: int) -> Array:
    """Return the prior standard deviations (joints, count) of the columns beside the bodies, relative to the torque's.

    Springs that are not assumed have none. An offset beside a declared term or a spring may be its preload.
    """
    declared = count - FRICTION - 2
    result = np.full((declaration.robot.dof, count), TERM_SCALE)
    result[:, :FRICTION] = FRICTION_SCALE
    result[:, -2] = [TERM_SCALE * (j in declaration.springs) for j in range(len(result))]
    result[:, -1] = np.where((result[:, -2] > 0.0) | (declared > 0), TERM_SCALE, OFFSET_SCALE)
    return result


def _output_columns(moments: Moments, declaration: Declaration) -> Index:
    """Return which column of the second moments is the output of each joint, (joints,)."""
    lags = [moments.lags.index(lag) for lag in declaration.lag]
    places = np.array(declaration.channel, dtype=np.intp) * len(moments.lags) + np.array(lags, dtype=np.intp)
    return np.asarray(moments.bodies + moments.friction + places)


def _blocks(matrix: Array, right: Array, square: Array) -> Array:
    """Return the second moments of [Y_j | F_j | u_j], u_j in the unit of the output, as one matrix for every joint."""
    last = np.concatenate([right, square[:, None]], axis=1)
    return np.concatenate([np.concatenate([matrix, right[:, None]], axis=1), last[:, :, None]], axis=2)


def _summaries(problem: _Linear, joints: Index, iterations: int) -> list[Evidence]:
    """Return the evidence of every declaration of a problem."""
    found = problem.solve(iterations)
    dissipation = problem.dissipation(found)
    noise = np.maximum(found.residual, NOISE_FLOOR * problem.variance)
    distance = ((found.bodies - problem.mean) ** 2).sum(axis=1)
    fit = problem.independent * (np.log(noise / problem.variance) + found.residual / noise).sum(axis=1)
    brakes = np.maximum(log_ndtr(dissipation), -MOST_DOUBT).sum(axis=1) + len(joints) * np.log(2.0)
    log_evidence = -0.5 * (fit + distance + (found.friction**2).sum(axis=(1, 2))) - found.volume + brakes
    deviation = problem.spread * np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
    friction = problem.friction_spread * found.friction
    offset = friction[:, :, -1] / np.sqrt(problem.variance)
    terms = np.sqrt(np.maximum(problem.term_squares(found), 0.0) / problem.variance)
    robot_joints = problem.mean.shape[1] // 11

    def by_joint(values: Array) -> Array:
        """Return the values of moving joints at their places, NaN for the others."""
        result = np.full((robot_joints, *values.shape[1:]), np.nan)
        result[joints] = values
        return result

    return [
        Evidence(
            log_evidence=float(log_evidence[k]),
            error=by_joint(found.residual[k] / problem.variance[k]),
            distance=float(distance[k]),
            values=problem.spread[k] * found.bodies[k],
            deviation=deviation[k],
            dissipation=by_joint(dissipation[k]),
            offset=by_joint(offset[k]),
            terms=by_joint(terms[k]),
            friction=by_joint(friction[k]),
            gains=by_joint(problem.gains[k]),
        )
        for k in range(len(distance))
    ]
