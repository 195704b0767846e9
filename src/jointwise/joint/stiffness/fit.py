"""Least squares of a spring on every torque at once, with what hides it: offsets, rotor friction, gear errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jointwise.joint.jackknife import half_width, newton_replicates
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.stiffness.families import Family, deformation
from jointwise.joint.stiffness.signals import Signals
from jointwise.spatial import Array


@dataclass(frozen=True)
class Layout:
    """Where the numbers of a fit stand: spring, encoder offset and hidden shapes (parts of φ_max), damping, friction.

    ``x = φ/φ_max - x_0 - N f``; gauge and links ``= τ(x) + D φ̇``, motor
    ``= τ(x) + (z w + h |z w|) (1 + g (τ/τ_max)²) + c``: rotor friction that grows with the load, one way more than the
    other, in which D is lost.
    """

    family: Family
    shifts: int
    slips: int
    damping: bool
    gauge: bool

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Count of each kind of number, in order."""
        motor = 1 if self.slips else 0
        return {
            "spring": len(self.family.bounds[0]),
            "offset": 1,
            "shifts": self.shifts,
            "damping": int(self.damping),
            "friction": self.slips,
            "growth": motor,
            "asymmetry": motor,
            "motor offset": motor if self.gauge else 0,
        }

    def split(self, numbers: Array) -> dict[str, Array]:
        """Return the numbers by kind."""
        edges = np.cumsum(list(self.sizes.values()))[:-1]
        return dict(zip(self.sizes, np.split(numbers, edges), strict=True))


@dataclass(frozen=True)
class SpringFit:
    """A fitted spring: `numbers` of its layout, `replicates` (blocks, numbers) without one block each."""

    layout: Layout
    largest: float
    top: float
    numbers: Array
    replicates: Array

    @property
    def offset(self) -> float:
        """Encoder offset φ_0, rad."""
        return float(self.largest * self.layout.split(self.numbers)["offset"][0])

    def physical(self, numbers: Array) -> Array:
        """Return the spring's part of the numbers (the fit's or a replicate's) in SI units."""
        return self.layout.family.physical(self.layout.split(numbers)["spring"], self.largest)

    def torque(self, numbers: Array, phi: Array) -> Array:
        """Return τ_J in Nm of the numbers (the fit's or a replicate's) at deformations φ, rad."""
        return self.layout.family.torque(self.layout.split(numbers)["spring"], phi / self.largest)

    def stiffness(self, numbers: Array, phi: Array) -> Array:
        """Return dτ_J/dφ in Nm/rad of the numbers (the fit's or a replicate's) at deformations φ, rad."""
        return self.layout.family.slope(self.layout.split(numbers)["spring"], phi / self.largest) / self.largest

    @property
    def factor(self) -> float:
        """Half width of a 95 % interval in deviations."""
        return half_width(len(self.replicates))

    def deformation(self, signals: Signals) -> Array:
        """Return the spring's own deformation, rad: φ without offset and hidden shapes."""
        parts = self.layout.split(self.numbers)
        result: Array = signals.phi - self.largest * (parts["offset"] + signals.shifts @ parts["shifts"])
        return result

    @property
    def undamped(self) -> SpringFit:
        """The same spring without its damping."""
        first = sum(list(self.layout.sizes.values())[: list(self.layout.sizes).index("damping")])
        numbers = self.numbers.copy()
        numbers[first : first + self.layout.sizes["damping"]] = 0.0
        return replace(self, numbers=numbers)

    def predicted(self, signals: Signals) -> dict[str, Array]:
        """Return what the torques of the channels should be, Nm."""
        return predict(self.layout, self.numbers, signals, self.largest, self.top)

    def quality(self, signals: Signals) -> float:
        """Return the NRMSE % of all channels together."""
        predicted = self.predicted(signals)
        names = list(signals.torques)
        return nrmse_percent(
            np.concatenate([signals.torques[n] for n in names]), np.concatenate([predicted[n] for n in names])
        )


def predict(layout: Layout, numbers: Array, signals: Signals, largest: float, top: float) -> dict[str, Array]:
    """Return the torque of every channel, Nm (rows,)."""
    parts = layout.split(numbers)
    u = signals.phi / largest - parts["offset"] - signals.shifts @ parts["shifts"]
    spring = layout.family.torque(parts["spring"], u)
    damped = spring + parts["damping"] * signals.rate if layout.damping else spring
    predicted = dict.fromkeys(signals.torques, damped)
    if "motor" in predicted and layout.slips:
        growth = 1.0 + parts["growth"] * np.square(spring / top)
        offset = parts["motor offset"] if layout.gauge else 0.0
        friction = signals.slips @ parts["friction"]
        predicted["motor"] = spring + (friction + parts["asymmetry"] * np.abs(friction)) * growth + offset
    return predicted


