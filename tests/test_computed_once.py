"""Clocks, inspections and predictions are computed once in a run of a command, and shared with its report."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointwise.cli import main
from jointwise.data import Log, clock, conditioning, holdout, quality
from jointwise.result import predict

LOGS = {
    "training.csv": "simulate --robot planar2 --duration 15 --rate 200 --seed 1",
    "other.csv": "simulate --robot planar2 --duration 13 --rate 200 --seed 2",
    "slow.parquet": "simulate --robot ur5e --experiment reciprocate --joint 2 --duration 30",
    "bus.csv": "simulate --robot ur5e --experiment bang-coast-bang --seed 1 --bus",
}
CALIBRATE = "calibrate training.csv --robot planar2 --validate other.csv --report report --output model.json --quiet"
ENERGY_FIT = "energy fit bus.csv --robot ur5e --output power.json"
COMMANDS = {
    CALIBRATE: ("training.csv", "other.csv"),
    "validate model.json training.csv other.csv": ("training.csv", "other.csv"),
    "report model.json training.csv other.csv --output page --quiet": ("training.csv", "other.csv"),
    "compare model.json same.json other.csv": ("other.csv",),
    "inspect other.csv --robot planar2": ("other.csv",),
    "predict model.json other.csv --output prediction.csv": ("other.csv",),
    "payload model.json other.csv": ("other.csv",),
    "joint hysteresis slow.parquet --robot ur5e --joint 2 --method nlr --report joint --output joint.json --quiet": (
        "slow.parquet",
    ),
    ENERGY_FIT: ("bus.csv",),
    "energy report power.json bus.csv": ("bus.csv",),
}
"""Commands, in an order in which the files that they need exist, and the logs that they read."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the logs and two copies of a model of the planar arm, and a power model."""
    path = tmp_path_factory.mktemp("once")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        for name, words in LOGS.items():
            assert main([*words.split(), "--output", name, "--quiet"]) == 0
        assert main(CALIBRATE.split()) == 0
        assert main(ENERGY_FIT.split()) == 0
        (path / "same.json").write_bytes((path / "model.json").read_bytes())
    return path


def counted(patch: pytest.MonkeyPatch, home: Any, name: str, key: Callable[..., Any]) -> Counter[Any]:
    """Count the calls of a function by a key of its arguments, in every module that has imported it."""
    function, calls = getattr(home, name), Counter[Any]()

    def counting(*args: Any, **options: Any) -> Any:
        calls[key(*args)] += 1
        return function(*args, **options)

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("jointwise") and getattr(module, name, None) is function:
            patch.setattr(module, name, counting)
    return calls


def name_of(log: Log, *_: object) -> str:
    """Return the file name of a log."""
    return Path(log.origin.path).name


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_examines_the_clock_of_a_log_once(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    calls = counted(monkeypatch, clock, "examine_clock", name_of)
    assert main(command.split()) == 0
    assert calls == dict.fromkeys(COMMANDS[command], 1)


def test_calibrate_shares_inspections_and_predictions_with_its_report(folder, monkeypatch):
    monkeypatch.chdir(folder)
    inspections = counted(monkeypatch, quality, "measure", name_of)
    predictions = counted(
        monkeypatch, predict, "output_chunks", lambda model, values, log, *_: (name_of(log), values.tobytes())
    )
    conditionings = counted(monkeypatch, conditioning, "condition", lambda span, _: name_of(span.log))
    assert main(CALIBRATE.split()) == 0
    assert inspections == {"training.csv": 1, "other.csv": 1}
    assert set(predictions.values()) == {1}
    of_log = Counter(name for name, _ in predictions)
    assert of_log == {"training.csv": 2, "other.csv": 4}  # two uses of the model, and of the consistent bodies
    assert conditionings["other.csv"] == of_log["other.csv"]


def test_copies_at_the_same_stamps_share_the_clock_and_others_do_not():
    t = np.arange(0.0, 1.0, 0.01)
    t[50:] += 0.5
    log = Log(t=t, q=np.zeros((100, 2)), qd=np.zeros((100, 2)), current=np.zeros((100, 2)))
    copies = [log.select(qd=False), log.ignore_output([1]), log.with_temperature(20.0), log.without(["qd"]).without([])]
    assert all(copy.clock is log.clock for copy in copies)
    assert log.clock.gaps.tolist() == [50]
    assert log.select(qd=False).slice(40, 60).clock.gaps.tolist() == [10]
    assert [len(part.clock.gaps) for part in holdout(log.select(qd=False), 0.3)] == [1, 0]
    assert len(log.with_channels(t=np.arange(100.0) / 10.0).clock.gaps) == 0


def test_ignored_outputs_do_not_turn_repeated_rows_into_other_values():
    t = np.repeat(np.arange(0.0, 1.0, 0.01), 2)
    current = np.column_stack([np.repeat(np.arange(100.0), 2), np.full(200, np.nan)])
    log = Log(t=t, q=np.repeat(np.arange(200.0).reshape(100, 2), 2, axis=0), current=current)
    assert "100 whole rows, 0 with other values" in log.clock.findings[0].evidence
