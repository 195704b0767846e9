"""Real logs through the command line alone: the figures that are promised, and what must be refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli_runs import TRAINING, UR10E, done, refused
from data_files import SHARED, needs_shared

pytestmark = needs_shared


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the model of the 50 s log, with no tuning flags."""
    path = tmp_path_factory.mktemp("real") / "model.json"
    done("calibrate", TRAINING, "--robot", "ur10e", "--output", path)
    return path


def figures(model: Path, log: Path) -> dict[str, object]:
    result: dict[str, object] = json.loads(done("validate", model, log, "--json"))
    return result


@pytest.mark.parametrize(
    ("name", "limit"),
    [("id_20_02_12_40sec_12harm", 0.0075), ("id_20_02_19_14harm50sec", 0.0077), ("id_20_02_05_20sec_8harm", 0.0095)],
)
def test_ur10e(model: Path, name: str, limit: float) -> None:
    found = figures(model, UR10E / f"{name}.csv")
    assert np.mean([joint["nmse"] for joint in found["joints"]]) <= limit  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["val_20_01_17_p1", "joint_20_01_22_joint_1"])
def test_standstill_and_single_joints_can_be_validated(model: Path, name: str) -> None:
    assert len(figures(model, UR10E / f"{name}.csv")["joints"]) == 6  # type: ignore[arg-type]


def test_prediction_meets_the_validation(model: Path, tmp_path: Path) -> None:
    log, target = UR10E / "id_20_02_05_20sec_8harm.csv", tmp_path / "p.csv"
    done("predict", model, log, "--output", target)
    measured = np.genfromtxt(log, delimiter=",", names=True)
    predicted = np.genfromtxt(target, delimiter=",", names=True)
    assert np.array_equal(predicted["t"], measured["t"])
    for j, joint in enumerate(figures(model, log)["joints"], start=1):  # type: ignore[arg-type,var-annotated]
        mse = np.mean((measured[f"i{j}"] - predicted[f"i{j}_pred"]) ** 2)
        assert mse == pytest.approx(joint["mse"], rel=1e-9)


@pytest.mark.thorough
def test_panda(tmp_path: Path) -> None:
    header, *rows = (SHARED / "panda" / "traj1_first60.csv").read_text().splitlines(keepends=True)
    cut = round(0.6 * len(rows))
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text(header + "".join(rows[:cut]))
    test.write_text(header + "".join(rows[cut:]))
    done("calibrate", train, "--robot", "panda", "--output", tmp_path / "m.json", "--quiet")
    found = figures(tmp_path / "m.json", test)
    assert found["unit"] == "Nm"
    assert np.mean([joint["nmse"] for joint in found["joints"][:6]]) <= 0.016  # type: ignore[index]


@pytest.mark.thorough
def test_shuffled_currents_are_refused(tmp_path: Path) -> None:
    header, *rows = TRAINING.read_text().splitlines()
    cells = [row.split(",") for row in rows]
    order = np.random.default_rng(1).permutation(len(cells))
    mixed = [",".join([*item[:13], *cells[k][13:19], *item[19:]]) for item, k in zip(cells, order, strict=True)]
    log = tmp_path / "log.csv"
    log.write_text("\n".join([header, *mixed]) + "\n")
    assert "not identifiable" in refused("calibrate", log, "--robot", "ur10e", "--output", tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


def test_a_motionless_log_is_refused(tmp_path: Path) -> None:
    log = UR10E / "val_20_01_17_p1.csv"
    assert "nothing moves" in refused("calibrate", log, "--robot", "ur10e", "--output", tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
