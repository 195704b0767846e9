"""The motion the model was made from, in space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointwise.report.evidence import Evidence
from jointwise.report.markup import Html, element, join, paragraph
from jointwise.report.motion3d import motion_view
from jointwise.spatial import Array

ID, TITLE = "motion", "The motion"


def body(evidence: Evidence) -> Html:
    """Return the arm moving as in the first training log, or in the first log at all."""
    shown = [*evidence.training, *evidence.validation]
    if not shown:
        return paragraph("No log was given.")
    own = shown[0]
    role = element("span", own.label, class_=f"role {own.role}")
    title = paragraph(
        role, " ", element("span", own.name, class_="file"), f" · {own.log.duration:.1f} s", class_="small"
    )
    rows = _forward(own.log.t)
    gravity = evidence.calibration.model.gravity
    return join([title, motion_view(evidence.robot, own.log.t[rows], own.log.q[rows], gravity)])


def _forward(t: Array) -> NDArray[np.bool_]:
    """Return which samples come later than all before them: a clock may stand still or jump back."""
    return np.concatenate([[True], t[1:] > np.maximum.accumulate(t)[:-1]])
