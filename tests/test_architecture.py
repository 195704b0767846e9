"""The page on the architecture names existing functions, and the commands call them in the order of the page."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path
from types import FrameType

import pytest

from jointwise.cli import main

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "jointwise"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### `jointwise ([a-z ]+)`\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| \d+ \| `([\w/.]+)` \| `([\w.]+)` \|", re.MULTILINE)
NAMED_FILE = re.compile(r"`([\w/]+\.(?:py|c|h))`")

Call = tuple[str, str]
"""File below `src/jointwise`, and qualified name of a function."""

PATHS: dict[str, list[Call]] = {match[1]: ROW.findall(match[2]) for match in SECTION.finditer(PAGE)}
COMMANDS = {
    "calibrate": "calibrate training.csv --robot planar2 --direction hysteresis --output model.json --quiet",
    "joint hysteresis": "joint hysteresis slow.parquet --robot ur5e --joint 2 --method nlr --output joint.json --quiet",
    "simulate": "simulate --robot planar2 --duration 2 --output log.csv --quiet",
}
LOGS = {
    "calibrate": "simulate --robot planar2 --duration 15 --rate 200 --seed 1 --output training.csv --quiet",
    "joint hysteresis": "simulate --robot ur5e --experiment reciprocate --joint 2 --duration 30 --output slow.parquet "
    "--quiet",
}


def calls_of(words: list[str], named: Collection[Call]) -> list[Call]:
    """Run a command and return the calls of the named functions, in the order of time."""
    calls: list[Call] = []

    def trace(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(SOURCE)):
            call = Path(path).relative_to(SOURCE).as_posix(), frame.f_code.co_qualname
            if call in named:
                calls.append(call)

    sys.setprofile(trace)
    try:
        code = main(words)
    finally:
        sys.setprofile(None)
    assert code == 0
    return calls


def test_every_command_of_the_tests_has_a_path_on_the_page():
    assert set(PATHS) == set(COMMANDS)
    assert all(len(path) >= 8 for path in PATHS.values())


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_calls_the_named_functions_in_order(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if command in LOGS:
        assert main(LOGS[command].split()) == 0
    later = iter(calls_of(COMMANDS[command].split(), PATHS[command]))
    for call in PATHS[command]:
        assert call in later, "not called after the function of the row above"


def test_named_files_exist():
    for name in set(NAMED_FILE.findall(PAGE)):
        assert any((folder / name).exists() for folder in (SOURCE, ROOT)), name
