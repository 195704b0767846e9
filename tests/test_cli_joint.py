"""jointwise joint: one phenomenon a command, all at once, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

import jointwise
from cli_runs import done, refused, run
from jointwise.cli.joint_logs import split_word
from jointwise.data import Log, write_log
from jointwise.errors import DataError
from jointwise.joint import joint_record, load_joints

UR5E = ("--robot", "ur5e", "--joint", 2)
VERTICAL = ("--gravity", 0, 9.80665, 0)


@lru_cache(maxsize=1)
def folder() -> Path:
    return Path(mkdtemp())


@lru_cache(maxsize=8)
def log_of(experiment: str, duration: float | None) -> str:
    path = folder() / f"{experiment}.parquet"
    jointwise.simulate("ur5e", experiment, joint=1, duration=duration, rate=250.0, seed=1, keep=0).write(path)
    return str(path)


def speeds() -> str:
    return log_of("constant-speed", 60.0)


def slow() -> str:
    return log_of("load", 80.0)


def locked() -> str:
    return log_of("locked", None)


def test_a_command_prints_its_numbers_and_writes_the_file(tmp_path: Path) -> None:
    text = done("joint", "friction", speeds(), *UR5E, *VERTICAL, "--output", tmp_path / "joint.json")
    assert "F_C" in text
    assert "held out" in text
    (model,) = load_joints(tmp_path / "joint.json")
    part = model.parts["friction"]
    assert (model.robot, model.joint) == ("ur5e", 1)
    assert part.value("F_C").covers(10.0)
    assert part["F_V1"] == pytest.approx(10.0, rel=0.05)


def test_json_holds_the_same_numbers_as_the_file(tmp_path: Path) -> None:
    out = tmp_path / "joint.json"
    reported = json.loads(done("joint", "friction", speeds(), *UR5E, *VERTICAL, "--output", out, "--json"))
    assert (
        reported["parts"]["friction"] == json.loads(out.read_text(encoding="utf-8"))["joints"][0]["parts"]["friction"]
    )
    assert reported["joint"] == 2
    assert reported["refused"] == {}
    assert reported["files"] == {"output": str(out), "report": None}


def test_phenomena_add_up_in_one_file_and_help_each_other(tmp_path: Path) -> None:
    out = tmp_path / "joint.json"
    done("joint", "friction", speeds(), *UR5E, *VERTICAL, "--output", out)
    text = done("joint", "load", slow(), *UR5E, "--output", out, "--report", tmp_path / "page.html")
    assert "according to the velocity law" in text
    (model,) = load_joints(out)
    assert list(model.parts) == ["friction", "load"]
    assert model.parts["load"].value("F_l").covers(10.0 * 2.0 / 150.0**2)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Friction over speed" in page
    assert "Friction over load" in page


def test_all_tries_every_log_and_reports_what_none_could_identify(tmp_path: Path) -> None:
    words = [f"{locked()}@0,9.80665,0", f"friction={speeds()}@0,9.80665,0", f"load={slow()}"]
    result = run("joint", "all", *words, *UR5E, "--output", tmp_path / "joint.json")
    assert result.code == 0, result.err
    (model,) = load_joints(tmp_path / "joint.json")
    assert {"stiffness", "friction", "load"} <= set(model.parts)
    assert "temperature" not in model.parts
    assert "note: temperature:" in result.err
    assert model.parts["stiffness"]["a_1"] == pytest.approx(15000.0, rel=0.05)


def test_all_says_in_one_line_why_a_phenomenon_is_not_there(tmp_path: Path) -> None:
    result = run("joint", "all", locked(), speeds(), slow(), *UR5E, "--json")
    notes = [line.split("note: ")[1] for line in result.err.splitlines() if "not fitted" in line]
    refused = json.loads(result.out)["refused"]
    assert [note.split(":")[0] for note in notes] == list(refused)
    assert "temperature" in refused
    assert all(note.endswith(refused[note.split(":")[0]][0]) for note in notes)


def test_all_separates_new_results_from_known_ones(tmp_path: Path) -> None:
    out = tmp_path / "joint.json"
    done("joint", "load", slow(), *UR5E, "--output", out)
    words = ("joint", "all", f"friction={speeds()}", *UR5E, "--output", out)
    reported = json.loads(done(*words, "--json"))
    assert reported["found"] == ["friction"]
    assert list(reported["parts"]) == ["friction", "load"]
    text = done(*words)
    assert "joint 2, friction:" in text
    assert f"from {speeds()}" in text
    assert "joint 2, load:" not in text
    assert "known before, unchanged: load" in text


def test_a_name_that_is_no_phenomenon_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "log.csv").touch()
    for word in (f"foo={tmp_path / 'log.csv'}", f"foo={tmp_path / 'log.csv'}@wall"):
        result = run("joint", "all", word, *UR5E)
        assert result.code == 2
        assert "one of stiffness, transmission, friction" in result.err
        assert "'foo'" in result.err
    assert "no such file" in run("joint", "all", "foo=none.csv", *UR5E).err


def test_all_once_more_takes_the_new_numbers(tmp_path: Path) -> None:
    """What was known before is replaced, and a refusal beside it does not throw it away."""
    out, words = tmp_path / "joint.json", ("joint", "all", speeds(), *UR5E, *VERTICAL)
    done(*words, "--gain", 10, "--output", out)
    (before,) = load_joints(out)
    result = run(*words, "--gain", 20, "--output", out)
    assert result.code == 0, result.err
    assert "note: temperature:" in result.err
    (after,) = load_joints(out)
    assert set(after.parts) == set(before.parts)
    assert after.parts["friction"]["F_C"] == pytest.approx(2.0 * before.parts["friction"]["F_C"], rel=0.01)


def test_all_rejects_logs_without_a_new_result(tmp_path: Path) -> None:
    out = tmp_path / "joint.json"
    done("joint", "friction", speeds(), *UR5E, *VERTICAL, "--output", out)
    before = out.read_bytes()
    refused("joint", "all", f"temperature={slow()}", *UR5E, "--output", out)
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("word", "reported"),
    [
        ("run@home.csv", (None, "run@home.csv", None)),
        ("friction=run@home.csv", ("friction", "run@home.csv", None)),
        ("run@home.csv@wall", (None, "run@home.csv", "wall")),
        ("load=run@home.csv@0,0,-9.81", ("load", "run@home.csv", [0.0, 0.0, -9.81])),
        ("plain.csv@tilt:x:30", (None, "plain.csv", "tilt:x:30")),
        ("plain.csv@wall", (None, "plain.csv", "wall")),
        ("odd.csv@wall", (None, "odd.csv@wall", None)),
        ("load=odd.csv", (None, "load=odd.csv", None)),
        ("none@home.csv", (None, "none@home.csv", None)),
    ],
)
def test_a_file_may_have_any_name(
    word: str, reported: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run@home.csv", "plain.csv", "odd.csv@wall", "load=odd.csv"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert split_word(word) == reported


@pytest.mark.parametrize("gravity", ["1,2", "roof", "1,2,x", "nan,0,0", "0,0,0,0"])
def test_what_is_no_gravity_is_wrong_usage(gravity: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").touch()
    result = run("joint", "all", f"{tmp_path / 'log.csv'}@{gravity}", *UR5E)
    assert result.code == 2
    assert "gravity after @" in result.err


def test_a_joint_file_goes_into_a_calibration(tmp_path: Path) -> None:
    joint, log = tmp_path / "joint.json", tmp_path / "log.csv"
    done("joint", "friction", speeds(), *UR5E, *VERTICAL, "--output", joint)
    jointwise.simulate("ur5e", "excitation", duration=15.0, rate=100.0, seed=1, keep=0).write(log)
    plain = ("--direction", "tanh", "--load", "none", "--viscous-powers", "1", "--stribeck", "0", "--no-ripple")
    for how, status in (("start", "determined"), ("known", "given")):
        words = ("--robot", "ur5e", *plain, "--joint", joint, "--joint-as", how, "--output", tmp_path / "model.json")
        assert "joint 2 as identified by itself" in done("calibrate", log, *words)
        rows = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["parameters"]
        block = next(row for row in rows if row["name"] == "Fv1_2")
        assert block["status"] == status
        assert block["value"] == pytest.approx(10.0, rel=0.1)


# -- refusals: which data cannot answer, and which experiment would --


@pytest.mark.parametrize(
    ("what", "log", "words", "experiment"),
    [
        ("friction", locked, "", "constant-speed"),
        ("load", speeds, "load", "load"),
        ("temperature", slow, "temperature", "warm-up"),
        ("hysteresis", locked, "", "reciprocate"),
        ("transmission", speeds, "", "reciprocate"),
    ],
)
def test_unsuitable_data_are_reported_and_nothing_is_written(
    what: str, log: object, words: str, experiment: str, tmp_path: Path
) -> None:
    assert callable(log)
    gravity = () if log is slow else VERTICAL
    line = refused("joint", what, log(), *UR5E, *gravity, "--output", tmp_path / "joint.json")
    assert words in line
    assert f"'{experiment}'" in line
    assert "jointwise joint plan --robot ur5e --joint 2" in line
    assert not (tmp_path / "joint.json").exists()


def test_a_log_without_rotor_positions_has_no_stiffness(tmp_path: Path) -> None:
    made = jointwise.read_log(locked())
    plain = Log(made.t, made.q, current=made.current, torque=made.torque)
    write_log(plain, tmp_path / "plain.csv")
    line = refused("joint", "stiffness", tmp_path / "plain.csv", *UR5E, *VERTICAL)
    assert "theta" in line or "rotor" in line


def test_a_saturated_current_is_refused(tmp_path: Path) -> None:
    made = jointwise.read_log(speeds())
    top = 0.4 * float(np.abs(made.channel("current")).max())
    clipped = Log(made.t, made.q, theta=made.theta, current=np.clip(made.channel("current"), -top, top))
    write_log(clipped, tmp_path / "clipped.csv")
    assert "saturat" in refused("joint", "friction", tmp_path / "clipped.csv", *UR5E, *VERTICAL)


def test_a_file_of_another_robot_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "joint.json"
    done("joint", "friction", speeds(), *UR5E, *VERTICAL, "--output", out)
    before = out.read_bytes()
    line = refused("joint", "friction", speeds(), "--robot", "ur10e", "--joint", 2, *VERTICAL, "--output", out)
    assert "ur5e" in line
    assert out.read_bytes() == before


def test_a_file_that_is_something_else_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "notes.json"
    out.write_text('{"mine": 1}', encoding="utf-8")
    assert "not a joint file" in refused("joint", "friction", speeds(), *UR5E, *VERTICAL, "--output", out)
    assert out.read_text(encoding="utf-8") == '{"mine": 1}'


@pytest.mark.parametrize("words", [("friction", "any.csv"), ("plan", "--output", "any")])
def test_a_joint_that_is_not_there_is_wrong_usage(words: tuple[str, ...]) -> None:
    result = run("joint", *words, "--robot", "ur5e", "--joint", 7)
    assert result.code == 2
    assert "1 to 6" in result.err


@pytest.mark.parametrize(
    "words",
    [("--loaded", "b.csv"), ("--payload-mass", 2.8), ("--targets", "--loaded", "b.csv", "--payload-mass", 2.8)],
)
def test_options_of_the_motor_that_do_not_belong_together_are_wrong_usage(words: tuple[object, ...]) -> None:
    result = run("joint", "motor", "a.csv", *words, *UR5E)
    assert result.code == 2
    assert "--loaded" in result.err


@pytest.mark.parametrize(
    ("channel", "factor", "word"),
    [("current", 1e3, "i=@mA"), ("q", 180.0 / np.pi, "q=@deg"), ("t", 1e3, "t=@ms")],
)
def test_wrong_units_are_refused_in_one_line(channel: str, factor: float, word: str, tmp_path: Path) -> None:
    made = jointwise.read_log(speeds())
    wrong = replace(made, **{channel: factor * made.channel(channel)}, theta=None, qd=None)
    write_log(wrong, tmp_path / "wrong.csv")
    assert word in refused("joint", "friction", tmp_path / "wrong.csv", *UR5E, *VERTICAL)


def test_a_fault_of_another_joint_costs_nothing_here() -> None:
    log, robot = jointwise.read_log(speeds()), jointwise.load_robot("ur5e")
    theta = log.channel("theta").copy()
    theta[:, 1] *= 101.0
    faulty = replace(log, theta=theta)
    joint_record(faulty, robot, 0)
    with pytest.raises(DataError, match="theta2"):
        joint_record(faulty, robot, 1)


def test_rows_out_of_order_are_refused(tmp_path: Path) -> None:
    made = jointwise.read_log(speeds())
    order = np.random.default_rng(0).permutation(made.samples)
    mixed = Log(made.t, made.q[order], theta=made.channel("theta")[order], current=made.channel("current")[order])
    write_log(mixed, tmp_path / "mixed.csv")
    assert "order of time" in refused("joint", "friction", tmp_path / "mixed.csv", *UR5E, *VERTICAL)


def test_a_gain_that_was_identified_serves_where_none_is_described(tmp_path: Path) -> None:
    bare, out = tmp_path / "bare.toml", tmp_path / "joint.json"
    described = (resources.files("jointwise.description.catalog") / "ur5e.toml").read_text(encoding="utf-8")
    gains = ("drive_gain", "torque_constant =")
    kept = [line for line in described.splitlines() if not line.startswith(gains)]
    bare.write_text("\n".join(kept), encoding="utf-8")
    joint = ("--robot", bare, "--joint", 2, "--output", out)
    line = refused("joint", "friction", speeds(), *joint, *VERTICAL)
    assert "no drive gain is known" in line and "joint motor" in line
    done("joint", "motor", slow(), *joint)
    done("joint", "friction", speeds(), *joint, *VERTICAL)
    at_once = tmp_path / "all.json"
    words = [f"motor={slow()}", f"friction={speeds()}@0,9.80665,0"]
    done("joint", "all", *words, "--robot", bare, "--joint", 2, "--output", at_once)
    for path in (out, at_once):
        assert load_joints(path)[0].parts["friction"]["F_C"] == pytest.approx(10.0, rel=0.03)


# -- help, and failures reported to programs --


@pytest.mark.parametrize("action", ["show", "check"])
def test_help_of_robots_shows_examples(action: str) -> None:
    assert f"jointwise robots {action} " in done("robots", action, "--help").partition("examples:")[2]


@pytest.mark.parametrize(
    "words",
    [
        ("joint", "load", "missing.csv", *UR5E),
        ("inspect", "missing.csv", "--robot", "ur5e"),
        ("validate", "missing.json", "missing.csv"),
        ("calibrate", "missing.csv", "--robot", "ur5e", "--output", "model.json"),
        ("robots", "show", "missing.toml"),
        ("simulate", "--robot", "missing.toml", "--output", "log.csv"),
    ],
)
def test_a_command_that_cannot_work_prints_no_json(words: tuple[object, ...]) -> None:
    assert "missing" in refused(*words, "--json")
