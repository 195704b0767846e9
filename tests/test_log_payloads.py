"""Payloads and temperatures of single logs, and the state of hysteresis across the cut of a holdout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise as jw
from cli_runs import PLAIN, UR10E, run
from data_files import needs_shared
from jointwise.calibration import calibrate
from jointwise.data import holdout, write_log
from jointwise.errors import DataError, EstimationError, ImplausibleError, ModelError
from jointwise.estimation.structure import Structure
from jointwise.options import Options
from synthetic import synthetic_log

LOAD = jw.Payload(3.0, [0.02, 0.0, 0.08])
QUICK = Options(structure=Structure(load="square"), free=(), position_cutoff=10.0, lag=0.0)
SLIPPING = replace(QUICK, structure=Structure("hysteresis", limits=(2e-4, 1e-3, 5e-3, 2e-2)))


@pytest.fixture(scope="module")
def robot():
    return jw.load_robot("ur5e")


def recorded(robot, seed, payload=None):
    made = synthetic_log(robot, duration=15, rate=100, seed=seed, payload=payload, load_dependence="square")
    return replace(made.log, torque=None)


@pytest.fixture(scope="module")
def logs(robot):
    return [recorded(robot, 1), recorded(robot, 2, LOAD), recorded(robot, 3), recorded(robot, 4, LOAD)]


@pytest.mark.thorough
def test_loaded_and_unloaded_logs_are_mixed(robot, logs):
    free, loaded, test, loaded_test = logs
    mixed = jw.calibrate([free, loaded], robot, payload=[None, LOAD], options=QUICK)
    alone = jw.calibrate([free, recorded(robot, 2)], robot, options=QUICK)
    assert jw.validate(mixed, test).mean_nmse < 1.15 * jw.validate(alone, test).mean_nmse
    assert jw.validate(mixed, loaded_test.with_payload(LOAD)).mean_nmse < 0.02
    assert jw.validate(mixed, loaded_test).mean_nmse > 0.05
    with pytest.raises(ImplausibleError, match="some logs carry a payload"):
        jw.calibrate([free, loaded], robot, options=QUICK)
    undeclared = jw.calibrate([free, loaded], robot, options=QUICK, accept_implausible=True)
    assert jw.validate(undeclared, test).mean_nmse > 3.0 * jw.validate(mixed, test).mean_nmse
    half = 2.0 * np.abs(mixed.estimate.values - alone.estimate.values) / (mixed.estimate.deviation + 1e-9)
    assert np.median(half[: mixed.model.base.count]) < 4.0


def test_a_shared_payload_and_those_of_single_logs(robot, logs):
    free, loaded, _, loaded_test = logs
    model = jw.calibrate([free.with_payload(jw.Payload(0.0)), loaded], robot, payload=LOAD, options=QUICK)
    assert model.provenance.carried.mass == 3.0
    assert jw.validate(model, loaded_test).mean_nmse < 0.02
    assert jw.validate(model, free.with_payload(jw.Payload(0.0))).mean_nmse < 0.02


def test_wrong_payloads(robot, logs):
    with pytest.raises(ModelError, match="one for each of 2 logs"):
        jw.calibrate(logs[:2], robot, payload=[LOAD], options=QUICK)
    bare = replace(
        robot,
        joints=tuple(
            replace(joint, motor=replace(joint.motor, drive_gain=None, torque_constant=None)) for joint in robot.joints
        ),
    )
    with pytest.raises(EstimationError, match="need known drive gains"):
        jw.calibrate(logs[:2], bare, payload=[None, LOAD], options=QUICK)


def test_temperatures_of_logs(logs):
    warm = logs[0].with_temperature(35.0)
    assert (warm.temperature == 35.0).all()
    with pytest.raises(DataError, match="has temperatures"):
        warm.with_temperature(30.0)


def test_command_line(tmp_path, logs):
    for name, log in zip(("free.csv", "loaded.csv", "test.csv"), logs, strict=False):
        write_log(log, tmp_path / name)
    names = [tmp_path / "free.csv", tmp_path / "loaded.csv"]
    options = ["--robot", "ur5e", *PLAIN, "--output", tmp_path / "model.json", "--holdout", 0.3]
    load = ["--payload", "loaded.csv=3.0,0.02,0,0.08", "--temperature", "30"]
    done = run("calibrate", *names, *options, *load)
    assert done.code == 0, done.err
    assert run("validate", tmp_path / "model.json", tmp_path / "test.csv", "--min-r2", "0.9").code == 0
    wrong = run("calibrate", *names, *options, "--payload", "load.csv=3")
    assert wrong.code == 2
    assert "no such log. Did you mean loaded.csv" in wrong.err
    assert run("calibrate", *names, *options, "--payload", "3", "--payload", "4").code == 2


def test_holdout_keeps_the_hysteresis_state(robot):
    log = recorded(robot, 1)
    whole = jw.calibrate(log, robot, options=SLIPPING)
    first, last = holdout(log, 0.3)
    assert last.run_in is not None
    assert np.allclose(whole.predict(last)[20:], whole.predict(log)[first.samples + 20 :], atol=0.05)
    bare = replace(last, run_in=None)
    measured = log.current[first.samples :]
    kept = np.abs(measured - whole.predict(last))[:50].max()
    lost = np.abs(measured - whole.predict(bare))[:50].max()
    assert kept < 0.6 * lost
    assert last.without(["qd"]).run_in.qd is None
    assert last.slice(5, 50).run_in is None


@needs_shared
def test_holdout_of_a_real_log():
    log = jw.read_log(UR10E / "id_20_02_12_50sec_12harm.csv").slice(0, 3000)
    first, last = holdout(log, 0.3)
    options = Options(structure=Structure(), free=(), position_cutoff=8.0, lag=0.0)
    model = calibrate(first, jw.load_robot("ur10e"), options=options)
    errors = [
        np.abs(np.asarray(part.current) - model.predict(part)).max() for part in (last, replace(last, run_in=None))
    ]
    assert errors[0] < errors[1]


@pytest.mark.thorough
def test_a_term_of_temperature_needs_the_temperature_of_every_log(logs, robot):
    options = replace(QUICK, structure=Structure(load="square", extra=("temperature",)))
    warm, unknown = logs[0].with_temperature(35.0), logs[2]
    with pytest.raises(EstimationError, match=r"needs a temperature: columns temp1\.\., or --temperature"):
        jw.calibrate([warm, unknown], robot, options=options)
    found = jw.calibrate([warm, unknown.with_temperature(20.0)], robot, options=options)
    assert "FT1_1" in [info.name for info in found.model.parameters]
    with pytest.raises(ModelError, match="needs the temperature of every log"):
        jw.validate(found, logs[1])
