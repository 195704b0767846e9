"""Coupled transmissions of the digital robot: closed forms, energy, and arms recovered from their logs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jointwise as jw
from cli_runs import run
from jointwise.backend import native
from jointwise.errors import DataError, DescriptionError, ModelError
from jointwise.experiment.options import PlantOptions
from jointwise.model.rigid import inverse_dynamics, mass_matrix
from jointwise.model.spring import Rigid
from jointwise.simulation.robot import digital_robot, integrate
from jointwise.spatial import Array

PUMA = "5:4:0.0139,6:4:0.0130,6:5:0.1806"
"""A wrist coupled as that of the PUMA 560, with the ratios of the documentation."""

pytestmark = pytest.mark.skipif(native() is None, reason="the native kernel is not built")


def arm(coupling: str = "6:5:1,6:4:-0.3,5:4:0.4", coordinates: str | None = None) -> jw.Robot:
    return jw.load_robot("ur5e", coupling=coupling, coordinates=coordinates)


def test_motors_move_the_links_as_an_independent_integrator_does() -> None:
    """M q̈ + h = Cᵀ τ_J, B θ̈ + τ_J = τ_m with τ_J = k φ + k₃ φ³ + D φ̇ and φ = θ - C q."""
    robot = arm()
    digital = digital_robot(robot).without("friction", "backlash", "kinematic_error", "lost_motion", "current_lag")
    C, joints = robot.transmission.matrix, digital.joints
    k, cubic, D, B = np.array([[j.stiffness.linear, j.stiffness.cubic, j.damping, j.inertia] for j in joints]).T
    q0 = np.array([0.3, -1.2, 0.8, 0.4, -0.5, 0.2])
    start = digital.rest(q0)
    torque = digital.gains * start.current + np.array([15.0, -10.0, 8.0, 2.0, -1.5, 1.0])

    def rates(_: float, x: Array) -> Array:
        q, qd, theta, w = x.reshape(4, 6)
        phi = theta - C @ q
        gear = k * phi + cubic * phi**3 + D * (w - C @ qd)
        rest = C.T @ gear - inverse_dynamics(robot, q[None], qd[None], 0.0 * q[None])[0]
        return np.concatenate([qd, np.linalg.solve(mass_matrix(robot, q[None])[0], rest), w, (torque - gear) / B])

    first = np.concatenate([start.q, 0.0 * q0, start.theta, 0.0 * q0])
    assert np.abs(rates(0.0, first)[6:12]).max() < 1e-6  # at rest the motors hold the links through the coupling
    expected = solve_ivp(rates, (0.0, 0.1), first, rtol=1e-9, atol=1e-11, method="DOP853").y[:, -1].reshape(4, 6)
    run = integrate(digital, start, np.tile(torque, (100, 1)), rate=1000.0)
    np.testing.assert_allclose(run.final.q, expected[0], atol=1e-7)
    np.testing.assert_allclose(run.final.theta, expected[2], atol=1e-7)


def test_energy_is_balanced_and_rotors_follow_the_coupled_joints() -> None:
    made = jw.simulate(arm(), duration=6.0, rate=250.0, seed=3)
    energy, run = made.run.energy, made.run
    balance = energy.stored + energy.friction + energy.damping - energy.supplied
    assert np.ptp(balance) < 1e-6 * energy.supplied[-1]
    wound = run.theta - run.q @ arm().transmission.matrix.T
    assert np.abs(wound).max() < 0.01  # what the gears give way
    assert np.ptp(run.theta[:, 5] - run.q[:, 5]) > 0.3


@pytest.mark.parametrize("coordinates", ["joint", "motor"])
def test_logs_are_in_the_declared_coordinates(coordinates: str) -> None:
    robot = arm(coordinates=coordinates)
    log = jw.simulate(robot, duration=3.0, rate=100.0, seed=1, keep=0).log
    q = log.q @ robot.transmission.matrix.T if coordinates == "joint" else log.q
    assert np.abs(q - log.theta).max() < 0.02


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "coupling"), [("puma560", PUMA), ("ur5e", "6:5:1,6:4:-0.3,5:4:0.4")])
def test_a_simulated_coupled_arm_is_recovered_and_an_undeclared_coupling_named(name: str, coupling: str) -> None:
    robot = jw.load_robot(name, coupling=coupling)
    made = jw.simulate(robot, duration=20.0, rate=250.0, seed=5, keep=0)
    found = jw.calibrate(made.log, robot, physical=False)
    assert not found.implausible
    names, estimate = found.model.base.names, found.estimate
    truth = np.array([made.truth["base"][each] for each in names])
    half = estimate.factor * estimate.deviation[: len(names)]
    assert np.mean(np.abs(estimate.values[: len(names)] - truth) <= half) > 0.85
    with pytest.raises(DataError, match=r"theta6 turns by q6 .*declare it: --coupling 6:"):
        jw.calibrate(made.log, jw.load_robot(name))
    with pytest.raises(DataError, match=r"theta\d turns by q.*--log-coordinates"):
        jw.calibrate(made.log, jw.load_robot(name, coupling=coupling, coordinates="motor"))
    log = replace(made.log, theta=None)
    plain = jw.calibrate(log, jw.load_robot(name), physical=False, accept_implausible=True)
    check = next(check for check in plain.plausibility if check.subject == "coupling")
    assert check.severity in ("warning", "error")
    ratio = float(re.search(r"6:5:([-\d.]+)", check.advice).group(1).rstrip("."))
    assert ratio == pytest.approx(robot.transmission.matrix[5, 4], abs=0.05)


def test_what_is_not_simulated_of_a_coupling_is_refused() -> None:
    with pytest.raises(DescriptionError, match=r"joint 4: a simulated robot with rigid gears does not model"):
        jw.simulate(arm(), duration=3.0, rate=100.0, plant=PlantOptions(without="stiffness"))
    with pytest.raises(DescriptionError, match="the complete model of spinning rotors"):
        digital_robot(arm(), model="complete")
    digital = digital_robot(arm())
    rigid = replace(digital.joints[0], stiffness=Rigid())
    with pytest.raises(ModelError, match="one entry for each of 6 joints"):
        replace(digital, joints=(*digital.joints, rigid))


def test_the_command_suggests_the_coupling_to_calibrate_with(tmp_path: Path) -> None:
    options = ("--robot", "puma560", "--coupling", PUMA, "--duration", "3", "--rate", "100")
    done = run("simulate", *options, "--output", tmp_path / "log.csv")
    assert done.code == 0, done.err
    assert f"--robot puma560 --coupling {PUMA} --output model.json" in done.out
