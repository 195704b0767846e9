"""Joint torque feedback: less error with changed friction and stiffness, the same law without loops, wrong settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise as jw
from jointwise.control import JointDrive, computed_torque, friction_torques, torque_feedback
from jointwise.control.controller import ControlSample
from jointwise.control.links import Links, make_task
from jointwise.description import Joint, Limits, Link, Motor, Robot
from jointwise.errors import ModelError, ShapeError
from jointwise.experiment.closed_loop import drives_of, run_loop
from jointwise.simulation.robot import Run, digital_robot
from jointwise.spatial import Array

RATE = 1000.0
ONE_LINK = Robot(
    "pendulum",
    (
        Joint("turn", "revolute", np.eye(3), np.zeros(3), limits=Limits(effort=150.0), motor=Motor(gear_ratio=100.0)),
    ),
    (Link.from_center("bar", 4.0, np.array([0.4, 0.0, 0.0]), 0.1 * np.eye(3)),),
)  # fmt: skip


class Swing:
    """A sine of a single joint that starts at rest."""

    duration = 1.5

    def __call__(self, t: Array, order: int = 0) -> Array:
        """Return positions or their derivatives (samples, 1)."""
        w = 2.0 * np.pi / 1.5
        phase = w * np.asarray(t)[:, None] + 0.5 * np.pi * (order - 1)  # starts at rest
        return 0.5 * w**order * np.sin(phase) + (0.0 if order else 0.3)


def runs(**options: object) -> tuple[Run, Run, Array]:
    """Return an aged joint under feed-forward alone and under torque feedback, and the reference."""
    new = digital_robot(ONE_LINK).without("temperature", "asymmetry")
    aged, drives, motion = new.aged(friction=0.5, stiffness=-0.2), drives_of(new), Swing()
    task = make_task(ONE_LINK, motion, RATE, drives)
    friction = friction_torques(drives, task.ahead.qd)
    alone = computed_torque(ONE_LINK, motion, RATE, drives=drives, friction=friction)
    fed_back = torque_feedback(ONE_LINK, motion, RATE, drives=drives, **options)  # type: ignore[arg-type]
    start = aged.rest(task.reference.q[0])
    found = [run_loop(aged, start, controller, check=False) for controller in (alone, fed_back)]
    return found[0], found[1], task.reference.q


def error(run: Run, q: Array) -> float:
    return float(np.sqrt(np.mean(np.square(run.q - q))))


def test_changed_friction_is_compensated() -> None:
    alone, fed_back, q = runs()
    assert error(fed_back, q) < 0.5 * error(alone, q)


def test_without_loops_it_is_computed_torque() -> None:
    alone, same, _ = runs(torque_gain=0.0, friction_bandwidth=None)
    np.testing.assert_allclose(same.q, alone.q, atol=1e-9)


def sample(torque_state: float = 0.0) -> ControlSample:
    one = np.array([0.1])
    return ControlSample(0.3 + one, 0.0 * one, 0.301 + one, 0.0 * one, one, 20.0 + one, time=0.0)


def test_the_sides_are_those_of_the_equations() -> None:
    """At rest: gravity from the links, the spring from the deflection, the command from the motor side."""
    drive = JointDrive(inertia=2.0, spring=jw.control.Cubic(1e4), damping=3.0, forward=5.0, backward=5.0, limit=100.0)
    made = torque_feedback(ONE_LINK, Swing(), RATE, drives=[drive], variances=np.array([[1.0, 4.0, 4.0]]))
    state = made.init(sample())
    measured = made.transmission(state, sample(), np.zeros(1), np.zeros(1))
    gravity = Links.of(ONE_LINK).weight(sample().q[None])[0, 0]
    friction = made.friction[0, 0]
    np.testing.assert_allclose(measured.sides, [[gravity, 10.0, gravity - friction]])
    assert measured.fused[0] == pytest.approx((gravity + 2.5 + (gravity - friction) / 4.0) / 1.5)
    assert measured.without_motor[0] == pytest.approx((gravity + 2.5) / 1.25)


def test_a_rigid_drive_has_no_deflection_side() -> None:
    made = torque_feedback(ONE_LINK, Swing(), RATE, drives=[JointDrive(inertia=2.0, limit=50.0)])
    torque, state = made.step(made.init(sample()), sample())
    assert np.isfinite(torque).all() and np.abs(torque).max() <= 50.0
    measured = made.transmission(state, sample(), np.zeros(1), np.zeros(1))
    assert np.isnan(measured.sides[0, 1]) and np.isfinite(measured.fused).all()


def test_friction_by_side_moves_between_the_estimates() -> None:
    drive = JointDrive(inertia=2.0, spring=jw.control.Cubic(1e4), forward=5.0, backward=5.0)
    friction = np.full((1500, 1), 4.0)
    made = torque_feedback(ONE_LINK, Swing(), RATE, drives=[drive], friction=friction, link_share=0.25)
    rotor = replace(made, link_share=0.0)
    state = made.init(sample())
    a, b = (each.transmission(state, sample(), np.zeros(1), np.zeros(1)).sides[0] for each in (made, rotor))
    np.testing.assert_allclose(a - b, [1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"torque_gain": -1.0}, "torque_gain must be"),
        ({"torque_gain": np.nan}, "torque_gain must be"),
        ({"link_share": 2.0}, "link_share must be"),
        ({"friction_bandwidth": 0.0}, "bandwidth must be"),
        ({"variances": np.ones((2, 3))}, "variances must be"),
        ({"variances": np.zeros((1, 3))}, "variances must be"),
    ],
)
def test_settings_out_of_range_are_rejected(options: dict[str, object], message: str) -> None:
    with pytest.raises((ModelError, ShapeError), match=message):
        torque_feedback(ONE_LINK, Swing(), RATE, drives=[JointDrive(inertia=1.0)], **options)  # type: ignore[arg-type]
