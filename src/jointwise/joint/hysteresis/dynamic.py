"""Friction with memory and rate: rate-dependent Maxwell-slip and LuGre, by variable projection from several starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from jointwise.joint.hysteresis.grams import NUISANCE, accumulate, ending, solve_forces
from jointwise.joint.hysteresis.growth import NONE, Growth
from jointwise.joint.hysteresis.loops import MOST_SAMPLES, Loops, Piece, beginning
from jointwise.joint.hysteresis.recursion import maxwell_state
from jointwise.joint.hysteresis.static import as_residual
from jointwise.joint.hysteresis.uncertainty import FOLDS
from jointwise.model.terms.backlash import evened
from jointwise.model.terms.rate import bristle, rate_slip, steady_rise
from jointwise.spatial import Array

MOST_TRIALS = 100
"""Evaluations from each start."""
NUDGE = 1e-3
"""Step of the differences by what was searched."""
BOUNDS = {"length": (1e-6, 0.05), "extra": (0.0, 3.0), "speed": (2e-3, 1.0), "rate": (0.1, 1e4)}
"""Ranges: rad, 1, rad/s, 1/s."""


MOST_STEPS = 20
ENOUGH = 1e-6
"""Steps after that search, and the relative gain below which they end."""
DAMPING = 1e-3
"""Where the damping of those steps starts."""
COARSE, FINE = 1e-3, 1e-6
"""How near its best growth is found, in parts of the friction at no load: on the way, and in the end."""
MOST_GROWTH = 10.0
"""Dry friction under the largest load beyond that without, relative to it, up to which growth is searched."""


@dataclass(frozen=True, eq=False)
class DynamicFit:
    """A fitted model with the steady curve ``h = 1 + e exp(-(|ω|/V)²)``, growing by ``1 + c |τ|^p``.

    `limits` (rad; of LuGre: the bristle's length F_C/s0), `extra` e, `speed` V (rad/s), `rate` (1/s) of the slip,
    `growth` c, `forces` (Nm; of LuGre: F_C and s1 F_C/s0 in Nm s), squared error (Nm²). `grams`: normal equations of
    the residual, with columns of the forces, of the `searched` numbers of the curve (ln of the limits, e, ln V and
    (rate-gms) the ln of the rate), of c where it is free, and of what stands beside. `held_out`: the squared error per
    sample of every block, (blocks,) Nm², when its fold is left out.
    """

    model: str
    limits: Array
    extra: float
    speed: float
    rate: float
    growth: float
    forces: Array
    inertia: float
    viscous: float
    offset: float
    error: float
    grams: Array
    held_out: Array


@dataclass(frozen=True, eq=False)
class Curve:
    """What is searched for: the limits (elements,) rad, e, V, the rate."""

    limits: Array
    extra: float
    speed: float
    rate: float

    def steady(self, speed: Array) -> Array:
        """Return h(ω) = 1 + e exp(-(ω/V)²), (samples,)."""
        return steady_rise(speed, self.extra, self.speed)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A model as its columns: of some samples of loops at a curve, the state carried on; and its state at rest.

    `forces`: the number of columns; `growth`: how the model grows with the load.
    """

    columns: Callable[[Loops, slice, Curve, Array], Array]
    rest: Callable[[float], Array]
    forces: int
    growth: Growth

    @property
    def free(self) -> bool:
        """Tell whether the growth with the load is estimated."""
        return self.growth.start is not None and not self.growth.held


def fit_rate(loops: Loops, limits: Array, growth: Growth = NONE, backlash: Array | None = None) -> DynamicFit:
    """Return the rate-dependent Maxwell-slip model; `limits` (rad) are those of a rate-independent fit, as a start.

    `backlash` (points,): the map over a turn by which limits vary.
    """
    starts = [Curve(limits, 0.1, 0.02, rate) for rate in (20.0, 500.0)]

    def columns(part: Loops, rows: slice, curve: Curve, state: Array) -> Array:
        return rate_columns(part.x[rows], part.speed[rows], curve, part.period, state)

    kernel = Kernel(columns, lambda position: maxwell_state(position, len(limits)), len(limits), growth)
    return _fit("rate-gms", _evened(loops, backlash), starts, ("extra", "speed", "rate"), kernel)


def fit_lugre(loops: Loops, length: float, growth: Growth = NONE, backlash: Array | None = None) -> DynamicFit:
    """Return the LuGre model; `length` (rad) is where the search for F_C / s0 starts, `backlash` as in `fit_rate`."""
    starts = [Curve(np.array([factor * length]), 0.1, 0.02, 1.0) for factor in (0.03, 0.3)]

    def columns(part: Loops, rows: slice, curve: Curve, state: Array) -> Array:
        return bristle_columns(part.x[rows], part.speed[rows], curve, part.period, state)

    kernel = Kernel(columns, lambda position: np.array([0.0, position]), 2, growth)
    return _fit("lugre", _evened(loops, backlash), starts, ("extra", "speed"), kernel)


def _fit(model: str, loops: Loops, starts: Sequence[Curve], names: Sequence[str], kernel: Kernel) -> DynamicFit:
    """Return the fit of a model: all limits together are searched, then each moves by itself."""
    part = beginning(loops, MOST_SAMPLES)
    best = _searched(part, starts, ("length", *names), kernel)
    each = (*(f"limit {i}" for i in range(len(best.limits))), *names)
    return _made(model, _polished(part, best, each, kernel), each, loops, kernel)


def _evened(loops: Loops, backlash: Array | None) -> Loops:
    """Return loops along whose path the backlash is the same everywhere."""
    return loops if backlash is None else replace(loops, x=evened(loops.x, backlash / backlash.mean()))


def rate_columns(x: Array, speed: Array, curve: Curve, period: float, state: Array) -> Array:
    """Return u_i along a path, (samples, elements)."""
    return rate_slip(x, curve.steady(speed), curve.limits, curve.rate * period, state)


def bristle_columns(x: Array, speed: Array, curve: Curve, period: float, state: Array) -> Array:
    """Return u and its rate of change (1/s) along a path, (samples, 2)."""
    before = state[0]
    u = bristle(x, curve.steady(speed), float(curve.limits[0]), state)
    return np.column_stack([u, np.diff(u, prepend=before) / period])


def _search_grams(loops: Loops, kernel: Kernel, curve: Curve) -> Array:
    """Return CᵀC of the forces' columns, the same times |τ|^p where growth is free, what stands beside and friction."""
    size = _size(loops, kernel)
    state = np.empty(0)

    def make(piece: Piece) -> Array:
        nonlocal state
        if piece.fresh:
            state = kernel.rest(float(loops.x[piece.start]))
        own = kernel.columns(loops, piece.rows, curve, state)
        loaded = [] if size is None else [size[piece.rows, None] * own]
        return np.column_stack([*_joined(own, loaded, kernel), *ending(loops, piece)])

    return accumulate(loops, make)


def _joined(own: Array, loaded: list[Array], kernel: Kernel) -> list[Array]:
    """Return columns and those times |τ|^p side by side where growth is free, added where it is known."""
    return [own + kernel.growth.start * loaded[0]] if kernel.growth.start and kernel.growth.held else [own, *loaded]


def _size(loops: Loops, kernel: Kernel) -> Array | None:
    """Return |τ|^p (samples,), None where the model does not grow with the load."""
    return None if kernel.growth.start is None else np.abs(loops.load) ** kernel.growth.power


def _solved(loops: Loops, gram: Array, kernel: Kernel, within: float) -> tuple[Array, float, float]:
    """Return the coefficients, the squared error and the growth c; `within`: how near its best c Nm^-p |τ|^p must be.

    With the forces' columns and those times |τ|^p apart, any c is a matrix product away: it is searched in between.
    """
    if not kernel.free:
        return *solve_forces(gram, kernel.forces), kernel.growth.start or 0.0
    most = float(np.abs(loops.load).max()) ** kernel.growth.power

    def solved(relative: float) -> tuple[Array, float]:
        return solve_forces(_grown(gram, kernel.forces, relative / most), kernel.forces)

    options = {"xatol": within}
    best = minimize_scalar(lambda c: solved(c)[1], bounds=(0.0, MOST_GROWTH), method="bounded", options=options).x
    return *solved(best), float(best) / most


def _grown(gram: Array, forces: int, growth: float) -> Array:
    """Return normal equations (p, p) of columns C and |τ|^p C as those of ``(1 + c |τ|^p) C``."""
    turn = np.delete(np.eye(len(gram)), np.s_[forces : 2 * forces], axis=1)
    turn[forces : 2 * forces, :forces] = growth * np.eye(forces)
    result: Array = turn.T @ gram @ turn
    return result


def _grams(loops: Loops, kernel: Kernel, curve: Curve, names: Sequence[str], forces: Array, growth: float) -> Array:
    """Return CᵀC of the forces' columns, derivatives by what was searched and by c, what stands beside and friction.

    Derivatives are central differences at places as the search has them: e itself, logarithms of the others.
    """
    near = [curve, *(_nudged(curve, name, side) for name in names for side in (NUDGE, -NUDGE))]
    states: list[Array] = []
    size = _size(loops, kernel)

    def make(piece: Piece) -> Array:
        nonlocal states
        if piece.fresh:
            states = [kernel.rest(float(loops.x[piece.start])) for _ in near]
        each = [kernel.columns(loops, piece.rows, own, state) for own, state in zip(near, states, strict=True)]
        slopes = [(up - down) @ forces / (2.0 * NUDGE) for up, down in zip(each[1::2], each[2::2], strict=True)]
        columns = np.column_stack([each[0], *slopes])
        if size is not None:
            columns *= (1.0 + growth * size[piece.rows])[:, None]
        grown = [size[piece.rows] * (each[0] @ forces)] if size is not None and kernel.free else []
        return np.column_stack([columns, *grown, *ending(loops, piece)])

    return accumulate(loops, make)


def _nudged(curve: Curve, name: str, step: float) -> Curve:
    return _at(curve, (name,), _places(curve, (name,)) + step)


def _searched(part: Loops, starts: Sequence[Curve], names: Sequence[str], kernel: Kernel) -> Curve:
    """Return the curve with the least squared error, bounded, from every start."""
    bounds = _bounds(names)

    def cost(place: Array, start: Curve) -> float:
        return _cost(part, kernel, _at(start, names, place))

    found = []
    for start in starts:
        first = np.clip(_places(start, names), *bounds)
        options = {"maxfev": MOST_TRIALS, "xatol": 1e-2, "fatol": 0.0}
        own = minimize(cost, first, args=(start,), method="Nelder-Mead", bounds=bounds.T, options=options)
        found.append((own.fun, _at(start, names, own.x)))
    return min(found, key=lambda pair: pair[0])[1]


def _polished(part: Loops, start: Curve, names: Sequence[str], kernel: Kernel) -> Curve:
    """Return a curve after steps of Levenberg-Marquardt, forces and growth solved anew after each."""
    best, error, damping = start, _cost(part, kernel, start), DAMPING
    for _ in range(MOST_STEPS):
        place = _places(best, names) + np.clip(_step(part, best, names, kernel, damping), -1.0, 1.0)
        tried = _at(best, names, np.clip(place, *_bounds(names)))
        gain = error - (reached := _cost(part, kernel, tried))
        damping = damping / 5.0 if gain > 0.0 else damping * 10.0
        best, error = (tried, reached) if gain > 0.0 else (best, error)
        if 0.0 <= gain < ENOUGH * error or damping > 1e4:
            break
    return best


def _step(part: Loops, curve: Curve, names: Sequence[str], kernel: Kernel, damping: float) -> Array:
    """Return the change (names,) of the places of what is searched."""
    found, _, growth = _fitted(part, kernel, curve, FINE)
    gram = _residual_grams(part, kernel, curve, names, found, growth).sum(axis=0)
    return _searched_step(gram, kernel, names, damping)


def _searched_step(gram: Array, kernel: Kernel, names: Sequence[str], damping: float) -> Array:
    """Return the change (names,) of what is searched that normal equations of a residual ask for."""
    A, b = gram[:-1, :-1], gram[:-1, -1]
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))
    found = np.linalg.solve(A / np.outer(size, size) + damping * np.eye(len(A)), b / size) / size
    result: Array = found[kernel.forces : kernel.forces + len(names)]
    return result


