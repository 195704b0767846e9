"""The page of a minimum-energy motion: power, energy, limits and signals beside those of the original motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise import __version__
from jointwise.description.robot import Robot
from jointwise.design.trajectory import States
from jointwise.formatting import number, percent
from jointwise.report.figure import LOADED, UNLOADED, Figure, axis, joint_color, line, packed
from jointwise.report.motion import motion_view
from jointwise.report.page import (
    Html,
    compose,
    facts,
    join,
    joint_title,
    length_units,
    paragraph,
    robot_title,
    table,
    tabs,
)
from jointwise.spatial import Array

ORIGINAL, OPTIMIZED = LOADED, UNLOADED
"""Colours of the two motions."""


@dataclass(frozen=True, eq=False)
class MotionCurves:
    """A motion for the page.

    Attributes:
        states: Times, positions, speeds and accelerations.
        torque: Torques, (samples, joints), Nm.
        power: Power on the bus, (samples,), W.
    """

    states: States
    torque: Array
    power: Array

    @property
    def energy(self) -> Array:
        """Energy from the bus since the start (samples,), J."""
        steps = 0.5 * (self.power[1:] + self.power[:-1]) * np.diff(self.states.t)
        return np.concatenate([[0.0], np.cumsum(steps)])


def render_minimum_energy(
    robot: Robot, gravity: Array, result: Mapping[str, Any], original: MotionCurves, optimized: MotionCurves
) -> str:
    """Return the complete page.

    Args:
        robot: The robot.
        gravity: Gravity in the base frame (3,), m/s².
        result: Energies and limits, `MinimumEnergyMotion.to_dict()`.
        original: The original motion.
        optimized: The optimised motion.

    """
    states = optimized.states
    sections = [
        ("overview", "Overview", _overview(result)),
        ("power", "Power and energy", _power(original, optimized)),
        ("limits", "Use of the limits", _limits(result)),
        ("signals", "Joints", _signals(robot, original, optimized)),
        ("motion", "Motion", motion_view(robot, states.t, states.q, gravity)),
    ]
    origin = f"{number(result['optimized']['duration'])} s, path {result['path']}, Jointwise {__version__}"
    return compose("Minimum-energy motion", robot_title(robot), origin, sections)


def _overview(result: Mapping[str, Any]) -> Html:
    before, after = result["original"], result["optimized"]
    saved = percent(result["saving"]) if result["saving_possible"] else "none is possible: the original is returned"
    of_motion = result["motion_saving"]
    pairs: list[tuple[object, object]] = [
        ("Saving", saved),
        ("Saving of the motion's energy", "not defined" if of_motion is None else percent(of_motion)),
        ("Energy", f"{number(after['energy'])} J; original {number(before['energy'])} J"),
        ("Without standing power", f"{number(after['motion_energy'])} J; original {number(before['motion_energy'])} J"),
        ("Duration", f"{number(after['duration'])} s; original {number(before['duration'])} s"),
        ("Choice of the duration", result["duration_status"]),
        ("Least duration of the path", f"{number(result['least_duration'])} s"),
        ("Peak power", f"{number(after['peak_power'])} W; original {number(before['peak_power'])} W"),
        ("Standing power", f"{number(result['standing_power'])} W"),
    ]
    note = (
        "Energies are those of the model. The limits hold at ten points per sample of the trajectory file. Collisions "
        "with the cell, cables and payload are not checked: run the motion slowly first, with a hand at the emergency "
        "stop."
    )
    return join([facts(pairs), paragraph(note)])


def _power(original: MotionCurves, optimized: MotionCurves) -> Html:
    """Return power and energy of both motions over time."""
    panels = [
        ("Power", _both(original, optimized, original.power, optimized.power, "power on the bus [W]")),
        ("Energy", _both(original, optimized, original.energy, optimized.energy, "energy from the bus [J]")),
    ]
    return tabs("power", panels)


def _both(original: MotionCurves, optimized: MotionCurves, before: Array, after: Array, title: str) -> Html:
    traces = [
        line("original", packed(original.states.t), packed(before), ORIGINAL),
        line("optimised", packed(optimized.states.t), packed(after), OPTIMIZED),
    ]
    layout = {"xaxis": axis("time [s]"), "yaxis": axis(title), "hovermode": "x unified"}
    return Figure(traces, layout, f"{title} of both motions over time").html()


def _limits(result: Mapping[str, Any]) -> Html:
    """Return the largest use of every limit in both motions."""
    before, after = result["original"]["limits"], result["optimized"]["limits"]
    rows = [
        (kind, percent(before[kind]["share"]), before[kind]["where"], percent(use["share"]), use["where"])
        for kind, use in after.items()
    ]
    kept = ["kept" if result[name]["clear"] else "not kept" for name in ("original", "optimized")]
    rows.append(("clearance", kept[0], "", kept[1], ""))
    return table("Largest use of the limits", ("", "original", "", "optimised", ""), rows, (0, 2, 4))


def _signals(robot: Robot, original: MotionCurves, optimized: MotionCurves) -> Html:
    """Return position, speed, acceleration and torque of all joints: the original motion dashed."""
    units = length_units(robot)
    panels = [
        ("Position", original.states.q, optimized.states.q, f"position [{units}]"),
        ("Speed", original.states.qd, optimized.states.qd, f"speed [{units}/s]"),
        ("Acceleration", original.states.qdd, optimized.states.qdd, f"acceleration [{units}/s²]"),
        ("Torque", original.torque, optimized.torque, "torque [Nm]"),
    ]
    drawn = [
        (name, _joints(robot, (original.states.t, before), (optimized.states.t, after), title))
        for name, before, after, title in panels
    ]
    return tabs("signals", drawn)


def _joints(robot: Robot, before: tuple[Array, Array], after: tuple[Array, Array], title: str) -> Html:
    traces = []
    for j in range(robot.dof):
        color, name = joint_color(j), joint_title(robot, j)
        traces.append(line(name, packed(after[0]), packed(after[1][:, j]), color, legendgroup=name))
        dashed = line(name, packed(before[0]), packed(before[1][:, j]), color, 1.0, legendgroup=name, showlegend=False)
        traces.append({**dashed, "line": {**dashed["line"], "dash": "dot"}})
    layout = {"xaxis": axis("time [s]"), "yaxis": axis(title)}
    return Figure(traces, layout, f"{title} of all joints").html("Dotted: the original motion.")
