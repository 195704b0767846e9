"""References: limits, derivatives up to snap, continuity, geometry, seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jointwise.description import Robot, list_robots, load_robot
from jointwise.design import (
    THESIS_POINTS,
    Differentiable,
    PathMotion,
    Succession,
    bang_coast_bang,
    bspline_trajectory,
    check_limits,
    derivative,
    ellipse_trajectory,
    fourier_trajectory,
    hold,
    joint_moves,
    succession,
    thesis_waypoints,
    waypoint_trajectory,
)
from jointwise.design.limits import motion_limits
from jointwise.design.piecewise import Ramp
from jointwise.errors import JointwiseError, ModelError
from jointwise.model.inverse_kinematics import ReachError
from jointwise.model.rigid import forward_kinematics, jacobian
from jointwise.spatial import Array
from synthetic.point_to_point import point_to_point_trajectory

UR5 = load_robot("ur5")
READY = np.array([np.pi, -1.6, 1.6, -1.6, -1.57, 0.0])


def smooth_waypoints(robot: Robot) -> Differentiable:
    return thesis_waypoints(robot, ramp="smooth")


def smooth_bangs(robot: Robot) -> Differentiable:
    return bang_coast_bang(robot, 20.0, 3, ramp="smooth")


def ellipse(robot: Robot) -> Differentiable:
    return ellipse_trajectory(robot, 8.0, home=READY)


def bspline(robot: Robot) -> Differentiable:
    return bspline_trajectory(robot, 12.0, 1)


SMOOTH = [smooth_waypoints, smooth_bangs, bspline, ellipse]


@pytest.mark.parametrize("make", SMOOTH)
def test_every_order_is_the_derivative_of_the_one_below(make: Callable[[Robot], Differentiable]) -> None:
    motion = make(UR5)
    assert motion.smooth
    h = 1e-5
    t = np.random.default_rng(0).uniform(2 * h, motion.duration - 2 * h, 400)
    for order in range(1, 5):
        values = motion.derivative(t, order)
        slope = (motion.derivative(t + h, order - 1) - motion.derivative(t - h, order - 1)) / (2 * h)
        np.testing.assert_allclose(slope, values, atol=1e-4 * max(1.0, np.abs(values).max()), rtol=0.0)


@pytest.mark.parametrize("make", SMOOTH)
def test_smooth_motions_have_no_jump_up_to_snap_and_rest_at_the_ends(make: Callable[[Robot], Differentiable]) -> None:
    motion = make(UR5)
    t = np.arange(0.0, motion.duration, 1e-4)
    for order in range(5):
        values = motion.derivative(t, order)
        assert np.abs(np.diff(values, axis=0)).max() < 2e-2 * max(1.0, np.abs(values).max()), order
    ends = np.array([-1.0, 0.0, motion.duration, motion.duration + 1.0])
    for order in range(1, 4):
        assert np.abs(motion.derivative(ends, order)).max() < 1e-9
    np.testing.assert_array_equal(motion.position(ends[:1]), motion.position(ends[1:2]))


@pytest.mark.parametrize("ramp", ["constant", "smooth"])
def test_moves_are_synchronised_and_as_fast_as_the_limits_allow(ramp: Ramp) -> None:
    rng = np.random.default_rng(1)
    points, velocity, acceleration = rng.normal(size=(6, 4)), rng.uniform(0.5, 2, 4), rng.uniform(1, 6, 4)
    motion = joint_moves(points, velocity, acceleration, waits=0.3, ramp=ramp)
    states = motion.sample(2000.0)
    fastest, strongest = np.abs(states.qd) / velocity, np.abs(states.qdd) / acceleration
    assert fastest.max() <= 1.0 + 1e-12 and strongest.max() <= 1.0 + 1e-12
    assert max(fastest.max(), strongest.max()) > 0.99
    moving = np.abs(states.qd)
    assert moving[moving.max(axis=1) > 1e-3].min() > 1e-9, "all joints move or none"
    for point in points:
        assert np.abs(states.q - point).max(axis=1).min() < 1e-12


@pytest.mark.parametrize("name", list_robots())
@pytest.mark.parametrize("make", [bang_coast_bang, bspline_trajectory])
def test_random_motions_keep_the_limits(name: str, make: Callable[..., Differentiable]) -> None:
    robot = load_robot(name)
    limits = motion_limits(robot, 1.0, margin=0.0)
    for seed in range(3):
        states = make(robot, 25.0, seed).sample(500.0)
        assert ((states.q >= limits.lower) & (states.q <= limits.upper)).all()
        assert (np.abs(states.qd) <= limits.velocity * (1 + 1e-12)).all()
        assert (np.abs(states.qdd) <= limits.acceleration * (1 + 1e-12)).all()
        assert np.ptp(states.q, axis=0).min() > 0.2


@pytest.mark.parametrize("make", [bang_coast_bang, bspline_trajectory])
def test_a_seed_decides_everything(make: Callable[..., Differentiable]) -> None:
    first, again, other = (make(UR5, 20.0, seed).sample(100.0).q for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_bang_coast_bang_uses_30_to_100_percent_and_waits_up_to_a_second() -> None:
    motion = bang_coast_bang(UR5, 200.0, 1, joint=0)
    states = motion.sample(1000.0)
    assert np.ptp(states.q[:, 1:], axis=0).max() == 0.0
    peaks = np.abs(states.qdd[:, 0])
    assert np.unique(peaks[peaks > 0].round(6)).min() >= 0.3 * 6.0
    coefficients = motion.coefficients[:-1].reshape(motion.coefficients.shape[0] - 1, -1, 6)
    waits = np.diff(motion.breaks)[~coefficients.any(axis=(0, 2))][:-1]
    assert len(waits) > 30 and waits.max() <= 1.0 and np.ptp(waits) > 0.7


def test_the_waypoints_of_the_thesis() -> None:
    motion = thesis_waypoints(UR5)
    assert motion.duration == pytest.approx(13.458, abs=1e-9)
    states = motion.sample(1000.0)
    assert np.abs(states.qd).max() <= np.pi and np.abs(states.qdd).max() <= 2 * np.pi / 3 + 1e-12
    stops = states.q[np.abs(states.qd).max(axis=1) < 1e-9]
    for point in THESIS_POINTS:
        assert np.abs(stops - point).max(axis=1).min() < 1e-9
    assert thesis_waypoints(UR5, 60.0).duration == pytest.approx(4 * 13.458, abs=1e-9)


def test_the_ellipse_lies_at_its_height_closes_and_takes_two_seconds() -> None:
    motion = ellipse_trajectory(UR5, 10.0)
    assert isinstance(motion, PathMotion)
    t = np.random.default_rng(0).uniform(0.0, 10.0, 2000)
    rotation, position = forward_kinematics(UR5, motion.position(t)).tool
    assert np.abs(position[:, 2] - 0.65).max() < 1e-9
    assert np.abs(rotation - np.diag([1.0, -1.0, -1.0])).max() < 1e-9
    x, y = (position[:, :2] - [0.4, 0.0]).T
    assert np.abs((x / 0.1) ** 2 + (y / 0.15) ** 2 - 1.0).max() < 1e-8
    steady = np.linspace(2.0, 6.0, 301)
    np.testing.assert_allclose(motion.position(steady + 2.0), motion.position(steady), atol=1e-10)
    assert np.abs(motion.position(steady + 1.0) - motion.position(steady)).max() > 0.1


def test_the_joint_speeds_of_the_ellipse_move_the_tool_as_planned() -> None:
    motion = ellipse_trajectory(UR5, 10.0)
    assert isinstance(motion, PathMotion)
    states = motion.sample(100.0)
    sigma, speed = (motion.law.derivative(states.t, order)[:, 0] for order in (0, 1))
    planned = np.zeros((len(sigma), 6))
    planned[:, 0], planned[:, 1] = -0.1 * np.sin(sigma) * speed, 0.15 * np.cos(sigma) * speed
    np.testing.assert_allclose(np.einsum("sij,sj->si", jacobian(UR5, states.q), states.qd), planned, atol=1e-9)


@pytest.mark.parametrize("name", ["ur3e", "ur5e", "ur10e", "ur16e", "puma560", "panda"])
def test_every_arm_draws_its_ellipse(name: str) -> None:
    robot = load_robot(name)
    motion = ellipse_trajectory(robot, 6.0)
    check_limits(robot, motion)
    z = forward_kinematics(robot, motion.sample(50.0).q).tool[1][:, 2]
    assert np.ptp(z) < 1e-9


def test_from_home_the_arm_approaches_smoothly() -> None:
    motion = ellipse_trajectory(UR5, 10.0, home=READY)
    assert isinstance(motion, Succession)
    np.testing.assert_allclose(motion.position(np.zeros(1))[0], READY, atol=1e-12)
    assert motion.duration == pytest.approx(10.0)
    assert np.abs(motion.derivative(motion.starts, 1)).max() < 1e-9


def test_the_fourier_series_has_jerk_and_snap() -> None:
    motion, h = fourier_trajectory(UR5, 12.0, 1), 1e-5
    t = np.random.default_rng(0).uniform(0.01, 11.99, 300)
    t = t[(np.abs(t - 2.0) > 0.01) & (np.abs(t - 10.0) > 0.01)]
    np.testing.assert_allclose(derivative(motion, t, 2), motion.at(t).qdd, atol=1e-11)
    for order in (0, 1, 2, 3):
        slope = (derivative(motion, t + h, order) - derivative(motion, t - h, order)) / (2 * h)
        np.testing.assert_allclose(slope, derivative(motion, t, order + 1), atol=1e-5)
    with pytest.raises(ModelError, match="order 3"):
        derivative(point_to_point_trajectory(UR5, 20.0), t, 3)


def test_motions_in_a_row_must_meet() -> None:
    zero, one = hold(np.zeros(2), 1.0), hold(np.ones(2), 1.0)
    assert succession([zero, zero]).duration == 2.0
    with pytest.raises(ModelError, match="motion 2 must begin where motion 1 stops"):
        succession([zero, one])


def far_ellipse() -> object:
    return ellipse_trajectory(UR5, center=[0.8, 0.0, 0.65])


def fast_ellipse() -> object:
    return ellipse_trajectory(UR5, period=0.5)


@pytest.mark.parametrize(
    ("call", "kind", "word"),
    [
        (far_ellipse, ReachError, r"the point at .* cannot be reached"),
        (fast_ellipse, ModelError, "the speed of joint"),
        (lambda: ellipse_trajectory(UR5, axes=[0.1, -0.1]), ModelError, "axes"),
        (lambda: waypoint_trajectory(UR5, [np.zeros(6), np.full(6, 7.0)]), ModelError, "the position of joint 3"),
        (lambda: waypoint_trajectory(UR5, [np.zeros(6), np.full(6, -7.0)]), ModelError, "at least -3.142 rad. .* -7,"),
        (lambda: thesis_waypoints(load_robot("panda")), JointwiseError, "shape"),
        (lambda: thesis_waypoints(UR5, 5.0), ModelError, "13.46 s"),
        (lambda: bang_coast_bang(UR5, 0.1), ModelError, "first move"),
        (lambda: bspline_trajectory(UR5, -1.0), ModelError, "duration"),
        (lambda: bspline_trajectory(UR5, joint=6), ModelError, "joint must be 0 to 5"),
        (lambda: hold(np.zeros(2), 1.0).derivative(np.zeros(1), 5), ModelError, "order"),
    ],
)
def test_impossible_motions_are_refused_in_one_line(
    call: Callable[[], object], kind: type[JointwiseError], word: str
) -> None:
    with pytest.raises(kind, match=word) as problem:
        call()
    assert "\n" not in str(problem.value)


def test_arrays_of_one_motion_are_its_own() -> None:
    t: Array = np.array([0.5, 0.1, 99.0])
    np.testing.assert_array_equal(bspline_trajectory(UR5, 12.0).at(t).t, t)
