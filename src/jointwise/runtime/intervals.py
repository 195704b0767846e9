"""Prediction intervals: what the uncertainty of the parameters and the residuals mean for a torque."""

from __future__ import annotations

import numpy as np

from jointwise.data.log import Log
from jointwise.distributions import normal_quantile
from jointwise.errors import ModelError
from jointwise.model.transmission import motor_motion
from jointwise.motion import Motion
from jointwise.result.calibration import Calibration
from jointwise.result.feed_forward import applicable_use
from jointwise.result.predict import motion_function_chunks
from jointwise.spatial import Array


def half_widths(calibration: Calibration, motion: Motion, load: Array, level: float, observation: bool) -> Array:
    """Return half the width of the interval of the torque along a motion, (samples, joints), Nm.

    ``√(t² y C yᵀ + z² σ²)``: y the regressor row, C the covariance of the parameters, t Student's quantile, σ (with
    `observation`) the standard deviation of the residuals, z the normal quantile. Infinite where a parameter that is
    not identifiable acts.

    Args:
        calibration: The calibration.
        motion: A motion with all signals that the terms need.
        load: Load torque of the terms (samples, joints), Nm.
        level: Probability, between 0 and 1.
        observation: Whether σ is part of it.

    Raises:
        ModelError: The level is not between 0 and 1.

    """
    if not 0.0 < level < 1.0:
        raise ModelError(f"level must be between 0 and 1. Got {level} instead.")
    model, estimate = calibration.model, calibration.estimate
    undetermined = np.array([status == "undetermined" for status in estimate.status])
    variance = np.empty((motion.samples, motion.joints))
    motor = motor_motion(model.robot, motion, model.rotor_side)
    for j, rigid in enumerate(model.rigid_columns(motion)):
        rows = np.column_stack([rigid.T, model.term_columns(motor, j, load)])
        index = model.joint_index(j)
        variance[:, j] = np.einsum("ij,jk,ik->i", rows, estimate.covariance[np.ix_(index, index)], rows, optimize=True)
        variance[np.abs(rows[:, undetermined[index]]).max(axis=1, initial=0.0) > 0.0, j] = np.inf
    t, z = estimate.factor_at(level), normal_quantile(0.5 + 0.5 * level) if observation else 0.0
    half: Array = np.sqrt(np.square(t) * np.maximum(variance, 0.0) + np.square(z * estimate.sigma))
    return half


def log_half_widths(calibration: Calibration, log: Log, level: float) -> Array:
    """Return half the width of the interval of the measured output at every stamp of a log, (samples, joints)."""
    if log.run_in is not None:
        return log_half_widths(calibration, log.run_in, level)[-log.samples :]
    if applicable_use(calibration, log.available) == "feed-forward":
        log = log.without([name for name in calibration.extras if name in log.available])
        calibration = calibration.for_use("feed-forward")
    model, values = calibration.model, calibration.estimate.values

    def widths(motion: Motion) -> Array:
        load = model.load_torque(model.rigid_columns(motion), values)
        half: Array = half_widths(calibration, motion, load, level, observation=True) / np.abs(calibration.gains)
        return half

    result = np.empty((log.samples, log.joints))
    for rows, part in motion_function_chunks(widths, log, calibration.filters):
        result[rows] = part
    return result
