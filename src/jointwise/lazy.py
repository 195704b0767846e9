"""Public names of a package that are imported on first use, so that importing the package costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose public names are imported on first use.

    Args:
        package: Name of the package.
        modules: Names by the module, relative to the package, that defines them.

    """
    origin = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in origin:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{origin[name]}"), name)

    return get, lambda: sorted(origin)
