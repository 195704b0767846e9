"""The demo: a simulated robot, calibrated, tested on another motion, held against the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_runs import done, refused
from jointwise.cli import demo
from jointwise.errors import EstimationError
from jointwise.result import load_calibration
from jointwise.simulation.recording import load_truth


def test_demo(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("jointwise.report")
    facts = json.loads(done("demo", "--output", tmp_path / "demo", "--json"))
    assert [joint["r2"] > 0.9 for joint in facts["joints"]] == [True] * 6
    assert sum(row["inside"] for row in facts["parameters"]) >= 34
    best = facts["parameters"][0]
    assert best["estimated"] == pytest.approx(best["true"], rel=0.02)
    assert "<html" in Path(facts["report"]).read_text(encoding="utf-8").lower()
    assert load_calibration(facts["files"]["model"]).model.robot.name == "ur5e"
    truth = load_truth(facts["files"]["truth"])
    assert truth["experiment"]["name"] == "excitation"
    assert truth["without"] == []
    assert "hysteresis" in facts["joint_model"]
    assert "load dependence" in facts["joint_model"]


@pytest.mark.thorough
def test_demo_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    text = done("demo", "--output", tmp_path)
    assert all(
        words in text for words in ("most precise", "least precise", "RMSE [A]", "R2", "95 % confidence intervals")
    )
    assert "report:" not in text


@pytest.mark.thorough
def test_file_in_place_of_the_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file" in refused("demo", "--output", tmp_path / "file")
    assert "cannot be created" in refused("demo", "--output", tmp_path / "file" / "below")


def test_failed_demo_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EstimationError("no model.")

    monkeypatch.setattr("jointwise.calibration.calibrate", fail)
    assert "no model." in refused("demo", "--output", tmp_path / "deep" / "demo")
    assert list(tmp_path.iterdir()) == []


def test_files_from_elsewhere_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("mine")
    assert "model.json: was not written by a demo" in refused("demo", "--output", tmp_path)
    assert (tmp_path / "model.json").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
    again = tmp_path / "made"
    again.mkdir()
    (again / demo.MARK).touch()
    (again / "model.json").write_text("of a demo")
    assert demo._check_folder(str(again)) == again
