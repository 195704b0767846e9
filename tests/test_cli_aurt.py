"""AURT's workflow: its commands, its files, its paper's comparison."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import jointwise
from cli_runs import TRAINING, UR10E, done, refused, run
from data_files import needs_shared
from jointwise.data import read_log
from jointwise.data.write import write_csv
from jointwise.description.table import robot_from_csv
from jointwise.design import fourier_trajectory
from jointwise.result import load_calibration, validate
from synthetic import JointFriction, synthetic_log

GRAVITY = ("--gravity", 0, 0, -9.81)
UR10E_MDH = "d,a,alpha\n0.1807,0,pi/2\n0,-0.6127,0\n0,-0.57155,0\n0.17415,0,pi/2\n0.11985,0,-pi/2\n0.11655,0,0\n"
TWO_LINKS = "d,a,alpha\n0,0,pi/2\n0,0.5,0\n"


def compiled(folder: Path, table: str, load: str = "square", *powers: int) -> Path:
    """Return what compile-rd makes of a table."""
    (folder / "mdh.csv").write_text(table)
    done("compile-rbd", "--mdh", folder / "mdh.csv", "--out", folder / "rbd")
    friction = ("--friction-torque-model", load, "--friction-viscous-powers", *(powers or (1,)))
    done("compile-rd", "--model-rbd", folder / "rbd", *friction, "--out", folder / "rd")
    return folder / "rd"


def aurt_file(log: Path, target: Path, delimiter: str = ",") -> Path:
    """Write one of our logs as AURT names its columns."""
    header, *rows = log.read_text().split()
    joints = sum(name.startswith("q") and name[1:].isdecimal() for name in header.split(","))
    names = ["timestamp", *(f"{n}_{j}" for n in ("actual_q", "target_qd", "actual_current") for j in range(joints))]
    target.write_text("\n".join([delimiter.join(names), *(row.replace(",", delimiter) for row in rows)]) + "\n")
    return target


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a compiled two-link model and a log in AURT's columns."""
    folder = tmp_path_factory.mktemp("aurt")
    robot = robot_from_csv(TWO_LINKS, "two", "mdh-following")
    bodies = np.tile([0.1, 0, 0, 0.2, 0, 0.2, 0.8, 0.1, 0.05, 4.0], (2, 1))
    made = synthetic_log(robot, "fourier", duration=20.0, rate=125.0, inertials=bodies, rotor_inertias=[0.0, 0.0])
    write_csv(made.log, folder / "ours.csv")
    compiled(folder, TWO_LINKS, "square", 2, 1)
    aurt_file(folder / "ours.csv", folder / "data.csv", " ")
    return folder


def test_the_whole_workflow(arm: Path) -> None:
    out = (*GRAVITY, "--out-params", arm / "params.csv", "--out-calibrated-model", arm / "calibrated")
    result = run("calibrate", "--model", arm / "rd", "--data", arm / "data.csv", *out, "--plot")
    assert result.code == 0
    assert "--plot opens no window" in result.err
    done("predict", "--model", arm / "calibrated", "--data", arm / "data.csv", *GRAVITY, "--out", arm / "pred.csv")
    with (arm / "pred.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["timestamp", "predicted_current_0", "predicted_current_1"]
    log, values = read_log(arm / "data.csv"), np.array(rows[1:], dtype=float)
    assert np.array_equal(values[:, 0], log.t)
    assert np.mean((values[:, 1:] - log.current) ** 2, axis=0) == pytest.approx([0, 0], abs=0.1 * log.current.var())
    with (arm / "params.csv").open() as file:
        parameters = list(csv.DictReader(file))
    calibration = load_calibration(arm / "calibrated")
    assert [row["name"] for row in parameters] == [info.name for info in calibration.model.parameters]
    assert [float(row["value"]) for row in parameters] == calibration.estimate.values.tolist()
    assert {"FC0_1", "FC1_1", "Fv1_1", "Fv2_1"} <= {row["name"] for row in parameters}
    assert not any(row["name"].startswith(("Ia", "offset")) for row in parameters)


def test_the_calibrated_model_is_ours(arm: Path) -> None:
    done("calibrate", "--model", arm / "rd", "--data", arm / "ours.csv", *GRAVITY, "--output", arm / "m", "--quiet")
    assert json.loads(run("validate", arm / "m", arm / "ours.csv", "--json").out)["mean_r2"] > 0.95
    done("predict", arm / "m", arm / "ours.csv", "--output", arm / "p.csv")
    assert (arm / "p.csv").read_text().startswith("t,i1_pred,i2_pred\n")


def test_calibrate_validate(arm: Path) -> None:
    out = ("--out-params", arm / "p2.csv", "--out-calibrated-model", arm / "m2", "--out-prediction", arm / "pred2.csv")
    flags = (*GRAVITY, "--calibration-data-rel", 0.7, *out)
    text = done("calibrate-validate", "--model", arm / "rd", "--data", arm / "data.csv", *flags)
    assert "validation error" in text
    log = read_log(arm / "data.csv")
    cut = round(0.7 * log.samples)
    stamps = [float(line.partition(",")[0]) for line in (arm / "pred2.csv").read_text().split()[1:]]
    assert stamps == log.t[cut:].tolist()
    assert load_calibration(arm / "m2").provenance.logs[0].samples == cut


def test_another_gravity(arm: Path) -> None:
    """One with the same parameters is used; others come from the consistent bodies, which need the scale of gains."""
    data, out = ("--data", arm / "ours.csv"), ("--out", arm / "g.csv")
    calibrate = ("calibrate", "--model", arm / "rd", *data, *GRAVITY, "--out-calibrated-model", arm / "g", "--quiet")
    done(*calibrate)
    done("predict", "--model", arm / "g", *data, "--gravity", 0, 0, 9.81, *out)
    assert "known gains" in refused("predict", "--model", arm / "g", *data, "--gravity", 9.81, 0, 0, *out)
    done(*calibrate, "--gains", 10, 10)
    other = run("predict", "--model", arm / "g", *data, "--gravity", 9.81, 0, 0, *out)
    assert "not determined by the training data, from the physically consistent bodies" in other.err


def test_older_spellings(arm: Path) -> None:
    result = run("compile-rbd", "--mdh", arm / "mdh.csv", *GRAVITY, "--out", arm / "x", "--plot")
    assert (result.code, result.err.count("note:")) == (0, 2)
    old = ("--friction-load-model", "none", "--friction-viscous-powers", 1)
    done("compile-rd", "--model-rbd", arm / "x", *old, "--out", arm / "y")


def test_a_table_may_state_its_convention(tmp_path: Path) -> None:
    (tmp_path / "dh.csv").write_text("# convention: mdh\nd,a,alpha\n0,0.5,0\n")
    done("compile-rbd", "--mdh", tmp_path / "dh.csv", "--out", tmp_path / "rbd")
    assert json.loads((tmp_path / "rbd").read_text())["robot"]["joints"][0]["translation"] == [0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not a JSON document"),
        ("[1, 2]", "not the file that compile-rd wrote"),
        ('{"format": "jointwise rigid-body description", "schema": 1}', "not the file that compile-rd wrote"),
        ('{"format": "jointwise robot model", "schema": 2}', "schema 2, but this version reads schema 1"),
        ('{"format": "jointwise robot model", "schema": 1}', "'robot' is missing"),
        ('{"format": "jointwise robot model", "schema": 1, "robot": {}, "friction": 3}', "robot: 'name' is missing"),
        ("\x80\x04pickle", "not a JSON document"),
    ],
)
def test_wrong_model_files(arm: Path, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "f").write_bytes(content.encode("latin-1"))
    out = ("--out-calibrated-model", tmp_path / "m")
    assert words in refused("calibrate", "--model", tmp_path / "f", "--data", arm / "data.csv", *GRAVITY, *out)
    assert not (tmp_path / "m").exists()


