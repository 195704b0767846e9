"""Model selection: the joint model, the candidates with their cross-validation errors, and the settings."""

from __future__ import annotations

from jointwise.estimation.cross_validation import Choice
from jointwise.formatting import condition_text, number
from jointwise.report.data import ReportData
from jointwise.report.page import Html, fragment
from jointwise.result.calibration import Calibration
from jointwise.result.text import explain_structure

METHODS = {"wls": "weighted least squares", "ols": "ordinary least squares", "huber": "robust regression (Huber)"}


def selection_section(data: ReportData) -> Html:
    """Return the joint model, a bar chart per selection, and the settings."""
    calibration = data.calibration
    return fragment(
        "selection.html",
        model=calibration.structure_text,
        explained=explain_structure(calibration.structure),
        choices=[(choice.question, choice.taken, _bars(choice)) for choice in calibration.choices],
        settings=_settings(calibration),
    )


def _bars(choice: Choice) -> list[tuple[str, float, float, str, bool]]:
    """Return name, score, width of the bar (%), excess over the best and whether it was selected, by candidate."""
    scores = [score for _, score in choice.alternatives]
    least, most = min(scores), max(scores)
    return [
        (
            name,
            score,
            100.0 * score / most if most > 0.0 else 0.0,
            f"+{100.0 * (score / least - 1.0):.1f} %" if least > 0.0 and score > least else "lowest",
            _same(name, choice.taken),
        )
        for name, score in choice.alternatives
    ]


def _same(name: str, taken: str) -> bool:
    """Return whether two labels are equal up to the format of a number: `0 ms` and `0.0 ms` are."""
    return name == taken or name.replace(" ", ".0 ", 1) == taken


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
