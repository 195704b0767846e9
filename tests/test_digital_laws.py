"""Laws of the digital robot: energy, convergence, passivity, peers, reproducibility."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointwise.control.controller import AffineControl
from jointwise.description import Payload, load_robot
from jointwise.model import rigid
from jointwise.model.rigid.chain import make_chain
from jointwise.simulation.robot import (
    PHENOMENA,
    DigitalRobot,
    InstabilityError,
    Run,
    Segments,
    digital_robot,
    integrate,
    step,
)
from jointwise.simulation.robot.run import spin_coupling
from jointwise.spatial import Array
from kernels import needs_native
from robots import Case, law, random_robot

pytestmark = needs_native

ROBOT = load_robot("ur5e")
FULL = digital_robot(ROBOT)
RIGID = FULL.without(*PHENOMENA)
HOME = np.array([0.0, -1.2, 1.0, -1.0, -1.5, 0.3])
KP = np.array([4000.0, 4000.0, 3000.0, 300.0, 300.0, 200.0])
KD = np.array([150.0, 150.0, 100.0, 12.0, 10.0, 6.0])
TOLERANCE = 1e-5
"""Stated accuracy of the usual step, rad: two counts of an encoder."""
SIDES = {"theta": ("theta", "speed", "k_theta", "k_speed"), "q": ("q", "qd", "kp", "kd")}


def swing(seconds: float, rate: float = 1000.0) -> tuple[Array, Array, Array]:
    """Return a smooth motion of all joints, (periods, joints) each, that reverses several times."""
    t = np.arange(round(seconds * rate))[:, None] / rate
    A, w = np.array([0.5, 0.4, 0.6, 0.7, 0.5, 0.8]), 2.0 * np.pi * np.array([0.6, 0.5, 0.7, 0.8, 1.0, 1.2])
    return HOME + A * (1.0 - np.cos(w * t)), A * w * np.sin(w * t), A * w**2 * np.cos(w * t)


def tracking(seconds: float, rate: float = 1000.0, side: str = "theta") -> AffineControl:
    """Return a PD controller with the rigid feed-forward along the swing, on one side of the gear."""
    q, qd, qdd = swing(seconds, rate)
    feed = rigid.inverse_dynamics(ROBOT, q, qd, qdd, rotor_inertias=ROBOT.rotor_inertias)
    return AffineControl(torque=feed, **dict(zip(SIDES[side], (q, qd, KP, KD), strict=True)))


def full_run(digital: DigitalRobot = FULL, seconds: float = 3.0, **options: object) -> Run:
    return integrate(digital, digital.rest(HOME), tracking(seconds), **options)  # type: ignore[arg-type]


# -- energy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["spong", "complete"])
@pytest.mark.parametrize("payload", [None, Payload(5.0, [0.0, 0.02, 0.08])])
def test_energy_balance_closes_with_all_phenomena(model: str, payload: Payload | None) -> None:
    digital = digital_robot(ROBOT, payload=payload, model=model)
    run = full_run(digital, wrench=np.array([20.0, -10.0, 15.0, 1.0, 2.0, -1.0]))
    energy = run.energy
    assert np.ptp(energy.external) > 1.0
    assert np.ptp(energy.friction) > 50.0
    assert np.ptp(energy.damping) > 1e-3
    assert np.abs(energy.residual).max() <= 1e-6 * energy.moved


@pytest.mark.parametrize("name", PHENOMENA)
def test_energy_balance_closes_without_any_one(name: str) -> None:
    energy = full_run(FULL.without(name), 1.0).energy
    assert np.abs(energy.residual).max() <= 1e-6 * energy.moved


@pytest.mark.parametrize("name", ["ur3e", "ur10e", "panda", "planar2", "puma560"])
def test_energy_balance_closes_for_other_robots(name: str) -> None:
    robot = load_robot(name)
    digital = digital_robot(robot, gravity="tilt:x:30")
    torque = 0.3 * np.sin(np.arange(500)[:, None] / 80.0 + np.arange(robot.dof)) * digital.gains
    run = integrate(digital, digital.rest(np.full(robot.dof, 0.4)), torque)
    assert np.abs(run.energy.residual).max() <= 1e-6 * run.energy.moved


def test_energy_balance_closes_with_segments() -> None:
    springs = Segments(1.6e4, 2.5e4, 2.9e4, 7.0, 25.0)
    digital = replace(FULL, joints=tuple(replace(joint, stiffness=springs) for joint in FULL.joints))
    energy = full_run(digital, 1.0).energy
    assert np.abs(energy.residual).max() <= 1e-6 * energy.moved


def test_a_payload_put_on_brings_its_own_energy() -> None:
    run = full_run(FULL, 2.0, payloads={0.7: Payload(3.0), 1.4: None})
    energy = run.energy
    assert [start for start, _ in run.parts] == [0, 700, 1400]
    assert np.ptp(energy.external) > 1.0
    assert np.abs(energy.residual).max() <= 1e-6 * energy.moved


# -- friction is passive -----------------------------------------------------------------------------------------


def test_friction_only_takes_energy() -> None:
    """Under constant load and temperature, what the slip elements hold comes back and all else is lost."""
    digital = FULL.without("load", "stribeck", "temperature", "backlash")
    run = full_run(digital)
    lost = run.friction_loss - run.held
    assert np.diff(lost, axis=0).min() >= -1e-12 * run.friction_loss.max()


def test_friction_takes_energy_in_every_cycle_with_all_phenomena() -> None:
    run = full_run(FULL, 5.0)
    assert (np.diff(run.friction_loss[::500], axis=0) > 0.0).all()


def test_a_free_robot_comes_to_rest_and_stays() -> None:
    digital = replace(FULL, gravity=np.zeros(3))
    state = digital.moving(HOME, [0.5, -0.4, 0.3, 0.5, -0.6, 0.7])
    run = integrate(digital, state, np.zeros((10000, 6)))
    assert np.abs(run.qd[-500:]).max() < 1e-4
    assert np.ptp(run.theta[-500:], axis=0).max() < 1e-6


def test_at_rest_nothing_moves() -> None:
    state = FULL.rest(HOME)
    run = integrate(FULL, state, np.tile(state.current * FULL.gains, (1000, 1)))
    assert np.abs(run.q - HOME).max() < 1e-9
    assert np.abs(run.energy.supplied).max() < 1e-9


# -- convergence -------------------------------------------------------------------------------------------------


def orders(digital: DigitalRobot, steps: tuple[int, ...], side: str = "theta") -> tuple[list[float], list[float]]:
    """Return the errors in q (rad) against a fine run, and the orders of convergence between the steps."""
    control = tracking(1.0, side=side)
    runs = [integrate(digital, digital.rest(HOME), control, substeps=n).q for n in (*steps, 8 * steps[-1])]
    errors = [float(np.abs(q - runs[-1]).max()) for q in runs[:-1]]
    return errors, [float(np.log2(a / b)) for a, b in itertools.pairwise(errors)]


def test_the_smooth_part_is_of_fourth_order() -> None:
    errors, slopes = orders(FULL.without("friction", "lost_motion"), (4, 8, 16))
    print("smooth", errors, slopes)
    assert min(slopes) > 3.5
    errors, slopes = orders(RIGID, (1, 2), side="q")
    print("rigid", errors, slopes)
    assert errors[0] < 1e-9


def test_friction_converges_with_second_order() -> None:
    errors, slopes = orders(FULL.without("lost_motion"), (4, 8, 16, 32))
    print("friction", errors, slopes)
    assert errors[0] < 2e-6
    assert np.mean(slopes) > 1.5


def test_halving_the_usual_step_changes_little() -> None:
    control = tracking(3.0)
    usual = round(1e-3 / FULL.largest_step + 0.49)
    coarse, fine = (integrate(FULL, FULL.rest(HOME), control, substeps=n) for n in (usual, 2 * usual))
    assert np.abs(coarse.q - fine.q).max() < TOLERANCE
    assert np.sqrt(np.mean((coarse.friction - fine.friction) ** 2, axis=0)).max() < 0.1


# -- peers -------------------------------------------------------------------------------------------------------


def torques(seconds: float) -> Array:
    """Return torques that keep the arm moving moderately: the weight at home and slow waves."""
    t = np.arange(round(seconds * 1000.0))[:, None] / 1000.0
    weight = rigid.gravity_torque(ROBOT, HOME[None])
    return weight + np.array([8.0, 10.0, 6.0, 1.0, 0.8, 0.5]) * np.sin(2.0 * np.pi * t + np.arange(6.0))


def peer_case(payload: Payload) -> Case:
    rotors = np.array([joint.inertia for joint in RIGID.joints])
    nothing = np.zeros((1, 6))
    return Case(ROBOT, RIGID.gravity, payload, rotors, nothing, nothing, nothing, nothing, nothing)


def runge_kutta(acceleration: object, q: Array, qd: Array, h: float) -> tuple[Array, Array]:
    k1 = acceleration(q, qd)
    k2 = acceleration(q + h / 2 * qd, qd + h / 2 * k1)
    k3 = acceleration(q + h / 2 * qd + h**2 / 4 * k1, qd + h / 2 * k2)
    k4 = acceleration(q + h * qd + h**2 / 2 * k2, qd + h * k3)
    return q + h * qd + h**2 / 6 * (k1 + k2 + k3), qd + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@pytest.fixture(scope="module")
def rigid_run() -> tuple[Run, Payload, Array]:
    payload, torque = Payload(2.0, [0.01, 0.02, 0.05], 0.01 * np.eye(3)), torques(3.0)
    digital = RIGID.with_payload(payload)
    return integrate(digital, digital.rest(HOME), torque, substeps=4), payload, torque


def test_with_everything_off_the_motion_is_pinocchios(rigid_run: tuple[Run, Payload, Array]) -> None:
    pin = pytest.importorskip("pinocchio")
    from peers import loaded_pinocchio_model

    run, payload, torque = rigid_run
    model = loaded_pinocchio_model(peer_case(payload))
    data = model.createData()
    q, qd, path = HOME.copy(), np.zeros(6), []
    for u in torque:
        path.append(q)
        for _ in range(2):
            q, qd = runge_kutta(lambda x, v, u=u: pin.aba(model, data, x, v, u).copy(), q, qd, 5e-4)
    assert np.ptp(run.q, axis=0).max() > 0.5
    assert np.abs(run.q - path).max() < 1e-6


def test_with_everything_off_the_motion_is_mujocos(rigid_run: tuple[Run, Payload, Array]) -> None:
    mujoco = pytest.importorskip("mujoco")
    from peers import mujoco_model

    run, payload, torque = rigid_run
    model = mujoco_model(peer_case(payload))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = 5e-4
    data = mujoco.MjData(model)
    data.qpos, path = HOME, []
    for u in torque:
        path.append(data.qpos.copy())
        data.qfrc_applied = u
        mujoco.mj_step(model, data, nstep=2)
    assert np.abs(run.q - path).max() < 1e-6


def test_a_wrench_acts_as_its_joint_torques() -> None:
    push = np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])
    state = RIGID.rest(HOME)
    torque = np.tile(state.load, (1, 1))
    short = integrate(RIGID, state, torque, rate=1e6, wrench=push).final
    expected = rigid.forward_dynamics(ROBOT, HOME[None], None, torque, rotor_inertias=RIGID.chain.rotors, wrench=push)[
        0
    ]
    assert np.allclose(short.qd * 1e6, expected, rtol=1e-6, atol=1e-6)


@law(40)
@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(0, 2**32 - 1), st.booleans())
def test_accelerations_are_those_of_the_rigid_body_kernels(turns: list[bool], seed: int, pushed: bool) -> None:
    """Revolute and prismatic joints, any number, moving and pushed: over a microsecond the speed grows by q̈."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, turns)
    digital = digital_robot(robot).without(*PHENOMENA)
    q, qd, torque = (rng.normal(size=robot.dof) for _ in range(3))
    push = rng.normal(size=6) if pushed else None
    short = integrate(digital, digital.moving(q, qd), torque[None], rate=1e6, wrench=push).final
    rotors = digital.chain.rotors
    exact = rigid.forward_dynamics(robot, q[None], qd[None], torque[None], rotor_inertias=rotors, wrench=push)[0]
    assert np.allclose((short.qd - qd) * 1e6, exact, rtol=1e-3, atol=1e-3 * (1.0 + np.abs(exact).max()))
    assert (short.qd - qd == short.speed - qd).all()


