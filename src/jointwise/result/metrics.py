"""Errors of a prediction against a measurement, joint by joint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise.arguments import checked
from jointwise.data.log import Log
from jointwise.document import finite_or_none
from jointwise.errors import ModelError
from jointwise.finding import Finding
from jointwise.result.plausibility import Setup, setup_entry
from jointwise.result.predict import Use
from jointwise.spatial import Array

if TYPE_CHECKING:
    from pandas import DataFrame

AT_NOISE = 1.5
"""Ratio of RMSE to sensor noise (rms) up to which no model could predict much better."""
STANDS = "the joint does not move: static friction can take any value up to break-away"
CONSTANT = "the measurement does not vary"
IGNORED = "the output was not measured, or not used for training"
CONTRADICTED = "the training data contradict the declared set-up of the model"
ALL_TRAINING = 0.99
"""Fraction of training samples from which a log is a training log."""


@dataclass(frozen=True)
class JointMetrics:
    """Errors of one joint in the unit of the output.

    Attributes:
        samples: Number of samples.
        mse: Mean squared error.
        rmse: Its root.
        mean: Mean absolute error.
        max: Largest absolute error.
        nmse: MSE / variance of the measurement; None where the measurement does not vary or the joint does not move.
        nmse_amplitude: MSE / mean absolute measurement, as AURT defines it.
        nrmse_percent: Fit, 100 (1 - ‖y - ŷ‖ / ‖y - mean(y)‖): 100 is perfect, 0 no better than the mean.
        r2: 1 - `nmse`.
        offset: Mean of measured minus predicted.
        variance: Variance of the measurement.
        noise: Sensor noise (rms, from second differences) of the measurement, a lower bound of the RMSE of any model.
        still: Whether the joint does not move; its variance is then noise and says nothing about the model.
        ignored: Whether the output was not measured or not used for training; then there are no errors.

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
    offset: float = 0.0
    variance: float = 0.0
    noise: float = 0.0
    still: bool = False
    ignored: bool = False

    @property
    def reason(self) -> str | None:
        """Why there is no R²; None where there is one."""
        if self.ignored:
            return IGNORED
        return None if self.r2 is not None else STANDS if self.still else CONSTANT

    def to_dict(self) -> dict[str, Any]:
        """Return the errors for JSON, with the reason where there is no R²; `ignored` only where it is true."""
        errors = {name: value for name, value in asdict(self).items() if name != "ignored" or value}
        return {**errors, "reason": self.reason}


@dataclass(frozen=True)
class Pooled:
    """Errors of one joint over several logs, in the unit of the output.

    Attributes:
        nmse: Σ squared errors / Σ squared deviations from the mean of each log, over the logs in which the joint
            moves; None where it moves in none.
        rmse: Root mean squared error over the same logs; None where there are none.
        rest: Root mean squared error over the logs in which the joint does not move; None where there are none.
        noise: Sensor noise (rms) over the logs in which the joint moves; None where there are none.

    """

    nmse: float | None
    rmse: float | None = None
    rest: float | None = None
    noise: float | None = None

    @property
    def at_noise(self) -> bool:
        """Whether the error is nearly all sensor noise, so that no model could predict much better."""
        return self.rmse is not None and self.noise is not None and self.rmse <= AT_NOISE * self.noise


