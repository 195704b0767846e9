"""Titles and units of robots and joints as reports show them."""

from __future__ import annotations

from jointwise.description.robot import Joint, Robot


def joint_title(robot: Robot, j: int) -> str:
    """Return `Joint 2 · shoulder_lift`, or `Joint 2` if the name only repeats the number; `j` counts from 0."""
    name = robot.joints[j].name
    plain = name.lower().strip("_ ").replace("_", "").replace(" ", "") in (f"j{j + 1}", f"joint{j + 1}", str(j + 1))
    return f"Joint {j + 1}" if plain or not name else f"Joint {j + 1} · {name}"


def robot_title(robot: Robot) -> str:
    """Return the title of a robot, or its name if it has no title."""
    return robot.title or robot.name


def length_unit(joint: Joint) -> str:
    """Return rad for a revolute joint and m for a prismatic one."""
    return "rad" if joint.kind == "revolute" else "m"


def effort_unit(joint: Joint) -> str:
    """Return Nm for a revolute joint and N for a prismatic one."""
    return "Nm" if joint.kind == "revolute" else "N"
