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

from dataclasses import dataclass, field, replace

import numpy as np

from jointwise.description.robot import Link
from jointwise.estimation.body_prior import BodyPrior
from jointwise.estimation.bounded import bounded_least_squares, squared_error
from jointwise.estimation.cross_validation import cross_validate
from jointwise.estimation.factors import Index, fold_blocks, triangle
from jointwise.estimation.least_squares import Problem, Solution
from jointwise.estimation.semidefinite import MARGIN, RIDGE, DefiniteLeastSquares, Iterate, PriorKind, symmetric
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
        ConvergenceError: Rounding stopped the method before the optimum; has the best bodies found.

    """
    if estimate is None:
        programme, fit, held_out = _weighted(Programme(problem, solution, projection, prior, kind))
    else:
        programme = Programme(problem, replace(solution, values=estimate), projection, prior, kind)
        fit, held_out = programme.solve(_about(programme.factor(), estimate)), None
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
    problem, sigma, factor = programme.problem, programme.solution.sigma, programme.factor()
    fit = programme.solve(factor)
    if len(fold_blocks(len(problem.factors[0].triangles))) < LEAST_FOLDS:
        return programme, fit, None
    free, found = float(cross_validate(problem, sigma).joints.mean()), (programme, fit, np.inf)
    described, training = bool(np.isfinite(programme.prior.described_masses).any()), problem.without_folds(sigma)
    for weight in PRIOR_WEIGHTS if described else PRIOR_WEIGHTS[::-1]:
        candidate = replace(programme, weight=weight)
        fit = candidate.solve(factor, fit.point)
        folds = [candidate.solve(others, fit.point).values for others in training]
        error = float(cross_validate(problem, sigma, folds).joints.mean())
        if error > (1.0 - WORTHWHILE) * found[2]:
            break
        found = candidate, fit, error
    return found[0], found[1], Consistency(free, found[2])


def _about(factor: Array, values: Array) -> Array:
    """Return the factor of other outputs: least squares gives `values`, with the residual they leave."""
    R = np.vstack([factor, np.zeros(factor.shape[1])])
    R[:-1, -1] = factor[:, :-1] @ values
    R[-1, -1] = np.sqrt(squared_error(factor, values))
    return R


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
        lengths, base = np.linalg.norm(self.factor()[:, :-1], axis=0), len(self.projection)
        active = base + np.flatnonzero(lengths[base:] > 1e-12 * lengths.max())
        object.__setattr__(self, "active", active)

    def factor(self) -> Array:
        """Return the factor [R z] of all rows, those of each joint divided by its residual deviation."""
        return self.problem.whole(self.solution.sigma)

    def solve(self, factor: Array, start: Iterate | None = None) -> _Solved:
        """Return the solution for the factor [R z] of rows divided by the deviations of their joints."""
        size, bodies = np.sqrt(self._squared_residual(factor)), self.whitening.shape[1]
        rows = self._with_other_motions(factor)[:, [*range(len(self.projection)), *self.active, -1]]
        effects = np.zeros((rows.shape[1] - 1, bodies + len(self.active)))
        effects[: len(self.projection), :bodies] = self.projection @ self.whitening
        effects[len(self.projection) :, bodies:] = np.eye(len(self.active))
        free = np.ones(effects.shape[1], dtype=bool)
        free[:bodies] = self._without_prior()
        lengths = np.linalg.norm(rows[:, :-1] @ effects, axis=0)
        scaled = free & (lengths > 1e-12 * lengths.max())
        scale = np.ones(len(free))
        scale[scaled] = size / lengths[scaled]
        ratios, firmness = self._ratios(len(free))
        bound = np.concatenate([np.ones(len(self.prior.rotors), dtype=bool), self._bound()])
        point = DefiniteLeastSquares(
            factor=rows / size,
            effects=effects * scale,
            free=free,
            matrices=len(self.prior.names),
            ratios=ratios,
            firmness=firmness,
            bound=10 * len(self.prior.names) + np.flatnonzero(bound),
            inequalities=self._regions(len(free)),
            kind=self.kind,
            weight=self.weight,
        ).solve(start)
        return replace(self._solved(point.v * scale), point=point)

    def _with_other_motions(self, factor: Array) -> Array:
        """Return the rows with μ ‖v - v̂‖²_h added: one row ``√(μ h_k) (v_k - v̂_k)`` for every parameter."""
        weights = np.sqrt(OTHER_MOTIONS) * np.linalg.norm(factor[:, :-1], axis=0)
        nearest = bounded_least_squares(factor, self.problem.layout.bound)
        return np.vstack([factor, np.column_stack([np.diag(weights), weights * nearest])])

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

    def _squared_residual(self, factor: Array) -> float:
        """Return the squared residual of the unconstrained solution, N, by which that of the programme is divided."""
        return max(squared_error(factor, self.solution.values), SMALLEST_RESIDUAL * float(np.sum(factor[:, -1] ** 2)))

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

        It is the part of a change of each parameter that the estimate follows through the data. ``H = RᵀR`` is the
        curvature of the data with the joint terms free, ``Λ = DᵀD`` that of the prior. With the factors
        ``[R; D] = Q U`` the resolution is ``U⁻¹ Qᵀ [R; 0]``.
        """
        factor = self.factor()
        rows, bodies, links = self._with_other_motions(factor), self.whitening.shape[1], len(self.prior.names)
        terms = rows[:, self.active[(self.solution.values[self.active] != 0.0) | ~self._bound()]]
        terms = np.vstack([terms / np.linalg.norm(terms, axis=0), np.sqrt(RIDGE) * np.eye(terms.shape[1])])
        whole = np.zeros((len(terms), terms.shape[1] + bodies))
        whole[:, : terms.shape[1]] = terms
        whole[: len(rows), terms.shape[1] :] = rows[:, : len(self.projection)] @ self.projection @ self.whitening
        R = triangle(whole)[terms.shape[1] :, terms.shape[1] :] / np.sqrt(self._squared_residual(factor))
        alone = self._without_prior()  # their prior deviation: the value itself, or the inertia of the link
        size = np.where(alone, np.maximum(fit.standard, self._axis_inertias()), 1.0)
        ratios, firmness = self._ratios(bodies)
        D = np.sqrt(self.weight) * np.vstack([np.diag(1.0 / size), np.sqrt(firmness[:links, None]) * ratios[:links]])
        Q, U = np.linalg.qr(np.vstack([R, D]))
        resolution = np.linalg.solve(U, Q[: len(R)].T @ R)
        inverse = np.linalg.inv(self.whitening)
        share = np.clip(np.sum((self.whitening @ resolution) * inverse.T, axis=1), 0.0, 1.0)
        rotors = share[10 * links :] if len(self.prior.rotors) else np.zeros(links)
        return share[: 10 * links].reshape(links, 10), rotors

    def _axis_inertias(self) -> Array:
        """Return the prior inertia of every link about its joint axis, at the positions of the rotors."""
        axis = self.prior.inertials[:, 5]
        return np.concatenate([np.zeros(self.prior.inertials.size), axis[: len(self.prior.rotors)]])
