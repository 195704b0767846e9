"""Friction laws of a joint as its file holds them: over speed, load and temperature, and with memory along a motion.

Steady friction is ``f_v(ω) + f_l(ω, τ) + f_T(ω, T)`` (`FrictionMap`). Friction with memory (`FrictionLaw`) is
``f = f_dry + F_V ω + f_0``, where f_dry is linear in the forces W of the law:

- slip models: ``f_dry = (1 + c |τ|^p + e exp(-(|ω|/V)^μ)) Σ_i W_i u_i`` with the Maxwell-slip elements u_i;
- "rate-gms": ``f_dry = (1 + c |τ|^p) Σ_i W_i u_i``, elements whose slip follows ``h = 1 + e exp(-(|ω|/V)^μ)``;
- "lugre": ``f_dry = (1 + c |τ|^p) (W_1 u + W_2 du/dt)``, the bristles of the LuGre model with the same h;
- "sgn", "tanh", "stribeck": ``f_dry = (W_1 + W_2 |τ|^p) d(ω) + W_3 d(ω) exp(-(|ω|/V)^μ)`` with the direction d.

`OnlineFriction` combines both along a motion.

References:
    Armstrong-Hélouvry, Dupont, Canudas de Wit: A survey of models, analysis tools and compensation methods for the
    control of machines with friction, Automatica 30(7), 1994 (speed).
    Bittencourt, Gunnarsson: Static friction in a robot joint - modeling and identification of load and temperature
    effects, ASME J. Dynamic Systems, Measurement, and Control 134(5), 2012.
    Al-Bender, Lampaert, Swevers: The generalized Maxwell-slip model, IEEE Trans. Automatic Control 50(11), 2005.
    Canudas de Wit, Olsson, Åström, Lischinsky: A new model for control of systems with friction, IEEE Trans. Automatic
    Control 40(3), 1995 (LuGre).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointwise.arguments import checked
from jointwise.errors import ModelError
from jointwise.joint.curve import SURFACE_POINTS, Surface, plain
from jointwise.joint.part import TINY, Part
from jointwise.joint.record import JointRecord
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.terms import (
    LOAD_POWERS,
    Hysteresis,
    Rated,
    direction,
    load_growth,
    load_law_name,
    lugre_deflection,
    lugre_state,
    rate_slip,
    rate_slip_state,
    root_speed,
    slip_elements,
    slip_state,
    steady_level,
    stribeck,
    thermal_decay,
    thermal_factors,
    viscous_torque,
)
from jointwise.spatial import Array

# -- over speed ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VelocityLaw:
    """``f = (1 + a sgn ω) sgn(ω) (F_C + (F_S - F_C) exp(-(|ω|/V_S)^μ)) + F_V1 ω + F_V2 |ω| ω + F_V3 ω³ + o``.

    All quantities are at the joint side.

    Attributes:
        coulomb: F_C, Nm.
        static: F_S, Nm.
        stribeck_speed: V_S, rad/s.
        shape: μ.
        viscous: F_V1, Nm s/rad.
        square: F_V2, Nm s²/rad².
        cube: F_V3, Nm s³/rad³.
        asymmetry: a.
        offset: o, Nm.
        slowest: Least measured |ω|, rad/s.
        fastest: Greatest measured |ω|, rad/s.
    """

    coulomb: float = 0.0
    static: float = 0.0
    stribeck_speed: float = 1.0
    shape: float = 1.0
    viscous: float = 0.0
    square: float = 0.0
    cube: float = 0.0
    asymmetry: float = 0.0
    offset: float = 0.0
    slowest: float = 0.0
    fastest: float = np.inf

    def torque(self, speed: Array) -> Array:
        """Return the friction torque (samples,), Nm, at speeds (samples,), clamped to the measured range.

        It is zero at standstill: friction at rest does not follow from sliding.
        """
        side = np.sign(speed)
        w = np.clip(np.abs(speed), self.slowest, self.fastest)
        dry = self.coulomb + (self.static - self.coulomb) * stribeck(w, self.stribeck_speed, self.shape)
        return np.abs(side) * ((side + self.asymmetry) * dry + self.viscous_torque(side * w) + self.offset)

    def viscous_torque(self, speed: Array) -> Array:
        """Return ``F_V1 ω + F_V2 |ω| ω + F_V3 ω³`` (samples,), Nm, at speeds clamped to the fastest measured one."""
        w = np.clip(speed, -self.fastest, self.fastest)
        return viscous_torque(w, (self.viscous, self.square, self.cube))

    def outside(self, speed: Array) -> NDArray[np.bool_]:
        """Return flags of the speeds outside the measured range, which are clamped."""
        w = np.abs(speed)
        return (w > 0.0) & ((w < self.slowest) | (w > self.fastest))

    def even(self, speed: Array) -> Array:
        """Return the mean friction of both directions, Nm, at speeds > 0."""
        return 0.5 * (self.torque(speed) - self.torque(-speed))


@dataclass(frozen=True)
class StoredCovariance:
    """Covariance of values of a friction part; those of V_S and mu are their logarithms.

    Attributes:
        names: Names of the values.
        values: Their covariance, (names, names).
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        """Reject a matrix that is not square."""
        count = len(self.names)
        if len(self.values) != count or any(len(row) != count for row in self.values):
            raise ModelError(f"covariance must be {count} rows of {count} numbers.")


