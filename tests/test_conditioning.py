"""Conditioning: from stamps and encoder counts back to the motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from jointwise.data import Log
from jointwise.data.conditioning import clean_log, complementary, condition, interpolate, resample, uniform_times
from jointwise.description import load_robot
from jointwise.design import fourier_trajectory
from jointwise.errors import ShapeError
from jointwise.motion import Motion
from jointwise.spatial import Array
from synthetic import synthetic_log

pytestmark = pytest.mark.compat

ROBOT = load_robot("planar2")
TRAJECTORY = fourier_trajectory(ROBOT, 12.0, 4)
INNER = slice(200, -200)


def jittered(samples: int, seed: int = 0) -> Array:
    """Return stamps at about 200 Hz that are up to 40 % of a period off."""
    rng = np.random.default_rng(seed)
    return (np.arange(samples) + rng.uniform(-0.4, 0.4, samples)) / 200.0


def conditioned(log: Log, rate: float = 200.0) -> Motion:
    """Return the motion of a log of one segment."""
    (span,) = clean_log(log).spans(rate, 1.0)
    return condition(span, 15.0)


def moving(*, jitter: float = 0.0, **settings) -> tuple[Motion, Motion]:
    """Return the motion that conditioning finds in a log, and the true one at its times."""
    log = synthetic_log(ROBOT, TRAJECTORY, rate=200.0, jitter=jitter, seed=3, **settings).log
    found = conditioned(log, rate=400.0 if jitter else 200.0)
    states = TRAJECTORY.at(log.t[0] + found.t)  # a motion counts from the first stamp
    return found, Motion(found.rate, states.q, states.qd, states.qdd, start=found.start)


# -- clocks ----------------------------------------------------------------------------------------------------------


def test_uniform_times_run_from_the_first_stamp_and_never_past_the_last() -> None:
    t = 5.0 + jittered(301)
    grid = uniform_times(t, 137.0)
    assert grid[0] == t[0]
    assert t[-1] - 1.0 / 137.0 < grid[-1] <= t[-1]
    np.testing.assert_allclose(np.diff(grid), 1.0 / 137.0, rtol=1e-9)


def test_a_uniform_clock_keeps_every_stamp() -> None:
    t = 0.3 + np.arange(1000) / 500.0
    np.testing.assert_allclose(uniform_times(t, 500.0), t, atol=1e-12)


def test_resampling_is_exact_on_a_cubic() -> None:
    t = jittered(400)
    times = np.linspace(t[0], t[-1], 1234)

    def cubic(x: Array) -> Array:
        return np.column_stack([1.0 + x - 2.0 * x**2 + 0.5 * x**3, 3.0 * x**3])

    np.testing.assert_allclose(resample(t, cubic(t), times), cubic(times), atol=1e-11)


@pytest.mark.parametrize("samples", [2, 3, 4, 5, 64, 500])
def test_splines_through_uneven_stamps_are_those_of_scipy(samples: int) -> None:
    rng = np.random.default_rng(samples)
    t, values = np.cumsum(rng.uniform(0.5, 1.5, samples)), rng.normal(size=(samples, 3)).cumsum(axis=0)
    times = np.concatenate([t[[0, -1]], rng.uniform(t[0], t[-1], 3 * samples)])  # not in order
    np.testing.assert_allclose(resample(t, values, times), CubicSpline(t, values)(times), atol=1e-11)
    np.testing.assert_allclose(resample(t, values[:, 0], times), CubicSpline(t, values[:, 0])(times), atol=1e-11)


def test_resampling_holds_the_ends() -> None:
    t = jittered(50)
    values = np.sin(t)
    np.testing.assert_allclose(resample(t, values, np.array([-9.0, 9.0])), values[[0, -1]], atol=1e-14)


def test_resampling_at_the_stamps_gives_the_samples() -> None:
    t, values = jittered(200), np.random.default_rng(1).normal(size=(200, 3))
    np.testing.assert_array_equal(resample(t, values, t), values)
    near = t + 0.02 / 200.0  # a lag is no rounding: it must move the values
    assert np.abs(resample(t, values, near) - values).max() > 1e-3


def test_interpolation_is_exact_on_a_line_and_holds_the_ends() -> None:
    values = np.column_stack([2.0 + np.arange(50) / 10.0, -np.arange(50) / 5.0])
    times = np.array([2.0, 2.05, 3.33, 6.9, 1.0, 99.0])
    inside = np.clip(times, 2.0, 6.9)
    np.testing.assert_allclose(
        interpolate(2.0, 10.0, values, times), np.column_stack([inside, -2.0 * (inside - 2.0)]), atol=1e-12
    )


def test_a_single_sample_can_be_interpolated() -> None:
    np.testing.assert_array_equal(interpolate(0.0, 10.0, np.array([[4.0]]), np.array([0.0, 1.0])), [[4.0], [4.0]])


# -- motion ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jitter", [0.0, 1e-3])
def test_the_motion_is_recovered_from_encoder_counts(jitter: float) -> None:
    found, true = moving(jitter=jitter)
    for name, bound in (("q", 1e-5), ("qd", 2e-4), ("qdd", 5e-3)):
        error = (getattr(found, name) - getattr(true, name))[INNER]
        assert np.sqrt(np.mean(error**2)) < bound, name


def test_a_jittered_clock_taken_as_uniform_loses_the_motion() -> None:
    log = synthetic_log(ROBOT, TRAJECTORY, rate=200.0, jitter=1e-3, seed=3).log
    straight = log.t[0] + np.arange(log.samples) / 200.0
    wrong, right = conditioned(replace(log, t=straight)), conditioned(log)
    errors = [np.abs(item.qdd - TRAJECTORY.at(log.t[0] + item.t).qdd)[INNER].mean() for item in (wrong, right)]
    assert errors[0] > 20.0 * errors[1]


def test_without_a_measured_speed_there_is_no_track_and_no_ripple() -> None:
    found, _ = moving(speed_noise=None)
    assert found.track is None
    assert found.ripple is None


def test_ripple_is_what_smoothing_took_from_the_measured_speed() -> None:
    quiet, loud = (moving(speed_noise=size)[0] for size in (0.0, 1e-2))
    assert quiet.ripple is not None
    assert loud.ripple is not None
    assert np.abs(quiet.ripple[INNER]).max() < 5e-4
    assert loud.ripple[INNER].std() == pytest.approx(1e-2, rel=0.15)


def test_the_path_stays_with_the_motion() -> None:
    found, true = moving()
    assert found.path is not None
    strayed, gone = (np.abs(np.diff(values, axis=0))[INNER].max() for values in (found.path - true.q, true.q))
    assert strayed < 2e-3 * gone


def test_signals_of_different_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"qdd must have shape \(4, 2\). Got \(4, 1\)"):
        Motion(1.0, np.zeros((4, 2)), np.zeros((4, 2)), np.zeros((4, 1)))


def test_a_part_of_a_motion_is_that_part() -> None:
    found, _ = moving()
    part = found.part(slice(100, 150))
    np.testing.assert_allclose(part.t, found.t[100:150])
    for name in ("q", "qd", "qdd", "path", "track", "ripple"):
        np.testing.assert_array_equal(getattr(part, name), getattr(found, name)[100:150])


# -- the complementary filter ----------------------------------------------------------------------------------------


def test_the_complementary_position_follows_the_motion() -> None:
    states = TRAJECTORY.sample(500.0)
    actual = complementary(states.q, states.qd, 500.0, 5.0)
    np.testing.assert_allclose(actual, states.q, atol=1e-4)


def test_it_follows_the_speed_quickly_and_the_encoder_slowly() -> None:
    samples, rate, time = 10_000, 500.0, 2.0
    still, push = np.zeros((samples, 1)), np.zeros((samples, 1))
    push[1000:1010] = 0.1  # 2 mrad that only the speed sees
    actual = complementary(still, push, rate, time)[:, 0]
    assert actual[1015] == pytest.approx(2e-3, rel=0.02)
    fading = actual[1015:3000]
    np.testing.assert_allclose(fading, fading[0] * np.exp(-np.arange(len(fading)) / (rate * time)), rtol=5e-3)
    stepped = np.full((samples, 1), 1e-3)
    stepped[0] = 0.0  # a step that only the encoder sees
    late = complementary(stepped, still, rate, time)[:, 0]
    assert late[10] < 2e-5
    assert late[-1] == pytest.approx(1e-3, rel=1e-3)


def test_a_speed_offset_does_not_drift_away() -> None:
    still, offset = np.zeros((60_000, 1)), np.full((60_000, 1), 1e-3)
    actual = complementary(still, offset, 500.0, 5.0)
    assert actual[-1, 0] == pytest.approx(1e-3 * 5.0, rel=1e-2)
