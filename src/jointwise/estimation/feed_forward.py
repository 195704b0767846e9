"""The feed-forward estimate: friction for predictions from planned positions, with the bodies of the sensor-based fit.

Measured speeds and rotor positions show reversals that positions hide, so friction that is selected with them is not
the best one without them. Moreover a model is used for motions unlike its training motion, and what a log cannot test
must not be selected from it: slip limits finer than the positions resolve, relaxation at rest where the log has no
rests, and low-speed friction. A Stribeck term and a root of the speed vanish at rest and together imitate dry friction
in motion, so a log without rests does not determine how much torque remains when a joint stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.data.conditioning import motion_chunks
from jointwise.data.filters import low_pass
from jointwise.estimation.bounded import squared_error_from_moments
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.fit import Fit, fit_structure
from jointwise.estimation.regression import STILL_PART, Regression, Rows, regression_rows
from jointwise.estimation.select_filters import MAX_CUTOFF
from jointwise.estimation.select_structure import POWERS, RELAXATIONS, STRIBECK, Candidates, select_structure
from jointwise.estimation.structure import LADDER, JointTerms, Structure
from jointwise.spatial import Array, Mask

NOISE_WINDOW = 0.5
"""Duration (s) over which the noise of positions is measured."""
NOISE_CUTOFF = 10.0
"""Least cut-off (Hz) above which positions count as noise: a lower one of the bodies removes motion too."""
LEAST_LIMIT = 2e-5
"""Smallest slip limit, rad, about the step of a joint encoder of 18 bits. The smallest element stands for all friction
that reverses faster than the motion shows, and its limit decides how much remains after a creep at rest, which an
excitation does not test: below this size vibrations release it, and results depended on the position cut-off."""
QUIET = 0.1
"""Quantile of these windows that stands for the noise of slow motion."""
TESTED_RESTS = 3
"""Rests of every joint that must be in the logs for a relaxation time to be selected."""
REST_TIMES = 2.0
"""Duration of such a rest in relaxation times: 86 % of a relaxation is then visible."""
SLOW = 0.1
"""Greatest Stribeck velocity as a part of the greatest speed: a larger one is one more viscous term, which the log does
not separate from the others and which extrapolates differently."""

REST_TIME = 1.0
"""Time (s) that every joint must rest after a motion for its friction at rest to be tested."""
SMOOTH_POWERS = (1.0, 2.0)
"""Viscous powers of a friction curve that is the same in motion and at rest; v |v| extrapolates well."""
AT_REST = ("as in motion", "less than in motion")
"""Dry friction at rest: that of the motion, or without the part that depends on low speeds."""


@dataclass(frozen=True)
class FeedForwardFit:
    """The fit of the feed-forward friction, and the selections behind it."""

    fit: Fit
    choices: tuple[Choice, ...]


def fit_feed_forward(
    regression: Regression,
    structure: Structure,
    gains: Array,
    bodies: Array,
    free: Iterable[str],
    method: str,
    joints: Mapping[int, JointTerms],
) -> FeedForwardFit:
    """Return the friction for predictions from positions only.

    Args:
        regression: The training logs.
        structure: The joint model of the sensor-based fit, whose fixed fields are kept.
        gains: Nm per unit of the output, shape (joints,).
        bodies: Base parameters of the sensor-based fit.
        free: Fields of the structure to select, as in `select_structure`.
        method: wls, ols or huber.
        joints: Terms of single joints (0-based) with open effects.

    """
    positions, rests = regression.from_positions(), rest_regression(regression)
    names = [name for name in free if name != "ripple"]
    start = positions_structure(regression, structure, "direction" in names)
    choices: list[Choice] = []
    if names:
        start, selection = select_structure(positions, gains, start, names, testable_candidates(regression, rests))
        choices = selection.choices

    def fitted(structure: Structure) -> Fit:
        terms = {j: single.completed(structure) for j, single in joints.items()}
        return fit_structure(positions, structure, gains, method, terms, bodies)

    plain = without_low_speed(start, names)
    if plain == start:
        return FeedForwardFit(fitted(start), tuple(choices))
    fits = {AT_REST[0]: fitted(plain), AT_REST[1]: fitted(start)}
    errors = {name: rest_error(rests, fit, gains) for name, fit in fits.items()}
    taken = min(AT_REST, key=errors.__getitem__)
    choices.append(Choice("friction at rest", tuple(errors.items()), taken))
    return FeedForwardFit(fits[taken], tuple(choices))


def testable_candidates(regression: Regression, rests: Regression) -> Candidates:
    """Return the relaxation times, Stribeck velocities and viscous powers that positions of the logs can test.

    Args:
        regression: The training logs.
        rests: Their positions with all rests (`rest_regression`).

    """
    relaxations = relaxations_in_rests(regression)
    if rests_tested(rests):
        return Candidates(relaxations, separable_stribeck(regression))
    return Candidates(relaxations, (0.0,), tuple(powers for powers in POWERS if min(powers) >= 1.0))


def without_low_speed(structure: Structure, free: Sequence[str]) -> Structure:
    """Return a structure whose dry friction is the same in motion and at rest, as far as its fields are free."""
    if "stribeck" in free:
        structure = replace(structure, stribeck=0.0)
    if "powers" in free and min(structure.powers, default=1.0) < 1.0:
        structure = replace(structure, powers=SMOOTH_POWERS)
    return structure


def rest_regression(regression: Regression) -> Regression:
    """Return the regression on positions with all rests, also those after the last motion."""
    return replace(regression, logs=tuple(clean.from_positions() for clean in regression.logs)).excerpt()


def rests_tested(regression: Regression) -> bool:
    """Return whether every joint with a measured output rests for `REST_TIME` after a motion, all logs together."""
    filters, samples = regression.filters, np.zeros(regression.bodies.robot.dof)
    for clean in regression.logs:
        for rows in regression_rows(clean, regression.output, filters):
            samples += (_at_rest(rows) & (rows.weights > 0.0))[rows.used].sum(axis=0)
    times = np.delete(samples, regression.ignored) * filters.decimation / filters.rate
    return float(times.min(initial=np.inf)) >= REST_TIME and times.size > 0


def rest_error(regression: Regression, fit: Fit, gains: Array) -> float:
    """Return MSE / variance of a fit at rests after a motion, geometric mean over the joints that have any."""
    values, model = fit.solution.values, fit.model
    load_of = (lambda rigid: model.load_torque(rigid, values)) if model.needs_load else None
    problem = regression.quick_problem(model.terms, load_of, lambda rows, *_: 1.0 * _at_rest(rows)[rows.needed])
    joints = zip(problem.scaled(gains).joints, fit.problem.factors, problem.layout.index, strict=True)
    logs = [
        np.log(max(squared_error_from_moments(rest.merged(), values[index]) / rest.weight.sum() / all_.variance, 1e-12))
        for rest, all_, index in joints
        if not rest.empty and all_.variance > 0.0
    ]
    return float(np.exp(np.mean(logs))) if logs else np.inf


def _at_rest(rows: Rows) -> Mask:
    """Return which samples (samples, joints) are rests after a motion of the joint."""
    moving = rows.weights >= 1.0
    return np.maximum.accumulate(moving, axis=0) & ~moving


def positions_structure(regression: Regression, structure: Structure, free: bool) -> Structure:
    """Return a structure without what needs measured speeds or rotor positions.

    With `free`, its slip limits are those that the positions resolve and nothing relaxes.
    """
    plain = replace(structure, drivers=("q",), ripple=0.0)
    if not free:
        return plain
    limits = resolved_limits(position_noise(regression)) if plain.limits == LADDER else plain.limits
    return replace(plain, relaxation=0.0, limits=limits)


def resolved_limits(noise: float) -> tuple[float, ...]:
    """Return slip limits (rad) in the ratio of `LADDER` from the rms noise (rad) of the positions on."""
    smallest = min(max(noise, LEAST_LIMIT), LADDER[-1])
    ratio = LADDER[1] / LADDER[0]
    count = 1 + max(int(np.log(LADDER[-1] / smallest * (1.0 + 1e-9)) / np.log(ratio)), 0)
    return tuple((smallest * ratio ** np.arange(count)).tolist())


def position_noise(regression: Regression) -> float:
    """Return the rms noise and quantisation of slow positions, rad, median over the joints.

    It is what smoothing removes, in the quietest windows: fast motions add vibration and errors of the clock.
    """
    windows, rate = [], regression.filters.rate
    cutoff = max(regression.filters.position_cutoff, min(NOISE_CUTOFF, MAX_CUTOFF * rate))
    for clean in regression.excerpt().logs:
        for chunk in motion_chunks(clean, regression.filters):
            raw = chunk.span.resampled(clean.log.q)
            rough = raw - low_pass(raw, cutoff, rate)
            size = min(int(NOISE_WINDOW * rate) + 1, len(rough))
            whole = rough[: len(rough) // size * size]
            windows.append(whole.reshape(-1, size, rough.shape[1]).std(axis=1))
    return float(np.median(np.quantile(np.concatenate(windows), QUIET, axis=0)))


def relaxations_in_rests(regression: Regression) -> tuple[float, ...]:
    """Return the relaxation times (s) that the rests in the logs can confirm or refute, and 0 for none."""

    def rests(duration: float) -> int:
        counts = [clean.rests(STILL_PART * clean.fastest, duration) for clean in regression.logs]
        return int(np.sum(counts, axis=0).min())

    return tuple(T for T in RELAXATIONS if T == 0.0 or rests(REST_TIMES * T) >= TESTED_RESTS)


def separable_stribeck(regression: Regression) -> tuple[float, ...]:
    """Return the Stribeck velocities (rad/s) that differ from viscous friction in these logs, and 0 for none."""
    return tuple(v for v in STRIBECK if v <= SLOW * float(regression.fastest.min()))
