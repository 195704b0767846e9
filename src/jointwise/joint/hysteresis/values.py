"""The numbers of a fitted law with their 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jointwise.joint.hysteresis.dynamic import BOUNDS
from jointwise.joint.hysteresis.grams import NUISANCE
from jointwise.joint.hysteresis.loops import COUNTS, Loops
from jointwise.joint.hysteresis.methods import Tried, unknowns
from jointwise.joint.hysteresis.refine import SPEEDS
from jointwise.joint.hysteresis.rivals import Doubt, Moves, doubt_of
from jointwise.joint.hysteresis.uncertainty import gram_jackknife
from jointwise.joint.part import Value, value_of
from jointwise.spatial import Array

LARGEST_LOG = 50.0
"""A logarithm that is less sure than this says nothing."""


def values_of(tried: Tried, loops: Loops, scale: float | None, moves: Sequence[Moves] = ()) -> tuple[Value, ...]:
    """Return the values of any method; `scale` is the backlash B (rad) where it was given, `moves` those of rivals."""
    covariance, factor = gram_jackknife(tried.grams)
    doubt = doubt_of(moves, tried.law.forces)
    beside = _nuisance(tried, covariance, factor, doubt, told=bool(loops.acceleration.any()))
    if tried.fit is not None:
        return (*_slip_values(tried, loops, covariance, factor, scale, doubt), *beside)
    if tried.method in ("rate-gms", "lugre"):
        return (*_dynamic_values(tried, covariance, factor), *beside)
    return (*_static_values(tried, covariance, factor), *beside)


def _slip_values(
    tried: Tried, loops: Loops, covariance: Array, factor: float, scale: float | None, doubt: Doubt
) -> tuple[Value, ...]:
    """Return forces, limits and stiffnesses; a limit is blurred by the step of the encoder.

    What the choice of the path and of the ladder, and known friction over speed, are worth is added to all of them.
    """
    fit, law, places = tried.fit, tried.law, unknowns(tried)
    assert fit is not None
    count, p = len(law.limits), len(covariance)
    mix = np.eye(count) if fit.shape.mix is None else fit.shape.mix
    force, log_limit = np.zeros((count, p)), np.zeros((count, p))
    force[:, places["forces"]] = mix
    if "limits" in places:
        log_limit[:, places["limits"]] = np.eye(count)
    if "scale" in places:
        log_limit[:, places["scale"]] = 1.0

    def deviation(slope: Array) -> float:
        return math.sqrt(max(float(slope @ covariance @ slope), 0.0))

    jump_limit, jump_force = (np.zeros(count), np.zeros(count)) if tried.jumps is None else tried.jumps
    total = float(law.forces.sum())
    jump_limit = np.hypot(jump_limit, loops.resolution / (COUNTS * math.sqrt(12.0)) / law.limits)
    blur = np.hypot(jump_limit, doubt.limits)
    level = math.hypot(deviation(force.sum(axis=0)), doubt.total)
    found = [value_of("F_C", "Nm", total, level, factor)]
    largest = scale if scale is not None else float(law.limits[-1])
    found.append(_positive("B", "rad", largest, math.hypot(deviation(log_limit[-1]), blur[-1]), factor))
    for i, (W, D) in enumerate(zip(law.forces, law.limits, strict=True)):
        along = math.hypot(deviation(force[i] / W - log_limit[i]), jump_limit[i], jump_force[i] / W, doubt.stiffness[i])
        size = math.hypot(deviation(force[i]), jump_force[i], doubt.forces[i])
        found.append(_not_negative(value_of(f"W{i + 1}", "Nm", W, size, factor)))
        found.append(_positive(f"D{i + 1}", "rad", D, math.hypot(deviation(log_limit[i]), blur[i]), factor))
        found.append(_positive(f"k{i + 1}", "Nm/rad", W / D, along, factor))
    if "growth" in places:
        slope = np.eye(p)[places["growth"]][0]
        found.append(_grown(tried, total, force.sum(axis=0), slope, covariance, factor, doubt.growth))
    if "extra" in places:
        slope, speed = law.extra * force.sum(axis=0), np.zeros(p)
        slope[places["extra"].start], speed[places["extra"].stop - 1] = total, 1.0
        at_rest = deviation(slope + force.sum(axis=0))
        found.append(value_of("F_S", "Nm", (1.0 + law.extra) * total, at_rest, factor))
        found.append(value_of("F_S-F_C", "Nm", law.extra * total, deviation(slope), factor))
        found.append(_within(_positive("V_S", "rad/s", law.speed, deviation(speed), factor), SPEEDS))
    return tuple(found)


def _dynamic_values(tried: Tried, covariance: Array, factor: float) -> tuple[Value, ...]:
    """Return all numbers of a model with rate; what was searched stays inside its range, all of it where not told."""
    law, p = tried.law, len(covariance)
    count = len(law.forces)
    unit = np.eye(p)
    length, (extra, speed, *rate) = unit[count : count + len(law.limits)], unit[count + len(law.limits) : -NUISANCE]

    def deviation(slope: Array) -> float:
        return math.sqrt(max(float(slope @ covariance @ slope), 0.0))

    lugre = law.model == "lugre"
    size = float(law.forces[0] if lugre else law.forces.sum())
    force: Array = unit[0] if lugre else unit[:count].sum(axis=0)
    rise = law.extra * force + size * extra
    found = [
        value_of("F_C", "Nm", size, deviation(force), factor),
        value_of("F_S", "Nm", (1.0 + law.extra) * size, deviation(force + rise), factor),
        _not_negative(value_of("F_S-F_C", "Nm", law.extra * size, deviation(rise), factor)),
        _searched("V_S", "rad/s", law.speed, deviation(speed), factor, BOUNDS["speed"]),
    ]
    if tried.free:
        found.append(_grown(tried, size, force, unit[-NUISANCE - 1], covariance, factor))
    if lugre:
        D = float(law.limits[0])
        relative = deviation(force / max(size, 1e-12) - length[0])
        damping = deviation(unit[1] / D - law.forces[1] / D * length[0])
        found.append(_searched("length", "rad", D, deviation(length[0]), factor, BOUNDS["length"]))
        found.append(_positive("s0", "Nm/rad", size / D, relative, factor))
        return (*found, _not_negative(value_of("s1", "Nm s/rad", law.forces[1] / D, damping, factor)))
    for i, (W, D) in enumerate(zip(law.forces, law.limits, strict=True)):
        found.append(_not_negative(value_of(f"W{i + 1}", "Nm", W, deviation(unit[i]), factor)))
        found.append(_searched(f"D{i + 1}", "rad", D, deviation(length[i]), factor, BOUNDS["length"]))
    return (*found, _searched("rate", "1/s", law.rate, deviation(rate[0]), factor, BOUNDS["rate"]))


def _grown(
    tried: Tried, size: float, force: Array, growth: Array, covariance: Array, factor: float, doubt: float = 0.0
) -> Value:
    """Return ``F_C1 = c F_C``: `size` F_C (Nm), `force` and `growth` the derivatives of F_C and c by all unknowns.

    `doubt`: the deviation that choices add.
    """
    law, slope = tried.law, tried.law.growth * force + size * growth
    deviation = math.sqrt(max(float(slope @ covariance @ slope), 0.0) + doubt**2)
    return _not_negative(value_of("F_C1", _load_unit(law.power), law.growth * size, deviation, factor))


def _searched(name: str, unit: str, value: float, relative: float, factor: float, bounds: tuple[float, float]) -> Value:
    """Return a positive number that was searched within bounds; all of them where nothing depends on it."""
    if relative > 0.0:
        return _within(_positive(name, unit, float(value), relative, factor), bounds)
    return Value(name, unit, float(value), bounds[1] - bounds[0], *bounds)


def _static_values(tried: Tried, covariance: Array, factor: float) -> tuple[Value, ...]:
    names = [("F_C", "Nm")]
    names += [("F_C1", _load_unit(tried.law.power))] if tried.law.load else []
    names += [("F_S-F_C", "Nm")] if tried.method == "stribeck" else []
    return tuple(_forces(tried, names, covariance, factor))


def _load_unit(power: float) -> str:
    return "1" if power == 1.0 else "1/Nm"


def _forces(tried: Tried, names: list[tuple[str, str]], covariance: Array, factor: float) -> list[Value]:
    """Return the forces; one at its bound of zero has no column and no deviation."""
    deviations = iter(np.sqrt(np.diag(covariance)))
    found = zip(names, tried.law.forces, strict=True)
    return [value_of(*name, W, next(deviations) if W > 0.0 else 0.0, factor) for name, W in found]


def _nuisance(tried: Tried, covariance: Array, factor: float, doubt: Doubt, told: bool) -> tuple[Value, ...]:
    """Return what stands beside friction with memory; `told`: the rotor's inertia was estimated along."""
    inertia, viscous, offset = np.sqrt(np.diag(covariance))[-3:]
    found = (value_of("inertia", "kg m²", tried.inertia, inertia, factor),) if told else ()
    return (
        *found,
        value_of("F_V", "Nm s/rad", tried.law.viscous, math.hypot(viscous, doubt.viscous), factor),
        value_of("offset", "Nm", tried.law.offset, math.hypot(offset, doubt.offset), factor),
    )


def _not_negative(value: Value) -> Value:
    """Return a number that cannot be negative with its interval cut at zero."""
    return replace(value, low=max(value.low, 0.0), high=max(value.high, 0.0))


def _within(value: Value, bounds: tuple[float, float]) -> Value:
    """Return a number with its interval inside the range that was searched."""
    low, high = bounds
    return replace(value, low=max(value.low, min(low, value.value)), high=min(value.high, max(high, value.value)))


def _positive(name: str, unit: str, value: float, relative: float, factor: float) -> Value:
    """Return a positive number whose logarithm has the deviation `relative`, in numbers that a file can hold."""
    reach = math.exp(min(factor * relative, LARGEST_LOG))
    return Value(name, unit, value, value * min(relative, LARGEST_LOG), value / reach, value * reach)
