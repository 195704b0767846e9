"""Least squares of a spring on all torques at once, with offsets, rotor friction, damping and gear errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import least_squares

from jointwise.estimation.jackknife import newton_replicates, student_factor
from jointwise.estimation.linear_fit import scaled_solution
from jointwise.joint.part import TINY, nrmse_percent, rms
from jointwise.joint.stiffness.data import LARGEST, StiffnessRows
from jointwise.joint.stiffness.law import SpringFamily
from jointwise.model.terms import LOAD_POWERS, load_growth
from jointwise.spatial import Array

WEIGHT_STEPS = 3
"""Rounds of weighting the channels by their residuals."""
FTOL = 1e-7
"""Relative change of the cost at which a search ends: the last steps change the spring by less than 1e-4 of its
standard error, and springs of three segments converge slowly."""
FRICTION_START = 0.1
"""Start of the rotor friction as a fraction of the torque at the largest deformation."""


@dataclass(frozen=True)
class SpringLayout:
    """Order of the parameters of a fit: spring, encoder offset, gear errors (in φ_max), damping, friction.

    ``x = φ/φ_max - x_0 - N f``; gauge and links ``= τ(x) + D φ̇``, motor
    ``= τ(x) + (z w + h |z w|) (1 + g (τ/τ_max)²) + c``: rotor friction that grows with the load and differs by
    direction; D cannot be separated from it.

    Attributes:
        family: Family of springs, which has their parameters.
        shifts: Number of unknown gear errors f.
        slips: Number of slip elements w of the rotor; 0 without a motor channel.
        damping: Whether D is estimated.
        gauge: Whether a gauge measures the torque too, so that the motor has an offset c.
    """

    family: SpringFamily
    shifts: int
    slips: int
    damping: bool
    gauge: bool

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of parameters of each kind, in order."""
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

    @property
    def others(self) -> int:
        """Number of parameters besides those of the spring."""
        return sum(self.sizes.values()) - self.sizes["spring"]

    def split(self, values: Array) -> dict[str, Array]:
        """Return the parameters by kind."""
        edges = np.cumsum(list(self.sizes.values()))[:-1]
        return dict(zip(self.sizes, np.split(values, edges), strict=True))


@dataclass(frozen=True)
class SpringFit:
    """A fitted spring.

    Attributes:
        layout: Order of the parameters.
        largest: φ_max, rad.
        top: Largest torque τ_max, Nm.
        values: Parameters in the order of the layout, (parameters,).
        replicates: The same without one block each, (blocks, parameters).
    """

    layout: SpringLayout
    largest: float
    top: float
    values: Array
    replicates: Array

    @property
    def offset(self) -> float:
        """Encoder offset φ_0, rad."""
        return float(self.largest * self.layout.split(self.values)["offset"][0])

    def physical(self, values: Array) -> Array:
        """Return the spring parameters of `values` (of the fit or a replicate) in SI units."""
        return self.layout.family.physical(self.layout.split(values)["spring"], self.largest)

    def torque(self, values: Array, phi: Array) -> Array:
        """Return τ_J in Nm at deformations φ, rad, for the values of the fit or a replicate."""
        return self.layout.family.torque(self.layout.split(values)["spring"], phi / self.largest)

    def stiffness(self, values: Array, phi: Array) -> Array:
        """Return dτ_J/dφ in Nm/rad at deformations φ, rad, for the values of the fit or a replicate."""
        return self.layout.family.slope(self.layout.split(values)["spring"], phi / self.largest) / self.largest

    @property
    def factor(self) -> float:
        """Half width of a 95 % confidence interval in standard errors."""
        return student_factor(len(self.replicates) - 1)

    def deformation(self, rows: StiffnessRows) -> Array:
        """Return the deformation of the spring, rad: φ without offset and gear errors."""
        parts = self.layout.split(self.values)
        return rows.phi - self.largest * (parts["offset"] + rows.shifts @ parts["shifts"])

    @property
    def undamped(self) -> SpringFit:
        """The same spring without damping."""
        parts = self.layout.split(self.values)
        return replace(self, values=np.concatenate(list((parts | {"damping": 0.0 * parts["damping"]}).values())))

    def predicted(self, rows: StiffnessRows) -> dict[str, Array]:
        """Return the modelled torque of every channel, Nm."""
        return predict(self.layout, self.values, rows, self.largest, self.top)

    def quality(self, rows: StiffnessRows) -> float:
        """Return the NRMSE % of all channels together."""
        predicted = self.predicted(rows)
        measured, modelled = (np.concatenate([t[n] for n in rows.torques]) for t in (rows.torques, predicted))
        return nrmse_percent(measured, modelled)


def predict(layout: SpringLayout, values: Array, rows: StiffnessRows, largest: float, top: float) -> dict[str, Array]:
    """Return the modelled torque of every channel, Nm (rows,)."""
    parts = layout.split(values)
    u = rows.phi / largest - parts["offset"] - rows.shifts @ parts["shifts"]
    spring = layout.family.torque(parts["spring"], u)
    damped = spring + parts["damping"] * rows.rate if layout.damping else spring
    predicted = dict.fromkeys(rows.torques, damped)
    if "motor" in predicted and layout.slips:
        growth = 1.0 + parts["growth"] * load_growth(spring / top, LOAD_POWERS["square"])
        offset = parts["motor offset"] if layout.gauge else 0.0
        friction = rows.slips @ parts["friction"]
        predicted["motor"] = spring + (friction + parts["asymmetry"] * np.abs(friction)) * growth + offset
    return predicted


