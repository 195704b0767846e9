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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise.calibrate import Options
from jointwise.description import gravity_vector
from jointwise.description.document import robot_from_dict, robot_to_dict
from jointwise.description.files import TABLE_ENDINGS, load_robot, read_text
from jointwise.description.table import robot_from_csv
from jointwise.document import Kind, load_document, write_document
from jointwise.errors import ModelError
from jointwise.estimation.structure import Structure

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.description import Robot
    from jointwise.result import Calibration

TURN = 3e-3
"""Speed (rad/s) over which sgn turns."""


def _kind(format_: str, command: str) -> Kind:
    name = f"the file that {command} wrote"
    return Kind(format_, 1, name, noun="model", remedy="Compile again.", largest=16 * 1024 * 1024)


BODIES = _kind("jointwise rigid-body description", "compile-rbd")
MODEL = _kind("jointwise robot model", "compile-rd")


@dataclass(frozen=True)
class RobotModel:
    """What compile-rd stores: a robot, the load dependence of its Coulomb friction, its viscous powers."""

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
    return load_document(path, BODIES, lambda document: robot_from_dict(document["robot"]))


def save_model(model: RobotModel, path: str) -> None:
    """Write what compile-rd makes."""
    friction = {"torque_model": model.load, "viscous_powers": list(model.powers)}
    write_document(MODEL.stamped({"robot": robot_to_dict(model.robot), "friction": friction}), path)


def load_model(path: str | Path) -> RobotModel:
    """Return the model of a file that compile-rd wrote."""
    return load_document(path, MODEL, _model)


def under_gravity(calibration: Calibration, gravity: Sequence[float]) -> Calibration:
    """Return a calibration under another gravity (m/s²), if the parameters that it has are all that count there."""
    wanted = gravity_vector(gravity)
    if np.allclose(wanted, calibration.model.gravity, atol=1e-9):
        return calibration
    x, y, z = wanted.tolist()
    moved = replace(calibration.model, gravity=(x, y, z))
    old, new = calibration.model.base, moved.base
    if old.names != new.names or not np.allclose(old.projection, new.projection, atol=1e-6):
        raise ModelError(
            f"the model was calibrated under gravity {_vector(calibration.model.gravity)}; under {_vector((x, y, z))} "
            "other parameters count, which it does not know. Calibrate a log in that mounting."
        )
    return replace(calibration, model=moved)


def predicted_names(calibration: Calibration) -> tuple[str, ...]:
    """Return AURT's column names of a prediction."""
    return tuple(f"predicted_{calibration.output}_{j}" for j in range(calibration.model.robot.dof))


def _model(document: Mapping[str, Any]) -> RobotModel:
    friction = document["friction"]
    powers = tuple(float(power) for power in friction["viscous_powers"])
    model = RobotModel(robot_from_dict(document["robot"]), friction["torque_model"], powers)
    Structure("tanh", model.load, model.powers)  # refuses what is no model
    return model


def _vector(gravity: Sequence[float]) -> str:
    return " ".join(f"{value + 0.0:.4g}" for value in gravity)
