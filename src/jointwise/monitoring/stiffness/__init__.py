"""Stiffness of a joint while the robot works: recursive estimate, batch fit, secant, and status against wear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.lazy import lazy_names

if TYPE_CHECKING:
    from jointwise.monitoring.stiffness.estimate import StiffnessEstimate, fit_stiffness, secant_stiffness
    from jointwise.monitoring.stiffness.estimator import StiffnessEstimator, StiffnessState, StiffnessTrace
    from jointwise.monitoring.stiffness.replay import StiffnessReport, monitor_stiffness
    from jointwise.monitoring.stiffness.signals import JointSamples
    from jointwise.monitoring.stiffness.status import (
        StiffnessLimits,
        StiffnessStatus,
        TorqueFit,
        stiffness_status,
        torque_fit,
    )

__all__ = [
    "JointSamples",
    "StiffnessEstimate",
    "StiffnessEstimator",
    "StiffnessLimits",
    "StiffnessReport",
    "StiffnessState",
    "StiffnessStatus",
    "StiffnessTrace",
    "TorqueFit",
    "fit_stiffness",
    "monitor_stiffness",
    "secant_stiffness",
    "stiffness_status",
    "torque_fit",
]

__getattr__, __dir__ = lazy_names(__name__)
