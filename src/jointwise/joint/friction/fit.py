"""Variable projection: for every Stribeck speed, shape and asymmetry the rest of a friction curve is linear."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import qr
from scipy.optimize import least_squares, nnls

from jointwise.joint.friction.points import Points
from jointwise.spatial import Array

SHAPES = (0.3, 4.0)
"""Stribeck shapes μ that are tried."""
LARGEST_ASYMMETRY = 0.9
STARTS = 3
"""Best points of the grid from which the search goes on."""
STEP = 1e-5
"""Step of the numerical derivative in the nonlinear numbers."""


@dataclass(frozen=True)
class Form:
    """A friction curve: which of its parts it has.

    `dry` Coulomb friction; `stribeck` an extra at low speed, with its shape μ free if `free`, else 1; `powers` the
    number of viscous terms ω, |ω| ω, ω³; `side` what differs between the directions: "none", "offset" or "asymmetry".
    """

    dry: bool = True
    stribeck: bool = False
    free: bool = False
    powers: int = 1
    side: str = "none"

    @property
    def name(self) -> str:
        """What the curve is made of, without its side."""
        dry = ("Stribeck" if self.free else "Stribeck (mu = 1)") if self.stribeck else "Coulomb"
        viscous = "viscous" + ("", ", square", ", cubic")[self.powers - 1]
        whole = " (seven parameters)" if self.free and self.powers == 3 else ""
        return f"{dry} + {viscous}{whole}" if self.dry else viscous

    @property
    def nonlinear(self) -> tuple[str, ...]:
        """Names of the numbers in which the curve is not linear: logarithms of V_S and μ, and a."""
        asymmetric = self.side == "asymmetry" and self.dry
        return ("log V_S",) * self.stribeck + ("log mu",) * self.free + ("asymmetry",) * asymmetric

    @property
    def linear(self) -> tuple[str, ...]:
        """Names of the numbers in which the curve is linear, those that cannot be negative first."""
        viscous = ("F_V1", "F_V2", "F_V3")[: self.powers]
        dry = ("F_C",) * self.dry + ("F_S-F_C",) * self.stribeck
        return (*dry, *viscous, *(("offset",) if self.side == "offset" else ()))

    @property
    def size(self) -> int:
        """How many numbers the curve has."""
        return len(self.nonlinear) + len(self.linear)

    @property
    def signed(self) -> int:
        """How many of the linear numbers cannot be negative: F_C, F_S - F_C and F_V1."""
        return self.dry + self.stribeck + 1


def columns(form: Form, speed: Array, nonlinear: Array) -> Array:
    """Return the regressor (points, linear numbers) at speeds (points,)."""
    values = dict(zip(form.nonlinear, nonlinear, strict=True))
    side, w = np.sign(speed), np.abs(speed)
    dry = side + values.get("asymmetry", 0.0)
    parts = [dry] if form.dry else []
    if form.stribeck:
        decay = (w / np.exp(values["log V_S"])) ** np.exp(values.get("log mu", 0.0))
        parts.append(dry * np.exp(-decay))
    parts += [side * w**power for power in range(1, form.powers + 1)]
    if form.side == "offset":
        parts.append(np.ones_like(w))
    return np.column_stack(parts)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted curve: `nonlinear`, `linear` and `extra` numbers, weighted residual sum of squares `cost`."""

    form: Form
    nonlinear: Array
    linear: Array
    extra: Array
    cost: float

    @property
    def values(self) -> Array:
        """All numbers: nonlinear, linear, extra."""
        return np.concatenate([self.nonlinear, self.linear, self.extra])

    def curve(self, speed: Array) -> Array:
        """Return the friction at speeds (points,), Nm."""
        result: Array = columns(self.form, speed, self.nonlinear) @ self.linear
        return result

    def predict(self, points: Points) -> Array:
        """Return the torque of points, effects beside the friction with it."""
        result: Array = self.curve(points.speed) + points.extra @ self.extra
        return result

    def sensitivity(self, speed: Array) -> Array:
        """Return the derivative of the curve by nonlinear and linear numbers, (points, size)."""
        own = [self._slope(speed, k) for k in range(len(self.nonlinear))]
        return np.column_stack([*own, columns(self.form, speed, self.nonlinear)])

    def _slope(self, speed: Array, k: int) -> Array:
        shift = np.eye(len(self.nonlinear))[k] * STEP
        ahead, behind = (columns(self.form, speed, self.nonlinear + s * shift) @ self.linear for s in (1.0, -1.0))
        result: Array = (ahead - behind) / (2.0 * STEP)
        return result


