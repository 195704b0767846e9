"""Friction of a joint over speed, load and temperature, combined from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointwise.errors import ModelError
from jointwise.joint.friction.law import VelocityLaw, velocity_law_of
from jointwise.joint.load.law import LoadLaw, load_law_of
from jointwise.joint.part import SURFACE_POINTS, Part, Surface, plain
from jointwise.joint.temperature.law import TemperatureLaw, temperature_law_of
from jointwise.spatial import Array


@dataclass(frozen=True)
class FrictionMap:
    """``f = f_v(ω) + f_l(ω, τ) + f_T(ω, T) - f_T(ω, T_v)``, T_v (°C) the temperature at which f_v was measured.

    Inputs are clamped to the measured ranges; `outside` flags them. A phenomenon that was not identified adds nothing.
    `temperature` is T_v, None where it is unknown: then f_T is relative to its reference.
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
    return FrictionMap(
        velocity=velocity_law_of(found["friction"]),
        load=None if load is None else load_law_of(load),
        thermal=None if thermal is None else temperature_law_of(thermal),
        temperature=found["friction"].settings.get("temperature"),
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
