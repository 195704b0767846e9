"""Outputs that were not measured or are useless: declared, NaN columns, or found by the inspection."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import jointwise as jw
from cli_runs import run
from jointwise.data import useless_outputs, write_log
from jointwise.errors import DataError, ImplausibleError
from jointwise.estimation.structure import Structure
from jointwise.options import Options
from jointwise.result.plausibility.channels import check_resolution, check_saturation, check_zeros
from synthetic import synthetic_log

QUICK = Options(structure=Structure(), free=(), position_cutoff=8.0, lag=0.0)
LOST = [1, 4]


@pytest.fixture(scope="module")
def robot():
    return jw.load_robot("ur5e")


@pytest.fixture(scope="module")
def logs(robot):
    return [synthetic_log(robot, duration=12, rate=100, seed=seed).log for seed in (1, 2)]


def with_output(log, joint, values):
    """Return a log in which the current of a joint is something else."""
    current = np.array(log.current)
    current[:, joint] = values
    return replace(log, current=current)


def test_the_other_joints_are_calibrated_as_before(robot, logs):
    train, test = (replace(log, torque=None) for log in logs)
    whole = jw.calibrate(train, robot, options=QUICK)
    model = jw.calibrate(train.ignore_output(LOST), robot, options=QUICK)
    assert model.ignored == (1, 4)
    errors, reference = jw.validate(model, test), jw.validate(whole, test)
    for j in range(6):
        assert errors.joints[j].ignored == (j in LOST)
        if j not in LOST:
            assert errors.joints[j].nmse < 1.3 * reference.joints[j].nmse + 1e-4
    assert np.isnan(model.predict(test)[:, LOST]).all()
    lost = [name for name in model.undetermined() if name.endswith(("_2", "_5"))]
    assert len(lost) == sum(info.joint in LOST for info in model.model.parameters)


def test_the_rotor_of_an_ignored_joint_stays_at_its_description(robot, logs):
    model = jw.calibrate(replace(logs[0], torque=None).ignore_output([2]), robot, options=QUICK)
    assert model.physical.rotor_share[2] < 0.01
    assert model.physical.rotor_inertias[2] == pytest.approx(robot.rotor_inertias[2], rel=0.02)


def test_a_joint_that_one_log_measured_is_calibrated_from_it(robot, logs):
    train, test = (replace(log, torque=None) for log in logs)
    model = jw.calibrate([train.ignore_output([2]), test], robot, options=QUICK)
    assert model.ignored == ()
    assert jw.validate(model, train).joints[2].r2 > 0.9


@pytest.mark.thorough
def test_garbage_in_an_ignored_output_has_no_effect(robot, logs):
    train = replace(logs[0], torque=None)
    noise = np.random.default_rng(5).normal(scale=30.0, size=train.samples)
    a, b = (jw.calibrate(log.ignore_output([3]), robot, options=QUICK) for log in (train, with_output(train, 3, noise)))
    assert np.array_equal(a.estimate.values, b.estimate.values)
    worse = jw.calibrate(with_output(train, 3, noise), robot, options=QUICK)
    assert worse.training.nmse[3] > 0.3


def test_saved_models_remember(tmp_path, robot, logs):
    model = jw.calibrate(replace(logs[0], torque=None).ignore_output(LOST), robot, options=QUICK)
    jw.save_model(model, tmp_path / "model.json")
    again = jw.load_calibration(tmp_path / "model.json")
    assert again.ignored == (1, 4)
    assert np.array_equal(again.predict(logs[1]), model.predict(logs[1]), equal_nan=True)


def csv_with(path, log, joint, text):
    """Write a log as CSV in which the current of a joint is a text."""
    write_log(replace(log, torque=None), path)
    lines = path.read_text().splitlines()
    column = lines[0].split(",").index(f"i{joint + 1}")
    rows = [line.split(",") for line in lines]
    for row in rows[1:]:
        row[column] = text
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    return path


def test_columns_without_values_are_ignored(tmp_path, logs):
    log = jw.read_log(csv_with(tmp_path / "a.csv", logs[0], 4, "nan"))
    assert log.unmeasured("current").tolist() == [False] * 4 + [True, False]
    assert "i5 has no values: this output is ignored" in log.origin.notes


def test_holes_are_refused_unless_ignored(tmp_path, logs):
    path = csv_with(tmp_path / "a.csv", logs[0], 4, "1.0")
    path.write_text(path.read_text().replace("1.0", "nan", 1))
    with pytest.raises(DataError, match="row 2, column 'i5' is missing"):
        jw.read_log(path)
    assert jw.read_log(path, ignore_output=[4]).unmeasured("current").sum() == 1


@pytest.mark.parametrize("values", [0.0, "coarse"])
def test_inspection_finds_useless_outputs(logs, values):
    log = replace(logs[0], torque=None)
    broken = with_output(log, 5, np.round(log.current[:, 5] / 0.8) * 0.8 if values == "coarse" else values)
    assert useless_outputs(log) == ()
    assert useless_outputs(broken) == (5,)


def test_command_line(tmp_path, robot, logs):
    zeros = csv_with(tmp_path / "zeros.csv", logs[0], 4, "0.0")
    test = csv_with(tmp_path / "test.csv", logs[1], 4, "nan")
    arguments = ["--robot", "ur5e", "--output", str(tmp_path / "model.json"), "--direction", "tanh", "--load", "none"]
    refused = run("calibrate", zeros, *arguments)
    assert refused.code == 1
    assert "i5 is constant" in refused.err
    assert "--ignore-output 5" in refused.err
    for option in ("5", "auto"):
        assert run("calibrate", zeros, *arguments, "--ignore-output", option, "--report", tmp_path / option).code == 0
    shown = run("validate", tmp_path / "model.json", test, test, "--min-r2", "0.9", "--json")
    assert shown.code == 0
    document = json.loads(shown.out)
    assert [log["joints"][4]["ignored"] for log in document["logs"]] == [True, True]
    text = run("validate", tmp_path / "model.json", test, test).out
    assert "joint 5: the output was not measured" in text
    assert "all 2 logs" in text
    assert run("predict", tmp_path / "model.json", test, "--output", tmp_path / "p.csv").code == 0
    wrong = run("calibrate", zeros, *arguments, "--ignore-output", "9")
    assert wrong.code == 1
    assert "an ignored joint must be from 1 to 6. Got 9." in wrong.err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("lost", [(0,), (5,), (1, 3)])
def test_outputs_of_listed_joints_need_no_columns(robot, logs, tmp_path, lost, ending):
    log, path = replace(logs[0], torque=None), tmp_path / f"log.{ending}"
    frame = pd.DataFrame({"t": log.t, **{f"q{j + 1}": log.q[:, j] for j in range(6)}})
    for j in sorted({*range(6)} - {*lost}):
        frame[f"i{j + 1}"] = log.current[:, j]
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    with pytest.raises(DataError, match="--ignore-output"):
        jw.read_log(path, joints=robot)
    found = jw.read_log(path, joints=robot, ignore_output=lost)
    assert np.array_equal(found.current, log.ignore_output(lost).current, equal_nan=True)
    assert found.names["current"] == tuple(f"i{j + 1}" for j in range(6))
    for other in ([2], [4], [0] if lost != (0,) else [5]):
        with pytest.raises(DataError, match="--ignore-output"):
            jw.read_log(path, joints=robot, ignore_output=other)


def test_missing_values_of_a_measured_joint_are_refused_beside_a_joint_without_column(robot, logs, tmp_path):
    log = replace(logs[0], torque=None)
    frame = pd.DataFrame({"t": log.t, **{f"q{j + 1}": log.q[:, j] for j in range(6)}})
    frame = frame.assign(**{f"i{j + 1}": log.current[:, j] for j in range(1, 6)})
    frame.loc[7, "i2"] = np.nan  # the first column of the outputs
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(DataError, match="column 'i2' is missing"):
        jw.read_log(tmp_path / "log.csv", joints=robot, ignore_output=[0], needed=("current",))


def test_few_levels_are_named_as_such_and_not_as_limits(logs):
    coarse = np.sign(logs[0].current[:, 5])
    found = jw.inspect(with_output(replace(logs[0], torque=None), 5, coarse)).quality.findings
    codes = {f.code for f in found if f.joint == 5 and f.channel == "current"}
    assert "coarse-output" in codes
    assert not codes & {"saturated", "current-limit"}


@pytest.mark.parametrize(("levels", "severity"), [(3, "error"), (5, "warning"), (11, None)])
def test_calibration_names_few_levels_and_not_dropped_samples(robot, logs, levels, severity):
    step = np.ptp(logs[0].current[:, 5]) / (levels - 1)
    log = with_output(replace(logs[0], torque=None), 5, step * np.round(logs[0].current[:, 5] / step))
    found = {check.subject: check for check in check_resolution([log], "current")}
    assert check_zeros([log], "current").severity == "ok"
    assert check_saturation([log], "current").severity == "ok"
    assert (found["resolution"].severity if found else None) == severity
    assert not list(check_resolution([log, logs[1]], "current"))  # the second log has enough levels
    assert all("--ignore-output 6" in check.advice for check in found.values())
    if severity == "error":
        with pytest.raises(ImplausibleError, match=r"the output is too coarse: i6 .*--ignore-output 6"):
            jw.calibrate(log, robot, options=QUICK)
