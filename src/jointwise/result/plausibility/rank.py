"""Alternatives to a declaration by how much better they explain the samples, with their numbers refined."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
    tangents,
    with_couplings,
    with_gain,
    with_gravity,
    with_offset,
)
from jointwise.result.plausibility.declaration import PAYLOAD_MASS, Declaration, with_item
from jointwise.result.plausibility.evidence import (
    FEW_ITERATIONS,
    ITERATIONS,
    Evidence,
    evidence,
    evidences,
    make_moments,
)
from jointwise.result.plausibility.samples import Samples

SUSPECT = 20.0
"""Gain of log evidence by another declaration that makes the declared one suspect (models are not exact)."""
LEAST_OFFSET, LEAST_TILT, LEAST_GAIN, LEAST_PAYLOAD = 5.0, 3.0, 1.15, 0.25
"""Smallest deviations that are reported: degrees of a zero and of the mounting, factor of a gain, payload in kg.
Smaller ones are within the accuracy of installations, and the linear friction model may imitate them."""
LEAST_RATIO = 0.015
"""Smallest ratio of a coupling that is reported: below the last step of the search."""


@dataclass(frozen=True, eq=False)
class Scored:
    """An alternative, its evidence, and the gain of log evidence over the declared one."""

    alternative: Alternative
    found: Evidence
    gain: float


Score = Callable[[Alternative], Scored]
"""Evaluates an alternative."""


def rank(samples: Samples, declaration: Declaration, catalog: Iterable[Robot]) -> tuple[Evidence, list[Scored]]:
    """Return the evidence of the declaration, and the best alternative of every cause, best first."""
    shared = make_moments(samples, declaration, tuple(range(len(samples.lags))))
    declared = evidence(samples, declaration, shared)

    def scores(alternatives: Sequence[Alternative], iterations: int) -> list[Scored]:
        declarations = [alternative.declaration for alternative in alternatives]
        moments = [shared if d.same_motion(declaration) else make_moments(samples, d) for d in declarations]
        found = evidences(samples, list(zip(declarations, moments, strict=True)), iterations)
        pairs = zip(alternatives, found, strict=True)
        return [Scored(alternative, each, each.log_evidence - declared.log_evidence) for alternative, each in pairs]

    def score(alternative: Alternative) -> Scored:
        return scores([alternative], ITERATIONS)[0]

    alternatives = [*output_alternatives(declaration, samples), *motion_alternatives(declaration, samples, catalog)]
    alternatives += coupling_alternatives(declaration, samples)
    scored = scores(alternatives, FEW_ITERATIONS)
    kept = []
    for cause in get_args(Cause):
        group = sorted((s for s in scored if s.alternative.cause == cause), key=lambda s: -s.gain)
        for item in group[:2]:
            refined = _refined(score(item.alternative), declaration, samples, score)
            if _material(refined, declaration):
                kept.append(refined)
    return declared, sorted(kept, key=lambda s: -s.gain)


def _refined(best: Scored, declaration: Declaration, samples: Samples, score: Score) -> Scored:
    """Return the alternative with its number refined by a search around it."""
    alternative = best.alternative
    if best.gain < 0.0:
        return best
    if alternative.cause == "gain":
        steps = [with_gain(declaration, alternative.joints, alternative.value * 1.06**k) for k in (-3, -2, -1, 1, 2, 3)]
    elif alternative.cause == "zero offset":
        joint, value = alternative.joints[0], alternative.value
        steps = [with_offset(declaration, joint, value + d) for d in (-15.0, -10.0, -5.0, 5.0, 10.0, 15.0)]
    elif alternative.cause == "mounting":
        return _refined_gravity(best, declaration, score)
    elif alternative.cause == "coupling":
        return _refined_couplings(best, declaration, samples, score)
    else:
        return best
    return max([best, *map(score, steps)], key=lambda s: s.gain)


def _refined_gravity(best: Scored, declaration: Declaration, score: Score) -> Scored:
    """Return the mounting with its direction refined by a pattern search."""
    size = float(np.linalg.norm(declaration.gravity))
    for degrees in (8.0, 4.0, 2.0):
        down = best.alternative.declaration.gravity / size
        side, other = tangents(down)
        angle = math.radians(degrees)
        tilted = [math.cos(angle) * down + math.sin(angle) * axis for axis in (side, -side, other, -other)]
        best = max([best, *(score(with_gravity(declaration, size * g)) for g in tilted)], key=lambda s: s.gain)
    return best


def _refined_couplings(best: Scored, declaration: Declaration, samples: Samples, score: Score) -> Scored:
    """Return the couplings with their ratios refined, and further ones as long as they explain the data better.

    The friction of a coupled motor has other columns, so the gain is that over the same columns with ratios of zero.
    """

    def without(scored: Scored, first: int) -> float:
        couplings = scored.alternative.declaration.couplings
        zeros = tuple((motor, joint, 0.0) for motor, joint, _ in couplings[first:])
        return score(with_couplings(declaration, (*couplings[:first], *zeros))).gain

    best = _refined_ratios(best, declaration, score)
    while more := [score(other) for other in coupling_alternatives(best.alternative.declaration, samples)]:
        longer = _refined_ratios(max(more, key=lambda s: s.gain), declaration, score)
        last = len(longer.alternative.declaration.couplings) - 1
        if longer.gain < SUSPECT + max(best.gain, without(longer, last)):
            break
        best = longer
    found = best.alternative.declaration.couplings
    real = tuple(coupling for coupling in found if abs(coupling[2]) >= LEAST_RATIO)
    if 0 < len(real) < len(found):
        best = score(with_couplings(declaration, real))
    return replace(best, gain=best.gain - max(without(best, 0), 0.0))


def _refined_ratios(best: Scored, declaration: Declaration, score: Score) -> Scored:
    """Return couplings with their ratios refined one after the other by a pattern search."""
    for step in (0.2, 0.1, 0.05, 0.02):
        for k in range(len(best.alternative.declaration.couplings)):
            couplings = best.alternative.declaration.couplings
            motor, joint, ratio = couplings[k]
            moved = [with_item(couplings, k, (motor, joint, ratio + s)) for s in (-step, step)]
            best = max([best, *(score(with_couplings(declaration, c)) for c in moved)], key=lambda s: s.gain)
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
    return True


def is_payload(mass: float, error: float, declaration: Declaration) -> bool:
    """Return whether a payload (kg) with its standard error is one, and not the declared one."""
    declared = declared_mass(declaration)
    return mass > -2.0 * error and abs(mass - declared) > max(LEAST_PAYLOAD, PAYLOAD_MASS * declared, 2.0 * error)


def declared_mass(declaration: Declaration) -> float:
    """Return the mass (kg) of the declared payload, 0 without one."""
    return 0.0 if declaration.payload is None else declaration.payload.mass


def payload_mass(found: Evidence, declaration: Declaration) -> tuple[float, float]:
    """Return the mass (kg) by which the last link exceeds its description, and its standard error."""
    k = 10 * declaration.robot.dof - 1
    return float(found.values[k] - declaration.robot.links[-1].mass), float(found.deviation[k])
