"""How well a declaration (robot, mounting, gains, channels) and the recorded samples belong together.

The torque of joint j is linear in unknown bodies and friction, ``τ_j = Y_j(q, q̇, q̈) π + F_j φ_j + e_j``. With a
Gaussian prior on π around the described bodies, a wide one on φ, and friction that must dissipate energy, the
probability of the measurements under a declaration (its *evidence*) has a closed form. Declarations are compared by
their log evidence: a wrong one fits worse, or fits only with bodies far from the described ones, or with friction that
drives the joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from jointwise.description.robot import Payload, Robot, loaded_inertials
from jointwise.model.transmission import motor_regressor
from jointwise.result.plausibility.coupling import Coupling, motor_outputs, with_motor_friction, with_transmission
from jointwise.spatial import Array

Index = NDArray[np.intp]
T = TypeVar("T")

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


@dataclass(frozen=True)
class Tolerance:
    """How far real bodies may be from the described ones (one standard deviation).

    `mass` relative, `least_mass` kg, `center` m plus `center_share` of the link's length, `inertia` and `rotor`
    relative; `free_rotor` kg m² for a rotor that is not described. Makers' data of UR and Franka arms are within these.
    """

    mass: float = 0.05
    least_mass: float = 0.05
    center: float = 0.02
    center_share: float = 0.05
    inertia: float = 0.3
    rotor: float = 0.5
    free_rotor: float = 3.0


@dataclass(frozen=True, eq=False)
class Samples:
    """Conditioned samples of the training logs, thinned out.

    `q`, `qd`, `qdd` (samples, joints): rad, rad/s, rad/s². `output` (samples, joints, lags): the measurement (A or Nm)
    at t + lag, for `lags` (s) that include zero. `friction` (joints, samples, columns): friction columns along each
    position channel, odd in the motion, the last one the constant offset. `log` (samples,): index of the log.
    `duration` (logs,) s of motion. `moving` (joints,): joints that move; the others carry no evidence.
    """

    q: Array
    qd: Array
    qdd: Array
    output: Array
    friction: Array
    log: Index
    duration: Array
    lags: Array
    moving: NDArray[np.bool_]

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.q.shape[1])

    @cached_property
    def zero_lag(self) -> int:
        """Index of lag zero."""
        return int(np.argmin(np.abs(self.lags)))


@dataclass(frozen=True, eq=False)
class Declaration:
    """What a user says about a log, and what may be wrong with it.

    `gains` (joints,) Nm per unit of the output. Joint j moves by ``sign[j] · q[order[j]] + offset[j]``; its output is
    ``factor[j] · output[channel[j]]`` at lag index `lag[j]`. `payload` is the declared one; `payload_mass` (kg) is the
    size of one that nobody declared, 0 for none. `logs`: the logs that count, all if empty. Gains that are not
    `gains_known` are estimated from the described bodies anew for every declaration. `couplings` are some that nobody
    declared; with them outputs that are `joint_torques` belong to the joints, all others to the motors.
    """

    robot: Robot
    gravity: Array
    gains: Array
    order: tuple[int, ...]
    sign: tuple[float, ...]
    offset: tuple[float, ...]
    channel: tuple[int, ...]
    factor: tuple[float, ...]
    lag: tuple[int, ...]
    payload_mass: float = 0.0
    logs: tuple[int, ...] = ()
    payload: Payload | None = None
    gains_known: bool = True
    couplings: tuple[Coupling, ...] = ()
    joint_torques: bool = False

    @classmethod
    def plain(
        cls,
        robot: Robot,
        gravity: Sequence[float] | Array,
        gains: Array,
        samples: Samples,
        payload: Payload | None = None,
        gains_known: bool = True,
    ) -> Declaration:
        """Return the declaration that takes every channel as it is."""
        n = robot.dof
        straight = tuple(range(n))
        ones, zeros = (1.0,) * n, (0.0,) * n
        lag = (samples.zero_lag,) * n
        motion = (straight, ones, zeros)
        channels = (straight, ones, lag)
        return cls(
            robot, np.asarray(gravity, float), gains, *motion, *channels, payload=payload, gains_known=gains_known
        )

    def same_motion(self, other: Declaration) -> bool:
        """Return whether both lead to the same regressor and prior, so that only the outputs differ."""
        return (
            self.robot is other.robot
            and self.couplings == other.couplings
            and np.array_equal(self.gravity, other.gravity)
            and (self.order, self.sign, self.offset, self.logs) == (other.order, other.sign, other.offset, other.logs)
        )

    def described(self) -> bool:
        """Return whether the description has bodies."""
        return any(link.mass > 0.0 for link in self.robot.links)

    @property
    def unknown_rotors(self) -> NDArray[np.bool_]:
        """Which joints have a rotor that is not described, (joints,)."""
        return np.array([not joint.motor.reflected_inertia for joint in self.robot.joints])


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
    that brakes; `offset` (joints,): constant part of the output, relative to its standard deviation.
    """

    log_evidence: float
    error: Array
    distance: float
    values: Array
    deviation: Array
    dissipation: Array
    offset: Array


