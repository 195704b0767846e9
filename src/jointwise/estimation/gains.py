"""Drive gains from the data: how many Nm an ampere is worth at each joint, and how sure that is.

Three sources tell of the logarithms g of the gains, each with its own doubt, and are weighed by it:

- bodies push on several joints at once, so one set of base parameters must explain them all: ratios of the gains;
- the described bodies, held, leave one factor a joint: the gains themselves, as good as the description is;
- joints of one arm have gains of one size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import null_space

from jointwise.estimation.coupled import Layout, Solution, jackknife, stacked, weighted_least_squares
from jointwise.estimation.factors import JointFactors, scaled_factors
from jointwise.estimation.solve import Mask, bounded_least_squares, triangle
from jointwise.spatial import Array

ALIKE = 0.5
"""Standard deviation of log gains about their mean in one arm, a belief: it decides where nothing else tells."""
DESCRIBED = 0.1
"""Relative error of the torque that described bodies ask of a joint, a belief."""
MISSING: tuple[float, ...] = (0.0, *np.geomspace(0.01, 1.0, 25).tolist())
"""Masses at the tool that nobody described, as parts of the greatest heft, to choose from."""
NOTHING = 1e2
"""Variance of a logarithm of which nothing is known."""
MOST_PASSES = 8
SETTLED = 0.1
"""Gains have settled when they change by less than this part of their standard deviations."""
LARGEST_STEP = 1.0
"""Logarithm by which a pass may change a gain."""


@dataclass(frozen=True)
class GainEstimate:
    """Gains (joints,), Nm per unit of output, and the covariance of their logarithms (joints, joints).

    `missing` is the mass (kg) at the tool by which the described bodies seem to differ from the real ones.
    """

    values: Array
    covariance: Array
    missing: float = 0.0


@dataclass(frozen=True)
class Ratios:
    """What the coupling of the joints tells: ``directionsᵀ g`` (directions,) with its covariance.

    `directions` (joints, directions) are those in g that the data see at all.
    """

    directions: Array
    values: Array
    covariance: Array


@dataclass(frozen=True)
class Described:
    """What the described bodies tell if they are right: log gains (joints,) and their variances, large for nothing.

    `hefts` (joints,) are the masses at the tool, kg, that would ask as much of a joint as the described bodies do.
    """

    values: Array
    variances: Array
    hefts: Array

    def typical(self) -> float:
        """Return the median of what is told, 0 if nothing is."""
        told = self.values[self.variances < NOTHING]
        return float(np.median(told)) if told.size else 0.0

    def covariance_with(self, missing: float) -> Array:
        """Return the covariance that counts the error of the description, and a mass (kg) `missing` at the tool.

        A mass m makes the torque 1 + m / heft times the described one: all joints are wrong together.
        """
        apart = np.log1p(missing / self.hefts)
        result: Array = np.diag(self.variances + DESCRIBED**2) + np.outer(apart, apart)
        return result


def estimate_gains(
    factors: Sequence[JointFactors], layout: Layout, known: Array, described: Described | None
) -> GainEstimate:
    """Return the gains that factors of [W y], y in units of the output, tell.

    `known` (joints,) are given gains, NaN where unknown; `described` is None without bodies. Where neither tells a
    scale, the mean of the logarithms is zero. The coupling is not linear in g: it is asked again at what all sources
    together tell, until that settles.
    """
    unknown = np.isnan(known)
    g = np.log(np.where(unknown, 1.0, known))
    g[unknown] = g[~unknown].mean() if not unknown.all() else 0.0 if described is None else described.typical()
    for _ in range(MOST_PASSES):
        before, ratios = g, coupled_ratios(factors, layout, np.exp(g), unknown)
        missing = 0.0 if described is None else missing_mass(ratios, described)
        g, covariance = _weighed(ratios, unknown, before, described, missing)
        if (np.abs(g - before) <= SETTLED * np.sqrt(np.diag(covariance))).all():
            break
    return GainEstimate(np.where(unknown, np.exp(g), known), covariance, missing)


def coupled_ratios(factors: Sequence[JointFactors], layout: Layout, gains: Array, unknown: Mask) -> Ratios:
    """Return what one set of bodies behind all joints tells of the gains: ``y_j = W_j x / k_j``, linear about `gains`.

    Residuals are in units of the output, so a gain cannot shrink them. With known gains the others follow; without
    any, only their ratios. The covariance is the jackknife's over stretches, plus what independent rows would leave.
    """
    directions = null_space(np.ones((1, len(gains)))) if unknown.all() else np.eye(len(gains))[:, unknown]
    scaled = scaled_factors(factors, gains)
    start = weighted_least_squares(scaled, layout)
    merged = [JointFactors([own.merged()], own.weight, own.total, own.square) for own in scaled]
    directions = directions @ _seen(*_with_gains(merged, layout, start, directions), start.sigma, layout.count)
    R, places = _with_gains(merged, layout, start, directions)
    whole = triangle(stacked([own.triangles[0] for own in R], places, start.sigma))
    solution = replace(start, values=bounded_least_squares(whole, places.bound))
    step = np.clip(solution.values[layout.count :], -LARGEST_STEP, LARGEST_STEP)
    wide, _ = _with_gains(scaled, layout, start, directions)
    spread = jackknife(wide, places, solution).covariance[layout.count :, layout.count :]
    G = _unexplained(R, places, start.sigma, layout.count)
    return Ratios(directions, directions.T @ np.log(gains) + step, spread + np.linalg.inv(G.T @ G))


def _weighed(
    ratios: Ratios, unknown: Mask, g: Array, described: Described | None, missing: float
) -> tuple[Array, Array]:
    """Return log gains and their covariance from all sources, each weighed by its doubt; known ones stay as in `g`."""
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


def described_gains(
    factors: Sequence[JointFactors], layout: Layout, columns: Sequence[Array], tools: Sequence[Array]
) -> Described:
    """Return the log gains that the described bodies tell, joint by joint.

    `columns[j]` (rigid columns, n): combinations of the rigid columns of joint j; the first is the described torque
    τ_d, others (a rotor's inertia that nobody knows) are free: ``y = τ_d / k + friction``. `tools[j]` is the
    combination for 1 kg at the tool. Where the bodies ask next to nothing of a joint, nothing is told.
    """
    values, variances = np.zeros(len(factors)), np.full(len(factors), NOTHING)
    for j, (own, places, mix) in enumerate(zip(factors, layout.index, columns, strict=True)):
        bound = np.concatenate([np.zeros(mix.shape[1], dtype=bool), layout.bound[places[len(mix) :]]])
        mixed = [np.hstack([R[:, : len(mix)] @ mix, R[:, len(mix) :]]) for R in own.triangles]
        one, alone = [replace(own, triangles=mixed)], Layout([np.arange(len(bound))], bound)
        solution = weighted_least_squares(one, alone)
        found, slope = jackknife(one, alone, solution), float(solution.values[0])
        if slope > 0.0 and not found.undetermined[0] and found.deviation[0] < ALIKE * slope:
            values[j], variances[j] = -np.log(slope), (found.deviation[0] / slope) ** 2
    hefts = [_heft(own, mix[:, 0], tool) for own, mix, tool in zip(factors, columns, tools, strict=True)]
    return Described(values, variances, np.array(hefts))


def _heft(own: JointFactors, bodies: Array, tool: Array) -> float:
    """Return the rms torque of the bodies over that of 1 kg at the tool; one without a lever weighs nothing."""
    R = own.merged()[:, : len(bodies)]
    described, lever = float(np.linalg.norm(R @ bodies)), float(np.linalg.norm(R @ tool))
    return max(described, 1e-9) / max(lever, 1e-9)


def gain_slopes(factors: Sequence[JointFactors], layout: Layout, solution: Solution) -> Array:
    """Return ∂x/∂g (parameters, joints): how the estimate moves with the logarithm of every gain."""
    merged = [own.merged() for own in factors]
    rows = stacked(merged, layout, solution.sigma)
    of_joint = np.repeat(np.arange(len(factors)), [len(R) for R in merged])
    outputs = np.where(of_joint[:, None] == np.arange(len(factors)), rows[:, -1:], 0.0)
    lengths = np.linalg.norm(rows[:, :-1], axis=0)
    active = np.flatnonzero((lengths > 0.0) & ~(layout.bound & (solution.values == 0.0)))
    slopes = np.zeros((layout.count, len(factors)))
    slopes[active] = np.linalg.lstsq(rows[:, active] / lengths[active], outputs, rcond=1e-9)[0]
    slopes[active] /= lengths[active, None]
    return slopes


def _with_gains(
    factors: Sequence[JointFactors], layout: Layout, start: Solution, directions: Array
) -> tuple[list[JointFactors], Layout]:
    """Return factors in Nm with a column -W_j x for every direction in g, x that of `start`, and their layout."""
    count = directions.shape[1]
    wide = [
        replace(own, triangles=[_with_column(R, start.values[places], way) for R in own.triangles])
        for own, places, way in zip(factors, layout.index, directions, strict=True)
    ]
    more = layout.count + np.arange(count)
    bound = np.append(layout.bound, np.zeros(count, dtype=bool))
    return wide, Layout([np.append(own, more) for own in layout.index], bound)


def _with_column(R: Array, values: Array, way: Array) -> Array:
    return np.hstack([R[:, :-1], np.outer(R[:, :-1] @ values, -way), R[:, -1:]])


def _unexplained(factors: Sequence[JointFactors], layout: Layout, sigma: Array, first: int) -> Array:
    """Return what no other column explains of the columns of the gains, which stand from `first` on."""
    rows = triangle(stacked([own.merged() for own in factors], layout, sigma))[:, :-1]
    lengths = np.linalg.norm(rows[:, :first], axis=0)
    W, G = rows[:, :first] / np.where(lengths > 0.0, lengths, 1.0), rows[:, first:]
    left: Array = G - W @ np.linalg.lstsq(W, G, rcond=1e-9)[0]
    return left


def _seen(factors: Sequence[JointFactors], layout: Layout, sigma: Array, first: int) -> Array:
    """Return the directions (columns) that even independent rows would tell better than the belief `ALIKE` does."""
    _, sizes, ways = np.linalg.svd(_unexplained(factors, layout, sigma, first), full_matrices=False)
    seen: Array = ways[sizes > 1.0 / ALIKE].T
    return seen


def missing_mass(ratios: Ratios, described: Described) -> float:
    """Return the mass (kg) at the tool that best explains how the description differs from the coupling.

    ``directionsᵀ g_described - ratios`` is normal with covariance C + directionsᵀ V directions, V that of the
    description with what is missing; the likeliest of `MISSING`.
    """
    apart = ratios.directions.T @ described.values - ratios.values

    def surprise(missing: float) -> float:
        own = described.covariance_with(missing)
        covariance = ratios.covariance + ratios.directions.T @ own @ ratios.directions
        return float(np.linalg.slogdet(covariance)[1] + apart @ np.linalg.solve(covariance, apart))

    most = float(described.hefts[described.variances < NOTHING].max(initial=0.0))
    return min([share * most for share in MISSING], key=surprise)
