"""The block jackknife and the one-standard-error rule against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.estimation.cross_validation import exceeds, simplest_candidate
from jointwise.estimation.jackknife import (
    equal_blocks,
    jackknife,
    jackknife_covariance,
    newton_replicates,
    recording_blocks,
    standard_error,
    student_factor,
)
from jointwise.estimation.linear_fit import derivatives

pytestmark = pytest.mark.compat

RANDOM = np.random.default_rng(7)


def test_the_standard_error_of_a_mean_is_the_textbook_one() -> None:
    values = RANDOM.normal(size=12)
    mean, error = jackknife(lambda total: total[:1] / total[1], np.column_stack([values, np.ones(12)]))
    np.testing.assert_allclose(mean, values.mean())
    np.testing.assert_allclose(error, values.std(ddof=1) / np.sqrt(12))


def test_replicates_of_a_linear_fit_equal_fits_without_each_block() -> None:
    A, y, block = RANDOM.normal(size=(60, 3)), RANDOM.normal(size=60), np.repeat(np.arange(6), 10)
    x = np.linalg.lstsq(A, y, rcond=None)[0]
    refits = np.array([np.linalg.lstsq(A[block != b], y[block != b], rcond=None)[0] for b in range(6)])
    replicates = newton_replicates(x, A @ x - y, A, block)
    np.testing.assert_allclose(replicates, refits, atol=1e-12)
    np.testing.assert_allclose(np.diag(jackknife_covariance(replicates)), standard_error(refits) ** 2)


def test_derivatives_have_a_row_for_every_value_and_a_column_for_every_parameter() -> None:
    for rows, parameters in ((5, 2), (1, 2), (5, 1), (1, 1), (3, 0)):
        A, x = RANDOM.normal(size=(rows, parameters)), RANDOM.normal(size=parameters)
        slopes = derivatives(lambda v, A=A: np.sin(A @ v), x)
        assert slopes.shape == (rows, parameters)
        np.testing.assert_allclose(slopes, np.cos(A @ x)[:, None] * A, atol=1e-6)


def test_the_student_factor_approaches_that_of_a_normal_distribution() -> None:
    assert abs(student_factor(5) - 2.5706) < 1e-4
    assert abs(student_factor(100_000) - 1.96) < 1e-3


def test_a_simpler_candidate_is_chosen_within_one_standard_error_only() -> None:
    unit = RANDOM.normal(1.0, 0.5, size=20)  # some units are hard for every candidate: that must not count
    noise = np.tile([0.1, -0.1], 10)
    errors = {"poor": unit + 0.1 + noise, "simple": unit + 0.01 + noise, "best": unit}
    assert simplest_candidate(errors) == "simple"
    assert exceeds(errors["poor"] - errors["best"])
    assert not exceeds(errors["poor"] - errors["best"], 5.0)


def test_blocks_are_contiguous_equal_and_within_one_recording() -> None:
    assert equal_blocks(7, 3).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert equal_blocks(2).tolist() == [0, 1]
    block = recording_blocks([(10, 4.1), (3, 1.0), (6, 6.5)])
    assert block.tolist() == [0] * 5 + [1] * 5 + [2] * 3 + [3, 3, 4, 4, 5, 5]