# -- limits of the model -----------------------------------------------------------------------------------------


def test_stiff_gears_are_rigid_ones() -> None:
    plain = FULL.without("friction", "kinematic_error", "lost_motion", "current_lag")
    reference = integrate(RIGID, RIGID.rest(HOME), tracking(1.0, side="q")).q
    soft, hard = (
        np.abs(integrate(digital, digital.rest(HOME), tracking(1.0)).q - reference).max()
        for digital in (plain, plain.aged(stiffness=99.0))
    )
    assert hard < soft / 30.0


def test_the_complete_model_obeys_lagrange() -> None:
    """Angular momentum about the base axis is conserved without torque on it; Spong's model neglects the rotors."""
    robot = replace(ROBOT, name="spinning")
    digital = digital_robot(robot, gravity=np.zeros(3), model="complete").without("friction", "damping")
    joints = (replace(digital.joints[0], stiffness=replace(digital.joints[0].stiffness, linear=1e-9, cubic=0.0)),)
    digital = replace(digital, joints=joints + digital.joints[1:])
    torque = np.zeros((600, 6))
    torque[:, 1:] = 3.0 * np.sin(np.arange(600)[:, None] / 50.0 + np.arange(5)) * [4.0, 3.0, 0.5, 0.5, 0.3]
    run = integrate(digital, digital.rest(HOME), torque)
    M = rigid.mass_matrix(robot, run.q)
    spin = np.einsum("kj,kj->k", spin_coupling(digital, run.q)[:, 0], run.speed)
    momentum = np.einsum("kj,kj->k", M[:, 0], run.qd)
    assert np.abs(spin).max() > 1e-3
    assert np.abs(momentum + spin).max() < 1e-6 * np.abs(spin).max()


