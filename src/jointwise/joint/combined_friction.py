"""Friction of a joint combined from its parts: over speed, load and temperature, and along a motion with hysteresis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointwise.arguments import checked
from jointwise.errors import ModelError
from jointwise.joint.curve import SURFACE_POINTS, Surface, plain
from jointwise.joint.friction.law import VelocityLaw, friction_settings
from jointwise.joint.hysteresis.law import SLIP, FrictionLaw, JointMotion, friction_law, rest_state
from jointwise.joint.load.law import LoadLaw, load_law_of
from jointwise.joint.part import TINY, Part
from jointwise.joint.temperature.law import TemperatureLaw, temperature_law_of
from jointwise.model.friction import direction, slip_elements
from jointwise.spatial import Array


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


# -- along a motion --

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
