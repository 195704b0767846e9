"""Laws of the hysteresis models, and what their identification must find, and must refuse."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

import jointwise
from data_files import SHARED, needs_shared
from joint_runs import log_of, run_experiment
from jointwise.data.read import read_log
from jointwise.errors import EstimationError, ModelError
from jointwise.joint.hysteresis import (
    METHODS,
    Motion,
    friction_law,
    hysteresis_term,
    identify_hysteresis,
    rated_term,
)
from jointwise.joint.hysteresis import grams as grams_module
from jointwise.joint.hysteresis import recursion as recursion_module
from jointwise.joint.hysteresis.grams import slope_grams
from jointwise.joint.hysteresis.loops import make_loops, relative_backlash
from jointwise.joint.hysteresis.recursion import maxwell_slip, maxwell_slopes, maxwell_state
from jointwise.joint.hysteresis.search import best_choices, gains
from jointwise.joint.hysteresis.shape import Shape, polynomial_limits, polynomial_shares
from jointwise.joint.hysteresis.values import _searched
from jointwise.joint.identification import Settings, identify
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part, value_of
from jointwise.joint.plug import given_terms
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.record import JointRecord, join_records, joint_record
from jointwise.model.control_law import AffineControl
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import JointSignals, Rated, term_from_dict
from jointwise.model.terms import rate as rate_module
from jointwise.model.terms.backlash import evened
from jointwise.model.terms.rate import bristle, rate_slip
from jointwise.simulation.references import make_experiment
from jointwise.simulation.robot import DigitalRobot, Run, digital_robot, simulate
from jointwise.simulation.sensors import Sensors
from jointwise.spatial import Array
from peers import native
from robots import law

RATE = 500.0
LIMITS = np.array([6e-5, 1.2e-3])
FORCES = np.array([7.0, 3.0])
paths = st.lists(st.floats(-5e-3, 5e-3), min_size=2, max_size=40).map(np.array)


# -- records with a known truth ----------------------------------------------------------------------------------------


def reciprocation(seconds: float = 60.0, swing: float = 0.05, cycle: float = 4.0) -> tuple[Array, Array]:
    """Return position and speed (samples,) of a to and fro with a slow advance."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    pace = 2.0 * np.pi / cycle
    x = 0.5 * swing * (1.0 - np.cos(pace * t)) + 0.1 * swing / cycle * t
    return x, 0.5 * swing * pace * np.sin(pace * t) + 0.1 * swing / cycle


def colored(samples: int, size: float, seed: int) -> Array:
    """Return noise (samples,) of an rms, half of its variance slow."""
    white = np.random.default_rng(seed).normal(size=(2, samples))
    slow = lfilter([np.sqrt(1.0 - 0.95**2)], [1.0, -0.95], white[1])
    return size * np.sqrt(0.5) * (white[0] + slow)


def record_of(x: Array, speed: Array, friction: Array, load: Array | None = None) -> JointRecord:
    """Return a record in which all of the motor's torque beyond the load is friction."""
    none, torque = np.zeros_like(x), np.zeros_like(x) if load is None else load
    return JointRecord(
        robot="made", joint=0, logs=("made.csv",), rate=RATE, unit="Nm", gain=1.0, inertia=0.0,
        t=np.arange(len(x)) / RATE, stretch=np.zeros(len(x), dtype=np.intp), q=x, qd=speed, qdd=none, position=x,
        speed=speed, acceleration=none, path=x, motor=friction + torque, load=torque,
    )  # fmt: skip


def slip_friction(x: Array, scale: Array | None = None) -> Array:
    """Return Σ W_i g_i along a path."""
    return maxwell_slip(x, scale, LIMITS, maxwell_state(x[0], len(LIMITS))) @ FORCES


def made_record(seed: int = 0, noise: float = 1.0, seconds: float = 60.0) -> JointRecord:
    """Return a record of two elements, viscous friction, an offset and noise."""
    x, speed = reciprocation(seconds)
    return record_of(x, speed, slip_friction(x) + 8.0 * speed + 0.3 + colored(len(x), noise, seed))


# -- the recursions ----------------------------------------------------------------------------------------------------


