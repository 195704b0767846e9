"""Proof on data: how well a prediction meets a measurement, joint by joint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data import statistics
from jointwise.data.log import Log
from jointwise.estimation.problem import EXCERPT
from jointwise.result.calibration import Calibration
from jointwise.spatial import Array

MOVING_SPEED = 0.02
"""A joint moves above this speed, rad/s."""
AT_NOISE = 1.5
"""An RMSE up to this many times the sensor noise leaves little to explain."""
STANDS = "the joint stands still: what friction holds there is not told by the motion"
CONSTANT = "the measurement does not vary"


@dataclass(frozen=True)
class JointMetrics:
    """Errors of one joint in the unit of the output.

    `mse` mean square; `rmse` its root; `mean` and `max` of |error|; `nmse` = MSE / variance of the measurement;
    `nmse_amplitude` = MSE / mean |measurement| (AURT's); `nrmse_percent` = 100 (1 - |y - ŷ| / |y - mean|);
    `r2` = 1 - nmse; None where the measurement does not vary, or where the joint stands still (`still`): the variance
    is then noise, no measure. `offset` mean of measured - predicted; `variance` and sensor `noise` (rms, from second
    differences) of the measurement: no model can do better than the noise.
    """

    samples: int
    mse: float
    rmse: float
    mean: float
    max: float
    nmse: float | None
    nmse_amplitude: float | None
    nrmse_percent: float | None
    r2: float | None
    offset: float
    variance: float
    noise: float
    still: bool

    @property
    def reason(self) -> str | None:
        """Why there is no R²; None where there is."""
        return None if self.r2 is not None else STANDS if self.still else CONSTANT

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, with the reason where there is no R²."""
        return {**asdict(self), "reason": self.reason}


@dataclass(frozen=True)
class Pooled:
    """One joint over several logs, in the unit of the output.

    `nmse` = Σ squared errors / Σ squared deviations from each log's mean, over the logs in which the joint moves, None
    where it moves in none: no log decides alone. `rmse` and sensor `noise` (rms) over the same logs, `rest` the RMSE
    over those in which it stands; None where there are none.
    """

    nmse: float | None
    rmse: float | None = None
    rest: float | None = None
    noise: float | None = None

    @property
    def at_noise(self) -> bool:
        """Whether the error is nearly all sensor noise: no model could do much better, whatever R² says."""
        return self.rmse is not None and self.noise is not None and self.rmse <= AT_NOISE * self.noise


@dataclass(frozen=True)
class Validation:
    """Metrics of every joint over all samples, and over those at which the joint moves.

    `alone` are those of the prediction from positions alone, where the model makes use of more and the log has it.
    """

    joints: tuple[JointMetrics, ...]
    moving: tuple[JointMetrics | None, ...]
    unit: str
    file: str
    alone: Validation | None = None

    @property
    def mean_nmse(self) -> float:
        """Mean over the joints of MSE / variance; NaN where no joint moves or no measurement varies."""
        return _mean([joint.nmse for joint in self.joints])

    @property
    def mean_r2(self) -> float:
        """Mean over the joints of R²; NaN where no joint moves or no measurement varies."""
        return _mean([joint.r2 for joint in self.joints])

    @property
    def moving_nmse(self) -> float:
        """Mean over the joints of MSE / variance over the moving samples; NaN where there are none."""
        return _mean([None if joint is None else joint.nmse for joint in self.moving])

    @property
    def mean_rmse(self) -> float:
        """Mean over the joints of the root mean square error, in the unit of the output."""
        return _mean([joint.rmse for joint in self.joints])

    @property
    def reason(self) -> str | None:
        """Why no joint has an R²; None where one has."""
        if any(joint.r2 is not None for joint in self.joints):
            return None
        return "no joint moves: there is no R2" if all(own.still for own in self.joints) else f"{CONSTANT}: no R2"

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON: `joints`, each with its `moving` part, and once more `moving.joints`.

        `positions_alone` holds the same of the prediction from positions alone, null where that is no other.
        """
        moving = [None if own is None else own.to_dict() for own in self.moving]
        return {
            "file": self.file,
            "unit": self.unit,
            "mean_nmse": _finite(self.mean_nmse),
            "mean_r2": _finite(self.mean_r2),
            "reason": self.reason,
            "joints": [{**own.to_dict(), "moving": part} for own, part in zip(self.joints, moving, strict=True)],
            "moving": {"joints": moving},
            "positions_alone": None if self.alone is None else self.alone.to_dict(),
        }


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else math.nan


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def validate(calibration: Calibration, log: Log, predicted: Array | None = None) -> Validation:
    """Return the errors of a calibration on a log with a measured output."""
    own = _judged(calibration, log, calibration.predict(log) if predicted is None else predicted)
    used = [name for name in calibration.extras if name in log.available]
    return replace(own, alone=_judged(calibration, log, calibration.predict(log.without(used)))) if used else own


def positions_alone(calibration: Calibration, logs: Sequence[Log]) -> list[float | None]:
    """Return MSE / variance of every joint predicted from positions alone, logs pooled (long ones cut)."""
    parts = [log.slice(0, min(log.samples, EXCERPT)).without(calibration.extras) for log in logs]
    rows = [_judged(calibration, part, calibration.predict(part)).joints for part in parts]
    return [pool(column).nmse for column in zip(*rows, strict=True)]


def _judged(calibration: Calibration, log: Log, estimate: Array) -> Validation:
    measured = np.asarray(log.channel(calibration.output))
    moving, still = moving_samples(log), standing_joints(log)
    noise = np.median([statistics.noise(part.channel(calibration.output)) for part in statistics.windows(log)], axis=0)
    joints = range(log.joints)
    return Validation(
        joints=tuple(metrics(measured[:, j], estimate[:, j], float(noise[j]), bool(still[j])) for j in joints),
        moving=tuple(
            metrics(measured[moving[:, j], j], estimate[moving[:, j], j], float(noise[j]))
            if moving[:, j].sum() > 1 and not still[j]
            else None
            for j in joints
        ),
        unit=calibration.unit,
        file=log.origin.path,
    )


def metrics(measured: Array, predicted: Array, noise: float = 0.0, still: bool = False) -> JointMetrics:
    """Return the errors of a prediction, both (samples,), under sensor `noise`; no R² where a joint is `still`."""
    error = measured - predicted
    mse, variance = float(np.mean(error**2)), float(np.var(measured))
    amplitude = float(np.mean(np.abs(measured)))
    nmse = mse / variance if variance > 0.0 and not still else None
    return JointMetrics(
        samples=len(measured),
        mse=mse,
        rmse=float(np.sqrt(mse)),
        mean=float(np.mean(np.abs(error))),
        max=float(np.max(np.abs(error))),
        nmse=nmse,
        nmse_amplitude=mse / amplitude if amplitude > 0.0 else None,
        nrmse_percent=None if nmse is None else 100.0 * (1.0 - float(np.sqrt(nmse))),
        r2=None if nmse is None else 1.0 - nmse,
        offset=float(np.mean(error)),
        variance=variance,
        noise=noise,
        still=still,
    )


def pool(rows: Sequence[JointMetrics]) -> Pooled:
    """Return the figures of one joint over several logs."""
    moving = [own for own in rows if own.nmse is not None]
    spread = sum(own.samples * own.variance for own in moving)
    nmse = sum(own.samples * own.mse for own in moving) / spread if spread > 0.0 else None
    rest = [own for own in rows if own.still]
    return Pooled(nmse, _together("rmse", moving), _together("rmse", rest), _together("noise", moving))


def _together(figure: str, rows: Sequence[JointMetrics]) -> float | None:
    """Return the root mean square of a figure over the samples of some logs; None where there are none."""
    samples = sum(own.samples for own in rows)
    return math.sqrt(sum(own.samples * getattr(own, figure) ** 2 for own in rows) / samples) if samples else None


def metrics_from_dict(row: Mapping[str, Any]) -> JointMetrics:
    """Return the figures of a joint from their document."""
    return JointMetrics(**{field.name: row[field.name] for field in fields(JointMetrics)})


def standing_joints(log: Log) -> NDArray[np.bool_]:
    """Return which joints hardly move, (joints,): a range of less than 5 mrad in all but 2 % of the samples."""
    low, high = np.quantile(np.asarray(log.q), (0.01, 0.99), axis=0)
    return np.asarray(high - low < statistics.STILL_RANGE)


def moving_samples(log: Log) -> NDArray[np.bool_]:
    """Return where each joint moves, (samples, joints): by the measured speed, else by differences of positions."""
    if log.qd is not None:
        return np.asarray(np.abs(log.qd) > MOVING_SPEED)
    step = max(round(0.05 / max(float(np.median(np.diff(log.t))), 1e-6)), 1)
    speed = np.zeros(log.q.shape)
    span = np.maximum(log.t[2 * step :] - log.t[: -2 * step], 1e-9)[:, None]
    speed[step:-step] = (log.q[2 * step :] - log.q[: -2 * step]) / span
    return np.asarray(np.abs(speed) > MOVING_SPEED)
