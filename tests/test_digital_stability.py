"""How small a step must be: found, or refused with the joint that asks too much."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from jointwise.description import Joint, Limits, load_robot
from jointwise.errors import ModelError
from jointwise.model.rigid import mass_matrix
from jointwise.simulation.robot import Cubic, DigitalRobot, Rigid, digital_robot, integrate
from jointwise.simulation.robot.stability import SHORTER, SMALLEST_STEP, STROKE, pose_range
from kernels import needs_native

ARM = digital_robot(load_robot("ur5e"))
LINEAR = 1e4


def with_rotor(inertia: float, joint: int = 3) -> DigitalRobot:
    joints = list(ARM.joints)
    joints[joint] = replace(joints[joint], inertia=inertia)
    return replace(ARM, joints=tuple(joints))


def one_joint(inertia: float) -> tuple[DigitalRobot, float]:
    """Return a joint without losses on a linear spring, and its frequency √(k (1/B + 1/M)) in rad/s."""
    arm = digital_robot(load_robot("planar1")).without("friction", "damping")
    joint = replace(arm.joints[0], inertia=inertia, stiffness=Cubic(LINEAR))
    M = float(mass_matrix(arm.robot, np.zeros((1, 1)))[0, 0, 0])
    return replace(arm, joints=(joint,)), float(np.sqrt(LINEAR * (1.0 / inertia + 1.0 / M)))


@pytest.mark.parametrize("inertia", [1e-3, 1e-5, 1e-7])
def test_the_step_follows_the_fastest_swing(inertia: float) -> None:
    """The method is stable up to ω h of 2.6."""
    arm, omega = one_joint(inertia)
    assert 2.6 * SHORTER <= omega * arm.largest_step <= 2.6


@pytest.mark.parametrize("inertia", [1e-12, 1e-200, 1e-310])
def test_a_joint_too_fast_to_integrate_is_refused_by_name(inertia: float) -> None:
    with pytest.raises(ModelError, match=f"'{ARM.robot.joints[3].name}' is too fast"):
        _ = with_rotor(inertia).largest_step


def test_the_error_names_the_frequency() -> None:
    arm, omega = one_joint(1e-10)
    with pytest.raises(ModelError) as caught:
        _ = arm.largest_step
    reported = re.search(r"moves at (\S+) Hz", str(caught.value))
    assert reported is not None
    assert float(reported.group(1)) == pytest.approx(omega / (2.0 * np.pi), rel=1e-2)


@needs_native
def test_a_light_rotor_is_not_taken_for_high_gains() -> None:
    arm = with_rotor(1e-12)
    start, torque = arm.rest(np.zeros(6)), np.zeros((3, 6))
    with pytest.raises(ModelError, match="too fast"):
        integrate(arm, start, torque)
    rigid = tuple(replace(joint, stiffness=Rigid()) for joint in arm.joints)
    integrate(replace(arm, joints=rigid), start, torque)


@needs_native
def test_steps_of_the_users_own_are_taken_as_they_are() -> None:
    arm, omega = one_joint(1e-9)
    assert omega * SMALLEST_STEP > 2.6
    run = integrate(arm, arm.rest(np.zeros(1)), np.zeros((1, 1)), substeps=2000)
    assert np.isfinite(run.final.values).all()


@pytest.mark.parametrize(
    ("kind", "limits", "expected"),
    [
        ("revolute", Limits(), (-np.pi, np.pi)),
        ("revolute", Limits(-6.3, 6.3), (-np.pi, np.pi)),
        ("revolute", Limits(0.5, 2.0), (0.5, 2.0)),
        ("prismatic", Limits(), (-STROKE / 2.0, STROKE / 2.0)),
        ("prismatic", Limits(0.1, 0.4), (0.1, 0.4)),
        ("prismatic", Limits(-20.0, 20.0), (-20.0, 20.0)),
        ("prismatic", Limits(lower=3.0), (3.0, 3.0 + STROKE)),
        ("prismatic", Limits(upper=-3.0), (-3.0 - STROKE, -3.0)),
    ],
)
def test_poses_are_tried_where_the_joint_can_go(kind, limits: Limits, expected: tuple[float, float]) -> None:  # type: ignore[no-untyped-def]
    joint = Joint("j", kind, np.eye(3), np.zeros(3), limits=limits)
    assert pose_range(joint) == pytest.approx(expected)
