"""Friction laws along a motion of a joint: slip elements, rate-dependent ones, LuGre and static laws.

``f = f_dry + F_V ω + f_0``, where f_dry is linear in the forces W of the law:

- slip models: ``f_dry = (1 + c |τ|^p + e exp(-(|ω|/V)^μ)) Σ_i W_i u_i`` with the Maxwell-slip elements u_i;
- "rate-gms": ``f_dry = (1 + c |τ|^p) Σ_i W_i u_i``, elements whose slip follows ``h = 1 + e exp(-(|ω|/V)^μ)``;
- "lugre": ``f_dry = (1 + c |τ|^p) (W_1 u + W_2 du/dt)``, the bristles of the LuGre model with the same h;
- "sgn", "tanh", "stribeck": ``f_dry = (W_1 + W_2 |τ|^p) d(ω) + W_3 d(ω) exp(-(|ω|/V)^μ)`` with the direction d.

References:
    Al-Bender, Lampaert, Swevers: The generalized Maxwell-slip model, IEEE Trans. Automatic Control 50(11), 2005.
    Canudas de Wit, Olsson, Åström, Lischinsky: A new model for control of systems with friction, IEEE Trans. Automatic
    Control 40(3), 1995 (LuGre).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.model.friction import (
    direction,
    load_growth,
    load_law_name,
    lugre_deflection,
    lugre_state,
    rate_slip,
    rate_slip_state,
    slip_elements,
    slip_state,
    steady_level,
    stribeck,
)
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.terms import Hysteresis, Rated
from jointwise.spatial import Array

LADDERS = ("gms", "lr-linear", "lr-polynomial")
"""Slip models whose limits are a fixed ladder times the backlash B."""
SLIP = (*LADDERS, "nlr", "nlr-stribeck")
"""Maxwell-slip models, the simplest first."""
RATED = ("rate-gms", "lugre")
"""Models whose memory depends on the rate of motion."""
STATIC = ("sgn", "tanh", "stribeck")
"""Models without memory."""
KERNEL_KINDS = ("none", "slip", *RATED, *STATIC)
"""Kinds of laws in the native kernel (joint_friction.h), in their order."""
USUAL_SPEED = 0.05
"""Stribeck speed V (rad/s) of a law without a Stribeck rise, where it has no effect."""
METHODS = (*SLIP, *RATED, *STATIC)


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Motion of one joint, (samples,).

    Attributes:
        path: Path of the rotor, rad.
        speed: Speed, rad/s.
        load: Torque that the links demand, Nm.
        period: Sampling period, s.
        segment: Number of the gap-free segment of each sample; None for a single one.
        temperature: Temperature, °C; None where it is not measured.
    """

    path: Array
    speed: Array
    load: Array
    period: float
    segment: NDArray[np.intp] | None = None
    temperature: Array | None = None

    @classmethod
    def of_record(cls, record: JointRecord) -> JointMotion:
        """Return the motion of a record."""
        return cls(record.path, record.speed, record.load, 1.0 / record.rate, record.segment)

    def segments(self) -> list[JointMotion]:
        """Return the gap-free segments in order."""
        if self.segment is None:
            return [self]
        parts = [self.segment == k for k in np.unique(self.segment)]
        return [JointMotion(self.path[at], self.speed[at], self.load[at], self.period) for at in parts]


