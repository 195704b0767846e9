"""Identification of friction over speed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointwise.arguments import checked
from jointwise.estimation.cross_validation import (
    FOLDS,
    held_out_predictions,
    simplest_candidate,
    unit_errors,
)
from jointwise.estimation.linear_fit import JackknifeFit
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.curve import LINE_POINTS, Curve, make_curve
from jointwise.joint.friction.data import (
    BLOCK_TIME,
    LOAD_QUANTILES,
    VISIBLE_WARMING,
    Flags,
    FrictionPoints,
    friction_points,
    reference_temperature,
    unaccelerated,
)
from jointwise.joint.friction.fit import FrictionFit, cell_means, fit_curve, uncertainty_of
from jointwise.joint.friction.law import FrictionForm, FrictionSettings, StoredCovariance, VelocityLaw
from jointwise.joint.part import (
    MIN_QUALITY,
    TEST_EVERY,
    Part,
    Ranges,
    TriedModel,
    Value,
    identified_part,
    nrmse_percent,
    positive_value,
    tried_model,
    value_of,
)
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

FORMS = (
    FrictionForm(dry=False),
    FrictionForm(),
    FrictionForm(powers=2),
    FrictionForm(powers=3),
    FrictionForm(stribeck=True),
    FrictionForm(stribeck=True, powers=2),
    FrictionForm(stribeck=True, free=True, powers=2),
    FrictionForm(stribeck=True, free=True, powers=3),
)
"""Candidate forms, from viscous friction alone to the seven parameters of the full law."""
SIDES = ("none", "asymmetry", "offset")
POINTS_PER_PARAMETER = 12
"""Blocks that a parameter needs where there are no runs: blocks of one cycle are correlated."""
SLOW_SHARE = 0.25
"""Fraction of the slowest points whose band is checked by itself: a curve is least certain there."""
MAX_LOG_ERROR = 0.6
"""Standard error of log V_S or log μ above which the parameter is not identifiable: a factor of 3 within 95 %."""


@checked
def identify_friction(record: JointRecord, *, form: FrictionForm | None = None) -> Part:
    """Identify friction over speed, as `jointwise joint friction` does.

    ``f = (1 + a sgn ω) sgn(ω) (F_C + (F_S - F_C) exp(-(|ω|/V_S)^μ)) + F_V1 ω + F_V2 |ω| ω + F_V3 ω³``. Means of runs at
    constant speed are used where the log has them, else all sliding samples.

    Args:
        record: Signals of the joint, see `joint_record`.
        form: Terms of the law; by default the simplest ones within one standard error of the best on held-out runs.

    Returns:
        The phenomenon "friction", with the 95 % band for the mean of a new run.

    Raises:
        EstimationError: If the record does not determine friction over speed.
    """
    check_record(record, "friction")
    points = friction_points(record)
    _check_enough(record, points, form)
    choice = choose_form(points, form)
    if choice.held_out < MIN_QUALITY:
        reason = f"the torque does not follow the speed (fit {choice.held_out:.0f} % on held-out data)"
        if record.without_masses:
            reason += "; gravity was not removed, as no masses are described"
        raise refuse(record, "friction", reason)
    fit, uncertainty, dropped = identifiable_fit(points, choice.form)
    return _part(record, points, fit, uncertainty, choice, dropped)


def _check_enough(record: JointRecord, points: FrictionPoints, form: FrictionForm | None) -> None:
    """Raise if the training part of the points determines no form, or not the requested one."""
    training = points.take(~_test_points(points))
    most, others = _most_parameters(training), training.extra.shape[1]
    least = min(candidate.size for candidate in FORMS) if form is None else form.size
    if least + others < most:
        return
    moving = float(np.sum(points.weight > 0.0)) * BLOCK_TIME
    data = f"{len(points.groups)} runs" if points.kind == "runs" else f"{moving:.2g} s of sliding"
    beside = f" besides {', '.join(points.names)}" if points.names else ""
    raise refuse(record, "friction", f"{data} in the log do not determine a curve{beside}: record longer")


@dataclass(frozen=True)
class FormChoice:
    """A selected form of the friction curve.

    Attributes:
        form: The form.
        alternatives: All candidates.
        held_out: NRMSE of the form on held-out data, %.
    """

    form: FrictionForm
    alternatives: tuple[TriedModel, ...]
    held_out: float


def choose_form(points: FrictionPoints, only: FrictionForm | None = None) -> FormChoice:
    """Return the simplest form that predicts held-out runs as well as the best one, or `only` one with its quality.

    Forms are compared by cross-validation within three quarters of the runs (or cycles); the reported figures come
    from the last quarter.
    """
    test = _test_points(points)
    training, held_out = points.take(~test), points.take(test)
    forms = _forms(training) if only is None else [only]
    fits = {form: fit_curve(training, form) for form in forms}
    best = _simplest(training, fits)
    if only is None and points.is_two_sided and best.dry:
        sided = {form: fit_curve(training, form) for form in (replace(best, side=side) for side in SIDES)}
        fits = {**sided, **fits}
        best = _simplest(training, sided)
    order = sorted(fits, key=lambda form: forms.index(form) if form in forms else len(forms))
    tried = tuple(_alternative(form, fits[form], training, held_out) for form in order)
    return FormChoice(best, tried, nrmse_percent(held_out.torque, fits[best].predict(held_out)))


def _test_points(points: FrictionPoints) -> Flags:
    """Return flags of the points of every `TEST_EVERY`-th run or cycle, which are held out."""
    return np.isin(points.group, points.groups[TEST_EVERY // 2 :: TEST_EVERY])


def _most_parameters(points: FrictionPoints) -> int:
    """Return a bound on the number of parameters that points determine: of runs their number, else of their blocks."""
    return len(points.groups) if points.kind == "runs" else len(points.speed) // POINTS_PER_PARAMETER


def _forms(points: FrictionPoints) -> list[FrictionForm]:
    """Return the forms that points can determine; directions differ by an offset, which needs no search."""
    side = "offset" if points.is_two_sided else "none"
    forms = [replace(form, side=side if form.dry else "none") for form in FORMS]
    return [form for form in forms if form.size + points.extra.shape[1] < _most_parameters(points)]


def _simplest(points: FrictionPoints, fits: dict[FrictionForm, FrictionFit]) -> FrictionForm:
    """Return the form chosen by the one-standard-error rule."""
    by_size = sorted(fits, key=lambda form: form.size)
    return simplest_candidate({form: _held_out_errors(points, fits[form]) for form in by_size})


def _held_out_errors(points: FrictionPoints, fit: FrictionFit) -> Array:
    """Return the mean squared error of every run or cycle, predicted from the other folds."""

    def predict(training: Flags) -> Array:
        return fit_curve(points.take(training), fit.form, start=fit).predict(points)

    predicted = held_out_predictions(points.group, predict)
    return unit_errors(points.weight * (points.torque - predicted), points.group)


def _alternative(
    form: FrictionForm, fit: FrictionFit, training: FrictionPoints, held_out: FrictionPoints
) -> TriedModel:
    def quality(points: FrictionPoints) -> float:
        return nrmse_percent(points.torque, fit.predict(points))

    note = "1 parameter" if form.size == 1 else f"{form.size} parameters"
    return tried_model(form.title, quality, training, held_out, note)


def identifiable_fit(points: FrictionPoints, form: FrictionForm) -> tuple[FrictionFit, JackknifeFit, tuple[str, ...]]:
    """Return the fit of a form to all points without parameters that are not identifiable, and a note for each."""
    notes: list[str] = []
    while True:
        fit = fit_curve(points, form)
        uncertainty = uncertainty_of(fit, points)
        vague = _unidentifiable(fit, uncertainty)
        if vague == "log mu":
            form = replace(form, free=False)
            notes.append("the Stribeck exponent mu is not identifiable from these speeds: it was kept at 1.")
        elif vague == "log V_S":
            form = replace(form, stribeck=False, free=False)
            notes.append("a Stribeck effect is not identifiable from these speeds: it was left out.")
        else:
            return fit, uncertainty, tuple(notes)


def _unidentifiable(fit: FrictionFit, uncertainty: JackknifeFit) -> str | None:
    """Return the first nonlinear parameter that is not identifiable, None if all are."""
    if not fit.form.stribeck:
        return None
    errors = dict(zip(fit.form.nonlinear, uncertainty.deviations, strict=False))
    if errors.get("log mu", 0.0) > MAX_LOG_ERROR:
        return "log mu"
    rise = fit.linear[fit.form.linear.index("F_S-F_C")]
    return "log V_S" if errors["log V_S"] > MAX_LOG_ERROR or rise <= 0.0 else None


def band_check(points: FrictionPoints, form: FrictionForm) -> dict[str, float]:
    """Return the fraction `inside` of `points` runs (or cycle means) in a 95 % band fitted without them.

    `slow` is that fraction for the slowest points.
    """
    groups = points.groups
    folds = np.arange(len(groups)) % (FOLDS if points.kind == "runs" else len(groups))
    full, found = fit_curve(points, form), []
    for fold in np.unique(folds):
        test = np.isin(points.group, groups[folds == fold])
        training, held_out = points.take(~test), points.take(test)
        fit = fit_curve(training, form, start=full)
        speed, error = cell_means(held_out, held_out.torque - fit.predict(held_out))
        inside = np.abs(error) <= uncertainty_of(fit, training).band(fit.sensitivity(speed))
        found.append(np.column_stack([np.abs(speed), inside]))
    speed, inside = np.concatenate(found).T
    slow = inside[speed <= np.quantile(speed, SLOW_SHARE)]
    return {"inside": float(inside.mean()), "slow": float(slow.mean()), "points": len(inside)}


# -- result --

UNITS = {"F_C": "Nm", "F_S-F_C": "Nm", "F_V1": "Nm s/rad", "F_V2": "Nm s²/rad²", "F_V3": "Nm s³/rad³", "offset": "Nm"}
ORDER = ("F_C", "F_S", "F_S-F_C", "V_S", "mu", "F_V1", "F_V2", "F_V3", "asymmetry", "offset", "F_C+", "F_C-")
"""Order of the values."""


def _part(
    record: JointRecord,
    points: FrictionPoints,
    fit: FrictionFit,
    uncertainty: JackknifeFit,
    choice: FormChoice,
    dropped: tuple[str, ...],
) -> Part:
    """Return the phenomenon "friction" of a fit to all points; `dropped`: notes on parameters that were left out."""
    law = fit.law(points)
    return identified_part(
        record,
        "friction",
        model=fit.form.title,
        values=friction_values(fit, uncertainty),
        fitted=nrmse_percent(points.torque, fit.predict(points)),
        held_out=choice.held_out,
        settings=_settings(record, points, fit, uncertainty),
        ranges=_ranges(record, points, law),
        alternatives=choice.alternatives,
        curves=(_curve(points, fit, uncertainty, law),),
        notes=(*points.notes, *dropped, _side_note(points), *_temperature_notes(record)),
    )


def friction_values(fit: FrictionFit, uncertainty: JackknifeFit) -> tuple[Value, ...]:
    """Return the parameters with 95 % confidence intervals, and F_S and the directional F_C derived from them."""
    names = [*fit.form.nonlinear, *fit.form.linear]
    errors = uncertainty.deviations
    found = [
        _value(n, float(x), float(s), uncertainty.factor) for n, x, s in zip(names, fit.values, errors, strict=False)
    ]
    found += _derived(fit, uncertainty, names) if fit.form.dry else []
    return tuple(sorted(found, key=lambda value: ORDER.index(value.name)))


def _value(name: str, value: float, deviation: float, factor: float) -> Value:
    """Return a parameter; the interval of a logarithm becomes an asymmetric one of its exponential."""
    if name not in ("log V_S", "log mu"):
        return value_of(name, UNITS.get(name, "1"), value, deviation, factor)
    short, unit = ("V_S", "rad/s") if name == "log V_S" else ("mu", "1")
    return positive_value(short, unit, float(np.exp(value)), deviation, factor)


def _derived(fit: FrictionFit, uncertainty: JackknifeFit, names: list[str]) -> list[Value]:
    """Return F_S and the Coulomb friction of each direction, with their gradients by the parameters."""
    x = dict(zip(names, (float(value) for value in fit.values), strict=False))
    derived: dict[str, tuple[float, dict[str, float]]] = {}
    if fit.form.stribeck:
        derived["F_S"] = x["F_C"] + x["F_S-F_C"], {"F_C": 1.0, "F_S-F_C": 1.0}
    for name, sign in (("F_C+", 1.0), ("F_C-", -1.0)):
        if fit.form.side == "asymmetry":
            gradient = {"F_C": 1.0 + sign * x["asymmetry"], "asymmetry": sign * x["F_C"]}
            derived[name] = x["F_C"] * gradient["F_C"], gradient
        elif fit.form.side == "offset":
            derived[name] = x["F_C"] + sign * x["offset"], {"F_C": 1.0, "offset": sign}
    errors = {
        derived_name: uncertainty.error(np.array([gradient.get(name, 0.0) for name in names]))
        for derived_name, (_, gradient) in derived.items()
    }
    return [value_of(name, "Nm", derived[name][0], error, uncertainty.factor) for name, error in errors.items()]


def _settings(
    record: JointRecord, points: FrictionPoints, fit: FrictionFit, uncertainty: JackknifeFit
) -> FrictionSettings:
    names = tuple(name.removeprefix("log ") for name in (*fit.form.nonlinear, *fit.form.linear))
    return FrictionSettings(
        law=fit.law(points),
        covariance=StoredCovariance(names, tuple(map(tuple, uncertainty.covariance.tolist()))),
        temperature=reference_temperature(record),
        points=points.kind,
        beside={name: float(x) for name, x in zip(points.names, fit.extra, strict=True)},
        band_check=band_check(points, fit.form),
    )


def _ranges(record: JointRecord, points: FrictionPoints, law: VelocityLaw) -> Ranges:
    """Return the measured ranges; the load between runs at constant speed is inertia and does not count."""
    runs = points.kind == "runs"
    load = record.load[unaccelerated(record)] if runs else record.load
    low, high = np.quantile(load, LOAD_QUANTILES if runs else (0.0, 1.0))
    ranges: Ranges = {"speed": (law.slowest, law.fastest), "load": (low, high)}
    return ranges if record.temperature is None else {**ranges, "temperature": record.temperature}


def _curve(points: FrictionPoints, fit: FrictionFit, uncertainty: JackknifeFit, law: VelocityLaw) -> Curve:
    """Return runs (or cycle means) over speed without the other effects, with the curve and its band."""
    x, y = cell_means(points, points.torque - points.extra @ fit.extra)
    sizes = np.geomspace(law.slowest, law.fastest, LINE_POINTS)
    sides = ([-sizes[::-1]] if (x < 0.0).any() else []) + ([sizes] if (x > 0.0).any() else [])
    line = np.concatenate(sides)
    return make_curve(
        ("Friction over speed; band: the mean of another run (95 %)", "speed [rad/s]", "friction [Nm]"),
        (x, y),
        (line, fit.curve(line)),
        uncertainty.band(fit.sensitivity(line)),
        residual=y - fit.curve(x),
    )


def _side_note(points: FrictionPoints) -> str:
    if points.is_two_sided:
        return "in steady sliding, a torque offset cannot be distinguished from dry friction that differs by direction."
    return "the joint moved in one direction only: dry friction and an offset of the torque cannot be distinguished."


def _temperature_notes(record: JointRecord) -> tuple[str, ...]:
    if record.temperature is None or np.ptp(record.temperature) < VISIBLE_WARMING:
        return ()
    low, high = record.temperature.min(), record.temperature.max()
    return (f"the joint warmed from {low:.1f} to {high:.1f} °C: the curve holds at the mean temperature.",)
