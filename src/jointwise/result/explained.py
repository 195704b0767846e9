"""How much of the measured output a fit explains, joint by joint: too little is no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.data.quality import DataQuality
from jointwise.errors import EstimationError
from jointwise.estimation.fit import Fit
from jointwise.result.metrics import AT_NOISE
from jointwise.spatial import Array

MAX_NMSE = 0.5
"""Largest MSE / variance (median over the joints) on the training data: above, there is no model."""
MAX_JOINT_NMSE = 0.8
"""Largest MSE / variance of one joint that moves: above, its output is hardly explained."""
WORSE = 10.0
"""A joint is far worse than the rest from this multiple of their median MSE / variance on."""
NOTABLE = 0.05
"""MSE / variance up to which a joint is good enough however much better the others are."""


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
