"""The page of an optimal excitation: motion, use of the limits, predicted standard errors, coverage for friction."""

from __future__ import annotations

import numpy as np

from jointwise import __version__
from jointwise.design.excitation import POOR_TEXT, RATE, STUDY_RATE, Excitation, ExcitationOptions
from jointwise.design.trajectory import States
from jointwise.formatting import number, percent, superscript_unit
from jointwise.report.figure import LOADED, UNLOADED, Figure, axis, joint_color, scatter, scatter_figure, time_figure
from jointwise.report.motion import motion_view
from jointwise.report.page import effort_unit, joint_title, length_unit, length_units, render, robot_title
from jointwise.spatial import Array

BASES = {"fourier": "Fourier series", "bspline": "quintic B-spline"}
"""Kinds of motions in words."""
POINTS = 1500
"""Largest number of points of a curve."""


def render_excitation(excitation: Excitation) -> str:
    """Return the complete page."""
    model, random, robot = excitation.model, excitation.random, excitation.robot
    states = excitation.motion.sample(STUDY_RATE)
    columns = zip(model.names, model.units, model.values_shown, excitation.errors, excitation.improvement, strict=True)
    noise = ", ".join(number(value, 3) for value in model.noise)
    plane, units = excitation.limits.clearance.plane, length_units(robot)
    return render(
        "excitation.html",
        kind="Optimal excitation",
        heading=robot_title(robot),
        origin=f"{excitation.motion.duration:g} s, seed {excitation.options.seed}, Jointwise {__version__}",
        facts=[
            ("Optimised for", model.goal),
            ("Method", f"{BASES[excitation.options.basis]}, {excitation.options.criterion.upper()}-optimal"),
            (
                "Duration",
                f"{excitation.motion.duration:g} s, {percent(excitation.options.speed, 0)} of the speed limits",
            ),
            ("Condition number", f"{excitation.condition:.3g}; random series {random.condition:.3g} (median)"),
            ("Standard errors", excitation.improvement_text),
            *((f"Largest {use.kind}", f"{percent(use.share)} of the limit, {use.where}") for use in excitation.uses),
            ("Height above the mounting plane", f"{plane:g} m" if np.isfinite(plane) else "not checked"),
        ],
        poor=f"{POOR_TEXT[0].upper()}{POOR_TEXT[1:]}" if excitation.poor else "",
        motion=motion_view(robot, states.t, states.q, model.dynamics.gravity),
        signals=[
            ("Position", _over_time(excitation, states.t, states.q, f"position, {units}"), ""),
            ("Speed", _over_time(excitation, states.t, states.qd, f"speed, {units}/s"), ""),
            ("Acceleration", _over_time(excitation, states.t, states.qdd, f"acceleration, {units}/s²"), ""),
        ],
        errors=_errors(excitation),
        caption=f"White torque noise of {noise} Nm (rms){_source(excitation.options)}; recorded at {RATE:g} Hz.",
        rows=[
            (name, superscript_unit(unit), number(value), number(error, 3), f"{ratio:.2f}")
            for name, unit, value, error, ratio in columns
        ],
        coverage=_coverage(excitation, states),
    )


def _over_time(excitation: Excitation, t: Array, values: Array, title: str) -> Figure:
    series = [(joint_title(excitation.robot, j), column, joint_color(j)) for j, column in enumerate(values.T)]
    return time_figure(t, series, title, f"{title} of all joints over time.", POINTS)


def _errors(excitation: Excitation) -> Figure:
    """Return the standard errors beside those of random series."""
    names, marker = list(excitation.model.names), {"size": 6}
    traces = [
        scatter("random series (median)", names, excitation.random.errors.tolist(), marker | {"color": LOADED}),
        scatter("this motion", names, excitation.errors.tolist(), marker | {"color": UNLOADED}),
    ]
    layout = {"xaxis": {"tickangle": -60}, "yaxis": axis("standard error, SI units", type="log", dtick=1)}
    return Figure(traces, layout, "Predicted standard error of every parameter, this motion and random series.", 440)


def _source(options: ExcitationOptions) -> str:
    """Return where the noise of the prediction comes from."""
    if options.inflation is not None:
        return ", times the ratio of real to predicted standard errors of an earlier excitation"
    return " as assumed" if options.noise is None else " with the effect of the residuals of the calibrated model"


def _coverage(excitation: Excitation, states: States) -> list[tuple[str, Figure, str]]:
    """Return load torque over speed of every joint: where the samples for the friction lie."""
    load = excitation.model.columns(states).load
    panels = []
    for j, joint in enumerate(excitation.robot.joints):
        title = joint_title(excitation.robot, j)
        axes = f"speed, {length_unit(joint)}/s", f"load, {effort_unit(joint)}"
        alt, marker = f"{title}: load torque over speed.", {"size": 4, "color": UNLOADED}
        panels.append((f"Joint {j + 1}", scatter_figure(states.qd[:, j], load[:, j], axes, alt, marker, 360), title))
    return panels
