"""Monitors that run beside a robot: the state of its joints from the signals it provides anyway."""

from jointwise.monitoring.stiffness import (
    StiffnessEstimate,
    StiffnessEstimator,
    StiffnessLimits,
    StiffnessReport,
    fit_stiffness,
    monitor_stiffness,
    secant_stiffness,
    stiffness_status,
)

__all__ = [
    "StiffnessEstimate",
    "StiffnessEstimator",
    "StiffnessLimits",
    "StiffnessReport",
    "fit_stiffness",
    "monitor_stiffness",
    "secant_stiffness",
    "stiffness_status",
]
