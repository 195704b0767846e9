"""Which column of a file is which channel and joint: by known names, by a user's mapping, or by order.

Known names are ours (``t, q1.., qd1.., theta1.., i1.., tau1.., temp1.., q_des1.., i_des1.., tau_des1..``) and those
of UR RTDE recordings and AURT's files (``timestamp, actual_q_0.., actual_current_0.., target_moment_0..``). Joints
count from 0 or 1, as ``q1``, ``q_1`` or ``q[1]``, without holes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jointwise.atomic import read_limited
from jointwise.data.channels import (
    CHANNELS,
    OUTPUTS,
    POSITION,
    SPELLINGS,
    TIME,
    Conversion,
    channel_named,
    conversion,
    default_names,
)
from jointwise.errors import DataError, JointwiseError, nearest
from jointwise.formatting import MOST_NAMES, shortened
from jointwise.spatial import Array
from jointwise.toml import parse_toml

CLOSE = 0.7
"""Similarity of a column name with a known one from which it may be a misspelling."""
_INDEXED = re.compile(r"^([A-Za-z_]*[A-Za-z])(?:_?(\d{1,4})|\[(\d{1,4})\])?$")


@dataclass(frozen=True)
class TableLayout:
    """The columns of a file that make a log, channel after channel in the order of `CHANNELS`.

    Attributes:
        positions: Columns in the file, 0-based, of every channel.
        names: Names of these columns in the file.
        conversions: Conversions to SI units of the channels whose unit was stated.
        notes: Remarks for the log's origin.
        measured: Joints (0-based) of the columns of an output that has no columns for some joints.
    """

    positions: Mapping[str, tuple[int, ...]]
    names: Mapping[str, tuple[str, ...]]
    conversions: Mapping[str, Conversion]
    notes: tuple[str, ...]
    measured: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def joints(self) -> list[int]:
        """Joint (0-based) of each of `columns`; 0 for the stamps."""
        return [j for channel, width in self.widths.items() for j in self.measured.get(channel, range(width))]

    @property
    def columns(self) -> list[int]:
        """Columns of the file in the order of the log's matrix."""
        return [column for columns in self.positions.values() for column in columns]

    @property
    def labels(self) -> list[str]:
        """Names of `columns`."""
        return [name for names in self.names.values() for name in names]

    @property
    def channels(self) -> list[str]:
        """Channel of each of `columns`."""
        return [channel for channel, columns in self.positions.items() for _ in columns]

    @property
    def widths(self) -> dict[str, int]:
        """Number of columns per channel."""
        return {channel: len(columns) for channel, columns in self.positions.items()}

    @property
    def largest(self) -> Array:
        """Largest plausible magnitude of each of `columns`, SI."""
        return np.array([CHANNELS[channel].largest for channel in self.channels])

    def converted(self, matrix: Array) -> Array:
        """Return a matrix (rows, columns) of file values in SI units."""
        if not self.conversions:
            return matrix
        steps = [self.conversions.get(channel, Conversion()) for channel in self.channels]
        scales, offsets = np.array([(step.scale, step.offset) for step in steps]).T
        return np.asarray(matrix * scales + offsets)


class ColumnValues(Protocol):
    """What is known of the values of a file's columns before it is read."""

    def is_number(self, column: int) -> bool:
        """Return whether the first values of a column are numbers."""

    def is_counter(self, column: int) -> bool:
        """Return whether a column only counts the rows."""


def layout(
    header: Sequence[str] | None,
    count: int,
    wanted: Wanted,
    joints: int | None,
    where: str,
    columns: ColumnValues | None = None,
    unmeasured: Collection[int] = (),
) -> TableLayout:
    """Return the layout of a file.

    Of several columns of stamps the one that is a number and no counter is used, if `columns` shows that.

    Args:
        header: Names of the columns; None without a header row.
        count: Number of columns.
        wanted: Columns that the user stated.
        joints: Number of joints; None for any.
        where: File, with which error messages begin.
        columns: What is known of the values of the columns.
        unmeasured: Joints (0-based) whose columns outputs may lack.
    """
    note = None
    if wanted.order is not None:
        found = _by_order(wanted.order, header, count, where)
    elif header is None:
        raise DataError(
            f"{where}: no header row, {count} columns. Name them in order, for example "
            f"--columns 't,q*6,qd*6,i*6' ('-' skips a column, '-*3' three)."
        )
    else:
        _refuse_twins(header, where)
        wanted, note = with_preset(header, wanted)
        found = _by_name(header, wanted, where, columns, unmeasured)
    _check_required(found, header, where)
    measured = _check_counts(found, joints, where, unmeasured)
    built = replace(_build(found, header, count, wanted, where), measured=measured)
    return built if note is None else replace(built, notes=(note, *built.notes))


