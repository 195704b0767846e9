"""Joint terms: what every term must do, and what dry friction, hysteresis and viscous friction are."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from jointwise.errors import ModelError
from jointwise.model.terms import (
    KINDS,
    Coulomb,
    Hysteresis,
    Inertia,
    JointSignals,
    Offset,
    PowerFlow,
    Rated,
    SpeedRipple,
    Spring,
    Stribeck,
    Temperature,
    Term,
    Viscous,
    term_from_dict,
)
from jointwise.spatial import Array

pytestmark = pytest.mark.compat

LIMITS = Hysteresis.polynomial_limits(4, 5e-3)
SHAPE = (0.4, 0.3, 0.2, 0.1)
RATE = 250.0
TERMS: tuple[Term, ...] = (
    Offset(),
    Coulomb(),
    Coulomb("square", "tanh", 0.02),
    Coulomb("absolute"),
    Hysteresis(LIMITS),
    Hysteresis(LIMITS, relaxation=2.0, driver="track"),
    Hysteresis(LIMITS, load="square", shape=SHAPE),
    Hysteresis(LIMITS, load="absolute", shape=SHAPE, relaxation=0.5),
    Viscous(),
    Viscous((0.5, 1.0, 2.0, 3.0), known=1.5),
    Stribeck(),
    Stribeck(0.2, exponent=2.0, width=0.005),
    PowerFlow(),
    SpeedRipple(0.004),
    Spring(),
    Spring(cubic=True),
    Inertia(),
    Hysteresis(LIMITS, backlash=(0.7, 1.2, 1.2)),
    Temperature(reference=30.0),
    Rated("lugre", (1e-3,), (1.0,), extra=0.3, damping=0.02),
    Rated("rate-gms", (1e-4, 2e-3), (0.6, 0.4), extra=0.3, rate=30.0, driver="rotor"),
    Hysteresis(LIMITS, driver="rotor", load="square", shape=SHAPE),
    Rated("lugre", (1e-3,), (1.0,), extra=0.3, damping=0.02, load="square"),
    Rated("rate-gms", (1e-4, 2e-3), (0.6, 0.4), extra=0.3, rate=30.0, load="absolute", backlash=(0.7, 1.2, 1.2)),
)
DISSIPATIVE = tuple(term for term in TERMS if isinstance(term, Coulomb | Viscous | Stribeck | PowerFlow))
CAUSAL = tuple(term for term in TERMS if not isinstance(term, SpeedRipple))
HYSTERETIC = tuple(term for term in TERMS if isinstance(term, Hysteresis))


def named(term: Term) -> str:
    return " ".join(str(value) for value in term.to_dict().values() if not isinstance(value, list))


every_term = pytest.mark.parametrize("term", TERMS, ids=named)


def signals(samples: int = 1500, seed: int = 0) -> JointSignals:
    """Return a smooth random motion of one joint with load, measured speed and ripple."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / RATE
    omega, phase, size = rng.uniform(0.5, 6.0, 5), rng.uniform(0.0, 6.0, 5), rng.uniform(0.1, 0.4, 5)
    angle = np.multiply.outer(t, omega) + phase
    q, qd, qdd = np.sin(angle) @ size, np.cos(angle) @ (size * omega), -np.sin(angle) @ (size * omega**2)
    ripple = 1e-3 * rng.normal(size=samples)
    load, temperature = 30.0 * np.cos(q) + qdd, 25.0 + 2.0 * t
    return JointSignals(RATE, q, qd, qdd, None, q + 1e-5 * ripple, ripple, temperature, q + 1e-4 * load, load)


def columns(term: Term, joint: JointSignals) -> Array:
    return term.columns(joint)[0]


def mirrored(joint: JointSignals) -> JointSignals:
    """Return the motion with every angle turned round; the size of the load stays."""
    parts = {name: -getattr(joint, name) for name in ("q", "qd", "qdd", "track", "ripple", "load", "rotor")}
    return replace(joint, **parts)


def piece(joint: JointSignals, part: slice) -> JointSignals:
    names = ("q", "qd", "qdd", "track", "ripple", "load", "temperature", "rotor")
    return replace(joint, **{name: getattr(joint, name)[part] for name in names})


def states(term: Hysteresis, x: Array) -> Array:
    """Return δ_i/D_i along positions x."""
    still = np.zeros(len(x))
    return columns(term, JointSignals(RATE, x, still, still))


def path(*corners: float, points: int = 400) -> Array:
    """Return positions that go straight from corner to corner, each reached exactly."""
    legs = [np.linspace(a, b, points + 1)[1:] for a, b in pairwise(corners)]
    return np.concatenate([[corners[0]], *legs])


