"""Least squares of a friction law: forces by linear least squares, the other parameters by Levenberg-Marquardt.

Variable projection (Golub, Pereyra, SIAM J. Numerical Analysis 10(2), 1973): at every trial of the non-linear
parameters the forces (>= 0), rotor inertia, viscous friction and offset are solved anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import block_diag

from jointwise.estimation.gram import (
    as_residual,
    damped_step,
    held_out_block_errors,
    joined_columns,
    non_negative_solution,
)
from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.hysteresis.law import RATED, SLIP, STATIC, FrictionLaw
from jointwise.joint.hysteresis.normal_equations import LINEAR, column_grams, slip_grams
from jointwise.model.friction import load_growth
from jointwise.spatial import Array

Names = tuple[str, ...]
"""Names of free non-linear parameters, in the order of `FREE`."""
FREE: dict[str, tuple[tuple[str, bool], ...]] = {
    "limits": (("limits", True),),
    "scale": (("limits", True),),
    "growth": (("growth", False),),
    "rise": (("extra", False), ("speed", True)),
    "rate": (("rate", True),),
}
"""Entries of a law that a free parameter moves, and whether by their logarithm; "scale" moves all limits alike."""

MAX_STEPS = 25
"""Levenberg-Marquardt steps; a fit needs about ten."""
CONVERGED = 1e-7
"""Relative reduction of the squared error by a step below which the fit has converged."""
DAMPING = 1e-3
"""First damping, relative to columns of unit length."""
DAMPING_RANGE = (1e-9, 1e6)
"""Below, a step is that of Gauss-Newton to rounding; above, no shorter step can reduce the error."""
DAMPING_FACTORS = (0.2, 10.0)
"""Change of the damping after a step that reduced the error, and after one that did not."""
NUDGE = 1e-3
"""Step of the central differences, relative: between rounding and curvature."""
NO_FORCE = 1e-9
"""Force of an element relative to the total below which the element is removed."""
RATED_LIMITS = (1e-6, 0.05)
"""Range (rad) of the limits of rate-dependent elements and of the length of bristles."""
SPEEDS = (2e-3, 1.0)
"""Range (rad/s) of the Stribeck speed V: slower ones vanish in the noise of speed, faster ones are viscous friction."""
SEPARATION = 1e-6
"""Smallest relative difference of two limits where the positions resolve any."""
EXTRAS = (-0.9, 5.0)
"""Range of the rise e; not below zero for rate-dependent models."""
RATES = (0.1, 1e4)
"""Range (1/s) of the rate of slip: slower or faster than any sampled motion."""


@dataclass(frozen=True, eq=False)
class HysteresisFit:
    """A fitted law.

    Attributes:
        law: The law.
        inertia: Rotor inertia (kg m²) where it was estimated, else 0.
        error: Sum of squared residuals, Nm².
        shares: Fixed shares of the elements (elements,) where one force is free, None where all are.
        free: Names of the free non-linear parameters.
        grams: Gram matrices (blocks, p, p) of Jacobian and residual at the solution.
        held_out: Mean squared error of every block when its fold is held out, (blocks,) Nm².
        jumps: Standard errors of ln D_i and W_i from the choice of the limits (`choice_spread`), or None.
    """

    law: FrictionLaw
    inertia: float
    error: float
    shares: Array | None = None
    free: Names = ()
    grams: Array = field(default_factory=lambda: np.empty((0, 0, 0)))
    held_out: Array = field(default_factory=lambda: np.empty(0))
    jumps: tuple[Array, Array] | None = None

    @property
    def free_forces(self) -> Array:
        """The forces that were estimated, Nm: those of the elements, or their sum where the shares are fixed."""
        return self.law.forces if self.shares is None else self.law.forces.sum(keepdims=True)

    def unknowns(self) -> dict[str, slice]:
        """Return the places of forces and free parameters in the columns of `grams`."""
        start = len(self.free_forces)
        places = {"forces": slice(start)}
        for name, size in zip(self.free, _sizes(self.law, self.free), strict=True):
            places[name] = slice(start, start := start + size)
        return places


def fit_forces(loops: Loops, law: FrictionLaw, shares: Array | None = None) -> HysteresisFit:
    """Return the law with the best forces, rotor inertia, viscous friction and offset, its other parameters fixed.

    ``min |f - C W - B θ̈ - F_V ω - f_0|²`` over all used samples with W >= 0, from Gram matrices.

    Args:
        loops: The data.
        law: The law with its limits, growth, rise and rate; its forces are not used.
        shares: Fixed shares of the elements, (elements,), so that one force is free; None for free forces.
    """
    if law.model in SLIP:
        law = replace(law, forces=np.empty(0))
        grams = _grouped(slip_grams(loops, law), len(law.limits), (), shares)
    else:
        grams = column_grams(loops, [law], lambda columns, _: columns[0])
    x, error = non_negative_solution(grams.sum(axis=0), grams.shape[1] - LINEAR - 1)
    forces = x[:-LINEAR] if shares is None else shares * x[0]
    inertia, viscous, offset = (float(value) for value in x[-LINEAR:])
    return HysteresisFit(replace(law, forces=forces, viscous=viscous, offset=offset), inertia, error, shares)


def refine(loops: Loops, start: HysteresisFit, free: Names) -> HysteresisFit:
    """Return the best fit from a start on by Levenberg-Marquardt steps of the free non-linear parameters.

    Elements of slip models whose force is zero are removed.

    Args:
        loops: The data.
        start: Fit to start from.
        free: Names of the free parameters, as in the module; none leaves the start as it is.
    """
    best, damping = _pruned(loops, start), DAMPING
    for _ in range(MAX_STEPS if free else 0):
        step = damped_step(residual_grams(loops, best, free).sum(axis=0), damping)
        step = np.clip(step[len(best.free_forces) : -LINEAR], -1.0, 1.0)
        law = bounded(moved(best.law, step, free), loops, free)
        trial = _pruned(loops, fit_forces(loops, law, best.shares))
        gain = best.error - trial.error
        damping = max(damping * DAMPING_FACTORS[gain <= 0.0], DAMPING_RANGE[0])
        best = trial if gain > 0.0 else best
        if 0.0 <= gain < CONVERGED * best.error or damping > DAMPING_RANGE[1]:
            break
    return best


def complete(loops: Loops, fit: HysteresisFit, free: Names) -> HysteresisFit:
    """Return a fit with its Gram matrices and held-out errors."""
    law = fit.law
    loaded = law.load if law.model in STATIC else law.growth > 0.0
    law = replace(law, load=bool(loaded), most_load=loops.largest_load if loaded else None)
    fit = replace(fit, law=law, free=free, grams=residual_grams(loops, fit, free))
    places = fit.unknowns()
    relative = [np.r_[places[name]] for name in ("limits", "scale", "rise", "rate") if name in places]
    return replace(fit, held_out=held_out_block_errors(fit.grams, np.concatenate([np.empty(0, np.intp), *relative])))


def _pruned(loops: Loops, fit: HysteresisFit) -> HysteresisFit:
    """Return the fit of a slip model without elements that carry no force; fixed shares stay."""
    kept = fit.law.forces > NO_FORCE * fit.law.forces.sum()
    if fit.law.model not in SLIP or fit.shares is not None or kept.all() or not kept.any():
        return fit
    return fit_forces(loops, replace(fit.law, limits=fit.law.limits[kept]))


# -- derivatives -----------------------------------------------------------------------------------------------------


def residual_grams(loops: Loops, fit: HysteresisFit, free: Names) -> Array:
    """Return CᵀC (blocks, p, p) of forces, free parameters, linear columns and the residual of a fit.

    Static laws have no columns of forces at their bound of zero.
    """
    law = fit.law
    if law.model in SLIP:
        names = tuple("limits" if name == "scale" else name for name in free)
        grams = _grouped(slip_grams(loops, law, names), len(law.limits), free, fit.shares)
    elif law.model in RATED:
        grams = _rated_grams(loops, law, free)
    else:
        grams = column_grams(loops, [law], lambda columns, _: columns[0])
    slopes = np.zeros(grams.shape[1] - len(fit.free_forces) - LINEAR - 1)
    grams = as_residual(grams, np.array([*fit.free_forces, *slopes, fit.inertia, law.viscous, law.offset]))
    if law.model in STATIC:
        kept = np.append(law.forces > 0.0, np.ones(LINEAR + 1, dtype=bool))
        grams = grams[:, kept][:, :, kept]
    return grams


def _grouped(grams: Array, elements: int, free: Names, shares: Array | None) -> Array:
    """Return normal equations of a slip model for fixed shares and for limits that move by one factor ("scale")."""
    if shares is None and "scale" not in free:
        return grams
    groups = [np.eye(elements) if shares is None else shares[:, None]]
    groups += [np.ones((elements, 1))] if "scale" in free else [np.eye(elements)] if "limits" in free else []
    rest = grams.shape[1] - elements * len(groups)
    return joined_columns(grams, block_diag(*groups, np.eye(rest)))


def _rated_grams(loops: Loops, law: FrictionLaw, free: Names) -> Array:
    """Return CᵀC of a rate-dependent model, its slopes by central differences."""
    searched = tuple(name for name in free if name != "growth")
    steps = NUDGE * np.eye(len(law.limits) + 2 + ("rate" in free))
    laws = [law, *(moved(law, side * step, searched) for step in steps for side in (1.0, -1.0))]

    def combine(columns: list[Array], rows: slice) -> Array:
        pairs = zip(columns[1::2], columns[2::2], strict=True)
        slopes = [(up - down) @ law.forces / (2.0 * NUDGE) for up, down in pairs]
        if "growth" in free:
            growth = load_growth(loops.load[rows], law.power)
            slopes.insert(len(law.limits), growth / (1.0 + law.growth * growth) * (columns[0] @ law.forces))
        return np.column_stack([columns[0], *slopes])

    return column_grams(loops, laws, combine)


# -- steps of the non-linear parameters ------------------------------------------------------------------------------


def moved(law: FrictionLaw, step: Array, free: Names) -> FrictionLaw:
    """Return a law after a step (parameters,) of its free parameters."""
    for name, part in zip(free, np.split(step, np.cumsum(_sizes(law, free))[:-1]), strict=True):
        for k, (entry, is_log) in enumerate(FREE[name]):
            values = np.exp(part) if is_log else part
            change = values if entry == "limits" else float(values[k])
            before = getattr(law, entry)
            law = replace(law, **{entry: before * change if is_log else before + change})
    return law


def _sizes(law: FrictionLaw, free: Names) -> list[int]:
    """Return the number of values of each free parameter."""
    return [len(law.limits) if name == "limits" else len(FREE[name]) for name in free]


def bounded(law: FrictionLaw, loops: Loops, free: Names) -> FrictionLaw:
    """Return a law with its free parameters within their ranges; limits of slip models in order and resolved."""
    rated = law.model in RATED
    if "limits" in free or "scale" in free:
        limits = np.clip(law.limits, *limit_range(law, loops))
        law = replace(law, limits=limits if rated else _separated(np.sort(limits), loops.resolution))
    if "growth" in free:
        law = replace(law, growth=max(law.growth, 0.0))
    if "rise" in free:
        extra = float(np.clip(law.extra, 0.0 if rated else EXTRAS[0], EXTRAS[1]))
        law = replace(law, extra=extra, speed=float(np.clip(law.speed, *SPEEDS)))
    return replace(law, rate=float(np.clip(law.rate, *RATES)))


def limit_range(law: FrictionLaw, loops: Loops) -> tuple[float, float]:
    """Return the range (rad) in which limits are searched."""
    if law.model in RATED:
        return max(RATED_LIMITS[0], loops.resolution), RATED_LIMITS[1]
    return max(0.5 * loops.smallest, loops.resolution), loops.largest


def _separated(limits: Array, resolution: float) -> Array:
    """Return limits in order, at least the resolution apart."""
    for i in range(1, len(limits)):
        limits[i] = max(limits[i], limits[i - 1] + resolution, limits[i - 1] * (1.0 + SEPARATION))
    return limits
