"""What a choice of model is worth, in the intervals of the bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise
from jointwise.calibration import calibrate
from jointwise.estimation.cross_validation import Score
from jointwise.estimation.uncertainty import (
    BOUNDED_QUANTILE,
    Alternatives,
    Uncertainty,
    error_ratio,
    with_selection,
)
from jointwise.options import Options
from jointwise.result import Calibration
from synthetic import SyntheticLog, synthetic_log

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def made() -> SyntheticLog:
    return synthetic_log(jointwise.load_robot("planar2"), duration=30.0, rate=100.0, seed=3)


@pytest.fixture(scope="module")
def automatic(made: SyntheticLog) -> Calibration:
    return calibrate(made.log, jointwise.load_robot("planar2"), options=Options(gains=made.truth.gains.tolist()))


def half_widths(calibration: Calibration) -> np.ndarray:
    return calibration.estimate.deviation[: calibration.model.base.count]


def test_every_question_adds_the_mean_square_of_its_moves() -> None:
    plain = Uncertainty(np.eye(3), np.ones(3), 2.0, np.zeros(3, dtype=bool), np.zeros(3, dtype=bool))
    moves = [Alternatives("a", np.array([[3.0, 0.0], [0.0, 4.0]])), Alternatives("b", np.array([[1.0, 1.0]]))]
    widened = with_selection(plain, moves)
    added = (BOUNDED_QUANTILE / plain.factor) ** 2 * np.array([[4.5 + 1.0, 1.0], [1.0, 8.0 + 1.0]])
    np.testing.assert_allclose(widened.covariance[:2, :2], np.eye(2) + added)
    np.testing.assert_allclose(widened.deviation, np.sqrt([1.0 + added[0, 0], 1.0 + added[1, 1], 1.0]))
    np.testing.assert_array_equal(plain.covariance, np.eye(3))


def test_the_standard_deviation_of_errors_has_the_whole_variance_of_every_selection() -> None:
    """Intervals of bounded and normal deviations need less than Student's factor, their variance is not smaller."""
    noise = {"independent noise": np.array([3.0]), "correlated residuals": np.array([1.0])}
    plain = Uncertainty(np.full((1, 1), 4.0), np.full(1, 2.0), 2.3, np.zeros(1, bool), np.zeros(1, bool), noise)
    moves = [
        Alternatives("a", np.array([[1.5]]), np.ones(1)),
        Alternatives("b", np.array([[2.0]]), None, "drive gains"),
    ]
    widened = with_selection(plain, moves)
    ratio = error_ratio(widened.shares(1), widened.factor)
    assert ratio * widened.deviation[0] == pytest.approx(np.sqrt(4.0 + 1.5**2 + 2.0**2))
    assert error_ratio(plain.shares(1), plain.factor) == 1.0


def test_a_question_without_rivals_adds_nothing() -> None:
    plain = Uncertainty(np.eye(2), np.ones(2), 2.0, np.zeros(2, dtype=bool), np.zeros(2, dtype=bool))
    np.testing.assert_array_equal(with_selection(plain, [Alternatives("a", np.zeros((0, 2)))]).covariance, np.eye(2))


def test_a_model_that_was_chosen_is_less_sure_than_the_same_model_given(
    made: SyntheticLog, automatic: Calibration
) -> None:
    filters = automatic.filters
    options = Options(
        gains=made.truth.gains.tolist(),
        structure=automatic.structure,
        free=(),
        lag=filters.lag,
        position_cutoff=filters.position_cutoff,
    )
    given = calibrate(made.log, jointwise.load_robot("planar2"), options=options)
    np.testing.assert_allclose(given.estimate.values, automatic.estimate.values, rtol=1e-9)
    assert (half_widths(given) <= half_widths(automatic) * (1 + 1e-12)).all()
    assert (half_widths(given) < 0.98 * half_widths(automatic)).any()


def test_the_covariance_stays_a_covariance(automatic: Calibration) -> None:
    covariance = automatic.estimate.covariance
    np.testing.assert_array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance / np.abs(covariance).max()).min() > -1e-12


def test_what_the_user_fixes_adds_no_doubt(made: SyntheticLog) -> None:
    start = Options(gains=made.truth.gains.tolist(), lag=0.0, position_cutoff=8.0)
    loose = calibrate(made.log, jointwise.load_robot("planar2"), options=start)
    tight = calibrate(made.log, jointwise.load_robot("planar2"), options=replace(start, free=("load",)))
    assert half_widths(loose).shape == half_widths(tight).shape
    assert len(loose.choices) > len(tight.choices)


def test_gains_that_are_estimated_make_the_bodies_less_sure(made: SyntheticLog, automatic: Calibration) -> None:
    estimated = calibrate(made.log, jointwise.load_robot("planar2"))
    assert estimated.gain_source.startswith("estimated")
    wide, narrow = half_widths(estimated), half_widths(automatic)
    assert np.median(wide / narrow) > 1.02
    truth = estimated.model.base.from_standard(made.truth.plant.standard)
    error = np.abs(estimated.estimate.values[: len(truth)] - truth)
    assert (error < estimated.estimate.factor * wide).mean() >= 0.8


@pytest.mark.parametrize(
    ("gain", "noise", "shown"),
    [(0.015, 1e-4, True), (0.005, 1e-4, False), (0.015, 2e-2, False), (-0.015, 1e-4, False)],
)
def test_what_a_single_joint_shows_must_be_sure_and_worthwhile(gain: float, noise: float, shown: bool) -> None:
    wobble = noise * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])[:, None]
    plain = np.full((6, 6), 0.02)
    better = plain * np.exp(wobble - gain * (np.arange(6) == 2))
    simple, rich = (Score(item, item.mean(axis=0)) for item in (plain, better))
    assert rich.improves_a_joint(simple) is shown
    assert not rich.beats(simple)
