"""The built-in robots: one TOML file each, with the source of every group of numbers."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jointwise.description.robot import Robot
from jointwise.description.toml import robot_from_toml
from jointwise.errors import DescriptionError, nearest


@cache
def list_robots() -> tuple[str, ...]:
    """Return the names of the built-in robots, sorted."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml")))


@cache
def catalog_robot(name: str) -> Robot:
    """Return a built-in robot by name (`ur5e`, `panda`, ...)."""
    key = name.strip().lower()
    if key not in list_robots():
        raise DescriptionError(f"unknown robot '{name}'. {nearest(key, list_robots())}")
    return robot_from_toml((files(__name__) / f"{key}.toml").read_text(encoding="utf-8"), f"{key}.toml")
