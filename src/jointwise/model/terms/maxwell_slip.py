"""Generalised Maxwell-Slip (GMS): parallel spring-slip elements, friction with memory.

An element is a spring of the deformation δ_i (rad) that slips at its limit D_i. A position-dependent backlash map b(θ),
relative to its mean over a turn, scales the limits, and the output is relative to the scaled limit:

    s = λ δ_i[k-1] + θ[k] - θ[k-1]
    δ_i[k] = sgn(s) min(|s|, b(θ[k]) D_i)
    u_i[k] = δ_i[k] / (b(θ[k]) D_i)

so that a slipping element has u_i = ±1 whatever b does. ``H = Σ_i W_i u_i`` with shares W_i of sum one replaces sgn(ω).

The functions evaluate the native kernels (hysteresis.c) or, without them, the NumPy code beside them.

References: F. Al-Bender, V. Lampaert and J. Swevers, "The generalized Maxwell-slip model: a novel model for friction
simulation and compensation", IEEE Trans. Automatic Control 50(11), 2005; J. Swevers, F. Al-Bender, C. G. Ganseman and
T. Prajogo, "An integrated friction model structure with improved presliding behavior for accurate friction
compensation", IEEE Trans. Automatic Control 45(4), 2000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.backend import native
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.terms.load import check_load_law, load_parameters, with_load, with_load_law
from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter, State, Term
from jointwise.spatial import Array


def linear_limits(elements: int, scale: float) -> Array:
    """Return the limits ``D_i = B i / M``, (elements,) rad, of a scale B (rad)."""
    return scale * np.arange(1, elements + 1) / elements


def polynomial_limits(elements: int, scale: float, power: float = 4.0) -> Array:
    """Return deformation limits that lie close together near zero, ``D_i = B (i / M)^r``, (elements,), rad.

    Args:
        elements: M.
        scale: B, rad.
        power: r.
    """
    result: Array = scale * (np.arange(1, elements + 1) / elements) ** power
    return result


def geometric_limits(elements: int, smallest: float, largest: float) -> Array:
    """Return limits (elements,) rad in equal ratios from the smallest to the largest."""
    return np.geomspace(smallest, largest, elements)


def polynomial_shares(elements: int, power: float = 2.0) -> Array:
    """Return the shares ``W_i = (M + 1 - i)^r / Σ_i i^r``, (elements,), of sum one."""
    shares = np.arange(elements, 0, -1.0) ** power
    result: Array = shares / shares.sum()
    return result


def slip_state(position: float, elements: int) -> Array:
    """Return the state of relaxed elements at a position (rad): δ_i and the last position, (elements + 1,)."""
    return np.append(np.zeros(elements), position)


def slip_elements(
    path: Array, limits: Array, state: Array, *, backlash: Array | None = None, decay: float = 1.0
) -> tuple[Array, Array]:
    """Return the relative deformations of slip elements along a path.

    Args:
        path: Positions θ (samples,) rad.
        limits: D_i (elements,) rad, at b = 1.
        state: From `slip_state`, or from the call for the samples before; it is not changed.
        backlash: b(θ) along the path (samples,), relative to its mean; None for 1.
        decay: λ in (0, 1], the fraction of a deformation that remains after one sample (1: no relaxation).

    Returns:
        u_i in [-1, 1], shape (samples, elements), and the state after the last sample.

    """
    out, state = np.empty((len(path), len(limits))), state.copy()
    if (kernel := native()) is not None:
        kernel.slip(flat(path), optional(backlash), flat(limits), decay, state, out, None)
        return out, state
    delta, last = state[:-1], state[-1]
    for k, (position, b) in enumerate(zip(path, along_path(path, backlash), strict=True)):
        limit = b * limits
        delta, last = np.clip(decay * delta + (position - last), -limit, limit), position
        out[k] = delta / limit
    return out, np.append(delta, last)


def slip_after_reversal(travel: Array, limits: Array) -> Array:
    """Return ``u_i = clip(s / D_i - 1, -1, 1)`` after a travel s since a reversal from full slip.

    Args:
        travel: s (points,) rad.
        limits: D_i (elements,) rad.

    Returns:
        u_i in the new direction, shape (points, elements): from -1 to 1 over a travel of 2 D_i.

    """
    result: Array = np.clip(travel[:, None] / limits - 1.0, -1.0, 1.0)
    return result


def slip_slope_state(position: float, elements: int) -> Array:
    """Return the state of relaxed elements for `slip_slopes`: δ_i, ∂δ_i/∂D_i and the last position, (2 M + 1,)."""
    return np.append(np.zeros(2 * elements), position)


def slip_slopes(
    path: Array, limits: Array, state: Array, *, backlash: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return u_i as `slip_elements` does, ∂u_i/∂ln D_i, (samples, elements) each, and the state after the last sample.

    ∂δ_i/∂D_i is ±b at the last slip of an element and stays while it sticks.
    """
    (out, slopes), state, count = np.empty((2, len(path), len(limits))), state.copy(), len(limits)
    if (kernel := native()) is not None:
        kernel.slip(flat(path), optional(backlash), flat(limits), 1.0, state, out, slopes)
        return out, slopes, state
    delta, side, last = state[:count], state[count:-1], state[-1]
    for k, (position, b) in enumerate(zip(path, along_path(path, backlash), strict=True)):
        limit, s, last = b * limits, delta + (position - last), position
        side = np.where(s > limit, b, np.where(s < -limit, -b, side))
        delta = np.clip(s, -limit, limit)
        out[k] = delta / limit
        slopes[k] = side / b - out[k]
    return out, slopes, np.concatenate([delta, side, [last]])


