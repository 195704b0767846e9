"""Residual trends are found where they exist, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise
from jointwise.calibration import calibrate
from jointwise.data import Log
from jointwise.estimation.structure import Structure
from jointwise.options import Options
from jointwise.report.data import collect
from jointwise.report.sections.residuals import NOTEWORTHY, residuals_section
from jointwise.result import Calibration
from jointwise.result.diagnostics import ResidualTrend, residual_trends
from jointwise.spatial import Array
from synthetic import synthetic_log

ROBOT = jointwise.load_robot("planar2")


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    made = synthetic_log(ROBOT, duration=20.0, rate=100.0, seed=1)
    structure = Structure("hysteresis", load="square", powers=(1.0, 2.0))
    options = Options(gains=made.truth.gains.tolist(), structure=structure, free=(), lag=0.0, position_cutoff=20.0)
    return calibrate(made.log, ROBOT, options=options)


@pytest.fixture(scope="module")
def other() -> Log:
    log = synthetic_log(ROBOT, duration=40.0, rate=100.0, seed=2).log
    rise = np.linspace(25.0, 35.0, log.samples)[:, None] + 0.2 * np.sin(3.0 * log.t)[:, None] * np.ones((1, 2))
    return replace(log, temperature=rise)


def found(calibration: Calibration, log: Log) -> dict[str, ResidualTrend]:
    item = collect(calibration, [], [log]).logs[0]
    return {trend.quantity: trend for trend in residual_trends(calibration, item.log, item.predicted, 0)}


def with_pattern(log: Log, pattern: Array) -> Log:
    assert log.current is not None
    added = np.zeros_like(log.q)
    added[:, 0] = pattern
    return replace(log, current=np.asarray(log.current) + added)


def test_residual_of_a_good_model_has_no_trend(calibration: Calibration, other: Log) -> None:
    for trend in found(calibration, other).values():
        assert trend.share < NOTEWORTHY, trend.quantity


@pytest.mark.parametrize("quantity", ["position", "speed", "temperature"])
def test_trend_is_found_over_its_quantity(calibration: Calibration, other: Log, quantity: str) -> None:
    x = {"position": other.q, "speed": other.qd, "temperature": other.temperature}[quantity]
    assert x is not None
    assert other.qd is not None
    sign = np.sign(other.qd[:, 0]) if quantity == "temperature" else 1.0
    pattern = sign * np.cos(4.0 * np.asarray(x[:, 0]) / np.ptp(x[:, 0]) * np.pi)
    trends = found(calibration, with_pattern(other, pattern))
    assert trends[quantity].share > 0.5
    np.testing.assert_allclose(np.ptp(trends[quantity].mean), 2.0, rtol=0.25)


def test_noise_has_no_trend_over_position(calibration: Calibration, other: Log) -> None:
    noise = 1.0 * np.random.default_rng(0).normal(size=other.samples)
    assert found(calibration, with_pattern(other, noise))["position"].share < NOTEWORTHY


def test_section_names_the_quantity_and_possible_causes(calibration: Calibration, other: Log) -> None:
    log = with_pattern(other, 1.0 * np.cos(2.0 * np.asarray(other.q[:, 0])))
    page = residuals_section(collect(calibration, [], [log]))
    assert "of the residual variance depends on position" in page
    assert "kinematic error" in page
    assert "The residuals show no significant trend." in residuals_section(collect(calibration, [], [other]))
