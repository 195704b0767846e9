"""Standard errors of a calibration beside those that an optimal excitation predicted, and the noise to predict them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.description.robot import Robot
from jointwise.design.excitation import RATE
from jointwise.document import Kind, read_document
from jointwise.errors import ModelError
from jointwise.estimation.uncertainty import error_ratio
from jointwise.result.calibration import Calibration

PREDICTION_FILE = "prediction.json"
PREDICTION_KIND = Kind(
    format="jointwise excitation",
    name="the prediction of an excitation",
    noun="prediction",
    remedy="Run jointwise excite again.",
)


SAME_GEOMETRY = 0.02
"""Difference (m, and of direction cosines) of joint axes up to which two descriptions are of the same type of robot:
single arms differ from their catalogue by millimetres, types of one family by centimetres."""


def same_geometry(a: Robot, b: Robot) -> bool:
    """Return whether two descriptions place the joint axes alike; where the first one stands does not matter."""
    return a.dof == b.dof and all(
        np.allclose(one[1:], other[1:], atol=SAME_GEOMETRY)
        for one, other in ((a.rotations, b.rotations), (a.translations, b.translations))
    )


def torque_noise(calibration: Calibration, rate: float) -> tuple[float, ...]:
    """Return white torque noise (Nm, rms) by joint, at a rate (Hz), with the effect of the residuals of a calibration.

    Residuals of a calibration are correlated in time and contain what its model lacks, so that its standard errors are
    larger than those of white noise: by ``1 / s`` in the variance, s being the mean share of independent noise; and
    errors are larger than these by the ratio e of `error_ratio`. Noise of deviation ``e σ √(rate / r / s)`` gives the
    same errors with the n = r T rows of the calibration (r rows a second, residual deviation σ) replaced by rate T
    samples. The next recording of the same robot is assumed to leave such residuals too.

    Args:
        calibration: A calibration of the robot.
        rate: Rate of the samples that the noise is for.

    Raises:
        ModelError: A joint was not measured, or the calibration does not state its standard errors by cause.

    """
    estimate, filters = calibration.estimate, calibration.filters
    share = estimate.shares.get("independent noise", 0.0)
    if calibration.ignored or not share > 0.0:
        raise ModelError(
            "the calibration must have used all joints and state the causes of its standard errors to predict others. "
            "Calibrate a log with the output of all joints again."
        )
    rows = filters.rate / filters.decimation
    ratio = error_ratio(estimate.shares, estimate.factor)
    return tuple((ratio * estimate.sigma * np.sqrt(rate / rows / share)).tolist())


@dataclass(frozen=True)
class PredictedParameter:
    """A parameter with its predicted standard error.

    Attributes:
        name: Name of the parameter.
        unit: Unit of the parameter and of its standard errors.
        std_error: Predicted standard error of the optimised motion.
        random_std_error: Standard error that random series would give.
        inflation: Factor on the standard error of white noise that `std_error` contains; 1 for white noise.
    """

    name: str
    unit: str
    std_error: float
    random_std_error: float
    inflation: float = 1.0


@dataclass(frozen=True)
class _Prediction:
    """What a prediction contains: name of the robot, torque noise (Nm, rms) and parameters."""

    robot: str
    noise: tuple[float, ...]
    parameters: tuple[PredictedParameter, ...]


WHITE = "white noise was assumed: excite --model MODEL --previous DIR predicts the next ones with these errors"
"""What to do about a prediction without an earlier recording."""
USUAL = 1.25
"""Ratio of realised to predicted standard errors up to which a prediction was good."""


@dataclass(frozen=True)
class ErrorComparison:
    """Standard errors of the parameters that a prediction and a calibration share, in the units of the parameters.

    Those of a calibration are the standard deviations of its errors: its uncertainty by filters, selection and
    neglected effects counts in full, not reduced to the interval that Student's factor makes of it.

    Attributes:
        names: Names of the parameters, (parameters,).
        predicted: Predicted standard errors, (parameters,).
        realised: Standard errors of the calibration, (parameters,).
        white: Whether the prediction assumed white noise.
    """

    names: tuple[str, ...]
    predicted: tuple[float, ...]
    realised: tuple[float, ...]
    white: bool = False

    @property
    def median(self) -> float:
        """Median of realised over predicted standard error."""
        return float(np.median(np.array(self.realised) / np.array(self.predicted)))

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a document."""
        columns = zip(self.names, self.predicted, self.realised, strict=True)
        rows = [{"name": name, "predicted": p, "realised": r, "ratio": r / p} for name, p, r in columns]
        return {"median_ratio": self.median, "parameters": rows}

    def summary(self) -> str:
        """Return the comparison in one line."""
        ratios = np.array(self.realised) / np.array(self.predicted)
        worst = int(np.argmax(ratios))
        return (
            f"standard errors are {self.median:.2f} times those of the prediction (median of {len(self.names)} "
            f"parameters), at most {ratios[worst]:.2f} times ({self.names[worst]})"
            + (f"; {WHITE}" if self.white and self.median > USUAL else "")
        )


