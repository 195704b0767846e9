"""The plausibility of the set-up of a calibration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from jointwise.data.log import Log
from jointwise.description.files import catalog_robot, list_robots
from jointwise.description.robot import Payload, Robot
from jointwise.estimation.drive_gains import DriveGains
from jointwise.estimation.regression import EXCERPT, Regression
from jointwise.estimation.select_filters import LAGS
from jointwise.finding import Finding, worst
from jointwise.result.plausibility.assess import assess
from jointwise.result.plausibility.channels import (
    check_low_pass,
    check_resolution,
    check_saturation,
    check_set_points,
    check_zeros,
)
from jointwise.result.plausibility.declaration import Declaration
from jointwise.result.plausibility.payloads import LEAST_PAYLOAD
from jointwise.result.plausibility.samples import collect_samples
from jointwise.result.plausibility.scales import set_point_witnesses, signal_witnesses

MISSING_SHARE = 0.03
"""Part of the described mass of the arm below which a missing mass is within the tolerance of the description."""
LARGE_LAG = 0.01
"""Delay (s) of the output behind the motion above which its clock is suspect: drives answer within some ms. An output
that seems early is not suspect, since imperfect models of friction imitate it."""


def check_setup(
    regression: Regression, drives: DriveGains, payload: Payload | None = None, *, lag_known: bool = False
) -> tuple[Finding, ...]:
    """Return whether logs and declaration belong together.

    Args:
        regression: The training logs with their filters, and the robot under the declared gravity.
        drives: Drive gains.
        payload: The declared payload.
        lag_known: Whether the user declared the lag of the filters.

    Returns:
        One check for each part of the declaration.

    """
    resolution = check_resolution([clean.log for clean in regression.logs], regression.output)
    checks = {check.subject: check for check in [*resolution, *_assessed(regression, drives, payload)]}
    contradicted = worst(checks.values()) == "error"  # then estimated gains are meaningless
    missing = [] if contradicted else _payload_checks(drives, regression.bodies.robot)
    loaded = _may_be_loaded(regression, payload, checks.values())
    for check in [*missing, *_signal_checks(regression, loaded, lag_known)]:
        if check.subject not in checks or checks[check.subject].severity == "ok":
            checks[check.subject] = check
    return tuple(checks.values())


def _assessed(regression: Regression, drives: DriveGains, payload: Payload | None) -> tuple[Finding, ...]:
    """Return what the samples say about the declaration, compared with others and with robots of the catalogue."""
    robot = regression.bodies.robot
    samples = collect_samples(regression)
    gravity = np.array(regression.bodies.gravity)
    declaration = Declaration.plain(robot, gravity, drives.values, samples, payload, not drives.estimated)
    logs = [clean.log for clean in regression.logs]
    removed = min(0.0 if log.payload is None else log.payload.mass for log in logs)
    declaration = replace(declaration, joint_torques=regression.output == "torque", removed_mass=removed)
    catalog = [other for name in list_robots() if (other := catalog_robot(name)).dof == robot.dof]
    first = _first_minutes(logs)
    signals = [*signal_witnesses(first, regression.output, robot, drives)]
    if payload is None and not any(carried is not None for carried in regression.carried or ()):
        signals += set_point_witnesses(first, regression.output)
    return assess(samples, declaration, catalog, signals)


def _first_minutes(logs: Iterable[Log]) -> list[Log]:
    """Return at most `EXCERPT` samples of every log: what noise and set points say, the first minutes say as well."""
    return [log if log.samples <= EXCERPT else log.slice(0, EXCERPT) for log in logs]


def _may_be_loaded(regression: Regression, payload: Payload | None, checks: Iterable[Finding]) -> bool:
    """Return whether a payload is declared for some log, or suspected."""
    suspected = any(check.severity != "ok" for check in checks if check.subject in ("payload", "logs"))
    return payload is not None or suspected or any(carried is not None for carried in regression.carried or ())


def _payload_checks(drives: DriveGains, robot: Robot) -> Iterator[Finding]:
    """Yield the payload that estimated gains contradict: they take their scale from the described bodies."""
    if drives.missing > max(LEAST_PAYLOAD, MISSING_SHARE * sum(link.mass for link in robot.links)):
        text = f"the estimated drive gains contradict the described bodies by about {drives.missing:.2g} kg at the tool"
        yield Finding(
            "warning", "payload", text, f"Declare what the tool carries: --payload {drives.missing:.2g},X,Y,Z."
        )


def _signal_checks(regression: Regression, loaded: bool, lag_known: bool) -> Iterator[Finding]:
    """Yield what the channels of the logs show without a model, and the lag that was chosen."""
    lag = regression.filters.lag
    if not lag_known and -lag > LARGE_LAG:
        longest = -lag >= max(LAGS)
        text = f"the output is {'at least ' if longest else ''}{-1e3 * lag:.0f} ms later than the motion"
        declared = "the delay (--lag)" if longest else f"--lag {lag:.3f}"
        yield Finding("warning", "time shift", text, f"Check the time stamps of the channels, or declare {declared}.")
    logs = [clean.log for clean in regression.logs]
    yield check_zeros(logs, regression.output)
    yield check_saturation(logs, regression.output)
    yield from check_low_pass(logs, regression.output)
    for log in _first_minutes(logs):
        yield from check_set_points(log, regression.output, loaded)
        log.release()
