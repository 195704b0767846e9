"""The artefact: what is known about the joints of a robot, one JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jointwise.atomic import atomic_write
from jointwise.errors import ModelError
from jointwise.joint.part import PHENOMENA, Part

SCHEMA = 1
LARGEST_FILE = 50_000_000
"""Bytes that a joint file may have."""


@dataclass(frozen=True)
class JointModel:
    """The identified phenomena of one joint (0-based) of a robot, by name; `robot` is its name."""

    robot: str
    joint: int
    parts: Mapping[str, Part] = field(default_factory=dict)

    def with_part(self, part: Part) -> JointModel:
        """Return the model with a phenomenon added or replaced."""
        found = {**self.parts, part.phenomenon: part}
        return replace(self, parts={name: found[name] for name in PHENOMENA if name in found})

    def to_dict(self) -> dict[str, Any]:
        """Return the model as a document of plain JSON; joints count from 1 in files."""
        parts = {name: part.to_dict() for name, part in self.parts.items()}
        return {"robot": self.robot, "joint": self.joint + 1, "parts": parts}


def save_joints(models: list[JointModel], path: str | Path) -> None:
    """Write the models of some joints; the file appears only when it is whole."""
    document = {"schema": SCHEMA, "kind": "jointwise joints", "joints": [model.to_dict() for model in models]}
    with atomic_write(path) as file:
        file.write(json.dumps(document, indent=1, allow_nan=False) + "\n")


def load_joints(path: str | Path) -> list[JointModel]:
    """Return the models of a file that `save_joints` wrote."""
    if (size := Path(path).stat().st_size) > LARGEST_FILE:
        raise ModelError(f"{path}: a joint file has at most {LARGEST_FILE} bytes. Got {size} instead.")
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise ModelError(f"{path}: not a joint file: {problem}.") from None
    if not isinstance(document, dict) or document.get("kind") != "jointwise joints":
        raise ModelError(f"{path}: not a joint file; 'jointwise joint' writes them.")
    if document.get("schema") != SCHEMA:
        raise ModelError(f"{path}: schema must be {SCHEMA}. Got {document.get('schema')!r} instead.")
    return [_model(own, str(path)) for own in document.get("joints", [])]


def _model(document: Any, origin: str) -> JointModel:
    try:
        parts = {name: Part.from_dict(own) for name, own in document["parts"].items()}
        return JointModel(str(document["robot"]), int(document["joint"]) - 1, parts)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise ModelError(f"{origin}: not a joint model: {problem}.") from None
