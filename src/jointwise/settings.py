"""Settings: dataclasses whose fields are the only statement of the options of a command and of a call.

A field states type, range, unit, default and help:

    @dataclass(frozen=True, kw_only=True)
    class Recording:
        host: str = option(help="name or address of the controller")
        rate: Hertz = option(500.0, "sampling rate of the log")

From the fields come the parser of the command (`cli.command`), the checks and their messages, the table of the
reference page, and the files of `--config` and `--save-config`. A function takes its defaults from them
(``rate: float = Recording.rate``). Nothing heavy is imported before a value is converted, so that `--help` is quick.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from inspect import get_annotations
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from jointwise.errors import ModelError, nearest
from jointwise.formatting import listed

S = TypeVar("S")

LARGEST = 1e9
"""No number of an option is larger: every quantity is in SI units, and squares of larger ones lose digits."""
MOST_WHOLE = 2**63 - 1
"""Largest whole number of an option: a seed."""


@dataclass(frozen=True)
class Range:
    """Values that a number may have: from `low` to `high`, without the ends if `above` and `below`; its unit."""

    low: float = -LARGEST
    high: float = LARGEST
    unit: str = ""
    above: bool = False
    below: bool = False

    def holds(self, value: float) -> bool:
        """Return whether a number lies in the range; NaN does not."""
        low = value > self.low if self.above else value >= self.low
        return low and (value < self.high if self.below else value <= self.high)

    def text(self, whole: bool) -> str:
        """Return the range in words: "a number above 0 to 100000"."""
        if whole:
            return "a whole number > 0" if self == COUNTS else f"a whole number from {self.low:.0f} to {self.high:d}"
        ends = f"{'above' if self.above else 'from'} {self.low:g} {'to below' if self.below else 'to'} {self.high:g}"
        return f"a number {ends}"


COUNTS = Range(1, MOST_WHOLE)

Number = Annotated[float, Range()]
Positive = Annotated[float, Range(0.0, above=True)]
NotNegative = Annotated[float, Range(0.0)]
Share = Annotated[float, Range(0.0, 1.0)]
Fraction = Annotated[float, Range(0.0, 1.0, above=True, below=True)]
Hertz = Annotated[float, Range(0.0, 1e5, "Hz", above=True)]
"""Nothing in a robot is faster, and memory grows with it."""
Seconds = Annotated[float, Range(0.0, 1e5, "s", above=True)]
"""At most a day: memory grows with it."""
Kilograms = Annotated[float, Range(0.0, 1e5, "kg", above=True)]
Metres = Annotated[float, Range(-1e3, 1e3, "m")]
Gain = Annotated[float, Range(1e-9, LARGEST, "Nm/A")]
"""Drive gain in Nm per unit of output."""
Whole = Annotated[int, Range(0, MOST_WHOLE)]
Count = Annotated[int, COUNTS]
Port = Annotated[int, Range(0, 65535)]


@dataclass(frozen=True)
class Option:
    """What a field says of its option beside type and default.

    Attributes:
        help: What it is.
        names: Spellings (``--duration``); empty for the name of the field. The argument of a command has none.
        metavar: Its value in the help.
        many: "words" (``--gains 1 2``), "extend" (the same, and again), "repeat" (one value each time), or "" for one.
        parse: Reads one word into a value where no plain type says how; raises ValueError with what must be there.
        group: Heading in the help.
        one_of: Name shared by options of which at most one is allowed.
        off: Option that sets None (``--no-clearance``), and its help.
        argument: Whether it is an argument of the command, named by its place.
        standard: What None means; a default that is a value is shown as it is.
    """

    help: str
    names: tuple[str, ...] = ()
    metavar: str | tuple[str, ...] | None = None
    many: Literal["", "words", "extend", "repeat"] = ""
    parse: Callable[[str], Any] | None = None
    group: str = ""
    one_of: str = ""
    off: tuple[str, str] | None = None
    argument: bool = False
    standard: str = ""


def option(default: Any = MISSING, help: str = "", *names: str, **more: Any) -> Any:  # noqa: A002 - its name
    """Return a field of settings, required without a default; `more` are attributes of `Option`."""
    return field(default=default, metadata={"option": Option(help, names, **more)})


@dataclass(frozen=True)
class Setting:
    """A field of settings: its name, its type without None, its default (MISSING if required), and its option."""

    name: str
    type: Any
    optional: bool
    default: Any
    option: Option

    @property
    def spellings(self) -> tuple[str, ...]:
        """Options as they are typed; the name in capitals for an argument."""
        if self.option.argument:
            return (str(self.option.metavar or self.name.upper()),)
        return self.option.names or (f"--{self.name.replace('_', '-')}",)

    @property
    def many(self) -> bool:
        """Whether there are several words."""
        return bool(self.option.many) or (get_origin(self.type) is tuple and self.option.parse is None)

    @property
    def standard(self) -> str:
        """The default in words; empty for none."""
        if self.option.standard or self.default in (MISSING, None, (), "") or isinstance(self.default, bool):
            return self.option.standard
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    @property
    def help(self) -> str:
        """What it is, and its default."""
        return f"{self.option.help} (default: {self.standard})" if self.standard else self.option.help

    @property
    def values(self) -> str:
        """What it may be, in words."""
        if self.option.parse is not None:
            return str(self.option.metavar)
        unit = next((item.unit for item in getattr(self.type, "__metadata__", ()) if isinstance(item, Range)), "")
        return f"{described(self.type)} {unit}".strip()

    def value(self, raw: Any) -> Any:
        """Return the value of what a command line or a TOML file states; ValueError says what must be there."""
        if self.option.parse is None:
            return converted(raw, self.type)
        words = raw if self.option.many and isinstance(raw, list | tuple) else [raw]
        values = tuple(self.option.parse(_word(word)) for word in words)
        return values if self.option.many else values[0]


def _word(raw: Any) -> str:
    """Return a value of a TOML file as one would type it: the items of a list with commas between them."""
    return ",".join(map(str, raw)) if isinstance(raw, list | tuple) else str(raw)


def settings_of(cls: type) -> tuple[Setting, ...]:
    """Return the settings of a class: its own first, then those of its bases, in the order of the source."""
    fields = {each.name: each for each in dataclasses.fields(cls)}
    owners: dict[str, list[type]] = {}  # where a field is declared: the class itself first, which counts
    for base in cls.__mro__:
        for name in get_annotations(base):
            owners.setdefault(name, []).append(base)
    places = [(cls.__mro__.index(bases[-1]), name) for name, bases in owners.items()]  # that of the first declaration
    ordered = [name for _, name in sorted(places, key=lambda place: place[0])]
    return tuple(_setting(fields[name], owners[name][0]) for name in ordered if "option" in fields[name].metadata)


def _setting(each: dataclasses.Field[Any], owner: type) -> Setting:
    choice: Option = each.metadata["option"]
    hint: Any = str
    if choice.parse is None:  # else the type may be one that only type checkers import
        one = SimpleNamespace(__annotations__={each.name: each.type})
        hint = get_type_hints(one, vars(sys.modules[owner.__module__]), include_extras=True)[each.name]
    optional = get_origin(hint) in (Union, UnionType)
    kinds = [item for item in get_args(hint) if item is not NoneType] if optional else [hint]
    return Setting(each.name, kinds[0], optional or choice.parse is not None, each.default, choice)


def converted(value: Any, hint: Any, *, strict: bool = False) -> Any:
    """Return a value as a type of settings: text becomes a number where one is needed, unless `strict`.

    Raises:
        ValueError: It cannot be, or is out of range: "must be a number from 0 to 1. Got 'x' instead."

    """
    import msgspec

    try:
        result = msgspec.convert(
            value if strict and isinstance(value, str) else _numbers(value, hint), hint, strict=strict
        )
    except (msgspec.ValidationError, ValueError, OverflowError):
        result = MISSING
    if result is MISSING or not _in_range(result, hint):
        raise ValueError(f"must be {described(hint)}. Got {_shown(value)} instead.")
    return result


def _shown(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _numbers(value: Any, hint: Any) -> Any:
    """Return a value with texts, scalars and arrays of NumPy as plain numbers where the hint is a number."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        kinds = get_args(hint) if get_origin(hint) is tuple else (hint,)
        return [_numbers(item, kinds[min(k, len(kinds) - 1)] if ... not in kinds else kinds[0])
                for k, item in enumerate(value)]  # fmt: skip
    plain = _plain(hint)
    if isinstance(value, str) and plain is int and not (value.isdecimal() and len(value) < 20):
        raise ValueError
    if isinstance(value, str) and plain in (int, float):
        return plain(value)
    return value


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _in_range(value: Any, hint: Any) -> bool:
    """Return whether the numbers of a value are in the ranges of its type."""
    if isinstance(value, tuple):
        kinds = get_args(hint)
        return all(_in_range(item, kinds[0] if ... in kinds else kinds[k]) for k, item in enumerate(value))
    ranges = [item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Range)]
    return all(each.holds(value) for each in ranges)


