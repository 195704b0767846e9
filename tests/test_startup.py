"""The public front: its names, and that neither importing it nor asking for help loads a heavy library."""

from __future__ import annotations

import subprocess
import sys

import pytest

import jointwise as jw
from jointwise.cli import COMMANDS
from jointwise.lazy import lazy_modules

HEAVY = ("numpy", "scipy", "pyarrow", "jinja2", "lxml", "matplotlib", "msgspec", "rich")


def loaded_by(code: str) -> set[str]:
    """Return which heavy libraries a fresh interpreter has loaded after `code`."""
    script = f"{code}\nimport sys\nprint('loaded', *sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("argv", [["--help"], ["--version"], [], ["nonsense"]])
def test_the_command_line_starts_without_heavy_libraries(argv: list[str]) -> None:
    assert loaded_by(f"from jointwise.cli import main\nmain({argv})") == set()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "robots"])
def test_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    assert (
        loaded_by(f"from jointwise.cli import main\nmain([{name!r}, '--help'])\nmain([{name!r}, '--wrong'])") == set()
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from jointwise.cli import main

    main([name, "--help"])
    assert "examples:" in capsys.readouterr().out


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import jointwise\ndir(jointwise)") == set()


def test_a_robot_needs_numpy_only() -> None:
    assert loaded_by("import jointwise\njointwise.load_robot('ur5e')") == {"numpy"}


def test_every_public_name_can_be_imported() -> None:
    assert len(jw.__all__) == len(set(jw.__all__)) < 70
    assert all(getattr(jw, name) is not None for name in jw.__all__)
    assert set(dir(jw)) == set(jw.__all__)


def test_a_package_without_source_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Public names are read from the source of a package, which byte code alone does not have."""
    monkeypatch.setattr(type(jw.__spec__.loader), "get_source", lambda loader, name: None)
    with pytest.raises(ImportError, match="source of jointwise is required"):
        lazy_modules.__wrapped__("jointwise")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="calibrat"):
        jw.calibrat  # noqa: B018


@pytest.mark.parametrize("first", ["import jointwise.calibration", "from jointwise.result import validate", ""])
def test_functions_stay_functions_after_submodules_were_imported(first: str) -> None:
    names = ("calibrate", "inspect", "validate", "predict", "compare", "simulate", "load_robot", "read_log")
    code = f"{first}\nimport jointwise as jw\nassert all(type(getattr(jw, n)).__name__ == 'function' for n in {names})"
    subprocess.run([sys.executable, "-c", code], check=True)
