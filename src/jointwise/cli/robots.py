"""Lists the built-in robots, shows a robot description and checks a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from jointwise.cli.command import Command, Common
from jointwise.cli.inputs import NAMED, ROBOT, Description, OnTable
from jointwise.cli.output import show
from jointwise.description import Robot, gravity_vector, list_robots, load_robot
from jointwise.description.check import check_file, check_robot
from jointwise.description.transmission import Transmission
from jointwise.description.urdf import rpy_angles
from jointwise.finding import Finding, with_severity
from jointwise.formatting import table
from jointwise.model.base import base_parameters
from jointwise.settings import option
from jointwise.spatial import INERTIAL_NAMES, Array, tensor_to_six

EXAMPLES = """\
examples:
  jointwise robots                                   the catalogue
  jointwise robots show ur5e                         kinematics, inertia, limits, motors, base parameters
  jointwise robots show ur5e --mounting tilt:x:45    base parameters under another gravity
  jointwise robots show arm.urdf --tip tool0 --json
  jointwise robots check table.csv --convention dh   what is wrong or doubtful, line by line

`check` exits with 1 if it finds an error. Files: .toml, .csv or .txt (DH/MDH table), .urdf or .xml."""


SHOW_EXAMPLES = """\
examples:
  jointwise robots show ur5e
  jointwise robots show ur5e --mounting tilt:x:45
  jointwise robots show table.csv --convention dh
  jointwise robots show arm.urdf --base torso --tip tool0 --fix-joint gripper=0.02 --json
  jointwise robots show puma560 --coupling 6:5:1 --log-coordinates motor"""

CHECK_EXAMPLES = """\
examples:
  jointwise robots check arm.toml
  jointwise robots check table.csv --convention mdh
  jointwise robots check arm.urdf --tip tool0 --json
  jointwise robots check table.csv --coupling 6:5:1

