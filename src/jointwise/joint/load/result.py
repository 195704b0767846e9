"""Result of the friction over load: parameters, curves, surface and notes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.estimation.linear_fit import JackknifeFit
from jointwise.joint.load.data import RunPairs
from jointwise.joint.load.law import LoadLaw, LoadSettings
from jointwise.joint.part import LINE_POINTS, Curve, Part, TriedModel, Value, fit_value, make_curve
from jointwise.joint.quality import identified_part, nrmse_percent
from jointwise.joint.record import JointRecord
from jointwise.model.friction import LOAD_POWERS, load_growth, load_unit
from jointwise.spatial import Array

GRAVITY_TOLERANCE = 0.01
"""Deviation of the gravity slope from 1 below which no note is given: bodies are not described better."""


@dataclass(frozen=True)
class LoadFit:
    """Fit of friction y (points,), Nm, by a law: F_0 of every speed and F_l; and of the torque by the gravity model."""

    points: RunPairs
    y: Array
    law: str
    fit: JackknifeFit
    fitted: Array
    gravity: JackknifeFit

    @property
    def load_law(self) -> LoadLaw:
        """The identified law."""
        factor = 0.0 if self.law == "none" else float(self.fit.values[-1])
        return LoadLaw(self.law, factor, float(np.abs(self.points.load).max()))


def load_part(record: JointRecord, fit: LoadFit, tried: tuple[TriedModel, ...], note: str, steady: Part | None) -> Part:
    """Return the phenomenon "load" of a fit, with friction over speed and load if `steady` is known."""
    part = identified_part(
        record,
        "load",
        model=fit.law,
        values=_values(fit),
        fitted=nrmse_percent(fit.y, fit.fitted),
        held_out=next(item.held_out for item in tried if item.model == fit.law),
        settings=LoadSettings(fit.load_law),
        ranges={"load": fit.points.load, "speed": fit.points.speed},
        alternatives=tried,
        curves=(_friction_curve(fit), _gravity_curve(fit)),
        notes=_notes(record, fit, note, steady),
    )
    from jointwise.joint.combined_friction import with_surfaces  # imports this package

    return with_surfaces(part, steady)


def _values(fit: LoadFit) -> tuple[Value, ...]:
    points, linear, gravity = fit.points, fit.fit, fit.gravity
    values: list[Value] = []
    if fit.law != "none":
        values.append(fit_value("F_l", load_unit(fit.law), linear, -1))
    for k in range(points.levels):
        name = "F_0" if points.levels == 1 else f"F_0 at {points.speed[points.level == k].mean():.3g} rad/s"
        values.append(fit_value(name, "Nm", linear, k))
    return (*values, fit_value("gravity slope", "1", gravity, 0), fit_value("gravity offset", "Nm", gravity, 1))


def _friction_curve(fit: LoadFit) -> Curve:
    """Return friction over load at the lowest speed: differences between speeds are subtracted."""
    points, linear = fit.points, fit.fit
    speed_differences = linear.values[points.level] - linear.values[0]
    line = np.linspace(points.load.min(), points.load.max(), LINE_POINTS)
    rows = np.zeros((len(line), len(linear.values)))
    rows[:, 0] = 1.0
    if fit.law != "none":
        rows[:, -1] = load_growth(line, LOAD_POWERS[fit.law])
    title = "Friction over load: half the difference between the runs forward and back"
    labels = (title, "load [Nm]", "friction [Nm]")
    return _curve(labels, points.load, fit.y - speed_differences, fit.y - fit.fitted, line, linear, rows)


def _gravity_curve(fit: LoadFit) -> Curve:
    points, gravity = fit.points, fit.gravity
    line = np.linspace(points.load.min(), points.load.max(), LINE_POINTS)
    rows = np.column_stack([line, np.ones(len(line))])
    residual = points.total - gravity.values[0] * points.load - gravity.values[1]
    title = "Gravity check: half the sum of the runs forward and back over the modelled load"
    labels = (title, "modelled load [Nm]", "torque of the motor [Nm]")
    return _curve(labels, points.load, points.total, residual, line, gravity, rows)


def _curve(
    labels: tuple[str, str, str], x: Array, y: Array, residual: Array, line: Array, fit: JackknifeFit, rows: Array
) -> Curve:
    return make_curve(labels, (x, y), (line, rows @ fit.values), fit.band(rows), residual=residual)


def _notes(record: JointRecord, fit: LoadFit, note: str, steady: Part | None) -> tuple[str, ...]:
    slope, half = float(fit.gravity.values[0]), fit.gravity.factor * float(fit.gravity.deviations[0])
    pairs, speeds = len(np.unique(fit.points.pair)), fit.points.levels
    notes = [f"{pairs} pair{'s' if pairs > 1 else ''} of runs forward and back at {speeds} constant speed(s)."]
    if abs(slope - 1.0) > max(half, GRAVITY_TOLERANCE):
        notes.append(
            f"the motor torque grows {slope:.3f} ± {half:.3f} times as much as the modelled load: the payload or the "
            f"bodies differ, or the gain is {record.gain / slope:.4g} and not {record.gain:.4g} Nm/A."
        )
    if note:
        notes.append(note)
    if steady is not None:
        notes.append("the friction at no load was taken from the velocity law: F_0 is the remainder.")
    return tuple(notes)
