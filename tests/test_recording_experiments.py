"""Experiments on the digital robot: what is recorded, how well it is followed, what is refused, to the bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise
from jointwise.description import Payload, load_robot
from jointwise.design import EXPERIMENTS
from jointwise.design.experiments import SUMMARIES
from jointwise.errors import JointwiseError, ModelError, OutputError
from jointwise.experiment import CONTROLLERS, Events, PlantOptions, Push, SimulationResult, default_sensors, simulate
from jointwise.experiment import run as experiment_run
from jointwise.simulation import Sensors
from jointwise.simulation.recording import digital_robot_from_truth
from jointwise.simulation.robot import PHENOMENA, InstabilityError, default_joints, saturation
from kernels import needs_native
from simulation_options import grouped

pytestmark = needs_native

PERFECT = Sensors(
    encoder_counts=None, speed_noise=0.0, current_noise=0.0, motor_counts=None,
    temperature_noise=0.0, temperature_quantisation=None, torque_noise=0.0,
)  # fmt: skip
DURATIONS = {"waypoints": None, "constant-speed": 30.0, "load": 20.0, "reciprocate": 12.0, "warm-up": 10.0}


def error(recording: SimulationResult) -> Any:
    log = recording.log
    assert log.q_des is not None
    return np.abs(log.q - log.q_des)


def bytes_of(recording: SimulationResult) -> bytes:
    return b"".join(recording.log.channel(name).tobytes() for name in recording.log.available)


# -- what is recorded --


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_followed_and_recorded(name: str) -> None:
    made = simulate("ur5e", name, duration=DURATIONS.get(name, 6.0), rate=200.0, keep=0)
    log, truth = made.log, made.truth
    assert log.samples == round(truth["duration"] * 200.0)
    assert log.origin.path == "digital robot"
    assert {"qd", "theta", "current", "temperature", "q_des", "qd_des", "qdd_des", "torque_des", "current_des"} <= set(
        log.available
    )
    assert ("torque" in log.available) == (name == "locked")
    assert error(made).max() < 6e-3
    assert truth["experiment"]["name"] == name
    np.testing.assert_allclose(np.linalg.norm(truth["gravity"]), 9.81)
    assert all(np.isfinite(log.channel(channel)).all() for channel in log.available)


def test_every_experiment_has_its_line() -> None:
    assert list(SUMMARIES) == list(EXPERIMENTS)


def test_the_robot_stands_before_it_moves() -> None:
    made = simulate("ur5e", duration=6.0, rate=250.0)
    lead = made.truth["lead"]
    assert lead == pytest.approx(0.12)
    still = made.log.t < lead
    assert still.sum() == 30
    assert (made.log.q_des[still] == made.log.q_des[0]).all()  # type: ignore[index]
    assert np.ptp(made.log.q[still], axis=0).max() < 1e-3


def test_targets_are_those_of_a_model_without_friction() -> None:
    """Without friction and elasticity the measured current equals that of the model; with friction it does not."""
    off = [name for name in PHENOMENA if name != "thermal"]
    bare = simulate("planar2", duration=6.0, rate=1000.0, plant=PlantOptions(without=off), sensors=PERFECT)
    log = bare.log
    wanted = np.asarray(log.torque_des) / bare.digital.gains
    moving = log.t > 0.5
    # the command of a period shows in the current from the next sample on
    off_by = np.asarray(log.current)[1:][moving[1:]] - wanted[:-1][moving[1:]]
    assert np.abs(off_by).max() < 0.02 * np.abs(wanted).max()
    with_friction = simulate("planar2", duration=6.0, rate=1000.0, sensors=PERFECT)
    apart = (
        np.asarray(with_friction.log.current) - np.asarray(with_friction.log.torque_des) / with_friction.digital.gains
    )
    assert np.abs(apart).max() > 5.0 * np.abs(off_by).max()


def test_perfect_sensors_see_the_run_itself() -> None:
    made = simulate("planar2", duration=3.0, rate=1000.0, sensors=PERFECT)
    run = made.run
    assert run is not None
    rows = slice(0, made.log.samples)
    for name in ("q", "qd", "theta", "current", "temperature"):
        np.testing.assert_array_equal(made.log.channel(name), getattr(run, name)[rows])
    np.testing.assert_array_equal(made.log.channel("current_des"), run.command[rows] / made.digital.gains)


def test_the_rate_of_the_log_does_not_change_the_motion() -> None:
    slow = simulate("planar2", duration=3.0, rate=125.0, sensors=PERFECT).log
    fast = simulate("planar2", duration=3.0, rate=4000.0, sensors=PERFECT).log
    np.testing.assert_allclose(slow.q, fast.q[::32], atol=1e-12)
    odd = simulate("planar2", duration=3.0, rate=333.0, sensors=PERFECT).log
    np.testing.assert_allclose(odd.q[:, 0], np.interp(odd.t, fast.t, fast.q[:, 0]), atol=1e-6)


def test_clocks_jitter_lose_and_repeat() -> None:
    made = simulate("planar2", duration=8.0, sensors=default_sensors(jitter=2e-4, dropped=0.02, repeated=0.03))
    clock = made.log.clock
    assert made.log.samples == pytest.approx(0.98 * 4000, abs=2)
    assert len(clock.repeated) == pytest.approx(0.03 * 3920, abs=2)
    assert np.std(np.diff(made.log.t)) > 1e-4


def test_a_locked_joint_shows_the_gauge_and_its_spring() -> None:
    made = simulate("ur5e", "locked", duration=8.0, joint=2, sensors=PERFECT)
    run, log = made.run, made.log
    assert run is not None
    assert np.ptp(log.q, axis=0).max() == 0.0
    gauge = np.asarray(log.torque)[:, 2]
    np.testing.assert_array_equal(gauge, run.load[::2, 2][: log.samples])
    assert np.abs(gauge).max() > 50.0
    motor = np.asarray(log.current)[:, 2] * made.digital.gains[2]
    assert np.abs(motor).max() > np.abs(gauge).max()  # friction takes its part


# -- reproducible --


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, again, other = (simulate("planar2", duration=2.0, seed=seed, keep=0) for seed in (7, 7, 8))
    assert bytes_of(first) == bytes_of(again)
    assert first.truth == again.truth
    assert bytes_of(first) != bytes_of(other)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The motion is the same whether it is run in one piece or in many."""
    whole = simulate("planar2", duration=2.0, sensors=PERFECT).log
    monkeypatch.setattr(experiment_run, "CHUNK", 300)
    parts = simulate("planar2", duration=2.0, sensors=PERFECT)
    for name in whole.available:
        np.testing.assert_allclose(parts.log.channel(name), whole.channel(name), atol=1e-9)
    assert parts.run is not None
    assert len(parts.run.t) == 1999  # the last sample is taken at 1.998 s


