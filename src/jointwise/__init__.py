"""Jointwise calibrates the dynamics of robot arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jointwise.description import Robot


def robot(name: str, *, convention: str | None = None, tip: str | None = None) -> Robot:
    """Return a robot of the catalogue by name, or that of a description file if `name` is the path of one.

    `convention` (of a table) and `tip` (of a URDF) say how a file is to be read, as in `load_robot`.
    """
    from pathlib import Path

    from jointwise.description import catalog_robot, load_robot
    from jointwise.errors import DescriptionError

    if Path(name).suffix:
        return load_robot(name, convention=convention, tip=tip)
    if convention or tip:
        raise DescriptionError(f"convention and tip are for files; '{name}' is a name of the catalogue.")
    return catalog_robot(name)
