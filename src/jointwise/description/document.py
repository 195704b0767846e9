"""A robot as a plain document, for files that must be readable without the original description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from jointwise.description.robot import Joint, Limits, Link, Motor, Robot
from jointwise.errors import DescriptionError


def robot_to_dict(robot: Robot) -> dict[str, Any]:
    """Return the robot as numbers and texts: placements of {j} in {j-1}, ten parameters a link, limits, motors."""
    return {
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
            }
            for joint, link in zip(robot.joints, robot.links, strict=True)
        ],
    }


def robot_from_dict(document: Mapping[str, Any]) -> Robot:
    """Return the robot of such a document."""
    try:
        joints = [
            Joint(
                row["name"],
                row["kind"],
                row["rotation"],
                row["translation"],
                Limits(**row["limits"]),
                Motor(**row["motor"]),
            )
            for row in document["joints"]
        ]
        links = [Link(row["link"], row["inertial"]) for row in document["joints"]]
        tool = document["tool"]
        return Robot(
            document["name"],
            tuple(joints),
            tuple(links),
            tool["rotation"],
            tool["translation"],
            document["title"],
            document["sources"],
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise DescriptionError(f"the stored robot cannot be read: {problem}.") from None
