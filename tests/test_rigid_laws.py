"""Laws that the dynamics of any serial arm obey, whatever computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointwise import spatial
from jointwise.description import Joint, Link, Payload, Robot, list_robots, load_robot
from jointwise.model.rigid import (
    compute_regressor,
    coriolis_matrix,
    coriolis_vector,
    energy_regressors,
    forward_dynamics,
    forward_kinematics,
    gravity_torque,
    inverse_dynamics,
    jacobian,
    kinetic_energy,
    mass_matrix,
    potential_energy,
    wrench_torque,
)
from jointwise.spatial import Array
from kernels import ENGINES, TOLERANCE, assert_agree, engine, natural_scales
from robots import Case, cases, law, random_body, random_rotation

pytestmark = pytest.mark.compat

STENCIL = {-3: -1 / 60, -2: 3 / 20, -1: -3 / 4, 1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
"""Central difference of sixth order."""


def derivative(function: Callable[[float], Array], step: float = 2e-3) -> Array:
    """Return the derivative of `function` at 0; good to about 1e-11."""
    return sum(weight * function(k * step) for k, weight in STENCIL.items()) / step


def drives(case: Case) -> dict[str, object]:
    return {"gravity": case.gravity, "payload": case.payload, "rotor_inertias": case.rotors}


def torque_scale(case: Case) -> float:
    """Return the size of the torques of a case by their parts, which may cancel in the sum."""
    Y = np.abs(compute_regressor(case.robot, case.q, case.qd, case.qdd, gravity=case.gravity).matrices())
    return float((Y @ np.abs(case.robot.inertials).ravel()).max())


@pytest.fixture(params=ENGINES)
def any_engine(request: pytest.FixtureRequest):
    with engine(request.param):
        yield


# -- torque, regressor, mass matrix --------------------------------------------------------------------------------


@law(40)
@given(cases(), st.sampled_from(ENGINES))
def test_regressor_times_parameters_is_inverse_dynamics(case: Case, name: str) -> None:
    with engine(name):
        Y = compute_regressor(case.robot, case.q, case.qd, case.qdd, gravity=case.gravity, rotors=True)
        torque = inverse_dynamics(
            case.robot, case.q, case.qd, case.qdd, gravity=case.gravity, rotor_inertias=case.rotors
        )
    parameters = np.concatenate([case.robot.inertials.ravel(), case.rotors])
    assert_agree(Y.torque(parameters), torque, torque_scale(case))
    assert_agree(Y.stacked() @ parameters, torque.ravel(), torque_scale(case))


@law(40)
@given(cases(), st.sampled_from(ENGINES))
def test_forward_dynamics_inverts_inverse_dynamics(case: Case, name: str) -> None:
    with engine(name):
        torque = inverse_dynamics(case.robot, case.q, case.qd, case.qdd, wrench=case.wrench, **drives(case))
        again = forward_dynamics(case.robot, case.q, case.qd, torque, wrench=case.wrench, **drives(case))
    assert_agree(again, case.qdd)


@law(40)
@given(cases(), st.sampled_from(ENGINES))
def test_inverse_dynamics_inverts_forward_dynamics(case: Case, name: str) -> None:
    with engine(name):
        qdd = forward_dynamics(case.robot, case.q, case.qd, case.effort, wrench=case.wrench, **drives(case))
        again = inverse_dynamics(case.robot, case.q, case.qd, qdd, wrench=case.wrench, **drives(case))
    assert_agree(again, case.effort, torque_scale(case))


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_torque_is_the_sum_of_inertia_coriolis_and_gravity(case: Case, name: str) -> None:
    body = {"payload": case.payload}
    with engine(name):
        M = mass_matrix(case.robot, case.q, **body, rotor_inertias=case.rotors)
        rest = coriolis_vector(case.robot, case.q, case.qd, **body)
        rest = rest + gravity_torque(case.robot, case.q, gravity=case.gravity, **body)
        torque = inverse_dynamics(case.robot, case.q, case.qd, case.qdd, **drives(case))
    assert_agree(np.einsum("sij,sj->si", M, case.qdd) + rest, torque, torque_scale(case))


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_mass_matrix_is_symmetric_and_positive_definite(case: Case, name: str) -> None:
    with engine(name):
        M = mass_matrix(case.robot, case.q, payload=case.payload)
    assert np.array_equal(M, M.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(M).min() > 0.0


def test_given_inertials_replace_the_nominal_ones_and_keep_the_payload(any_engine: None) -> None:
    robot, rng = load_robot("ur5e"), np.random.default_rng(5)
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, 9, 6))
    bodies = np.array([spatial.inertial_vector(*random_body(rng)) for _ in range(6)])
    other = replace(robot, links=tuple(Link(f"l{k}", body) for k, body in enumerate(bodies)))
    payload = Payload(*random_body(rng))
    for inertials in (bodies, bodies.ravel()):
        ours = inverse_dynamics(robot, q, qd, qdd, inertials=inertials, payload=payload)
        assert_agree(ours, inverse_dynamics(other, q, qd, qdd, payload=payload))


# -- energy --------------------------------------------------------------------------------------------------------


def along(case: Case, t: float) -> tuple[Array, Array]:
    """Return position and velocity at time t of the motion whose position, speed and acceleration a case gives at 0."""
    return case.q + case.qd * t + 0.5 * case.qdd * t * t, case.qd + case.qdd * t


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_energy_grows_by_the_power_of_the_joints(case: Case, name: str) -> None:
    body, drive = {"payload": case.payload}, {"rotor_inertias": case.rotors}

    def energy(t: float) -> Array:
        q, qd = along(case, t)
        kinetic = kinetic_energy(case.robot, q, qd, **body, **drive)
        return kinetic + potential_energy(case.robot, q, gravity=case.gravity, **body)

    with engine(name):
        torque = inverse_dynamics(case.robot, case.q, case.qd, case.qdd, **drives(case))
        growth = derivative(energy)
    assert_agree(growth, (torque * case.qd).sum(axis=1), torque_scale(case))


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_energy_regressor_grows_by_the_power_of_each_parameter(case: Case, name: str) -> None:
    with engine(name):
        Y = compute_regressor(case.robot, case.q, case.qd, case.qdd, gravity=case.gravity).matrices()
        growth = derivative(lambda t: sum(energy_regressors(case.robot, *along(case, t), gravity=case.gravity)))
    assert_agree(growth, np.einsum("sj,sjp->sp", case.qd, Y))


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_kinetic_energy_is_the_form_of_the_mass_matrix(case: Case, name: str) -> None:
    options = {"payload": case.payload, "rotor_inertias": case.rotors}
    with engine(name):
        M = mass_matrix(case.robot, case.q, **options)
        energy = kinetic_energy(case.robot, case.q, case.qd, **options)
    assert_agree(energy, 0.5 * np.einsum("si,sij,sj->s", case.qd, M, case.qd))


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_gravity_torque_is_the_gradient_of_potential_energy(case: Case, name: str) -> None:
    options = {"gravity": case.gravity, "payload": case.payload}
    with engine(name):
        torque = gravity_torque(case.robot, case.q, **options)
        gradient = [
            derivative(lambda t, unit=unit: potential_energy(case.robot, case.q + t * unit, **options))
            for unit in np.eye(case.robot.dof)
        ]
    assert_agree(np.transpose(gradient), torque, torque_scale(case))


# -- Coriolis ------------------------------------------------------------------------------------------------------


@law(30)
@given(cases(samples=3), st.sampled_from(ENGINES))
def test_coriolis_matrix_is_that_of_christoffel(case: Case, name: str) -> None:
    robot, body = case.robot, {"payload": case.payload}
    with engine(name):
        slopes = [
            derivative(lambda t, unit=unit: mass_matrix(robot, case.q + t * unit, **body)) for unit in np.eye(robot.dof)
        ]
        C = coriolis_matrix(robot, case.q, case.qd, **body)
    dM = np.stack(slopes, axis=-1)  # dM[s, i, j, k] = d M_ij / d q_k
    symbols = 0.5 * (dM + dM.transpose(0, 1, 3, 2) - np.einsum("sjki->sijk", dM))
    M = mass_matrix(robot, case.q, **body)
    scale = natural_scales(case, {"mass": M})["coriolis_matrix"]
    assert_agree(C, np.einsum("sijk,sk->sij", symbols, case.qd), scale)


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_rate_of_the_mass_matrix_less_twice_coriolis_is_skew(case: Case, name: str) -> None:
    with engine(name):
        rate = derivative(lambda t: mass_matrix(case.robot, case.q + t * case.qd))
        N = rate - 2.0 * coriolis_matrix(case.robot, case.q, case.qd)
        scale = natural_scales(case, {"mass": mass_matrix(case.robot, case.q)})["coriolis_matrix"]
    assert_agree(N, -N.transpose(0, 2, 1), scale)


@law(30)
@given(cases(), st.sampled_from([1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6]))
def test_coriolis_matrix_is_linear_in_speed_from_creeping_to_racing(case: Case, factor: float) -> None:
    C = coriolis_matrix(case.robot, case.q, case.qd)
    scale = natural_scales(case, {"mass": mass_matrix(case.robot, case.q)})["coriolis_matrix"]
    assert_agree(coriolis_matrix(case.robot, case.q, factor * case.qd) / factor, C, scale)
    whole = coriolis_vector(case.robot, case.q, case.qd)
    assert_agree(np.einsum("sij,sj->si", C, case.qd), whole, scale * float(np.abs(case.qd).max()))


def test_coriolis_matrix_vanishes_at_rest(any_engine: None) -> None:
    robot, q = load_robot("panda"), np.random.default_rng(1).uniform(-2.0, 2.0, (5, 7))
    assert np.abs(coriolis_matrix(robot, q, np.zeros_like(q))).max() < 1e-14


# -- kinematics ----------------------------------------------------------------------------------------------------


@law(30)
@given(cases(), st.sampled_from(ENGINES))
def test_jacobian_is_the_derivative_of_forward_kinematics(case: Case, name: str) -> None:
    robot, q = case.robot, case.q
    with engine(name):
        J, (R, _) = jacobian(robot, q), forward_kinematics(robot, q).tool
        for j, unit in enumerate(np.eye(robot.dof)):
            slope = derivative(lambda t, unit=unit: forward_kinematics(robot, q + t * unit).tool[1])
            assert_agree(slope, J[:, :3, j], scale=1.0)
            turn = derivative(lambda t, unit=unit: forward_kinematics(robot, q + t * unit).tool[0])
            spin = turn @ R.transpose(0, 2, 1)
            assert_agree(spin, np.array([spatial.skew(w) for w in J[:, 3:, j]]), scale=1.0)


@law(20)
@given(cases(), st.sampled_from(ENGINES))
def test_frames_are_rotations_and_follow_the_placements(case: Case, name: str) -> None:
    robot = case.robot
    with engine(name):
        frames = forward_kinematics(robot, np.zeros((1, robot.dof)))
        moved = forward_kinematics(robot, case.q).rotation
    R, p = np.eye(3), np.zeros(3)
    for j, joint in enumerate(robot.joints):
        R, p = R @ joint.rotation, R @ joint.translation + p
        assert_agree(frames.rotation[0, j], R)
        assert_agree(frames.position[0, j], p, scale=1.0)
    assert_agree(moved @ moved.swapaxes(-1, -2), np.broadcast_to(np.eye(3), moved.shape))
    assert_agree(np.linalg.det(moved), np.ones(moved.shape[:2]))


# -- forces at the tool --------------------------------------------------------------------------------------------


@law(20)
@given(cases(), st.sampled_from(ENGINES))
def test_wrench_enters_through_the_transposed_jacobian(case: Case, name: str) -> None:
    with engine(name):
        free = inverse_dynamics(case.robot, case.q, case.qd, case.qdd, gravity=case.gravity)
        pushed = inverse_dynamics(case.robot, case.q, case.qd, case.qdd, gravity=case.gravity, wrench=case.wrench)
        J = jacobian(case.robot, case.q)
    expected = np.einsum("sij,si->sj", J, case.wrench)
    assert_agree(free - pushed, expected, torque_scale(case))
    assert_agree(wrench_torque(case.robot, case.q, case.wrench), expected)


@law(20)
@given(cases(), st.sampled_from(ENGINES))
def test_point_mass_at_the_tool_weighs_as_a_force_there(case: Case, name: str) -> None:
    mass = case.payload.mass
    with engine(name):
        empty = gravity_torque(case.robot, case.q, gravity=case.gravity)
        loaded = gravity_torque(case.robot, case.q, gravity=case.gravity, payload=Payload(mass))
        weight = wrench_torque(case.robot, case.q, np.concatenate([mass * case.gravity, np.zeros(3)]))
    assert_agree(loaded - empty, -weight, torque_scale(case))


@law(20)
@given(cases(), st.sampled_from(ENGINES))
def test_payload_is_a_body_of_the_last_link(case: Case, name: str) -> None:
    robot, load = case.robot, case.payload
    center = robot.tool_rotation @ load.center_of_mass + robot.tool_translation
    turned = robot.tool_rotation @ load.inertia @ robot.tool_rotation.T
    bodies = robot.inertials.copy()
    bodies[-1] += spatial.inertial_vector(load.mass, center, turned)
    with engine(name):
        loaded = inverse_dynamics(robot, case.q, case.qd, case.qdd, payload=load)
        heavier = inverse_dynamics(robot, case.q, case.qd, case.qdd, inertials=bodies)
    assert_agree(loaded, heavier, torque_scale(case))


# -- invariance ----------------------------------------------------------------------------------------------------


def rebased(robot: Robot, rotation: Array, translation: Array) -> Robot:
    """Return the robot described from another base frame."""
    first = robot.joints[0]
    placed = replace(first, rotation=rotation @ first.rotation, translation=rotation @ first.translation + translation)
    return replace(robot, joints=(placed, *robot.joints[1:]))


@law(30)
@given(cases(), st.integers(0, 10**6))
def test_torque_does_not_depend_on_the_base_frame(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Q, p = random_rotation(rng), rng.uniform(-2.0, 2.0, 3)
    other, state = rebased(case.robot, Q, p), (case.q, case.qd, case.qdd)
    scale = torque_scale(case)
    same = inverse_dynamics(case.robot, *state, gravity=case.gravity)
    assert_agree(inverse_dynamics(other, *state, gravity=Q @ case.gravity), same, scale)
    Y = compute_regressor(case.robot, *state, gravity=case.gravity).matrices()
    assert_agree(compute_regressor(other, *state, gravity=Q @ case.gravity).matrices(), Y)
    assert_agree(mass_matrix(other, case.q), mass_matrix(case.robot, case.q))


@law(20)
@given(cases(), st.sampled_from(ENGINES))
def test_gravity_is_an_accelerating_lift(case: Case, name: str) -> None:
    strength = float(np.linalg.norm(case.gravity))
    lift = Joint("lift", "prismatic", spatial.rotation_z_to(-case.gravity), np.zeros(3))
    first = case.robot.joints[0]
    placed = replace(first, rotation=lift.rotation.T @ first.rotation, translation=lift.rotation.T @ first.translation)
    robot = replace(
        case.robot,
        joints=(lift, placed, *case.robot.joints[1:]),
        links=(Link.from_center("cabin", 10.0, np.zeros(3), np.eye(3)), *case.robot.links),
    )
    q, qd, qdd = (np.insert(array, 0, 0.0, axis=1) for array in (case.q, case.qd, case.qdd))
    qdd[:, 0] = strength
    with engine(name):
        riding = inverse_dynamics(robot, q, qd, qdd, gravity=np.zeros(3))[:, 1:]
        standing = inverse_dynamics(case.robot, case.q, case.qd, case.qdd, gravity=case.gravity)
    assert_agree(riding, standing, torque_scale(case))


@law(30)
@given(cases(), st.sampled_from([1e-3, 39.37, 1e3]))
def test_torque_follows_the_unit_of_length(case: Case, unit: float) -> None:
    """Lengths times u: inertia u², first moments u, gravity and prismatic motion u; torque u², force u."""
    robot = case.robot
    powers = np.array([2, 2, 2, 2, 2, 2, 1, 1, 1, 0])
    scaled = replace(
        robot,
        joints=tuple(replace(joint, translation=joint.translation * unit) for joint in robot.joints),
        links=tuple(Link(link.name, link.inertial * unit**powers) for link in robot.links),
    )
    motion = np.where(robot.revolute, 1.0, unit)
    torque = inverse_dynamics(robot, case.q, case.qd, case.qdd, gravity=case.gravity)
    state = (case.q * motion, case.qd * motion, case.qdd * motion)
    other = inverse_dynamics(scaled, *state, gravity=case.gravity * unit)
    assert_agree(other / unit ** np.where(robot.revolute, 2, 1), torque, torque_scale(case))


@law(20)
@given(cases(), st.sampled_from([1e-3, 60.0, 1e3]))
def test_torque_follows_the_unit_of_time(case: Case, rate: float) -> None:
    torque = inverse_dynamics(case.robot, case.q, case.qd, case.qdd, gravity=case.gravity)
    state = (case.q, case.qd * rate, case.qdd * rate**2)
    fast = inverse_dynamics(case.robot, *state, gravity=case.gravity * rate**2)
    assert_agree(fast / rate**2, torque, torque_scale(case))


@pytest.mark.parametrize("name", list_robots())
def test_torque_is_periodic_in_revolute_joints(name: str, any_engine: None) -> None:
    robot, rng = load_robot(name), np.random.default_rng(3)
    q, qd, qdd = rng.uniform(-3.0, 3.0, (3, 11, robot.dof))
    turns = 2.0 * np.pi * rng.integers(-5, 6, q.shape) * robot.revolute
    assert_agree(inverse_dynamics(robot, q + turns, qd, qdd), inverse_dynamics(robot, q, qd, qdd))


# -- closed forms --------------------------------------------------------------------------------------------------


def pendulum(*arms: tuple[float, float]) -> Robot:
    """Return point masses on massless rods swinging about the base y axis; q = 0 hangs straight down."""
    rotation = np.column_stack([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    joints, links, length = [], [], 0.0
    for k, (mass, arm) in enumerate(arms):
        joints.append(Joint(f"j{k}", "revolute", rotation if k == 0 else np.eye(3), np.array([length, 0.0, 0.0])))
        links.append(Link.from_center(f"l{k}", mass, [arm, 0.0, 0.0], np.zeros((3, 3))))
        length = arm
    return Robot("pendulum", tuple(joints), tuple(links), np.eye(3), np.array([length, 0.0, 0.0]))


def test_simple_pendulum_has_its_closed_form(any_engine: None) -> None:
    m, length, g = 1.7, 0.6, 9.81
    q, qd, qdd = np.random.default_rng(0).uniform(-3.0, 3.0, (3, 13, 1))
    robot = pendulum((m, length))
    assert_agree(inverse_dynamics(robot, q, qd, qdd), m * length**2 * qdd + m * g * length * np.sin(q))
    assert_agree(potential_energy(robot, q), -m * g * length * np.cos(q[:, 0]))
    assert_agree(kinetic_energy(robot, q, qd), 0.5 * m * length**2 * qd[:, 0] ** 2)
    assert_agree(forward_dynamics(robot, q, qd, np.zeros_like(q)), -g / length * np.sin(q))


def test_double_pendulum_has_its_closed_form(any_engine: None) -> None:
    (m1, l1), (m2, l2), g = (1.3, 0.5), (0.8, 0.7), 9.81
    robot = pendulum((m1, l1), (m2, l2))
    (q1, q2), (v1, v2), (a1, a2) = np.random.default_rng(1).uniform(-3.0, 3.0, (3, 2, 17))
    cross = m2 * l1 * l2 * np.cos(q2)
    M11, M12, M22 = m1 * l1**2 + m2 * (l1**2 + l2**2) + 2 * cross, m2 * l2**2 + cross, m2 * l2**2
    h = m2 * l1 * l2 * np.sin(q2)
    far = m2 * g * l2 * np.sin(q1 + q2)
    tau1 = M11 * a1 + M12 * a2 - h * (2 * v1 * v2 + v2**2) + (m1 + m2) * g * l1 * np.sin(q1) + far
    tau2 = M12 * a1 + M22 * a2 + h * v1**2 + far
    q, qd, qdd = (np.stack(pair, axis=1) for pair in ((q1, q2), (v1, v2), (a1, a2)))
    assert_agree(inverse_dynamics(robot, q, qd, qdd), np.stack([tau1, tau2], axis=1))
    C = np.array([[-h * v2, -h * (v1 + v2)], [h * v1, np.zeros_like(h)]])
    assert_agree(coriolis_matrix(robot, q, qd), C.transpose(2, 0, 1))
    energy = -(m1 + m2) * g * l1 * np.cos(q1) - m2 * g * l2 * np.cos(q1 + q2)
    assert_agree(potential_energy(robot, q), energy)


def test_sliding_mass_has_its_closed_form(any_engine: None) -> None:
    """A bead on a turning horizontal rod: F = m (r̈ - r ω²), τ = (J + m r²) ω̇ + 2 m r ṙ ω."""
    m, J = 0.9, 0.3
    rod = Joint("turn", "revolute", np.eye(3), np.zeros(3))
    slide = Joint("slide", "prismatic", spatial.rotation_z_to([1.0, 0.0, 0.0]), np.zeros(3))
    links = (
        Link("rod", np.array([0, 0, 0, 0, 0, J, 0, 0, 0, 0.0])),
        Link.from_center("bead", m, np.zeros(3), np.zeros((3, 3))),
    )
    robot = Robot("bead", (rod, slide), links)
    q, qd, qdd = np.random.default_rng(2).uniform(-2.0, 2.0, (3, 15, 2))
    r, rd, rdd, w, wd = q[:, 1], qd[:, 1], qdd[:, 1], qd[:, 0], qdd[:, 0]
    expected = np.stack([(J + m * r**2) * wd + 2.0 * m * r * rd * w, m * (rdd - r * w**2)], axis=1)
    assert_agree(inverse_dynamics(robot, q, qd, qdd), expected)


def test_the_tolerance_of_these_laws_is_the_promised_one() -> None:
    assert TOLERANCE == 1e-9
    with pytest.raises(AssertionError, match="relative error"):
        assert_agree(np.array([1.0 + 2e-9]), np.array([1.0]))
