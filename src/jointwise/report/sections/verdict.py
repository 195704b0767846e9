"""The verdict: what this model is good for, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from jointwise.report.evidence import Evidence, Exhibit
from jointwise.report.markup import Html, badge, element, items, join, paragraph
from jointwise.report.numbers import joint_title, length_unit, listed, number, percent, r2_text, robot_title
from jointwise.result.calibration import EXTRAS, Calibration
from jointwise.result.validation import AT_NOISE, JointMetrics, Pooled, metrics_from_dict, pool

ID, TITLE = "verdict", "Verdict"

GOOD, FAIR = 0.02, 0.10
"""Greatest MSE / variance of a good and of a fair prediction."""
STILL = 1e-3
"""rad/s below which a joint did not move in training."""

Tone = Literal["good", "fair", "poor", "plain"]
Ground = Literal["unseen", "held out", "training"]
WORDS: dict[Tone, str] = {"good": "Good", "fair": "Use with care", "poor": "Do not rely on it", "plain": "Not proven"}
JOINT_WORDS: dict[Tone, str] = {"good": "good", "fair": "fair", "poor": "poor", "plain": "not proven"}
SIGNALS = {"current": "motor current", "torque": "joint torque"}


@dataclass(frozen=True)
class Score:
    """MSE / variance: the mean, and joint by joint where known; `ground` is what kind of data it was measured on.

    A joint that moves in none of the logs has no vote; one whose error is nearly all sensor noise counts as good.
    """

    ground: Ground
    mean: float
    joints: tuple[Pooled, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """MSE / variance of the joints that have one."""
        return tuple(own.nmse for own in self.joints if own.nmse is not None)

    @property
    def tone(self) -> Tone:
        """The light: green needs unseen data and no joint below fair."""
        judged = [own for own in map(judged_error, self.joints) if own is not None]
        mean = float(np.mean(judged)) if judged and self.ground != "held out" else self.mean
        worst = max(judged, default=mean)
        if mean > FAIR:
            return "poor"
        return "good" if self.ground == "unseen" and mean <= GOOD and worst <= FAIR else "fair"


def body(evidence: Evidence) -> Html:
    """Return the sentence, what to trust and what not, and every joint's mark."""
    score = evidence_score(evidence)
    word = element("p", badge(WORDS[score.tone], score.tone), class_="light")
    sentence = paragraph(*_sentence(evidence, score), class_="sentence")
    trust = element("div", element("h3", "Trust it for"), items(_trusted(evidence, score)))
    distrust = element("div", element("h3", "Do not trust it for"), items(_distrusted(evidence, score)))
    head = element("div", word, sentence, _alone(evidence), _warning(evidence, score), class_=f"verdict {score.tone}")
    return join([head, element("div", trust, distrust, class_="pair"), _cards(evidence, score)])


def evidence_score(evidence: Evidence) -> Score:
    """Return the best proof there is: unseen logs, else what the model's file says of some, else held-out stretches.

    Logs are pooled joint by joint; logs in which nothing moves prove nothing about motion.
    """
    stored = evidence.calibration.validation.get("logs", [])
    unseen = [own.validation.joints for own in evidence.unseen]
    unseen = unseen or [tuple(metrics_from_dict(row) for row in log["joints"]) for log in stored]
    return _pooled("unseen", unseen) or _inside(evidence)


def judged_error(own: Pooled) -> float | None:
    """Return MSE / variance as it is judged: that of a good joint where the error is nearly all sensor noise."""
    return own.nmse if own.nmse is None or not own.at_noise else min(own.nmse, GOOD)


def tone_of(own: Pooled) -> Tone:
    """Return the mark of one joint."""
    error = judged_error(own)
    if error is None:
        return "plain"
    return "good" if error <= GOOD else "fair" if error <= FAIR else "poor"


def _pooled(ground: Ground, rows: Sequence[Sequence[JointMetrics]]) -> Score | None:
    """Return the score of logs, each a row of joints; None where no joint moves in any."""
    joints = tuple(pool(column) for column in zip(*rows, strict=True))
    known = [own.nmse for own in joints if own.nmse is not None]
    return Score(ground, float(np.mean(known)), joints) if known else None


def _inside(evidence: Evidence) -> Score:
    """Return the worse of what the training data give: the error on all of them, and on held-out parts."""
    fitted = _pooled("training", [own.validation.joints for own in evidence.training])
    if fitted is None:
        known = [float(own) for own in evidence.calibration.training.get("nmse", ())]
        joints = tuple(Pooled(own) for own in known)
        fitted = Score("training", float(np.mean(known)) if known else 0.0, joints)
    held_out = cross_validated(evidence.calibration)
    return fitted if held_out is None or held_out < fitted.mean else Score("held out", held_out, fitted.joints)


