"""From log to model to proof on the command line: what every command prints and writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import jointwise
from cli_runs import PLAIN, bench, done, refused, run, settings_for
from jointwise.data import read_log
from jointwise.result import load_calibration, validate

METRICS = {"mse", "rmse", "nmse", "nrmse_percent", "r2", "max", "mean"}


def test_calibrate_selects_and_reports(tmp_path: Path) -> None:
    files, model = bench(), tmp_path / "model.json"
    out = done(
        "calibrate",
        files.training,
        "--robot",
        "planar2",
        "--output",
        model,
        "--validate",
        files.unseen,
        "--holdout",
        0.2,
    )
    assert "training error (not a validation)" in out
    assert out.count("validation error") == 2
    assert f"model: {model}" in out
    stored = load_calibration(model)
    assert {choice.question for choice in stored.choices} >= {"lag of the output", "viscous powers", "load dependence"}
    assert len(stored.validation) == 2
    assert stored.provenance.logs[0].samples == round(0.8 * read_log(files.training).samples)


def test_flags_fix_their_choice_and_leave_the_rest_free(tmp_path: Path) -> None:
    def fit(*flags: object) -> dict[str, object]:
        out = done("calibrate", bench().training, "--robot", "planar2", "--output", tmp_path / "m", "--json", *flags)
        result: dict[str, object] = json.loads(out)
        return result

    fitted = fit("--viscous-powers", 1, 2, 3, "--lag", 0, "--stribeck", 0.1)
    questions = {choice["question"] for choice in fitted["choices"]}
    assert fitted["structure"]["powers"] == [1.0, 2.0, 3.0]
    assert fitted["structure"]["stribeck"] == 0.1
    assert fitted["filters"]["lag"] == 0.0
    assert not questions & {"viscous powers", "Stribeck velocity", "lag of the output"}
    assert questions >= {"direction of dry friction", "load dependence", "position cut-off"}
    fitted = fit(
        "--direction", "hysteresis", "--load", "square", "--position-cutoff", 10, "--no-ripple", "--relaxation", 2
    )
    assert fitted["structure"]["relaxation"] == 2.0
    assert fitted["structure"]["drivers"] == ["q", "track"]
    assert (fitted["structure"]["load"], fitted["structure"]["ripple"]) == ("square", 0.0)
    fitted = fit(
        "--power-flow", "--ripple", "--no-rotors", "--method", "huber", "--parallel-cutoff", 20, "--decimation", 2
    )
    assert fitted["structure"]["power_flow"]
    assert fitted["structure"]["ripple"] == pytest.approx(0.01, rel=0.1)
    assert fitted["filters"]["parallel_cutoff"] == 20.0
    fitted = fit(*PLAIN, "--gains", 9, 11, "--load-basis", "row-sum", "--mounting", "tilt:x:0")
    assert (fitted["gains"], fitted["gain_source"]) == ([9.0, 11.0], "given")
    assert fitted["payload"] is None


def test_a_payload_is_reported_and_stays_in_the_model(tmp_path: Path) -> None:
    words = ("calibrate", bench().training, "--robot", "planar2", "--output", tmp_path / "m", *PLAIN)
    assert "the parameters include the payload: 2 kg at 0, 0, 0.1 m" in done(*words, "--payload", "2,0,0,0.1")
    assert load_calibration(tmp_path / "m").provenance.payload == (2.0, 0.0, 0.0, 0.1)
    wrong = run(*words, "--payload", "2,0")
    assert wrong.code == 2
    assert "must be a mass or mass,x,y,z. Got '2,0' instead" in wrong.err


def test_elements_select_a_power_law_with_a_scale_for_each_joint(tmp_path: Path) -> None:
    words = ("calibrate", bench().training, "--robot", "planar2", "--output", tmp_path / "m.json", "--json")
    fitted = json.loads(done(*words, "--elements", 4, "--load", "none", "--relaxation", 0))
    assert fitted["structure"]["direction"] == "hysteresis"
    assert fitted["structure"]["limits"] == pytest.approx([5e-3 * (i / 4) ** 4 for i in (1, 2, 3, 4)])
    assert len(fitted["structure"]["scales"]) == 2
    assert fitted["choices"][-1]["question"] == "scale of hysteresis, joint by joint"
    wrong = run(*words, "--elements", 0)
    assert wrong.code == 2
    assert "--elements: must be a whole number > 0. Got '0' instead" in wrong.err


def test_options_may_stand_between_the_files(tmp_path: Path) -> None:
    files = bench()
    done(
        "calibrate", "--robot", "planar2", files.training, "--output", tmp_path / "m.json", "--quiet", *PLAIN,
        "--lag", 0, files.unseen,
    )  # fmt: skip
    assert len(load_calibration(tmp_path / "m.json").provenance.logs) == 2


def test_logs_for_validation_may_be_given_by_several_options() -> None:
    for words in (["--validate", "a", "--validate", "b"], ["--validate", "a", "b"]):
        assert settings_for("calibrate", "log.csv", "--robot", "ur5e", *words).validate == ("a", "b")


def test_a_description_without_inertia_is_enough(tmp_path: Path) -> None:
    table = tmp_path / "arm.csv"
    table.write_text("# convention: dh\na,alpha,d\n0.5,0,0\n0.5,0,0\n")
    flags = ("--gravity", 0, -9.81, 0, "--output", tmp_path / "m", "--validate", bench().unseen, *PLAIN)
    out = json.loads(done("calibrate", bench().training, "--robot", table, "--json", *flags))
    assert "scale unknown" in out["gain_source"]
    assert out["validation"][0]["mean_r2"] > 0.9


def test_validate_json_is_the_contract() -> None:
    found = json.loads(done("validate", bench().model, bench().unseen, "--json"))
    expected = validate(load_calibration(bench().model), read_log(bench().unseen))
    assert len(found["joints"]) == len(found["moving"]["joints"]) == 2
    for joint, moving in zip(found["joints"], found["moving"]["joints"], strict=True):
        assert set(joint) >= METRICS
        assert set(joint["moving"]) >= METRICS
        assert joint["moving"] == moving
        assert joint["rmse"] == pytest.approx(joint["mse"] ** 0.5)
        assert joint["r2"] == pytest.approx(1 - joint["nmse"])
    assert found["mean_nmse"] == expected.mean_nmse


def test_validate_text_and_limit() -> None:
    files = bench()
    text = done("validate", files.model, files.unseen)
    assert "moving" in text
    assert "mean over the joints" in text
    assert run("validate", files.model, files.unseen, "--min-r2", 0.5).code == 0
    missed = run("validate", files.model, files.unseen, "--min-r2", 0.99999)
    assert missed.code == 1
    assert "failed validation" in missed.err
    assert "training errors, not a validation" in run("validate", files.model, files.training).err


def test_validate_on_standstill(tmp_path: Path) -> None:
    log = tmp_path / "still.csv"
    rows = "".join(f"{0.01 * k:.2f},0.3,0.4,{1 + k % 2},2\n" for k in range(300))
    log.write_text("t,q1,q2,i1,i2\n" + rows)
    found = json.loads(done("validate", bench().model, log, "--json"))
    assert found["moving"]["joints"] == [None, None]
    assert (found["mean_r2"], found["reason"]) == (None, "no joint moves: there is no R2")
    for joint in found["joints"]:
        assert (joint["r2"], joint["nmse"]) == (None, None)
        assert "does not move" in joint["reason"]
        assert abs(joint["offset"]) <= joint["rmse"] * (1.0 + 1e-12)
    text = done("validate", bench().model, log)
    assert "at rest" in text
    assert "moving" not in text
    failed = run("validate", bench().model, log, "--min-r2", 0.5)
    assert (failed.code, "no joint moves" in failed.err) == (1, True)


def test_a_limit_does_not_judge_a_joint_at_rest(tmp_path: Path) -> None:
    header, *rows = bench().unseen.read_text().split()
    columns = header.split(",")
    held = columns.index("q2")
    log = tmp_path / "half.csv"
    kept = [k for k, name in enumerate(columns) if not name.startswith("qd")]
    first = rows[0].split(",")[held]
    lines = [[cell if k != held else first for k, cell in enumerate(row.split(","))] for row in rows]
    log.write_text("\n".join(",".join(line[k] for k in kept) for line in [columns, *lines]) + "\n")
    found = json.loads(run("validate", bench().model, log, "--json", "--min-r2", -100).out)
    assert found["passed"]
    assert found["joints"][0]["reason"] is None
    assert found["joints"][1]["still"]


def test_compare_ranks_at_rest_by_rmse(tmp_path: Path) -> None:
    document = json.loads(bench().model.read_text())
    offset = next(row for row in document["parameters"] if row["name"].startswith("offset") or row["joint"] == 1)
    offset["value"] += 50.0
    poor, log = tmp_path / "poor.json", tmp_path / "still.csv"
    poor.write_text(json.dumps(document))
    log.write_text("t,q1,q2,i1,i2\n" + "".join(f"{0.01 * k:.2f},0.3,0.4,0.1,{k % 2}\n" for k in range(300)))
    ranking = json.loads(done("compare", poor, bench().model, log, "--json"))["ranking"]
    assert [row["model"] for row in ranking] == [str(bench().model), str(poor)]
    assert ranking[0]["reason"] == "no joint moves: there is no R2"
    assert "ranked by the RMSE" in done("compare", poor, bench().model, log)


def test_predict_at_the_stamps_of_the_log(tmp_path: Path) -> None:
    files, target = bench(), tmp_path / "predicted.csv"
    done("predict", files.model, files.unseen, "--output", target)
    with target.open() as file:
        rows = list(csv.reader(file))
    log = read_log(files.unseen)
    assert rows[0] == ["t", "i1_pred", "i2_pred"]
    values = np.array(rows[1:], dtype=float)
    assert np.array_equal(values[:, 0], log.t)
    stamps = [float(line.partition(",")[0]) for line in files.unseen.read_text().split()[1:]]
    assert [float(row[0]) for row in rows[1:]] == stamps
    assert np.array_equal(values[:, 1:], load_calibration(files.model).predict(log))


def test_predict_names_the_columns_as_the_log_does(tmp_path: Path) -> None:
    text, target = bench().unseen.read_text(), tmp_path / "predicted.csv"
    renamed = tmp_path / "log.csv"
    renamed.write_text(text.replace("i1,i2", "actual_current_0,actual_current_1", 1))
    done("predict", bench().model, renamed, "--output", target, "--quiet")
    assert target.read_text().startswith("t,actual_current_0_pred,actual_current_1_pred\n")
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(",".join(line.split(",")[:3]) + "\n" for line in text.split()))
    done("predict", bench().model, bare, "--output", target)
    assert target.read_text().startswith("t,i1_pred,i2_pred\n")


def test_predict_notes_a_missing_speed(tmp_path: Path) -> None:
    text, bare = bench().unseen.read_text(), tmp_path / "bare.csv"
    bare.write_text("".join(",".join(line.split(",")[:3]) + "\n" for line in text.split()))
    model = tmp_path / "m.json"
    done("calibrate", bench().training, "--robot", "planar2", "--output", model, "--quiet", *PLAIN, "--ripple")
    notes = run("predict", model, bare, "--output", tmp_path / "p.csv").err
    assert "no measured speed" in notes
    assert "From positions only, MSE/variance was" in notes
    assert "feed-forward (from positions only)" in done("validate", model, bench().unseen)


def test_no_sample_is_missing_between_gaps_and_twins(tmp_path: Path) -> None:
    lines = bench().unseen.read_text().split()
    holed = tmp_path / "holed.csv"
    holed.write_text("\n".join([*lines[:500], lines[499], *lines[800:]]) + "\n")
    target = tmp_path / "p.csv"
    done("predict", bench().model, holed, "--output", target)
    predicted, logged = ([line.partition(",")[0] for line in file.read_text().split()[1:]] for file in (target, holed))
    assert list(map(float, predicted)) == list(map(float, logged))


def test_compare_ranks(tmp_path: Path) -> None:
    poor = tmp_path / "poor.json"
    done(
        "calibrate", bench().training, "--robot", "planar2", "--output", poor, "--quiet", *PLAIN, "--lag", 0.1,
        "--position-cutoff", 1, "--accept-implausible",
    )  # fmt: skip
    out = done("compare", poor, bench().model, bench().unseen)
    assert out.index(str(bench().model)) < out.index(str(poor))
    ranking = json.loads(done("compare", poor, bench().model, bench().unseen, "--json"))["ranking"]
    assert [row["model"] for row in ranking] == [str(bench().model), str(poor)]
    assert ranking[0]["mean_nmse"] < ranking[1]["mean_nmse"]
    assert not ranking[0]["seen"]
    assert json.loads(run("compare", poor, bench().model, bench().training, "--json").out)["ranking"][0]["seen"]


def test_report_knows_the_training_log(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("jointwise.report")
    out = done("report", bench().model, bench().training, bench().unseen, "--output", tmp_path / "r")
    assert "1 training, 0 partly training, 1 held-out logs" in out
    assert "<html" in Path(out.rpartition(":")[0]).read_text(encoding="utf-8").lower()


def test_calibrate_writes_a_report(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("jointwise.report")
    flags = ("--output", tmp_path / "m.json", "--report", tmp_path / "r", "--holdout", 0.3, *PLAIN)
    out = done("calibrate", bench().training, "--robot", "planar2", *flags)
    assert "report: " in out
    assert list((tmp_path / "r").glob("*.html"))
    out = done("report", tmp_path / "m.json", bench().unseen, "--output", tmp_path / "page.html")
    assert (tmp_path / "page.html").is_file()
    assert out.startswith(str(tmp_path / "page.html"))


def test_joint_values_without_joint_files_are_rejected(tmp_path: Path) -> None:
    flags = ("--robot", "planar2", "--joint-as", "known", "--output", tmp_path / "m.json")
    answer = run("calibrate", bench().training, *flags)
    assert answer.code == 2
    assert "--joint-as is for the joint files of --joint" in answer.err


def test_inspect_lists_the_parameters_that_a_log_determines(tmp_path: Path) -> None:
    text = done("inspect", bench().training, "--robot", "planar2")
    assert "verdict: good" in text
    found = json.loads(done("inspect", bench().training, "--robot", "planar2", "--json"))
    assert found["verdict"] == "good"
    assert found["parameters"]["without_effect"] == []
    assert {"FC0_1", "Fv1_2"} <= set(found["parameters"]["determined"])
    lines = [line.split(",") for line in bench().training.read_text().split()]
    first = lines[1]
    still = tmp_path / "still.csv"  # the second joint stands, but for noise
    rows = [[r[0], r[1], repr(float(first[2]) + 1e-5 * (k % 3)), r[3], "0", *r[5:]] for k, r in enumerate(lines[1:])]
    still.write_text("\n".join(",".join(row) for row in [lines[0], *rows]) + "\n")
    result = run("inspect", still, "--robot", "planar2", "--json")
    found = json.loads(result.out)
    assert result.code == 0
    assert found["verdict"] == "usable"
    assert {"FC0_2", "Fv1_2"} <= set(found["parameters"]["without_effect"])
    assert "without effect here" in run("inspect", still, "--robot", "planar2").out


def test_inspect_refuses_with_one(tmp_path: Path) -> None:
    assert "the log has 2 joints" in refused("inspect", bench().training, "--robot", "ur5e", "--json")
    rows = bench().training.read_text().splitlines(keepends=True)
    (tmp_path / "short.csv").write_text("".join(rows[:12]))
    result = run("inspect", tmp_path / "short.csv", "--robot", "planar2", "--json")
    assert result.code == 1
    assert json.loads(result.out)["verdict"] == "refused"


def test_inspect_is_a_public_call_with_the_same_result() -> None:
    result = jointwise.inspect(read_log(bench().training), jointwise.load_robot("planar2"))
    assert result.identifiability is not None
    assert set(result.identifiability.known.values()) <= {"alone", "combination"}
    assert result.identifiability.condition > 1.0
    assert result.summary() + "\n" == done("inspect", bench().training, "--robot", "planar2")


def test_wrong_usage_leaves_with_two(tmp_path: Path) -> None:
    log, model = bench().training, bench().model
    for argv in (
        ("calibrate", "--robot", "planar2", "--output", "m"),
        ("calibrate", log, "--output", "m"),
        ("calibrate", log, "--robot", "planar2"),
        ("calibrate", log, "--robot", "planar2", "--model", "f", "--output", "m"),
        ("calibrate", log, "--robot", "planar2", "--output", "m", "--holdout", "1.5"),
        ("calibrate", log, "--robot", "planar2", "--output", "m", "--power-flow", "--load", "square"),
        ("calibrate", log, "--robot", "planar2", "--output", "m", "--position-cutoff", "nan"),
        ("calibrate", log, "--robot", "planar2", "--output", "m", "--mounting", "wall", "--gravity", 0, 0, 1),
        ("validate", model),
        ("predict", model, log),
        ("predict", model, "--output", "p"),
        ("predict", model, log, log, "--output", "p"),
        ("predict", model, log, "--output", "p", "--out", "p"),
        ("compare", model, log),
        ("compare", model, model, log),
        ("report", model, log),
        ("compile-rd", "--model-rbd", "f", "--friction-torque-model", "cubic", "--out", "g"),
        ("calibrate-validate", "--model", "f", "--data", log, "--calibration-data-rel", 7),
    ):
        result = run(*argv)
        assert (result.code, result.out) == (2, ""), argv
        assert result.err.startswith(f"jointwise {argv[0]}: ") and result.err.count("\n") == 1, argv


def test_ripple_needs_a_speed(tmp_path: Path) -> None:
    lines = bench().training.read_text().split()
    log = tmp_path / "log.csv"
    log.write_text("".join(",".join([*line.split(",")[:3], *line.split(",")[5:]]) + "\n" for line in lines))
    argv = ("calibrate", log, "--robot", "planar2", "--output", tmp_path / "m", "--ripple")
    assert "no measured speed" in refused(*argv)


def test_a_temperature_that_no_term_uses_is_noted(tmp_path: Path) -> None:
    words = ("calibrate", bench().training, "--robot", "planar2", "--output", tmp_path / "m.json", *PLAIN)
    assert "no term of the model depends on temperature" in run(*words, "--temperature", 30).err
    assert "temperature" not in run(*words).err
