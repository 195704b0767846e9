"""Targets of an export by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jointwise.arguments import checked
from jointwise.atomic import check_directory
from jointwise.data.log import Log
from jointwise.errors import ModelError, nearest
from jointwise.export.c_code import c_library, compiler
from jointwise.export.fmu_archive import fmu_units
from jointwise.export.mjcf_model import mjcf_model
from jointwise.export.package import Content, Export, Loss, costs_of, write_export
from jointwise.export.ros2_package import ros2_package
from jointwise.export.ur_script import ur_script
from jointwise.export.urdf_model import urdf_model
from jointwise.result.calibration import CalibratedModel, calibration_of
from jointwise.runtime import RobotModel
from jointwise.runtime.motion import checked_rate

TARGETS: dict[str, tuple[str, Callable[..., Content]]] = {
    "c": ("C99 library: runtime, numbers, test program", c_library),
    "fmu": ("functional mock-up units, FMI 2.0 and 3.0: inverse and forward model", fmu_units),
    "urdf": ("URDF with the identified bodies and simple friction", urdf_model),
    "mjcf": ("MuJoCo model with bodies, armature, simple friction and motors", mjcf_model),
    "ros2": ("ROS 2 package for feed-forward: C++ class, node, URDF, parameters", ros2_package),
    "ur": ("URScript for a UR controller: payload and friction scales", ur_script),
}
"""Name -> one line of help, and the function that makes the files of a model at a sampling rate (Hz)."""


@checked
def write(
    model: CalibratedModel,
    target: str,
    directory: str | Path,
    *,
    rate: float | None = None,
    logs: Sequence[Log] = (),
    force: bool = False,
    **options: Any,
) -> Export:
    """Export a model to a target; the files appear only if they agree with the model.

    Args:
        model: The calibrated model, a `RobotModel` or a `Calibration`; with payload and mounting as set.
        target: `c`, `fmu`, `urdf`, `mjcf`, `ros2` or `ur`.
        directory: Directory of the files; created if it does not exist.
        rate: Sampling rate of the exported model, Hz; None for that of the model.
        logs: Logs with a measured output, on which the cost of what the target cannot express is measured.
        force: Overwrite files in a directory that is not empty.
        options: Options of the target.

    Returns:
        What was written, what is lost, its cost on the logs, and the checks.

    Raises:
        ModelError: The target is unknown, the model lacks what it needs, or the files do not agree with the model.
        OutputError: The directory is not empty, or cannot be written.

    """
    if target not in TARGETS:
        raise ModelError(f"unknown target '{target}'. {nearest(target, TARGETS)}")
    robot = model if isinstance(model, RobotModel) else RobotModel(calibration_of(model))
    check_directory(Path(directory), force=force)
    content = TARGETS[target][1](robot, checked_rate(robot.rate if rate is None else rate), **options)
    content = replace(content, losses=(*_ignored_joints(robot), *content.losses))
    return write_export(target, robot, content, Path(directory), costs_of(robot, content, logs), force)


def _ignored_joints(model: RobotModel) -> tuple[Loss, ...]:
    """Return the loss of joints whose output was not used for the calibration."""
    ignored = ", ".join(str(j + 1) for j in model.calibration.ignored)
    return (Loss(f"friction of joints {ignored}: their output was ignored in the calibration"),) if ignored else ()


@checked
def unavailable(model: CalibratedModel) -> dict[str, str]:
    """Return the targets that a model cannot be exported to on this machine, and why."""
    joints = calibration_of(model).model.robot.dof
    reasons = {"ur": f"a UR has 6 joints, the model has {joints}"} if joints != 6 else {}
    return reasons if compiler() else {**reasons, "fmu": "an FMU needs a C compiler. Install gcc or clang, or set CC"}


@checked
def write_all(
    model: CalibratedModel, directory: str | Path, *, targets: Sequence[str] = (), force: bool = False, **options: Any
) -> list[Export]:
    """Export a model to several targets, each into a directory of its name; all of them by default.

    Args:
        model: The calibrated model.
        directory: Directory of the directories.
        targets: Names of targets; if empty, all but those that are `unavailable`.
        force: Overwrite files in directories that are not empty.
        options: `rate` and `logs` as in `write`.

    """
    names = tuple(targets) or tuple(name for name in TARGETS if name not in unavailable(model))
    check_directory(Path(directory), force=force)
    return [write(model, name, Path(directory) / name, force=force, **options) for name in names]


@checked
def c(model: CalibratedModel, directory: str | Path, **options: Any) -> Export:
    """Export to a C99 library; arguments as in `write`."""
    return write(model, "c", directory, **options)


@checked
def fmu(model: CalibratedModel, directory: str | Path, **options: Any) -> Export:
    """Export to functional mock-up units; arguments as in `write`."""
    return write(model, "fmu", directory, **options)


@checked
def urdf(
    model: CalibratedModel,
    directory: str | Path,
    *,
    urdf: str | Path | None = None,
    tip: str | None = None,
    **options: Any,
) -> Export:
    """Export to URDF: the file `urdf` with other inertials and dynamics, or a new one; else as `write`."""
    return write(model, "urdf", directory, urdf=urdf, tip=tip, **options)


@checked
def mjcf(model: CalibratedModel, directory: str | Path, **options: Any) -> Export:
    """Export to MJCF of MuJoCo; arguments as in `write`."""
    return write(model, "mjcf", directory, **options)


@checked
def ros2(model: CalibratedModel, directory: str | Path, **options: Any) -> Export:
    """Export to a ROS 2 package; arguments as in `write`."""
    return write(model, "ros2", directory, **options)


@checked
def ur(
    model: CalibratedModel, directory: str | Path, *, reference: CalibratedModel | None = None, **options: Any
) -> Export:
    """Export to URScript with friction scales relative to a `reference` model; other arguments as in `write`."""
    return write(model, "ur", directory, reference=reference, **options)