def _build(
    found: dict[str, list[tuple[int, str]]], header: Sequence[str] | None, count: int, wanted: Wanted, where: str
) -> TableLayout:
    """Assemble the layout in the order of the channels, with its notes."""
    ordered = {channel: found[channel] for channel in CHANNELS if channel in found}
    conversions = _conversions(wanted.units, ordered, where)
    positions = {channel: tuple(k for k, _ in columns) for channel, columns in ordered.items()}
    ignored = _unused(header, count, set(chain.from_iterable(positions.values())))
    notes = [f"{name}: converted from {wanted.units[name]} to {CHANNELS[name].unit}" for name in conversions]
    if ignored:
        notes.append(f"columns ignored: {shortened(ignored)}")
    return TableLayout(
        MappingProxyType(positions),
        MappingProxyType({channel: tuple(dict(columns).values()) for channel, columns in ordered.items()}),
        MappingProxyType(conversions),
        tuple(notes),
    )


def _conversions(units: Mapping[str, str], found: Collection[str], where: str) -> dict[str, Conversion]:
    """Return the conversions to SI that change something, per channel."""
    for channel in units:
        if channel not in found:
            raise DataError(f"{where}: a unit is given for '{channel}', but the file has no such channel.")
    steps = {channel: conversion(CHANNELS[channel], unit, where) for channel, unit in units.items()}
    return {channel: step for channel, step in steps.items() if not step.identity}


def _unused(header: Sequence[str] | None, count: int, used: Collection[int]) -> tuple[str, ...]:
    """Return the names of the columns that are no channel."""
    labels = header if header is not None else [f"column {k + 1}" for k in range(count)]
    return tuple(label for k, label in enumerate(labels) if k not in used)


def _by_order(
    order: Sequence[str | None], header: Sequence[str] | None, count: int, where: str
) -> dict[str, list[tuple[int, str]]]:
    """Assign columns by their order; the names are ours, or the file's where it has a header."""
    if len(order) != count:
        raise DataError(f"{where}: the column list names {len(order)} columns, the file has {count}.")
    found: dict[str, list[tuple[int, str]]] = {}
    for column, channel in enumerate(order):
        if channel is not None:
            found.setdefault(channel, []).append((column, "" if header is None else header[column]))
    if header is None:
        for channel, columns in found.items():
            names = default_names(channel, len(columns))
            found[channel] = [(column, name) for (column, _), name in zip(columns, names, strict=True)]
    return found


def _by_name(
    header: Sequence[str], wanted: Wanted, where: str, columns: ColumnValues | None, unmeasured: Collection[int]
) -> dict[str, list[tuple[int, str]]]:
    """Assign columns by the user's names first; those of channels that they do not name by the known names."""
    index = {name: k for k, name in enumerate(header)}
    unused = _mapped(header, wanted, where) | _other_stamps(index, columns)
    unused |= {name for name in header if (known := known_column(name)) is not None and known[0] in wanted.names}
    found = _recognised([name for name in header if name not in unused], index, where, unmeasured)
    found.update({channel: [(index[name], name) for name in names] for channel, names in wanted.names.items()})
    return _without_single(found, wanted)


def _other_stamps(index: Mapping[str, int], columns: ColumnValues | None) -> set[str]:
    """Return the columns of stamps that are texts or counters, where there is another one."""
    stamps = [name for name in index if (known := known_column(name)) is not None and known[0] == TIME]
    if len(stamps) < 2 or columns is None:
        return set()
    useful = [name for name in stamps if columns.is_number(index[name]) and not columns.is_counter(index[name])]
    return set(stamps) - set(useful) if useful else set()


