"""What can be simulated, the summary of a simulated recording, and the commands that use it, as text."""

from __future__ import annotations

import argparse
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointwise.cli.output import as_json
from jointwise.formatting import table

if TYPE_CHECKING:
    from jointwise.experiment import SimulationResult


def recording_text(facts: dict[str, Any]) -> str:
    """Return the facts of a recording (`SimulationResult.summary`, files, what comes next) as lines."""
    from jointwise.data.coordinates import gravity_text

    joint = "" if facts["joint"] is None else f", joint {facts['joint']}"
    lines = [
        f"{facts['robot']}, simulated: {facts['experiment']}{joint}: {facts['note']}",
        f"{facts['duration']:.6g} s, {facts['samples']} samples at {facts['rate']:g} Hz, simulated in "
        f"{facts['seconds']:.1f} s ({facts['real_time_factor']:.0f} times real time)",
        f"gravity in the base frame: {gravity_text(facts['gravity'])} m/s^2",
        *_loaded(facts),
        *_below(facts["lowest"], facts["gravity"]),
        *_near(facts["nearest"]),
        *_held(facts["held_temperatures"]),
        *_saturated(facts["joints"]),
        "",
        _moved_text(facts),
        "",
        *(f"{name}: {path}" for name, path in facts["files"].items() if path),
        *(f"next: {line}" for line in facts["next"]),
    ]
    return "\n".join(lines)


def _locked_text(largest: dict[str, float], unit: str) -> str:
    return (
        f"  largest {_load(unit)} {largest['torque']:.3g} {_effort(unit)}, deformation "
        f"{1e3 * largest['deformation']:.3g} {_small(unit)}, current {largest['current']:.3g} A"
    )


def _moved_text(facts: dict[str, Any]) -> str:
    """Return how the motion was followed or, of a locked joint, the loads."""
    if facts["locked"] is None:
        return _joints_text(facts["joints"])
    return _locked_text(facts["locked"], facts["joints"][facts["joint"] - 1]["unit"])


def _joints_text(joints: list[dict[str, Any]]) -> str:
    rows = [
        (
            joint["joint"],
            *(
                float(f"{value:.3g}")
                for value in (1e3 * joint["tracking_rms"], 1e3 * joint["tracking_max"], joint["current"])
            ),
            round(joint["warming"], 1),
        )
        for joint in joints
    ]
    unit = ", ".join(dict.fromkeys(_small(joint["unit"]) for joint in joints))
    return table(
        ("joint", f"tracking rms [{unit}]", f"max [{unit}]", "largest current [A]", "temperature rise [K]"), rows
    )


def _small(unit: str) -> str:
    """Return the thousandth of a unit: mrad, or mm."""
    return f"m{unit}"


def _effort(unit: str) -> str:
    """Return the unit of the load of a joint that moves in this one."""
    return "Nm" if unit == "rad" else "N"


def _load(unit: str) -> str:
    return "torque" if unit == "rad" else "force"


def _saturated(joints: list[dict[str, Any]]) -> list[str]:
    """Return a warning of motors that reach their current limit."""
    worst = max(joints, key=lambda joint: (joint["saturated"], joint["demand"]))
    if not worst["saturated"]:
        return []
    count = sum(joint["saturated"] > 0.0 for joint in joints)
    return [
        f"{count} of {len(joints)} motors saturate, most that of joint '{worst['joint']}': in "
        f"{100.0 * worst['saturated']:.2g} % of the samples the commanded current exceeds its limit, up to "
        f"{100.0 * worst['demand']:.0f} % of it"
    ]


def _loaded(facts: dict[str, Any]) -> list[str]:
    """Return by how much gravity loads the joint under test."""
    if facts["gravity_load"] is None:
        return []
    unit = facts["joints"][facts["joint"] - 1]["unit"]
    largest = f"{facts['gravity_load']:.3g} {_effort(unit)}"
    return [f"gravity {_load(unit)} of joint {facts['joint']}: at most {largest}"]


def _held(known: tuple[float, float] | None) -> list[str]:
    """Return a warning of temperatures outside the range (°C) that friction knows."""
    if known is None:
        return []
    return [f"temperature dependence of friction is known from {known[0]:g} to {known[1]:g} °C and constant outside"]


def _below(lowest: float | None, gravity: list[float]) -> list[str]:
    """Return a warning of motions through the mounting plane; `lowest` is a height (m), `gravity` that of the base."""
    if lowest is None or lowest >= 0.0:
        return []
    from jointwise.data.coordinates import is_same
    from jointwise.description import gravity_vector

    where = ", which a robot on a table cannot do" if is_same(gravity, gravity_vector("table")) else ""
    return [
        f"warning: the arm moves up to {-lowest:.2f} m below the mounting plane (z = 0 of the base){where}; use "
        "--clearance 0.05 for a motion above it"
    ]


def _near(nearest: dict[str, Any] | None) -> list[str]:
    """Return how near links come, and a warning of motions in which an arm meets itself."""
    if nearest is None:
        return []
    first, second = nearest["between"]
    if nearest["distance"] >= 0.0:
        return [f"closest links: {first} and {second}, {nearest['distance']:.3f} m apart"]
    return [
        f"warning: {first} and {second} collide, do not run this motion on a real arm; --clearance keeps links apart"
    ]


def next_commands(args: argparse.Namespace, recording: SimulationResult) -> list[str]:
    """Return the commands that use the log, with the gravity unless the log states it.

    They contain the drive gain where it differs from the robot description.
    """
    from jointwise.joint.phenomenon import PHENOMENA

    plan = recording.experiment
    robot = _robot_words(args, recording)
    names = [name for name, phenomenon in PHENOMENA.items() if phenomenon.experiment == plan.name]
    if plan.joint is None or not names:
        return [shlex.join(["jointwise", "calibrate", args.output, *robot, "--output", "model.json"])]
    robot += _option("--payload", args.payload and ",".join(f"{value:g}" for value in args.payload))
    joint = ["--joint", str(plan.joint + 1), "--output", f"joint{plan.joint + 1}.json"]
    gain = {name: [] if name == "motor" else _gain_words(recording, plan.joint) for name in names}
    return [shlex.join(["jointwise", "joint", name, args.output, *robot, *gain[name], *joint]) for name in names]


def _robot_words(args: argparse.Namespace, recording: SimulationResult) -> list[str]:
    """Return the options that name the robot, and its gravity where the log does not state it."""
    name = args.robot or recording.digital.robot.name
    words = ["--robot", name, *_option("--convention", args.convention), *_option("--tip", args.tip)]
    words += [*_option("--coupling", args.coupling), *_option("--log-coordinates", args.log_coordinates)]
    return words + _gravity_words(args.output, recording.truth["gravity"])


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
