"""Options that several commands share, and wrong usage."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointwise.description import Payload, Robot
    from jointwise.model.skeleton import Tool

CONVENTIONS = ("dh", "mdh", "mdh-following")


class UsageError(Exception):
    """Arguments that do not go together; told like any wrong usage, exit code 2."""


def looks(examples: str) -> dict[str, Any]:
    """Return how the parser of a sub-command looks: examples at the end as they are written, no shortened options."""
    return {"epilog": examples, "formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}


def add_robot(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add the robot and how its file is to be read."""
    parser.add_argument(
        "--robot", metavar="NAME|FILE", required=required, help="name in the catalogue, or description file"
    )
    parser.add_argument("--convention", choices=CONVENTIONS, help="how a table is to be read, if it does not say")
    parser.add_argument("--tip", metavar="LINK", help="last link of the chain, where a URDF branches")


def add_gravity(parser: argparse._ActionsContainer, default: str = "what the log tells, else table") -> None:
    """Add how the base stands; `default` says what holds where nothing is asked for."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--mounting", metavar="HOW", help=f"table, ceiling, wall or tilt:AXIS:ANGLE (default: {default})"
    )
    group.add_argument("--gravity", nargs=3, type=finite, metavar=("X", "Y", "Z"), help="in the base frame, m/s^2")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add what the columns of a log are."""
    parser.add_argument(
        "--columns",
        metavar="MAP",
        help="what the columns are: t=time,q=pos_0..pos_5 or, without a header, t,q*6,i*6, or a .toml file",
    )


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add JSON instead of text."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def robot_of(args: argparse.Namespace) -> Robot:
    """Return the robot that `--robot`, `--convention` and `--tip` name."""
    import jointwise

    return jointwise.robot(args.robot, convention=args.convention, tip=args.tip)


def mounting_of(args: argparse.Namespace) -> str | list[float] | None:
    """Return the mounting or the gravity vector (m/s²) that was asked for, None if none; refuse a wrong one."""
    from jointwise.description import gravity_vector

    asked: str | list[float] | None = args.gravity or args.mounting
    if asked is not None:
        gravity_vector(asked)
    return asked


def finite(text: str) -> float:
    """Return a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number. Got '{text}' instead.")
    return value


def positive(text: str) -> float:
    """Return a number > 0."""
    if (value := finite(text)) <= 0.0:
        raise argparse.ArgumentTypeError(f"must be > 0. Got '{text}' instead.")
    return value


def fraction(text: str) -> float:
    """Return a number between 0 and 1."""
    if not 0.0 < (value := finite(text)) < 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1. Got '{text}' instead.")
    return value


def share(text: str) -> float:
    """Return a number from 0 to 1."""
    if not 0.0 <= (value := finite(text)) <= 1.0:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1. Got '{text}' instead.")
    return value


def whole(text: str) -> int:
    """Return a whole number >= 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number >= 0. Got '{text}' instead.")
    return int(text)


def count(text: str) -> int:
    """Return a whole number > 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number > 0. Got '{text}' instead.")
    return int(text)


def payload_numbers(text: str) -> tuple[float, ...]:
    """Return the mass (kg) of a payload, or mass and centre (m) of `m,x,y,z`."""
    numbers = tuple(finite(word) for word in text.split(","))
    if len(numbers) not in (1, 4):
        raise argparse.ArgumentTypeError(f"must be a mass or mass,x,y,z. Got '{text}' instead.")
    return numbers


def payload_of(numbers: tuple[float, ...] | None) -> Payload | None:
    """Return the payload of `payload_numbers`, its centre at the tool where none is given."""
    from jointwise.description import Payload

    return None if numbers is None else Payload(numbers[0], numbers[1:] or (0.0, 0.0, 0.0))


def add_tool(parser: argparse.ArgumentParser) -> None:
    """Add what the flange carries."""
    parser.add_argument(
        "--tool",
        type=tool_numbers,
        metavar="LENGTH[,RADIUS]",
        help="m, of what the flange carries along its z axis: it must not meet the arm or the plane either",
    )


def tool_numbers(text: str) -> tuple[float, ...]:
    """Return length and, where it is given, radius (m) of a tool."""
    numbers = tuple(positive(word) for word in text.split(","))
    if len(numbers) > 2:
        raise argparse.ArgumentTypeError(f"must be a length or length,radius. Got '{text}' instead.")
    return numbers


def tool_of(args: argparse.Namespace) -> Tool | None:
    """Return the tool of the arguments that `add_tool` added."""
    from jointwise.model.skeleton import Tool

    return None if args.tool is None else Tool(*args.tool)
