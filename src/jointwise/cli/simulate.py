"""Simulates an experiment: writes a log as a real arm would record it, and the true parameters."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jointwise.atomic import output_set
from jointwise.call_settings import SimulationSettings, Time, names
from jointwise.cli.command import Common, UsageError
from jointwise.cli.inputs import (
    Carried,
    LogFormat,
    MaybeRobot,
    Mounted,
    Tooled,
    mounting,
    payload_numbers,
    payload_of,
)
from jointwise.cli.output import Progress, check_files, check_page, note, read_model, show
from jointwise.cli.recording_text import next_commands, recording_text, simulations_text
from jointwise.errors import ModelError
from jointwise.settings import Count, Metres, Range, Seconds, converted, option

if TYPE_CHECKING:
    from jointwise.description import Robot
    from jointwise.design import Experiment
    from jointwise.experiment import Events, PlantOptions, SimulationResult
    from jointwise.experiment.twin import Twin
    from jointwise.simulation import Sensors

EXAMPLES = """\
examples:
  jointwise simulate --list
  jointwise simulate --robot ur5e --experiment excitation --duration 60 --seed 1 --output log.csv --truth truth.json
  jointwise simulate --robot ur5e --experiment reciprocate --joint 2 --rate 1000 --output slow.parquet
  jointwise simulate --robot ur10e --payload 5,0,0,0.1 --without hysteresis,load --output plain.csv
  jointwise simulate --robot ur5e --payload-at 20:2,0,0,0.05 --push 40:0.3:0,0,-30 --output events.csv
  jointwise simulate --robot ur5e --motion planned.csv --output rehearsed.csv
  jointwise simulate --robot ur5e --controller pd --bandwidth 3 --rotors complete --output tracking.csv
  jointwise simulate --model model.json --joint joint1.json --joint joint2.json --motion planned.csv --output twin.csv
  jointwise simulate --robot ur5e --age friction=0.3,stiffness=-0.1 --temperature 12 --output old.csv --report page.html

