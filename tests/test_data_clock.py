"""Stamps: jitter is normal, gaps split, repeats are dropped, reversals are refused with their row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from data_files import SHARED, moving_log, needs_shared
from jointwise.data import Log, read_log
from jointwise.data.clock import forward_samples
from jointwise.data.conditioning import clean_log
from jointwise.errors import DataError


def log_of(t: list[float] | np.ndarray) -> Log:
    t = np.asarray(t, dtype=float)
    return Log(t=t, q=np.arange(len(t), dtype=float)[:, None])


def test_alternating_clock_is_normal():
    t = np.concatenate([[0.0], np.cumsum(np.tile([0.010, 0.012], 100))])
    clock = log_of(t).clock
    assert clock.rate == pytest.approx(1 / 0.011)
    assert clock.jitter_rms == pytest.approx(0.001)
    assert clock.findings == ()
    assert clock.segments == (slice(0, 201),)
    assert clock.to_dict()["gaps"] == 0


@pytest.mark.parametrize(
    "steps",
    [
        np.random.default_rng(0).choice([0.008, 0.010, 0.012], 3000, p=[0.2, 0.6, 0.2]),  # uneven: the median counts
        np.random.default_rng(0).choice([0.010, 0.016], 3000, p=[0.98, 0.02]),  # hiccups: the mean of the others
        np.full(3000, 0.004),
    ],
)
def test_stamps_that_count_from_1970_have_the_same_rate(steps: np.ndarray):
    t = np.concatenate([[0.0], np.cumsum(steps)])
    rates = [log_of(t + start).clock.uniform_rate for start in (0.0, 100.0, 1.7e9)]
    assert rates[0] == rates[1] == rates[2]


@needs_shared
def test_a_real_log_is_conditioned_alike_with_stamps_that_count_from_1970():
    log = read_log(SHARED / "ur10e" / "id_20_02_12_50sec_12harm.csv").slice(0, 1500)
    here, there = (
        next(clean_log(replace(log, t=log.t + start)).spans(2.0 * log.clock.uniform_rate, 1.0))
        for start in (0.0, 1.7e9)
    )
    assert len(here.times) == len(there.times)
    np.testing.assert_allclose(there.resampled(log.q), here.resampled(log.q), atol=1e-6)
    np.testing.assert_allclose(
        there.resampled(log.channel("current")), here.resampled(log.channel("current")), atol=1e-3
    )


def test_gaps_split():
    t = np.concatenate([np.arange(100), np.arange(200, 300), np.arange(500, 600)]) * 0.01
    clock = log_of(t).clock
    assert clock.segments == (slice(0, 100), slice(100, 200), slice(200, 300))
    assert clock.period == pytest.approx(0.01)
    assert "2 gaps, the longest 2.01 s, first at sample 100, sample 200" in clock.findings[0].evidence


def test_hiccup_at_a_kilohertz_is_no_gap():
    t = np.concatenate([np.arange(100), np.arange(108, 200)]) * 0.001
    assert len(log_of(t).clock.segments) == 1


def test_repeated_rows_are_dropped():
    log = moving_log(100)
    twice = log.take(np.sort(np.concatenate([np.arange(100), [10, 50]])), "twice")
    kept = forward_samples(twice)
    assert np.array_equal(twice.q[kept], log.q)
    assert 11 not in kept
    assert twice.clock.findings[0].severity == "info"
    assert "2 whole rows, 0 with other values" in twice.clock.findings[0].evidence


def test_equal_stamps_with_other_values_keep_the_first():
    log = log_of([0.0, 0.1, 0.1, 0.2])
    assert forward_samples(log).tolist() == [0, 1, 3]
    assert log.clock.findings[0].severity == "warning"


def test_a_clock_without_faults_keeps_every_sample():
    log = moving_log(100)
    assert np.array_equal(forward_samples(log), np.arange(100))
    assert log.clock is log.clock


@pytest.mark.parametrize(
    ("t", "words"),
    [
        ([0.0, 0.1, 0.2, 0.15, 0.3, 0.4, 0.5], "1 stamps go backwards, first at sample 3 .by 0.05 s"),
        (np.arange(100)[::-1] * 0.01, "time runs backwards throughout"),
        (np.tile(np.arange(100) * 0.01, 2), "the clock starts again at sample 100: several recordings"),
        ([1.0, 1.0, 1.0], "time stands still"),
    ],
)
def test_refused(t, words):
    with pytest.raises(DataError, match=words):
        forward_samples(log_of(t))


@needs_shared
def test_real_logs_are_one_segment():
    for path in sorted(SHARED.glob("ur10e/*.csv")) + sorted(SHARED.glob("panda/*.csv")):
        clock = read_log(path).clock
        assert len(clock.segments) == 1, path.name
        assert clock.findings == (), path.name
