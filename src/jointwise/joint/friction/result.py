"""Result of the friction over speed: parameters, ranges, curve and notes."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointwise.estimation.linear_fit import JackknifeFit
from jointwise.joint.friction.data import (
    LOAD_QUANTILES,
    VISIBLE_WARMING,
    FrictionPoints,
    reference_temperature,
    unaccelerated,
)
from jointwise.joint.friction.fit import FrictionFit, cell_means
from jointwise.joint.friction.law import FrictionSettings, StoredCovariance, VelocityLaw
from jointwise.joint.part import LINE_POINTS, Curve, Part, Value, make_curve, positive_value, value_of
from jointwise.joint.quality import Ranges, identified_part, nrmse_percent
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

UNITS = {"F_C": "Nm", "F_S-F_C": "Nm", "F_V1": "Nm s/rad", "F_V2": "Nm s²/rad²", "F_V3": "Nm s³/rad³", "offset": "Nm"}
ORDER = ("F_C", "F_S", "F_S-F_C", "V_S", "mu", "F_V1", "F_V2", "F_V3", "asymmetry", "offset", "F_C+", "F_C-")
"""Order of the values."""


def friction_part(
    record: JointRecord,
    points: FrictionPoints,
    fit: FrictionFit,
    uncertainty: JackknifeFit,
    band_check: dict[str, float],
    **selection: Any,
) -> Part:
    """Return the phenomenon "friction" of a fit to all points; `selection`: entries of the part about its selection."""
    law = fit.law(points)
    return identified_part(
        record,
        "friction",
        model=fit.form.title,
        values=friction_values(fit, uncertainty),
        fitted=nrmse_percent(points.torque, fit.predict(points)),
        settings=_settings(record, points, fit, uncertainty, band_check),
        ranges=_ranges(record, points, law),
        curves=(_curve(points, fit, uncertainty, law),),
        **selection,
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
    return [
        value_of(name, "Nm", value, uncertainty.error(_gradient(names, gradient)), uncertainty.factor)
        for name, (value, gradient) in derived.items()
    ]


def _gradient(names: list[str], entries: dict[str, float]) -> Array:
    """Return a gradient (names,) with some entries."""
    return np.array([entries.get(name, 0.0) for name in names])


def _settings(
    record: JointRecord,
    points: FrictionPoints,
    fit: FrictionFit,
    uncertainty: JackknifeFit,
    band_check: dict[str, float],
) -> FrictionSettings:
    names = tuple(name.removeprefix("log ") for name in (*fit.form.nonlinear, *fit.form.linear))
    return FrictionSettings(
        law=fit.law(points),
        covariance=StoredCovariance(names, tuple(map(tuple, uncertainty.covariance.tolist()))),
        temperature=reference_temperature(record),
        points=points.kind,
        beside={name: float(x) for name, x in zip(points.names, fit.extra, strict=True)},
        band_check=band_check,
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


def friction_notes(record: JointRecord, points: FrictionPoints) -> tuple[str, ...]:
    """Return notes on directions and temperature of the points."""
    return (_side_note(points), *_temperature_notes(record))


def _side_note(points: FrictionPoints) -> str:
    if points.is_two_sided:
        return "an offset of the torque and dry friction that differs by direction look alike in steady sliding."
    return "the joint moved in one direction only: dry friction and an offset of the torque cannot be distinguished."


def _temperature_notes(record: JointRecord) -> tuple[str, ...]:
    if record.temperature is None or np.ptp(record.temperature) < VISIBLE_WARMING:
        return ()
    low, high = record.temperature.min(), record.temperature.max()
    return (f"the joint warmed from {low:.1f} to {high:.1f} °C: the curve holds at the mean temperature.",)
