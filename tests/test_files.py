"""Files that an earlier release wrote still load, and say and predict the same numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from jointwise.joint import PHENOMENA, load_joints
from jointwise.result import load_calibration
from jointwise.spatial import Array
from stored_files import FILES, KINDS, PREDICTIONS, numbers

NAMES = sorted(path.name for path in FILES.iterdir() if path.stem.partition("_")[0] in KINDS)


@cache
def stored() -> dict[str, Array]:
    with np.load(PREDICTIONS) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_release_says_the_same(name: str) -> None:
    found = {f"{name}: {what}": values for what, values in numbers(FILES / name).items()}
    expected = {what: values for what, values in stored().items() if what.startswith(f"{name}: ")}
    assert set(found) == set(expected)
    for what, values in expected.items():
        size = float(np.nanmax(np.abs(values), initial=0.0))
        np.testing.assert_allclose(found[what], values, rtol=1e-12, atol=1e-12 * size, err_msg=what)


def test_the_files_hold_what_they_are_kept_for() -> None:
    assert set(load_joints(FILES / "joint_all.json")[0].parts) == set(PHENOMENA)
    models = {name: load_calibration(FILES / name) for name in NAMES if name.startswith("model")}
    kinds = {name: {term.kind for terms in model.model.terms for term in terms} for name, model in models.items()}
    assert {"spring", "power_flow", "rated"} <= set.union(*kinds.values())
    assert "rated" in kinds["model_lugre.json"]
    assert models["model_two_encoders.json"].model.rotor_side
    assert models["model_coupled.json"].model.robot.transmission is not None
    assert models["model_panda.json"].output == "torque"
    assert models["model_payload.json"].ignored == (4, 5)
    assert models["model_ur10e.json"].feed_forward is not None


def test_every_prediction_is_checked() -> None:
    assert {what.partition(": ")[0] for what in stored()} == set(NAMES)