def extra_columns(header: Sequence[str], extra: Sequence[str], where: str) -> dict[str, int]:
    """Return name and 0-based column of extra columns: names, or patterns such as ``actual_joint_voltage_*``.

    A name must exist; a pattern may match no column.
    """
    found: dict[str, int] = {}
    for pattern in extra:
        matches = {name: k for k, name in enumerate(header) if fnmatchcase(name, pattern)}
        if not matches and not set(pattern) & set("*?["):
            raise DataError(f"{where}: no column '{pattern}'. {nearest(pattern, header, MOST_NAMES)}")
        found.update(matches)
    return found


def _mapped(header: Sequence[str], wanted: Wanted, where: str) -> set[str]:
    """Return the columns that the user's mapping names, each of which must exist and be named once."""
    mapped: set[str] = set()
    for channel, name in ((channel, name) for channel, names in wanted.names.items() for name in names):
        if name not in header:
            raise DataError(f"{where}: no column '{name}' for '{channel}'. {nearest(name, header, MOST_NAMES)}")
        if name in mapped:
            raise DataError(f"{where}: column '{name}' is assigned twice.")
        mapped.add(name)
    return mapped


def _without_single(found: dict[str, list[tuple[int, str]]], wanted: Wanted) -> dict[str, list[tuple[int, str]]]:
    """Leave out a bare column such as `temperature` beside many joints: it is no channel of the joints."""
    many = len(found.get(POSITION, ())) > 1
    return {
        channel: columns
        for channel, columns in found.items()
        if not many
        or channel in wanted.names
        or channel == TIME
        or len(columns) > 1
        or columns[0][1][-1:] in "0123456789]"
    }


def _recognised(
    names: Sequence[str], index: Mapping[str, int], where: str, unmeasured: Collection[int]
) -> dict[str, list[tuple[int, str]]]:
    """Assign the columns whose names are known."""
    stems: dict[str, str] = {}
    indexed: dict[str, dict[int, str]] = {}
    for name in names:
        known = known_column(name)
        if known is None:
            continue
        channel, stem, number = known
        other = stems.setdefault(channel, stem)
        if other != stem:
            raise DataError(
                f"{where}: '{other}' and '{stem}' are both {channel}. Say which, as in --columns '{channel}=...'."
            )
        twin = indexed.setdefault(channel, {}).setdefault(number, name)
        if twin != name:
            raise DataError(f"{where}: columns '{twin}' and '{name}' are the same joint.")
    return {c: [(index[name], name) for name in _counted(by, c, where, unmeasured)] for c, by in indexed.items()}


def known_column(name: str) -> tuple[str, str, int] | None:
    """Return the channel, the stem and the joint number of a known column name; None for others.

    The number is -1 where the name has none; stamps bear none.
    """
    match = _INDEXED.match(name)
    if match is None or match[1] not in SPELLINGS:
        return None
    channel, index = SPELLINGS[match[1]], int(match[2] or match[3] or -1)
    return None if channel == TIME and index != -1 else (channel, match[1], index)


def _counted(by_index: Mapping[int, str], channel: str, where: str, unmeasured: Collection[int]) -> list[str]:
    """Return the names of a channel in the order of the joints, which must count up from 0 or 1 without holes.

    Holes of an output may be those of the `unmeasured` joints (0-based).
    """
    indices = sorted(index for index in by_index if index >= 0)
    if not indices:
        return [by_index[-1]]
    first = min(indices[0], 1)
    holes = {j + first for j in unmeasured} if channel in OUTPUTS else set()
    missing = next((k for k in range(first, indices[-1]) if k not in by_index and k not in holes), None)
    if missing is not None:
        empty = (
            " A column without values stands for an output that was not measured; without a column: "
            f"--ignore-output {missing + 1 - first}."
        ) * (channel in OUTPUTS)
        raise DataError(
            f"{where}: {channel} of joint number {missing} is missing (found {shortened(list(by_index.values()))}). "
            f"Joints must count up from 0 or 1 without holes.{empty}"
        )
    return [by_index[index] for index in indices]