def test_wrong_friction_in_a_file(arm: Path, tmp_path: Path) -> None:
    document = json.loads((arm / "rd").read_text())
    document["friction"]["torque_model"] = "cubic"
    (tmp_path / "f").write_text(json.dumps(document))
    out = ("--out-calibrated-model", tmp_path / "m")
    assert "friction.torque_model must be one of" in refused(
        "calibrate", "--model", tmp_path / "f", "--data", arm / "data.csv", *out
    )
    assert "no such file" in refused("compile-rbd", "--mdh", tmp_path / "none.csv", "--out", tmp_path / "o")
    assert "no such file" in refused(
        "compile-rd", "--model-rbd", tmp_path / "none", "--friction-torque-model", "none",
        "--friction-viscous-powers", 1, "--out", tmp_path / "o",
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("truth", ["square", "absolute"])
def test_one_link_under_varying_load(tmp_path: Path, truth: str) -> None:
    """AURT's paper: without load dependence the error is at least twice that of square and absolute."""
    robot = jointwise.load_robot("planar1")
    friction = JointFriction(2.0, {"square": 0.006, "absolute": 0.25}[truth], 1.5, 0.0)
    heavy = np.array([[2.0, 0, 0, 2.0, 0, 2.0, 4.0, 0, 0, 8.0]])
    for name, seed in (("training", 1), ("unseen", 2)):
        motion = fourier_trajectory(robot, 40.0, seed, amplitude=3.0, base_frequency=0.05)
        made = synthetic_log(
            robot, motion, seed=seed, rate=250.0, inertials=heavy, rotor_inertias=[0.0], friction=friction,
            hysteresis=False, load_dependence=truth,
        )  # fmt: skip
        write_csv(made.log, tmp_path / f"{name}.csv")
    errors = {}
    for load in ("none", "square", "absolute"):
        model = compiled(tmp_path, "d,a,alpha\n0,0,0\n", load)
        flags = ("--gravity", 0, -9.81, 0, "--out-calibrated-model", tmp_path / "m", "--quiet")
        done("calibrate", "--model", model, "--data", tmp_path / "training.csv", *flags)
        errors[load] = validate(load_calibration(tmp_path / "m"), read_log(tmp_path / "unseen.csv")).joints[0].mse
    assert errors["none"] > 2.0 * errors["square"]
    assert errors["none"] > 2.0 * errors["absolute"]


@pytest.mark.thorough
@needs_shared
@pytest.mark.parametrize(("load", "powers"), [("none", (1,)), ("square", (1, 2, 3)), ("absolute", (1, 2, 3))])
def test_real_logs_better_than_aurts_own_treatment(tmp_path: Path, load: str, powers: tuple[int, ...]) -> None:
    model = compiled(tmp_path, UR10E_MDH, load, *powers)
    plain = ("--direction", "sign", "--position-cutoff", 40, "--parallel-cutoff", 20, "--lag", 0, "--gains", *[1] * 6)
    unseen = read_log(UR10E / "id_20_02_05_20sec_8harm.csv")
    figures = []
    for flags in ((), plain):
        out = ("--out-calibrated-model", tmp_path / "m", "--quiet")
        done("calibrate", "--model", model, "--data", TRAINING, *GRAVITY, *out, *flags)
        figures.append(validate(load_calibration(tmp_path / "m"), unseen).mean_r2)
    assert figures[0] > 0.965
    assert figures[0] > figures[1]
