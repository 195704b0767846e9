"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from jointwise.errors import OutputError


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[str]]:
    """Open a temporary file beside `path` and put it in its place when the block ends without an error.

    On any error, and on Ctrl-C, the temporary file is removed and what stood at `path` stays as it was.
    """
    with (
        atomic_path(path) as temporary,
        os.fdopen(os.open(temporary, os.O_WRONLY), "w", encoding="utf-8", newline="") as file,
    ):
        yield file


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give the path of an empty temporary file, for writers that open it themselves; as `atomic_write` otherwise.

    A target that cannot be replaced is refused at once: of files written one inside another, none appears then.
    """
    target = Path(path)
    refuse_directory(target)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as problem:
        raise OutputError(f"{target}: cannot be written ({problem.strerror}).") from None
    temporary = Path(name)
    try:
        os.close(handle)
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as problem:
        raise OutputError(f"{target}: cannot be written ({problem.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def refuse_directory(path: str | Path) -> None:
    """Refuse a target that is a directory: no file can take its place."""
    if Path(path).is_dir():
        raise OutputError(f"{path}: is a directory. Give the name of a file.")


def _umask() -> int:
    """Return the permissions that new files do without; the system tells them only by a change."""
    current = os.umask(0o077)
    os.umask(current)
    return current