def _cost(part: Loops, kernel: Kernel, curve: Curve) -> float:
    return _fitted(part, kernel, curve, COARSE)[1]


def _fitted(loops: Loops, kernel: Kernel, curve: Curve, within: float) -> tuple[Array, float, float]:
    """Return what `_solved` does at a curve."""
    return _solved(loops, _search_grams(loops, kernel, curve).sum(axis=0), kernel, within)


def _bounds(names: Sequence[str]) -> Array:
    """Return the least and the largest places, (2, names)."""
    ranges = [np.array(BOUNDS["length" if _is_limit(name) else name]) for name in names]
    return np.transpose([own if name == "extra" else np.log(own) for name, own in zip(names, ranges, strict=True)])


def _places(curve: Curve, names: Sequence[str]) -> Array:
    """Return where numbers of a curve stand in the search: e itself, logarithms of the others."""
    return np.array([curve.extra if name == "extra" else np.log(_number(curve, name)) for name in names])


def _at(start: Curve, names: Sequence[str], places: Array) -> Curve:
    """Return a curve with some numbers at other places; "length" moves all limits, "limit i" the i-th from 0 on."""
    curve = start
    for name, place in zip(names, places, strict=True):
        if name == "length":
            curve = replace(curve, limits=curve.limits * (np.exp(place) / curve.limits[-1]))
        elif _is_limit(name):
            own = np.arange(len(curve.limits)) == int(name.split()[1])
            curve = replace(curve, limits=np.where(own, np.exp(place), curve.limits))
        else:
            number: dict[str, Any] = {name: float(place if name == "extra" else np.exp(place))}
            curve = replace(curve, **number)
    return curve


