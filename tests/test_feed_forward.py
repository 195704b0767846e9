"""The two estimates of a model file: sensor-based and feed-forward, with the same bodies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import computed
import jointwise as jw
from data_files import SHARED, needs_shared
from jointwise.cli import main
from jointwise.errors import ModelError
from jointwise.estimation.feed_forward import (
    LEAST_LIMIT,
    position_noise,
    relaxations_in_rests,
    resolved_limits,
    rest_regression,
    rests_tested,
    without_low_speed,
)
from jointwise.estimation.structure import LADDER, Structure
from jointwise.options import Options
from jointwise.preparation import make_regression
from jointwise.result import load_calibration, save_model
from jointwise.result.predict import Use
from synthetic.point_to_point import point_to_point_trajectory

SENSORS = ("qd", "theta")
REST, MOVE = 7.0, 1.5


@pytest.fixture(scope="module")
def simulated() -> tuple[jw.Log, jw.Calibration]:
    log = jw.simulate("planar2", "excitation", duration=20.0, rate=100.0, seed=3, keep=0).log
    return log, computed.calibrated(log, "planar2")


def moves_with_rests(count: int) -> jw.Log:
    """Return a log of smooth moves of all joints to and fro, each followed by a rest."""
    rate = 100.0
    s = np.linspace(0.0, 1.0, int(MOVE * rate))
    move = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    parts = [
        np.r_[move if k % 2 == 0 else 1.0 - move, np.full(int(REST * rate), float(k % 2 == 0))] for k in range(count)
    ]
    q = np.column_stack([np.concatenate(parts)] * 2)
    return jw.Log(t=np.arange(len(q)) / rate, q=q, torque=np.sin(q) + 0.1)


def test_both_estimates_share_the_bodies(simulated: tuple[jw.Log, jw.Calibration]) -> None:
    _, calibration = simulated
    assert calibration.extras and calibration.feed_forward is not None
    planned, count = calibration.for_use("feed-forward"), calibration.model.base.count
    assert not planned.extras
    np.testing.assert_array_equal(planned.estimate.values[:count], calibration.estimate.values[:count])
    assert calibration.for_use("sensor") is calibration


def test_the_available_channels_select_the_estimate(simulated: tuple[jw.Log, jw.Calibration]) -> None:
    log, calibration = simulated
    bare = log.without([name for name in SENSORS if name in log.available])
    planned = calibration.for_use("feed-forward")
    np.testing.assert_array_equal(calibration.predict(bare), planned.predict(bare))
    np.testing.assert_array_equal(calibration.predict(log, use="feed-forward"), calibration.predict(bare))
    assert np.abs(calibration.predict(log) - calibration.predict(bare)).max() > 0.0
    assert jw.validate(calibration, log).use == "sensor"
    assert jw.validate(calibration, bare).use == "feed-forward"
    with pytest.raises(ModelError, match="sensor-based model needs"):
        calibration.predict(bare, use="sensor")


def test_a_file_holds_both_estimates(simulated: tuple[jw.Log, jw.Calibration], tmp_path: Path) -> None:
    log, calibration = simulated
    save_model(calibration, tmp_path / "m.json")
    again = load_calibration(tmp_path / "m.json")
    for use in ("sensor", "feed-forward"):
        np.testing.assert_array_equal(again.predict(log, use=use), calibration.predict(log, use=use))
    document = json.loads((tmp_path / "m.json").read_text())
    document["feed_forward"]["values"].pop()
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match="feed_forward"):
        load_calibration(tmp_path / "m.json")


def test_commands_say_which_estimate_was_used(
    simulated: tuple[jw.Log, jw.Calibration], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, calibration = simulated
    model, path = str(tmp_path / "m.json"), str(tmp_path / "log.parquet")
    save_model(calibration, model)
    jw.write_log(log, path)
    assert main(["predict", model, path, "--output", str(tmp_path / "p.csv")]) == 0
    assert "sensor-based model" in capsys.readouterr().out
    assert main(["predict", model, path, "--use", "feed-forward", "--output", str(tmp_path / "p.csv")]) == 0
    assert "feed-forward model (positions only)" in capsys.readouterr().out
    assert main(["validate", model, path, "--use", "feed-forward", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["use"] == "feed-forward"


def test_relaxation_is_selected_only_from_logs_with_rests() -> None:
    robot = jw.load_robot("planar2")
    for count, expected in ((3, (0.0,)), (5, (0.0, 1.0, 3.0))):
        regression = make_regression([moves_with_rests(count)], robot, "table", "torque", Options())
        assert relaxations_in_rests(regression) == expected


def test_low_speed_friction_is_selected_only_from_logs_with_rests(simulated: tuple[jw.Log, jw.Calibration]) -> None:
    log, calibration = simulated
    robot = jw.load_robot("planar2")
    assert rests_tested(rest_regression(make_regression([moves_with_rests(2)], robot, "table", "torque", Options())))
    assert not rests_tested(rest_regression(make_regression([log], robot, "table", "current", Options())))
    assert calibration.feed_forward is not None
    found = calibration.feed_forward.structure
    assert found.stribeck == 0.0 and min(found.powers) >= 1.0
    rich = Structure("hysteresis", powers=(1.0, 0.5), stribeck=0.05)
    assert without_low_speed(rich, ["powers", "stribeck"]) == Structure("hysteresis", powers=(1.0, 2.0))
    assert without_low_speed(rich, ["load"]) == rich


@pytest.mark.thorough
def test_rests_after_a_motion_are_predicted() -> None:
    robot = jw.load_robot("ur5e")
    excitation = jw.simulate(robot, "excitation", duration=20.0, rate=100.0, seed=5, keep=0).log
    moves = point_to_point_trajectory(robot, 38.0, 6, pauses=(2.0, 6.0))
    log = jw.simulate(robot, moves, duration=40.0, rate=100.0, seed=6, keep=0).log
    rich = Structure("hysteresis", "square", (1.0, 0.5), stribeck=0.05)
    known = jw.calibrate(
        excitation, robot, physical=False, options=Options(structure=rich, free=()), accept_implausible=True
    )
    chosen = jw.calibrate(excitation, robot, physical=False, accept_implausible=True)
    errors = [jw.validate(model, log, use="feed-forward").mean_nmse for model in (chosen, known)]
    assert errors[0] < 0.08 and errors[1] > 1.5 * errors[0]


def test_slip_limits_exceed_the_noise_of_the_positions() -> None:
    assert resolved_limits(0.0)[0] == LEAST_LIMIT
    limits = resolved_limits(3e-5)
    assert limits[0] == 3e-5 and limits[-1] <= LADDER[-1]
    np.testing.assert_allclose(np.diff(np.log(limits)), np.log(LADDER[1] / LADDER[0]))


def test_noise_of_positions_is_no_matter_of_the_cut_off_of_the_bodies() -> None:
    log = jw.simulate("ur5e", "excitation", duration=15.0, rate=100.0, seed=5, keep=0).log
    regression = make_regression([log], jw.load_robot("ur5e"), "table", "current", Options())
    low, high = (position_noise(regression.filtered(position_cutoff=cutoff)) for cutoff in (4.0, 10.0))
    assert low == high > 0.0


def test_what_follows_the_last_motion_is_not_fitted() -> None:
    log = moves_with_rests(4)
    regression = make_regression([log], jw.load_robot("planar2"), "table", "torque", Options()).from_positions()
    assert log.samples - regression.samples == pytest.approx(100.0 * REST, abs=40)


@pytest.mark.thorough
@needs_shared
def test_ur10e_from_positions_only() -> None:
    def read(name: str) -> jw.Log:
        return jw.read_log(SHARED / "ur10e" / name)

    calibration = jw.calibrate(read("id_20_02_12_50sec_12harm.csv"), jw.load_robot("ur10e"))
    errors: dict[Use, list[float]] = {"sensor": [], "feed-forward": []}
    for name in ("id_20_02_12_40sec_12harm.csv", "id_20_02_19_14harm50sec.csv", "id_20_02_05_20sec_8harm.csv"):
        log = read(name)
        moving = np.flatnonzero((np.abs(log.qd) > 0.02).any(axis=1))
        part = slice(moving[0], moving[-1] + 1)
        y = log.current[part]
        for use, rows in errors.items():
            residual = y - calibration.predict(log, use=use)[part]
            rows.append(float(np.mean(np.mean(residual**2, axis=0) / np.var(y, axis=0))))
    assert np.mean(errors["feed-forward"]) <= 0.0077
    assert (np.array(errors["sensor"]) <= (0.0048, 0.0052, 0.0069)).all()
    assert calibration.feed_forward is not None and calibration.feed_forward.structure.relaxation == 0.0
    assert "friction at rest" in [choice.question for choice in calibration.feed_forward.choices]
