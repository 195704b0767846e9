"""The command line: one thin module for each command, imported only when the command runs.

What only some commands or errors need is imported where it is used, so that `--help` answers at once.
"""

from __future__ import annotations

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
from jointwise.cli.command import Command, Common, Parser, UsageError, command_of, parser_of, settings_from
from jointwise.cli.output import PlainText, drop_notes, note, one_line, print_notes
from jointwise.errors import JointwiseError, nearest
from jointwise.interrupts import INTERRUPTED, is_interrupt, raise_at_interrupts

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "calibrate and check": {
        "inspect": ("inspect", "check a log, and list the parameters that it determines"),
        "calibrate": ("calibrate", "estimate a model from logs"),
        "validate": ("validate", "compute the errors of a model on held-out logs"),
        "compare": ("compare", "rank models on a log"),
        "report": ("report", "write an HTML report of a model on logs"),
        "excite": ("excite", "optimise a motion for the identification of a robot"),
    },
    "use a model": {
        "predict": ("predict", "predict the currents or torques of a log"),
        "payload": ("payload", "identify mass, centre of mass and inertia of a payload"),
        "monitor": ("monitor", "detect contacts, payload, friction changes and faults, in logs or live"),
        "energy": ("energy", "power and energy on the DC bus: fit, balance, predict, minimise"),
        "export": ("export", "export a model to C, FMU, URDF, MJCF, ROS 2 or UR"),
    },
    "single joints": {
        "joint": ("joint", "identify stiffness, friction, hysteresis, ... of one joint"),
        "motor": ("motor", "identify inertia, gain and friction of all drives from one log"),
    },
    "robot and logs": {
        "robots": ("robots", "list the built-in robots, show or check a robot description"),
        "record": ("record", "record a log from a UR controller"),
        "convert": ("convert", "convert a log between CSV, Parquet and MCAP"),
    },
    "simulate": {
        "simulate": ("simulate", "simulate an experiment; writes a log and the true parameters"),
        "demo": ("demo", "calibrate a simulated UR5e and compare with the true parameters"),
        "virtual-ur": ("virtual_ur", "serve a simulated UR controller over RTDE"),
        "rehearse": ("rehearse", "excite, record, calibrate and validate on the virtual UR"),
    },
    "AURT": {
        "compile-rbd": ("compile", "step 1: store a robot description"),
        "compile-rd": ("compile", "step 2: add the friction model"),
        "calibrate-validate": ("calibrate_validate", "calibrate on a part of a log, predict the rest"),
    },
}
"""Title -> name -> module of `jointwise.cli` (`cli.command.command_of` says what it has), and one line of help."""
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

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


def _note_missing_kernel(message: Warning | str, category: type[Warning]) -> None:
    """Print the warning that concerns every user, as a note."""
    from jointwise.backend import NativeKernelWarning

    if issubclass(category, NativeKernelWarning):
        note(str(message))


@contextlib.contextmanager
def _without_warnings(words: list[str]) -> Iterator[None]:
    """Keep warnings of Python and its libraries off the terminal: they are for developers (--debug shows them).

    Filters that make them errors still do.
    """
    shown = warnings.showwarning
    if not _debugging(words):
        warnings.showwarning = lambda message, category, *_, **__: _note_missing_kernel(message, category)
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
    if name not in COMMANDS:
        parser.error(f"there is no command '{name}'. {nearest(name, COMMANDS, 5)}")
    command, inner, words = command_of(load(name), name, argv[len(options) + 1 :])
    prog = " ".join(["jointwise", name, *inner])
    if command is None:
        _list_further(prog, name, words)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads are slower
    try:
        settings = settings_from(command, prog, words, _quoted(["jointwise", *argv]))
        raise_at_interrupts()
        with _text_beside_files(settings):
            code = command.run(settings)
    except UsageError as problem:
        parser_of(command, prog).error(str(problem))
    if settings.quiet:
        drop_notes()
    return code


def load(name: str) -> ModuleType:
    """Return the module of a command."""
    return import_module(f"jointwise.cli.{COMMANDS[name][0]}")


def every_command() -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield the words of every command (``joint friction``) with the command, in the order of the help."""
    for name in COMMANDS:
        module = load(name)
        command, _, _ = command_of(module, name, [])
        if command is not None:
            yield (name,), command
        for inner, further in getattr(module, "COMMANDS", {}).items():
            if COMMANDS.get(inner, ("",))[0] != COMMANDS[name][0]:
                yield (name, inner), further


def _list_further(prog: str, name: str, words: list[str]) -> NoReturn:
    """Leave with the further names of a command; wrong usage unless they are asked for."""
    module = load(name)
    listed = "\n".join(f"  {inner:<20}{each.about}" for inner, each in module.COMMANDS.items())
    parser = Parser(prog, module.__doc__ or "", f"commands:\n{listed}\n\n{module.EXAMPLES}")
    parser.add_argument("what", nargs="?", metavar="WHAT", help="one of those below")
    parser.parse_known_args([word for word in words if word in ("-h", "--help")])
    word = next((word for word in words if not word.startswith("-")), None)
    if word is None:
        parser.error("the following arguments are required: WHAT")
    parser.error(f"there is no command '{word}'. {nearest(word, module.COMMANDS)}")


def _quoted(words: list[str]) -> str:
    """Return a command line as one would type it."""
    import shlex

    return shlex.join(words)


def _text_beside_files(settings: Common) -> contextlib.AbstractContextManager[object]:
    """Print the text of a command on stderr if one of its files goes to stdout (--output /dev/stdout)."""
    from jointwise.atomic import STDOUT, stream_number

    if any(isinstance(value, str) and stream_number(value) == STDOUT for value in vars(settings).values()):
        return contextlib.redirect_stdout(sys.stderr)
    return contextlib.nullcontext()


def _top_parser() -> Parser:
    lines = [
        "\n".join([f"{title}:", *(f"  {name:<20}{line}" for name, (_, line) in group.items())])
        for title, group in GROUPS.items()
    ]
    parser = Parser("jointwise", "Identifies the dynamics of robot arms.", "\n\n".join([*lines, _EXAMPLES]))
    parser.add_argument("--version", action="version", version=f"jointwise {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an unexpected error")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of those below")
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
