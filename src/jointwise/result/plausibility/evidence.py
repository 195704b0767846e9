"""How well a declaration (robot, mounting, gains, channels) and the recorded samples belong together.

The torque of joint j is linear in unknown bodies and friction, ``τ_j = Y_j(q, q̇, q̈) π + F_j φ_j + e_j``. With a
Gaussian prior on π around the described bodies, a wide one on φ, and friction that must dissipate energy, the
probability of the measurements under a declaration (its *evidence*) has a closed form. Declarations are compared by
their log evidence: a wrong one fits worse, or fits only with bodies far from the described ones, or with friction that
drives the joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from jointwise.description.transmission import Transmission
from jointwise.distributions import log_normal_cdf
from jointwise.model.transmission import motor_regressor
from jointwise.result.plausibility.declaration import (
    Declaration,
    Tolerance,
    body_prior,
    motor_columns,
    motor_torques,
    transmission_of,
    with_motor_friction,
)
from jointwise.result.plausibility.samples import Samples
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
MOST_DOUBT = 200.0
"""Largest loss of log evidence by friction that drives a joint, one joint: the linear model is not exact."""
ITERATIONS = 5
"""Alternations between residual variances and parameters; they settle to 1 % in three."""
FEW_ITERATIONS = 2
"""The same where alternatives of one cause are only ranked."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of the columns ``[Y_j | F_j | outputs]`` of every joint, and the friction power.

    `matrices` (joints, columns, columns), means over `rows` samples; `bodies` and `friction`: numbers of columns;
    `power` (joints, friction): mean of column times speed; `duration` s; `lags`: indices of the lags of the outputs.
    """

    matrices: Array
    bodies: int
    friction: int
    power: Array
    rows: int
    duration: float
    lags: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the samples say about a declaration.

    `log_evidence`; `error` (joints,): MSE/variance of the fit, NaN for joints that do not move; `distance`: squared
    distance of bodies and rotors to the described ones in standard deviations; `values` of bodies and rotors with
    standard errors `deviation`; `dissipation` (joints,): mean friction power in standard errors, positive for friction
    that brakes; `offset` (joints,): constant part of the output, relative to its standard deviation; `friction`
    (joints, columns) Nm; `gains` (joints,) Nm per unit of the output, declared or estimated.
    """

    log_evidence: float
    error: Array
    distance: float
    values: Array
    deviation: Array
    dissipation: Array
    offset: Array
    friction: Array
    gains: Array


def make_moments(samples: Samples, declaration: Declaration, lags: tuple[int, ...] = ()) -> Moments:
    """Return the second moments of a declaration's columns with every output, at its declared lag or at all `lags`."""
    lags = lags or tuple(sorted(set(declaration.lag)))
    robot, gravity = declaration.robot, tuple(float(x) for x in declaration.gravity)
    q, qd, qdd, friction, output = _declared_signals(samples, declaration, lags)
    regressor = motor_regressor(robot, q, qd, qdd, gravity=gravity, rotors=True).matrices()
    transmission = transmission_of(declaration.couplings, robot.dof) if declaration.couplings else robot.transmission
    speed = qd if transmission is None else transmission.motor(qd)
    if declaration.couplings and transmission is not None:
        regressor = motor_columns(regressor, qdd, transmission)
        friction = with_motor_friction(friction, speed, declaration.couplings)
        output = motor_torques(output, transmission) if declaration.joint_torques else output
    power = np.stack([columns.T @ v for columns, v in zip(friction, speed.T, strict=True)]) / len(q)
    matrices = _products(regressor, friction, output.reshape(len(q), -1), transmission)
    duration = float(samples.duration[list(declaration.logs) or slice(None)].sum())
    return Moments(matrices, regressor.shape[2], friction.shape[2], power, len(q), duration, lags)


def _declared_signals(
    samples: Samples, declaration: Declaration, lags: tuple[int, ...]
) -> tuple[Array, Array, Array, Array, Array]:
    """Return q, qd, qdd, columns of friction and outputs at `lags`, in the order and signs of a declaration."""
    order, sign = list(declaration.order), np.array(declaration.sign)
    keep = samples.of_logs(declaration.logs) if declaration.logs else slice(None)
    q, qd, qdd = (np.ascontiguousarray(x[keep][:, order] * sign) for x in (samples.q, samples.qd, samples.qdd))
    friction = samples.friction[order][:, keep].copy()
    friction[:, :, :-1] *= sign[:, None, None]
    return q + np.array(declaration.offset), qd, qdd, friction, samples.output[keep][:, :, list(lags)]


def _products(regressor: Array, friction: Array, outputs: Array, transmission: Transmission | None) -> Array:
    """Return the means of the products of all columns, (joints, columns, columns).

    The torque of joint j depends on no link before it, and that of a motor on no link before its first joint: their
    columns are zero.
    """
    count, joints, bodies = regressor.shape
    size = bodies + friction.shape[2] + outputs.shape[1]
    result = np.zeros((joints, size, size))
    for j in range(joints):
        first = 10 * (j if transmission is None else int(np.flatnonzero(transmission.inverse[:, j])[0]))
        columns = np.concatenate([regressor[:, j, first:], friction[j], outputs], axis=1)
        result[j, first:, first:] = columns.T @ columns / count
    return result


STRONG = 0.2
"""Part of the variance of an output that the described bodies must explain to give its gain."""