def test_spong_and_complete_differ_a_little() -> None:
    spong, complete = (full_run(replace(FULL, model=name), 1.0) for name in ("spong", "complete"))
    difference = np.abs(spong.q - complete.q).max()
    assert 1e-8 < difference < 1e-3


# -- running -----------------------------------------------------------------------------------------------------


def test_the_same_run_gives_the_same_bits() -> None:
    first, second = full_run(seconds=0.5), full_run(seconds=0.5)
    assert (first.q == second.q).all()
    assert (first.final.values == second.final.values).all()


def test_step_by_step_is_the_same_to_the_bit() -> None:
    torque = torques(0.2)
    run = integrate(FULL, FULL.rest(HOME), torque)
    state = FULL.rest(HOME)
    for u in torque:
        state = step(FULL, state, u)
    assert (state.values == run.final.values).all()


def test_a_controller_in_python_is_the_native_one() -> None:
    q, qd, _ = swing(0.2)
    model = make_chain(ROBOT)
    native_run = integrate(
        FULL, FULL.rest(HOME), AffineControl(q=q, qd=qd, kp=np.diag(KP), kd=KD, ki=10.0 * KP, gravity=model)
    )
    state, integral = FULL.rest(HOME), np.zeros(6)
    for k in range(len(q)):
        error = state.q - q[k]
        u = rigid.gravity_torque(ROBOT, state.q[None])[0] - KP * error - KD * (state.qd - qd[k]) - 10.0 * KP * integral
        integral = integral + error / 1000.0
        state = step(FULL, state, u)
    assert np.allclose(state.q, native_run.final.q, atol=1e-10)


