"""The artefact: what is known about the joints of a robot, one JSON file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from jointwise.arguments import checked, checked_fields
from jointwise.atomic import is_regular, lock_directory, output_set
from jointwise.description import Robot
from jointwise.document import Kind, load_document, write_document
from jointwise.errors import JointwiseError, ModelError
from jointwise.joint.part import Part
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.spatial import Array

KIND = Kind(
    format="jointwise joints",
    name="a joint file ('jointwise joint' writes them)",
    noun="joint file",
    remedy="Identify again.",
)
MOST_JOINTS = 100


@checked_fields
@dataclass(frozen=True)
class JointModel:
    """The identified phenomena of one joint of a robot.

    Attributes:
        robot: Name of the robot.
        joint: Joint, 0-based.
        parts: Identified phenomena by name, in the order of `PHENOMENA`.
    """

    robot: str
    joint: int
    parts: Mapping[str, Part] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return robot, joint (0-based) and names of the phenomena in one line."""
        return f"JointModel({self.robot!r}, joint={self.joint}, parts {' '.join(self.parts) or 'none'})"

    @checked
    def with_part(self, part: Part) -> JointModel:
        """Return the model with a phenomenon added or replaced."""
        found = {**self.parts, part.phenomenon: part}
        return replace(self, parts={name: found[name] for name in PHENOMENA if name in found})

    def summary(self) -> str:
        """Return the summaries of all phenomena as text."""
        return "\n\n".join(f"{self.title}, {part.summary()}" for part in self.parts.values())

    @property
    def title(self) -> str:
        """Robot and joint, counted from 1."""
        return f"{self.robot}, joint {self.joint + 1}"

    def to_dict(self) -> dict[str, Any]:
        """Return the model as a document of plain JSON; joints count from 1 in files."""
        parts = {name: part.to_dict() for name, part in self.parts.items()}
        return {"robot": self.robot, "joint": self.joint + 1, "parts": parts}


@checked
def save_joints(models: list[JointModel], path: str | Path) -> None:
    """Write the models of some joints; the file appears only when it is whole."""
    write_document(KIND.stamped({"joints": [model.to_dict() for model in models]}), path)


@checked
def load_joints(path: str | Path) -> list[JointModel]:
    """Return the models of a file that `save_joints` wrote.

    Raises:
        ModelError: An entry is missing, unknown or wrong, or a law cannot be evaluated; names the file and the entry.
    """
    document = load_document(path, KIND, _JointFile)
    return [JointModel(entry.robot, entry.joint - 1, entry.parts.known()) for entry in document.joints]


@checked
def load_joint(path: str | Path, robot: Robot | str, joint: int) -> JointModel:
    """Return the model of one joint in a file; an empty model if the file or the joint does not exist yet.

    Args:
        path: Joint file.
        robot: The robot or its name.
        joint: Index of the joint, from 0.

    Returns:
        The model of the joint.

    Raises:
        ModelError: If the file is damaged or holds joints of another robot.
    """
    name = robot if isinstance(robot, str) else robot.name
    models = _joints_of(path, name)
    return next((model for model in models if model.joint == joint), JointModel(name, joint))


@checked
def save_joint(model: JointModel, path: str | Path, phenomena: Collection[str] | None = None) -> None:
    """Add the phenomena of one joint to a file, or replace them there; everything else in the file is kept.

    Several processes may add to one file at the same time: each reads and writes it while the others wait.

    Args:
        model: Model of the joint.
        path: Joint file; created if it does not exist.
        phenomena: Names of the phenomena to write, such as those that were identified just now; None for all of the
            model. The others may be older than those in the file.

    Raises:
        ModelError: If the file is damaged or holds joints of another robot.
        OutputError: If the file cannot be written.
    """
    with output_set():
        lock_directory(path)
        models = {other.joint: other for other in _joints_of(path, model.robot)}
        merged = models.get(model.joint, JointModel(model.robot, model.joint))
        for name, part in model.parts.items():
            merged = merged.with_part(part) if phenomena is None or name in phenomena else merged
        models[model.joint] = merged
        save_joints([models[joint] for joint in sorted(models)], path)


def _joints_of(path: str | Path, robot: str) -> list[JointModel]:
    """Return the joints in a file, none if it does not exist or is a device; reject those of another robot."""
    models = load_joints(path) if is_regular(path) and Path(path).exists() else []
    for model in models:
        if model.robot != robot:
            raise ModelError(f"{path}: must hold joints of {robot}. Got joints of {model.robot} instead.")
    return models


@dataclass(frozen=True)
class _Parts:
    """The phenomena of a joint in a file, in the order of `PHENOMENA`."""

    stiffness: Part | None = None
    transmission: Part | None = None
    friction: Part | None = None
    load: Part | None = None
    temperature: Part | None = None
    hysteresis: Part | None = None
    motor: Part | None = None

    def known(self) -> dict[str, Part]:
        """Return the parts that are there, by name."""
        return {name: part for name, part in vars(self).items() if part is not None}


@dataclass(frozen=True)
class _StoredJoint:
    """A joint in a file, where joints count from 1."""

    robot: str
    joint: Annotated[int, Meta(ge=1, le=MOST_JOINTS)]
    parts: _Parts = field(default_factory=_Parts)

    def __post_init__(self) -> None:
        """Reject a part under the name of another, and laws that cannot be evaluated."""
        parts = self.parts.known()
        for name, part in parts.items():
            if name != part.phenomenon:
                raise ModelError(f"the phenomenon of part '{name}' must be '{name}'. Got '{part.phenomenon}' instead.")
        check_laws(parts)


