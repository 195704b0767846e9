"""Fit of temperature-dependent friction to pairs of runs forward and back at constant speeds during a warm-up.

Every speed has its friction at the reference temperature, and the law adds to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from jointwise.estimation.jackknife import equal_blocks
from jointwise.estimation.linear_fit import JackknifeFit, derivatives, jackknife_fit, scaled_solution
from jointwise.joint.checks import refuse
from jointwise.joint.friction.data import (
    VISIBLE_WARMING,
    Flags,
    Indices,
    find_plateaus,
    level_columns,
    opposite_runs,
)
from jointwise.joint.part import STARTS, TEST_EVERY, rms
from jointwise.joint.record import JointRecord
from jointwise.model.friction import root_speed, thermal_decay
from jointwise.spatial import Array

COLDEST = 2.0
"""Temperature (°C) below which T⁻³ is not used: it diverges at 0 °C."""
MIN_PAIRS = 12
"""Fewest pairs of runs for a fit: three times the parameters of the largest law."""
MAX_EXPONENT = 4.0
"""Largest exponent |ω| (b_0 + b_1 T) that is sought: beyond, the exponential has vanished."""
EXPONENT_STARTS = 4
"""Starts of each exponent, evenly within these bounds: of both signs, none of them zero."""


@dataclass(frozen=True, eq=False)
class TemperaturePairs:
    """Pairs of runs forward and back at one speed, (pairs,) each.

    Attributes:
        friction: Friction without offset, Nm.
        speed: Speed, > 0, rad/s.
        temperature: Mean temperature of the two runs, °C.
        inverse_cube: Mean of T⁻³ over the runs, which is not that of the mean T, 1/°C³.
        level: Number of the speed.
        block: Number of the block of time.
    """

    friction: Array
    speed: Array
    temperature: Array
    inverse_cube: Array
    level: Indices
    block: Indices

    @property
    def levels(self) -> int:
        """Number of speeds."""
        return int(self.level.max()) + 1

    @property
    def held_out(self) -> Flags:
        """Flags of the pairs held out for the test: every fourth block of time."""
        return np.asarray(self.block % TEST_EVERY == TEST_EVERY // 2)


def inverse_cube(temperature: ArrayLike) -> Array:
    """Return T⁻³ of temperatures, °C, limited to `COLDEST`."""
    return np.maximum(temperature, COLDEST) ** -3.0


def temperature_pairs(record: JointRecord) -> TemperaturePairs:
    """Return the pairs of runs of a record with their temperatures; raises if they do not determine a law."""
    if record.temperature is None:
        raise refuse(record, "temperature", "no temperature in the log")
    plateaus = find_plateaus(record)
    found = opposite_runs(plateaus)
    if len(found) < MIN_PAIRS:
        count = f"only {len(found)} run{'s' if len(found) > 1 else ''}" if found else "no run"
        reason = f"{count} forward and back at constant speeds in the log (at least {MIN_PAIRS} are needed)"
        raise refuse(record, "temperature", reason)
    forward, back = np.array(found).T
    assert plateaus.temperature is not None
    inverse = plateaus.means(inverse_cube(record.temperature))
    pairs = TemperaturePairs(
        friction=0.5 * (plateaus.friction[forward] - plateaus.friction[back]),
        speed=0.5 * (plateaus.speed[forward] - plateaus.speed[back]),
        temperature=0.5 * (plateaus.temperature[forward] + plateaus.temperature[back]),
        inverse_cube=0.5 * (inverse[forward] + inverse[back]),
        level=np.unique(plateaus.levels[forward], return_inverse=True)[1],
        block=equal_blocks(len(forward)),
    )
    _check(record, pairs)
    return pairs


def _check(record: JointRecord, pairs: TemperaturePairs) -> None:
    T = pairs.temperature
    if np.ptp(T) < VISIBLE_WARMING:
        raise refuse(record, "temperature", f"no temperature change ({T.min():.1f} to {T.max():.1f} °C) in the log")
    if pairs.friction.max() <= 0.0:
        raise refuse(record, "temperature", "friction does not oppose the motion (sign of the current)")


@dataclass(frozen=True, eq=False)
class TemperatureModel:
    """A law to be fitted to pairs of runs.

    Parameters: the friction of every speed at T0, then those of the law, with the rates b_0 and b_1 of the
    affine-exponential law last.

    Attributes:
        law: Kind of the law, as in `TemperatureLaw`.
        pairs: The pairs of runs.
        reference: Reference temperature T0, °C.
    """

    law: str
    pairs: TemperaturePairs
    reference: float

    @property
    def rates(self) -> int:
        """Number of nonlinear parameters."""
        return 2 if self.law == "affine-exponential" else 0

    def columns(self, rates: Array) -> Array:
        """Return the regressor (pairs, linear parameters): the friction at T0, then the law as a difference to T0."""
        pairs, T, T0 = self.pairs, self.pairs.temperature, self.reference
        base = level_columns(pairs.level)
        if self.law == "affine-exponential":
            now, then = (thermal_decay(pairs.speed, t, rates) for t in (T, T0))
            return np.column_stack([base, now - then, T * now - T0 * then])
        root = root_speed(pairs.speed)
        columns = [root * (T - T0), root * (pairs.inverse_cube - inverse_cube(T0))]
        return np.column_stack([base, *columns[: {"none": 0, "linear": 1}.get(self.law, 2)]])

    def friction(self, values: Array) -> Array:
        """Return the friction (pairs,), Nm, of all parameters."""
        linear, rates = self._split(values)
        return self.columns(rates) @ linear

    def sensitivity(self, values: Array) -> Array:
        """Return the derivative of the friction by all parameters, (pairs, parameters)."""
        linear, rates = self._split(values)
        return np.column_stack([self.columns(rates), derivatives(lambda b: self.columns(b) @ linear, rates)])

    def solve(self, use: Flags) -> Array:
        """Return the least-squares parameters for the pairs in use."""
        rates = self._fit_rates(use) if self.rates else np.empty(0)
        return np.concatenate([self._solve_linear(rates, use), rates])

    def fit(self) -> JackknifeFit:
        """Return the fit to all pairs, leaving out one block of time at a time."""
        values = self.solve(np.ones(len(self.pairs.friction), dtype=bool))
        residual = self.friction(values) - self.pairs.friction
        return jackknife_fit(values, residual, self.sensitivity(values), self.pairs.block, rms(residual))

    def _split(self, values: Array) -> tuple[Array, Array]:
        count = len(values) - self.rates
        return values[:count], values[count:]

    def _solve_linear(self, rates: Array, use: Flags) -> Array:
        return scaled_solution(self.columns(rates)[use], self.pairs.friction[use])

    def _fit_rates(self, use: Flags) -> Array:
        """Return b_0 and b_1 by variable projection from several starts.

        They are sought as the exponents at the coldest and the hottest temperature of the highest speed.
        """
        fastest = float(self.pairs.speed.max())
        cold, hot = float(self.pairs.temperature.min()), float(self.pairs.temperature.max())

        def rates(exponents: Array) -> Array:
            slope = (exponents[1] - exponents[0]) / (hot - cold) / fastest
            return np.array([exponents[0] / fastest - slope * cold, slope])

        def residual(exponents: Array) -> Array:
            b = rates(exponents)
            return (self.pairs.friction - self.columns(b) @ self._solve_linear(b, use))[use]

        inside = np.linspace(-MAX_EXPONENT, MAX_EXPONENT, EXPONENT_STARTS + 2)[1:-1]
        starts = [np.array(start) for start in product(inside, repeat=2)]
        best = sorted(starts, key=lambda start: rms(residual(start)))[:STARTS]
        fits = [least_squares(residual, start, bounds=(-MAX_EXPONENT, MAX_EXPONENT)) for start in best]
        return rates(min(fits, key=lambda fit: float(fit.cost)).x)
