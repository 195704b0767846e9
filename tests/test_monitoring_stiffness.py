"""Stiffness as a part of the monitor: ok and worn joints of the digital robot, history, page, what is missing."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

import jointwise as jw
from cli_runs import done, refused, run
from jointwise.data.write import write_csv
from jointwise.errors import ModelError
from jointwise.estimation.structure import Structure
from jointwise.joint import save_joint
from jointwise.joint.part import nrmse_percent
from jointwise.monitoring import Session, monitor_log
from jointwise.monitoring.core import Samples
from jointwise.monitoring.history import History
from jointwise.monitoring.session import part_of
from jointwise.monitoring.stiffness.status import PARTS, WIDEST, PredictionFit, torque_fit
from jointwise.monitoring.text import result_text
from jointwise.monitoring.wear import Wear, check_joints, log_wear
from jointwise.monitoring.wear_stream import StreamClock
from jointwise.options import Options
from online_joints import SIMPLE, moves, true_model, with_gear_map

QUICK = Options(structure=Structure(load="square"), free=(), position_cutoff=10.0, lag=0.0)
LOSS = 0.2
TRUTH = 15e3
"""k(0) of the base of the digital UR5e, Nm/rad."""


@pytest.fixture(scope="module")
def model():
    plant = jw.PlantOptions(without=SIMPLE)
    log = jw.simulate("ur5e", "excitation", duration=20.0, rate=250.0, seed=1, keep=0, plant=plant).log
    log = replace(log, torque=None, theta=None)
    return jw.RobotModel(jw.calibrate(log, jw.load_robot("ur5e"), options=QUICK, physical=False))


@pytest.fixture(scope="module")
def base():
    return true_model(moves()[1])


@pytest.fixture(scope="module")
def results(model, base):
    """Return the results of a new arm and of a worn one."""
    return [monitor_log(model, moves(stiffness=loss)[0], joints=[base]).result() for loss in (0.0, -LOSS)]


@pytest.fixture(scope="module")
def files(tmp_path_factory, model, base):
    folder = tmp_path_factory.mktemp("stiffness")
    jw.save_model(model, folder / "model.json")
    save_joint(base, folder / "joint1.json")
    write_csv(moves()[0], folder / "new.csv")
    write_csv(moves(stiffness=-LOSS)[0], folder / "worn.csv")
    write_csv(moves()[0].without(["theta"]), folder / "plain.csv")
    return folder


def test_new_and_worn_joints_are_distinguished(results):
    new, worn = results
    assert (new.status, new.is_quiet) == ("ok", True)
    assert (worn.status, worn.is_quiet) == ("worn", False)
    assert "joint 1 is worn: stiffness -20 %" in worn.reasons[0]
    for result, truth in ((new, TRUTH), (worn, (1.0 - LOSS) * TRUTH)):
        (joint,) = result.stiffness
        assert joint.interval[0] < truth < joint.interval[1]
        assert joint.stiffness == pytest.approx(truth, rel=0.01)
        assert joint.loss == pytest.approx(1.0 - truth / TRUTH, abs=0.01)
        assert joint.stored == pytest.approx(TRUTH)
    assert "stiffness" in new.running
    assert "stiffness of joint 2, 3, 4, 5, 6: no joint file (--joint)" in new.missing


def test_what_does_not_run_is_listed(model, base):
    log = moves()[0]
    without = monitor_log(model, log).result()
    assert without.stiffness is None
    assert "stiffness: no joint file (--joint)" in without.missing
    plain = log.without(["theta"])
    assert log_wear(model, plain, [base]).missing == ("stiffness: no rotor position (theta)",)
    assert log_wear(model, plain, []).missing == ("stiffness: no rotor position (theta), no joint file (--joint)",)
    other = replace(base, joint=1, parts={"friction": base.parts["friction"]})
    found = log_wear(model, log, [other, base])
    assert [joint.joint for joint in found.joints] == [1]
    assert found.missing[0] == "stiffness of joint 2: not in its joint file"
    theta = log.theta.copy()
    theta[:, 0] = float("nan")
    (line, _) = log_wear(model, replace(log, theta=theta), [base]).missing
    assert line.startswith("stiffness of joint 1: ")


def stream_of(log, count=None):
    """Return the samples of a log for a stream with all channels."""
    rows = slice(0, count)
    return Samples(log.t[rows], log.q[rows], log.current[rows], theta=log.theta[rows], current=log.current[rows])


def wear_of(model, base, samples, size=7):
    """Return the stiffness of the base in a stream that arrives in parts of `size` samples."""
    session = Session(model, joints=[base])
    for first in range(0, len(samples), size):
        session.feed(part_of(samples, slice(first, first + size)))
    return session.result()


@pytest.mark.parametrize(("start", "accuracy"), [(0.0, 1e-5), (1.7e9, 1e-4)])
def test_a_stream_has_the_stiffness_of_its_log(model, base, start, accuracy):
    """Rows that a log repeats are bridged by a spline there, and stamps since 1970 are rounded to 0.2 us."""
    log = moves(stiffness=-LOSS)[0].without(["temperature"])
    (whole,) = monitor_log(model, log, joints=[base]).result().stiffness
    samples = stream_of(log)
    found = wear_of(model, base, replace(samples, t=samples.t + start))
    (joint,) = found.stiffness
    assert (found.status, joint.status) == ("worn", "worn")
    assert "stiffness" in found.running
    assert joint.stiffness == pytest.approx(whole.stiffness, rel=accuracy)
    assert joint.interval == pytest.approx(whole.interval, rel=10.0 * accuracy)
    assert joint.prediction == pytest.approx(whole.prediction, abs=3e4 * accuracy)  # interpolation lowers the noise


def test_the_status_is_unknown_where_the_deflection_does_not_explain_the_torque(model, base):
    log = moves(stiffness=-LOSS)[0].without(["temperature"])
    order = np.random.default_rng(0).permutation(len(log.t))
    shuffled = replace(log, theta=log.q + (log.theta - log.q)[order])
    for result in (monitor_log(model, shuffled, joints=[base]).result(), wear_of(model, base, stream_of(shuffled))):
        (joint,) = result.stiffness
        assert np.ptp(joint.loss_interval) > 2.0 * WIDEST and joint.status == "unknown" and result.status != "worn"
        assert "unknown (the deflection does not determine it)" in result_text(result)


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_the_fit_of_a_prediction_is_that_of_the_second_half_in_any_pieces(size):
    rng = np.random.default_rng(1)
    y = rng.normal(size=20_000) * np.linspace(1.0, 3.0, 20_000) + 5.0
    predicted = y + rng.normal(size=20_000)
    whole, fit = PredictionFit(), PredictionFit()
    whole.add(y, predicted)
    for first in range(0, len(y), size):
        fit.add(y[first : first + size], predicted[first : first + size])
    assert fit.percent() == pytest.approx(whole.percent(), rel=1e-9)
    assert fit.percent() == pytest.approx(nrmse_percent(y[10_000:], predicted[10_000:]), abs=0.3)
    assert len(fit.parts) <= 2 * PARTS
    constant = PredictionFit()
    constant.add(np.full(100, 0.1), np.zeros(100))
    assert constant.percent() is None and PredictionFit().percent() is None


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_noise_does_not_bias_a_stiffness_but_slow_errors_may(size):
    rng, t = np.random.default_rng(2), np.arange(20_000) / 500.0
    y = 10.0 * np.sin(t)
    noisy, slow = torque_fit(500.0), torque_fit(500.0)
    predicted, wrong = y + 5.0 * rng.normal(size=len(t)), 0.8 * y
    for first in range(0, len(y), size):
        part = slice(first, first + size)
        noisy.add(y[part], predicted[part])
        slow.add(y[part], wrong[part])
    assert noisy.samples.percent() < 40.0 and noisy.largest_bias() < 0.12
    assert slow.largest_bias() == pytest.approx(0.2, abs=0.002)


@pytest.mark.parametrize("fault", ["gap", "restart", "nan", "jitter", "repeated", "reordered"])
def test_faulty_streams_keep_the_stiffness(model, base, fault):
    samples = stream_of(moves()[0])
    t, theta = samples.t.copy(), samples.theta.copy()
    rng = np.random.default_rng(0)
    if fault in ("gap", "restart"):
        t[5000:] += 3.0 if fault == "gap" else -t[5000]
    elif fault == "nan":
        t[3000], theta[4000:4010] = np.nan, np.nan
    elif fault == "jitter":
        t = np.sort(t + 2e-4 * rng.uniform(-1.0, 1.0, len(t)))
    else:
        t[5000] = t[4999] if fault == "repeated" else t[4997]
    found = wear_of(model, base, replace(samples, t=t, theta=theta), size=33)
    (joint,) = found.stiffness
    assert joint.status == "ok"
    assert joint.stiffness == pytest.approx(TRUTH, rel=0.01)


def test_the_clock_of_a_stream_is_that_of_its_stamps():
    clock = StreamClock(10.0)
    t, x = np.arange(8) / 10.0, np.arange(8.0)[:, None] ** 2
    parts = [part for k in range(0, 8, 3) for part in clock.take(t[k : k + 3], x[k : k + 3])]
    assert [begins for begins, _ in parts] == [True, False, False]
    np.testing.assert_array_equal(np.concatenate([values for _, values in parts]), x)
    between = list(clock.take(np.array([0.75, 0.85]), np.array([[50.0], [60.0]])))
    np.testing.assert_allclose(between[0][1], [[55.0]])
    late = list(clock.take(np.array([0.8, np.nan]), np.zeros((2, 1))))
    assert [len(values) for _, values in late] == [0]
    anew = list(clock.take(np.array([5.0, 5.1]), np.ones((2, 1))))
    assert [(begins, len(values)) for begins, values in anew] == [(False, 0), (True, 2)]


def test_what_a_stream_lacks_is_listed(model, base):
    samples = stream_of(moves()[0], 300)
    plain = wear_of(model, base, replace(samples, theta=None))
    assert plain.stiffness is None
    assert "stiffness: no rotor position (theta)" in plain.missing
    both = wear_of(model, base, replace(samples, theta=None, current=None))
    assert "stiffness: no rotor position (theta), no current" in both.missing
    still = wear_of(model, base, replace(samples, theta=np.full_like(samples.theta, np.nan)))
    assert "stiffness of joint 1: no whole sample in the stream." in still.missing
    without = Session(model)
    without.feed(samples)
    assert "stiffness: no joint file (--joint)" in without.result().missing


def test_samples_outside_of_the_gear_map_are_listed(model, base):
    log = moves()[0].without(["temperature"])
    low, middle, high = np.quantile(log.theta[:, 0], (0.0, 0.5, 1.0))
    half, none = with_gear_map(base, low, middle), with_gear_map(base, high + 0.1, high + 0.2)
    for wear in (log_wear(model, log, [half]), wear_of(model, half, stream_of(log))):
        line = next(line for line in wear.missing if "transmission part" in line)
        assert "stiffness of joint 1 in 5" in line or "stiffness of joint 1 in 4" in line
        (joint,) = wear.joints if isinstance(wear, Wear) else wear.stiffness
        assert joint.status == "ok" and joint.stiffness == pytest.approx(TRUTH, rel=0.02)
    for missing in (log_wear(model, log, [none]).missing, wear_of(model, none, stream_of(log)).missing):
        assert "stiffness of joint 1 in all samples: at angles that its transmission part does not cover" in missing
        assert "stiffness of joint 1: no sample in motion was used." in missing


def test_a_motion_too_short_for_an_interval_is_plain_json(model, base, tmp_path):
    log = moves()[0]
    speed = np.abs(np.gradient(log.theta[:, 0], log.t))
    rows = slice(0, int(np.argmax(speed > 0.02)) + 60)
    result = wear_of(model, base, stream_of(log, rows.stop))
    (joint,) = result.stiffness
    assert joint.status == "unknown" and not np.isfinite(joint.loss_interval).any()
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["stiffness"][0]["loss_interval"] == [None, None]


@pytest.mark.thorough
def test_streams_of_the_command_have_the_numbers_of_the_log(files, tmp_path, monkeypatch):
    log = moves(stiffness=-LOSS)[0]
    words = ("--joint", files / "joint1.json", "--json")
    (whole,) = json.loads(run("monitor", files / "model.json", files / "worn.csv", *words).out)["stiffness"]
    channels = {"t": log.t, "q": log.q, "current": log.current, "theta": log.theta, "temperature": log.temperature}
    table = {name: values.tolist() for name, values in channels.items()}
    lines = "".join(json.dumps({name: table[name][k] for name in table}) + "\n" for k in range(len(log.t)))
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    piped = run("monitor", files / "model.json", "-", *words, "--history", tmp_path / "h.sqlite")
    followed = run("monitor", files / "model.json", files / "worn.csv", "--follow", "--idle", "0.1", *words)
    for ended in (piped, followed):
        assert ended.code == 3, ended
        (joint,) = json.loads(ended.out.splitlines()[-1])["stiffness"]
        assert joint["status"] == "worn"
        assert joint["stiffness"] == pytest.approx(whole["stiffness"], rel=1e-4)
    assert len(History(tmp_path / "h.sqlite").series("ur5e", 1, "stiffness")) == 1


def test_an_undeclared_payload_is_not_wear(model, base):
    worn = log_wear(model, moves(stiffness=-LOSS)[0], [base])
    unknown = worn.not_judged()
    assert [joint.status for joint in unknown.joints] == ["unknown"]
    assert "not judged" in unknown.missing[-1]
    assert unknown.reasons == () != worn.reasons
    assert Wear().not_judged() == Wear()


def test_wrong_joint_files_are_rejected(model, base):
    for wrong, message in (
        ([replace(base, robot="ur10e")], "must be of ur5e. Got joint 1 of ur10e"),
        ([replace(base, joint=6)], "joints 1 to 6 of ur5e. Got joint 7"),
        ([base, base], "joint 1 must be in one joint file"),
        ([replace(base, parts={"friction": base.parts["friction"]})], "must have a stiffness"),
        ([replace(base, parts={"stiffness": base.parts["stiffness"]})], "friction"),
    ):
        with pytest.raises(ModelError, match=message):
            check_joints(model, wrong)


def test_the_trend_over_months_is_in_the_history(results, tmp_path):
    history, (new, worn) = History(tmp_path / "h.sqlite"), results
    for month in range(1, 9):
        history.add(new if month <= 4 else worn, robot="cell7", date=datetime(2026, month, 1, tzinfo=UTC))
    trend = next(t for t in history.trends("cell7") if t.quantity == "stiffness")
    assert (trend.joint, trend.status, trend.runs) == (1, "watch", 8)
    assert trend.change == pytest.approx(-LOSS * TRUTH, rel=0.05)
    assert "joint 1: stiffness -20.0 ± 0." in history.summary("cell7")
    (unknown,) = (replace(joint, status="unknown") for joint in worn.stiffness)
    history.add(replace(worn, stiffness=(unknown,)), robot="cell7", date=datetime(2026, 9, 1, tzinfo=UTC))
    assert len(history.series("cell7", 1, "stiffness")) == 8


def test_the_command(files, tmp_path):
    words = ("monitor", files / "model.json", files / "new.csv", "--joint", files / "joint1.json")
    text = done(*words, "--history", tmp_path / "h.sqlite", "--report", tmp_path / "page")
    assert "stiffness j1 [Nm/rad]" in text
    page = (tmp_path / "page" / "monitor.html").read_text()
    assert "loss of the secant" in page
    assert "Stiffness of the joints, 95 % intervals." in page
    worn = run("monitor", files / "model.json", files / "worn.csv", "--joint", files / "joint1.json", "--json")
    assert worn.code == 3, worn
    (joint,) = json.loads(worn.out)["stiffness"]
    assert (joint["joint"], joint["status"]) == (1, "worn")
    assert joint["loss_interval"][0] < LOSS + 0.005 < joint["loss_interval"][1] + 0.01
    plain = done("monitor", files / "model.json", files / "plain.csv", "--joint", files / "joint1.json")
    assert "not monitored: stiffness: no rotor position (theta)" in plain


def test_the_command_rejects_wrong_joint_files(files, base, tmp_path):
    words = ("monitor", files / "model.json", files / "new.csv", "--joint")
    save_joint(replace(base, robot="ur10e"), tmp_path / "other.json")
    save_joint(base, tmp_path / "friction.json", phenomena=["friction"])
    assert "must be of ur5e" in refused(*words, tmp_path / "other.json")
    assert "must have a stiffness" in refused(*words, tmp_path / "friction.json")
    assert "one joint file" in refused(*words, files / "joint1.json", files / "joint1.json")
    assert "no such file" in refused(*words, tmp_path / "none.json")
