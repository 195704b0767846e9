"""Checks of arguments and parameters; every error message names the argument and what it must be."""

from __future__ import annotations

import math
from numbers import Integral, Real

from jointwise.errors import ModelError


def is_number(value: object) -> bool:
    """Return whether a value is a finite real number (a bool is not)."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value))


def check_integer(**values: object) -> None:
    """Reject values that are not whole numbers."""
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise ModelError(f"{name} must be a whole number. Got {value!r} instead.")


def check_positive(unit: str, **values: object) -> None:
    """Reject values that are not positive numbers of a unit; None is skipped."""
    for name, value in values.items():
        if value is not None and not (is_number(value) and value > 0.0):  # type: ignore[operator]
            raise ModelError(f"{name} must be a positive number of {unit}. Got {value!r} instead.")


def check_type(kind: type | tuple[type, ...], expected: str, **values: object) -> None:
    """Reject values of another type; `expected` describes the right one in the message, None is skipped."""
    for name, value in values.items():
        if value is not None and not isinstance(value, kind):
            raise ModelError(f"{name} must be {expected}. Got {type(value).__name__} instead.")
