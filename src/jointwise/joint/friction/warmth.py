"""Fits of friction over temperature to runs to and fro at constant speeds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import stdtrit

from jointwise.joint.friction.grouped import Linear, covariance
from jointwise.joint.friction.plateaus import find_plateaus, opposite_runs, run_means
from jointwise.joint.part import Alternative
from jointwise.joint.quality import nrmse_percent, rms
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

Flags = NDArray[np.bool_]

LEAST_CHANGE = 3.0
"""Change of temperature (K) that a fit needs."""
COLDEST = 2.0
"""Temperature (°C) below which T⁻³ is not used: it is singular at 0 °C."""
FEWEST_PAIRS = 12
"""Ways to and fro that a fit needs."""
WRONG_SIGN = 0.9
"""Part of the ways on which friction drives the joint from which its sign is wrong."""
BLOCKS = 24
"""Blocks of time: the unit of deviations and of held-out data."""
FOLDS = 5
STEEPEST = 4.0
"""Largest exponent of the exponential law that is tried."""
STEP = 1e-6
"""Step of the numerical derivative in the rates."""
PARAMETERS = {"none": 0, "linear": 2, "three-parameter": 3, "affine-exponential": 4}
"""Laws that are tried and how many numbers each has, the friction at the reference among them."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Ways to and fro at constant speeds, (pairs,): friction without offset, Nm, size of the speed, temperature, °C.

    `cold` is the mean of T⁻³, which is not that of the mean; `level` numbers the speed, `block` the block of time.
    """

    friction: Array
    speed: Array
    temperature: Array
    cold: Array
    level: NDArray[np.intp]
    block: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Warming:
    """Pairs and T0 (°C), the temperature at which every speed has a friction of its own."""

    pairs: Pairs
    reference: float

    @property
    def y(self) -> Array:
        """What is to be explained: friction (pairs,), Nm."""
        return self.pairs.friction

    @property
    def levels(self) -> int:
        """How many numbers stand for the friction at the reference: one a speed."""
        return int(self.pairs.level.max()) + 1

    @property
    def everything(self) -> Flags:
        """All pairs."""
        return np.ones(len(self.y), dtype=bool)


def temperature_pairs(record: JointRecord) -> Pairs:
    """Return the runs to and fro of a record with their temperatures, or say why there are none."""
    if record.temperature is None:
        raise refuse(record, "temperature", "no temperature in the log")
    plateaus = find_plateaus(record)
    found = opposite_runs(plateaus)
    if len(found) < FEWEST_PAIRS:
        count = f"only {len(found)} run{'s' if len(found) > 1 else ''}" if found else "no run"
        what = f"{count} to and fro at constant speeds in the log (at least {FEWEST_PAIRS} are needed)"
        raise refuse(record, "temperature", what)
    there, home = np.array(found).T
    assert plateaus.temperature is not None
    T = 0.5 * (plateaus.temperature[there] + plateaus.temperature[home])
    if np.ptp(T) < LEAST_CHANGE:
        raise refuse(record, "temperature", f"no temperature change ({T.min():.1f} to {T.max():.1f} °C) in the log")
    friction = 0.5 * (plateaus.friction[there] - plateaus.friction[home])
    if np.mean(friction < 0.0) > WRONG_SIGN:
        raise refuse(record, "temperature", "friction does not oppose the motion (sign of the current)")
    cold = run_means(np.maximum(record.temperature, COLDEST) ** -3.0, plateaus)
    return Pairs(
        friction=friction,
        speed=0.5 * (plateaus.speed[there] - plateaus.speed[home]),
        temperature=T,
        cold=0.5 * (cold[there] + cold[home]),
        level=np.unique(plateaus.levels[there], return_inverse=True)[1],
        block=np.arange(len(there)) * min(BLOCKS, len(there)) // len(there),
    )


def held_out(pairs: Pairs) -> Flags:
    """Tell which pairs are kept for the test: every fourth block of time."""
    return np.asarray(pairs.block % 4 == 2)


def columns(data: Warming, law: str, rates: Array) -> Array:
    """Return the regressor (pairs, numbers): the friction at the reference, then the law as a difference to T0."""
    pairs, T, T0 = data.pairs, data.pairs.temperature, data.reference
    root = np.sqrt(pairs.speed)
    base = (pairs.level[:, None] == np.arange(data.levels)).astype(float)
    if law == "affine-exponential":
        now, then = (np.exp(-pairs.speed * (rates[0] + rates[1] * t)) for t in (T, T0))
        return np.column_stack([base, now - then, T * now - T0 * then])
    parts = [root * (T - T0), root * (pairs.cold - T0**-3.0)]
    return np.column_stack([base, *parts[: {"none": 0, "linear": 1}.get(law, 2)]])


def fit_law(data: Warming, law: str) -> Linear:
    """Return the numbers of a law, its rates last, with deviations by block of time."""
    rates = _rates(data, law, data.everything)
    x = _solve(data, law, rates, data.everything)
    J, residual = sensitivity(data, law, np.concatenate([x, rates])), data.y - columns(data, law, rates) @ x
    freedom = max(1, len(np.unique(data.pairs.block)) - J.shape[1])
    known = covariance(J, residual, data.pairs.block)
    return Linear(np.concatenate([x, rates]), known, float(stdtrit(freedom, 0.975)))


def modelled(data: Warming, law: str, values: Array) -> Array:
    """Return the friction (pairs,), Nm, of a law with its numbers, rates last."""
    count = len(values) - 2 * (law == "affine-exponential")
    result: Array = columns(data, law, values[count:]) @ values[:count]
    return result


def sensitivity(data: Warming, law: str, values: Array) -> Array:
    """Return the derivative of the friction by all numbers, (pairs, numbers)."""
    steps = STEP * np.eye(len(values))[len(values) - 2 * (law == "affine-exponential") :]
    bent = [(modelled(data, law, values + s) - modelled(data, law, values - s)) / (2.0 * STEP) for s in steps]
    return np.column_stack([columns(data, law, values[len(values) - len(steps) :]), *bent])


def quality(data: Warming, friction: Array, use: Flags) -> float:
    """Return the NRMSE % of the temperature's effect: friction and model without the mean of every speed."""
    levels, y = data.pairs.level[use], data.y[use]
    mean = np.bincount(levels, y) / np.maximum(np.bincount(levels), 1)
    return nrmse_percent(y - mean[levels], friction[use] - mean[levels])


