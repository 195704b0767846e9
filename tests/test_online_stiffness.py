"""Online stiffness: the truth of the digital robot, changes that are followed, faults without effect, states."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_runs import done, refused
from cli_runs import run as run_command
from jointwise.data import Log
from jointwise.data.write import write_csv
from jointwise.errors import DataError, EstimationError, ModelError, ShapeError
from jointwise.estimation.recursive import VARIANTS
from jointwise.joint import save_joint
from jointwise.joint.gear import StiffnessLaw
from jointwise.joint.record import LinkLoad
from jointwise.model.spring import Cubic
from jointwise.monitoring import StiffnessEstimate, StiffnessLimits, fit_stiffness, secant_stiffness, stiffness_status
from jointwise.monitoring.stiffness import JointSamples, StiffnessEstimator, StiffnessState, monitor_stiffness
from jointwise.monitoring.stiffness.signals import SignalPath
from jointwise.runtime.observers import observed_joint
from jointwise.spatial import Array
from online_joints import moves, true_model, with_gear_map

DOWN = np.array([0.0, 0.0, -9.81])
TRUE = np.array([15e3, 5e7])


def samples_of(log: Log) -> JointSamples:
    assert log.theta is not None and log.current is not None
    return JointSamples(log.theta[:, 0], log.q, log.current[:, 0])


def estimator(**options: object) -> StiffnessEstimator:
    new = moves()[1]
    joint = observed_joint(new.robot, true_model(new))
    return StiffnessEstimator(joint, 0, 6, 1000.0, LinkLoad(new.robot, DOWN, None), **options)  # type: ignore[arg-type]


def run(samples: JointSamples, **options: object) -> tuple[StiffnessEstimate, StiffnessState]:
    made = estimator(**options)
    state = made.steps(made.init(samples), samples)[1]
    return made.estimate(state), state


def faulty(samples: JointSamples, **changes: Array) -> JointSamples:
    return replace(samples, **changes)


# -- truth -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["motor", "link", "fused"])
@pytest.mark.parametrize(("stiffness", "friction"), [(0.0, 0.0), (-0.2, 0.5)])
def test_the_stiffness_is_found_and_its_interval_covers_it(side: str, stiffness: float, friction: float) -> None:
    log, _ = moves(stiffness=stiffness, friction=friction)
    estimate, state = run(samples_of(log), side=side)
    truth = (1.0 + stiffness) * TRUE
    phi = np.array([0.0, 1e-3, 2e-3])
    low, high = estimate.conf_int(phi)
    k = truth[0] + 3.0 * truth[1] * phi**2
    np.testing.assert_allclose(estimate.stiffness(phi[:2]), k[:2], rtol=0.03)
    assert (low <= k).all() and (k <= high).all()
    assert state.dropped == 0
    assert estimator(side=side).friction_change(state) == pytest.approx(friction if side != "link" else 0.0, abs=0.03)


def test_errors_of_the_gear_are_estimated_where_no_map_is_known() -> None:
    log, _ = moves(without=("temperature", "asymmetry"))
    estimate, _ = run(samples_of(log), side="link")
    assert estimate.stiffness(1e-3) == pytest.approx(15150.0, rel=0.04)


def test_shuffled_currents_are_not_taken_for_a_stiffness() -> None:
    """Without a relation between torque and deflection the interval must not be narrow about a wrong stiffness."""
    samples = samples_of(moves()[0])
    rng = np.random.default_rng(0)
    blocks = np.array_split(samples.current, 40)
    order = rng.permutation(40)
    shuffled = faulty(samples, current=np.concatenate([blocks[k] for k in order]))
    estimate, _ = run(shuffled, side="motor")
    low, high = estimate.conf_int(0.0)
    assert high - low > 4000.0


def test_a_change_is_followed() -> None:
    """After 10 s with the new joint 10 s with one that lost half its stiffness: the floor makes the estimate alert."""
    new, soft = samples_of(moves()[0]), samples_of(moves(stiffness=-0.5, seed=1)[0])
    errors = {}
    for variant in VARIANTS:
        made = estimator(side="link", variant=variant)
        state = made.steps(made.init(new), new)[1]
        state = made.steps(made.init(soft, state), soft)[1]
        errors[variant] = abs(float(made.estimate(state).stiffness(1e-3)) / 7575.0 - 1.0)
    assert errors["directional-floor"] < 0.12
    assert errors["directional-floor"] < 0.5 * min(errors["directional"], errors["plain"])


# -- state -----------------------------------------------------------------------------------------------------------


def test_a_run_in_parts_or_samples_is_the_whole_run() -> None:
    samples = samples_of(moves()[0]).part(slice(0, 1500))
    made = estimator(side="fused")
    whole, end = made.steps(made.init(samples), samples)
    state, traces = made.init(samples), []
    for rows in (slice(0, 700), slice(700, 701), slice(701, 1300)):
        trace, state = made.steps(state, samples.part(rows))
        traces.append(trace)
    for k in range(1300, 1500):
        trace, state = made.step(state, samples.part(slice(k, k + 1)))
        traces.append(trace)
    np.testing.assert_allclose(np.concatenate([t.values for t in traces]), whole.values, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(state.recursion.covariance, end.recursion.covariance, rtol=1e-6)
    assert state.used == end.used


def test_nothing_drifts_at_rest() -> None:
    """Minutes of standstill with noise: not one number of the estimate changes."""
    samples = samples_of(moves()[0])
    made = estimator(side="fused")
    state = made.steps(made.init(samples), samples)[1]
    rng = np.random.default_rng(0)
    count = 60_000
    still = JointSamples(
        samples.theta[-1] + 1e-6 * rng.integers(-1, 2, count),
        np.tile(samples.q[-1], (count, 1)),
        samples.current[-1] + 0.02 * rng.normal(size=count),
    )
    rest = made.steps(state, still)[1]
    moving = made.steps(state, still.part(slice(0, 200)))[1]  # until the filter has seen the end of the last move
    np.testing.assert_array_equal(rest.recursion.values, moving.recursion.values)
    np.testing.assert_array_equal(rest.recursion.covariance, moving.recursion.covariance)


@pytest.mark.parametrize("fault", ["nan theta", "nan q", "nan current", "frozen theta", "frozen q", "jump", "inf"])
def test_faulty_samples_are_counted_and_never_destroy_the_estimate(fault: str) -> None:
    samples = samples_of(moves()[0])
    theta, q, current = samples.theta.copy(), samples.q.copy(), samples.current.copy()
    rows = slice(4000, 4300)
    channel = {"theta": theta, "q": q[:, 0], "current": current}.get(fault.rsplit(maxsplit=1)[-1], theta)
    if fault.startswith("nan"):
        channel[rows] = np.nan
    elif fault.startswith("frozen"):
        channel[rows] = channel[rows.start]
    else:
        channel[4100:4103] = np.inf if fault == "inf" else channel[4100] + 1.0
    spoiled, state = run(JointSamples(theta, q, current), side="fused")
    clean, whole = run(samples, side="fused")
    assert state.dropped > 0 and whole.dropped == 0
    np.testing.assert_allclose(spoiled.stiffness(1e-3), clean.stiffness(1e-3), rtol=0.01)


def test_a_gap_keeps_the_estimate() -> None:
    samples = samples_of(moves()[0])
    made = estimator(side="link")
    before = made.steps(made.init(samples), samples.part(slice(0, 5000)))[1]
    rest = samples.part(slice(6000, None))
    after = made.steps(made.init(rest, before), rest)[1]
    assert after.used > before.used
    assert made.estimate(after).values[0] == pytest.approx(15e3, rel=0.02)


# -- batch and secant --------------------------------------------------------------------------------------------------


def test_the_batch_fit_is_least_squares_with_reliable_errors() -> None:
    covered = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        phi = rng.uniform(-2e-3, 2e-3, 64)
        torque = TRUE[0] * phi + TRUE[1] * phi**3 + 0.7 + 0.2 * rng.normal(size=64)
        estimate = fit_stiffness(phi, torque)
        low, high = estimate.conf_int(0.0)
        covered.append(low <= TRUE[0] <= high)
    assert np.mean(covered) > 0.88
    np.testing.assert_allclose(fit_stiffness(phi, TRUE[0] * phi + TRUE[1] * phi**3).values, TRUE, rtol=1e-6)
    assert estimate.spring.torque(np.array([1e-3]))[0] == pytest.approx(float(estimate.torque(1e-3)))


def test_secant_stiffness_is_the_ratio_where_it_is_defined() -> None:
    phi = np.array([-1e-3, 0.0, 5e-5, 2e-3])
    secant = secant_stiffness(phi, TRUE[0] * phi + TRUE[1] * phi**3)
    np.testing.assert_allclose(secant[[0, 3]], [15050.0, 15200.0])
    assert np.isnan(secant[1:3]).all()


@pytest.mark.parametrize(
    ("phi", "torque"),
    [([], []), (np.zeros(50), np.ones(50)), (np.full(50, 1e-3), np.ones(50)), (np.full(50, np.nan), np.ones(50))],
)
def test_pairs_that_determine_nothing_are_refused(phi: Array, torque: Array) -> None:
    with pytest.raises(EstimationError, match="stiffness curve"):
        fit_stiffness(phi, torque)


# -- status ------------------------------------------------------------------------------------------------------------


def made_estimate(loss: float, error: float = 0.01) -> StiffnessEstimate:
    values = (1.0 - loss) * TRUE
    return StiffnessEstimate(values, np.diag([(error * TRUE[0]) ** 2, (0.01 * TRUE[1]) ** 2]), 2e-3)


@pytest.mark.parametrize(
    ("loss", "error", "status"),
    [(0.0, 0.01, "ok"), (0.05, 0.01, "ok"), (0.1, 0.01, "watch"), (0.2, 0.01, "worn"), (-0.05, 0.01, "ok")],
)
def test_the_status_follows_the_loss(loss: float, error: float, status: str) -> None:
    found = stiffness_status(made_estimate(loss, error), Cubic(*TRUE))
    assert found.status == status
    assert found.loss is not None and found.loss[0] == pytest.approx(loss)


def test_the_status_needs_significance_and_knowledge() -> None:
    assert stiffness_status(made_estimate(0.1, 0.06), Cubic(*TRUE)).status == "ok"
    assert stiffness_status(made_estimate(0.2, 0.3), Cubic(*TRUE)).status == "unknown"
    assert stiffness_status(made_estimate(0.2)).status == "unknown"
    assert stiffness_status(made_estimate(0.1), Cubic(*TRUE), StiffnessLimits(0.01, 0.05)).status == "worn"


@pytest.mark.parametrize(("uncertainty", "status"), [(0.0, "worn"), (0.12, "watch"), (0.25, "ok"), (0.6, "unknown")])
def test_an_uncertain_stored_stiffness_is_no_proof_of_wear(uncertainty: float, status: str) -> None:
    stored = StiffnessLaw(Cubic(*TRUE), 3e-3, uncertainty=uncertainty)
    found = stiffness_status(made_estimate(0.16, 0.001), stored)
    assert found.status == status and found.loss_at_rest is not None
    value, low, high = found.loss_at_rest
    assert (value - low, high - value) == pytest.approx((0.84 * uncertainty,) * 2, abs=0.003)


@pytest.mark.parametrize(
    ("loss", "error", "status"), [(-0.2, 0.01, "unknown"), (-0.2, 0.11, "ok"), (-0.2, 0.3, "unknown")]
)
def test_a_joint_that_became_stiffer_is_not_ok(loss: float, error: float, status: str) -> None:
    """Gears do not become stiffer: where the increase is significant, the data contradict what is stored."""
    found = stiffness_status(made_estimate(loss, error), Cubic(*TRUE))
    assert (found.status, found.is_stiffer) == (status, error == 0.01)


def test_wear_at_small_deflection_is_seen_first() -> None:
    worn = StiffnessEstimate(np.array([12.5e3, 1e9]), np.diag([1e4, 1e14]), 4e-3)
    found = stiffness_status(worn, Cubic(*TRUE))
    assert found.loss is not None and found.loss[0] < 0.0
    assert found.status == "worn"


@pytest.mark.parametrize("limits", [(0.2, 0.1), (0.0, 0.1), (0.1, 1.0), (float("nan"), 0.1)])
def test_limits_must_be_in_order(limits: tuple[float, float]) -> None:
    with pytest.raises(ModelError, match="0 < watch < worn < 1"):
        StiffnessLimits(*limits)


# -- logs and wrong input ----------------------------------------------------------------------------------------------


def test_logs_are_monitored_in_order() -> None:
    log, new = moves()
    report = monitor_stiffness([log, log], new.robot, true_model(new))
    assert report.status.status == "ok" and report.duration == pytest.approx(20.0, abs=0.1)
    assert report.to_dict()["stiffness_at_rest"]["value"] == pytest.approx(15e3, rel=0.02)
    assert np.all(np.diff(report.time) > 0.0) and len(report.trace) == len(report.time) <= 502
    worn = monitor_stiffness(moves(stiffness=-0.2)[0], new.robot, true_model(new), before=report.state)
    assert worn.status.status == "worn" and worn.used > report.used


def test_the_status_is_unknown_where_the_deflection_does_not_explain_the_torque() -> None:
    log, new = moves()
    assert log.theta is not None
    order = np.random.default_rng(0).permutation(len(log.t))
    shuffled = replace(log, theta=log.q + (log.theta - log.q)[order])
    report = monitor_stiffness(shuffled, new.robot, true_model(new))
    assert report.status.prediction < 30.0 and report.status.status == "unknown"


def test_samples_where_the_gear_maps_are_not_known_are_not_used() -> None:
    log, new = moves()
    assert log.theta is not None
    low, middle, high = np.quantile(log.theta[:, 0], (0.0, 0.5, 1.0))
    part = with_gear_map(true_model(new), low, middle)
    report = monitor_stiffness(log, new.robot, part)
    assert 0.3 < report.outside < 0.7
    assert report.status.at_rest[0] == pytest.approx(15e3, rel=0.02) and report.status.status == "ok"
    everywhere = replace(part.parts["transmission"], ranges={})
    wrong = monitor_stiffness(log, new.robot, part.with_part(everywhere))
    assert wrong.outside == 0.0 and abs(wrong.status.at_rest[0] / 15e3 - 1.0) > 0.1
    other = monitor_stiffness(log, new.robot, with_gear_map(true_model(new), high + 0.1, high + 0.2))
    assert (other.outside, other.used, other.status.status) == (1.0, 0, "unknown")


def test_a_log_with_missing_samples_is_monitored() -> None:
    log, new = moves()
    assert log.current is not None
    current = log.current.copy()
    current[3000:3100, 0] = np.nan
    jitter = np.sort(log.t + 2e-4 * np.random.default_rng(0).uniform(-1.0, 1.0, len(log.t)))
    report = monitor_stiffness(replace(log, current=current, t=jitter), new.robot, true_model(new))
    assert report.dropped > 90
    assert report.status.status == "ok"


def test_what_is_missing_is_named() -> None:
    log, new = moves()
    model = true_model(new)
    for lacking, message in ((["theta"], "no rotor positions"), (["current"], "no currents")):
        with pytest.raises(DataError, match=message):
            monitor_stiffness(log.without(lacking), new.robot, model)
    without = replace(model, parts={"stiffness": model.parts["stiffness"]})
    with pytest.raises(ModelError, match="friction or a hysteresis part"):
        monitor_stiffness(log, new.robot, without)
    motor = new.robot.joints[0].motor
    joints = (replace(new.robot.joints[0], motor=replace(motor, rotor_inertia=None)), *new.robot.joints[1:])
    with pytest.raises(ModelError, match="no rotor inertia"):
        monitor_stiffness(log, replace(new.robot, joints=joints), model)


def test_the_command_prints_status_and_numbers(tmp_path: Path) -> None:
    log, new = moves()
    worn, known = tmp_path / "worn.csv", tmp_path / "joint.json"
    write_csv(log, tmp_path / "new.csv")
    write_csv(moves(stiffness=-0.2)[0], worn)
    save_joint(true_model(new), known)
    common = ("--robot", "ur5e", "--joint", 1, "--known", known)
    text = done("joint", "online-stiffness", tmp_path / "new.csv", *common)
    assert "stiffness while working: ok" in text and "Nm/rad" in text
    result = run_command("joint", "online-stiffness", worn, *common, "--json")
    document = json.loads(result.out)
    assert (result.code, document["status"]) == (3, "worn")
    assert document["loss"]["low"] < 0.2 < document["loss"]["high"] + 0.005
    assert "must hold joint 2" in refused("joint", "online-stiffness", worn, *common[:2], "--joint", 2, *common[4:])
    heavy = done("joint", "online-stiffness", worn, *common, "--payload", 5)  # it carries none
    assert "stiffness while working: unknown" in heavy and "gears never become stiffer" in heavy
    variant = run_command("joint", "online-stiffness", worn, *common, "--variant", "directionl")
    assert variant.code == 2 and "--variant: must be plain, " in variant.err
    wrong = ("--watch", 20, "--worn", 10)
    usage = run_command("joint", "online-stiffness", worn, *common, *wrong)
    assert usage.code == 2 and "0 < watch < worn" in usage.err


def test_the_command_says_so_where_nothing_can_be_used(tmp_path: Path) -> None:
    log, new = moves()
    write_csv(log, tmp_path / "log.csv")
    assert log.theta is not None
    still = {"q": log.q, "qd": 0.0 * log.q, "theta": log.theta}
    write_csv(log.with_channels(**{name: 0.0 * x + x[0] for name, x in still.items()}), tmp_path / "still.csv")
    save_joint(true_model(new), tmp_path / "joint.json")
    beyond = log.theta[:, 0].max() + 0.1
    save_joint(with_gear_map(true_model(new), beyond, beyond + 0.1), tmp_path / "part.json")
    words = ("joint", "online-stiffness", "--robot", "ur5e", "--joint", 1)
    for log_name, known, line in (
        ("still.csv", "joint.json", "0 samples in motion"),
        ("log.csv", "part.json", "100 % of the samples are at angles that the transmission part"),
    ):
        options = (tmp_path / log_name, "--known", tmp_path / known)
        text = done(*words, *options)
        assert "stiffness while working: unknown" in text and line in text and "nan" not in text
        document = json.loads(done(*words, *options, "--json"))
        assert (document["samples_used"], document["a1"], document["stiffness_at_rest"]) == (0, None, None)


def test_settings_out_of_range_are_rejected() -> None:
    with pytest.raises(ModelError, match="side must be motor, link or fused. Got 'middle'"):
        estimator(side="middle")
    with pytest.raises(EstimationError, match="needs a model of the links"):
        replace(estimator(), side="link", links=None)
    with pytest.raises(ModelError, match="variant must be .*directional.*. Got 'none'"):
        _ = estimator(variant="none").recursion
    with pytest.raises(ShapeError, match="at least one sample"):
        SignalPath(0, 6, 1000.0).init(JointSamples(np.zeros(0), np.zeros((0, 6)), np.zeros(0)))
    with pytest.raises(ShapeError, match="must be"):
        JointSamples(np.zeros(3), np.zeros((4, 6)), np.zeros(3))
