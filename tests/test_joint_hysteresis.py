"""Hysteresis of a joint: what the identification finds on records with a known law, and which data it rejects."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import jointwise
from data_files import SHARED, needs_shared
from joint_runs import follow, log_of, run_experiment
from jointwise.data import read_log
from jointwise.design import make_experiment
from jointwise.errors import EstimationError, ModelError
from jointwise.joint import hysteresis_fit
from jointwise.joint.calibration_terms import joint_terms
from jointwise.joint.hysteresis import _searched, identify_hysteresis, known_rise
from jointwise.joint.hysteresis_fit import best_choices, gains, make_loops, slip_grams
from jointwise.joint.identification import HysteresisOptions, identify
from jointwise.joint.laws import (
    METHODS,
    FrictionLaw,
    JointMotion,
    friction_law,
    hysteresis_term,
    rated_term,
    relative_table,
)
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part, nrmse_percent, value_of
from jointwise.joint.record import JointRecord, join_records, joint_record
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import (
    JointSignals,
    Rated,
    lugre_deflection,
    lugre_state,
    rate_slip,
    rate_slip_state,
    slip_elements,
    slip_slope_state,
    slip_state,
    steady_level,
    stribeck,
    term_from_dict,
)
from jointwise.simulation.robot import DigitalRobot, Run, digital_robot
from jointwise.simulation.sensors import Sensors
from jointwise.spatial import Array
from kernels import native, needs_native

RATE = 500.0
LIMITS = np.array([6e-5, 1.2e-3])
FORCES = np.array([7.0, 3.0])


# -- records with a known truth ----------------------------------------------------------------------------------------


def reciprocation(seconds: float = 60.0, swing: float = 0.05, cycle: float = 4.0) -> tuple[Array, Array]:
    """Return position and speed (samples,) of a reciprocation with a slow advance."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    pace = 2.0 * np.pi / cycle
    x = 0.5 * swing * (1.0 - np.cos(pace * t)) + 0.1 * swing / cycle * t
    return x, 0.5 * swing * pace * np.sin(pace * t) + 0.1 * swing / cycle


def colored(samples: int, size: float, seed: int) -> Array:
    """Return noise (samples,) with an rms value, half of its variance at low frequency."""
    white = np.random.default_rng(seed).normal(size=(2, samples))
    slow = lfilter([np.sqrt(1.0 - 0.95**2)], [1.0, -0.95], white[1])
    return size * np.sqrt(0.5) * (white[0] + slow)


def record_of(x: Array, speed: Array, friction: Array, load: Array | None = None) -> JointRecord:
    """Return a record whose motor torque is load and friction."""
    none, torque = np.zeros_like(x), np.zeros_like(x) if load is None else load
    return JointRecord(
        robot="made", joint=0, logs=("made.csv",), rate=RATE, unit="Nm", gain=1.0, inertia=0.0,
        t=np.arange(len(x)) / RATE, segment=np.zeros(len(x), dtype=np.intp), q=x, qd=speed, qdd=none, position=x,
        speed=speed, acceleration=none, path=x, motor=friction + torque, load=torque,
    )  # fmt: skip


def slip_friction(x: Array, backlash: Array | None = None) -> Array:
    """Return Σ W_i u_i along a path."""
    return slip_elements(x, LIMITS, slip_state(x[0], len(LIMITS)), backlash=backlash)[0] @ FORCES


def made_record(seed: int = 0, noise: float = 1.0, seconds: float = 60.0) -> JointRecord:
    """Return a record of two elements, viscous friction, an offset and noise."""
    x, speed = reciprocation(seconds)
    return record_of(x, speed, slip_friction(x) + 8.0 * speed + 0.3 + colored(len(x), noise, seed))