def test_the_truth_makes_the_same_log_again() -> None:
    made = simulate(
        "planar2", duration=2.0, plant=PlantOptions(without=("stribeck",), age={"friction": 0.3}, payload=Payload(0.5))
    )
    twin = digital_robot_from_truth(made.truth)
    again = simulate(twin.robot, duration=2.0, plant=PlantOptions(twin.payload, twin.gravity, joints=twin.joints))
    assert bytes_of(again) == bytes_of(made)


def test_files_are_equal_to_the_bit(tmp_path: Path) -> None:
    for name in ("a", "b"):
        simulate("planar2", duration=1.0, seed=3).write(tmp_path / f"{name}.parquet", tmp_path / f"{name}.json")
    for ending in ("parquet", "json"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_a_log_and_its_truth_appear_together_or_not_at_all(tmp_path: Path) -> None:
    made = simulate("planar2", duration=1.0)
    broken = replace(made, log=replace(made.log, q=np.where(made.log.q == made.log.q[5], np.nan, made.log.q)))
    with pytest.raises(JointwiseError, match="not finite"):
        broken.write(tmp_path / "log.csv", tmp_path / "truth.json")
    with pytest.raises(JointwiseError, match="cannot be written"):
        made.write(tmp_path / "log.csv", tmp_path / "nowhere" / "truth.json")
    assert list(tmp_path.iterdir()) == []


# -- the robot --


def test_only_the_requested_samples_are_kept() -> None:
    assert simulate("planar2", duration=1.0, keep=0).run is None
    few = simulate("planar2", duration=2.0, keep=100).run
    assert few is not None
    assert 90 <= len(few.t) <= 100


def test_age_cold_and_payload_show_in_the_current() -> None:
    def mean_current(**options: Any) -> float:
        return float(
            np.abs(
                simulate("planar2", duration=4.0, keep=0, plant=PlantOptions(**options)).log.channel("current")
            ).mean()
        )

    new = mean_current()
    assert mean_current(age={"friction": 0.5}) > 1.05 * new
    assert mean_current(temperature=12.0) > 1.005 * new
    assert mean_current(payload=Payload(5.0, (0.1, 0.0, 0.0))) > 1.05 * new
    assert mean_current(without=("friction",)) < 0.9 * new


def test_other_joints_can_be_given() -> None:
    robot = load_robot("planar2")
    doubled = [joint.__class__(**{**vars(joint), "inertia": 2.0 * joint.inertia}) for joint in default_joints(robot)]
    made = simulate(robot, duration=1.0, plant=PlantOptions(joints=doubled), keep=0)
    assert made.truth["rotor_inertias"] == [joint.inertia for joint in doubled]


@pytest.mark.parametrize("name", CONTROLLERS)
def test_every_controller_follows(name: str) -> None:
    made = simulate("planar2", duration=5.0, rate=100.0, controller=name, keep=0)
    assert error(made).max() < 0.05
    assert made.truth["controller"]["name"] == name


def test_progress_goes_from_nothing_to_all() -> None:
    shares: list[float] = []
    simulate("planar2", duration=20.0, rate=10.0, keep=0, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_front_door_opens() -> None:
    assert jointwise.simulate is simulate


# -- what is refused --


@pytest.mark.parametrize("duration", [0.5, 1.0, 1.37, 2.0, 3.3])
def test_short_excitations_keep_the_limits(duration: float) -> None:
    for seed in range(4):
        simulate("planar2", duration=duration, seed=seed, rate=50.0, keep=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"experiment": "exitation"}, "unknown experiment.*excitation"),
        ({"without": ("hysterese",)}, "unknown phenomenon.*hysteresis"),
        ({"controller": "pdd"}, "unknown controller"),
        ({"age": {"beauty": 1.0}}, "age must name"),
        ({"age": {"friction": -1.5}}, "friction must be"),
        ({"joint": 7}, "joint"),
        ({"duration": -1.0}, "duration must be"),
        ({"duration": float("nan")}, "duration must be"),
        ({"duration": 0.001}, "duration"),
        ({"rate": 0.0}, "rate must be"),
        ({"rate": float("inf")}, "rate must be"),
        ({"control_rate": 0.0}, "control_rate must be"),
        ({"bandwidth": -2.0}, "bandwidth must be"),
        ({"bandwidth": 200.0}, "gains"),
        ({"control_rate": 40.0}, "too low for the gains"),
        ({"controller": "lqr", "bandwidth": 5.0}, "bandwidth must be None for this controller"),
        ({"model": "simple"}, "model must be"),
        ({"gravity": "moon"}, "unknown mounting"),
        ({"experiment": "ellipse", "joint": 1}, "moves all joints"),
        ({"experiment": "waypoints", "duration": 3.0}, "standstill"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(JointwiseError, match=message):
        simulate("ur5e", **grouped(**({"duration": 2.0} | options)))


@pytest.mark.parametrize("mass", [80.0, 500.0])
def test_an_arm_that_cannot_carry_its_load_says_what_its_motor_lacks(mass: float) -> None:
    with pytest.raises(ModelError, match=r"overloaded: the motion needs [\d.]+ Nm, .* at most [\d.]+ Nm"):
        simulate("ur5e", duration=4.0, plant=PlantOptions(Payload(mass)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"events": Events(pushes=[Push(0.5, 0.1, (0, 0, -30000.0))])},
            "push of 30000 N at 0.5 s is more than",
        ),
        ({"events": Events(payloads={0.5: Payload(500.0)})}, "overloaded: the motion needs"),
        ({"events": Events(wear={"friction": 1e9})}, "stuck: friction takes"),
        ({"age": {"friction": 1e9}}, "stuck: friction takes"),
        ({"age": {"friction": 50.0}}, "stuck: friction takes"),
    ],
)
def test_what_is_too_much_for_the_arm_is_named_and_not_its_gains(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as refusal:
        simulate("ur5e", duration=3.0, rate=100.0, keep=0, **grouped(**options))
    assert "gains" not in str(refusal.value)


def test_an_arm_that_is_pushed_off_its_motion_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_run, "LOST", 1e-4)
    with pytest.raises(ModelError, match=r"lost its motion at t = "):
        simulate("ur5e", duration=2.0)


