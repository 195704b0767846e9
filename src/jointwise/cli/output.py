"""What commands print and write: JSON, notes, progress, and the checks of output files.

Modules that `--help` does not need are imported by the functions that do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from jointwise.cli.command import Common, UsageError
from jointwise.errors import MissingExtraError, OutputError
from jointwise.finding import with_severity

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from jointwise.data import Log
    from jointwise.description.mounting import Mounting
    from jointwise.result import Calibration

PATIENCE = 1.0
"""Seconds before a progress bar appears."""
LONGEST_LINE = 300
"""Characters of a message on stderr."""
LONGEST_WORD = 120
"""Characters of one word of a message; a longer one is the content of a damaged file."""
LONG_FOLDER = 16
"""Characters of a folder that is left out where a message is too long."""
QUOTES = "'\"("
"""What may stand before a path."""
LONGEST_NAME = 200
"""Bytes of a file name; file systems allow 255, less those of a temporary file."""


def as_json(value: object) -> str:
    """Return indented JSON; a number that is not finite raises ValueError."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def line_as_json(value: object) -> str:
    """Return JSON on one line; a number that is not finite raises ValueError."""
    import json

    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def show(settings: Common, document: Callable[[], object], text: Callable[[], str]) -> None:
    """Print a result: its document with --json, nothing with --quiet, else its text."""
    if settings.json:
        print(as_json(document()))
    elif not settings.quiet:
        print(text())


_NOTES: list[str] = []


def note(text: str) -> None:
    """Print a remark on stderr when the command ends; a command that fails prints only why."""
    _NOTES.append(one_line(f"jointwise: note: {text}"))


def read_model(path: str) -> Calibration:
    """Return the calibration of a model file; print a note if its set-up is contradicted or its scale unknown."""
    from jointwise.result import load_calibration

    calibration = load_calibration(path)
    if calibration.implausible:
        found = ", ".join(each.subject for each in with_severity(calibration.plausibility, "error"))
        note(f"{path}: do not use: the training data contradict the declared set-up ({found}); see its report.")
    if not calibration.scale_known:
        note(f"{path}: the scale of the drive gains is unknown: torques (Nm), masses and inertias are relative to it.")
    return calibration


def print_notes() -> None:
    """Print the remarks of a command that is done."""
    for line in _NOTES:
        print(line, file=sys.stderr)
    _NOTES.clear()


def drop_notes() -> None:
    """Forget the remarks of a command that failed."""
    _NOTES.clear()


def one_line(text: str) -> str:
    """Return a text as one line of at most `LONGEST_LINE` characters without control characters.

    Long words (contents of damaged files) are shortened first, then the folders of paths, then the middle: the file is
    named at the beginning, what to do at the end.
    """
    words = [_shortened(word, LONGEST_WORD) for word in printable(" ".join(text.split())).split(" ")]
    if len(" ".join(words)) > LONGEST_LINE:
        words = [_without_folder(word) for word in words]
    return _shortened(" ".join(words), LONGEST_LINE)


def _without_folder(word: str) -> str:
    """Return a path with a long folder as `.../name`, with its opening quote; other words as they are."""
    end = word.rstrip(f"{os.sep}.:,;)'").rfind(os.sep)
    return word if end < LONG_FOLDER else f"{word[0] * (word[0] in QUOTES)}...{word[end:]}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: 2 * most // 3 - 3]}...{text[len(text) - most // 3 :]}"


def printable(text: str) -> str:
    """Return a text with control characters replaced: names in files must not steer the terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


class PlainText:
    """A text stream that lets no control characters through; everything else is that of the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write printable text."""
        self._stream.write(printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream, None if closed, is a terminal."""
    return stream is not None and stream.isatty()


