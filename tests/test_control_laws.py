"""Laws of the controllers: what each must do exactly when its model is that of the arm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from jointwise.control import (
    AffineController,
    ControlSample,
    Cubic,
    Gains,
    JointDrive,
    Links,
    Reference,
    Tolerances,
    as_reference,
    bandwidth_gains,
    computed_torque,
    drive_motion,
    effective_inertias,
    flexible_feedforward,
    friction_torques,
    joint_system,
    lqr,
    lqr_gain,
    part_of,
    pd_gravity,
    pid,
    torque_rates,
)
from jointwise.control.lqr import decentralised_motion, sampled_cost
from jointwise.description import Payload, load_robot
from jointwise.design import Differentiable, bspline_trajectory, hold, joint_moves
from jointwise.errors import ModelError, ShapeError
from jointwise.experiment.closed_loop import drives_of, run_loop
from jointwise.model.rigid import inverse_dynamics, mass_matrix
from jointwise.model.rigid.chain import make_chain
from jointwise.simulation.robot import PHENOMENA, digital_robot, integrate
from jointwise.spatial import Array
from kernels import needs_native
from robots import random_robot

ROBOT = load_robot("ur5e")
FULL = digital_robot(ROBOT)
RIGID = FULL.without(*PHENOMENA)
SPRUNG = FULL.without(*(name for name in PHENOMENA if name != "stiffness"))
HOME = np.array([0.2, -1.2, 1.0, -1.0, -1.5, 0.3])
AWAY = HOME + np.array([0.5, -0.3, 0.4, 0.5, -0.6, 0.7])


def move(seconds: float = 1.0) -> Differentiable:
    """Return one smooth move of all joints with about the requested duration."""
    speed = 2.0 * np.abs(AWAY - HOME).max() / seconds
    return joint_moves(np.stack([HOME, AWAY]), np.full(6, speed), np.full(6, 8.0 * speed / seconds), ramp="smooth")


def at_rest(q: Array, seconds: float, rate: float = 1000.0) -> Reference:
    rows = np.repeat(q[None], round(seconds * rate), axis=0)
    zero = np.zeros_like(rows)
    return Reference(rate, rows, zero, zero, zero, zero)


# -- PD with gravity ---------------------------------------------------------------------------------------------


@needs_native
@pytest.mark.parametrize("payload", [None, Payload(2.0, [0.0, 0.02, 0.05])])
@pytest.mark.parametrize("side", ["motor", "link"])
def test_pd_with_gravity_holds_a_posture_exactly(payload: Payload | None, side: str) -> None:
    arm = SPRUNG.with_payload(payload)
    gains = bandwidth_gains(1.0) if side == "link" else None
    law = pd_gravity(ROBOT, at_rest(HOME, 0.5), drives=drives_of(arm), payload=payload, side=side, gains=gains)
    run = run_loop(arm, arm.rest(HOME), law, check=side == "motor")
    assert np.abs(run.q - HOME).max() < 1e-10


@needs_native
def test_pd_with_gravity_of_another_payload_sags() -> None:
    law = pd_gravity(ROBOT, at_rest(HOME, 0.5), drives=drives_of(SPRUNG), payload=Payload(2.0))
    assert np.abs(run_loop(SPRUNG, SPRUNG.rest(HOME), law).q - HOME).max() > 1e-3


@needs_native
def test_pd_with_gravity_comes_back_to_the_posture() -> None:
    law = pd_gravity(ROBOT, at_rest(HOME, 3.0), drives=drives_of(SPRUNG))
    run = run_loop(SPRUNG, SPRUNG.rest(HOME + 0.05), law)
    assert np.abs(run.q[-1] - HOME).max() < 1e-3 * 0.05


@needs_native
def test_pid_finds_gravity_by_itself() -> None:
    arm = SPRUNG.with_payload(Payload(3.0))
    run = run_loop(arm, arm.rest(HOME), pid(ROBOT, at_rest(HOME, 4.0), drives=drives_of(SPRUNG)))
    assert np.abs(run.q - HOME).max() > 1e-3
    assert np.abs(run.q[-1] - HOME).max() < 1e-5


# -- computed torque ---------------------------------------------------------------------------------------------


def sampled_error(gains: Gains, start: Array, periods: int, period: float) -> Array:
    """Return e of ``ë = -kp e - kd ė``, the right-hand side held over each period: (periods, joints)."""
    e, speed, rows = start.copy(), np.zeros_like(start), []
    for _ in range(periods):
        rows.append(e)
        pull = -gains.kp * e - gains.kd * speed
        e, speed = e + period * speed + 0.5 * period**2 * pull, speed + period * pull
    return np.array(rows)


@needs_native
def test_computed_torque_linearises_the_rigid_arm() -> None:
    """Small errors of all joints vanish as ë + kd ė + kp e = 0, each for itself, though M couples them."""
    arm = digital_robot(ROBOT, gravity=np.zeros(3)).without(*PHENOMENA)
    bandwidth = np.array([2.0, 3.0, 4.0, 2.5, 3.5, 5.0])
    gains = bandwidth_gains(bandwidth, 0.6)
    start = 1e-6 * np.array([1.0, -0.5, 0.8, -1.2, 0.7, 1.5])
    law = computed_torque(ROBOT, at_rest(HOME, 0.5), gains=gains, drives=drives_of(arm), gravity=np.zeros(3))
    run = run_loop(arm, arm.rest(HOME + start), law)
    expected = sampled_error(gains, start, 500, 1e-3)
    assert np.abs(run.q - HOME - expected).max() < 1e-5 * np.abs(start).max()
    w, t = 2.0 * np.pi * bandwidth, run.t[:, None]
    closed_form = start * np.exp(-0.6 * w * t) * (np.cos(0.8 * w * t) + 0.75 * np.sin(0.8 * w * t))
    assert np.abs(run.q - HOME - closed_form).max() < 0.01 * np.abs(start).max()


@needs_native
def test_computed_torque_with_a_matching_model_follows_a_motion() -> None:
    motion = move()
    run = run_loop(RIGID, RIGID.rest(HOME), computed_torque(ROBOT, motion, drives=drives_of(RIGID)))
    wanted = as_reference(motion, 1000.0).q
    assert np.abs(run.q - wanted).max() < 2e-6
    heavy = RIGID.with_payload(Payload(2.0))
    other = run_loop(heavy, heavy.rest(HOME), computed_torque(ROBOT, motion, drives=drives_of(RIGID)))
    assert np.abs(other.q - wanted).max() > 1e-3


@needs_native
def test_friction_fed_forward_is_friction_compensated() -> None:
    arm = FULL.without("stiffness", "hysteresis", "load", "stribeck", "temperature", "asymmetry", "thermal")
    arm = replace(arm, joints=tuple(replace(j, friction=replace(j.friction, square=0.0)) for j in arm.joints))
    motion, drives = move(), drives_of(arm)
    wanted = as_reference(motion, 1000.0)
    errors = []
    for friction in (None, friction_torques(drives, wanted.qd)):
        law = computed_torque(ROBOT, motion, drives=drives, friction=friction)
        errors.append(np.abs(run_loop(arm, arm.rest(HOME), law).q - wanted.q).max())
    assert errors[1] < 0.05 * errors[0]


# -- elastic joints ----------------------------------------------------------------------------------------------


@needs_native
def test_the_feed_forward_of_elastic_joints_alone_follows_the_frictionless_arm() -> None:
    """Open loop, from the right initial state; adding the second B q̈ that is in print elsewhere goes astray."""
    motion, rate, none = move(), 4000.0, Gains(0.0, 0.0)
    law = flexible_feedforward(ROBOT, motion, rate, drives=drives_of(SPRUNG), gains=none).law
    wanted = as_reference(motion, rate)
    assert law.torque is not None
    run = integrate(SPRUNG, SPRUNG.rest(HOME), law.torque, rate=rate)
    assert np.ptp(run.theta - run.q, axis=0).max() > 1e-3
    assert np.abs(run.q - wanted.q).max() < 1e-6
    assert law.theta is not None
    assert np.abs(run.theta - law.theta).max() < 1e-6
    wrong = law.torque + ROBOT.rotor_inertias * wanted.qdd
    assert np.abs(integrate(SPRUNG, SPRUNG.rest(HOME), wrong, rate=rate).q - wanted.q).max() > 1e-2


@needs_native
def test_feedback_on_top_of_the_elastic_feed_forward_has_nothing_to_do() -> None:
    motion = move()
    law = flexible_feedforward(ROBOT, motion, drives=drives_of(SPRUNG))
    run = run_loop(SPRUNG, SPRUNG.rest(HOME), law)
    assert law.law.torque is not None
    assert np.abs(run.q - as_reference(motion, 1000.0).q).max() < 1e-5
    rigid = computed_torque(ROBOT, motion, drives=drives_of(SPRUNG))
    assert np.abs(run_loop(SPRUNG, SPRUNG.rest(HOME), rigid).q - as_reference(motion, 1000.0).q).max() > 1e-4


def test_torque_rates_are_the_derivatives_of_the_inverse_dynamics() -> None:
    """Against differences of eighth order along a smooth motion, revolute and prismatic joints."""
    first = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    second = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
    for robot in (ROBOT, random_robot(np.random.default_rng(3), (True, False, True, True, False))):
        n = robot.dof
        A, w = np.linspace(0.3, 0.8, n), np.linspace(1.0, 3.0, n)
        t, h = np.linspace(0.0, 2.0, 20), 1e-2

        def motion(times: Array, order: int, A: Array = A, w: Array = w) -> Array:
            return A * w**order * np.sin(np.multiply.outer(times, w) + 0.5 * np.pi * order)

        def torque(times: Array, robot=robot, motion=motion) -> Array:
            return inverse_dynamics(robot, *(motion(times, k) for k in range(3)))

        rates = torque_rates(make_chain(robot), *(motion(t, k) for k in range(5)))
        around = [torque(t + k * h) for k in range(-4, 5)]
        scale = np.abs(rates[2]).max()
        np.testing.assert_allclose(rates[0], torque(t), atol=1e-12 * scale)
        np.testing.assert_allclose(rates[1], np.tensordot(first, around, 1) / h, atol=1e-9 * scale)
        np.testing.assert_allclose(rates[2], np.tensordot(second, around, 1) / h**2, atol=1e-8 * scale)


def test_torque_rates_count_rotors() -> None:
    rows = [np.full((3, 6), value) for value in (0.3, 0.1, 0.5, -0.2, 0.7)]
    rotors = np.arange(1.0, 7.0)
    with_rotors = torque_rates(make_chain(ROBOT, rotor_inertias=rotors), *rows)
    for a, b, pull in zip(with_rotors, torque_rates(make_chain(ROBOT), *rows), rows[2:], strict=True):
        np.testing.assert_allclose(a - b, rotors * pull, atol=1e-12)


def test_a_motion_without_snap_is_refused_by_elastic_joints() -> None:
    still = at_rest(HOME, 0.1)
    with pytest.raises(ModelError, match="snap"):
        flexible_feedforward(ROBOT, replace(still, snap=None), drives=drives_of(SPRUNG))


# -- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: JointDrive(inertia=-1.0),
        lambda: JointDrive(spring=Cubic(1.0)),
        lambda: JointDrive(limit=0.0),
        lambda: Gains(-1.0, 0.0),
        lambda: bandwidth_gains(0.0),
        lambda: Tolerances(position=0.0),
    ],
)
def test_impossible_numbers_are_refused(make) -> None:
    with pytest.raises(ModelError):
        make()


# -- gains -------------------------------------------------------------------------------------------------------


def test_bandwidth_gains_put_the_poles_where_they_say() -> None:
    gains = bandwidth_gains(2.0, 0.6, 0.25)
    w = 2.0 * np.pi * 2.0
    roots = np.sort_complex(np.roots([1.0, gains.kd, gains.kp, gains.ki]))
    expected = [-0.6 * w - 0.8j * w, -0.6 * w + 0.8j * w, -0.25 * w]
    np.testing.assert_allclose(roots, np.sort_complex(np.array(expected)), rtol=1e-9)


def test_effective_inertias_are_the_mean_diagonal_of_the_mass_matrix() -> None:
    q = np.stack([HOME, AWAY])
    np.testing.assert_allclose(effective_inertias(ROBOT, q), np.einsum("kii->ki", mass_matrix(ROBOT, q)).mean(axis=0))


# -- LQR ---------------------------------------------------------------------------------------------------------


def test_the_lqr_gain_of_a_rigid_joint_has_its_closed_form() -> None:
    """J ẍ = u: K = (√(q1/r), √(q2/r + 2 J √(q1/r)))."""
    J, q1, q2, r = 3.2, 4e4, 11.0, 1e-3
    A, B = joint_system(JointDrive(inertia=1.2), 2.0)
    first = np.sqrt(q1 / r)
    expected = [first, np.sqrt(q2 / r + 2.0 * J * first)]
    weights = np.diag([q1, q2]), np.array([[r]])
    np.testing.assert_allclose(lqr_gain(A, B, *weights)[0], expected, rtol=1e-9)
    np.testing.assert_allclose(lqr_gain(A, B, *weights, period=1e-6)[0], expected, rtol=1e-3)


DRIVE = JointDrive(inertia=0.4, spring=Cubic(16e3), damping=1.0, viscous=6.4)
WEIGHTS = np.diag([4e4, 10.0, 4e4, 10.0, 1e7]), np.array([[4e-4]])


def test_the_sampled_lqr_gain_is_that_of_the_riccati_recursion() -> None:
    A, B = joint_system(DRIVE, 3.0, integral=True)
    Ad, Bd, Q, R, N = sampled_cost(A, B, *WEIGHTS, 1e-3)
    P = Q.copy()
    for _ in range(4000):
        K = np.linalg.solve(R + Bd.T @ P @ Bd, Bd.T @ P @ Ad + N.T)
        P = Q + Ad.T @ P @ Ad - (Ad.T @ P @ Bd + N) @ K
    np.testing.assert_allclose(lqr_gain(A, B, *WEIGHTS, period=1e-3), K, rtol=1e-6)


def cost(K: Array) -> float:
    """Return the mean cost of u = -K x over random starts, from the sampled closed loop; infinite if it grows."""
    A, B = joint_system(DRIVE, 3.0, integral=True)
    Ad, Bd, Q, R, N = sampled_cost(A, B, *WEIGHTS, 1e-3)
    loop = Ad - Bd @ K
    if np.abs(np.linalg.eigvals(loop)).max() >= 1.0:
        return float("inf")
    return float(np.trace(solve_discrete_lyapunov(loop.T, Q + K.T @ R @ K - N @ K - K.T @ N.T)))


def test_no_other_gain_costs_less() -> None:
    A, B = joint_system(DRIVE, 3.0, integral=True)
    best = lqr_gain(A, B, *WEIGHTS, period=1e-3)
    for j in range(5):
        for factor in (0.9, 0.99, 1.01, 1.1):
            other = best.copy()
            other[0, j] *= factor
            assert cost(other) > cost(best)


def test_the_sampled_cost_is_the_integral_of_the_cost() -> None:
    A, B = joint_system(DRIVE, 3.0)
    Q, R = WEIGHTS[0][:4, :4], WEIGHTS[1]
    Ad, Bd, Qd, Rd, Nd = sampled_cost(A, B, Q, R, 2e-3)
    x, u, steps = np.array([1e-3, 0.02, -2e-3, 0.05]), np.array([3.0]), 2000
    at, total, h = x.copy(), 0.0, 2e-3 / steps
    for _ in range(steps):
        middle = at + 0.5 * h * (A @ at + B @ u)
        total += h * float(middle @ Q @ middle + u @ R @ u)
        at = at + h * (A @ middle + B @ u)
    np.testing.assert_allclose(at, Ad @ x + Bd @ u, rtol=1e-6)
    assert total == pytest.approx(float(x @ Qd @ x + u @ Rd @ u + 2.0 * x @ Nd @ u), rel=1e-6)


def test_a_joint_that_its_motor_does_not_move_has_no_gain() -> None:
    A, B = joint_system(DRIVE, 3.0)
    with pytest.raises(ModelError, match="LQR"):
        lqr_gain(A, 0.0 * B, WEIGHTS[0][:4, :4], WEIGHTS[1])


def test_alone_a_joint_needs_what_the_decentralised_feed_forward_says() -> None:
    """One joint has no neighbours: constant J and gravity are the whole of its dynamics."""
    robot = load_robot("planar1")
    motion = bspline_trajectory(robot, 6.0, 1)
    drives, links, reference = (replace(DRIVE, damping=0.0),), Links(robot), as_reference(motion, 200.0)
    J = effective_inertias(robot, reference.q)
    exact = drive_motion(links, drives, reference)
    theta, speed, torque = decentralised_motion(links, drives, J, reference)
    np.testing.assert_allclose(theta, exact.theta, atol=1e-12)
    np.testing.assert_allclose(speed, exact.speed, atol=1e-6 * np.abs(exact.speed).max())
    np.testing.assert_allclose(torque, exact.torque, atol=1e-4 * np.abs(exact.torque).max())


@needs_native
def test_the_integral_of_the_lqr_takes_a_steady_load_away() -> None:
    arm = SPRUNG.with_payload(Payload(3.0))
    ends = []
    for tolerances in (Tolerances(), Tolerances(integral=0.01)):
        law = lqr(ROBOT, at_rest(HOME, 4.0), drives=drives_of(SPRUNG), tolerances=tolerances)
        ends.append(np.abs(run_loop(arm, arm.rest(HOME), law).q[-1] - HOME).max())
    assert ends[0] > 1e-4
    assert ends[1] < 0.1 * ends[0]


@needs_native
def test_the_lqr_controls_rigid_and_elastic_joints_side_by_side() -> None:
    joints = tuple((RIGID if k % 2 else SPRUNG).joints[k] for k in range(6))
    arm, motion = replace(SPRUNG, joints=joints), move()
    law = lqr(ROBOT, motion, drives=drives_of(arm))
    assert law.law.k_theta is not None
    assert ((law.law.k_theta == 0.0) == (np.arange(6) % 2 == 1)).all()
    assert np.abs(run_loop(arm, arm.rest(HOME), law).q - as_reference(motion, 1000.0).q).max() < 5e-3


# -- state, references and wrong arguments -------------------------------------------------------------------------


def sample(q: Array) -> ControlSample:
    return ControlSample(q, 0.1 * q, q + 1e-3, 0.1 * q, np.zeros_like(q), np.full_like(q, 20.0), time=0.0)


def test_a_controller_can_be_replayed_from_any_memory() -> None:
    law = pid(ROBOT, move(), drives=drives_of(FULL))
    samples = [sample(HOME + 0.01 * np.sin(k + np.arange(6.0))) for k in range(40)]
    memory, torques, memories = law.init(samples[0]), [], []
    for at in samples:
        memories.append(memory)
        torque, memory = law.step(memory, at)
        torques.append(torque)
    again = memories[15]
    for k in range(15, 40):
        torque, again = law.step(again, samples[k])
        np.testing.assert_array_equal(torque, torques[k])
    np.testing.assert_array_equal(again.integral, memory.integral)
    assert not np.array_equal(memories[15].integral, memories[16].integral)


def test_a_controller_says_when_its_reference_is_over() -> None:
    law = pd_gravity(ROBOT, at_rest(HOME, 0.002))
    memory = law.init(sample(HOME))
    for _ in range(2):
        _, memory = law.step(memory, sample(HOME))
    with pytest.raises(ModelError, match="2 periods"):
        law.step(memory, sample(HOME))


def test_references_come_from_motions_functions_and_samples() -> None:
    motion = move()
    whole = as_reference(motion, 100.0)
    by_function = as_reference(motion.derivative, 100.0, duration=motion.duration)
    np.testing.assert_array_equal(whole.snap, by_function.snap)
    np.testing.assert_allclose(whole.shifted(0.01).q[:-1], whole.q[1:], atol=1e-12)
    assert as_reference(whole, 100.0) is whole

    class OnlyAt:
        duration = motion.duration
        at = staticmethod(motion.at)

    assert as_reference(OnlyAt(), 100.0).jerk is None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: as_reference(move(), 0.0), ModelError, "rate"),
        (lambda: as_reference(move().derivative, 100.0), ModelError, "duration"),
        (lambda: as_reference(as_reference(move(), 100.0), 200.0), ModelError, "100 Hz"),
        (lambda: as_reference("move", 100.0, 1.0), ModelError, "str"),
        (lambda: as_reference(lambda t, k: np.zeros(3), 100.0, 1.0), ShapeError, "q of the motion"),
        (lambda: pd_gravity(load_robot("planar2"), move()), ModelError, "2 joints"),
        (lambda: pd_gravity(ROBOT, move(), drives=[JointDrive()]), ModelError, "6 joints"),
        (lambda: pd_gravity(ROBOT, move(), side="both"), ModelError, "side"),  # type: ignore[arg-type]
        (lambda: computed_torque(ROBOT, hold(HOME, 1.0), friction=np.zeros(6)), ShapeError, "friction"),
    ],
)
def test_wrong_arguments_get_one_clear_line(call, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_controllers_need_nothing_but_robot_and_motion() -> None:
    for make in (pd_gravity, pid, computed_torque):
        law = make(ROBOT, hold(HOME, 0.1))
        assert isinstance(law, AffineController)
        assert law.periods == 100


def test_a_part_of_a_motion_has_the_law_of_the_whole() -> None:
    robot = load_robot("ur5e")
    motion = bspline_trajectory(robot, 12.0, seed=3)
    whole = as_reference(motion, 100.0)
    times = np.array([2.0, 2.01, 2.02, 7.5])
    poses = whole.q[np.linspace(0, whole.periods - 1, 64).astype(int)]
    part = part_of(motion, 100.0, times, poses)
    rows = np.round(times * 100.0).astype(int)
    for make in (pd_gravity, pid, computed_torque):
        complete, some = make(robot, whole, 100.0).law, make(robot, part, 100.0).law
        for name in ("torque", "q", "qd", "theta", "speed", "kp", "kd", "k_theta", "k_speed", "ki"):
            first, second = getattr(complete, name), getattr(some, name)
            if first is None:
                assert second is None
            else:
                np.testing.assert_allclose(second, first if first.ndim == 1 else first[rows], rtol=1e-9, atol=1e-12)
