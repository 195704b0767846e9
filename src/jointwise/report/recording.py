"""A short page about a recording of the digital robot: what it did, what the sensors saw, what was behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.report.figure import MEASURED, PREDICTED, RESIDUAL, Figure, Trace, axis, line, packed
from jointwise.report.markup import Html, join, paragraph, tabs
from jointwise.report.motion3d import motion_view
from jointwise.report.numbers import effort_unit, joint_title, length_unit, robot_title
from jointwise.report.recording_facts import Truth, marks, overview
from jointwise.report.thinning import thin
from jointwise.report.write import Section, compose, page_path, plotly_script, write_page
from jointwise.spatial import Array

FILE = "recording.html"
POINTS = 3000
"""Most points of a curve."""
ROWS = 65536
"""Samples of a log that are looked at at a time."""
LEAST_POINTS = 8
"""Points of a curve that are drawn of each of them."""
COLORS = ("#0b5cad", "#b4470f", "#2b7a3d", "#7a3b9c", "#8a6d00", "#0f7f86", "#a3265f")

Run = Mapping[str, Any]
Marks = dict[str, Any]
"""What a layout has more, where something happened on the way."""


def write_recording_page(robot: Robot, log: Log, truth: Truth, run: Run, path: str | Path) -> Path:
    """Write a page about a recording and return its path; `path` is a page (.html) or a directory, made if missing.

    `truth` is its truth document; `run` gives the true signals: `t` (samples,) s, and (samples, joints) `q`, `theta`
    (rad), `speed` (rad/s), `load`, `friction` (Nm). The page needs nothing else: no file, no network.
    """
    return write_page(render_recording(robot, log, truth, run, plotly_script()), page_path(path, FILE))


def render_recording(robot: Robot, log: Log, truth: Truth, run: Run, library: str) -> str:
    """Return the whole page; `library` is the source of plotly.js."""
    name, first, marked = robot_title(robot), (truth["experiment"]["joint"] or 1) - 1, marks(truth)
    sections = (
        _locked_sections(robot, log, truth, run, first)
        if is_locked(truth)
        else [
            ("overview", "What was run", overview(truth, log)),
            ("motion", "The motion", motion_view(robot, np.asarray(run["t"]), np.asarray(run["q"]), _gravity(truth))),
            ("tracking", "Positions and tracking error", _tracking(robot, log, first, marked)),
            ("current", "Current and temperature", _currents(robot, log, first, marked)),
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
        ("overview", "What was run", overview(truth, log)),
        ("torque", "Torque and deformation", _torque(robot, run, first)),
        ("deformation", "Deformation over torque", _deformation(robot, run, first)),
        ("current", "Current and temperature", _currents(robot, log, first, marks(truth))),
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


def _tracking(robot: Robot, log: Log, first: int, marked: Marks) -> Html:
    if log.q_des is None:
        return paragraph("The log has no targets.")
    curves = _curves(log, lambda part: (part.q, 1e3 * (part.q - part.channel("q_des"))))
    panels = [(joint_title(robot, j), _tracking_figure(robot, own, j, marked).html()) for j, own in enumerate(curves)]
    return join(
        [
            paragraph("Measured minus wanted position, beneath the position.", class_="hint"),
            tabs("Joint", panels, first),
        ]
    )


def _tracking_figure(robot: Robot, curves: Array, j: int, marked: Marks) -> Figure:
    unit = length_unit(robot.joints[j])
    t, position, error = curves
    traces = [
        line("position", "shared", packed(position), PREDICTED),
        line("error", "shared", packed(error), RESIDUAL, 1.0, yaxis="y2"),
    ]
    alt = (
        f"{joint_title(robot, j)}: position over time, tracking error up to {np.abs(error).max():.3g} m{unit} beneath."
    )
    layout = _stacked(f"position [{unit}]", f"error [m{unit}]") | marked
    return Figure(traces, layout, alt, 420, packed(t))


def _currents(robot: Robot, log: Log, first: int, marked: Marks) -> Html:
    if log.current is None or log.temperature is None:
        return paragraph("The log has no current or no temperature.")
    panels = []
    curves = _curves(log, lambda part: (part.channel("current"), part.channel("temperature")))
    for j, (t, current, warmth) in enumerate(curves):
        traces = [
            line("current", "shared", packed(current), MEASURED, 1.2),
            line("temperature", "shared", packed(warmth), RESIDUAL, 1.2, yaxis="y2"),
        ]
        alt = f"{joint_title(robot, j)}: measured current and temperature over time."
        figure = Figure(traces, _stacked("current [A]", "temperature [°C]") | marked, alt, 420, packed(t))
        panels.append((joint_title(robot, j), figure.html()))
    return tabs("Joint", panels, first)


def _curves(log: Log, signals: Callable[[Log], tuple[Array, ...]]) -> list[Array]:
    """Return t and signals (samples, joints) of every joint with fewer points, (1 + signals, points), in one pass."""
    pieces: list[list[Array]] = [[] for _ in range(log.joints)]
    for chunk in log.chunks(ROWS):
        part, found = chunk.log, signals(chunk.log)
        most = max(LEAST_POINTS, POINTS * part.samples // log.samples)
        for j, own in enumerate(pieces):
            rows = thin(*(values[:, j] for values in found), most=most)
            own.append(np.stack([part.t[rows], *(values[rows, j] for values in found)]))
    return [np.concatenate(own, axis=1) for own in pieces]


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
