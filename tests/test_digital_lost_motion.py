"""Laws of the lost motion: the gear lags by direction, by the way alone and without loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jointwise.control.controller import AffineControl
from jointwise.description import load_robot
from jointwise.simulation.robot import Backlash, DigitalRobot, LostMotion, Run, digital_robot, integrate
from jointwise.simulation.robot.joint import kinematic_error
from jointwise.spatial import Array
from kernels import needs_native

pytestmark = needs_native

FULL = digital_robot(load_robot("ur5e"))
HOME = np.array([-0.4, -1.2, 1.0, -1.0, -1.5, 0.3])
KP = np.array([4000.0, 4000.0, 3000.0, 300.0, 300.0, 200.0])
KD = np.array([150.0, 150.0, 100.0, 12.0, 10.0, 6.0])


def with_lost_motion(fraction: float, reach: float = np.pi / 100.0) -> DigitalRobot:
    lost = LostMotion(fraction, reach)
    return replace(FULL, joints=tuple(replace(joint, lost_motion=lost) for joint in FULL.joints))


def to_and_fro(digital: DigitalRobot, speed: float, travel: float, cycles: int = 1, **options: object) -> Run:
    """Return the first joint, whose axis is vertical, going forth and back over `way` (rad) at `speed` (rad/s)."""
    steps = round(travel / speed * 1000.0)
    ramp = np.concatenate([np.linspace(0.0, travel, steps), np.linspace(travel, 0.0, steps)])
    q = np.tile(HOME, (2 * steps * cycles, 1))
    q[:, 0] += np.tile(ramp, cycles)
    qd = np.gradient(q, 1e-3, axis=0)
    state = digital.rest(HOME)
    control = AffineControl(theta=q, speed=qd, torque=np.tile(state.load, (len(q), 1)), k_theta=KP, k_speed=KD)
    return integrate(digital, state, control, **options)  # type: ignore[arg-type]


def reciprocate(digital: DigitalRobot, substeps: int | None = None) -> Run:
    """Return the first joint going smoothly forth and back while the tool is pushed."""
    t = np.arange(2000)[:, None] / 1000.0
    turn, x = np.eye(6)[0], np.minimum(t / 0.3, 1.0)
    q, qd = HOME + 0.15 * (1.0 - np.cos(2.0 * np.pi * t)) * turn, 0.3 * np.pi * np.sin(2.0 * np.pi * t) * turn
    state, push = digital.rest(HOME), x**2 * (3.0 - 2.0 * x) * [40.0, 60.0, 0.0, 0.0, 0.0, 5.0]
    control = AffineControl(theta=q, speed=qd, torque=np.tile(state.load, (2000, 1)), k_theta=KP, k_speed=KD)
    return integrate(digital, state, control, wrench=push, substeps=substeps)


def play_along(theta: Array, reach: float) -> Array:
    """Return P along rotor positions (samples,), 0 at the first."""
    P = [0.0]
    for step in np.diff(theta):
        P.append(float(np.clip(P[-1] + step / reach, -1.0, 1.0)))
    return np.array(P)


@pytest.mark.parametrize("speed", [0.05, 0.4, 1.5])
def test_the_play_depends_on_the_way_and_not_on_the_speed(speed: float) -> None:
    run = to_and_fro(FULL, speed, 0.15, cycles=2)
    reach = FULL.joints[0].lost_motion.reach
    assert np.abs(run.play[:, 0] - play_along(run.theta[:, 0], reach)).max() < 1e-3
    assert run.play[:, 0].max() == 1.0
    assert run.play[:, 0].min() == -1.0


def test_midpoint_and_half_the_difference_are_error_and_lost_motion() -> None:
    run, joint = to_and_fro(FULL, 0.1, 0.8), FULL.joints[0]
    half = len(run.t) // 2
    inside = np.linspace(HOME[0] + 0.1, HOME[0] + 0.7, 400)  # further than 2 L from both ends
    phi = run.theta[:, 0] - run.q[:, 0]
    forth = np.interp(inside, run.theta[:half, 0], phi[:half])
    back = np.interp(inside, run.theta[:half:-1, 0], phi[:half:-1])
    d = joint.lost_motion.fraction * np.array([joint.backlash.at(angle) for angle in inside])
    assert np.abs((forth - back) / 2.0 - d).max() < 0.02 * d.mean()
    error = kinematic_error(joint.kinematic_error, inside)
    assert np.abs((forth + back) / 2.0 - error).max() < 0.05 * np.ptp(error)
    assert np.ptp(d) > 0.2 * d.mean()


def test_without_it_the_way_back_is_the_way_forth() -> None:
    digital = FULL.without("lost_motion")
    run = to_and_fro(digital, 0.1, 0.4)
    half = len(run.t) // 2
    inside, phi = np.linspace(HOME[0] + 0.1, HOME[0] + 0.3, 100), run.theta[:, 0] - run.q[:, 0]
    forth = np.interp(inside, run.theta[:half, 0], phi[:half])
    back = np.interp(inside, run.theta[:half:-1, 0], phi[:half:-1])
    assert np.abs(forth - back).max() < 1e-5
    assert (run.play == 0.0).all()
    none = to_and_fro(with_lost_motion(0.0, 1.0), 0.1, 0.4)
    assert (none.q == run.q).all()


def test_switches() -> None:
    joint = FULL.joints[1]
    assert joint.lost_motion.fraction == 0.3
    for name in ("lost_motion", "stiffness"):
        assert FULL.without(name).joints[1].lost_motion == LostMotion()
    flat = FULL.without("backlash").joints[1]
    assert flat.lost_motion == joint.lost_motion
    assert flat.backlash == Backlash((joint.backlash.mean,))
    assert FULL.without("hysteresis").joints[1].backlash == joint.backlash


@pytest.mark.parametrize(("fraction", "reach"), [(0.3, 0.0314), (3.0, 0.0314), (0.3, 0.01)])
def test_the_gear_stays_lossless(fraction: float, reach: float) -> None:
    """The balance closes under load, however much is lost: the ratio of torques is that of speeds."""
    run = reciprocate(with_lost_motion(fraction, reach))
    assert np.abs(run.load[:, 0]).max() > 10.0
    assert np.abs(run.energy.residual).max() <= 1e-6 * run.energy.moved


def test_it_converges_with_the_step() -> None:
    """Where in a step a flank is reached is chance, so single errors jump about; the worst of them fall."""
    digital = FULL.without("friction")
    runs = [reciprocate(digital, substeps=n) for n in (3, 4, 5, 24, 32, 40, 256)]
    errors = [float(np.abs(run.q - runs[-1].q).max()) for run in runs[:-1]]
    leaks = [float(np.abs(run.energy.residual).max()) for run in runs[:-1]]
    print("lost motion", errors, leaks)
    assert max(errors[:3]) < 1e-6
    assert max(errors[3:]) < 0.5 * max(errors[:3])
    assert max(leaks[3:]) < 0.05 * max(leaks[:3])


def test_at_rest_between_the_flanks_the_motor_holds_the_arm() -> None:
    digital = with_lost_motion(3.0)
    state = digital.rest(HOME)
    run = integrate(digital, state, np.tile(state.current * digital.gains, (500, 1)))
    assert np.abs(run.q - HOME).max() < 1e-9
