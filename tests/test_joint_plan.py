"""Plans of experiments: files keep the limits, programs command the planned motion, nothing is overwritten."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import jointwise
from cli_runs import settings_for
from jointwise.cli import main
from jointwise.design import (
    APART,
    EXPERIMENTS,
    PURPOSES,
    Body,
    Piecewise,
    Plan,
    PlannedExperiment,
    make_experiment,
    make_plan,
    urscript,
)
from jointwise.design.fourier import FadedSeries
from jointwise.design.limits import motion_limits
from jointwise.errors import ModelError, OutputError
from jointwise.experiment.plan_files import write_plan
from jointwise.model.skeleton import Tool
from jointwise.report.plan import page

KNOWN = {"popup", "movej", "servoj", "stopj", "sleep", "textmsg", "sin", "cos"}
"""Functions of URScript that a program may call."""


@lru_cache
def plan(joint: int = 0) -> Plan:
    return make_plan(jointwise.load_robot("ur5e"), joint, payload=2.0, clearance=0.05)


def step(name: str, joint: int = 0) -> PlannedExperiment:
    return next(planned for planned in plan(joint).steps if planned.purpose.name == name)


class Controller:
    """Runs a program of ours: the same text without its `end` lines is Python; moves are done by their laws."""

    def __init__(self, program: str) -> None:
        self.time, self.position = 0.0, np.zeros(6)
        self.visited: list[tuple[float, np.ndarray]] = []
        self.fastest = 0.0
        text = "\n".join(line for line in program.splitlines() if line.strip() != "end")
        name = re.findall(r"^def (\w+)\(\):$", text, re.MULTILINE)[0]
        calls = {"movej": self.movej, "servoj": self.servoj, "sleep": self.sleep, "sin": np.sin, "cos": np.cos}
        ignored = dict.fromkeys(("popup", "stopj", "textmsg"), lambda *args, **named: None)
        scope: dict[str, object] = {**calls, **ignored}
        exec(compile(text, "program", "exec"), scope)
        scope[name]()  # type: ignore[operator]

    def movej(self, q: list[float], a: float, v: float) -> None:
        travel = float(np.abs(np.array(q) - self.position).max())
        self.time += travel / v + v / a if travel >= v**2 / a else 2.0 * np.sqrt(travel / a)
        self._at(q)

    def servoj(self, q: list[float], a: float, v: float, t: float, lookahead: float, gain: float) -> None:
        self.fastest = max(self.fastest, float(np.abs(np.array(q) - self.position).max()) / t)
        self._at(q)
        self.time += t

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def _at(self, q: list[float]) -> None:
        self.position = np.array(q)
        self.visited.append((self.time, self.position))


def approach(actual: PlannedExperiment) -> float:
    """Return when a program, by way of the upright pose, reaches its first pose and has waited there, s."""
    first = actual.experiment.motion.position(np.zeros(1))[0]
    return 2.0 + slow(actual.home) + slow(first - actual.home)


def slow(step: np.ndarray) -> float:
    """Return how long a slow move takes, s."""
    travel = float(np.abs(step).max())
    return float(travel / 0.3 + 0.3 / 0.5 if travel >= 0.18 else 2.0 * np.sqrt(travel / 0.5))


# -- the experiments --


def test_every_experiment_is_one_that_can_be_rehearsed() -> None:
    assert {purpose.experiment for purpose in PURPOSES.values()} <= set(EXPERIMENTS)


def test_a_plan_is_the_experiments_of_the_digital_robot() -> None:
    planned = step("friction")
    rehearsal = make_experiment("constant-speed", planned.robot, joint=0, clearance=0.05)
    t = np.linspace(0.0, rehearsal.motion.duration, 50)
    assert np.array_equal(planned.experiment.motion.position(t), rehearsal.motion.position(t))


def test_experiments_may_be_named_by_phenomenon_or_experiment() -> None:
    chosen = make_plan(jointwise.load_robot("ur5e"), 0, ["hysteresis", "constant-speed", "transmission"])
    assert [planned.purpose.name for planned in chosen.steps] == ["transmission", "friction"]


def test_a_table_suits_the_first_joint_and_not_the_second() -> None:
    assert step("friction").suits
    second = make_plan(jointwise.load_robot("ur5e"), 1, ["friction", "load"])
    assert [planned.suits for planned in second.steps] == [False, True]
    assert second.steps[0].largest_gravity > 30.0
    wall = make_plan(jointwise.load_robot("ur5e"), 0, ["friction", "load"], mounting="wall")
    assert [planned.suits for planned in wall.steps] == [False, True]


def test_a_joint_that_gravity_does_not_load_may_stand_as_it_does() -> None:
    clamped = make_plan(jointwise.load_robot("ur5e"), 1, ["stiffness", "friction"])
    assert [planned.suits for planned in clamped.steps] == [True, False]
    assert not clamped.steps[0].turned
    reported = page(clamped, [{**planned.facts(), "files": {}} for planned in clamped.steps])
    assert "gravity loads joint 2 with at most 0 Nm" in reported
    assert re.search(r"\de-\d", reported) is None


@pytest.mark.parametrize(("mass", "word"), [(None, "KG"), (2.5, "2.5")])
def test_commands_state_the_payload_of_the_arm(mass: float | None, word: str) -> None:
    chosen = make_plan(jointwise.load_robot("ur5e"), 1, ["load", "friction"], payload=mass)
    lines = page(chosen, [{**planned.facts(), "files": {}} for planned in chosen.steps]).splitlines()
    carried = [line for line in lines if line.startswith(("    jointwise joint load", "    jointwise joint motor"))]
    assert len(carried) == 2 and all(f" --payload {word},X,Y,Z " in line for line in carried)
    assert any("--experiment load" in line and f"--payload {word} " in line for line in lines)
    assert not any("--payload" in line for line in lines if "joint friction" in line)


def test_constant_speeds_are_listed() -> None:
    speeds = step("friction").speeds()
    assert len(speeds) == 10
    assert speeds[-1] / speeds[0] == pytest.approx(90.0, rel=1e-3)


def test_what_cannot_be_planned_is_refused() -> None:
    arm = jointwise.load_robot("ur5e")
    with pytest.raises(ModelError, match="Did you mean friction"):
        make_plan(arm, 0, ["fricton"])
    with pytest.raises(ModelError, match="joint must be 0 to 5 .*. Got 6"):
        make_plan(arm, 6)
    with pytest.raises(ModelError, match="payload must be a positive mass"):
        make_plan(arm, 0, payload=-1.0)
    with pytest.raises(ModelError, match="Choose a lighter payload"):
        make_plan(arm, 1, ["motor"], payload=60.0)


# -- programs --


@pytest.mark.parametrize("name", list(PURPOSES))
def test_programs_are_well_formed(name: str) -> None:
    program = urscript(step(name))
    assert program.isascii()
    code = [line.split("#")[0].rstrip() for line in program.splitlines() if line.split("#")[0].strip()]
    depth = 0
    for line in code:
        depth -= line.strip() == "end"
        assert len(line) - len(line.lstrip()) == 2 * depth, line
        depth += line.endswith(":")
    assert depth == 0
    assert code[0] == f"def jointwise_{name}():" and code[-1] == "end"
    assert code[1].strip().startswith("popup(") and "blocking=True" in code[1]
    assert set(re.findall(r"(\w+)\(", re.sub(r'"[^"]*"', "", "\n".join(code[1:])))) <= KNOWN


@pytest.mark.parametrize("name", ["friction", "load", "temperature", "transmission"])
def test_a_program_of_moves_keeps_the_planned_times_and_places(name: str) -> None:
    planned_step = step(name)
    motion = planned_step.experiment.motion
    assert isinstance(motion, Piecewise)
    done = Controller(urscript(planned_step))
    start = approach(planned_step)
    back = slow(motion.position(np.array([motion.duration]))[0] - planned_step.home)
    assert done.time - start - 2.0 - back == pytest.approx(motion.duration, abs=0.5)
    times = np.array([time for time, _ in done.visited[2:-1]]) - start
    places = np.array([place for _, place in done.visited[2:-1]])
    planned = motion.position(np.clip(times, 0.0, motion.duration))
    assert np.abs(planned - places).max() < 0.02


def test_a_program_of_a_series_follows_it_tick_by_tick() -> None:
    planned = step("motor")
    motion = planned.experiment.motion
    assert isinstance(motion, FadedSeries)
    done = Controller(urscript(planned))
    inner = done.visited[2:-1]
    times, places = np.array([t for t, _ in inner]), np.array([q for _, q in inner])
    assert np.abs(motion.position(times - times[0]) - places).max() < 1e-5
    limits = [joint.limits.velocity or np.inf for joint in planned.robot.joints]
    assert done.fastest <= min(limits)


def test_a_locked_joint_is_only_held() -> None:
    done = Controller(urscript(step("stiffness")))
    planned = step("stiffness")
    places = [place for _, place in done.visited]
    np.testing.assert_allclose(places, [planned.home, planned.states.q[0], planned.home], atol=1e-6)
    assert done.time > 40.0


@lru_cache
def low_plan(joint: int) -> Plan:
    names = ["friction", "load", "transmission", "motor", "stiffness"]
    return make_plan(jointwise.load_robot("ur5e"), joint, names)


@pytest.mark.parametrize("joint", [1, 2])
def test_no_program_drives_the_arm_through_its_table_or_into_itself(joint: int) -> None:
    """Every straight way of a program, from the upright pose on, and every tick stays 0.05 m above the plane."""
    for planned in low_plan(joint).steps:
        assert "Links come within" in urscript(planned)
        places = np.array([place for _, place in Controller(urscript(planned)).visited])
        assert np.allclose(places[0], planned.home, atol=1e-6) and np.allclose(places[-1], planned.home, atol=1e-6)
        paths = np.concatenate([np.linspace(a, b, 11 if len(places) < 1000 else 2) for a, b in pairwise(places)])
        assert Body(planned.robot).heights(paths).min() > 0.05 - 1e-3
        assert planned.body.distances(paths).min() > APART - 1e-3
        assert planned.lowest >= 0.05 and planned.approach_lowest >= 0.05


@pytest.mark.parametrize("joint", [1, 2])
def test_programs_keep_the_limits_of_the_catalogue(joint: int) -> None:
    limits = motion_limits(jointwise.load_robot("ur5e"), 1.0, margin=0.0)
    for planned in low_plan(joint).steps:
        program = urscript(planned)
        reported = re.findall(r"movej\(\[[^]]*\], a=([\d.]+), v=([\d.]+)\)", program)
        assert reported and max(float(a) for a, _ in reported) <= limits.acceleration.min() * (1 + 1e-6)
        assert max(float(v) for _, v in reported) <= limits.velocity.min() * (1 + 1e-6)
        done = Controller(program)
        places = np.array([place for _, place in done.visited])
        assert (places >= limits.lower).all() and (places <= limits.upper).all()
        ticks = places[2:-1] if "servoj" in program else places[:1]
        assert (np.abs(np.diff(ticks, axis=0)) / 0.008 <= limits.velocity).all()
        assert (np.abs(np.diff(ticks, 2, axis=0)) / 0.008**2 <= 1.01 * limits.acceleration + 0.1).all()


def test_a_motion_that_is_too_low_is_reported_and_not_written(tmp_path: Path) -> None:
    low = make_plan(jointwise.load_robot("ur5e"), 1, ["transmission", "stiffness"], clearance=0.75)
    assert [planned.rejection for planned in low.steps] == [
        "reaches 0.71 m below the mounting plane: needs a pedestal, then --no-clearance",
        "comes down to 0.01 m above the mounting plane: needs a pedestal, then --no-clearance",
    ]
    files = write_plan(low, tmp_path / "plan")
    assert sorted(path.name for path in files) == ["README.md", "plan.json"]
    assert low.steps[0].rejection and low.steps[0].rejection in files[0].read_text(encoding="utf-8")
    with pytest.raises(ModelError, match="no program is written for transmission"):
        urscript(low.steps[0])


def test_without_a_clearance_nobody_looks_at_the_plane_and_the_program_says_so() -> None:
    free = make_plan(jointwise.load_robot("ur5e"), 1, ["friction"], clearance=None).steps[0]
    same = make_experiment("constant-speed", free.robot, joint=1)
    t = np.linspace(0.0, same.motion.duration, 50)
    assert np.array_equal(free.experiment.motion.position(t), same.motion.position(t))
    assert free.lowest < -0.5
    program = urscript(free)
    assert "BELOW the mounting plane" in " ".join(program.split()) and "PLANE IS NOT CHECKED" in program
    assert len(re.findall(r"v=0\.3\b", program)) == 3, "upright, there and back"


@pytest.mark.parametrize("clearance", [0.05, None])
def test_a_rehearsal_is_the_planned_motion_and_gravity_is_that_of_the_robot(
    tmp_path: Path, clearance: float | None
) -> None:
    chosen = make_plan(
        jointwise.load_robot("ur5e"),
        1,
        ["friction", "load", "motor"],
        mounting="wall",
        seed=3,
        payload=1.0,
        clearance=clearance,
        tool=Tool(0.1, 0.04),
    )
    write_plan(chosen, tmp_path / "plan", rate=5.0)
    page = (tmp_path / "plan" / "README.md").read_text(encoding="utf-8")
    rehearsals = re.findall(r"^    jointwise simulate (.*)$", page, re.MULTILINE)
    assert len(rehearsals) == 4
    for line, planned in zip(rehearsals, [*chosen.steps, chosen.steps[-1]], strict=True):
        args = settings_for("simulate", *shlex.split(line))
        joint = None if args.tested_joint is None else args.tested_joint - 1
        made = make_experiment(
            args.experiment, planned.robot, seed=args.seed, joint=joint, clearance=args.clearance, tool=Tool(*args.tool)
        )
        t = np.linspace(0.0, made.motion.duration, 40)
        assert np.array_equal(made.motion.position(t), planned.experiment.motion.position(t))
        assert args.gravity == (0.0, 9.81, 0.0)
    identify = re.findall(r"^    jointwise joint .*$", page, re.MULTILINE)
    assert len(identify) == 5 and all("--gravity 0 9.81 0 " in line for line in identify)


def test_there_is_no_program_for_another_arm(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="six revolute joints"):
        urscript(make_plan(jointwise.load_robot("panda"), 3, ["friction"]).steps[0])
    files = write_plan(make_plan(jointwise.load_robot("panda"), 3, ["friction"]), tmp_path / "plan", rate=10.0)
    assert sorted(path.name for path in files) == ["1-friction.csv", "README.md", "plan.json"]


# -- files --


def test_files_hold_the_motion_within_the_limits(tmp_path: Path) -> None:
    chosen = make_plan(jointwise.load_robot("ur5e"), 1, ["friction", "load", "motor", "stiffness"])
    write_plan(chosen, tmp_path / "plan", rate=25.0)
    for number, planned in enumerate(chosen.steps, start=1):
        path = tmp_path / "plan" / f"{number}-{planned.purpose.name}.csv"
        names = path.read_text(encoding="utf-8").splitlines()[0].split(",")
        rows = np.loadtxt(path, delimiter=",", skiprows=1)
        assert names[:13] == ["t", *(f"q{k}" for k in range(1, 7)), *(f"qd{k}" for k in range(1, 7))]
        assert ("tau1" in names) == (planned.purpose.name == "stiffness")
        assert np.allclose(rows[:, 1:7], planned.experiment.motion.position(rows[:, 0]), atol=1e-6)
        for k, joint in enumerate(planned.robot.joints):
            limits = joint.limits
            assert limits.lower is not None and limits.upper is not None and limits.velocity is not None
            assert limits.lower <= rows[:, 1 + k].min() and rows[:, 1 + k].max() <= limits.upper
            assert np.abs(rows[:, 7 + k]).max() <= limits.velocity


def test_the_page_and_the_document_state_how_and_why(tmp_path: Path) -> None:
    chosen = make_plan(jointwise.load_robot("ur5e"), 1, ["friction", "transmission", "motor"], payload=2.0)
    write_plan(chosen, tmp_path / "plan", rate=5.0)
    page = (tmp_path / "plan" / "README.md").read_text(encoding="utf-8")
    assert "collisions are not checked" in page and "above the mounting plane" in page
    assert "should be vertical" in page and "Turn the base" in page
    assert "jointwise simulate --robot ur5e --experiment reciprocate --joint 2" in page
    for phenomenon in (
        "friction LOG",
        "transmission LOG",
        "hysteresis LOG",
        "motor UNLOADED --loaded LOADED --payload-mass 2",
    ):
        assert f"jointwise joint {phenomenon}" in page
    document = json.loads((tmp_path / "plan" / "plan.json").read_text(encoding="utf-8"))
    assert (document["robot"], document["joint"], document["tool_m"]) == ("ur5e", 2, None)
    assert document["collisions_checked"] == ["links", "mounting plane"]
    for this_document in document["experiments"]:
        assert this_document["why"] in page
        assert (
            this_document["lowest_m"] >= 0.05
            and this_document["approach_lowest_m"] >= 0.05
            and 0.3 < this_document["reach_m"] < 1.05
        )
        assert this_document["links_m"] >= 0.02 and this_document["approach_links_m"] >= 0.02
        assert f"{' and '.join(this_document['links_nearest'])} come closest, {this_document['links_m']:.3f} m" in page
        assert {"pose_rad", "speeds_rad_s", "duration_s", "gravity", "log", "payload_kg"} <= set(this_document)
        assert all((tmp_path / "plan" / name).is_file() for name in this_document["files"].values())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    chosen = make_plan(jointwise.load_robot("ur5e"), 0, ["stiffness"])
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="is not empty"):
        write_plan(chosen, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(OutputError, match="is a file"):
        write_plan(chosen, tmp_path / "mine.txt")
    with pytest.raises(OutputError, match="positive number of Hz"):
        write_plan(chosen, tmp_path / "new", rate=0.0)
    assert not (tmp_path / "new").exists()


# -- the command --


def command(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["joint", "plan", *words])
    return code, out.getvalue()


def test_the_command_writes_a_plan_and_prints_it(tmp_path: Path) -> None:
    words = ("--robot", "ur5e", "--joint", "2", "--experiments", "friction,stiffness", "--rate", "10")
    code, out = command(*words, "--output", str(tmp_path / "a"))
    assert code == 0
    assert "constant-speed" in out and "does not suit" in out
    assert "the arm is checked against itself, the cell is not" in out
    assert "lowest [m]" in out and "links [m]" in out and "reach [m]" in out
    code, out = command(*words, "--output", str(tmp_path / "b"), "--json", "--mounting", "wall")
    reported = json.loads(out)
    assert [item["name"] for item in reported["experiments"]] == ["friction", "stiffness"]
    assert all(Path(name).is_file() for name in reported["files"])
    assert command(*words, "--output", str(tmp_path / "a")) == (1, "")


def test_the_command_reports_what_it_does_not_plan(tmp_path: Path) -> None:
    words = ("--robot", "ur5e", "--joint", "2", "--experiments", "stiffness", "--output")
    _, out = command(*words, str(tmp_path / "a"), "--clearance", "0.7")
    assert "stiffness: not planned, comes down to 0.01 m" in out
    _, out = command(*words, str(tmp_path / "b"), "--no-clearance")
    assert "the mounting plane and the cell are not" in out
    assert (tmp_path / "b" / "1-stiffness.script").is_file() and not (tmp_path / "a" / "1-stiffness.script").exists()


def test_the_command_takes_a_tool(tmp_path: Path) -> None:
    words = ("--robot", "ur5e", "--joint", "5", "--experiments", "friction", "--rate", "5", "--json", "--output")
    bare = json.loads(command(*words, str(tmp_path / "a"))[1])["experiments"][0]
    tool = json.loads(command(*words, str(tmp_path / "b"), "--tool", "0.2,0.06")[1])["experiments"][0]
    assert tool["reach_m"] > bare["reach_m"] + 0.1 and tool["links_m"] >= 0.02
    assert "--tool 0.2,0.06" in (tmp_path / "b" / "README.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "b" / "plan.json").read_text())["tool_m"] == {"length": 0.2, "radius": 0.06}
    assert "with a tool of 0.2 m" in " ".join((tmp_path / "b" / "1-friction.script").read_text().split("\n# "))
    for wrong in ("0", "0.1,0.1,0.1", "x"):
        assert command(*words, str(tmp_path / "c"), "--tool", wrong)[0] == 2


def test_a_joint_that_slides_is_planned_with_its_axis_horizontal() -> None:
    robot = jointwise.load_robot("planar2")
    limits = replace(robot.joints[1].limits, lower=-0.2, upper=0.2, velocity=0.5)
    slide = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], kind="prismatic", limits=limits)))
    steps = make_plan(slide, 1, clearance=None).steps
    assert "load" not in [step.purpose.name for step in steps]
    assert {step.purpose.axis for step in steps} == {"any", "horizontal"}
