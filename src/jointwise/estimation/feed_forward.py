"""The feed-forward estimate: friction for predictions from planned positions, with the bodies of the sensor-based fit.

Measured speeds and rotor positions show reversals that positions hide, so friction that is selected with them is not
the best one without them. Moreover a model is used for motions unlike its training motion, and what a log cannot test
must not be selected from it: slip limits finer than the positions resolve, and relaxation at rest where the log has no
rests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.fit import Fit, fit_structure
from jointwise.estimation.regression import Regression
from jointwise.estimation.select_structure import RELAXATIONS, STRIBECK, select_structure
from jointwise.estimation.structure import LADDER, JointTerms, Structure
from jointwise.spatial import Array

TESTED_RESTS = 3
"""Rests of every joint that must be in the logs for a relaxation time to be selected."""
REST_TIMES = 2.0
"""Duration of such a rest in relaxation times: 86 % of a relaxation is then visible."""
SLOW = 0.1
"""Greatest Stribeck velocity as a part of the greatest speed: a larger one is one more viscous term, which the log does
not separate from the others and which extrapolates differently."""


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
    positions = regression.from_positions()
    names = [name for name in free if name != "ripple"]
    start = positions_structure(regression, structure, "direction" in names)
    choices: Sequence[Choice] = ()
    if names:
        relaxations, stribeck = relaxations_in_rests(regression), separable_stribeck(regression)
        start, choices, _ = select_structure(positions, gains, start, names, relaxations, stribeck)
    terms = {j: single.completed(start) for j, single in joints.items()}
    return FeedForwardFit(fit_structure(positions, start, gains, method, terms, bodies), tuple(choices))


def positions_structure(regression: Regression, structure: Structure, free: bool) -> Structure:
    """Return a structure without what needs measured speeds or rotor positions.

    With `free`, its slip limits are those that the positions resolve and nothing relaxes.
    """
    plain = replace(structure, drivers=("q",), ripple=0.0)
    if not free:
        return plain
    limits = resolved_limits(regression.position_noise()) if plain.limits == LADDER else plain.limits
    return replace(plain, relaxation=0.0, limits=limits)


def resolved_limits(noise: float) -> tuple[float, ...]:
    """Return slip limits (rad) in the ratio of `LADDER` that exceed the rms noise (rad) of the positions."""
    smallest = min(max(noise, LADDER[0]), LADDER[-1])
    ratio = LADDER[1] / LADDER[0]
    count = 1 + max(int(np.log(LADDER[-1] / smallest * (1.0 + 1e-9)) / np.log(ratio)), 0)
    return tuple((smallest * ratio ** np.arange(count)).tolist())


def relaxations_in_rests(regression: Regression) -> tuple[float, ...]:
    """Return the relaxation times (s) that the rests in the logs can confirm or refute, and 0 for none."""
    return tuple(T for T in RELAXATIONS if T == 0.0 or regression.rests(REST_TIMES * T) >= TESTED_RESTS)


def separable_stribeck(regression: Regression) -> tuple[float, ...]:
    """Return the Stribeck velocities (rad/s) that differ from viscous friction in these logs, and 0 for none."""
    return tuple(v for v in STRIBECK if v <= SLOW * float(regression.fastest.min()))
