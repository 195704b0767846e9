"""Bodies of a calibrated model under the gravity of a log, be it that of the calibration or another."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest

import jointwise
from cli_runs import bench
from jointwise.cli.joint import _bodies
from jointwise.description.payload import Payload, loaded_inertials
from jointwise.errors import ModelError
from jointwise.model.dynamics import Dynamics
from jointwise.model.rigid import inverse_dynamics
from jointwise.result.bodies import CalibratedBodies
from jointwise.spatial import Array

TABLE, WALL = (0.0, 0.0, -9.81), (0.0, 9.81, 0.0)
ARM = jointwise.robot("ur5e")
OWN = Payload(1.0, (0.0, 0.05, 0.1))


def bodies(gravity: tuple[float, ...], payload: Payload | None = None, own: Payload | None = None) -> CalibratedBodies:
    """Return the described bodies as a calibration on a table would know them: by their base parameters alone."""
    model = Dynamics(ARM, TABLE, False, ((),) * ARM.dof)
    values = model.base.from_standard(loaded_inertials(ARM, own).ravel())
    known = None if own is None else (own.mass, *np.asarray(own.center_of_mass))
    calibration = SimpleNamespace(
        model=model, estimate=SimpleNamespace(values=values), provenance=SimpleNamespace(payload=known)
    )
    return CalibratedBodies(calibration, np.array(gravity), payload)  # type: ignore[arg-type]


def states() -> Array:
    return np.random.default_rng(1).uniform(-2.0, 2.0, (3, 30, ARM.dof))


def described(gravity: tuple[float, ...], payload: Payload | None = None) -> Array:
    none = np.zeros(ARM.dof)
    return inverse_dynamics(ARM, *states(), gravity=list(gravity), payload=payload, rotor_inertias=none)


def test_a_model_of_the_table_tells_loads_on_the_wall_but_that_of_the_first_joint() -> None:
    wall = bodies(WALL)
    assert [wall.tells(j) for j in range(ARM.dof)] == [False, True, True, True, True, True]
    assert wall(*states())[:, 1:] == pytest.approx(described(WALL)[:, 1:], abs=1e-9)
    assert wall(*states())[:, 0] != pytest.approx(described(WALL)[:, 0], abs=1.0)
    assert all(bodies(TABLE).tells(j) for j in range(ARM.dof))


def test_a_payload_replaces_the_one_that_the_model_was_calibrated_with() -> None:
    heavy = Payload(3.0, (0.1, 0.0, 0.0))
    assert bodies(TABLE, heavy)(*states()) == pytest.approx(described(TABLE, heavy), abs=1e-9)
    assert bodies(TABLE, heavy, OWN)(*states()) == pytest.approx(described(TABLE, heavy), abs=1e-9)
    assert bodies(TABLE, None, OWN)(*states()) == pytest.approx(described(TABLE, OWN), abs=1e-9)


@pytest.mark.parametrize("gravity", [(3.0, -9.0, 0.0), (0.0, 9.81, 0.0)])
def test_the_gravity_that_is_given_is_the_one_taken(
    gravity: tuple[float, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    arm = jointwise.robot("planar2")
    found = _bodies(Namespace(model=str(bench().model), payload=None, joint=1), arm, [], list(gravity))
    assert found["mounting"] == list(gravity)
    assert f"taken under {gravity[0]:g} {gravity[1]:g} 0 m/s^2" in capsys.readouterr().err
    q, zero = np.random.default_rng(0).uniform(-2.0, 2.0, (30, 2)), np.zeros((30, 2))
    truth = inverse_dynamics(arm, q, zero, zero, gravity=list(gravity))
    assert found["load"](q, zero, zero) == pytest.approx(truth, abs=0.05 * np.abs(truth).max())


def test_where_nobody_tells_a_gravity_the_model_does(capsys: pytest.CaptureFixture[str]) -> None:
    args = Namespace(model=str(bench().model), payload=None, joint=1)
    found = _bodies(args, jointwise.robot("planar2"), [], None)
    assert found["mounting"] == list(jointwise.load_calibration(bench().model).model.gravity)
    assert capsys.readouterr().err == ""


def test_a_model_of_another_robot_is_refused() -> None:
    args = Namespace(model=str(bench().model), payload=None, joint=1)
    with pytest.raises(ModelError, match="is a model of planar2, not of ur5e"):
        _bodies(args, ARM, [], None)
