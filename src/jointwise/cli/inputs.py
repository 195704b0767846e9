"""Settings that several commands share: the robot, its mounting, how logs are read, payload, tool, clearance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from jointwise.call_settings import ClearanceSettings
from jointwise.settings import Metres, Number, Range, converted, option

if TYPE_CHECKING:
    from jointwise.data.effort import EffortUnit
    from jointwise.description import Payload, Robot
    from jointwise.model.skeleton import Tool

COLDEST, HOTTEST = -273.15, 1000.0
"""Temperatures (degC) that a joint can have: from absolute zero to where gears melt."""
BAGS = "ROS 2 bags"

Mass = Annotated[float, Range(0.0, 1e5, "kg")]
Length = Annotated[float, Range(0.0, 1e3, "m", above=True)]
Temperature = Annotated[float, Range(COLDEST, HOTTEST, "degC")]


def numbers(text: str) -> tuple[float, ...]:
    """Return numbers separated by commas."""
    return tuple(converted(word, Number) for word in text.split(","))


def payload_numbers(text: str) -> tuple[float, ...]:
    """Return the mass (kg) of a payload, or mass and centre (m) of `m,x,y,z`."""
    values = tuple(converted(word, Metres if k else Mass) for k, word in enumerate(text.split(",")))
    if len(values) not in (1, 4):
        raise ValueError(f"must be a mass or mass,x,y,z. Got '{text}' instead.")
    return values


def tool_numbers(text: str) -> tuple[float, ...]:
    """Return length and, optionally, radius (m) of a tool."""
    values = tuple(converted(word, Length) for word in text.split(","))
    if len(values) > 2:
        raise ValueError(f"must be a length or length,radius. Got '{text}' instead.")
    return values


def joint_numbers(text: str) -> tuple[int, ...] | None:
    """Return the joints (0-based) of `5,6,7`, None for `auto`."""
    from jointwise.settings import Count

    return None if text == "auto" else tuple(sorted({converted(word.strip(), Count) - 1 for word in text.split(",")}))


def fixed_joint(text: str) -> tuple[str, float]:
    """Return name and value of `NAME=VALUE`."""
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"must be NAME=VALUE. Got '{text}' instead.")
    return name, converted(value, Number)


def of_log(parse: Callable[[str], Any]) -> Callable[[str], tuple[str | None, Any]]:
    """Return a parser of `[LOG=]VALUE`: the log, None for all of them, and its value."""

    def parsed(text: str) -> tuple[str | None, Any]:
        log, equals, value = text.rpartition("=")
        return (log if equals else None), parse(value)

    return parsed


def payload_of(values: tuple[float, ...] | None) -> Payload | None:
    """Return the payload of `payload_numbers`, its centre at the tool by default."""
    from jointwise.description import Payload

    return None if values is None else Payload(values[0], values[1:] or (0.0, 0.0, 0.0))


@dataclass(frozen=True, kw_only=True)
class Description:
    """How the file of a robot is read, and what it does not state."""

    convention: Literal["dh", "mdh", "mdh-following"] | None = option(
        None, "convention of a DH table that does not state it"
    )
    tip: str | None = option(None, "last link of the chain in a URDF with branches", metavar="LINK")
    base: str | None = option(None, "first link of the chain in a URDF", metavar="LINK", standard="its root")
    fix_joint: tuple[tuple[str, float], ...] = option(
        (), "hold a joint of a URDF at a value (rad or m); can be repeated", metavar="NAME=VALUE", many="repeat",
        parse=fixed_joint,
    )  # fmt: skip
    coupling: str | None = option(
        None, "coupled transmission: 6:5:1 means that motor 6 turns by q6 + 1 * q5 (angles at the joint side)",
        metavar="MOTOR:JOINT:RATIO[,...]",
    )  # fmt: skip
    log_coordinates: Literal["joint", "motor"] | None = option(
        None, "coordinates of positions, speeds and torques in logs of a coupled robot", standard="joint"
    )

    def described(self, robot: str) -> Robot:
        """Return a robot by its name or file."""
        import jointwise

        return jointwise.load_robot(
            robot,
            convention=self.convention,
            tip=self.tip,
            base=self.base,
            fixed=dict(self.fix_joint),
            coupling=self.coupling,
            coordinates=self.log_coordinates,
        )


ROBOT: dict[str, Any] = {"metavar": "NAME|FILE"}
NAMED = "name of a built-in robot, or a description file"


@dataclass(frozen=True, kw_only=True)
class RobotFile(Description):
    """The robot of a command that needs one."""

    robot: str = option(help=NAMED, **ROBOT)

    def load_robot(self) -> Robot:
        """Return the robot."""
        return self.described(self.robot)


@dataclass(frozen=True, kw_only=True)
class MaybeRobot(Description):
    """The robot of a command that works without."""

    robot: str | None = option(None, NAMED, **ROBOT)

    def load_robot(self) -> Robot | None:
        """Return the robot, None if none is stated."""
        return None if self.robot is None else self.described(self.robot)


def mounting(standard: str) -> Any:
    """Return the field of the mounting; `standard` says what holds without it."""
    return option(None, "table, ceiling, wall or tilt:AXIS:ANGLE", metavar="HOW", one_of="gravity", standard=standard)


@dataclass(frozen=True, kw_only=True)
class Mounted:
    """The mounting of the base."""

    mounting: str | None = mounting("as stated in the log, else table")
    gravity: tuple[Number, Number, Number] | None = option(
        None, "gravity in the base frame, m/s^2", metavar=("X", "Y", "Z"), one_of="gravity"
    )

    def stated_mounting(self) -> str | list[float] | None:
        """Return the mounting or the gravity vector (m/s²), None if neither is stated; reject an invalid one."""
        from jointwise.description import gravity_vector

        stated = self.mounting if self.gravity is None else list(self.gravity)
        if stated is not None:
            gravity_vector(stated)
        return stated


@dataclass(frozen=True, kw_only=True)
class OnTable(Mounted):
    """The mounting of the base where no log states it."""

    mounting: str | None = mounting("table")


class Reading(TypedDict):
    """Arguments of `read_log` and `read_log_for`."""

    columns: str | None
    topic: str | None
    effort_unit: EffortUnit | None


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """The names of the columns of a log."""

    columns: str | None = option(
        None, "column mapping: t=time,q=pos_0..pos_5; t,q*6,i*6 for a file without header; or a .toml file",
        metavar="MAP",
    )  # fmt: skip
    topic: str | None = option(None, "topic of the joint states if the bag has several", metavar="NAME", group=BAGS)
    effort_unit: Literal["A", "Nm"] | None = option(
        None, "unit of the effort", group=BAGS, standard="inferred from the gravity torque"
    )

    def reading(self) -> Reading:
        """Return the arguments of `read_log`."""
        return {"columns": self.columns, "topic": self.topic, "effort_unit": self.effort_unit}


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The outputs that are not used."""

    ignore_output: tuple[int, ...] | None = option(
        (), "joints whose current or torque is missing or unusable, such as 5,6,7; auto: those that the inspection "
        "finds. Their positions are still used", metavar="J[,J]|auto", parse=joint_numbers,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Carried:
    """What the tool carries."""

    payload: tuple[float, ...] | None = option(
        None, "payload at the tool: mass, and centre of mass in m", metavar="KG[,X,Y,Z]", parse=payload_numbers
    )

    def load(self) -> Payload | None:
        """Return the payload, its centre at the tool by default."""
        return payload_of(self.payload)


@dataclass(frozen=True, kw_only=True)
class Tooled:
    """What the flange carries, for the collision check."""

    tool: tuple[float, ...] | None = option(
        None, "length and radius (m) of a tool along the z axis of the flange, for the collision check",
        metavar="LENGTH[,RADIUS]", parse=tool_numbers,
    )  # fmt: skip

    def shape(self) -> Tool | None:
        """Return the tool."""
        from jointwise.model.skeleton import Tool

        return None if self.tool is None else Tool(*self.tool)


@dataclass(frozen=True, kw_only=True)
class Clear(ClearanceSettings, Tooled):
    """What planned motions keep clear of."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Which of the two models of a file predicts."""

    use: Literal["sensor", "feed-forward"] | None = option(
        None, "sensor: with measured speeds and rotor positions; feed-forward: from positions only",
        standard="sensor if the log has the channels that the model uses",
    )  # fmt: skip