Experiments on one joint rotate the base so that the joint axis is vertical or horizontal as required. A Parquet log
contains its gravity vector; for CSV logs pass --gravity to the commands that read it, as the summary shows. The same
seed produces the same log, bit by bit.
--model simulates the digital twin: bodies, friction and drives of a calibrated model, and what --joint files of
'jointwise joint' add; what neither contains has typical values and is listed."""

PLANT = "the robot"
Celsius = Annotated[float, Range(-273.0, 1e3, "degC")]
Newton = Annotated[float, Range(-1e6, 1e6, "N")]
Change = Annotated[float, Range(-1.0, 1e3)]
MOST_DRAWN = 20_000
"""Most samples of the true run that are kept for a page."""


def _joint(text: str) -> int | str:
    """Return the number of a joint, or the name of a file."""
    return converted(text, Count) if text.lstrip("+-").isdigit() else text


def _payload_at(text: str) -> tuple[float, tuple[float, ...]]:
    """Return time and payload of `T:KG[,X,Y,Z]`."""
    time, sign, numbers = text.partition(":")
    if not sign:
        raise ValueError(f"must read T:KG[,X,Y,Z]. Got '{text}' instead.")
    return converted(time, Time), (0.0,) if numbers.strip() == "0" else payload_numbers(numbers)


def _push(text: str) -> tuple[float, float, tuple[float, float, float]]:
    """Return start, length and force of `T:S:X,Y,Z`."""
    words = text.split(":")
    force = words[2].split(",") if len(words) == 3 else []
    if len(force) != 3:
        raise ValueError(f"must read T:S:X,Y,Z. Got '{text}' instead.")
    return converted(words[0], Time), converted(words[1], Seconds), converted(force, tuple[Newton, Newton, Newton])


def _clearance(text: str) -> float:
    """Return a height (m), -inf for the word `links`: no plane, only the links."""
    return -math.inf if text.strip() == "links" else converted(text, Metres)


def _changes(text: str) -> dict[str, float]:
    """Return the changes of `friction=0.2,stiffness=-0.1`."""
    pairs = [word.partition("=") for word in text.split(",")]
    if any(name.strip() not in ("friction", "stiffness") or not sign for name, sign, _ in pairs):
        raise ValueError(f"must read friction=X,stiffness=Y. Got '{text}' instead.")
    if len({name.strip() for name, _, _ in pairs}) < len(pairs):
        raise ValueError(f"must name each once. Got '{text}' instead.")
    return {name.strip(): converted(value, Change) for name, _, value in pairs}


@dataclass(frozen=True, kw_only=True)
class Settings(SimulationSettings, MaybeRobot, LogFormat, Tooled, Carried, Mounted, Common):
    """What to run, on which robot, seen by which sensors, written where."""

    motion: str | None = option(
        None, "a recorded or planned motion instead: a table with t and q1, q2, ...", metavar="FILE", one_of="what"
    )
    list: bool = option(False, "list the experiments, the phenomena, the controllers")
    joint: tuple[int | str, ...] = option(
        (), "the joint under test, counted from 1; with --model also files of 'jointwise joint', repeatable",
        metavar="J|FILE", many="repeat", parse=_joint,
    )  # fmt: skip
    clearance: float | None = option(
        None, "height above the mounting plane that the arm keeps, and its links stay apart from each other; "
        "'links': only the latter", metavar="M", parse=_clearance, standard="not checked",
    )  # fmt: skip
    output: str | None = option(None, "log to write, .csv or .parquet", metavar="LOG")
    truth: str | None = option(None, "file for all true parameters and settings", metavar="JSON")
    report: str | None = option(None, "write a page with plots, .html, or into a directory", metavar="PAGE")
    without: tuple[str, ...] = option((), "phenomena to disable (see --list)", metavar="A,B", parse=names, group=PLANT)
    temperature: Celsius | None = option(
        None, "joint temperature at the start, degC", metavar="C", standard="ambient", group=PLANT
    )
    age: Mapping[str, float] | None = option(
        None, "change friction and stiffness; 0.2 is 20 % more", metavar="friction=X,stiffness=Y", parse=_changes,
        group=PLANT,
    )  # fmt: skip
    joints: str | None = option(None, "file with parameters of the joints", metavar="TOML", group=PLANT)
    payload_at: tuple[tuple[float, tuple[float, ...]], ...] = option(
        (), "payload from T s on, 0 for none; repeatable", metavar="T:KG[,X,Y,Z]", many="repeat", parse=_payload_at,
        group=PLANT,
    )  # fmt: skip
    push: tuple[tuple[float, float, tuple[float, float, float]], ...] = option(
        (), "force in N on the tool, in base axes, from T s on for S s; repeatable", metavar="T:S:X,Y,Z",
        many="repeat", parse=_push, group=PLANT,
    )  # fmt: skip
    wear: Mapping[str, float] | None = option(
        None, "like --age, but growing linearly until the end", metavar="friction=X,stiffness=Y", parse=_changes,
        group=PLANT,
    )  # fmt: skip
    model: str | None = option(
        None, "simulate the digital twin of this calibrated model instead of --robot", metavar="FILE", group=PLANT
    )
    mounting: str | None = mounting("what suits the experiment")

    @property
    def joint_files(self) -> Sequence[str]:
        """The joint files of --joint."""
        return [value for value in self.joint if isinstance(value, str)]

    @property
    def tested_joint(self) -> int | None:
        """The joint under test, counted from 1."""
        numbers = [value for value in self.joint if isinstance(value, int)]
        if len(numbers) > 1:
            raise UsageError("--joint must name one joint under test")
        return numbers[0] if numbers else None


def run(settings: Settings) -> int:
    """Simulate, write and print a summary; or list what can be simulated."""
    if settings.list:
        print(simulations_text(settings.json))
        return 0
    output = _checked_output(settings)
    from jointwise.experiment import simulate  # noqa: F401 - loaded before the clock runs

    with Progress(settings.silent) as progress:
        started = time.perf_counter()
        recording = record(settings, progress)
        elapsed = time.perf_counter() - started
        progress("writing the log")
        with output_set():
            recording.write(output, settings.truth)
            page = _page(settings, recording, progress)
    facts = recording.to_dict() | {
        "seconds": elapsed,
        "real_time_factor": recording.truth["duration"] / elapsed,
        "files": {"log": output, "truth": settings.truth, "report": None if page is None else str(page)},
        "next": next_commands(settings, output, recording),
    }
    for line in recording.truth["controller"].get("notes", []):
        note(line)
    show(settings, lambda: facts, lambda: recording_text(recording, facts))
    return 0


def _checked_output(settings: Settings) -> str:
    """Return the log to write; reject options that are missing or exclude each other, before any work is done."""
    robot = settings.model if settings.robot is None else settings.robot
    if robot is None or settings.output is None:
        missing = [name for name, value in (("--robot", robot), ("--output", settings.output)) if value is None]
        raise UsageError(f"{' and '.join(missing)} must be passed")
    if settings.model is not None and (settings.robot is not None or settings.joints is not None):
        raise UsageError("--model replaces --robot and --joints")
    if settings.joint_files and settings.model is None:
        raise UsageError("--joint FILE needs --model")
    _check_files(settings, settings.output)
    return settings.output


def record(settings: Settings, progress: Progress) -> SimulationResult:
    """Return the recording of a command line."""
    from jointwise.experiment import ControllerOptions, simulate

    progress("preparing")
    twin = None if settings.model is None else _twin(settings.model, settings.joint_files)
    robot = settings.described(settings.robot or "") if twin is None else twin.robot
    joint = settings.tested_joint
    if joint is not None and joint > robot.dof:
        raise ModelError(f"joint must be 1 to {robot.dof}. Got {joint} instead.")
    return simulate(
        robot if twin is None else twin,
        settings.experiment if settings.motion is None else _motion(settings, settings.motion, robot),
        duration=settings.duration,
        rate=settings.rate,
        seed=settings.seed,
        joint=None if joint is None else joint - 1,
        clearance=settings.clearance,
        tool=settings.shape(),
        plant=_plant(settings, robot),
        controller=ControllerOptions(settings.controller, settings.control_rate, settings.bandwidth, settings.feedback),
        sensors=_sensors(settings),
        events=_events(settings),
        keep=0 if settings.report is None else MOST_DRAWN,
        progress=lambda part: progress("simulating", part),
    )


def _twin(model: str, joint_files: Sequence[str]) -> Twin:
    """Return the digital twin of the model and the joint files."""
    from jointwise.experiment.twin import make_twin
    from jointwise.joint import load_joints
    from jointwise.runtime import RobotModel

    joints = [joint for path in joint_files for joint in load_joints(path)]
    twin = make_twin(RobotModel(read_model(model)), joints)
    for line in twin.notes:
        note(f"twin, {line}.")
    return twin


def _check_files(settings: Settings, output: str) -> None:
    """Reject files that cannot be written before any work is done."""
    from jointwise.data.write import check_suffix

    check_suffix(output)
    outputs = {"--output": output, "--truth": settings.truth}
    if settings.columns is not None and settings.motion is None:
        raise UsageError("--columns is for the table of --motion")
    check_files(
        [settings.robot, settings.model, settings.joints, *settings.joint_files, settings.motion, settings.columns],
        outputs,
        check_page(settings.report, "recording.html"),
    )


def _page(settings: Settings, recording: SimulationResult, progress: Progress) -> Path | None:
    if settings.report is None:
        return None
    from jointwise.report.recording import write_recording_page

    progress("drawing")
    assert recording.run is not None
    return write_recording_page(
        recording.digital.robot, recording.log, recording.truth, vars(recording.run), settings.report
    )


def _sensors(settings: Settings) -> Sensors:
    from jointwise.experiment import default_sensors

    return default_sensors(
        settings.rate,
        settings.seed,
        jitter=settings.jitter,
        dropped=settings.dropped,
        repeated=settings.repeated,
        bus=settings.bus,
    )


def _plant(settings: Settings, robot: Robot) -> PlantOptions:
    from jointwise.experiment import PlantOptions
    from jointwise.simulation.robot import load_joints

    return PlantOptions(
        payload=settings.load(),
        gravity=settings.stated_mounting(),
        without=settings.without,
        model=settings.rotors,
        joints=None if settings.joints is None else load_joints(settings.joints, robot),
        temperature=settings.temperature,
        age=settings.age or {},
    )


def _motion(settings: Settings, motion: str, robot: Robot) -> Experiment:
    """Return the motion of a file."""
    from jointwise.data import read_log
    from jointwise.design.sampled import experiment_from_log

    return experiment_from_log(robot, read_log(motion, joints=robot, **settings.reading(), needed=()))


def _events(settings: Settings) -> Events:
    """Return the events during the motion."""
    from jointwise.experiment import Events, Push

    payloads = {time: payload_of(numbers if numbers[0] else None) for time, numbers in settings.payload_at}
    if len(payloads) < len(settings.payload_at):
        raise UsageError("--payload-at must name each time once")
    pushes = [Push(start, length, force) for start, length, force in settings.push]
    return Events(payloads, pushes, settings.wear or {})
