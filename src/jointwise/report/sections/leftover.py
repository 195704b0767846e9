"""What is left: the residual against position, speed, temperature and time, and the deformation of the gears."""

from __future__ import annotations

import numpy as np

from jointwise.description.robot import Joint
from jointwise.report.evidence import Evidence, Exhibit
from jointwise.report.figure import MEASURED, RESIDUAL, Figure, axis, faint, line, packed
from jointwise.report.leftover import CAUSES, NOTEWORTHY, Pattern, patterns
from jointwise.report.markup import Html, element, items, join, paragraph, tabs
from jointwise.report.numbers import effort_unit, joint_title, length_unit
from jointwise.spatial import Array

ID, TITLE = "leftover", "What the model leaves"

DEFORMATIONS = 1500
"""Most points of a deformation plot."""


def body(evidence: Evidence) -> Html:
    """Return what follows a pattern in words, and a panel of plots a joint."""
    exhibit = next(iter(evidence.unseen or evidence.all), None)
    if exhibit is None:
        return paragraph("No log was given.")
    found = [patterns(evidence.calibration, exhibit, j) for j in range(evidence.robot.dof)]
    panels = [
        (joint_title(evidence.robot, j), join([*_figures(evidence, own, j), _deformation(evidence, exhibit, j)]))
        for j, own in enumerate(found)
    ]
    return join([_explanation(exhibit), _words(evidence, found), tabs("Joint", panels)])


def _explanation(exhibit: Exhibit) -> Html:
    return paragraph(
        f"Mean of measured minus predicted on {exhibit.label} ({exhibit.name}) while the joint moves, with its 95 % "
        "interval. A flat line is "
        "noise; a pattern that repeats is an effect that the model does not have.",
        class_="hint",
    )


def _words(evidence: Evidence, found: list[list[Pattern]]) -> Html:
    told = [
        f"{joint_title(evidence.robot, j)}: {100 * own.share:.0f} % of what is left follows the {own.quantity}: "
        f"{CAUSES[own.quantity]}?"
        for j, rows in enumerate(found)
        for own in rows
        if own.share >= NOTEWORTHY
    ]
    return items(told) if told else paragraph("Nothing that is left follows a pattern.")


def _figures(evidence: Evidence, found: list[Pattern], j: int) -> list[Html]:
    unit = evidence.calibration.unit
    return [element("div", *(pattern_figure(own, unit, j).html(_caption(own)) for own in found), class_="pair")]


def _caption(own: Pattern) -> str:
    against = ", against the motion" if own.quantity == "temperature" else ""
    return f"Residual over {own.quantity}{against}: {max(100 * own.share, 0.0):.0f} % of its variance"


def pattern_figure(own: Pattern, unit: str, j: int) -> Figure:
    """Return the mean residual over a quantity with its band."""
    around = np.concatenate([own.x, own.x[::-1]])
    edge = np.concatenate([own.mean + own.half, (own.mean - own.half)[::-1]])
    band = {"fill": "toself", "fillcolor": faint(RESIDUAL, 0.18), "hoverinfo": "skip", "showlegend": False}
    traces = [
        line("95 %", packed(around), packed(edge), RESIDUAL, 0.0, **band),
        line("mean residual", packed(own.x), packed(own.mean), RESIDUAL, 1.8, showlegend=False),
    ]
    layout = {
        "xaxis": axis(f"{own.quantity} [{own.unit}]"),
        "yaxis": axis(f"residual [{unit}]", zeroline=True),
        "hovermode": "closest",
    }
    return Figure(traces, layout, f"Joint {j + 1}: mean residual over {own.quantity}.", 300)


def _deformation(evidence: Evidence, exhibit: Exhibit, j: int) -> Html:
    """Return θ - q over torque (the slope is the gear's compliance) and over position (its kinematic error).

    Only where the rotor's position was logged.
    """
    log = exhibit.log
    if log.theta is None:
        return Html("")
    rows = np.linspace(0, log.samples - 1, min(DEFORMATIONS, log.samples)).astype(np.intp)
    joint, q = evidence.robot.joints[j], np.asarray(log.q[rows, j])
    torque = exhibit.predicted[rows, j] * evidence.calibration.gains[j]
    phi = 1e3 * (np.asarray(log.theta[rows, j]) - q)
    figures = [
        _scatter(torque, phi, f"predicted torque [{effort_unit(joint)}]", joint, j).html(
            "Deformation of the gear over torque: the slope is its compliance"
        ),
        _scatter(q, phi, f"position [{length_unit(joint)}]", joint, j).html(
            "Deformation of the gear over position: its kinematic error, where the load does not hide it"
        ),
    ]
    return element("div", *figures, class_="pair")


def _scatter(x: Array, phi: Array, title: str, joint: Joint, j: int) -> Figure:
    marker = {"size": 3.5, "color": MEASURED, "opacity": 0.6}
    trace = {"type": "scatter", "mode": "markers", "x": packed(x), "y": packed(phi), "marker": marker}
    layout = {"xaxis": axis(title), "yaxis": axis(f"rotor minus link [m{length_unit(joint)}]"), "showlegend": False}
    return Figure([trace], layout, f"Joint {j + 1}: deformation of the gear over {title}.", 320)
