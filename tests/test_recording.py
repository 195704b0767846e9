"""Sensors on the digital robot: sampling at any time, quantisation, noise, clocks; the truth beside the log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise
from jointwise.data import Log, read_log, write_log
from jointwise.description import Payload, load_robot
from jointwise.errors import DataError, ModelError, OutputError, ShapeError
from jointwise.simulation import Sensors
from jointwise.simulation.recording import (
    Recorder,
    digital_robot_from_truth,
    digital_robot_to_dict,
    joint_from_dict,
    joint_to_dict,
    load_truth,
    save_truth,
    signals_at,
)
from jointwise.simulation.robot import PHENOMENA, Run, Segments, digital_robot, integrate
from jointwise.simulation.robot.defaults import joint_effort, joint_size
from jointwise.simulation.sensors import Readings
from kernels import needs_native

pytestmark = needs_native

ARM = digital_robot(load_robot("planar2"))


def swing(rate: float, periods: int = 400) -> Run:
    """A short run under slowly varying torques, the same whatever the control rate."""
    t = np.arange(periods) / rate
    torque = np.column_stack([8.0 * np.sin(9.0 * t), 2.0 * np.cos(7.0 * t)])
    free = ARM.without("friction", "kinematic_error", "current_lag")
    return integrate(free, free.rest([0.1, -0.4]), torque, rate=rate)


# -- sampling --


def test_at_the_periods_the_own_numbers_are_returned_to_the_bit() -> None:
    run = swing(1000.0)
    at = signals_at(run, 1000.0, run.t[::3])
    for name in ("q", "qd", "theta", "current", "temperature", "load", "command"):
        np.testing.assert_array_equal(getattr(at, name), getattr(run, name)[::3])


def test_between_the_periods_the_path_is_the_one_of_a_finer_run() -> None:
    """A run whose commands hold for four fine periods is the same motion, seen more often."""
    rate, finer = 250.0, 1000.0
    t = np.arange(100) / rate
    torque = np.column_stack([8.0 * np.sin(9.0 * t), 2.0 * np.cos(7.0 * t)])
    free = ARM.without("friction", "kinematic_error", "current_lag")
    start = free.rest([0.1, -0.4])
    coarse = integrate(free, start, torque, rate=rate, substeps=16)
    fine = integrate(free, start, np.repeat(torque, 4, axis=0), rate=finer, substeps=4)
    seen = signals_at(coarse, rate, fine.t)
    assert np.abs(seen.q - fine.q).max() < 2e-7
    assert np.abs(seen.q - coarse.q[np.arange(400) // 4]).max() > 1e-4  # holding would not do
    np.testing.assert_array_equal(seen.command, fine.command)


def test_the_last_period_can_be_sampled_to_its_end() -> None:
    run = swing(1000.0)
    at = signals_at(run, 1000.0, np.array([run.t[-1] + 1e-3]))
    np.testing.assert_allclose(at.q[0], run.final.q, atol=1e-12)


# -- sensors --


def test_the_motor_encoder_is_finer_than_the_one_of_the_link() -> None:
    sensors, ratios = Sensors(), np.array([100.0, 101.0])
    theta = np.random.default_rng(0).normal(size=(1000, 2))
    steps = 2.0 * np.pi / (65_536 * ratios)
    counts = sensors.rotor(theta, ratios) / steps
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-5)
    assert (steps < 2.0 * np.pi / 1_250_000).all()


def test_noise_has_its_size_and_goes_on_from_block_to_block() -> None:
    sensors = Sensors(seed=3, current_noise=0.2, temperature_noise=0.3, torque_noise=0.4, temperature_quantisation=None)
    readings, still = Readings(sensors), np.zeros((20_000, 2))
    for name, size in (("current", 0.2), ("temperature", 0.3), ("torque", 0.4)):
        read = getattr(readings, name)
        first, second = read(still), read(still)
        assert np.std(np.concatenate([first, second])) == pytest.approx(size, rel=0.05)
        assert not np.array_equal(first, second)
    colored = np.concatenate([Readings(sensors).current(still)[-1:], Readings(sensors).current(still)[:1]])
    assert np.isfinite(colored).all()


def test_coloured_noise_does_not_jump_between_blocks() -> None:
    """Neighbours across the seam are as alike as neighbours elsewhere."""
    readings = Readings(Sensors(seed=1, rate=1000.0))
    blocks = np.stack([readings.current(np.zeros((50, 400)))[[0, -1]] for _ in range(60)])
    across = (blocks[:-1, 1] * blocks[1:, 0]).mean() / blocks.var()
    assert across == pytest.approx(0.5 * np.exp(-2.0 * np.pi * 10.0 / 1000.0), abs=0.03)


def test_every_effect_has_its_own_stream() -> None:
    still = np.zeros((100, 2))
    plain = Readings(Sensors(seed=5))
    without_speed = Readings(Sensors(seed=5, speed_noise=None))
    plain.speed(still)
    assert without_speed.speed(still) is None
    np.testing.assert_array_equal(plain.current(still), without_speed.current(still))


def test_repeated_samples_show_the_row_before_again() -> None:
    written = Sensors(repeated=0.2, seed=2).written(1000)
    assert len(written) == 1000
    assert (np.diff(written) == 0).mean() == pytest.approx(0.2, abs=0.01)
    assert (np.diff(written) >= 0).all()
    both = Sensors(repeated=0.1, dropped=0.1, seed=2).written(1000)
    assert len(both) == 900
    np.testing.assert_array_equal(Sensors().written(50), np.arange(50))


@pytest.mark.parametrize(
    "setting",
    [{"repeated": 0.95}, {"repeated": -0.1}, {"torque_noise": -1.0}, {"motor_counts": -5}, {"jitter": float("nan")}],
)
def test_impossible_sensors_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(ModelError, match=next(iter(setting))):
        Sensors(**setting)  # type: ignore[arg-type]


# -- the usual noise of a current --


def noise_of(name: str, **options: object) -> np.ndarray:
    """Return the current noise (A rms) that the recorder of a catalogue robot's arm takes."""
    arm = digital_robot(load_robot(name))
    return np.asarray(Recorder(arm, Sensors(**options), 1.0).sensors.current_noise)  # type: ignore[arg-type]


