"""The page of an optimal excitation: motion, use of the limits, predicted standard errors, coverage for friction."""

from __future__ import annotations

import numpy as np

from jointwise import __version__
from jointwise.design.excitation import POOR_TEXT, RATE, STUDY_RATE, Excitation, ExcitationOptions
from jointwise.design.trajectory import States
from jointwise.formatting import number, percent, superscript_unit
from jointwise.report.figure import LOADED, UNLOADED, Figure, axis, joint_color, scatter, scatter_figure, time_figure
from jointwise.report.motion import motion_view
from jointwise.report.page import (
    Html,
    compose,
    effort_unit,
    facts,
    join,
    joint_title,
    length_unit,
    length_units,
    paragraph,
    robot_title,
    table,
    tabs,
)
from jointwise.spatial import Array

BASES = {"fourier": "Fourier series", "bspline": "quintic B-spline"}
"""Kinds of motions in words."""


def render_excitation(excitation: Excitation) -> str:
    """Return the complete page."""
    states = excitation.motion.sample(STUDY_RATE)
    sections = [
        ("overview", "Overview", _overview(excitation)),
        ("motion", "Motion", motion_view(excitation.robot, states.t, states.q, excitation.model.dynamics.gravity)),
        ("signals", "Path, speed and acceleration", _signals(excitation, states)),
        ("errors", "Predicted standard errors", _errors(excitation)),
        ("friction", "Coverage of speed and load", _coverage(excitation, states)),
    ]
    origin = f"{excitation.motion.duration:g} s, seed {excitation.options.seed}, Jointwise {__version__}"
    return compose("Optimal excitation", robot_title(excitation.robot), origin, sections)


def _overview(excitation: Excitation) -> Html:
    model, random, clearance = excitation.model, excitation.random, excitation.limits.clearance
    plane = f"{clearance.plane:g} m" if np.isfinite(clearance.plane) else "not checked"
    pairs: list[tuple[object, object]] = [
        ("Optimised for", model.goal),
        ("Method", f"{BASES[excitation.options.basis]}, {excitation.options.criterion.upper()}-optimal"),
        ("Duration", f"{excitation.motion.duration:g} s, {percent(excitation.options.speed, 0)} of the speed limits"),
        ("Condition number", f"{excitation.condition:.3g}; random series {random.condition:.3g} (median)"),
        ("Standard errors", excitation.improvement_text),
        *((f"Largest {use.kind}", f"{percent(use.share)} of the limit, {use.where}") for use in excitation.uses),
        ("Height above the mounting plane", plane),
    ]
    note = (
        "The limits hold at ten points per sample of the trajectory file. Collisions with the cell, cables and payload "
        "are not checked: run the motion slowly first, with a hand at the emergency stop. Random series are Fourier "
        "series of the same duration and speed, whose torques and collisions are not checked."
    )
    warning = [paragraph(f"{POOR_TEXT[0].upper()}{POOR_TEXT[1:]}")] if excitation.poor else []
    return join([facts(pairs), *warning, paragraph(note)])


def _signals(excitation: Excitation, states: States) -> Html:
    """Return position, speed and acceleration of all joints over time."""
    robot = excitation.robot
    units = length_units(robot)
    panels = [
        ("Position", states.q, f"position, {units}"),
        ("Speed", states.qd, f"speed, {units}/s"),
        ("Acceleration", states.qdd, f"acceleration, {units}/s²"),
    ]
    return tabs("signals", [(name, _over_time(excitation, states.t, values, title)) for name, values, title in panels])


def _over_time(excitation: Excitation, t: Array, values: Array, title: str) -> Html:
    series = [(joint_title(excitation.robot, j), column, joint_color(j)) for j, column in enumerate(values.T)]
    return time_figure(t, series, title, f"{title} of all joints over time.", len(t)).html()


def _errors(excitation: Excitation) -> Html:
    """Return the standard errors beside those of random series, as a figure and as a table."""
    model, names = excitation.model, list(excitation.model.names)
    marker = {"size": 6}
    traces = [
        scatter("random series (median)", names, excitation.random.errors.tolist(), marker | {"color": LOADED}),
        scatter("this motion", names, excitation.errors.tolist(), marker | {"color": UNLOADED}),
    ]
    layout = {"xaxis": {"tickangle": -60}, "yaxis": axis("standard error, SI units", type="log", dtick=1)}
    figure = Figure(traces, layout, "Predicted standard error of every parameter, this motion and random series.", 440)
    columns = zip(names, model.units, model.values_shown, excitation.errors, excitation.improvement, strict=True)
    rows = [
        (name, superscript_unit(unit), number(value), number(error, 3), f"{ratio:.2f}")
        for name, unit, value, error, ratio in columns
    ]
    head = ("parameter", "unit", "reference value", "standard error", "random / this")
    noise = ", ".join(number(value, 3) for value in model.noise)
    caption = f"White torque noise of {noise} Nm (rms){_source(excitation.options)}; recorded at {RATE:g} Hz."
    return join([figure.html(caption), table("Predicted standard errors", head, rows, (0, 1))])


def _source(options: ExcitationOptions) -> str:
    """Return where the noise of the prediction comes from."""
    if options.inflation is not None:
        return ", times the ratio of real to predicted standard errors of an earlier excitation"
    return " as assumed" if options.noise is None else " with the effect of the residuals of the calibrated model"


def _coverage(excitation: Excitation, states: States) -> Html:
    """Return load torque over speed of every joint: where the samples for the friction lie."""
    load = excitation.model.columns(states).load
    panels = []
    for j, joint in enumerate(excitation.robot.joints):
        title = joint_title(excitation.robot, j)
        axes = f"speed, {length_unit(joint)}/s", f"load, {effort_unit(joint)}"
        alt, marker = f"{title}: load torque over speed.", {"size": 4, "color": UNLOADED}
        figure = scatter_figure(states.qd[:, j], load[:, j], axes, alt, marker, 360)
        panels.append((f"Joint {j + 1}", figure.html(title)))
    return tabs("coverage", panels)