# -- normal equations and search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [(), ("limits",), ("limits", "growth", "rise")])
def test_native_normal_equations_equal_those_of_numpy(free: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x, speed = reciprocation(12.0)
    load = 30.0 * np.sin(x * 40.0)
    record = record_of(x, speed, slip_friction(x), load)
    loops = make_loops(record, np.array([1.0, 1.5, 0.8]), np.zeros_like(x))
    law = FrictionLaw("nlr", LIMITS, FORCES, growth=1e-4, extra=0.2, exponent=0.8)
    compiled = slip_grams(loops, law, free)
    monkeypatch.setattr(hysteresis_fit, "native", lambda: None)
    np.testing.assert_allclose(compiled, slip_grams(loops, law, free), rtol=1e-9, atol=1e-9)


@needs_native
@pytest.mark.parametrize(("slopes", "shares", "width"), [(False, 1, 6), (True, 0, 5)])
def test_native_normal_equations_reject_arrays_that_do_not_fit(slopes: bool, shares: int, width: int) -> None:
    x, state, gram = np.zeros(5), slip_slope_state(0.0, 2), np.zeros((width, width))
    with pytest.raises(ValueError, match=r"must be|needs"):
        native.maxwell_gram(x, None, None, LIMITS, FORCES, None, np.zeros((5, 3)), slopes, shares, state, gram)


def test_the_search_finds_the_best_of_all_choices() -> None:
    rng = np.random.default_rng(0)
    columns = np.cumsum(rng.normal(size=(300, 14)), axis=0)
    columns /= np.linalg.norm(columns, axis=0)
    y = columns[:, [1, 4, 8, 12]] @ np.array([3.0, 2.0, 1.0, 2.0]) + 0.02 * rng.normal(size=300)
    A, b = columns.T @ columns, columns.T @ y
    every = np.array(list(itertools.combinations(range(14), 4)))
    assert best_choices(A, b, 4)[-1] == tuple(every[np.argmax(gains(A, b, every))])


# -- identification ----------------------------------------------------------------------------------------------------


def test_nlr_recovers_elements_within_their_intervals() -> None:
    covered = []
    for seed in range(8):
        part = identify_hysteresis(made_record(seed, seconds=40.0), method="nlr", elements=2)
        truth = dict(zip(("D1", "D2", "W1", "W2"), (*LIMITS, *FORCES), strict=True))
        truth |= {"k1": FORCES[0] / LIMITS[0], "F_C": 10.0, "F_V": 8.0, "offset": 0.3, "B": LIMITS[1]}
        covered += [part.value(name).covers(value) for name, value in truth.items()]
        assert all(part[name] == pytest.approx(value, rel=0.5) for name, value in truth.items() if name != "F_V")
    assert 0.85 <= np.mean(covered) <= 1.0


def test_standard_errors_match_the_scatter_of_the_estimates() -> None:
    parts = [identify_hysteresis(made_record(seed, seconds=40.0), method="nlr", elements=2) for seed in range(20, 28)]
    for name in ("F_C", "D2", "W1"):
        scatter = np.std([part[name] for part in parts], ddof=1)
        standard_error = np.median([part.value(name).deviation for part in parts])
        assert 0.4 < standard_error / scatter < 2.5


def test_an_unknown_rotor_inertia_is_separated_from_friction() -> None:
    record = made_record()
    acceleration = np.gradient(record.speed, 1.0 / RATE)
    turning = replace(record, acceleration=acceleration, motor=record.motor + 2.0 * acceleration)
    part = identify_hysteresis(turning, method="nlr", elements=2)
    assert part.value("inertia").covers(2.0) and part.value("W2").covers(FORCES[1])
    known = identify_hysteresis(replace(turning, inertia=2.0), method="nlr", elements=2)
    assert all(value.name != "inertia" for value in known.values)
    assert known.value("W2").covers(FORCES[1])


def test_forces_and_their_intervals_are_not_negative() -> None:
    part = identify_hysteresis(made_record(noise=4.0, seconds=20.0), method="nlr", elements=5)
    assert all(value.low >= 0.0 for value in part.values if value.name[0] in "WDk")


def test_a_note_says_that_the_level_includes_a_stribeck_rise_without_a_friction_part() -> None:
    notes = " ".join(identify_hysteresis(made_record(), method="nlr", elements=2).notes)
    assert "F_C is the level at the speeds of these data" in notes


def test_intervals_include_the_effect_of_the_smoothing_of_the_path() -> None:
    record = made_record(noise=0.02)
    rough = replace(record, position=record.path + 2e-5 * np.sin(2.0 * np.pi * 3.0 * record.t))
    parts = [identify_hysteresis(one, method="nlr", elements=2) for one in (record, rough)]
    assert parts[1].value("D1").deviation > 2.0 * parts[0].value("D1").deviation


def test_the_number_of_elements_is_that_of_the_data() -> None:
    part = identify_hysteresis(made_record(noise=0.3), method="nlr")
    assert part.settings["elements"] == 2
    assert any("elements" in note for note in part.notes)


def test_all_methods_are_compared_on_held_out_data() -> None:
    part = identify_hysteresis(made_record())
    tried = {alternative.model: alternative for alternative in part.alternatives}
    assert set(tried) == set(METHODS)
    assert part.model in METHODS and part.held_out == tried[part.model].held_out
    assert max(tried["sgn"].held_out, tried["stribeck"].held_out, tried["tanh"].held_out) < part.held_out - 2.0
    assert all(alternative.held_out <= alternative.fitted + 0.5 for alternative in part.alternatives)
    assert {curve.title.split()[0] for curve in part.curves} == {"Dry", "Friction", "Fit"}


def loaded_record(power: float, factor: float, steady: bool = False) -> JointRecord:
    """Return a record whose dry friction of 10 Nm grows by ``factor |τ|^power``, Nm."""
    x, speed = reciprocation(80.0)
    load = 60.0 * np.ones(len(x)) if steady else 120.0 * np.sin(2.0 * np.pi * np.arange(len(x)) / len(x))
    level = 1.0 + 0.1 * factor * np.abs(load) ** power
    return record_of(x, speed, level * slip_friction(x) + 8.0 * speed + colored(len(x), 1.0, 1), load)


def load_part(kind: str, factor: float) -> Part:
    return Part("load", kind, (), 0.0, settings={"law": {"kind": kind, "factor": factor, "largest": 120.0}})


def test_friction_grows_with_the_square_of_the_load() -> None:
    record = loaded_record(2.0, 5e-4)
    part = identify_hysteresis(record, method="nlr", elements=2, load="square")
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(5e-4)
    assert part.value("F_C1").deviation < 5e-5
    plain = identify_hysteresis(record, method="nlr", elements=2, load="none")
    assert part.held_out > plain.held_out + 5.0


@pytest.mark.parametrize(("power", "factor", "kind"), [(2.0, 5e-4, "square"), (1.0, 0.05, "absolute")])
def test_the_load_law_is_the_one_that_predicts_best(power: float, factor: float, kind: str) -> None:
    record = loaded_record(power, factor)
    part = identify_hysteresis(record, method="nlr", elements=2)
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(factor)
    assert hysteresis_term(part).load == kind
    without = identify_hysteresis(loaded_record(power, 0.0), method="nlr", elements=2)
    assert hysteresis_term(without).load == "none"


def test_the_law_of_a_load_part_is_used() -> None:
    known = JointModel("ur5e", 0, {"load": load_part("absolute", 0.04)})
    part = identify(
        "hysteresis",
        loaded_record(1.0, 0.05),
        jointwise.load_robot("ur5e"),
        known,
        HysteresisOptions("nlr", elements=2),
    )
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(0.05)
    constant = identify_hysteresis(
        loaded_record(1.0, 0.05, True), method="nlr", elements=2, load=load_part("absolute", 0.05)
    )
    assert constant["F_C"] == pytest.approx(10.0, rel=0.05)
    assert any("does not vary" in note for note in constant.notes)


def test_a_backlash_map_improves_the_fit_and_equals_that_of_the_calibration_term() -> None:
    x, speed = reciprocation(80.0, swing=0.4)
    backlash = 1.0 + 0.5 * np.sin(np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False))
    friction = slip_friction(x, relative_table(backlash).at(x)) + colored(len(x), 0.3, 2)
    with_map = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2, backlash=1e-3 * backlash)
    without = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2)
    assert with_map.held_out > without.held_out
    signals = JointSignals(RATE, x, speed, np.zeros_like(x), path=x)
    torque = hysteresis_term(with_map).columns(signals)[0] @ np.array([with_map["W1"], with_map["W2"]])
    np.testing.assert_allclose(torque, friction_law(with_map).torque(record_of(x, speed, friction), False), atol=1e-12)
    assert with_map.value("D2").covers(LIMITS[1]) and with_map["B"] == pytest.approx(1e-3)


