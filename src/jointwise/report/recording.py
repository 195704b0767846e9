"""The report of a simulated recording: configuration, motion, sensor signals, and the true friction and deformation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.formatting import number
from jointwise.report.figure import (
    MEASURED,
    PREDICTED,
    RESIDUAL,
    Figure,
    downsample,
    joint_color,
    scatter_figure,
    stacked_figure,
)
from jointwise.report.motion import motion_view
from jointwise.report.page import (
    Html,
    Section,
    compose,
    effort_unit,
    facts,
    join,
    joint_title,
    length_unit,
    paragraph,
    robot_title,
    tabs,
    write_page,
)
from jointwise.spatial import Array

FILE = "recording.html"
POINTS = 2000
"""Largest number of points of a curve."""
ROWS = 65536
"""Samples per chunk: a long log is read in chunks to limit memory."""
LEAST_POINTS = 8
"""Smallest number of points drawn per chunk."""
EVENT_COLOR = "#5d6b7e"

Truth = Mapping[str, Any]
"""The truth document of a recording."""
Run = Mapping[str, Any]
"""True signals: `t` (samples,) in s and, (samples, joints), `q`, `theta` (rad), `speed` (rad/s), `load`, `friction`
(Nm)."""
Events = dict[str, Any]
"""Shapes and annotations of a layout that mark events during the recording."""


def write_recording_page(robot: Robot, log: Log, truth: Truth, run: Run, path: str | Path) -> Path:
    """Write the report of a recording and return its path. The page is self-contained and needs no network.

    Args:
        robot: The simulated robot.
        log: The simulated log.
        truth: Truth document of the recording.
        run: True signals, see `Run`.
        path: A page (.html) or a directory, which is created if it does not exist.

    """
    return write_page(render_recording(robot, log, truth, run), path, FILE)


def render_recording(robot: Robot, log: Log, truth: Truth, run: Run) -> str:
    """Return the complete page."""
    first = (truth["experiment"]["joint"] or 1) - 1
    locked = truth["experiment"]["name"] == "locked"
    sections = (_locked_sections if locked else _motion_sections)(robot, log, truth, run, first)
    origin = f"{truth['experiment']['name']}, seed {truth['seed']}, Jointwise {truth['version']}"
    return compose("Simulated recording", robot_title(robot), origin, sections)


def _motion_sections(robot: Robot, log: Log, truth: Truth, run: Run, first: int) -> list[Section]:
    events, gravity = event_marks(truth), np.array(truth["gravity"], dtype=float)
    return [
        ("overview", "Configuration", _overview(truth, log)),
        ("motion", "Motion", motion_view(robot, np.asarray(run["t"]), np.asarray(run["q"]), gravity)),
        ("tracking", "Positions and tracking error", _tracking(robot, log, first, events)),
        ("current", "Current and temperature", _currents(robot, log, first, events)),
        *_adapted_section(robot, truth, first, events),
        ("friction", "Friction over speed", _friction(robot, run, first)),
        ("deformation", "Deformation of the gears", _deformation(robot, run, first)),
    ]


def _locked_sections(robot: Robot, log: Log, truth: Truth, run: Run, first: int) -> list[Section]:
    """Return the sections of a recording with a locked output, in which no link moves."""
    return [
        ("overview", "Configuration", _overview(truth, log)),
        ("torque", "Torque and deformation", _torque(robot, run, first)),
        ("deformation", "Deformation over torque", _deformation(robot, run, first)),
        ("current", "Current and temperature", _currents(robot, log, first, event_marks(truth))),
        ("friction", "Friction over speed", _friction(robot, run, first)),
    ]


def _overview(truth: Truth, log: Log) -> Html:
    """Return the configuration of the simulation."""
    payload = truth["payload"]
    x, y, z = (number(value) for value in truth["gravity"])
    pairs: list[tuple[object, object]] = [
        ("Experiment", f"{truth['experiment']['name']}: {truth['experiment']['note']}"),
        ("Joint under test", truth["experiment"]["joint"] or "all"),
        ("Duration", f"{number(truth['duration'], 6)} s, {log.samples} samples at {number(truth['rate'])} Hz"),
        ("Clock", _clock(truth["sensors"])),
        ("Controller", _controller(truth["controller"])),
        ("Rotor model", truth["model"]),
        ("Gravity in the base frame", f"{x} {y} {z} m/s²"),
        ("Payload", "none" if payload is None else f"{number(payload['mass'])} kg"),
        ("Events", "; ".join(_events(truth["events"])) or "none"),
        ("Initial temperature", _temperature(truth["temperature"])),
        ("Wear at the start", _changes(truth["age"]) or "none"),
        ("Disabled effects", ", ".join(truth["without"]) or "none"),
    ]
    return facts(pairs)


def _temperature(temperature: float | list[float] | None) -> str:
    """Return a temperature, or one per joint."""
    if temperature is None:
        return "ambient"
    values = temperature if isinstance(temperature, list) else [temperature]
    return f"{', '.join(number(value) for value in values)} °C"


def _clock(sensors: Truth) -> str:
    """Return the imperfections of the clock."""
    jitter, dropped, repeated = (sensors[name] for name in ("jitter", "dropped", "repeated"))
    parts = (
        (jitter, f"jitter of {number(1e3 * jitter)} ms"),
        (dropped, f"{number(100.0 * dropped)} % of the samples dropped"),
        (repeated, f"{number(100.0 * repeated)} % of the rows repeated"),
    )
    return ", ".join(text for value, text in parts if value) or "uniform"


def _controller(controller: Truth) -> str:
    bandwidth = "" if controller["bandwidth"] is None else f", bandwidth {number(controller['bandwidth'])} Hz"
    feedback = ", feedback from the simulated sensors" if controller.get("feedback") == "sensors" else ""
    return f"{controller['name']} at {number(controller['rate'])} Hz{bandwidth}{feedback}"


def _events(events: Truth) -> list[str]:
    """Return what happened during the recording, one text per event."""
    texts = [f"{_mass(change['payload'])} from {number(change['time'], 6)} s" for change in events["payloads"]]
    for push in events["pushes"]:
        force, moment = (float(np.linalg.norm(push[name])) for name in ("force", "moment"))
        size = f"{number(force)} N" + (f" and {number(moment)} Nm" if moment else "")
        texts.append(f"push of {size} at {number(push['start'], 6)} s for {number(push['length'])} s")
    return [*texts, *([f"wear: {_changes(events['wear'])} by the end"] if events["wear"] else [])]


def _mass(payload: Truth | None) -> str:
    return "no payload" if payload is None else f"payload of {number(payload['mass'])} kg"


def _changes(changes: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100.0 * change:+.3g} %" for name, change in changes.items())


def event_marks(truth: Truth) -> Events:
    """Return the marks of payload changes and pushes for a layout over time; empty if there are none."""
    payloads, pushes = truth["events"]["payloads"], truth["events"]["pushes"]
    lines = [_mark(change["time"], change["time"]) for change in payloads]
    areas = [_mark(push["start"], push["start"] + push["length"]) for push in pushes]
    labels = [_label(change["time"], _mass(change["payload"])) for change in payloads]
    labels += [_label(push["start"], "push") for push in pushes]
    return {"shapes": lines + areas, "annotations": labels} if labels else {}


def _mark(first: float, last: float) -> dict[str, Any]:
    """Return a vertical line, or an area if the event lasts, over the whole height of a plot."""
    style = {"color": EVENT_COLOR, "width": 1, "dash": "dot"}
    ends = {"x0": first, "x1": last, "y0": 0.0, "y1": 1.0, "xref": "x", "yref": "paper"}
    area = {"type": "rect", "fillcolor": EVENT_COLOR, "opacity": 0.15, "layer": "below"}
    return {**ends, "line": style, **({"type": "line"} if first == last else area)}


def _label(time: float, text: str) -> dict[str, Any]:
    anchor = {"x": time, "y": 1.0, "xref": "x", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {**anchor, "text": text, "showarrow": False, "font": {"size": 11, "color": EVENT_COLOR}}


def _torque(robot: Robot, run: Run, j: int) -> Html:
    """Return the torque at the output of the joint under test over time, and the deformation of the gear below."""
    t, torque = np.asarray(run["t"]), np.asarray(run["load"])[:, j]
    deformation = 1e3 * (np.asarray(run["theta"]) - np.asarray(run["q"]))[:, j]
    rows = downsample(torque, deformation, most=POINTS)
    upper = (f"torque [{effort_unit(robot.joints[j])}]", torque[rows], MEASURED)
    lower = (f"θ - q [m{length_unit(robot.joints[j])}]", deformation[rows], PREDICTED)
    alt = f"{joint_title(robot, j)}: torque at the locked output over time, deformation of the gear below."
    hint = f"{joint_title(robot, j)}: torque at the locked output, and rotor position minus link position below."
    return join([paragraph(hint, class_="hint"), stacked_figure(t[rows], upper, lower, alt).html()])


def _tracking(robot: Robot, log: Log, first: int, events: Events) -> Html:
    if log.q_des is None:
        return paragraph("The log contains no target positions (q_des).")
    curves = _curves(log, lambda part: (part.q, 1e3 * (part.q - part.channel("q_des"))))
    panels = [(joint_title(robot, j), _tracking_figure(robot, each, j, events).html()) for j, each in enumerate(curves)]
    hint = paragraph("Measured position, and the tracking error (measured minus target position) below.", class_="hint")
    return join([hint, tabs("Joint", panels, first)])


def _tracking_figure(robot: Robot, curves: Array, j: int, events: Events) -> Figure:
    unit = length_unit(robot.joints[j])
    t, position, error = curves
    greatest = f"{np.abs(error).max():.3g} m{unit}"
    alt = f"{joint_title(robot, j)}: position over time, tracking error up to {greatest} below."
    upper, lower = (f"position [{unit}]", position, PREDICTED), (f"error [m{unit}]", error, RESIDUAL)
    return stacked_figure(t, upper, lower, alt, events)


def _currents(robot: Robot, log: Log, first: int, events: Events) -> Html:
    if log.current is None or log.temperature is None:
        return paragraph("The log contains no current or no temperature.")
    panels = []
    curves = _curves(log, lambda part: (part.channel("current"), part.channel("temperature")))
    for j, (t, current, temperature) in enumerate(curves):
        upper, lower = ("current [A]", current, MEASURED), ("temperature [°C]", temperature, RESIDUAL)
        alt = f"{joint_title(robot, j)}: measured current and temperature over time."
        figure = stacked_figure(t, upper, lower, alt, events)
        panels.append((joint_title(robot, j), figure.html()))
    return tabs("Joint", panels, first)


def _adapted_section(robot: Robot, truth: Truth, first: int, events: Events) -> list[Section]:
    """Return the section of friction parameters that the controller adapted; none for other controllers."""
    adapted = truth["controller"].get("adapted")
    if adapted is None:
        return []
    t, a1, a2 = (np.asarray(adapted[name]) for name in ("t", "a1", "a2"))
    panels = []
    for j, joint in enumerate(robot.joints):
        unit = f"{effort_unit(joint)} s/{length_unit(joint)}"
        upper, lower = ("a1", a1[:, j], PREDICTED), (f"a2 [{unit}]", a2[:, j], RESIDUAL)
        alt = f"{joint_title(robot, j)}: a1 ends at {a1[-1, j]:.3g}, a2 at {a2[-1, j]:.3g} {unit}."
        panels.append((joint_title(robot, j), stacked_figure(t, upper, lower, alt, events).html(alt)))
    hint = (
        "Friction of the feed-forward is a1 times the dry friction of the model, and a2 times the speed on top of it."
    )
    return [("adapted", "Adapted friction", join([paragraph(hint, class_="hint"), tabs("Joint", panels, first)]))]


def _curves(log: Log, signals: Callable[[Log], tuple[Array, ...]]) -> list[Array]:
    """Return the time and some signals of every joint, downsampled in one pass: (1 + signals, points) per joint."""
    pieces: list[list[Array]] = [[] for _ in range(log.joints)]
    for part in log.chunks(ROWS):
        found = signals(part)
        most = max(LEAST_POINTS, POINTS * part.samples // log.samples)
        for j, piece in enumerate(pieces):
            rows = downsample(*(values[:, j] for values in found), most=most)
            piece.append(np.stack([part.t[rows], *(values[rows, j] for values in found)]))
    return [np.concatenate(piece, axis=1) for piece in pieces]


def _friction(robot: Robot, run: Run, first: int) -> Html:
    hint = "True friction torque over rotor speed. Loops are caused by hysteresis, scatter by load and temperature."
    names = [(f"speed [{length_unit(joint)}/s]", f"friction [{effort_unit(joint)}]") for joint in robot.joints]
    return join([paragraph(hint, class_="hint"), _scatter_panels(robot, run["speed"], run["friction"], names, first)])


def _deformation(robot: Robot, run: Run, first: int) -> Html:
    deformation = 1e3 * (np.asarray(run["theta"]) - np.asarray(run["q"]))
    hint = "Rotor position minus link position over the transmitted torque: elasticity and kinematic error of the gear."
    names = [(f"torque [{effort_unit(joint)}]", f"θ - q [m{length_unit(joint)}]") for joint in robot.joints]
    return join([paragraph(hint, class_="hint"), _scatter_panels(robot, run["load"], deformation, names, first)])


def _scatter_panels(robot: Robot, x: Array, y: Array, names: Sequence[tuple[str, str]], first: int) -> Html:
    """Return one panel per joint with y (samples, joints) over x."""
    every = max(1, -(-len(x) // POINTS))
    panels = []
    for j, (horizontal, vertical) in enumerate(names):
        marker = {"size": 3, "color": joint_color(j), "opacity": 0.5}
        across, upwards = (np.asarray(values)[::every, j] for values in (x, y))
        alt = f"{joint_title(robot, j)}: {vertical} over {horizontal}."
        figure = scatter_figure(across, upwards, (horizontal, vertical), alt, marker, 380)
        panels.append((joint_title(robot, j), figure.html()))
    return tabs("Joint", panels, first)
