"""Whether the logs excite the arm enough for a model that predicts other motions."""

from __future__ import annotations

import numpy as np

from jointwise.model.transmission import motor_regressor
from jointwise.result.plausibility.evidence import Declaration, Samples, Tolerance, body_covariance
from jointwise.spatial import Array

UNKNOWN_BODIES = Tolerance(mass=1.0, least_mass=5.0, center=0.3, center_share=1.0, inertia=2.0, rotor=2.0)
"""Bodies of which hardly anything is known: what remains uncertain is what the logs do not determine."""
STATES = 200
"""Random states at which the torque is predicted."""


def expected_error(samples: Samples, declaration: Declaration) -> Array:
    """Return the expected MSE/variance of the torque of bodies on other motions, (joints,), NaN where a joint rests.

    The variance ``Y C Yᵀ`` of the predicted torque, C the covariance of the bodies given the logs alone, at random
    positions of the moving joints with the speeds and accelerations of the logs, relative to the torque's variance.
    """
    values, covariance = body_covariance(samples, declaration, UNKNOWN_BODIES)
    rng = np.random.default_rng(0)
    shape = (STATES, samples.joints)
    q = np.where(samples.moving, rng.uniform(-np.pi, np.pi, shape), samples.q.mean(axis=0))
    qd, qdd = rng.normal(size=shape) * samples.qd.std(axis=0), rng.normal(size=shape) * samples.qdd.std(axis=0)
    gravity = tuple(float(x) for x in declaration.gravity)
    regressor = motor_regressor(declaration.robot, q, qd, qdd, gravity=gravity, rotors=True).matrices()
    uncertain = np.einsum("sjp,pq,sjq->j", regressor, covariance, regressor) / STATES
    measured = samples.output[:, :, samples.zero_lag].var(axis=0) * declaration.gains**2
    size = (regressor @ values).var(axis=0) + measured
    return np.where(samples.moving, uncertain / size, np.nan)
