"""Jointwise calibrates the dynamics of robot arms."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jointwise.data import read_log as read_log
    from jointwise.description import Robot
    from jointwise.experiment import simulate as simulate
    from jointwise.result import load_calibration as load_calibration
    from jointwise.result import save_calibration as save_calibration
    from jointwise.result import validate as validate

_LAZY = {
    "read_log": "jointwise.data",
    "load_calibration": "jointwise.result",
    "save_calibration": "jointwise.result",
    "simulate": "jointwise.experiment",
    "validate": "jointwise.result",
}


def __getattr__(name: str) -> Any:
    """Return a function of the front door on first use, so that importing the package costs nothing."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'jointwise' has no attribute '{name}'")


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