def test_the_usual_noise_is_that_of_a_real_arm_at_rest() -> None:
    """UR10e, what is above 20 Hz in the quietest half second: within half as much again in every joint."""
    measured = np.array([0.030, 0.027, 0.015, 0.008, 0.007, 0.008])
    ratio = noise_of("ur10e") / measured
    assert (ratio < 1.5).all()
    assert (ratio > 1.0 / 1.5).all()


def test_small_drives_have_small_noise_in_the_log() -> None:
    made = jointwise.simulate("ur3e", duration=4.0, rate=1000.0, seed=4)
    assert made.run is not None
    assert made.log.current is not None
    torque = (np.asarray(made.log.current) - made.run.current[: made.log.samples]) * made.digital.gains
    efforts = [joint.limits.effort for joint in made.digital.robot.joints]
    np.testing.assert_allclose(torque.std(axis=0), 1.2e-3 * np.array(efforts), rtol=0.15)
    assert made.truth["sensors"]["current_noise"] == pytest.approx(noise_of("ur3e"))


def test_a_drive_without_a_limit_has_the_noise_of_its_size() -> None:
    robot = load_robot("ur5e")
    bare = [replace(joint, limits=replace(joint.limits, effort=None)) for joint in robot.joints]
    with_friction = [
        replace(joint, motor=replace(joint.motor, coulomb=10.0 * joint_size(it)))
        for joint, it in zip(bare, robot.joints, strict=True)
    ]
    efforts = [joint_effort(item) for item in with_friction]
    np.testing.assert_allclose(efforts, [joint.limits.effort for joint in robot.joints])


