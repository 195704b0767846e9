"""Planned motions: derivatives, limits, rest at the ends, reproducible by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jointwise.description import Robot, list_robots, load_robot
from jointwise.design import (
    Trajectory,
    fourier_trajectory,
)
from jointwise.design.limits import motion_limits
from jointwise.errors import JointwiseError
from synthetic.point_to_point import point_to_point_trajectory

Maker = Callable[[Robot, float, int], Trajectory]


MAKERS: list[Maker] = [fourier_trajectory, point_to_point_trajectory]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", list_robots())
def test_limits_are_kept_and_motions_go_from_rest_to_rest(make: Maker, name: str) -> None:
    robot = load_robot(name)
    limits = motion_limits(robot, 1.0, margin=0.0)
    for seed in range(4):
        motion = make(robot, 25.0, seed)
        states = motion.sample(500.0)
        assert ((states.q >= limits.lower) & (states.q <= limits.upper)).all()
        assert (np.abs(states.qd) <= limits.velocity).all()
        assert (np.abs(states.qdd) <= limits.acceleration).all()
        assert np.ptp(states.q, axis=0).max() > 0.2
        ends = motion.at(np.array([-1.0, 0.0, 25.0, 30.0]))
        assert not ends.qd.any() and not ends.qdd.any()


@pytest.mark.parametrize("make", MAKERS)
def test_speed_and_acceleration_are_the_derivatives_of_position(make: Maker) -> None:
    motion = make(load_robot("ur5e"), 12.0, 1)
    t, h = np.random.default_rng(0).uniform(0.0, 12.0, 500), 1e-6
    now, before, after = motion.at(t), motion.at(t - h), motion.at(t + h)
    np.testing.assert_allclose((after.q - before.q) / (2 * h), now.qd, atol=1e-8)
    np.testing.assert_allclose((after.qd - before.qd) / (2 * h), now.qdd, atol=1e-4)
    np.testing.assert_array_equal(motion.position(t), now.q)


@pytest.mark.parametrize("make", [fourier_trajectory, point_to_point_trajectory])
def test_a_seed_decides_everything(make: Maker) -> None:
    robot = load_robot("panda")
    first, again, other = (make(robot, 10.0, seed).sample(100.0) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.qdd, again.qdd)
    assert np.abs(first.q - other.q).max() > 0.1


def test_a_fourier_series_uses_the_speed_it_is_given() -> None:
    robot = load_robot("ur5e")
    for fraction in (0.2, 0.5):
        peak = np.abs(fourier_trajectory(robot, 40.0, speed_fraction=fraction).sample(500.0).qd).max(axis=0)
        assert (peak <= fraction * np.pi).all() and (peak > 0.95 * fraction * np.pi).all()


def test_moves_stand_still_between_points() -> None:
    motion = point_to_point_trajectory(load_robot("ur5e"), 60.0, pauses=(1.0, 2.0))
    gaps = motion.starts[1:] - (motion.starts + motion.lengths)[:-1]
    assert len(gaps) > 5 and (gaps >= 1.0).all() and (gaps <= 2.0).all()
    middle = motion.at(motion.starts[1:] - 0.5 * gaps)
    assert not middle.qd.any() and not middle.qdd.any()
    np.testing.assert_allclose(middle.q, motion.points[1:-1], atol=1e-12)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda robot: fourier_trajectory(robot, 0.0), "duration"),
        (lambda robot: fourier_trajectory(robot, 10.0, harmonics=0), "harmonics"),
        (lambda robot: point_to_point_trajectory(robot, 0.2), "duration"),
        (lambda robot: point_to_point_trajectory(robot, 20.0, pauses=(2.0, 1.0)), "pauses"),
    ],
)
def test_wrong_settings_are_refused(call: Callable[[Robot], Trajectory], word: str) -> None:
    with pytest.raises(JointwiseError, match=word):
        call(load_robot("ur5e"))
