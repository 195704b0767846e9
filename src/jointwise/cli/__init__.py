"""The command line: one thin module a command, imported only when it is asked for."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile

from jointwise import __version__
from jointwise.errors import JointwiseError

COMMANDS = {
    "robots": ("jointwise.cli.robots", "list the built-in robots, show or check a robot description"),
    "demo": ("jointwise.cli.demo", "a short tour on the UR5e"),
}
"""Name -> module with `EXAMPLES`, `add_arguments(parser)` and `run(args) -> int`, and one line of help."""

_EXAMPLES = """\
examples:
  jointwise robots
  jointwise robots show ur5e --mounting ceiling
  jointwise robots check arm.urdf --tip tool0
  jointwise demo

'jointwise COMMAND --help' tells the options of a command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 an error told in one line, 2 wrong usage, 130 interrupted."""
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except JointwiseError as problem:
        return _failed(str(problem), 1)
    except KeyboardInterrupt:
        return _failed("interrupted.", 130)
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as leaving:  # argparse leaves after --help and after wrong usage
        return leaving.code if isinstance(leaving.code, int) else 0


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
    code: int = command.run(own.parse_args(argv[len(options) + 1 :]))
    return code


def _parser(prog: str, description: str, examples: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _top_parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:<10}{line}" for name, (_, line) in COMMANDS.items())
    parser = _parser("jointwise", "Calibrates the dynamics of robot arms.", f"commands:\n{listed}\n\n{_EXAMPLES}")
    parser.add_argument("--version", action="version", version=f"jointwise {__version__}")
    parser.add_argument("command", nargs="?", choices=tuple(COMMANDS), metavar="COMMAND", help="one of those below")
    return parser


def _failed(message: str, code: int) -> int:
    print(f"jointwise: {message}", file=sys.stderr)
    return code


def _reader_left() -> int:
    """Leave quietly when the reader of a pipe has gone; what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
