"""Arguments of public calls: checked against the type hints, so that a wrong one is one line and not a traceback.

Lists and tuples become arrays where an array is expected, so that ``hold([0.0, 1.0], 2.0)`` works.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from importlib import import_module
from numbers import Integral, Real
from types import FunctionType, NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from jointwise.errors import ModelError
from jointwise.lazy import lazy_modules

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

READERS = {
    "Log": "read_log",
    "Robot": "load_robot",
    "Calibration": "load_model",
    "RobotModel": "load_model",
    "JointModel": "joint.load_joints",
    "PowerModel": "energy.load_power_model",
}
"""Public function that reads an object of a class from a file."""
SCALARS: dict[type, tuple[type, str]] = {
    float: (Real, "a number"),
    int: (Integral, "a whole number"),
    bool: (bool, "True or False"),
    str: (str, "a string"),
}
"""Accepted type (numbers of NumPy too) and description of plain values."""
LISTS = (Sequence, Iterable, Collection, list, tuple, Iterator)
"""Hints that any list, tuple or other iterable satisfies, except a text and a dictionary."""
SHOWN = 60
"""Most characters of a wrong value in a message."""


class ArrayLike:
    """Numbers that NumPy can turn into an array: stands for `numpy.typing.ArrayLike`, which accepts texts too."""


class _MismatchError(Exception):
    """A value does not fit a hint: index of the wrong part (such as ``[1]``), its hint, and the part."""

    def __init__(self, hint: Any, value: object, where: str = "") -> None:
        super().__init__()
        self.hint, self.value, self.where = hint, value, where


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a public function that rejects arguments whose type is not that of its hints.

    Hints that no value can be checked against (a protocol, a type variable) accept everything. Arrays may be lists; any
    iterable may stand for a list. Values (NaN, ranges, shapes) are checked by the function itself.

    Args:
        function: Function or method with type hints.

    Returns:
        The function; it raises `ModelError` with one line such as ``validate: log must be a Log. Got 'a.csv' instead.
        Read it with jointwise.read_log('a.csv').``

    """
    plain = cast(FunctionType, function)
    names = plain.__code__.co_varnames[: plain.__code__.co_argcount]

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        first = [_accepted(plain, *item) for item in zip(names, args, strict=False)]
        named = {name: _accepted(plain, name, value) for name, value in options.items()}
        return plain(*first, *args[len(first) :], **named)  # type: ignore[no-any-return]

    return call


def checked_fields(cls: C) -> C:
    """Return a dataclass whose fields are checked as the arguments of `checked` functions, before `__post_init__`."""
    cls.__init__ = checked(cls.__init__)  # type: ignore[misc]
    return cls


def _accepted(function: FunctionType, name: str, value: Any) -> Any:
    """Return an argument as the function expects it, or raise `ModelError`."""
    default = (function.__kwdefaults__ or {}).get(name, function)
    if value is default or name not in function.__annotations__:
        return value
    hint = _hint(function, name)
    try:
        return _converted(value, hint)
    except _MismatchError as wrong:
        owner = function.__qualname__.removesuffix(".__init__")
        expected, found = _description(wrong.hint), _shown(wrong.value)
        message = f"{owner}: {name}{wrong.where} must be {expected}. Got {found} instead."
        raise ModelError(message + _remedy(wrong.hint, wrong.value)) from None


@cache
def _hint(function: FunctionType, name: str) -> Any:
    """Return the hint of a parameter; names that only type checkers import are imported now, as a value is there."""
    names: dict[str, Any] = {"ArrayLike": ArrayLike}
    one = SimpleNamespace(__annotations__={name: function.__annotations__[name]})
    while True:
        try:
            return get_type_hints(one, function.__globals__, names)[name]
        except NameError as missing:
            hidden = str(missing.name)
            module = lazy_modules(function.__module__).get(hidden)
            names[hidden] = Any if module is None else getattr(import_module(module), hidden)


def _converted(value: Any, hint: Any) -> Any:
    """Return a value as its hint says, or raise `_MismatchError`."""
    origin = get_origin(hint) or hint
    if origin in (Union, UnionType):
        return _alternative(value, hint)
    if origin is Literal:
        return _one_of(value, hint)
    if origin in LISTS:
        return _list(value, hint)
    if origin is Mapping or origin is dict:
        return _mapping(value, hint)
    if hint is ArrayLike or _is_array(origin):
        return _numbers(value, hint)
    kind = _kind(origin)
    is_flag = hint in (float, int) and isinstance(value, bool)
    if kind is not None and (is_flag or not isinstance(value, kind)):
        raise _MismatchError(hint, value)
    return value


def _kind(hint: Any) -> Any:
    """Return the class that values of a plain hint must have; None where it cannot be checked."""
    if hint is bool:
        return bool, import_module("numpy").bool_
    if hint in SCALARS:
        return SCALARS[hint][0]
    if is_typeddict(hint):
        return Mapping
    is_protocol = getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False)
    return hint if isinstance(hint, type) and hint is not Any and not is_protocol else None


def _is_array(hint: Any) -> bool:
    return isinstance(hint, type) and hint.__module__ == "numpy" and hint.__name__ == "ndarray"