def make_moments(samples: Samples, declaration: Declaration, lags: tuple[int, ...] = ()) -> Moments:
    """Return the second moments of a declaration's columns with every output, at its declared lag or at all `lags`."""
    lags = lags or tuple(sorted(set(declaration.lag)))
    order, sign = list(declaration.order), np.array(declaration.sign)
    keep = np.isin(samples.log, declaration.logs) if declaration.logs else np.ones(len(samples.q), bool)
    q, qd, qdd = (np.ascontiguousarray(x[keep][:, order] * sign) for x in (samples.q, samples.qd, samples.qdd))
    q = q + np.array(declaration.offset)
    friction = samples.friction[order][:, keep].copy()
    friction[:, :, :-1] *= sign[:, None, None]
    output, robot = samples.output[keep], declaration.robot
    if declaration.couplings:
        robot = with_transmission(robot, declaration.couplings)
        friction = with_motor_friction(friction, qd, declaration.couplings)
        output = motor_outputs(output, declaration.couplings) if declaration.joint_torques else output
    gravity = tuple(float(x) for x in declaration.gravity)
    regressor = motor_regressor(robot, q, qd, qdd, gravity=gravity, rotors=True).matrices()
    outputs = output[:, :, list(lags)].reshape(len(q), -1)
    matrices = []
    for j in range(samples.joints):
        columns = np.concatenate([regressor[:, j], friction[j], outputs], axis=1)
        matrices.append(columns.T @ columns / len(q))
    speed = qd if robot.transmission is None else robot.transmission.motor(qd)
    power = np.stack([friction[j].T @ speed[:, j] / len(q) for j in range(samples.joints)])
    duration = samples.duration[list(declaration.logs)].sum() if declaration.logs else samples.duration.sum()
    return Moments(np.array(matrices), regressor.shape[2], friction.shape[2], power, len(q), float(duration), lags)


def body_prior(declaration: Declaration, tolerance: Tolerance) -> tuple[Array, Array]:
    """Return mean and standard deviation (11 joints,) of standard parameters and reflected rotor inertias."""
    robot = declaration.robot
    n = robot.dof
    mean, deviation = np.zeros(11 * n), np.zeros(11 * n)
    carried = 0.0 if declaration.payload is None else declaration.payload.mass
    mean[: 10 * n] = loaded_inertials(robot, declaration.payload).ravel()
    for j, link in enumerate(robot.links):
        after = robot.translations[j + 1] if j + 1 < n else robot.tool_translation
        length = max(float(np.linalg.norm(after)), 0.05)
        extra = float(np.hypot(declaration.payload_mass, PAYLOAD_TOLERANCE * carried)) if j == n - 1 else 0.0
        if declaration.described():
            spread = _link_deviation(link.inertial, link.center_of_mass, length, extra, tolerance)
        else:
            spread = _free_deviation(length)
        deviation[10 * j : 10 * j + 10] = spread
    for j, joint in enumerate(robot.joints):
        rotor = joint.motor.reflected_inertia
        mean[10 * n + j] = rotor or 0.0
        deviation[10 * n + j] = tolerance.rotor * rotor if rotor else tolerance.free_rotor
    return mean, deviation


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


FREE_MASS = 10.0
"""Standard deviation (kg) of the mass of a link that is not described."""


def _free_deviation(length: float) -> Array:
    """Return standard deviations (10,) of the parameters of a link that is not described."""
    arm = 0.5 * length + 0.1
    return np.concatenate([np.full(6, FREE_MASS * arm**2), np.full(3, FREE_MASS * arm), [FREE_MASS]])


