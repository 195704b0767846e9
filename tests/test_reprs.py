"""Objects that a user holds print as one short line, without arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import jointwise as jw
from jointwise.joint import JointModel, Part, joint_record
from jointwise.joint.part import value_of
from runtime_models import fitted

LONGEST = 300
"""Characters of a line, with one file name."""


@cache
def simulated() -> jw.SimulationResult:
    return jw.simulate("planar2", "bspline", duration=12.0, rate=200.0, seed=3)


def friction() -> Part:
    return Part("friction", "Coulomb", (value_of("F_C", "Nm", 1.23456, 0.1), value_of("n", "", 2.0, 0.1)), 97.123)


CASES: dict[str, Any] = {
    "Robot('ur5e', 6 joints)": lambda: jw.load_robot("ur5e"),
    "Log('digital robot', 2400 samples, 2 joints, 12.0 s at 200 Hz, channels q qd": lambda: simulated().log,
    "Log(0 samples, 2 joints, 0.0 s, channels q)": lambda: jw.Log(np.zeros(0), np.zeros((0, 2))),
    "Motion(5 samples, 2 joints, 100 Hz)": lambda: jw.Motion(100.0, *np.zeros((3, 5, 2))),
    "Calibration('planar2', 2 joints, 19 parameters, current in A, trained on 1 log)": fitted,
    "RobotModel(calibration=Calibration('planar2', ": lambda: jw.RobotModel(fitted()),
    "Validation('digital robot', 2 joints, mean R2 ": lambda: jw.validate(fitted(), simulated().log),
    "Part('friction', 'Coulomb', F_C 1.235 Nm, n 2, NRMSE fit 97.1 %)": friction,
    "JointModel('planar2', joint=0, parts friction)": lambda: JointModel("planar2", 0).with_part(friction()),
    "JointModel('planar2', joint=1, parts none)": lambda: JointModel("planar2", 1),
    "JointRecord('planar2', joint=0, ": lambda: joint_record(simulated().log, jw.load_robot("planar2"), 0),
    "SimulationResult('planar2', 'bspline', Log(": simulated,
}


@pytest.mark.parametrize("start", CASES)
def test_an_object_prints_as_one_line(start: str) -> None:
    text = repr(CASES[start]())
    assert text.startswith(start) and text.endswith(")")
    assert "array" not in text and "\n" not in text and len(text) < LONGEST
