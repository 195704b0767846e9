"""Whether the logs determine the torque of other motions."""

from __future__ import annotations

import numpy as np

from jointwise.finding import Finding, Severity
from jointwise.model.transmission import motor_regressor
from jointwise.result.plausibility.declaration import Declaration, Tolerance
from jointwise.result.plausibility.evidence import Posterior, posterior
from jointwise.result.plausibility.moments import Moments
from jointwise.result.plausibility.samples import FRICTION, Samples
from jointwise.spatial import Array

EXCITATION_SUSPECT, EXCITATION_CONTRADICTED = 0.03, 0.2
"""Expected MSE/variance on other motions above which a log is suspect, and above which no model can be made of it."""
UNKNOWN_BODIES = Tolerance(mass=1.0, least_mass=5.0, center=0.3, center_share=1.0, inertia=2.0, rotor=2.0)
"""Bodies of which hardly anything is known: what remains uncertain is what the logs do not determine."""
STATES = 200
"""Random states at which the torque is predicted."""


def check_excitation(samples: Samples, declaration: Declaration, moments: Moments) -> Finding:
    """Return whether the logs determine the torque of other motions.

    Args:
        samples: Conditioned samples.
        declaration: What the user declared.
        moments: Second moments of its columns.

    """
    error = expected_error(samples, declaration, moments)
    joint = int(np.nanargmax(error))
    worst = float(error[joint])
    text = f"expected MSE/variance on other motions at most {worst:.2g} (joint {joint + 1})"
    if worst < EXCITATION_SUSPECT:
        return Finding("ok", "excitation", text)
    severity: Severity = "error" if worst >= EXCITATION_CONTRADICTED else "warning"
    advice = f"Record a longer log ({samples.duration.sum():.0f} s of motion here) in which all joints move widely."
    return Finding(severity, "excitation", text, advice)


def expected_error(samples: Samples, declaration: Declaration, moments: Moments) -> Array:
    """Return the expected MSE/variance of the torque on other motions, (joints,), NaN where a joint rests.

    The variance of the predicted torque of bodies and declared terms, given the logs alone, at random positions of the
    moving joints with the speeds and accelerations of the logs, relative to the torque's variance.
    """
    found = posterior(samples, declaration, moments, UNKNOWN_BODIES)
    rng = np.random.default_rng(0)
    q, columns = _random_positions(samples, rng)
    qd, qdd = rng.normal(size=q.shape) * samples.qd.std(axis=0), rng.normal(size=q.shape) * samples.qdd.std(axis=0)
    gravity = tuple(float(x) for x in declaration.gravity)
    regressor = motor_regressor(declaration.robot, q, qd, qdd, gravity=gravity, rotors=True).matrices()
    uncertain = _prediction_variance(found, regressor, columns)
    measured = samples.output[:, :, samples.zero_lag].var(axis=0) * declaration.gains**2
    size = (regressor @ found.bodies).var(axis=0) + measured
    return np.where(samples.moving, uncertain / size, np.nan)


def _random_positions(samples: Samples, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return random positions (states, joints) and the columns beside the bodies there, (joints, states, columns).

    Without declared terms all positions of the moving joints. Terms are known only where the logs have been: then each
    joint is where it was in some sample, independent of the others. Friction is left out.
    """
    columns = np.zeros((samples.joints, STATES, samples.friction.shape[2] + 1))
    if not samples.terms:
        q = rng.uniform(-np.pi, np.pi, (STATES, samples.joints))
        return np.where(samples.moving, q, samples.q.mean(axis=0)), columns
    which = rng.integers(len(samples.q), size=(STATES, samples.joints))
    for j, rows in enumerate(which.T):
        columns[j, :, FRICTION:-2] = samples.friction[j, rows, FRICTION:-1]
        columns[j, :, -1] = 1.0
    return np.take_along_axis(samples.q, which, axis=0), columns


def _prediction_variance(found: Posterior, regressor: Array, columns: Array) -> Array:
    """Return the mean variance (joints,) of ``Y π + F φ``, Nm², NaN where a joint rests.

    With ``φ = φ_0 - R π``, φ_0 of covariance L independent of π of covariance C: ``(Y - F R) C (Y - F R)ᵀ + F L Fᵀ``.

    Args:
        found: Posterior of the parameters.
        regressor: Y, (states, joints, bodies).
        columns: F, (joints, states, columns).

    """
    variance = np.full(len(columns), np.nan)
    for k, j in enumerate(found.joints):
        total = regressor[:, j] - columns[j] @ found.response[k]
        shared = np.einsum("sp,pq,sq->", total, found.covariance, total)
        variance[j] = (shared + np.einsum("sp,pq,sq->", columns[j], found.apart[k], columns[j])) / len(total)
    return variance
