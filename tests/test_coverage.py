"""Confidence intervals: the price of every cause, and the coverage on a few simulated logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise.estimation.cross_validation import Score
from jointwise.estimation.uncertainty import (
    BOUNDED_QUANTILE,
    Alternatives,
    NeglectedEffects,
    Uncertainty,
    with_selection,
)
from jointwise.model.terms import JointSignals
from jointwise.options import Options
from jointwise.result import load_calibration, save_model


def score(errors: np.ndarray) -> Score:
    return Score(errors, errors.mean(axis=0))


def test_the_probability_of_an_alternative_follows_the_folds() -> None:
    plain = np.full((6, 2), 0.02)
    spread = 0.01 * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])[:, None]
    assert score(plain * np.exp(spread)).probability_better(score(plain)) == pytest.approx(0.5)
    worse = score(plain * np.exp(0.05 + spread))
    assert worse.probability_better(score(plain)) < 0.001
    assert score(plain).probability_better(worse) > 0.999


def test_variances_by_cause_add_up() -> None:
    noise = {"independent noise": np.array([0.25, 0.5]), "correlated residuals": np.array([0.75, 0.5])}
    none = np.zeros(2, dtype=bool)
    plain = Uncertainty(np.eye(2), np.ones(2), 2.0, none, none, noise)
    found = [
        Alternatives("a", np.array([[2.0]]), np.array([0.25])),
        Alternatives("b", np.ones((1, 2)), cause="filters"),
    ]
    wide = with_selection(plain, found)
    bounded = (BOUNDED_QUANTILE / plain.factor) ** 2
    np.testing.assert_allclose(np.diag(wide.covariance), [1.0 + 2.0 * bounded, 1.0 + bounded])
    np.testing.assert_allclose(sum(wide.parts.values()), np.diag(wide.covariance))
    shares = wide.shares(1)
    assert shares["model selection"] == shares["filters"] == pytest.approx(bounded / (1.0 + 2.0 * bounded))
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.thorough
def test_intervals_cover_the_truth_and_cost_little_more_than_a_known_structure(tmp_path: Path) -> None:
    inside, ratios = [], []
    for seed in (201, 202, 203):
        made = jw.simulate("planar2", "excitation", duration=20.0, rate=100.0, seed=seed, keep=0)
        robot = jw.load_robot("planar2")
        automatic = jw.calibrate(made.log, robot, physical=False)
        filters = automatic.filters
        known = Options(
            structure=automatic.structure, free=(), lag=filters.lag, position_cutoff=filters.position_cutoff
        )
        fixed = jw.calibrate(made.log, robot, physical=False, options=known)
        names = automatic.model.base.names
        truth = np.array([made.truth["base"][name] for name in names])
        low, high = automatic.conf_int()[: len(names)].T
        inside += ((low <= truth) & (truth <= high)).tolist()
        ratios += (automatic.estimate.deviation[: len(names)] / fixed.estimate.deviation[: len(names)]).tolist()
    assert np.mean(inside) >= 0.8
    assert np.median(ratios) <= 1.3
    assert "by cause" in automatic.summary()
    assert sum(automatic.estimate.shares.values()) == pytest.approx(1.0)
    save_model(automatic, tmp_path / "m.json")
    assert load_calibration(tmp_path / "m.json").estimate.shares == automatic.estimate.shares


def test_bounded_deviations_have_the_interval_of_their_distribution() -> None:
    none = np.zeros(1, dtype=bool)
    sharp = Uncertainty(np.zeros((1, 1)), np.zeros(1), 2.07, none, none)
    cell = with_selection(sharp, [Alternatives("cell", np.array([[3.0]]), np.array([1.0 / 3.0]), "filters")])
    assert cell.factor * cell.deviation[0] == pytest.approx(0.95 * 3.0)
    gains = with_selection(sharp, [Alternatives("gains", np.array([[3.0]]), np.array([1.0]), "drive gains")])
    assert gains.factor * gains.deviation[0] == pytest.approx(1.96 * 3.0)


def test_columns_of_neglected_effects() -> None:
    t = np.arange(0.0, 4.0, 0.004)
    load, speed = 5.0 * np.sin(3.0 * t), np.cos(t)
    signals = JointSignals(250.0, np.sin(t), speed, -np.sin(t), load=load, rotor=np.sin(t) + 1e-3 * np.sin(3.0 * t))
    inner = slice(20, -20)
    for measured, size in ((False, 5.0), (True, 1e-3)):
        elastic, even, rotor = NeglectedEffects(measured).columns(signals)[0].T
        np.testing.assert_allclose(elastic[inner], -9.0 * size * np.sin(3.0 * t[inner]), atol=0.01 * size)
    np.testing.assert_allclose(even, load**2)
    np.testing.assert_allclose(rotor, -load * np.sin(t) * np.tanh(speed / 0.01))