@dataclass(frozen=True)
class Validation:
    """Errors of a calibration on one log, over all samples and over those at which a joint moves.

    Attributes:
        joints: Errors of every joint over all samples.
        moving: Errors of every joint over the samples at which it moves; None where it does not move.
        unit: Unit of the output, A or Nm.
        file: Path of the log.
        shared: Fraction of the samples that the model was trained on; above 0 these are training errors.
        from_positions: Errors of the feed-forward model (from positions only), where the sensor-based one was used.
        use: Which model was used, `sensor` or `feed-forward`; None where it is not known.
        motion: Errors of every joint from the first to the last movement of any joint; None where nothing moves.
        plausibility: What contradicts that the log belongs to the model (signs, order, payload, mounting).
        setup: Set-up of the model: `suspect` or `contradicted` by its training data, else `ok`.
        log: The log; None in a validation that was read from a file.
        prediction: Predicted output, (samples, joints); None in a validation that was read from a file.

    """

    joints: tuple[JointMetrics, ...]
    moving: tuple[JointMetrics | None, ...]
    unit: str
    file: str
    shared: float = 0.0
    from_positions: Validation | None = None
    use: Use | None = None
    plausibility: tuple[Finding, ...] = ()
    motion: tuple[JointMetrics, ...] | None = None
    setup: Setup = "ok"
    log: Log | None = field(default=None, repr=False, compare=False)
    prediction: Array | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """Return log, mean errors and whether they are training errors in one line."""
        kind = "" if self.held_out else ", training data"
        errors = f"mean R2 {self.mean_r2:.4f}, mean RMSE {self.mean_rmse:.3g} {self.unit}"
        return f"Validation({self.file!r}, {len(self.joints)} joints, {errors}{kind})"

    @property
    def held_out(self) -> bool:
        """Whether no sample was used for training."""
        return self.shared == 0.0

    @property
    def is_training(self) -> bool:
        """Whether the log is a training log: nearly all its samples were used; copies with fewer decimals miss some."""
        return self.shared >= ALL_TRAINING

    @property
    def training_text(self) -> str | None:
        """A sentence about samples that were used for training; None where there are none."""
        if self.held_out:
            return None
        part = max(min(round(100.0 * self.shared), 100), 1)
        return f"training errors, not a validation: the model was trained on {part} % of these samples"

    @checked
    def failure(self, min_r2: float) -> str | None:
        """Return why a validation fails a limit of R²; None if it passes.

        Args:
            min_r2: Least R² of every joint that moves and is not ignored; a joint without R² fails.

        Returns:
            The joints below the limit, that no joint moves, that the log is training data, or that the training data
            contradict the set-up of the model.

        """
        if self.setup == "contradicted":
            return CONTRADICTED
        if self.reason is not None or self.training_text is not None:
            return self.reason or self.training_text
        judged = (j for j, joint in enumerate(self.joints, start=1) if not (joint.still or joint.ignored))
        missed = [str(j) for j in judged if not _reaches(self.joints[j - 1].r2, min_r2)]
        return f"R2 below {min_r2:g} at joint {', '.join(missed)}" if missed else None

    @checked
    def passes(self, min_r2: float | None) -> bool | None:
        """Return whether a validation passes a limit of R²; None if it was not judged, as there is no limit.

        A model whose training data contradict its set-up fails without a limit, too.
        """
        if self.setup == "contradicted":
            return False
        return None if min_r2 is None else self.failure(min_r2) is None

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
    def in_motion(self) -> tuple[JointMetrics, ...]:
        """Errors from the first to the last movement; over all samples where they are not known."""
        return self.joints if self.motion is None else self.motion

    @property
    def motion_nmse(self) -> float:
        """Mean over the joints of MSE / variance from the first to the last movement."""
        return _mean([joint.nmse for joint in self.in_motion])

    @property
    def mean_rmse(self) -> float:
        """Mean over the joints of the root mean squared error, in the unit of the output."""
        return _mean([joint.rmse for joint in self.joints if not joint.ignored])

    @property
    def reason(self) -> str | None:
        """Why no joint has an R²; None where one has."""
        if any(joint.r2 is not None for joint in self.joints):
            return None
        judged = [joint for joint in self.joints if not joint.ignored]
        return "no joint moves: there is no R2" if all(joint.still for joint in judged) else f"{CONSTANT}: no R2"

    def residuals(self) -> Array:
        """Return measured minus predicted output at every stamp of the log.

        Returns:
            Residuals in `unit`, shape (samples, joints); NaN for joints whose output is ignored.

        Raises:
            ModelError: The validation was read from a file or comes from `compare`, which do not keep the prediction.

        """
        if self.log is None or self.prediction is None:
            raise ModelError(f"{self.file}: the validation has no prediction. Repeat it with validate(model, log).")
        measured: Array = self.log.channel("current" if self.unit == "A" else "torque")
        return measured - self.prediction

    def summary(self) -> str:
        """Return the errors of every joint, their means and the verdict as text, as `jointwise validate` does."""
        from jointwise.result.text import validation_text

        return validation_text(self)

    def to_dataframe(self) -> DataFrame:
        """Return the errors as a pandas data frame: a row for each joint (from 1) and its `all` or `moving` samples."""
        from jointwise.result.text import validation_frame

        return validation_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the errors for JSON: `joints`, each with its `moving` part, and once more as `moving.joints`.

        `positions_alone` holds the errors of the prediction from positions only, null where it is the same.
        """
        moving = [None if part is None else part.to_dict() for part in self.moving]
        return {
            "file": self.file,
            "unit": self.unit,
            "use": self.use,
            "setup": self.setup,
            **({} if self.held_out else {"shared": self.shared}),
            "mean_nmse": finite_or_none(self.mean_nmse),
            "mean_r2": finite_or_none(self.mean_r2),
            "motion_nmse": finite_or_none(self.motion_nmse),
            "reason": self.reason,
            "joints": [{**joint.to_dict(), "moving": part} for joint, part in zip(self.joints, moving, strict=True)],
            "moving": {"joints": moving},
            "motion": None if self.motion is None else [joint.to_dict() for joint in self.motion],
            "plausibility": [setup_entry(finding) for finding in self.plausibility],
            "positions_alone": None if self.from_positions is None else self.from_positions.to_dict(),
        }


@dataclass(frozen=True)
class TrainingErrors:
    """MSE / variance of every joint on the training data, None where the output of a joint is ignored.

    Attributes:
        nmse: Errors of the fit, (joints,).
        from_positions: Errors of the prediction from positions only, (joints,); None where the model uses nothing else.
        of_logs: Those of every training log, None for long ones, for the report of the same run; they are not stored.
    """

    nmse: tuple[float | None, ...]
    from_positions: tuple[float | None, ...] | None = None
    of_logs: tuple[Validation | None, ...] = field(default=(), repr=False, compare=False)

    @property
    def ignored(self) -> tuple[int, ...]:
        """Joints (0-based) whose output was not measured, or not used."""
        return tuple(j for j, error in enumerate(self.nmse) if error is None)

    @property
    def known(self) -> tuple[float, ...]:
        """The errors of the other joints."""
        return tuple(error for error in self.nmse if error is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the errors for JSON."""
        bare = {} if self.from_positions is None else {"positions_alone": list(self.from_positions)}
        return {"nmse": list(self.nmse), **bare}