@dataclass(frozen=True)
class _JointFile:
    """The entries of a joint file."""

    joints: tuple[_StoredJoint, ...]

    def __post_init__(self) -> None:
        """Reject a joint that is there twice."""
        numbers = [entry.joint for entry in self.joints]
        for number in numbers:
            if numbers.count(number) > 1:
                raise ModelError(f"joint {number} must be there once. Got it {numbers.count(number)} times.")


# -- validation: each law of a file is built and evaluated --

SIGNED = np.array([-1.0, -0.1, 0.0, 0.1, 1.0])
"""Speeds (rad/s), or fractions of a range, at which laws are evaluated."""
SWING = np.sin(np.linspace(0.0, 2.0 * np.pi, 41))
"""A path (rad) forward and back."""
STEP = 1e-3
"""Time (s) between its samples."""


def check_laws(parts: Mapping[str, Part]) -> None:
    """Raise `ModelError` for a part whose law cannot be built or does not evaluate to finite numbers."""
    for name, part in parts.items():
        _check(name, partial(_LAWS[name], part))
    if "friction" in parts:
        _check("friction over speed, load and temperature", lambda: _combined(parts))


def _check(name: str, evaluate: Callable[[], list[Array]]) -> None:
    """Raise if a law cannot be evaluated, or its values are not finite or of another shape than its input."""
    try:
        with np.errstate(all="ignore"):
            inputs, *outputs = evaluate()
        is_valid = all(np.shape(y) == np.shape(inputs) and np.isfinite(y).all() for y in outputs)
    except JointwiseError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise ModelError(f"{name}: the law cannot be built from its settings ({problem}).") from None
    if not is_valid:
        raise ModelError(f"{name}: the law does not give finite numbers.")


def _combined(parts: Mapping[str, Part]) -> list[Array]:
    from jointwise.joint.laws import friction_map

    return [SIGNED, friction_map(list(parts.values())).torque(SIGNED)]


def _stiffness(part: Part) -> list[Array]:
    from jointwise.joint.gear import stiffness_of

    law = stiffness_of(part)
    if not (law.largest > 0.0 and float(law.stiffness(np.zeros(1))[0]) > 0.0):
        raise ModelError("stiffness: the spring must be stiff at rest and have a range.")
    phi = SIGNED * law.largest
    return [phi, law.torque(phi), law.stiffness(phi)]


def _transmission(part: Part) -> list[Array]:
    from jointwise.joint.gear import transmission_of

    maps = transmission_of(part)
    if maps.reach < 0.0:
        raise ModelError(f"transmission: reach must be at least 0. Got {maps.reach} instead.")
    return [SWING, maps.error(SWING), maps.backlash(SWING), maps.lag(SWING), maps.slope(SWING)]


def _friction(part: Part) -> list[Array]:
    from jointwise.joint.laws import velocity_law_of

    return [SIGNED, velocity_law_of(part).torque(SIGNED)]


def _load(part: Part) -> list[Array]:
    from jointwise.joint.laws import CHOICES, load_law_of

    law = load_law_of(part)
    if law.kind not in ("none", *CHOICES) or law.largest < 0.0:
        raise ModelError(f"load: the law must be none or one of {', '.join(CHOICES)}, up to a load of at least 0.")
    return [SIGNED, law.torque(SIGNED, SIGNED * law.largest)]


def _temperature(part: Part) -> list[Array]:
    from jointwise.joint.laws import PARAMETERS, temperature_law_of

    law = temperature_law_of(part)
    if law.kind not in PARAMETERS or not law.coldest <= law.hottest or law.fastest < 0.0:
        raise ModelError("temperature: the law must be a known one, from the coldest to the hottest, up to a speed.")
    return [SIGNED, *(law.torque(SIGNED, np.full(len(SIGNED), T)) for T in (law.coldest, law.hottest))]


def _hysteresis(part: Part) -> list[Array]:
    from jointwise.joint.laws import METHODS, JointMotion, friction_law
    from jointwise.model.terms import LOAD_POWERS

    law = friction_law(part)
    if law.model not in METHODS or not (law.limits > 0.0).all():
        raise ModelError("hysteresis: the law must be a known one, with limits above 0.")
    if not law.growth >= 0.0 or law.power not in LOAD_POWERS.values():
        raise ModelError("hysteresis: its growth with the load must be at least 0, with the power 1 or 2.")
    if law.backlash is not None and not (law.backlash > 0.0).all():
        raise ModelError("hysteresis: the backlash map must be a list of numbers above 0.")
    if len(law.limits) and not law.forces.sum() > 0.0:
        raise ModelError("hysteresis: the forces must add up to more than 0.")
    return [SWING, law.torque(JointMotion(SWING, np.gradient(SWING, STEP), SWING, STEP))]


def _motor(part: Part) -> list[Array]:
    if not part["gain"] > 0.0:
        raise ModelError(f"motor: gain must be > 0. Got {part['gain']} instead.")
    return [SIGNED, part["gain"] * SIGNED]


_LAWS: dict[str, Callable[[Part], list[Array]]] = {
    "stiffness": _stiffness,
    "transmission": _transmission,
    "friction": _friction,
    "load": _load,
    "temperature": _temperature,
    "hysteresis": _hysteresis,
    "motor": _motor,
}
