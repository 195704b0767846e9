"""Files of a calibration: the model as one JSON document, parameters and predictions as CSV tables."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import atomic_write
from jointwise.data.channels import default_names
from jointwise.data.log import Log
from jointwise.description.files import robot_to_dict
from jointwise.document import Kind, finite_or_none, load_document, write_document
from jointwise.estimation.physical import PhysicalParameters
from jointwise.model.dynamics import Dynamics
from jointwise.result.calibration import CalibratedModel, Calibration, Estimate, calibration_of
from jointwise.result.model_file import ModelFile
from jointwise.result.plausibility import setup_entry
from jointwise.result.predict import FeedForward, Use, predict_chunks
from jointwise.result.provenance import Provenance

SCHEMA = 1
KIND = Kind(
    format="jointwise calibration",
    schema=SCHEMA,
    name="a Jointwise calibration",
    noun="model",
    remedy="Calibrate again.",
)


@checked
def save_model(model: CalibratedModel, path: str | Path) -> None:
    """Write a calibrated model (`Calibration` or `RobotModel`) to a JSON file."""
    write_document(to_document(calibration_of(model)), path)


@checked
def load_calibration(path: str | Path) -> Calibration:
    """Return the calibration of a JSON file; the original logs and descriptions are not needed.

    Raises:
        ModelError: The file is not a model, or an entry is missing, unknown or wrong; names the file and the entry.

    """
    return load_document(path, KIND, ModelFile).calibration


def to_document(calibration: Calibration) -> dict[str, Any]:
    """Return the calibration as a document of numbers and texts."""
    content = {
        "provenance": _provenance_to_dict(calibration.provenance),
        "robot": robot_to_dict(calibration.model.robot),
        "model": _model_to_dict(calibration.model),
        "filters": asdict(calibration.filters),
        "output": _output_to_dict(calibration),
        "parameters": _parameters_to_dict(calibration),
        "estimate": _estimate_to_dict(calibration.estimate),
        "structure": calibration.structure.to_dict(),
        "structure_text": calibration.structure_text,
        "choices": [asdict(choice) for choice in calibration.choices],
        "load": asdict(calibration.load),
        "training": calibration.training.to_dict(),
        "fastest": calibration.fastest.tolist(),
        **({} if calibration.physical is None else {"physical": physical_to_dict(calibration.physical)}),
        **({} if calibration.essential is None else {"essential": asdict(calibration.essential)}),
        **({} if calibration.spread is None else {"spread": asdict(calibration.spread)}),
        "plausibility": [setup_entry(finding) for finding in calibration.plausibility],
        "feed_forward": _feed_forward_entry(calibration.feed_forward),
        "validation": {"logs": [each.to_dict() for each in calibration.validation]} if calibration.validation else {},
    }
    return KIND.stamped(content)


def _model_to_dict(model: Dynamics) -> dict[str, Any]:
    return {
        "gravity": list(model.gravity),
        "rotors": model.rotors,
        "load_basis": model.load_basis,
        **({"rotor_side": True} if model.rotor_side else {}),
        "terms": [[term.to_dict() for term in terms] for terms in model.terms],
    }


def _output_to_dict(calibration: Calibration) -> dict[str, Any]:
    return {
        "signal": calibration.output,
        "unit": calibration.unit,
        "gains": calibration.gains.tolist(),
        "gain_source": calibration.gain_source,
        **({} if calibration.scale_known else {"scale_known": False}),
    }


def _parameters_to_dict(calibration: Calibration) -> list[dict[str, Any]]:
    estimate = calibration.estimate
    return [
        {
            "name": info.name,
            "unit": calibration.unit_of(k),
            "joint": None if info.joint is None else info.joint + 1,
            "value": float(estimate.values[k]),
            "deviation": float(estimate.deviation[k]),
            "status": estimate.status[k],
        }
        for k, info in enumerate(calibration.model.parameters)
    ]


def _estimate_to_dict(estimate: Estimate) -> dict[str, Any]:
    return {
        "method": estimate.method,
        "factor": estimate.factor,
        "sigma": estimate.sigma.tolist(),
        "condition": finite_or_none(estimate.condition),
        "condition_scaled": finite_or_none(estimate.condition_scaled),
        "shares": dict(estimate.shares),
        "covariance": [row[: k + 1].tolist() for k, row in enumerate(estimate.covariance)],
    }


def physical_to_dict(physical: PhysicalParameters) -> dict[str, Any]:
    """Return the physically consistent parameters as a document."""
    rows = zip(
        physical.names,
        physical.inertials.tolist(),
        physical.share.tolist(),
        physical.rotor_inertias.tolist(),
        physical.rotor_share.tolist(),
        physical.eigenvalues.tolist(),
        strict=True,
    )
    keys = ("name", "inertial", "share", "rotor_inertia", "rotor_share", "eigenvalue")
    masses = {int(j): float(physical.described_masses[j]) for j in np.flatnonzero(physical.described_masses > 0.0)}
    return {
        "links": [
            dict(zip(keys, row, strict=True)) | {"at_boundary": j in physical.boundary, "described_mass": masses.get(j)}
            for j, row in enumerate(rows)
        ],
        "values": physical.values.tolist(),
        "prior": physical.prior,
        "prior_source": physical.prior_source,
        "prior_weight": physical.prior_weight,
        "held_out": None if physical.held_out is None else asdict(physical.held_out),
    }


def _feed_forward_entry(friction: FeedForward | None) -> dict[str, Any] | None:
    """Return the friction for predictions from positions only as a document."""
    if friction is None:
        return None
    return {
        "terms": [[term.to_dict() for term in terms] for terms in friction.terms],
        "values": friction.values.tolist(),
        "deviation": friction.deviation.tolist(),
        "status": list(friction.status),
        "sigma": friction.sigma.tolist(),
        "structure": friction.structure.to_dict(),
        "structure_text": friction.structure_text,
        "choices": [asdict(choice) for choice in friction.choices],
        "position_cutoff": friction.position_cutoff,
    }


def _provenance_to_dict(provenance: Provenance) -> dict[str, Any]:
    """Return the origin of a calibration without entries that are empty."""
    document = asdict(provenance)
    for log in document["logs"]:
        for name in ("sketch", "temperatures", "period"):
            if log[name] is None:
                del log[name]
    return document if provenance.notes else {key: value for key, value in document.items() if key != "notes"}


ROWS = 8192
"""Samples per chunk of text."""


def predicted_names(calibration: Calibration, log: Log) -> tuple[str, ...]:
    """Return one column name per joint: that of the measured output in the log or the default, with suffix `_pred`."""
    names = log.names.get(calibration.output) or default_names(calibration.output, log.joints)
    return tuple(f"{name}_pred" for name in names)


def write_prediction(
    calibration: Calibration,
    log: Log,
    path: str | Path,
    names: Sequence[str] | None = None,
    time: str = "t",
    progress: Callable[[float], None] | None = None,
    use: Use | None = None,
) -> None:
    """Write the predicted output at every stamp of a log as CSV, in chunks; the file appears when it is complete.

    Args:
        calibration: The model.
        log: A log with the channels that the model needs.
        path: The CSV file.
        names: Names of the output columns, in the unit of the model; `predicted_names` if None.
        time: Name of the time column (s, exactly as in the log).
        progress: Called with the completed share, 0 to 1.
        use: `sensor` or `feed-forward`, as in `predict`.

    """
    with atomic_write(path) as file:
        csv.writer(file, lineterminator="\n").writerow((time, *(names or predicted_names(calibration, log))))
        for piece, values in predict_chunks(calibration, log, use):
            for start in range(piece.start, piece.stop, ROWS):
                stop = min(start + ROWS, piece.stop)
                stamps = log.t[start:stop].tolist()
                rows = values[start - piece.start : stop - piece.start].tolist()
                file.writelines(",".join(map(repr, (t, *row))) + "\n" for t, row in zip(stamps, rows, strict=True))
            if progress is not None:
                progress(piece.stop / log.samples)


def write_parameters(calibration: Calibration, path: str | Path) -> None:
    """Write a CSV table of the parameters: name, unit, value, standard error, 95 % confidence interval, and status.

    The numbers of a parameter that is not identifiable are empty. Where the scale of the gains is unknown, units are
    relative to it and there are no standard errors and intervals.
    """
    estimate, intervals = calibration.estimate, calibration.conf_int()
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "unit", "value", "deviation", "low", "high", "status"))
        for k, (info, status) in enumerate(zip(calibration.model.parameters, estimate.status, strict=True)):
            numbers = (float(estimate.values[k]), float(estimate.deviation[k]), *map(float, intervals[k]))
            shown = [""] * 4 if status == "undetermined" else [repr(number) for number in numbers]
            if not calibration.scale_known:
                shown[1:] = [""] * 3
            writer.writerow((info.name, calibration.unit_of(k), *shown, status))
