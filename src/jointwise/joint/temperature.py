"""Friction over temperature, from pairs of runs forward and back at constant speeds during a warm-up.

Every speed has its own friction at the reference temperature, and the law adds to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked
from jointwise.estimation.cross_validation import simplest_candidate
from jointwise.estimation.jackknife import equal_blocks
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.curve import LINE_POINTS, SURFACE_POINTS, Curve, Surface, make_curve, plain
from jointwise.joint.engine import Estimate, Inputs, Law, Rows, Search, estimate, fit_law, try_law
from jointwise.joint.laws import (
    PARAMETERS,
    TemperatureLaw,
    TemperatureSettings,
    friction_settings,
    velocity_law_of,
    with_surfaces,
)
from jointwise.joint.part import MIN_QUALITY, TEST_EVERY, Part, Value, identified_part, nrmse_percent
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import VISIBLE_WARMING, find_plateaus, level_columns
from jointwise.model.terms import root_speed, thermal_decay
from jointwise.spatial import Array

COLDEST = 2.0
"""Temperature (°C) below which T⁻³ is not used: it diverges at 0 °C."""
MIN_PAIRS = 12
"""Fewest pairs of runs for a fit: three times the parameters of the largest law."""
MAX_EXPONENT = 4.0
"""Largest exponent |ω| (b_0 + b_1 T) that is sought: beyond, the exponential has vanished."""
EXPONENT_STARTS = 4
"""Starts of each exponent, evenly within these bounds: of both signs, none of them zero."""
ROOT_UNIT = "Nm √(s/rad)"
UNITS = {"F_T2": f"{ROOT_UNIT}/K", "F_T3": f"{ROOT_UNIT} K³"}
LINEAR_UNITS, RATE_UNITS = {"A_0": "Nm", "A_1": "Nm/K"}, {"b_0": "s/rad", "b_1": "s/rad/K"}
"""Parameters of the laws and their units."""


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
    rows = temperature_rows(record)
    T, speed = rows.inputs["temperature"], rows.inputs["speed"]
    known = None if steady is None else friction_settings(steady).temperature
    usual = next((x for x in (reference, known) if x is not None), float(T.mean()))
    T0 = float(np.clip(usual, T.min(), T.max()))
    laws = {kind: _law(kind, rows, T0) for kind in PARAMETERS if kind != "three-parameter" or T.min() >= COLDEST}
    trials = {kind: try_law(rows, law, _quality) for kind, law in laws.items()}
    kind = simplest_candidate({name: trial.errors for name, trial in trials.items() if name != "none"})
    if trials[kind].held_out < MIN_QUALITY:
        fit = f"fit {trials[kind].held_out:.0f} % on held-out data"
        raise refuse(record, "temperature", f"friction does not follow the temperature ({fit})")
    found = estimate(rows, fit_law(rows, laws[kind]))
    values = _values(kind, found, T0)
    numbers = tuple(value.value for value in values if value.name != "F_T1")
    law = TemperatureLaw(kind, numbers, T0, float(T.min()), float(T.max()), float(speed.max()))
    span = f"{law.coldest:.1f} to {law.hottest:.1f} °C"
    notes = [f"{len(T)} pairs of runs forward and back from {span}; T0 is {T0:.1f} °C."]
    if len(rows.names) == 1:
        notes.append(f"one speed only ({speed.mean():.3g} rad/s): how f_T depends on the speed is assumed.")
    if "three-parameter" not in laws:
        notes.append(f"below {COLDEST:g} °C the law in T⁻³ is singular: it was not fitted.")
    if steady is not None:
        speeds = rows.beside.T @ speed / rows.beside.sum(axis=0)
        most = np.abs([found[name] for name in rows.names] - velocity_law_of(steady).even(speeds)).max()
        notes.append(f"at {T0:.1f} °C friction differs from the velocity law by at most {most:.2g} Nm.")
    assert record.temperature is not None
    history = ("Temperature over time", "time [s]", "temperature [°C]")
    part = identified_part(
        record,
        "temperature",
        model=kind,
        values=values,
        fitted=_quality(rows, found.fit.on(rows)),
        held_out=trials[kind].held_out,
        settings=TemperatureSettings(law),
        ranges={"temperature": T, "speed": speed},
        alternatives=tuple(trial.tried for trial in trials.values()),
        curves=(
            *(_curve(found, name) for name in rows.names),
            make_curve(history, (record.t - record.t[0], record.temperature), kind="line"),
        ),
        surfaces=(_surface(law, float(speed.min())),),
        notes=tuple(notes),
    )
    return with_surfaces(part, steady)


def inverse_cube(temperature: ArrayLike) -> Array:
    """Return T⁻³ of temperatures, °C, limited to `COLDEST`."""
    return np.maximum(temperature, COLDEST) ** -3.0


def temperature_rows(record: JointRecord) -> Rows:
    """Return the friction of pairs of runs; raises if they do not determine a law.

    T⁻³ is its mean over the runs, not that of the mean T. Every fourth block of time is held out.
    """
    if record.temperature is None:
        raise refuse(record, "temperature", "no temperature in the log")
    friction, plateaus = record.friction, find_plateaus(record)
    pairs = plateaus.opposite()
    if len(pairs) < MIN_PAIRS:
        count = f"only {len(pairs)} run{'s' if len(pairs) > 1 else ''}" if len(pairs) else "no run"
        reason = f"{count} forward and back at constant speeds in the log (at least {MIN_PAIRS} are needed)"
        raise refuse(record, "temperature", reason)
    forward, back = pairs.T
    torque, T, inverse = (plateaus.means(x) for x in (friction, record.temperature, inverse_cube(record.temperature)))
    y, T = 0.5 * (torque[forward] - torque[back]), 0.5 * (T[forward] + T[back])
    if np.ptp(T) < VISIBLE_WARMING:
        raise refuse(record, "temperature", f"no temperature change ({T.min():.1f} to {T.max():.1f} °C) in the log")
    if y.max() <= 0.0:
        raise refuse(record, "temperature", "friction does not oppose the motion (sign of the current)")
    block = equal_blocks(len(y))
    inputs = {
        "speed": 0.5 * (plateaus.speed[forward] - plateaus.speed[back]),
        "temperature": T,
        "inverse cube": 0.5 * (inverse[forward] + inverse[back]),
    }
    beside = level_columns(np.unique(plateaus.levels[forward], return_inverse=True)[1])
    names = tuple(f"speed {k}" for k in range(beside.shape[1]))
    return Rows(y, inputs, block, block % TEST_EVERY == TEST_EVERY // 2, np.ones(len(y)), beside, names)


def _law(kind: str, rows: Rows, T0: float) -> Law:
    """Return a law as a difference to the reference temperature T0, °C."""
    note = f"{PARAMETERS[kind]} parameters"
    if kind == "affine-exponential":
        to_rates = _rates(rows)

        def exponential(inputs: Inputs, exponents: Array) -> Array:
            T, b = inputs["temperature"], to_rates @ exponents
            now, then = (thermal_decay(inputs["speed"], t, b) for t in (T, T0))
            return np.column_stack([now - then, T * now - T0 * then])

        search = Search(-MAX_EXPONENT, MAX_EXPONENT, EXPONENT_STARTS)
        return Law(kind, tuple(LINEAR_UNITS), exponential, lambda _: {"cold": search, "hot": search}, note=note)

    count = {"none": 0, "linear": 1}.get(kind, 2)

    def columns(inputs: Inputs, _: Array) -> Array:
        root = root_speed(inputs["speed"])
        change = inputs["temperature"] - T0, inputs["inverse cube"] - inverse_cube(T0)
        return np.column_stack([root * x for x in change])[:, :count]

    return Law(kind, tuple(UNITS)[:count], columns, note=note)


def _rates(rows: Rows) -> Array:
    """Return the matrix from |ω| (b_0 + b_1 T) at the coldest and hottest T of the highest speed to b_0 and b_1."""
    T, fastest = rows.inputs["temperature"], float(rows.inputs["speed"].max())
    slope = np.array([-1.0, 1.0]) / (T.max() - T.min()) / fastest
    return np.array([np.array([1.0, 0.0]) / fastest - slope * T.min(), slope])


def _quality(rows: Rows, modelled: Array) -> float:
    """Return the NRMSE % of the effect of temperature: friction and model without the mean of every speed."""
    level = np.argmax(rows.beside, axis=1)
    mean = (np.bincount(level, rows.y) / np.maximum(np.bincount(level), 1))[level]
    return nrmse_percent(rows.y - mean, modelled - mean)


def _values(kind: str, found: Estimate, T0: float) -> tuple[Value, ...]:
    """Return the parameters of the law; ``F_T1 = -(F_T2 T0 + F_T3 T0⁻³)`` makes f_T zero at T0."""
    if kind == "affine-exponential":
        rates = [dict(zip(("cold", "hot"), row.tolist(), strict=True)) for row in _rates(found.rows)]
        linear = [found.value(name, unit) for name, unit in LINEAR_UNITS.items()]
        slopes = zip(RATE_UNITS.items(), rates, strict=True)
        return (*linear, *(found.derived(n, u, sum(s * found[x] for x, s in g.items()), g) for (n, u), g in slopes))
    values = [found.value(name, UNITS[name]) for name in found.fit.law.linear]
    factors = {value.name: -x for value, x in zip(values, (T0, float(inverse_cube(T0))), strict=False)}
    constant = sum(x * found[name] for name, x in factors.items())
    return (found.derived("F_T1", ROOT_UNIT, constant, factors), *values)


def _curve(found: Estimate, name: str) -> Curve:
    """Return friction over temperature at one speed, with line and band at even temperatures."""
    rows = found.rows
    index = np.flatnonzero(rows.beside[:, rows.names.index(name)])
    order = index[np.argsort(rows.inputs["temperature"][index])]
    T, speed = rows.inputs["temperature"][order], float(rows.inputs["speed"][index].mean())
    line = np.linspace(T.min(), T.max(), LINE_POINTS)
    inputs = {"temperature": line, "speed": np.full(LINE_POINTS, speed), "inverse cube": inverse_cube(line)}
    labels = f"Friction over temperature at {speed:.3g} rad/s", "temperature [°C]", "friction [Nm]"
    return found.curve(labels, (T, rows.y[order]), found.residual[order], inputs, name)


def _surface(law: TemperatureLaw, slowest: float) -> Surface:
    w = np.linspace(slowest, law.fastest, SURFACE_POINTS)
    T = np.linspace(law.coldest, law.hottest, SURFACE_POINTS)
    z = tuple(plain(law.torque(w, np.full_like(w, t))) for t in T)
    title = f"Friction added by the temperature to that at {law.reference:.1f} °C"
    return Surface(title, "speed [rad/s]", "temperature [°C]", "friction [Nm]", plain(w), plain(T), z)
