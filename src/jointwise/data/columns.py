"""Which column of a file is which channel and joint: by known names, by a user's mapping, or by order.

Known names are ours (``t, q1.., qd1.., theta1.., i1.., tau1.., temp1.., q_des1.., i_des1.., tau_des1..``) and those
of UR RTDE recordings and AURT's files (``timestamp, actual_q_0.., actual_current_0.., target_moment_0..``). Joints
count from 0 or 1, as ``q1``, ``q_1`` or ``q[1]``, without holes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import chain
from types import MappingProxyType
from typing import Protocol

import numpy as np

from jointwise.data.channels import CHANNELS, POSITION, SPELLINGS, TIME, Conversion, conversion, default_names
from jointwise.data.mapping import Wanted, with_preset
from jointwise.errors import DataError, nearest
from jointwise.formatting import MOST_NAMES, shortened
from jointwise.spatial import Array

OUTPUTS = ("current", "torque")
"""Channels that may be missing for single joints."""
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
