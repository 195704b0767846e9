"""Bodies of a calibrated model under the gravity of a log, be it that of the calibration or another."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import jointwise
from cli_runs import bench, settings_for
from jointwise.cli.joint_logs import _calibrated_bodies
from jointwise.cli.output import print_notes
from jointwise.description import Payload
from jointwise.description.robot import loaded_inertials
from jointwise.errors import ModelError
from jointwise.model.dynamics import Dynamics
from jointwise.model.rigid import inverse_dynamics
from jointwise.result import Provenance
from jointwise.result.bodies import CalibratedBodies, calibrated_load
from jointwise.spatial import Array

pytestmark = pytest.mark.compat

TABLE, WALL = (0.0, 0.0, -9.81), (0.0, 9.81, 0.0)
ARM = jointwise.load_robot("ur5e")
CARRIED = Payload(1.0, (0.0, 0.05, 0.1))


def bodies(
    gravity: tuple[float, ...], payload: Payload | None = None, calibrated: Payload | None = None
) -> CalibratedBodies:
    """Return the described bodies as a calibration on a table would know them: by their base parameters alone."""
    model = Dynamics(ARM, TABLE, False, ((),) * ARM.dof)
    values = model.base.from_standard(loaded_inertials(ARM, calibrated).ravel())
    known = None if calibrated is None else (calibrated.mass, *np.asarray(calibrated.center_of_mass))
    calibration = SimpleNamespace(
        model=model, estimate=SimpleNamespace(values=values), provenance=Provenance("", "", "", (), payload=known)
    )
    return CalibratedBodies(calibration, np.array(gravity), payload)  # type: ignore[arg-type]


def states() -> Array:
    return np.random.default_rng(1).uniform(-2.0, 2.0, (3, 30, ARM.dof))


def described(gravity: tuple[float, ...], payload: Payload | None = None) -> Array:
    none = np.zeros(ARM.dof)
    return inverse_dynamics(ARM, *states(), gravity=list(gravity), payload=payload, rotor_inertias=none)


def test_a_model_of_the_table_determines_loads_on_the_wall_except_that_of_the_first_joint() -> None:
    wall = bodies(WALL)
    assert [wall.determines_load(j) for j in range(ARM.dof)] == [False, True, True, True, True, True]
    assert wall(*states())[:, 1:] == pytest.approx(described(WALL)[:, 1:], abs=1e-9)
    assert wall(*states())[:, 0] != pytest.approx(described(WALL)[:, 0], abs=1.0)
    assert all(bodies(TABLE).determines_load(j) for j in range(ARM.dof))


def test_a_payload_replaces_the_one_that_the_model_was_calibrated_with() -> None:
    heavy = Payload(3.0, (0.1, 0.0, 0.0))
    assert bodies(TABLE, heavy)(*states()) == pytest.approx(described(TABLE, heavy), abs=1e-9)
    assert bodies(TABLE, heavy, CARRIED)(*states()) == pytest.approx(described(TABLE, heavy), abs=1e-9)
    assert bodies(TABLE, None, CARRIED)(*states()) == pytest.approx(described(TABLE, CARRIED), abs=1e-9)


@pytest.mark.parametrize("gravity", [(3.0, -9.0, 0.0), (0.0, 9.81, 0.0)])
def test_the_stated_gravity_is_used(gravity: tuple[float, ...], capsys: pytest.CaptureFixture[str]) -> None:
    arm = jointwise.load_robot("planar2")
    settings = settings_for("joint", "friction", "log.csv", "--robot", "planar2", "--joint", 1)
    found = _calibrated_bodies(settings, str(bench().model), arm, [], list(gravity))
    assert found.gravity.tolist() == list(gravity)
    print_notes()
    assert f"used under {gravity[0]:g} {gravity[1]:g} 0 m/s^2" in capsys.readouterr().err
    q, zero = np.random.default_rng(0).uniform(-2.0, 2.0, (30, 2)), np.zeros((30, 2))
    truth = inverse_dynamics(arm, q, zero, zero, gravity=list(gravity))
    assert found(q, zero, zero) == pytest.approx(truth, abs=0.05 * np.abs(truth).max())


def test_without_a_stated_gravity_that_of_the_model_is_used() -> None:
    calibration = jointwise.load_calibration(bench().model)
    found = calibrated_load(calibration, jointwise.load_robot("planar2"), 0, [])
    assert found.gravity.tolist() == list(calibration.model.gravity)


def test_a_model_of_another_robot_is_rejected() -> None:
    with pytest.raises(ModelError, match="must be of ur5e. Got one of planar2 instead"):
        calibrated_load(jointwise.load_calibration(bench().model), ARM, 0, [])