def described(hint: Any) -> str:
    """Return a type of settings in words: "a number from 0 to 1", "spong or complete", "3 numbers ..."."""
    if get_origin(hint) is Literal:
        return listed(map(str, get_args(hint)), "or")
    if get_origin(hint) is tuple:
        kinds = [kind for kind in get_args(hint) if kind is not ...]
        if ... in get_args(hint):
            return described(kinds[0]).replace("a number", "numbers").replace("a whole number", "whole numbers")
        return described(kinds[0]) if len(kinds) == 1 else f"{len(kinds)} values, each {described(kinds[0])}"
    if get_origin(hint) is Annotated:
        return str(next(item for item in hint.__metadata__ if isinstance(item, Range)).text(_plain(hint) is int))
    return {bool: "true or false", str: "a text", float: "a number", int: "a whole number"}[hint]


def build(cls: type[S], stated: Mapping[str, Any], label: Callable[[Setting], str]) -> S:
    """Return settings from what is stated, the defaults for the rest; errors name the setting by its `label`."""
    values = {}
    for each in settings_of(cls):
        if each.name in stated:
            raw = stated[each.name]
            try:
                values[each.name] = None if raw is None and each.optional else each.value(raw)
            except ValueError as problem:
                choices = get_args(each.type) if get_origin(each.type) is Literal else ()
                close = f" {nearest(str(raw), choices)}" if choices else ""
                hint = close if "Did you mean" in close else ""
                raise ModelError(f"{label(each)}{problem}{hint}") from None
    return cls(**values)


