"""Motion: an animation of the arm in the training log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.report.data import ReportData
from jointwise.report.markup import Html, element, join, paragraph
from jointwise.report.motion import motion_view
from jointwise.spatial import Array

ID, TITLE = "motion", "Motion"


def body(data: ReportData) -> Html:
    """Return the animation of the first training log, or of the first validation log if there is none."""
    item = next(iter((*data.training, *data.validation)), None)
    if item is None:
        return paragraph("No log is available.")
    role = element("span", item.label, class_=f"role {item.role}")
    name = element("span", item.name, class_="file")
    title = paragraph(role, " ", name, f" · {item.log.duration:.1f} s", class_="small")
    rows = _increasing(item.log.t)
    view = motion_view(data.robot, item.log.t[rows], item.log.q[rows], data.calibration.model.gravity)
    return join([title, view])


def _increasing(t: Array) -> NDArray[np.bool_]:
    """Return which samples are later than all samples before them; a clock may stall or jump back."""
    return np.concatenate([[True], t[1:] > np.maximum.accumulate(t)[:-1]])
