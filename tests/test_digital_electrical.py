"""The electrical side of the digital robot: energy balance, voltages, bus, and power fits with known truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from jointwise.model.motor import dq_power
from jointwise.simulation.recording import digital_robot_from_truth, digital_robot_to_dict
from jointwise.simulation.robot import MotorPlant, Supply, default_joints, digital_robot, integrate, motor_voltages
from jointwise.simulation.robot.run import Run

ROBOT = jw.load_robot("ur5e")
TORQUES = 20.0 * np.random.default_rng(0).normal(size=(300, 6)).cumsum(axis=0) / 15.0


def driven(substeps: int, rigid: bool = False, inductance: float = 3e-3) -> Run:
    joints = tuple(replace(j, motor=replace(j.motor, inductance=inductance)) for j in default_joints(ROBOT))
    digital = digital_robot(ROBOT, joints=joints)
    digital = digital.without("stiffness", "friction") if rigid else digital
    return integrate(digital, digital.rest(np.full(6, -0.5)), TORQUES, substeps=substeps)


@pytest.mark.parametrize("rigid", [False, True])
def test_the_electrical_energy_balance_closes(rigid: bool):
    coarse, fine = driven(8, rigid).energy, driven(32, rigid).energy
    assert np.abs(fine.electrical_residual).max() < 1e-6 * fine.moved
    assert fine.copper[-1] > 1.0
    assert np.ptp(fine.magnetic) > 1e-3  # what the inductances store is part of the balance

    def windings(energy: jw.simulation.robot.EnergyAccount) -> float:
        stored = energy.magnetic - energy.magnetic[0]
        return float(np.abs(energy.electrical - energy.copper - energy.supplied - stored).max())

    assert windings(fine) < windings(coarse) / 50.0  # fourth order: the accounts are independent quadratures


def test_a_simulated_motion_closes_to_a_millionth():
    run = jw.simulate("ur5e", "excitation", duration=6.0, seed=1).run
    assert run is not None
    energy = run.energy
    assert np.abs(energy.electrical_residual).max() < 1e-6 * energy.electrical[-1]


def test_a_wrong_account_would_be_noticed():
    energy = driven(32).energy
    wrong = replace(energy, copper=1.001 * energy.copper)
    assert np.abs(wrong.electrical_residual).max() > 1e-5 * energy.moved


def test_voltages_in_the_rotor_frame_give_the_power_of_the_windings():
    joints = default_joints(ROBOT)
    rng = np.random.default_rng(1)
    current, slope, speed = rng.normal(size=(3, 20, 6))
    direct, quadrature = motor_voltages(joints, current, slope, speed)
    power = dq_power((direct, np.zeros_like(current)), (quadrature, current))
    R, L, K = (np.array([getattr(j.motor, name) for j in joints]) for name in ("resistance", "inductance", "gain"))
    np.testing.assert_allclose(power, (R * current + L * slope + K * speed) * current)
    assert (np.sign(direct) == -np.sign(speed * current)).all()  # the cross term lags


def test_the_bus_delivers_the_power_and_sags():
    supply = Supply(voltage=48.0, source=0.2)
    power = np.array([0.0, 40.0, 500.0])
    voltage, current = supply.bus(power)
    np.testing.assert_allclose(voltage * current, power)
    np.testing.assert_allclose(voltage, 48.0 - 0.2 * current)
    with pytest.raises(jw.errors.ModelError, match="at most 2880 W"):
        supply.bus(np.array([3000.0]))
    still = np.zeros((1, 6))
    assert supply.power(default_joints(ROBOT), still, still)[0] == supply.standing
    down = supply.power(default_joints(ROBOT), np.full((1, 6), 3.0), np.full((1, 6), -1.0))
    assert down[0] < 0.0
    assert replace(supply, braking="burnt").power(default_joints(ROBOT), np.full((1, 6), 3.0), -still - 1.0)[0] == 36.0


def test_wrong_windings_and_supplies_are_rejected():
    with pytest.raises(jw.errors.ModelError, match="resistance"):
        MotorPlant(resistance=-0.1)
    with pytest.raises(jw.errors.ModelError, match="an inductance needs a lag"):
        MotorPlant(inductance=1e-3)
    with pytest.raises(jw.errors.ModelError, match="standing"):
        Supply(standing=-1.0)
    with pytest.raises(jw.errors.ModelError, match="stored or burnt"):
        Supply(braking="lost")  # type: ignore[arg-type]


def test_the_truth_holds_supply_and_windings():
    digital = replace(digital_robot(ROBOT), supply=Supply(standing=21.0, conversion=0.1))
    again = digital_robot_from_truth(digital_robot_to_dict(digital))
    assert again.supply == digital.supply
    assert again.joints[0].motor == digital.joints[0].motor


TRUTH = {"standing": 36.0, "share": 1.0, "resistance": 0.6, "no_load_current": 0.08}
"""Of the digital robot in `bus_log`: one resistance for all joints, as the fit assumes."""


def bus_log(seed: int) -> jw.Log:
    joints = tuple(replace(j, motor=replace(j.motor, resistance=0.6)) for j in default_joints(ROBOT))
    plant = jw.PlantOptions(joints=joints)
    return jw.simulate(
        "ur5e", "excitation", duration=12.0, seed=seed, plant=plant, sensors=jw.Sensors(bus=True), keep=0
    ).log


def test_a_power_fit_recovers_the_truth_of_the_digital_robot():
    fitted = jw.energy.fit_power([bus_log(1), bus_log(2)], ROBOT, gains=digital_robot(ROBOT).gains.tolist())
    for value in fitted.values:
        assert value.low <= TRUTH[value.name] <= value.high, value
        assert value.high - value.low < 0.5 * TRUTH[value.name]
    unseen = jw.energy.energy_balance(fitted, bus_log(3)).to_dict()["robot"]
    assert abs(unseen["energy_error"]) < 0.01
    assert unseen["power_rmse"] < 3.0


def test_a_power_fit_fails_on_shuffled_data():
    log = bus_log(1)
    mixed = np.random.default_rng(0).permutation(log.samples)
    shuffled = replace(log, extra={name: values[mixed] for name, values in log.extra.items()})
    with pytest.raises(jw.errors.EstimationError, match="does not follow|negative"):
        jw.energy.fit_power(shuffled, ROBOT, gains=digital_robot(ROBOT).gains.tolist())


def test_bus_channels_are_written_and_read(tmp_path: Path):
    log = bus_log(1)
    path = tmp_path / "log.csv"
    jw.write_log(log, path)
    again = jw.energy.read_power_log(str(path), ROBOT)
    for name in ("actual_robot_voltage", "actual_robot_current"):
        np.testing.assert_array_equal(again.extra[name], log.extra[name])
