"""What the columns of a log are that names them differently, or not at all: by a user, or by a known interface.

Three spellings, all giving a `Wanted`::

    t=time,q=pos_0..pos_5,current=cur[0]..cur[5]     names: one, a range first..last, or several of both
    t=time,q=torso,arm1..arm7,i=cur_0|cur_1..cur_7   joined by commas or bars
    t@ms,q*6@deg,-*3,i*6                             order, for files without a header; `-` skips a column
    mapping.toml                                     [columns] t = "time"; q = ["a", "b"]   [units] q = "deg"

A unit may follow with `@`; ``q=@deg`` states only the unit of columns that are recognised by name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jointwise.atomic import read_limited
from jointwise.data.channels import TIME, channel_named
from jointwise.errors import DataError, JointwiseError
from jointwise.toml import parse_toml

ORDER_EXAMPLE = "t,q*6,qd*6,i*6"
MOST_COLUMNS = 4096
MOST_MAPPING_BYTES = 1024 * 1024

_NUMBERED = re.compile(r"^(.*?)(\d{1,9})(\D*)$", re.DOTALL)
_ORDER_ITEM = re.compile(r"^([A-Za-z_]+|-)(?:\*(\d{1,4}))?$")


@dataclass(frozen=True)
class Wanted:
    """A user's mapping from columns to channels.

    Attributes:
        names: Names of the columns of every channel.
        units: Unit of every channel for which one is stated; others are in SI units.
        order: Channels of nameless columns in their order, None for a column without channel; None for columns with
            names.
    """

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str | None, ...] | None = None


def parse_columns(columns: str | Path | Mapping[str, Any] | None) -> Wanted:
    """Return the mapping that `columns` states: an option string, the path of a TOML file, a dict, or nothing."""
    if columns is None:
        return Wanted()
    if isinstance(columns, Mapping):
        return _from_table(columns, "columns")
    text = str(columns).strip()
    if isinstance(columns, Path) or text.endswith(".toml"):
        return _from_file(Path(columns))
    if not text:
        raise DataError(f"columns: empty. Give names such as t=time,q=pos_0..pos_5 or an order such as {ORDER_EXAMPLE}")
    return _from_names(text) if "=" in text else _from_order(text, "columns")


def _from_file(path: Path) -> Wanted:
    """Read a mapping file."""
    try:
        table = parse_toml(read_limited(path, MOST_MAPPING_BYTES, "a column mapping").decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DataError(f"{path}: column mapping: not a text file in UTF-8.") from None
    except JointwiseError as problem:
        raise DataError(f"{path}: column mapping: {problem}") from None
    return _from_table(table, str(path))


def _from_table(table: Mapping[str, Any], where: str) -> Wanted:
    """Return the mapping of a table with `columns`, `units`, `order`, or of a plain table channel -> names."""
    keys = {"columns", "units", "order"}
    if not keys & set(table):
        table = {"columns": table}
    unknown = sorted(set(table) - keys)
    if unknown:
        raise DataError(f"{where}: unknown key '{unknown[0]}'. Allowed: columns, units, order.")
    if "order" in table:
        return _ordered_table(table, where)
    names = {
        channel_named(str(key), where).name: _names(value, str(key), where)
        for key, value in _section(table, "columns", where).items()
    }
    return Wanted(names, _units(table, where))


def _ordered_table(table: Mapping[str, Any], where: str) -> Wanted:
    """Return the mapping of a table that gives the order of the columns."""
    if "columns" in table:
        raise DataError(f"{where}: give columns or order, not both.")
    order = table["order"]
    text = ",".join(map(str, order)) if isinstance(order, Sequence) and not isinstance(order, str) else str(order)
    wanted = _from_order(text, where)
    return Wanted(units={**wanted.units, **_units(table, where)}, order=wanted.order)


def _section(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """Return a sub-table, empty if absent."""
    section = table.get(key, {})
    if not isinstance(section, Mapping):
        raise DataError(f"{where}: '{key}' must be a table. Got {type(section).__name__} instead.")
    return section


def _units(table: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the units of a table per channel."""
    return {channel_named(str(k), where).name: str(v) for k, v in _section(table, "units", where).items()}


def _names(value: object, key: str, where: str) -> tuple[str, ...]:
    """Return the column names of a table's value: a string (name, range, a|b|c or a,b,c) or a list of names.

    A comma separates names in a string only: a name in a list may have one.
    """
    if isinstance(value, str):
        return expand_names(value.replace(",", "|"), where)
    if isinstance(value, Sequence) and value and all(isinstance(name, str) for name in value):
        return tuple(name for part in value for name in expand_names(part, where))
    raise DataError(f"{where}: columns of '{key}' must be a name or a list of names. Got {value!r} instead.")


def _from_names(text: str) -> Wanted:
    """Parse ``t=time,q=torso,pos_0..pos_5@deg``."""
    names: dict[str, tuple[str, ...]] = {}
    units: dict[str, str] = {}
    for item in _by_channel(text):
        key, _, rest = item.partition("=")
        channel = channel_named(key, "columns").name
        if channel in names or channel in units:
            raise DataError(f"columns: '{channel}' is given twice.")
        spec, unit = _split_unit(rest)
        if unit:
            units[channel] = unit
        if spec:
            names[channel] = expand_names(spec, "columns")
        elif not unit:
            raise DataError(f"columns: '{key.strip()}=' names no column.")
    return Wanted(names, units)


