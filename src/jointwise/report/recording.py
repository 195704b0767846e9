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
from jointwise.report.page import effort_unit, joint_title, length_unit, render, robot_title, write_page
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
    """Return the complete page; with a locked output, no link moves and the torque there is shown instead."""
    first = (truth["experiment"]["joint"] or 1) - 1
    locked, events = truth["experiment"]["name"] == "locked", event_marks(truth)
    t, q, gravity = np.asarray(run["t"]), np.asarray(run["q"]), np.array(truth["gravity"], dtype=float)
    deformation = 1e3 * (np.asarray(run["theta"]) - q)
    units = [(length_unit(joint), effort_unit(joint)) for joint in robot.joints]
    over_speed = [(f"speed [{length}/s]", f"friction [{effort}]") for length, effort in units]
    over_torque = [(f"torque [{effort}]", f"θ - q [m{length}]") for length, effort in units]
    return render(
        "recording.html",
        kind="Simulated recording",
        heading=robot_title(robot),
        origin=f"{truth['experiment']['name']}, seed {truth['seed']}, Jointwise {truth['version']}",
        first=first,
        facts=_configuration(truth, log),
        motion=None if locked else motion_view(robot, t, q, gravity),
        tracking=None if locked else _tracking(robot, log, events),
        torque=(joint_title(robot, first), _torque(robot, run, deformation, first)) if locked else None,
        currents=_currents(robot, log, events),
        adapted=_adapted(robot, truth, events),
        friction=_scatter_figures(robot, run["speed"], run["friction"], over_speed),
        deformation=_scatter_figures(robot, run["load"], deformation, over_torque),
    )


def _configuration(truth: Truth, log: Log) -> list[tuple[str, object]]:
    """Return the configuration of the simulation."""
    payload = truth["payload"]
    x, y, z = (number(value) for value in truth["gravity"])
    return [
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


def _torque(robot: Robot, run: Run, deformation: Array, j: int) -> Figure:
    """Return the torque at the output of the joint under test over time, and the deformation of the gear below."""
    t, torque, bent = np.asarray(run["t"]), np.asarray(run["load"])[:, j], deformation[:, j]
    rows = downsample(torque, bent, most=POINTS)
    upper = (f"torque [{effort_unit(robot.joints[j])}]", torque[rows], MEASURED)
    lower = (f"θ - q [m{length_unit(robot.joints[j])}]", bent[rows], PREDICTED)
    alt = f"{joint_title(robot, j)}: torque at the locked output over time, deformation of the gear below."
    return stacked_figure(t[rows], upper, lower, alt)


Panels = list[tuple[str, Figure, str]]
"""Title, figure and caption of every joint."""


def _tracking(robot: Robot, log: Log, events: Events) -> Panels:
    """Return positions and tracking errors over time; none without target positions."""
    if log.q_des is None:
        return []
    panels: Panels = []
    curves = _curves(log, lambda part: (part.q, 1e3 * (part.q - part.channel("q_des"))))
    for j, (t, position, error) in enumerate(curves):
        title, unit = joint_title(robot, j), length_unit(robot.joints[j])
        alt = f"{title}: position over time, tracking error up to {np.abs(error).max():.3g} m{unit} below."
        upper, lower = (f"position [{unit}]", position, PREDICTED), (f"error [m{unit}]", error, RESIDUAL)
        panels.append((title, stacked_figure(t, upper, lower, alt, events), ""))
    return panels


def _currents(robot: Robot, log: Log, events: Events) -> Panels:
    """Return currents and temperatures over time; none without these channels."""
    if log.current is None or log.temperature is None:
        return []
    panels: Panels = []
    curves = _curves(log, lambda part: (part.channel("current"), part.channel("temperature")))
    for j, (t, current, temperature) in enumerate(curves):
        upper, lower = ("current [A]", current, MEASURED), ("temperature [°C]", temperature, RESIDUAL)
        alt = f"{joint_title(robot, j)}: measured current and temperature over time."
        panels.append((joint_title(robot, j), stacked_figure(t, upper, lower, alt, events), ""))
    return panels


def _adapted(robot: Robot, truth: Truth, events: Events) -> Panels:
    """Return friction parameters that the controller adapted; none for other controllers."""
    adapted = truth["controller"].get("adapted")
    if adapted is None:
        return []
    t, a1, a2 = (np.asarray(adapted[name]) for name in ("t", "a1", "a2"))
    panels: Panels = []
    for j, joint in enumerate(robot.joints):
        unit = f"{effort_unit(joint)} s/{length_unit(joint)}"
        upper, lower = ("a1", a1[:, j], PREDICTED), (f"a2 [{unit}]", a2[:, j], RESIDUAL)
        alt = f"{joint_title(robot, j)}: a1 ends at {a1[-1, j]:.3g}, a2 at {a2[-1, j]:.3g} {unit}."
        panels.append((joint_title(robot, j), stacked_figure(t, upper, lower, alt, events), alt))
    return panels


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


def _scatter_figures(robot: Robot, x: Array, y: Array, names: Sequence[tuple[str, str]]) -> Panels:
    """Return y (samples, joints) over x for every joint."""
    every = max(1, -(-len(x) // POINTS))
    panels: Panels = []
    for j, titles in enumerate(names):
        marker = {"size": 3, "color": joint_color(j), "opacity": 0.5}
        across, upwards = (np.asarray(values)[::every, j] for values in (x, y))
        alt = f"{joint_title(robot, j)}: {titles[1]} over {titles[0]}."
        panels.append((joint_title(robot, j), scatter_figure(across, upwards, titles, alt, marker, 380), ""))
    return panels