@dataclass(frozen=True)
class FrictionSettings:
    """Settings of a friction part.

    Attributes:
        law: The identified law.
        covariance: Covariance of its parameters.
        temperature: Temperature at which the curve holds, °C; None where it was not measured.
        points: Data of the fit, "runs" or "cycles".
        beside: Coefficients of the effects that were fitted with the curve, by name.
        band_check: Fractions of held-out points in the 95 % band: `inside` of all, `slow` of the slowest, and the
            number of `points`.
    """

    law: VelocityLaw
    covariance: StoredCovariance = StoredCovariance()
    temperature: float | None = None
    points: str = "runs"
    beside: Mapping[str, float] = field(default_factory=dict)
    band_check: Mapping[str, float] = field(default_factory=dict)


def friction_settings(part: Part) -> FrictionSettings:
    """Return the settings of a part from `identify_friction`."""
    return part.settings_as("friction", FrictionSettings)


def velocity_law_of(part: Part) -> VelocityLaw:
    """Return the law of a part from `identify_friction`."""
    return friction_settings(part).law


# -- over load -------------------------------------------------------------------------------------------------------

CHOICES = ("square", "absolute")
"""Laws of friction that grows with the load; "none" if it does not."""


@dataclass(frozen=True)
class LoadLaw:
    """``f_l = F_l sgn(ω) |τ|^p``, with |τ| clamped to the largest measured one.

    Attributes:
        kind: "square" (p = 2), "absolute" (p = 1), or "none": friction does not grow with the load in the measured
            range.
        factor: F_l, Nm per Nm^p.
        largest: Largest measured |τ|, Nm.
    """

    kind: str
    factor: float
    largest: float

    def torque(self, speed: Array, load: Array) -> Array:
        """Return the friction (samples,), Nm, that a load (samples,), Nm, adds."""
        if self.kind == "none":
            return np.zeros_like(speed)
        size = np.minimum(np.abs(load), self.largest)
        return self.factor * np.sign(speed) * load_growth(size, LOAD_POWERS[self.kind])

    def packed(self) -> list[float]:
        """Return F_l (0 for "none"), p and the largest |τ|, as the native kernel reads them."""
        return [0.0, 1.0, 0.0] if self.kind == "none" else [self.factor, LOAD_POWERS[self.kind], self.largest]

    def outside(self, load: Array) -> NDArray[np.bool_]:
        """Return flags of the loads beyond the measured range, which are clamped."""
        return np.abs(load) > self.largest


@dataclass(frozen=True)
class LoadSettings:
    """Settings of a load part."""

    law: LoadLaw


def load_law_of(part: Part) -> LoadLaw:
    """Return the law of a part from `identify_load`."""
    return part.settings_as("load", LoadSettings).law


