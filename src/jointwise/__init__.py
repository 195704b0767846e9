"""Jointwise calibrates the dynamics of robot arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jointwise.description import Robot


def robot(name: str) -> Robot:
    """Return a robot of the catalogue by name, or that of a description file if `name` is the path of one."""
    from pathlib import Path

    from jointwise.description import catalog_robot, load_robot

    return load_robot(name) if Path(name).suffix else catalog_robot(name)