@dataclass(frozen=True, eq=False)
class FrictionLaw:
    """Friction of one joint, as the module describes.

    Attributes:
        model: One of `METHODS`.
        limits: Deformation limits D_i in rad at mean backlash; the length F_C / s0 of LuGre; () of static laws.
        forces: W in Nm (the second one of LuGre, s1 F_C / s0, in Nm s; that of the load in Nm per Nm^p).
        viscous: F_V, Nm s/rad.
        offset: f_0, Nm.
        growth: c, 1/Nm^p.
        extra: e.
        speed: V in rad/s; the width of tanh.
        exponent: μ.
        rate: Rate of slip of "rate-gms", 1/s.
        backlash: Backlash map B(θ) over one turn, equally spaced from θ = 0, (points,); None if constant.
        load: Whether friction depends on the load.
        most_load: Largest load of the identification, Nm; above, friction stays at its level. None: no limit.
        power: p.
    """

    model: str
    limits: Array
    forces: Array
    viscous: float = 0.0
    offset: float = 0.0
    growth: float = 0.0
    extra: float = 0.0
    speed: float = USUAL_SPEED
    exponent: float = 1.0
    rate: float = 1.0
    backlash: Array | None = None
    load: bool = False
    most_load: float | None = None
    power: float = 2.0

    def torque(self, motion: JointMotion | JointRecord, nuisance: bool = True) -> Array:
        """Return friction (samples,) in Nm along a motion; the elements are relaxed where a segment begins.

        Args:
            motion: Motion of the joint.
            nuisance: Add viscous friction and offset; False for a feed-forward that has them from elsewhere.
        """
        if isinstance(motion, JointRecord):
            motion = JointMotion.of_record(motion)
        starts = [(piece, rest_state(self, float(piece.path[0]))) for piece in motion.segments()]
        dry = np.concatenate([self.dry(piece, state)[0] for piece, state in starts])
        return dry + self.viscous * motion.speed + self.offset if nuisance else dry

    def dry(self, motion: JointMotion, state: Array) -> tuple[Array, Array]:
        """Return dry friction (samples,), Nm, along a motion without gaps, and the state after its last sample."""
        load = motion.load if self.most_load is None else np.clip(motion.load, -self.most_load, self.most_load)
        columns, state = force_columns(self, replace(motion, load=load), self.relative_backlash(motion.path), state)
        return columns @ self.forces, state

    def relative_backlash(self, path: Array) -> Array | None:
        """Return ``b(θ) = B(θ) / mean B`` along a path, (samples,); None where backlash is constant.

        Args:
            path: θ, (samples,), rad.
        """
        return None if self._table is None else self._table.at(path)

    def packed(self, period: float) -> list[float]:
        """Return the numbers of `memory_law` of the native kernel, for a sampling period in s; "none" is no law."""
        kind = 1 if self.model in SLIP else KERNEL_KINDS.index(self.model)
        level = [self.viscous, self.growth, self.extra, self.speed, self.exponent, self.rate * period, self.power]
        most = np.inf if self.most_load is None else self.most_load
        table = () if self._table is None else self._table.values
        lists = [x for values in (self.limits, self.forces, table) for x in (len(values), *values)]
        return [kind, float(self.load), *level, most, period, *map(float, lists)]

    @cached_property
    def _table(self) -> PeriodicTable | None:
        return None if self.backlash is None else relative_table(self.backlash)


def rest_state(law: FrictionLaw, position: float) -> Array:
    """Return the state of a law with relaxed elements at a position (rad)."""
    if law.model == "lugre":
        return lugre_state(position)
    if law.model == "rate-gms":
        return rate_slip_state(position, len(law.limits))
    return slip_state(position, len(law.limits))


def force_columns(law: FrictionLaw, motion: JointMotion, backlash: Array | None, state: Array) -> tuple[Array, Array]:
    """Return the columns C of the forces, ``f_dry = C W``, (samples, forces), and the next state.

    Args:
        law: The law; its forces are not used.
        motion: Motion without gaps.
        backlash: b(θ) = B(θ) / mean B along the path, (samples,); None if constant.
        state: State of the elements before the first sample, see `rest_state`.
    """
    if law.model in STATIC:
        return _static_columns(law, motion), state
    if law.model not in RATED:
        u, state = slip_elements(motion.path, law.limits, state, backlash=backlash)
        return dry_level(law, motion.speed, motion.load)[:, None] * u, state
    columns, state = _rated_columns(law, motion, backlash, state)
    return (1.0 + law.growth * load_growth(motion.load, law.power))[:, None] * columns, state


def dry_level(law: FrictionLaw, speed: Array, load: Array) -> Array:
    """Return the level ``1 + c |τ|^p + e exp(-(|ω|/V)^μ)`` of slip elements, (samples,)."""
    level = steady_level(speed, law.extra, law.speed, law.exponent) if law.extra else np.ones(len(speed))
    return level + law.growth * load_growth(load, law.power) if law.growth else level