# -- over temperature ------------------------------------------------------------------------------------------------

PARAMETERS = {"none": 0, "linear": 2, "three-parameter": 3, "affine-exponential": 4}
"""Laws and their number of parameters, including the friction at the reference temperature."""


@dataclass(frozen=True)
class TemperatureLaw:
    """Friction that a temperature T (°C) adds to that at a reference T0.

    "linear" and "three-parameter": ``f_T = sgn(ω) √|ω| (F_T2 (T - T0) + F_T3 (T⁻³ - T0⁻³))``; F_T1 is the constant that
    makes it zero at T0. "affine-exponential": ``f_T = sgn(ω) (h(T) - h(T0))``,
    ``h = (A_0 + A_1 T) exp(-|ω| (b_0 + b_1 T))``.

    Attributes:
        kind: "none", "linear", "three-parameter" or "affine-exponential".
        numbers: (F_T2,) or (F_T2, F_T3), in Nm √(s/rad) / K and Nm √(s/rad) K³; or (A_0, A_1, b_0, b_1), in Nm, Nm/K,
            s/rad and s/rad/K.
        reference: T0, °C.
        coldest: Lowest measured temperature, to which T is clamped, °C.
        hottest: Highest measured temperature, to which T is clamped, °C.
        fastest: Highest measured speed, to which |ω| is clamped, rad/s.
    """

    kind: str
    numbers: tuple[float, ...]
    reference: float
    coldest: float
    hottest: float
    fastest: float

    def torque(self, speed: Array, temperature: Array) -> Array:
        """Return the friction that the temperature adds, (samples,), Nm.

        Args:
            speed: Speeds, (samples,), rad/s.
            temperature: Temperatures, (samples,), °C.
        """
        w = np.clip(speed, -self.fastest, self.fastest)
        T = np.clip(temperature, self.coldest, self.hottest)
        if self.kind == "affine-exponential":
            return np.sign(w) * (self._exponential(w, T) - self._exponential(w, self.reference))
        if self.kind == "linear":  # without T⁻³, which diverges at 0 °C
            return root_speed(w) * self.numbers[0] * (T - self.reference)
        factors = thermal_factors(T, self.reference, self.coldest, self.hottest)
        result: Array = root_speed(w) * (factors @ np.array(self.numbers))
        return result

    def _exponential(self, speed: Array, T: Array | float) -> Array:
        """Return ``h = (A_0 + A_1 T) exp(-|ω| (b_0 + b_1 T))``, Nm."""
        return (self.numbers[0] + self.numbers[1] * T) * thermal_decay(speed, T, self.numbers[2:])

    def packed(self) -> list[float]:
        """Return the number of the law, its four numbers, T0, range of T and fastest |ω|, as the native kernel does."""
        numbers = [*self.numbers, *(0.0,) * (4 - len(self.numbers))]
        return [list(PARAMETERS).index(self.kind), *numbers, self.reference, self.coldest, self.hottest, self.fastest]

    def outside(self, temperature: Array) -> NDArray[np.bool_]:
        """Return flags of the temperatures outside the measured range, which are clamped."""
        return (temperature < self.coldest) | (temperature > self.hottest)


@dataclass(frozen=True)
class TemperatureSettings:
    """Settings of a temperature part."""

    law: TemperatureLaw


def temperature_law_of(part: Part) -> TemperatureLaw:
    """Return the law of a part from `identify_temperature`."""
    return part.settings_as("temperature", TemperatureSettings).law