class Progress:
    """A progress bar on stderr; only on a terminal, after `PATIENCE` seconds, and removed when the work is done."""

    def __init__(self, quiet: bool = False) -> None:
        """Show nothing if `quiet`, or if stderr is not a terminal."""
        import threading

        self._step, self._share = "", None  # type: tuple[str, float | None]
        self._bar: Bar | None = None
        self._timer = threading.Timer(PATIENCE, self._start)
        self._timer.daemon = True
        self._shown = not quiet and is_terminal(sys.stderr)

    def __call__(self, step: str, share: float | None = None) -> None:
        """Set the present step, and how much of it is finished, 0 to 1."""
        self._step, self._share = step, share
        if self._bar is not None:
            total = None if share is None else 1.0
            self._bar.update(self._bar.task_ids[0], description=step, completed=share or 0.0, total=total)

    def __enter__(self) -> Self:
        """Start to wait."""
        if self._shown:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar, however the work ended."""
        self._timer.cancel()
        if self._bar is not None:
            self._bar.stop()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        bar.add_task(self._step, total=None)
        bar.start()
        self._bar = bar
        self(self._step, self._share)


def check_files(inputs: Iterable[str | None], outputs: Mapping[str, str | None], page: str | None = None) -> None:
    """Reject output files that cannot be written or that would replace an input or another output.

    `inputs` are the arguments that may name files (catalogue names too); `outputs` the files that a command writes, by
    option; `page` the page of `--report`.
    """
    for path in outputs.values():
        check_file(path)
    written = {option: path for option, path in {**outputs, "--report": page}.items() if path is not None}
    present = [name for name in inputs if name is not None and Path(name).exists()]
    for option, path in written.items():
        if any(_same(name, path) for name in present):
            raise UsageError(f"{option} {path} is an input and would be lost. Name another file.")
    _refuse_overlap(written)


def _refuse_overlap(written: Mapping[str, str]) -> None:
    """Reject outputs (path by option) that are the same file, or one a directory of the other."""
    for (one, first), (other, second) in combinations(written.items(), 2):
        if _same(first, second) or _real(first) in _real(second).parents:
            raise UsageError(f"{one} and {other} must be different files. Got {first} for both.")


def _same(one: str, other: str) -> bool:
    """Return whether two paths lead to the same file, whether it exists or not."""
    if Path(one).exists() and Path(other).exists():
        return Path(one).samefile(other)
    return _real(one) == _real(other)


def _real(path: str) -> Path:
    """Return a path without symbolic links; those that lead in a circle stay."""
    return Path(os.path.realpath(path))


def check_file(path: str | None) -> None:
    """Reject a path at which no file can be written; devices, pipes and open streams are written to."""
    if path is None:
        return
    from jointwise.atomic import check_target, is_regular

    _refuse_long(Path(path))
    target = check_target(path)
    if is_regular(target) and not os.access(target.parent, os.W_OK):
        raise OutputError(f"{path}: cannot be written: no permission in '{target.parent}'.")


def _refuse_long(path: Path) -> None:
    """Reject names that are too long for file systems; temporary files have some more letters."""
    for part in path.parts:
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise OutputError(
                f"{part[:20]}...: a name must be at most {LONGEST_NAME} letters. Got {len(part)} instead."
            )


def check_directory(path: str | None, name: str = "report.html") -> str | None:
    """Return the page `name` in the directory of a report; reject a path that cannot become a directory."""
    if path is None:
        return None
    if not path:
        raise OutputError("the directory of a report must have a name. Got '' instead.")
    target = Path(path)
    _refuse_long(target)
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target}: is a file. Give the name of a directory.")
    from importlib.util import find_spec

    from jointwise.atomic import check_target

    if target.is_dir():
        check_target(target / name)
    _check_above(target)
    if find_spec("jinja2") is None:
        raise MissingExtraError("jinja2", "report", "The report")
    return str(target / name)


def _check_above(target: Path) -> None:
    """Reject a directory that cannot be made, or in which nothing can be written."""
    above = next(folder for folder in (target, *target.absolute().parents) if folder.exists())
    if not above.is_dir():
        raise OutputError(f"{target}: no directory can be made there: '{above}' is a file.")
    if not os.access(above, os.W_OK):
        raise OutputError(f"{target}: cannot be written: no permission in '{above}'.")


def check_page(path: str | None, name: str) -> str | None:
    """Return the page of a report: `path` itself if it ends in .html, else the page `name` in that directory."""
    if path is None or Path(path).suffix.lower() not in (".html", ".htm"):
        return check_directory(path, name)
    check_file(path)
    check_directory(str(Path(path).parent))
    return path


def mounting_for(logs: Sequence[Log], mounting: Mounting | None) -> Mounting:
    """Return the mounting: that of the option, else that stated in the logs (with a note), else the table."""
    from jointwise.data.coordinates import gravity_text, mounting_of_logs

    found = mounting_of_logs(logs, mounting)
    if mounting is None and not isinstance(found, str):
        note(f"gravity {gravity_text(found)} m/s^2, as stated in {logs[0].origin.path}.")
    return found