def test_lugre_friction_is_identified() -> None:
    x, speed = reciprocation(40.0, swing=0.2)
    u, _ = lugre_deflection(x, steady_level(speed, 0.3, 0.02), 4e-4, lugre_state(x[0]))
    friction = 10.0 * u + 8.0 * speed + colored(len(x), 0.3, 0)
    part = identify_hysteresis(record_of(x, speed, friction), method="lugre")
    assert part["F_C"] == pytest.approx(10.0, rel=0.1)
    assert friction_law(part).limits[0] == pytest.approx(4e-4, rel=0.2)
    truth = {"F_C": 10.0, "F_S": 13.0, "F_S-F_C": 3.0, "V_S": 0.02, "s0": 25e3, "s1": 0.0, "F_V": 8.0}
    assert all(part.value(name).covers(value) for name, value in truth.items())
    slip = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2)
    assert part.held_out > slip.held_out


def test_rate_dependent_slip_is_identified() -> None:
    x, speed = reciprocation(40.0, swing=0.2)
    u, _ = rate_slip(x, steady_level(speed, 0.5, 0.02), LIMITS, 30.0 / RATE, rate_slip_state(x[0], 2))
    friction = u @ FORCES + 8.0 * speed + colored(len(x), 0.2, 0)
    part = identify_hysteresis(record_of(x, speed, friction), method="rate-gms", elements=2)
    plain = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2)
    assert part.held_out > plain.held_out + 1.0
    assert friction_law(part).forces.sum() == pytest.approx(10.0, rel=0.15)


