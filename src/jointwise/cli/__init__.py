"""The command line: one thin module for each command, imported only when the command runs.

What only some commands or errors need is imported where it is used, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from jointwise import __version__
from jointwise.cli.arguments import UsageError
from jointwise.cli.output import PlainText, drop_notes, one_line, print_notes
from jointwise.errors import JointwiseError
from jointwise.interrupts import INTERRUPTED, is_interrupt, raise_at_interrupts

COMMANDS = {
    "robots": ("jointwise.cli.robots", "list the built-in robots, show or check a robot description"),
    "inspect": ("jointwise.cli.inspect", "check a log, and list the parameters that it determines"),
    "calibrate": ("jointwise.cli.calibrate", "estimate a model from logs"),
    "validate": ("jointwise.cli.validate", "compute the errors of a model on held-out logs"),
    "predict": ("jointwise.cli.predict", "predict the currents or torques of a log"),
    "payload": ("jointwise.cli.payload", "identify mass, centre of mass and inertia of a payload"),
    "compare": ("jointwise.cli.compare", "rank models on a log"),
    "joint": ("jointwise.cli.joint", "identify stiffness, friction, hysteresis, ... of one joint"),
    "motor": ("jointwise.cli.motor", "identify inertia, gain and friction of all drives from one log"),
    "energy": ("jointwise.cli.energy", "power and energy on the DC bus: fit, balance, predict, minimise"),
    "monitor": ("jointwise.cli.monitor", "detect contacts, payload, friction changes and faults, in logs or live"),
    "report": ("jointwise.cli.report", "write an HTML report of a model on logs"),
    "export": ("jointwise.cli.export", "export a model to C, FMU, URDF, MJCF, ROS 2 or UR"),
    "simulate": ("jointwise.cli.simulate", "simulate an experiment; writes a log and the true parameters"),
    "excite": ("jointwise.cli.excite", "optimise a motion for the identification of a robot"),
    "record": ("jointwise.cli.record", "record a log from a UR controller"),
    "convert": ("jointwise.cli.convert", "convert a log between CSV, Parquet and MCAP"),
    "virtual-ur": ("jointwise.cli.virtual_ur", "serve a simulated UR controller over RTDE"),
    "rehearse": ("jointwise.cli.rehearse", "excite, record, calibrate and validate on the virtual UR"),
    "demo": ("jointwise.cli.demo", "calibrate a simulated UR5e and compare with the true parameters"),
    "compile-rbd": ("jointwise.cli.compile_rbd", "AURT step 1: store a robot description"),
    "compile-rd": ("jointwise.cli.compile_rd", "AURT step 2: add the friction model"),
    "calibrate-validate": ("jointwise.cli.calibrate_validate", "AURT: calibrate on a part of a log, predict the rest"),
}
"""Name -> module with `EXAMPLES`, `add_arguments(parser)` and `run(args) -> int`, and one line of help.

A module with `INTERMIXED = True` takes options between its file names.
"""

_EXAMPLES = """\
examples:
  jointwise demo
  jointwise simulate --robot ur5e --experiment excitation --output log.csv --truth truth.json
  jointwise inspect log.csv --robot ur10e
  jointwise calibrate log.csv --robot ur10e --output model.json --report report
  jointwise validate model.json other.csv
  jointwise predict model.json other.csv --output predicted.csv

'jointwise COMMAND --help' lists the options of a command. Exit codes: 0 done, 1 error or failed validation, 2 wrong
usage, 3 contact or fault found by monitor, 130 interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 an error, 2 wrong usage, 130 interrupted.

    Errors are one line on stderr. An unexpected exception is one line too, with what to report; its traceback is shown
    with ``--debug`` or if the environment variable JOINTWISE_TRACEBACK is set.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    _prepare_output()
    try:
        with contextlib.redirect_stdout(PlainText(sys.stdout)), _without_warnings(words):
            code = _exit_code(words)
        print_notes()
        sys.stdout.flush()
        return code
    except (JointwiseError, KeyboardInterrupt, MemoryError, OSError) as problem:
        return _ended(problem)
    except Exception as problem:
        if is_interrupt(problem):
            return _ended(KeyboardInterrupt())
        if _debugging(words):
            raise
        return _unexpected(problem)
    finally:
        drop_notes()


@contextlib.contextmanager
def _without_warnings(words: list[str]) -> Iterator[None]:
    """Keep warnings of Python and its libraries off the terminal: they are for developers (--debug shows them).

    Filters that make them errors still do.
    """
    shown = warnings.showwarning
    if not _debugging(words):
        warnings.showwarning = lambda *args, **options: None
    try:
        yield
    finally:
        warnings.showwarning = shown


