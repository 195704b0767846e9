"""Column names of robots other than our own: found by the names in the header of a file (`presets.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from jointwise.data.mapping import Wanted

_COLUMN = re.compile(r"^(.*?)(?:_?(\d{1,4})|\[(\d{1,4})\])?$")


@dataclass(frozen=True)
class Preset:
    """Names of one interface: title, source, stems that must be there, stem and unit of every channel."""

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
