"""The friction of a joint over speed, load and temperature, put together from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointwise.errors import ModelError
from jointwise.joint.friction.law import VelocityLaw, velocity_law_of
from jointwise.joint.load import LoadLaw, load_law_of
from jointwise.joint.part import Part, Surface, plain
from jointwise.joint.temperature import TemperatureLaw, temperature_law_of
from jointwise.spatial import Array

POINTS = 41
"""Points of a surface along either axis."""


@dataclass(frozen=True)
class FrictionMap:
    """``f = f_v(ω) + f_l(ω, τ) + f_T(ω, T) - f_T(ω, T_v)``, T_v (°C) the temperature at which f_v was measured.

    Inputs are kept within the ranges that were measured; `outside` tells where they were not. A phenomenon that was not
    identified adds nothing. `temperature` is T_v, None where it is not known: then f_T counts from its own reference.
    """

    velocity: VelocityLaw
    load: LoadLaw | None = None
    warmth: TemperatureLaw | None = None
    temperature: float | None = None

    def torque(self, speed: ArrayLike, load: ArrayLike = 0.0, temperature: ArrayLike | None = None) -> Array:
        """Return the friction (samples,), Nm, at speeds (rad/s), loads (Nm) and temperatures (°C; T_v unless given)."""
        w, tau, T = self._inputs(speed, load, temperature)
        total = self.velocity.torque(w)
        if self.load is not None:
            total = total + self.load.torque(w, tau)
        if self.warmth is not None:
            total = total + self.warmth.torque(w, T) - self.warmth.torque(w, np.full_like(w, self._usual))
        return total

    def outside(
        self, speed: ArrayLike, load: ArrayLike = 0.0, temperature: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Tell which samples have an input outside the ranges that were measured, and was clamped."""
        w, tau, T = self._inputs(speed, load, temperature)
        flags = self.velocity.outside(w)
        if self.load is not None:
            flags = flags | self.load.outside(tau)
        return flags if self.warmth is None else flags | self.warmth.outside(T)

    @property
    def _usual(self) -> float:
        if self.temperature is not None or self.warmth is None:
            return self.temperature or 0.0
        return self.warmth.reference

    def _inputs(self, speed: ArrayLike, load: ArrayLike, temperature: ArrayLike | None) -> tuple[Array, Array, Array]:
        T = self._usual if temperature is None else temperature
        w, tau, warm = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, dtype=float)) for x in (speed, load, T)))
        return w, tau, warm


def friction_map(parts: Sequence[Part]) -> FrictionMap:
    """Return the map of the friction, load and temperature parts of a joint; the friction part must be there."""
    found = {part.phenomenon: part for part in parts}
    if "friction" not in found:
        raise ModelError(f"a friction map needs a friction part. Got {', '.join(found) or 'none'} instead.")
    load, warmth = found.get("load"), found.get("temperature")
    return FrictionMap(
        velocity=velocity_law_of(found["friction"]),
        load=None if load is None else load_law_of(load),
        warmth=None if warmth is None else temperature_law_of(warmth),
        temperature=found["friction"].settings.get("temperature"),
    )


def map_surfaces(friction: FrictionMap) -> tuple[Surface, ...]:
    """Return friction over speed and load, and over speed and temperature, within what was measured."""
    law, surfaces = friction.velocity, []
    w = np.linspace(law.slowest, law.fastest, POINTS)
    if friction.load is not None and friction.load.kind != "none":
        loads = np.linspace(0.0, friction.load.largest, POINTS)
        z = tuple(plain(friction.torque(w, load)) for load in loads)
        surfaces.append(_surface("Friction over speed and load", "load [Nm]", w, loads, z))
    if friction.warmth is not None:
        warm = np.linspace(friction.warmth.coldest, friction.warmth.hottest, POINTS)
        z = tuple(plain(friction.torque(w, 0.0, T)) for T in warm)
        surfaces.append(_surface("Friction over speed and temperature", "temperature [°C]", w, warm, z))
    return tuple(surfaces)


def _surface(title: str, y_label: str, w: Array, y: Array, z: tuple[tuple[float, ...], ...]) -> Surface:
    return Surface(title, "speed [rad/s]", y_label, "friction [Nm]", plain(w), plain(y), z)