def _by_channel(text: str) -> list[str]:
    """Return the parts of a text that belong to one channel each; an item without `=` continues the one before."""
    parts: list[str] = []
    for item in text.split(","):
        if "=" in item:
            parts.append(item)
        elif not parts:
            raise DataError(f"columns: '{item.strip()}' must be channel=column, as in t=time,q=pos_0..pos_5")
        else:
            parts[-1] += f"|{item}"
    return parts


def _from_order(text: str, where: str) -> Wanted:
    """Parse ``t,q*6@deg,-*3``."""
    order: list[str | None] = []
    units: dict[str, str] = {}
    for item in text.split(","):
        spec, unit = _split_unit(item)
        match = _ORDER_ITEM.match(spec)
        if match is None:
            raise DataError(f"{where}: '{item.strip()}' must be a channel and a count, as in {ORDER_EXAMPLE}")
        channel = None if match[1] == "-" else channel_named(match[1], where).name
        order += [channel] * int(match[2] or 1)
        if unit and channel:
            units[channel] = unit
        if len(order) > MOST_COLUMNS:
            raise DataError(f"{where}: more than {MOST_COLUMNS} columns.")
    if order.count(TIME) > 1:
        raise DataError(f"{where}: '{TIME}' is given twice.")
    return Wanted(units=units, order=tuple(order))


def _split_unit(text: str) -> tuple[str, str]:
    """Return the part before the last `@` and the unit after it."""
    spec, at, unit = text.strip().rpartition("@")
    return (spec.strip(), unit.strip()) if at else (unit.strip(), "")


def expand_names(spec: str, where: str) -> tuple[str, ...]:
    """Return the names of ``a|b|c``, each a name or a range ``first..last`` (counting the last number in it)."""
    if "|" in spec:
        return tuple(name for part in spec.split("|") for name in expand_names(part, where))
    first, dots, last = spec.partition("..")
    if not dots:
        return (spec.strip(),)
    return _counted(first.strip(), last.strip(), where)


def _counted(first: str, last: str, where: str) -> tuple[str, ...]:
    """Return first..last, which must differ in their last number only."""
    begin, end = _NUMBERED.match(first), _NUMBERED.match(last)
    if begin is None or end is None or (begin[1], begin[3]) != (end[1], end[3]) or int(begin[2]) > int(end[2]):
        raise DataError(f"{where}: '{first}..{last}' must count up in the last number, as in pos_0..pos_5")
    low, high = int(begin[2]), int(end[2])
    if high - low >= MOST_COLUMNS:
        raise DataError(f"{where}: '{first}..{last}' is more than {MOST_COLUMNS} columns.")
    width = len(begin[2]) if begin[2].startswith("0") else 0
    return tuple(f"{begin[1]}{k:0{width}d}{begin[3]}" for k in range(low, high + 1))


# -- names of known interfaces (`presets.toml`) --

_COLUMN = re.compile(r"^(.*?)(?:_?(\d{1,4})|\[(\d{1,4})\])?$")


@dataclass(frozen=True)
class Preset:
    """Column names of one interface.

    Attributes:
        title: Name of the interface, for notes.
        source: Where the names are documented.
        detect: Stems that a header must have.
        columns: Stem of every channel.
        units: Unit of every channel for which one is stated; others are in SI units.
    """

    title: str
    source: str
    detect: tuple[str, ...]
    columns: dict[str, str]
    units: dict[str, str]


@cache
def presets() -> dict[str, Preset]:
    """Return all presets by name."""
    tables = tomllib.loads((files("jointwise.data") / "presets.toml").read_text(encoding="utf-8"))
    return {
        name: Preset(
            table["title"],
            table["source"],
            tuple(table["detect"]),
            dict(table["columns"]),
            dict(table.get("units", {})),
        )
        for name, table in tables.items()
    }


def with_preset(header: Sequence[str], wanted: Wanted) -> tuple[Wanted, str | None]:
    """Return a mapping completed by the preset of a header, and a note that names the preset; None if none applies.

    What the user states takes precedence.
    """
    if wanted.names or wanted.order is not None:
        return wanted, None
    stems = _stems(header)
    for preset in presets().values():
        if all(stem in stems for stem in preset.detect):
            names = {channel: stems[stem] for channel, stem in preset.columns.items() if stem in stems}
            units = {channel: unit for channel, unit in preset.units.items() if channel in names}
            return replace(wanted, names=names, units=units | dict(wanted.units)), f"columns of the {preset.title}"
    return wanted, None


def _stems(header: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of every stem in the order of their numbers."""
    numbered: dict[str, list[tuple[int, str]]] = {}
    for name in header:
        match = _COLUMN.match(name)
        if match is not None:
            numbered.setdefault(match[1], []).append((int(match[2] or match[3] or -1), name))
    return {stem: tuple(name for _, name in sorted(columns)) for stem, columns in numbered.items()}