PAYLOAD_TOLERANCE = 0.3
"""Part of its mass by which a declared payload may differ: its centre is seldom known better."""
PAYLOAD_ARM = 0.15
"""Distance (m) from the flange within which the centre of an undeclared payload is expected."""


def _link_deviation(inertial: Array, center: Array, length: float, payload: float, tolerance: Tolerance) -> Array:
    """Return standard deviations (10,) of a link's parameters from the tolerance of mass, centre and inertia."""
    mass = float(inertial[9])
    mass_sd = tolerance.mass * mass + tolerance.least_mass
    center_sd = tolerance.center + tolerance.center_share * length
    size = float(np.linalg.norm(center)) + 0.5 * length + 0.05
    moment = np.sqrt((tolerance.mass * mass * center) ** 2 + (mass * center_sd) ** 2 + (payload * PAYLOAD_ARM) ** 2)
    inertia = tolerance.inertia * np.abs(inertial[:6]) + mass * center_sd * size + payload * PAYLOAD_ARM**2
    return np.concatenate([inertia + 1e-3, moment + 1e-3, [np.hypot(mass_sd, payload)]])


def evidence(
    samples: Samples, declaration: Declaration, moments: Moments | None = None, tolerance: Tolerance | None = None
) -> Evidence:
    """Return the evidence of a declaration.

    Args:
        samples: Conditioned samples.
        declaration: Robot, gravity, gains and channels.
        moments: Those of a declaration with the same motion, if known.
        tolerance: Of the described bodies.

    """
    moments = moments or make_moments(samples, declaration)
    return _Linear(samples, declaration, moments, tolerance or Tolerance()).summary()


def body_covariance(samples: Samples, declaration: Declaration, tolerance: Tolerance) -> tuple[Array, Array]:
    """Return bodies and rotors (11 joints,) and their covariance under a tolerance of the description."""
    problem = _Linear(samples, declaration, make_moments(samples, declaration), tolerance)
    solution = problem.solve()
    return problem.spread * solution.bodies, np.outer(problem.spread, problem.spread) * solution.covariance


@dataclass(frozen=True, eq=False)
class _Solution:
    """Bodies (p,) with covariance, friction (m, c) of the moving joints, all in prior standard deviations.

    `response` (m, c, p): change of the friction with the bodies, negative; `precision` (m, c, c) of the friction with
    known bodies; `residual` (m,) Nm²; `volume`: half of the log determinant of the precision of all parameters.
    """

    bodies: Array
    covariance: Array
    friction: Array
    response: Array
    precision: Array
    residual: Array
    volume: float


