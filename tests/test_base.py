"""Base parameters: two independent ways to the same projection, and what it must do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import spatial
from jointwise.description import Joint, Link, Robot, list_robots, load_robot
from jointwise.errors import ShapeError
from jointwise.model.base import base_parameters, group_columns
from jointwise.model.rigid import compute_regressor, standard_names

MOUNTINGS = ("table", "tilt:x:45", "wall", "ceiling")


def random_states(robot, samples=40, seed=3):
    return np.random.default_rng(seed).uniform(-3, 3, (3, samples, robot.dof))


@pytest.mark.parametrize(
    ("name", "mounting", "rotors", "count"),
    [
        *((name, "table", False, 36) for name in ("ur3e", "ur5e", "ur10e", "ur16e", "ur5", "puma560")),
        ("ur5e", "tilt:x:45", False, 38),
        ("ur5e", "table", True, 40),
        ("ur10e", "table", True, 40),
        ("panda", "table", False, 43),
        ("panda", "table", True, 48),
        ("planar1", "table", False, 3),
        ("planar2", "table", False, 6),
        ("planar2", "wall", False, 4),
    ],
)
def test_counts_are_the_published_ones(name, mounting, rotors, count):
    for method in ("numerical", "closed_form"):
        assert base_parameters(load_robot(name), mounting, rotors, method).count == count


@pytest.mark.parametrize("rotors", [False, True])
@pytest.mark.parametrize("mounting", MOUNTINGS)
@pytest.mark.parametrize("name", list_robots())
def test_numerical_and_closed_form_are_the_same_projection(name, mounting, rotors):
    numerical = base_parameters(load_robot(name), mounting, rotors)
    closed = base_parameters(load_robot(name), mounting, rotors, "closed_form")
    assert numerical.formulas == closed.formulas
    np.testing.assert_allclose(numerical.projection, closed.projection, atol=1e-9)


def special_chain(kinds, quarter_turns, offsets, gravity_along):
    """A chain with axes at quarter turns: parallel, perpendicular and coincident ones, where special cases live."""
    joints = [
        Joint(f"j{k}", kind, spatial.rotation_x(turn * np.pi / 2), np.array(offset, dtype=float))
        for k, (kind, turn, offset) in enumerate(zip(kinds, quarter_turns, offsets, strict=True))
    ]
    links = [Link(f"l{k}", np.zeros(10)) for k in range(len(joints))]
    return Robot("special", tuple(joints), tuple(links)), 9.81 * np.eye(3)[gravity_along]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_special_cases_of_mixed_chains_agree(data):
    n = data.draw(st.integers(1, 5))
    robot, gravity = special_chain(
        data.draw(st.lists(st.sampled_from(["revolute", "prismatic"]), min_size=n, max_size=n)),
        data.draw(st.lists(st.sampled_from([0, 0, 1, 3, 0.35]), min_size=n, max_size=n)),
        data.draw(st.lists(st.tuples(*[st.sampled_from([0, 0.3, -0.7])] * 3), min_size=n, max_size=n)),
        data.draw(st.integers(0, 2)),
    )
    for rotors in (False, True):
        numerical = base_parameters(robot, gravity, rotors)
        closed = base_parameters(robot, gravity, rotors, "closed_form")
        assert numerical.formulas == closed.formulas


@pytest.mark.parametrize("name", ["ur5e", "panda", "planar2"])
def test_base_parameters_carry_all_of_the_torque(name):
    robot = load_robot(name)
    base = base_parameters(robot, rotors=True)
    q, qd, qdd = random_states(robot)
    Y = compute_regressor(robot, q, qd, qdd, rotors=True)
    pi = np.concatenate([robot.inertials.ravel(), np.arange(1.0, robot.dof + 1)])
    beta = base.from_standard(pi)
    np.testing.assert_allclose(Y.torque(base.to_standard(beta)), Y.torque(pi), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(Y.stacked() @ base.lift @ base.projection, Y.stacked(), atol=1e-9)


def test_projection_and_lift_are_inverse_on_the_base_space():
    base = base_parameters(load_robot("ur10e"))
    np.testing.assert_allclose(base.projection @ base.lift, np.eye(base.count), atol=1e-12)


def test_the_representative_nearest_to_a_prior_keeps_base_values_and_moves_least():
    robot = load_robot("ur5e")
    base = base_parameters(robot)
    prior = robot.inertials.ravel()
    np.testing.assert_allclose(base.to_standard(base.from_standard(prior), prior), prior, atol=1e-12)
    beta = base.from_standard(prior) * 1.1
    nearest = base.to_standard(beta, prior)
    np.testing.assert_allclose(base.from_standard(nearest), beta, atol=1e-12)
    assert np.linalg.norm(nearest - prior) < np.linalg.norm(base.to_standard(beta) - prior)


def test_textbook_regrouping_of_the_ur5e_shoulder():
    """Gautier-Khalil by hand: joints 2, 3, 4 parallel, a2 = -0.425 m; mass beyond joint 3 groups into link 2."""
    base = base_parameters(load_robot("ur5e"))
    a2 = 0.425**2
    row = dict(zip(base.standard_names, base.projection[base.names.index("ZZR2")], strict=True))
    assert row["ZZ2"] == 1.0
    for link in (3, 4, 5, 6):
        assert row[f"m{link}"] == pytest.approx(a2, rel=1e-9)
    assert "mXR2 = mX2 - 0.425 m3 - 0.425 m4 - 0.425 m5 - 0.425 m6" in base.formulas


def test_classification_of_the_planar_arm():
    kinds = base_parameters(load_robot("planar2")).classification
    alone = {name for name, kind in kinds.items() if kind == "alone"}
    assert alone == {"mY1", "ZZ2", "mX2", "mY2"}
    assert {name for name, kind in kinds.items() if kind == "combination"} == {"ZZ1", "mX1", "m2"}
    assert kinds["XX2"] == kinds["mZ2"] == kinds["m1"] == "none"


@pytest.mark.parametrize("name", ["ur5e", "panda"])
def test_classification_is_what_changing_one_parameter_does(name):
    """No effect: torques do not move. Alone: no change of the others can hide it. Combination: one can."""
    robot = load_robot(name)
    base = base_parameters(robot)
    W = compute_regressor(robot, *random_states(robot, 60)).stacked()
    for k, parameter in enumerate(base.standard_names):
        others = np.delete(W, k, axis=1)
        left = W[:, k] - others @ np.linalg.lstsq(others, W[:, k], rcond=1e-10)[0]
        size = np.linalg.norm(W[:, k])
        expected = "none" if size < 1e-9 else "alone" if np.linalg.norm(left) > 1e-6 * size else "combination"
        assert base.classification[parameter] == expected, parameter


def test_a_poor_motion_determines_less_than_the_structure():
    robot = load_robot("ur5e")
    q = np.zeros((200, 6))
    q[:, 5] = np.linspace(-2, 2, 200)
    W = compute_regressor(robot, q).stacked()
    poor = group_columns(W, standard_names(6))
    assert poor.count < 6 < base_parameters(robot).count
    assert poor.classification["ZZ2"] == "none"


def test_results_are_reproducible_and_scale_free():
    """Tolerance is relative to the data: a robot in millimetres has as many base parameters."""
    robot = load_robot("ur5e")
    joints = tuple(Joint(j.name, j.kind, j.rotation, j.translation * 1000.0) for j in robot.joints)
    large = Robot("mm", joints, robot.links)
    assert base_parameters(large, [0, 0, -9810.0]).names == base_parameters(robot).names
    first, second = (base_parameters(robot).projection for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_wrong_lengths_are_refused():
    base = base_parameters(load_robot("ur5e"))
    with pytest.raises(ShapeError, match="must have 60 entries on the last axis. Got 59"):
        base.from_standard(np.zeros(59))
    with pytest.raises(ShapeError, match=r"must have shape \(36,\). Got \(35,\)"):
        base.to_standard(np.zeros(35))


def test_no_effect_at_all_gives_an_empty_base():
    empty = group_columns(np.zeros((20, 3)), ("a", "b", "c"))
    assert empty.count == 0
    assert set(empty.classification.values()) == {"none"}