def _number(curve: Curve, name: str) -> float:
    if name == "length":
        return float(curve.limits[-1])
    return float(curve.limits[int(name.split()[1])] if _is_limit(name) else getattr(curve, name))


def _is_limit(name: str) -> bool:
    return name.startswith("limit ")


def _residual_grams(
    loops: Loops, kernel: Kernel, curve: Curve, names: Sequence[str], found: Array, growth: float
) -> Array:
    """Return `_grams` at a solution, the last column the residual instead of the friction."""
    unmoved = np.insert(found, kernel.forces, np.zeros(len(names) + kernel.free))
    return as_residual(_grams(loops, kernel, curve, names, found[:-NUISANCE], growth), unmoved)


def _made(model: str, curve: Curve, names: Sequence[str], loops: Loops, kernel: Kernel) -> DynamicFit:
    found, error, growth = _fitted(loops, kernel, curve, FINE)
    grams = _residual_grams(loops, kernel, curve, names, found, growth)
    return DynamicFit(
        model=model,
        limits=curve.limits,
        extra=curve.extra,
        speed=curve.speed,
        rate=curve.rate,
        growth=growth,
        forces=found[:-NUISANCE],
        inertia=float(found[-3]),
        viscous=float(found[-2]),
        offset=float(found[-1]),
        error=error,
        grams=grams,
        held_out=_held_out(loops, kernel, curve, names, grams),
    )