class _Linear:
    """The Bayesian linear problem of one declaration: m moving joints, p body and c friction parameters each."""

    def __init__(self, samples: Samples, declaration: Declaration, moments: Moments, tolerance: Tolerance) -> None:
        p, c = moments.bodies, moments.friction
        self.moments, self.joints = moments, np.flatnonzero(samples.moving)
        mean, self.spread = body_prior(declaration, tolerance)
        self.mean = mean / self.spread
        blocks = np.stack([self._block(declaration, int(j)) for j in self.joints])
        gains = declaration.gains[self.joints]
        if not declaration.gains_known and declaration.described():
            gains = gains_from_bodies(blocks, mean, self.joints, declaration.unknown_rotors[self.joints])
        signed = gains * np.array(declaration.factor)[self.joints]
        blocks[:, -1] *= signed[:, None]
        blocks[:, :, -1] *= signed[:, None]
        self.square = blocks[:, -1, -1]
        self.variance = np.maximum(self.square - blocks[:, -1, p + c - 1] ** 2, 1e-12)
        size = np.maximum(np.sqrt(np.diagonal(blocks, axis1=1, axis2=2)[:, p : p + c]), 1e-6)
        scale = np.array([FRICTION_SCALE] * (c - 1) + [OFFSET_SCALE])
        self.friction_spread = scale * np.sqrt(self.variance)[:, None] / size
        spread = np.concatenate([np.tile(self.spread, (len(self.joints), 1)), self.friction_spread], axis=1)
        self.matrix = blocks[:, :-1, :-1] * spread[:, :, None] * spread[:, None, :]
        self.right = blocks[:, :-1, -1] * spread
        self.independent = INDEPENDENT_RATE * moments.duration

    def _block(self, declaration: Declaration, j: int) -> Array:
        """Return the second moments of [Y_j | F_j | u_j], u_j in the unit of the output."""
        p, c = self.moments.bodies, self.moments.friction
        lags = self.moments.lags
        column = p + c + declaration.channel[j] * len(lags) + lags.index(declaration.lag[j])
        whole, block = self.moments.matrices[j], np.empty((p + c + 1, p + c + 1))
        block[:-1, :-1] = whole[: p + c, : p + c]
        block[:-1, -1] = block[-1, :-1] = whole[: p + c, column]
        block[-1, -1] = whole[column, column]
        return block

    def solve(self) -> _Solution:
        """Return the parameters for residual variances that agree with them; friction is eliminated joint by joint."""
        p, c = self.moments.bodies, self.moments.friction
        residual = 0.01 * self.variance
        for _ in range(ITERATIONS):
            weight = self.independent / np.maximum(residual, NOISE_FLOOR * self.variance)
            local = weight[:, None, None] * self.matrix[:, p:, p:] + np.eye(c)
            coupling = weight[:, None, None] * self.matrix[:, p:, :p]
            target = weight[:, None] * self.right[:, p:]
            solved = np.linalg.solve(local, np.concatenate([coupling, target[:, :, None]], axis=2))
            response, free = solved[:, :, :p], solved[:, :, p]
            joined = coupling.reshape(-1, p)
            precision = np.eye(p) + np.tensordot(weight, self.matrix[:, :p, :p], 1) - joined.T @ response.reshape(-1, p)
            right = self.mean + weight @ self.right[:, :p] - joined.T @ free.ravel()
            factor = cho_factor(precision, lower=True, check_finite=False)
            bodies = cho_solve(factor, right, check_finite=False)
            friction = free - response @ bodies
            values = np.concatenate([np.tile(bodies, (len(friction), 1)), friction], axis=1)
            fitted = (self.matrix @ values[:, :, None])[:, :, 0] - 2.0 * self.right
            residual = np.maximum(self.square + (values * fitted).sum(axis=1), 0.0)
        volume = np.log(np.diag(factor[0])).sum() + 0.5 * np.linalg.slogdet(local)[1].sum()
        covariance = cho_solve(factor, np.eye(p), check_finite=False)
        return _Solution(bodies, covariance, friction, response, local, residual, float(volume))

    def dissipation(self, found: _Solution) -> Array:
        """Return the mean friction power (m,) in standard errors."""
        power = self.moments.power[self.joints].copy() * self.friction_spread
        power[:, -1] = 0.0
        carried = (power[:, None] @ found.response)[:, 0]
        shares = np.linalg.solve(found.precision, power[:, :, None])[:, :, 0]
        variance = (power * shares).sum(axis=1) + (carried @ found.covariance * carried).sum(axis=1)
        return np.asarray((power * found.friction).sum(axis=1) / np.sqrt(variance + 1e-12))

    def summary(self) -> Evidence:
        """Return the evidence."""
        found = self.solve()
        dissipation = self.dissipation(found)
        noise = np.maximum(found.residual, NOISE_FLOOR * self.variance)
        distance = float(((found.bodies - self.mean) ** 2).sum())
        fit = self.independent * (np.log(noise / self.variance) + found.residual / noise).sum()
        brakes = np.maximum(log_ndtr(dissipation), -MOST_DOUBT).sum() + len(self.joints) * np.log(2.0)
        return Evidence(
            log_evidence=float(-0.5 * (fit + distance + (found.friction**2).sum()) - found.volume + brakes),
            error=self._by_joint(found.residual / self.variance),
            distance=distance,
            values=self.spread * found.bodies,
            deviation=self.spread * np.sqrt(np.diag(found.covariance)),
            dissipation=self._by_joint(dissipation),
            offset=self._by_joint(self.friction_spread[:, -1] * found.friction[:, -1] / np.sqrt(self.variance)),
        )

    def _by_joint(self, values: Array) -> Array:
        """Return the values of moving joints at their places, NaN for the others."""
        result = np.full(len(self.moments.matrices), np.nan)
        result[self.joints] = values
        return result


def with_item(items: tuple[T, ...], j: int, value: T) -> tuple[T, ...]:
    """Return the items with item j replaced."""
    return (*items[:j], value, *items[j + 1 :])


def swapped(items: tuple[T, ...], i: int, j: int) -> tuple[T, ...]:
    """Return the items with items i and j exchanged."""
    return with_item(with_item(items, i, items[j]), j, items[i])
