"""The command line: one thin module a command, imported only when it is asked for."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from types import ModuleType
from typing import NoReturn

from jointwise import __version__
from jointwise.cli.usage import UsageError
from jointwise.errors import JointwiseError

COMMANDS = {
    "robots": ("jointwise.cli.robots", "list the built-in robots, show or check a robot description"),
    "inspect": ("jointwise.cli.inspect", "examine a log: what is wrong with it, what it can tell"),
    "calibrate": ("jointwise.cli.calibrate", "logs in, a calibrated model out"),
    "validate": ("jointwise.cli.validate", "the errors of a model on a log it has not seen"),
    "predict": ("jointwise.cli.predict", "the output that a model predicts for a log"),
    "compare": ("jointwise.cli.compare", "rank models on a log"),
    "joint": ("jointwise.cli.joint", "identify what a joint is made of: stiffness, friction, hysteresis, ..."),
    "report": ("jointwise.cli.report", "an HTML report of a model on logs"),
    "simulate": ("jointwise.cli.simulate", "a log of the digital robot, with its truth"),
    "demo": ("jointwise.cli.demo", "calibrate a simulated UR5e and check it against the truth"),
    "compile-rbd": ("jointwise.cli.compile_rbd", "AURT's first step: store a robot description"),
    "compile-rd": ("jointwise.cli.compile_rd", "AURT's second step: add the friction model"),
    "calibrate-validate": ("jointwise.cli.calibrate_validate", "AURT's calibrate and predict on one log"),
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

'jointwise COMMAND --help' tells the options of a command. Exit codes: 0 done, 1 refused or failed validation, 2 wrong
usage, 130 interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 an error told in one line, 2 wrong usage, 130 interrupted."""
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except SystemExit as leaving:  # argparse leaves after --help and after wrong usage
        return leaving.code if isinstance(leaving.code, int) else 0
    except (JointwiseError, KeyboardInterrupt, MemoryError, OSError) as problem:
        return _ended(problem)


def _run(argv: list[str]) -> int:
    options = list(takewhile(lambda word: word.startswith("-"), argv))
    parser = _top_parser()
    name = parser.parse_args(argv[: len(options) + 1]).command
    if name is None:
        parser.print_help(sys.stderr)
        return 2
    command = import_module(COMMANDS[name][0])
    own = _parser(f"jointwise {name}", command.__doc__ or "", command.EXAMPLES)
    command.add_arguments(own)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads cost more than they give
    try:
        args = _parsed(own, command, argv[len(options) + 1 :])
        args.command_line = shlex.join(["jointwise", *argv])
        code: int = command.run(args)
    except UsageError as problem:
        own.error(str(problem))
    return code


def _parsed(parser: argparse.ArgumentParser, command: ModuleType, words: list[str]) -> argparse.Namespace:
    if getattr(command, "INTERMIXED", False):
        return parser.parse_intermixed_args(words)
    return parser.parse_args(words)


class _Parser(argparse.ArgumentParser):
    """A parser that tells wrong usage in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with one line and exit code 2."""
        if message.endswith("expected one argument"):
            message += "; one that begins with - is given as --name=VALUE"
        self.exit(2, f"{self.prog}: {' '.join(message.split())} (see '{self.prog} --help')\n")


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
    parser = _parser("jointwise", "Calibrates the dynamics of robot arms.", f"commands:\n{listed}\n\n{_EXAMPLES}")
    parser.add_argument("--version", action="version", version=f"jointwise {__version__}")
    parser.add_argument("command", nargs="?", choices=tuple(COMMANDS), metavar="COMMAND", help="one of those below")
    return parser


def _ended(problem: BaseException) -> int:
    """Tell in one line why a command ended early, and return its exit code."""
    if isinstance(problem, BrokenPipeError):
        return _discard_output(141)
    if isinstance(problem, KeyboardInterrupt):
        return _failed("interrupted.", 130)
    if isinstance(problem, MemoryError):
        return _failed("not enough memory.", 1)
    if isinstance(problem, OSError) and not isinstance(problem, JointwiseError):
        where = f"{problem.filename}: " if problem.filename else ""
        return _discard_output(_failed(f"{where}{problem.strerror or problem}.", 1))
    return _failed(str(problem), 1)


def _failed(message: str, code: int) -> int:
    print(f"jointwise: {' '.join(message.split())}", file=sys.stderr)
    return code


def _discard_output(code: int) -> int:
    """Leave quietly when nobody takes the output (a closed pipe, a full disk); what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
