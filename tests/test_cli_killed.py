"""Commands that are killed or run out of disk space: no half file, and the next run cleans up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import PLAIN, bench, done
from jointwise.atomic import SUFFIX
from jointwise.result import load_calibration

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits differ there")

KILLED = """
import os, signal, sys
import jointwise.atomic as atomic, jointwise.calibration as calibration

def die(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def at(call, before):
    def wrapped(*args, **options):
        if not before:
            call(*args, **options)
        die()
    return wrapped

moment = sys.argv.pop(1)
if moment == "fit":
    calibration.fit_structure = die
elif moment == "first file":
    atomic._locked_temporary = at(atomic._locked_temporary, False)
elif moment == "before renaming":
    atomic._Output.place = at(atomic._Output.place, True)
elif moment == "between the files":
    atomic._Output.place = at(atomic._Output.place, False)
from jointwise.cli import main
sys.exit(main(sys.argv[1:]))
"""
LIMITED = """
import resource, sys
from jointwise.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(main(sys.argv[2:]))
"""


def command(folder: Path) -> list[str]:
    """Return a calibration with a model and a report as output."""
    files = ("--output", folder / "m.json", "--report", folder / "report", "--quiet")
    return [str(word) for word in ("calibrate", bench().training, "--robot", "planar2", *PLAIN, *files)]


def python(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)


def whole(folder: Path) -> list[str]:
    """Return the names of the result files after a check that each is complete."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(SUFFIX)]
    for path in files:
        if path.name == "m.json":
            load_calibration(path)
        elif path.suffix == ".html":
            assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
        else:
            assert path.stat().st_size > 0
    return sorted(path.name for path in files)


@pytest.mark.thorough
def test_kill_leaves_no_half_file_and_the_next_run_cleans_up(tmp_path: Path) -> None:
    for moment in ("fit", "first file", "before renaming", "between the files"):
        ended = python(KILLED, moment, *command(tmp_path))
        assert ended.returncode == -9, (moment, ended)
        assert len(whole(tmp_path)) == (moment == "between the files"), moment
        left = list(tmp_path.rglob(f"*{SUFFIX}"))
        assert (moment == "fit") == (left == []) or moment == (moment, left)
    done(*command(tmp_path))
    assert len(whole(tmp_path)) >= 2
    assert list(tmp_path.rglob(f"*{SUFFIX}")) == []


@pytest.mark.parametrize("space", [0, 5000, 100_000])
def test_full_disk_leaves_what_was_there(tmp_path: Path, space: int) -> None:
    """A limit on the size of files stands for the full disk: writing beyond it is an error of the system too."""
    (tmp_path / "m.json").write_text("as before", encoding="utf-8")
    ended = python(LIMITED, str(space), *command(tmp_path))
    assert ended.returncode == 1, ended
    assert "cannot be written" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == {"m.json": "as before"}
