"""A short page about a recording of the digital robot: what it did, what the sensors saw, what was behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.report.figure import MEASURED, PREDICTED, RESIDUAL, Figure, Trace, axis, line, packed
from jointwise.report.markup import Html, facts, join, paragraph, tabs
from jointwise.report.motion3d import motion_view
from jointwise.report.numbers import effort_unit, joint_title, length_unit, number, robot_title
from jointwise.report.thinning import thin
from jointwise.report.write import Section, compose, page_path, plotly_script, write_page
from jointwise.spatial import Array

FILE = "recording.html"
POINTS = 3000
"""Most points of a curve."""
COLORS = ("#0b5cad", "#b4470f", "#2b7a3d", "#7a3b9c", "#8a6d00", "#0f7f86", "#a3265f")

Truth = Mapping[str, Any]
Run = Mapping[str, Any]


def write_recording_page(robot: Robot, log: Log, truth: Truth, run: Run, path: str | Path) -> Path:
    """Write a page about a recording and return its path; `path` is a page (.html) or a directory, made if missing.

    `truth` is its truth document; `run` gives the true signals: `t` (samples,) s, and (samples, joints) `q`, `theta`
    (rad), `speed` (rad/s), `load`, `friction` (Nm). The page needs nothing else: no file, no network.
    """
    return write_page(render_recording(robot, log, truth, run, plotly_script()), page_path(path, FILE))


def render_recording(robot: Robot, log: Log, truth: Truth, run: Run, library: str) -> str:
    """Return the whole page; `library` is the source of plotly.js."""
    name, first = robot_title(robot), (truth["experiment"]["joint"] or 1) - 1
    sections = (
        _locked_sections(robot, log, truth, run, first)
        if is_locked(truth)
        else [
            ("overview", "What was run", _overview(truth, log)),
            ("motion", "The motion", motion_view(robot, np.asarray(run["t"]), np.asarray(run["q"]), _gravity(truth))),
            ("tracking", "Positions and tracking error", _tracking(robot, log, first)),
            ("current", "Current and temperature", _currents(robot, log, first)),
            ("friction", "Friction over speed", _friction(robot, run, first)),
            ("deformation", "Deformation of the gears", _deformation(robot, run, first)),
        ]
    )
    return compose(
        title=f"{name} · recording",
        kind="Recording of the digital robot",
        heading=name,
        origin=f"{truth['experiment']['name']}, seed {truth['seed']}, Jointwise {truth['version']}",
        sections=sections,
        library=library,
    )


def is_locked(truth: Truth) -> bool:
    """Tell whether the output stood locked: nothing moves, torque and deformation are all there is."""
    return bool(truth["experiment"]["name"] == "locked")


def _locked_sections(robot: Robot, log: Log, truth: Truth, run: Run, first: int) -> list[Section]:
    return [
        ("overview", "What was run", _overview(truth, log)),
        ("torque", "Torque and deformation", _torque(robot, run, first)),
        ("deformation", "Deformation over torque", _deformation(robot, run, first)),
        ("current", "Current and temperature", _currents(robot, log, first)),
        ("friction", "Friction over speed", _friction(robot, run, first)),
    ]


def _torque(robot: Robot, run: Run, j: int) -> Html:
    """Return the torque at the output of the joint under test over time, and what the gear gives way beneath."""
    t, torque = np.asarray(run["t"]), np.asarray(run["load"])[:, j]
    deformation = 1e3 * (np.asarray(run["theta"]) - np.asarray(run["q"]))[:, j]
    rows = thin(torque, deformation, most=POINTS)
    traces = [
        line("torque", "shared", packed(torque[rows]), MEASURED),
        line("deformation", "shared", packed(deformation[rows]), PREDICTED, yaxis="y2"),
    ]
    names = f"torque [{effort_unit(robot.joints[j])}]", f"θ - q [m{length_unit(robot.joints[j])}]"
    alt = f"{joint_title(robot, j)}: torque at the locked output over time, deformation of the gear beneath."
    hint = f"{joint_title(robot, j)}: the torque at the locked output, and rotor minus link position beneath."
    figure = Figure(traces, _stacked(*names), alt, 420, packed(t[rows]))
    return join([paragraph(hint, class_="hint"), figure.html()])


def _gravity(truth: Truth) -> Array:
    return np.array(truth["gravity"], dtype=float)


def _overview(truth: Truth, log: Log) -> Html:
    payload, warmth = truth["payload"], truth["temperature"]
    x, y, z = (number(value) for value in truth["gravity"])
    pairs: list[tuple[object, object]] = [
        ("Experiment", f"{truth['experiment']['name']}: {truth['experiment']['note']}"),
        ("Joint under test", truth["experiment"]["joint"] or "all"),
        ("Duration", f"{number(truth['duration'], 6)} s, {log.samples} samples at {number(truth['rate'])} Hz"),
        ("Controller", f"{truth['controller']['name']} at {number(truth['controller']['rate'])} Hz"),
        ("Gravity in the base", f"{x} {y} {z} m/s²"),
        ("Payload", "none" if payload is None else f"{number(payload['mass'])} kg"),
        ("Temperature at the start", "ambient" if warmth is None else f"{number(warmth)} °C"),
        ("Age", ", ".join(f"{name} {100.0 * own:+.3g} %" for name, own in truth["age"].items()) or "new"),
        ("Switched off", ", ".join(truth["without"]) or "nothing"),
    ]
    return facts(pairs)


def _tracking(robot: Robot, log: Log, first: int) -> Html:
    if log.q_des is None:
        return paragraph("The log has no targets.")
    error = 1e3 * (np.asarray(log.q) - np.asarray(log.q_des))
    panels = [(joint_title(robot, j), _tracking_figure(robot, log, error[:, j], j).html()) for j in range(robot.dof)]
    return join(
        [
            paragraph("Measured minus wanted position, beneath the position.", class_="hint"),
            tabs("Joint", panels, first),
        ]
    )


def _tracking_figure(robot: Robot, log: Log, error: Array, j: int) -> Figure:
    unit = length_unit(robot.joints[j])
    rows = thin(np.asarray(log.q[:, j]), error, most=POINTS)
    traces = [
        line("position", "shared", packed(log.q[rows, j]), PREDICTED),
        line("error", "shared", packed(error[rows]), RESIDUAL, 1.0, yaxis="y2"),
    ]
    alt = (
        f"{joint_title(robot, j)}: position over time, tracking error up to {np.abs(error).max():.3g} m{unit} beneath."
    )
    return Figure(traces, _stacked(f"position [{unit}]", f"error [m{unit}]"), alt, 420, packed(log.t[rows]))


def _currents(robot: Robot, log: Log, first: int) -> Html:
    if log.current is None or log.temperature is None:
        return paragraph("The log has no current or no temperature.")
    panels = []
    for j in range(robot.dof):
        current, warmth = np.asarray(log.current[:, j]), np.asarray(log.temperature[:, j])
        rows = thin(current, warmth, most=POINTS)
        traces = [
            line("current", "shared", packed(current[rows]), MEASURED, 1.2),
            line("temperature", "shared", packed(warmth[rows]), RESIDUAL, 1.2, yaxis="y2"),
        ]
        alt = f"{joint_title(robot, j)}: measured current and temperature over time."
        figure = Figure(traces, _stacked("current [A]", "temperature [°C]"), alt, 420, packed(log.t[rows]))
        panels.append((joint_title(robot, j), figure.html()))
    return tabs("Joint", panels, first)


def _stacked(above: str, beneath: str) -> dict[str, Any]:
    """Return the layout of two plots on one time axis."""
    return {
        "xaxis": {"anchor": "y2", "ticksuffix": " s", "hoverformat": ".2f"},
        "yaxis": axis(above, domain=[0.42, 1.0]),
        "yaxis2": axis(beneath, domain=[0.0, 0.34]),
        "showlegend": False,
        "hovermode": "x unified",
    }


def _friction(robot: Robot, run: Run, first: int) -> Html:
    hint = "The true friction torque over the speed of the rotor: loops are hysteresis, spread is load and temperature."
    names = [(f"speed [{length_unit(joint)}/s]", f"friction [{effort_unit(joint)}]") for joint in robot.joints]
    return join([paragraph(hint, class_="hint"), _scattered(robot, run["speed"], run["friction"], names, first)])


def _deformation(robot: Robot, run: Run, first: int) -> Html:
    deformation = 1e3 * (np.asarray(run["theta"]) - np.asarray(run["q"]))
    hint = "Rotor minus link position over the torque that the gear transmits: the spring, and the gear's own error."
    names = [(f"torque [{effort_unit(joint)}]", f"θ - q [m{length_unit(joint)}]") for joint in robot.joints]
    return join([paragraph(hint, class_="hint"), _scattered(robot, run["load"], deformation, names, first)])


def _scattered(robot: Robot, x: Array, y: Array, names: Sequence[tuple[str, str]], first: int) -> Html:
    """Return a panel a joint with y (samples, joints) over x."""
    every = max(1, -(-len(x) // POINTS))
    panels = []
    for j, (across, upwards) in enumerate(names):
        trace: Trace = {
            "type": "scatter",
            "mode": "markers",
            "x": packed(np.asarray(x)[::every, j]),
            "y": packed(np.asarray(y)[::every, j]),
            "marker": {"size": 3, "color": COLORS[j % len(COLORS)], "opacity": 0.5},
            "hoverinfo": "x+y",
        }
        layout = {"xaxis": axis(across), "yaxis": axis(upwards), "showlegend": False}
        alt = f"{joint_title(robot, j)}: {upwards} over {across}."
        panels.append((joint_title(robot, j), Figure([trace], layout, alt, 380).html()))
    return tabs("Joint", panels, first)