def compare_with_prediction(calibration: Calibration, excitation: str | Path) -> ErrorComparison:
    """Return realised and predicted standard errors of a calibration from the recording of an excitation.

    Args:
        calibration: The calibration.
        excitation: Directory of the excitation, or its `prediction.json`.

    Raises:
        ModelError: The file is no prediction, is one for another robot, or shares no parameter with the calibration.

    """
    path, prediction = _read(excitation)
    robot = calibration.model.robot.name
    if prediction.robot != robot:
        raise ModelError(f"{path}: a prediction for '{prediction.robot}', not for '{robot}'. Use the same description.")
    realised = _realised(calibration)
    shared = [p for p in prediction.parameters if realised.get(p.name, 0.0) > 0.0 and p.std_error > 0.0]
    if not shared:
        raise ModelError(f"{path}: shares no parameter with the calibration. Was it made for another robot?")
    names = tuple(entry.name for entry in shared)
    predicted, white = tuple(entry.std_error for entry in shared), all(entry.inflation == 1.0 for entry in shared)
    return ErrorComparison(names, predicted, tuple(realised[name] for name in names), white)


def calibrated_options(calibration: Calibration, previous: str | Path | None = None) -> dict[str, Any]:
    """Return what a calibrated model determines of the options of an excitation, for `ExcitationOptions`.

    Args:
        calibration: The calibrated model.
        previous: Directory of the excitation from whose recording it comes; its standard errors correct the prediction.

    Returns:
        Values by parameter name (`reference`) and torque `noise`; with `previous` also `inflation`.

    Raises:
        ModelError: The directory holds no prediction, or it shares no parameter with the calibration.

    """
    names = (info.name for info in calibration.model.parameters)
    reference = dict(zip(names, calibration.estimate.values.tolist(), strict=True))
    if previous is None:
        return {"reference": reference, "noise": torque_noise(calibration, RATE)}
    noise, inflation = learned_noise(calibration, previous)
    return {"reference": reference, "noise": noise, "inflation": inflation}


def learned_noise(calibration: Calibration, excitation: str | Path) -> tuple[tuple[float, ...], dict[str, float]]:
    """Return what the recording of an excitation shows about the standard errors of the next one.

    The residuals of a real recording are not white: they are correlated in time, contain what the model lacks, and the
    calibration may estimate more parameters than the prediction has. The ratio of its standard errors to those of
    white noise is a property of robot and kind of motion, by parameter.

    Args:
        calibration: The calibration from the recording of the excitation.
        excitation: Directory of the excitation, or its `prediction.json`.

    Returns:
        The torque noise of the prediction (Nm, rms, by joint), and the ratio (`inflation`) by parameter name.

    Raises:
        ModelError: The file is no prediction, or shares no parameter with the calibration.

    """
    compared = compare_with_prediction(calibration, excitation)
    _, prediction = _read(excitation)
    before = {entry.name: entry.inflation for entry in prediction.parameters}
    columns = zip(compared.names, compared.predicted, compared.realised, strict=True)
    return prediction.noise, {name: realised / predicted * before[name] for name, predicted, realised in columns}


def _read(excitation: str | Path) -> tuple[Path, _Prediction]:
    """Return the file of a prediction and its content."""
    from jointwise.document import decode

    path = Path(excitation)
    path = path / PREDICTION_FILE if path.is_dir() else path
    document = read_document(path, PREDICTION_KIND)
    try:
        parameters = decode(document.get("parameters"), tuple[PredictedParameter, ...])
    except ModelError as problem:
        raise ModelError(f"{path}: parameters: {problem}") from None
    try:
        noise = decode(document.get("torque_noise_Nm"), tuple[float, ...])
    except ModelError as problem:
        raise ModelError(f"{path}: torque_noise_Nm: {problem}") from None
    return path, _Prediction(str(document.get("robot")), noise, parameters)


def _realised(calibration: Calibration) -> dict[str, float]:
    """Return the standard deviations of the errors of a calibration by parameter, of those that are determined.

    Selections are part of the uncertainty of bodies only; see `error_ratio`.
    """
    undetermined, estimate = set(calibration.undetermined()), calibration.estimate
    errors = estimate.deviation.copy()
    errors[: calibration.model.base.count] *= error_ratio(estimate.shares, estimate.factor)
    infos = zip(calibration.model.parameters, errors.tolist(), strict=True)
    return {info.name: error for info, error in infos if info.name not in undetermined and np.isfinite(error)}
