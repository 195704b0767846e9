"""The page of a minimum-energy motion: power, energy, limits and signals beside those of the original motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointwise import __version__
from jointwise.description.robot import Robot
from jointwise.design.trajectory import States
from jointwise.formatting import number
from jointwise.report.figure import LOADED, UNLOADED, Figure, axis, downsample, joint_color, line, packed
from jointwise.report.motion import motion_view
from jointwise.report.page import joint_title, length_units, render, robot_title
from jointwise.spatial import Array

ORIGINAL, OPTIMIZED = LOADED, UNLOADED
"""Colours of the two motions."""
POINTS = 800
"""Largest number of points of a curve."""


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
    states, units = optimized.states, length_units(robot)
    powers = [
        ("Power", original.power, optimized.power, "power on the bus [W]"),
        ("Energy", original.energy, optimized.energy, "energy from the bus [J]"),
    ]
    signals = [
        ("Position", original.states.q, states.q, f"position [{units}]"),
        ("Speed", original.states.qd, states.qd, f"speed [{units}/s]"),
        ("Acceleration", original.states.qdd, states.qdd, f"acceleration [{units}/s²]"),
        ("Torque", original.torque, optimized.torque, "torque [Nm]"),
    ]
    times = original.states.t, states.t
    return render(
        "minimum_energy.html",
        kind="Minimum-energy motion",
        heading=robot_title(robot),
        origin=f"{number(result['optimized']['duration'])} s, path {result['path']}, Jointwise {__version__}",
        result=result,
        before=result["original"],
        after=result["optimized"],
        power=[(name, _both(times, before, after, title), "") for name, before, after, title in powers],
        signals=[
            (name, _joints(robot, times, before, after, title), "Dotted: the original motion.")
            for name, before, after, title in signals
        ],
        motion=motion_view(robot, states.t, states.q, gravity),
    )


def _both(times: tuple[Array, Array], before: Array, after: Array, title: str) -> Figure:
    """Return a quantity (samples,) of both motions over time."""
    traces = [
        line("original", packed(times[0]), packed(before), ORIGINAL),
        line("optimised", packed(times[1]), packed(after), OPTIMIZED),
    ]
    layout = {"xaxis": axis("time [s]"), "yaxis": axis(title), "hovermode": "x unified"}
    return Figure(traces, layout, f"{title} of both motions over time")


def _joints(robot: Robot, times: tuple[Array, Array], before: Array, after: Array, title: str) -> Figure:
    """Return a quantity (samples, joints) of all joints over time: the original motion dotted."""
    traces = []
    earlier, later = (downsample(*values.T, most=POINTS) for values in (before, after))
    for j in range(robot.dof):
        color, name = joint_color(j), joint_title(robot, j)
        traces.append(line(name, packed(times[1][later]), packed(after[later, j]), color, legendgroup=name))
        dotted = {"legendgroup": name, "showlegend": False, "line": {"dash": "dot"}}
        traces.append(line(name, packed(times[0][earlier]), packed(before[earlier, j]), color, 1.0, **dotted))
    layout = {"xaxis": axis("time [s]"), "yaxis": axis(title)}
    return Figure(traces, layout, f"{title} of all joints")
