"""The artefact: what is known about the joints of a robot, one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jointwise.document import Kind, load_document, write_document
from jointwise.errors import ModelError
from jointwise.joint import typed
from jointwise.joint.part import Part
from jointwise.joint.phenomenon import PHENOMENA

KIND = Kind(
    format="jointwise joints",
    schema=1,
    name="a joint file ('jointwise joint' writes them)",
    noun="joint file",
    remedy="Identify again.",
    largest=50_000_000,
)
MOST_JOINTS = 100


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
    """Return the models of a file that `save_joints` wrote; a file with any damage is refused."""
    return load_document(path, KIND, _models)


def _models(document: Mapping[str, Any]) -> list[JointModel]:
    models = [_model(own, f"joint {k}") for k, own in enumerate(typed.items(document["joints"], "joints"), start=1)]
    places = [model.joint for model in models]
    for joint in places:
        if places.count(joint) > 1:
            raise ModelError(f"joint {joint + 1} must be there once. Got it {places.count(joint)} times.")
    return models


def _model(document: Any, place: str) -> JointModel:
    from jointwise.joint.laws import check_laws

    own = typed.entries(document, JointModel, place)
    number = own["joint"]
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_JOINTS:
        raise typed.wrong(f"{place}: joint", f"a whole number from 1 to {MOST_JOINTS}", number)
    known = typed.table(own.get("parts", {}), f"{place}: parts")
    parts = {name: Part.from_dict(part) for name, part in known.items()}
    for name, part in parts.items():
        if name != part.phenomenon:
            raise typed.wrong(f"{place}: the phenomenon under '{name}'", f"'{name}'", part.phenomenon)
    check_laws(parts)
    return JointModel(typed.text(own["robot"], f"{place}: robot"), number - 1, parts)
