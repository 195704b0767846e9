"""Optimal excitation: exact gradients, predicted errors, limits at ten times the rate, files, resuming, wrong input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise as jw
from jointwise.cli import main
from jointwise.description import Robot
from jointwise.design import (
    APART,
    Body,
    Clearance,
    Excitation,
    ExcitationOptions,
    States,
    check_limits,
    fourier_trajectory,
    optimize_excitation,
    straight_path,
)
from jointwise.design.excitation import (
    FourierBasis,
    MotionBasis,
    Search,
    SplineBasis,
    _information_model,
    condition_number,
    criterion,
    rigid_columns,
    search_motion,
    standard_errors,
)
from jointwise.design.excitation_limits import excitation_limits
from jointwise.design.information import Goal, InformationModel
from jointwise.experiment.excitation_files import excite, write_excitation
from jointwise.model.base import base_parameters
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.result.excitation import compare_with_prediction, learned_noise, same_geometry, torque_noise
from jointwise.spatial import Array
from jointwise.virtual_ur.script import run_script


def make_model(name: str, goal: Goal = "all") -> InformationModel:
    """Return a model with random friction, so that every derivative counts."""
    robot = jw.load_robot(name)
    limits = excitation_limits(robot, 0.6, Clearance(Body(robot), -np.inf))
    model = _information_model(robot, limits, ExcitationOptions(goal=goal))
    values = model.values.copy()
    values[model.dynamics.base.count :] = np.random.default_rng(0).uniform(0.1, 1.0, 4 * robot.dof)
    return replace(model, values=values)


@pytest.mark.parametrize("optimality", ["d", "a"])
@pytest.mark.parametrize(("name", "goal"), [("ur10e", "all"), ("ur5e", "payload"), ("panda", "friction")])
def test_the_gradient_of_criterion_and_torque_is_that_of_differences(name: str, goal: Goal, optimality: str) -> None:
    model = make_model(name, goal)
    typical = np.random.default_rng(4).uniform(0.1, 1.0, len(model.names)) if optimality == "a" else None
    states = fourier_trajectory(model.robot, 10.0, 3).sample(8.0)
    random = np.random.default_rng(1)
    by_torque = random.normal(size=states.q.shape)

    def value(states: States) -> float:
        columns = model.columns(states)
        return criterion(model, columns, typical)[0] + float((by_torque * model.torque(columns, states)).sum())

    columns = model.columns(states)
    gradient = model.gradient(states, columns, criterion(model, columns, typical)[1], by_torque)
    for field, slope in zip(("q", "qd", "qdd"), gradient, strict=True):
        change = random.normal(size=states.q.shape)
        shifted = [replace(states, **{field: getattr(states, field) + step * change}) for step in (1e-6, -1e-6)]
        difference = (value(shifted[0]) - value(shifted[1])) / 2e-6
        assert difference == pytest.approx(float((slope * change).sum()), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("basis", [FourierBasis(10.0, 3), SplineBasis(10.0)])
def test_the_gradient_of_the_search_includes_all_limits_and_the_path_to_the_first_pose(basis: MotionBasis) -> None:
    model = make_model("ur5e")
    limits = excitation_limits(model.robot, 0.2, Clearance(Body(model.robot), 0.5), 1.0)
    limits = replace(limits, effort=0.2 * limits.effort)
    search = Search(model, limits, basis, 0.6, 1)
    start = search.start(0)
    change = np.random.default_rng(2).normal(size=start.size)
    with_limits, gradient = search.value(start, 1.0)
    assert with_limits > search.value(start, 0.0)[0] + 1.0
    difference = (search.value(start + 1e-6 * change, 1.0)[0] - search.value(start - 1e-6 * change, 1.0)[0]) / 2e-6
    assert difference == pytest.approx(float(gradient @ change), rel=1e-3)


def test_a_optimality_is_the_mean_of_squared_relative_errors_and_d_optimality_the_volume() -> None:
    model = make_model("planar2", "friction")
    columns = model.columns(fourier_trajectory(model.robot, 20.0, 1).sample(50.0))
    errors, target = standard_errors(model, columns), model.target
    typical = np.random.default_rng(2).uniform(0.1, 1.0, len(errors))
    value, _ = criterion(model, columns, typical)
    assert value == pytest.approx(np.log(np.mean(np.square(errors / typical)[target])), rel=1e-9)
    covariance = np.linalg.inv(model.information(columns))[np.ix_(target, target)]
    assert criterion(model, columns)[0] == pytest.approx(np.linalg.slogdet(covariance)[1] / target.sum(), rel=1e-9)


@pytest.mark.parametrize("basis", [FourierBasis(10.0, 4), SplineBasis(10.0)])
def test_a_basis_begins_and_ends_at_rest_and_is_linear(basis: MotionBasis) -> None:
    robot = jw.load_robot("planar2")
    center, coefficients = np.array([0.3, -0.2]), basis.random(robot, 1, 0.6)
    motion = basis.motion(center, coefficients)
    states = motion.at(basis.times)
    rows = np.vstack([center, coefficients])
    for part, values in zip(basis.functions(), (states.q, states.qd, states.qdd), strict=True):
        np.testing.assert_allclose(part @ rows, values, atol=1e-12)
    ends = motion.at(np.array([0.0, 10.0]))
    np.testing.assert_allclose(ends.q, [center, center], atol=1e-12)
    np.testing.assert_allclose(np.stack([ends.qd, ends.qdd]), 0.0, atol=1e-9)


def stacked(model: InformationModel, states: States) -> Array:
    """Return the regressor of all joints (samples · joints, parameters), composed independently, over the noise."""
    base, robot = model.dynamics.base, model.robot
    Y = compute_regressor(robot, states.q, states.qd, states.qdd, rotors=True).matrices()
    bodies, load = Y[:, :, base.kept], Y[:, :, base.kept] @ model.values[: base.count]
    h = np.tanh(states.qd / 0.05)
    friction = np.stack([np.ones_like(h), h, np.abs(load) * h, states.qd], axis=2)
    wide = np.zeros((len(h), robot.dof, 4 * robot.dof))
    for j in range(robot.dof):
        wide[:, j, 4 * j : 4 * j + 4] = friction[:, j]
    weighted: Array = np.concatenate([bodies, wide], axis=2) / model.noise[:, None]
    return weighted.reshape(-1, base.count + 4 * robot.dof)


def test_predicted_errors_are_those_of_least_squares_with_noise() -> None:
    model = make_model("planar2")
    states = fourier_trajectory(model.robot, 20.0, 1).sample(50.0)
    predicted = standard_errors(model, model.columns(states))
    W = stacked(model, states)
    noise = np.random.default_rng(0).normal(size=(400, len(W)))
    realised = (np.linalg.pinv(W) @ noise.T).std(axis=1)
    np.testing.assert_allclose(realised, predicted, rtol=0.15)
    np.testing.assert_allclose(standard_errors(model, model.columns(states), 4.0), 0.5 * predicted, rtol=1e-9)


def test_the_condition_number_is_that_of_the_regressor_of_base_parameters() -> None:
    robot = jw.load_robot("ur10e")
    model = make_model("ur10e")
    states = fourier_trajectory(robot, 20.0, 0).sample(50.0)
    W = compute_regressor(robot, states.q, states.qd, states.qdd).stacked()[:, base_parameters(robot).kept]
    assert W.shape[1] == 36
    assert condition_number(model, model.columns(states)) == pytest.approx(np.linalg.cond(W), rel=1e-6)


@pytest.fixture(scope="module")
def ur5e() -> Excitation:
    return optimize_excitation(jw.load_robot("ur5e"), ExcitationOptions(duration=12.0, seed=1, harmonics=5, starts=1))


@pytest.fixture(scope="module")
def panda() -> Excitation:
    return optimize_excitation(
        jw.load_robot("panda"), ExcitationOptions(duration=12.0, seed=2, harmonics=4, starts=1, goal="bodies")
    )


@pytest.fixture(scope="module")
def spline() -> Excitation:
    options = ExcitationOptions(duration=8.0, seed=1, starts=1, basis="bspline", criterion="a")
    return optimize_excitation(jw.load_robot("ur10e"), options)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ur5e", "panda", "spline"])
def test_limits_hold_at_ten_times_the_rate(name: str, request: pytest.FixtureRequest) -> None:
    found: Excitation = request.getfixturevalue(name)
    robot, motion = found.robot, found.motion
    states = motion.sample(5000.0)
    check_limits(robot, motion, 5000.0)
    assert (np.abs(states.qd) <= 0.6 * np.array([joint.limits.velocity for joint in robot.joints])).all()
    assert np.abs(states.qdd).max() <= max(joint.limits.acceleration or 6.0 for joint in robot.joints)
    torque = inverse_dynamics(robot, states.q[::10], states.qd[::10], states.qdd[::10])
    assert (np.abs(torque) <= np.array([joint.limits.effort for joint in robot.joints])).all()
    path = np.concatenate([states.q[::5], straight_path(found.limits.home, motion.center)])
    assert Body(robot).heights(path).min() >= 0.05
    assert Body(robot).distances(path).min() >= APART
    ends = motion.at(np.array([0.0, motion.duration]))
    assert motion.duration == found.options.duration
    np.testing.assert_allclose(np.stack([ends.qd, ends.qdd]), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["ur5e", "panda", "spline"])
def test_the_motion_determines_parameters_better_than_random_series(name: str, request: pytest.FixtureRequest) -> None:
    found: Excitation = request.getfixturevalue(name)
    assert np.median(found.improvement[found.model.target]) > 1.3
    assert found.condition < 0.5 * found.random.condition


def test_a_motion_that_separates_nothing_has_a_warning() -> None:
    options = ExcitationOptions(5.0, speed=0.002, harmonics=2, starts=1)
    found = optimize_excitation(jw.load_robot("ur5e"), options)
    assert found.poor and "warning: the motion hardly separates the parameters" in found.summary()


def test_files_hold_the_same_motion(ur5e: Excitation, tmp_path: Path) -> None:
    write_excitation(ur5e, tmp_path)
    table = np.genfromtxt(tmp_path / "trajectory.csv", delimiter=",", names=True)
    assert table.dtype.names[:2] == ("t", "q1") and table.dtype.names[-1] == "qdd6"
    assert table["t"][-1] == 12.0 and len(table) == 6001
    np.testing.assert_allclose(np.gradient(table["q2"], 0.002), table["qd2"], atol=2e-4)
    message = json.loads((tmp_path / "joint_trajectory.json").read_text())
    assert message["joint_names"] == [joint.name for joint in ur5e.robot.joints]
    assert message["points"][250]["time_from_start"] == {"sec": 2, "nanosec": 500_000_000}
    np.testing.assert_allclose(message["points"][250]["positions"], [table[f"q{j}"][1250] for j in range(1, 7)])
    commanded = run_script((tmp_path / "excitation.script").read_text())
    rows = np.column_stack([table[f"q{j}"] for j in range(1, 7)])[:6000:4]
    starts = [k for k in range(0, len(commanded) - 6000) if np.allclose(commanded[k : k + 6000 : 4], rows, atol=1e-5)]
    assert starts, "the program does not command the trajectory"
    page = (tmp_path / "excitation.html").read_text()
    assert "Coverage of speed and load" in page and all(name in page for name in ("ZZR2", "FC1_3", "Fv1_6"))


def test_the_program_of_a_spline_commands_it(spline: Excitation, tmp_path: Path) -> None:
    write_excitation(spline, tmp_path)
    commanded = run_script((tmp_path / "excitation.script").read_text())
    planned = spline.motion.position(0.008 * np.arange(1000))  # one position per servoj of 8 ms
    first = next(k for k in range(len(commanded)) if np.allclose(commanded[k : k + 4000 : 4], planned, atol=1e-5))
    assert first > 0
    assert json.loads((tmp_path / "prediction.json").read_text())["basis"] == "bspline"


def test_an_interrupted_search_is_resumed_and_gives_the_same_motion(tmp_path: Path) -> None:
    robot = jw.load_robot("planar2")
    options = ExcitationOptions(duration=8.0, harmonics=3, starts=2, clearance=None)
    whole = optimize_excitation(robot, options)
    state = tmp_path / "state.json"

    def interrupt(stage: str, share: float | None) -> None:
        if stage == "optimising":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize_excitation(robot, options, state=state, progress=interrupt)
    assert len(json.loads(state.read_text())["steps"]) == 1
    resumed = optimize_excitation(robot, options, state=state)
    np.testing.assert_array_equal(resumed.motion.sine, whole.motion.sine)
    with pytest.raises(jw.errors.ModelError, match="other settings"):
        optimize_excitation(robot, replace(options, duration=9.0), state=state)


@pytest.mark.thorough
def test_the_two_best_starts_are_refined_and_the_better_motion_is_kept() -> None:
    robot, options = jw.load_robot("planar2"), ExcitationOptions(duration=8.0, harmonics=3, clearance=None)
    limits = excitation_limits(robot, 0.6, Clearance(Body(robot), -np.inf))
    search = Search(_information_model(robot, limits, options), limits, FourierBasis(8.0, 3), 0.6, seed=3)
    refined: list[Any] = []
    shares: list[float] = []

    def accept(motion: Any) -> Any:
        refined.append(motion)
        return motion

    best = search_motion(search, 4, accept, "key", None, shares.append)
    assert len(refined) == 2 and shares == sorted(shares) and shares[-1] == 1.0
    assert best is min(refined, key=search.quality)
    others = [search.motion(np.array(search.improve(search.start(k), 3.0, 60).variables)) for k in range(4)]
    assert search.quality(best) < max(search.quality(each) for each in others)
    only = search_motion(search, 4, lambda motion: motion if motion is not best else None, "key", None, shares.append)
    assert only is not None


def test_goals_count_their_parameters() -> None:
    robot = jw.load_robot("planar2")
    options = ExcitationOptions(duration=8.0, harmonics=3, starts=1, clearance=None)
    goals: tuple[Goal, ...] = ("bodies", "friction", "payload")
    errors = {goal: optimize_excitation(robot, replace(options, goal=goal)) for goal in goals}
    bodies = errors["bodies"].model.bodies
    volume = {goal: np.log(errors[goal].errors[bodies:]).sum() for goal in ("bodies", "friction")}
    assert volume["friction"] < volume["bodies"]
    payload = errors["payload"].model
    assert payload.names[:3] == ("ZZ2", "mX2", "mY2")
    assert np.flatnonzero(rigid_columns(payload)).tolist() == list(range(payload.bodies))


def test_the_recording_of_an_excitation_is_compared_with_its_prediction(tmp_path: Path, capsys: Any) -> None:
    folder, log, model = tmp_path / "excitation", tmp_path / "log.parquet", tmp_path / "model.json"
    found = excite("planar2", folder, ExcitationOptions(duration=8.0, clearance=None))
    assert not (folder / "state.json").exists()
    plain = jw.PlantOptions(without=("all",))
    result = jw.simulate("planar2", found.motion, plant=plain, sensors=jw.Sensors(colored=False, speed_noise=None))
    jw.write_log(result.log, log)
    words = ["calibrate", str(log), "--robot", "planar2", "--output", str(model), "--excitation", str(folder), "--json"]
    assert main([*words, "--direction", "tanh", "--load", "none", "--viscous-powers", "1"]) == 0
    compared = json.loads(capsys.readouterr().out)["excitation"]
    assert 0.2 < compared["median_ratio"] < 20.0
    assert {"ZZR1", "FC0_1"} <= {row["name"] for row in compared["parameters"]}
    calibration = jw.load_calibration(model)
    expect_noise_of_a_calibration(calibration)
    expect_a_corrected_prediction(calibration, folder, tmp_path)
    assert "times those of the prediction" in compare_with_prediction(calibration, folder).summary()
    assert main(["excite", "--robot", "ur5e", "--model", str(model), "--output", str(tmp_path / "other")]) == 1
    assert "a model of 'planar2', not of 'ur5e'" in capsys.readouterr().err
    prediction = folder / "prediction.json"
    prediction.write_text(prediction.read_text().replace('"planar2"', '"ur5e"'))
    with pytest.raises(jw.errors.ModelError, match="a prediction for 'ur5e', not for 'planar2'"):
        compare_with_prediction(calibration, folder)
    prediction.write_text("{}")
    with pytest.raises(jw.errors.ModelError, match="not the prediction"):
        compare_with_prediction(calibration, folder)


def expect_noise_of_a_calibration(calibration: jw.Calibration) -> None:
    """Expect that white noise with the effect of the residuals grows with their correlation and with the rate."""
    white = replace(calibration, estimate=replace(calibration.estimate, shares={"independent noise": 1.0}))
    rows = calibration.filters.rate / calibration.filters.decimation
    np.testing.assert_allclose(torque_noise(white, rows), calibration.estimate.sigma)
    colored = replace(calibration, estimate=replace(calibration.estimate, shares={"independent noise": 0.25}))
    np.testing.assert_allclose(torque_noise(colored, 4.0 * rows), 4.0 * calibration.estimate.sigma)
    shares = {"independent noise": 0.25, "filters": 0.5}
    filtered = replace(calibration, estimate=replace(calibration.estimate, shares=shares, factor=1.9 * np.sqrt(3.0)))
    np.testing.assert_allclose(torque_noise(filtered, rows), 2.0 * np.sqrt(2.5) * calibration.estimate.sigma)
    with pytest.raises(jw.errors.ModelError, match="state the causes of its standard errors"):
        torque_noise(replace(calibration, estimate=replace(calibration.estimate, shares={})), 500.0)


def expect_a_corrected_prediction(calibration: jw.Calibration, folder: Path, tmp_path: Path) -> None:
    """Expect that the prediction for the same motion becomes the standard errors of the calibration."""
    noise, inflation = learned_noise(calibration, folder)
    compared = compare_with_prediction(calibration, folder)
    options = ExcitationOptions(duration=8.0, clearance=None, noise=noise, inflation=inflation)
    again = excite("planar2", tmp_path / "again", options)
    realised = compare_with_prediction(calibration, tmp_path / "again")
    np.testing.assert_allclose(realised.predicted, compared.realised, rtol=1e-6)
    assert realised.median == pytest.approx(1.0) and not realised.white and compared.white
    assert ("--previous DIR" in compared.summary()) == (compared.median > 1.25) and "previous" not in realised.summary()
    repeated = learned_noise(calibration, tmp_path / "again")[1]
    assert repeated == pytest.approx(inflation)
    assert again.errors[again.model.names.index("offset_1")] > 0.0


def narrowed(robot: Robot, **limits: float | None) -> Robot:
    """Return a robot whose second joint has other limits."""
    joints = list(robot.joints)
    joints[1] = replace(joints[1], limits=replace(joints[1].limits, **limits))
    return replace(robot, joints=tuple(joints))


@pytest.mark.parametrize(
    ("limits", "options", "message"),
    [
        ({"velocity": None}, {}, "lacks velocity of joint 2: state lower, upper"),
        ({"lower": 0.1, "upper": 0.1}, {}, "position limits of joint 2 .* permit no excitation"),
        ({}, {"duration": 2.0}, "at least 5 s. Got 2 s"),
        ({}, {"duration": 1e3}, "duration must be at most 600 s"),
        ({}, {"duration": 90.0, "basis": "bspline"}, "duration must be at most 60 s with the basis bspline"),
        ({}, {"basis": "wavelet"}, "basis must be fourier or bspline. Got 'wavelet'"),
        ({}, {"criterion": "e"}, "criterion must be d or a. Got 'e'"),
        ({}, {"inflation": {"ZZR2": 0.0}}, "inflation of ZZR2 must be a positive number"),
        ({}, {"inflation": {}}, "inflation must have at least one parameter"),
        ({}, {"noise": (0.1, 0.2)}, "noise must be 6 numbers"),
        ({}, {"noise": (0.1, 0.2, 0.1, -1.0, 0.1, 0.1)}, "noise of joint 4 must be a positive number"),
        ({}, {"goal": "fun"}, "goal must be all, bodies, friction or payload. Got 'fun'"),
        ({}, {"clearance": 3.0}, "upright pose, where an excitation begins, must stay 3 m above"),
        ({}, {"speed": 1.5}, "speed must be a number from 0 to 1. Got 1.5"),
        ({}, {"speed": 1e-4}, "the limits permit no excitation: motions at 0.01 % of the speed limits"),
        ({}, {"acceleration": 1e-4, "duration": 5.0, "starts": 1}, "permit no excitation in 5 s.* larger acceleration"),
        ({}, {"acceleration": -1.0}, "acceleration must be a number above 0"),
        ({}, {"reference": {"mass": 1.0}}, "reference must have parameters of robot 'ur5e'"),
    ],
)
def test_wrong_input_is_one_clear_line(limits: dict[str, Any], options: dict[str, Any], message: str) -> None:
    robot = narrowed(jw.load_robot("ur5e"), **limits)
    with pytest.raises(jw.errors.ModelError, match=message) as problem:
        optimize_excitation(robot, ExcitationOptions(**options))
    assert "\n" not in str(problem.value)


def test_a_model_of_another_robot_is_no_reference() -> None:
    ur5e = jw.load_robot("ur5e")
    moved = replace(ur5e.joints[2], translation=ur5e.joints[2].translation + np.array([0.0, 0.003, 0.0]))
    assert same_geometry(ur5e, replace(ur5e, joints=(*ur5e.joints[:2], moved, *ur5e.joints[3:])))
    assert not any(same_geometry(ur5e, jw.load_robot(name)) for name in ("ur10e", "ur3e", "panda"))


def test_the_command_asks_for_missing_limits_and_leaves_no_files(tmp_path: Path, capsys: Any) -> None:
    assert main(["excite", "--robot", "puma560", "--output", str(tmp_path / "new")]) == 1
    assert "lacks velocity, effort of all joints" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert main(["excite", "--robot", "ur5e", "--previous", "old", "--output", str(tmp_path / "new")]) == 1
    assert "--previous needs --model" in capsys.readouterr().err
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["excite", "--robot", "planar2", "--output", str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err
