"""No command replaces a file that it reads, nor one of its own results by another."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cli_runs import PLAIN, bench, run
from jointwise.joint.model import JointModel, save_joints


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory, the current one, with one of every kind of input."""
    for path in (bench().training, bench().unseen, bench().model):
        shutil.copy(path, tmp_path / path.name)
    (tmp_path / "map.toml").write_text('t = "t"\n', encoding="utf-8")
    save_joints([JointModel("planar2", 0)], tmp_path / "joints.json")
    (tmp_path / "mdh.csv").write_text("d,a,alpha\n0.1,0,0\n0,0.4,0\n", encoding="utf-8")
    for name in ("arm.toml", "plant.toml"):
        (tmp_path / name).write_text("# anything\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


CALIBRATE = ("calibrate", "training.csv", "--robot", "planar2", *PLAIN)
JOINT = ("joint", "friction", "training.csv", "--robot", "planar2", "--joint", 1)
INPUTS = {
    "training log": (*CALIBRATE, "--output", "training.csv"),
    "training log by another path": (*CALIBRATE, "--output", "./sub/../training.csv"),
    "training log as parameters": (*CALIBRATE, "--output", "m.json", "--out-params", "training.csv"),
    "unseen log": (*CALIBRATE, "--validate", "unseen.csv", "--output", "unseen.csv"),
    "joint file": (*CALIBRATE, "--joint", "joints.json", "--output", "joints.json"),
    "columns": (*CALIBRATE, "--columns", "map.toml", "--output", "map.toml"),
    "robot": ("calibrate", "training.csv", "--robot", "arm.toml", "--output", "arm.toml"),
    "AURT's model": ("calibrate", "--model", "model.json", "--data", "training.csv", "--output", "model.json"),
    "AURT's data": ("calibrate", "--model", "model.json", "--data", "training.csv", "--out-params", "training.csv"),
    "calibrate-validate": (
        *("calibrate-validate", "training.csv", "--robot", "planar2", "--calibration-data-rel", 0.7),
        *("--output", "m.json", "--out-prediction", "training.csv"),
    ),
    "predicted log": ("predict", "model.json", "unseen.csv", "--output", "unseen.csv"),
    "predicting model": ("predict", "model.json", "unseen.csv", "--output", "model.json"),
    "predicting model of AURT": ("predict", "--model", "model.json", "--data", "unseen.csv", "--out", "model.json"),
    "predicted columns": ("predict", "model.json", "unseen.csv", "--columns", "map.toml", "--output", "map.toml"),
    "compile-rbd": ("compile-rbd", "--mdh", "mdh.csv", "--out", "mdh.csv"),
    "compile-rd": (
        *("compile-rd", "--model-rbd", "model.json", "--friction-torque-model", "none"),
        *("--friction-viscous-powers", 1, "--out", "model.json"),
    ),
    "joint's log": (*JOINT, "--output", "training.csv"),
    "joint's model": (*JOINT, "--model", "model.json", "--output", "model.json"),
    "joint's columns": (*JOINT, "--columns", "map.toml", "--output", "map.toml"),
    "loaded log": (
        *("joint", "motor", "training.csv", "--loaded", "unseen.csv", "--payload-mass", 2, "--robot", "planar2"),
        *("--joint", 1, "--output", "unseen.csv"),
    ),
    "log of all": (
        *("joint", "all", "friction=unseen.csv@table", "training.csv", "--robot", "planar2", "--joint", 1),
        *("--output", "unseen.csv"),
    ),
    "simulated robot": ("simulate", "--robot", "arm.toml", "--output", "log.csv", "--truth", "arm.toml"),
    "joints of the simulation": (
        *("simulate", "--robot", "planar2", "--joints", "plant.toml", "--output", "log.csv"),
        *("--truth", "plant.toml"),
    ),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_is_never_an_output(files: Path, kind: str) -> None:
    (files / "sub").mkdir()
    before = contents(files)
    result = run(*INPUTS[kind])
    assert result.code == 2, result
    assert "is an input and would be lost" in result.err
    assert contents(files) == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_to_an_input_is_that_input(files: Path, link: object) -> None:
    assert callable(link)
    link(files / "unseen.csv", files / "other.csv")
    result = run("predict", "model.json", "unseen.csv", "--output", "other.csv")
    assert result.code == 2
    assert "is an input" in result.err


SAME = {
    "joint file and page": (*JOINT, "--output", "x.html", "--report", "x.html"),
    "joint file and page in a directory": (*JOINT, "--output", "sub/joint.html", "--report", "sub"),
    "model and parameters": (*CALIBRATE, "--output", "x", "--out-params", "x"),
    "model and report": (*CALIBRATE, "--output", "sub/report.html", "--report", "sub"),
    "model and prediction": (
        *("calibrate-validate", "training.csv", "--robot", "planar2", "--calibration-data-rel", 0.7),
        *("--output", "x", "--out-prediction", "./x"),
    ),
    "log and page": ("simulate", "--robot", "planar2", "--output", "x.csv", "--truth", "x.html", "--report", "x.html"),
    "truth and page": (
        *("simulate", "--robot", "planar2", "--output", "x.csv", "--truth", "sub/recording.html", "--report", "sub"),
    ),
    "log and directory": ("simulate", "--robot", "planar2", "--output", "x.csv", "--report", "x.csv"),
}


@pytest.mark.parametrize("kind", SAME)
def test_two_results_are_two_files(files: Path, kind: str) -> None:
    (files / "sub").mkdir()
    before = contents(files)
    result = run(*SAME[kind])
    assert result.code == 2, result
    assert "must be different files" in result.err
    assert contents(files) == before


SIMULATE = ("simulate", "--robot", "planar2", "--duration", 2, "--output", "new.csv")
DEMO = ("demo", "--output", "sub")
PAGES = {
    "no/such/page.html": "there is no directory",
    "mdh.csv/page.html": "there is no directory",
    "y" * 240 + ".html": "a name must be at most",
}
FOLDERS = {
    "mdh.csv/pages/here": "no directory can be made there",
    "mdh.csv": "is a file",
    "x" * 300: "a name must be at most",
}
NOWHERE = [
    *((command, *entry) for command in (JOINT, SIMULATE) for entry in PAGES.items()),
    *((command, *entry) for command in (JOINT, SIMULATE, CALIBRATE) for entry in FOLDERS.items()),
]


@pytest.mark.parametrize(("command", "report", "words"), NOWHERE)
def test_a_report_that_cannot_be_written_stops_before_anything_is(
    files: Path, command: tuple[object, ...], report: str, words: str
) -> None:
    before = contents(files)
    output = () if command is SIMULATE else ("--output", "new.json")
    result = run(*command, *output, "--report", report)
    assert result.code == 1, result
    assert words in result.err
    assert contents(files) == before


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ((*JOINT, "--output", "new.json", "--report", "sub"), "joint.html"),
        ((*CALIBRATE, "--output", "new.json", "--report", "sub"), "report.html"),
        ((*SIMULATE, "--truth", "truth.json", "--report", "sub"), "recording.html"),
        (DEMO, "report.html"),
        (DEMO, "model.json"),
    ],
)
def test_a_folder_in_the_place_of_a_file_stops_before_anything_is_written(
    files: Path, command: tuple[object, ...], page: str
) -> None:
    (files / "sub" / page).mkdir(parents=True)
    (files / "sub" / ".jointwise-demo").touch()
    before = contents(files)
    result = run(*command)
    assert result.code != 0
    assert "is a directory" in result.err
    assert contents(files) == before


def test_a_report_does_not_replace_its_log(files: Path) -> None:
    (files / "sub").mkdir()
    shutil.copy("unseen.csv", "sub/report.html")
    before = contents(files)
    assert "is an input" in run("report", "model.json", "sub/report.html", "--output", "sub").err
    assert contents(files) == before


def test_names_of_the_catalogue_are_no_files(files: Path) -> None:
    result = run(*CALIBRATE, "--output", "planar2")
    assert result.code == 0, result.err
    assert json.loads((files / "planar2").read_text(encoding="utf-8"))["format"] == "jointwise calibration"


def test_results_of_before_are_replaced(files: Path) -> None:
    for _ in range(2):
        result = run("predict", "model.json", "unseen.csv", "--output", "predicted.csv")
        assert result.code == 0, result.err
