"""Options that several commands share, and wrong usage."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointwise.description import Payload, Robot
    from jointwise.model.skeleton import Tool

CONVENTIONS = ("dh", "mdh", "mdh-following")


class UsageError(Exception):
    """Arguments that contradict each other; reported like any wrong usage, exit code 2."""


def format_options(examples: str) -> dict[str, Any]:
    """Return the options of a subparser: examples at the end as they are written, no abbreviated options."""
    return {"epilog": examples, "formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}


def add_robot(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add the robot and how its file is to be read."""
    parser.add_argument(
        "--robot", metavar="NAME|FILE", required=required, help="name of a built-in robot, or a description file"
    )
    add_description(parser)


def add_description(parser: argparse._ActionsContainer) -> None:
    """Add how the file of a robot is to be read, and what it does not state."""
    parser.add_argument("--convention", choices=CONVENTIONS, help="convention of a DH table that does not state it")
    parser.add_argument("--tip", metavar="LINK", help="last link of the chain in a URDF with branches")
    parser.add_argument("--base", metavar="LINK", help="first link of the chain in a URDF (default: its root)")
    parser.add_argument(
        "--fix-joint",
        type=fixed_joint,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="hold a joint of a URDF at a value (rad or m); can be repeated",
    )
    parser.add_argument(
        "--coupling",
        metavar="MOTOR:JOINT:RATIO[,...]",
        help="coupled transmission: 6:5:1 means that motor 6 turns by q6 + 1 * q5 (angles at the joint side)",
    )
    parser.add_argument(
        "--log-coordinates",
        choices=("joint", "motor"),
        help="coordinates of positions, speeds and torques in logs of a coupled robot (default: joint)",
    )