def check(settings: Any) -> None:
    """Reject the fields of settings that a call states and that are not what they must be; no text becomes a number."""
    for each in settings_of(type(settings)):
        value = getattr(settings, each.name)
        if each.option.parse is not None or (value is None and each.optional):
            continue
        try:
            converted(value, each.type, strict=True)
        except ValueError as problem:
            raise ModelError(f"{each.name} {problem}") from None


def stated(cls: type, settings: Any) -> dict[str, Any]:
    """Return the settings of a class by name, with the values of an object that has them."""
    return {each.name: getattr(settings, each.name) for each in settings_of(cls)}


def from_toml(cls: type, text: str) -> dict[str, Any]:
    """Return what a TOML text states for settings; names may be written with - too.

    Raises:
        ModelError: It is not TOML, or has a name that the settings do not have.

    """
    from jointwise.toml import parse_toml

    known = [each.name for each in settings_of(cls)]
    stated = {name.replace("-", "_"): value for name, value in parse_toml(text).items()}
    for name in stated:
        if name not in known:
            raise ModelError(f"there is no setting '{name}'. {nearest(name, known, 8)}")
    return stated


def to_toml(cls: type, stated: Mapping[str, Any]) -> str:
    """Return what is stated as a TOML text; the other settings are comments with their defaults."""
    return "\n".join(_toml_lines(cls, stated)) + "\n"


def _toml_lines(cls: type, stated: Mapping[str, Any]) -> Iterator[str]:
    import json

    for each in settings_of(cls):
        yield f"# {' '.join(each.help.split())}"
        if each.name in stated:
            raw = stated[each.name]
            value = raw if each.option.parse else each.value(raw)
            yield f"{each.name} = {json.dumps(value, ensure_ascii=False)}"
        else:
            yield f"# {each.name} ="