def cross_validated(calibration: Calibration) -> float | None:
    """Return the held-out error of the last choice that was made, None where nothing was chosen."""
    scores = [dict(choice.alternatives).get(choice.taken) for choice in calibration.choices]
    return next((own for own in reversed(scores) if own is not None), None)


def _sentence(evidence: Evidence, score: Score) -> list[object]:
    calibration = evidence.calibration
    joint_by_joint = score.ground != "held out" and score.errors
    error = _spread(score.errors) if joint_by_joint else float(np.sqrt(score.mean))
    where = {
        "unseen": "on data it has not seen",
        "held out": "on stretches of the training log that were left out in turn",
        "training": "on the very data it was fitted to",
    }[score.ground]
    return [
        f"This model predicts the {SIGNALS[calibration.output]} of your {robot_title(evidence.robot)} to within ",
        element("strong", percent(error)),
        f" of its variation {where}: {'mean ' if score.ground != 'held out' else ''}R² ",
        element("strong", r2_text(1.0 - score.mean)),
        ".",
    ]


def _alone(evidence: Evidence) -> Html:
    """Return what the model reaches from positions alone, where it makes use of more."""
    calibration = evidence.calibration
    if not calibration.extras:
        return Html("")
    rows = [own.validation.alone for own in evidence.unseen or evidence.training if own.validation.alone is not None]
    score = _pooled("unseen", [own.joints for own in rows])
    if score is None:
        return Html("")
    parts = [pool([own for own in column if own]) for column in zip(*(own.moving for own in rows), strict=True)]
    known = [own.nmse for own in parts if own.nmse is not None]
    part = f" (moving samples: {percent(_spread(known))})" if known else ""
    return paragraph(
        "From positions alone: ",
        element("strong", percent(_spread(score.errors))),
        f" of its variation{part}, R² {r2_text(1.0 - score.mean)}. The model uses {_channels(calibration)}; a planned "
        "motion has none of it.",
        "" if evidence.unseen else " This is on training data.",
        class_="small",
    )


def _spread(errors: Sequence[float]) -> float:
    """Return the root mean square error over the standard deviation, mean over the joints, of MSE / variance."""
    return float(np.mean(np.sqrt(errors)))


def _channels(calibration: Calibration) -> str:
    """Return what the model makes use of beyond positions, in words."""
    return listed(EXTRAS[name] for name in calibration.extras)


def _warning(evidence: Evidence, score: Score) -> Html:
    if score.ground == "unseen":
        return paragraph(
            f"Measured on {listed(_proofs(evidence))}. “Variation” is the standard deviation of the measurement; the "
            "figure is the root mean square error divided by it, all logs together, mean over the joints.",
            _same_recording(evidence),
            _at_rest(evidence),
            class_="small",
        )
    part = any(own.role == "seen" for own in evidence.validation)
    seen = "The log given for validation is part of the training data. " if part else ""
    held_out = cross_validated(evidence.calibration)
    inside = (
        ""
        if held_out is None
        else f" Cross-validation inside the training log gives R² {r2_text(1.0 - held_out)} (geometric mean of the "
        "errors of the joints, samples at rest counting less): an encouragement, not a proof."
    )
    warning = (
        f"{seen}Nothing was validated on unseen data{' that move' if evidence.unseen else ''}. Record another motion "
        f"and run: jointwise validate {evidence.file} OTHER_LOG.{inside}"
    )
    return paragraph(element("strong", "Warning: "), warning, _at_rest(evidence), class_="warning")


def _proofs(evidence: Evidence) -> list[str]:
    """Return the names of the unseen logs in which something moves, at hand or remembered by the model's file."""
    if evidence.unseen:
        return [own.name for own in evidence.unseen if not _stands(own)]
    stored = evidence.calibration.validation["logs"]
    return [Path(log["file"]).name for log in stored if not all(joint["still"] for joint in log["joints"])]


def _stands(exhibit: Exhibit) -> bool:
    return all(joint.still for joint in exhibit.validation.joints)


def _at_rest(evidence: Evidence) -> str:
    """Return how far off the prediction is on unseen logs in which nothing moves; they have no R²."""
    still = [own for own in evidence.unseen if _stands(own)]
    if not still:
        return ""
    rows = [own.validation.joints for own in still]
    rest = [pool(column).rest or 0.0 for column in zip(*rows, strict=True)]
    return (
        f" In {listed(own.name for own in still)} no joint moves: the prediction is off by up to "
        f"{number(max(rest), 2)} {evidence.calibration.unit} (root mean square) there, which says little about motion "
        "and does not count above: a joint at rest may hold anything up to its break-away friction."
    )


