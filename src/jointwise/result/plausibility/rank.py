"""Alternatives to a declaration by how much better they explain the samples, with their numbers refined."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from jointwise.description.robot import Robot
from jointwise.result.plausibility.alternatives import (
    Alternative,
    Cause,
    coupling_alternatives,
    motion_alternatives,
    output_alternatives,
    spring_alternatives,
    tangents,
    with_center,
    with_couplings,
    with_gain,
    with_gravity,
    with_mass,
    with_offset,
)
from jointwise.result.plausibility.declaration import Declaration, with_item
from jointwise.result.plausibility.evidence import (
    FEW_ITERATIONS,
    ITERATIONS,
    Evidence,
    evidence,
    evidences,
)
from jointwise.result.plausibility.moments import Moments, make_moments
from jointwise.result.plausibility.payloads import (
    CENTER_STEPS,
    center_shift,
    is_payload,
    payload_center,
    payload_mass,
)
from jointwise.result.plausibility.samples import Samples

SUSPECT = 20.0
"""Gain of log evidence by another declaration that makes the declared one suspect (models are not exact)."""
LEAST_OFFSET, LEAST_TILT, LEAST_GAIN = 5.0, 3.0, 1.15
"""Smallest deviations that are reported: degrees of a zero and of the mounting, factor of a gain.
Smaller ones are within the accuracy of installations, and the linear friction model may imitate them."""
LEAST_RATIO = 0.015
"""Smallest ratio of a coupling that is reported: below the last step of the search."""


@dataclass(frozen=True, eq=False)
class Scored:
    """An alternative with its evidence.

    Attributes:
        alternative: The alternative.
        found: Its evidence.
        gain: Gain of log evidence over the declared set-up.
    """

    alternative: Alternative
    found: Evidence
    gain: float


Scores = Callable[[Sequence[Alternative]], list[Scored]]
"""Evaluates alternatives."""
RANKING = 2
"""Every how many samples count where alternatives of one cause are only ranked."""


def rank(
    samples: Samples, declaration: Declaration, shared: Moments, catalog: Iterable[Robot]
) -> tuple[Evidence, list[Scored]]:
    """Return the evidence of the declaration, and the best alternative of every cause, best first.

    Args:
        samples: Conditioned samples.
        declaration: What the user declared.
        shared: Second moments of its columns, with the outputs at all lags.
        catalog: Robots that it could be instead.

    """
    declared = evidence(samples, declaration, shared)

    def scores(alternatives: Sequence[Alternative], step: int = 1, iterations: int = ITERATIONS) -> list[Scored]:
        others = _with_moments([each.declaration for each in alternatives], samples.thinned(step), declaration, shared)
        found = evidences(samples, others, iterations)
        pairs = zip(alternatives, found, strict=True)
        return [Scored(alternative, each, each.log_evidence - declared.log_evidence) for alternative, each in pairs]

    alternatives = [*output_alternatives(declaration, samples), *motion_alternatives(declaration, samples, catalog)]
    alternatives += [*coupling_alternatives(declaration, samples), *spring_alternatives(declaration, samples)]
    first = _two_of_each_cause(scores(alternatives, RANKING, FEW_ITERATIONS))
    refined = [_refined(scored, declaration, samples, scores) for scored in scores(first)]
    return declared, sorted((s for s in refined if _material(s, declaration)), key=lambda s: -s.gain)


def _with_moments(
    alternatives: Iterable[Declaration], samples: Samples, declaration: Declaration, shared: Moments
) -> Iterator[tuple[Declaration, Moments]]:
    """Yield alternatives with the moments of their columns, those of the declaration or of the one before if equal."""
    before, moments = declaration, shared
    for other in alternatives:
        if other.same_motion(declaration):
            yield other, shared
            continue
        if not other.same_motion(before):
            before, moments = other, make_moments(samples, other)
        yield other, moments


def _two_of_each_cause(scored: Sequence[Scored]) -> list[Alternative]:
    """Return the two best alternatives of every cause."""
    ranked = sorted(scored, key=lambda s: -s.gain)
    groups = ([s.alternative for s in ranked if s.alternative.cause == cause] for cause in get_args(Cause))
    return [alternative for group in groups for alternative in group[:2]]


def _refined(best: Scored, declaration: Declaration, samples: Samples, scores: Scores) -> Scored:
    """Return the alternative with its number refined by a search around it."""
    alternative = best.alternative
    if best.gain < 0.0:
        return best
    if alternative.cause == "mounting":
        return _refined_gravity(best, declaration, scores)
    if alternative.cause == "payload centre":
        return _refined_center(best, declaration, scores)
    if alternative.cause == "coupling":
        return _refined_couplings(best, declaration, samples, scores)
    if alternative.cause == "spring":
        return _refined_springs(best, declaration, samples, scores)
    return max([best, *scores(list(_near(best, declaration)))], key=lambda s: s.gain)


def _near(scored: Scored, declaration: Declaration) -> Iterator[Alternative]:
    """Yield alternatives of the same cause around one; none for causes without a number."""
    alternative, value = scored.alternative, scored.alternative.value
    if alternative.cause == "gain":
        yield from (with_gain(declaration, alternative.joints, value * 1.06**k) for k in (-3, -2, -1, 1, 2, 3))
    elif alternative.cause == "zero offset":
        joint = alternative.joints[0]
        yield from (with_offset(declaration, joint, value + d) for d in (-15.0, -10.0, -5.0, 5.0, 10.0, 15.0))
    elif alternative.cause == "payload" and alternative.declaration.payload_mass == 0.0 < value:
        yield from (with_mass(declaration, value * 1.06**k) for k in (-3, -2, -1, 1, 2, 3))


def _refined_center(best: Scored, declaration: Declaration, scores: Scores) -> Scored:
    """Return the payload with its centre where the logs show it; estimated gains follow it, so this takes steps."""
    steps = [best]
    for _ in range(CENTER_STEPS):
        steps += scores([with_center(declaration, payload_center(steps[-1].found, declaration))])
    return max(steps, key=lambda s: s.gain)


def _refined_gravity(best: Scored, declaration: Declaration, scores: Scores) -> Scored:
    """Return the mounting with its direction refined by a pattern search."""
    size = float(np.linalg.norm(declaration.gravity))
    for degrees in (8.0, 4.0, 2.0):
        down = best.alternative.declaration.gravity / size
        side, other = tangents(down)
        angle = math.radians(degrees)
        tilted = [math.cos(angle) * down + math.sin(angle) * axis for axis in (side, -side, other, -other)]
        best = max([best, *scores([with_gravity(declaration, size * g) for g in tilted])], key=lambda s: s.gain)
    return best


def _refined_couplings(best: Scored, declaration: Declaration, samples: Samples, scores: Scores) -> Scored:
    """Return the couplings with their ratios refined, and further ones as long as they explain the data better.

    The friction of a coupled motor has other columns, so the gain is that over the same columns with ratios of zero.
    """

    def without(scored: Scored, first: int) -> float:
        couplings = scored.alternative.declaration.couplings
        zeros = tuple((motor, joint, 0.0) for motor, joint, _ in couplings[first:])
        return scores([with_couplings(declaration, (*couplings[:first], *zeros))])[0].gain

    best = _refined_ratios(best, declaration, scores)
    while more := scores(list(coupling_alternatives(best.alternative.declaration, samples))):
        longer = _refined_ratios(max(more, key=lambda s: s.gain), declaration, scores)
        last = len(longer.alternative.declaration.couplings) - 1
        if longer.gain < SUSPECT + max(best.gain, without(longer, last)):
            break
        best = longer
    found = best.alternative.declaration.couplings
    real = tuple(coupling for coupling in found if abs(coupling[2]) >= LEAST_RATIO)
    if 0 < len(real) < len(found):
        best = scores([with_couplings(declaration, real)])[0]
    return replace(best, gain=best.gain - max(without(best, 0), 0.0))


def _refined_springs(best: Scored, declaration: Declaration, samples: Samples, scores: Scores) -> Scored:
    """Return springs at further joints as long as they explain the data better."""
    while more := scores(list(spring_alternatives(best.alternative.declaration, samples))):
        longer = max(more, key=lambda s: s.gain)
        if longer.gain < SUSPECT + best.gain:
            break
        best = longer
    return best if declaration.gains_known else _at_equal_gains(best, declaration, scores)


def _at_equal_gains(best: Scored, declaration: Declaration, scores: Scores) -> Scored:
    """Return springs with their gain of log evidence over no springs at the same drive gains.

    Estimated drive gains follow the springs, and other gains alone may explain the data better.
    """
    gains = np.where(np.isnan(best.found.gains), declaration.gains, best.found.gains)
    same = replace(declaration, gains=gains, gains_known=True)
    without = scores([Alternative("spring", same, best.alternative.joints)])[0].gain
    return replace(best, gain=best.gain - max(without, 0.0))


def _refined_ratios(best: Scored, declaration: Declaration, scores: Scores) -> Scored:
    """Return couplings with their ratios refined one after the other by a pattern search."""
    for step in (0.2, 0.1, 0.05, 0.02):
        for k in range(len(best.alternative.declaration.couplings)):
            couplings = best.alternative.declaration.couplings
            motor, joint, ratio = couplings[k]
            moved = [with_item(couplings, k, (motor, joint, ratio + s)) for s in (-step, step)]
            best = max([best, *scores([with_couplings(declaration, c) for c in moved])], key=lambda s: s.gain)
    return best


def _material(scored: Scored, declaration: Declaration) -> bool:
    """Return whether an alternative is far enough from the declaration to be reported."""
    alternative = scored.alternative
    if alternative.cause == "gain":
        return abs(math.log(alternative.value)) > math.log(LEAST_GAIN)
    if alternative.cause == "zero offset":
        return abs(alternative.value) >= LEAST_OFFSET
    if alternative.cause == "mounting":
        return alternative.value >= LEAST_TILT
    if alternative.cause == "payload":
        return is_payload(*payload_mass(scored.found, declaration), declaration)
    if alternative.cause == "payload centre":
        return center_shift(scored.found, declaration) > declaration.center_deviation
    return True
