"""Essential parameters: what is zero in truth is dropped, what is strong is kept, and the model is like any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import computed
import jointwise as jw
from cli_runs import run
from data_files import SHARED, needs_shared
from jointwise.calibration import calibrate
from jointwise.errors import EstimationError, ModelError
from jointwise.estimation.structure import Structure
from jointwise.options import Options
from synthetic import SyntheticLog, default_friction, synthetic_log

UR5E = jw.load_robot("ur5e")
FIXED = Options(structure=Structure("sign", "none", (1.0, 2.0)), free=(), position_cutoff=20.0, lag=0.0)
STRONG = 10.0
"""True value over its standard error from which a parameter is strong."""


def made(seed: int) -> SyntheticLog:
    friction = default_friction(UR5E, "none")
    return synthetic_log(UR5E, "fourier", duration=20.0, rate=200.0, seed=seed, friction=friction, hysteresis=False)


@pytest.fixture(scope="module")
def pair() -> tuple[SyntheticLog, jw.Calibration, jw.Calibration]:
    log = made(1)
    full = computed.calibrated(log.log, UR5E, options=FIXED, physical=False)
    return log, full, computed.calibrated(log.log, UR5E, options=replace(FIXED, essential=0.005), physical=False)


@pytest.mark.thorough
def test_zeros_are_dropped_and_strong_parameters_kept(
    pair: tuple[SyntheticLog, jw.Calibration, jw.Calibration],
) -> None:
    zeros = strong = 0
    for seed in (1, 2, 3):
        log = pair[0] if seed == 1 else made(seed)
        found = (
            pair[2] if seed == 1 else calibrate(log.log, UR5E, options=replace(FIXED, essential=0.005), physical=False)
        )
        full = pair[1] if seed == 1 else calibrate(log.log, UR5E, options=FIXED, physical=False)
        truth = full.model.base.from_standard(log.truth.plant.standard)
        assert found.essential is not None
        dropped = {item.name for item in found.essential.dropped}
        size = np.abs(truth) / full.estimate.deviation[: len(truth)]
        for name, value, relative in zip(full.model.base.names, truth, size, strict=True):
            zeros += abs(value) < 1e-12
            strong += relative > STRONG
            assert name in dropped or abs(value) >= 1e-12, f"seed {seed}: {name} is zero in truth"
            assert name not in dropped or relative < STRONG, f"seed {seed}: {name} is strong"
    assert zeros >= 15 and strong >= 30


def test_the_smaller_model_predicts_another_motion(pair: tuple[SyntheticLog, jw.Calibration, jw.Calibration]) -> None:
    _, full, small = pair
    other = made(7).log
    assert jw.validate(small, other).mean_nmse < 1.01 * jw.validate(full, other).mean_nmse
    assert small.essential is not None and small.essential.change <= 0.005


def test_the_smaller_model_is_like_any_other(
    pair: tuple[SyntheticLog, jw.Calibration, jw.Calibration], tmp_path: Path
) -> None:
    small = pair[2]
    assert small.essential is not None
    status = dict(zip((info.name for info in small.model.parameters), small.estimate.status, strict=True))
    values = dict(zip((info.name for info in small.model.parameters), small.estimate.values, strict=True))
    for item in small.essential.dropped:
        assert status[item.name] == "dropped" and values[item.name] == 0.0
    jw.save_model(small, tmp_path / "small.json")
    again = jw.load_calibration(tmp_path / "small.json")
    assert again.essential == small.essential
    np.testing.assert_array_equal(again.predict(pair[0].log), small.predict(pair[0].log))
    assert "dropped" in small.summary(full=True)


@pytest.mark.thorough
def test_bodies_rest_on_all_parameters() -> None:
    log = made(1)
    both = calibrate(log.log, UR5E, options=replace(FIXED, essential=0.005))
    full = calibrate(log.log, UR5E, options=FIXED)
    assert both.physical is not None and full.physical is not None
    np.testing.assert_array_equal(both.physical.inertials, full.physical.inertials)


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, float("nan")])
def test_a_tolerance_out_of_range_is_rejected(tolerance: float) -> None:
    with pytest.raises(ModelError, match="tolerance of essential parameters must be from 0 to 1"):
        calibrate(made(1).log, UR5E, options=replace(FIXED, essential=tolerance), physical=False)


def test_a_log_too_short_for_held_out_errors_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointwise.estimation.regression.BLOCKS", 2)
    monkeypatch.setattr("jointwise.estimation.regression.PHASES", 2)
    with pytest.raises(EstimationError, match="too short to find essential parameters"):
        calibrate(made(1).log, UR5E, options=replace(FIXED, essential=0.005), physical=False)


def test_a_tolerance_without_the_option_is_a_usage_error() -> None:
    argv = ("calibrate", "log.csv", "--robot", "ur5e", "--output", "m.json", "--essential-tolerance", "1")
    result = run(*argv)
    assert result.code == 2 and "--essential-tolerance is used with --essential" in result.err


@pytest.mark.thorough
@needs_shared
def test_a_real_arm_needs_fewer_than_half_of_its_parameters() -> None:
    folder = SHARED / "ur10e"
    log = jw.read_log(folder / "id_20_02_12_50sec_12harm.csv")
    robot = jw.load_robot("ur10e")
    options = replace(FIXED, structure=Structure("tanh", "none", (1.0,)), position_cutoff=8.0)
    full, small = (calibrate(log, robot, options=each) for each in (options, replace(options, essential=0.005)))
    assert small.essential is not None and full.physical is not None
    assert len(small.essential.dropped) >= 15
    other = jw.read_log(folder / "id_20_02_12_40sec_12harm.csv")
    error = jw.validate(full, other).mean_nmse
    assert jw.validate(small, other).mean_nmse < 1.01 * error
    assert jw.validate(full.consistent(), other).mean_nmse < 1.01 * error
