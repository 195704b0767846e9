"""C and C++ compilers for the checks of exports: found, run in a directory, errors in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jointwise.errors import ModelError

LONGEST_RUN = 120.0
"""s; a compilation takes some seconds."""
STRICT = ("-Wall", "-Wextra", "-Werror")


def compiler(variable: str = "CC", names: Sequence[str] = ("cc", "gcc", "clang")) -> str | None:
    """Return the C compiler: that of the environment variable, else the first that is installed; None without any."""
    chosen = os.environ.get(variable)
    return chosen if chosen and shutil.which(chosen) else next(filter(None, map(shutil.which, names)), None)


def cpp_compiler() -> str | None:
    """Return the C++ compiler, None without any."""
    return compiler("CXX", ("c++", "g++", "clang++"))


def run(command: Sequence[str], folder: Path, data: bytes = b"") -> bytes:
    """Return what a program prints on its standard output.

    Raises:
        ModelError: The program failed; with the first line that it printed on its standard error.

    """
    result = subprocess.run(command, cwd=folder, input=data, capture_output=True, timeout=LONGEST_RUN, check=False)
    if result.returncode != 0:
        lines = [line for line in result.stderr.decode(errors="replace").splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
        raise ModelError(f"{Path(command[0]).name} failed ({result.returncode}): {first}")
    return result.stdout


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Write files into a temporary folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