def without_native(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setattr(module, "native", lambda: None)


def test_native_recursions_are_their_numpy_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x, h = np.cumsum(rng.normal(scale=1e-4, size=500)), rng.uniform(1.0, 1.5, 500)
    x[100:110] = x[100]
    scale = rng.uniform(0.7, 1.3, 500)

    def run() -> list[Array]:
        states = [maxwell_state(0.0, 2) for _ in range(3)]
        found = [*maxwell_slopes(x, scale, LIMITS, states[0]), maxwell_slip(x, None, LIMITS, states[1])]
        found += [rate_slip(x, h, LIMITS, 0.05, states[2]), bristle(x, h, 3e-4, np.zeros(2)), *states]
        return found

    own = run()
    without_native(monkeypatch, recursion_module)
    without_native(monkeypatch, rate_module)
    for a, b in zip(own, run(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("free", [(), ("limits",), ("limits", "growth", "extra")])
def test_native_normal_equations_are_their_numpy_twin(free: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x, speed = reciprocation(12.0)
    load = 30.0 * np.sin(x * 40.0)
    loops = make_loops(record_of(x, speed, slip_friction(x), load), np.array([1.0, 1.5, 0.8]), None)
    shape = Shape(LIMITS, growth=1e-4, extra=0.2)
    own = slope_grams(loops, shape, FORCES, free)
    without_native(monkeypatch, grams_module)
    np.testing.assert_allclose(own, slope_grams(loops, shape, FORCES, free), rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(native is None, reason="the native kernel is not built")
def test_native_recursions_refuse_arrays_that_do_not_fit() -> None:
    x, limits, state = np.zeros(5), LIMITS, maxwell_state(0.0, 2)
    wrong = [
        ("maxwell", (x, None, limits, state, np.zeros(9), None)),
        ("maxwell", (x, np.zeros(4), limits, state, np.zeros((5, 2)), None)),
        ("maxwell", (x, None, np.empty(0), np.zeros(1), np.empty((5, 0)), None)),
        ("maxwell_gram", (x, None, None, limits, FORCES, None, np.zeros((5, 3)), False, 1, state, np.zeros((6, 6)))),
        ("maxwell_gram", (x, None, None, limits, FORCES, None, np.zeros((5, 3)), True, 0, state, np.zeros((5, 5)))),
        ("rate_maxwell", (x, x, limits, 0.1, np.zeros(4), np.zeros((5, 2)))),
        ("bristle", (x, x[:3], 1e-3, np.zeros(2), np.zeros(5))),
        ("bristle", (x.astype(np.float32), x, 1e-3, np.zeros(2), np.zeros(5))),
    ]
    for name, arguments in wrong:
        with pytest.raises(ValueError, match=r"must be|needs|wrong size"):
            getattr(native, name)(*arguments)


@law(50)
@given(paths)
def test_slopes_are_derivatives_by_the_logarithm_of_the_limit(points: Array) -> None:
    x = np.repeat(np.concatenate([[0.0], points]), 1)
    up, down = (maxwell_slip(x, None, LIMITS * f, maxwell_state(0.0, 2)) for f in (1.0 + 1e-7, 1.0 - 1e-7))
    slopes = maxwell_slopes(x, None, LIMITS, maxwell_state(0.0, 2))[1]
    g = maxwell_slip(x, None, LIMITS, maxwell_state(0.0, 2))
    smooth = np.abs(np.abs(g) - 1.0) > 1e-5
    np.testing.assert_allclose(((up - down) / 2e-7)[smooth], slopes[smooth], atol=1e-3)


@law(100)
@given(paths, st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_the_start_is_forgotten_once_the_path_has_covered_twice_the_limit(points: Array, a: float, b: float) -> None:
    limits = np.array([8e-4])
    starts = [np.array([share * limits[0], 0.0, points[0]]) for share in (a, b)]
    one, other = (maxwell_slip(points, None, limits, state)[:, 0] for state in starts)
    covered = np.maximum.accumulate(points) - np.minimum.accumulate(points) >= 2.0 * limits[0]
    np.testing.assert_allclose(one[covered], other[covered], atol=1e-9)


@law(50)
@given(st.floats(0.1, 0.6), st.floats(0.0, 6.0))
def test_in_slip_hysteresis_is_one_whatever_the_backlash_does(variation: float, phase: float) -> None:
    x = np.concatenate([np.linspace(0.0, 2.0, 2000), np.linspace(2.0, 0.0, 2000)])
    scale = relative_backlash(1.0 + variation * np.sin(np.linspace(0.0, 6.28, 100) + phase), x)
    H = maxwell_slip(x, scale, LIMITS, maxwell_state(0.0, 2)) @ (FORCES / FORCES.sum())
    np.testing.assert_allclose(H[100:2000], 1.0)
    np.testing.assert_allclose(H[2100:], -1.0)


def test_rate_dependent_elements_without_rate_are_the_plain_ones() -> None:
    x = reciprocation(8.0)[0]
    plain = maxwell_slip(x, None, LIMITS, maxwell_state(x[0], 2))
    np.testing.assert_allclose(rate_slip(x, np.ones_like(x), LIMITS, 1e3, maxwell_state(x[0], 2)), plain, atol=1e-9)


def test_the_bristle_settles_at_the_steady_curve_and_does_not_depend_on_the_steps() -> None:
    x = np.linspace(0.0, 0.01, 101)
    coarse, fine = (bristle(x[::k], np.full(len(x[::k]), 1.2), 5e-4, np.zeros(2)) for k in (10, 1))
    np.testing.assert_allclose(coarse, fine[::10], rtol=1e-9)
    assert coarse[-1] == pytest.approx(1.2, rel=1e-6)


def test_pre_assigned_elements_are_those_of_the_theory() -> None:
    np.testing.assert_allclose(polynomial_limits(4, 1e-3), 1e-3 * np.array([1, 16, 81, 256]) / 256)
    np.testing.assert_allclose(polynomial_shares(4), np.array([16, 9, 4, 1]) / 30)


def test_the_search_finds_the_best_of_all_choices() -> None:
    rng = np.random.default_rng(0)
    columns = np.cumsum(rng.normal(size=(300, 14)), axis=0)
    columns /= np.linalg.norm(columns, axis=0)
    y = columns[:, [1, 4, 8, 12]] @ np.array([3.0, 2.0, 1.0, 2.0]) + 0.02 * rng.normal(size=300)
    A, b = columns.T @ columns, columns.T @ y
    every = np.array(list(itertools.combinations(range(14), 4)))
    assert best_choices(A, b, 4)[-1] == tuple(every[np.argmax(gains(A, b, every))])


# -- what is found -----------------------------------------------------------------------------------------------------


def test_nlr_recovers_elements_within_their_intervals() -> None:
    covered = []
    for seed in range(8):
        part = identify_hysteresis(made_record(seed, seconds=40.0), method="nlr", elements=2)
        truth = dict(zip(("D1", "D2", "W1", "W2"), (*LIMITS, *FORCES), strict=True))
        truth |= {"k1": FORCES[0] / LIMITS[0], "F_C": 10.0, "F_V": 8.0, "offset": 0.3, "B": LIMITS[1]}
        covered += [part.value(name).covers(value) for name, value in truth.items()]
        assert all(part[name] == pytest.approx(value, rel=0.5) for name, value in truth.items() if name != "F_V")
    assert 0.85 <= np.mean(covered) <= 1.0


def test_intervals_are_not_wider_than_what_the_estimates_scatter() -> None:
    parts = [identify_hysteresis(made_record(seed, seconds=40.0), method="nlr", elements=2) for seed in range(20, 28)]
    for name in ("F_C", "D2", "W1"):
        scatter = np.std([part[name] for part in parts], ddof=1)
        told = np.median([part.value(name).deviation for part in parts])
        assert 0.4 < told / scatter < 2.5


def test_an_inertia_that_is_not_described_is_not_taken_for_friction() -> None:
    own = made_record()
    acceleration = np.gradient(own.speed, 1.0 / RATE)
    turning = replace(own, acceleration=acceleration, motor=own.motor + 2.0 * acceleration)
    part = identify_hysteresis(turning, method="nlr", elements=2)
    assert part.value("inertia").covers(2.0) and part.value("W2").covers(FORCES[1])
    known = identify_hysteresis(replace(turning, inertia=2.0), method="nlr", elements=2)
    assert all(value.name != "inertia" for value in known.values)
    assert known.value("W2").covers(FORCES[1])


def test_forces_and_their_intervals_are_not_negative() -> None:
    part = identify_hysteresis(made_record(noise=4.0, seconds=20.0), method="nlr", elements=5)
    assert all(value.low >= 0.0 for value in part.values if value.name[0] in "WDk")


def test_without_a_friction_part_the_level_is_told_to_be_that_of_the_speeds_seen() -> None:
    told = " ".join(identify_hysteresis(made_record(), method="nlr", elements=2).notes)
    assert "F_C is the level at the speeds seen" in told


def test_intervals_count_what_the_smoothing_of_the_path_is_worth() -> None:
    own = made_record(noise=0.02)
    rough = replace(own, position=own.path + 2e-5 * np.sin(2.0 * np.pi * 3.0 * own.t))
    parts = [identify_hysteresis(record, method="nlr", elements=2) for record in (own, rough)]
    assert parts[1].value("D1").deviation > 2.0 * parts[0].value("D1").deviation


def test_as_many_elements_are_chosen_as_the_data_holds() -> None:
    part = identify_hysteresis(made_record(noise=0.3), method="nlr")
    assert part.settings["elements"] == 2
    assert any("elements" in note for note in part.notes)


def test_all_methods_are_compared_on_data_held_out() -> None:
    part = identify_hysteresis(made_record())
    tried = {own.model: own for own in part.alternatives}
    assert set(tried) == set(METHODS)
    assert part.model in METHODS and part.held_out == tried[part.model].held_out
    assert max(tried["sgn"].held_out, tried["stribeck"].held_out, tried["tanh"].held_out) < part.held_out - 2.0
    assert all(own.held_out <= own.fitted + 0.5 for own in part.alternatives)
    assert {curve.title.split()[0] for curve in part.curves} == {"Dry", "Friction", "Quality"}


def loaded_record(power: float, factor: float, steady: bool = False) -> JointRecord:
    """Return a record whose dry friction of 10 Nm grows by ``factor |τ|^power``, Nm."""
    x, speed = reciprocation(80.0)
    load = 60.0 * np.ones(len(x)) if steady else 120.0 * np.sin(2.0 * np.pi * np.arange(len(x)) / len(x))
    level = 1.0 + 0.1 * factor * np.abs(load) ** power
    return record_of(x, speed, level * slip_friction(x) + 8.0 * speed + colored(len(x), 1.0, 1), load)


def load_part(kind: str, factor: float) -> Part:
    return Part("load", kind, (), 0.0, settings={"law": {"kind": kind, "factor": factor, "largest": 120.0}})


def test_load_makes_friction_grow_with_its_square() -> None:
    own = loaded_record(2.0, 5e-4)
    part = identify_hysteresis(own, method="nlr", elements=2, load="square")
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(5e-4)
    assert part.value("F_C1").deviation < 5e-5
    plain = identify_hysteresis(own, method="nlr", elements=2, load="none")
    assert part.held_out > plain.held_out + 5.0


@pytest.mark.parametrize(("power", "factor", "kind"), [(2.0, 5e-4, "square"), (1.0, 0.05, "absolute")])
def test_the_law_of_the_load_is_the_one_that_predicts_best(power: float, factor: float, kind: str) -> None:
    own = loaded_record(power, factor)
    part = identify_hysteresis(own, method="nlr", elements=2)
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(factor)
    assert hysteresis_term(part).load == kind
    without = identify_hysteresis(loaded_record(power, 0.0), method="nlr", elements=2)
    assert hysteresis_term(without).load == "none"


def test_a_known_law_of_the_load_is_taken() -> None:
    known = JointModel("ur5e", 0, {"load": load_part("absolute", 0.04)})
    part = identify("hysteresis", loaded_record(1.0, 0.05), jointwise.robot("ur5e"), known, Settings("nlr", elements=2))
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(0.05)
    told = identify_hysteresis(
        loaded_record(1.0, 0.05, True), method="nlr", elements=2, load=load_part("absolute", 0.05)
    )
    assert told["F_C"] == pytest.approx(10.0, rel=0.05)
    assert any("does not vary" in note for note in told.notes)


def test_a_backlash_map_is_used() -> None:
    x, speed = reciprocation(80.0, swing=0.4)
    backlash = 1.0 + 0.5 * np.sin(np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False))
    friction = slip_friction(x, relative_backlash(backlash, x)) + colored(len(x), 0.3, 2)
    with_map = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2, backlash=1e-3 * backlash)
    without = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2)
    assert with_map.held_out > without.held_out
    signals = JointSignals(RATE, x, speed, np.zeros_like(x), path=x)
    torque = hysteresis_term(with_map).columns(signals)[0] @ np.array([with_map["W1"], with_map["W2"]])
    np.testing.assert_allclose(torque, friction_law(with_map).torque(record_of(x, speed, friction), False), atol=0.2)
    assert with_map.value("D2").covers(LIMITS[1]) and with_map["B"] == pytest.approx(1e-3)


def test_lugre_is_found_where_the_truth_is_lugre() -> None:
    x, speed = reciprocation(40.0, swing=0.2)
    h = 1.0 + 0.3 * np.exp(-((speed / 0.02) ** 2))
    friction = 10.0 * bristle(x, h, 4e-4, np.array([0.0, x[0]])) + 8.0 * speed + colored(len(x), 0.3, 0)
    part = identify_hysteresis(record_of(x, speed, friction), method="lugre")
    assert part["F_C"] == pytest.approx(10.0, rel=0.1)
    assert friction_law(part).limits[0] == pytest.approx(4e-4, rel=0.2)
    truth = {"F_C": 10.0, "F_S": 13.0, "F_S-F_C": 3.0, "V_S": 0.02, "s0": 25e3, "s1": 0.0, "F_V": 8.0}
    assert all(part.value(name).covers(value) for name, value in truth.items())
    slip = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2)
    assert part.held_out > slip.held_out


def test_rate_dependent_slip_is_found_where_the_truth_is_that() -> None:
    x, speed = reciprocation(40.0, swing=0.2)
    h = 1.0 + 0.5 * np.exp(-((speed / 0.02) ** 2))
    u = rate_slip(x, h, LIMITS, 30.0 / RATE, maxwell_state(x[0], 2))
    friction = u @ FORCES + 8.0 * speed + colored(len(x), 0.2, 0)
    part = identify_hysteresis(record_of(x, speed, friction), method="rate-gms", elements=2)
    plain = identify_hysteresis(record_of(x, speed, friction), method="nlr", elements=2)
    assert part.held_out > plain.held_out + 1.0
    assert friction_law(part).forces.sum() == pytest.approx(10.0, rel=0.15)


def rated_record(method: str, power: float, factor: float, backlash: Array | None = None) -> JointRecord:
    """Return a record of friction with rate, 10 Nm that grow by ``factor |τ|^power`` under a load up to 120 Nm."""
    x, speed = reciprocation(32.0, swing=0.2)
    way = x if backlash is None else evened(x, backlash)
    h = 1.0 + 0.3 * np.exp(-((speed / 0.02) ** 2))
    if method == "lugre":
        dry = 10.0 * bristle(way, h, 4e-4, np.array([0.0, way[0]]))
    else:
        dry = rate_slip(way, h, LIMITS, 30.0 / RATE, maxwell_state(way[0], 2)) @ FORCES
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
def test_friction_with_rate_grows_with_the_load(method: str, kind: str, power: float, factor: float) -> None:
    own = rated_record(method, power, factor)
    part = identify_hysteresis(own, method=method, elements=2)
    truth = {"F_C": 10.0, "F_S": 13.0, "V_S": 0.02, "F_C1": factor, "F_V": 8.0, **RATED_TRUTH[method]}
    missed = [name for name, value in truth.items() if not part.value(name).covers(value)]
    assert len(missed) <= 1 and part.value("F_C1").covers(factor)
    assert part.value("F_C1").deviation < 0.02 * factor and rated_term(part).load == kind
    plain = identify_hysteresis(own, method=method, elements=2, load="none")
    assert part.held_out > plain.held_out + 5.0
    assert all(value.name != "F_C1" for value in plain.values) and rated_term(plain).load == "none"


@pytest.mark.parametrize("method", ["lugre", "rate-gms"])
def test_a_law_of_the_load_is_held_for_friction_with_rate_too(method: str) -> None:
    own = rated_record(method, 1.0, 0.05)
    steady = replace(own, load=np.full(own.samples, 60.0), motor=own.motor - own.load + 60.0)
    part = identify_hysteresis(steady, method=method, elements=2, load=load_part("absolute", 0.05))
    law = friction_law(part)
    assert law.growth > 0.0 and law.power == 1.0 and all(value.name != "F_C1" for value in part.values)


def swung_under_gravity(digital: DigitalRobot, seconds: float = 40.0) -> Run:
    """Return a run in which the second joint goes to and fro, twice from hanging up to stretched out."""
    t = np.arange(0.0, seconds, 1e-3)
    q, qd, qdd = np.zeros((3, len(t), digital.robot.dof))
    q[:, 1] = -0.9
    for size, pace in ((0.7, 4.0 * np.pi / seconds), (0.3, 0.5 * np.pi)):
        q[:, 1] += size * np.sin(pace * t)
        qd[:, 1] += size * pace * np.cos(pace * t)
        qdd[:, 1] -= size * pace**2 * np.sin(pace * t)
    B = np.array([joint.inertia for joint in digital.joints])
    torque = inverse_dynamics(digital.robot, q, qd, qdd, gravity=digital.gravity)
    control = AffineControl(theta=q, speed=qd, torque=torque, k_theta=4000.0 * B, k_speed=80.0 * B)
    return simulate(digital, digital.rest(q[0]), control, rate=1000.0)


def test_friction_with_rate_is_that_of_a_loaded_joint_of_the_digital_robot() -> None:
    digital = digital_robot(jointwise.robot("ur5e"), gravity=(0.0, 0.0, -9.81))
    digital = digital.without("stribeck", "temperature", "asymmetry", "backlash")
    log = log_of(swung_under_gravity(digital), digital, Sensors(rate=1000.0, seed=3, current_noise=0.03))
    record = joint_record(log, digital.robot, 1, mounting=digital.gravity)
    friction = digital.joints[1].friction
    for method in ("lugre", "rate-gms"):
        part = identify_hysteresis(record, method=method, elements=4, load="square")
        assert part["F_C1"] == pytest.approx(friction.load, rel=0.05)
        assert part["F_C"] == pytest.approx(friction.coulomb, rel=0.06)
        assert part.held_out > identify_hysteresis(record, method="nlr", elements=4, load="none").held_out + 1.0


def test_known_viscous_friction_is_taken_off_first() -> None:
    own = made_record()
    part = identify_hysteresis(own, method="nlr", elements=2, steady=lambda speed, _: 8.0 * speed)
    assert part.value("F_V").covers(0.0)
    known = Part("friction", "polynomial", (replace(part.values[0], name="F_V1", value=8.0),), 90.0)
    assert identify_hysteresis(own, method="nlr", elements=2, steady=known)["F_V"] == pytest.approx(part["F_V"])


def known_friction(deviation: float, covariance: list[list[float]] | None = None) -> Part:
    """Return viscous friction that is known with a deviation."""
    values = tuple(value_of(name, "", *pair) for name, *pair in (("F_V1", 8.0, deviation), ("F_V2", 0.0, deviation)))
    settings = {} if covariance is None else {"covariance": {"names": ["F_V1", "F_V2"], "values": covariance}}
    return Part("friction", "polynomial", values, 90.0, settings=settings)


def test_intervals_count_how_sure_the_known_friction_is() -> None:
    own = made_record()

    def viscous(steady: Part) -> float:
        return identify_hysteresis(own, method="nlr", elements=2, steady=steady).value("F_V").deviation

    sure = viscous(known_friction(0.0))
    assert viscous(known_friction(0.0, [[4.0, 0.0], [0.0, 0.0]])) == pytest.approx(np.hypot(sure, 2.0), rel=0.05)
    apart, tied = (viscous(known_friction(2.0, [[4.0, c], [c, 4.0]])) for c in (0.0, -3.9))
    assert apart == pytest.approx(viscous(known_friction(2.0)), rel=1e-6)
    assert sure < tied < apart


def test_known_dry_friction_that_is_not_sure_widens_forces() -> None:
    def level(deviation: float) -> float:
        known = (("F_C", 10.0, 0.0), ("F_S-F_C", 1.0, deviation), ("V_S", 0.05, 0.0))
        steady = Part("friction", "known", tuple(value_of(name, "", *pair) for name, *pair in known), 90.0)
        return identify_hysteresis(made_record(), method="nlr", elements=2, steady=steady).value("F_C").deviation

    assert level(2.0) > 1.5 * level(0.0)


@pytest.fixture(scope="module")
def digital_run() -> tuple[DigitalRobot, Run]:
    """Return 84 s of reciprocation of a joint with hysteresis and viscous friction alone."""
    arm = jointwise.robot("ur5e")
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


def test_stretches_are_fitted_together() -> None:
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
def test_hysteresis_of_a_real_wrist_pays_off_on_another_log(joint: int, gain: float) -> None:
    arm, folder = jointwise.robot("ur10e"), SHARED / "ur10e"
    names = ("id_20_02_12_50sec_12harm.csv", "id_20_02_19_14harm50sec.csv")
    train, test = (joint_record(read_log(folder / name), arm, joint, cutoff=8.0) for name in names)
    own, static = (_on_another_log(identify_hysteresis(train, method=m), test) for m in ("auto", "tanh"))
    assert own > static + gain


def _on_another_log(part: Part, record: JointRecord) -> float:
    """Return the NRMSE % of friction, the rotor's inertia as it was estimated along taken off."""
    return nrmse_percent(record.friction - part["inertia"] * record.acceleration, friction_law(part).torque(record))


# -- what becomes of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nlr", "nlr-stribeck", "gms", "lugre", "rate-gms", "stribeck", "tanh", "sgn"])
def test_a_part_survives_its_file_and_gives_the_same_law(method: str) -> None:
    record = made_record(seconds=20.0)
    part = identify_hysteresis(record, method=method)
    again = Part.from_dict(json.loads(json.dumps(part.to_dict(), allow_nan=False)))
    own, other = (friction_law(one).torque(record) for one in (part, again))
    np.testing.assert_array_equal(own, other)
    assert nrmse_percent(record.friction[2000:], own[2000:]) == pytest.approx(part.fitted, abs=1.5)


def test_a_number_on_which_nothing_depends_survives_its_file() -> None:
    value = _searched("V_S", "rad/s", 0.05, 1e140, 2.0, (2e-3, 1.0))
    assert (value.low, value.high) == (2e-3, 1.0) and value.deviation < 10.0


def test_a_law_starts_anew_where_a_stretch_begins() -> None:
    record = made_record(seconds=20.0)
    own = friction_law(identify_hysteresis(record, method="nlr", elements=2))
    half = record.samples // 2
    stretch = (np.arange(record.samples) >= half).astype(np.intp)
    motion = Motion(record.path, record.speed, record.load, 1.0 / RATE, stretch)
    alone = Motion(record.path[half:], record.speed[half:], record.load[half:], 1.0 / RATE)
    np.testing.assert_allclose(own.torque(motion)[half:], own.torque(alone))


def test_a_term_of_the_calibration_is_made_from_a_part() -> None:
    record = made_record()
    part = identify_hysteresis(record, method="nlr", elements=2)
    term = hysteresis_term(part)
    signals = JointSignals(RATE, record.q, record.qd, record.qdd, path=record.path)
    torque = term.columns(signals)[0] @ np.array([part["W1"], part["W2"]])
    np.testing.assert_allclose(torque, friction_law(part).torque(record, nuisance=False))
    with pytest.raises(ModelError, match=r"Got 'lugre' instead: identify hysteresis again"):
        hysteresis_term(identify_hysteresis(record, method="lugre"))


@pytest.mark.parametrize("method", ["lugre", "rate-gms"])
def test_a_model_with_rate_is_a_term_of_the_calibration_too(method: str) -> None:
    record = made_record(seconds=20.0)
    part = identify_hysteresis(record, method=method, elements=2)
    signals = JointSignals(RATE, record.q, record.speed, record.qdd, path=record.path)
    for name in ("F_C", "F_S", "V_S", "F_V", "offset", *(("s0", "s1") if method == "lugre" else ("W1", "D1", "rate"))):
        value = part.value(name)
        assert value.low <= value.value <= value.high and value.low < value.high
    given = given_terms(JointModel("ur5e", 0, {"hysteresis": part}), known=True)
    (term,) = (own for own in given.terms if isinstance(own, Rated))
    torque = term.columns(signals)[0][:, 0] * given.known["FCd"][0]
    np.testing.assert_allclose(torque, friction_law(part).torque(record, nuisance=False), atol=1e-9)
    assert term_from_dict(json.loads(json.dumps(term.to_dict()))) == term


@pytest.mark.parametrize("method", ["lugre", "rate-gms"])
def test_a_loaded_model_with_rate_is_the_same_in_its_file_and_as_a_term(method: str) -> None:
    backlash = 1.0 + 0.4 * np.sin(np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False))
    record = rated_record(method, 2.0, 5e-4, backlash)
    part = identify_hysteresis(record, method=method, elements=2, load="square", backlash=1e-3 * backlash)
    again = Part.from_dict(json.loads(json.dumps(part.to_dict(), allow_nan=False)))
    own, other = (friction_law(one).torque(record, nuisance=False) for one in (part, again))
    np.testing.assert_array_equal(own, other)
    assert part.value("F_C").covers(10.0) and part.value("F_C1").covers(5e-4)
    assert part.held_out > identify_hysteresis(record, method=method, elements=2, load="square").held_out
    given = given_terms(JointModel("ur5e", 0, {"hysteresis": again}), known=True)
    (term,) = (one for one in given.terms if isinstance(one, Rated))
    values = [given.known[name][0] for name in ("FCd", "FCd1")]
    signals = JointSignals(RATE, record.q, record.speed, record.qdd, path=record.path, load=record.load)
    np.testing.assert_allclose(term.columns(signals)[0] @ np.array(values), own, atol=1e-9)
    assert "load" not in given.open and term_from_dict(json.loads(json.dumps(term.to_dict()))) == term


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(record: JointRecord, what: str, **options: object) -> None:
    with pytest.raises(EstimationError, match=what) as error:
        identify_hysteresis(record, **options)  # type: ignore[arg-type]
    assert "reciprocate" in str(error.value) and "\n" not in str(error.value)


def test_no_reversals() -> None:
    x = np.linspace(0.0, 1.0, 10_000)
    refused(record_of(x, np.full_like(x, 0.05), 10.0 + colored(len(x), 1.0, 0)), "no reversals")


def test_too_few_reversals() -> None:
    x, speed = reciprocation(5.0)
    refused(record_of(x, speed, slip_friction(x) + colored(len(x), 0.1, 0)), "only 2 reversals")


def test_ways_too_short_to_slip() -> None:
    x, speed = reciprocation(40.0, swing=1e-3)
    friction = 1e4 * (x - x.mean()) + colored(len(x), 0.1, 0)
    x = x - 0.1 * 1e-3 / 4.0 * np.arange(len(x)) / RATE
    friction = maxwell_slip(x, None, np.array([5e-3]), maxwell_state(x[0], 1))[:, 0] * 20.0 + colored(len(x), 0.1, 0)
    refused(record_of(x, speed, friction), "too short for the gear to slip")


def test_saturated_current() -> None:
    own = made_record()
    refused(replace(own, motor=np.clip(own.motor, -8.0, 8.0)), "saturated")


@pytest.mark.parametrize("way", ["samples", "half a cycle", "reversed in time"])
def test_shuffled_friction(way: str) -> None:
    own = made_record()
    shuffled = {
        "samples": np.random.default_rng(0).permutation(own.motor),
        "half a cycle": np.roll(own.motor, round(2.0 * RATE)),
        "reversed in time": np.roll(own.motor[::-1], 700),
    }
    with pytest.raises(EstimationError, match="hysteresis is not fitted"):
        identify_hysteresis(replace(own, motor=shuffled[way]))


def test_friction_without_memory() -> None:
    x, speed = reciprocation()
    refused(record_of(x, speed, 10.0 * np.tanh(speed / 5e-3) + colored(len(x), 1.0, 0)), "no memory is seen")


def test_a_load_that_never_varies() -> None:
    own = made_record()
    for method in ("auto", "lugre", "rate-gms"):
        refused(own, "load never varies", load="square", method=method)
    refused(record_of(own.path, own.speed, own.motor, np.full(own.samples, 50.0)), "load never varies", load="square")


def transmission_part(lost: Array, reach: float = 0.03) -> Part:
    maps = {"kinematic_error": {"values": [0.0]}, "lost_motion": {"values": lost.tolist()}}
    return Part(
        "transmission", "table", (value_of("offset", "rad", 0.0, 1e-6),), 99.0, settings=maps | {"reach": reach}
    )


@pytest.mark.parametrize(("low", "reach"), [(-1e-6, 0.03), (1e-9, 0.0)])
def test_a_transmission_without_lost_motion_is_left_out_with_a_word(low: float, reach: float) -> None:
    own = made_record(seconds=20.0)
    part = identify_hysteresis(own, method="nlr", elements=2, backlash=transmission_part(np.array([2e-4, low]), reach))
    plain = identify_hysteresis(own, method="nlr", elements=2)
    assert part["F_C"] == plain["F_C"]
    assert any("no lost motion" in note for note in part.notes)


def test_wrong_options() -> None:
    own = made_record(seconds=20.0)
    with pytest.raises(ModelError, match="Did you mean lugre"):
        identify_hysteresis(own, method="lugree")
    with pytest.raises(ModelError, match="1 to 16"):
        identify_hysteresis(own, elements=0)
    with pytest.raises(EstimationError, match="positive"):
        identify_hysteresis(own, backlash=-1e-3)