def rated_record(method: str, power: float, factor: float, backlash: Array | None = None) -> JointRecord:
    """Return rate-dependent friction, 10 Nm that grow by ``factor |τ|^power`` under a load up to 120 Nm."""
    x, speed = reciprocation(32.0, swing=0.2)
    level, b = steady_level(speed, 0.3, 0.02), None if backlash is None else relative_table(backlash).at(x)
    if method == "lugre":
        dry = 10.0 * lugre_deflection(x, level, 4e-4, lugre_state(x[0]), backlash=b)[0]
    else:
        dry = rate_slip(x, level, LIMITS, 30.0 / RATE, rate_slip_state(x[0], 2), backlash=b)[0] @ FORCES
    load = 120.0 * np.sin(2.0 * np.pi * np.arange(len(x)) / len(x))
    level = 1.0 + 0.1 * factor * np.abs(load) ** power
    return record_of(x, speed, level * dry + 8.0 * speed + colored(len(x), 0.3, 0), load)


RATED_TRUTH = {
    "lugre": {"s0": 25e3, "length": 4e-4, "s1": 0.0},
    "rate-gms": {"W1": 7.0, "W2": 3.0, "D1": LIMITS[0], "D2": LIMITS[1], "rate": 30.0},
}


@pytest.mark.parametrize(
    ("method", "kind", "power", "factor"), [("lugre", "square", 2.0, 5e-4), ("rate-gms", "absolute", 1.0, 0.05)]
)
def test_rate_dependent_friction_grows_with_the_load(method: str, kind: str, power: float, factor: float) -> None:
    record = rated_record(method, power, factor)
    part = identify_hysteresis(record, method=method, elements=2)
    truth = {"F_C": 10.0, "F_S": 13.0, "V_S": 0.02, "F_C1": factor, "F_V": 8.0, **RATED_TRUTH[method]}
    missed = [name for name, value in truth.items() if not part.value(name).covers(value)]
    assert len(missed) <= 1 and part.value("F_C1").covers(factor)
    assert part.value("F_C1").deviation < 0.02 * factor and rated_term(part).load == kind
    plain = identify_hysteresis(record, method=method, elements=2, load="none")
    assert part.held_out > plain.held_out + 5.0
    assert all(value.name != "F_C1" for value in plain.values) and rated_term(plain).load == "none"


@pytest.mark.parametrize("method", ["lugre", "rate-gms"])
def test_the_factor_of_a_load_part_is_kept_under_constant_load(method: str) -> None:
    record = rated_record(method, 1.0, 0.05)
    steady = replace(record, load=np.full(record.samples, 60.0), motor=record.motor - record.load + 60.0)
    part = identify_hysteresis(steady, method=method, elements=2, load=load_part("absolute", 0.05))
    law = friction_law(part)
    assert law.growth > 0.0 and law.power == 1.0 and all(value.name != "F_C1" for value in part.values)


def swung_under_gravity(digital: DigitalRobot, seconds: float = 40.0) -> Run:
    """Return a run in which the second joint reciprocates and moves twice from upright to stretched out."""
    t = np.arange(0.0, seconds, 1e-3)
    q, qd, qdd = np.zeros((3, len(t), digital.robot.dof))
    q[:, 1] = -0.9
    for size, pace in ((0.7, 4.0 * np.pi / seconds), (0.3, 0.5 * np.pi)):
        q[:, 1] += size * np.sin(pace * t)
        qd[:, 1] += size * pace * np.cos(pace * t)
        qdd[:, 1] -= size * pace**2 * np.sin(pace * t)
    torque = inverse_dynamics(digital.robot, q, qd, qdd, gravity=digital.gravity)
    return follow(digital, q, qd, torque, 4000.0, 80.0)


def test_rate_dependent_friction_of_a_loaded_joint_of_the_digital_robot() -> None:
    digital = digital_robot(jointwise.load_robot("ur5e"), gravity=(0.0, 0.0, -9.81))
    digital = digital.without("stribeck", "temperature", "asymmetry", "backlash")
    log = log_of(swung_under_gravity(digital), digital, Sensors(rate=1000.0, seed=3, current_noise=0.03))
    record = joint_record(log, digital.robot, 1, mounting=digital.gravity)
    friction = digital.joints[1].friction
    for method in ("lugre", "rate-gms"):
        part = identify_hysteresis(record, method=method, elements=4, load="square")
        assert part["F_C1"] == pytest.approx(friction.load, rel=0.05)
        assert part["F_C"] == pytest.approx(friction.coulomb, rel=0.06)
        assert part.held_out > identify_hysteresis(record, method="nlr", elements=4, load="none").held_out + 1.0


def test_known_viscous_friction_is_subtracted() -> None:
    record = made_record()
    part = identify_hysteresis(record, method="nlr", elements=2, steady=lambda speed, _: 8.0 * speed)
    assert part.value("F_V").covers(0.0)
    known = Part("friction", "polynomial", (replace(part.values[0], name="F_V1", value=8.0),), 90.0)
    assert identify_hysteresis(record, method="nlr", elements=2, steady=known)["F_V"] == pytest.approx(part["F_V"])