Exit code 1 if there is an error; warnings and infos do not count."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """The list of the built-in robots."""


@dataclass(frozen=True, kw_only=True)
class Check(Description, Common):
    """A robot."""

    robot: str = option(help=NAMED, argument=True, **ROBOT)


@dataclass(frozen=True, kw_only=True)
class Show(Check, OnTable):
    """A robot and the gravity of its base parameters."""


def run(settings: Settings) -> int:
    """List the built-in robots."""
    robots = [(name, load_robot(name)) for name in list_robots()]
    rows = [(name, robot.title, robot.dof, float(robot.inertials[:, 9].sum())) for name, robot in robots]
    keys = ("name", "title", "joints", "mass_kg")
    facts = [dict(zip(keys, row, strict=True)) for row in rows]
    show(settings, lambda: facts, lambda: table(("name", "title", "joints", "mass kg"), rows))
    return 0


def show_robot(settings: Show) -> int:
    """Print all that is known of a robot."""
    robot, gravity = settings.described(settings.robot), gravity_vector(settings.stated_mounting() or "table")
    shown = describe(robot, gravity)
    show(settings, lambda: shown, lambda: _description_text(shown))
    return 0


def check(settings: Check) -> int:
    """Print what is wrong or doubtful; 1 if there is an error."""
    if settings.robot in list_robots():
        found = check_robot(settings.described(settings.robot))
    else:
        found = check_file(settings.robot, lambda _: settings.described(settings.robot))
    show(
        settings,
        lambda: [finding.to_dict(where="subject", message="evidence") for finding in found],
        lambda: _findings_text(found),
    )
    return int(any(finding.severity == "error" for finding in found))


def describe(robot: Robot, gravity: Array) -> dict[str, Any]:
    """Return all that is known of a robot as plain data: SI units, rad; gravity in the base frame, m/s²."""
    base = base_parameters(robot, gravity=gravity, rotors=False)
    return {
        "name": robot.name,
        "title": robot.title,
        "gravity": gravity.tolist(),
        "joints": [
            {
                "name": joint.name,
                "kind": joint.kind,
                "xyz": joint.translation.tolist(),
                "rpy": rpy_angles(joint.rotation).tolist(),
                "limits": asdict(joint.limits),
                "motor": asdict(joint.motor),
            }
            for joint in robot.joints
        ],
        "links": [
            {
                "name": link.name,
                "mass": link.mass,
                "center_of_mass": link.center_of_mass.tolist(),
                "inertia_at_center": tensor_to_six(link.inertia_at_center).tolist(),
            }
            for link in robot.links
        ],
        "tool": {"xyz": robot.tool_translation.tolist(), "rpy": rpy_angles(robot.tool_rotation).tolist()},
        "coupling": None if robot.transmission is None else _coupling(robot.transmission),
        "sources": dict(robot.sources),
        "base_parameters": {
            "count": base.count,
            "names": list(base.names),
            "formulas": list(base.formulas),
            "classification": dict(base.classification),
        },
    }


def _coupling(transmission: Transmission) -> dict[str, Any]:
    """Return the coupling as plain data: the matrix C of ``theta = C q``, and the coordinates of logs."""
    return {"motor_from_joint": transmission.matrix.tolist(), "log_coordinates": transmission.coordinates}


def _coupling_text(coupling: dict[str, Any]) -> str:
    """Return the motors that turn with other joints than their own."""
    lines = [
        f"  motor {motor} turns by {' + '.join(terms)}"
        for motor, row in enumerate(coupling["motor_from_joint"], start=1)
        if (terms := _terms_of(row)) != [f"q{motor}"]
    ]
    return "\n".join([*lines, f"  logs are in {coupling['log_coordinates']} coordinates"])


def _terms_of(row: list[float]) -> list[str]:
    """Return a row of the coupling matrix as terms: q6, 0.5 q5."""
    return [f"q{j}" if factor == 1.0 else f"{factor:.6g} q{j}" for j, factor in enumerate(row, start=1) if factor]


def _description_text(shown: dict[str, Any]) -> str:
    joints, links, base, coupling = shown["joints"], shown["links"], shown["base_parameters"], shown["coupling"]
    mass = sum(link["mass"] for link in links)
    kinds = list(base["classification"].values())
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("alone", "combination", "none"))
    sections = [
        f"{shown['title'] or shown['name']} ({shown['name']}): {len(joints)} joints, {mass:.6g} kg",
        "frame {j} in {j-1} at q = 0, z along the joint axis; m, rad\n" + _kinematics(joints, shown["tool"]),
        "limits; rad or m, per s, per s^2, Nm or N\n" + _named_columns(joints, "limits"),
        "links, inertia about the centre of mass in axes of {j}; kg, m, kg m^2\n" + _bodies(links),
        "motors; kg m^2 and Nm/A, friction at the joint in Nm and Nm s/rad\n" + _named_columns(joints, "motor"),
        *(["coupling; angles of motors at the joint side\n" + _coupling_text(coupling)] if coupling else []),
        f"base parameters: {base['count']} of {len(kinds)} (standard parameters: {counts})\n"
        f"gravity {' '.join(f'{value + 0.0:.6g}' for value in shown['gravity'])} m/s^2\n"
        + "\n".join(f"  {formula}" for formula in base["formulas"]),
        "sources\n" + "\n".join(f"  {key}: {text}" for key, text in shown["sources"].items()),
    ]
    return "\n\n".join(sections)


def _kinematics(joints: list[dict[str, Any]], tool: dict[str, Any]) -> str:
    rows = [(str(j), joint["name"], joint["kind"], *joint["xyz"], *joint["rpy"]) for j, joint in enumerate(joints, 1)]
    rows.append(("", "tool", "fixed", *tool["xyz"], *tool["rpy"]))
    return table(("j", "name", "kind", "x", "y", "z", "roll", "pitch", "yaw"), rows)


def _bodies(links: list[dict[str, Any]]) -> str:
    rows = [
        (link["name"], link["mass"], *(round(x, 12) for x in link["center_of_mass"] + link["inertia_at_center"]))
        for link in links
    ]
    return table(("name", "mass", "x", "y", "z", *INERTIAL_NAMES[:6]), rows)


def _named_columns(joints: list[dict[str, Any]], key: str) -> str:
    """Return a table of the named numbers of each joint; columns that nobody fills are left out."""
    names = [name for name in joints[0][key] if any(joint[key][name] is not None for joint in joints)]
    if not names:
        return "  none given"
    return table(("name", *names), [(joint["name"], *(joint[key][name] for name in names)) for joint in joints])


def _findings_text(found: list[Finding]) -> str:
    counts = [f"{name}s: {len(with_severity(found, name))}" for name in ("error", "warning", "info")]
    return "\n".join([*(finding.line() for finding in found), ", ".join(counts)])


COMMANDS = {
    "show": Command(Show, show_robot, "show kinematics, inertia, limits and base parameters", SHOW_EXAMPLES),
    "check": Command(Check, check, "list errors and doubtful values of a description", CHECK_EXAMPLES),
}
