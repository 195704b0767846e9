"""The methods, each a function from loops to a fitted law with its errors on data held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from jointwise.joint.hysteresis.dynamic import DynamicFit, fit_lugre, fit_rate
from jointwise.joint.hysteresis.grams import NUISANCE
from jointwise.joint.hysteresis.growth import Growth
from jointwise.joint.hysteresis.laws import FrictionLaw
from jointwise.joint.hysteresis.loops import MOST_SAMPLES, Loops, beginning
from jointwise.joint.hysteresis.refine import Fit, fit_forces, refined, residual_grams
from jointwise.joint.hysteresis.search import Bank, best_choices, choice_spread
from jointwise.joint.hysteresis.shape import LADDERS, Shape, ladder_shape
from jointwise.joint.hysteresis.static import STATIC, StaticFit, fit_static
from jointwise.joint.hysteresis.uncertainty import FOLDS, linear_held_out
from jointwise.spatial import Array

MAXWELL = (*LADDERS, "nlr", "nlr-stribeck")
METHODS = (*MAXWELL, "rate-gms", "lugre", *STATIC)
USUAL_ELEMENTS = 4
CLOSE = 0.1
"""Elements whose limits differ by less than this part are one."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What all methods share: the data, the bank, the number of `elements` of ladders and of nlr (`chosen`).

    `scale` is the backlash B (rad) where it is known; `growth` where a search for the load dependence starts, None
    without load; `map` the backlash over a turn, or None; `asked` whether the number of elements was; `rise` (e, V) of
    the level towards standstill where it is known from elsewhere; `power` p of the load; `held`: the growth is known.
    """

    loops: Loops
    bank: Bank
    elements: int
    chosen: int
    scale: float | None
    growth: float | None
    map: Array | None
    asked: bool = False
    rise: tuple[float, float] | None = None
    power: float = 2.0
    held: bool = False

    @property
    def free(self) -> tuple[str, ...]:
        """What of the level is free."""
        return () if self.growth is None or self.held else ("growth",)

    @property
    def load(self) -> Growth:
        """How friction grows with the load."""
        return Growth(self.growth, self.power, self.held)


@dataclass(frozen=True, eq=False)
class Tried:
    """A fitted method: its `law`, squared error of the fit (Nm²), held-out errors of the blocks (blocks,) Nm².

    `grams` of the Jacobian and the residual; `fit` of slip models, None for others; what was `free` ("scale": limits
    move together). `jumps`: how ln D_i and W_i scatter from fold to fold, as `choice_spread` says.
    `inertia` (kg m²) of the rotor where it was estimated along.
    """

    method: str
    law: FrictionLaw
    error: float
    held_out: Array
    grams: Array
    fit: Fit | None = None
    free: tuple[str, ...] = ()
    jumps: tuple[Array, Array] | None = None
    inertia: float = 0.0


def try_method(setting: Setting, method: str) -> Tried:
    """Return a method fitted to the data of a setting."""
    if method in STATIC:
        return _static(setting, fit_static(setting.loops, method, 0.0 if setting.growth is None else setting.power))
    if method in LADDERS:
        return _ladder(setting, method)
    return _OTHERS[method](setting)


def _ladder(setting: Setting, method: str) -> Tried:
    scale = setting.scale or _searched_scale(setting, method)
    start = _leveled(setting, ladder_shape(method, setting.elements, scale))
    tied = () if setting.scale else ("scale",)
    return _maxwell(setting, method, refined(setting.loops, start, setting.free), (*tied, *setting.free))


def _searched_scale(setting: Setting, method: str) -> float:
    """Return the backlash B (rad) at which a ladder fits best: a coarse scan, then the minimum next to its best."""
    part = beginning(setting.loops, MOST_SAMPLES)

    def error(log_scale: float) -> float:
        shape = ladder_shape(method, setting.elements, float(np.exp(log_scale)))
        return fit_forces(part, _leveled(setting, shape)).error

    places = np.linspace(np.log(4.0 * part.smallest), np.log(part.largest), 14)
    best = int(np.argmin([error(place) for place in places]))
    bounds = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
    return float(np.exp(minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-3}).x))


def _leveled(setting: Setting, shape: Shape) -> Shape:
    extra, speed = setting.rise or (shape.extra, shape.speed)
    return replace(shape, growth=setting.growth or 0.0, extra=extra, speed=speed, power=setting.power)


def _nlr(setting: Setting) -> Tried:
    start = _leveled(setting, Shape(_global(setting)))
    free = ("limits", *setting.free)
    return _maxwell(setting, "nlr", _distinct(setting, refined(setting.loops, start, free), free), free)


def _nlr_stribeck(setting: Setting) -> Tried:
    start = replace(_leveled(setting, Shape(_global(setting))), extra=0.1, speed=0.03)
    free = ("limits", *setting.free, "extra")
    return _maxwell(setting, "nlr-stribeck", _distinct(setting, refined(setting.loops, start, free), free), free)


def _distinct(setting: Setting, fit: Fit, free: tuple[str, ...]) -> Fit:
    """Return the fit with elements of nearly the same limit made one, unless their number was asked for."""
    while not setting.asked and (close := np.diff(np.log(fit.shape.limits)) < CLOSE).any():
        fit = refined(setting.loops, fit.shape.only(np.append(~close, True)), free)
    return fit


def _global(setting: Setting) -> Array:
    """Return the best limits of the bank's grid, as many as were chosen."""
    total = setting.bank.grams.sum(axis=0)
    choice = best_choices(*setting.bank.reduced(total), setting.chosen)[-1]
    return setting.bank.limits[list(choice)]


