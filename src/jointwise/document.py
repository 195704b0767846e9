"""JSON documents on disk: of one kind and schema, written whole, and refused in one line where they are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jointwise.atomic import atomic_write
from jointwise.errors import JointwiseError, ModelError

Made = TypeVar("Made")


@dataclass(frozen=True)
class Kind:
    """A kind of document: the `format` and the `schema` that stand in it, and the bytes that it may have at most.

    `name` is what a user calls it ("a joint file"), `noun` the short form ("joint file"), `remedy` the sentence that
    says how to get a new one.
    """

    format: str
    schema: int
    name: str
    noun: str
    remedy: str
    largest: int

    def stamped(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return content as a document of this kind."""
        return {"format": self.format, "schema": self.schema, **content}


def write_document(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a document; the file appears only when it is whole. A number that is not finite is refused."""
    with atomic_write(path) as file:
        json.dump(document, file, indent=1, allow_nan=False)
        file.write("\n")


def read_document(path: str | Path, kind: Kind) -> dict[str, Any]:
    """Return the document of a file, which must be of a kind; errors name the file."""
    try:
        return check_kind(_parsed(Path(path), kind), kind)
    except ModelError as problem:
        raise ModelError(f"{path}: {problem}") from None


def load_document(path: str | Path, kind: Kind, make: Callable[[dict[str, Any]], Made]) -> Made:
    """Return what `make` makes of the document of a file, or one line that names the file and what is wrong with it."""
    document = read_document(path, kind)
    try:
        return build(document, kind, make)
    except JointwiseError as problem:
        raise ModelError(f"{path}: {problem}") from None


def build(document: Any, kind: Kind, make: Callable[[dict[str, Any]], Made]) -> Made:
    """Return what `make` makes of a document; whatever it stumbles over is damage, told in one line."""
    try:
        return make(check_kind(document, kind))
    except JointwiseError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as problem:
        raise ModelError(f"damaged {kind.noun}: {type(problem).__name__} {problem}.") from None


def check_kind(document: Any, kind: Kind) -> dict[str, Any]:
    """Return a document if it is of a kind and of the schema that this version reads."""
    if not isinstance(document, dict) or document.get("format") != kind.format:
        raise ModelError(f"not {kind.name}.")
    schema = document.get("schema")
    if isinstance(schema, bool) or schema != kind.schema:
        newer = isinstance(schema, int) and schema > kind.schema
        advice = "Update jointwise." if newer else kind.remedy
        raise ModelError(f"schema {schema!r}, but this version reads schema {kind.schema}. {advice}")
    return document


def _parsed(path: Path, kind: Kind) -> Any:
    try:
        if path.stat().st_size > kind.largest:
            raise ModelError(f"larger than a {kind.noun} may be ({kind.largest} bytes).")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as problem:
        raise ModelError(f"cannot be read ({problem.strerror}).") from None
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"not a JSON document ({problem}).") from None


def _refuse(constant: str) -> None:
    """Refuse NaN and Infinity, which JSON does not know."""
    raise ValueError(f"{constant} is not finite")
