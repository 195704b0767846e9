"""From fits to the parts of a calibration: estimates with statuses, explained output, feed-forward friction, logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.data.conditioning import motion_chunks
from jointwise.data.quality import DataQuality
from jointwise.errors import EstimationError
from jointwise.estimation.essential import Essential
from jointwise.estimation.feed_forward import FeedForwardFit
from jointwise.estimation.fit import Fit, known_sums, known_values
from jointwise.estimation.regression import Regression
from jointwise.estimation.structure import JointTerms
from jointwise.estimation.uncertainty import Uncertainty, uncertainty_of
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import SpeedRipple, Term, Viscous
from jointwise.result.calibration import Estimate, Status
from jointwise.result.metrics import AT_NOISE
from jointwise.result.predict import FeedForward
from jointwise.spatial import Array, Mask

MAX_NMSE = 0.5
"""Largest MSE / variance (median over the joints) on the training data: above, there is no model."""
MAX_JOINT_NMSE = 0.8
"""Largest MSE / variance of one joint that moves: above, its output is hardly explained."""
WORSE = 10.0
"""A joint is far worse than the rest from this multiple of their median MSE / variance on."""
NOTABLE = 0.05
"""MSE / variance up to which a joint is good enough however much better the others are."""


def estimate_of(
    fit: Fit,
    uncertainty: Uncertainty,
    method: str,
    terms_by_joint: Mapping[int, JointTerms],
    essential: Essential | None,
) -> Estimate:
    """Return values and covariance of all parameters.

    Known parameters keep their standard errors, and those with a known sum share its standard error in proportion to
    their values; dropped ones have none.
    """
    solution = fit.solution
    values, deviation = known_values(fit.model, terms_by_joint)
    known = ~np.isnan(values)
    covariance = uncertainty.covariance.copy()
    covariance[known, known] = deviation[known] ** 2
    for total in known_sums(fit.model, terms_by_joint):
        shares = solution.values[total.index] / total.value if total.value else np.zeros(len(total.index))
        covariance[np.ix_(total.index, total.index)] += total.deviation**2 * np.outer(shares, shares)
    dropped = np.zeros(fit.model.count, dtype=bool)
    if essential is not None:
        dropped[[fit.model.base.names.index(item.name) for item in essential.dropped]] = True
        covariance[dropped] = covariance[:, dropped] = 0.0
    return Estimate(
        values=solution.values,
        covariance=covariance,
        factor=uncertainty.factor,
        status=_statuses(solution.values, uncertainty, known, dropped),
        sigma=solution.sigma,
        condition=solution.condition,
        condition_scaled=solution.condition_scaled,
        method=method,
        shares=uncertainty.shares(fit.model.base.count),
    )


def _statuses(values: Array, uncertainty: Uncertainty, known: Mask, dropped: Mask) -> tuple[Status, ...]:
    """Return how well every parameter is known; see `Status`."""
    status = np.where(np.abs(values) > uncertainty.factor * uncertainty.deviation, "determined", "weak").astype(object)
    status[uncertainty.at_bound] = "at bound"
    status[uncertainty.undetermined] = "undetermined"
    status[known] = "given"
    status[dropped] = "dropped"
    return tuple(status.tolist())


RIPPLE_QUANTILE = 0.999
"""Quantile that stands for the greatest speed ripple: glitches do not count."""


def bounded_model(fit: Fit, regression: Regression) -> Dynamics:
    """Return the model with the range of the training data in its terms: greatest speed and speed ripple."""
    fastest = regression.fastest
    ripple = _greatest_ripple(regression) if fit.structure.ripple else np.zeros(len(fastest))

    def bounded(term: Term, joint: int) -> Term:
        if isinstance(term, Viscous):
            return replace(term, known=float(fastest[joint]))
        return replace(term, known=float(ripple[joint])) if isinstance(term, SpeedRipple) else term

    terms = (tuple(bounded(term, j) for term in joint) for j, joint in enumerate(fit.model.terms))
    return replace(fit.model, terms=tuple(terms))


def _greatest_ripple(regression: Regression) -> Array:
    """Return the greatest speed ripple of each joint, rad/s, shape (joints,)."""
    top = np.zeros(regression.bodies.robot.dof)
    for clean in regression.logs:
        for chunk in motion_chunks(clean, regression.filters):
            if chunk.motion.ripple is not None:
                top = np.maximum(top, np.quantile(np.abs(chunk.motion.ripple), RIPPLE_QUANTILE, axis=0))
    return top


def structure_text(fit: Fit, terms_by_joint: Mapping[int, JointTerms]) -> str:
    """Return the joint model in words, and which joints have terms from single-joint experiments."""
    joints = ", ".join(str(joint + 1) for joint in sorted(terms_by_joint))
    return fit.structure.describe() + (f"; joint {joints} as identified by itself" if joints else "")


def feed_forward_of(
    found: FeedForwardFit, regression: Regression, terms_by_joint: Mapping[int, JointTerms]
) -> FeedForward:
    """Return the friction for predictions from positions only, with its standard errors and the selections."""
    fit, base = found.fit, found.fit.model.base.count
    uncertainty = uncertainty_of(fit.problem, fit.solution)
    known = ~np.isnan(known_values(fit.model, terms_by_joint)[0])
    return FeedForward(
        terms=bounded_model(fit, regression).terms,
        values=fit.solution.values[base:],
        deviation=uncertainty.deviation[base:],
        status=_statuses(fit.solution.values, uncertainty, known, np.zeros_like(known))[base:],
        sigma=fit.solution.sigma,
        structure=fit.structure,
        structure_text=structure_text(fit, terms_by_joint),
        choices=found.choices,
        position_cutoff=regression.filters.position_cutoff,
    )


@dataclass(frozen=True)
class Explained:
    """MSE / variance of every joint on the training data, and warnings about joints far worse than the rest."""

    nmse: tuple[float | None, ...]
    notes: tuple[str, ...]


def explained_output(
    fit: Fit, inspections: Sequence[DataQuality], output: str, gains: Array, contradicted: bool
) -> Explained:
    """Return how much of the training output a fit explains; reject one that explains next to nothing.

    Args:
        fit: The fit.
        inspections: The inspected training logs: joints at rest and residuals at the noise of the sensors may stay
            unexplained.
        output: The measured output, current or torque.
        gains: Nm per unit of the output, shape (joints,).
        contradicted: Whether the user accepts a set-up that the logs contradict: single joints are then not judged.

    Raises:
        EstimationError: Too little is explained; names the joint.

    """
    joints = zip(fit.solution.sigma, fit.problem.factors, strict=True)
    nmse = tuple(None if joint.empty else float(sigma**2 / joint.variance) for sigma, joint in joints)
    noise = np.median([inspection.numbers.channels[output].noise for inspection in inspections], axis=0)
    moved = np.any([inspection.numbers.moved for inspection in inspections], axis=0)
    judged = moved & ~(fit.solution.sigma / gains <= AT_NOISE * noise) & (not contradicted)
    names = [f"joint {j} ({joint.name})" for j, joint in enumerate(fit.model.robot.joints, start=1)]
    return check_explained(nmse, names, judged.tolist())


def check_explained(nmse: Sequence[float | None], names: Sequence[str], judged: Sequence[bool]) -> Explained:
    """Reject a fit that explains next to nothing of the output, over all joints or of a single one.

    Args:
        nmse: MSE / variance of every joint on the training data, None where its output is ignored.
        names: Names of the joints for messages.
        judged: Whether a joint must be explained: False for joints at rest or at sensor noise.

    Raises:
        EstimationError: Too little is explained; names the joint.

    """
    median = float(np.median([np.nan_to_num(value, nan=np.inf) for value in nmse if value is not None]))
    if not median <= MAX_NMSE:
        raise EstimationError(
            f"not identifiable: the best model explains only {_percent(median)} % of the output. "
            "Do positions and output belong together (same clock, same joints, right mounting)?"
        )
    joints = zip(nmse, names, judged, strict=True)
    rows = [(value, name) for value, name, counts in joints if counts and value is not None]
    _refuse_unexplained(rows)
    notes = [
        f"{name}: MSE/variance {value:.2g} on the training data, {value / median:.0f} times the median of the joints. "
        "Check its column."
        for value, name in rows
        if not value <= max(WORSE * median, NOTABLE)
    ]
    return Explained(tuple(nmse), tuple(notes))


def _refuse_unexplained(rows: Sequence[tuple[float, str]]) -> None:
    """Raise `EstimationError` for the first joint (MSE / variance, name) of which next to nothing is explained."""
    for value, name in rows:
        if not value <= MAX_JOINT_NMSE:
            raise EstimationError(
                f"{name}: not identifiable: the best model explains only {_percent(value)} % of its output, although "
                "it moves. Check the column of its output (sign, unit, order of the joints)."
            )


def _percent(nmse: float) -> str:
    """Return the explained part of the variance in percent."""
    return f"{max(100.0 * (1.0 - nmse), 0.0):.0f}" if np.isfinite(nmse) else "0"
