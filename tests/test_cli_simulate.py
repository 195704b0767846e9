"""The command that records experiments on the digital robot."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from cli_runs import done, refused, run
from jointwise.data import read_log
from jointwise.design import EXPERIMENTS
from jointwise.simulation.recording import digital_robot_from_truth, load_truth
from jointwise.simulation.robot import PHENOMENA
from kernels import needs_native

pytestmark = needs_native

SHORT = ("simulate", "--robot", "planar2", "--duration", 2)


def test_a_log_and_its_truth(tmp_path: Path) -> None:
    log, truth = tmp_path / "log.csv", tmp_path / "truth.json"
    text = done(*SHORT, "--rate", 250, "--seed", 4, "--output", log, "--truth", truth)
    assert all(
        words in text
        for words in ("500 samples at 250 Hz", "times real time", "tracking", "gravity in the base frame", str(log))
    )
    assert read_log(log).samples == 500
    assert len(digital_robot_from_truth(load_truth(truth)).joints) == 2
    document = load_truth(truth)
    assert (document["seed"], document["rate"], document["duration"]) == (4, 250.0, 2.0)


def test_the_next_command_suits_the_experiment_and_states_the_gravity_that_the_file_does_not_contain(
    tmp_path: Path,
) -> None:
    words = ("simulate", "--robot", "ur5e", "--joint", 2, "--duration", 20, "--rate", 100)
    text = done(*words, "--experiment", "warm-up", "--output", tmp_path / "a.csv")
    assert (
        f"next: jointwise joint temperature {tmp_path}/a.csv --robot ur5e --gravity 0 9.81 0 --joint 2 --output" in text
    )
    text = done(*words, "--experiment", "warm-up", "--output", tmp_path / "a.parquet")
    assert f"next: jointwise joint temperature {tmp_path}/a.parquet --robot ur5e --joint 2 --output" in text
    assert "next: jointwise calibrate" in done(*SHORT, "--output", tmp_path / "b.csv")


def test_the_next_command_runs_for_a_robot_whose_gains_are_not_described(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    words = ("simulate", "--robot", "planar2", "--joint", 1, "--rate", 100, "--output", log)
    text = done(*words, "--experiment", "constant-speed", "--duration", 40)
    command = re.search(r"next: jointwise (joint friction .*)", text)
    assert command is not None
    assert "friction" in done(*command[1].replace("joint1.json", str(tmp_path / "joint1.json")).split())
    line = refused("joint", "friction", log, "--robot", "planar2", "--joint", 1)
    assert "no drive gain is known" in line and "--robot planar2" not in line


def test_the_same_command_writes_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        done(*SHORT, "--seed", seed, "--output", tmp_path / f"{name}.csv", "--truth", tmp_path / f"{name}.json")
    for ending in ("csv", "json"):
        first, again, other = ((tmp_path / f"{name}.{ending}").read_bytes() for name in "abc")
        assert first == again
        assert first != other


def test_every_option_reaches_the_robot(tmp_path: Path) -> None:
    log, truth, joints = tmp_path / "log.parquet", tmp_path / "truth.json", tmp_path / "joints.toml"
    joints.write_text("schema = 1\n[drive]\nlag = 0.001\n")
    facts = json.loads(
        done(
            *SHORT, "--experiment", "bspline", "--joint", 2, "--without", "stribeck,thermal",
            "--payload", "1.5,0,0,0.1", "--temperature", 15,
            "--age", "friction=0.2,stiffness=-0.1", "--joints", joints, "--rotors", "complete",
            "--mounting", "wall", "--controller", "computed-torque", "--control-rate", 500, "--bandwidth", 3,
            "--feedback", "sensors", "--jitter", 1e-4, "--dropped", 0.01, "--repeated", 0.01,
            "--output", log, "--truth", truth, "--json",
        )
    )  # fmt: skip
    document = load_truth(truth)
    robot = digital_robot_from_truth(document)
    assert facts["joint"] == document["experiment"]["joint"] == 2
    assert facts["gravity"] == document["gravity"] == [0.0, 9.81, 0.0]
    assert facts["samples"] == read_log(log).samples == 990
    assert robot.payload is not None
    assert robot.payload.mass == 1.5
    assert robot.model == "complete"
    assert robot.joints[0].motor.lag == 0.001
    assert robot.joints[0].friction.stribeck.extra == 0.0
    assert document["age"] == {"friction": 0.2, "stiffness": -0.1}
    assert document["controller"]["name"] == "computed-torque"
    assert document["controller"]["rate"] == 500.0
    assert document["controller"]["feedback"] == "sensors"
    assert document["sensors"]["repeated"] == 0.01
    assert np.ptp(np.asarray(read_log(log).q)[:, 0]) < 0.1


def test_a_motion_through_the_table_is_reported_and_a_clearance_avoids_it(tmp_path: Path) -> None:
    words = ("simulate", "--robot", "ur5e", "--experiment", "load", "--joint", 2, "--duration", 20, "--rate", 50)
    low = done(*words, "--output", tmp_path / "low.csv")
    assert "m below the mounting plane" in low and "--clearance 0.05" in low and "robot on a table" in low
    turned = done(*words, "--output", tmp_path / "turned.csv", "--gravity", 0, 9.81, 0)
    assert "m below the mounting plane" in turned and "table" not in turned
    clear = done(*words, "--output", tmp_path / "clear.csv", "--clearance", 0.05)
    assert "below the mounting plane" not in clear
    facts = json.loads(done(*words, "--output", tmp_path / "again.csv", "--clearance", 0.05, "--json"))
    assert facts["lowest"] >= 0.05 and (tmp_path / "again.csv").read_bytes() == (tmp_path / "clear.csv").read_bytes()


def test_a_custom_motion_into_the_arm_is_reported_and_rejected_with_a_clearance(tmp_path: Path) -> None:
    part = np.linspace(0.0, 1.0, 201)
    travel = np.outer(10 * part**3 - 15 * part**4 + 6 * part**5, np.deg2rad([0, 0, 170, 90, 0, 0]))
    rows = np.column_stack([4.0 * part, np.deg2rad([0, -90, 0, -90, 0, 0]) + travel])
    np.savetxt(tmp_path / "fold.csv", rows, delimiter=",", header="t,q1,q2,q3,q4,q5,q6", comments="")
    words = ("simulate", "--robot", "ur5e", "--motion", tmp_path / "fold.csv", "--output", tmp_path / "log.csv")
    assert "warning: link 2 and link 5 collide" in done(*words, "--rate", 50)
    (tmp_path / "log.csv").unlink()
    line = refused(*words, "--clearance", "links")
    assert "drives link 2 into link 5 at q = [" in line and " s: " in line
    assert not (tmp_path / "log.csv").exists()


def test_a_clearance_and_a_tool_are_reported(tmp_path: Path) -> None:
    words = ("simulate", "--robot", "ur5e", "--duration", 5, "--rate", 50, "--clearance", "links", "--tool", "0.1,0.05")
    truth = tmp_path / "truth.json"
    facts = json.loads(done(*words, "--output", tmp_path / "log.csv", "--truth", truth, "--json"))
    assert facts["nearest"]["distance"] >= 0.02 and len(facts["nearest"]["between"]) == 2
    reported = json.loads(truth.read_text())["experiment"]
    assert (reported["clearance"], reported["links_apart"], reported["tool"]) == (
        None,
        True,
        {"length": 0.1, "radius": 0.05},
    )


def test_the_list_names_everything() -> None:
    text = done("simulate", "--list")
    assert all(name in text for name in (*EXPERIMENTS, *PHENOMENA, "servo", "lqr"))
    assert list(json.loads(done("simulate", "--list", "--json"))["experiments"]) == list(EXPERIMENTS)


@pytest.mark.parametrize("where", ["page.html", "folder"])
def test_a_page_of_plots(tmp_path: Path, where: str) -> None:
    pytest.importorskip("jinja2")
    done(*SHORT, "--output", tmp_path / "log.csv", "--report", tmp_path / where)
    page = tmp_path / where if where.endswith("html") else tmp_path / where / "recording.html"
    text = page.read_text(encoding="utf-8")
    assert all(words in text for words in ("Friction over speed", "Deformation of the gears", "tracking error"))
    assert "NaN" not in text.split("<main>")[1].split("</main>")[0]
    assert "http://" not in text.split("<main>")[1].split("</main>")[0]


def test_a_page_opens_at_the_joint_under_test(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    for joint, opened in ((1, 0), (2, 3)):
        words = ("--experiment", "locked", "--joint", joint, "--age", "friction=0.3", "--temperature", 5)
        done(*SHORT, *words, "--output", tmp_path / "log.csv", "--report", tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text(encoding="utf-8").split("<main>")[1]
        assert text.count('data-first="1"') == opened
        assert all(words in text for words in ("prescribed torque", "friction +30 %", "5 °C"))


def test_a_locked_joint_shows_torque_and_deformation_and_no_tracking(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    words = (*SHORT, "--experiment", "locked", "--joint", 2, "--output", tmp_path / "log.csv")
    text = done(*words, "--report", tmp_path / "page.html")
    assert "tracking" not in text
    assert re.search(r"largest torque [1-9][\d.]* Nm, deformation [1-9][\d.]* mrad, current [1-9]", text)
    page = (tmp_path / "page.html").read_text(encoding="utf-8").split("<main>")[1]
    assert "racking error" not in page
    assert page.index("Torque and deformation") < page.index("Current and temperature")


def test_the_list_comes_without_scipy() -> None:
    script = (
        "import sys; from jointwise.cli import main; main(['simulate', '--list']); "
        "print('loaded', *{'scipy', 'pyarrow', 'jinja2'} & set(sys.modules))"
    )
    listed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert listed.stdout.splitlines()[-1] == "loaded"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    files = ("--output", tmp_path / f"log.{ending}", "--truth", tmp_path / "truth.json")
    monkeypatch.setattr("jointwise.experiment.run.CHUNK", 500)
    monkeypatch.setattr("jointwise.data.write.ROWS", 100)
    for place in ("jointwise.experiment.run.integrate", "pyarrow.record_batch"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupted_at_the_third(attribute(place)))
            assert run(*SHORT, *files).code == 130
        assert list(tmp_path.iterdir()) == []


def interrupted_at_the_third(work: Callable[..., Any]) -> Callable[..., Any]:
    calls = count()

    def worker(*args: Any, **options: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return work(*args, **options)

    return worker


def attribute(place: str) -> Callable[..., Any]:
    found: Callable[..., Any] = resolve_name(place)
    return found


def test_quiet_is_quiet(tmp_path: Path) -> None:
    assert done(*SHORT, "--output", tmp_path / "log.csv", "--quiet") == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--experiment", "exitation"), "unknown experiment 'exitation'. Did you mean excitation"),
        (("--experiment", "ellipse"), "ellipse needs six joints"),
        (("--without", "frictoin"), "unknown phenomenon 'frictoin'. Did you mean friction"),
        (("--controller", "pd2"), "unknown controller 'pd2'. Did you mean pd"),
        (("--joint", 3), "joint must be 1 to 2. Got 3 instead."),
        (("--duration", 1e5, "--rate", 1e5), "must have at most 1e+09 samples"),
        (("--control-rate", 5), "Hz would do"),
        (("--bandwidth", 5000), "Hz would do"),
        (("--wear", "friction=-1"), "wear: friction must be finite and > -1. Got -1.0 instead."),
        (("--payload-at=3:3",), "payload must come within the 2 s recorded. Got 3 s"),
        (("--temperature", -100), "temperature must be -60 to 200"),
        (("--experiment", "locked", "--controller", "pd"), "prescribes the torques"),
        (("--bandwidth", 300), "gains"),
        (("--control-rate", 30), "too low for the gains"),
        (("--robot", "ur5e", "--payload", 80, "--duration", 4), "is overloaded: the motion needs"),
        (("--age", "friction=-1"), "friction must be"),
        (("--joints", "missing.toml"), "missing.toml: no such file"),
        (("--mounting", "moon"), "unknown mounting"),
        (("--jitter", 0.9), "jitter must be"),
        (("--dropped", 0.95), "dropped must be a fraction"),
        (("--duration", 0.001), "duration must"),
    ],
)
def test_wrong_arguments_get_one_line_and_no_file(tmp_path: Path, words: tuple[object, ...], message: str) -> None:
    output = ("--output", tmp_path / "log.csv", "--truth", tmp_path / "truth.json")
    assert message in refused(*SHORT, *output, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--duration", "long"), "--duration: must be a number"),
        (("--rate", 0), "--rate: must be a number above 0 to 100000. Got '0' instead."),
        (("--rate", 1e7), "--rate: must be a number above 0 to 100000"),
        (("--control-rate", 1e12), "--control-rate: must be a number above 0 to 100000"),
        (("--duration", 1e300), "--duration: must be a number above 0"),
        (("--payload", -1), "--payload: must be a number from 0"),
        (("--wear", "friction=-2"), "--wear: must be a number from -1"),
        (("--jitter", -1), "--jitter: must be a number from 0 to 1"),
        (("--temperature", -300), "--temperature: must be a number from -273"),
        (("--seed", -1), "--seed: must be a whole number"),
        (("--joint", 0), "--joint: must be a whole number > 0"),
        (("--payload", "1,2"), "--payload: must be a mass or mass,x,y,z"),
        (("--age", "beauty=1"), "--age: must read friction=X"),
        (("--age", "friction=1,friction=2"), "--age: must name each once"),
        (("--repeated", 2), "--repeated: must be a number from 0 to 1"),
        (("--payload-at", "1:3", "--payload-at", "1:2"), "--payload-at must name each time once"),
        (("--payload-at", "-1:3"), "a value that begins with - is written --name=VALUE"),
        (("--rotors", "other"), "--rotors: must be spong or complete. Got 'other' instead."),
    ],
)
def test_wrong_usage(tmp_path: Path, words: tuple[object, ...], message: str) -> None:
    result = run(*SHORT, "--output", tmp_path / "log.csv", *words)
    assert result.code == 2
    assert message in result.err
    assert list(tmp_path.iterdir()) == []


def test_robot_and_output_are_needed(tmp_path: Path) -> None:
    assert "--output must be passed" in run("simulate", "--robot", "ur5e").err
    assert run("simulate", "--output", tmp_path / "log.csv").code == 2
    same = tmp_path / "log.csv"
    assert "different files" in run(*SHORT, "--output", same, "--truth", same).err
    assert "different files" in run(*SHORT, "--output", same, "--report", same).err
    page = tmp_path / "page.html"
    assert "different files" in run(*SHORT, "--output", same, "--truth", page, "--report", page).err
    assert list(tmp_path.iterdir()) == []


def test_outputs_are_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointwise.cli.simulate.record", lambda *_: pytest.fail("it began to work"))
    good = tmp_path / "log.csv"
    for words, message in (
        (("--output", tmp_path / "none" / "log.csv"), "there is no directory"),
        (("--output", tmp_path / "log.txt"), "must end in .csv or .parquet"),
        (("--output", tmp_path), "must end in"),
        (("--output", good, "--truth", tmp_path / "none" / "t.json"), "there is no directory"),
        (("--output", good, "--report", tmp_path / "none" / "page.html"), "there is no directory"),
    ):
        assert message in refused(*SHORT, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_motion_of_ones_own_and_events(tmp_path: Path) -> None:
    first = tmp_path / "first.csv"
    done("simulate", "--robot", "planar2", "--duration", 3, "--output", first)
    events = (
        "--payload-at",
        "1:0.5,0,0.05,0",
        "--payload-at",
        "2:0",
        "--push",
        "1:0.1:5,5,5",
        "--wear",
        "friction=0.2",
    )
    motion = ("--motion", tmp_path / "plan.csv")
    table = [line.split(",") for line in first.read_text().splitlines()]
    picked = [k for k, name in enumerate(table[0]) if name in ("t", "q_des1", "q_des2")]
    rows = [",".join(row[k].replace("q_des", "q") for k in picked) for row in table]
    (tmp_path / "plan.csv").write_text("\n".join(rows) + "\n")
    done(
        "simulate",
        "--robot",
        "planar2",
        *motion,
        *events,
        "--output",
        tmp_path / "own.csv",
        "--truth",
        tmp_path / "t.json",
    )
    truth = json.loads((tmp_path / "t.json").read_text())
    assert truth["experiment"]["name"] == "motion" and truth["events"]["wear"] == {"friction": 0.2}
    assert [item["time"] for item in truth["events"]["payloads"]] == [1.0, 2.0]
    for wrong in (("--columns", "q=a..b"), ("--payload-at", "1"), ("--push", "1:2"), (*motion, "--experiment", "load")):
        assert run("simulate", "--robot", "planar2", "--output", tmp_path / "no.csv", *wrong).code == 2
    assert not (tmp_path / "no.csv").exists()


def test_the_columns_of_a_motion_can_be_named(tmp_path: Path) -> None:
    plan, log = tmp_path / "plan.csv", tmp_path / "log.csv"
    steps = [10 * t**3 - 15 * t**4 + 6 * t**5 for t in (k / 100 for k in range(101))]
    rows = [f"{k / 100},{60 * s:.9g},{-30 * s:.9g}" for k, s in enumerate(steps)]
    plan.write_text("\n".join(["time,pos1,pos2", *rows]) + "\n")
    motion = ("simulate", "--robot", "planar2", "--motion", plan, "--output", log)
    assert "--columns" in refused(*motion)
    assert "degrees" in refused(*motion, "--columns", "t=time,q=pos1..pos2")
    done(*motion, "--columns", "t=time,q=pos1..pos2@deg")
    last = log.read_text().splitlines()
    names, values = last[0].split(","), last[-1].split(",")
    assert abs(float(values[names.index("q_des1")]) - 1.0472) < 1e-3


SLIDE = """<robot name="slide"><link name="base"/>
<link name="l1"><inertial><mass value="5"/><origin xyz="0.15 0 0"/>
<inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="l2"><inertial><mass value="2"/><origin xyz="0 0 -0.1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.005" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="a" type="revolute"><parent link="base"/><child link="l1"/><origin xyz="0 0 0.4"/><axis xyz="0 0 1"/>
<limit lower="-2.5" upper="2.5" velocity="3" effort="100"/></joint>
<joint name="z" type="prismatic"><parent link="l1"/><child link="l2"/><origin xyz="0.25 0 0"/><axis xyz="0 0 1"/>
<limit lower="-0.2" upper="0.1" velocity="0.5" effort="300"/></joint></robot>"""


def test_the_units_of_a_slide_are_those_of_a_slide(tmp_path: Path) -> None:
    (tmp_path / "slide.urdf").write_text(SLIDE)
    arm = ("simulate", "--robot", tmp_path / "slide.urdf", "--joint", 2, "--output", tmp_path / "log.parquet")
    runs = done(*arm, "--experiment", "constant-speed", "--duration", 20)
    assert (
        "axis horizontal" in runs
        and "[mrad, mm]" in runs
        and re.search(r"force of joint 2: at most \S+ N$", runs, re.M)
    )
    locked = done(*arm, "--experiment", "locked", "--duration", 5)
    assert re.search(r"largest force \S+ N, deformation \S+ mm", locked)
    assert "52 mm per cycle" in done(*arm, "--experiment", "reciprocate")
    assert "load needs a revolute joint" in refused(*arm, "--experiment", "load")


def test_motors_at_their_limits_are_reported(tmp_path: Path) -> None:
    arm = ("simulate", "--robot", "planar2", "--duration", 2, "--output", tmp_path / "log.csv")
    push = ("--push", "1:0.05:600,600,-2500")
    assert "saturate" not in done(*arm)
    assert re.search(r"1 of 2 motors saturate, most that of joint 'joint2': in \S+ % of the samples", done(*arm, *push))
    first, second = json.loads(done(*arm, *push, "--json"))["joints"]
    assert first["saturated"] == 0.0 and second["saturated"] > 0.0 and second["demand"] > 1.0 > first["demand"]
