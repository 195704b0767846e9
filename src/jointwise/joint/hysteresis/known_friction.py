"""What is known before a hysteresis fit: viscous friction, the Stribeck rise, the law of the load, backlash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from jointwise.document import decode
from jointwise.errors import ModelError
from jointwise.joint.checks import refuse
from jointwise.joint.hysteresis.data import Loops, Viscous
from jointwise.joint.hysteresis.law import FrictionLaw, usual_exponent
from jointwise.joint.hysteresis.normal_equations import Bank, best_choices
from jointwise.joint.load import load_law_of
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.model.friction import LOAD_POWERS, load_growth, viscous_torque
from jointwise.spatial import Array

KNOWN = ("F_C", "F_S-F_C", "V_S", "mu", "F_V1", "F_V2", "F_V3")
"""Values of a friction part that a hysteresis fit takes as known."""
LOGARITHMIC = ("V_S", "mu")
"""Those whose covariance in a friction part is that of their logarithm."""
MIN_LOAD = 1.0
"""Load (Nm) below which its growth of friction is not visible beside sensor noise."""
MAX_GROWTH = 10.0
"""Dry friction added by the largest load, relative to that without load, up to which growth is searched."""


# -- viscous friction and the Stribeck rise --------------------------------------------------------------------------


@dataclass(frozen=True)
class Rise:
    """Stribeck rise of dry friction towards standstill, ``1 + e exp(-(|ω|/V)^μ)``: `extra` e, `speed` V in rad/s."""

    extra: float
    speed: float
    exponent: float = 1.0


def viscous_friction(steady: Viscous | Part | None, record: JointRecord) -> Array:
    """Return known viscous friction (samples,), Nm; that of a part is ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³``."""
    if steady is None:
        return np.zeros(record.samples)
    if not isinstance(steady, Part):
        return steady(record.speed, record.temperature)
    if steady.phenomenon != "friction":
        raise ModelError(f"steady must be a friction part or a function of speed. Got '{steady.phenomenon}' instead.")
    values = {value.name: value.value for value in steady.values}
    return viscous_torque(record.speed, [values.get(name, 0.0) for name in ("F_V1", "F_V2", "F_V3")])


def known_rise(steady: Viscous | Part | None) -> Rise | None:
    """Return the Stribeck rise of a friction part relative to its F_C, None without one."""
    if not isinstance(steady, Part):
        return None
    values = {value.name: value.value for value in steady.values}
    if not {"F_C", "F_S-F_C", "V_S"} <= values.keys() or not values["F_C"] > 0.0:
        return None
    return Rise(values["F_S-F_C"] / values["F_C"], values["V_S"], values.get("mu", 1.0))


def perturbed_parts(part: Part) -> Iterator[tuple[Part, Part]]:
    """Yield pairs of friction parts one standard error to either side along each principal axis of the covariance.

    V_S and mu move by their logarithm. The values of a part without a covariance are taken as independent.
    """
    names = [value.name for value in part.values if value.name in KNOWN]
    variances, axes = np.linalg.eigh(_covariance(part, names))
    for step in (axes * np.sqrt(np.maximum(variances, 0.0))).T:
        if step.any():
            yield _perturbed(part, names, step), _perturbed(part, names, -step)


@dataclass(frozen=True)
class StoredCovariance:
    """The covariance of some values in the settings of a friction part."""

    names: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        """Reject a matrix that is not square."""
        count = len(self.names)
        if len(self.values) != count or any(len(row) != count for row in self.values):
            raise ModelError(f"covariance must be {count} rows of {count} numbers.")


@dataclass(frozen=True)
class _Settings:
    covariance: StoredCovariance


def stored_covariance(part: Part) -> StoredCovariance:
    """Return the covariance that a friction part stores; an empty one where it stores none."""
    document = part.settings.get("covariance")
    return StoredCovariance() if document is None else decode({"covariance": document}, _Settings).covariance


def _covariance(part: Part, names: list[str]) -> Array:
    """Return the covariance of some values, logarithms instead of V_S and mu."""
    stored = stored_covariance(part)
    if set(names) <= set(stored.names):
        at = [stored.names.index(name) for name in names]
        return np.array([[stored.values[i][j] for j in at] for i in at])
    deviations = [part.value(name).deviation / (part[name] if name in LOGARITHMIC else 1.0) for name in names]
    return np.diag(np.square(deviations))


def _perturbed(part: Part, names: list[str], step: Array) -> Part:
    """Return a part with its values moved by a step; logarithms move by at most one."""
    moves = dict(zip(names, step.tolist(), strict=True))
    for name in set(LOGARITHMIC) & moves.keys():
        moves[name] = part[name] * float(np.expm1(np.clip(moves[name], -1.0, 1.0)))
    values = tuple(replace(value, value=value.value + moves.get(value.name, 0.0)) for value in part.values)
    return replace(part, values=values)


# -- load ------------------------------------------------------------------------------------------------------------


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
    return np.quantile(np.abs(loops.load), (0.05, 0.95))


def _load_varies(loops: Loops) -> bool:
    """Return whether the load spans at least a fifth of its largest value."""
    low, high = _load_range(loops)
    return bool(high >= MIN_LOAD and low <= 0.8 * high)


def _started(loops: Loops, power: float) -> Growth:
    """Return c of ``F_C (1 + c |τ|^p) sgn ω``, without viscous friction, which takes all of it at a single speed."""
    level, grown = _dry_forces(loops, load_growth(loops.load, power))
    largest = float(_load_range(loops)[1]) ** power
    return Growth(float(np.clip(grown / max(level, 1e-9), 0.01 / largest, MAX_GROWTH / largest)), power)


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


# -- data and settings of a fit --


@dataclass(frozen=True, eq=False)
class Known:
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
        rise = self.rise or Rise(0.0, 0.05, usual_exponent(model))
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


@dataclass(frozen=True, eq=False)
class HysteresisProblem:
    """Data and settings that all methods share.

    Attributes:
        loops: The data.
        bank: Slip elements on a grid of limits with their normal equations.
        known: What is known before the fit.
        ladder: Number of elements of pre-assigned ladders.
        elements: Number of elements of nlr.
        requested: The number of elements was requested: close ones are not merged.

    """

    loops: Loops
    bank: Bank
    known: Known
    ladder: int
    elements: int
    requested: bool = False

    def best_limits(self) -> Array:
        """Return the best limits of the grid, as many as nlr has elements."""
        total = self.bank.grams.sum(axis=0)
        choice = best_choices(*self.bank.reduced(total), self.elements)[-1]
        return self.bank.limits[list(choice)]
