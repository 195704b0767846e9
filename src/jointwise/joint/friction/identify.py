"""Velocity friction of a joint from its log."""

from __future__ import annotations

import numpy as np

from jointwise.joint.friction.checks import refuse_unless_useful
from jointwise.joint.friction.choose import FOLDS, choose_form, title, told_fit
from jointwise.joint.friction.deviation import Deviation, deviation_of, run_points
from jointwise.joint.friction.fit import Fit, Form, fit_curve
from jointwise.joint.friction.law import VelocityLaw, settings_of
from jointwise.joint.friction.points import Points, friction_points
from jointwise.joint.part import Curve, Part, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse

LEAST_QUALITY = 30.0
"""Held-out NRMSE % below which the torque has nothing to do with the speed."""
LINE = 121
STEADY = 0.05
"""Part of the largest acceleration up to which a joint is taken to run at constant speed."""
UNITS = {"F_C": "Nm", "F_S-F_C": "Nm", "F_V1": "Nm s/rad", "F_V2": "Nm s²/rad²", "F_V3": "Nm s³/rad³", "offset": "Nm"}


def identify_friction(record: JointRecord, *, form: Form | None = None) -> Part:
    """Return the friction of a joint over its speed, with the band in which the mean of another run lies.

    ``f = (1 + a sgn ω) sgn(ω) (F_C + (F_S - F_C) exp(-(|ω|/V_S)^μ)) + F_V1 ω + F_V2 |ω| ω + F_V3 ω³``; the simplest
    form of it that predicts unseen runs as well as the best does, or the given `form`. Means of constant-speed runs are
    used where the log has them, else all sliding samples.
    """
    refuse_unless_useful(record, "friction")
    points = friction_points(record)
    choice = choose_form(points, form)
    if choice.held_out < LEAST_QUALITY:
        what = f"the torque does not follow the speed (fit {choice.held_out:.0f} % on unseen data)"
        raise refuse(record, "friction", what)
    fit, deviation, dropped = told_fit(points, choice.form)
    law = _law(fit, points)
    notes = (*points.notes, *dropped, *_side_notes(points), *_temperature_notes(record))
    return Part(
        phenomenon="friction",
        model=title(fit.form),
        values=_values(fit, deviation),
        fitted=nrmse_percent(points.torque, fit.predict(points)),
        held_out=choice.held_out,
        settings=_settings(record, points, fit, law, deviation),
        ranges=_ranges(record, points, law),
        alternatives=choice.alternatives,
        curves=(_curve(points, fit, deviation, law),),
        notes=notes,
        logs=record.logs,
    )


def _law(fit: Fit, points: Points) -> VelocityLaw:
    """Return the fitted curve as a law within the speeds of its points."""
    numbers = dict(zip(fit.form.linear, fit.linear, strict=True))
    bent = dict(zip(fit.form.nonlinear, fit.nonlinear, strict=True))
    w = np.abs(points.speed)
    return VelocityLaw(
        coulomb=numbers.get("F_C", 0.0),
        static=numbers.get("F_C", 0.0) + numbers.get("F_S-F_C", 0.0),
        stribeck_speed=float(np.exp(bent.get("log V_S", 0.0))),
        shape=float(np.exp(bent.get("log mu", 0.0))),
        viscous=numbers.get("F_V1", 0.0),
        square=numbers.get("F_V2", 0.0),
        cube=numbers.get("F_V3", 0.0),
        asymmetry=bent.get("asymmetry", 0.0),
        offset=numbers.get("offset", 0.0),
        slowest=float(w.min()),
        fastest=float(w.max()),
    )


# -- values --


def _values(fit: Fit, deviation: Deviation) -> tuple[Value, ...]:
    names = [*fit.form.nonlinear, *fit.form.linear]
    spread = np.sqrt(np.diag(deviation.covariance))
    found: list[Value] = []
    for k, name in enumerate(names):
        found += _named(name, float(fit.values[k]), float(spread[k]), deviation.factor)
    found += _derived(fit, deviation, names)
    order = ["F_C", "F_S", "F_S-F_C", "V_S", "mu", "F_V1", "F_V2", "F_V3", "asymmetry", "offset", "F_C+", "F_C-"]
    return tuple(sorted(found, key=lambda value: order.index(value.name)))


def _named(name: str, value: float, deviation: float, factor: float) -> list[Value]:
    if name in ("log V_S", "log mu"):
        short, unit = ("V_S", "rad/s") if name == "log V_S" else ("mu", "1")
        size, half = np.exp(value), factor * deviation
        return [Value(short, unit, size, size * deviation, size * np.exp(-half), size * np.exp(half))]
    return [value_of(name, UNITS.get(name, "1"), value, deviation, factor)]


