"""The API reference follows `jointwise.__all__`: the directive `api-reference` documents every public name."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import jointwise

KINDS = ("Functions", "Classes", "Exceptions", "Constants")
_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
_LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def public_names(module: ModuleType) -> list[str]:
    """Return the names of `__all__` without version numbers and the like."""
    return [name for name in module.__all__ if not name.startswith("__")]


def kind_of(value: object) -> str:
    """Return the heading under which an object is listed."""
    if inspect.isclass(value):
        return "Exceptions" if issubclass(value, BaseException) else "Classes"
    if inspect.ismodule(value):
        return "Namespaces"
    return "Functions" if callable(value) else "Constants"


def directive_of(module: str, name: str, value: object) -> list[str]:
    """Return the lines of the autodoc directive that documents an object."""
    kind = kind_of(value)
    if kind in ("Classes", "Exceptions"):
        return [f".. autoclass:: {module}.{name}", "   :members:", ""]
    if kind == "Functions":
        return [f".. autofunction:: {module}.{name}", ""]
    return [f".. py:data:: {module}.{name}", f"   :type: {type(value).__name__}", ""]


class ApiReference(SphinxDirective):
    """Sections of functions, classes, exceptions, and one for every namespace."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return self._sections(jointwise, "jointwise")

    def _sections(self, module: ModuleType, path: str) -> list[nodes.Node]:
        groups: dict[str, list[str]] = {}
        namespaces: list[nodes.Node] = []
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                namespaces.append(self._namespace(value, f"{path}.{name}"))
            else:
                groups.setdefault(kind_of(value), []).extend(directive_of(path, name, value))
        return [self._section(f"{path}: {kind.lower()}", groups[kind]) for kind in KINDS if kind in groups] + namespaces

    def _namespace(self, module: ModuleType, path: str) -> nodes.section:
        section = self._section(path, [(module.__doc__ or "").split("\n", maxsplit=1)[0], ""])
        section += self._sections(module, path)
        return section

    def _section(self, title: str, lines: list[str]) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title(text=title)
        self.state.nested_parse(StringList(lines, source="api_reference"), 0, section)
        return section


def escape_symbols(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape `|` and `*` outside literals: docstrings use them as in |v| and a * b, not as markup."""
    for number, line in enumerate(lines):
        parts = _LITERAL.split(line)
        parts[::2] = [re.sub(r"(?<!\*)([|*])(?!\*)", r"\\\1", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def name_aliases(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Write type aliases by their name: within a union Sphinx prints their internal representation."""
    return tuple(text and _ALIAS.sub(r"\1", text) for text in (signature, returns))  # type: ignore[return-value]


def skip_field_aliases(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples as Python describes them: the section `Attributes` of the class has them."""
    return True if str(inspect.getdoc(obj)).startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("api-reference", ApiReference)
    app.connect("autodoc-process-docstring", escape_symbols, priority=100)
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("autodoc-skip-member", skip_field_aliases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