def _reaches(value: float | None, least: float) -> bool:
    return value is not None and value >= least  # a missing value and NaN do not


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else math.nan


def metrics(measured: Array, predicted: Array, noise: float = 0.0, still: bool = False) -> JointMetrics:
    """Return the errors of a prediction for one joint.

    Args:
        measured: Measured output, (samples,).
        predicted: Predicted output, (samples,).
        noise: Sensor noise of the measurement, rms.
        still: Whether the joint does not move; then there is no R².
    """
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


IGNORED_METRICS = JointMetrics(0, 0.0, 0.0, 0.0, 0.0, None, None, None, None, ignored=True)
"""The errors of a joint whose output is ignored: there are none."""


def pool(rows: Sequence[JointMetrics]) -> Pooled:
    """Return the errors of one joint over several logs."""
    moving = [row for row in rows if row.nmse is not None]
    spread = sum(row.samples * row.variance for row in moving)
    nmse = sum(row.samples * row.mse for row in moving) / spread if spread > 0.0 else None
    rest = [row for row in rows if row.still]
    return Pooled(nmse, _rms("rmse", moving), _rms("rmse", rest), _rms("noise", moving))


def _rms(name: str, rows: Sequence[JointMetrics]) -> float | None:
    """Return the root mean square of a figure over the samples of several logs; None where there are none."""
    samples = sum(row.samples for row in rows)
    return math.sqrt(sum(row.samples * getattr(row, name) ** 2 for row in rows) / samples) if samples else None
