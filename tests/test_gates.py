"""Calibrations that the data cannot carry are refused: weak excitation, joints that are not explained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_runs import PLAIN, bench, refused, run
from jointwise import load_robot, read_log
from jointwise.data.write import write_csv
from jointwise.errors import EstimationError
from jointwise.result.assembly import check_explained
from synthetic import synthetic_log

NAMES = ("joint 1 (a)", "joint 2 (b)", "joint 3 (c)")


@pytest.mark.parametrize("value", [1.24, 0.9, float("nan"), float("inf")])
def test_one_unexplained_joint_is_refused_by_name(value: float) -> None:
    with pytest.raises(EstimationError, match=r"joint 2 \(b\): not identifiable"):
        check_explained((0.01, value, 0.02), NAMES, (True, True, True))
    assert check_explained((0.01, value, 0.02), NAMES, (True, False, True)).notes == ()


def test_nan_of_most_joints_is_refused() -> None:
    with pytest.raises(EstimationError, match="not identifiable"):
        check_explained((float("nan"), float("nan"), 0.02), NAMES, (True, True, True))


def test_a_joint_far_worse_than_the_rest_is_noted_and_an_ignored_one_is_not_judged() -> None:
    (note,) = check_explained((0.002, 0.2, 0.003), NAMES, (True, True, True)).notes
    assert note.startswith("joint 2 (b): MSE/variance 0.2")
    assert check_explained((0.002, None, 0.003), NAMES, (True, True, True)).notes == ()


@pytest.mark.parametrize("seconds", [0.5, 1.0])
def test_short_logs_make_no_model(tmp_path: Path, seconds: float) -> None:
    log = synthetic_log(load_robot("planar2"), "fourier", duration=20.0, rate=200.0, seed=1).log
    write_csv(log.slice(0, round(200 * seconds)), tmp_path / "short.csv")
    argv = ("--robot", "planar2", "--output", tmp_path / "m.json", *PLAIN)
    refused("calibrate", tmp_path / "short.csv", *argv)
    assert not (tmp_path / "m.json").exists()


def test_warnings_of_the_inspection_are_printed_and_stored(tmp_path: Path) -> None:
    log = read_log(bench().training)
    current = np.array(log.current)
    current[300:420] = current[300]
    write_csv(replace(log, current=current), tmp_path / "frozen.csv")
    argv = ("--robot", "planar2", "--output", tmp_path / "m.json", "--accept-implausible", "--json", *PLAIN)
    ended = run("calibrate", tmp_path / "frozen.csv", *argv)
    assert ended.code == 0, ended.err
    notes = json.loads(ended.out)["notes"]
    assert any("frozen.csv" in note for note in notes)
    assert all(note.split(":")[0] in ended.err for note in notes)
    assert json.loads((tmp_path / "m.json").read_text())["provenance"]["notes"] == notes