def _same_recording(evidence: Evidence) -> str:
    """Return a note where the unseen data are but another part of a training file."""
    hashes = {own.log.origin.sha256 for own in evidence.training} - {""}
    if not any(own.log.origin.sha256 in hashes for own in evidence.unseen):
        return ""
    return " It is another part of the same recording: a different motion on another day would prove more."


def _trusted(evidence: Evidence, score: Score) -> list[str]:
    calibration, robot = evidence.calibration, evidence.robot
    good = [j for j, own in enumerate(score.joints) if tone_of(own) in ("good", "fair")]
    if score.tone == "poor" or not good:
        return ["Nothing yet: see data quality below, and record again."]
    speeds = ", ".join(
        f"{calibration.fastest[j]:.2g}" + (f" {length_unit(joint)}/s" if j == robot.dof - 1 else "")
        for j, joint in enumerate(robot.joints)
    )
    who = "all joints" if len(good) == robot.dof else f"joint{'s' * (len(good) > 1)} {listed(str(j + 1) for j in good)}"
    return [
        f"{'Currents' if calibration.output == 'current' else 'Torques'} of {who}, with the payload and the "
        f"mounting ({calibration.provenance.mounting}) of the training log",
        f"Logs with {listed(['positions (q)', *(EXTRAS[name] for name in calibration.extras)])}"
        + (": above is what positions alone give" if calibration.extras else ": it uses nothing else"),
        f"Speeds up to those of the training log: {speeds}",
        "Temperatures like those of the training log: friction changes as gears warm up",
    ]


def _distrusted(evidence: Evidence, score: Score) -> list[str]:
    calibration, robot = evidence.calibration, evidence.robot
    lines = ["Another payload or mounting, contact forces, collisions"]
    lines.append("Faster motion: viscous friction is continued along its tangent there, not measured")
    poor = [str(j + 1) for j, own in enumerate(score.joints) if tone_of(own) == "poor"]
    if poor:
        lines.append(f"Joint{'s' * (len(poor) > 1)} {listed(poor)}: too much stays unexplained")
    unproven = [str(j + 1) for j, own in enumerate(score.joints) if own.nmse is None]
    if unproven:
        lines.append(f"Joint{'s' * (len(unproven) > 1)} {listed(unproven)}: not seen moving in any unseen log")
    still = [joint_title(robot, j) for j in range(robot.dof) if calibration.fastest[j] < STILL]
    if still:
        lines.append(f"{listed(still)}: never moved in training")
    weak = sum(own in ("weak", "undetermined") for own in calibration.estimate.status)
    if weak:
        lines.append(
            f"{weak} of {len(calibration.estimate.status)} single parameters, which are weakly known or not at all: "
            "their sum predicts well, each by itself says little"
        )
    return lines


def _cards(evidence: Evidence, score: Score) -> Html:
    """Return one card a joint."""
    if not score.joints:
        return Html("")
    note = {"unseen": "unseen data", "held out": "training data", "training": "training data"}[score.ground]
    cards = [_card(evidence, j, own, score.ground, note) for j, own in enumerate(score.joints)]
    why = paragraph(
        f"Error at sensor noise: up to {AT_NOISE:g} times the noise floor, no model could do much better; R² is "
        "low there because the signal is small.",
        class_="small",
    )
    return join([element("div", *cards, class_="cards"), why if any(map(_small_signal, score.joints)) else ""])


def _small_signal(own: Pooled) -> bool:
    """Return whether a joint is good although its R² does not say so."""
    return own.at_noise and own.nmse is not None and own.nmse > GOOD


def _card(evidence: Evidence, j: int, own: Pooled, ground: Ground, note: str) -> Html:
    tone = tone_of(own)
    if ground != "unseen" and tone != "poor":
        tone = "plain"
    return element(
        "div",
        element("div", joint_title(evidence.robot, j), class_="card-title"),
        _figure(own),
        *(element("div", fact, class_="small") for fact in (*_facts(own, evidence.calibration.unit), note)),
        badge(JOINT_WORDS[tone], tone),
        class_="card",
    )


def _facts(own: Pooled, unit: str) -> list[str]:
    """Return the errors of a joint in words; why it is good where R² alone would not say so."""
    facts = [] if own.rmse is None else [f"RMSE {number(own.rmse, 2)} {unit}"]
    facts += [f"noise floor {number(own.noise, 2)} {unit}"] if own.noise else []
    facts += [] if own.rest is None else [f"{number(own.rest, 2)} {unit} off at rest"]
    if _small_signal(own):
        facts.append("error at sensor noise")
    return facts


def _figure(own: Pooled) -> Html:
    if own.nmse is None:
        return element("div", "at rest", class_="card-number")
    return element("div", element("span", "R² ", class_="unit"), r2_text(1.0 - own.nmse), class_="card-number")