def test_gains_are_checked_along_the_whole_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_run, "CHUNK", 64)
    seen: list[object] = []
    monkeypatch.setattr(
        experiment_run, "check_stability", lambda *args, times, **more: seen.append((args[1].periods, times))
    )
    for controller in ("servo", "computed-torque"):
        simulate("planar2", duration=1.0, controller=controller)
    for periods, times in seen:  # type: ignore[misc]
        assert periods == len(times)
        assert (times[0], times[-1]) == (0.0, pytest.approx(1.0, abs=3e-3))


def test_a_locked_joint_has_no_controller() -> None:
    made = simulate("planar2", "locked", duration=1.0)
    assert made.truth["controller"] == {"name": "prescribed torque", "rate": 1000.0, "bandwidth": None}
    for choice in ({"controller": "lqr"}, {"bandwidth": 5.0}):
        with pytest.raises(ModelError, match="prescribes the torques"):
            simulate("planar2", "locked", duration=1.0, **grouped(**choice))


def test_the_duration_that_a_message_names_does_suffice() -> None:
    for name in ("constant-speed", "waypoints", "reciprocate"):
        with pytest.raises(ModelError, match="at least") as refusal:
            simulate("ur5e", name, duration=2.0, rate=50.0)
        least = float(str(refusal.value).split("at least ")[1].split(" s")[0])
        assert simulate("ur5e", name, duration=least, rate=50.0, keep=0).truth["duration"] == least


