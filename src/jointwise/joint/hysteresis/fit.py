"""Least squares of a friction law: forces by linear least squares, the other parameters by a trust-region search.

Variable projection (Golub, Pereyra, SIAM J. Numerical Analysis 10(2), 1973): at every trial of the non-linear
parameters the forces (>= 0), rotor inertia, viscous friction and offset are solved anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import least_squares

from jointwise.estimation.gram import (
    as_residual,
    eliminated,
    held_out_block_errors,
    joined_columns,
    non_negative_solution,
)
from jointwise.joint.hysteresis.data import Loops
from jointwise.joint.hysteresis.normal_equations import LINEAR, column_grams, slip_grams
from jointwise.joint.laws import RATED, SLIP, STATIC, FrictionLaw
from jointwise.joint.part import TINY
from jointwise.model.terms import load_growth
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
SPEEDS = (5e-4, 1.0)
"""Range (rad/s) of the Stribeck speed V: slower ones vanish in the noise of speed, faster ones are viscous friction."""
RATES = (0.1, 1e4)
"""Range (1/s) of the rate of slip: slower or faster than any sampled motion."""
CONVERGED = 1e-7
"""Relative reduction of the squared error by a step below which a search ends: the error of a million samples has a
standard error of 1e-3. Along a rise that the data hardly determine, smaller reductions go on for hundreds of steps."""
NUDGE = np.cbrt(np.finfo(np.float64).eps)
"""Step of central differences of quantities of size one, at which rounding and curvature weigh the same."""


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
    """Return the best fit from a start on; elements of slip models that carry no force are removed.

    Args:
        loops: The data.
        start: Fit to start from.
        free: Names of the free non-linear parameters; none leaves those of the start as they are.
    """
    fit = _pruned(loops, start)
    if not free:
        return fit
    found = _optimum(loops, fit, free)
    return found if _pruned(loops, found) is found else refine(loops, found, free)


def _pruned(loops: Loops, fit: HysteresisFit) -> HysteresisFit:
    """Return the fit of a slip model without elements that carry no force; fixed shares stay."""
    kept = fit.law.forces > 0.0
    if fit.law.model not in SLIP or fit.shares is not None or kept.all() or not kept.any():
        return fit
    return fit_forces(loops, replace(fit.law, limits=fit.law.limits[kept]))


def _optimum(loops: Loops, start: HysteresisFit, free: Names) -> HysteresisFit:
    """Return the minimum of the squared error over the free parameters, each within its range.

    The samples enter by their sums alone: the residual ``(|r|, 0, ..., 0)`` with the Jacobian K of
    `_projected_jacobian` has the squared error, the gradient and the Gauss-Newton matrix of all samples.
    """

    @lru_cache(maxsize=1)
    def fit_at(step: tuple[float, ...]) -> HysteresisFit:
        return fit_forces(loops, moved(start.law, np.array(step), free), start.shares)

    def residual(step: Array) -> Array:
        return np.append(np.sqrt(max(fit_at(tuple(step)).error, 0.0)), np.zeros(len(step)))

    def jacobian(step: Array) -> Array:
        return -_projected_jacobian(loops, fit_at(tuple(step)), free)

    low, high, size = _step_ranges(loops, start.law, free)
    at = np.zeros(len(size))
    found = least_squares(residual, at, jacobian, (low, high), "dogbox", ftol=CONVERGED, x_scale=size)
    return _resolved(loops, fit_at(tuple(found.x)))


def _projected_jacobian(loops: Loops, fit: HysteresisFit, free: Names) -> Array:
    """Return K (parameters + 1, parameters) with ``Kᵀ K = Jᵀ P J`` and ``Kᵀ (|r|, 0, ..., 0) = Jᵀ r``.

    J are the derivatives of friction with respect to the free parameters, r the residual, and P projects onto what the
    linear parameters cannot explain (Kaufman, BIT 15(1), 1975).
    """
    gram = residual_grams(loops, fit, free).sum(axis=0)
    forces, count = fit.free_forces, len(gram) - 1
    nonlinear = np.arange(len(forces), count - LINEAR)
    linear = np.concatenate([np.flatnonzero(forces > 0.0), np.arange(count - LINEAR, count)])
    order, size = np.concatenate([nonlinear, linear]), np.sqrt(np.maximum(np.diag(gram), TINY))
    A, b = gram[np.ix_(order, order)] / np.outer(size[order], size[order]), gram[order, -1] / (size[order] * size[-1])
    A, b = eliminated(A, b, len(nonlinear))
    values, vectors = np.linalg.eigh(A - np.outer(b, b))
    result: Array = np.vstack([b, np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T]) * size[nonlinear]
    return result


def complete(loops: Loops, fit: HysteresisFit, free: Names) -> HysteresisFit:
    """Return a fit with its Gram matrices and held-out errors."""
    law = fit.law
    loaded = law.load if law.model in STATIC else law.growth > 0.0
    law = replace(law, load=bool(loaded), most_load=loops.largest_load if loaded else None)
    fit = replace(fit, law=law, free=free, grams=residual_grams(loops, fit, free))
    places = fit.unknowns()
    relative = [np.r_[places[name]] for name in ("limits", "scale", "rise", "rate") if name in places]
    return replace(fit, held_out=held_out_block_errors(fit.grams, np.concatenate([np.empty(0, np.intp), *relative])))


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


def _step_ranges(loops: Loops, law: FrictionLaw, free: Names) -> tuple[Array, Array, Array]:
    """Return the lowest and highest steps of the free parameters from a law, and their usual size, (parameters,)."""
    ranges = {
        "limits": limit_range(loops),
        "growth": (0.0, np.inf),
        "extra": (0.0 if law.model in RATED else -1.0, np.inf),
        "speed": SPEEDS,
        "rate": RATES,
    }
    lows, highs, sizes = [], [], []
    for name in free:
        for entry, is_log in FREE[name]:
            values = np.atleast_1d(getattr(law, entry))[-1 if name == "scale" else None :]
            low, high = (np.log(bound / values) if is_log else bound - values for bound in ranges[entry])
            lows.append(np.minimum(low, 0.0))
            highs.append(np.maximum(high, 0.0))
            sizes.append(np.full(len(values), loops.largest_load**-law.power if entry == "growth" else 1.0))
    return np.concatenate(lows), np.concatenate(highs), np.concatenate(sizes)


def limit_range(loops: Loops) -> tuple[float, float]:
    """Return the range (rad) in which limits are searched."""
    return max(0.5 * loops.smallest, loops.resolution), loops.largest


def _resolved(loops: Loops, fit: HysteresisFit) -> HysteresisFit:
    """Return a fit with limits in ascending order and, for slip models, at least the resolution apart."""
    if fit.law.model not in SLIP:
        return fit
    limits = np.sort(fit.law.limits)
    for i in range(1, len(limits)):
        limits[i] = max(limits[i], limits[i - 1] + loops.resolution)
    if np.array_equal(limits, fit.law.limits):
        return fit
    return fit_forces(loops, replace(fit.law, limits=limits), fit.shares)
