"""Rows of the regression of a payload: triangular factors of [Y_b | terms | y] of a log, or of a pose at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.data.conditioning import CleanLog, clean_log
from jointwise.data.coordinates import model_log
from jointwise.data.log import Log
from jointwise.data.statistics import MOVING_SPEED, standing_joints
from jointwise.estimation.factors import JointFactors
from jointwise.estimation.jackknife import block_count
from jointwise.estimation.regression import Regression
from jointwise.model.terms import Offset
from jointwise.motion import Motion
from jointwise.result.calibration import Calibration
from jointwise.runtime.motion import steady_torques
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class LogRows:
    """The rows of one log.

    A log at rest is one block of one row per joint. Its error is static friction, anywhere between the two directions
    of sliding.

    Attributes:
        path: File of the log.
        factors: Triangular factors of every joint with y in Nm, one block for each independent part of the log.
        deviation: Standard deviation of the error of a log at rest, (joints,), Nm: that of the uniform distribution
            between the two directions, at least that of the residuals in training. None for a moving log.
    """

    path: str
    factors: list[JointFactors]
    deviation: Array | None = None

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.factors[0].blocks

    @property
    def at_rest(self) -> bool:
        """Whether no joint moves."""
        return self.deviation is not None


def is_at_rest(log: Log) -> bool:
    """Return whether no joint of a log moves."""
    return bool(standing_joints(log).all())


def cleaned(calibration: Calibration, log: Log) -> Log | CleanLog:
    """Return a log in the coordinates of the model, cleaned if a joint moves; the source of `log_rows`."""
    inner = model_log(log, calibration.model.robot)
    return inner if is_at_rest(log) else clean_log(inner)


def log_rows(calibration: Calibration, source: Log | CleanLog, values: Array) -> LogRows:
    """Return the rows of a log.

    Args:
        calibration: The calibrated model.
        source: The log from `cleaned`, with the output of the model.
        values: Parameter values that the load torque of the friction terms follows from.

    Returns:
        The rows.

    """
    if isinstance(source, Log):
        rows = _resting_rows(calibration, source, values)
    else:
        rows = _moving_rows(calibration, source, values)
    for j in calibration.ignored:
        rows.factors[j] = _without_weight(rows.factors[j])
    return rows


def _moving_rows(calibration: Calibration, clean: CleanLog, values: Array) -> LogRows:
    model = calibration.model
    regression = Regression((clean,), calibration.output, model, calibration.filters)
    load_of = (lambda rigid: model.load_torque(rigid, values)) if model.needs_load else None
    factors = regression.problem(model.terms, load_of).factors
    blocks = max(block_count(clean.samples * clean.period), 1)
    gains = calibration.gains.tolist()
    return LogRows(
        clean.log.origin.path,
        [_merged(joint.scaled(gain), blocks) for joint, gain in zip(factors, gains, strict=True)],
    )


def _merged(joint: JointFactors, blocks: int) -> JointFactors:
    """Return factors with neighbouring blocks merged to at most a number of blocks."""
    return joint.grouped([g.tolist() for g in np.array_split(np.arange(joint.blocks), min(blocks, joint.blocks))])


def _without_weight(joint: JointFactors) -> JointFactors:
    """Return the factors of a joint whose output is not used."""
    return JointFactors(0.0 * joint.sums, [0.0 * R for R in joint.triangles])


def _resting_rows(calibration: Calibration, log: Log, values: Array) -> LogRows:
    model, dof = calibration.model, calibration.model.robot.dof
    pose = np.mean(np.asarray(log.q), axis=0)[None]
    still = np.zeros((1, dof))
    rigid = model.rigid_columns(Motion(calibration.filters.rate, pose, still, still))
    load = model.load_torque(rigid, values)
    output = np.mean(np.asarray(log.channel(calibration.output)), axis=0) * calibration.gains
    factors = []
    for j in range(dof):
        joint, terms = JointFactors(), [term.steady(still[:, j], load[:, j]) for term in model.terms[j]]
        measured = bool(np.isfinite(output[j]))
        row = np.concatenate([rigid[j].T, *terms, [[output[j] if measured else 0.0]]], axis=1)
        joint.add(row, np.full(1, float(measured)))
        factors.append(joint)
    sliding = steady_torques(model, still + MOVING_SPEED, values, load, without=(Offset,))[0]
    return LogRows(log.origin.path, factors, np.maximum(np.abs(sliding) / np.sqrt(3.0), calibration.estimate.sigma))
