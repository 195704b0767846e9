"""Starting is quick because nothing heavy is loaded: seen in sys.modules, not on a clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "scipy", "lxml", "yourdfpy", "trimesh", "matplotlib")


def loaded_by(code: str) -> set[str]:
    """Return which heavy libraries a fresh interpreter has loaded after `code`."""
    script = f"{code}\nimport sys\nprint('loaded', *sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("argv", [["--help"], ["--version"], [], ["nonsense"]])
def test_the_command_line_starts_without_numpy(argv: list[str]) -> None:
    assert loaded_by(f"from jointwise.cli import main\nmain({argv})") == set()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import jointwise") == set()


def test_a_robot_needs_numpy_only() -> None:
    assert loaded_by("import jointwise\njointwise.robot('ur5e')") == {"numpy"}
