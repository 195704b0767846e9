"""Friction: steady torque over speed with its band, and hysteresis loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointwise.report.evidence import Evidence
from jointwise.report.figure import LOADED, LOOPS, UNLOADED, Figure, Trace, axis, faint, line, packed
from jointwise.report.friction import Curve, friction_curve, hysteresis_loops
from jointwise.report.markup import Html, element, join, paragraph, tabs
from jointwise.report.numbers import effort_unit, joint_title, length_unit
from jointwise.spatial import Array

ID, TITLE = "friction", "Friction"

WIDEST = 3.0
"""A plot shows this much of the greatest friction; single points beyond do not stretch it."""


def body(evidence: Evidence) -> Html:
    """Return a panel a joint: the curve, and the loops where hysteresis is in the model."""
    panels = [(joint_title(evidence.robot, j), _panel(evidence, j)) for j in range(evidence.robot.dof)]
    return join([_explanation(evidence), tabs("Joint", panels)])


def _explanation(evidence: Evidence) -> Html:
    scale = " The scale of the drive gains is not known, so neither is that of these torques."
    return paragraph(
        "Torque that friction takes at constant speed: viscous and dry friction at full slip, without offset. The band "
        "is the 95 % interval of the curve; dashed is beyond the speeds of the training data. Points are measured "
        "torque minus the bodies’ part: they scatter with noise and while friction turns over after a reversal.",
        scale if "scale unknown" in evidence.calibration.gain_source else "",
        class_="hint",
    )


def _panel(evidence: Evidence, j: int) -> Html:
    figures = [curve_figure(evidence, j).html("Steady friction over speed")]
    loops = loop_figure(evidence, j)
    if loops is not None:
        figures.append(loops.html("Hysteresis: small slow cycles about a point, without load"))
    return element("div", *figures, class_="pair" if len(figures) > 1 else None)


def curve_figure(evidence: Evidence, j: int) -> Figure:
    """Return friction over speed at no load and at a typical one, over what was measured."""
    joint, calibration = evidence.robot.joints[j], evidence.calibration
    unit, typical = effort_unit(joint), float(evidence.friction.typical[j])
    curves = [("no load", friction_curve(calibration, j, 0.0), UNLOADED)]
    if any(term.uses_load() for term in calibration.model.terms[j]) and typical > 0.0:
        curves.append((f"load {typical:.3g} {unit}", friction_curve(calibration, j, typical), LOADED))
    fastest = float(calibration.fastest[j])
    traces = [_points(evidence, j, unit)]
    for name, curve, color in curves:
        traces += _curve(name, curve, color, fastest, unit)
    top = WIDEST * max(float(np.abs(curve.torque).max()) for _, curve, _ in curves)
    seen = float(np.abs(evidence.friction.torque[:, j]).max(initial=0.0))
    limit = 1.05 * max(min(seen, top), top / WIDEST, 1e-9)
    layout = {
        "xaxis": axis(f"speed [{length_unit(joint)}/s]", zeroline=True),
        "yaxis": axis(f"friction [{unit}]", zeroline=True, range=[-limit, limit]),
        "hovermode": "closest",
    }
    alt = f"{joint_title(evidence.robot, j)}: friction over speed with 95 % band, measured points behind."
    return Figure(traces, layout, alt, 400)


def loop_figure(evidence: Evidence, j: int) -> Figure | None:
    """Return torque over displacement of small cycles; None where the model has no hysteresis there."""
    joint = evidence.robot.joints[j]
    unit = "m" + length_unit(joint)
    traces = [
        line(
            f"± {1e3 * loop.amplitude:.2g} {unit}",
            packed(1e3 * loop.displacement),
            packed(loop.torque),
            color,
            1.8,
            hovertemplate=f"%{{x:.3g}} {unit}<br>%{{y:.3g}} {effort_unit(joint)}",
        )
        for loop, color in zip(hysteresis_loops(evidence.calibration, j), LOOPS, strict=False)
    ]
    if not traces:
        return None
    layout = {
        "xaxis": axis(f"displacement [{unit}]", zeroline=True),
        "yaxis": axis(f"friction [{effort_unit(joint)}]", zeroline=True),
        "hovermode": "closest",
    }
    alt = f"{joint_title(evidence.robot, j)}: hysteresis loops of friction over displacement at three amplitudes."
    return Figure(traces[::-1], layout, alt, 400)


def _points(evidence: Evidence, j: int, unit: str) -> Trace:
    data = evidence.friction
    marker: dict[str, Any] = {"size": 3.5, "color": "#9aa9bb", "opacity": 0.55}
    show = f"%{{x:.3g}}: %{{y:.3g}} {unit}<br>load %{{customdata:.3g}} {unit}"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "x": packed(data.speed[:, j]),
        "y": packed(data.torque[:, j]),
        "customdata": packed(data.load[:, j]),
        "marker": marker,
        "hovertemplate": show,
    }


def _curve(name: str, curve: Curve, color: str, fastest: float, unit: str) -> list[Trace]:
    """Return the band, the curve over the trained speeds, and its dashed ends."""
    inside = np.abs(curve.speed) <= fastest * (1.0 + 1e-9)
    show = f"%{{x:.3g}}: %{{y:.3g}} {unit}"
    ends = [curve.speed <= -fastest * (1.0 - 1e-9), curve.speed >= fastest * (1.0 - 1e-9)]
    dashed = {"line": {"dash": "dash"}, "legendgroup": name, "showlegend": False, "hovertemplate": show}
    return [
        _band(name, curve, color),
        line(
            name,
            packed(curve.speed[inside]),
            packed(curve.torque[inside]),
            color,
            2.2,
            legendgroup=name,
            hovertemplate=show,
        ),
        *(line(f"{name}, beyond", packed(curve.speed[e]), packed(curve.torque[e]), color, 2.0, **dashed) for e in ends),
    ]


def _band(name: str, curve: Curve, color: str) -> Trace:
    around: Array = np.concatenate([curve.speed, curve.speed[::-1]])
    edge = np.concatenate([curve.torque + curve.half, (curve.torque - curve.half)[::-1]])
    style = {
        "fill": "toself",
        "fillcolor": faint(color, 0.15),
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": name,
    }
    return line(f"{name}, 95 % band", packed(around), packed(edge), color, 0.0, **style)
