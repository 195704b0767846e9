"""Imports on first use: public names of a package, so that a part of it loads without the rest, and optional pandas."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from jointwise.errors import MissingExtraError


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` (PEP 562) of a package whose names are imported on first use.

    The names are those that its `__init__.py` imports under ``if TYPE_CHECKING:``, which type checkers read too. A name
    is stored in the package once it has been imported.

    Args:
        package: `__name__` of the package.

    """

    def get(name: str) -> Any:
        if name not in lazy_modules(package):
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(lazy_modules(package)[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, names


@cache
def lazy_modules(package: str) -> dict[str, str]:
    """Return the module of every public name that a package imports under ``if TYPE_CHECKING:``.

    Raises:
        ImportError: The package was installed as byte code only.

    """
    blocks = [node for node in ast.parse(_source(package)).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    public = [node for node in imports if str(node.module).startswith("jointwise")]
    return {alias.name: str(node.module) for node in public for alias in node.names}


def _source(package: str) -> str:
    """Return the source of the `__init__.py` of a package."""
    spec = sys.modules[package].__spec__
    source: str | None = spec.loader.get_source(package)  # type: ignore[union-attr]
    if source is None:
        raise ImportError(f"the source of {package} is required: its public names are read from it.")
    return source


def import_pandas() -> ModuleType:
    """Return pandas.

    Raises:
        MissingExtraError: It is not installed.

    """
    try:
        return import_module("pandas")
    except ImportError:
        raise MissingExtraError("pandas", "dataframe", "A data frame") from None
