"""A rehearsal without a robot: excite, run, record, calibrate and validate on the virtual UR."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jointwise.arguments import checked
from jointwise.atomic import check_directory, make_directory
from jointwise.calibration import calibrate
from jointwise.call_settings import RehearsalSettings
from jointwise.data import read_log
from jointwise.description.files import as_robot
from jointwise.description.robot import Robot
from jointwise.design import ExcitationOptions, Trajectory, make_experiment, optimize_excitation
from jointwise.errors import ModelError
from jointwise.result import Calibration, Validation, save_model, validate
from jointwise.rtde.recorder import Recording, RecordingStatus, record
from jointwise.rtde.server import LOOPBACK, TICK_RATE
from jointwise.virtual_ur import VirtualUr, make_virtual_ur, serve
from jointwise.virtual_ur.controller import check_six_axes

LEAST_DURATION = 5.0
"""Shortest excitation (s) of a rehearsal."""
MOST_DURATION = 3600.0
"""Longest one: it is recorded in real time and kept in memory."""


@dataclass(frozen=True)
class Rehearsal:
    """Files and results of a rehearsal.

    Attributes:
        model: The model from the first recording.
        recordings: Both recordings.
        validation: Errors of the model on the second motion.
        model_path: File of the model.
    """

    model: Calibration
    recordings: tuple[Recording, ...]
    validation: Validation
    model_path: Path

    def to_dict(self) -> dict[str, Any]:
        """Return the rehearsal as a document."""
        return {
            "model": str(self.model_path),
            "recordings": [recording.to_dict() for recording in self.recordings],
            "r2": [joint.r2 for joint in self.validation.joints],
        }

    def summary(self) -> str:
        """Return the rehearsal in a few lines of text."""
        joints = enumerate(self.validation.joints, start=1)
        scores = ", ".join(f"{number}: {'-' if joint.r2 is None else f'{joint.r2:.4f}'}" for number, joint in joints)
        recorded = [recording.summary() for recording in self.recordings]
        return "\n".join([*recorded, f"model: {self.model_path}", f"R2 of each joint on the second motion: {scores}"])


@checked
def rehearse(
    robot: Robot | str | Path = "ur5e",
    output: str | Path = "rehearsal",
    *,
    duration: float = RehearsalSettings.duration,
    seed: int = RehearsalSettings.seed,
    optimize: bool = RehearsalSettings.optimize,
    force: bool = False,
    progress: Callable[[str, float | None], None] | None = None,
) -> Rehearsal:
    """Record two motions of the virtual UR, calibrate on the first one and validate on the second one.

    The recording runs in real time over RTDE on the loopback interface, as with a robot.

    Args:
        robot: A robot with six revolute joints, or its name.
        output: Directory for `training.parquet`, `validation.parquet` and `model.json`; it must be empty or absent.
        duration: Duration of each motion in s.
        seed: Seed of the motions and of the sensor noise.
        optimize: Train on an optimal excitation instead of a random one.
        force: Whether files in a directory that is not empty are overwritten.
        progress: Called with the name of the stage and its completed share.

    Raises:
        ModelError: If the robot is not a six-axis arm or the duration is too short.
        OutputError: If the directory is not empty.

    """
    if not LEAST_DURATION <= duration <= MOST_DURATION:
        raise ModelError(f"duration must be {LEAST_DURATION:g} to {MOST_DURATION:g} s. Got {duration:g} instead.")
    arm, folder = as_robot(robot), check_directory(output, force=force)
    check_six_axes(arm)
    report = progress or (lambda stage, share: None)
    motions = {
        "training": _training_motion(arm, duration, seed, optimize, report),
        "validation": make_experiment("excitation", arm, duration, seed + 1).motion,
    }
    make_directory(folder)
    recordings = tuple(
        _recorded(arm, folder / f"{name}.parquet", motion, seed + k, partial(report, name))
        for k, (name, motion) in enumerate(motions.items())
    )
    report("calibrating", None)
    training, other = (read_log(recording.path) for recording in recordings)
    model = calibrate(training, arm)
    save_model(model, folder / "model.json")
    return Rehearsal(model, recordings, validate(model, other), folder / "model.json")


def _training_motion(
    arm: Robot, duration: float, seed: int, optimize: bool, report: Callable[[str, float | None], None]
) -> Trajectory:
    """Return a random excitation, or an optimal one."""
    if optimize:
        return optimize_excitation(arm, ExcitationOptions(duration, seed=seed), progress=report).motion
    return make_experiment("excitation", arm, duration, seed).motion


def _recorded(arm: Robot, path: Path, motion: Trajectory, seed: int, progress: Callable[[float], None]) -> Recording:
    """Return the recording of one motion of the virtual UR."""
    virtual, ready = make_virtual_ur(arm, motion, seed=seed), threading.Event()
    ports, stop = list[int](), threading.Event()
    server = threading.Thread(target=_serve, args=(virtual, ports, ready, stop), daemon=True)
    server.start()
    ready.wait()
    total = (virtual.wait + virtual.log.samples) / TICK_RATE

    def shown(status: RecordingStatus) -> None:
        progress(min(status.seconds / total, 1.0))

    try:
        return record(LOOPBACK, path, duration=total, port=ports[0], progress=shown)
    finally:
        stop.set()
        server.join()


def _serve(virtual: VirtualUr, ports: list[int], ready: threading.Event, stop: threading.Event) -> None:
    def listening(port: int) -> None:
        ports.append(port)
        ready.set()

    serve(virtual, port=0, stop=stop, ready=listening)
