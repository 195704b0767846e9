"""JSON documents on disk: typed by dataclasses, limited in size, depth and range, and written whole.

A document is decoded into a dataclass by msgspec. Errors are one line: the file, the path inside the document
(``joints[0].parts.friction.values[2].low``) and what must be there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from jointwise.atomic import atomic_write, read_limited
from jointwise.errors import JointwiseError, ModelError
from jointwise.toml import check_limits, children, shown

T = TypeVar("T")

LARGEST = 64 * 1024 * 1024
"""Largest document that is read, bytes: many times a calibration of all joints."""
_WORDS = {
    "float": "a number",
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""Types of msgspec's messages in words."""


@dataclass(frozen=True)
class Kind:
    """A kind of document.

    Attributes:
        format: Entry `format` of its files.
        name: What a user calls it ("a joint file").
        noun: The short form ("joint file").
        remedy: Sentence that says how to get a new one.
        schema: Entry `schema` of its files.
        migrations: By an earlier schema, what makes its documents those of the next one (but for entry `schema`).
        passing: Entries that matter only once, such as dates: `content_hash` ignores them.
    """

    format: str
    name: str
    noun: str
    remedy: str
    schema: int = 1
    migrations: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)
    passing: tuple[str, ...] = ()

    def stamped(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return content as a document of this kind."""
        return {"format": self.format, "schema": self.schema, **content}


def content_hash(document: Mapping[str, Any], kind: Kind) -> str:
    """Return the SHA-256 of what a document says: equal for two files that differ in `passing` entries only."""
    import hashlib

    said = {key: value for key, value in document.items() if key not in kind.passing}
    return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()


def write_document(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a document; the file appears only when it is complete. A number that is not finite raises ValueError."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False)  # without indentation in C, with it in Python
    with atomic_write(path) as file:
        file.write(msgspec.json.format(text, indent=1))
        file.write("\n")


def load_document(path: str | Path, kind: Kind, type_: type[T]) -> T:
    """Return the content of a document as a dataclass.

    Args:
        path: File to read.
        kind: The format and schema that it must have.
        type_: Dataclass of the entries beside `format` and `schema`.

    Raises:
        ModelError: The file cannot be read, is of another kind, or an entry is wrong; one line.

    """
    document = read_document(path, kind)
    try:
        return decode_document(document, kind, type_)
    except JointwiseError as problem:
        raise ModelError(f"{path}: {problem}") from None


def read_document(path: str | Path, kind: Kind) -> dict[str, Any]:
    """Return a document of a kind as plain JSON; errors name the file."""
    try:
        return check_kind(parse_json(read_limited(path, LARGEST, f"a {kind.noun}")), kind)
    except JointwiseError as problem:
        raise ModelError(f"{path}: {problem}") from None


def decode_document(document: Any, kind: Kind, type_: type[T]) -> T:
    """Return the content of a parsed document as a dataclass; errors name the path inside the document."""
    content = dict(check_kind(document, kind))
    del content["format"], content["schema"]
    return decode(content, type_)


def check_kind(document: Any, kind: Kind) -> dict[str, Any]:
    """Return a document if it is of a kind, in the present schema: one of an earlier schema is migrated."""
    if not isinstance(document, dict) or document.get("format") != kind.format:
        raise ModelError(f"not {kind.name}.")
    schema = document.get("schema")
    number = schema if isinstance(schema, int) and not isinstance(schema, bool) else 0
    while number in kind.migrations:
        document, number = kind.migrations[number](document), number + 1
        document["schema"] = number
    if number != kind.schema:
        newer = number > kind.schema
        advice = "Update jointwise." if newer else kind.remedy
        raise ModelError(f"schema {shown(schema)}, but this version reads schema {kind.schema}. {advice}")
    checked: dict[str, Any] = document
    return checked


def decode(value: Any, type_: type[T]) -> T:
    """Return plain JSON as a dataclass; unknown, missing and wrong entries raise ModelError with their path."""
    check_limits(value)
    try:
        result = msgspec.convert(value, type_, dec_hook=_as_array)
    except msgspec.ValidationError as problem:
        raise ModelError(_clear(str(problem), value, type_)) from None
    _check_known(value, _info(cast(Hashable, type_)))
    return result


def plain_json(value: Any) -> Any:
    """Return a dataclass as plain JSON, the inverse of `decode`: arrays as lists, numbers of NumPy as numbers."""
    return msgspec.to_builtins(value, enc_hook=lambda item: item.tolist())


def finite_or_none(value: float) -> float | None:
    """Return a number for JSON, which has no NaN and no infinity: None for these."""
    return value if math.isfinite(value) else None


def _as_array(_: Any, value: Any) -> Any:
    """Return a list of numbers as an array (items,), the only type of a dataclass beside those of JSON."""
    import numpy as np

    return np.array(msgspec.convert(value, list[float]), dtype=np.float64)


def parse_json(content: bytes) -> Any:
    """Return a JSON text as plain values; one that is damaged or too deep raises ModelError."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise ModelError(f"not a JSON document ({problem}).") from None


@cache
def _info(type_: Hashable) -> Any:
    """Return how msgspec sees a type."""
    return msgspec.inspect.type_info(type_)


def _check_known(value: Any, info: Any, path: str = "") -> None:
    """Reject entries that the dataclasses do not have."""
    for entry, inside in children(value, path):
        key = inside.removeprefix(path).lstrip(".")
        below = _below(info, key)
        if below is None and any(hasattr(member, "fields") for member in _members(info)):
            raise ModelError(f"{path or 'the document'} has no '{key}'. Known: {', '.join(_fields(info)) or 'none'}.")
        if isinstance(entry, list | tuple | Mapping) and below is not None:
            _check_known(entry, below, inside)


def _members(info: Any) -> list[Any]:
    """Return the alternatives of a type: those of a union, else itself."""
    return list(getattr(info, "types", (info,)))


def _fields(info: Any) -> dict[str, Any]:
    """Return the types of the entries of a dataclass by name."""
    return {field.encode_name: field.type for member in _members(info) for field in getattr(member, "fields", ())}


def _below(info: Any, key: str) -> Any:
    """Return the type of an entry by its name or its ``[index]``; None where the type does not say."""
    if not key.startswith("["):
        values = [member.value_type for member in _members(info) if hasattr(member, "value_type")]
        return _fields(info).get(key, values[0] if values else None)
    items = [member.item_type for member in _members(info) if hasattr(member, "item_type")]
    return items[0] if items else None


def _clear(problem: str, document: Any, type_: Any) -> str:
    """Return a message of msgspec with the path first, what must be there, and what is there instead."""
    text, _, place = problem.removesuffix("`").rpartition(" - at `$")
    text, path = (text, place.removeprefix(".")) if text else (problem, "")
    missing = re.fullmatch(r"Object missing required field (`.*`)", text)
    if missing or not text.startswith(("Expected", "Invalid enum")):  # the latter: the check of a dataclass itself
        message = f"{missing[1].replace('`', chr(39))} is missing." if missing else text
        return f"{path}: {message}" if path else message
    value, info = document, _info(type_)
    for key in re.findall(r"\[.*?\]|[^.\[\]]+", path):
        value, info = _entry(value, key), _below(info, key)
    got = "" if value is _UNKNOWN else f" Got {shown(value)} instead."
    return f"{path or 'the document'} must be {_expected(text, info)}.{got}"


def _expected(text: str, info: Any) -> str:
    """Return what must be there, in words: the choices of a type, or the type that msgspec expected."""
    if text.startswith("Invalid enum"):
        return f"one of {', '.join(str(value) for member in _members(info) for value in getattr(member, 'values', ()))}"
    return re.sub("`(.+?)`", _in_words, text.partition(", got")[0].removeprefix("Expected "))


_UNKNOWN = object()


def _entry(value: Any, key: str) -> Any:
    """Return an entry by its name or ``[index]``; msgspec writes ``[...]`` for any name of an object."""
    if isinstance(value, Mapping):
        return value.get(key, _UNKNOWN)
    if isinstance(value, list | tuple) and key[1:-1].isdecimal():
        return value[int(key[1:-1])]
    return _UNKNOWN


def _in_words(match: re.Match[str]) -> str:
    return " or ".join(_WORDS.get(name, name) for name in match[1].split(" | "))
