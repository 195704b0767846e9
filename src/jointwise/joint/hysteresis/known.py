"""What is known before a hysteresis fit: backlash, viscous friction, growth with the load and Stribeck rise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from jointwise.errors import EstimationError, ModelError
from jointwise.joint.checks import refuse
from jointwise.joint.friction.data import LOAD_QUANTILES
from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.hysteresis.law import USUAL_SPEED, FrictionLaw, usual_exponent
from jointwise.joint.load.law import load_law_of
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.joint.transmission.law import backlash_table, transmission_of
from jointwise.model.friction import LOAD_POWERS, load_growth, viscous_torque
from jointwise.spatial import Array

Viscous = Callable[[Array, Array | None], Array]
"""Known viscous friction (samples,) in Nm as a function of speed (samples,) in rad/s and temperature (°C or None)."""
Backlash = float | Sequence[float] | Array | Part
"""Backlash B in rad, a map of it over one turn (points,), or a transmission part."""

MIN_LOAD = 1.0
"""Load (Nm) below which its growth of friction is not visible beside sensor noise."""
MIN_LOAD_SPAN = 0.2
"""Smallest range of the load, relative to the largest one, in which growth is estimated."""
NO_FRICTION = 1e-9
"""Dry friction (Nm) without load below which it is taken as this one: its growth is then at the end of the range."""
GROWTH_RANGE = (0.01, 10.0)
"""Range of the dry friction added by the largest load, relative to that without load, in which a search starts."""


def viscous_friction(steady: Viscous | Part | None, record: JointRecord) -> Array:
    """Return known viscous friction (samples,), Nm; that of a part is ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³``."""
    if steady is None:
        return np.zeros(record.samples)
    if not isinstance(steady, Part):
        return steady(record.speed, record.temperature)
    if steady.phenomenon != "friction":
        raise ModelError(f"part must be of friction. Got '{steady.phenomenon}' instead.")
    return viscous_torque(record.speed, [steady.get(name) for name in ("F_V1", "F_V2", "F_V3")])


@dataclass(frozen=True)
class Rise:
    """Stribeck rise of dry friction towards standstill, ``1 + e exp(-(|ω|/V)^μ)``: `extra` e, `speed` V in rad/s."""

    extra: float
    speed: float
    exponent: float = 1.0


def known_rise(steady: object) -> Rise | None:
    """Return the Stribeck rise of a friction part relative to its F_C; None without one, or for anything else."""
    if not isinstance(steady, Part):
        return None
    coulomb, speed = steady.get("F_C"), steady.get("V_S")
    if not (coulomb > 0.0 and speed > 0.0):
        return None
    return Rise(steady.get("F_S-F_C") / coulomb, speed, steady.get("mu", 1.0))


@dataclass(frozen=True)
class Growth:
    """Growth of dry friction with the load, ``F_C (1 + c |τ|^p)``.

    `start`: c at which the search starts, None for friction that does not depend on the load. `power`: p. `fixed`: c is
    known and not estimated.
    """

    start: float | None = None
    power: float = 2.0
    fixed: bool = False


NO_GROWTH = Growth()


@dataclass(frozen=True, eq=False)
class KnownFriction:
    """What is known before the fit.

    Attributes:
        scale: Mean backlash B, rad, or None.
        map: Backlash over one turn, (points,), or None.
        growth: Growth of friction with the load.
        rise: Stribeck rise towards standstill, or None.
    """

    scale: float | None = None
    map: Array | None = None
    growth: Growth = NO_GROWTH
    rise: Rise | None = None

    @property
    def free(self) -> tuple[str, ...]:
        """The free parameters of the level: ("growth",) or ()."""
        return () if self.growth.start is None or self.growth.fixed else ("growth",)

    def law(self, model: str, limits: Array) -> FrictionLaw:
        """Return the law from which the fit of a model starts."""
        rise = self.rise or Rise(0.0, USUAL_SPEED, usual_exponent(model))
        return FrictionLaw(
            model=model,
            limits=limits,
            forces=np.empty(0),
            growth=self.growth.start or 0.0,
            power=self.growth.power,
            extra=rise.extra,
            speed=rise.speed,
            exponent=rise.exponent,
            backlash=self.map,
        )


def mean_and_map(backlash: Backlash | None) -> tuple[float | None, Array | None]:
    """Return the mean backlash (rad; None if unknown) and its map over one turn, (points,) (None if constant).

    The lost motion of a transmission part has the shape of the map, not its size; it is not used where it found none.
    """
    if backlash is None:
        return None, None
    if isinstance(backlash, Part):
        maps, table = transmission_of(backlash), backlash_table(backlash)
        return None, table if maps.reach > 0.0 and (table > 0.0).all() else None
    values = np.atleast_1d(np.asarray(backlash, dtype=float))
    if values.ndim != 1 or not np.isfinite(values).all() or not (values > 0.0).all():
        raise EstimationError("backlash must be positive: one value in rad, or values over one turn.")
    return float(values.mean()), values if len(values) > 1 else None


def candidate_growths(record: JointRecord, loops: Loops, load: str | Part) -> tuple[Growth, ...]:
    """Return the load laws to try, the simplest first.

    A load part fixes the law. Its factor came from other data: where the load varies here, it is estimated again, else
    it is kept. A load part that found no growth leaves the choice to these data.

    Raises:
        EstimationError: Where a law is requested and the load does not vary.
        ModelError: For an unknown law.
    """
    if isinstance(load, Part):
        law = load_law_of(load)
        if law.kind != "none" and not _load_varies(loops):
            return (_kept(loops, LOAD_POWERS[law.kind], law.factor),)
        load = "auto" if law.kind == "none" else law.kind
    if load in LOAD_POWERS:
        _check_load(record, loops)
        return (_started(loops, LOAD_POWERS[load]),)
    if load not in ("auto", "none"):
        choices = ", ".join(("auto", "none", *LOAD_POWERS))
        raise ModelError(f"load must be one of {choices}, or a load part. Got '{load}' instead.")
    powers = LOAD_POWERS.values() if load == "auto" and _load_varies(loops) else ()
    return (NO_GROWTH, *map(partial(_started, loops), powers))


def _check_load(record: JointRecord, loops: Loops) -> None:
    if not _load_varies(loops):
        low, high = _load_range(loops)
        raise refuse(record, "hysteresis", f"the load never varies ({low:.3g} to {high:.3g} Nm)")


def _load_range(loops: Loops) -> Array:
    return np.quantile(np.abs(loops.load), LOAD_QUANTILES)


def _load_varies(loops: Loops) -> bool:
    """Return whether the load is large enough and varies."""
    low, high = _load_range(loops)
    return bool(high >= MIN_LOAD and high - low >= MIN_LOAD_SPAN * high)


def _started(loops: Loops, power: float) -> Growth:
    """Return c of ``F_C (1 + c |τ|^p) sgn ω``, without viscous friction, which takes all of it at a single speed."""
    level, grown = _dry_forces(loops, load_growth(loops.load, power))
    least, most = np.array(GROWTH_RANGE) / float(_load_range(loops)[1]) ** power
    return Growth(float(np.clip(grown / max(level, NO_FRICTION), least, most)), power)


def _kept(loops: Loops, power: float, factor: float) -> Growth:
    """Return the c at which the known growth ``F_l |τ|^p`` is part of the measured friction."""
    level = _dry_forces(loops)[0] - factor * float(np.mean(load_growth(loops.load[loops.used], power)))
    return Growth(factor / level, power, fixed=True) if level > 0.0 and factor > 0.0 else NO_GROWTH


def _dry_forces(loops: Loops, *factors: Array) -> Array:
    """Return the coefficients of sgn ω and of it times each factor, by least squares with an offset."""
    direction, used = np.sign(loops.speed), loops.used
    columns = np.column_stack([direction, *(factor * direction for factor in factors), np.ones(len(direction))])[used]
    result: Array = np.linalg.lstsq(columns, loops.friction[used], rcond=None)[0][:-1]
    return result