def fit_spring(family: SpringFamily, rows: StiffnessRows) -> SpringFit:
    """Return the least-squares spring on all torques, each channel weighted by its residual."""
    layout = SpringLayout(
        family,
        rows.shifts.shape[1],
        rows.slips.shape[1] if "motor" in rows.torques else 0,
        "motor" not in rows.torques or "gauge" in rows.torques,
        "gauge" in rows.torques,
    )
    largest = float(np.quantile(np.abs(rows.phi - np.median(rows.phi)), LARGEST))
    top = max(float(np.max(np.abs(torque))) for torque in rows.torques.values())
    problem = _Problem(layout, rows, largest, top)
    weights = dict.fromkeys(rows.torques, 1.0 / top)
    values = None
    for _ in range(WEIGHT_STEPS if len(weights) > 1 else 0):
        values, residual, _ = problem.solve(weights, values)
        weights = problem.weights(residual, weights)
    values, residual, jacobian = problem.solve(weights, values)
    block = np.tile(rows.block, len(rows.torques))
    return SpringFit(layout, largest, top, values, newton_replicates(values, residual, jacobian, block))


@dataclass(frozen=True)
class _Problem:
    """Nonlinear least squares of one layout on some rows."""

    layout: SpringLayout
    rows: StiffnessRows
    largest: float
    top: float

    def solve(self, weights: dict[str, float], start: Array | None) -> tuple[Array, Array, Array]:
        """Return parameters, residuals and Jacobian (rows of all channels)."""

        def residual(values: Array) -> Array:
            if self.rows.kind == "free":
                return self._deformation_residual(values)
            predicted = predict(self.layout, values, self.rows, self.largest, self.top)
            return np.concatenate([weights[n] * (predicted[n] - tau) for n, tau in self.rows.torques.items()])

        low, high = self.layout.family.bounds
        free = np.full(self.layout.others, np.inf)
        bounds = (np.append(low, -free), np.append(high, free))
        starts = [start] if start is not None else self._starts()
        fits = [least_squares(residual, x, bounds=bounds, x_scale="jac", ftol=FTOL) for x in starts]
        best = min(fits, key=lambda fit: float(fit.cost))
        return best.x, best.fun, best.jac

    def weights(self, residual: Array, weights: dict[str, float]) -> dict[str, float]:
        """Return one over the rms residual of every channel, 1/Nm."""
        parts = np.split(residual, len(self.rows.torques))
        sizes = {name: rms(part) / weights[name] for name, part in zip(weights, parts, strict=True)}
        least = np.finfo(np.float64).eps * self.top
        return {name: 1.0 / max(size, least) for name, size in sizes.items()}

    def _deformation_residual(self, values: Array) -> Array:
        """Return ``(τ - D φ̇ - τ_J(u)) / k(u)``, ``u = φ/φ_max - x_0 - N f``: the error of u to first order.

        In free motion the gear errors are part of φ, not of the torque. A trial step to a spring without stiffness has
        no finite residual, and the search then takes a shorter one.
        """
        parts, family = self.layout.split(values), self.layout.family
        u = self.rows.phi / self.largest - parts["offset"] - self.rows.shifts @ parts["shifts"]
        torque = self.rows.torques["links"] - parts["damping"] * self.rows.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            return (torque - family.torque(parts["spring"], u)) / family.slope(parts["spring"], u)

    def _starts(self) -> list[Array]:
        """Return starts: a linear spring on the first torque, with what it implies for the other parameters."""
        slope, others = self._free_start() if self.rows.kind == "free" else self._locked_start()
        return [np.concatenate([spring, others]) for spring in self.layout.family.starts(slope)]

    def _locked_start(self) -> tuple[float, Array]:
        """Return slope (Nm) and other parameters: the offset centres the deformation, the slope is that of extremes."""
        torque = next(iter(self.rows.torques.values()))
        slope = float(np.std(torque) / np.std(self.rows.phi / self.largest))
        others = np.zeros(self.layout.others)
        others[0] = np.median(self.rows.phi) / self.largest
        others[1 : 1 + self.layout.slips] = FRICTION_START * slope / max(self.layout.slips, 1)
        return slope, others

    def _free_start(self) -> tuple[float, Array]:
        """Return slope (Nm) and offset, gear errors, damping of a linear spring: ``u = c τ - c D φ̇ + x_0 + N f``."""
        found, _ = linear_motion(self.rows, self.largest)
        slope = 1.0 / max(found[0], TINY)
        return slope, np.concatenate([found[2:], [-found[1] * slope]])


def linear_motion(rows: StiffnessRows, largest: float) -> tuple[Array, float]:
    """Return c, -c D, x_0, f of a linear spring by least squares, and the rms residual of φ/φ_max."""
    columns = [rows.torques["links"], rows.rate, np.ones(len(rows.phi)), *rows.shifts.T]
    W, y = np.column_stack(columns), rows.phi / largest
    found = scaled_solution(W, y)
    return found, rms(W @ found - y)
