"""Coupled transmissions at run time: arrays, streams, C and FMU have the numbers of an independent computation."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import computed
import jointwise as jw
from jointwise import export
from jointwise.backend import native
from jointwise.model.rigid import inverse_dynamics, mass_matrix
from jointwise.model.terms import Coulomb, Hysteresis, Inertia, Offset, Spring, Viscous
from jointwise.runtime.stream import NativeCore
from jointwise.spatial import Array
from runtime_models import exact, swinging
from test_export import needs_gcc
from test_runtime_stream import PLANNED, RATE, cores_agree, moved, sensors, streamed
from test_transmission import PLAIN, arm, coupled_log

COUPLING = "6:5:1,6:4:-0.3,5:4:0.4"

pytestmark = pytest.mark.skipif(native() is None, reason="the native kernel is not built")


def coupled_arm() -> jw.Robot:
    return jw.load_robot("ur5e", coupling=COUPLING)


@pytest.fixture(scope="module")
def model() -> jw.RobotModel:
    """Return a coupled arm with every kind of term."""
    return exact(robot=coupled_arm())


def measured(samples: int = 400) -> dict[str, Array]:
    """Return the motion of `sensors`; rotors are those of the motors."""
    signals, C = sensors(6, samples), coupled_arm().transmission.matrix
    return signals | {"rotor": signals["q"] @ C.T + 1e-4 * np.sin(3.0 * signals["qdd"])}


@pytest.mark.parametrize("names", [PLANNED, (*PLANNED, "temperature"), None], ids=["planned", "warm", "sensors"])
def test_a_stream_has_the_numbers_of_the_batch(model: jw.RobotModel, names: tuple[str, ...] | None) -> None:
    signals = {name: values for name, values in measured().items() if names is None or name in names}
    batch = model.torque(**signals, rate=RATE)
    np.testing.assert_allclose(streamed(model, signals), batch, rtol=0.0, atol=1e-10)
    plain = exact("ur5e").torque(**signals, rate=RATE)
    assert np.abs(batch - plain)[:, 3:].max(axis=0).min() > 0.1  # the coupling matters


@pytest.mark.parametrize("basis", ["model", "row_sum"])
def test_the_core_and_its_reference_agree_sample_by_sample(model: jw.RobotModel, basis: str) -> None:
    model = jw.RobotModel(replace(model.calibration, model=replace(model.calibration.model, load_basis=basis)))
    cores_agree(model, measured(120))


def smooth_terms() -> tuple:
    return ((Offset(), Viscous((1.0,)), Coulomb("none", "tanh", 0.1), Spring(), Inertia()),) * 6


def all_rotors(model: jw.RobotModel) -> Array:
    """Return the described rotor inertias and those among the terms, kg m²."""
    values = model.calibration.estimate.values[model.calibration.model.base.count :].reshape(6, 5)
    return coupled_arm().rotor_inertias + values[:, 4]


def motor_side(model: jw.RobotModel, theta: Array, speed: Array, spin: Array) -> Array:
    """Return the torque of `smooth_terms` and of the rotors at the motors, written out."""
    values = model.calibration.estimate.values[model.calibration.model.base.count :].reshape(6, 5)
    offset, viscous, coulomb, spring, _ = values.T
    friction = offset + viscous * speed + coulomb * np.tanh(speed / 0.1)
    return friction + spring * theta + all_rotors(model) * spin


def test_torques_are_those_of_bodies_at_the_joints_and_drives_at_the_motors() -> None:
    """tau = RNEA(q, qd, qdd) + C^T (drive of each motor at C q), with the bodies of the description."""
    robot, (q, qd, qdd) = coupled_arm(), swinging(6)
    model, C = exact(robot=robot, terms=smooth_terms()), robot.transmission.matrix
    drives = motor_side(model, q @ C.T, qd @ C.T, qdd @ C.T)
    expected = inverse_dynamics(robot, q, qd, qdd) + drives @ C
    np.testing.assert_allclose(model.torque(q, qd, qdd, rate=RATE), expected, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(streamed(model, {"q": q, "qd": qd, "qdd": qdd}), expected, rtol=0.0, atol=1e-9)
    core, torque, M = NativeCore(model.core_numbers(RATE)), np.empty(6), np.empty((6, 6))
    for row in range(0, len(q), 50):
        native().runtime_bodies(core.handle, q[row], qd[row], qdd[row], torque, M)
        rotors = C.T @ np.diag(all_rotors(model)) @ C
        np.testing.assert_allclose(M, mass_matrix(robot, q[row : row + 1])[0] + rotors, rtol=0.0, atol=1e-9)


def test_a_constant_torque_moves_the_arm_as_an_independent_integrator_does() -> None:
    robot = coupled_arm()
    model, C = exact(robot=robot, terms=smooth_terms()), robot.transmission.matrix
    torque = model.gravity(np.zeros(6)) + np.array([20.0, 15.0, 10.0, 6.0, -5.0, 4.0])
    rotors = C.T @ np.diag(all_rotors(model)) @ C

    def rates(_: float, x: Array) -> Array:
        q, qd = x[:6], x[6:]
        drives = motor_side(model, C @ q, C @ qd, np.zeros(6)) @ C
        rest = torque - inverse_dynamics(robot, q[None], qd[None], 0.0 * q[None])[0] - drives
        return np.concatenate([qd, np.linalg.solve(mass_matrix(robot, q[None])[0] + rotors, rest)])

    expected = solve_ivp(rates, (0.0, 0.3), np.zeros(12), rtol=1e-10, atol=1e-12).y[:, -1]
    errors = [np.abs(np.concatenate(moved(model, h, torque, 0.3)) - expected).max() for h in (1e-3, 5e-4, 2.5e-4)]
    assert errors[-1] < 5e-3 * np.abs(expected).max()
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2.0, atol=0.2)


def test_dry_friction_of_the_motors_holds_the_joints() -> None:
    """A torque at joint 5 is held by the motors 5 and 6 together, and moves both joints once it is larger."""
    model = exact(robot=coupled_arm(), terms=((Hysteresis((1e-4, 1e-3)),),) * 6)
    hold = model.gravity(np.zeros(6))
    q, qd = moved(model, 1e-3, hold + np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.0]), 2.0)
    assert np.abs(q).max() < 2e-3
    assert np.abs(qd).max() < 1e-4
    q, _ = moved(model, 1e-3, hold + np.array([0.0, 0.0, 0.0, 0.0, 30.0, 0.0]), 0.2)
    assert np.abs(q[[4, 5]]).min() > 1e-3


@pytest.mark.thorough
@needs_gcc
def test_exported_c_and_units_have_the_torques_of_python(model: jw.RobotModel, tmp_path: Path) -> None:
    double, single = export.c(model, tmp_path / "c", rate=RATE).checks
    assert double.difference < 1e-11
    assert single.difference < 1e-3
    assert ".coupling = robot_coupling" in (tmp_path / "c" / "robot_model.h").read_text()
    units = export.fmu(model, tmp_path / "fmu", rate=RATE)
    assert len(units.checks) == 4
    assert all(check.severity == "ok" for check in units.checks)
    export.c(exact("ur5e"), tmp_path / "plain", rate=RATE)
    assert ".coupling = 0" in (tmp_path / "plain" / "robot_model.h").read_text()


@pytest.mark.thorough
@needs_gcc
def test_the_currents_of_exported_c_are_those_of_the_motors(model: jw.RobotModel, tmp_path: Path) -> None:
    export.c(model, tmp_path / "c", rate=RATE)
    program = """#include <stdio.h>