def fit_curve(points: Points, form: Form, start: Fit | None = None) -> Fit:
    """Return the least-squares fit of a form: a grid and the best `STARTS` refined, or from a `start` on."""
    lower, upper = _bounds(points, form)
    if not len(lower):
        return _solve(points, form, np.empty(0))
    tried = [start.nonlinear] if start is not None else _grid(points, form, lower, upper)
    found = [_refine(points, form, np.clip(x, lower, upper), lower, upper) for x in tried]
    return min(found, key=lambda fit: fit.cost)


def _bounds(points: Points, form: Form) -> tuple[Array, Array]:
    """Return the bounds of the nonlinear numbers: V_S from a third of the slowest to half of the fastest speed."""
    w = np.abs(points.speed)
    limits = {
        "log V_S": (np.log(w.min() / 3.0), np.log(w.max() / 2.0)),
        "log mu": (np.log(SHAPES[0]), np.log(SHAPES[1])),
        "asymmetry": (-LARGEST_ASYMMETRY, LARGEST_ASYMMETRY),
    }
    pairs = np.array([limits[name] for name in form.nonlinear]).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _grid(points: Points, form: Form, lower: Array, upper: Array) -> list[Array]:
    """Return the best `STARTS` points of a grid over the nonlinear numbers."""
    counts = {"log V_S": 8, "log mu": 4, "asymmetry": 1}
    axes = [
        np.linspace(low, high, counts[name] + 2)[1:-1]
        for name, low, high in zip(form.nonlinear, lower, upper, strict=True)
    ]
    nodes = [np.array(node) for node in product(*axes)]
    return sorted(nodes, key=lambda node: _solve(points, form, node).cost)[:STARTS]


def _refine(points: Points, form: Form, start: Array, lower: Array, upper: Array) -> Fit:
    def residual(nonlinear: Array) -> Array:
        fit = _solve(points, form, nonlinear)
        result: Array = points.weight * (points.torque - fit.predict(points))
        return result

    best = least_squares(residual, start, bounds=(lower, upper), x_scale="jac", xtol=1e-7, ftol=1e-9, max_nfev=60)
    return _solve(points, form, best.x)


def _solve(points: Points, form: Form, nonlinear: Array) -> Fit:
    """Return the linear numbers for given nonlinear ones; those that cannot be negative are not."""
    A = np.column_stack([columns(form, points.speed, nonlinear), points.extra]) * points.weight[:, None]
    x, cost = _bounded(A, points.torque * points.weight, form.signed)
    count = len(form.linear)
    return Fit(form, nonlinear, x[:count], x[count:], cost)


def _bounded(A: Array, y: Array, signed: int) -> tuple[Array, float]:
    """Return x and the cost of min |A x - y|², the first `signed` of x not negative."""
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    R = qr(np.column_stack([A / scale, y]), mode="r", check_finite=False)[0]
    k = A.shape[1]
    square, right = R[:k, :k], R[:k, k]
    x = np.linalg.lstsq(square, right, rcond=1e-12)[0]
    if (x[:signed] < 0.0).any():
        split, _ = nnls(np.column_stack([square, -square[:, signed:]]), right, maxiter=100 * k)
        x = split[:k] - np.concatenate([np.zeros(signed), split[k:]])
    residual = y - A @ (x / scale)
    return x / scale, float(residual @ residual)
