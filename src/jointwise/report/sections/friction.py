"""Friction: steady torque over speed with its confidence band, and hysteresis loops."""

from __future__ import annotations

import numpy as np

from jointwise.report.data import ReportData
from jointwise.report.figure import LOADED, LOOPS, UNLOADED, Figure, Trace, axis, band, line, packed, scatter
from jointwise.report.page import Html, effort_unit, element, join, joint_title, length_unit, paragraph, tabs
from jointwise.result.diagnostics import FrictionCurve, friction_curve, hysteresis_loops

WIDEST = 3.0
"""Greatest range of a plot as a multiple of the greatest modelled friction, so that outliers do not set the scale."""


def friction_section(data: ReportData) -> Html:
    """Return one panel per joint: the friction curve, and loops if the model has hysteresis."""
    panels = [(joint_title(data.robot, j), _panel(data, j)) for j in range(data.robot.dof)]
    return join([_explanation(data), tabs("Joint", panels)])


def _explanation(data: ReportData) -> Html:
    scale = " The scale of the drive gains is unknown, and so is the scale of these torques."
    return paragraph(
        "Friction at constant speed: Coulomb friction at full slip plus viscous friction, without offset. The band is "
        "the 95 % confidence interval; dashed lines extrapolate beyond the speeds of the training data. Points are the "
        "measured torque minus the modelled torque of the links; they scatter because of noise and transients after "
        "reversals.",
        scale if "scale unknown" in data.calibration.gain_source else "",
        class_="hint",
    )


def _panel(data: ReportData, j: int) -> Html:
    figures = [curve_figure(data, j).html("Steady friction over speed")]
    loops = loop_figure(data, j)
    if loops is not None:
        figures.append(loops.html("Hysteresis loops of small, slow cycles without load"))
    return element("div", *figures, class_="pair" if len(figures) > 1 else None)


def curve_figure(data: ReportData, j: int) -> Figure:
    """Return friction over speed without load and at a typical load, with measured samples."""
    joint, calibration = data.robot.joints[j], data.calibration
    unit, typical = effort_unit(joint), float(data.friction.typical[j])
    curves = [("no load", friction_curve(calibration, j, 0.0), UNLOADED)]
    if any(term.uses_load() for term in calibration.model.terms[j]) and typical > 0.0:
        curves.append((f"load {typical:.3g} {unit}", friction_curve(calibration, j, typical), LOADED))
    traces = [_points(data, j, unit)]
    for name, curve, color in curves:
        traces += _curve(name, curve, color, float(calibration.fastest[j]), unit)
    limit = _limit(data, j, max(float(np.abs(curve.torque).max()) for _, curve, _ in curves))
    layout = {
        "xaxis": axis(f"speed [{length_unit(joint)}/s]", zeroline=True),
        "yaxis": axis(f"friction [{unit}]", zeroline=True, range=[-limit, limit]),
        "hovermode": "closest",
    }
    alt = f"{joint_title(data.robot, j)}: friction over speed with 95 % confidence band and measured samples."
    return Figure(traces, layout, alt, 400)


def _limit(data: ReportData, j: int, modelled: float) -> float:
    """Return the limit of the vertical axis for the greatest modelled friction of joint j."""
    measured = float(np.abs(data.friction.torque[:, j]).max(initial=0.0))
    return 1.05 * max(min(measured, WIDEST * modelled), modelled, 1e-9)


def loop_figure(data: ReportData, j: int) -> Figure | None:
    """Return torque over displacement of small cycles; None if the model has no hysteresis in this joint."""
    joint = data.robot.joints[j]
    unit, effort = "m" + length_unit(joint), effort_unit(joint)
    hover = f"%{{x:.3g}} {unit}<br>%{{y:.3g}} {effort}"
    traces = [
        line(
            f"± {1e3 * loop.amplitude:.2g} {unit}",
            packed(1e3 * loop.displacement),
            packed(loop.torque),
            color,
            1.8,
            hovertemplate=hover,
        )
        for loop, color in zip(hysteresis_loops(data.calibration, j), LOOPS, strict=False)
    ]
    if not traces:
        return None
    layout = {
        "xaxis": axis(f"displacement [{unit}]", zeroline=True),
        "yaxis": axis(f"friction [{effort}]", zeroline=True),
        "hovermode": "closest",
    }
    alt = f"{joint_title(data.robot, j)}: hysteresis loops of friction over displacement at three amplitudes."
    return Figure(traces[::-1], layout, alt, 400)


def _points(data: ReportData, j: int, unit: str) -> Trace:
    samples = data.friction
    x, y, load = (packed(values[:, j]) for values in (samples.speed, samples.torque, samples.load))
    marker = {"size": 3.5, "color": "#9aa9bb", "opacity": 0.55}
    hover = f"%{{x:.3g}}: %{{y:.3g}} {unit}<br>load %{{customdata:.3g}} {unit}"
    return scatter("measured", x, y, marker, customdata=load, hovertemplate=hover)


def _curve(name: str, curve: FrictionCurve, color: str, fastest: float, unit: str) -> list[Trace]:
    """Return the band, the curve over the speeds of the training data, and its dashed extrapolation."""
    shared = {"legendgroup": name, "hovertemplate": f"%{{x:.3g}}: %{{y:.3g}} {unit}"}
    dashed = {"line": {"dash": "dash"}, "showlegend": False, **shared}
    inside = np.abs(curve.speed) <= fastest * (1.0 + 1e-9)
    ends = [curve.speed <= -fastest * (1.0 - 1e-9), curve.speed >= fastest * (1.0 - 1e-9)]
    low, high = curve.torque - curve.half_width, curve.torque + curve.half_width
    return [
        band(f"{name}, 95 % band", curve.speed, low, high, color, showlegend=False, legendgroup=name),
        line(name, packed(curve.speed[inside]), packed(curve.torque[inside]), color, 2.2, **shared),
        *(
            line(f"{name}, extrapolated", packed(curve.speed[end]), packed(curve.torque[end]), color, 2.0, **dashed)
            for end in ends
        ),
    ]