def known_friction(deviation: float, covariance: list[list[float]] | None = None) -> Part:
    """Return viscous friction that is known with a standard error."""
    values = tuple(value_of(name, "", *pair) for name, *pair in (("F_V1", 8.0, deviation), ("F_V2", 0.0, deviation)))
    settings = {} if covariance is None else {"covariance": {"names": ["F_V1", "F_V2"], "values": covariance}}
    return Part("friction", "polynomial", values, 90.0, settings=settings)


def test_intervals_include_the_uncertainty_of_known_viscous_friction() -> None:
    record = made_record()

    def viscous(steady: Part) -> float:
        return identify_hysteresis(record, method="nlr", elements=2, steady=steady).value("F_V").deviation

    exact = viscous(known_friction(0.0))
    assert viscous(known_friction(0.0, [[4.0, 0.0], [0.0, 0.0]])) == pytest.approx(np.hypot(exact, 2.0), rel=0.05)
    apart, tied = (viscous(known_friction(2.0, [[4.0, c], [c, 4.0]])) for c in (0.0, -3.9))
    assert apart == pytest.approx(viscous(known_friction(2.0)), rel=1e-6)
    assert exact < tied < apart


def test_intervals_include_the_uncertainty_of_known_dry_friction() -> None:
    def level(deviation: float) -> float:
        known = (("F_C", 10.0, 0.0), ("F_S-F_C", 1.0, deviation), ("V_S", 0.05, 0.0))
        steady = Part("friction", "known", tuple(value_of(name, "", *pair) for name, *pair in known), 90.0)
        return identify_hysteresis(made_record(), method="nlr", elements=2, steady=steady).value("F_C").deviation

    assert level(2.0) > 1.5 * level(0.0)


@pytest.mark.parametrize("exponent", [None, 0.6])
def test_a_known_stribeck_rise_is_used_with_its_exponent(exponent: float | None) -> None:
    x, speed = reciprocation(40.0)
    rise = 1.0 + 0.5 * stribeck(speed, 0.01, exponent or 1.0)
    record = record_of(x, speed, rise * slip_friction(x) + 8.0 * speed + colored(len(x), 0.1, 0))
    known = {"F_C": 10.0, "F_S-F_C": 5.0, "V_S": 0.01, **({} if exponent is None else {"mu": exponent})}
    steady = Part("friction", "known", tuple(value_of(name, "", value, 0.0) for name, value in known.items()), 90.0)
    part = identify_hysteresis(record, method="nlr", elements=2, steady=steady)
    law = friction_law(part)
    assert (law.extra, law.speed, law.exponent) == (0.5, 0.01, exponent or 1.0)
    assert part.value("F_C").covers(10.0) and part["F_C"] == pytest.approx(10.0, rel=0.01)
    again = Part.from_dict(json.loads(json.dumps(part.to_dict())))
    np.testing.assert_array_equal(friction_law(again).torque(record), law.torque(record))


def test_an_uncertain_exponent_of_known_friction_widens_forces() -> None:
    def level(deviation: float) -> float:
        known = (("F_C", 10.0, 0.0), ("F_S-F_C", 3.0, 0.0), ("V_S", 0.01, 0.0), ("mu", 0.6, deviation))
        steady = Part("friction", "known", tuple(value_of(name, "", *pair) for name, *pair in known), 90.0)
        return identify_hysteresis(made_record(), method="nlr", elements=2, steady=steady).value("F_C").deviation

    assert level(0.3) > 1.5 * level(0.0)


def test_friction_without_a_stribeck_rise_has_none() -> None:
    assert known_rise(known_friction(0.1)) is None and known_rise(None) is None


@pytest.fixture(scope="module")
def digital_run() -> tuple[DigitalRobot, Run]:
    """Return 84 s of reciprocation of a joint with hysteresis and viscous friction alone."""
    arm = jointwise.load_robot("ur5e")
    experiment = make_experiment("reciprocate", arm, 84.0, joint=0)
    digital = digital_robot(arm, gravity=experiment.gravity)
    digital = digital.without("stribeck", "temperature", "asymmetry", "backlash")
    return digital, run_experiment(digital, experiment)


def digital_record(digital_run: tuple[DigitalRobot, Run], noise: float, seed: int) -> JointRecord:
    """Return what sensors read of the run."""
    digital, run = digital_run
    log = log_of(run, digital, Sensors(rate=1000.0, seed=seed, current_noise=noise))
    return joint_record(log, digital.robot, 0, mounting=digital.gravity)