def test_gains_may_vary_from_period_to_period() -> None:
    control = tracking(0.3)
    constant = integrate(FULL, FULL.rest(HOME), control)
    varying = replace(control, k_theta=np.tile(KP, (300, 1)), k_speed=np.tile(np.diag(KD), (300, 1, 1)))
    assert np.allclose(integrate(FULL, FULL.rest(HOME), varying).q, constant.q, atol=1e-12)


def test_instability_is_reported() -> None:
    q, qd, _ = swing(1.0)
    wild = AffineControl(q=q, qd=qd, kp=1e6 * KP, kd=KD)
    digital = FULL.without("current_limit")
    with pytest.raises(InstabilityError, match="unstable at t") as caught:
        integrate(digital, digital.rest(HOME), wild)
    assert 0 <= caught.value.period < 1000
    assert caught.value.joint in {joint.name for joint in ROBOT.joints}


def test_locked_links_stay_and_the_gear_carries_the_motor() -> None:
    digital = FULL.without("friction", "current_lag", "kinematic_error")
    state = digital.rest(HOME)
    torque = np.linspace(0.0, 1.0, 3000)[:, None] * np.array([100.0, 100.0, 100.0, 20.0, 20.0, 20.0]) + state.load
    run = integrate(digital, state, torque, locked=True)
    assert (run.q == HOME).all()
    phi = run.theta - run.q
    for j, joint in enumerate(digital.joints):
        spring = joint.stiffness
        carried = spring.linear * phi[:, j] + spring.cubic * phi[:, j] ** 3
        assert np.abs(carried - torque[:, j]).max() < 0.05 * np.abs(torque[:, j]).max()


