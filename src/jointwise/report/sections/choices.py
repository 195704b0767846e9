"""The choices made, with their alternatives' scores."""

from __future__ import annotations

import math

from jointwise.estimation.select import Choice
from jointwise.report.evidence import Evidence
from jointwise.report.markup import Html, element, facts, items, join, paragraph
from jointwise.report.numbers import number
from jointwise.result.calibration import Calibration
from jointwise.result.words import explained

ID, TITLE = "choices", "Choices"

METHODS = {"wls": "weighted least squares", "ols": "ordinary least squares", "huber": "Huber's robust regression"}


def body(evidence: Evidence) -> Html:
    """Return the joint model, a chart a question, and the settings."""
    calibration = evidence.calibration
    model = paragraph(element("strong", "Joint model: "), calibration.structure_text, ".")
    words = items(explained(calibration.structure), class_="small")
    return join([model, words, _questions(calibration), element("h3", "Settings"), facts(_settings(calibration))])


def _questions(calibration: Calibration) -> Html:
    if not calibration.choices:
        return paragraph("Nothing was chosen automatically: every setting was given.")
    hint = paragraph(
        "Each bar is the error (MSE / variance, geometric mean over the joints) on stretches of the training log that "
        "were left out in turn: shorter is better. Questions were asked in this order, each with the answers so far. A "
        "richer model is taken only where it is clearly better: by more than 1 % and more than the standard error of "
        "the difference.",
        class_="hint",
    )
    return join([hint, element("div", *(_question(own) for own in calibration.choices), class_="questions")])


def _question(choice: Choice) -> Html:
    scores = [score for _, score in choice.alternatives]
    least, most = min(scores), max(scores)
    taken = [_same(name, choice.taken) for name, _ in choice.alternatives]
    pairs = zip(choice.alternatives, taken, strict=True)
    rows = [_bar(name, score, least, most, own) for (name, score), own in pairs]
    between = not any(taken)
    note = paragraph(f"Taken: {choice.taken}, by a parabola through the lowest.", class_="small") if between else ""
    title = element("h4", choice.question[:1].upper() + choice.question[1:])
    return element("div", title, element("ul", *rows, class_="bars"), note, class_="question")


def _same(name: str, taken: str) -> bool:
    """Return whether two labels mean the same: `0 ms` and `0.0 ms` do."""
    return name == taken or name.replace(" ", ".0 ", 1) == taken


def _bar(name: str, score: float, least: float, most: float, taken: bool) -> Html:
    width = 100.0 * score / most if most > 0.0 else 0.0
    more = f"+{100.0 * (score / least - 1.0):.1f} %" if least > 0.0 and score > least else "lowest"
    return element(
        "li",
        element("span", name, join([" ", element("em", "taken")]) if taken else "", class_="bar-name"),
        element("span", number(score), element("small", f" {more}"), class_="bar-score"),
        element("span", element("span", style=f"width:{width:.1f}%"), class_="bar", aria_hidden="true"),
        class_="taken" if taken else None,
    )


def _settings(calibration: Calibration) -> list[tuple[object, object]]:
    filters, load, estimate = calibration.filters, calibration.load, calibration.estimate
    unit = "" if calibration.output == "torque" else " Nm/A"
    gains = ", ".join(f"{gain:.4g}" for gain in calibration.gains)
    parallel = "none" if filters.parallel_cutoff is None else f"{filters.parallel_cutoff:g} Hz"
    pairs: list[tuple[object, object]] = [
        ("Uniform clock", f"{filters.rate:.4g} Hz"),
        ("Position low-pass", f"{filters.position_cutoff:g} Hz, zero phase"),
        ("Parallel filter", parallel),
        ("Rows used", "every sample" if filters.decimation == 1 else f"one sample in {filters.decimation}"),
        ("Lag of the output", f"{1e3 * filters.lag:.1f} ms"),
        ("Drive gains", f"{gains}{unit} ({calibration.gain_source})"),
        ("Method", METHODS.get(estimate.method, estimate.method)),
        (
            "Condition number",
            f"{_size(estimate.condition)}; {_size(estimate.condition_scaled)} with columns of unit length",
        ),
        ("Residual deviation", f"{', '.join(number(float(own), 3) for own in estimate.sigma)} Nm, by joint"),
        ("Load torque", _load(calibration, load)),
    ]
    return pairs


def _size(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "infinite"


def _load(calibration: Calibration, load: dict[str, object]) -> str:
    if not calibration.model.needs_load:
        return "not used: no friction depends on load"
    ended = "converged" if load.get("converged") else "did not converge"
    change = load.get("change")
    last = f", last relative change {change:.2g}" if isinstance(change, int | float) else ""
    return f"from the model itself by iteration: {ended} after {load.get('passes')} passes{last}"
