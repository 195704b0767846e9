"""The verdict: what this model is good for, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jointwise.report.evidence import Evidence
from jointwise.report.markup import Html, badge, element, items, join, paragraph
from jointwise.report.numbers import fixed, joint_title, length_unit, listed, number, percent, robot_title
from jointwise.result.calibration import Calibration

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
    """MSE / variance: the mean, and joint by joint where known; `ground` is what kind of data it was measured on."""

    ground: Ground
    mean: float
    joints: tuple[float | None, ...]

    @property
    def tone(self) -> Tone:
        """The light: green needs unseen data and no joint below fair."""
        worst = max((own for own in self.joints if own is not None), default=self.mean)
        if self.mean > FAIR:
            return "poor"
        return "good" if self.ground == "unseen" and self.mean <= GOOD and worst <= FAIR else "fair"


def body(evidence: Evidence) -> Html:
    """Return the sentence, what to trust and what not, and every joint's mark."""
    score = evidence_score(evidence)
    word = element("p", badge(WORDS[score.tone], score.tone), class_="light")
    sentence = paragraph(*_sentence(evidence, score), class_="sentence")
    trust = element("div", element("h3", "Trust it for"), items(_trusted(evidence, score)))
    distrust = element("div", element("h3", "Do not trust it for"), items(_distrusted(evidence, score)))
    head = element("div", word, sentence, _warning(evidence, score), class_=f"verdict {score.tone}")
    return join([head, element("div", trust, distrust, class_="pair"), _cards(evidence, score)])


def evidence_score(evidence: Evidence) -> Score:
    """Return the best proof there is: unseen logs, else what the model's file says of one, else held-out stretches."""
    calibration = evidence.calibration
    if evidence.unseen:
        return _unseen([[own.nmse for own in exhibit.validation.joints] for exhibit in evidence.unseen])
    if "joints" in calibration.validation:
        return _unseen([[own.get("nmse") for own in calibration.validation["joints"]]])
    return _inside(evidence)


def tone_of(nmse: float | None) -> Tone:
    """Return the mark of one joint."""
    if nmse is None:
        return "plain"
    return "good" if nmse <= GOOD else "fair" if nmse <= FAIR else "poor"


def _unseen(rows: Sequence[Sequence[float | None]]) -> Score:
    joints = tuple(_mean(column) for column in zip(*rows, strict=True))
    return Score("unseen", _mean(joints) or 0.0, joints)


def _inside(evidence: Evidence) -> Score:
    """Return the worse of what the training data give: the error on all of them, and on held-out parts."""
    joints: Sequence[float | None] = tuple(float(own) for own in evidence.calibration.training.get("nmse", ()))
    if evidence.training:
        rows = [[own.nmse for own in exhibit.validation.joints] for exhibit in evidence.training]
        joints = tuple(_mean(column) for column in zip(*rows, strict=True))
    fitted = Score("training", _mean(joints) or 0.0, tuple(joints))
    held_out = cross_validated(evidence.calibration)
    return fitted if held_out is None or held_out < fitted.mean else Score("held out", held_out, fitted.joints)


def cross_validated(calibration: Calibration) -> float | None:
    """Return the held-out error of the last choice that was made, None where nothing was chosen."""
    scores = [dict(choice.alternatives).get(choice.taken) for choice in calibration.choices]
    return next((own for own in reversed(scores) if own is not None), None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [own for own in values if own is not None]
    return float(np.mean(known)) if known else None


def _sentence(evidence: Evidence, score: Score) -> list[object]:
    calibration = evidence.calibration
    spread = [np.sqrt(own) for own in score.joints if own is not None]
    error = float(np.mean(spread)) if score.ground != "held out" and spread else float(np.sqrt(score.mean))
    where = {
        "unseen": "on data it has not seen",
        "held out": "on stretches of the training log that were left out in turn",
        "training": "on the very data it was fitted to",
    }[score.ground]
    return [
        f"This model predicts the {SIGNALS[calibration.output]} of your {robot_title(evidence.robot)} to within ",
        element("strong", percent(error)),
        f" of its variation {where}: {'mean ' if score.ground != 'held out' else ''}R² ",
        element("strong", fixed(1.0 - score.mean, 4)),
        ".",
    ]


def _warning(evidence: Evidence, score: Score) -> Html:
    if score.ground == "unseen":
        files = [own.name for own in evidence.unseen] or [str(evidence.calibration.validation.get("file", "a log"))]
        return paragraph(
            f"Measured on {listed(files)}. “Variation” is the standard deviation of the measurement; the figure is the "
            "root mean square error divided by it, mean over the joints.",
            _same_recording(evidence),
            class_="small",
        )
    seen = "The log given for validation is part of the training data. " if evidence.validation else ""
    held_out = cross_validated(evidence.calibration)
    inside = (
        ""
        if held_out is None
        else f" Cross-validation inside the training log gives R² {fixed(1.0 - held_out, 4)} (geometric mean of the "
        "errors of the joints, samples at rest counting less): an encouragement, not a proof."
    )
    warning = (
        f"{seen}Nothing was validated on unseen data. Record another motion and run: "
        f"jointwise validate model.json OTHER_LOG.{inside}"
    )
    return paragraph(element("strong", "Warning: "), warning, class_="warning")


def _same_recording(evidence: Evidence) -> str:
    """Return a note where the unseen data are but another part of a training file."""
    hashes = {own.log.origin.sha256 for own in evidence.training} - {""}
    if not any(own.log.origin.sha256 in hashes for own in evidence.unseen):
        return ""
    return " It is another part of the same recording: a different motion on another day would prove more."


def _trusted(evidence: Evidence, score: Score) -> list[str]:
    calibration, robot = evidence.calibration, evidence.robot
    good = [j for j, own in enumerate(score.joints) if own is not None and own <= FAIR]
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
        f"Speeds up to those of the training log: {speeds}",
        "Temperatures like those of the training log: friction changes as gears warm up",
    ]


def _distrusted(evidence: Evidence, score: Score) -> list[str]:
    calibration, robot = evidence.calibration, evidence.robot
    lines = ["Another payload or mounting, contact forces, collisions"]
    lines.append("Faster motion: viscous friction is continued along its tangent there, not measured")
    poor = [str(j + 1) for j, own in enumerate(score.joints) if own is not None and own > FAIR]
    if poor:
        lines.append(f"Joint{'s' * (len(poor) > 1)} {listed(poor)}: too much stays unexplained")
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
    return element("div", *cards, class_="cards")


def _card(evidence: Evidence, j: int, nmse: float | None, ground: Ground, note: str) -> Html:
    tone = tone_of(nmse)
    if ground != "unseen" and tone != "poor":
        tone = "plain"
    r2 = None if nmse is None else 1.0 - nmse
    rmse = [own.validation.joints[j].rmse for own in evidence.unseen]
    error = f"RMSE {number(float(np.mean(rmse)), 3)} {evidence.calibration.unit}" if rmse else ""
    return element(
        "div",
        element("div", joint_title(evidence.robot, j), class_="card-title"),
        element("div", element("span", "R² ", class_="unit"), fixed(r2, 4), class_="card-number"),
        element("div", f"{error}{' · ' if error else ''}{note}", class_="small"),
        badge(JOINT_WORDS[tone], tone),
        class_="card",
    )
