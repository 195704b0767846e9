"""The calibration as one JSON document: written whole or not at all, nothing executed on reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.data.conditioning import Filters
from jointwise.description.document import robot_from_dict, robot_to_dict
from jointwise.document import Kind, build, load_document, write_document
from jointwise.errors import ModelError
from jointwise.estimation.select import Choice
from jointwise.model.dynamics import Dynamics
from jointwise.model.terms import term_from_dict
from jointwise.result.calibration import Calibration, Estimate, Provenance, Source

SCHEMA = 1
KIND = Kind(
    format="jointwise calibration",
    schema=SCHEMA,
    name="a Jointwise calibration",
    noun="model",
    remedy="Calibrate again.",
    largest=256 * 1024 * 1024,
)


def save_calibration(calibration: Calibration, path: str | Path) -> None:
    """Write a calibration to a JSON file."""
    write_document(to_document(calibration), path)


def load_calibration(path: str | Path) -> Calibration:
    """Return the calibration of a JSON file; the original logs and descriptions are not needed."""
    return load_document(path, KIND, _calibration)


def to_document(calibration: Calibration) -> dict[str, Any]:
    """Return the calibration as a document of numbers and texts."""
    own, model = calibration.estimate, calibration.model
    content = {
        "provenance": asdict(calibration.provenance),
        "robot": robot_to_dict(model.robot),
        "model": {
            "gravity": list(model.gravity),
            "rotors": model.rotors,
            "load_basis": model.load_basis,
            "terms": [[term.to_dict() for term in terms] for terms in model.terms],
        },
        "filters": asdict(calibration.filters),
        "output": {
            "signal": calibration.output,
            "unit": calibration.unit,
            "gains": calibration.gains.tolist(),
            "gain_source": calibration.gain_source,
        },
        "parameters": [
            {
                "name": info.name,
                "unit": info.unit,
                "joint": None if info.joint is None else info.joint + 1,
                "value": float(own.values[k]),
                "deviation": float(own.deviation[k]),
                "status": own.status[k],
            }
            for k, info in enumerate(model.parameters)
        ],
        "estimate": {
            "method": own.method,
            "factor": own.factor,
            "sigma": own.sigma.tolist(),
            "condition": _finite(own.condition),
            "condition_scaled": _finite(own.condition_scaled),
            "covariance": [row[: k + 1].tolist() for k, row in enumerate(own.covariance)],
        },
        "structure": calibration.structure,
        "structure_text": calibration.structure_text,
        "choices": [asdict(choice) for choice in calibration.choices],
        "load": calibration.load,
        "training": calibration.training,
        "fastest": calibration.fastest.tolist(),
        "validation": calibration.validation,
    }
    return KIND.stamped(content)


def from_document(document: Any) -> Calibration:
    """Return the calibration of a document."""
    return build(document, KIND, _calibration)


def _calibration(document: Mapping[str, Any]) -> Calibration:
    model = _model(document)
    names = [row["name"] for row in document["parameters"]]
    if names != [info.name for info in model.parameters]:
        raise ModelError("the parameters do not belong to this model.")
    output = document["output"]
    if output["signal"] not in ("current", "torque"):
        raise ModelError(f"output signal must be current or torque. Got {output['signal']!r} instead.")
    return Calibration(
        model=model,
        estimate=_estimate(document),
        filters=Filters(**document["filters"]),
        output=output["signal"],
        gains=_numbers(output["gains"]),
        gain_source=output["gain_source"],
        structure=dict(document["structure"]),
        structure_text=document["structure_text"],
        choices=tuple(
            Choice(row["question"], tuple((name, score) for name, score in row["alternatives"]), row["taken"])
            for row in document["choices"]
        ),
        load=dict(document["load"]),
        training=dict(document["training"]),
        fastest=_numbers(document["fastest"]),
        provenance=_provenance(document["provenance"]),
        validation=dict(document["validation"]),
    )


def _model(document: Mapping[str, Any]) -> Dynamics:
    own = document["model"]
    gravity = _numbers(own["gravity"])
    if gravity.shape != (3,):
        raise ModelError("gravity must be three numbers.")
    return Dynamics(
        robot=robot_from_dict(document["robot"]),
        gravity=(float(gravity[0]), float(gravity[1]), float(gravity[2])),
        rotors=bool(own["rotors"]),
        terms=tuple(tuple(term_from_dict(term) for term in terms) for terms in own["terms"]),
        load_basis=own["load_basis"],
    )


def _estimate(document: Mapping[str, Any]) -> Estimate:
    own, rows = document["estimate"], document["parameters"]
    lower = own["covariance"]
    covariance = np.zeros((len(rows), len(rows)))
    for k, row in enumerate(lower):
        covariance[k, : k + 1] = covariance[: k + 1, k] = _numbers(row)
    return Estimate(
        values=_numbers([row["value"] for row in rows]),
        covariance=covariance,
        factor=float(own["factor"]),
        status=tuple(row["status"] for row in rows),
        sigma=_numbers(own["sigma"]),
        condition=float(own["condition"]) if own["condition"] is not None else float("inf"),
        condition_scaled=float(own["condition_scaled"]) if own["condition_scaled"] is not None else float("inf"),
        method=own["method"],
    )


def _provenance(document: Mapping[str, Any]) -> Provenance:
    logs = tuple(Source(**{**row, "findings": tuple(row["findings"])}) for row in document["logs"])
    payload = document.get("payload")
    if payload is not None and _numbers(payload).shape != (4,):
        raise ModelError("the payload must be four numbers.")
    return Provenance(**{**document, "logs": logs, "payload": payload and tuple(payload)})


def _numbers(values: Any) -> Any:
    array = np.array(values, dtype=float)
    if not np.isfinite(array).all():
        raise ModelError("a number is not finite.")
    return array


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
