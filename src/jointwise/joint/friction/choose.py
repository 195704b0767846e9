"""Which friction curve a log can tell: forms compared on data that their fit has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.joint.friction.deviation import Deviation, deviation_of
from jointwise.joint.friction.fit import Fit, Form, fit_curve
from jointwise.joint.friction.points import Points
from jointwise.joint.part import Alternative
from jointwise.joint.quality import nrmse_percent
from jointwise.spatial import Array

FORMS = (
    Form(dry=False),
    Form(),
    Form(powers=2),
    Form(powers=3),
    Form(stribeck=True),
    Form(stribeck=True, powers=2),
    Form(stribeck=True, free=True, powers=2),
    Form(stribeck=True, free=True, powers=3),
)
SIDES = ("none", "asymmetry", "offset")
FOLDS = 5
TEST = 4
"""Every fourth run or cycle is kept for the test."""
VAGUE = 0.6
"""Standard deviation of log V_S or log μ above which the number is not told by the data."""


@dataclass(frozen=True)
class Choice:
    """The chosen form, every form that was tried, and the quality of the chosen one on data held out."""

    form: Form
    alternatives: tuple[Alternative, ...]
    held_out: float


def choose_form(points: Points, only: Form | None = None) -> Choice:
    """Return the simplest form that predicts unseen runs as well as the best does, or `only` one with its quality.

    Forms are compared by cross-validation within three quarters of the runs (or cycles); their figures come from the
    last quarter.
    """
    test = np.isin(points.group, points.groups[TEST // 2 :: TEST])
    training, unseen = points.take(~test), points.take(test)
    forms = _forms(training) if only is None else [only]
    fits = {form: fit_curve(training, form) for form in forms}
    best = _simplest(training, fits)
    if only is None and points.is_two_sided and best.dry:
        sides = {form: fit_curve(training, form) for form in (replace(best, side=side) for side in SIDES)}
        fits |= {form: fit for form, fit in sides.items() if form not in fits}
        best = _simplest(training, sides)
    tried = tuple(_alternative(form, fit, training, unseen) for form, fit in fits.items())
    return Choice(best, tried, nrmse_percent(unseen.torque, fits[best].predict(unseen)))


def _forms(points: Points) -> list[Form]:
    """Return the forms that some points can tell; directions differ by an offset, which costs no search."""
    side = "offset" if points.is_two_sided else "none"
    forms = [replace(form, side=side if form.dry else "none") for form in FORMS]
    return [form for form in forms if form.size + points.extra.shape[1] < _room(points)]


def title(form: Form) -> str:
    """Return the name of a form with what differs between the directions."""
    return form.name if form.side == "none" else f"{form.name}, {form.side}"


def told_fit(points: Points, form: Form) -> tuple[Fit, Deviation, tuple[str, ...]]:
    """Return the fit of a form to all points, without the numbers that the data do not tell, and a note for each."""
    notes: list[str] = []
    while True:
        fit = fit_curve(points, form)
        deviation = deviation_of(fit, points)
        vague = _vague(fit, deviation)
        if vague is None:
            return fit, deviation, tuple(notes)
        form, note = _without(form, vague)
        notes.append(note)


def _room(points: Points) -> int:
    """Return how many numbers some points can tell."""
    return len(points.groups) if points.kind == "runs" else len(points.speed) // 10


def _simplest(points: Points, fits: dict[Form, Fit]) -> Form:
    """Return the first form whose held-out error is within one standard error of the best one's."""
    errors = {form: _unseen_errors(points, fit) for form, fit in fits.items()}
    best = min(errors, key=lambda form: float(errors[form].mean()))
    for form in sorted(errors, key=lambda form: form.size):
        more = errors[form] - errors[best]
        if more.mean() <= more.std(ddof=1) / np.sqrt(len(more)) and form.size <= best.size:
            return form
    return best


def _unseen_errors(points: Points, fit: Fit) -> Array:
    """Return the mean squared error of every run or cycle, predicted from the other folds."""
    groups = points.groups
    folds = np.arange(len(groups)) % min(FOLDS, len(groups))
    squares = np.empty(len(points.speed))
    for fold in np.unique(folds):
        own = np.isin(points.group, groups[folds == fold])
        rest = fit_curve(points.take(~own), fit.form, start=fit)
        squares[own] = (points.weight * (points.torque - rest.predict(points)))[own] ** 2
    return np.array([squares[points.group == g].mean() for g in groups])


def _alternative(form: Form, fit: Fit, training: Points, unseen: Points) -> Alternative:
    fitted = nrmse_percent(training.torque, fit.predict(training))
    held_out = nrmse_percent(unseen.torque, fit.predict(unseen))
    return Alternative(title(form), fitted, held_out, "1 parameter" if form.size == 1 else f"{form.size} parameters")


def _vague(fit: Fit, deviation: Deviation) -> str | None:
    """Return the first nonlinear number that the data do not tell, None if all are told."""
    spread = np.sqrt(np.diag(deviation.covariance))
    told = dict(zip(fit.form.nonlinear, spread, strict=False))
    extra = fit.linear[list(fit.form.linear).index("F_S-F_C")] if fit.form.stribeck else 1.0
    if told.get("log mu", 0.0) > VAGUE:
        return "log mu"
    if told.get("log V_S", 0.0) > VAGUE or extra <= 0.0:
        return "log V_S"
    return None


def _without(form: Form, vague: str) -> tuple[Form, str]:
    if vague == "log mu":
        return replace(form, free=False), "the shape mu is not told by these speeds: it was kept at 1."
    changed = replace(form, stribeck=False, free=False)
    return changed, "a Stribeck effect is not told by these speeds: it was left out."
