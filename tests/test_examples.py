"""The scripts in examples/ run and print sensible results."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def load(monkeypatch):
    def load_example(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load_example


def test_a_simulated_robot_is_calibrated(load, capsys):
    assert load("calibrate_simulated_robot").main(duration=20.0) > 0.99
    assert "base parameters are within their confidence intervals" in capsys.readouterr().out


def test_one_joint_is_identified(load, capsys):
    model = load("identify_one_joint").main()
    assert set(model.parts) == {"stiffness", "friction"}
    assert "F_C" in capsys.readouterr().out


@pytest.mark.thorough
def test_feed_forward_reduces_the_tracking_error(load):
    errors = load("feed_forward").main(duration=20.0)
    assert errors["PD with feed-forward"] < 0.3 * errors["PD"]