def alternative(data: Warming, law: str, test: Flags) -> Alternative:
    """Return the quality of a law that was fitted to the other pairs than `test`, on both."""
    friction = _predict(data, law, ~test)
    note = f"{PARAMETERS[law]} parameters"
    return Alternative(law, quality(data, friction, ~test), quality(data, friction, test), note)


def choose_law(data: Warming, laws: list[str], use: Flags) -> str:
    """Return the law with the least error in cross-validation, a simpler one if it is within one standard error."""
    errors = {law: _unseen_errors(data, law, use) for law in laws if law != "none"}
    best = min(errors, key=lambda law: float(errors[law].mean()))
    for law, own in errors.items():
        more = own - errors[best]
        if more.mean() <= more.std(ddof=1) / np.sqrt(len(more)):
            return law
    return best


def _unseen_errors(data: Warming, law: str, use: Flags) -> Array:
    """Return the mean squared error of every block in use, predicted without its fold."""
    fold, squares = data.pairs.block % FOLDS, np.zeros(len(data.y))
    for k in range(FOLDS):
        own = use & (fold == k)
        squares[own] = (data.y - _predict(data, law, use & (fold != k)))[own] ** 2
    blocks = data.pairs.block[use]
    return np.array([squares[use][blocks == b].mean() for b in np.unique(blocks)])


def _predict(data: Warming, law: str, use: Flags) -> Array:
    """Return the friction of all pairs by a law fitted to those in use."""
    rates = _rates(data, law, use)
    return modelled(data, law, np.concatenate([_solve(data, law, rates, use), rates]))


def _solve(data: Warming, law: str, rates: Array, use: Flags) -> Array:
    A = columns(data, law, rates)
    scale = np.linalg.norm(A[use], axis=0) + 1e-300
    result: Array = np.linalg.lstsq(A[use] / scale, data.y[use], rcond=1e-10)[0] / scale
    return result


def _rates(data: Warming, law: str, use: Flags) -> Array:
    """Return b_0 and b_1 of the exponential law by variable projection from several starts; none for the others.

    They are sought as the exponents at the coldest and the hottest temperature of the fastest speed.
    """
    if law != "affine-exponential":
        return np.empty(0)
    T, fastest = data.pairs.temperature, float(data.pairs.speed.max())
    cold, hot = float(T.min()), float(T.max())

    def rates(ends: Array) -> Array:
        slope = (ends[1] - ends[0]) / (hot - cold) / fastest
        return np.array([ends[0] / fastest - slope * cold, slope])

    def residual(ends: Array) -> Array:
        A = columns(data, law, rates(ends))
        result: Array = (data.y - A @ _solve(data, law, rates(ends), use))[use]
        return result

    starts = [np.array(start) for start in product((-2.0, -0.3, 0.4, 2.2), repeat=2)]
    best = sorted(starts, key=lambda start: rms(residual(start)))[:3]
    found = [least_squares(residual, start, bounds=(-STEEPEST, STEEPEST), max_nfev=80) for start in best]
    return rates(min(found, key=lambda own: float(own.cost)).x)
