"""One list of phenomena: everything that goes by them knows them all, in that order, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import jointwise as jw
import jointwise.joint
from cli_runs import run
from jointwise.design import EXPERIMENTS, PURPOSES
from jointwise.errors import EstimationError
from jointwise.joint import PHENOMENA, JointModel, Part, identify, joint_record, model
from jointwise.joint.laws import METHODS
from jointwise.report.joint import joint_sections


def test_every_phenomenon_can_be_identified_read_planned_and_simulated() -> None:
    assert all(callable(getattr(jointwise.joint, f"identify_{name}")) for name in PHENOMENA)
    assert set(model._LAWS) == set(PHENOMENA)
    assert {name for item in PURPOSES.values() for name in item.phenomena} == set(PHENOMENA)
    assert {item.experiment for item in PHENOMENA.values()} <= set(EXPERIMENTS)
    assert all(item.name == name for name, item in PHENOMENA.items())


def test_an_experiment_identifies_its_namesake_and_every_phenomenon_that_names_it() -> None:
    for name, purpose in PURPOSES.items():
        expected = [p.name for p in PHENOMENA.values() if p.name == name or p.experiment == purpose.experiment]
        assert list(purpose.phenomena) == expected


def test_parts_stand_in_the_order_in_which_they_are_identified() -> None:
    model = JointModel("any", 0)
    for name in reversed(PHENOMENA):
        model = model.with_part(Part(name, "any", (), 100.0))
    assert list(model.parts) == list(PHENOMENA)
    assert [title for _, title, _ in joint_sections([model])] == [item.title for item in PHENOMENA.values()]


def test_the_commands_are_the_phenomena() -> None:
    text = run("joint", "--help").out
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] != " "]
    assert [name for name in listed if name in PHENOMENA] == list(PHENOMENA)


def test_an_unknown_phenomenon_is_refused() -> None:
    robot, t = jw.load_robot("planar2"), np.arange(1200) / 100.0
    record = joint_record(jw.Log(t, np.sin(t)[:, None] * [1.0, 1.0], current=np.cos(t)[:, None] * [1.0, 1.0]), robot, 0)
    with pytest.raises(EstimationError, match="one of stiffness, transmission, friction"):
        identify("magic", record, robot)


def test_an_unknown_method_of_hysteresis_is_wrong_usage() -> None:
    result = run("joint", "hysteresis", "log.csv", "--robot", "ur5e", "--joint", 1, "--method", "magic")
    assert result.code == 2
    assert all(name in result.err.replace("\n", " ") for name in METHODS)
    for name in METHODS:
        known = run("joint", "hysteresis", "none.csv", "--robot", "ur5e", "--joint", 1, "--method", name)
        assert "no such file" in known.err


def test_the_list_costs_nothing_to_import() -> None:
    script = "import sys, jointwise.joint.phenomenon; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_package_gives_its_names_and_no_others() -> None:
    assert all(getattr(jointwise.joint, name) is not None for name in jointwise.joint.__all__)
    assert dir(jointwise.joint) == sorted(jointwise.joint.__all__)
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        jointwise.joint.magic  # noqa: B018
