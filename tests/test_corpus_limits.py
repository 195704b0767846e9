"""Memory and time of bad input: the largest cases of the corpus, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpus import BAD, COMMANDS
from test_corpus import SKIPPED, SLOTS, words_of

pytestmark = pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system does not report the memory of a process")

MOST_MEGABYTES = 1500.0
MOST_SECONDS = 10.0
"""Processor time; the time on the clock depends on what else the machine does."""
PATIENCE = 120.0
"""Seconds after which a command counts as endless."""
CASES = [
    ("validate-parquet", "log.parquet", "bomb"),
    ("validate-parquet", "log.parquet", "huge footer"),
    ("validate-parquet", "log.parquet", "nested"),
    ("inspect", "log", "4097 columns"),
    ("inspect", "log", "long cell"),
    ("validate", "model", "deep brackets"),
    ("robots-show", "robot.toml", "deep keys"),
    ("robots-show-urdf", "robot.urdf", "entities"),
    ("robots-check", "robot.csv", "power"),
    ("inspect-columns", "columns.toml", "huge range"),
    ("simulate-drive", "drive.toml", "elements"),
    ("virtual-ur", "program.script", "long text"),
    ("virtual-ur", "program.script", "tower of powers"),
]
"""Those that take most if a limit is missing: what decompresses, expands, nests, counts or does not end."""
ENDLESS = {
    "a gap of years": ("simulate-motion", "motion", "t,q1,q2\n0,0,0\n0.01,0,0\n0.02,0,0\n1e9,0,0\n1e9,0,0\n"),
    "times in ns": ("simulate-motion", "motion", "\n".join(["t,q1,q2", *(f"{k}e9,0,0" for k in range(2000)), ""])),
    "endless loop": ("virtual-ur", "program.script", "movej([0,0,0,0,0,0])\nwhile True:\nend\n"),
}
OPTIONS = [
    ("simulate", "--duration=1e5", "--rate=1e5"),
    ("simulate", "--control-rate=0.001"),
    ("joint-plan", "--rate=1e5", "--payload=1e5"),
    ("excite", "--duration=1e5"),
    ("export", "--rate=1e5"),
]


def cost(words: list[str]) -> tuple[int, float, float]:
    """Run a command; return its exit code, largest memory (MB) and processor time (s)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jointwise", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + PATIENCE
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
            return process.returncode, kilobytes / 1024, used.ru_utime + used.ru_stime
        if time.monotonic() > end:
            process.kill()
        time.sleep(0.01)


def check_cost(words: list[str], folder: Path) -> None:
    code, megabytes, seconds = cost(words)
    assert code in (0, 1, 2), (words, code)
    assert megabytes < MOST_MEGABYTES, (words, megabytes)
    assert seconds < MOST_SECONDS, (words, seconds)
    assert code == 0 or list(folder.iterdir()) == []


@pytest.mark.parametrize(("command", "slot", "name"), CASES)
def test_damaged_files(tmp_path: Path, command: str, slot: str, name: str) -> None:
    assert (command, slot) in {*SLOTS} - SKIPPED
    check_file(tmp_path, command, slot, BAD[slot]()[name])


@pytest.mark.parametrize("name", ENDLESS)
def test_files_without_end(tmp_path: Path, name: str) -> None:
    command, slot, text = ENDLESS[name]
    check_file(tmp_path, command, slot, text.encode())


def check_file(folder: Path, command: str, slot: str, content: bytes) -> None:
    file, out = folder / f"bad{Path(slot).suffix}", folder / "out"
    file.write_bytes(content)
    out.mkdir()
    check_cost(words_of(command, out, **{slot.replace(".", "_"): file}), out)


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_numbers_that_take_memory(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert words[0] in COMMANDS
    check_cost([*words_of(words[0], tmp_path), *words[1:]], tmp_path)
