"""The spread of the residuals of a model without contact, from which monitoring takes its thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

FEATURES = ("constant", "speed", "inertia", "slowness", "shock")
"""What the spread (Nm) of a residual depends on: 1, |v| (rad/s), |M a| (Nm), exp(-(v/v0)²), shock (Nm)."""
BLOCK = 1.0
"""Duration (s) of the blocks whose largest ratios make the tail."""
LEAST_LIMIT = 5.0
"""Least limit, in standard deviations: the tail of a short log may miss what happens once an hour."""

NonNegative = Annotated[float, Meta(ge=0.0)]
Positive = Annotated[float, Meta(gt=0.0)]
Five = Annotated[tuple[NonNegative, ...], Meta(min_length=5, max_length=5)]


@dataclass(frozen=True)
class JointSpread:
    """Standard deviation of the residuals of a joint.

    In motion it is the sum of the five `FEATURES` times their factors, of the units that make Nm of them.

    Attributes:
        fast: Factors of the momentum observer, (5,).
        slow: Factors of the direct residual, (5,).
        rest_fast: Standard deviation of the momentum observer at rest, Nm.
        rest_slow: Standard deviation of the direct residual at rest, Nm.
    """

    fast: Five
    slow: Five
    rest_fast: Positive
    rest_slow: Positive


@dataclass(frozen=True)
class Tail:
    """Gumbel distribution of the largest ratio of residual to spread in `BLOCK` s, over all joints."""

    location: float
    scale: Positive

    def limit(self, per_hour: float) -> float:
        """Return the ratio that is exceeded in a number of blocks an hour, at least `LEAST_LIMIT`.

        ``μ - β ln(-ln(1 - p))`` with the probability p of a block.
        """
        p = min(per_hour * BLOCK / 3600.0, 0.5)
        return max(self.location - self.scale * math.log(-math.log1p(-p)), LEAST_LIMIT)


@dataclass(frozen=True)
class ChangeSpread:
    """Sudden changes of the momentum observer without contact: errors of ``r_k = a_1 r_(k-1) + a_2 r_(k-2)``.

    Attributes:
        rate: Rate of the stream, Hz; the predictors hold for it alone.
        predictors: The two factors of every joint.
        deviations: Standard deviation of the error of every joint, Nm.
        fastest: Speed of every joint up to which changes are known, rad/s: a little above that of these logs.
        tail: Tail of the largest change over all joints.

    """

    rate: Positive
    predictors: tuple[tuple[float, float], ...]
    deviations: tuple[Positive, ...]
    fastest: tuple[NonNegative, ...]
    tail: Tail


@dataclass(frozen=True)
class ResidualSpread:
    """The spread of the residuals of a model without contact.

    Attributes:
        joints: Spread of every joint.
        fast: Tail of the momentum observer.
        slow: Tail of the direct residual.
        seconds: Duration of the data, s.
        source: `training`, `validation`, or `assumed` for a model file without these figures.
        without_speed: The same for streams without measured speeds; None where the logs have none either.
        change: Sudden changes; None for slow logs, logs without speeds and model files of earlier versions.

    """

    joints: tuple[JointSpread, ...]
    fast: Tail
    slow: Tail
    seconds: NonNegative
    source: str
    without_speed: ResidualSpread | None = None
    change: ChangeSpread | None = None
