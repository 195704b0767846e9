"""Errors that a user can act on: what was wrong, what was allowed, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real

__all__ = [
    "DataError",
    "DescriptionError",
    "EstimationError",
    "ImplausibleError",
    "JointwiseError",
    "MissingExtraError",
    "ModelError",
    "OutputError",
    "ShapeError",
]


class JointwiseError(Exception):
    """Base of every error that Jointwise raises on purpose; its text is one line for the user."""


class DescriptionError(JointwiseError, ValueError):
    """A robot description cannot be read or contradicts itself; names the file and the line."""


class DataError(JointwiseError):
    """A log cannot be read or cannot be trusted; names the file, the row and the column."""


class ShapeError(JointwiseError, ValueError):
    """An array has the wrong shape, type or non-finite values."""


class MissingExtraError(JointwiseError, ImportError):
    """An optional library is not installed; names the extra that brings it."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        """State what is missing and the one command that installs it."""
        super().__init__(f"{purpose} needs {library}. Install it with: pip install 'jointwise[{extra}]'")


def nearest(name: str, known: Iterable[str], most: int | None = None) -> str:
    """Return `known` as a hint for a misspelt `name`: the closest names, or all of them (at most `most`)."""
    import difflib  # here, as it takes longer to import than this package

    names = list(known) if most else sorted(known)
    lower = {entry.lower(): entry for entry in reversed(names)}
    close = [lower[entry] for entry in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
    if close:
        return f"Did you mean {' or '.join(close)}?"
    more = f" and {len(names) - most} more" if most and len(names) > most else ""
    return f"Known: {', '.join(names[:most])}{more}."


class ModelError(JointwiseError, ValueError):
    """A model document, a choice of terms or an argument of a call is not valid."""


class EstimationError(JointwiseError):
    """The data do not determine the requested quantity."""


class ImplausibleError(EstimationError):
    """The data contradict the declared set-up; says what would fit and how to declare it."""


class OutputError(JointwiseError):
    """A result cannot be written; nothing is left half-written."""


def check_range(owner: str, least: float, above: bool = False, **values: float) -> None:
    """Reject values that are not finite and at least `least` (or `above` it)."""
    for name, value in values.items():
        if not (math.isfinite(value) and (value > least if above else value >= least)):
            wanted = f"{'>' if above else '>='} {least:g}"
            raise ModelError(f"{owner}: {name} must be finite and {wanted}. Got {value} instead.")


def check_finite(owner: str, **values: float) -> None:
    """Reject NaN and infinity."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise ModelError(f"{owner}: {name} must be finite. Got {value} instead.")


def is_number(value: object) -> bool:
    """Return whether a value is a finite real number (a bool is not)."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value))


def check_positive(unit: str, **values: object) -> None:
    """Reject values that are not positive numbers of a unit; None is skipped."""
    for name, value in values.items():
        if value is not None and not (is_number(value) and value > 0.0):  # type: ignore[operator]
            raise ModelError(f"{name} must be a positive number of {unit}. Got {value!r} instead.")