def test_a_run_that_explodes_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the linear check does not see is still caught during the run."""
    monkeypatch.setattr(experiment_run, "check_stability", lambda *args, **options: None)
    with pytest.raises((InstabilityError, ModelError), match="unstable") as failure:
        simulate("ur5e", duration=4.0, **grouped(control_rate=40.0, without=("current_limit",)))
    assert "substeps" not in str(failure.value)


def test_an_experiment_outside_the_reach_is_refused() -> None:
    with pytest.raises(JointwiseError):
        simulate("planar2", "ellipse", duration=2.0)


# -- files --


def test_neither_log_nor_truth_appears_where_one_of_them_cannot(tmp_path: Path) -> None:
    made = simulate("planar2", "excitation", duration=1.0, keep=0)
    for name in ("folder", "folder.csv"):
        (tmp_path / name).mkdir()
    for log, truth in (("log.csv", "folder"), ("folder.csv", "truth.json"), ("log.csv", "log.csv")):
        with pytest.raises(OutputError):
            made.write(tmp_path / log, tmp_path / truth)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "folder.csv"]
    made.write(tmp_path / "log.csv", tmp_path / "truth.json")
    assert (tmp_path / "log.csv").exists() and (tmp_path / "truth.json").exists()


def test_a_summary_describes_the_log_and_the_truth() -> None:
    made = simulate("planar2", "excitation", duration=4.0, keep=0)
    reported, off, temperature = made.to_dict(), error(made), made.log.channel("temperature")
    few = made.log.samples // 50
    columns = {key: [item[key] for item in reported["joints"]] for key in reported["joints"][0]}
    assert columns["joint"] == [joint.name for joint in made.digital.robot.joints]
    np.testing.assert_allclose(columns["tracking_rms"], np.sqrt(np.mean(off**2, axis=0)))
    np.testing.assert_array_equal(columns["tracking_max"], off.max(axis=0))
    np.testing.assert_array_equal(columns["current"], np.abs(made.log.channel("current")).max(axis=0))
    np.testing.assert_allclose(columns["warming"], temperature[-few:].mean(axis=0) - temperature[:few].mean(axis=0))
    assert (reported["samples"], reported["rate"]) == (made.log.samples, made.truth["rate"])


def test_a_summary_is_text_with_the_figures_of_the_document() -> None:
    made = simulate("planar2", "bspline", duration=2.0, rate=100.0, keep=0)
    text, figures = made.summary(), made.to_dict()
    assert text.splitlines()[0].startswith(f"{figures['robot']}, simulated: bspline")
    assert "2 s, 200 samples at 100 Hz" in text
    for joint in figures["joints"]:
        assert f"{joint['joint']} " in text and f"{1e3 * joint['tracking_max']:.3g}" in text


def test_the_summary_states_the_load_and_the_chosen_gravity() -> None:
    recording = simulate("ur5e", "load", duration=12.0, rate=100.0, keep=0)
    loaded = simulate("ur5e", "load", duration=12.0, rate=100.0, keep=0, plant=PlantOptions(Payload(2.0))).to_dict()
    turned = simulate("ur5e", "load", duration=12.0, rate=100.0, keep=0, plant=PlantOptions(gravity="wall")).to_dict()
    assert loaded["gravity_load"] > 1.1 * recording.to_dict()["gravity_load"] > 10.0 > turned["gravity_load"]
    assert "not here" in turned["note"] and "not here" not in loaded["note"]
    assert recording.to_dict()["held_temperatures"] is None
    assert simulate("panda", "constant-speed", rate=20.0, duration=20.0, keep=0).to_dict()["gravity_load"] == 0.0
    cold = simulate("ur5e", duration=1.0, rate=100.0, keep=0, plant=PlantOptions(temperature=0.0)).to_dict()
    assert cold["held_temperatures"] == (10.0, 60.0)


@pytest.mark.parametrize(
    ("controller", "bandwidth"),
    [*product(("servo", "pid"), (1e-3, 0.1, 200.0, 1e6)), *product(("adaptive", "torque-feedback"), (0.1, 200.0))],
)
def test_a_bandwidth_that_does_not_hold_is_refused_with_one_that_does(controller: str, bandwidth: float) -> None:
    options: dict[str, Any] = {"duration": 1.0, "rate": 100.0, "keep": 0, "controller": controller}
    with pytest.raises(ModelError, match=r"A bandwidth of [\d.]+ Hz would do.$") as refused:
        simulate("ur5e", **grouped(**options, bandwidth=bandwidth))
    reported = float(str(refused.value).split("bandwidth of ")[1].split()[0])
    assert simulate("ur5e", **grouped(**options, bandwidth=reported)).log.samples == 100


def test_the_summary_reports_motors_at_their_limits() -> None:
    """A motor below the required torque is reported as `saturation` reports it for the run; others are not."""
    usual = simulate("planar2", duration=4.0, rate=1000.0, sensors=PERFECT)
    assert [item["saturated"] for item in usual.to_dict()["joints"]] == [0.0, 0.0]
    first, second = usual.digital.joints
    weak = replace(first, motor=replace(first.motor, limit=0.9 * usual.to_dict()["joints"][0]["current"]))
    made = simulate("planar2", duration=4.0, rate=1000.0, sensors=PERFECT, plant=PlantOptions(joints=[weak, second]))
    assert made.run is not None
    reported, rows = saturation(made.run), made.to_dict()["joints"]
    assert rows[0]["saturated"] > 0.0 and rows[0]["demand"] > 1.0 and rows[1]["saturated"] == 0.0
    np.testing.assert_allclose([block["demand"] for block in rows], reported.peak, rtol=1e-6)
    np.testing.assert_allclose([block["saturated"] for block in rows], reported.share, atol=2.0 / made.log.samples)


def test_where_no_bandwidth_holds_the_arm_it_is_said() -> None:
    with pytest.raises(ModelError, match=r"No bandwidth from 0.5 to 200 Hz does at a control rate of 2 Hz"):
        simulate("ur5e", duration=1.0, rate=100.0, **grouped(control_rate=2.0, bandwidth=10.0))