def test_locked_friction_leaves_a_hysteresis_loop() -> None:
    wave = 60.0 * np.sin(np.arange(4000) / 1000.0 * np.pi)[:, None] * np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
    run = integrate(FULL, FULL.rest(HOME), wave, locked=True)
    area = (run.friction_loss[-1] - run.friction_loss[2000]).sum()
    assert area > 0.01
    assert np.abs(run.energy.residual).max() <= 1e-6 * run.energy.moved


def test_current_is_limited_and_lags() -> None:
    digital = FULL
    state = digital.rest(HOME)
    run = integrate(digital, state, np.full((20, 6), 1e4), current=True, locked=True)
    limits = np.array([joint.motor.limit for joint in digital.joints])
    assert (run.current <= limits * (1.0 + 1e-12)).all()
    lag = 1.0 - np.exp(-1e-3 / 3e-4)
    assert np.allclose(run.current[1], state.current + (limits - state.current) * lag, rtol=1e-9)


# -- heat, age ---------------------------------------------------------------------------------------------------


def test_a_warm_up_is_exponential_and_friction_falls() -> None:
    fast = replace(
        FULL,
        joints=tuple(replace(j, thermal=replace(j.thermal, capacity=j.thermal.capacity / 300)) for j in FULL.joints),
    )
    cold = fast.rest(HOME, temperature=12.0)
    run = integrate(fast, cold, tracking(10.0))
    assert (run.temperature[-1] > 14.0).all()
    power = np.abs(run.friction * run.speed)
    assert power[-2000:, 0].mean() < 0.95 * power[:2000, 0].mean()


def test_an_aged_robot_has_more_friction_and_softer_gears() -> None:
    worn = FULL.aged(friction=0.3, stiffness=-0.1)
    new, old = full_run(FULL, 1.0), full_run(worn, 1.0)
    assert np.ptp(old.energy.friction) > 1.15 * np.ptp(new.energy.friction)
    assert worn.joints[0].stiffness.linear == pytest.approx(0.9 * FULL.joints[0].stiffness.linear)
    assert FULL.aged(friction=0.3, joints=[2]).joints[1] == FULL.joints[1]
