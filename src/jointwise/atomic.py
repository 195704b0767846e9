"""Files read within limits, and written completely or not at all, one by one or as a set."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from jointwise.errors import DataError, OutputError

SUFFIX = ".jointwise-tmp"
"""End of the names of temporary files. Those of killed runs are removed by the next run that writes the same file."""
STDOUT = 1
"""Number of the standard output among the open files of a process."""
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": STDOUT, "/dev/stderr": 2}
_MOST_LINKS = 40
"""Symbolic links followed in a row, as many as Linux follows."""


def read_limited(path: str | Path, most: int, what: str) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes; errors do not name the file.

    Pipes and devices are rejected: they may have no end. `what` is what the file should be ("a robot description").
    """
    file = Path(path)
    try:
        if file.exists() and not file.is_file() and not file.is_dir():
            raise DataError("not a regular file. Save it to a file first.")
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except FileNotFoundError:
        raise DataError("no such file.") from None
    except OSError as problem:
        raise DataError(f"cannot be read ({problem.strerror}).") from None
    if len(content) > most:
        raise DataError(f"larger than {what} may be ({most} bytes). Is it the right file?")
    return content


@dataclass
class _Output:
    """A file that is being written.

    Attributes:
        name: Its path, for messages.
        target: File that the path leads to.
        temporary: File that takes the content until it is placed.
        handle: Descriptor of the temporary file, open and locked.
        sink: Open device, pipe or stream that takes the content; None for a regular file, which is replaced.
        backup: File that was replaced, until the whole set is in place.
        placed: Whether the content is in place.
    """

    name: str
    target: Path
    temporary: Path
    handle: int
    sink: int | None = None
    backup: Path | None = None
    placed: bool = False

    def place(self, *, keep_old: bool) -> None:
        """Move the complete file to its target, or copy it into its sink."""
        try:
            if self.sink is not None:
                with self.temporary.open("rb") as source, os.fdopen(os.dup(self.sink), "wb") as sink:
                    shutil.copyfileobj(source, sink)
                return
            self.temporary.chmod(self._mode())
            if keep_old:
                self._back_up()
            if os.name == "nt":  # open files cannot be renamed there
                self._close_handle()
            self.temporary.replace(self.target)
            self.placed = True
            _sync_directory(self.target.parent)
        except OSError as problem:
            raise _not_written(self.name, problem) from None

    def take_back(self) -> None:
        """Restore what was at the target before `place`."""
        with contextlib.suppress(OSError):
            if self.placed and self.backup is not None:
                self.backup.replace(self.target)
            elif self.placed:
                self.target.unlink()

    def close(self) -> None:
        """Close and remove everything temporary."""
        self._close_handle()
        if self.sink is not None:
            os.close(self.sink)
            self.sink = None
        for path in (self.temporary, self.backup):
            if path is not None:
                path.unlink(missing_ok=True)

    def _mode(self) -> int:
        return stat.S_IMODE(self.target.stat().st_mode) if self.target.exists() else 0o666 & ~_umask()

    def _back_up(self) -> None:
        """Keep the file at the target under a second name, on file systems without hard links as a copy."""
        if not self.target.exists():
            return
        self.backup = self.temporary.with_name(f"{self.temporary.name.removesuffix(SUFFIX)}.old{SUFFIX}")
        try:
            self.backup.hardlink_to(self.target)
        except OSError:
            shutil.copy2(self.target, self.backup)

    def _close_handle(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


@dataclass
class _Set:
    """Complete files that wait for their targets, directories made for them, and locked directories."""

    outputs: list[_Output] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    locks: dict[Path, int] = field(default_factory=dict)

    def place(self) -> None:
        """Put all files in place, or none: on an error those placed before are taken back.

        Devices and pipes come first: what they took cannot be taken back, but they fail more often than a rename.
        """
        try:
            for output in sorted(self.outputs, key=lambda output: output.sink is None):
                output.place(keep_old=len(self.outputs) > 1)
        except BaseException:
            for output in self.outputs:
                output.take_back()
            raise
        self.directories.clear()

    def close(self) -> None:
        """Remove what is temporary and the directories of a set that failed, and release the locks."""
        for output in self.outputs:
            output.close()
        for directory in reversed(self.directories):
            with contextlib.suppress(OSError):
                directory.rmdir()
        for lock in self.locks.values():
            os.close(lock)


_SET: ContextVar[_Set | None] = ContextVar("jointwise_output_set", default=None)


@contextlib.contextmanager
def output_set() -> Iterator[None]:
    """Write the files of the block as a set: they appear together when it ends, or none of them on an error.

    Sets nest: the files of an inner set appear with those of the outermost. A file of the set cannot be read before.
    """
    if _SET.get() is not None:
        yield
        return
    outputs = _Set()
    token = _SET.set(outputs)
    try:
        yield
        outputs.place()
    finally:
        _SET.reset(token)
        outputs.close()


def lock_directory(path: str | Path) -> None:
    """Wait until no other process updates a file in the directory of `path`, and keep others out until the set ends.

    For files that are read, changed and written again inside an `output_set`. Nothing is locked where the system
    cannot lock directories (Windows, some network drives).
    """
    outputs, folder = _SET.get(), check_target(path).parent
    if outputs is None:
        raise RuntimeError("lock_directory must be called inside output_set().")
    if folder in outputs.locks:
        return
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        lock = os.open(folder, os.O_RDONLY)
        outputs.locks[folder] = lock
        fcntl.flock(lock, fcntl.LOCK_EX)


def check_directory(path: str | Path, known: Collection[str] = (), *, force: bool = False) -> Path:
    """Return a directory for new files.

    Args:
        path: The directory; it may be absent.
        known: Names of files that may be there already; those of a killed run always may.
        force: Whether any other files may be there, which are overwritten where names are equal.

    Raises:
        OutputError: It is a file, or holds other files and `force` is False.

    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file. Give the name of a directory.")
    if folder.exists() and not force and any(_is_foreign(each.name, known) for each in folder.iterdir()):
        raise OutputError(f"{folder}: is not empty. Choose another directory, or overwrite files with --force.")
    return folder


def _is_foreign(name: str, known: Collection[str]) -> bool:
    return not name.endswith(SUFFIX) and name not in known


def make_directory(path: str | Path) -> None:
    """Make a directory and its parents; those made for an `output_set` that fails are removed again."""
    target = Path(path)
    missing = [folder for folder in (target, *target.parents) if not folder.exists()]
    outputs = _SET.get()
    if outputs is not None:
        outputs.directories += reversed(missing)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(f"{target}: the directory cannot be created ({problem.strerror}).") from None


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[str]]:
    """Open a temporary text file beside `path` and put it in its place when the block ends without an error.

    Letters that UTF-8 cannot hold (of file names in another encoding) become question marks. On any error, and on
    Ctrl-C, the temporary file is removed and what was at `path` stays as it was.
    """
    with (
        atomic_path(path) as temporary,
        os.fdopen(os.open(temporary, os.O_WRONLY), "w", encoding="utf-8", errors="replace", newline="") as file,
    ):
        yield file


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield the path of an empty temporary file, for writers that open it themselves; as `atomic_write` otherwise.

    A symbolic link is followed. A device, a pipe with a reader or an open stream such as /dev/stdout is written to when
    the content is complete. A target that cannot be written is rejected at once.

    Raises:
        OutputError: The target is a directory, read-only, a pipe without a reader, or cannot be written.

    """
    with output_set():
        output = _open_output(path)
        try:
            yield output.temporary
            os.fsync(output.handle)
        except OSError as problem:
            output.close()
            raise _not_written(path, problem) from None
        except BaseException:
            output.close()
            raise
        outputs = _SET.get()
        assert outputs is not None
        outputs.outputs.append(output)


def check_target(path: str | Path) -> Path:
    """Return the file that a path leads to, if a file can be written there; /dev/fd/N for an open stream.

    Raises:
        OutputError: The target is a directory, read-only, a device that takes no bytes, or in no directory.

    """
    stream = stream_number(path)
    try:
        if stream is not None:
            os.fstat(stream)
            return Path(f"/dev/fd/{stream}")
        target = Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)
        _check_existing(path, target.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        if not target.parent.is_dir():
            raise OutputError(f"{path}: cannot be written: there is no directory '{target.parent}'.") from None
    except OSError as problem:
        raise _not_written(path, problem) from None
    return target


def is_regular(path: str | Path) -> bool:
    """Return whether a path leads to a regular file or to nothing yet: not to a device, a pipe or an open stream."""
    return stream_number(path) is None and (not Path(path).exists() or Path(path).is_file())


def stream_number(path: str | Path) -> int | None:
    """Return the number of the open stream that a path names (/dev/stdout, /dev/fd/3), None for any other path."""
    name = str(path)
    with contextlib.suppress(OSError, ValueError):  # a text that is no path of this system
        for _ in range(_MOST_LINKS):
            numbered = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d{1,9})", name)
            if name in _STREAMS or numbered:
                return int(numbered[1]) if numbered else _STREAMS[name]
            name = os.path.normpath(Path(name).parent / Path(name).readlink())
    return None


