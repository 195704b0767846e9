"""Search for the optimal excitation: random starts, the two best of them refined, in steps that can be resumed.

The weighted regressor W of a motion has the information M = Σ_j C_j C_jᵀ / σ_j², the inverse of the covariance of the
estimate. D-optimal motions maximise log det M, A-optimal ones minimise the trace of M⁻¹ (Swevers, Ganseman, Tükel, De
Schutter & Van Brussel, "Optimal robot excitation and identification", IEEE T-RA 13, 1997; the condition number of W:
Gautier & Khalil, "Exciting trajectories for the identification of base inertial parameters of robots", IJRR 11, 1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jointwise.design.excitation_basis import ExcitationMotion, MotionBasis
from jointwise.design.excitation_limits import ExcitationLimits
from jointwise.design.information import Columns, InformationModel
from jointwise.design.placement import SPREAD
from jointwise.design.search_journal import Resumable, Step
from jointwise.design.trajectory import States
from jointwise.document import Kind
from jointwise.errors import ModelError
from jointwise.spatial import Array

# -- what is minimised --

Mask = NDArray[np.bool_]

CONDITIONING = 0.7
"""Weight of the condition number beside the volume: at 0 it is 35 for a UR10e in 20 s, at 3 errors grow by a third."""


def criterion(model: InformationModel, columns: Columns, typical: Array | None = None) -> tuple[float, list[Array]]:
    """Return the value to minimise, and its derivatives (parameters, parameters) with respect to all C_j C_jᵀ.

    D- or A-optimality plus, where bodies count, `CONDITIONING` times the logarithm of ``|W|_F² |W⁺|_F²`` of their plain
    regressor W. Both kinds are logarithms of a mean variance: of the geometric mean (D), or of the arithmetic one of
    the variances relative to typical ones (A), which makes parameters of different units comparable.

    Args:
        model: The parameters and which of them count.
        columns: Regressor of the motion.
        typical: Typical standard errors (parameters,) for A-optimality; None for D-optimality.

    Raises:
        numpy.linalg.LinAlgError: The motion does not determine the parameters.

    """
    M = model.information(columns)
    value, slope = _volume(M, model.target) if typical is None else _mean_square(M, model.target, typical)
    condition, plain = conditioning(model, columns)
    return condition + value, [plain + slope / noise**2 for noise in model.noise]


def _volume(M: Array, target: Mask) -> tuple[float, Array]:
    """Return ``-(log det M - log det M_oo) / n_t``, t parameters that count and o the others, and its derivative."""
    inverse, log_det = _inverse(M)
    slope = -inverse
    if not target.all():
        others = np.ix_(~target, ~target)
        inverse_others, log_det_others = _inverse(M[others])
        slope[others] += inverse_others
        log_det -= log_det_others
    count = int(target.sum())
    return -log_det / count, slope / count


def _mean_square(M: Array, target: Mask, typical: Array) -> tuple[float, Array]:
    """Return ``log(tr(D M⁻¹) / n_t)``, D the inverse squares of the typical errors that count, and its derivative."""
    inverse, _ = _inverse(M)
    weight = np.where(target, typical, np.inf) ** -2
    total = float(weight @ np.diag(inverse))
    slope: Array = -(inverse * weight) @ inverse / total
    return float(np.log(total / target.sum())), slope


def conditioning(model: InformationModel, columns: Columns) -> tuple[float, Array]:
    """Return the weighted logarithm of the squared Frobenius condition number, and its derivative."""
    slope = np.zeros((len(model.names), len(model.names)))
    if model.goal not in ("all", "bodies"):
        return 0.0, slope
    rigid = rigid_columns(model)
    K = model.information(columns, np.ones(model.robot.dof))[np.ix_(rigid, rigid)]
    inverse, _ = _inverse(K)
    size, inverse_size = float(np.trace(K)), float(np.trace(inverse))
    change = np.eye(len(K)) / size - inverse @ inverse / inverse_size
    slope[np.ix_(rigid, rigid)] = CONDITIONING * change
    return CONDITIONING * float(np.log(size * inverse_size)), slope


def rigid_columns(model: InformationModel) -> Mask:
    """Return which columns are of links, not of rotors: base parameters, or those of the last link with a payload."""
    rigid = np.zeros(len(model.names), dtype=bool)
    links = model.dynamics.base.kept < 10 * model.robot.dof
    rigid[: model.bodies] = True if model.goal == "payload" else links
    return rigid


def condition_number(model: InformationModel, columns: Columns) -> float:
    """Return the condition number of the regressor of the links (without rotors) for all joints, SI units."""
    rigid = rigid_columns(model)
    K = model.information(columns, np.ones(model.robot.dof))[np.ix_(rigid, rigid)]
    return float(np.sqrt(np.linalg.cond(K)))


def standard_errors(model: InformationModel, columns: Columns, density: float = 1.0) -> Array:
    """Return the standard errors (parameters,) of weighted least squares, with `density` samples for each column."""
    M = density * model.information(columns)
    scale = np.sqrt(np.diag(M))
    inverse, _ = _inverse(M / np.multiply.outer(scale, scale))
    return np.asarray(np.sqrt(np.diag(inverse)) / scale)


def _inverse(M: Array) -> tuple[Array, float]:
    """Return the inverse and the logarithm of the determinant of a positive definite matrix."""
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(M)
    return cho_solve(factor, np.eye(len(M))), 2.0 * float(np.log(np.diag(factor[0])).sum())


# -- search --

START_WEIGHT, START_ITERATIONS = 3.0, 60
"""Weight of the penalty and iterations of every start."""
REFINEMENTS = ((3.0, 200), (30.0, 150))
"""Weights of the penalty and iterations of a refined start; a larger weight leaves less to scale down."""
REFINED = 2
"""Number of starts that are refined: of equally good ones after their few iterations, one may end in a poor optimum."""
UNDETERMINED = 1e6
"""Value of a motion that does not determine the parameters; others are between -100 and 100, plus the penalty."""
STATE = Kind(
    format="jointwise excitation state",
    name="the state of an excitation",
    noun="state of an excitation",
    remedy="Remove it.",
)


@dataclass(frozen=True)
class Search:
    """The search for an excitation; its variables are the first pose and the coefficients of a basis.

    Attributes:
        model: Parameters that the motion shall determine.
        limits: Limits of the motion.
        basis: Functions of time of which the motion is a sum.
        speed: Share of the speed limits that random starts use.
        seed: Seed of the random starts.
        typical: Typical standard errors for A-optimality, (parameters,); None for D-optimality.
    """

    model: InformationModel
    limits: ExcitationLimits
    basis: MotionBasis
    speed: float
    seed: int
    typical: Array | None = None

    def motion(self, variables: Array) -> ExcitationMotion:
        """Return the motion of variables."""
        rows = self._scaled(variables)
        return self.basis.motion(rows[0], rows[1:])

    def start(self, number: int) -> Array:
        """Return the variables of a random start: a random motion about a posture near the upright one."""
        coefficients = self.basis.random(self.model.robot, self.seed * 1000 + number, self.speed)
        rng, limits = np.random.default_rng([self.seed, number]), self.limits.motion
        near = self.limits.home + rng.uniform(-SPREAD, SPREAD, self.model.robot.dof)
        center = np.clip(near, limits.lower, limits.upper)
        variables: Array = (np.vstack([center, coefficients]) / self._scale).ravel()
        return variables

    def value(self, variables: Array, weight: float) -> tuple[float, Array]:
        """Return the criterion plus `weight` times the penalty of the limits, and the gradient."""
        rows = self._scaled(variables)
        q, qd, qdd = (part @ rows for part in self._functions)
        states = States(self.basis.times, q, qd, qdd)
        columns = self.model.columns(states)
        try:
            value, slopes = criterion(self.model, columns, self.typical)
        except np.linalg.LinAlgError:
            return UNDETERMINED, np.zeros_like(variables)
        torque = self.model.torque(columns, states)
        penalty, by_signal, by_center = self.limits.penalty(states, torque, rows[0])
        by_motion = self.model.gradient(states, columns, slopes, weight * by_signal[3])
        total = [a + weight * b for a, b in zip(by_motion, by_signal, strict=False)]
        gradient = sum(part.T @ each for part, each in zip(self._functions, total, strict=True))
        gradient[0] += weight * by_center
        return value + weight * penalty, (gradient * self._scale).ravel()

    def quality(self, motion: ExcitationMotion) -> float:
        """Return the criterion of a motion, without penalty."""
        return criterion(self.model, self.model.columns(motion.at(self.basis.times)), self.typical)[0]

    def improve(self, variables: Array, weight: float, iterations: int) -> Step:
        """Return the result of some iterations of L-BFGS."""
        from scipy.optimize import minimize

        result = minimize(
            self.value, variables, args=(weight,), jac=True, method="L-BFGS-B", options={"maxiter": iterations}
        )
        return Step(float(result.fun), result.x.tolist())

    def _scaled(self, variables: Array) -> Array:
        """Return first pose and coefficients, (1 + coefficients, joints), rad."""
        rows: Array = variables.reshape(len(self._scale), -1) * self._scale
        return rows

    @cached_property
    def _scale(self) -> Array:
        """Scale of the variables, (1 + coefficients, 1)."""
        return np.concatenate([[1.0], self.basis.scale])[:, None]

    @cached_property
    def _functions(self) -> Array:
        return self.basis.functions()


def search_motion(
    search: Search,
    starts: int,
    accept: Callable[[ExcitationMotion], ExcitationMotion | None],
    key: str,
    state: Path | None,
    progress: Callable[[float], None],
) -> ExcitationMotion | None:
    """Return the best motion that `accept` returns, None if it accepts none; finished steps are read from `state`."""
    journal = Resumable(STATE, key, state)
    planned = starts + min(REFINED, starts) * len(REFINEMENTS)

    def step(make: Callable[[], Step]) -> Step:
        result = journal.step(make)
        progress(min(journal.finished / planned, 1.0))
        return result

    tried = [
        step(lambda k=k: search.improve(search.start(k), START_WEIGHT, START_ITERATIONS))  # type: ignore[misc]
        for k in range(starts)
    ]
    determined = sorted((each for each in tried if each.value < UNDETERMINED), key=lambda each: each.value)
    if not determined and all(search.value(search.start(k), 0.0)[0] == UNDETERMINED for k in range(starts)):
        raise ModelError(
            f"no motion of robot '{search.model.robot.name}' in this mounting determines all its parameters: "
            "load and friction of a joint cannot be separated."
        )
    accepted = (accept(search.motion(_refined(search, best, step))) for best in determined)
    found = islice((motion for motion in accepted if motion is not None), REFINED)
    return min(found, key=search.quality, default=None)


def _refined(search: Search, best: Step, step: Callable[[Callable[[], Step]], Step]) -> Array:
    """Return the variables of a start after all refinements."""
    for weight, iterations in REFINEMENTS:
        variables = np.array(best.variables)
        best = step(lambda v=variables, w=weight, n=iterations: search.improve(v, w, n))  # type: ignore[misc]
    return np.array(best.variables)