def gains_from_bodies(blocks: Array, bodies: Array, joints: Index, unknown_rotors: NDArray[np.bool_]) -> Array:
    """Return gains (joints,), Nm per unit of output: least squares of the output on the described torque and friction.

    Joints whose described torque is small take the median of the others.

    Args:
        blocks: Second moments of [Y_j | F_j | u_j], (joints, columns, columns).
        bodies: Described bodies and rotors, (11 robot joints,).
        joints: The joints of the blocks.
        unknown_rotors: Which of them have a rotor that is not described; its inertia is fitted too.

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
    gains[~strong] = np.median(gains[strong]) if strong.any() else 1.0
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


def body_covariance(
    samples: Samples, declaration: Declaration, moments: Moments, tolerance: Tolerance
) -> tuple[Array, Array]:
    """Return bodies and rotors (11 joints,) and their covariance under a tolerance of the description."""
    joints = np.flatnonzero(samples.moving)
    problem = _Linear.joined([_problem(declaration, moments, joints, tolerance)])
    solution, spread = problem.solve(), problem.spread[0]
    return spread * solution.bodies[0], np.outer(spread, spread) * solution.covariance[0]


@dataclass(frozen=True, eq=False)
class _Solution:
    """Bodies (d, p) with covariance, friction (d, m, c) of the moving joints, all in prior standard deviations.

    `response` (d, m, c, p): change of the friction with the bodies, negative; `precision` (d, m, c, c) of the friction
    with known bodies; `residual` (d, m) Nm²; `volume` (d,): half of the log determinant of the precision of all
    parameters.
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

    In units of the prior standard deviations `spread` (d, p) and `friction_spread` (d, m, c): prior `mean` (d, p),
    second moments `matrix` (d, m, p + c, p + c) of the columns and `right` (d, m, p + c) with the torque, whose mean
    `square` and `variance` are (d, m) in Nm²; friction `power` (d, m, c); number of `independent` samples (d,); `gains`
    (d, m) Nm per unit of the output.
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
        power[:, :, -1] = 0.0
        carried = (power[:, :, None] @ found.response)[:, :, 0]
        shares = np.linalg.solve(found.precision, power[..., None])[..., 0]
        variance = (power * shares).sum(axis=2) + (carried @ found.covariance * carried).sum(axis=2)
        return np.asarray((power * found.friction).sum(axis=2) / np.sqrt(variance + 1e-12))


def _problem(
    declaration: Declaration, moments: Moments, joints: Index, tolerance: Tolerance = DESCRIBED_BODIES
) -> _Linear:
    """Return the problem of one declaration, without the first axis."""
    p, c = moments.bodies, moments.friction
    mean, spread = body_prior(declaration, tolerance)
    columns = _output_columns(moments, declaration)[joints]
    matrix, right = moments.matrices[joints, : p + c, : p + c], moments.matrices[joints, columns, : p + c]
    square, gains = moments.matrices[joints, columns, columns], declaration.gains[joints]
    if not declaration.gains_known and declaration.described():
        gains = gains_from_bodies(_blocks(matrix, right, square), mean, joints, declaration.unknown_rotors[joints])
    signed = gains * np.array(declaration.factor)[joints]
    right, square = signed[:, None] * right, signed**2 * square
    variance = np.maximum(square - right[:, -1] ** 2, 1e-12)
    size = np.maximum(np.sqrt(np.diagonal(matrix, axis1=1, axis2=2)[:, p:]), 1e-6)
    scale = np.array([FRICTION_SCALE] * (c - 1) + [OFFSET_SCALE])
    friction_spread = scale * np.sqrt(variance)[:, None] / size
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
    logs = np.array([[log_normal_cdf(float(x)) for x in row] for row in dissipation])
    brakes = np.maximum(logs, -MOST_DOUBT).sum(axis=1) + len(joints) * np.log(2.0)
    log_evidence = -0.5 * (fit + distance + (found.friction**2).sum(axis=(1, 2))) - found.volume + brakes
    deviation = problem.spread * np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
    friction = problem.friction_spread * found.friction
    offset = friction[:, :, -1] / np.sqrt(problem.variance)
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
            friction=by_joint(friction[k]),
            gains=by_joint(problem.gains[k]),
        )
        for k in range(len(distance))
    ]


UNKNOWN_BODIES = Tolerance(mass=1.0, least_mass=5.0, center=0.3, center_share=1.0, inertia=2.0, rotor=2.0)
"""Bodies of which hardly anything is known: what remains uncertain is what the logs do not determine."""
STATES = 200
"""Random states at which the torque is predicted."""


def expected_error(samples: Samples, declaration: Declaration, moments: Moments) -> Array:
    """Return the expected MSE/variance of the torque of bodies on other motions, (joints,), NaN where a joint rests.

    The variance ``Y C Yᵀ`` of the predicted torque, C the covariance of the bodies given the logs alone, at random
    positions of the moving joints with the speeds and accelerations of the logs, relative to the torque's variance.
    """
    values, covariance = body_covariance(samples, declaration, moments, UNKNOWN_BODIES)
    rng = np.random.default_rng(0)
    shape = (STATES, samples.joints)
    q = np.where(samples.moving, rng.uniform(-np.pi, np.pi, shape), samples.q.mean(axis=0))
    qd, qdd = rng.normal(size=shape) * samples.qd.std(axis=0), rng.normal(size=shape) * samples.qdd.std(axis=0)
    gravity = tuple(float(x) for x in declaration.gravity)
    regressor = motor_regressor(declaration.robot, q, qd, qdd, gravity=gravity, rotors=True).matrices()
    uncertain = np.einsum("sjp,pq,sjq->j", regressor, covariance, regressor) / STATES
    measured = samples.output[:, :, samples.zero_lag].var(axis=0) * declaration.gains**2
    size = (regressor @ values).var(axis=0) + measured
    return np.where(samples.moving, uncertain / size, np.nan)
