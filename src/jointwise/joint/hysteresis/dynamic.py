"""Friction with memory and rate: rate-dependent Maxwell-slip and LuGre, by variable projection from several starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from jointwise.joint.hysteresis.grams import NUISANCE, accumulate, ending, solve_forces
from jointwise.joint.hysteresis.loops import MOST_SAMPLES, Loops, Piece, beginning
from jointwise.joint.hysteresis.recursion import maxwell_state
from jointwise.joint.hysteresis.static import as_residual, used_columns
from jointwise.model.terms.rate import bristle, rate_slip, steady_rise
from jointwise.spatial import Array

MOST_TRIALS = 100
"""Evaluations from each start."""
NUDGE = 1e-3
"""Step of the differences by what was searched."""
BOUNDS = {"length": (1e-6, 0.05), "extra": (0.0, 3.0), "speed": (2e-3, 1.0), "rate": (0.1, 1e4)}
"""Ranges: rad, 1, rad/s, 1/s."""


@dataclass(frozen=True, eq=False)
class DynamicFit:
    """A fitted model with the steady curve ``h = 1 + e exp(-(|ω|/V)²)``.

    `limits` (rad; of LuGre: the bristle's length F_C/s0), `extra` e, `speed` V (rad/s), `rate` c (1/s) of the slip,
    `forces` (Nm; of LuGre: F_C and s1 F_C/s0 in Nm s), squared error (Nm²), normal equations of the residual;
    `wide` have columns also for what was searched: ln of the length, e, ln V and (rate-gms) ln c.
    """

    model: str
    limits: Array
    extra: float
    speed: float
    rate: float
    forces: Array
    inertia: float
    viscous: float
    offset: float
    error: float
    grams: Array
    wide: Array


@dataclass(frozen=True, eq=False)
class Curve:
    """What is searched for: a factor on the limits, e, V, c."""

    length: float
    extra: float
    speed: float
    rate: float

    def steady(self, speed: Array) -> Array:
        """Return h(ω) = 1 + e exp(-(ω/V)²), (samples,)."""
        return steady_rise(speed, self.extra, self.speed)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A model as its columns: of some samples of loops at a curve, the state carried on; and its state at rest."""

    columns: Callable[[Loops, slice, Curve, Array], Array]
    rest: Callable[[float], Array]


def fit_rate(loops: Loops, limits: Array) -> DynamicFit:
    """Return the rate-dependent Maxwell-slip model; its limits are those of a rate-independent fit times a factor."""
    names, top = ("length", "extra", "speed", "rate"), float(limits[-1])
    starts = [Curve(top, 0.1, 0.02, rate) for rate in (20.0, 500.0)]

    def columns(part: Loops, rows: slice, curve: Curve, state: Array) -> Array:
        own = limits * (curve.length / top)
        return rate_columns(part.x[rows], part.speed[rows], own, curve, part.period, state)

    kernel = Kernel(columns, lambda position: maxwell_state(position, len(limits)))
    best = _searched(loops, starts, names, kernel, len(limits))
    return _made("rate-gms", limits * (best.length / top), best, names, loops, kernel, len(limits))


def fit_lugre(loops: Loops, length: float) -> DynamicFit:
    """Return the LuGre model; `length` (rad) is where the search for F_C / s0 starts."""
    names = ("length", "extra", "speed")
    starts = [Curve(factor * length, 0.1, 0.02, 1.0) for factor in (0.03, 0.3)]

    def columns(part: Loops, rows: slice, curve: Curve, state: Array) -> Array:
        return bristle_columns(part.x[rows], part.speed[rows], curve, part.period, state)

    kernel = Kernel(columns, lambda position: np.array([0.0, position]))
    best = _searched(loops, starts, names, kernel, 2)
    return _made("lugre", np.array([best.length]), best, names, loops, kernel, 2)


def rate_columns(x: Array, speed: Array, limits: Array, curve: Curve, period: float, state: Array) -> Array:
    """Return u_i along a path, (samples, elements)."""
    return rate_slip(x, curve.steady(speed), limits, curve.rate * period, state)


def bristle_columns(x: Array, speed: Array, curve: Curve, period: float, state: Array) -> Array:
    """Return u and its rate of change (1/s) along a path, (samples, 2)."""
    before = state[0]
    u = bristle(x, curve.steady(speed), curve.length, state)
    return np.column_stack([u, np.diff(u, prepend=before) / period])


def _grams(loops: Loops, kernel: Kernel, curve: Curve) -> Array:
    """Return CᵀC of the columns of the forces, what stands beside them and friction."""
    return _wide_grams(loops, kernel, curve, (), np.empty(0))


def _wide_grams(loops: Loops, kernel: Kernel, curve: Curve, names: Sequence[str], forces: Array) -> Array:
    """Return CᵀC of the forces' columns, derivatives by what was searched, what stands beside them and friction.

    Derivatives are central differences at places as the search has them: e itself, logarithms of the others.
    """
    near = [curve, *(_nudged(curve, name, side) for name in names for side in (NUDGE, -NUDGE))]
    states: list[Array] = []

    def make(piece: Piece) -> Array:
        nonlocal states
        if piece.fresh:
            states = [kernel.rest(float(loops.x[piece.start])) for _ in near]
        each = [kernel.columns(loops, piece.rows, own, state) for own, state in zip(near, states, strict=True)]
        slopes = [(up - down) @ forces / (2.0 * NUDGE) for up, down in zip(each[1::2], each[2::2], strict=True)]
        return np.column_stack([each[0], *slopes, *ending(loops, piece)])

    return accumulate(loops, make)


def _nudged(curve: Curve, name: str, step: float) -> Curve:
    place = float(_place(name, np.array(getattr(curve, name))))
    return replace(curve, **{name: _value(name, place + step)})


def _searched(loops: Loops, starts: Sequence[Curve], names: Sequence[str], kernel: Kernel, forces: int) -> Curve:
    """Return the curve with the least squared error on the first samples, bounded, from every start."""
    part = beginning(loops, MOST_SAMPLES)
    bounds = [_place(name, np.array(BOUNDS[name])) for name in names]

    def at(place: Array, start: Curve) -> Curve:
        values = {name: float(_value(name, p)) for name, p in zip(names, place, strict=True)}
        return replace(start, **values)

    def cost(place: Array, start: Curve) -> float:
        return solve_forces(_grams(part, kernel, at(place, start)).sum(axis=0), forces)[1]

    found = []
    for start in starts:
        first = np.clip([_place(n, np.array(getattr(start, n))) for n in names], *np.transpose(bounds))
        options = {"maxfev": MOST_TRIALS, "xatol": 1e-2, "fatol": 0.0}
        own = minimize(cost, first, args=(start,), method="Nelder-Mead", bounds=bounds, options=options)
        found.append((own.fun, at(own.x, start)))
    return min(found, key=lambda pair: pair[0])[1]


def _place(name: str, value: Array) -> Array:
    return value if name == "extra" else np.log(value)


def _value(name: str, place: float) -> float:
    return place if name == "extra" else float(np.exp(place))


def _made(
    model: str, limits: Array, curve: Curve, names: Sequence[str], loops: Loops, kernel: Kernel, forces: int
) -> DynamicFit:
    grams = _grams(loops, kernel, curve)
    found, error = solve_forces(grams.sum(axis=0), forces)
    used = used_columns(found)
    wide = _wide_grams(loops, kernel, curve, names, found[:-NUISANCE])
    unmoved = np.insert(found, forces, np.zeros(len(names)))
    return DynamicFit(
        model=model,
        limits=limits,
        extra=curve.extra,
        speed=curve.speed,
        rate=curve.rate,
        forces=found[:-NUISANCE],
        inertia=float(found[-3]),
        viscous=float(found[-2]),
        offset=float(found[-1]),
        error=error,
        grams=as_residual(grams, found)[:, used[:, None], used[None]],
        wide=as_residual(wide, unmoved),
    )
