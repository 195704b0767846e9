"""Synthetic logs: the truth is what the log was made of, and sensors behave as configured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointwise.data import read_log
from jointwise.data.write import write_csv
from jointwise.description import Payload, list_robots, load_robot
from jointwise.design import fourier_trajectory
from jointwise.design.fourier import FadedSeries
from jointwise.errors import JointwiseError, ModelError
from jointwise.model.rigid import inverse_dynamics
from jointwise.motion import Motion
from jointwise.simulation import Sensors
from synthetic import FRICTIONLESS, JointFriction, default_friction, synthetic_log
from synthetic.friction import hysteresis_state

EXACT: dict[str, Any] = {"encoder_counts": None, "speed_noise": 0.0, "current_noise": 0.0}
UR5E = load_robot("ur5e")


def test_the_same_seed_gives_the_same_log_to_the_bit() -> None:
    settings: dict[str, Any] = {"duration": 5.0, "jitter": 1e-4, "dropped": 0.02}
    first, again, other = (synthetic_log(UR5E, **settings, seed=seed).log for seed in (7, 7, 8))
    for name in first.available:
        assert first.channel(name).tobytes() == again.channel(name).tobytes()
        assert first.channel(name).tobytes() != other.channel(name).tobytes()


def test_switching_one_effect_leaves_the_noise_of_the_others() -> None:
    plain = synthetic_log(UR5E, duration=4.0)
    silent = synthetic_log(UR5E, duration=4.0, current_noise=0.0, dropped=0.1)
    kept = np.isin(plain.log.t, silent.log.t)
    np.testing.assert_array_equal(plain.log.channel("qd")[kept], silent.log.channel("qd"))


@pytest.mark.parametrize("name", list_robots())
def test_without_friction_and_noise_the_current_is_inverse_dynamics(name: str) -> None:
    robot = load_robot(name)
    made = synthetic_log(robot, duration=4.0, friction=FRICTIONLESS, **EXACT)
    states, truth = made.truth.states, made.truth
    rotors = truth.rotor_inertias
    expected = inverse_dynamics(robot, states.q, states.qd, states.qdd, rotor_inertias=rotors)
    np.testing.assert_array_equal(truth.torque, expected)
    np.testing.assert_allclose(made.log.channel("i") * truth.gains, expected, rtol=1e-14)
    np.testing.assert_array_equal(made.log.q, states.q)
    np.testing.assert_array_equal(made.log.channel("qd"), states.qd)


def test_torque_is_rigid_torque_and_friction() -> None:
    payload = Payload(2.0, [0.0, 0.0, 0.05], 0.01 * np.eye(3))
    made = synthetic_log(UR5E, duration=6.0, hysteresis=False, payload=payload, gravity="wall", targets=True, **EXACT)
    truth, states = made.truth, made.truth.states
    rigid = inverse_dynamics(
        UR5E, states.q, states.qd, states.qdd, gravity="wall", payload=payload, rotor_inertias=truth.rotor_inertias
    )
    np.testing.assert_allclose(truth.rigid, rigid, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(made.log.channel("tau_des"), truth.rigid)
    for j, f in enumerate(truth.friction):
        v = states.qd[:, j]
        dry = (f.coulomb + f.load * rigid[:, j] ** 2) * np.sign(v)
        expected = dry + f.viscous * v + f.square * v * np.abs(v)
        np.testing.assert_allclose(truth.torque[:, j] - rigid[:, j], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("hysteresis", [True, False])
@pytest.mark.parametrize("dependence", ["none", "square", "absolute"])
def test_the_model_of_the_truth_at_its_true_values_gives_the_torque(hysteresis: bool, dependence: Any) -> None:
    made = synthetic_log(
        UR5E,
        duration=10.0,
        rate=2000.0,
        hysteresis=hysteresis,
        load_dependence=dependence,
        inertials=1.1 * UR5E.inertials,
    )
    states, plant = made.truth.states, made.truth.plant
    model = plant.dynamics()
    torque = model.torque(Motion(2000.0, states.q, states.qd, states.qdd), plant.values())
    error = np.abs(torque - made.truth.torque)
    missed = 0.125 * np.abs(states.qdd).max() / 2000.0**2  # rad of the path beyond the last sample before a reversal
    bound = [2.0 * missed / f.limits[0] * f.coulomb if hysteresis else 1e-9 for f in made.truth.friction]
    assert (error <= bound).all(), "only the path between samples near a reversal differs"
    assert np.median(error) < 1e-9 and error.mean() < 1e-3


def test_default_friction_is_that_of_the_drives_size() -> None:
    friction = default_friction(UR5E)
    at_three = [f.coulomb + 3.0 * f.viscous + 9.0 * f.square for f in friction]
    assert all(25.0 < f < 35.0 for f in at_three[:3]) and all(2.5 < f < 3.5 for f in at_three[3:])
    assert all(1e-3 <= f.scale <= 5e-3 and abs(f.shares.sum() - 1.0) < 1e-15 for f in friction)


def test_slow_reversals_draw_a_closed_loop() -> None:
    none = np.zeros((1, 1))
    motion = FadedSeries(60.0, 2.0, 0.05, none[0], none + 0.02, none)
    friction = JointFriction(5.0, 0.0, 0.0, 0.0, scale=2e-3)
    t = np.arange(10_000, 50_000) / 1000.0  # two periods, after the fade
    start = np.arange(10_000) / 1000.0
    H = hysteresis_state([friction], motion, np.concatenate([start, t]), 1000.0)[10_000:, 0]
    q = motion.position(t)[:, 0]
    np.testing.assert_allclose(H[:20_000], H[20_000:], atol=1e-9)
    area = np.trapezoid(H[:20_000], q[:20_000])
    assert 0.9 * 0.08 < area < 0.08, "a loop between H = ±1, cut at its corners, over 2 · 0.04 rad"
    assert H.max() == pytest.approx(1.0, abs=1e-12) and H.min() == pytest.approx(-1.0, abs=1e-12)
    assert np.abs(np.diff(H)).max() < 0.05, "continuous at the reversals"


def test_hysteresis_does_not_depend_on_the_sampling() -> None:
    motion = fourier_trajectory(UR5E, 10.0)
    friction = default_friction(UR5E)
    t = np.arange(1000) / 100.0
    coarse = hysteresis_state(friction, motion, t, 100.0)
    fine = hysteresis_state(friction, motion, np.arange(20_000) / 2000.0, 2000.0)[::20]
    np.testing.assert_allclose(coarse, fine, atol=0.02)
    reversal_error = np.abs(coarse - fine).mean()
    assert reversal_error < 1e-4


def test_sampling_jitter_moves_the_samples_and_stamp_jitter_only_the_stamps() -> None:
    made = {mode: synthetic_log(UR5E, duration=20.0, jitter=2e-4, jitter_mode=mode) for mode in ("sampling", "stamp")}
    regular = np.arange(10_000) / 500.0
    for mode, one in made.items():
        assert 1.9e-4 < (one.log.t - regular).std() < 2.1e-4
        assert (np.diff(one.log.t) > 0.0).all()
        expected = one.log.t if mode == "sampling" else regular
        np.testing.assert_array_equal(one.truth.states.t, expected)


def test_the_widest_jitter_never_turns_time_round_and_more_is_refused() -> None:
    assert (np.diff(synthetic_log(UR5E, duration=5.0, jitter=5e-4).log.t) > 0.0).all()
    with pytest.raises(ModelError, match="jitter must be at most 0.0005 s rms"):
        synthetic_log(UR5E, duration=5.0, jitter=6e-4)


def test_the_requested_share_of_samples_is_dropped() -> None:
    whole, holed = synthetic_log(UR5E, duration=10.0), synthetic_log(UR5E, duration=10.0, dropped=0.03)
    assert holed.log.samples == 5000 - 150 == len(holed.truth.torque)
    assert holed.log.t[0] == whole.log.t[0] and holed.log.t[-1] == whole.log.t[-1]
    kept = np.isin(whole.log.t, holed.log.t)
    np.testing.assert_array_equal(whole.log.channel("i")[kept], holed.log.channel("i"))


def test_encoders_and_currents_come_in_steps() -> None:
    made = synthetic_log(UR5E, duration=3.0, encoder_counts=10_000, current_quantisation=0.01)
    counts, levels = made.log.q / (2 * np.pi / 10_000), made.log.channel("i") / 0.01
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-6)
    assert np.abs(made.log.q - made.truth.states.q).max() <= np.pi / 10_000 * (1 + 1e-9)


@pytest.mark.parametrize("colored", [True, False])
def test_current_noise_has_the_requested_size_and_colour(colored: bool) -> None:
    requested = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    made = synthetic_log(UR5E, duration=60.0, current_noise=requested, colored=colored)
    noise = made.log.channel("i") - made.truth.torque / made.truth.gains
    np.testing.assert_allclose(noise.std(axis=0), requested, rtol=0.05)
    neighbours = (noise[1:] * noise[:-1]).mean(axis=0) / noise.var(axis=0)
    np.testing.assert_allclose(neighbours, 0.5 * np.exp(-2 * np.pi * 10.0 / 500.0) if colored else 0.0, atol=0.06)


def test_speed_can_be_left_out() -> None:
    assert synthetic_log(UR5E, duration=2.0, speed_noise=None).log.available == ("t", "q", "current")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"trajectory": "fourrier"}, "fourier"),
        ({"trajectory": fourier_trajectory(load_robot("panda"), 3.0)}, "6 joints"),
        ({"gains": [1.0]}, "gains"),
        ({"gains": np.zeros(6)}, "gains"),
        ({"friction": [FRICTIONLESS]}, "friction"),
        ({"load_dependence": "cube"}, "load_dependence"),
        ({"jitter_mode": "both"}, "jitter_mode"),
        ({"dropped": 1.5}, "dropped"),
        ({"rate": 0.0}, "rate"),
        ({"current_noise": [0.1, 0.2]}, "current_noise"),
        ({"current_noise": -1.0}, "current_noise"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(JointwiseError, match=word):
        synthetic_log(UR5E, **{"duration": 5.0} | settings)


def test_a_log_too_short_for_two_samples_is_refused() -> None:
    with pytest.raises(JointwiseError, match="2 samples"):
        Sensors(rate=10.0).clock(0.1)


def test_csv_reads_back_to_the_last_bit(tmp_path: Path) -> None:
    made = synthetic_log(UR5E, duration=3.0, jitter=1e-4, targets=True)
    write_csv(made.log, tmp_path / "log.csv")
    again = read_log(tmp_path / "log.csv")
    assert again.available == made.log.available
    for name in again.available:
        np.testing.assert_array_equal(again.channel(name), made.log.channel(name))
    header = (tmp_path / "log.csv").read_text().splitlines()[0]
    assert header.startswith("t,q1,q2") and ",qd1," in header and ",i6," in header and header.endswith("tau_des6")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "log.csv"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(JointwiseError, match="No space left"):
        write_csv(synthetic_log(UR5E, duration=1.0, trajectory=fourier_trajectory(UR5E, 1.0)).log, target)
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_friction_without_a_size_is_refused() -> None:
    with pytest.raises(JointwiseError, match="scale"):
        replace(FRICTIONLESS, scale=0.0)
