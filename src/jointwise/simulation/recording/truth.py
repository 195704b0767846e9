"""The truth behind a recording as one JSON document, from which the same digital robot can be built again."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from jointwise.atomic import atomic_write
from jointwise.description.document import robot_from_dict, robot_to_dict
from jointwise.description.payload import Payload, loaded_inertials
from jointwise.document import Kind, build, read_document
from jointwise.model.base import base_parameters
from jointwise.model.spring import Cubic, Rigid, Segments
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.elasticity import Elasticity
from jointwise.simulation.robot.joint import JointPlant

KIND = Kind(
    format="jointwise truth",
    schema=1,
    name="the truth of a Jointwise recording",
    noun="truth",
    remedy="Simulate again.",
    largest=64 * 1024 * 1024,
)
SPRINGS: dict[str, type[Elasticity]] = {"rigid": Rigid, "cubic": Cubic, "segments": Segments}


def digital_robot_to_dict(digital: DigitalRobot) -> dict[str, Any]:
    """Return a digital robot as numbers and texts, with what follows from them: gains, standard and base parameters."""
    inertials = loaded_inertials(digital.robot, digital.payload)
    rotors = np.array([joint.inertia for joint in digital.joints])
    base = base_parameters(digital.robot, _gravity(digital), True)
    values = base.from_standard(np.concatenate([inertials.ravel(), rotors]))
    content = {
        "robot": robot_to_dict(digital.robot),
        "gravity": list(_gravity(digital)),
        "payload": None if digital.payload is None else payload_to_dict(digital.payload),
        "model": digital.model,
        "joints": [joint_to_dict(joint) for joint in digital.joints],
        "gains": digital.gains.tolist(),
        "inertials": inertials.tolist(),
        "rotor_inertias": rotors.tolist(),
        "base": dict(zip(base.names, values.tolist(), strict=True)),
    }
    return KIND.stamped(content)


def digital_robot_from_truth(document: Mapping[str, Any]) -> DigitalRobot:
    """Return the digital robot that a truth document tells of, equal in every number."""
    return build(document, KIND, _digital_robot)


def _digital_robot(document: Mapping[str, Any]) -> DigitalRobot:
    payload = document["payload"]
    return DigitalRobot(
        robot=robot_from_dict(document["robot"]),
        joints=tuple(joint_from_dict(joint) for joint in document["joints"]),
        gravity=document["gravity"],
        payload=None if payload is None else Payload(**payload),
        model=document["model"],
    )


def save_truth(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a truth document; the file appears only when it is whole."""
    with truth_file(document, path):
        pass


@contextlib.contextmanager
def truth_file(document: Mapping[str, Any], path: str | Path) -> Iterator[None]:
    """Write a truth document that appears when the block ends without an error."""
    with atomic_write(path) as file:
        file.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
        yield


def load_truth(path: str | Path) -> dict[str, Any]:
    """Return the truth document of a file; `digital_robot_from_truth` makes the robot of it."""
    return read_document(path, KIND)


def joint_to_dict(joint: JointPlant) -> dict[str, Any]:
    """Return a joint as numbers; a limit that is not there (inf) is None."""
    document: dict[str, Any] = _plain(asdict(joint))
    kind = next(name for name, spring in SPRINGS.items() if isinstance(joint.stiffness, spring))
    return document | {"stiffness": {"kind": kind, **document["stiffness"]}}


def joint_from_dict(document: Mapping[str, Any]) -> JointPlant:
    """Return the joint of such a document."""
    spring = dict(document["stiffness"])
    stiffness = _built(SPRINGS[spring.pop("kind")], spring)
    own = {name: value for name, value in document.items() if name != "stiffness"}
    joint: JointPlant = _built(JointPlant, own)
    return replace(joint, stiffness=stiffness)


def _plain(value: Any) -> Any:
    """Return nested values as JSON knows them: tuples as lists, infinity as None."""
    if isinstance(value, dict):
        return {name: _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return None if value == math.inf else value


def _built(kind: Any, value: Any) -> Any:
    """Return a value of an annotated kind - a dataclass, a tuple of a kind, a number - from a plain one."""
    if is_dataclass(kind) and isinstance(kind, type):
        kinds = get_type_hints(kind)
        return kind(**{name: _built(kinds[name], own) for name, own in value.items()})
    if get_origin(kind) is tuple:
        return tuple(_built(get_args(kind)[0], own) for own in value)
    return math.inf if value is None else value


def _gravity(digital: DigitalRobot) -> tuple[float, float, float]:
    x, y, z = np.asarray(digital.gravity, dtype=float).tolist()
    return x, y, z


def payload_to_dict(payload: Payload) -> dict[str, Any]:
    """Return a payload as numbers: kg, m, kg m²."""
    return {
        "mass": payload.mass,
        "center_of_mass": np.asarray(payload.center_of_mass).tolist(),
        "inertia": np.asarray(payload.inertia).tolist(),
    }
