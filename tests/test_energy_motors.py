"""Motor data: the calibration sheet of a UR5e, the power model that follows from it, and the Park transform."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import done
from data_files import SHARED, needs_shared
from motor_sheets import sheet_text

SHEET = SHARED / "ur5e" / "joint_calibration_sheet.txt"


def test_known_motor_constants_are_recovered(tmp_path: Path):
    (tmp_path / "sheet.txt").write_text(sheet_text())
    (sheet,) = jw.energy.read_calibration_sheet(tmp_path / "sheet.txt")
    motor = jw.energy.motor_data(sheet)
    assert len(sheet.speed) == 8  # without speed 0
    found = [motor.resistance, motor.back_emf, motor.torque_constant, motor.coulomb, motor.viscous, motor.square]
    np.testing.assert_allclose([value.value for value in found], [0.3, 0.07, 0.1, 0.05, 3e-4, -2e-7], rtol=1e-5)


def test_wrong_sheets_are_refused_in_one_line(tmp_path: Path):
    path = tmp_path / "sheet.txt"
    path.write_text("t,q1\n0,1\n")
    with pytest.raises(jw.errors.DataError, match="no calibration sheet"):
        jw.energy.read_calibration_sheet(path)
    path.write_text(sheet_text().replace("+1.50", "fast"))
    with pytest.raises(jw.errors.DataError, match="row 13 must have 6 numbers"):
        jw.energy.read_calibration_sheet(path)
    path.write_text(sheet_text(resistance=-0.3))
    with pytest.raises(jw.errors.EstimationError, match="resistance of -0.3 Ohm"):
        jw.energy.motor_data(jw.energy.read_calibration_sheet(path)[0])


@needs_shared
def test_the_sheet_of_a_real_ur5e():
    motors = [jw.energy.motor_data(sheet) for sheet in jw.energy.read_calibration_sheet(SHEET)]
    assert [motor.joint for motor in motors] == [0, 1, 2, 3, 4, 5]
    for motor, sheet in zip(motors, jw.energy.read_calibration_sheet(SHEET), strict=True):
        assert motor.torque_constant.value == pytest.approx(sheet.torque_constant, rel=0.01)
        assert motor.voltage_rms < 0.005 * np.abs(sheet.voltage).max()
        assert motor.friction_rms < 0.05 * np.abs(sheet.torque).max()
    for group in (motors[:3], motors[3:]):  # like drives are alike
        values = [motor.resistance for motor in group]
        assert max(value.low for value in values) < min(value.high for value in values)
        assert np.ptp([motor.back_emf.value for motor in group]) < 0.02 * group[0].back_emf.value
    power = jw.energy.power_from_motors("ur5e", tuple(motors), standing=40.0, conversion=1.0 / 0.89 - 1.0)
    assert power.power(np.zeros((1, 6)), np.zeros((1, 6)))[0] == 40.0
    assert (np.array(power.resistance[3:]) > 3.0 * power.resistance[0]).all()


@needs_shared
def test_the_sheet_command_writes_a_power_model(tmp_path: Path):
    path = tmp_path / "power.json"
    rows = json.loads(done("energy", "sheet", SHEET, "--robot", "ur5e", "--standing", 40, "--output", path, "--json"))
    assert rows[3]["joint"] == 4
    assert 0.9 < rows[3]["resistance"]["value"] < 1.2
    assert jw.energy.load_power_model(path).standing == 40.0
    assert "joint 6" in done("energy", "sheet", SHEET)


def test_the_park_transform_inverts_and_conserves_power():
    rng = np.random.default_rng(0)
    rotor, d, q, pairs = rng.uniform(-9.0, 9.0, 50), rng.normal(size=50), rng.normal(size=50), 4
    phases = jw.energy.inverse_park(d, q, rotor, pairs)
    np.testing.assert_allclose(phases.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.array(jw.energy.park(phases, rotor, pairs)), [d, q], atol=1e-12)
    np.testing.assert_allclose((phases**2).sum(axis=1), 1.5 * (d**2 + q**2))  # copper loss: 1.5 R per phase
    flux = 0.02  # torque = phase currents times derivative of the flux linkages psi cos(p th - 2 pi k / 3)
    slope = -pairs * flux * np.sin(pairs * rotor[:, None] - 2.0 * np.pi / 3.0 * np.arange(3))
    np.testing.assert_allclose((phases * slope).sum(axis=1), 1.5 * pairs * flux * q, atol=1e-12)


def test_the_park_transform_refuses_two_phases():
    with pytest.raises(jw.errors.ShapeError, match="samples, 3"):
        jw.energy.park(np.zeros((4, 2)), np.zeros(4), 4)
    with pytest.raises(jw.errors.ShapeError, match="pole pairs"):
        jw.energy.inverse_park([1.0], [1.0], [0.0], 0)