def _check_existing(path: str | Path, mode: int) -> None:
    """Reject an existing target that is a directory, read-only, or takes no bytes."""
    if stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a directory. Give the name of a file.")
    if stat.S_ISREG(mode) and not (mode & 0o222 and os.access(path, os.W_OK)):
        raise OutputError(f"{path}: is read-only. Choose another name or change its permissions.")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise OutputError(f"{path}: is neither a file nor a character device. Choose another name.")


def _open_output(path: str | Path) -> _Output:
    """Return an empty temporary file for a target, beside it or, for a device, in the directory for such files."""
    target = check_target(path)
    regular = is_regular(target)
    folder = target.parent if regular else Path(tempfile.gettempdir())
    try:
        _remove_stale(folder, target.name)
        output = _Output(str(path), target, *_locked_temporary(folder, target.name))
    except OSError as problem:
        raise _not_written(path, problem) from None
    try:
        output.sink = None if regular else _open_sink(target)
    except OSError as problem:
        output.close()
        raise _not_written(path, problem) from None
    return output


def _not_written(path: str | Path, problem: OSError) -> OutputError:
    reason = "no program reads this pipe" if problem.errno == errno.ENXIO else problem.strerror
    return OutputError(f"{path}: cannot be written ({reason}).")


def _open_sink(target: Path) -> int:
    """Return an open device, pipe or stream. It stays open: the reader of a pipe ends when the last writer closes."""
    stream = stream_number(target)
    if stream is not None:
        if stream == STDOUT and sys.stdout is not None:
            sys.stdout.flush()
        return os.dup(stream)
    sink = os.open(
        target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)
    )  # a pipe without a reader fails and does not wait
    if os.name != "nt":
        os.set_blocking(sink, True)
    return sink


def _locked_temporary(folder: Path, name: str) -> tuple[Path, int]:
    """Return a new temporary file and its locked handle; again, if another process took it for a stale one."""
    while True:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=SUFFIX, dir=folder)
        _lock(handle, wait=True)
        if Path(temporary).exists():
            return Path(temporary), handle
        os.close(handle)


def _sync_directory(folder: Path) -> None:
    """Make a rename durable; file systems without directory handles do it by themselves."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool = False) -> bool:
    """Lock a temporary file while its writer lives; return whether that was possible."""
    try:
        import fcntl
    except ImportError:  # Windows: temporary files of killed runs stay
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _remove_stale(folder: Path, name: str) -> None:
    """Remove the temporary files of a target whose writers were killed: nobody holds their lock."""
    for stale in folder.glob(f".{_escaped(name)}.*{SUFFIX}"):
        with contextlib.suppress(OSError):
            handle = os.open(stale, os.O_RDWR)
            try:
                if _lock(handle):
                    stale.unlink()
            finally:
                os.close(handle)


def _escaped(name: str) -> str:
    """Return a name for `glob` to take literally."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _umask() -> int:
    """Return the permissions that new files do without; the system shows them only by a change."""
    current = os.umask(0o077)
    os.umask(current)
    return current
