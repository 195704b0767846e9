"""What can be simulated, files of a simulated recording, and the commands that use it, as text."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointwise.cli.output import as_json

if TYPE_CHECKING:
    from jointwise.cli.simulate import Settings
    from jointwise.experiment import SimulationResult


def recording_text(recording: SimulationResult, facts: dict[str, Any]) -> str:
    """Return the summary of a recording with its files and what comes next as lines."""
    lines = [
        recording.summary(),
        "",
        f"simulated in {facts['seconds']:.1f} s ({facts['real_time_factor']:.0f} times real time)",
        *(f"{name}: {path}" for name, path in facts["files"].items() if path),
        *(f"next: {line}" for line in facts["next"]),
    ]
    return "\n".join(lines)


def next_commands(settings: Settings, output: str, recording: SimulationResult) -> list[str]:
    """Return the commands that use the log, with the gravity unless the log states it.

    They contain the drive gain where it differs from the robot description.
    """
    from jointwise.joint.phenomenon import PHENOMENA

    plan = recording.experiment
    robot = _robot_words(settings, recording) + _gravity_words(output, recording.truth["gravity"])
    names = [name for name, phenomenon in PHENOMENA.items() if phenomenon.experiment == plan.name]
    if plan.joint is None or not names:
        return [shlex.join(["jointwise", "calibrate", output, *robot, "--output", "model.json"])]
    robot += _option("--payload", ",".join(f"{value:g}" for value in settings.payload or ()) or None)
    joint = ["--joint", str(plan.joint + 1), "--output", f"joint{plan.joint + 1}.json"]
    gain = {name: [] if name == "motor" else _gain_words(recording, plan.joint) for name in names}
    return [shlex.join(["jointwise", "joint", name, output, *robot, *gain[name], *joint]) for name in names]


def _robot_words(settings: Settings, recording: SimulationResult) -> list[str]:
    """Return the options that name the robot."""
    name = settings.robot or recording.digital.robot.name
    words = ["--robot", name, *_option("--convention", settings.convention), *_option("--tip", settings.tip)]
    words += [*_option("--coupling", settings.coupling), *_option("--log-coordinates", settings.log_coordinates)]
    return words


def _gain_words(recording: SimulationResult, joint: int) -> list[str]:
    """Return `--gain K`, or nothing where the robot description has the same gain."""
    described, gain = recording.digital.robot.joints[joint].motor.joint_gain, recording.digital.gains[joint]
    known = described is not None and math.isclose(described, gain, rel_tol=1e-6)
    return [] if known else ["--gain", f"{gain:.6g}"]


def _option(option: str, value: str | None) -> list[str]:
    return [] if value is None else [option, value]


def _gravity_words(path: str, gravity: list[float]) -> list[str]:
    """Return `--gravity X Y Z`, or nothing where the file states it or it is the default."""
    from jointwise.data.coordinates import gravity_text, is_same
    from jointwise.description import gravity_vector

    known = Path(path).suffix.lower() == ".parquet" or is_same(gravity, gravity_vector("table"))
    return [] if known else ["--gravity", *gravity_text(gravity).split()]


def simulations_text(machine: bool) -> str:
    """Return experiments, controllers and phenomena that can be simulated as lines, or as JSON for a machine."""
    from jointwise.design.experiments import SUMMARIES
    from jointwise.experiment import CONTROLLERS
    from jointwise.simulation.robot import GROUPS, SWITCHES

    groups = {name: "all of them" if name == "all" else ", ".join(names) for name, names in GROUPS.items()}
    listed = {
        "experiments": SUMMARIES,
        "controllers": {name: line for name, (line, _) in CONTROLLERS.items()},
        "phenomena that --without switches off": {name: line for name, (line, _) in SWITCHES.items()} | groups,
    }
    if machine:
        return as_json({title.split()[0]: lines for title, lines in listed.items()})
    return "\n".join(_section(title, lines) for title, lines in listed.items())


def _section(title: str, lines: dict[str, str]) -> str:
    """Return a titled list of names with their descriptions."""
    width = max(map(len, lines)) + 2
    return "\n".join([title, *(f"  {name:<{width}}{text}" for name, text in lines.items())])