def _derived(fit: Fit, deviation: Deviation, names: list[str]) -> list[Value]:
    """Return F_S and the Coulomb friction of either direction."""
    if not fit.form.dry:
        return []
    at = {name: float(fit.values[k]) for k, name in enumerate(names)}
    gradients: dict[str, tuple[float, dict[str, float]]] = {}
    if fit.form.stribeck:
        gradients["F_S"] = at["F_C"] + at["F_S-F_C"], {"F_C": 1.0, "F_S-F_C": 1.0}
    for name, sign in (("F_C+", 1.0), ("F_C-", -1.0)):
        if fit.form.side == "asymmetry":
            slope = {"F_C": 1.0 + sign * at["asymmetry"], "asymmetry": sign * at["F_C"]}
            gradients[name] = at["F_C"] * (1.0 + sign * at["asymmetry"]), slope
        elif fit.form.side == "offset":
            gradients[name] = at["F_C"] + sign * at["offset"], {"F_C": 1.0, "offset": sign}
    return [
        value_of(name, "Nm", value, _spread(deviation, names, slope), deviation.factor)
        for name, (value, slope) in gradients.items()
    ]


def _spread(deviation: Deviation, names: list[str], slope: dict[str, float]) -> float:
    g = np.array([slope.get(name, 0.0) for name in names])
    return float(np.sqrt(g @ deviation.covariance @ g))


# -- what is told with them --


def _settings(
    record: JointRecord, points: Points, fit: Fit, law: VelocityLaw, deviation: Deviation
) -> dict[str, object]:
    names = [name.removeprefix("log ") for name in (*fit.form.nonlinear, *fit.form.linear)]
    return {
        "law": settings_of(law),
        "covariance": {"names": names, "values": deviation.covariance.tolist()},
        "points": points.kind,
        "temperature": None if record.temperature is None else float(record.temperature.mean()),
        "beside": {name: float(x) for name, x in zip(points.names, fit.extra, strict=True)},
        "band_check": band_check(points, fit.form),
    }


def band_check(points: Points, form: Form) -> dict[str, float]:
    """Return which part of the runs (or cycle means) lies in a 95 % band made without them: `inside` of `points`.

    `slow` is that part among the slowest quarter, where a curve is least sure.
    """
    groups = points.groups
    folds = np.arange(len(groups)) % (FOLDS if points.kind == "runs" else len(groups))
    whole, found = fit_curve(points, form), []
    for fold in np.unique(folds):
        own = np.isin(points.group, groups[folds == fold])
        rest, unseen = points.take(~own), points.take(own)
        fit = fit_curve(rest, form, start=whole)
        speed, error = run_points(unseen, unseen.torque - fit.predict(unseen))
        found.append(np.column_stack([np.abs(speed), np.abs(error) <= deviation_of(fit, rest).band(fit, speed)]))
    speed, inside = np.concatenate(found).T
    slow = inside[speed <= np.quantile(speed, 0.25)]
    return {"inside": float(inside.mean()), "slow": float(slow.mean()), "points": len(inside)}


def _ranges(record: JointRecord, points: Points, law: VelocityLaw) -> dict[str, tuple[float, float]]:
    """Return the ranges that were seen; the load between runs at constant speed is inertia and is not counted."""
    pushed = np.abs(record.acceleration)
    steady = pushed <= (STEADY * pushed.max() if points.kind == "runs" else np.inf)
    low, high = np.quantile(record.load[steady], (0.05, 0.95) if points.kind == "runs" else (0.0, 1.0))
    ranges = {"speed": (law.slowest, law.fastest), "load": (float(low), float(high))}
    if record.temperature is not None:
        ranges["temperature"] = (float(record.temperature.min()), float(record.temperature.max()))
    return ranges


def _curve(points: Points, fit: Fit, deviation: Deviation, law: VelocityLaw) -> Curve:
    """Return runs (or cycle means) over the speed, effects beside the friction taken off, with line and band."""
    x, y = run_points(points, points.torque - points.extra @ fit.extra)
    residual = y - fit.curve(x)
    sizes = np.geomspace(law.slowest, law.fastest, LINE // 2)
    sides = ([-sizes[::-1]] if (x < 0.0).any() else []) + ([sizes] if (x > 0.0).any() else [])
    line = np.concatenate(sides)
    half = deviation.band(fit, line)
    return Curve(
        title="Friction over speed; band: the mean of another run (95 %)",
        x_label="speed [rad/s]",
        y_label="friction [Nm]",
        x=plain(x),
        y=plain(y),
        line_x=plain(line),
        line_y=plain(fit.curve(line)),
        low=plain(fit.curve(line) - half),
        high=plain(fit.curve(line) + half),
        residual=plain(residual),
    )


def _side_notes(points: Points) -> tuple[str, ...]:
    if points.is_two_sided:
        return ("an offset of the torque and a dry friction that differs by direction look alike in steady sliding.",)
    return ("the joint moved in one direction only: its dry friction cannot be told from an offset of the torque.",)


def _temperature_notes(record: JointRecord) -> tuple[str, ...]:
    if record.temperature is None or np.ptp(record.temperature) < 3.0:
        return ()
    low, high = record.temperature.min(), record.temperature.max()
    return (f"the joint warmed from {low:.1f} to {high:.1f} °C: the curve is that of its mean temperature.",)
