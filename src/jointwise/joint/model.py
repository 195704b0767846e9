"""The artefact: what is known about the joints of a robot, one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jointwise.document import Kind, load_document, write_document
from jointwise.joint.part import PHENOMENA, Part

KIND = Kind(
    format="jointwise joints",
    schema=1,
    name="a joint file ('jointwise joint' writes them)",
    noun="joint file",
    remedy="Identify again.",
    largest=50_000_000,
)


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
    write_document(KIND.stamped({"joints": [model.to_dict() for model in models]}), path)


def load_joints(path: str | Path) -> list[JointModel]:
    """Return the models of a file that `save_joints` wrote."""
    return load_document(path, KIND, lambda document: [_model(own) for own in document["joints"]])


def _model(document: Any) -> JointModel:
    parts = {name: Part.from_dict(own) for name, own in document["parts"].items()}
    return JointModel(str(document["robot"]), int(document["joint"]) - 1, parts)