def _debugging(words: list[str]) -> bool:
    return words[:1] == ["--debug"] or bool(os.environ.get("JOINTWISE_TRACEBACK"))


def _prepare_output() -> None:
    """Make stdout usable: a closed one discards, and letters that its code page lacks become question marks."""
    if sys.stdout is None or sys.stdout.closed:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _exit_code(words: list[str]) -> int:
    """Run a command; argparse leaves by an exception after --help and after wrong usage."""
    try:
        return _run(words)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0


def _run(argv: list[str]) -> int:
    options = list(takewhile(lambda word: word.startswith("-"), argv))
    parser = _top_parser()
    name = parser.parse_args(argv[: len(options) + 1]).command
    if name is None:
        parser.print_help(sys.stderr)
        return 2
    command = import_module(COMMANDS[name][0])
    subparser = _parser(f"jointwise {name}", command.__doc__ or "", command.EXAMPLES)
    command.add_arguments(subparser)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads are slower
    try:
        args = _parsed(subparser, command, argv[len(options) + 1 :])
        args.command_line = _quoted(["jointwise", *argv])
        raise_at_interrupts()
        with _text_beside_files(args):
            code: int = command.run(args)
    except UsageError as problem:
        subparser.error(str(problem))
    return code


def _quoted(words: list[str]) -> str:
    """Return a command line as one would type it."""
    import shlex

    return shlex.join(words)


def _text_beside_files(args: argparse.Namespace) -> contextlib.AbstractContextManager[object]:
    """Print the text of a command on stderr if one of its files goes to stdout (--output /dev/stdout)."""
    from jointwise.atomic import STDOUT, stream_number

    if any(isinstance(value, str) and stream_number(value) == STDOUT for value in vars(args).values()):
        return contextlib.redirect_stdout(sys.stderr)
    return contextlib.nullcontext()


def _parsed(parser: argparse.ArgumentParser, command: ModuleType, words: list[str]) -> argparse.Namespace:
    for word in words:
        if word.startswith("--") and word.endswith("=--"):  # argparse drops the value
            parser.error(f"argument {word[:-3]}: expected one argument")
    if getattr(command, "INTERMIXED", False):
        return parser.parse_intermixed_args(words)
    return parser.parse_args(words)


class _Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with one line and exit code 2."""
        if message.endswith("expected one argument"):
            message += "; a value that begins with - is written --name=VALUE"
        self.exit(2, one_line(f"{self.prog}: {message} (see '{self.prog} --help')") + "\n")


def _parser(prog: str, description: str, examples: str) -> argparse.ArgumentParser:
    return _Parser(
        prog=prog,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _top_parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:<20}{line}" for name, (_, line) in COMMANDS.items())
    parser = _parser("jointwise", "Identifies the dynamics of robot arms.", f"commands:\n{listed}\n\n{_EXAMPLES}")
    parser.add_argument("--version", action="version", version=f"jointwise {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an unexpected error")
    parser.add_argument("command", nargs="?", choices=tuple(COMMANDS), metavar="COMMAND", help="one of those below")
    return parser


def _ended(problem: BaseException) -> int:
    """Print in one line why a command ended early, and return its exit code."""
    if isinstance(problem, BrokenPipeError):
        return _discard_output(141)
    if is_interrupt(problem):
        return _failed("interrupted.", INTERRUPTED)
    if isinstance(problem, MemoryError):
        return _failed("not enough memory.", 1)
    if isinstance(problem, OSError) and not isinstance(problem, JointwiseError):
        where = f"{problem.filename}: " if problem.filename else ""
        return _discard_output(_failed(f"{where}{problem.strerror or problem}.", 1))
    return _failed(str(problem), 1)


def _unexpected(problem: Exception) -> int:
    """Print what to report of an exception that no command expects."""
    import traceback

    place = traceback.extract_tb(problem.__traceback__)[-1]
    return _failed(
        f"unexpected {type(problem).__name__} in {Path(place.filename).name}:{place.lineno} ({str(problem)[:80]}). "
        f"This is a bug of jointwise {__version__}: report this line and the command (--debug shows the traceback).",
        1,
    )


def _failed(message: str, code: int) -> int:
    print(one_line(f"jointwise: {message}"), file=sys.stderr)
    return code


def _discard_output(code: int) -> int:
    """Leave quietly when the output cannot be written (a closed pipe, a full disk): the rest of it is discarded."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
