"""Plain JSON read with its types: what is missing, of another type or not finite is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from jointwise.errors import ModelError

LARGEST = 1e30
"""No number of a joint is larger, in SI units; squares and cubes of larger ones would not be finite."""
DEEPEST = 8
"""Levels of settings inside settings."""


def wrong(name: str, must: str, got: object) -> ModelError:
    """Return the error that says what must be and what is there, shortened."""
    shown = repr(got)
    return ModelError(f"{name} must be {must}. Got {shown if len(shown) <= 40 else shown[:37] + '...'} instead.")


def text(value: Any, name: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise wrong(name, "a text", value)
    return value


def choice(value: Any, name: str, known: Sequence[str]) -> str:
    """Return one of some texts."""
    if not isinstance(value, str) or value not in known:
        raise wrong(name, f"one of {', '.join(known)}", value)
    return value


def number(value: Any, name: str, least: float = -LARGEST) -> float:
    """Return a finite number, not below the `least`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise wrong(name, "a finite number", value)
    if value < least:
        raise wrong(name, f"at least {least:g}", value)
    return value


def items(value: Any, name: str) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list | tuple):
        raise wrong(name, "a list", value)
    return list(value)


def numbers(value: Any, name: str, count: int | None = None) -> tuple[float, ...]:
    """Return a list of finite numbers, `count` of them where it is given."""
    own = tuple(number(x, name) for x in items(value, name))
    if count is not None and len(own) != count:
        raise ModelError(f"{name} must be {count} numbers. Got {len(own)} instead.")
    return own


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(text(x, name) for x in items(value, name))


def table(value: Any, name: str) -> dict[str, Any]:
    """Return what stands under names."""
    if not isinstance(value, Mapping):
        raise wrong(name, "a table of names", value)
    return dict(value)


def entries(value: Any, kind: Any, name: str) -> dict[str, Any]:
    """Return the fields of a dataclass `kind` from a document: none is unknown, none without a default is missing."""
    own, known = table(value, name), {field.name: field for field in fields(kind)}
    for key in own:
        if key not in known:
            raise ModelError(f"{name} has no '{key}'. Known: {', '.join(known)}.")
    for key, field in known.items():
        if key not in own and field.default is MISSING and field.default_factory is MISSING:
            raise ModelError(f"{name}: '{key}' is missing.")
    return own


def plain_json(value: Any, name: str, level: int = 0) -> Any:
    """Return settings if they are texts, finite numbers, flags and nothing else, in lists and tables."""
    if level > DEEPEST:
        raise ModelError(f"{name} must be at most {DEEPEST} levels deep.")
    if isinstance(value, Mapping):
        return {key: plain_json(own, f"{name}: {key}", level + 1) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain_json(own, name, level + 1) for own in value)
    return value if value is None or isinstance(value, bool | str) else number(value, name)