def _check_required(found: Mapping[str, object], header: Sequence[str] | None, where: str) -> None:
    """Refuse a file without stamps or positions."""
    for channel, example in ((TIME, "t=time"), (POSITION, "q=pos_0..pos_5")):
        if channel not in found:
            likely = _likely(channel, header or ())
            name = f"Is it '{likely}'? Name it: " if likely else "Name it, for example "
            raise DataError(
                f"{where}: no column for '{channel}'. Found: {shortened(header or sorted(found))}. "
                f"{name}--columns '{f'{channel}={likely}' if likely else example}'."
            )


def _likely(channel: str, header: Sequence[str]) -> str:
    """Return columns whose names are close to a spelling of a channel, as ``pso_1..pso_6``; empty if there are none."""
    stems: dict[str, list[str]] = {}
    for name in header:
        match = _INDEXED.match(name)
        if match is not None and match[1] not in SPELLINGS:
            stems.setdefault(match[1], []).append(name)
    spellings = [spelling for spelling, known in SPELLINGS.items() if known == channel and len(spelling) > 2]
    for stem, names in stems.items():
        if get_close_matches(stem.lower(), spellings, n=1, cutoff=CLOSE):
            return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"
    return ""


def _check_counts(
    found: Mapping[str, Sequence[tuple[int, str]]], joints: int | None, where: str, unmeasured: Collection[int]
) -> dict[str, tuple[int, ...]]:
    """Refuse channels of different joint counts, and a count other than the robot's.

    Returns:
        The joints of outputs that have no columns of the `unmeasured` ones, by channel.

    """
    if len(found[TIME]) != 1:
        raise DataError(f"{where}: '{TIME}' must be one column. Got {len(found[TIME])} instead.")
    expected = len(found[POSITION])
    if joints is not None and expected != joints:
        raise DataError(f"{where}: the log has {expected} joints (columns of q), the robot has {joints}.")
    rest = tuple(j for j in range(expected) if j not in unmeasured)
    narrow = [channel for channel, columns in found.items() if channel != TIME and len(columns) != expected]
    for channel in narrow:
        if channel not in OUTPUTS or not _are_of(found[channel], rest, found[POSITION][0][1]):
            option = " Joints without an output: --ignore-output J[,J]." * (channel in OUTPUTS)
            raise DataError(
                f"{where}: {channel} has {len(found[channel])} columns, q has {expected}; they must agree.{option}"
            )
    return dict.fromkeys(narrow, rest)


def _are_of(columns: Sequence[tuple[int, str]], joints: Sequence[int], first: str) -> bool:
    """Return whether columns are those of some joints, by count and known names; `first` names q of joint 0."""
    if len(columns) != len(joints):
        return False
    known = [known_column(name) for _, name in (*columns, (0, first))]
    if None in known:
        return True
    *numbers, start = [number for _, _, number in filter(None, known)]
    return numbers == [j + start for j in joints]


def _refuse_twins(header: Sequence[str], where: str) -> None:
    """Refuse two columns of one name."""
    seen: set[str] = set()
    for name in header:
        if name in seen and name:
            raise DataError(f"{where}: two columns are named '{name}'. Rename one of them.")
        seen.add(name)


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
    return _counted_columns(first.strip(), last.strip(), where)


def _counted_columns(first: str, last: str, where: str) -> tuple[str, ...]:
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


NEEDED = (TIME, POSITION, "current", "torque")
"""Channels whose missing values reject the log; any other channel with missing values is left out, with a note."""


@dataclass(frozen=True)
class ReadOptions:
    """How a file becomes a log, as `read_log` describes it.

    Attributes:
        wanted: Columns that the user stated.
        joints: Number of joints; None for any.
        needed: Channels that must have no missing values.
        spool_bytes: Bytes of a log that stay in memory; None for the default.
        extra: Names or patterns of other columns to read.
        ignored: Joints (0-based) whose output is ignored.
    """

    wanted: Wanted
    joints: int | None
    needed: Collection[str]
    spool_bytes: int | None
    extra: Sequence[str] = ()
    ignored: Collection[int] = ()


