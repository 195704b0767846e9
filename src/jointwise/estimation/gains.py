"""Drive gains from the data: Nm per ampere at each joint, and their uncertainty.

Three sources inform about the logarithms g of the gains and are weighted by their uncertainty:

- bodies act on several joints at once, so one set of base parameters must explain them all: ratios of the gains;
- with the described bodies, one factor per joint is unknown: its gain, as accurate as the description;
- joints of one arm have gains of similar size (a prior).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.estimation.bounded import bounded_least_squares
from jointwise.estimation.factors import JointFactors
from jointwise.estimation.least_squares import Layout, Problem, Solution, stacked, weighted_least_squares
from jointwise.estimation.uncertainty import uncertainty_of
from jointwise.spatial import Array, Mask

ALIKE = 0.5
"""Prior standard deviation of log gains about their mean in one arm: it decides where the data do not."""
DESCRIBED = 0.1
"""Prior relative error of the torque of described bodies at a joint."""
MISSING: tuple[float, ...] = (0.0, *np.geomspace(0.01, 1.0, 25).tolist())
"""Undescribed masses at the tool to choose from, as parts of the greatest heft."""
NOTHING = 1e2
"""Variance of a logarithm of which nothing is known."""
MAX_PASSES = 8
SETTLED = 0.1
"""Gains have converged when they change by less than this part of their standard deviations."""
LARGEST_STEP = 1.0
"""Logarithm by which a pass may change a gain."""


@dataclass(frozen=True)
class GainEstimate:
    """Estimated drive gains.

    Attributes:
        values: Gains, (joints,), Nm per unit of the output.
        covariance: Covariance of their logarithms, (joints, joints).
        missing: Mass at the tool by which the described bodies differ significantly from the real ones, kg; 0 for none.
    """

    values: Array
    covariance: Array
    missing: float = 0.0


@dataclass(frozen=True)
class Ratios:
    """Ratios of the gains from the coupling of the joints, in the logarithms g of the gains.

    Attributes:
        directions: Directions in g that the data see at all, (joints, directions).
        values: ``directionsᵀ g``, (directions,).
        covariance: Covariance of the values, (directions, directions).
    """

    directions: Array
    values: Array
    covariance: Array


@dataclass(frozen=True)
class Described:
    """Gains under the assumption that the described bodies are right.

    Attributes:
        values: Logarithms of the gains, (joints,).
        variances: Their variances, (joints,), `NOTHING` where they are unknown.
        hefts: Masses at the tool with the same torque at a joint as the described bodies, (joints,), kg.
    """

    values: Array
    variances: Array
    hefts: Array

    def typical(self) -> float:
        """Return the median of the known ones, 0 if there are none."""
        known = self.values[self.variances < NOTHING]
        return float(np.median(known)) if known.size else 0.0

    def covariance_with(self, missing: float) -> Array:
        """Return the covariance with the error of the description and a `missing` mass (kg) at the tool.

        A mass m makes the torque 1 + m / heft times the described one: all joints are wrong together.
        """
        apart = np.log1p(missing / self.hefts)
        result: Array = np.diag(self.variances + DESCRIBED**2) + np.outer(apart, apart)
        return result


def estimate_gains(problem: Problem, known: Array, described: Described | None) -> GainEstimate:
    """Return the gains of a regression with y in units of the output.

    `known` (joints,) are NaN where unknown; `described` is None without described bodies. Where neither gives a scale,
    the mean of the logarithms is zero. The coupling is not linear in g: it is evaluated again at the result until that
    converges.
    """
    unknown = np.isnan(known)
    g = np.log(np.where(unknown, 1.0, known))
    g[unknown] = g[~unknown].mean() if not unknown.all() else 0.0 if described is None else described.typical()
    for _ in range(MAX_PASSES):
        before, ratios = g, coupled_ratios(problem, np.exp(g), unknown)
        missing = 0.0 if described is None else missing_mass(ratios, described)
        g, covariance = _combined(ratios, unknown, before, described, missing)
        if (np.abs(g - before) <= SETTLED * np.sqrt(np.diag(covariance))).all():
            break
    reported = missing if described is not None and is_significant(missing, ratios, described) else 0.0
    return GainEstimate(np.where(unknown, np.exp(g), known), covariance, reported)


def coupled_ratios(problem: Problem, gains: Array, unknown: Mask) -> Ratios:
    """Return the ratios of the gains, from one set of bodies behind all joints: ``y_j = W_j x / k_j``.

    Directions that the data see less than the prior `ALIKE` does are dropped. The covariance is that of the jackknife
    and that of independent rows: a few blocks may agree by chance.
    """
    directions = _zero_sums(len(gains)) if unknown.all() else np.eye(len(gains))[:, unknown]
    scaled = problem.scaled(gains)
    count, start = problem.layout.count, weighted_least_squares(scaled)
    merged = scaled.one_block()
    directions = directions @ _seen_directions(_with_gains(merged, start, directions), start.sigma, count)
    wide = _with_gains(merged, start, directions)
    solution = replace(start, values=bounded_least_squares(wide.whole(start.sigma), wide.layout.bound))
    step = np.clip(solution.values[count:], -LARGEST_STEP, LARGEST_STEP)
    spread = uncertainty_of(_with_gains(scaled, start, directions), solution).covariance[count:, count:]
    G = _unexplained(wide, start.sigma, count)
    return Ratios(directions, directions.T @ np.log(gains) + step, spread + np.linalg.inv(G.T @ G))


def _zero_sums(count: int) -> Array:
    """Return an orthonormal basis (count, count - 1) of the vectors whose entries sum to zero."""
    return np.linalg.svd(np.ones((1, count)))[2][1:].T


def _combined(
    ratios: Ratios, unknown: Mask, g: Array, described: Described | None, missing: float
) -> tuple[Array, Array]:
    """Return log gains and their covariance from all sources, weighted by their uncertainty; known ones as in `g`."""
    joints = len(g)
    weighed = ratios.directions @ np.linalg.inv(ratios.covariance)
    information = weighed @ ratios.directions.T + (np.eye(joints) - 1.0 / joints) / ALIKE**2
    pull = weighed @ ratios.values
    if described is not None:
        weights = np.linalg.inv(described.covariance_with(missing))
        information += weights
        pull += weights @ described.values
    open_, held = np.flatnonzero(unknown), np.flatnonzero(~unknown)
    inverse = np.linalg.pinv(information[np.ix_(open_, open_)], rcond=1e-9, hermitian=True)
    covariance, found = np.zeros((joints, joints)), g.copy()
    covariance[np.ix_(open_, open_)] = inverse
    found[open_] = inverse @ (pull[open_] - information[np.ix_(open_, held)] @ g[held])
    return found, covariance


def described_gains(problem: Problem, columns: Sequence[Array], tools: Sequence[Array]) -> Described:
    """Return the log gains under which the described bodies explain the output, joint by joint.

    `columns[j]` (rigid columns, n): combinations of the rigid columns of joint j; the first is the described torque
    τ_d, others (an undescribed rotor inertia) are free: ``y = τ_d / k + friction``. `tools[j]` is the combination for
    1 kg at the tool. A joint on which the bodies hardly act has a variance of `NOTHING`.
    """
    joints = len(problem.factors)
    values, variances, hefts = np.zeros(joints), np.full(joints, NOTHING), np.zeros(joints)
    for j, (joint, mix) in enumerate(zip(problem.factors, columns, strict=True)):
        hefts[j] = _heft(joint, mix[:, 0], tools[j])
        if joint.empty:
            continue
        alone = _with_combined_columns(joint, mix, problem.layout.bound[problem.layout.index[j][len(mix) :]])
        solution = weighted_least_squares(alone)
        found, slope = uncertainty_of(alone, solution), float(solution.values[0])
        if slope > 0.0 and not found.undetermined[0] and found.deviation[0] < ALIKE * slope:
            values[j], variances[j] = -np.log(slope), (found.deviation[0] / slope) ** 2
    return Described(values, variances, hefts)


def _with_combined_columns(joint: JointFactors, mix: Array, bound: Mask) -> Problem:
    """Return the regression of one joint with combinations of its rigid columns; `bound` is that of its friction."""
    combined = [np.hstack([R[:, : len(mix)] @ mix, R[:, len(mix) :]]) for R in joint.triangles]
    bounds = np.concatenate([np.zeros(mix.shape[1], dtype=bool), bound])
    return Problem([replace(joint, triangles=combined)], Layout([np.arange(len(bounds))], bounds))


NO_LEVER = 1e-6
"""Torque of 1 kg at the tool, relative to that of the bodies, below which it is rounding."""


def _heft(joint: JointFactors, bodies: Array, tool: Array) -> float:
    """Return the rms torque of the bodies over that of 1 kg at the tool; infinite with the tool on the axis."""
    R = joint.merged()[:, : len(bodies)]
    described, lever = float(np.linalg.norm(R @ bodies)), float(np.linalg.norm(R @ tool))
    return max(described, 1e-9) / lever if lever > NO_LEVER * described else np.inf


def gain_slopes(problem: Problem, solution: Solution) -> Array:
    """Return ∂x/∂g (parameters, joints): the change of the estimate with the logarithm of every gain."""
    merged = problem.merged()
    rows = stacked(merged, problem.layout, solution.sigma)
    of_joint = np.repeat(np.arange(len(merged)), [len(R) for R in merged])
    outputs = np.where(of_joint[:, None] == np.arange(len(merged)), rows[:, -1:], 0.0)
    lengths = np.linalg.norm(rows[:, :-1], axis=0)
    active = np.flatnonzero((lengths > 0.0) & ~(problem.layout.bound & (solution.values == 0.0)))
    slopes = np.zeros((problem.layout.count, len(merged)))
    slopes[active] = np.linalg.lstsq(rows[:, active] / lengths[active], outputs, rcond=1e-9)[0]
    slopes[active] /= lengths[active, None]
    return slopes


def _with_gains(problem: Problem, start: Solution, directions: Array) -> Problem:
    """Return a regression in Nm with a column -W_j x for every direction in g, x that of `start`."""
    layout, count = problem.layout, directions.shape[1]
    wide = [
        replace(joint, triangles=[_with_columns(R, start.values[index], weights) for R in joint.triangles])
        for joint, index, weights in zip(problem.factors, layout.index, directions, strict=True)
    ]
    more = layout.count + np.arange(count)
    bound = np.append(layout.bound, np.zeros(count, dtype=bool))
    return Problem(wide, Layout([np.append(index, more) for index in layout.index], bound))


def _with_columns(R: Array, values: Array, weights: Array) -> Array:
    return np.hstack([R[:, :-1], np.outer(R[:, :-1] @ values, -weights), R[:, -1:]])


def _unexplained(problem: Problem, sigma: Array, first: int) -> Array:
    """Return the part of the gain columns, which start at `first`, that no other column explains."""
    rows = problem.whole(sigma)[:, :-1]
    lengths = np.linalg.norm(rows[:, :first], axis=0)
    W, G = rows[:, :first] / np.where(lengths > 0.0, lengths, 1.0), rows[:, first:]
    rest: Array = G - W @ np.linalg.lstsq(W, G, rcond=1e-9)[0]
    return rest


def _seen_directions(problem: Problem, sigma: Array, first: int) -> Array:
    """Return the directions (columns) that independent rows determine better than the prior `ALIKE`."""
    _, sizes, directions = np.linalg.svd(_unexplained(problem, sigma, first), full_matrices=False)
    seen: Array = directions[sizes > 1.0 / ALIKE].T
    return seen


def missing_mass(ratios: Ratios, described: Described) -> float:
    """Return the mass (kg) at the tool that best explains how the description differs from the coupling.

    ``directionsᵀ g_described - ratios`` is normal with covariance C + directionsᵀ V directions, V that of the
    description with the missing mass; the most likely of `MISSING`.
    """
    loaded = (described.variances < NOTHING) & np.isfinite(described.hefts)
    most = float(described.hefts[loaded].max(initial=0.0))
    return min([share * most for share in MISSING], key=lambda missing: _deviance(missing, ratios, described))


def _deviance(missing: float, ratios: Ratios, described: Described) -> float:
    """Return -2 log likelihood (up to a constant) of a missing mass (kg); see `missing_mass`."""
    apart = ratios.directions.T @ described.values - ratios.values
    V = described.covariance_with(missing)
    covariance = ratios.covariance + ratios.directions.T @ V @ ratios.directions
    return float(np.linalg.slogdet(covariance)[1] + apart @ np.linalg.solve(covariance, apart))


SIGNIFICANT = 3.84
"""Difference of deviances from which a missing mass is reported: the 95 % quantile of chi-squared, one parameter."""


def is_significant(missing: float, ratios: Ratios, described: Described) -> bool:
    """Return whether a missing mass (kg) explains the ratios significantly better than none."""
    return _deviance(0.0, ratios, described) - _deviance(missing, ratios, described) > SIGNIFICANT
