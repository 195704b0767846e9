"""From evidence to findings: which part of a declaration the data support, make suspect, or contradict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from jointwise.description.robot import Robot, loaded_inertials
from jointwise.finding import Finding, Severity, worst
from jointwise.formatting import listed
from jointwise.result.plausibility.alternatives import PAYLOADS, Alternative, Cause
from jointwise.result.plausibility.declaration import Declaration
from jointwise.result.plausibility.evidence import Evidence, evidence
from jointwise.result.plausibility.excitation import check_excitation
from jointwise.result.plausibility.moments import make_moments
from jointwise.result.plausibility.payloads import (
    check_mass,
    declared_mass,
    is_payload,
    payload_advice,
    payload_center,
    payload_mass,
    payload_text,
)
from jointwise.result.plausibility.rank import SUSPECT, Scored, rank
from jointwise.result.plausibility.samples import Samples
from jointwise.result.plausibility.scales import Witness, check_scales
from jointwise.result.plausibility.wording import ANOTHER, UNDECIDED, joint_text

CONTRADICTED = 60.0
"""Gain of log evidence by another declaration that contradicts the declared one; `SUSPECT` makes it suspect."""
MOTION_SUSPECT = 8.0
"""The same for signs, orders, zeros and the mounting, which reach 3 in right set-ups: unlike a gain or another robot,
they do not resemble errors of the described bodies."""
MOTION_CAUSES: tuple[Cause, ...] = (
    "output sign", "position sign", "output order", "position order",
    "joint sign", "joint order", "zero offset", "mounting",
)  # fmt: skip
PAYLOAD_SUSPECT = 12.0
"""The same for a payload, which must differ from the declared one in mass as well."""
EARLY_SUSPECT, LATE_SUSPECT, SHIFT_CONTRADICTED = 30.0, 8.0, 100.0
"""The same for early outputs, which imperfect models of friction imitate (20 in a right set-up), for late ones, which
they do not (below 0 in right set-ups), and for both to be contradicted."""
NEAR = 6.0
"""Alternatives within this log evidence of the best one are named with it."""
FREE_ZERO = 45.0
"""Shift (degrees) of a zero that fits as well from which every zero does: gravity shows nothing of it."""
LARGE_OFFSET = 0.28
"""Constant part of an output, relative to its standard deviation, that makes a channel suspect: friction and sensors
reach a few percent, joint 5 of a real UR10 25 %."""
PRELOADED = 0.1
"""Torque of declared terms and springs, relative to the spread of an output, from which its constant part is that of a
preload."""
HOPELESS = 0.5
"""MSE/variance (median over the joints) of the best declaration above which there is nothing to compare."""
FAR = 60.0
"""Squared distance of the bodies to the described ones, in standard deviations, that makes the description suspect."""


def assess(
    samples: Samples, declaration: Declaration, catalog: Iterable[Robot] = (), signals: Sequence[Witness] = ()
) -> tuple[Finding, ...]:
    """Return what the samples say about a declaration.

    Args:
        samples: Conditioned samples of the training logs.
        declaration: What the user declared.
        catalog: Robots that it could be instead.
        signals: What else is known of the scales of the outputs.

    """
    if not samples.moving.any():
        return (Finding("ok", "excitation", "no joint with a measured output moves long enough to compare anything"),)
    moments = make_moments(samples, declaration, tuple(range(len(samples.lags))))
    excitation = check_excitation(samples, declaration, moments)
    declared, ranked = rank(samples, declaration, moments, catalog)
    if excitation.severity == "error" and not _is_contradicted(ranked):
        return (excitation,)
    if _is_hopeless(declared, ranked):
        return (Finding("ok", "fit", "no declaration explains the output: see the error of the fit"),)
    logs = _log_check(samples, declaration)
    best = _blamed(ranked, logs)
    causes = {cause: _cause_check(cause, ranked, best, declaration) for cause in get_args(Cause)}
    if declaration.payload is None:
        del causes["payload centre"]
    if declaration.robot.transmission is None:
        del causes["log coordinates"]
    if logs.severity != "ok":
        del causes["payload"]  # one mass fits no log
    elif best is None or best.gain < SUSPECT:  # weak: it may be another error that resembles it
        causes["gain"] = check_scales(declared, samples, declaration, moments, signals)
        if causes["payload"].severity == "ok":
            load = check_mass(samples, declaration, moments)
            causes |= {check.subject: check for check in (load, *_common_scale(load, ranked, declaration))}
    return (
        logs,
        *causes.values(),
        *_remaining_checks(declaration, declared, best, (logs, *causes.values())),
        excitation,
    )


def _common_scale(load: Finding, ranked: Sequence[Scored], declaration: Declaration) -> Iterator[Finding]:
    """Yield payload and gain where a common factor of all outputs explains a suspect mass better than any payload."""
    scale = next((s for s in ranked if s.alternative.cause == "gain" and not s.alternative.joints), None)
    payload = max((s.gain for s in ranked if s.alternative.cause == "payload"), default=0.0)
    if declaration.payload is not None or load.severity != "warning" or scale is None:
        return
    if scale.gain > max(payload, 0.0) + NEAR:
        text = f"the data fit better with {describe(scale, declaration)} (log evidence {scale.gain:+.0f})"
        yield Finding("warning", "gain", text, suggestion(scale))
        yield Finding("ok", "payload", f"{load.evidence}, but a common factor of all outputs explains more")


def _remaining_checks(
    declaration: Declaration, declared: Evidence, best: Scored | None, checks: Sequence[Finding]
) -> tuple[Finding, Finding]:
    """Return the checks of offsets and bodies; bodies far from the description may be `explained` by other checks.

    Offsets are those of the best declaration: a wrong one leaves constants that are no offsets.
    """
    explained = best is not None or worst(list(checks)) != "ok"
    return _offset_check(declared if best is None else best.found), _body_check(declaration, declared, explained)


def _blamed(ranked: Sequence[Scored], logs: Finding) -> Scored | None:
    """Return the best alternative if it makes the declaration suspect.

    Logs with different bodies fit no declaration well; then only a contradiction counts.
    """
    best = next((s for s in ranked if s.gain >= _threshold(s.alternative, "warning")), None)
    return best if best is None or logs.severity == "ok" or best.gain >= CONTRADICTED else None


def _is_contradicted(ranked: Sequence[Scored]) -> bool:
    """Return whether an alternative contradicts the declaration."""
    return any(scored.gain > CONTRADICTED for scored in ranked)


def _is_hopeless(declared: Evidence, ranked: Sequence[Scored]) -> bool:
    """Return whether neither the declaration nor the best alternative explains the output of half of the joints."""
    errors = [declared.error, *(scored.found.error for scored in ranked[:1])]
    return min(float(np.nanmedian(error)) for error in errors) > HOPELESS


def _threshold(alternative: Alternative, severity: Severity) -> float:
    """Return the gain of log evidence from which an alternative is a finding of a severity."""
    cause = alternative.cause
    if severity == "error":
        if cause == "spring":
            return math.inf  # hoses, cables and badly described bodies resemble it
        return SHIFT_CONTRADICTED if cause == "time shift" else CONTRADICTED
    if cause == "time shift":
        return LATE_SUSPECT if alternative.value > 0.0 else EARLY_SUSPECT
    if cause in MOTION_CAUSES:
        return MOTION_SUSPECT
    return PAYLOAD_SUSPECT if cause in ("payload", "payload centre") else SUSPECT


def _cause_check(cause: Cause, ranked: Sequence[Scored], best: Scored | None, declaration: Declaration) -> Finding:
    """Return the check of one cause: it is blamed if it explains the data best, or nearly as well as the best."""
    same = [s for s in ranked if s.alternative.cause == cause]
    if not same:
        return Finding("ok", cause, "no alternative to compare with")
    first = _with_equals(next((s for s in same if s.gain >= _threshold(s.alternative, "warning")), same[0]), ranked)
    difference = describe(first, declaration)
    if best is None and abs(first.gain) < NEAR:
        return Finding("ok", cause, UNDECIDED.format(_any_value(first.alternative) or difference), code="undecided")
    if best is None or first.gain < _threshold(first.alternative, "warning") or first.gain < best.gain - NEAR:
        return Finding("ok", cause, f"the best alternative changes the log evidence by {first.gain:+.0f}")
    certain = first.gain >= _threshold(first.alternative, "error") and not _is_followed(cause, declaration)
    severity: Severity = "error" if certain else "warning"
    text = f"the data fit better with {difference} (log evidence {first.gain:+.0f})"
    return Finding(severity, cause, text, suggestion(first))


def _any_value(alternative: Alternative) -> str:
    """Return what fits with any value: the direction or the zero of a joint that shows neither; empty for others."""
    if alternative.cause == "zero offset" and abs(alternative.value) < FREE_ZERO:
        return ""
    quantity = {"joint sign": "direction", "position sign": "direction", "zero offset": "zero"}.get(alternative.cause)
    return ANOTHER.format(quantity, joint_text(alternative.joints)) if quantity else ""


def _is_followed(cause: Cause, declaration: Declaration) -> bool:
    """Return whether estimated gains follow a cause: a payload, and with a guessed centre of it zeros too."""
    follows = ("payload",) if declaration.payload is None else ("payload", "payload centre", "zero offset")
    return not declaration.gains_known and cause in follows


def _with_equals(first: Scored, ranked: Sequence[Scored]) -> Scored:
    """Return the best robot with the names of those that explain the data nearly as well; other causes as they are."""
    if first.alternative.cause != "robot":
        return first
    near = [s.alternative.name for s in ranked if s.alternative.cause == "robot" and s.gain >= first.gain - NEAR]
    return replace(first, alternative=replace(first.alternative, name="' or '".join(dict.fromkeys(near))))


def _log_check(samples: Samples, declaration: Declaration) -> Finding:
    """Return whether the logs agree about a payload: contradicted if some carry one and others do not."""
    count = len(samples.duration)
    alone = count < 2 and not declaration.removed_mass
    if alone or not declaration.described():
        return Finding("ok", "logs", "a single log" if alone else "the description has no bodies to compare with")
    payloads = [_payload_of_log(samples, declaration, k) for k in range(count)]
    masses, moments = zip(*payloads, strict=True)
    return _moment_check(moments) if not any(masses) else _mass_check(masses)


def _mass_check(masses: Sequence[float]) -> Finding:
    """Return the check of undeclared payloads (kg) of logs, of which at least one is not zero."""
    if all(masses):
        return Finding("ok", "logs", "the logs agree about the payload")
    which = ", ".join(f"log {k} about {mass:.1f} kg" for k, mass in enumerate(masses, start=1) if mass)
    text = f"some logs carry a payload and others do not ({which})"
    advice = "Declare the payload of each log (--payload LOG=KG,X,Y,Z), or calibrate them separately."
    return Finding("error", "logs", text, advice)


def _moment_check(moments: Sequence[float]) -> Finding:
    """Return the check of logs whose payloads have other first moments than declared, by `moments` (kg m)."""
    which = ", ".join(f"log {k} by {moment:.2f} kg m" for k, moment in enumerate(moments, start=1) if moment)
    if not which:
        return Finding("ok", "logs", "the logs agree about the payload")
    text = f"the first moment at the flange differs from the declared one ({which})"
    return Finding("warning", "logs", text, "Check the centre of the payload of each log (--payload LOG=KG,X,Y,Z).")


def _payload_of_log(samples: Samples, declaration: Declaration, log: int) -> tuple[float, float]:
    """Return mass (kg) and first moment (kg m) of an undeclared payload of one log, 0 within the tolerance."""
    single = replace(declaration, logs=(log,))
    moments = make_moments(samples, single)
    declared = evidence(samples, single, moments)
    loaded = max(
        (evidence(samples, replace(single, payload_mass=mass), moments) for mass in PAYLOADS),
        key=lambda found: found.log_evidence,
    )
    if loaded.log_evidence - declared.log_evidence < SUSPECT:
        return 0.0, 0.0
    mass, error = payload_mass(loaded, declaration)
    last = slice(10 * declaration.robot.dof - 4, 10 * declaration.robot.dof - 1)
    moment = float(
        np.linalg.norm(loaded.values[last] - loaded_inertials(declaration.robot, declaration.payload)[-1, 6:9])
    )
    return (mass if mass > 0.0 and is_payload(mass, error, declaration) else 0.0), moment


def _offset_check(declared: Evidence) -> Finding:
    """Return whether an output has a constant part that neither gravity nor friction explains."""
    size = np.nan_to_num(np.where(declared.terms > PRELOADED, 0.0, np.abs(declared.offset)))
    joint = int(np.argmax(size))
    text = (
        f"the output of joint {joint + 1} has a constant part of {100.0 * declared.offset[joint]:.0f} % of its spread"
    )
    if size[joint] < LARGE_OFFSET:
        return Finding("ok", "offset", text)
    return Finding("warning", "offset", text, "Subtract the offset of this channel before calibration.")


def _body_check(declaration: Declaration, declared: Evidence, explained: bool) -> Finding:
    """Return the check of the described bodies, suspect if nothing else explains their distance."""
    text = f"estimated and described bodies differ by {math.sqrt(declared.distance):.1f} standard deviations"
    if not declaration.described():
        return Finding("ok", "bodies", "the description has no bodies to compare with")
    if declared.distance < FAR or explained:
        return Finding("ok", "bodies", text)
    return Finding(
        "warning", "bodies", text, "Check the description, the drive gains and whether the logs carry a payload."
    )


def describe(scored: Scored, declaration: Declaration) -> str:
    """Return what an alternative declares differently from a declaration."""
    alternative = scored.alternative
    joints = joint_text(alternative.joints)
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
        "payload": payload_text(_mass(scored), declared_mass(declaration)),
        "payload centre": f"the centre of the payload at about ({_center(scored)}) m",
        "gain": f"the output of {joints} times {alternative.value:.2g}",
        "time shift": f"the output of {joints} shifted by {1e3 * alternative.value:+.0f} ms",
        "coupling": f"a coupled transmission ({_coupling_text(alternative)})",
        "spring": f"a spring (counterbalance) at {joints}",
        "log coordinates": f"positions of the {_other_coordinates(alternative)}s",
    }
    return texts[alternative.cause]


def suggestion(scored: Scored) -> str:
    """Return what the user can do about it."""
    alternative = scored.alternative
    joints = joint_text(alternative.joints)
    named = alternative.name in ("table", "ceiling")
    mounting = f"--mounting {alternative.name}" if named else f"--gravity {_gravity(alternative, ' ')}"
    texts = {
        "output sign": f"Invert the current or torque columns of {joints} in the log.",
        "position sign": f"Invert the position columns of {joints} in the log, or check the direction of the axis.",
        "output order": f"Check the order of the current or torque columns of {joints} (--columns).",
        "position order": f"Check the order of the position columns of {joints} (--columns).",
        "joint sign": f"Check the direction of {joints}: invert its position and output columns, or its axis.",
        "joint order": f"Check the order of the joints: exchange the columns of {joints} (--columns).",
        "zero offset": f"Check the zero position of {joints} in the description (joint offset).",
        "mounting": f"Declare the mounting: {mounting}.",
        "robot": f"Check --robot: '{alternative.name}' explains the log better.",
        "payload": payload_advice(_mass(scored)),
        "payload centre": f"Declare it: --payload {declared_mass(alternative.declaration):.3g},{_center(scored, ',')}.",
        "gain": f"Check the drive gain and the unit of the output of {joints} (--gains).",
        "time shift": f"Check the time stamps of the output of {joints}, or set --lag.",
        "coupling": f"Declare it if the transmission is coupled: --coupling {_coupling_option(alternative)}.",
        "spring": "Declare it if there is one: --terms spring.",
        "log coordinates": f"Declare --log-coordinates {_other_coordinates(alternative)}, or check the coupling.",
    }
    return texts[alternative.cause]


def _other_coordinates(alternative: Alternative) -> str:
    """Return the coordinates of logs that were not declared: joint or motor."""
    coupling = alternative.declaration.robot.transmission
    return "motor" if coupling is None or coupling.coordinates == "joint" else "joint"


def _mass(scored: Scored) -> float:
    """Return the mass (kg) of the payload of an alternative."""
    return payload_mass(scored.found, scored.alternative.declaration)[0]


def _center(scored: Scored, separator: str = ", ") -> str:
    """Return the centre of the payload of an alternative, m."""
    return separator.join(f"{x:.2f}" for x in payload_center(scored.found, scored.alternative.declaration))


def _coupling_text(alternative: Alternative) -> str:
    """Return how the coupled motors turn: by q6 +1.00 q5."""
    turns = [f"motor {i + 1} by q{i + 1} {r:+.2f} q{j + 1}" for i, j, r in alternative.declaration.couplings]
    return listed(turns)


def _coupling_option(alternative: Alternative) -> str:
    return ",".join(f"{i + 1}:{j + 1}:{r:.2g}" for i, j, r in alternative.declaration.couplings)


def _direction(alternative: Alternative) -> str:
    if alternative.name:
        return f"as mounted on the {alternative.name}"
    return f"({_gravity(alternative, ', ')}) m/s^2, {alternative.value:.0f} degrees from the declared direction"


def _gravity(alternative: Alternative, separator: str) -> str:
    """Return gravity with two decimals, m/s², without a sign of zeros."""
    return separator.join(f"{round(float(x), 2) + 0.0:.2f}" for x in alternative.declaration.gravity)