# -- every term ------------------------------------------------------------------------------------------------------


def test_every_kind_is_in_the_suite() -> None:
    assert {term.kind for term in TERMS} == set(KINDS)


@every_term
def test_a_column_for_every_parameter_and_a_row_for_every_sample(term: Term) -> None:
    joint = signals()
    assert columns(term, joint).shape == (len(joint.q), len(term.parameters()))


@every_term
def test_columns_are_finite_also_at_rest(term: Term) -> None:
    joint = signals()
    assert np.isfinite(columns(term, joint)).all()
    zero = np.zeros(20)
    rest = JointSignals(RATE, zero, zero, zero, track=zero, ripple=zero, load=zero, temperature=zero + 20.0, rotor=zero)
    assert np.isfinite(columns(term, rest)).all()


@every_term
def test_parameter_names_are_unique_and_have_units(term: Term) -> None:
    names = [parameter.name for parameter in term.parameters()]
    assert len(set(names)) == len(names)
    assert all(parameter.unit for parameter in term.parameters())


@every_term
def test_signals_are_not_changed_and_the_same_signals_give_the_same_columns(term: Term) -> None:
    joint, before = signals(), signals()
    first = columns(term, joint)
    np.testing.assert_array_equal(first, columns(term, joint))
    for name in ("q", "qd", "qdd", "track", "ripple", "load", "temperature", "rotor"):
        np.testing.assert_array_equal(getattr(joint, name), getattr(before, name))


@every_term
def test_a_term_survives_its_document(term: Term) -> None:
    again = term_from_dict(json.loads(json.dumps(term.to_dict())))
    assert again == term
    np.testing.assert_array_equal(columns(again, signals()), columns(term, signals()))


@every_term
def test_unknown_settings_are_refused_by_name(term: Term) -> None:
    with pytest.raises(ModelError, match=f"term '{term.kind}'.*colour"):
        term_from_dict({**term.to_dict(), "colour": "red"})


@every_term
def test_a_term_says_truly_what_it_needs(term: Term) -> None:
    without_load, without_speed = replace(signals(), load=None), replace(signals(), track=None, ripple=None)
    for needs, joint, words in (
        (term.uses_load(), without_load, "load"),
        (term.uses_speed(), without_speed, "measured speed"),
        (term.uses_rotor(), replace(signals(), rotor=None), "rotor"),
        (term.uses_temperature(), replace(signals(), temperature=None), "temperature"),
    ):
        if needs:
            with pytest.raises(ValueError, match=words):
                term.columns(joint)
        else:
            np.testing.assert_array_equal(columns(term, joint), columns(term, signals()))


@pytest.mark.parametrize("term", CAUSAL, ids=named)
def test_evaluation_in_pieces_with_the_state_carried_is_evaluation_in_one(term: Term) -> None:
    joint = signals()
    state, parts = None, []
    for part in (slice(0, 1), slice(1, 700), slice(700, 701), slice(701, 1500)):
        actual, state = term.columns(piece(joint, part), state)
        parts.append(actual)
    np.testing.assert_allclose(np.concatenate(parts), columns(term, joint), rtol=1e-12)


@every_term
def test_a_carried_state_is_not_changed_by_its_use(term: Term) -> None:
    _, state = term.columns(signals(100))
    if state is None:
        return
    kept = state.copy()
    term.columns(signals(50, seed=1), state)
    np.testing.assert_array_equal(state, kept)