#include "robot_model.h"
int main(void) {
    jw_real torque[6] = {1, 2, 3, 4, 5, 6}, output[6];
    jw_output(&robot_model, torque, output);
    for (int j = 0; j < 6; j++) printf("%.17g\\n", (double)output[j]);
}"""
    (tmp_path / "c" / "main.c").write_text(program)
    subprocess.run(["gcc", "-std=c99", "main.c", "runtime.c", "-lm", "-o", "main"], cwd=tmp_path / "c", check=True)
    answer = subprocess.run([tmp_path / "c" / "main"], capture_output=True, text=True, check=True).stdout
    C = coupled_arm().transmission.matrix
    expected = np.linalg.solve(C.T, np.arange(1.0, 7.0)) / model.gains
    np.testing.assert_allclose(np.array(answer.split(), dtype=float), expected, rtol=1e-12)


@pytest.fixture(scope="module")
def calibrated() -> jw.RobotModel:
    """Return a calibrated coupled arm with physically consistent bodies."""
    return jw.RobotModel(computed.calibrated(coupled_log(arm(), 1), arm(), options=PLAIN))


def test_mujoco_moves_coupled_motors_by_tendons(calibrated: jw.RobotModel, tmp_path: Path) -> None:
    """MuJoCo's inverse dynamics agree, and a motor of several joints pulls at each of them by its ratio."""
    pytest.importorskip("mujoco")
    import mujoco

    made = export.mjcf(calibrated, tmp_path / "mjcf", rate=RATE)
    assert all(check.severity == "ok" for check in made.checks)
    peer = mujoco.MjModel.from_xml_path(str(tmp_path / "mjcf" / "ur5e.xml"))
    data = mujoco.MjData(peer)
    data.ctrl[:] = control = np.array([1.0, -2.0, 3.0, 4.0, -5.0, 6.0])
    mujoco.mj_forward(peer, data)
    pulled = arm().transmission.joint_torque(control * calibrated.gains)
    np.testing.assert_allclose(data.qfrc_actuator, pulled, rtol=1e-12)


@pytest.mark.thorough
@needs_gcc
def test_what_a_urdf_cannot_express_of_a_coupling_is_said(calibrated: jw.RobotModel, tmp_path: Path) -> None:
    lost = " ".join(map(str, export.urdf(calibrated, tmp_path / "urdf").losses))
    assert "coupled motors" in lost
    made = export.ros2(calibrated, tmp_path / "ros2", rate=RATE)
    assert all(check.severity == "ok" for check in made.checks)
    assert "coupling: [1.0, 0.0" in (tmp_path / "ros2" / "config" / "parameters.yaml").read_text()