def add_gravity(parser: argparse._ActionsContainer, default: str = "as stated in the log, else table") -> None:
    """Add the mounting of the base; `default` describes the value without the option."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--mounting", metavar="HOW", help=f"table, ceiling, wall or tilt:AXIS:ANGLE (default: {default})"
    )
    group.add_argument(
        "--gravity", nargs=3, type=finite, metavar=("X", "Y", "Z"), help="gravity in the base frame, m/s^2"
    )


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the names of the columns of a log."""
    parser.add_argument(
        "--columns",
        metavar="MAP",
        help="column mapping: t=time,q=pos_0..pos_5; t,q*6,i*6 for a file without header; or a .toml file",
    )
    bag = parser.add_argument_group("ROS 2 bags")
    bag.add_argument("--topic", metavar="NAME", help="topic of the joint states if the bag has several")
    bag.add_argument(
        "--effort-unit", choices=("A", "Nm"), help="unit of the effort (default: inferred from the gravity torque)"
    )


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_columns` as arguments of `read_log` and `read_log_for`."""
    return {"columns": args.columns, "topic": args.topic, "effort_unit": args.effort_unit}


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add the option for JSON output."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_quiet(parser: argparse._ActionsContainer) -> None:
    """Add the option that suppresses all output but errors."""
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def add_payload(parser: argparse._ActionsContainer) -> None:
    """Add what the tool carries, as `payload_of` takes it."""
    parser.add_argument(
        "--payload",
        type=payload_numbers,
        metavar="KG[,X,Y,Z]",
        help="payload at the tool: mass, and centre of mass in m",
    )


def add_use(parser: argparse._ActionsContainer) -> None:
    """Add which of the two models of a file predicts."""
    parser.add_argument(
        "--use",
        choices=("sensor", "feed-forward"),
        help="sensor: with measured speeds and rotor positions; feed-forward: from positions only (default: sensor if "
        "the log has the channels that the model uses)",
    )


def add_ignored(parser: argparse._ActionsContainer) -> None:
    """Add the outputs that are not to be used."""
    parser.add_argument(
        "--ignore-output",
        type=joint_numbers,
        default=(),
        metavar="J[,J]|auto",
        help="joints whose current or torque is missing or unusable, such as 5,6,7; auto: those that the inspection "
        "finds. Their positions are still used",
    )


def joint_numbers(text: str) -> tuple[int, ...] | None:
    """Return the joints (0-based) of `5,6,7`, None for `auto`."""
    if text == "auto":
        return None
    return tuple(sorted({count(word.strip()) - 1 for word in text.split(",")}))


def fixed_joint(text: str) -> tuple[str, float]:
    """Return name and value of `NAME=VALUE`."""
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE. Got '{text}' instead.")
    return name, finite(value)


def robot_of(args: argparse.Namespace) -> Robot:
    """Return the robot of the options that `add_robot` or, with `args.robot`, `add_description` added."""
    import jointwise

    return jointwise.load_robot(
        args.robot,
        convention=args.convention,
        tip=args.tip,
        base=args.base,
        fixed=dict(args.fix_joint),
        coupling=args.coupling,
        coordinates=args.log_coordinates,
    )


def mounting_of(args: argparse.Namespace) -> str | list[float] | None:
    """Return the mounting or the gravity vector (m/s²) of the arguments, None by default; reject an invalid one."""
    from jointwise.description import gravity_vector

    mounting: str | list[float] | None = args.gravity or args.mounting
    if mounting is not None:
        gravity_vector(mounting)
    return mounting


def within(low: float, high: float, *, above: bool = False) -> Callable[[str], float]:
    """Return a parser of numbers from `low` (with `above`: above it) to `high`, for options with a range.

    Args:
        low: Least value.
        high: Largest value.
        above: Whether `low` itself is excluded.

    """

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high or (above and value == low):
            least = f"above {low:g}" if above else f"from {low:g}"
            raise argparse.ArgumentTypeError(f"must be a number {least} to {high:g}. Got '{text}' instead.")
        return value

    return number


LARGEST = 1e9
"""No number of an option is larger: every quantity is in SI units, and squares of larger ones lose digits."""
MOST_WHOLE = 2**63 - 1
"""Largest whole number of an option: a seed."""
LARGEST_PORT = 65535
"""Largest TCP port."""

finite = within(-LARGEST, LARGEST)
"""Return a number of reasonable size."""
positive = within(0.0, LARGEST, above=True)
"""Return a number > 0."""
share = within(0.0, 1.0)
"""Return a number from 0 to 1."""
not_negative = within(0.0, LARGEST)
"""Return a number >= 0."""
frequency = within(0.0, 1e5, above=True)
"""Return a frequency or rate in Hz: nothing in a robot is faster, and memory grows with it."""
seconds = within(0.0, 1e5, above=True)
"""Return a duration in s, at most a day: memory grows with it."""
mass = within(0.0, 1e5)
"""Return a mass in kg."""
heavy = within(0.0, 1e5, above=True)
"""Return a mass in kg that is not zero."""
metres = within(-1e3, 1e3)
"""Return a coordinate in m."""
gain = within(1e-9, LARGEST)
"""Return a drive gain in Nm per unit of output."""


def fraction(text: str) -> float:
    """Return a number between 0 and 1."""
    if not 0.0 < (value := share(text)) < 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1. Got '{text}' instead.")
    return value


def whole(text: str) -> int:
    """Return a whole number >= 0."""
    if not (text.isdecimal() and len(text) < 20 and int(text) <= MOST_WHOLE):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {MOST_WHOLE}. Got '{text}' instead.")
    return int(text)


def port(text: str) -> int:
    """Return a TCP port; 0 for a free one."""
    if (value := whole(text)) > LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to {LARGEST_PORT}. Got '{text}' instead.")
    return value


def times(text: str) -> tuple[float, ...]:
    """Return times in s, separated by commas."""
    return tuple(within(0.0, 1e5)(word) for word in text.split(","))


def count(text: str) -> int:
    """Return a whole number > 0."""
    if (value := whole(text)) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number > 0. Got '{text}' instead.")
    return value


def payload_numbers(text: str) -> tuple[float, ...]:
    """Return the mass (kg) of a payload, or mass and centre (m) of `m,x,y,z`."""
    numbers = tuple((metres if k else mass)(word) for k, word in enumerate(text.split(",")))
    if len(numbers) not in (1, 4):
        raise argparse.ArgumentTypeError(f"must be a mass or mass,x,y,z. Got '{text}' instead.")
    return numbers


def payload_of_log(text: str) -> tuple[str | None, tuple[float, ...]]:
    """Return the log, None for all of them, and the numbers of `[LOG=]m,x,y,z`."""
    log, equals, numbers = text.rpartition("=")
    return (log if equals else None), payload_numbers(numbers)


def temperature_of_log(text: str) -> tuple[str | None, float]:
    """Return the log, None for all of them, and the temperature of `[LOG=]DEGC`."""
    log, equals, number = text.rpartition("=")
    return (log if equals else None), within(COLDEST, HOTTEST)(number)


COLDEST, HOTTEST = -273.15, 1000.0
"""Temperatures (degC) that a joint can have: from absolute zero to where gears melt."""


def payload_of(numbers: tuple[float, ...] | None) -> Payload | None:
    """Return the payload of `payload_numbers`, its centre at the tool by default."""
    from jointwise.description import Payload

    return None if numbers is None else Payload(numbers[0], numbers[1:] or (0.0, 0.0, 0.0))


CLEARANCE = 0.05
"""Height (m) above the mounting plane that planned motions keep by default."""


def add_clearance(parser: argparse.ArgumentParser) -> None:
    """Add the height above the mounting plane, None without one."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--clearance",
        type=metres,
        default=CLEARANCE,
        metavar="M",
        help=f"least height of the arm above the mounting plane (default: {CLEARANCE:g})",
    )
    group.add_argument(
        "--no-clearance",
        dest="clearance",
        action="store_const",
        const=None,
        help="do not check the mounting plane, for an arm on a pedestal",
    )


def add_tool(parser: argparse.ArgumentParser) -> None:
    """Add what the flange carries."""
    parser.add_argument(
        "--tool",
        type=tool_numbers,
        metavar="LENGTH[,RADIUS]",
        help="length and radius (m) of a tool along the z axis of the flange, for the collision check",
    )


def tool_numbers(text: str) -> tuple[float, ...]:
    """Return length and, optionally, radius (m) of a tool."""
    numbers = tuple(within(0.0, 1e3, above=True)(word) for word in text.split(","))
    if len(numbers) > 2:
        raise argparse.ArgumentTypeError(f"must be a length or length,radius. Got '{text}' instead.")
    return numbers


def tool_of(args: argparse.Namespace) -> Tool | None:
    """Return the tool of the arguments that `add_tool` added."""
    from jointwise.model.skeleton import Tool

    return None if args.tool is None else Tool(*args.tool)
