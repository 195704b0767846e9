"""Laws of the slip elements as the integrator uses them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jointwise.joint.laws import FrictionLaw, JointMotion
from jointwise.model.terms import Hysteresis, JointSignals, slip_elements, slip_state
from jointwise.simulation.robot import Backlash, Friction, JointPlant, Slip, Stribeck, ThermalFriction
from jointwise.spatial import Array
from kernels import native, needs_native
from plant_laws import follow_path, steady_friction
from robots import law

pytestmark = [needs_native, pytest.mark.compat]

FRICTION = Friction(coulomb=1.0, slip=Slip.polynomial(4))
PLAIN = JointPlant(1.0, friction=FRICTION)
WAVY = JointPlant(1.0, friction=FRICTION, backlash=Backlash.wavy(1e-3, 0.6))

paths = st.lists(st.floats(-5e-3, 5e-3), min_size=2, max_size=30).map(np.array)


def through(turning_points: Array, steps: int) -> Array:
    """Return straight ways between the points, `steps` samples each, passing through every point."""
    parts = [np.linspace(a, b, steps + 1)[1:] for a, b in itertools.pairwise(turning_points)]
    return np.concatenate([turning_points[:1], *parts])


@law(100)
@given(paths, st.integers(1, 7))
def test_rate_independent(points: Array, steps: int) -> None:
    coarse, fine = follow_path(PLAIN, points).H, follow_path(PLAIN, through(points, steps)).H
    assert np.allclose(coarse, fine[::steps], atol=1e-11)


@law(100)
@given(paths, st.integers(2, 7))
def test_the_work_does_not_depend_on_the_steps(points: Array, steps: int) -> None:
    fine_path = through(points, steps)
    coarse = (follow_path(PLAIN, points).mean[1:] * np.diff(points)).sum()
    fine = (follow_path(PLAIN, fine_path).mean[1:] * np.diff(fine_path)).sum()
    assert coarse == pytest.approx(fine, abs=1e-15)


@law(100)
@given(paths)
@example(np.array([0.00390625, 1e-15, 0.0]))  # a move that is tiny beside the limit
def test_never_beyond_one(points: Array) -> None:
    for joint in (PLAIN, WAVY):
        run = follow_path(joint, through(points, 5))
        assert np.abs(run.H).max() <= 1.0 + 1e-12
        assert np.abs(run.mean).max() <= 1.0 + 1e-9


@law(50)
@given(st.floats(-3e-3, 3e-3), st.floats(-3e-3, 3e-3))
def test_loops_close(low: float, high: float) -> None:
    cycles = np.array([0.0, *([low, high] * 3)])
    H = follow_path(PLAIN, through(cycles, 20)).H
    assert np.allclose(H[-40:], H[-80:-40], atol=1e-10)


def test_non_local_memory() -> None:
    """An inner loop is forgotten when it closes: the way goes on as if it had never been."""
    outer = np.array([0.0, 2e-3, -2e-3, 3e-4, 1.5e-3])
    detour = np.array([0.0, 2e-3, -2e-3, 3e-4, -2e-4, 3e-4, 1.5e-3])
    assert np.allclose(follow_path(PLAIN, outer).H[-2:], follow_path(PLAIN, detour).H[-2:], atol=1e-12)
    same_place = follow_path(PLAIN, np.array([0.0, 2e-3, 3e-4])).H[-1]
    assert abs(same_place - follow_path(PLAIN, outer).H[3]) > 0.1


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_one_in_slip_whatever_the_backlash(direction: float) -> None:
    theta = direction * np.linspace(0.0, 12.0, 24001)
    for joint in (PLAIN, WAVY):
        run = follow_path(joint, theta)
        assert np.abs(run.H[100:] - direction).max() < 1e-12
        assert np.abs(run.mean[100:] - direction).max() < 1e-6  # B(θ) grows within a step


def test_asymmetric_in_slip() -> None:
    joint = JointPlant(1.0, friction=Friction(coulomb=1.0, asymmetry=0.2))
    run = follow_path(joint, np.array([0.0, 0.1, 0.2, 0.1, 0.0]))
    assert np.allclose(run.H[2:], [1.2, -0.8, -0.8], atol=1e-12)


@law(100)
@given(paths, st.floats(-0.5, 0.5))
def test_passive(points: Array, asymmetry: float) -> None:
    """Work less the energy of the elements never falls."""
    joint = JointPlant(1.0, friction=Friction(coulomb=1.0, asymmetry=asymmetry))
    theta, state, lost = through(points, 3), np.zeros(4), [0.0]
    limits, shares = 1e-3 * np.array(FRICTION.slip.limits), np.array(FRICTION.slip.shares)

    def held(x: Array) -> float:
        return float((0.5 * shares * x**2 / limits * (1.0 + asymmetry * np.sign(x))).sum())

    for a, b in itertools.pairwise(theta):
        run = follow_path(joint, np.array([a, b]), state)
        lost.append(lost[-1] + run.mean[1] * (b - a) - (held(run.deformation) - held(state)))
        state = run.deformation
    assert np.diff(lost).min(initial=0.0) >= -1e-16


@law(50)
@given(paths, st.floats(0.0, 0.6), st.floats(0.0, 6.0), st.floats(-3.0, 3.0))
def test_plant_identified_law_and_calibration_term_agree_on_a_map_that_varies(
    points: Array, variation: float, phase: float, start: float
) -> None:
    """The plant in C, `slip_elements`, an identified law and the calibration term are one law where b(θ) varies."""
    joint = JointPlant(1.0, friction=FRICTION, backlash=Backlash.wavy(1e-3, variation, phase))
    path, mean = start + through(400.0 * points, 40), joint.backlash.mean  # up to two rad: the map varies by far
    limits, shares = mean * np.array(FRICTION.slip.limits), np.array(FRICTION.slip.shares)
    relative = tuple((np.array(joint.backlash.values) / mean).tolist())
    plant = follow_path(joint, path).H
    law = slip_elements(path, limits, slip_state(path[0], 4), backlash=joint.backlash.at(path) / mean)[0]
    still = np.zeros_like(path)
    term, _ = Hysteresis(tuple(limits.tolist()), backlash=relative).columns(JointSignals(500.0, path, still, still))
    identified = FrictionLaw("nlr", limits, shares, backlash=np.array(joint.backlash.values))
    torque = identified.torque(JointMotion(path, still, still, 2e-3))
    for other in (law @ shares, torque, term @ shares):
        np.testing.assert_allclose(other, plant, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("exponent", [0.7, 1.0, 2.0])
def test_native_steady_laws_equal_their_numpy_reference(exponent: float) -> None:
    rng = np.random.default_rng(0)
    speed, load, T = rng.uniform(-3.0, 3.0, 500), rng.uniform(-100.0, 100.0, 500), rng.uniform(-20.0, 90.0, 500)
    friction = Friction(
        coulomb=8.0, load=1e-3, viscous=9.0, square=-1.5, cube=0.2, stribeck=Stribeck(3.0, 0.2, exponent),
        thermal=ThermalFriction(-0.1, 2e4),
    )  # fmt: skip
    level, factor = steady_friction(JointPlant(1.0, friction=friction), speed, load, T)
    np.testing.assert_allclose(friction.level(speed, load, T), level, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(friction.viscous_factor(speed), factor, rtol=1e-12, atol=1e-12)
    assert (level == 0.0).any() and level.max() > 20.0  # the level is limited to zero from below


def test_an_angle_that_is_no_number_has_no_backlash() -> None:
    """Called directly, the kernel takes it as no place in the map: what follows from it is no number either."""
    theta, out = np.array([0.0, np.nan, 0.0]), np.zeros((3, 2))
    native.hysteresis(np.array(WAVY.law.packed(1.0)), theta, np.zeros(4), out)
    assert np.isfinite(out[0]).all()
    assert np.isnan(out[1:]).all()