def _held_out(loops: Loops, kernel: Kernel, curve: Curve, names: Sequence[str], grams: Array) -> Array:
    """Return the squared errors (blocks,) of blocks whose fold is left out; `grams` those of the residual.

    Without a fold the curve takes a step to the best of the others, unless they are met no better there; forces and
    growth are solved anew.
    """
    here, fold = _search_grams(loops, kernel, curve), np.arange(len(grams)) % FOLDS
    errors = np.empty(len(grams))
    for k in range(FOLDS):
        kept, test = fold != k, fold == k
        step = np.clip(_searched_step(grams[kept].sum(axis=0), kernel, names, DAMPING), -1.0, 1.0)
        moved = _at(curve, names, np.clip(_places(curve, names) + step, *_bounds(names)))
        ways = [here, _search_grams(loops, kernel, moved)]
        solved = [_solved(loops, own[kept].sum(axis=0), kernel, COARSE) for own in ways]
        best = int(solved[1][1] < solved[0][1])
        found, _, growth = solved[best]
        move = np.append(_apart(found, growth, kernel), -1.0)
        errors[test] = np.einsum("kij,i,j->k", ways[best][test], move, move) / ways[best][test][:, -2, -2]
    return errors


def _apart(found: Array, growth: float, kernel: Kernel) -> Array:
    """Return a solution for columns and those times |τ|^p side by side, as `_search_grams` has them."""
    return np.insert(found, kernel.forces, growth * found[: kernel.forces]) if kernel.free else found