def fit_spring(family: Family, signals: Signals) -> SpringFit:
    """Return the spring that meets all torques best, each channel weighted by what it leaves over."""
    layout = Layout(
        family,
        signals.shifts.shape[1],
        signals.slips.shape[1] if "motor" in signals.torques else 0,
        "motor" not in signals.torques or "gauge" in signals.torques,
        "gauge" in signals.torques,
    )
    largest = float(np.percentile(np.abs(signals.phi - np.median(signals.phi)), 99.5))
    top = max(float(np.max(np.abs(torque))) for torque in signals.torques.values())
    weights = dict.fromkeys(signals.torques, 1.0 / top)
    numbers = None
    for _ in range(3 if len(weights) > 1 else 0):
        numbers, residual, jacobian = _solve(layout, signals, largest, top, weights, numbers)
        weights = _weights(signals, residual, weights, top)
    numbers, residual, jacobian = _solve(layout, signals, largest, top, weights, numbers)
    block = np.tile(signals.block, len(signals.torques))
    return SpringFit(layout, largest, top, numbers, newton_replicates(numbers, residual, jacobian, block))


def _solve(
    layout: Layout, signals: Signals, largest: float, top: float, weights: dict[str, float], start: Array | None
) -> tuple[Array, Array, Array]:
    """Return numbers, residuals and their Jacobian (rows of all channels)."""
    from scipy.optimize import least_squares

    def residual(numbers: Array) -> Array:
        if signals.kind == "free":
            return _unexplained(layout, numbers, signals, largest)
        predicted = predict(layout, numbers, signals, largest, top)
        return np.concatenate([weights[n] * (predicted[n] - torque) for n, torque in signals.torques.items()])

    low, high = _bounds(layout)
    starts = [start] if start is not None else _starts(layout, signals, largest)
    fits = [least_squares(residual, x, bounds=(low, high), x_scale="jac", ftol=1e-7, max_nfev=40) for x in starts]
    best = min(fits, key=lambda fit: float(fit.cost))
    return best.x, best.fun, best.jac


def _unexplained(layout: Layout, numbers: Array, signals: Signals, largest: float) -> Array:
    """Return u(τ - D φ̇) + x_0 + N f - φ/φ_max: in free motion the gear's own error sits in φ, not in the torque."""
    parts = layout.split(numbers)
    torque = signals.torques["links"] - parts["damping"] * signals.rate
    shifted = parts["offset"] + signals.shifts @ parts["shifts"]
    result: Array = deformation(layout.family, parts["spring"], torque) + shifted - signals.phi / largest
    return result


def _starts(layout: Layout, signals: Signals, largest: float) -> list[Array]:
    """Return starts: the line that meets the first torque, and what a linear spring leaves for the others."""
    torque = next(iter(signals.torques.values()))
    slope, rest = _line(signals, largest) if signals.kind == "free" else _ramp(layout, signals.phi / largest, torque)
    return [np.concatenate([own, rest]) for own in layout.family.starts(max(slope, 1e-3))]


def _ramp(layout: Layout, u: Array, torque: Array) -> tuple[float, Array]:
    slope, level = (float(x) for x in np.polyfit(u, torque, 1))
    rest = np.zeros(sum(layout.sizes.values()) - layout.sizes["spring"])
    rest[0] = np.clip(-level / slope if slope else 0.0, -10.0, 10.0)
    rest[1 : 1 + layout.slips] = 0.1 * abs(slope) / max(layout.slips, 1)
    return slope, rest


def _line(signals: Signals, largest: float) -> tuple[float, Array]:
    """Return slope (Nm) and offset, shapes, damping of a linear spring: ``u = c τ - c D φ̇ + x_0 + N f``."""
    found, _ = linear_motion(signals, largest)
    slope = 1.0 / found[0] if found[0] > 0.0 else 0.0
    return slope, np.concatenate([found[2:], [-found[1] * slope]])


def linear_motion(signals: Signals, largest: float) -> tuple[Array, float]:
    """Return c, -c D, x_0, f by linear least squares, and the rms of what is left of φ/φ_max."""
    columns = [signals.torques["links"], signals.rate, np.ones(len(signals.phi)), *signals.shifts.T]
    W, y = np.column_stack(columns), signals.phi / largest
    scale = np.linalg.norm(W, axis=0)
    scale[scale == 0.0] = 1.0
    found = np.linalg.lstsq(W / scale, y, rcond=None)[0] / scale
    return found, float(np.sqrt(np.mean(np.square(W @ found - y))))


def _bounds(layout: Layout) -> tuple[Array, Array]:
    rest = sum(layout.sizes.values()) - layout.sizes["spring"]
    low, high = layout.family.bounds
    return np.append(low, np.full(rest, -np.inf)), np.append(high, np.full(rest, np.inf))


def _weights(signals: Signals, residual: Array, weights: dict[str, float], top: float) -> dict[str, float]:
    """Return one over the rms of what every channel leaves over, Nm."""
    parts = np.split(residual, len(signals.torques))
    rest = {name: float(np.sqrt(np.mean(part**2))) / weights[name] for name, part in zip(weights, parts, strict=True)}
    return {name: 1.0 / max(own, 1e-6 * top) for name, own in rest.items()}
