"""Minimum-energy motions: exact gradients, closed forms, an independent dynamic programme, limits and wrong tasks."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import done, refused
from jointwise.design.trajectory import DurationError
from jointwise.energy import minimum, motion_power
from jointwise.energy.minimum import MotionSearch
from jointwise.energy.motion_space import FreeLeg, PathLeg, StraightPath, UnitSpline, paths_of
from jointwise.energy.motion_task import MotionTask, TaskSettings, fastest_ramps, least_duration, trapezoid

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from path_dynamic_programme import path_optimum

ROBOT = jw.load_robot("ur5e")
GAINS = tuple(float(joint.motor.joint_gain or 0.0) for joint in ROBOT.joints)
POWER = jw.energy.PowerModel("ur5e", 36.0, 1.0, GAINS, (0.25,) * 3 + (1.5,) * 3, tuple(0.08 * k for k in GAINS))
START = np.array([0.0, -1.2, 1.0, -1.0, -1.5, 0.0])
GOAL = np.array([1.5, -0.6, 0.3, -1.5, -1.0, 1.0])
VIA = np.array([0.9, -1.3, 0.9, -1.0, -1.2, 0.4])
SETTINGS = TaskSettings(0.05, None, 1.0, None, None)


def make_task(points: list[np.ndarray], power: jw.energy.PowerModel = POWER, **changes: float) -> MotionTask:
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    return MotionTask.of(motion_power(ROBOT, power), np.array(points), None, "free", settings)


def searches() -> list[tuple[str, MotionSearch, np.ndarray]]:
    """Return searches of all kinds with random variables: limits are exceeded and joints reverse."""
    rng = np.random.default_rng(0)
    task = make_task([START, VIA, GOAL], replace(POWER, conversion=0.1), power_limit=80.0)
    path = UnitSpline(8, clustered=True)
    legs = tuple(PathLeg(path, each) for each in task.paths)
    free = (FreeLeg(UnitSpline(10, (0.4,)), task.points),)
    curved = (PathLeg(path, paths_of(jw.design.bspline_trajectory(ROBOT, 12.0, 1, amplitude=0.3))[0]),)
    found = []
    for name, each in (("path", legs), ("free", free), ("curved", curved)):
        search = MotionSearch(task.power, task.limits, each, 0.9, 5.0, 80.0, 100.0)
        x = search.pack([0.3 * rng.normal(size=leg.size) for leg in each], rng.uniform(0.8, 1.5, len(each)))
        found.append((name, search, x))
    return found


@pytest.mark.parametrize(("name", "search", "x"), searches(), ids=lambda each: each if isinstance(each, str) else "")
@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_the_gradient_is_that_of_the_value(name: str, search: MotionSearch, x: np.ndarray, weight: float):
    rng = np.random.default_rng(1)
    _, gradient = search.value(x, weight)
    for _ in range(3):
        step = 1e-6 * rng.normal(size=len(x))
        change = search.value(x + step, weight)[0] - search.value(x - step, weight)[0]
        assert 2.0 * gradient @ step == pytest.approx(change, rel=2e-4, abs=1e-9)


@pytest.mark.parametrize("braking", ["stored", "burnt"])
def test_the_slopes_of_the_power_are_its_derivatives(braking: str):
    model = replace(POWER, conversion=0.12, braking=braking)  # type: ignore[arg-type]
    rng = np.random.default_rng(2)
    current, speed = rng.normal(size=(2, 40, 6))
    by_current, by_speed = model.slopes(current, speed)
    for j in range(6):
        step = 1e-6 * np.eye(6)[j]
        for slope, a, b in ((by_current, step, 0.0 * step), (by_speed, 0.0 * step, step)):
            change = model.power(current + a, speed + b) - model.power(current - a, speed - b)
            np.testing.assert_allclose(slope[:, j], change / 2e-6, rtol=1e-5, atol=1e-5)


def test_pure_inertia_saves_one_ninth_of_the_copper_loss():
    joint = replace(ROBOT.joints[0], motor=replace(ROBOT.joints[0].motor, coulomb=0.0, viscous=0.0))
    robot = replace(ROBOT, joints=(joint, *ROBOT.joints[1:]))
    power = jw.energy.PowerModel("ur5e", 0.0, 1.0, GAINS, (0.25,) * 6, (0.0,) * 6)
    goal = START + np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    options = {"mounting": [0.0, 0.0, 0.0], "duration": 2.0, "path": "fixed"}
    found = jw.energy.optimize_motion(robot, power, [START, goal], **options)
    # parabolic speed: 12 against 13.5 of the trapezoid with ramps of a third; rest at both ends costs a little
    assert 0.1022 < found.saving < 1.0 / 9.0  # within 1 % of the optimum


def test_the_path_is_timed_as_a_dynamic_programme_does():
    found = jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], duration=2.0, path="fixed")
    path = StraightPath(START, GOAL - START)
    optimum = path_optimum(found.model, path, 2.0, found.limits, points=60, speeds=100)
    standing = 2.0 * POWER.standing
    assert (found.optimized.energy - standing) / (optimum.energy - standing) == pytest.approx(1.0, abs=0.01)
    assert found.optimized.energy < found.original.energy
    q = found.optimized.trajectory.sample(100.0).q
    along = (q[:, 0] - START[0]) / (GOAL - START)[0]
    np.testing.assert_allclose(q, START + np.multiply.outer(along, GOAL - START), atol=1e-9)


def test_a_free_path_is_better_and_keeps_all_limits():
    payload = jw.Payload(4.0, (0.0, 0.0, 0.05), np.zeros((3, 3)))
    options = {"duration": 2.5, "payload": payload}
    timed = jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], path="fixed", **options)
    free = jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], **options)
    assert free.optimized.energy < timed.optimized.energy < timed.original.energy
    states = free.optimized.trajectory.sample(5000.0)
    np.testing.assert_allclose(states.q[[0, -1]], [START, GOAL], atol=1e-9)
    np.testing.assert_allclose(states.qd[[0, -1]], 0.0, atol=1e-9)
    limits = free.limits.motion
    assert (np.abs(states.qd) <= limits.velocity).all()
    assert (np.abs(states.qdd) <= limits.acceleration * (1.0 + 1e-6)).all()
    assert free.limits.clearance.is_clear(states.q)
    assert free.optimized.within_limits
    assert free.to_dict()["optimized"]["limits"]["torque"]["share"] <= 1.0
    assert "saving" in free.summary()


def test_waypoints_are_passed_and_a_motion_is_re_timed():
    free = jw.energy.optimize_motion(ROBOT, POWER, [START, VIA, GOAL], duration=3.0)
    q = free.optimized.trajectory.position(np.linspace(0.0, 3.0, 30001))
    assert np.abs(q - VIA).max(axis=1).min() < 1e-3
    motion = jw.design.bspline_trajectory(ROBOT, 12.0, 1, amplitude=0.3)
    center = motion.about(START, 1.0)
    timed = jw.energy.optimize_motion(ROBOT, POWER, motion=center, path="fixed")
    assert timed.duration_status == "fixed"
    assert timed.optimized.energy < timed.original.energy
    before, after = (
        center.position(np.linspace(0.0, 12.0, 3001)),
        timed.optimized.trajectory.position(np.linspace(0.0, timed.optimized.duration, 101)),
    )
    far = np.abs(after[:, None] - before[None]).max(axis=2).min(axis=1)
    assert far.max() < 5e-3


def test_the_duration_follows_from_the_standing_power():
    def chosen(standing: float, longest: float) -> minimum.MinimumEnergyMotion:
        power = replace(POWER, standing=standing)
        return jw.energy.optimize_motion(ROBOT, power, [START, GOAL], longest=longest, path="fixed", acceleration=20.0)

    costly, cheap = chosen(36.0, 6.0), chosen(5.0, 6.0)
    assert costly.duration_status == cheap.duration_status == "interior"
    assert costly.least_duration < costly.optimized.duration < cheap.optimized.duration < 6.0
    shorter = 0.5 * (costly.least_duration + costly.optimized.duration)
    assert chosen(36.0, shorter).duration_status == "longest allowed"
    beside = jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], duration=shorter, path="fixed", acceleration=20.0)
    assert beside.optimized.energy > costly.optimized.energy


def test_no_saving_is_possible_in_the_least_duration():
    task = make_task([START, GOAL])
    found = jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], duration=float(task.least.sum()), path="fixed")
    assert found.is_original
    assert found.saving == 0.0
    assert "no saving is possible" in found.summary()


def test_the_least_duration_agrees_with_the_closed_form_and_grows_with_the_payload():
    task = make_task([START, GOAL])
    path = task.paths[0]
    assert isinstance(path, StraightPath)
    fastest = fastest_ramps(path, task.limits)
    weak = replace(task.limits, effort=np.full(6, 1e6))
    assert least_duration(path, task.power, weak) == pytest.approx(fastest, rel=0.01)
    states = trapezoid([path], np.array([fastest]), task.limits).sample(500.0)
    torque = task.power.evaluate(states.q, states.qd, states.qdd).torque
    tight = replace(task.limits, effort=0.9 * np.abs(torque).max(axis=0))
    longer = least_duration(path, task.power, tight)
    assert longer > 1.02 * fastest


def test_an_interrupted_search_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    state, calls = tmp_path / "state.json", []
    options = {"duration": 2.0, "path": "fixed"}
    whole = jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], **options)
    improve = MotionSearch.improve

    def failing(search: MotionSearch, *args: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return improve(search, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(MotionSearch, "improve", failing)
    with pytest.raises(KeyboardInterrupt):
        jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], state=state, **options)
    with pytest.raises(jw.errors.ModelError, match="other settings"):
        jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], state=state, duration=2.1, path="fixed")
    again = jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], state=state, **options)
    assert again.optimized.energy == whole.optimized.energy
    assert len(calls) < 2 + 2 * len(minimum.WEIGHTS)


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([START, GOAL], {"duration": 0.5}, "duration must hold the fastest motion between these points: at least"),
        ([START, GOAL], {"duration": 0.5, "path": "fixed"}, "along this path: at least 1"),
        ([START, GOAL], {}, "must have a duration, or a longest duration"),
        ([START, GOAL], {"duration": 2.0, "longest": 3.0}, "not both"),
        ([START, GOAL], {"duration": 2.0, "path": "curved"}, "path must be 'free' or 'fixed'"),
        ([START], {"duration": 2.0}, "points must be finite, of shape"),
        ([START, START], {"duration": 2.0}, "points of a task must differ"),
        ([START, GOAL + 7.0], {"duration": 2.0}, "point 2: joint 1 must lie within"),
        ([START, GOAL * 0.0], {"duration": 9.0}, "must stay 0.05 m above the mounting plane|links"),
        ([START, GOAL], {"duration": 2.0, "power_limit": 45.0, "path": "fixed"}, "no motion within the limits"),
    ],
)
def test_wrong_tasks_are_rejected_in_one_line(points: list[np.ndarray], options: dict[str, object], message: str):
    with pytest.raises((jw.errors.ModelError, jw.errors.ShapeError), match=message) as caught:
        jw.energy.optimize_motion(ROBOT, POWER, points, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_payload_that_the_arm_cannot_hold_has_no_solution():
    payload = jw.Payload(60.0, (0.0, 0.0, 0.05), np.zeros((3, 3)))
    with pytest.raises(jw.errors.ModelError, match="times its torque limit to hold"):
        jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], duration=3.0, payload=payload)
    with pytest.raises(DurationError) as caught:
        jw.energy.optimize_motion(ROBOT, POWER, [START, GOAL], duration=0.4, path="fixed")
    assert caught.value.least == pytest.approx(make_task([START, GOAL]).least.sum())


POINTS = ("--start", "0,-1.2,1,-1,-1.5,0", "--goal", "1.5,-0.6,0.3,-1.5,-1,1")


def test_the_command_writes_files_that_follow_the_motion(tmp_path: Path):
    POWER.save(tmp_path / "power.json")
    folder = tmp_path / "motion"
    options = ("--robot", "ur5e", *POINTS, "--duration", 2, "--path", "fixed", "--output", folder)
    result = json.loads(done("energy", "optimize", tmp_path / "power.json", *options, "--json"))
    assert result["saving_possible"]
    assert 0.0 < result["saving"] < result["motion_saving"]
    assert {path.name for path in folder.iterdir()} == {
        "trajectory.csv", "joint_trajectory.json", "motion.script", "energy.json", "energy.html",
    }  # fmt: skip
    rows = np.genfromtxt(folder / "trajectory.csv", delimiter=",", names=True)
    q = np.column_stack([rows[f"q{j}"] for j in range(1, 7)])
    np.testing.assert_allclose(q[[0, -1]], [START, GOAL], atol=1e-6)
    page = (folder / "energy.html").read_text(encoding="utf-8")
    assert "Minimum-energy motion" in page
    assert "Use of the limits" in page
    assert "not empty" in refused("energy", "optimize", tmp_path / "power.json", *options)
    timed = done(
        "energy", "optimize", tmp_path / "power.json", "--robot", "ur5e", "--motion", folder / "trajectory.csv",
        "--path", "fixed", "--output", tmp_path / "again",
    )  # fmt: skip
    assert "duration: fixed" in timed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--duration", 2), "must have --start and --goal, or --motion"),
        ((*POINTS, "--duration", 0.3), "at least 1 s. Got 0.3 s"),
        (("--start", "0,1", "--goal", "1,2", "--duration", 2), "positions must be 6 numbers. Got 2"),
    ],
)
def test_wrong_commands_are_refused_in_one_line(tmp_path: Path, options: tuple[object, ...], message: str):
    POWER.save(tmp_path / "power.json")
    folder = tmp_path / "motion"
    text = refused("energy", "optimize", tmp_path / "power.json", "--robot", "ur5e", *options, "--output", folder)
    assert message in text
    assert not folder.exists()
