"""Optimal excitation: the motion that determines the parameters of a robot best within its limits."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked, checked_fields
from jointwise.call_settings import Basis, ExcitationSettings
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import TORQUE_NOISE, Robot
from jointwise.design.bspline import DEGREE, SplineMotion, bspline_trajectory, span_count
from jointwise.design.clearance import CLEARANCE, RESERVE, SPREAD, Body, Clearance
from jointwise.design.excitation_limits import ExcitationLimits, Use, excitation_limits
from jointwise.design.fourier import FadedSeries, fade_time, fourier_trajectory
from jointwise.design.information import Columns, InformationModel, friction_terms
from jointwise.design.trajectory import DurationError, States, Trajectory, check_positive
from jointwise.document import Kind, load_document, write_document
from jointwise.errors import ModelError
from jointwise.model.dynamics import Dynamics
from jointwise.model.skeleton import Tool
from jointwise.settings import check
from jointwise.spatial import Array

ExcitationMotion = FadedSeries | SplineMotion

LOWEST_FREQUENCY = 0.1
"""Base frequency (Hz) of series of 10 s and more; shorter ones use that of one period."""
POINTS_PER_PERIOD = 16
"""Samples of the shortest period: extremes between them exceed a limit by at most 2 %, what the penalty reserves."""
SPACING = 0.5
"""Time (s) between the knots of a spline: half the shortest period of a series with ten harmonics."""
POINTS_PER_SPAN = 8
"""Samples between two knots, as many as in half the shortest period of a series."""


class MotionBasis(ABC):
    """Functions φ_i (s), and the times of samples (s) that resolve them."""

    duration: float

    @property
    @abstractmethod
    def times(self) -> Array:
        """Times at which motions are sampled, (samples,) s."""

    @property
    @abstractmethod
    def scale(self) -> Array:
        """Sizes of the coefficients, (coefficients,), with which all of them change the speed alike."""

    @abstractmethod
    def motion(self, center: Array, coefficients: Array) -> ExcitationMotion:
        """Return the motion of a first pose (joints,) and coefficients (coefficients, joints), rad or m."""

    @abstractmethod
    def random(self, robot: Robot, seed: int, speed: float) -> Array:
        """Return random coefficients (coefficients, joints) at a share of the speed limits."""

    def functions(self) -> Array:
        """Return q, q̇, q̈ at `times` as linear functions of center and coefficients, (3, samples, 1 + coefficients)."""
        count = len(self.scale)
        states = self.motion(np.zeros(count), np.eye(count)).at(self.times)
        constant = np.ones((len(self.times), 1))
        pairs = ((constant, states.q), (0.0 * constant, states.qd), (0.0 * constant, states.qdd))
        return np.stack([np.hstack(pair) for pair in pairs])


@dataclass(frozen=True)
class FourierBasis(MotionBasis):
    """Sines, then cosines, of `harmonics` times the base frequency (Hz), faded in and out."""

    duration: float
    harmonics: int

    @property
    def base_frequency(self) -> float:
        """Base frequency, Hz."""
        return max(LOWEST_FREQUENCY, 1.0 / self.duration)

    @property
    def times(self) -> Array:
        """Times at which motions are sampled, (samples,) s."""
        rate = POINTS_PER_PERIOD * self.harmonics * self.base_frequency
        return np.arange(int(self.duration * rate) + 1) / rate

    @property
    def scale(self) -> Array:
        """1/k of harmonic k."""
        k = 1.0 / np.arange(1.0, self.harmonics + 1.0)
        return np.concatenate([k, k])

    def motion(self, center: Array, coefficients: Array) -> FadedSeries:
        """Return the series."""
        sine, cosine = coefficients[: self.harmonics], coefficients[self.harmonics :]
        return FadedSeries(self.duration, fade_time(self.duration), self.base_frequency, center, sine, cosine)

    def random(self, robot: Robot, seed: int, speed: float) -> Array:
        """Return the coefficients of a random series."""
        series = fourier_trajectory(
            robot, self.duration, seed,
            harmonics=self.harmonics, base_frequency=self.base_frequency, speed_fraction=speed,
        )  # fmt: skip
        return np.vstack([series.sine, series.cosine])


@dataclass(frozen=True)
class SplineBasis(MotionBasis):
    """Quintic B-splines on knots about `SPACING` (s) apart, without the five at each end that do not begin at rest."""

    duration: float

    @property
    def spans(self) -> int:
        """Number of intervals between knots."""
        return span_count(self.duration, SPACING)

    @property
    def times(self) -> Array:
        """Times at which motions are sampled, (samples,) s."""
        return np.linspace(0.0, self.duration, POINTS_PER_SPAN * self.spans + 1)

    @property
    def scale(self) -> Array:
        """All coefficients alike."""
        return np.ones(self.spans - DEGREE)

    def motion(self, center: Array, coefficients: Array) -> SplineMotion:
        """Return the spline."""
        ends = np.zeros((DEGREE, coefficients.shape[1]))
        return SplineMotion.uniform(self.duration, center, np.vstack([ends, coefficients, ends]))

    def random(self, robot: Robot, seed: int, speed: float) -> Array:
        """Return the inner control points of a random spline."""
        spline = bspline_trajectory(robot, self.duration, seed, spacing=SPACING, speed_fraction=speed)
        return spline.control[DEGREE:-DEGREE]


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


SHORTEST = 5.0
"""Shortest duration (s): fading in and out takes half of it."""
LONGEST: dict[Basis, float] = {"fourier": 600.0, "bspline": 60.0}
"""Longest duration (s): a series of ten minutes repeats its periods sixty times; splines have more unknowns with every
second."""


@checked_fields
@dataclass(frozen=True)
class ExcitationOptions(ExcitationSettings):
    """Settings of an optimal excitation; the same settings give the same motion.

    Attributes:
        duration: Duration in s, from rest to rest.
        speed: Share of the speed limits.
        seed: Seed of the random starts.
        goal: What shall be determined: all, bodies, friction, or payload (bodies of the arm known).
        basis: fourier (a series that fades in and out) or bspline (quintic, knots every half second).
        criterion: d (volume of the confidence region) or a (mean of the squared standard errors, each relative to that
            of random series).
        mounting: Mounting of the base.
        clearance: Height in m above the mounting plane that is kept; None to ignore the plane.
        tool: Geometry of the tool.
        acceleration: Limit of joints without described limit, rad/s² or m/s²; None for 6 rad/s² and 3 m/s².
        reference: Values by parameter name, such as those of a calibration; the description is the default.
        noise: Torque noise of every joint (Nm, rms) at 500 Hz that the prediction assumes, such as that of a
            calibration; None for a share of the effort limits.
        inflation: Factors by parameter name by which the standard errors of an earlier excitation exceeded those of
            white noise; parameters without one get the median. None for white noise.
        harmonics: Number of harmonics of the base frequency of a Fourier series.
        starts: Number of random starts.

    """

    mounting: Mounting = "table"
    clearance: float | None = CLEARANCE
    tool: Tool | None = None
    reference: Mapping[str, float] | None = None
    noise: tuple[float, ...] | None = None
    inflation: Mapping[str, float] | None = None
    harmonics: int = 10
    starts: int = 4

    def __post_init__(self) -> None:
        """Reject settings out of range."""
        check(self)
        check_positive(speed=self.speed, harmonics=self.harmonics, starts=self.starts)
        if self.duration < SHORTEST:
            raise DurationError("an excitation with its fades", SHORTEST, self.duration)
        if self.duration > LONGEST[self.basis]:
            raise ModelError(
                f"duration must be at most {LONGEST[self.basis]:g} s with the basis {self.basis}. "
                f"Got {self.duration:g} instead."
            )
        _check_prediction(self.noise, self.inflation)


def _check_prediction(noise: Sequence[float] | None, inflation: Mapping[str, float] | None) -> None:
    """Reject torque noise or factors of standard errors that are not positive."""
    check_positive(**{f"noise of joint {j + 1}": value for j, value in enumerate(noise or ())})
    if inflation is not None:
        check_positive(**{f"inflation of {name}": value for name, value in inflation.items()})
        if not inflation:
            raise ModelError("inflation must have at least one parameter.")


RATE = 500.0
"""Rate (Hz) of trajectory files and of the recording that a prediction is made for."""
OVERSAMPLING = 10
"""The limits of a motion hold at so many points for each sample of its file."""
STUDY_RATE = 50.0
"""Rate (Hz) at which information is computed; it grows in proportion to the rate of a recording."""
RANDOM_SERIES = 20
"""Number of random series of the comparison."""
SHRINK, SMALLEST = 0.98, 0.3
"""Factor by which a motion is reduced until all limits hold, and the smallest accepted size."""
POOR = 1e3
"""Condition number above which a motion hardly separates the parameters of the links; random series have 50 to 300."""
POOR_TEXT = "the motion hardly separates the parameters. Allow more speed, acceleration or time."
CHUNK = 10_000
"""Samples in memory at a time."""


@dataclass(frozen=True)
class RandomComparison:
    """Random series of the same duration and speed: median condition number, median errors (parameters,)."""

    condition: float
    errors: Array


@dataclass(frozen=True)
class Excitation:
    """An optimal excitation.

    Attributes:
        motion: The trajectory, from rest to rest.
        model: The parameters, their reference values and the torque noise of the prediction.
        limits: Limits that the motion keeps at 10 points per sample of 500 Hz.
        condition: Condition number of the regressor of the base parameters in SI units.
        errors: Predicted standard errors (parameters,) at 500 Hz: those of white torque noise times the inflation.
        random: The same figures of random series.
        uses: Use of the limits: the largest share of each kind and where.
        options: Settings of the search.

    """

    motion: ExcitationMotion
    model: InformationModel
    limits: ExcitationLimits
    condition: float
    errors: Array
    random: RandomComparison
    uses: tuple[Use, ...]
    options: ExcitationOptions

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.model.robot

    @property
    def poor(self) -> bool:
        """Whether the motion is too small to separate the parameters of the bodies that it is for."""
        return self.condition > POOR and self.model.goal != "friction"

    @cached_property
    def improvement(self) -> Array:
        """Median standard errors of random series over those of this motion, (parameters,)."""
        return self.random.errors / self.errors

    def to_dict(self) -> dict[str, Any]:
        """Return settings and prediction as a document."""
        model, options = self.model, self.options
        return {
            "robot": self.robot.name,
            "goal": options.goal,
            "basis": options.basis,
            "criterion": options.criterion,
            "duration_s": options.duration,
            "speed": options.speed,
            "seed": options.seed,
            "rate_Hz": RATE,
            "gravity_m_s2": list(model.dynamics.gravity),
            "clearance_m": self.limits.clearance.plane if np.isfinite(self.limits.clearance.plane) else None,
            "torque_noise_Nm": model.noise.tolist(),
            "torque_noise_source": "assumed" if options.noise is None else "calibration",
            "condition_number": self.condition,
            "random_condition_number": self.random.condition,
            "median_improvement": float(np.median(self.improvement[model.target])),
            "limits": {use.kind: {"where": use.where, "share": use.share} for use in self.uses},
            "parameters": [
                {"name": name, "unit": unit, "std_error": float(e), "random_std_error": float(r), "inflation": float(f)}
                for name, unit, e, r, f in zip(
                    model.names, model.units, self.errors, self.random.errors, _inflation(model, options), strict=True
                )
            ],
        }

    @property
    def improvement_text(self) -> str:
        """The median standard error beside that of random series, which need not keep the limits of torque."""
        ratio = float(np.median(self.improvement[self.model.target]))
        size = f"{ratio:.2f} times smaller" if ratio >= 1.0 else f"{1.0 / ratio:.2f} times larger"
        return f"{size} than those of random series (median)"

    def summary(self) -> str:
        """Return the excitation in a few lines of text."""
        uses = ", ".join(f"{use.kind} {100.0 * use.share:.0f} %" for use in self.uses)
        return (
            f"{self.motion.duration:g} s for {self.model.goal}, condition number {self.condition:.3g} "
            f"(random series: {self.random.condition:.3g})\n"
            f"standard errors {self.improvement_text}\nuse of the limits: {uses}"
            + (f"\nwarning: {POOR_TEXT}" if self.poor else "")
        )


@checked
def optimize_excitation(
    robot: Robot,
    options: ExcitationOptions | None = None,
    *,
    state: str | Path | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> Excitation:
    """Return the motion from rest to rest that determines the parameters of a robot best within its limits.

    A Fourier series or a spline is optimised from several random starts with exact gradients: D- or A-optimal for the
    weighted regressor of bodies, rotors and friction, and well conditioned. Position, speed, acceleration, torque, the
    distance from the mounting plane and between the links are limited, also on the straight path from the upright pose
    to the first pose. The same arguments give the same motion.

    Args:
        robot: The robot; its description must have limits of position, speed and effort.
        options: Duration, goal, limits and method.
        state: File with the finished steps of an interrupted search, and where they are stored.
        progress: Called with the name of the stage and its completed share.

    Raises:
        ModelError: If a setting is wrong, the description lacks limits, or the limits permit no motion.

    """
    options = options or ExcitationOptions()
    plane = -np.inf if options.clearance is None else options.clearance
    limits = excitation_limits(robot, options.speed, Clearance(Body(robot, options.tool), plane), options.acceleration)
    model = _information_model(robot, limits, options)
    report = progress or (lambda stage, share: None)
    report("random series", None)
    random = _random_comparison(model, options)
    search = _search(model, limits, options, random)
    motion = search_motion(
        search, options.starts, lambda candidate: _within_limits(model, limits, candidate), _key(search, options),
        None if state is None else Path(state), lambda share: report("optimising", share),
    )  # fmt: skip
    if motion is None:
        raise ModelError(
            f"the limits of robot '{robot.name}' permit no excitation in {options.duration:g} s: none of "
            f"{options.starts} starts kept them. Choose a smaller clearance, a longer duration, a larger acceleration "
            "or another seed."
        )
    condition, errors = _figures(model, motion.sample(STUDY_RATE))
    inflation = _inflation(model, options)
    random = replace(random, errors=inflation * random.errors)
    uses = limit_uses(model, limits, motion, RATE)
    return Excitation(motion, model, limits, condition, inflation * errors, random, uses, options)


def _inflation(model: InformationModel, options: ExcitationOptions) -> Array:
    """Return the factors (parameters,) of the standard errors of white noise."""
    if options.inflation is None:
        return np.ones(len(model.names))
    median = float(np.median(list(options.inflation.values())))
    return np.array([options.inflation.get(name, median) for name in model.names])


def _search(
    model: InformationModel, limits: ExcitationLimits, options: ExcitationOptions, random: RandomComparison
) -> Search:
    """Return the search; A-optimality is relative to the errors of random series."""
    duration = options.duration
    basis = FourierBasis(duration, options.harmonics) if options.basis == "fourier" else SplineBasis(duration)
    typical = random.errors if options.criterion == "a" else None
    return Search(model, limits, basis, options.speed, options.seed, typical)


def _information_model(robot: Robot, limits: ExcitationLimits, options: ExcitationOptions) -> InformationModel:
    """Return the model with the described values, or those of a reference where it has them."""
    x, y, z = gravity_vector(options.mounting).tolist()
    dynamics = Dynamics(robot, (x, y, z), True, tuple(friction_terms() for _ in range(robot.dof)))
    values, known = _described_values(dynamics), options.reference or {}
    if options.reference is not None and not set(dynamics.base.names) & set(known):
        raise ModelError(f"reference must have parameters of robot '{robot.name}'. Was it made for another robot?")
    values = np.array([known.get(info.name, value) for info, value in zip(dynamics.parameters, values, strict=True)])
    return InformationModel(dynamics, values, _torque_noise(robot, limits, options), options.goal)


def _described_values(dynamics: Dynamics) -> Array:
    """Return the parameters (parameters,) of the described bodies, rotors and friction; zero where not described."""
    robot = dynamics.robot
    rotors = [joint.motor.reflected_inertia or 0.0 for joint in robot.joints]
    bodies = dynamics.base.from_standard(np.concatenate([robot.inertials.ravel(), rotors]))
    friction = [(0.0, joint.motor.coulomb or 0.0, 0.0, joint.motor.viscous or 0.0) for joint in robot.joints]
    return np.concatenate([bodies, np.ravel(friction)])


def _torque_noise(robot: Robot, limits: ExcitationLimits, options: ExcitationOptions) -> Array:
    """Return the torque noise (joints,), Nm: that of the options, or the usual share of the effort limits."""
    if options.noise is None:
        return np.asarray(TORQUE_NOISE * limits.effort)
    if len(options.noise) != robot.dof:
        raise ModelError(
            f"noise must be {robot.dof} numbers, one per joint of robot '{robot.name}'. Got {len(options.noise)} "
            "instead. Was the calibration made for another robot?"
        )
    return np.array(options.noise)


def _key(search: Search, options: ExcitationOptions) -> str:
    """Return a text that differs for searches with different results."""
    limits, model, tool = search.limits, search.model, options.tool
    numbers = [model.values, model.noise, limits.home, limits.effort, model.robot.rotations, model.robot.translations]
    numbers += [
        limits.turning,
        *(getattr(limits.motion, name) for name in ("lower", "upper", "velocity", "acceleration")),
    ]
    settings = [
        options.goal, options.basis, options.criterion, model.dynamics.gravity, options.duration, options.harmonics,
        options.speed, options.seed, options.starts, options.clearance,
        None if tool is None else (tool.length, tool.radius), [np.asarray(array).tolist() for array in numbers],
    ]  # fmt: skip
    return sha256(json.dumps(settings).encode()).hexdigest()


def _within_limits(
    model: InformationModel, limits: ExcitationLimits, motion: ExcitationMotion
) -> ExcitationMotion | None:
    """Return the motion, reduced about its first pose until all limits hold; None if it becomes too small."""
    coarse = np.arange(0.0, motion.duration, 0.01)
    size = 1.0
    while size >= SMALLEST:
        smaller = motion.about(motion.center, size)
        clear = limits.is_clear(smaller.position(coarse), motion.center, RESERVE)
        if clear and max(use.share for use in limit_uses(model, limits, smaller, RATE)) <= 1.0:
            fine = np.arange(0.0, motion.duration, 1.0 / (OVERSAMPLING * RATE))
            uses = limit_uses(model, limits, smaller, OVERSAMPLING * RATE)
            if max(use.share for use in uses) <= 1.0 and limits.is_clear(smaller.position(fine), motion.center):
                return smaller
        size *= SHRINK
    return None


def limit_uses(model: InformationModel, limits: ExcitationLimits, motion: Trajectory, rate: float) -> tuple[Use, ...]:
    """Return the largest use of each kind of limit along a motion sampled at a rate (Hz)."""
    count = int(motion.duration * rate) + 1
    parts = []
    for first in range(0, count, CHUNK):
        states = motion.at(np.arange(first, min(first + CHUNK, count)) / rate)
        parts.append(limits.uses(states, model.torque(model.columns(states), states)))
    return tuple(max(same, key=lambda use: use.share) for same in zip(*parts, strict=True))


def _random_comparison(model: InformationModel, options: ExcitationOptions) -> RandomComparison:
    """Return condition numbers and standard errors of random Fourier series."""
    seeds = range(RANDOM_SERIES)
    others = [fourier_trajectory(model.robot, options.duration, k, speed_fraction=options.speed) for k in seeds]
    try:
        figures = [_figures(model, other.sample(STUDY_RATE)) for other in others]
    except np.linalg.LinAlgError:
        raise ModelError(
            f"the limits permit no excitation: motions at {100.0 * options.speed:g} % of the speed limits do not "
            f"determine the parameters in {options.duration:g} s. Allow more speed or time."
        ) from None
    conditions = [condition for condition, _ in figures]
    medians = np.median([errors for _, errors in figures], axis=0)
    return RandomComparison(float(np.median(conditions)), medians)


def _figures(model: InformationModel, states: States) -> tuple[float, Array]:
    """Return condition number and standard errors (parameters,) of a motion sampled at `STUDY_RATE`."""
    columns = model.columns(states)
    return condition_number(model, columns), standard_errors(model, columns, RATE / STUDY_RATE)


@dataclass(frozen=True)
class Step:
    """A finished step of a search: the value of its result, and its variables."""

    value: float
    variables: list[float]


@dataclass
class Journal:
    """The finished steps of a search; `key` identifies its settings."""

    key: str
    steps: list[Step] = field(default_factory=list)


class Resumable:
    """Runs the steps of a search in order; those that a state file has are not run again.

    `finished` is the number of steps so far, run or read.
    """

    def __init__(self, kind: Kind, key: str, state: Path | None) -> None:
        """Read the state file, if there is one.

        Args:
            kind: Kind of the state file.
            key: Text that differs for searches with different results.
            state: The file; None to store nothing.

        Raises:
            ModelError: The file belongs to a search with other settings.

        """
        self._kind, self._state = kind, state
        self._journal = Journal(key) if state is None or not state.exists() else load_document(state, kind, Journal)
        if self._journal.key != key:
            raise ModelError(
                f"{state}: the interrupted search has other settings. Repeat its options, or choose another directory."
            )
        self.finished = 0

    def step(self, make: Callable[[], Step]) -> Step:
        """Return the next step: from the file, or made and stored."""
        self.finished += 1
        if self.finished <= len(self._journal.steps):
            return self._journal.steps[self.finished - 1]
        result = make()
        self._journal.steps.append(result)
        if self._state is not None:
            write_document(self._kind.stamped(asdict(self._journal)), self._state)
        return result