def _alternative(value: Any, hint: Any) -> Any:
    """Return a value as the first of several hints that it fits; a list with one wrong item is wrong at the item."""
    inner: _MismatchError | None = None
    for alternative in sorted(get_args(hint), key=_is_converting):
        try:
            return _converted(value, alternative)
        except _MismatchError as wrong:
            inner = wrong if wrong.where else inner
    raise inner or _MismatchError(hint, value)


def _is_converting(hint: Any) -> bool:
    """Return whether a hint converts its values, so that the others are tried first."""
    return hint is ArrayLike or _is_array(get_origin(hint))


def _one_of(value: Any, hint: Any) -> Any:
    if not any(value is item or (isinstance(value, str) and value == item) for item in get_args(hint)):
        raise _MismatchError(hint, value)
    return value


def _list(value: Any, hint: Any) -> Any:
    """Return an iterable with checked items; one without a length becomes a list where one is needed."""
    origin = get_origin(hint) or hint
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise _MismatchError(hint, value)
    if origin in (Iterable, Iterator) and not isinstance(value, Collection):
        return value
    items = value if isinstance(value, (Sequence, Collection)) else list(value)
    args = get_args(hint)
    kinds: Iterable[Any] = args
    if len(args) == 1 or args[1:] == (...,):
        kinds = [args[0]] * len(items)
    elif args and len(args) != len(items):
        raise _MismatchError(hint, value)
    for k, (item, kind) in enumerate(zip(items, kinds, strict=False)):
        _item(item, kind, k)
    return tuple(items) if origin is tuple and not isinstance(items, tuple) else items


def _mapping(value: Any, hint: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _MismatchError(hint, value)
    for kind, item_kind in [get_args(hint)] if get_args(hint) else []:
        for key, item in value.items():
            _item(key, kind, key)
            _item(item, item_kind, key)
    return value


def _item(item: Any, hint: Any, key: object) -> None:
    try:
        _converted(item, hint)
    except _MismatchError as wrong:
        raise _MismatchError(wrong.hint, wrong.value, f"[{key!r}]{wrong.where}") from None


def _numbers(value: Any, hint: Any) -> Any:
    """Return an array of float64 where the hint is an array, and the value itself where it is anything like one."""
    import numpy as np

    try:
        if isinstance(value, (str, bytes)):
            raise ValueError
        array = np.asarray(value)
        array = array if array.dtype == np.float64 else array.astype(np.float64, casting="same_kind")
        if hint is not ArrayLike and array.ndim == 0:
            raise ValueError
    except (TypeError, ValueError):
        raise _MismatchError(hint, value) from None
    return value if hint is ArrayLike or isinstance(value, np.ndarray) else array


def _description(hint: Any) -> str:
    """Return a hint in words: "a Log or a list of Log"."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return _joined([_description(item) for item in args if item is not NoneType])
    if origin is Literal:
        return _joined([str(item) for item in args])
    if origin in LISTS:
        return f"a list of {_plural(args)}" if args else "a list"
    if origin is Mapping or origin is dict:
        key = "name" if args[:1] == (str,) else "number"
        return f"a dictionary of {_plural(args[1:])} by {key}" if args else "a dictionary"
    if hint is ArrayLike or _is_array(origin):
        return "an array of numbers"
    return SCALARS[hint][1] if hint in SCALARS else _noun(origin)


def _joined(words: Sequence[str]) -> str:
    """Return alternatives in words: "a, b or c"."""
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last


def _plural(args: Sequence[Any]) -> str:
    """Return the items of a list in words, without articles; with their number if it is fixed."""
    item = _description(args[0])
    plain = {"a number": "numbers", "a whole number": "whole numbers", "a string": "strings"}
    text = plain.get(item, item.removeprefix("a ").removeprefix("an "))
    return text if ... in args or len(args) == 1 else f"{len(args)} {text}"


def _noun(hint: Any) -> str:
    """Return a class in words, with its article unless its name is a plural."""
    if hint is Callable:
        return "a function"
    name = str(getattr(hint, "__name__", hint))
    name = {"Path": "path", "HasCalibration": "RobotModel"}.get(name, name)
    return name if name.endswith("s") else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(value: object) -> str:
    """Return a wrong value for a message: itself where it is short, else what it is."""
    if value is None or isinstance(value, (str, Real, os.PathLike)):
        text = str(value) if isinstance(value, Real) else repr(str(value)) if value is not None else "None"
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    if isinstance(value, Collection) and getattr(value, "ndim", 1) != 0 and not len(value):
        return f"an empty {type(value).__name__}"
    name = type(value).__name__.replace("ndarray", "array")
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _remedy(hint: Any, value: object) -> str:
    """Return how to read an object from the path that was passed in its place; empty for other values."""
    if not isinstance(value, (str, os.PathLike)):
        return ""
    names = [getattr(item, "__name__", "") for item in _classes(hint)]
    reader = next((READERS[name] for name in names if name in READERS), None)
    return "" if reader is None else f" Read it with jointwise.{reader}({_shown(value)})."


def _classes(hint: Any) -> Iterator[Any]:
    """Yield the classes in a hint."""
    yield hint
    for item in get_args(hint):
        yield from _classes(item)
