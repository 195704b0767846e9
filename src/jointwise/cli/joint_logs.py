"""The logs of a joint command: its options for them, and the signals of the joint that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jointwise.cli.command import UsageError
from jointwise.cli.inputs import Carried, LogFormat, Mounted, RobotFile
from jointwise.cli.output import mounting_for, note, read_model
from jointwise.errors import JointwiseError, ModelError
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.settings import Count, Gain, option

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.description import Robot
    from jointwise.description.mounting import Mounting
    from jointwise.joint import JointModel, JointRecord
    from jointwise.result.bodies import CalibratedBodies


@dataclass(frozen=True, kw_only=True)
class JointLogs(RobotFile, Mounted, LogFormat, Carried):
    """The logs, the robot, its joint, and what the logs do not state."""

    logs: tuple[str, ...] = option(help="logs of the experiment, CSV or Parquet", metavar="LOG", argument=True)
    joint: Count = option(help="the joint, counted from 1", metavar="J")
    gain: Gain | None = option(
        None, "drive gain, Nm/A", metavar="K", standard="from the joint file, else from the robot description"
    )


@dataclass(frozen=True, kw_only=True)
class Record(JointLogs):
    """The logs of a joint, and the load of its bodies."""

    model: str | None = option(
        None, "calibrated model for the load", metavar="MODEL", standard="bodies of the robot description"
    )
    accept_implausible: bool = option(False, "use a drive gain of the output file marked as implausible")


def with_joint(robot: Robot, joint: int) -> Robot:
    """Return a robot; reject a joint (counted from 1) that it does not have."""
    if joint > robot.dof:
        raise UsageError(f"--joint must be 1 to {robot.dof}. Got {joint} instead")
    return robot


def joint_records(settings: Record, robot: Robot, known: JointModel) -> dict[str, list[JointRecord]]:
    """Return the records of each phenomenon: those with its name, else all without a name."""
    named: dict[str, list[JointRecord]] = {}
    unnamed: list[JointRecord] = []
    for word in settings.logs:
        name, path, gravity = split_word(word)
        record = joint_record_of(settings, robot, [path], gravity or settings.stated_mounting(), known)
        (named.setdefault(name, []) if name else unnamed).append(record)
    return {name: named.get(name, unnamed) for name in PHENOMENA}


def split_word(word: str) -> tuple[str | None, str, str | list[float] | None]:
    """Return phenomenon, file and gravity of `[PHENOMENON=]LOG[@GRAVITY]`; an existing file is not split."""
    if Path(word).exists():
        return None, word, None
    name, rest = _split_name(word)
    path, sign, text = rest.rpartition("@")
    if not sign or Path(rest).exists():
        return name, rest, None
    gravity = _gravity(text)
    if gravity is None and Path(path).exists():
        raise UsageError(f"gravity after @ must be X,Y,Z or a mounting. Got '{text}' instead")
    return (name, rest, None) if gravity is None else (name, path, gravity)


def _split_name(word: str) -> tuple[str | None, str]:
    """Return the phenomenon before = (None if there is none) and the rest of a word."""
    name, sign, rest = word.partition("=")
    if sign and name in PHENOMENA:
        return name, rest
    if any(path and Path(path).is_file() for path in (rest, rest.rpartition("@")[0])):
        raise UsageError(f"the name before = must be one of {', '.join(PHENOMENA)}. Got '{name}' instead")
    return None, word


def _gravity(text: str) -> str | list[float] | None:
    """Return gravity from a text: three numbers (m/s²) or a mounting; None if it is neither."""
    from jointwise.description import gravity_vector

    words = text.split(",")
    try:
        gravity = text if len(words) == 1 else [float(word) for word in words]
        gravity_vector(gravity)
    except (ValueError, JointwiseError):
        return None
    return gravity


def logs_of(settings: JointLogs, robot: Robot, paths: Sequence[str]) -> list[Log]:
    """Return the logs of the robot at some paths."""
    from jointwise.data import read_log

    return [read_log(path, joints=robot, **settings.reading()) for path in paths]


def joint_record_of(
    settings: Record, robot: Robot, paths: Sequence[str], mounting: Mounting | None, known: JointModel | None
) -> JointRecord:
    """Return the signals of the joint, with the load of the described or the calibrated bodies."""
    from jointwise.joint import joint_record

    logs, joint, payload = logs_of(settings, robot, paths), settings.joint - 1, settings.load()
    drive = settings.gain or _known_gain(robot, known, settings.accept_implausible)
    if settings.model is None:
        return joint_record(logs, robot, joint, payload=payload, gain=drive, mounting=mounting_for(logs, mounting))
    bodies = _calibrated_bodies(settings, settings.model, robot, logs, mounting)
    gravity = bodies.gravity.tolist()
    return joint_record(logs, robot, joint, payload=payload, gain=drive, load=bodies, inertia=0.0, mounting=gravity)


def _known_gain(robot: Robot, known: JointModel | None, accept_implausible: bool) -> float | None:
    """Return the drive gain of an identified motor, None if there is none; print a note if it replaces another."""
    from jointwise.joint import drive_gain
    from jointwise.joint.motor import implausible_gain

    if known is None or "motor" not in known.parts:
        return None
    described = robot.joints[known.joint].motor.joint_gain
    identified = drive_gain(known, described, accept_implausible=accept_implausible)
    if (reason := implausible_gain(known.parts["motor"])) and not accept_implausible:
        note(f"the drive gain of the motor part is not used: {reason}.")
    elif described is not None and identified != described:
        note(
            f"drive gain {identified:.5g} Nm/A from the motor part: its confidence interval excludes the described "
            f"{described:.5g}."
        )
    return identified


def _calibrated_bodies(
    settings: JointLogs, model: str, robot: Robot, logs: list[Log], mounting: Mounting | None
) -> CalibratedBodies:
    """Return the bodies of the calibrated model; print a note if they are used under another gravity."""
    from jointwise.data.coordinates import gravity_text, is_same
    from jointwise.result.bodies import calibrated_load

    calibration = read_model(model)
    mounting_for(logs, mounting)  # prints a note if the logs state the gravity
    try:
        bodies = calibrated_load(
            calibration, robot, settings.joint - 1, logs, mounting=mounting, payload=settings.load()
        )
    except ModelError as problem:
        raise ModelError(f"{model}: {problem}") from None
    calibrated = calibration.model.gravity
    if not is_same(calibrated, bodies.gravity):
        texts = gravity_text(calibrated), gravity_text(bodies.gravity)
        note(f"{model}: calibrated under gravity {texts[0]}, used under {texts[1]} m/s^2.")
    return bodies