@pytest.mark.parametrize("term", [term for term in TERMS if not isinstance(term, Offset)], ids=named)
def test_friction_of_the_mirrored_motion_is_the_mirrored_friction(term: Term) -> None:
    joint = signals()
    np.testing.assert_allclose(columns(term, mirrored(joint)), -columns(term, joint), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("term", DISSIPATIVE, ids=named)
def test_friction_never_drives_the_joint(term: Term) -> None:
    joint = signals()
    assert (columns(term, joint) * joint.qd[:, None] >= 0.0).all()


@pytest.mark.parametrize("term", DISSIPATIVE, ids=named)
def test_friction_depends_on_speed_not_on_the_history(term: Term) -> None:
    joint, order = signals(), np.random.default_rng(1).permutation(1500)
    names = ("q", "qd", "qdd", "load")
    mixed = replace(joint, **{name: getattr(joint, name)[order] for name in names})
    np.testing.assert_array_equal(columns(term, mixed), columns(term, joint)[order])


BAD: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("coulomb", {"load": "cubic"}, "load must be none, square or absolute. Got 'cubic'"),
    ("coulomb", {"direction": "step"}, "direction must be sign or tanh. Got 'step'"),
    ("coulomb", {"width": 0.0}, "width must be positive. Got 0.0"),
    ("coulomb", {"width": float("nan")}, "width must be finite"),
    ("hysteresis", {"limits": []}, "limits must be positive and increasing"),
    ("hysteresis", {"limits": [1e-3, 1e-3]}, "limits must be positive and increasing"),
    ("hysteresis", {"limits": [0.0, 1e-3]}, "limits must be positive and increasing"),
    ("hysteresis", {"limits": [1e-3, float("inf")]}, "limits[1] must be finite"),
    ("hysteresis", {"limits": [1e-3], "driver": "motor"}, "driver must be q, track, rotor. Got 'motor'"),
    ("hysteresis", {"limits": [1e-3], "relaxation": -1.0}, "relaxation must be 0"),
    ("hysteresis", {"limits": [1e-3], "load": "square"}, "shape must have 1 entries. Got 0"),
    ("hysteresis", {}, "limits"),
    ("rated", {"model": "lugre", "limits": [1e-3], "shares": [1.0], "load": "cubic"}, "load must be none, square"),
    ("rated", {"model": "lugre", "limits": [1e-3], "shares": [1.0], "backlash": [0.0]}, "backlash must be positive"),
    ("viscous", {"powers": []}, "powers must be positive"),
    ("viscous", {"powers": [0.0]}, "powers must be positive"),
    ("viscous", {"powers": [1.0, 1.0]}, "powers must differ"),
    ("viscous", {"powers": [12.0]}, "up to 9"),
    ("viscous", {"known": -1.0}, "known must be a speed"),
    ("stribeck", {"velocity": 0.0}, "must be positive"),
    ("stribeck", {"exponent": -1.0}, "must be positive"),
    ("power_flow", {"width": -0.1}, "width must be positive. Got -0.1"),
    ("speed_ripple", {"step": 0.0}, "step must be a positive time"),
    ("viscos", {}, "Did you mean viscous"),
    ("magic", {}, "unknown term 'magic'. Known: coulomb"),
)


@pytest.mark.parametrize(("kind", "settings", "words"), BAD)
def test_settings_that_make_no_sense_are_refused(kind: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError) as refused:
        term_from_dict({"kind": kind, **settings})
    assert words in str(refused.value)


# -- dry friction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("load", "law"), [("square", np.square), ("absolute", np.abs)])
@pytest.mark.parametrize("direction", ["sign", "tanh"])
def test_load_multiplies_the_direction(load: str, law: Any, direction: str) -> None:
    joint = signals()
    assert joint.load is not None
    plain, loaded = columns(Coulomb(load, direction), joint).T
    np.testing.assert_allclose(loaded, law(joint.load) * plain, rtol=1e-12)


def test_tanh_is_the_sign_away_from_standstill() -> None:
    joint = signals()
    fast = np.abs(joint.qd) > 0.1
    soft, hard = (columns(Coulomb("none", direction, 0.01), joint)[fast] for direction in ("tanh", "sign"))
    np.testing.assert_allclose(soft, hard, atol=1e-8)


def test_power_flow_is_split_by_the_sign_of_power() -> None:
    joint = signals()
    assert joint.load is not None
    direct, reverse = columns(PowerFlow(0.01), joint).T
    assert not (direct * reverse).any()
    np.testing.assert_array_equal(direct != 0.0, (joint.qd * joint.load > 0.0) & (joint.qd != 0.0))
    np.testing.assert_allclose(direct + reverse, np.tanh(joint.qd / 0.01))


def test_stribeck_friction_fades_with_speed() -> None:
    speed = np.linspace(0.05, 2.0, 100)
    zero = np.zeros(100)
    actual = columns(Stribeck(0.2, width=0.001), JointSignals(RATE, zero, speed, zero))[:, 0]
    assert (np.diff(actual) < 0.0).all()
    np.testing.assert_allclose(actual, np.exp(-speed / 0.2), rtol=1e-9)


# -- viscous friction ------------------------------------------------------------------------------------------------


def viscous(term: Viscous, speed: Array) -> Array:
    zero = np.zeros_like(speed)
    return columns(term, JointSignals(RATE, zero, speed, zero))


def test_whole_powers_are_odd_powers_and_speed_times_its_size() -> None:
    v = np.linspace(-3.0, 3.0, 61)
    expected = np.column_stack([v, np.abs(v) * v, v**3, np.abs(v) * v**3])
    np.testing.assert_allclose(viscous(Viscous((1.0, 2.0, 3.0, 4.0)), v), expected, atol=1e-12)