def _rate(setting: Setting) -> Tried:
    return _dynamic(setting, fit_rate(setting.loops, _global(setting), setting.load, setting.map))


def _lugre(setting: Setting) -> Tried:
    return _dynamic(setting, fit_lugre(setting.loops, float(_global(setting)[-1]), setting.load, setting.map))


_OTHERS: dict[str, Callable[[Setting], Tried]] = {
    "nlr": _nlr,
    "nlr-stribeck": _nlr_stribeck,
    "rate-gms": _rate,
    "lugre": _lugre,
}


def _maxwell(setting: Setting, method: str, fit: Fit, free: tuple[str, ...]) -> Tried:
    slopes = tuple("limits" if name == "scale" else name for name in free)
    grams = residual_grams(setting.loops, fit, slopes)
    if "scale" in free:
        grams = _tied(grams, len(fit.forces), len(fit.shape.limits))
    law = FrictionLaw(
        model=method,
        limits=fit.shape.limits,
        forces=fit.element_forces,
        viscous=fit.viscous,
        offset=fit.offset,
        growth=fit.shape.growth,
        extra=fit.shape.extra,
        speed=fit.shape.speed,
        backlash=setting.map,
        load=bool(fit.shape.growth > 0.0),
        most_load=float(np.abs(setting.loops.load).max()) if fit.shape.growth > 0.0 else np.inf,
        power=fit.shape.power,
    )
    jumps = choice_spread(setting.bank, len(law.limits), FOLDS) if "limits" in free else None
    tried = Tried(method, law, fit.error, np.empty(0), grams, fit, free, jumps, fit.inertia)
    places = unknowns(tried)
    logs = places.get("limits", places.get("scale", slice(0)))
    return replace(tried, held_out=linear_held_out(grams, logs))


def _tied(grams: Array, forces: int, limits: int) -> Array:
    """Return normal equations in which all limits move by the same factor."""
    p = grams.shape[1]
    turn = np.zeros((p, p - limits + 1))
    turn[:forces, :forces] = np.eye(forces)
    turn[forces : forces + limits, forces] = 1.0
    turn[forces + limits :, forces + 1 :] = np.eye(p - forces - limits)
    result: Array = turn.T @ grams @ turn
    return result


def _static(setting: Setting, fit: StaticFit) -> Tried:
    most = float(np.abs(setting.loops.load).max()) if fit.power else np.inf
    law = FrictionLaw(
        model=fit.model,
        limits=np.empty(0),
        forces=fit.forces,
        viscous=fit.viscous,
        offset=fit.offset,
        speed=fit.width,
        load=fit.power > 0.0,
        most_load=most,
        power=fit.power or 2.0,
    )
    return Tried(fit.model, law, fit.error, linear_held_out(fit.grams), fit.grams, inertia=fit.inertia)


def _dynamic(setting: Setting, fit: DynamicFit) -> Tried:
    loaded = fit.growth > 0.0
    law = FrictionLaw(
        model=fit.model,
        limits=fit.limits,
        forces=fit.forces,
        viscous=fit.viscous,
        offset=fit.offset,
        growth=fit.growth,
        extra=fit.extra,
        speed=fit.speed,
        rate=fit.rate,
        backlash=setting.map,
        load=loaded,
        most_load=float(np.abs(setting.loops.load).max()) if loaded else np.inf,
        power=setting.power,
    )
    return Tried(fit.model, law, fit.error, fit.held_out, fit.grams, free=setting.free, inertia=fit.inertia)


def unknowns(tried: Tried) -> dict[str, slice]:
    """Return where the unknowns of a slip model stand: forces, limits or scale, growth, extra, viscous and offset."""
    assert tried.fit is not None
    sizes = {
        "forces": len(tried.fit.forces),
        "limits": len(tried.fit.shape.limits),
        "scale": 1,
        "growth": 1,
        "extra": 2,
    }
    places, at = {}, 0
    for name in ("forces", *tried.free):
        places[name] = slice(at, at + sizes[name])
        at += sizes[name]
    places["nuisance"] = slice(at, at + NUISANCE)
    return places