def test_elements_of_the_digital_robot_lie_within_their_intervals(digital_run: tuple[DigitalRobot, Run]) -> None:
    joint = digital_run[0].joints[0]
    limits = joint.backlash.mean * np.array(joint.friction.slip.limits)
    forces = joint.friction.coulomb * np.array(joint.friction.slip.shares)
    truth = {f"D{i + 1}": D for i, D in enumerate(limits)} | {f"W{i + 1}": W for i, W in enumerate(forces)}
    truth |= {"F_C": joint.friction.coulomb, "B": joint.backlash.mean, "F_V": joint.friction.viscous}
    covered = []
    for seed, method in ((0, "nlr"), (0, "lr-polynomial"), (1, "gms")):
        part = identify_hysteresis(digital_record(digital_run, 0.03, seed), method=method, elements=4)
        covered += [part.value(name).covers(value) for name, value in truth.items()]
        assert part["F_C"] == pytest.approx(10.0, rel=0.02) and part["D2"] == pytest.approx(limits[1], rel=0.1)
    assert np.mean(covered) >= 0.8


def test_segments_are_fitted_together() -> None:
    pieces = [made_record(seed, seconds=20.0) for seed in (1, 2)]
    part = identify_hysteresis(join_records(pieces), method="nlr", elements=2)
    assert part.value("D2").covers(LIMITS[1]) and part.value("F_C").covers(10.0)
    assert part.value("F_C").deviation < identify_hysteresis(pieces[0], method="nlr", elements=2).value("F_C").deviation


def test_the_order_of_the_methods_on_the_digital_robot(digital_run: tuple[DigitalRobot, Run]) -> None:
    record = digital_record(digital_run, 0.03, 0)
    half = record.samples // 2
    scores = {}
    for method in ("nlr", "lr-polynomial", "lr-linear", "sgn"):
        part = identify_hysteresis(record.take(np.arange(half)), method=method, elements=4, backlash=1e-3)
        scores[method] = nrmse_percent(record.friction[half:], friction_law(part).torque(record)[half:])
    assert scores["nlr"] >= scores["lr-polynomial"] - 0.3
    assert scores["lr-polynomial"] > scores["lr-linear"] + 1.0 > scores["sgn"] + 2.0


@needs_shared
@pytest.mark.parametrize(("joint", "gain"), [(4, 3.0), (5, 1.5)])
def test_hysteresis_of_a_real_wrist_improves_the_prediction_of_another_log(joint: int, gain: float) -> None:
    arm, folder = jointwise.load_robot("ur10e"), SHARED / "ur10e"
    names = ("id_20_02_12_50sec_12harm.csv", "id_20_02_19_14harm50sec.csv")
    train, test = (joint_record(read_log(folder / name), arm, joint, cutoff=8.0) for name in names)
    slip, static = (_on_another_log(identify_hysteresis(train, method=m), test) for m in ("auto", "tanh"))
    assert slip > static + gain


def _on_another_log(part: Part, record: JointRecord) -> float:
    """Return the NRMSE % of friction, without the torque of the estimated rotor inertia."""
    return nrmse_percent(record.friction - part["inertia"] * record.acceleration, friction_law(part).torque(record))


# -- files and calibration terms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nlr", "nlr-stribeck", "gms", "lugre", "rate-gms", "stribeck", "tanh", "sgn"])
def test_a_part_read_from_its_file_has_the_same_law(method: str) -> None:
    record = made_record(seconds=20.0)
    part = identify_hysteresis(record, method=method)
    again = Part.from_dict(json.loads(json.dumps(part.to_dict(), allow_nan=False)))
    torque, other = (friction_law(one).torque(record) for one in (part, again))
    np.testing.assert_array_equal(torque, other)
    assert nrmse_percent(record.friction[2000:], torque[2000:]) == pytest.approx(part.fitted, abs=1.5)


def test_an_unidentifiable_value_has_the_interval_of_the_search() -> None:
    value = _searched("V_S", "rad/s", 0.05, 1e140, 2.0, (2e-3, 1.0))
    assert (value.low, value.high) == (2e-3, 1.0) and value.deviation < 10.0


@pytest.mark.parametrize(("model", "exponent"), [("nlr-stribeck", 1.0), ("rate-gms", 2.0), ("lugre", 2.0)])
def test_laws_of_files_without_an_exponent_have_that_of_their_model(model: str, exponent: float) -> None:
    part = identify_hysteresis(made_record(seconds=20.0), method=model, elements=2)
    old = {name: value for name, value in part.settings["law"].items() if name != "exponent"}
    law = friction_law(replace(part, settings={**part.settings, "law": old}))
    assert law.exponent == exponent == friction_law(part).exponent


