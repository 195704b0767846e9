"""Model selection: the joint model, the candidates with their cross-validation errors, and the settings."""

from __future__ import annotations

from jointwise.estimation.cross_validation import Choice
from jointwise.formatting import condition_text, number
from jointwise.report.data import ReportData
from jointwise.report.page import Html, element, facts, items, join, paragraph
from jointwise.result.calibration import Calibration
from jointwise.result.text import explain_structure

METHODS = {"wls": "weighted least squares", "ols": "ordinary least squares", "huber": "robust regression (Huber)"}


def selection_section(data: ReportData) -> Html:
    """Return the joint model, a bar chart per selection, and the settings."""
    calibration = data.calibration
    model = paragraph(element("strong", "Joint model: "), calibration.structure_text, ".")
    words = items(explain_structure(calibration.structure), class_="small")
    return join([model, words, _selections(calibration), element("h3", "Settings"), facts(_settings(calibration))])


def _selections(calibration: Calibration) -> Html:
    if not calibration.choices:
        return paragraph("Nothing was selected automatically: all settings were specified.")
    hint = paragraph(
        "Each bar is a cross-validation error (MSE / variance, geometric mean over the joints) within the training "
        "data; shorter is better. The selections were made in this order, each with the results of the previous "
        "ones. A more complex model is selected only if it is better by more than 1 % and by more than the standard "
        "error of the difference.",
        class_="hint",
    )
    return join([hint, element("div", *(_selection(choice) for choice in calibration.choices), class_="questions")])


def _selection(choice: Choice) -> Html:
    scores = [score for _, score in choice.alternatives]
    least, most = min(scores), max(scores)
    selected = [_same(name, choice.taken) for name, _ in choice.alternatives]
    pairs = zip(choice.alternatives, selected, strict=True)
    rows = [_bar(name, score, least, most, chosen) for (name, score), chosen in pairs]
    text = f"Selected: {choice.taken}, the minimum of a parabola through the best three."
    note = "" if any(selected) else paragraph(text, class_="small")
    title = element("h4", choice.question[:1].upper() + choice.question[1:])
    return element("div", title, element("ul", *rows, class_="bars"), note, class_="question")


def _same(name: str, taken: str) -> bool:
    """Return whether two labels are equal up to the format of a number: `0 ms` and `0.0 ms` are."""
    return name == taken or name.replace(" ", ".0 ", 1) == taken


def _bar(name: str, score: float, least: float, most: float, selected: bool) -> Html:
    width = 100.0 * score / most if most > 0.0 else 0.0
    excess = f"+{100.0 * (score / least - 1.0):.1f} %" if least > 0.0 and score > least else "lowest"
    return element(
        "li",
        element("span", name, join([" ", element("em", "selected")]) if selected else "", class_="bar-name"),
        element("span", number(score), element("small", f" {excess}"), class_="bar-score"),
        element("span", element("span", style=f"width:{width:.1f}%"), class_="bar", aria_hidden="true"),
        class_="selected" if selected else None,
    )


def _settings(calibration: Calibration) -> list[tuple[object, object]]:
    filters, estimate = calibration.filters, calibration.estimate
    unit = "" if calibration.output == "torque" else " Nm/A"
    gains = ", ".join(f"{gain:.4g}" for gain in calibration.gains)
    condition, scaled = (condition_text(value) for value in (estimate.condition, estimate.condition_scaled))
    sigma = ", ".join(number(float(value), 3) for value in estimate.sigma)
    return [
        ("Uniform sampling rate", f"{filters.rate:.4g} Hz"),
        ("Position low-pass filter", f"{filters.position_cutoff:g} Hz, zero phase"),
        ("Parallel filter", "none" if filters.parallel_cutoff is None else f"{filters.parallel_cutoff:g} Hz"),
        ("Rows used", "every sample" if filters.decimation == 1 else f"every {filters.decimation}th sample"),
        ("Delay of the output", f"{1e3 * filters.lag:.1f} ms"),
        ("Drive gains", f"{gains}{unit} ({calibration.gain_source})"),
        ("Estimator", METHODS.get(estimate.method, estimate.method)),
        ("Condition number", f"{condition}; {scaled} with columns of unit length"),
        ("Residual standard deviation", f"{sigma} Nm, by joint"),
        ("Load torque", _load(calibration)),
    ]


def _load(calibration: Calibration) -> str:
    load = calibration.load
    if not calibration.model.needs_load:
        return "not used: friction does not depend on load"
    outcome = "converged" if load.converged else "did not converge"
    return f"from the model by iteration: {outcome} after {load.passes} passes, last relative change {load.change:.2g}"
