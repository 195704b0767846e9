"""Help is quick: no command loads anything heavy before it works."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jointwise.cli import COMMANDS

HEAVY = ("numpy", "scipy", "pyarrow", "plotly")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "robots"])
def test_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    script = f"""
import sys
from jointwise.cli import main
main([{name!r}, "--help"])
main([{name!r}, "--no-such-option"])
print("loaded", *sorted(set({HEAVY}) & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded"
    assert "examples:" in done.stdout
