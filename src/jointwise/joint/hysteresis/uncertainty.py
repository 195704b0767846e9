"""Uncertainty of a friction law: jackknife over blocks of swings, and fits under other treatments of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jointwise.estimation.gram import gram_covariance
from jointwise.estimation.jackknife import student_factor
from jointwise.joint.hysteresis.data import Loops, make_loops
from jointwise.joint.hysteresis.fit import HysteresisFit, Names, fit_forces, refine
from jointwise.joint.hysteresis.methods import Rise, Viscous, known_rise, viscous_friction
from jointwise.joint.hysteresis.normal_equations import LINEAR
from jointwise.joint.laws import LADDERS, SLIP, StoredCovariance
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

SHARED = ("growth", "extra", "speed", "rate", "inertia", "viscous", "offset")
"""Parameters behind those of the elements in a parameter vector; logarithms of speed and rate."""


@dataclass(frozen=True, eq=False)
class LawEstimate:
    """A fitted law with the covariance of its parameters [W_i, ln D_i, c, e, ln V, ln rate, inertia, F_V, f_0].

    Attributes:
        fit: The fit.
        covariance: Covariance, (parameters, parameters), in the units of `FrictionLaw`.
        factor: Half-width of a 95 % confidence interval in standard errors.
    """

    fit: HysteresisFit
    covariance: Array
    factor: float

    @property
    def forces(self) -> Array:
        """Gradients of the forces, (forces, parameters)."""
        return np.eye(len(self.covariance))[: len(self.fit.law.forces)]

    @property
    def limits(self) -> Array:
        """Gradients of ln D_i, (elements, parameters)."""
        start = len(self.fit.law.forces)
        return np.eye(len(self.covariance))[start : start + len(self.fit.law.limits)]

    def gradient(self, name: str) -> Array:
        """Return the gradient (parameters,) of one of the `SHARED` parameters."""
        gradient: Array = np.eye(len(self.covariance))[SHARED.index(name) - len(SHARED)]
        return gradient

    def standard_error(self, gradient: Array) -> float:
        """Return the standard error of a quantity with a gradient (parameters,)."""
        return float(np.sqrt(max(float(gradient @ self.covariance @ gradient), 0.0)))


def estimate(fit: HysteresisFit, treatments: Sequence[Sequence[HysteresisFit]] = ()) -> LawEstimate:
    """Return the covariance of a fit; `treatments`: for every question the fits under other treatments.

    Leaving out blocks shows how well the data of one treatment determine the parameters. It does not show that a path
    with another smoothing, or limits that keep to no ladder, have other parameters, nor the uncertainty of friction
    that was taken as known. Each of these questions adds the mean of ΔΔᵀ over its fits to the covariance.
    """
    jacobian = _jacobian(fit)
    covariance = jacobian @ gram_covariance(fit.grams) @ jacobian.T
    centre = _vector(fit)
    for fits in treatments:
        moves = [_vector(other) - centre for other in fits if len(other.law.limits) == len(fit.law.limits)]
        if moves:
            covariance = covariance + np.mean([np.outer(move, move) for move in moves], axis=0)
    return LawEstimate(fit, covariance, student_factor(len(fit.grams) - 1))


def _vector(fit: HysteresisFit) -> Array:
    law = fit.law
    shared = law.growth, law.extra, np.log(law.speed), np.log(law.rate), fit.inertia, law.viscous, law.offset
    return np.concatenate([law.forces, np.log(law.limits), shared])


def _jacobian(fit: HysteresisFit) -> Array:
    """Return the derivative of the parameter vector with respect to the unknowns of `grams`."""
    forces, limits, places = len(fit.law.forces), len(fit.law.limits), fit.unknowns()
    J = np.zeros((forces + limits + len(SHARED), fit.grams.shape[1] - 1))
    if limits:
        J[:forces, places["forces"]] = np.eye(forces) if fit.shares is None else fit.shares[:, None]
    else:  # static laws have no columns of forces at zero
        J[np.flatnonzero(fit.law.forces > 0.0), np.arange(np.count_nonzero(fit.law.forces > 0.0))] = 1.0
    rows = {"limits": np.arange(limits), "growth": [limits], "rise": [limits + 1, limits + 2], "rate": [limits + 3]}
    for name in fit.free:
        if name == "scale":
            J[forces : forces + limits, places[name]] = 1.0
        else:
            J[forces + np.array(rows[name]), np.r_[places[name]]] = 1.0
    J[-LINEAR:, -LINEAR:] = np.eye(LINEAR)
    return J


def other_treatments(
    record: JointRecord, loops: Loops, fit: HysteresisFit, backlash: Array | None, steady: Viscous | Part | None
) -> list[list[HysteresisFit]]:
    """Return the fits of a slip model with other paths, without a ladder and with other known friction; () for others.

    Other known friction is one standard error from the `steady` part along each principal axis of its covariance.
    """
    law = fit.law
    if law.model not in SLIP:
        return []
    free = tuple(name for name in fit.free if name != "scale")
    paths = [record.position] if record.theta is None else [record.position, record.theta]
    viscous = viscous_friction(steady, record)
    others = [make_loops(replace(record, path=path), backlash, viscous) for path in paths]
    questions = [[refine(other, fit_forces(other, law, fit.shares), free) for other in others]]
    if law.model in LADDERS:
        questions.append([refine(loops, fit_forces(loops, law), ("limits", *free))])
    if isinstance(steady, Part):
        questions += [_with_known(record, loops, fit, pair, free) for pair in perturbed_parts(steady)]
    return questions


def _with_known(
    record: JointRecord, loops: Loops, fit: HysteresisFit, parts: Sequence[Part], free: Names
) -> list[HysteresisFit]:
    """Return the fits with other friction parts taken as known."""
    fits = []
    for steady in parts:
        other = replace(loops, friction=record.friction - viscous_friction(steady, record))
        rise = known_rise(steady) or Rise(fit.law.extra, fit.law.speed, fit.law.exponent)
        law = replace(fit.law, extra=rise.extra, speed=rise.speed, exponent=rise.exponent)
        fits.append(refine(other, fit_forces(other, law, fit.shares), free))
    return fits


# -- uncertainty of known friction --

KNOWN = ("F_C", "F_S-F_C", "V_S", "mu", "F_V1", "F_V2", "F_V3")
"""Values of a friction part that are taken as known."""
LOGARITHMIC = ("V_S", "mu")
"""Those whose covariance in a friction part is that of their logarithm."""


def perturbed_parts(part: Part) -> Iterator[tuple[Part, Part]]:
    """Yield pairs of friction parts one standard error to either side along each principal axis of the covariance.

    V_S and mu move by their logarithm. The values of a part without a covariance are taken as independent.
    """
    names = [value.name for value in part.values if value.name in KNOWN]
    variances, axes = np.linalg.eigh(_covariance(part, names))
    for step in (axes * np.sqrt(np.maximum(variances, 0.0))).T:
        if step.any():
            yield _perturbed(part, names, step), _perturbed(part, names, -step)


@dataclass(frozen=True)
class _StoredUncertainty:
    """The part of the settings that describes uncertainty; friction that is known otherwise may have none."""

    covariance: StoredCovariance = field(default_factory=StoredCovariance)


def _covariance(part: Part, names: list[str]) -> Array:
    """Return the covariance of some values, logarithms instead of V_S and mu."""
    stored = part.settings_as("friction", _StoredUncertainty).covariance
    if set(names) <= set(stored.names):
        at = [stored.names.index(name) for name in names]
        return np.array([[stored.values[i][j] for j in at] for i in at])
    deviations = [part.value(name).deviation / (part[name] if name in LOGARITHMIC else 1.0) for name in names]
    return np.diag(np.square(deviations))


def _perturbed(part: Part, names: list[str], step: Array) -> Part:
    """Return a part with its values moved by a step; logarithms move by at most one."""
    moves = dict(zip(names, step.tolist(), strict=True))
    for name in set(LOGARITHMIC) & moves.keys():
        moves[name] = part[name] * float(np.expm1(np.clip(moves[name], -1.0, 1.0)))
    values = tuple(replace(value, value=value.value + moves.get(value.name, 0.0)) for value in part.values)
    return replace(part, values=values)