def along_path(path: Array, backlash: Array | None) -> Array:
    """Return b(θ) along a path, ones for None."""
    return np.ones(len(path)) if backlash is None else backlash


def flat(values: Array) -> Array:
    """Return an array as the native kernels take it."""
    return np.ascontiguousarray(values, dtype=np.float64)


def optional(values: Array | None) -> Array | None:
    """Return an array as the native kernels take it, None for None."""
    return None if values is None else flat(values)


STEMS = {"q": "W", "track": "Wt", "rotor": "Wr"}
"""Drivers, and the names of the forces of their elements."""


@dataclass(frozen=True)
class Hysteresis(Term):
    """``τ = Σ_i W_i u_i + F_C1 ℓ(τ_load) H`` with ``H = Σ_i s_i u_i``, ``Σ s_i = 1``: Maxwell-slip elements.

    The ``u_i = δ_i / (b D_i)`` in [-1, 1] are those of `slip_elements`; the forces W_i >= 0 are estimated.

    Attributes:
        limits: Deformation limits D_i, rad, increasing.
        relaxation: Time constant (s) with which deformations relax at standstill; 0 for never.
        driver: The position that deforms the elements: `q` (the path), `track`, which shows reversals that smoothing
            hides, or `rotor`, the side of the gear on which friction acts, where the log has it.
        load: The load law ℓ: `none`, `square` (τ²) or `absolute` (|τ|).
        shape: Share s_i of each element in the load-dependent part, from the W_i of an earlier fit.
        backlash: The backlash map b(θ), relative to its mean, equally spaced over a turn from θ = 0; it scales the
            limits. Empty for the same limits everywhere.
        asymmetry: a in (-1, 1): each u_i counts as ``u_i (1 + a sgn u_i)``, friction that differs by direction.

    """

    limits: tuple[float, ...]
    relaxation: float = 0.0
    driver: str = "q"
    load: str = "none"
    shape: tuple[float, ...] = ()
    backlash: tuple[float, ...] = ()
    asymmetry: float = 0.0

    kind = "hysteresis"
    role = "slip"

    def __post_init__(self) -> None:
        """Check the settings."""
        steps = np.diff(np.array([0.0, *self.limits]))
        if not self.limits or not (steps > 0.0).all() or not math.isfinite(self.limits[-1]):
            raise ValueError(f"limits must be positive and increasing. Got {self.limits} instead")
        if self.driver not in STEMS:
            raise ValueError(f"driver must be {', '.join(STEMS)}. Got '{self.driver}' instead")
        if not self.relaxation >= 0.0:
            raise ValueError(f"relaxation must be 0 (never) or a time in s. Got {self.relaxation} instead")
        check_backlash(self.backlash)
        if not abs(self.asymmetry) < 1.0:
            raise ValueError(f"asymmetry must lie in (-1, 1). Got {self.asymmetry} instead")
        check_load_law(self.load)
        if self.load != "none" and len(self.shape) != len(self.limits):
            raise ValueError(f"shape must have {len(self.limits)} entries. Got {len(self.shape)} instead")

    @staticmethod
    def polynomial_limits(elements: int, scale: float, power: float = 4.0) -> tuple[float, ...]:
        """Return ``D_i = B (i/M)^r``: M limits up to the scale B (rad), close together near zero."""
        return tuple(polynomial_limits(elements, scale, power).tolist())

    @staticmethod
    def geometric_limits(elements: int, smallest: float, largest: float) -> tuple[float, ...]:
        """Return limits (rad) in equal ratios from the smallest to the largest."""
        return tuple(geometric_limits(elements, smallest, largest).tolist())

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the W_i, and F_C1 with load dependence."""
        stem = STEMS[self.driver]
        forces = tuple(Parameter(f"{stem}{i}", "Nm", non_negative=True) for i in range(1, len(self.limits) + 1))
        return (*forces, *load_parameters(f"FC{stem[1:]}1", self.load))

    def uses_load(self) -> bool:
        """Return whether F_C1 is a parameter."""
        return self.load != "none"

    def uses_speed(self) -> bool:
        """Return whether the driver is `track`."""
        return self.driver == "track"

    def uses_rotor(self) -> bool:
        """Return whether the driver is `rotor`."""
        return self.driver == "rotor"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return u_i and ℓ H; the state is that of `slip_elements`."""
        path = driving_path(joint, self.driver)
        state = slip_state(path[0], len(self.limits)) if state is None else state
        decay = math.exp(-1.0 / (joint.rate * self.relaxation)) if self.relaxation > 0.0 else 1.0
        u, state = slip_elements(
            path, np.array(self.limits), state, backlash=backlash_along(self.backlash, path), decay=decay
        )
        u = self._weighed(u)
        if self.load == "none":
            return u, state
        return with_load([u], u @ np.array(self.shape), joint, self.load, self.kind), state

    def _weighed(self, u: Array) -> Array:
        return u * (1.0 + self.asymmetry * np.sign(u)) if self.asymmetry else u

    def hysteresis(self, columns: Array) -> Array:
        """Return ``H = Σ s_i u_i``."""
        if len(self.shape) != len(self.limits):
            raise ValueError(f"shape must have {len(self.limits)} entries. Got {len(self.shape)} instead")
        result: Array = columns[:, : len(self.limits)] @ np.array(self.shape)
        return result

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return the columns at constant speeds: an element that relaxes within T is deformed by min(D, |v| T)."""
        limits = np.array(self.limits)
        size = np.abs(speed)[:, None] * self.relaxation / limits if self.relaxation > 0.0 else np.ones(len(limits))
        u: Array = self._weighed(np.sign(speed)[:, None] * np.minimum(size, 1.0))
        if self.load == "none":
            return u
        signals = JointSignals(1.0, speed, speed, speed, load=load)
        return with_load([u], u @ np.array(self.shape), signals, self.load, self.kind)

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the law `slip` of the core."""
        count, decay = len(self.limits), math.exp(-period / self.relaxation) if self.relaxation > 0.0 else 1.0
        columns = (*self.limits, *values[:count], *(self.shape or (0.0,) * count), *(1.0 / D for D in self.limits))
        numbers = (decay, self.asymmetry)
        core = CoreTerm("slip", numbers, "none", self.driver, count, columns, self.backlash)
        return with_load_law(core, self.load, values[count:])


def driving_path(joint: JointSignals, driver: str) -> Array:
    """Return the position (samples,) rad that deforms the elements."""
    position = joint.q if joint.path is None else joint.path
    path = {"q": position, "track": joint.track, "rotor": joint.rotor}[driver]
    if path is None:
        needed = "a measured speed" if driver == "track" else "rotor positions"
        raise ValueError(f"driver {driver} needs {needed}")
    return path


def check_backlash(backlash: tuple[float, ...]) -> None:
    """Raise a `ValueError` unless all relative backlash is positive."""
    if any(not (math.isfinite(b) and b > 0.0) for b in backlash):
        raise ValueError("backlash must be positive numbers")


def backlash_along(backlash: tuple[float, ...], path: Array) -> Array | None:
    """Return b(θ) along a path, None where it is 1 everywhere."""
    return PeriodicTable(backlash).at(path) if backlash else None