def test_the_elements_are_relaxed_where_a_segment_begins() -> None:
    record = made_record(seconds=20.0)
    law = friction_law(identify_hysteresis(record, method="nlr", elements=2))
    half = record.samples // 2
    segment = (np.arange(record.samples) >= half).astype(np.intp)
    motion = JointMotion(record.path, record.speed, record.load, 1.0 / RATE, segment)
    alone = JointMotion(record.path[half:], record.speed[half:], record.load[half:], 1.0 / RATE)
    np.testing.assert_allclose(law.torque(motion)[half:], law.torque(alone))


def test_a_slip_model_equals_its_calibration_term() -> None:
    record = made_record()
    part = identify_hysteresis(record, method="nlr", elements=2)
    term = hysteresis_term(part)
    signals = JointSignals(RATE, record.q, record.qd, record.qdd, path=record.path)
    torque = term.columns(signals)[0] @ np.array([part["W1"], part["W2"]])
    np.testing.assert_allclose(torque, friction_law(part).torque(record, nuisance=False))
    with pytest.raises(ModelError, match=r"Got 'lugre' instead: identify hysteresis again"):
        hysteresis_term(identify_hysteresis(record, method="lugre"))


@pytest.mark.parametrize("method", ["lugre", "rate-gms"])
def test_a_rate_dependent_model_equals_its_calibration_term(method: str) -> None:
    record = made_record(seconds=20.0)
    part = identify_hysteresis(record, method=method, elements=2)
    signals = JointSignals(RATE, record.q, record.speed, record.qdd, path=record.path)
    for name in ("F_C", "F_S", "V_S", "F_V", "offset", *(("s0", "s1") if method == "lugre" else ("W1", "D1", "rate"))):
        value = part.value(name)
        assert value.low <= value.value <= value.high and value.low < value.high
    terms = joint_terms(JointModel("ur5e", 0, {"hysteresis": part}), known=True)
    (term,) = (one for one in terms.terms if isinstance(one, Rated))
    torque = term.columns(signals)[0][:, 0] * terms.known["FCd"][0]
    np.testing.assert_allclose(torque, friction_law(part).torque(record, nuisance=False), atol=1e-9)
    assert term_from_dict(json.loads(json.dumps(term.to_dict()))) == term


@pytest.mark.parametrize("method", ["lugre", "rate-gms"])
def test_a_loaded_rate_dependent_model_equals_that_of_its_file_and_its_term(method: str) -> None:
    backlash = 1.0 + 0.4 * np.sin(np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False))
    record = rated_record(method, 2.0, 5e-4, backlash)
    part = identify_hysteresis(record, method=method, elements=2, load="square", backlash=1e-3 * backlash)
    again = Part.from_dict(json.loads(json.dumps(part.to_dict(), allow_nan=False)))
    torque, other = (friction_law(one).torque(record, nuisance=False) for one in (part, again))
    np.testing.assert_array_equal(torque, other)
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(5e-4)
    assert part.held_out > identify_hysteresis(record, method=method, elements=2, load="square").held_out
    terms = joint_terms(JointModel("ur5e", 0, {"hysteresis": again}), known=True)
    (term,) = (one for one in terms.terms if isinstance(one, Rated))
    values = [terms.known[name][0] for name in ("FCd", "FCd1")]
    signals = JointSignals(RATE, record.q, record.speed, record.qdd, path=record.path, load=record.load)
    np.testing.assert_allclose(term.columns(signals)[0] @ np.array(values), torque, atol=1e-9)
    assert "load" not in terms.open and term_from_dict(json.loads(json.dumps(term.to_dict()))) == term


# -- data that are rejected --------------------------------------------------------------------------------------------


def assert_rejected(record: JointRecord, reason: str, **options: object) -> None:
    with pytest.raises(EstimationError, match=reason) as error:
        identify_hysteresis(record, **options)  # type: ignore[arg-type]
    assert "reciprocate" in str(error.value) and "\n" not in str(error.value)


def test_no_reversals() -> None:
    x = np.linspace(0.0, 1.0, 10_000)
    assert_rejected(record_of(x, np.full_like(x, 0.05), 10.0 + colored(len(x), 1.0, 0)), "no reversals")


def test_too_few_reversals() -> None:
    x, speed = reciprocation(5.0)
    assert_rejected(record_of(x, speed, slip_friction(x) + colored(len(x), 0.1, 0)), "only 2 reversals")


def test_travel_too_short_to_slip() -> None:
    x, speed = reciprocation(40.0, swing=1e-3)
    friction = 1e4 * (x - x.mean()) + colored(len(x), 0.1, 0)
    x = x - 0.1 * 1e-3 / 4.0 * np.arange(len(x)) / RATE
    u = slip_elements(x, np.array([5e-3]), slip_state(x[0], 1))[0][:, 0]
    friction = 20.0 * u + colored(len(x), 0.1, 0)
    assert_rejected(record_of(x, speed, friction), "too short for the gear to slip")


