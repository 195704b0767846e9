"""Checks of a robot description: physics, limits, units and motors, as findings with file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from jointwise import spatial
from jointwise.arguments import checked
from jointwise.description.files import load_robot, read_text
from jointwise.description.robot import Joint, Limits, Link, Motor, Robot
from jointwise.errors import DescriptionError
from jointwise.finding import Finding, Severity
from jointwise.spatial import Array

FARTHEST_CENTER = 2.0
"""A centre of mass farther from its joint, or a larger radius of gyration (m), is reported as doubtful."""
LONGEST_LINK = 10.0
"""A larger distance between joints (m) is reported as doubtful."""
WIDEST_TURN = 8.0 * np.pi
"""A revolute limit beyond it (rad) is reported as doubtful."""


@checked
def check_robot(robot: Robot) -> list[Finding]:
    """Return what is wrong or doubtful about a robot, joint by joint."""
    places = [f"joint {number} '{joint.name}'" for number, joint in enumerate(robot.joints, start=1)]
    return _findings(robot, f"robot '{robot.name}'", places)


def check_file(path: str | Path, load: Callable[[Path], Robot] = load_robot) -> list[Finding]:
    """Return the findings about a description file, with line numbers; one that cannot be read is one error.

    Args:
        path: The file.
        load: Returns the robot of the file, for a file that needs options of `load_robot`.

    """
    file = Path(path)
    try:
        robot = load(file)
    except DescriptionError as problem:
        return [_unreadable(file, str(problem))]
    lines = _joint_lines(file, robot)
    known = [f", line {line}" for line in lines] if len(lines) == robot.dof else [""] * robot.dof
    places = [
        f"{file}{line}, joint {number} '{joint.name}'"
        for number, (line, joint) in enumerate(zip(known, robot.joints, strict=True), start=1)
    ]
    return _findings(robot, str(file), places)


def _unreadable(file: Path, problem: str) -> Finding:
    """Split 'file, place: message' where the place ends."""
    place, _, message = problem.removeprefix(str(file)).partition(": ")
    if not message or not problem.startswith(str(file)):
        return Finding("error", str(file), problem)
    return Finding("error", f"{file}{place}", message)


def _joint_lines(file: Path, robot: Robot) -> list[int]:
    """Return the line on which each joint of the robot is described, as far as the layout of the file shows it."""
    text, ending = read_text(file), file.suffix.lower()
    if ending == ".toml":
        return [n for n, line in enumerate(text.splitlines(), start=1) if re.match(r"\s*\[\[\s*joint\s*\]\]", line)]
    if ending in (".csv", ".txt"):
        numbered = enumerate(text.splitlines(), start=1)
        return [n for n, line in numbered if line.strip(" ,\t") and not line.lstrip().startswith("#")][1:]
    from jointwise.description.urdf_xml import joint_lines

    lines = joint_lines(text, str(file))
    return [lines[joint.name] for joint in robot.joints]


Remarks = Iterator[tuple[Severity, str]]


def _findings(robot: Robot, whole: str, places: Sequence[str]) -> list[Finding]:
    found = [Finding(severity, whole, message) for severity, message in _robot_remarks(robot)]
    previous: Joint | None = None
    for j, (joint, link, place) in enumerate(zip(robot.joints, robot.links, places, strict=True)):
        remarks = [*_axis_remarks(previous, joint), *_placement_remarks(joint), *_limit_remarks(joint)]
        remarks += _body_remarks(link) if robot.inertials.any() else ()
        found += [Finding(severity, place, message, joint=j) for severity, message in remarks]
        previous = joint
    return found


def require_sound(robot: Robot) -> None:
    """Reject a robot with errors, for uses that trust its numbers: simulation, plans of experiments.

    Raises:
        DescriptionError: The first error that `check_robot` finds.
    """
    for finding in check_robot(robot):
        if finding.severity == "error":
            raise DescriptionError(f"{finding.subject}: {finding.evidence}")


def _robot_remarks(robot: Robot) -> Remarks:
    """Remark on what whole groups of joints lack, once instead of at each."""
    if not robot.inertials.any():
        yield "warning", "no link has inertia: kinematics only, every torque is zero."
    motors = [joint.name for joint in robot.joints if joint.motor == Motor()]
    if motors:
        yield "info", f"no motor data (gear ratio, rotor inertia, gain): {', '.join(motors)}."
    accelerations = [joint.name for joint in robot.joints if joint.limits.acceleration is None]
    if accelerations:
        yield "info", f"no acceleration limit: {', '.join(accelerations)}."


def _axis_remarks(previous: Joint | None, joint: Joint) -> Remarks:
    if previous is not None and _coincide(previous, joint):
        yield (
            "warning",
            f"its axis is that of '{previous.name}': the motions of the two joints cannot be distinguished.",
        )


def _body_remarks(link: Link) -> Remarks:
    if not link.inertial.any():
        yield "warning", "the link has no inertia."
        return
    mass, center, tensor = spatial.split_inertial(link.inertial)
    if mass <= 0.0:
        yield "error", f"mass must be > 0 for a link with inertia. Got {mass:g} kg instead."
        return
    distance = float(np.linalg.norm(center))
    if distance > FARTHEST_CENTER:
        yield "warning", f"the centre of mass is {distance:.4g} m from the joint frame. Are the lengths in m?"
    yield from _tensor_remarks(tensor, mass)


def _tensor_remarks(tensor: Array, mass: float) -> Remarks:
    """Remark on a tensor about the centre of mass, kg m²."""
    small, middle, large = np.linalg.eigvalsh(tensor).tolist()
    dust = 1e-9 * max(abs(small), abs(large))
    shown = f"principal moments {small:.6g}, {middle:.6g}, {large:.6g} kg m^2"
    if small < -dust:
        yield "error", f"the inertia tensor at the centre of mass is not positive definite: {shown}."
    elif large > small + middle + dust:
        yield "error", f"the inertia breaks the triangle inequality: {large:.6g} > {small:.6g} + {middle:.6g} kg m^2."
    elif small <= dust:
        yield "warning", f"the link is a point or a line, no body: {shown}."
    if large > mass * FARTHEST_CENTER**2:
        radius = (large / mass) ** 0.5
        yield "warning", f"the radius of gyration is {radius:.4g} m. Is the inertia in kg m^2?"


def _limit_remarks(joint: Joint) -> Remarks:
    limits = joint.limits
    missing = [name for name in ("lower", "upper", "velocity", "effort") if getattr(limits, name) is None]
    if missing:
        yield "warning", f"no limit for {', '.join(missing)}."
    yield from _limit_errors(limits)
    widest = max(abs(limits.lower or 0.0), abs(limits.upper or 0.0))
    if joint.kind == "revolute" and widest > WIDEST_TURN:
        yield "warning", f"the position limit {widest:g} rad is more than four turns. Is it in degrees?"
    if joint.kind == "prismatic" and widest > LONGEST_LINK:
        yield "warning", f"the position limit is {widest:g} m. Is it in mm?"


def _limit_errors(limits: Limits) -> Remarks:
    if limits.lower is not None and limits.upper is not None and limits.lower >= limits.upper:
        yield "error", f"lower must be below upper. Got {limits.lower:g} and {limits.upper:g} instead."
    for name in ("velocity", "acceleration", "effort"):
        value = getattr(limits, name)
        if value is not None and value <= 0.0:
            yield "error", f"the {name} limit must be > 0. Got {value:g} instead."


def _placement_remarks(joint: Joint) -> Remarks:
    distance = float(np.linalg.norm(joint.translation))
    if distance > LONGEST_LINK:
        yield "warning", f"it is {distance:.4g} m from the joint before it. Are the lengths in m?"
    straight = np.round(joint.rotation)
    error = float(np.abs(joint.rotation - straight).max())
    if spatial.is_rotation(straight) and 1e-14 < error < 1e-4:
        yield (
            "info",
            f"its rotation differs from multiples of 90 degrees by {error:.1g} rad. Write pi/2 if these are meant.",
        )


def _coincide(before: Joint, joint: Joint) -> bool:
    """Return whether two joints produce the same motion: a common axis, or for prismatic joints a common direction."""
    parallel = abs(joint.rotation[2, 2]) > 1.0 - 1e-12
    on_line = float(np.hypot(*joint.translation[:2])) < 1e-9
    return before.kind == joint.kind and parallel and (on_line or joint.kind == "prismatic")
