"""The two estimates of a calibration, with the same bodies: sensor-based, and feed-forward (from positions only)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from jointwise.errors import ModelError
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Term
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.result.calibration import Calibration, Status

Use = Literal["sensor", "feed-forward"]
"""sensor: with the measured speeds and rotor positions that the model uses; feed-forward: from positions only."""
EXTRAS = {"qd": "measured speed (qd)", "theta": "rotor positions (theta)"}
"""Channels that a sensor-based model can use in addition to positions."""


@dataclass(frozen=True)
class FeedForward:
    """Friction for predictions from positions only; the bodies are those of the sensor-based estimate.

    Attributes:
        terms: Terms of every joint.
        values: Their parameters, joint by joint, shape (parameters,).
        deviation: Standard errors with the bodies held fixed, shape (parameters,).
        status: Status of every parameter, as in `Estimate`.
        sigma: Residual standard deviation of each joint, Nm, shape (joints,).
        structure: The joint model.
        structure_text: The joint model in words.
        choices: The automatic selections with their candidates.
        position_cutoff: Low-pass of measured positions, Hz; None for that of the sensor-based model.

    """

    terms: tuple[tuple[Term, ...], ...]
    values: Array
    deviation: Array
    status: tuple[Status, ...]
    sigma: Array
    structure: Structure
    structure_text: str
    choices: tuple[Choice, ...]
    position_cutoff: float | None = None

    def __post_init__(self) -> None:
        """Reject arrays of another length than the parameters of the terms."""
        count = sum(len(term.parameters()) for joint in self.terms for term in joint)
        if not len(self.values) == len(self.deviation) == len(self.status) == count:
            raise ModelError(f"feed_forward must have {count} parameters. Got {len(self.values)} instead.")


def applicable_use(calibration: Calibration, available: Collection[str], use: Use | None = None) -> Use:
    """Return the use of a model on a log with some channels: `use`, by default sensor if the log has all it needs.

    Raises:
        ModelError: The sensor-based model was requested, but the log lacks a channel that it uses.

    """
    lacking = [name for name in calibration.extras if name not in available]
    if use == "sensor" and lacking:
        channels = " and ".join(EXTRAS[name] for name in lacking)
        raise ModelError(f"the sensor-based model needs {channels}, which the log does not have.")
    return use or ("sensor" if calibration.extras and not lacking else "feed-forward")


def use_text(calibration: Calibration, use: Use) -> str:
    """Return in words which estimate a prediction uses."""
    if use == "sensor":
        return f"sensor-based model (positions, {', '.join(EXTRAS[name] for name in calibration.extras)})"
    return "feed-forward model (positions only)"


def for_use(calibration: Calibration, use: Use) -> Calibration:
    """Return the calibration with the estimate of a use as its only one."""
    friction = calibration.feed_forward
    if use == "sensor" or friction is None:
        return calibration
    count, old = calibration.model.base.count, calibration.estimate
    covariance = np.diag(np.concatenate([np.zeros(count), friction.deviation**2]))
    covariance[:count, :count] = old.covariance[:count, :count]
    estimate = replace(
        old,
        values=np.concatenate([old.values[:count], friction.values]),
        covariance=covariance,
        status=(*old.status[:count], *friction.status),
        sigma=friction.sigma,
    )
    physical = calibration.physical
    if physical is not None:
        physical = replace(physical, values=np.concatenate([physical.values[:count], friction.values]))
    cutoff = friction.position_cutoff or calibration.filters.position_cutoff
    return replace(
        calibration,
        filters=replace(calibration.filters, position_cutoff=cutoff),
        physical=physical,
        model=replace(calibration.model, terms=friction.terms),
        estimate=estimate,
        structure=friction.structure,
        structure_text=friction.structure_text,
        choices=friction.choices,
        feed_forward=None,
    )
