"""Samples of logs for a monitor, and the rate of a stream."""

from __future__ import annotations

import numpy as np

from jointwise.data.coordinates import model_log
from jointwise.data.log import Log
from jointwise.errors import DataError, ModelError
from jointwise.monitoring.core import Samples
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

SLOWNESS = 0.05
"""Speed (rad/s) below which friction changes its sign or breaks away; that of the C core."""
FIRST = 64
"""Samples of a stream whose stamps decide its rate."""
SLOWEST, FASTEST = 5.0, 4000.0
"""Rates (Hz) between which a stream can be monitored."""


def stream_rate(t: Array) -> float:
    """Return the rate (Hz) of a stream: that of the median step of its first stamps.

    Raises:
        DataError: The stamps do not run forwards, or at a rate that cannot be monitored.

    """
    steps = np.diff(np.asarray(t, dtype=float)[:FIRST])
    steps = steps[np.isfinite(steps) & (steps > 0.0)]
    if not len(steps):
        raise DataError("the stamps of a stream must increase. Got none that do in its first samples.")
    rate = 1.0 / float(np.median(steps))
    if not SLOWEST <= rate <= FASTEST:
        raise DataError(
            f"the rate of a stream must be {SLOWEST:g} to {FASTEST:g} Hz. Got {rate:.4g} Hz: are its stamps in s?"
        )
    return round(rate, 6)


def log_samples(model: RobotModel, log: Log) -> Samples:
    """Return the samples of a log for the monitor of a model.

    Raises:
        DataError: The log has no output of the model.
        ModelError: The log has another number of joints.

    """
    if log.joints != model.dof:
        raise ModelError(f"{log.origin.path}: the log has {log.joints} joints, the model {model.dof} ({model.name}).")
    log = model_log(log, model.calibration.model.robot)
    return Samples(log.t, log.q, log.channel(model.output), log.qd, log.temperature)