# -- together --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrictionMap:
    """``f = f_v(ω) + f_l(ω, τ) + f_T(ω, T) - f_T(ω, T_v)``, T_v (°C) the temperature at which f_v was measured.

    Inputs are clamped to the measured ranges; `outside` flags them. A phenomenon that was not identified adds nothing.

    Attributes:
        velocity: f_v.
        load: f_l; None if it was not identified.
        thermal: f_T; None if it was not identified.
        temperature: T_v, °C; None where it is unknown: then f_T is relative to its reference.
    """

    velocity: VelocityLaw
    load: LoadLaw | None = None
    thermal: TemperatureLaw | None = None
    temperature: float | None = None

    def torque(self, speed: ArrayLike, load: ArrayLike = 0.0, temperature: ArrayLike | None = None) -> Array:
        """Return the friction, Nm.

        Args:
            speed: Joint speeds (samples,), rad/s.
            load: Transmitted torques (samples,), Nm.
            temperature: Temperatures (samples,), °C; T_v by default.
        """
        w, tau, T = self._inputs(speed, load, temperature)
        total = self.velocity.torque(w)
        if self.load is not None:
            total = total + self.load.torque(w, tau)
        if self.thermal is not None:
            total = total + self.thermal.torque(w, T) - self.thermal.torque(w, np.full_like(w, self._usual))
        return total

    def outside(
        self, speed: ArrayLike, load: ArrayLike = 0.0, temperature: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Return flags of the samples with an input outside the measured ranges, which is clamped."""
        w, tau, T = self._inputs(speed, load, temperature)
        flags = self.velocity.outside(w)
        if self.load is not None:
            flags = flags | self.load.outside(tau)
        return flags if self.thermal is None else flags | self.thermal.outside(T)

    def packed(self) -> list[float]:
        """Return the numbers of `steady_law` of the native kernel."""
        load = LoadLaw("none", 0.0, 0.0) if self.load is None else self.load
        thermal = TemperatureLaw("none", (), 0.0, 0.0, 0.0, 0.0) if self.thermal is None else self.thermal
        return [*astuple(self.velocity), *load.packed(), *thermal.packed(), self._usual]

    @property
    def _usual(self) -> float:
        if self.temperature is not None or self.thermal is None:
            return self.temperature or 0.0
        return self.thermal.reference

    def _inputs(self, speed: ArrayLike, load: ArrayLike, temperature: ArrayLike | None) -> tuple[Array, Array, Array]:
        T_or_usual = self._usual if temperature is None else temperature
        arrays = (np.atleast_1d(np.asarray(x, dtype=float)) for x in (speed, load, T_or_usual))
        w, tau, T = np.broadcast_arrays(*arrays)
        return w, tau, T


@checked
def friction_map(parts: Sequence[Part]) -> FrictionMap:
    """Return the combined friction of the parts of a joint.

    Args:
        parts: Parts of the phenomena "friction" (required), "load" and "temperature".

    Returns:
        Friction over speed, load and temperature.

    Raises:
        ModelError: If there is no friction part.
    """
    found = {part.phenomenon: part for part in parts}
    if "friction" not in found:
        raise ModelError(f"a friction map needs a friction part. Got {', '.join(found) or 'none'} instead.")
    load, thermal = found.get("load"), found.get("temperature")
    steady = friction_settings(found["friction"])
    return FrictionMap(
        velocity=steady.law,
        load=None if load is None else load_law_of(load),
        thermal=None if thermal is None else temperature_law_of(thermal),
        temperature=steady.temperature,
    )


def with_surfaces(part: Part, steady: Part | None) -> Part:
    """Return a load or temperature part with surfaces of friction over speed, if the friction over speed is known."""
    return part if steady is None else replace(part, surfaces=map_surfaces(friction_map([steady, part])))


def map_surfaces(friction: FrictionMap) -> tuple[Surface, ...]:
    """Return friction over speed and load, and over speed and temperature, within the measured ranges."""
    law, surfaces = friction.velocity, []
    w = np.linspace(law.slowest, law.fastest, SURFACE_POINTS)
    if friction.load is not None and friction.load.kind != "none":
        loads = np.linspace(0.0, friction.load.largest, SURFACE_POINTS)
        z = tuple(plain(friction.torque(w, load)) for load in loads)
        surfaces.append(_surface("Friction over speed and load", "load [Nm]", w, loads, z))
    if friction.thermal is not None:
        temperatures = np.linspace(friction.thermal.coldest, friction.thermal.hottest, SURFACE_POINTS)
        z = tuple(plain(friction.torque(w, 0.0, T)) for T in temperatures)
        surfaces.append(_surface("Friction over speed and temperature", "temperature [°C]", w, temperatures, z))
    return tuple(surfaces)


def _surface(title: str, y_label: str, w: Array, y: Array, z: tuple[tuple[float, ...], ...]) -> Surface:
    return Surface(title, "speed [rad/s]", y_label, "friction [Nm]", plain(w), plain(y), z)


# -- with memory along a motion --------------------------------------------------------------------------------------

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


# -- steady friction with memory -------------------------------------------------------------------------------------

DIRECTION_WIDTH = 0.005
"""Width (rad/s) of the direction tanh(ω / width) where no hysteresis was identified: speeds below it are not resolved
by common encoders at 1 kHz."""


@dataclass(frozen=True, eq=False)
class OnlineFriction:
    """``f = H f_s(|ω|, τ, T)``: steady friction f_s of a direction times the state H in [-1, 1] of the hysteresis.

    Attributes:
        steady: f_s over speed, load and temperature; None: f is that of the hysteresis alone.
        hysteresis: Slip elements, whose shares make H; other laws add their own dry friction to the viscous part. None:
            H = tanh(ω / width).
    """

    steady: FrictionMap | None = None
    hysteresis: FrictionLaw | None = None

    def __post_init__(self) -> None:
        """Reject a friction without any law."""
        if self.steady is None and self.hysteresis is None:
            raise ModelError("friction needs a friction or a hysteresis part. Got neither: identify one of them first.")

    def init(self, position: float) -> Array:
        """Return the state of relaxed elements at a rotor position (rad)."""
        return np.zeros(0) if self.hysteresis is None else rest_state(self.hysteresis, position)

    def torque(self, state: Array, motion: JointMotion) -> tuple[Array, Array, Array]:
        """Return friction (samples,) in Nm, H (samples,), and the state after the last sample."""
        if self.steady is None or not self._has_elements:
            return self._law_torque(state, motion)
        H, state = self._direction(state, motion)
        speed = np.copysign(np.maximum(np.abs(motion.speed), TINY), H)  # its level at standstill: H is the direction
        return np.abs(H) * self.steady.torque(speed, motion.load, motion.temperature), H, state

    def packed(self, period: float) -> list[float]:
        """Return the numbers of `joint_friction` of the native kernel, for a sampling period in s."""
        steady = [] if self.steady is None else self.steady.packed()
        memory = FrictionLaw("none", np.zeros(0), np.zeros(0)) if self.hysteresis is None else self.hysteresis
        return [float(self.steady is not None), DIRECTION_WIDTH, TINY, *steady, *memory.packed(period)]

    @property
    def _has_elements(self) -> bool:
        return self.hysteresis is None or self.hysteresis.model in SLIP

    def _direction(self, state: Array, motion: JointMotion) -> tuple[Array, Array]:
        law = self.hysteresis
        if law is None:
            return direction(motion.speed, DIRECTION_WIDTH), state
        u, state = slip_elements(motion.path, law.limits, state, backlash=law.relative_backlash(motion.path))
        result: Array = u @ (law.forces / law.forces.sum())
        return result, state

    def _law_torque(self, state: Array, motion: JointMotion) -> tuple[Array, Array, Array]:
        """Return friction where hysteresis is not a factor of the steady friction: dry and viscous part added."""
        law = self.hysteresis
        assert law is not None
        dry, state = law.dry(motion, state)
        steady, speed = self.steady, motion.speed
        viscous = law.viscous * speed if steady is None else steady.velocity.viscous_torque(speed)
        return dry + viscous, dry / max(float(np.abs(law.forces).sum()), TINY), state


def online_friction(parts: Mapping[str, Part]) -> OnlineFriction:
    """Return the friction of a joint from its identified phenomena.

    Args:
        parts: Parts by phenomenon: "friction" with "load" and "temperature" where they are there, or "hysteresis", or
            both.

    Raises:
        ModelError: Neither friction nor hysteresis was identified.
    """
    steady = friction_map(list(parts.values())) if "friction" in parts else None
    return OnlineFriction(steady, friction_law(parts["hysteresis"]) if "hysteresis" in parts else None)
