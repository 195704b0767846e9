"""Motions that repeat themselves: their period, and blocks of the jackknife that hold all repetitions of a phase."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise import preparation
from jointwise.data import Log
from jointwise.data.conditioning import clean_log
from jointwise.data.repetition import motion_period
from jointwise.design import bspline_trajectory, fourier_trajectory
from jointwise.estimation.factors import MAX_BLOCKS, Blocks, JointFactors
from jointwise.estimation.regression import PHASES, Regression, regression_rows
from jointwise.model.terms import Coulomb, Offset, Viscous
from jointwise.options import Options
from jointwise.preparation import make_regression
from jointwise.result import load_calibration, save_model
from jointwise.spatial import Array
from synthetic import synthetic_log
from synthetic.point_to_point import point_to_point_trajectory

UR5E, PLANAR = jw.load_robot("ur5e"), jw.load_robot("planar2")
TERMS = [(Offset(), Viscous((1.0,)), Coulomb("none"))] * 2


def positions(phase: Array, seed: int) -> Array:
    """Return positions (samples, 4), rad, of three joints over a phase (1 for a period), and of one that stands."""
    rng = np.random.default_rng(seed)
    angles = 2.0 * np.pi * np.arange(1, 5)[:, None] * phase + rng.uniform(0.0, 6.0, (3, 4, 1))
    moving = np.sum(rng.uniform(0.1, 0.4, (3, 4, 1)) * np.sin(angles), axis=1)
    return np.vstack([moving, np.full((1, len(phase)), 0.7)]).T


def stamps(duration: float, rate: float, seed: int, jitter: float = 0.2) -> Array:
    """Return stamps that are up to a part `jitter` of a period off."""
    count = int(duration * rate)
    return (np.arange(count) + np.random.default_rng(seed).uniform(-jitter, jitter, count)) / rate


def period_of(t: Array, q: Array, noise: float = 0.0) -> float | None:
    rng = np.random.default_rng(1)
    return motion_period(clean_log(Log(t=t, q=q + noise * rng.normal(size=q.shape))))


# -- the period ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("period", "noise", "seed"), [(7.31, 1e-3, 1), (2.0, 1e-4, 2), (14.6, 1e-4, 3)])
def test_the_period_is_found_with_noise_jitter_gaps_and_rests(period: float, noise: float, seed: int) -> None:
    t = stamps(45.0, 125.0, seed)
    t = t[(t < 20.0) | (t > 22.5)]
    q = positions(np.clip(t, 4.0, 41.0) / period, seed)  # at rest before and after
    found = period_of(t, q, noise)
    assert found == pytest.approx(period, abs=0.01)


def test_a_gap_is_not_part_of_the_motion() -> None:
    """Straight lines over long gaps agree with nothing: with them, fewer than half of the times would."""
    t = np.arange(0.0, 60.0, 0.01)
    t = t[(t < 21.0) | ((t > 35.0) & (t < 41.0)) | (t > 52.0)]
    assert period_of(t, positions(t / 10.0, 7)) == pytest.approx(10.0, abs=0.01)


def test_a_short_log_and_a_log_at_rest_do_not_repeat() -> None:
    t = np.arange(200) / 1000.0
    assert period_of(t, positions(t / 0.05, 7)) is None
    t = np.arange(0.0, 30.0, 0.01)
    assert period_of(t, np.zeros((len(t), 2))) is None


def test_two_periods_are_enough_one_is_not() -> None:
    t = stamps(20.0, 100.0, 4)
    assert period_of(t, positions(t / 10.0, 4)) == pytest.approx(10.0, abs=0.02)
    assert period_of(t, positions(t / 19.0, 4)) is None


def test_the_period_is_precise_enough_for_hundreds_of_repetitions() -> None:
    t = stamps(1500.0, 50.0, 5)
    found = period_of(t, positions(t / 6.283, 5), 1e-4)
    assert found is not None
    assert abs(found - 6.283) * 1500.0 / 6.283 < 0.05


def test_a_motion_from_rest_to_rest_and_a_program_in_a_loop_repeat() -> None:
    series = fourier_trajectory(UR5E, 30.0, 6).sample(100.0)
    assert period_of(series.t, series.q) == pytest.approx(10.0, abs=0.01)
    program = point_to_point_trajectory(PLANAR, 12.0, 3).sample(100.0)
    loop = np.vstack([program.q, np.linspace(program.q[-1], program.q[0], 150)[1:-1]])
    q = np.tile(loop, (4, 1))
    assert period_of(np.arange(len(q)) / 100.0, q, 1e-4) == pytest.approx(len(loop) / 100.0, abs=0.01)


def test_other_motions_do_not_repeat() -> None:
    for seed in range(5):
        for motion in (bspline_trajectory(UR5E, 40.0, seed), point_to_point_trajectory(UR5E, 60.0, seed)):
            states = motion.sample(100.0)
            assert period_of(states.t, states.q) is None
        single = fourier_trajectory(UR5E, 30.0, seed, base_frequency=1.0 / 30.0).sample(100.0)
        assert period_of(single.t, single.q) is None


def test_equal_moves_at_other_positions_and_a_sweep_do_not_repeat() -> None:
    t = np.arange(0.0, 60.0, 0.01)
    stairs = 0.2 * (t / 4.0 - np.sin(2.0 * np.pi * t / 4.0) / (2.0 * np.pi))  # equal speeds every 4 s
    sweep = np.sin(2.0 * np.pi * (0.1 + 0.01 * t) * t)
    for q in (stairs, sweep):
        assert period_of(t, np.column_stack([q, 0.5 * q])) is None


def test_shuffled_periods_do_not_repeat() -> None:
    """The same speeds in another order are another motion."""
    rng, t = np.random.default_rng(8), np.arange(0.0, 10.0, 0.01)
    parts = np.array_split(np.diff(np.tile(positions(t / 10.0, 8)[:, :3], (3, 1)), axis=0, prepend=0.0), 60)
    q = np.cumsum(np.vstack([parts[k] for k in rng.permutation(60)]), axis=0)
    assert period_of(np.arange(len(q)) * 0.01, q) is None


# -- blocks ----------------------------------------------------------------------------------------------------------


def test_rows_of_a_label_are_one_block_however_often_blocks_are_merged() -> None:
    rng = np.random.default_rng(9)
    rows, weights = rng.normal(size=(4000, 3)), rng.uniform(0.5, 1.0, 4000)
    factors, parts = JointFactors(), np.array_split(np.arange(4000), 3 * MAX_BLOCKS)
    for k, part in enumerate(parts):
        factors.add(rows[part], weights[part], (0, 7) if k % 2 else None)
    assert factors.blocks <= MAX_BLOCKS
    odd = np.concatenate(parts[1::2])
    block = factors.triangles[factors.labels[0, 7]]
    least = (rows[odd].T * weights[odd]) @ rows[odd]
    assert (np.linalg.eigvalsh(block.T @ block - least) > -1e-9).all()  # all of them, perhaps with neighbours
    whole = factors.merged()
    np.testing.assert_allclose(whole.T @ whole, (rows.T * weights) @ rows, rtol=1e-9)
    np.testing.assert_allclose(factors.sums.sum(axis=0)[0], weights.sum(), rtol=1e-12)


def test_a_block_has_the_rows_of_its_order() -> None:
    rng = np.random.default_rng(10)
    rows, order = rng.normal(size=(60, 3)), rng.permutation(60)
    factors = JointFactors()
    for _ in range(2):
        factors.add_blocks(rows, np.ones(60), Blocks(np.array([0, 40]), [(0, 0), (0, 1)], order))
    assert factors.blocks == 2
    for R, part in zip(factors.triangles, (order[:40], order[40:]), strict=True):
        np.testing.assert_allclose(R.T @ R, 2.0 * rows[part].T @ rows[part], rtol=1e-9, atol=1e-9)


def repeated_regression(period: float | None, gap: bool = False) -> Regression:
    log = synthetic_log(PLANAR, duration=40.0, rate=100.0, seed=11).log
    if gap:
        kept = (log.t < 17.0) | (log.t > 19.3)
        log = Log(t=log.t[kept], q=log.q[kept], current=log.channel("current")[kept])
    return replace(make_regression([log], PLANAR, "table", "current", Options()), periods=(period,))


@pytest.mark.parametrize("gap", [False, True])
def test_blocks_are_phases_of_a_motion_that_repeats_itself(gap: bool) -> None:
    regression = repeated_regression(10.0, gap)
    phases = dict[object, list[Array]]()
    for rows in regression_rows(regression.logs[0], "current", regression.filters):
        blocks = regression.jackknife_blocks(rows, 0)
        assert blocks.order is not None
        times = rows.motion.t[rows.used][blocks.order]
        for label, part in zip(blocks.labels, np.split(times, blocks.starts[1:]), strict=True):
            phases.setdefault(label, []).append(part % 10.0)
    joined = [np.concatenate(parts) for parts in phases.values()]
    assert len(joined) == PHASES
    assert max(np.ptp(part) for part in joined) <= 10.0 / PHASES
    problem, plain = regression.problem(TERMS), replace(regression, periods=()).problem(TERMS)
    assert [joint.blocks for joint in problem.joints] == [PHASES, PHASES]
    for one, other in zip(problem.merged(), plain.merged(), strict=True):
        np.testing.assert_allclose(one.T @ one, other.T @ other, rtol=1e-9, atol=1e-9 * np.abs(other).max() ** 2)


def test_a_motion_that_does_not_repeat_keeps_blocks_of_time_to_the_bit() -> None:
    regression = repeated_regression(None)
    found, plain = regression.problem(TERMS), replace(regression, periods=()).problem(TERMS)
    for one, other in zip(found.joints, plain.joints, strict=True):
        np.testing.assert_array_equal(one.sums, other.sums)
        for R, S in zip(one.triangles, other.triangles, strict=True):
            np.testing.assert_array_equal(R, S)


def test_selections_keep_blocks_of_time() -> None:
    regression = repeated_regression(10.0)
    found, plain = regression.quick_problem(TERMS), replace(regression, periods=()).quick_problem(TERMS)
    for one, other in zip(found.joints, plain.joints, strict=True):
        np.testing.assert_array_equal(one.squares, other.squares)


# -- confidence intervals --------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_intervals_of_a_repeated_motion_contain_the_truth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = jw.simulate(UR5E, "excitation", duration=60.0, rate=100.0, seed=1004, keep=0)
    calibration = jw.calibrate(made.log, UR5E, physical=False)
    assert calibration.provenance.logs[0].period == pytest.approx(10.0, abs=0.01)
    assert "the motion repeats every 10.0 s" in calibration.summary()
    monkeypatch.setattr(preparation, "motion_period", lambda clean: None)
    narrow = jw.calibrate(made.log, UR5E, physical=False)
    assert "repeats" not in narrow.summary()
    assert covered(calibration, made.truth["base"]) >= 0.92
    assert covered(narrow, made.truth["base"]) < 0.85  # repetitions counted as independent
    np.testing.assert_allclose(calibration.estimate.values, narrow.estimate.values, rtol=1e-6, atol=1e-8)
    save_model(calibration, tmp_path / "m.json")
    assert load_calibration(tmp_path / "m.json").provenance == calibration.provenance


def covered(calibration: jw.Calibration, truth: dict[str, float]) -> float:
    """Return the share of the base parameters within their intervals."""
    names = calibration.model.base.names
    low, high = calibration.conf_int()[: len(names)].T
    true = np.array([truth[name] for name in names])
    return float(np.mean((low <= true) & (true <= high)))


def test_intervals_of_another_motion_are_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    log = jw.simulate(PLANAR, "bspline", duration=20.0, rate=100.0, seed=12, keep=0).log
    found = jw.calibrate(log, PLANAR, physical=False).conf_int()
    monkeypatch.setattr(preparation, "motion_period", lambda clean: None)
    np.testing.assert_array_equal(found, jw.calibrate(log, PLANAR, physical=False).conf_int())
