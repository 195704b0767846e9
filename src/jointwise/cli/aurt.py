"""AURT's workflow: its two model files as small JSON documents, and its model as our options.

AURT's model: bodies without rotor inertias, Coulomb friction F_C0 [+ F_C1 of the load] times sgn(v), viscous powers, no
offset; current is torque up to a gain. The structure is kept. Its signals are treated as ours are, which predicts
unseen UR10e logs better than AURT's fixed numbers do (position filter 50 Hz, parallel filter 20 Hz, one gain for all):
the position cut-off is chosen from the data (50 Hz is above what a 100 Hz log can carry), there is no parallel filter
(the raw current is what is to be predicted), the ratios of the drive gains are estimated, and sgn turns over 3 mrad/s:
at rest the sign of a filtered speed is noise, and friction is not. `--direction sign`, `--position-cutoff 50`,
`--parallel-cutoff 20`, `--lag 0` and `--gains 1 1 ...` give AURT's own treatment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jointwise.description.files import TABLE_ENDINGS, RobotDocument, load_robot, read_text, robot_to_dict
from jointwise.description.table import robot_from_csv
from jointwise.document import Kind, load_document, write_document
from jointwise.estimation.structure import Structure
from jointwise.options import Options

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.description import Robot
    from jointwise.result import Calibration

TURN = 3e-3
"""Speed (rad/s) over which sgn turns."""


def _kind(format_: str, command: str) -> Kind:
    name = f"the file that {command} wrote"
    return Kind(format_, name, noun="model", remedy="Compile again.")


BODIES = _kind("jointwise rigid-body description", "compile-rbd")
MODEL = _kind("jointwise robot model", "compile-rd")


@dataclass(frozen=True)
class AurtModel:
    """What compile-rd stores.

    Attributes:
        robot: The robot.
        load: Dependence of its Coulomb friction on the load: "none", "absolute" or "square".
        powers: Powers of its viscous friction.
    """

    robot: Robot
    load: str
    powers: tuple[float, ...]

    def options(self, logs: Sequence[Log]) -> Options:
        """Return AURT's model as options: nothing of the structure is left to choose."""
        structure = Structure("tanh", self.load, self.powers, width=TURN, offset=False)
        measured = all(log.current is not None for log in logs)
        return Options(output="current" if measured else None, structure=structure, free=(), rotors=False)


def read_mdh(path: str) -> Robot:
    """Return the robot of AURT's table, mdh-following unless it says otherwise; other descriptions work too."""
    if Path(path).suffix.lower() not in TABLE_ENDINGS:
        return load_robot(path)
    text = read_text(Path(path))
    stated = any(line.lstrip().startswith("#") and "convention:" in line.lower() for line in text.splitlines())
    return robot_from_csv(text, path, None if stated else "mdh-following")


def save_bodies(robot: Robot, path: str) -> None:
    """Write what compile-rbd makes."""
    write_document(BODIES.stamped({"robot": robot_to_dict(robot)}), path)


def load_bodies(path: str | Path) -> Robot:
    """Return the robot of a file that compile-rbd wrote."""
    return load_document(path, BODIES, _BodiesFile).robot.robot


def save_aurt_model(model: AurtModel, path: str) -> None:
    """Write what compile-rd makes."""
    friction = {"torque_model": model.load, "viscous_powers": list(model.powers)}
    write_document(MODEL.stamped({"robot": robot_to_dict(model.robot), "friction": friction}), path)


def load_aurt_model(path: str | Path) -> AurtModel:
    """Return the model of a file that compile-rd wrote."""
    return load_document(path, MODEL, _ModelFile).model


def predicted_names(calibration: Calibration) -> tuple[str, ...]:
    """Return AURT's column names of a prediction."""
    return tuple(f"predicted_{calibration.output}_{j}" for j in range(calibration.model.robot.dof))


@dataclass(frozen=True)
class _BodiesFile:
    """The entries of a file of compile-rbd."""

    robot: RobotDocument


@dataclass(frozen=True)
class _Friction:
    """The friction model of a file of compile-rd."""

    torque_model: Literal["none", "square", "absolute"]
    viscous_powers: tuple[float, ...]

    def __post_init__(self) -> None:
        """Reject powers that make no model."""
        Structure("tanh", self.torque_model, self.viscous_powers)


@dataclass(frozen=True)
class _ModelFile:
    """The entries of a file of compile-rd."""

    robot: RobotDocument
    friction: _Friction

    @property
    def model(self) -> AurtModel:
        """The model itself."""
        return AurtModel(self.robot.robot, self.friction.torque_model, self.friction.viscous_powers)
