"""Data of temperature-dependent friction: pairs of runs forward and back at constant speeds during a warm-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jointwise.estimation.jackknife import equal_blocks
from jointwise.joint.checks import refuse
from jointwise.joint.friction.data import VISIBLE_WARMING, Flags, Indices, find_plateaus, opposite_runs
from jointwise.joint.quality import TEST_EVERY
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

COLDEST = 2.0
"""Temperature (°C) below which T⁻³ is not used: it diverges at 0 °C."""
CUBE = -3.0
"""Power of the temperature in the three-parameter law."""
MIN_PAIRS = 12
"""Fewest pairs of runs for a fit: three times the parameters of the largest law."""
WRONG_SIGN_SHARE = 0.9
"""Fraction of pairs in which friction accelerates the joint above which the sign of the current must be wrong."""


@dataclass(frozen=True, eq=False)
class TemperaturePairs:
    """Pairs of runs, (pairs,): `friction` without offset, Nm, `speed` > 0, rad/s, `temperature`, °C.

    `inverse_cube` is the mean of T⁻³ over the runs, which is not that of the mean T; `level` numbers the speed, `block`
    the block of time.
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
    return np.maximum(temperature, COLDEST) ** CUBE


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
    if np.mean(pairs.friction < 0.0) > WRONG_SIGN_SHARE:
        raise refuse(record, "temperature", "friction does not oppose the motion (sign of the current)")