@dataclass
class Gate:
    """Passes blocks of values; counts, per column, how many were missing.

    Missing values of an output (current, torque) are accepted of the ignored joints, and where a joint has no values at
    all.

    Attributes:
        layout: Columns of the file.
        needed: Channels that must have no missing values.
        ignored: Joints (0-based) whose output is ignored.
        largest: Largest plausible magnitude of every column, (columns,), SI units.
        channels: Channel of every column.
        joints: Joint (0-based) of every column.
        rows: Number of rows so far.
        missing: Number of missing values of every column so far, (columns,).
    """

    layout: TableLayout
    needed: Collection[str] = NEEDED
    ignored: Collection[int] = ()
    largest: Array = field(init=False)
    channels: list[str] = field(init=False)
    joints: list[int] = field(init=False)
    rows: int = 0
    missing: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the limits of each column."""
        self.largest, self.channels, self.joints = self.layout.largest, self.layout.channels, self.layout.joints
        self.missing = np.zeros(len(self.channels), dtype=np.intp)

    def passes(self, matrix: Array) -> bool:
        """Take a block of SI values (rows, columns); False if it holds garbage, which the reader then locates.

        Garbage is a magnitude out of the range of its channel. Non-finite values only count as missing (see `verdict`).
        """
        self.rows += len(matrix)
        if len(matrix) == 0 or bool(
            ((matrix.min(axis=0) >= -self.largest) & (matrix.max(axis=0) <= self.largest)).all()
        ):
            return True
        lost = ~np.isfinite(matrix)
        self.missing += lost.sum(axis=0)
        return bool(((np.abs(matrix) <= self.largest) | lost).all())

    def lost(self) -> set[str]:
        """Return the channels to leave out: not needed and holed, or altogether empty (never t and q)."""
        empty = {channel for channel in self.channels if self._empty(channel)}
        holed = {c for k, c in enumerate(self.channels) if self._holed(k) and c not in self.needed}
        return (empty | holed) - {TIME, POSITION}

    def fatal(self) -> list[int]:
        """Return the columns, as positions in the log's matrix, whose missing values refuse the log."""
        lost = self.lost()
        return [k for k, channel in enumerate(self.channels) if channel not in lost and self._holed(k)]

    def _holed(self, k: int) -> bool:
        """Return whether a column has missing values that are not accepted."""
        accepted = self.channels[k] in OUTPUTS and (self.joints[k] in self.ignored or self.missing[k] == self.rows)
        return bool(self.missing[k]) and not accepted

    def _unmeasured(self) -> list[int]:
        """Return the columns of outputs that have no values, of channels that are kept."""
        lost = self.lost()
        named = enumerate(self.channels)
        return [k for k, c in named if c in OUTPUTS and c not in lost and 0 < self.missing[k] == self.rows]

    def notes(self) -> tuple[str, ...]:
        """Return a note for each channel left out, and for each output without values."""
        unmeasured = (f"{self.layout.labels[k]} has no values: this output is ignored" for k in self._unmeasured())
        return (*unmeasured, *self._left_out())

    def _left_out(self) -> tuple[str, ...]:
        return tuple(
            f"{channel} left out: {self.count(channel)} of its values are missing or not finite"
            for channel in self.layout.positions
            if channel in self.lost()
        )

    def count(self, channel: str) -> int:
        """Return how many values of a channel are missing."""
        return sum(int(n) for c, n in zip(self.channels, self.missing, strict=True) if c == channel)

    def _empty(self, channel: str) -> bool:
        """Return whether a channel has no value at all."""
        return self.rows > 0 and self.count(channel) == self.rows * self.channels.count(channel)


def refuse_short(rows: int, where: str) -> None:
    """Refuse a log of no or one sample."""
    if rows < 2:
        found = "no rows below the header" if rows == 0 else "only one row"
        raise DataError(f"{where}: {found}. A log needs at least two samples, and seconds of motion to be of use.")


def refuse_missing(channel: str, label: str, count: int, place: str, where: str) -> None:
    """Refuse a log because a needed value is missing."""
    more = f" and {count - 1} more values of {channel}" if count > 1 else ""
    raise DataError(
        f"{where}: {place}, column '{label}' is missing or not finite{more}. "
        "Cut those rows out, or leave the column out."
    )
