"""Identification of friction over temperature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jointwise.arguments import checked
from jointwise.estimation.cross_validation import held_out_predictions, simplest_candidate, unit_errors
from jointwise.estimation.linear_fit import JackknifeFit
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.combined_friction import with_surfaces
from jointwise.joint.curve import LINE_POINTS, SURFACE_POINTS, Curve, Surface, make_curve, plain
from jointwise.joint.friction.data import Flags
from jointwise.joint.friction.law import friction_settings, velocity_law_of
from jointwise.joint.part import (
    MIN_QUALITY,
    Part,
    TriedModel,
    Value,
    fit_value,
    identified_part,
    nrmse_percent,
    tried_model,
    value_of,
)
from jointwise.joint.record import JointRecord
from jointwise.joint.temperature.fit import COLDEST, TemperatureModel, TemperaturePairs, inverse_cube, temperature_pairs
from jointwise.joint.temperature.law import PARAMETERS, TemperatureLaw, TemperatureSettings
from jointwise.spatial import Array


@checked
def identify_temperature(record: JointRecord, *, steady: Part | None = None, reference: float | None = None) -> Part:
    """Identify friction over temperature, as `jointwise joint temperature` does.

    ``f_T = sgn(ω) √|ω| (F_T1 + F_T2 T + F_T3 T⁻³)`` or an affine law times an exponential one, selected by the
    one-standard-error rule on held-out blocks of time. Every speed has its own friction at the reference temperature,
    so that errors of a velocity law are not taken for an effect of temperature.

    Args:
        record: Signals of the joint during a warm-up, see `joint_record`.
        steady: Part from `identify_friction`: its temperature is the default reference, and a note states how much
            friction at the reference differs from it.
        reference: Temperature T0 (°C) at which f_T is zero; by default that of `steady`, else the mean of the log.

    Returns:
        The phenomenon "temperature".

    Raises:
        EstimationError: If the record does not determine friction over temperature.
    """
    check_record(record, "temperature")
    pairs = temperature_pairs(record)
    laws = [law for law in PARAMETERS if law != "three-parameter" or pairs.temperature.min() >= COLDEST]
    T0, test = _reference(pairs, steady, reference), pairs.held_out
    models = {law: TemperatureModel(law, pairs, T0) for law in laws}
    tried = {law: _alternative(model, test) for law, model in models.items()}
    errors = {law: _held_out_errors(model, ~test) for law, model in models.items() if law != "none"}
    chosen = simplest_candidate(errors)
    held_out = tried[chosen].held_out
    if held_out is None or held_out < MIN_QUALITY:
        reason = f"friction does not follow the temperature (fit {held_out:.0f} % on held-out data)"
        raise refuse(record, "temperature", reason)
    return _part(record, models[chosen], tuple(tried.values()), steady)


def _reference(pairs: TemperaturePairs, steady: Part | None, requested: float | None) -> float:
    """Return T0, °C: as requested, else that of the velocity law, else the mean; within the measured range."""
    T = pairs.temperature
    known = None if steady is None else friction_settings(steady).temperature
    chosen = next((x for x in (requested, known) if x is not None), float(T.mean()))
    return float(np.clip(chosen, T.min(), T.max()))


def _alternative(model: TemperatureModel, test: Flags) -> TriedModel:
    """Return the quality of a law fitted to the training pairs, on training and test pairs."""
    friction = model.friction(model.solve(~test))
    note = f"{PARAMETERS[model.law]} parameters"
    return tried_model(model.law, lambda use: temperature_quality(model.pairs, friction, use), ~test, test, note)


def _held_out_errors(model: TemperatureModel, use: Flags) -> Array:
    """Return the mean squared error of every block in use, predicted from the other folds."""
    block = model.pairs.block
    predicted = held_out_predictions(block, lambda training: model.friction(model.solve(training)), use)
    return unit_errors(model.pairs.friction - predicted, block)


# -- result --

ROOT_UNIT = "Nm √(s/rad)"
NAMES = {"F_T2": f"{ROOT_UNIT}/K", "F_T3": f"{ROOT_UNIT} K³"}
EXPONENTIAL_NAMES = {"A_0": "Nm", "A_1": "Nm/K", "b_0": "s/rad", "b_1": "s/rad/K"}
"""Parameters of the laws and their units."""


def _part(record: JointRecord, model: TemperatureModel, tried: tuple[TriedModel, ...], steady: Part | None) -> Part:
    """Return the phenomenon "temperature" of a law, with friction over speed and temperature if `steady` is known."""
    fit, pairs = model.fit(), model.pairs
    law = _law(model, fit)
    slowest, everything = float(pairs.speed.min()), np.ones(len(pairs.friction), dtype=bool)
    part = identified_part(
        record,
        "temperature",
        model=model.law,
        values=_values(model, fit),
        fitted=temperature_quality(pairs, model.friction(fit.values), everything),
        held_out=next(item.held_out for item in tried if item.model == model.law),
        settings=TemperatureSettings(law),
        ranges={"temperature": (law.coldest, law.hottest), "speed": (slowest, law.fastest)},
        alternatives=tried,
        curves=(*_curves(model, fit), _history(record)),
        surfaces=(_surface(law, slowest),),
        notes=(*_notes(model, tried), *_steady_notes(model, fit, steady)),
    )
    return with_surfaces(part, steady)


def temperature_quality(pairs: TemperaturePairs, friction: Array, use: Flags) -> float:
    """Return the NRMSE % of the effect of temperature: friction and model without the mean of every speed."""
    levels, y = pairs.level[use], pairs.friction[use]
    mean = np.bincount(levels, y) / np.maximum(np.bincount(levels), 1)
    return nrmse_percent(y - mean[levels], friction[use] - mean[levels])


def _law(model: TemperatureModel, fit: JackknifeFit) -> TemperatureLaw:
    T, fastest = model.pairs.temperature, float(model.pairs.speed.max())
    numbers = tuple(float(x) for x in fit.values[model.pairs.levels :])
    return TemperatureLaw(model.law, numbers, model.reference, float(T.min()), float(T.max()), fastest)


def _values(model: TemperatureModel, fit: JackknifeFit) -> tuple[Value, ...]:
    """Return the parameters of the law; F_T1 is what makes f_T zero at T0."""
    k, exponential = model.pairs.levels, model.law == "affine-exponential"
    units = EXPONENTIAL_NAMES if exponential else NAMES
    rows = zip(units.items(), range(k, len(fit.values)), strict=False)
    values = tuple(fit_value(name, unit, fit, index) for (name, unit), index in rows)
    return values if exponential else (_constant(model, fit), *values)


def _constant(model: TemperatureModel, fit: JackknifeFit) -> Value:
    """Return ``F_T1 = -(F_T2 T0 + F_T3 T0⁻³)``."""
    gradient, k = np.zeros(len(fit.values)), model.pairs.levels
    gradient[k:] = -np.array([model.reference, float(inverse_cube(model.reference))])[: len(fit.values) - k]
    return value_of("F_T1", ROOT_UNIT, float(gradient @ fit.values), fit.error(gradient), fit.factor)


# -- curves --


def _curves(model: TemperatureModel, fit: JackknifeFit) -> tuple[Curve, ...]:
    """Return friction over temperature, one curve per speed, with line and band at even temperatures."""
    residual = model.pairs.friction - model.friction(fit.values)
    grid = replace(model, pairs=_grid(model.pairs))
    line, half = grid.friction(fit.values), fit.band(grid.sensitivity(fit.values))
    return tuple(_curve(model.pairs, residual, grid.pairs, line, half, level) for level in range(model.pairs.levels))


def _grid(pairs: TemperaturePairs) -> TemperaturePairs:
    """Return every speed at even temperatures over the range measured at it."""
    flags = [pairs.level == level for level in range(pairs.levels)]
    T = np.concatenate([np.linspace(x.min(), x.max(), LINE_POINTS) for x in (pairs.temperature[f] for f in flags)])
    speed, level = (np.repeat(x, LINE_POINTS) for x in ([pairs.speed[f].mean() for f in flags], range(pairs.levels)))
    return TemperaturePairs(np.zeros(len(T)), speed, T, inverse_cube(T), level, np.zeros(len(T), dtype=np.intp))


def _curve(
    pairs: TemperaturePairs, residual: Array, grid: TemperaturePairs, line: Array, half: Array, level: int
) -> Curve:
    index, drawn = np.flatnonzero(pairs.level == level), grid.level == level
    order = index[np.argsort(pairs.temperature[index])]
    return make_curve(
        (f"Friction over temperature at {pairs.speed[index].mean():.3g} rad/s", "temperature [°C]", "friction [Nm]"),
        (pairs.temperature[order], pairs.friction[order]),
        (grid.temperature[drawn], line[drawn]),
        half[drawn],
        residual=residual[order],
    )


def _history(record: JointRecord) -> Curve:
    assert record.temperature is not None
    labels = ("Temperature over time", "time [s]", "temperature [°C]")
    return make_curve(labels, (record.t - record.t[0], record.temperature), kind="line")


def _surface(law: TemperatureLaw, slowest: float) -> Surface:
    w = np.linspace(slowest, law.fastest, SURFACE_POINTS)
    T = np.linspace(law.coldest, law.hottest, SURFACE_POINTS)
    z = [plain(law.torque(w, np.full_like(w, t))) for t in T]
    title = f"Friction added by the temperature to that at {law.reference:.1f} °C"
    return Surface(title, "speed [rad/s]", "temperature [°C]", "friction [Nm]", plain(w), plain(T), tuple(z))


# -- notes --


def _notes(model: TemperatureModel, tried: tuple[TriedModel, ...]) -> tuple[str, ...]:
    pairs, T = model.pairs, model.pairs.temperature
    notes = [
        f"{len(T)} pairs of runs forward and back from {T.min():.1f} to {T.max():.1f} °C; T0 is "
        f"{model.reference:.1f} °C."
    ]
    if pairs.levels == 1:
        notes.append(f"one speed only ({pairs.speed.mean():.3g} rad/s): how f_T depends on the speed is assumed.")
    if "three-parameter" not in {item.model for item in tried}:
        notes.append(f"below {COLDEST:g} °C the law in T⁻³ is singular: it was not fitted.")
    return tuple(notes)


def _steady_notes(model: TemperatureModel, fit: JackknifeFit, steady: Part | None) -> tuple[str, ...]:
    """Return a note on how much the friction at T0 differs from the velocity law, where that is known."""
    if steady is None:
        return ()
    levels = model.pairs.level
    speed = np.bincount(levels, model.pairs.speed) / np.bincount(levels)
    difference = fit.values[: model.pairs.levels] - velocity_law_of(steady).even(speed)
    most = np.abs(difference).max()
    return (f"at {model.reference:.1f} °C friction differs from the velocity law by at most {most:.2g} Nm.",)
