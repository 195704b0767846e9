"""Commands for the tests of the command line, and a small robot's logs and model to run them on."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Any, NoReturn

import jointwise
from computed import once, run_folder
from data_files import SHARED
from jointwise.cli import load, main
from jointwise.cli.command import command_of, settings_from
from jointwise.data.write import write_csv
from synthetic import synthetic_log

UR10E = SHARED / "ur10e"
TRAINING = UR10E / "id_20_02_12_50sec_12harm.csv"
PLAIN = ("--direction", "tanh", "--load", "none", "--viscous-powers", "1", "--stribeck", "0", "--no-ripple")
"""A joint model that is quick to fit."""
CRASHED = 99
"""Exit code of a forked process that ended by an exception."""


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


@dataclass(frozen=True)
class Measured(Done):
    """How a command ended, its largest memory (MB, with what it inherits from the test) and its processor time (s)."""

    megabytes: float
    seconds: float


PATIENCE = 120.0
"""Seconds after which a command counts as endless."""
MOST_ADDRESSES = 16 * 2**30
"""Bytes of address space: above every limit that tests assert, below what makes the machine unusable."""


def run_measured(*argv: object, stdin: bytes = b"") -> Measured:
    """Run a command in a process forked from this one, so that its memory, time and crashes are its alone.

    The imports of this process are inherited: a fork takes milliseconds where a new interpreter takes a second.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the test runner: the child uses none of them
        child = os.fork()
    if child == 0:
        os.close(reader)
        _send_result(writer, argv, stdin)
    os.close(writer)
    answer = _received(reader, child)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    out, err = json.loads(answer) if answer else ("", "no answer: the process crashed or did not end")
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Measured(code, out, err, kilobytes / 1024, used.ru_utime + used.ru_stime)


def _send_result(writer: int, argv: tuple[object, ...], stdin: bytes) -> NoReturn:
    """Run a command in the forked process, write what it printed into a pipe and leave with its exit code."""
    import resource

    code = CRASHED
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
        with TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            os.dup2(file.fileno(), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
        ended = run(*argv)
        with os.fdopen(writer, "w") as stream:
            json.dump((ended.out, ended.err), stream)
        code = ended.code
    finally:
        os._exit(code)


def _received(reader: int, child: int) -> bytes:
    """Return all bytes of a pipe; a process that takes longer than `PATIENCE` is killed."""
    end, parts = time.monotonic() + PATIENCE, []
    with os.fdopen(reader, "rb", buffering=0) as stream:
        while True:
            if not select.select([stream], [], [], max(end - time.monotonic(), 0.0))[0]:
                os.kill(child, signal.SIGKILL)
            part = stream.read(1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)


def settings_for(*argv: object) -> Any:
    """Return the settings that the words of a command state."""
    name, *words = map(str, argv)
    command, inner, rest = command_of(load(name), name, words)
    assert command is not None
    return settings_from(command, " ".join(["jointwise", name, *inner]), rest)


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


def bench() -> Bench:
    """Return the files, made once in a run of the tests."""
    return once(_bench)


def _bench() -> Bench:
    folder = Path(mkdtemp(prefix="bench-", dir=run_folder()))
    files = Bench(folder / "training.csv", folder / "unseen.csv", folder / "model.json")
    robot = jointwise.load_robot("planar2")
    write_csv(synthetic_log(robot, "fourier", duration=20.0, rate=100.0, jitter=1e-3, seed=1).log, files.training)
    write_csv(synthetic_log(robot, "point_to_point", duration=20.0, rate=100.0, seed=2).log, files.unseen)
    done("calibrate", files.training, "--robot", "planar2", "--output", files.model, "--quiet", *PLAIN)
    return files
