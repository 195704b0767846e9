"""Robots by name or from a file: reader by the ending of the file; and robots and payloads in JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import read_limited
from jointwise.description.robot import Joint, JointKind, Limits, Link, Motor, Payload, Robot
from jointwise.description.transmission import Coordinates, Transmission, coupled, parse_coupling
from jointwise.errors import DataError, DescriptionError, nearest

CATALOG = "jointwise.description.catalog"
"""Package of the built-in robots: one TOML file each."""
Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]
Ten = tuple[float, float, float, float, float, float, float, float, float, float]


@dataclass(frozen=True)
class _Tool:
    """The tool frame in the frame of the last joint."""

    rotation: Matrix
    translation: Vector


@dataclass(frozen=True)
class _JointEntry:
    """A joint with the placement of {j} in {j-1}, and its link with its ten parameters."""

    name: str
    kind: JointKind
    rotation: Matrix
    translation: Vector
    link: str
    inertial: Ten
    limits: Limits = field(default_factory=Limits)
    motor: Motor = field(default_factory=Motor)
    region: tuple[Vector, Vector] | None = None


@dataclass(frozen=True)
class _Coupling:
    """The coupling matrix C of ``theta = C q`` row by row, and the coordinates of logs."""

    matrix: tuple[tuple[float, ...], ...]
    coordinates: Coordinates = "joint"


@dataclass(frozen=True)
class RobotDocument:
    """The entries of a stored robot.

    Attributes:
        name: Name of the robot.
        tool: Tool frame in the frame of the last joint.
        joints: Joints with their links, base to tool.
        title: Name for people; "" if there is none.
        sources: Source of every group of numbers.
        transmission: Coupling of motors and joints; None without one.
    """

    name: str
    tool: _Tool
    joints: tuple[_JointEntry, ...]
    title: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    transmission: _Coupling | None = None

    def __post_init__(self) -> None:
        """Reject entries that make no robot."""
        assert self.robot

    @cached_property
    def robot(self) -> Robot:
        """The robot itself."""
        return Robot(
            self.name,
            tuple(
                Joint(row.name, row.kind, np.array(row.rotation), np.array(row.translation), row.limits, row.motor)
                for row in self.joints
            ),
            tuple(
                Link(row.link, np.array(row.inertial), None if row.region is None else np.array(row.region))
                for row in self.joints
            ),
            np.array(self.tool.rotation),
            np.array(self.tool.translation),
            self.title,
            self.sources,
            transmission=None if self.transmission is None else _transmission(self.transmission),
        )


def _transmission(stored: _Coupling) -> Transmission:
    if any(len(row) != len(stored.matrix) for row in stored.matrix):
        raise DescriptionError("transmission.matrix must be square.")
    return Transmission(np.array(stored.matrix), stored.coordinates)


@dataclass(frozen=True)
class PayloadDocument:
    """The entries of a stored payload.

    Attributes:
        mass: Mass, kg.
        center_of_mass: Centre of mass in the tool frame, (3,), m.
        inertia: Inertia tensor, (3, 3), kg m².
    """

    mass: float
    center_of_mass: Vector
    inertia: Matrix

    def __post_init__(self) -> None:
        """Reject entries that make no payload."""
        assert self.payload

    @cached_property
    def payload(self) -> Payload:
        """The payload itself."""
        return Payload(self.mass, self.center_of_mass, np.array(self.inertia))


def robot_to_dict(robot: Robot) -> dict[str, Any]:
    """Return the robot as numbers and texts, as `RobotDocument` reads them; limits that are unknown are left out."""
    coupling = robot.transmission
    stored = None if coupling is None else {"matrix": coupling.matrix.tolist(), "coordinates": coupling.coordinates}
    return {
        **({} if stored is None else {"transmission": stored}),
        "name": robot.name,
        "title": robot.title,
        "sources": dict(robot.sources),
        "tool": {"rotation": robot.tool_rotation.tolist(), "translation": robot.tool_translation.tolist()},
        "joints": [
            {
                "name": joint.name,
                "kind": joint.kind,
                "rotation": joint.rotation.tolist(),
                "translation": joint.translation.tolist(),
                "limits": {key: value for key, value in asdict(joint.limits).items() if value is not None},
                "motor": {key: value for key, value in asdict(joint.motor).items() if value is not None},
                "link": link.name,
                "inertial": link.inertial.tolist(),
                **({} if link.region is None else {"region": link.region.tolist()}),
            }
            for joint, link in zip(robot.joints, robot.links, strict=True)
        ],
    }


LARGEST_BYTES = 16 * 1024 * 1024
"""Largest file that is read as a robot description."""
TABLE_ENDINGS = (".csv", ".txt")
URDF_ENDINGS = (".urdf", ".xml")


def read_text(path: Path) -> str:
    """Return the text of a description file; raise DescriptionError if it cannot be read."""
    try:
        return read_limited(path, LARGEST_BYTES, "a robot description").decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise DescriptionError(f"{path}: not a text file in UTF-8 (byte {problem.start}).") from None
    except DataError as problem:
        raise DescriptionError(f"{path}: {problem}") from None


def as_robot(robot: Robot | str | Path) -> Robot:
    """Return a robot, loaded where it is a name of the catalogue or the path of a description."""
    return robot if isinstance(robot, Robot) else load_robot(robot)


@checked
def load_robot(
    name: str | Path,
    *,
    convention: str | None = None,
    tip: str | None = None,
    base: str | None = None,
    fixed: Mapping[str, float] | None = None,
    coupling: str | None = None,
    coordinates: Coordinates | None = None,
) -> Robot:
    """Return a robot of the catalogue, or the robot of a description file.

    Args:
        name: Name in the catalogue (see `list_robots`), or path of a file that ends in ``.toml``, ``.csv`` or ``.txt``
            (DH or MDH table), ``.urdf`` or ``.xml`` (URDF).
        convention: ``dh``, ``mdh`` or ``mdh-following``: how to read a table that does not state it.
        tip: Last link of the chain, where a URDF branches.
        base: First link of the chain in a URDF, the root if None. Its frame is the base frame, also of gravity.
        fixed: Joints of a URDF, by name, that are held at a value (rad or m).
        coupling: Coupled motors as ``MOTOR:JOINT:RATIO[,...]``: "6:5:1" if motor 6 turns by q6 + 1 * q5.
        coordinates: Coordinates of positions, speeds and torques in logs of a coupled robot: "joint" or "motor".

    Raises:
        DescriptionError: The robot is unknown, or its file cannot be read; names the file and the line.
    """
    return _with_coupling(_uncoupled(name, convention, (tip, base, fixed)), coupling, coordinates)


Chain = tuple[str | None, str | None, Mapping[str, float] | None]
"""Tip, base and fixed joints of a chain in a URDF."""


def _uncoupled(name: str | Path, convention: str | None, chain: Chain) -> Robot:
    if isinstance(name, str) and not Path(name).suffix:
        if convention or any(chain):
            raise DescriptionError(
                f"convention, tip, base and fixed joints are for files; '{name}' is a name of the catalogue."
            )
        return catalog_robot(name)
    return _robot_of_file(Path(name), convention, chain)


def _with_coupling(robot: Robot, coupling: str | None, coordinates: Coordinates | None) -> Robot:
    """Return a robot with the couplings and the coordinates of its logs that a user states."""
    described = robot.transmission
    if coupling is not None and described is not None:
        raise DescriptionError(
            f"'{robot.name}' describes its coupling itself. Leave out the coupling or edit the file."
        )
    if coupling is None and coordinates is not None and described is None:
        raise DescriptionError(f"'{robot.name}' has no coupling: motor and joint coordinates are the same.")
    if coupling is not None:
        return replace(robot, transmission=coupled(parse_coupling(coupling), robot.dof, coordinates or "joint"))
    if described is not None and coordinates is not None:
        return replace(robot, transmission=Transmission(described.matrix, coordinates))
    return robot


def _robot_of_file(file: Path, convention: str | None, chain: Chain) -> Robot:
    ending = file.suffix.lower()
    if any(chain) and ending not in URDF_ENDINGS:
        raise DescriptionError(f"{file}: tip, base and fixed joints can be chosen in a URDF only.")
    if convention is not None and ending not in TABLE_ENDINGS:
        raise DescriptionError(
            f"{file}: a convention can be chosen for a CSV table only; this file states its convention."
        )
    if ending == ".toml":
        from jointwise.description.toml import robot_from_toml

        return robot_from_toml(read_text(file), str(file))
    if ending in TABLE_ENDINGS:
        from jointwise.description.table import robot_from_csv

        return robot_from_csv(read_text(file), str(file), convention)
    if ending in URDF_ENDINGS:
        from jointwise.description.urdf import robot_from_urdf

        return robot_from_urdf(read_text(file), str(file), *chain)
    raise DescriptionError(
        f"{file}: a description must end in .toml, .csv, .txt, .urdf or .xml. Got '{ending}' instead."
    )


@cache
def list_robots() -> tuple[str, ...]:
    """Return the names of the built-in robots, sorted."""
    return tuple(
        sorted(f.name.removesuffix(".toml") for f in resources.files(CATALOG).iterdir() if f.name.endswith(".toml"))
    )


@cache
def catalog_robot(name: str) -> Robot:
    """Return a built-in robot by name (`ur5e`, `panda`, ...)."""
    from jointwise.description.toml import robot_from_toml

    key = name.strip().lower()
    if key not in list_robots():
        raise DescriptionError(f"unknown robot '{name}'. {nearest(key, list_robots())}")
    return robot_from_toml((resources.files(CATALOG) / f"{key}.toml").read_text(encoding="utf-8"), f"{key}.toml")