def test_a_given_noise_wins() -> None:
    assert noise_of("ur3e", current_noise=0.05) == 0.05
    assert noise_of("ur3e", current_noise=0.0) == 0.0
    actual = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    np.testing.assert_array_equal(noise_of("ur3e", current_noise=actual), actual)
    with pytest.raises(ShapeError, match="current_noise must be one number or 6"):
        noise_of("ur3e", current_noise=(0.1, 0.2))


# -- files --


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_log_reads_back_to_the_last_bit(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    log = Log(np.arange(9000.0) / 3.0, rng.normal(size=(9000, 2)), temperature=rng.normal(size=(9000, 2)))
    write_log(log, tmp_path / name)
    back = read_log(tmp_path / name, needed=())
    assert back.available == log.available
    for channel in log.available:
        np.testing.assert_array_equal(back.channel(channel), log.channel(channel))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_nothing_that_is_not_finite_is_written(tmp_path: Path, name: str) -> None:
    q = np.zeros((9000, 1))
    q[-1] = np.nan
    with pytest.raises(DataError, match="not finite"):
        write_log(Log(np.arange(9000.0), q), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"must end in \.csv or \.parquet"):
        write_log(Log(np.arange(3.0), np.zeros((3, 1))), tmp_path / "log.txt")


# -- truth --


@pytest.mark.parametrize("name", ["ur5e", "puma560", "planar1"])
def test_the_truth_rebuilds_the_same_robot(tmp_path: Path, name: str) -> None:
    made = digital_robot(load_robot(name), "wall", Payload(1.5, (0.0, 0.01, 0.1)), "complete")
    save_truth(digital_robot_to_dict(made), tmp_path / "truth.json")
    back = digital_robot_from_truth(load_truth(tmp_path / "truth.json"))
    assert back.joints == made.joints
    assert back.model == "complete"
    np.testing.assert_array_equal(back.gravity, made.gravity)
    np.testing.assert_array_equal(back.chain.inertials, made.chain.inertials)
    np.testing.assert_array_equal(back.packed[0], made.packed[0])


def test_every_variant_of_a_joint_survives() -> None:
    joint = replace(ARM.joints[0], stiffness=Segments(1e4, 2e4, 3e4, 5.0, 20.0))
    for phenomenon in (joint, *ARM.without(*PHENOMENA).joints, *ARM.without("hysteresis").aged(0.2, -0.1).joints):
        assert joint_from_dict(json.loads(json.dumps(joint_to_dict(phenomenon)))) == phenomenon


def test_base_parameters_of_the_truth_are_those_of_the_rigid_limit() -> None:
    """Moving rigidly, the elastic arm needs Y_b β with the rotors' inertias on the diagonal."""
    from jointwise.model.dynamics import Dynamics
    from jointwise.model.rigid import inverse_dynamics
    from jointwise.motion import Motion

    made = digital_robot(load_robot("ur5e"), payload=Payload(2.0, (0.0, 0.0, 0.05)))
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 50, 6))
    rotors = np.array([joint.inertia for joint in made.joints])
    torque = inverse_dynamics(made.robot, q, qd, qdd, payload=made.payload, rotor_inertias=rotors)
    document = digital_robot_to_dict(made)
    model = Dynamics(made.robot, (0.0, 0.0, -9.81), True, ((),) * 6)
    assert list(document["base"]) == list(model.base.names)
    motion = Motion(100.0, q, qd, qdd)
    np.testing.assert_allclose(model.torque(motion, np.array(list(document["base"].values()))), torque, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not the truth"),
        ({"schema": 9}, "schema 9, but this version reads schema 1"),
        ({"joints": [{}]}, r"joints\[0\] is not a joint"),
        ({"gravity": None}, "gravity"),
        ({"payload": {"weight": 1.0}}, "payload: 'mass' is missing"),
    ],
)
def test_a_wrong_truth_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(jointwise.errors.JointwiseError, match=message):
        digital_robot_from_truth(digital_robot_to_dict(ARM) | change)


def test_a_truth_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("[]")
    for name, message in (("a.json", "not a JSON"), ("b.json", "not the truth"), ("c.json", "no such file")):
        with pytest.raises(ModelError, match=message):
            load_truth(tmp_path / name)
