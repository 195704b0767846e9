"""Confidence intervals: the price of every cause, and the coverage on a few simulated logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise.estimation.cross_validation import Score
from jointwise.estimation.uncertainty import Alternatives, Uncertainty, with_selection
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
    np.testing.assert_allclose(np.diag(wide.covariance), [3.0, 2.0])
    np.testing.assert_allclose(sum(wide.parts.values()), np.diag(wide.covariance))
    shares = wide.shares(1)
    assert shares["model selection"] == shares["filters"] == pytest.approx(1.0 / 3.0)
    assert sum(shares.values()) == pytest.approx(1.0)


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
