"""Packages that import their public names on first use, so that a part of a package loads without the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Type checkers read the same imports under `TYPE_CHECKING`.

    Args:
        package: `__name__` of the package.
        modules: Public names by the module that defines them, relative to the package (``"fit"``) or absolute
            (``"jointwise.model.spring"``).

    Returns:
        The two functions (PEP 562); a name is stored in the package once it has been imported.

    """
    origin = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in origin:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module = origin[name]
        found = import_module(module if module.startswith("jointwise.") else f"{package}.{module}")
        value = getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, names