def test_inside_the_known_range_nothing_changes() -> None:
    v = np.linspace(-1.5, 1.5, 301)
    powers = (0.5, 1.0, 2.0, 3.0)
    np.testing.assert_array_equal(viscous(Viscous(powers, known=1.5), v), viscous(Viscous(powers), v))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_beyond_the_known_range_it_goes_on_along_its_tangent(power: float, side: float) -> None:
    known, h = 1.5, 1e-6
    term = Viscous((power,), known=known)
    at = side * (known + h * np.array([-1.0, 0.0, 1.0]))
    below, edge, above = viscous(term, at)[:, 0]
    assert abs((above - edge) - (edge - below)) < 1e-4 * abs(above - edge)  # one slope on both sides: C1
    far = viscous(term, side * np.array([2.0, 3.0, 4.0]))[:, 0]
    np.testing.assert_allclose(np.diff(far), side * power * known ** (power - 1.0), rtol=1e-12)


# -- hysteresis ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("term", HYSTERETIC, ids=named)
def test_elements_stay_within_their_limits(term: Hysteresis) -> None:
    actual = columns(term, signals())[:, : len(LIMITS)]
    assert np.abs(actual).max() <= 1.0
    assert np.abs(actual).max() > 0.9


def test_in_full_slip_every_element_is_at_its_limit() -> None:
    there = path(0.0, 0.1)
    slipping = states(Hysteresis(LIMITS), there)[there > LIMITS[-1] + 1e-9]
    np.testing.assert_array_equal(slipping, np.ones_like(slipping))
    back = states(Hysteresis(LIMITS), path(0.0, 0.1, 0.1 - 2.001 * LIMITS[-1]))
    np.testing.assert_array_equal(back[-1], -np.ones(4))


def test_an_element_is_a_spring_until_it_slips() -> None:
    x = path(0.0, LIMITS[0])
    np.testing.assert_allclose(states(Hysteresis(LIMITS), x), x[:, None] / np.array(LIMITS), rtol=1e-9)


def test_hysteresis_does_not_depend_on_the_rate() -> None:
    corners = (0.0, 0.02, 0.015, 0.018, -0.01, 0.003)
    slow, fast = path(*corners, points=50), path(*corners, points=5000)
    actual, other = states(Hysteresis(LIMITS), slow), states(Hysteresis(LIMITS), fast)
    np.testing.assert_allclose(actual, other[::100], atol=1e-10)


def test_a_cycle_closes_and_leaves_no_trace() -> None:
    term = Hysteresis(LIMITS)
    before = states(term, path(0.0, 0.05, 0.0, 0.02))
    after = states(term, path(0.0, 0.05, 0.0, 0.02, 0.018, 0.0195, 0.018, 0.02))
    np.testing.assert_allclose(after[-1], before[-1], atol=1e-12)


def test_an_inner_loop_is_remembered_until_it_is_passed() -> None:
    term, points = Hysteresis(LIMITS), 400
    plain = states(term, path(0.0, 0.05, 0.0475, 0.06))
    nested = states(term, path(0.0, 0.05, 0.0475, 0.049, 0.0475, 0.06))
    np.testing.assert_allclose(nested[-points:], plain[-points:], atol=1e-10)
    other = states(term, path(0.0, 0.05, 0.049, 0.06))
    assert np.abs(other[-points:] - plain[-points:]).max() > 0.1  # where it turned matters


def test_a_closed_cycle_takes_work() -> None:
    corners = (0.0, 0.03, -0.03, 0.03)
    x = path(*corners)
    H = states(Hysteresis(LIMITS), x) @ np.array(SHAPE)
    cycle = slice(401, None)
    work = float(np.trapezoid(H[cycle], x[cycle]))
    assert 0.8 * 0.12 < work < 0.12  # less than dry friction of one over the same way, by what the springs give back


def test_without_relaxation_a_standing_joint_keeps_its_tension() -> None:
    x = np.concatenate([path(0.0, 0.05), np.full(5000, 0.05)])
    np.testing.assert_array_equal(states(Hysteresis(LIMITS), x)[-1], np.ones(4))


