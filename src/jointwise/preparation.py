"""From logs and options to the regression before any choice, after a check that the logs have what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from jointwise.data.conditioning import Filters, clean_log
from jointwise.data.coordinates import model_log
from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot
from jointwise.errors import DataError, EstimationError, ModelError
from jointwise.estimation.instruments import refuse_unrelated_reference
from jointwise.estimation.regression import Regression
from jointwise.estimation.select_filters import FIRST_CUTOFF
from jointwise.model.dynamics import Dynamics
from jointwise.options import Options

ROW_RATE = 120.0
"""Rows a second that a fit needs: of faster logs every n-th sample makes a row."""


def loaded_logs(logs: Sequence[Log], payloads: Sequence[Payload | None]) -> list[Log]:
    """Return logs with their payloads, none where it is None."""
    if len(logs) != len(payloads):
        raise ModelError(f"payload must be one for each of {len(logs)} logs. Got {len(payloads)} instead.")
    return [log.with_payload(payload or Payload(0.0)) for log, payload in zip(logs, payloads, strict=True)]


def common_output(logs: Sequence[Log]) -> Literal["current", "torque"]:
    """Return the output that every log has measured: torque if there, else current."""
    for name in ("torque", "current"):
        if all(getattr(log, name) is not None for log in logs):
            return name
    missing = next(log for log in logs if log.torque is None and log.current is None)
    raise DataError(
        f"{missing.origin.path}: neither current (i1..) nor torque (tau1..) found: nothing to calibrate with."
    )


def make_regression(logs: Sequence[Log], robot: Robot, mounting: Mounting, output: str, options: Options) -> Regression:
    """Return the regression of some logs: cleaned logs, bodies, and filters before any choice."""
    clean = tuple(clean_log(model_log(log, robot)) for log in logs)
    for part in clean:
        if not (part.fastest > 1e-3).any():
            raise EstimationError(f"{part.log.origin.path}: no joint moves: nothing can be identified.")
    gravity = gravity_vector(mounting)
    bodies = Dynamics(
        robot,
        (float(gravity[0]), float(gravity[1]), float(gravity[2])),
        options.rotors,
        ((),) * robot.dof,
        options.load_basis,
    )
    return Regression(clean, output, bodies, first_filters(logs, options), extra=options.structure.extra)


def first_filters(logs: Sequence[Log], options: Options) -> Filters:
    """Return the filters before any choice: the clock from the logs, the rest from the options or neutral."""
    native = float(np.median([log.clock.uniform_rate for log in logs]))
    uneven = any(log.clock.uneven for log in logs)
    rate = options.rate or (2.0 * native if uneven and native < 4.0 * ROW_RATE else native)
    step = options.decimation or max(round(rate / ROW_RATE), 1)
    return Filters(
        rate, options.position_cutoff or FIRST_CUTOFF, options.parallel_cutoff or None, step, options.lag or 0.0
    )


def refuse_missing_channels(regression: Regression, options: Options) -> None:
    """Reject logs without a channel that the joint model of the options needs."""
    if options.structure.needs_speed and not regression.has_speed:
        raise EstimationError("the joint model needs a measured speed (ripple, track), but a log has no column qd1.")
    if options.structure.needs_rotor and not regression.has_rotor:
        raise EstimationError("the joint model needs rotor positions, but a log has no column theta1.")
    terms = [term for single in options.joints.values() for term in single.terms]
    if any(term.uses_temperature() for term in terms):
        for clean in regression.logs:
            _refuse_missing_temperature(clean.log)


def refuse_without_instruments(logs: Sequence[Log], options: Options) -> None:
    """Reject what instrumental variables cannot use."""
    for log in logs:
        if log.q_des is None:
            raise DataError(f"{log.origin.path}: no reference positions (q_des1..), which --method iv needs.")
        refuse_unrelated_reference(log)
        if log.payload is not None:
            raise ModelError("payloads of single logs do not go with --method iv.")
    if options.parallel_cutoff or options.essential is not None or options.joints or options.structure.rotor_side:
        raise ModelError(
            "--method iv does not go with --parallel-cutoff, --essential, --joint or --two-encoders: leave them out."
        )


def _refuse_missing_temperature(log: Log) -> None:
    if log.temperature is None:
        raise EstimationError(f"{log.origin.path}: the joint model needs a temperature (temp1..).")
