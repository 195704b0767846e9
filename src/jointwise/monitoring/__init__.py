"""Monitoring of a robot with its calibrated model: contacts, payload, friction, temperature and faults of the data.

``monitor_log(model, log).result()`` monitors a log; `Monitor` does it sample by sample with explicit state, `Session`
collects contacts, numbers and a timeline of a stream, `History` keeps the results of a robot over months;
`StiffnessEstimator` estimates the stiffness of a joint with two encoders while the robot works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.lazy import lazy_names

if TYPE_CHECKING:
    from jointwise.monitoring.core import Known, Reports, Samples
    from jointwise.monitoring.events import Contact, Fault, tool_force
    from jointwise.monitoring.history import History, Trend
    from jointwise.monitoring.learn import residual_spread
    from jointwise.monitoring.monitor import Monitor, MonitorState
    from jointwise.monitoring.session import Session, Timeline, monitor_log
    from jointwise.monitoring.sources import follow_csv, follow_json
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
    from jointwise.monitoring.summary import (
        DataQuality,
        FrictionEstimate,
        MonitorResult,
        PayloadEstimate,
        TemperatureRange,
    )
    from jointwise.monitoring.wear import JointStiffness

__all__ = [
    "Contact",
    "DataQuality",
    "Fault",
    "FrictionEstimate",
    "History",
    "JointStiffness",
    "Known",
    "Monitor",
    "MonitorResult",
    "MonitorState",
    "PayloadEstimate",
    "Reports",
    "Samples",
    "Session",
    "StiffnessEstimate",
    "StiffnessEstimator",
    "StiffnessLimits",
    "StiffnessReport",
    "TemperatureRange",
    "Timeline",
    "Trend",
    "fit_stiffness",
    "follow_csv",
    "follow_json",
    "monitor_log",
    "monitor_stiffness",
    "residual_spread",
    "secant_stiffness",
    "stiffness_status",
    "tool_force",
]

__getattr__, __dir__ = lazy_names(__name__)