def test_relaxation_lets_tension_fade_with_its_time_constant() -> None:
    x = np.concatenate([path(0.0, 0.05), np.full(500, 0.05)])
    actual = states(Hysteresis(LIMITS, relaxation=0.7), x)[400:]
    expected = actual[0] * np.exp(-np.arange(501)[:, None] / (RATE * 0.7))
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize(("load", "law"), [("square", np.square), ("absolute", np.abs)])
def test_load_multiplies_friction_with_rate(load: str, law: Any) -> None:
    joint = signals()
    for term in (term for term in TERMS if isinstance(term, Rated)):
        alone, grown = columns(replace(term, load=load), joint).T
        np.testing.assert_array_equal(alone, columns(replace(term, load="none"), joint)[:, 0])
        np.testing.assert_allclose(grown, law(joint.load) * alone)


def test_friction_with_rate_settles_at_its_steady_columns() -> None:
    for term in (term for term in TERMS if isinstance(term, Rated)):
        for speed in (-0.1, 0.02):
            x, still = speed * np.arange(0.0, 3.0, 1.0 / RATE), np.zeros(round(3.0 * RATE))
            joint = JointSignals(RATE, x, still + speed, still, load=still + 20.0, rotor=x)
            steady = term.steady(np.array([speed]), np.array([20.0]))[0]
            np.testing.assert_allclose(columns(term, joint)[-1], steady, rtol=1e-6)


def test_load_multiplies_the_shaped_hysteresis() -> None:
    joint = signals()
    assert joint.load is not None
    actual = columns(Hysteresis(LIMITS, load="square", shape=SHAPE), joint)
    np.testing.assert_allclose(actual[:, -1], joint.load**2 * (actual[:, :-1] @ np.array(SHAPE)), rtol=1e-12)


def test_ladders_are_what_they_say() -> None:
    np.testing.assert_allclose(Hysteresis.polynomial_limits(4, 2e-3), 2e-3 * (np.arange(1, 5) / 4.0) ** 4)
    ladder = np.array(Hysteresis.geometric_limits(7, 1e-5, 1e-2))
    np.testing.assert_allclose(ladder[1:] / ladder[:-1], 1000.0 ** (1.0 / 6.0))
    assert (ladder[0], ladder[-1]) == (pytest.approx(1e-5), pytest.approx(1e-2))


# -- the drive -------------------------------------------------------------------------------------------------------


def test_speed_ripple_is_shifted_by_its_step() -> None:
    joint = signals()
    assert joint.ripple is not None
    early, now, late = columns(SpeedRipple(2.0 / RATE), joint).T
    np.testing.assert_allclose(now, joint.ripple)
    np.testing.assert_allclose(early[2:], joint.ripple[:-2], atol=1e-15)
    np.testing.assert_allclose(late[:-2], joint.ripple[2:], atol=1e-15)


def test_ripple_beyond_the_known_one_is_cut_off() -> None:
    joint = signals()
    actual = columns(SpeedRipple(0.004, known=1e-3), joint)
    assert np.abs(actual).max() == pytest.approx(1e-3)


def test_a_wide_backlash_makes_hysteresis_turn_over_a_longer_way() -> None:
    backlash = (2.0, 1.0, 0.5, 1.0)
    start, travel = np.array([0.0, np.pi]), np.linspace(0.0, 1e-3, 50)  # loose at 0, tight at half a turn
    term = Hysteresis((1e-3,), backlash=backlash)
    zero = np.zeros(len(travel))
    loose, tight = (columns(term, JointSignals(RATE, x + travel, zero, zero))[-1, 0] for x in start)
    assert loose == pytest.approx(0.5, rel=1e-3)
    assert tight == pytest.approx(1.0, rel=1e-3)


def test_a_turn_later_the_backlash_is_the_same() -> None:
    term, zero = Hysteresis((5e-3,), backlash=(0.6, 1.4, 1.0)), np.zeros(200)
    x = 0.3 + 4e-3 * np.sin(np.linspace(0.0, 9.0, 200))
    here, there = (columns(term, JointSignals(RATE, x + 2 * np.pi * k, zero, zero)) for k in (0, -3))
    np.testing.assert_allclose(here, there, atol=1e-9)


def test_temperature_acts_on_the_root_of_speed_and_vanishes_at_its_reference() -> None:
    speed, zero = np.array([-4.0, 0.0, 9.0]), np.zeros(3)
    actual = [
        columns(Temperature(20.0), JointSignals(RATE, zero, speed, zero, temperature=zero + T)) for T in (20.0, 30.0)
    ]
    np.testing.assert_array_equal(actual[0], 0.0)
    np.testing.assert_allclose(actual[1][:, 0], [-20.0, 0.0, 30.0])
    np.testing.assert_allclose(actual[1][:, 1], np.array([-2.0, 0.0, 3.0]) * (30.0**-3 - 20.0**-3))