def test_saturated_current() -> None:
    record = made_record()
    assert_rejected(replace(record, motor=np.clip(record.motor, -8.0, 8.0)), "saturated")


@pytest.mark.parametrize("order", ["samples", "half a cycle", "reversed in time"])
def test_shuffled_friction(order: str) -> None:
    record = made_record()
    shuffled = {
        "samples": np.random.default_rng(0).permutation(record.motor),
        "half a cycle": np.roll(record.motor, round(2.0 * RATE)),
        "reversed in time": np.roll(record.motor[::-1], 700),
    }
    with pytest.raises(EstimationError, match="hysteresis is not fitted"):
        identify_hysteresis(replace(record, motor=shuffled[order]))


def test_friction_without_memory() -> None:
    x, speed = reciprocation()
    assert_rejected(
        record_of(x, speed, 10.0 * np.tanh(speed / 5e-3) + colored(len(x), 1.0, 0)), "friction shows no memory"
    )


def test_a_load_that_never_varies() -> None:
    record = made_record()
    for method in ("auto", "lugre", "rate-gms"):
        assert_rejected(record, "load never varies", load="square", method=method)
    assert_rejected(
        record_of(record.path, record.speed, record.motor, np.full(record.samples, 50.0)),
        "load never varies",
        load="square",
    )


def transmission_part(lost: Array, reach: float = 0.03) -> Part:
    maps = {"kinematic_error": {"values": [0.0]}, "lost_motion": {"values": lost.tolist()}}
    return Part(
        "transmission", "table", (value_of("offset", "rad", 0.0, 1e-6),), 99.0, settings=maps | {"reach": reach}
    )


@pytest.mark.parametrize(("low", "reach"), [(-1e-6, 0.03), (1e-9, 0.0)])
def test_a_note_says_that_a_transmission_without_lost_motion_is_not_used(low: float, reach: float) -> None:
    record = made_record(seconds=20.0)
    part = identify_hysteresis(
        record, method="nlr", elements=2, backlash=transmission_part(np.array([2e-4, low]), reach)
    )
    plain = identify_hysteresis(record, method="nlr", elements=2)
    assert part["F_C"] == plain["F_C"]
    assert any("no lost motion" in note for note in part.notes)


def test_wrong_options() -> None:
    record = made_record(seconds=20.0)
    with pytest.raises(ModelError, match="Did you mean lugre"):
        identify_hysteresis(record, method="lugree")
    with pytest.raises(ModelError, match="1 to 16"):
        identify_hysteresis(record, elements=0)
    with pytest.raises(EstimationError, match="positive"):
        identify_hysteresis(record, backlash=-1e-3)


# -- resolution of the positions ---------------------------------------------------------------------------------------


def test_limits_are_not_sharper_than_the_steps_of_the_positions() -> None:
    step = 1e-4
    record = replace(made_record(noise=0.1), resolution=step)
    for method in ("auto", "nlr", "gms", "lugre", "rate-gms"):
        part = identify_hysteresis(record, method=method)
        limits = [value for value in part.values if value.unit == "rad"]
        assert limits
        for value in limits:
            assert value.deviation >= step / np.sqrt(12.0), (method, value)
        if part.model in ("nlr", "nlr-stribeck"):
            assert min(value.value for value in limits) >= 4.0 * step


def test_positions_too_coarse_for_hysteresis_are_rejected() -> None:
    with pytest.raises(EstimationError, match="positions are recorded in steps of 5e\\+03 µrad, too coarse"):
        identify_hysteresis(replace(made_record(), resolution=5e-3))


@needs_native
def test_the_step_of_a_log_is_found_where_samples_repeat() -> None:
    run = jointwise.simulate("ur5e", "reciprocate", joint=1, duration=20.0, rate=250.0)
    coarse = replace(run.log, q=np.round(run.log.q / 1e-4) * 1e-4, theta=None)
    record = joint_record(coarse, jointwise.load_robot("ur5e"), 1, mounting=run.truth["gravity"])
    assert record.resolution == pytest.approx(1e-4, rel=1e-6)


@needs_native
def test_stamps_that_count_from_1970_lead_to_the_same_hysteresis() -> None:
    run = jointwise.simulate("ur5e", "reciprocate", joint=1, duration=30.0, rate=250.0)
    logs = (run.log, replace(run.log, t=run.log.t + 1.7e9))
    records = [joint_record(log, jointwise.load_robot("ur5e"), 1, mounting=run.truth["gravity"]) for log in logs]
    assert records[1].rate == records[0].rate == 250.0
    here, there = (identify_hysteresis(record, method="nlr") for record in records)
    assert [value.name for value in there.values] == [value.name for value in here.values]
    for value in here.values:
        assert there[value.name] == pytest.approx(value.value, rel=1e-4)
