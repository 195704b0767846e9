"""Friction over temperature, from a log in which the joint warms up."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.joint.friction.checks import refuse_unless_useful
from jointwise.joint.friction.grouped import Linear
from jointwise.joint.friction.law import velocity_law_of
from jointwise.joint.friction.warmth import (
    COLDEST,
    PARAMETERS,
    Pairs,
    Warming,
    alternative,
    choose_law,
    fit_law,
    held_out,
    modelled,
    quality,
    sensitivity,
    temperature_pairs,
)
from jointwise.joint.part import Curve, Part, Surface, Value, plain, value_of
from jointwise.joint.quality import rms
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

LEAST_QUALITY = 30.0
"""Held-out NRMSE % below which friction has nothing to do with the temperature."""
LINE = 61
"""Points of a curve."""


@dataclass(frozen=True)
class TemperatureLaw:
    """What a temperature T (°C) adds to the friction at `reference` T0; T is kept within `coldest` .. `hottest`.

    "linear" and "three-parameter": ``f_T = sgn(ω) √|ω| (F_T2 (T - T0) + F_T3 (T⁻³ - T0⁻³))``, with F_T1 as a constant
    that makes it zero at T0. "affine-exponential": ``f_T = sgn(ω) (h(T) - h(T0))``, ``h = (A_0 + A_1 T) exp(-|ω| (b_0 +
    b_1 T))``, |ω| kept up to the `fastest`.
    """

    kind: str
    numbers: tuple[float, ...]
    reference: float
    coldest: float
    hottest: float
    fastest: float

    def torque(self, speed: Array, temperature: Array) -> Array:
        """Return the friction (samples,), Nm, at speeds (samples,), rad/s, and temperatures (samples,), °C."""
        T = np.clip(temperature, self.coldest, self.hottest)
        w = np.minimum(np.abs(speed), self.fastest)
        at_reference = self._total(w, np.full_like(T, self.reference))
        result: Array = np.sign(speed) * (self._total(w, T) - at_reference)
        return result

    def _total(self, w: Array, T: Array) -> Array:
        if self.kind == "affine-exponential":
            a, b, *rates = self.numbers
            result: Array = (a + b * T) * np.exp(-w * (rates[0] + rates[1] * T))
            return result
        result = np.sqrt(w) * (self.numbers[0] * T)
        return result if self.kind == "linear" else result + np.sqrt(w) * self.numbers[1] * T**-3.0

    def outside(self, temperature: Array) -> NDArray[np.bool_]:
        """Tell which temperatures were not measured, and are clamped."""
        result: NDArray[np.bool_] = (temperature < self.coldest) | (temperature > self.hottest)
        return result


def identify_temperature(record: JointRecord, *, steady: Part | None = None, reference: float | None = None) -> Part:
    """Return how friction changes with the temperature of the joint.

    ``f_T = sgn(ω) √|ω| (F_T1 + F_T2 T + F_T3 T⁻³)`` against an affine law times an exponential one, by unseen blocks of
    time. Every speed has a friction of its own, and F_T1 makes f_T zero at the `reference` (°C): that of `steady` (from
    `identify_friction`) unless given, else the mean of the log. What the velocity law misses at some speed is not taken
    for an effect of temperature; it is told.
    """
    refuse_unless_useful(record, "temperature")
    pairs = temperature_pairs(record)
    data, test = Warming(pairs, _reference(pairs, steady, reference)), held_out(pairs)
    laws = [law for law in PARAMETERS if law != "three-parameter" or pairs.temperature.min() >= COLDEST]
    tried = tuple(alternative(data, law, test) for law in laws)
    chosen = choose_law(data, laws, ~test)
    unseen = next(own.held_out for own in tried if own.model == chosen)
    if unseen is None or unseen < LEAST_QUALITY:
        what = f"friction does not follow the temperature (fit {unseen:.0f} % on unseen data)"
        raise refuse(record, "temperature", what)
    fit = fit_law(data, chosen)
    law = _law(data, chosen, fit)
    return Part(
        phenomenon="temperature",
        model=chosen,
        values=_values(data, chosen, fit),
        fitted=quality(data, modelled(data, chosen, fit.values), data.everything),
        held_out=unseen,
        settings={"law": asdict(law) | {"numbers": list(law.numbers)}},
        ranges={"temperature": (law.coldest, law.hottest), "speed": (float(pairs.speed.min()), law.fastest)},
        alternatives=tried,
        curves=(*_curves(data, chosen, fit), _history(record)),
        surfaces=(_surface(law, float(pairs.speed.min())),),
        notes=(*_notes(data, laws), *_steady_notes(data, fit, steady)),
        logs=record.logs,
    )


def temperature_law_of(part: Part) -> TemperatureLaw:
    """Return the law that `identify_temperature` found."""
    if part.phenomenon != "temperature" or "law" not in part.settings:
        raise ModelError(f"a temperature law comes from a temperature part. Got '{part.phenomenon}' instead.")
    stored = part.settings["law"]
    return TemperatureLaw(**{**stored, "numbers": tuple(stored["numbers"])})


def _reference(pairs: Pairs, steady: Part | None, given: float | None) -> float:
    """Return T0, °C: the one given, else that of the velocity law, else the mean; within what was measured."""
    T = pairs.temperature
    known = None if steady is None else steady.settings.get("temperature")
    chosen = next((x for x in (given, known) if x is not None), float(T.mean()))
    return float(np.clip(chosen, T.min(), T.max()))


def _law(data: Warming, kind: str, fit: Linear) -> TemperatureLaw:
    T = data.pairs.temperature
    numbers = tuple(float(x) for x in fit.values[data.levels :])
    return TemperatureLaw(kind, numbers, data.reference, float(T.min()), float(T.max()), float(data.pairs.speed.max()))


def _values(data: Warming, law: str, fit: Linear) -> tuple[Value, ...]:
    """Return the numbers of the law; F_T1 is what makes f_T zero at T0."""
    k, root = data.levels, "Nm √(s/rad)"
    exponential = law == "affine-exponential"
    names = ("A_0", "A_1", "b_0", "b_1") if exponential else ("F_T2", "F_T3")
    units = ("Nm", "Nm/K", "s/rad", "s/rad/K") if exponential else (f"{root}/K", f"{root} K³")
    own = zip(names, units, fit.values[k:], fit.deviations[k:], strict=False)
    found = tuple(value_of(name, unit, x, s, fit.factor) for name, unit, x, s in own)
    return found if exponential else (_constant(data, fit), *found)


def _constant(data: Warming, fit: Linear) -> Value:
    """Return F_T1: minus the rest of the law at T0."""
    gradient = np.zeros(len(fit.values))
    gradient[data.levels :] = -np.array([data.reference, data.reference**-3.0])[: len(fit.values) - data.levels]
    deviation = float(np.sqrt(gradient @ fit.covariance @ gradient))
    return value_of("F_T1", "Nm √(s/rad)", float(gradient @ fit.values), deviation, fit.factor)


def _curves(data: Warming, law: str, fit: Linear) -> tuple[Curve, ...]:
    """Return friction over temperature, one curve a speed: line and band at even temperatures."""
    grid, residual = _grid(data), data.y - modelled(data, law, fit.values)
    line, half = modelled(grid, law, fit.values), fit.band(sensitivity(grid, law, fit.values), rms(residual))
    return tuple(_curve(data.pairs, residual, grid.pairs, line, half, level) for level in range(data.levels))


def _grid(data: Warming) -> Warming:
    """Return every speed at even temperatures over those that were measured with it."""
    own = [data.pairs.level == level for level in range(data.levels)]
    T = np.concatenate([np.linspace(x.min(), x.max(), LINE) for x in (data.pairs.temperature[k] for k in own)])
    speed = np.repeat([data.pairs.speed[k].mean() for k in own], LINE)
    cold, level = np.maximum(T, COLDEST) ** -3.0, np.repeat(np.arange(data.levels), LINE)
    return replace(data, pairs=Pairs(np.zeros(len(T)), speed, T, cold, level, np.zeros(len(T), dtype=np.intp)))


def _curve(pairs: Pairs, residual: Array, grid: Pairs, line: Array, half: Array, level: int) -> Curve:
    own, drawn = np.flatnonzero(pairs.level == level), grid.level == level
    order = own[np.argsort(pairs.temperature[own])]
    return Curve(
        title=f"Friction over temperature at {pairs.speed[own].mean():.3g} rad/s",
        x_label="temperature [°C]",
        y_label="friction [Nm]",
        x=plain(pairs.temperature[order]),
        y=plain(pairs.friction[order]),
        line_x=plain(grid.temperature[drawn]),
        line_y=plain(line[drawn]),
        low=plain((line - half)[drawn]),
        high=plain((line + half)[drawn]),
        residual=plain(residual[order]),
    )


def _history(record: JointRecord) -> Curve:
    assert record.temperature is not None
    t = record.t - record.t[0]
    x, y = plain(t, 500), plain(record.temperature, 500)
    return Curve("Temperature over time", "time [s]", "temperature [°C]", x=x, y=y, kind="line")


def _surface(law: TemperatureLaw, slowest: float) -> Surface:
    w, T = np.linspace(slowest, law.fastest, 25), np.linspace(law.coldest, law.hottest, 25)
    z = [plain(law.torque(w, np.full_like(w, t))) for t in T]
    title = f"Friction added by the temperature to that at {law.reference:.1f} °C"
    return Surface(title, "speed [rad/s]", "temperature [°C]", "friction [Nm]", plain(w), plain(T), tuple(z))


def _notes(data: Warming, laws: list[str]) -> tuple[str, ...]:
    pairs, T = data.pairs, data.pairs.temperature
    told = f"{len(T)} ways to and fro from {T.min():.1f} to {T.max():.1f} °C; T0 is {data.reference:.1f} °C."
    notes = [told]
    if pairs.level.max() == 0:
        notes.append(f"one speed only ({pairs.speed.mean():.3g} rad/s): how f_T depends on the speed is assumed.")
    if "three-parameter" not in laws:
        notes.append(f"below {COLDEST:g} °C the law in T⁻³ is singular: it was not tried.")
    return tuple(notes)


def _steady_notes(data: Warming, fit: Linear, steady: Part | None) -> tuple[str, ...]:
    """Tell by how much the friction at T0 differs from the velocity law, where that is known."""
    if steady is None:
        return ()
    law, levels = velocity_law_of(steady), data.pairs.level
    speed = np.bincount(levels, data.pairs.speed) / np.bincount(levels)
    off = fit.values[: data.levels] - 0.5 * (law.torque(speed) - law.torque(-speed))
    return (
        f"at {data.reference:.1f} °C friction differs from the velocity law by at most {np.abs(off).max():.2g} Nm.",
    )
