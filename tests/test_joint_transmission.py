"""Kinematic error and backlash: the maps of a gear come back within intervals, and data without them is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import jointwise
from joint_runs import RATE, joint_log, log_of, run_experiment
from jointwise.data.filters import differences
from jointwise.design import make_experiment, reciprocation
from jointwise.errors import EstimationError
from jointwise.joint.gear import FourierSeries, backlash_table, full_lag, transmission_of
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord, joint_record
from jointwise.joint.stiffness import identify_stiffness
from jointwise.joint.transmission import identify_transmission
from jointwise.model.periodic_table import PeriodicTable
from jointwise.simulation.robot import digital_robot
from jointwise.simulation.sensors import Sensors

RATE_HERE = 200.0
ERROR = FourierSeries(0.0, (1, 2, 200), (4e-4, 2e-4, 5e-5), (0.3, 1.1, -0.4))
LOST = FourierSeries(3e-4, (1, 3), (6e-5, 3e-5), (0.2, -0.7))
REACH = 0.03


def path(turns: float = 1.05, net: float = 0.1, stroke: float = 0.3) -> np.ndarray:
    """Return triangles of θ that advance by `net` a cycle, 0.1 rad/s."""
    cycles = int(np.ceil(turns * 2 * np.pi / net))
    forth, back = stroke, stroke - net
    corners = np.concatenate([[0.0], np.cumsum(np.tile([forth, -back], cycles))]) - 0.4
    times = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(corners)) / 0.1)])
    return np.interp(np.arange(0.0, times[-1], 1.0 / RATE_HERE), times, corners)


def record_of(theta: np.ndarray, phi: np.ndarray, load: np.ndarray | None = None) -> JointRecord:
    speed, acceleration = differences(theta, RATE_HERE)
    zeros = np.zeros(len(theta))
    return JointRecord(
        robot="ur5e", joint=0, logs=("made",), rate=RATE_HERE, unit="Nm", gain=1.0, inertia=0.0,
        t=np.arange(len(theta)) / RATE_HERE, segment=np.zeros(len(theta), dtype=np.intp), q=theta - phi, qd=speed,
        qdd=acceleration, position=theta, speed=speed, acceleration=acceleration, path=theta, motor=zeros,
        load=zeros if load is None else load, phi=phi, theta=theta,
    )  # fmt: skip


def made(seed: int = 0, turns: float = 1.05, lost: bool = True, offset: float = 2e-3) -> JointRecord:
    theta = path(turns)
    rng = np.random.default_rng(seed)
    phi = offset + ERROR.at(theta) + 2e-6 * rng.normal(size=len(theta))
    if lost:
        phi = phi + LOST.at(theta) * full_lag(theta, REACH)
    return record_of(theta, phi)


@cache
def whole() -> Part:
    return identify_transmission(made(), gear_ratio=100.0)


def test_amplitudes_and_phases_of_both_maps_lie_in_their_intervals() -> None:
    part = whole()
    assert part.model == "Fourier series"
    for prefix, series in (("", ERROR), ("backlash_", LOST)):
        for m, a, p in zip(series.orders, series.amplitudes, series.phases, strict=True):
            assert part.value(f"{prefix}amplitude_{m}").covers(a)
            assert part.value(f"{prefix}phase_{m}").covers(p)
    assert part.value("offset").covers(2e-3) and part.value("backlash_mean").covers(3e-4)
    assert part.value("reach").covers(REACH)


def test_intervals_cover_the_truth_at_most_seeds() -> None:
    parts = [identify_transmission(made(seed), gear_ratio=100.0) for seed in range(1, 3)]
    covered = [part.value(f"amplitude_{m}").covers(a) for part in parts for m, a in ((1, 4e-4), (2, 2e-4), (200, 5e-5))]
    assert sum(covered) >= 5


def test_the_series_beats_the_tables_where_the_gear_ripples_fast() -> None:
    quality = {item.model: item.held_out or 0.0 for item in whole().alternatives}
    assert quality["Fourier series"] > quality["table of 1000 points"] > quality["table of 240 points"]
    assert whole().held_out is not None and whole().held_out > 95.0


def test_gear_orders_are_named_and_compensation_is_reported() -> None:
    text = " ".join(whole().notes)
    assert "2N, 2 per turn of the wave generator" in text and "once per turn of the output" in text
    assert "compensation" in text


def test_maps_survive_a_file_and_repeat_every_turn() -> None:
    part = Part.from_dict(whole().to_dict())
    assert set(part.settings["kinematic_error"]) == {"mean", "orders", "amplitudes", "phases"}
    maps, theta = transmission_of(part), np.linspace(0.0, 6.0, 40)
    np.testing.assert_allclose(maps.error(theta + 2 * np.pi), maps.error(theta), atol=1e-12)
    np.testing.assert_allclose(maps.error(theta), ERROR.at(theta), atol=2e-6)
    table = backlash_table(part, 240)
    assert table.shape == (240,)
    np.testing.assert_allclose(table, LOST.at(2 * np.pi * np.arange(240) / 240), atol=2e-6)


def test_a_gear_without_lost_motion_shows_none() -> None:
    part = identify_transmission(made(lost=False), gear_ratio=100.0)
    assert abs(part["backlash_mean"]) < 1e-6
    assert part.value("amplitude_1").covers(4e-4)


def test_a_spring_under_load_is_found_along_and_taken_out() -> None:
    record = made()
    load = 5.0 * np.sin(0.11 * record.t) + 0.5 * np.sin(2.3 * record.t)
    assert record.phi is not None
    part = identify_transmission(replace(record, load=load, phi=record.phi + load / 15_000.0), gear_ratio=100.0)
    assert part.value("compliance").covers(1.0 / 15_000.0)
    assert part.value("amplitude_1").covers(4e-4)


def test_part_of_a_turn_gives_a_table_there_and_no_series() -> None:
    part = identify_transmission(made(turns=0.4), gear_ratio=100.0)
    assert part.model.startswith("table")
    assert set(part.settings["lost_motion"]) == {"values"}
    assert "no Fourier series" in " ".join(part.notes)
    low, high = part.ranges["theta"]
    seen = np.linspace(low + 0.1, high - 0.1, 50)
    slow = replace(ERROR, orders=(1, 2), amplitudes=(4e-4, 2e-4), phases=(0.3, 1.1))
    maps = transmission_of(part)
    np.testing.assert_allclose(maps.error(seen) + maps.offset, 2e-3 + slow.at(seen), atol=8e-5)
    error = next(curve for curve in part.curves if curve.title == "Kinematic error")
    assert 1e-8 < float(np.std(error.residual)) < 1e-4  # of cycles held out: a table leaves nothing of its curve
    assert len(error.line_x) < 0.6 * 1001


def test_part_of_a_turn_determines_lost_motion_alone() -> None:
    theta = path(0.1)
    phi = LOST.at(theta) * full_lag(theta, REACH) + 2e-6 * np.random.default_rng(0).normal(size=len(theta))
    part = identify_transmission(record_of(theta, phi), gear_ratio=100.0)
    low, high = part.ranges["theta"]
    seen = np.linspace(low + 0.1, high - 0.1, 50)
    np.testing.assert_allclose(transmission_of(part).backlash(seen), LOST.at(seen), atol=1e-5)
    assert part["reach"] == pytest.approx(REACH, rel=0.02)


def test_tables_and_series_agree_on_slopes() -> None:
    angles = 2 * np.pi * np.arange(1000) / 1000
    slow = FourierSeries(0.0, (1, 2), (4e-4, 2e-4), (0.3, 1.1))
    table = PeriodicTable(tuple(slow.at(angles)))
    theta = np.linspace(-7.0, 7.0, 33)
    np.testing.assert_allclose(table.at(theta), slow.at(theta), atol=1e-8)
    np.testing.assert_allclose(table.slope(theta), slow.slope(theta), atol=1e-5)


def mean_lost(part: Part) -> float:
    return float(LOST.at(np.linspace(*part.ranges["theta"], 1000)).mean())


@pytest.mark.parametrize("turns", [0.1, 0.2, 0.3, 0.5])
@pytest.mark.parametrize("ratio", [100.0, None])
def test_any_part_of_a_turn_gives_lag_and_backlash_within_intervals(turns: float, ratio: float | None) -> None:
    part = identify_transmission(made(seed=3, turns=turns), gear_ratio=ratio)
    assert part.value("reach").covers(REACH)
    assert part.value("reach").deviation < 0.01 * REACH
    assert part.value("backlash_mean").covers(mean_lost(part))
    assert part.value("backlash_mean").deviation < 0.05 * mean_lost(part)


def test_a_part_of_a_turn_keeps_the_ripple_that_its_table_is_too_coarse_for() -> None:
    part = Part.from_dict(identify_transmission(made(turns=0.3)).to_dict())
    maps, angles = transmission_of(part), np.linspace(*part.ranges["theta"], 2000)
    np.testing.assert_allclose(maps.error(angles) + maps.offset, 2e-3 + ERROR.at(angles), atol=5e-6)
    np.testing.assert_allclose(maps.error(angles).mean(), 0.0, atol=1e-6)
    wave = FourierSeries(0.0, (200,), (5e-5,), (-0.4,))
    assert float(np.std(maps.kinematic_error.slope(angles) - wave.slope(angles))) < 0.1 * 200 * 5e-5
    assert "order 200" in " ".join(part.notes)


def test_where_a_recording_begins_in_the_lag_does_not_matter() -> None:
    record = made(turns=0.4)
    for begin in (5.0, 9.0):
        part = identify_transmission(record.take(record.t >= begin))
        assert part.value("reach").covers(REACH)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_gear_pushes_back(seed: int) -> None:
    record = made(seed, turns=0.3)
    load = 1e-3 * np.random.default_rng(seed).normal(size=record.samples)
    part = identify_transmission(replace(record, load=load))
    assert all(value.low >= 0.0 for value in part.values if value.name == "compliance")
    assert part.value("reach").covers(REACH)


def test_a_lag_that_is_not_seen_has_no_reach() -> None:
    part = identify_transmission(made(lost=False, turns=0.4))
    assert "reach" not in {value.name for value in part.values}
    assert transmission_of(part).reach == 0.0


def test_part_of_a_turn_is_drawn_where_it_was_seen_without_spectra() -> None:
    part = identify_transmission(made(turns=0.4))
    low, high = part.ranges["theta"]
    titles = [curve.title for curve in part.curves]
    assert titles == ["Kinematic error", "Backlash", "Lag after a reversal"]
    for curve in part.curves[:2]:
        assert low < 0.0 and low - 0.05 < min(curve.line_x) and max(curve.line_x) < high + 0.05
        assert max(np.diff(curve.line_x)) < 0.05 and min(curve.x) >= low - 0.05
    assert any("Spectrum" in curve.title for curve in whole().curves)


@pytest.fixture(scope="module")
def digital() -> tuple[Part, object, JointRecord]:
    """A faster reciprocation of the digital robot: 60 cycles in 250 s."""
    arm = jointwise.load_robot("ur5e")
    usual = make_experiment("reciprocate", arm, joint=0)
    experiment = replace(usual, motion=reciprocation(arm, joint=0, acceleration=0.2, net=np.deg2rad(6.0)))
    robot = digital_robot(arm, gravity=experiment.gravity)
    log = log_of(run_experiment(robot, experiment), robot, Sensors(rate=RATE))
    record = joint_record(log, arm, 0, mounting=experiment.gravity)
    return identify_transmission(record, gear_ratio=100.0), robot.joints[0], record


@pytest.mark.parametrize(("begin", "end"), [(0.0, 40.0), (60.0, 120.0), (100.0, 190.0)])
def test_parts_of_a_turn_of_the_digital_robot_lie_in_their_intervals(
    digital: tuple[Part, object, JointRecord], begin: float, end: float
) -> None:
    _, joint, record = digital
    part = identify_transmission(record.take((record.t >= begin) & (record.t < end)))
    angles = np.linspace(*part.ranges["theta"], 1000)
    lost = joint.lost_motion  # type: ignore[attr-defined]
    assert part.value("reach").covers(lost.reach)
    assert part.value("backlash_mean").covers(lost.fraction * float(joint.backlash.at(angles).mean()))  # type: ignore[attr-defined]
    assert part.value("compliance").covers(1.0 / joint.stiffness.linear)  # type: ignore[attr-defined]


def test_the_digital_robot_gives_its_harmonics_back(digital: tuple[Part, object, JointRecord]) -> None:
    part, joint, _ = digital
    for wave in joint.kinematic_error:  # type: ignore[attr-defined]
        name = f"{wave.order:g}"
        assert part[f"amplitude_{name}"] == pytest.approx(wave.amplitude, rel=0.02)
        assert part.value(f"amplitude_{name}").covers(wave.amplitude)
        assert part.value(f"phase_{name}").covers(wave.phase)
    truth = joint.lost_motion.fraction * joint.backlash.resampled(1000)  # type: ignore[attr-defined]
    np.testing.assert_allclose(backlash_table(part), truth, atol=3e-6)
    assert part["reach"] == pytest.approx(joint.lost_motion.reach, rel=0.01)  # type: ignore[attr-defined]


@cache
def locked() -> JointRecord:
    log, robot = joint_log("locked", gauge=True)
    return joint_record(log, robot.robot, 0)


def test_stiffness_with_the_transmission_known_is_exact(digital: tuple[Part, object, JointRecord]) -> None:
    part, joint, _ = digital
    spring = identify_stiffness(locked(), transmission=part)
    assert spring["a_1"] == pytest.approx(joint.stiffness.linear, rel=2e-3)  # type: ignore[attr-defined]
    assert spring["a_3"] == pytest.approx(joint.stiffness.cubic, rel=1e-2)  # type: ignore[attr-defined]


def test_stiffness_by_a_part_of_a_turn_covers_the_spring_and_counts_what_the_table_leaves(
    digital: tuple[Part, object, JointRecord],
) -> None:
    _, joint, record = digital
    assert record.phi is not None
    noisy = replace(record, phi=record.phi + 5e-6 * np.random.default_rng(0).normal(size=record.samples))
    part = identify_transmission(noisy.take(np.abs(record.position - locked().position.mean()) < 0.9))
    spring = identify_stiffness(locked(), transmission=part)
    assert spring.value("a_1").covers(joint.stiffness.linear)  # type: ignore[attr-defined]
    assert spring.value("a_3").covers(joint.stiffness.cubic)  # type: ignore[attr-defined]
    exact = replace(part, settings=dict(part.settings) | {"deviation": 0.0})
    bare = identify_stiffness(locked(), transmission=exact).value("a_1").deviation
    assert bare < spring.value("a_1").deviation < 2e-3 * spring["a_1"]


def test_maps_of_other_angles_are_not_used_for_the_stiffness(digital: tuple[Part, object, JointRecord]) -> None:
    _, joint, record = digital
    elsewhere = identify_transmission(record.take(record.position < locked().position.mean() - 1.0))
    spring = identify_stiffness(locked(), transmission=elsewhere)
    assert any("does not cover these angles" in note for note in spring.notes)
    assert spring.value("a_1").covers(joint.stiffness.linear)  # type: ignore[attr-defined]


def assert_rejected(record: JointRecord, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        identify_transmission(record, gear_ratio=100.0)


def test_without_rotor_encoder_it_is_rejected() -> None:
    assert_rejected(replace(made(), phi=None, theta=None), "no rotor position")


def test_motion_in_one_direction_is_rejected() -> None:
    theta = np.linspace(0.0, 6.3, 12_000)
    assert_rejected(record_of(theta, ERROR.at(theta)), "no reversals in the log, at least")


def test_fast_motion_is_rejected() -> None:
    theta = np.sin(np.arange(0.0, 60.0, 1.0 / RATE_HERE))
    assert_rejected(record_of(theta, ERROR.at(theta)), "too fast")


def test_a_small_range_is_rejected() -> None:
    theta = 0.05 * np.sin(np.arange(0.0, 60.0, 1.0 / RATE_HERE))
    assert_rejected(record_of(theta, ERROR.at(theta)), "only")


def test_strokes_shorter_than_the_lag_are_rejected() -> None:
    theta = path(turns=0.5, net=0.02, stroke=0.06)
    phi = ERROR.at(theta) + LOST.at(theta) * full_lag(theta, 0.05)
    assert_rejected(record_of(theta, phi), "too short|does not repeat")


def test_few_cycles_are_rejected() -> None:
    record = made(turns=0.4)
    assert_rejected(record.take(record.t < 16.0), "only . cycles forward and back.*record longer")


def test_shuffled_part_of_a_turn_is_reported_as_short() -> None:
    record = made(turns=0.3)
    assert record.phi is not None
    shuffled = np.random.default_rng(0).permutation(record.phi)
    assert_rejected(replace(record, phi=shuffled), "of a turn was passed in both directions.*record longer|too short")


def test_shuffled_deformation_is_rejected() -> None:
    record = made()
    assert record.phi is not None
    assert_rejected(replace(record, phi=np.random.default_rng(0).permutation(record.phi)), "does not repeat|too short")
