"""Commands for the tests of the command line, and a small robot's logs and model to run them on."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import jointwise
from data_files import SHARED
from jointwise.cli import main
from jointwise.data.write import write_csv
from synthetic import synthetic_log

UR10E = SHARED / "ur10e"
TRAINING = UR10E / "id_20_02_12_50sec_12harm.csv"
PLAIN = ("--direction", "tanh", "--load", "none", "--viscous-powers", "1", "--stribeck", "0", "--no-ripple")
"""A joint model that is quick to fit."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def run(*argv: object) -> Done:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in argv])
    return Done(code, out.getvalue(), err.getvalue())


def done(*argv: object) -> str:
    """Run a command that must succeed and return what it printed."""
    result = run(*argv)
    assert result.code == 0, result.err
    return result.out


def refused(*argv: object, code: int = 1) -> str:
    """Run a command that must be refused in one clear line, and return the line."""
    result = run(*argv)
    assert (result.code, result.out) == (code, ""), result
    assert result.err.startswith("jointwise: ")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err
    return result.err


@dataclass(frozen=True)
class Bench:
    """Files of a simulated two-link arm: training log, another motion, a model."""

    training: Path
    unseen: Path
    model: Path


@lru_cache
def bench() -> Bench:
    """Return the files, made once a test run."""
    folder = Path(mkdtemp(prefix="jointwise-cli-"))
    files = Bench(folder / "training.csv", folder / "unseen.csv", folder / "model.json")
    robot = jointwise.load_robot("planar2")
    write_csv(synthetic_log(robot, "fourier", duration=20.0, rate=100.0, jitter=1e-3, seed=1).log, files.training)
    write_csv(synthetic_log(robot, "point_to_point", duration=20.0, rate=100.0, seed=2).log, files.unseen)
    done("calibrate", files.training, "--robot", "planar2", "--output", files.model, "--quiet", *PLAIN)
    return files