def _rated_columns(law: FrictionLaw, motion: JointMotion, backlash: Array | None, state: Array) -> tuple[Array, Array]:
    """Return u_i of the elements, or u and du/dt (1/s) of the bristles, without load, and the next state."""
    level = steady_level(motion.speed, law.extra, law.speed, law.exponent)
    if law.model == "rate-gms":
        return rate_slip(motion.path, level, law.limits, law.rate * motion.period, state, backlash=backlash)
    before = state[0]
    u, state = lugre_deflection(motion.path, level, float(law.limits[0]), state, backlash=backlash)
    return np.column_stack([u, np.diff(u, prepend=before) / motion.period]), state


def _static_columns(law: FrictionLaw, motion: JointMotion) -> Array:
    d = direction(motion.speed, law.speed if law.model == "tanh" else 0.0)
    columns = [d, load_growth(motion.load, law.power) * d] if law.load else [d]
    if law.model == "stribeck":
        columns.append(d * stribeck(motion.speed, law.speed, law.exponent))
    return np.column_stack(columns)


def relative_table(backlash: Array) -> PeriodicTable:
    """Return ``b(θ) = B(θ) / mean B`` of a map B (points,) over one turn, equally spaced from θ = 0."""
    return PeriodicTable(tuple((backlash / backlash.mean()).tolist()))


# -- files and terms -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HysteresisSettings:
    """Settings of a hysteresis part.

    Attributes:
        law: The identified law.
        method: Name of its model, one of `METHODS`.
        elements: Number of its deformation limits: of slip elements, 1 for LuGre, 0 for static laws.
    """

    law: FrictionLaw
    method: str = ""
    elements: int = 0


def friction_law(part: Part) -> FrictionLaw:
    """Return the law of a hysteresis part."""
    stored = part.settings.get("law")
    if isinstance(stored, Mapping) and "exponent" not in stored:  # files of the first versions
        law = {**stored, "exponent": usual_exponent(str(stored.get("model")))}
        part = replace(part, settings={**part.settings, "law": law})
    return part.settings_as("hysteresis", HysteresisSettings).law


def usual_exponent(model: str) -> float:
    """Return the exponent μ of the Stribeck curve of a model where no other one is known: a Gaussian for rated ones."""
    return 2.0 if model in RATED else 1.0


def rated_term(part: Part, driver: str = "q") -> Rated:
    """Return the calibration term of a rate-dependent model: its shape is fixed, F_C and F_C1 are estimated."""
    law = friction_law(part)
    if law.model not in RATED:
        raise ModelError(f"a rate-dependent term needs {' or '.join(RATED)}. Got the model '{law.model}' instead.")
    lugre = law.model == "lugre"
    coulomb = float(law.forces[0] if lugre else law.forces.sum())
    if not coulomb > 0.0:
        raise ModelError(f"the {law.model} model has no dry friction: a calibration cannot start from it.")
    return Rated(
        model=law.model,
        limits=tuple(law.limits.tolist()),
        shares=(1.0,) if lugre else tuple((law.forces / coulomb).tolist()),
        extra=law.extra,
        speed=law.speed,
        exponent=law.exponent,
        rate=law.rate,
        damping=float(law.forces[1]) / coulomb if lugre else 0.0,
        driver=driver,
        load=_load_name(law),
        backlash=_relative_map(law),
    )


def hysteresis_term(part: Part) -> Hysteresis:
    """Return the calibration term of a slip model: its limits, backlash map, and shares of the load-dependent part."""
    law = friction_law(part)
    if law.model not in SLIP:
        raise ModelError(
            f"a term of slip elements needs a slip model. Got '{law.model}' instead: identify hysteresis again "
            "with --method nlr or auto."
        )
    load = _load_name(law)
    return Hysteresis(
        limits=tuple(law.limits.tolist()),
        load=load,
        shape=() if load == "none" else tuple((law.forces / law.forces.sum()).tolist()),
        backlash=_relative_map(law),
    )


def _load_name(law: FrictionLaw) -> str:
    """Return the name of the load law, "none" where friction does not grow with the load."""
    return load_law_name(law.power) if law.growth > 0.0 else "none"


def _relative_map(law: FrictionLaw) -> tuple[float, ...]:
    """Return the backlash map relative to its mean, () where it is constant."""
    return () if law.backlash is None else relative_table(law.backlash).values
