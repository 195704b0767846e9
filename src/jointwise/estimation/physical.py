"""Physically consistent bodies: positive definite pseudo-inertias by a semidefinite programme.

Base parameters β = P π do not determine the single bodies π, and because of noise there may be no bodies with these β.
Here all standard parameters and the joint terms x are fitted together on the factor [R_b R_x z] of the data:

    minimise  ½ [‖R_b P π + R_x x - z‖² + μ ‖v - v̂‖²_h] / N + λ Σ_j [D(Q_j) + d(m_j / m_j⁰) / δ_j²]

    Q_j = C_j⁻¹ J_j C_j⁻ᵀ,   J_j⁰ = C_j C_jᵀ,   v = (P π, x)

subject to Q_j > 0, centres of mass inside their regions, and rotor inertias and friction >= 0. N is the squared
residual of the unconstrained fit v̂. J_j is the pseudo-inertia of link j (Wensing, Kim & Slotine, "Linear matrix
inequalities for physically consistent inertial parameter identification", IEEE RA-L 3, 2018; Sousa & Cortesão, IJRR 33,
2014) and J_j⁰ that of its prior; D is ½ ‖Q - 1‖² (euclidean) or tr Q - log det Q (entropic; Lee & Park, RA-L 3, 2018),
which has the same curvature at the prior. In the coordinates Q all links have the same scale, whatever their mass.

Descriptions state masses more accurately than shapes: d is the same divergence of the mass alone, with the tolerance
δ_j. A mass that the data do not determine therefore stays at its prior.

**Term μ.** The consistent parameters are a convex set, and noise puts v̂ outside of it. The nearest point of the set is
closer to the truth than v̂ in the norm in which it is nearest. The norm of the log guarantees this only for similar
motions: combinations that the log hardly excites may move far. The norm with the weights h_k, the squared lengths of
the columns, corresponds to a motion in which the parameters act independently of each other. Cross-validation within a
log cannot replace this term, because all folds belong to the same motion.

**Weight λ.** It is one of `PRIOR_WEIGHTS`. If bodies are described, a weaker prior is used as long as it lowers the
error of held-out folds. If no body is described, the prior is a rough guess, and a stronger one is used as long as it
lowers the error. The training residual is not a criterion: a weak prior mostly fits noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from jointwise.description.robot import Link
from jointwise.estimation.body_prior import BodyPrior
from jointwise.estimation.bounded import RIDGE, bounded_from_moments
from jointwise.estimation.cross_validation import cross_validate
from jointwise.estimation.factors import Index, fold_blocks
from jointwise.estimation.least_squares import Problem, Solution
from jointwise.estimation.semidefinite import MARGIN, DefiniteLeastSquares, Iterate, PriorKind, symmetric
from jointwise.spatial import Array, Mask

NEAR_BOUNDARY = 2.0 * MARGIN
"""A link is at the boundary if its smallest relative eigenvalue is below this."""
PRIOR_WEIGHTS = (1e-4, 1e-5, 1e-6)
"""λ beside the mean squared residual (1 by normalisation), from the largest. A body that differs from its prior by a
factor of two costs about this part of the residual variance. Logs too short to cross-validate and estimates of
other methods than least squares get the first."""
WORTHWHILE = 5e-4
"""Part of the held-out error that another weight of the prior must save; less is noise. Other motions amplify what a
prior costs between the folds of a log: tenths of a percent are several percent there."""
OTHER_MOTIONS = 0.1
"""μ: weight of motions in which the parameters act independently of each other, beside that of the log."""
SUSPECT_MASS = 0.3
"""Relative difference of a mass from its description worth a warning; catalogues are right within 10 to 30 %."""
LEAST_FOLDS = 3
"""Folds that a cross-validation needs."""
SMALLEST_RESIDUAL = 1e-6
"""Residual variance (part of the mean square of the output) below which a fit counts as exact; noise-free data only."""


@dataclass(frozen=True)
class Consistency:
    """Held-out MSE / variance (mean over the joints) of the unconstrained and of the consistent fit."""

    unconstrained: float
    consistent: float

    @property
    def cost(self) -> float:
        """Relative increase of the held-out error; negative where the consistent fit predicts better."""
        return self.consistent / self.unconstrained - 1.0


@dataclass(frozen=True)
class PhysicalParameters:
    """Physically consistent standard parameters of all bodies.

    Attributes:
        names: Names of the links.
        inertials: Standard parameters in the joint frames, (links, 10), in the order of `spatial.INERTIAL_NAMES`.
        rotor_inertias: Rotor inertias reflected to the joints, (links,), kg m²; zero if the model has none.
        values: All parameters of the model for these bodies, with the joint terms fitted again, (parameters,).
        share: Part of each standard parameter that comes from the data, (links, 10): 1 data only, 0 prior only.
        rotor_share: The same for the rotor inertias, (links,).
        eigenvalues: Smallest eigenvalue of each pseudo-inertia relative to its prior, (links,).
        boundary: Links (0-based) at the boundary of physical consistency.
        prior: Divergence from the prior.
        prior_source: Origin of the prior bodies, as text.
        prior_weight: λ.
        held_out: Held-out errors; None for logs too short to cross-validate and for instrumental variables, whose folds
            would show the noise of the positions.
        described_masses: Masses of the description with the payload, (links,), kg; NaN where there is none, empty in
            files that do not state them.

    """

    names: tuple[str, ...]
    inertials: Array
    rotor_inertias: Array
    values: Array
    share: Array
    rotor_share: Array
    eigenvalues: Array
    boundary: tuple[int, ...]
    prior: PriorKind
    prior_source: str
    prior_weight: float = PRIOR_WEIGHTS[0]
    held_out: Consistency | None = None
    described_masses: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def suspect_masses(self) -> tuple[str, ...]:
        """Texts about the links whose mass differs from the description by more than `SUSPECT_MASS`."""
        return tuple(
            f"{name} {found:.3g} kg instead of the described {described:.3g} kg"
            for name, found, described in zip(self.names, self.inertials[:, 9], self.described_masses, strict=False)
            if abs(found / described - 1.0) > SUSPECT_MASS
        )

    @property
    def links(self) -> tuple[Link, ...]:
        """The bodies: name, mass, centre of mass and inertia, in the joint frames."""
        return tuple(Link(name, inertial) for name, inertial in zip(self.names, self.inertials, strict=True))


def physical_parameters(
    problem: Problem,
    solution: Solution,
    projection: Array,
    prior: BodyPrior,
    kind: PriorKind = "entropic",
    estimate: Array | None = None,
) -> PhysicalParameters:
    """Return the physically consistent standard parameters of a regression.

    Args:
        problem: The regression; its first unknowns are the base parameters.
        solution: Its unconstrained solution, whose residual deviations weight the joints.
        projection: P of β = P π, shape (base, standard): ten parameters a link, then the rotor inertias.
        prior: The prior bodies.
        kind: Divergence from the prior, `entropic` or `euclidean`.
        estimate: Values (parameters,) of another method, such as instrumental variables, that the bodies shall be
            nearest to in the norm of the data; None for those of the least-squares solution.

    Returns:
        Bodies, rotors and joint terms, with the share of the data in each and the cost of consistency.

    Raises:
        EstimationError: The constraints contradict each other: there is no solution.

    """
    if estimate is None:
        programme, fit, held_out = _weighted(Programme(problem, solution, projection, prior, kind))
    else:
        programme = Programme(problem, replace(solution, values=estimate), projection, prior, kind)
        fit, held_out = programme.solve(_about(programme.moments(), estimate)), None
    eigenvalues = fit.eigenvalues()
    share, rotor_share = programme.shares(fit)
    links = len(prior.names)
    boundary = tuple(j for j in range(links) if eigenvalues[j] < NEAR_BOUNDARY or fit.at_region(j))
    rotors = fit.standard[10 * links :] if len(prior.rotors) else np.zeros(links)
    return PhysicalParameters(
        names=prior.names,
        inertials=fit.standard[: 10 * links].reshape(links, 10),
        rotor_inertias=rotors,
        values=fit.values,
        share=share,
        rotor_share=rotor_share,
        eigenvalues=eigenvalues,
        boundary=boundary,
        prior=kind,
        prior_source=prior.source,
        prior_weight=programme.weight,
        held_out=held_out,
        described_masses=prior.described_masses,
    )


def _weighted(programme: Programme) -> tuple[Programme, _Solved, Consistency | None]:
    """Return the programme with the weight of the prior by held-out errors, its solution, and the errors."""
    problem, sigma, square = programme.problem, programme.solution.sigma, programme.moments()
    fit = programme.solve(square)
    if len(fold_blocks(len(problem.factors[0].triangles))) < LEAST_FOLDS:
        return programme, fit, None
    free, found = float(cross_validate(problem, sigma).joints.mean()), (programme, fit, np.inf)
    described = bool(np.isfinite(programme.prior.described_masses).any())
    for weight in PRIOR_WEIGHTS if described else PRIOR_WEIGHTS[::-1]:
        candidate = replace(programme, weight=weight)
        fit = candidate.solve(square, fit.point)
        error = float(cross_validate(problem, sigma, _folds_from(candidate, fit)).joints.mean())
        if error > (1.0 - WORTHWHILE) * found[2]:
            break
        found = candidate, fit, error
    return found[0], found[1], Consistency(free, found[2])


def _about(square: Array, values: Array) -> Array:
    """Return moments ``[W y]ᵀ [W y]`` of other outputs: least squares gives `values`, with the residual they leave."""
    signed, right = np.append(values, -1.0), square[:-1, :-1] @ values
    last = np.append(right, values @ right + signed @ square @ signed)
    return np.vstack([np.column_stack([square[:-1, :-1], right]), last])


def _folds_from(programme: Programme, fit: _Solved) -> Callable[[Array], Array]:
    """Return the parameters for the moments of some folds, from the solution for all of them."""
    return lambda square: programme.solve(square, fit.point).values


@dataclass(frozen=True)
class _Solved:
    """A solution: standard parameters, values of the model, and the matrices Q_j (links, 4, 4)."""

    standard: Array
    values: Array
    relative: Array
    prior: BodyPrior
    point: Iterate | None = None

    def eigenvalues(self) -> Array:
        """Return the smallest eigenvalue of every Q_j."""
        return np.array([np.linalg.eigvalsh(Q)[0] for Q in self.relative])

    def at_region(self, link: int) -> bool:
        """Return whether the centre of mass of a link lies on a face of its region."""
        region, inertial = self.prior.regions[link], self.standard[10 * link : 10 * link + 10]
        if region is None:
            return False
        center, size = inertial[6:9] / inertial[9], region[1] - region[0]
        return bool(np.any(np.minimum(center - region[0], region[1] - center) < 1e-4 * np.maximum(size, 1e-9)))


@dataclass(frozen=True)
class Programme:
    """The semidefinite programme of one regression; see the module.

    Attributes:
        problem: The regression.
        solution: Its solution without constraints.
        projection: Map from standard to base parameters, (base, standard).
        prior: Expected bodies.
        kind: Divergence from the prior.
        weight: Weight λ of the prior.
        whitening: Map from coordinates relative to the prior to standard parameters, (standard, standard).
        active: Indices of the parameters of joint terms that have an effect.
    """

    problem: Problem
    solution: Solution
    projection: Array
    prior: BodyPrior
    kind: PriorKind
    weight: float = PRIOR_WEIGHTS[0]
    whitening: Array = field(init=False)
    active: Index = field(init=False)

    def __post_init__(self) -> None:
        """Compute the map from relative coordinates to standard parameters, and which joint terms have an effect."""
        object.__setattr__(self, "whitening", self.prior.from_relative())
        lengths, base = np.sqrt(np.diag(self.moments())[:-1]), len(self.projection)
        active = base + np.flatnonzero(lengths[base:] > 1e-12 * lengths.max())
        object.__setattr__(self, "active", active)

    def moments(self) -> Array:
        """Return ``[W y]ᵀ [W y]`` of all rows, those of each joint divided by its residual deviation."""
        return self.problem.quick().whole(self.solution.sigma)

    def curvature(self, square: Array) -> tuple[Array, Array]:
        """Return AᵀA and Aᵀb of the residual A v - b in the unknowns (Q entries, rotors, active terms)."""
        base, bodies = len(self.projection), self.whitening.shape[1]
        to_base = self.projection @ self.whitening
        chosen = np.concatenate([np.arange(base), self.active])
        across = to_base.T @ square[:base][:, [*chosen, -1]]
        H = np.empty((bodies + len(self.active), bodies + len(self.active)))
        H[:bodies, :bodies] = across[:, :base] @ to_base
        H[:bodies, bodies:] = across[:, base:-1]
        H[bodies:, :bodies] = across[:, base:-1].T
        H[bodies:, bodies:] = square[self.active][:, self.active]
        return H, np.concatenate([across[:, -1], square[self.active, -1]])

    def solve(self, square: Array, start: Iterate | None = None) -> _Solved:
        """Return the solution for the moments ``[W y]ᵀ [W y]`` of rows divided by the deviations of their joints."""
        H, right = self.curvature(self._with_other_motions(square))
        size = np.sqrt(self._squared_residual(square))
        free = np.arange(len(right)) >= 10 * len(self.prior.names)
        free[: self.whitening.shape[1]] &= self._without_prior()
        lengths = np.sqrt(np.diag(H))
        scale = size * np.where(free & (lengths > 1e-12 * lengths.max()), lengths / size, 1.0)
        ratios, firmness = self._ratios(len(right))
        bound = np.concatenate([np.ones(len(self.prior.rotors), dtype=bool), self._bound()])
        point = DefiniteLeastSquares(
            curvature=H / np.outer(scale, scale) + np.diag(RIDGE * free),
            right=right / scale / size,
            matrices=len(self.prior.names),
            ratios=ratios,
            firmness=firmness,
            bound=10 * len(self.prior.names) + np.flatnonzero(bound),
            inequalities=self._regions(len(right)),
            kind=self.kind,
            weight=self.weight,
        ).solve(start)
        return replace(self._solved(point.v * size / scale), point=point)

    def _with_other_motions(self, square: Array) -> Array:
        """Return the moments with μ ‖v - v̂‖²_h added: one row ``√(μ h_k) (v_k - v̂_k)`` for every parameter."""
        weights = OTHER_MOTIONS * np.diag(square)[:-1]
        nearest = bounded_from_moments(square, self.problem.layout.bound)
        result = square.copy()
        result.flat[: -len(square) : len(square) + 1] += weights
        result[:-1, -1] += weights * nearest
        result[-1, :-1] += weights * nearest
        result[-1, -1] += weights @ nearest**2
        return result

    def _ratios(self, unknowns: int) -> tuple[Array, Array]:
        """Return the rows of quantities relative to their prior, masses and described rotors, and their firmness."""
        links = len(self.prior.names)
        rotors = 10 * links + np.flatnonzero(~np.isnan(self.prior.rotors))
        rows = np.zeros((links + len(rotors), unknowns))
        for j in range(links):
            rows[j, 10 * j : 10 * j + 10] = (
                self.whitening[10 * j + 9, 10 * j : 10 * j + 10] / self.prior.inertials[j, 9]
            )
        rows[np.arange(links, len(rows)), rotors] = 1.0
        return rows, np.concatenate([self.prior.mass_tolerance**-2.0, np.ones(len(rotors))])

    def _without_prior(self) -> Mask:
        """Return which of the body parameters have no prior: rotors that are not described."""
        return np.concatenate([np.zeros(10 * len(self.prior.names), dtype=bool), np.isnan(self.prior.rotors)])

    def _squared_residual(self, square: Array) -> float:
        """Return the squared residual of the unconstrained solution, N, by which that of the programme is divided."""
        signed = np.append(self.solution.values, -1.0)
        return float(max(signed @ square @ signed, SMALLEST_RESIDUAL * square[-1, -1]))

    def _bound(self) -> Mask:
        return self.problem.layout.bound[self.active]

    def _regions(self, unknowns: int) -> Array:
        """Return rows g with g v >= 0 for every region: m upper - mc and mc - m lower."""
        rows = [np.zeros((0, unknowns))]
        for j, region in enumerate(self.prior.regions):
            if region is not None:
                B = self.whitening[10 * j : 10 * j + 10, 10 * j : 10 * j + 10]
                faces = np.vstack([B[6:9] - np.outer(region[0], B[9]), np.outer(region[1], B[9]) - B[6:9]])
                rows.append(np.zeros((len(faces), unknowns)))
                size = np.maximum(np.abs(faces).max(axis=1, keepdims=True), 1e-300)
                rows[-1][:, 10 * j : 10 * j + 10] = faces / size
        return np.vstack(rows)

    def _solved(self, v: Array) -> _Solved:
        links, bodies = len(self.prior.names), self.whitening.shape[1]
        standard = self.whitening @ v[:bodies]
        standard[10 * links :] = np.maximum(standard[10 * links :], 0.0)  # a bound is met up to rounding
        values = self.solution.values.copy()
        values[: len(self.projection)] = self.projection @ standard
        bound = self._bound()
        values[self.active] = np.where(bound, np.maximum(v[bodies:], 0.0), v[bodies:])
        relative = np.array([symmetric(v[10 * j : 10 * j + 10]) for j in range(links)])
        return _Solved(standard, values, relative, self.prior)

    def shares(self, fit: _Solved) -> tuple[Array, Array]:
        """Return the diagonal of the resolution (H + Λ)⁻¹ H, within 0 and 1.

        It is the part of a change of each parameter that the estimate follows through the data. H is the curvature of
        the data with the joint terms free, Λ that of the prior.
        """
        square = self.moments()
        whole, _ = self.curvature(self._with_other_motions(square))
        bodies, links = self.whitening.shape[1], len(self.prior.names)
        free = bodies + np.flatnonzero((self.solution.values[self.active] != 0.0) | ~self._bound())
        lengths = np.sqrt(np.diag(whole)[free])
        across = whole[free, :bodies] / lengths[:, None]
        inner = whole[np.ix_(free, free)] / np.outer(lengths, lengths) + RIDGE * np.eye(len(free))
        H = (whole[:bodies, :bodies] - across.T @ np.linalg.solve(inner, across)) / self._squared_residual(square)
        alone = self._without_prior()  # their prior deviation: the value itself, or the inertia of the link
        size = np.where(alone, np.maximum(fit.standard, self._axis_inertias()), 1.0)
        ratios, firmness = self._ratios(bodies)
        masses = ratios[:links].T @ (firmness[:links, None] * ratios[:links])
        resolution = np.linalg.solve(H + self.weight * (np.diag(size**-2.0) + masses), H)
        inverse = np.linalg.inv(self.whitening)
        share = np.clip(np.sum((self.whitening @ resolution) * inverse.T, axis=1), 0.0, 1.0)
        rotors = share[10 * links :] if len(self.prior.rotors) else np.zeros(links)
        return share[: 10 * links].reshape(links, 10), rotors

    def _axis_inertias(self) -> Array:
        """Return the prior inertia of every link about its joint axis, at the positions of the rotors."""
        axis = self.prior.inertials[:, 5]
        return np.concatenate([np.zeros(self.prior.inertials.size), axis[: len(self.prior.rotors)]])
