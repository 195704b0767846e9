"""From evidence to findings: which part of a declaration the data support, make suspect, or contradict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from jointwise.description.robot import Robot
from jointwise.formatting import listed
from jointwise.result.plausibility.alternatives import (
    PAYLOADS,
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
from jointwise.result.plausibility.check import UNDECIDED, Check, Status
from jointwise.result.plausibility.declaration import PAYLOAD_MASS, Declaration, with_item
from jointwise.result.plausibility.evidence import (
    FEW_ITERATIONS,
    ITERATIONS,
    Evidence,
    evidence,
    evidences,
    expected_error,
    make_moments,
)
from jointwise.result.plausibility.samples import Samples

SUSPECT = 20.0
"""Gain of log evidence by another declaration that makes the declared one suspect (models are not exact)."""
CONTRADICTED = 60.0
"""The same for a contradiction."""
SHIFT_SUSPECT, SHIFT_CONTRADICTED = 30.0, 100.0
"""The same two for a time shift, which imperfect models of friction imitate."""
EXCITATION_SUSPECT, EXCITATION_CONTRADICTED = 0.03, 0.2
"""Expected MSE/variance on other motions above which a log is suspect, and above which no model can be made of it."""
NEAR = 6.0
"""Alternatives within this log evidence of the best one are named with it."""
LEAST_OFFSET, LEAST_TILT, LEAST_GAIN, LEAST_PAYLOAD = 5.0, 3.0, 1.15, 0.25
"""Smallest deviations that are reported: degrees of a zero and of the mounting, factor of a gain, payload in kg.
Smaller ones are within the accuracy of installations, and the linear friction model may imitate them."""
LARGE_OFFSET = 0.25
"""Constant part of an output, relative to its standard deviation, that makes a channel suspect: friction and sensors
reach a few percent."""
HOPELESS = 0.5
"""MSE/variance (median over the joints) of the best declaration above which there is nothing to compare."""
FAR = 60.0
"""Squared distance of the bodies to the described ones, in standard deviations, that makes the description suspect."""


@dataclass(frozen=True, eq=False)
class Scored:
    """An alternative, its evidence, and the gain of log evidence over the declared one."""

    alternative: Alternative
    found: Evidence
    gain: float


Score = Callable[[Alternative], Scored]
"""Evaluates an alternative."""


def assess(samples: Samples, declaration: Declaration, catalog: Iterable[Robot] = ()) -> tuple[Check, ...]:
    """Return what the samples say about a declaration.

    Args:
        samples: Conditioned samples of the training logs.
        declaration: What the user declared.
        catalog: Robots that it could be instead.

    """
    if not samples.moving.any():
        return (Check("excitation", "ok", "no joint with a measured output moves long enough to compare anything"),)
    excitation = _excitation_check(samples, declaration)
    declared, ranked = rank(samples, declaration, catalog)
    if excitation.status == "contradicted" and not any(scored.gain > CONTRADICTED for scored in ranked):
        return (excitation,)
    if _is_hopeless(declared, ranked):
        return (Check("fit", "ok", "no declaration explains the output: see the error of the fit"),)
    best = next((s for s in ranked if s.gain >= _threshold(s.alternative.cause, "suspect")), None)
    logs = _log_check(samples, declaration)
    causes = [cause for cause in get_args(Cause) if cause != "payload" or logs.status == "ok"]  # one mass fits no log
    checks = [_cause_check(cause, ranked, best, declaration) for cause in causes]
    return logs, *checks, _offset_check(declared), _body_check(declaration, declared, best), excitation


def _is_hopeless(declared: Evidence, ranked: Sequence[Scored]) -> bool:
    """Return whether neither the declaration nor the best alternative explains the output of half of the joints."""
    errors = [declared.error, *(scored.found.error for scored in ranked[:1])]
    return min(float(np.nanmedian(error)) for error in errors) > HOPELESS


def _threshold(cause: Cause, status: Status) -> float:
    """Return the gain of log evidence from which a cause has a status."""
    if cause == "time shift":
        return SHIFT_SUSPECT if status == "suspect" else SHIFT_CONTRADICTED
    return SUSPECT if status == "suspect" else CONTRADICTED


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
        return _is_payload(*payload_mass(scored.found, declaration), declaration)
    return True


def _is_payload(mass: float, error: float, declaration: Declaration) -> bool:
    """Return whether a payload (kg) with its standard error is one, and not the declared one."""
    declared = _declared_mass(declaration)
    return mass > -2.0 * error and abs(mass - declared) > max(LEAST_PAYLOAD, PAYLOAD_MASS * declared, 2.0 * error)


def _declared_mass(declaration: Declaration) -> float:
    return 0.0 if declaration.payload is None else declaration.payload.mass


def payload_mass(found: Evidence, declaration: Declaration) -> tuple[float, float]:
    """Return the mass (kg) by which the last link exceeds its description, and its standard error."""
    k = 10 * declaration.robot.dof - 1
    return float(found.values[k] - declaration.robot.links[-1].mass), float(found.deviation[k])


def _cause_check(cause: Cause, ranked: Sequence[Scored], best: Scored | None, declaration: Declaration) -> Check:
    """Return the check of one cause: it is blamed if it explains the data best, or nearly as well as the best."""
    first = next((s for s in ranked if s.alternative.cause == cause), None)
    if first is None:
        return Check(cause, "ok", "no alternative to compare with")
    first = _with_equals(first, ranked)
    difference = describe(first, declaration)
    if best is None and abs(first.gain) < NEAR:
        return Check(cause, "ok", UNDECIDED.format(difference))
    if best is None or first.gain < _threshold(cause, "suspect") or first.gain < best.gain - NEAR:
        return Check(cause, "ok", f"the best alternative changes the log evidence by {first.gain:+.0f}")
    status: Status = "contradicted" if first.gain >= _threshold(cause, "contradicted") else "suspect"
    text = f"the data fit better with {difference} (log evidence {first.gain:+.0f})"
    return Check(cause, status, text, suggestion(first))


def _with_equals(first: Scored, ranked: Sequence[Scored]) -> Scored:
    """Return the best robot with the names of those that explain the data nearly as well; other causes as they are."""
    if first.alternative.cause != "robot":
        return first
    near = [s.alternative.name for s in ranked if s.alternative.cause == "robot" and s.gain >= first.gain - NEAR]
    return replace(first, alternative=replace(first.alternative, name="' or '".join(dict.fromkeys(near))))


def _log_check(samples: Samples, declaration: Declaration) -> Check:
    """Return whether the logs agree about a payload: contradicted if some carry one and others do not."""
    count = len(samples.duration)
    if count < 2 or not declaration.described():
        return Check("logs", "ok", "a single log" if count < 2 else "the description has no bodies to compare with")
    masses = [_payload_of_log(samples, declaration, k) for k in range(count)]
    loaded = [k for k, mass in enumerate(masses) if mass > 0.0]
    if not loaded or len(loaded) == count:
        return Check("logs", "ok", "the logs agree about the payload")
    which = ", ".join(f"log {k + 1} about {masses[k]:.1f} kg" for k in loaded)
    text = f"some logs carry a payload and others do not ({which})"
    return Check(
        "logs",
        "contradicted",
        text,
        "Declare the payload of each log (--payload LOG=KG,X,Y,Z), or calibrate them separately.",
    )


def _payload_of_log(samples: Samples, declaration: Declaration, log: int) -> float:
    """Return the undeclared payload (kg) of one log, 0 where there is none."""
    single = replace(declaration, logs=(log,))
    moments = make_moments(samples, single)
    declared = evidence(samples, single, moments)
    loaded = max(
        (evidence(samples, replace(single, payload_mass=mass), moments) for mass in PAYLOADS),
        key=lambda found: found.log_evidence,
    )
    mass, error = payload_mass(loaded, declaration)
    significant = loaded.log_evidence - declared.log_evidence >= SUSPECT and _is_payload(mass, error, declaration)
    return mass if significant and mass > 0.0 else 0.0


def _excitation_check(samples: Samples, declaration: Declaration) -> Check:
    """Return whether the logs determine the torque of other motions."""
    error = expected_error(samples, declaration)
    joint = int(np.nanargmax(error))
    worst = float(error[joint])
    text = f"expected MSE/variance on other motions at most {worst:.2g} (joint {joint + 1})"
    if worst < EXCITATION_SUSPECT:
        return Check("excitation", "ok", text)
    status: Status = "contradicted" if worst >= EXCITATION_CONTRADICTED else "suspect"
    advice = f"Record a longer log ({samples.duration.sum():.0f} s of motion here) in which all joints move widely."
    return Check("excitation", status, text, advice)


def _offset_check(declared: Evidence) -> Check:
    """Return whether an output has a constant part that neither gravity nor friction explains."""
    size = np.nan_to_num(np.abs(declared.offset))
    joint = int(np.argmax(size))
    text = (
        f"the output of joint {joint + 1} has a constant part of {100.0 * declared.offset[joint]:.0f} % of its spread"
    )
    if size[joint] < LARGE_OFFSET:
        return Check("offset", "ok", text)
    return Check("offset", "suspect", text, "Subtract the offset of this channel before calibration.")


def _body_check(declaration: Declaration, declared: Evidence, best: Scored | None) -> Check:
    """Return the check of the described bodies, suspect if nothing else explains their distance."""
    text = f"estimated and described bodies differ by {math.sqrt(declared.distance):.1f} standard deviations"
    if not declaration.described():
        return Check("bodies", "ok", "the description has no bodies to compare with")
    explained = best is not None and best.gain >= SUSPECT
    if declared.distance < FAR or explained:
        return Check("bodies", "ok", text)
    return Check(
        "bodies", "suspect", text, "Check the description, the drive gains and whether the logs carry a payload."
    )


def describe(scored: Scored, declaration: Declaration) -> str:
    """Return what an alternative declares differently from a declaration."""
    alternative = scored.alternative
    joints = _joint_text(alternative.joints)
    texts = {
        "output sign": f"the opposite sign of the output of {joints}",
        "position sign": f"the opposite sign of the position of {joints}",
        "output order": f"the outputs of {joints} exchanged",
        "position order": f"the positions of {joints} exchanged",
        "joint sign": f"the opposite sign of position and output of {joints}",
        "joint order": f"all columns of {joints} exchanged",
        "zero offset": f"the zero of {joints} shifted by {alternative.value:.0f} degrees",
        "mounting": f"gravity {_direction(alternative)}",
        "robot": f"the robot '{alternative.name}'",
        "payload": _payload_text(scored, _declared_mass(declaration)),
        "gain": f"the output of {joints} times {alternative.value:.2g}",
        "time shift": f"the output of {joints} shifted by {1e3 * alternative.value:+.0f} ms",
        "coupling": f"a coupled transmission ({_coupling_text(alternative)})",
    }
    return texts[alternative.cause]


def suggestion(scored: Scored) -> str:
    """Return what the user can do about it."""
    alternative = scored.alternative
    joints = _joint_text(alternative.joints)
    gravity = " ".join(f"{x:.2f}" for x in alternative.declaration.gravity)
    texts = {
        "output sign": f"Invert the current or torque columns of {joints} in the log (--columns).",
        "position sign": f"Invert the position columns of {joints} in the log, or check the direction of the axis.",
        "output order": f"Check the order of the current or torque columns of {joints} (--columns).",
        "position order": f"Check the order of the position columns of {joints} (--columns).",
        "joint sign": f"Check the direction of {joints}: invert its position and output columns, or its axis.",
        "joint order": f"Check the order of the joints: exchange the columns of {joints} (--columns).",
        "zero offset": f"Check the zero position of {joints} in the description (joint offset).",
        "mounting": f"Declare the mounting: --gravity {gravity}.",
        "robot": f"Check --robot: '{alternative.name}' explains the log better.",
        "payload": _payload_advice(scored),
        "gain": f"Check the drive gain and the unit of the output of {joints} (--gains).",
        "time shift": f"Check the time stamps of the output of {joints}, or set --lag.",
        "coupling": f"Declare it if the transmission is coupled: --coupling {_coupling_option(alternative)}.",
    }
    return texts[alternative.cause]


def _joint_text(joints: Sequence[int]) -> str:
    if not joints:
        return "all joints"
    return ("joint " if len(joints) == 1 else "joints ") + " and ".join(str(j + 1) for j in joints)


def _coupling_text(alternative: Alternative) -> str:
    """Return how the coupled motors turn: by q6 +1.00 q5."""
    turns = [f"motor {i + 1} by q{i + 1} {r:+.2f} q{j + 1}" for i, j, r in alternative.declaration.couplings]
    return listed(turns)


def _coupling_option(alternative: Alternative) -> str:
    return ",".join(f"{i + 1}:{j + 1}:{r:.2g}" for i, j, r in alternative.declaration.couplings)


def _direction(alternative: Alternative) -> str:
    if alternative.name:
        return f"as mounted on the {alternative.name}"
    g = ", ".join(f"{x:.2f}" for x in alternative.declaration.gravity)
    return f"({g}) m/s^2, {alternative.value:.0f} degrees from the declared direction"


def _payload_text(scored: Scored, declared: float) -> str:
    mass = payload_mass(scored.found, scored.alternative.declaration)[0]
    if mass < LEAST_PAYLOAD:
        return f"no payload instead of the declared {declared:.1f} kg"
    instead = f" instead of the declared {declared:.1f} kg" if declared > 0.0 else ""
    return f"a payload of about {mass:.1f} kg at the flange{instead}"


def _payload_advice(scored: Scored) -> str:
    mass = payload_mass(scored.found, scored.alternative.declaration)[0]
    if mass < LEAST_PAYLOAD:
        return "Declare no payload for this log."
    return f"Declare it: --payload {mass:.1f},X,Y,Z, or use logs without a payload."
