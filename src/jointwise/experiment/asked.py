"""What is asked for must be of its kind: one clear line for every argument that is not."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from jointwise.errors import ModelError


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def refuse_no_whole(**values: object) -> None:
    """Refuse values that are no whole numbers."""
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise ModelError(f"{name} must be a whole number. Got {value!r} instead.")


def refuse_no_positive(unit: str, **values: object) -> None:
    """Refuse values that are no positive numbers; None is passed over."""
    for name, value in values.items():
        if value is not None and not (is_number(value) and value > 0.0):  # type: ignore[operator]
            raise ModelError(f"{name} must be a positive number of {unit}. Got {value!r} instead.")


def refuse_other(kind: type | tuple[type, ...], what: str, **values: object) -> None:
    """Refuse values of another kind than `what` tells; None is passed over."""
    for name, value in values.items():
        if value is not None and not isinstance(value, kind):
            raise ModelError(f"{name} must be {what}. Got {type(value).__name__} instead.")


def refuse_no_changes(changes: Mapping[str, Any], name: str, known: tuple[str, ...]) -> None:
    """Refuse changes of anything but what is known, and those that leave nothing or less of it."""
    refuse_other(Mapping, f"a growth by name ({', '.join(known)})", **{name: changes})
    for own, growth in changes.items():
        if own not in known:
            raise ModelError(f"{name} must tell of {' or '.join(known)}. Got '{own}' instead.")
        if not (is_number(growth) and growth > -1.0):
            raise ModelError(f"{name}: {own} must be finite and > -1. Got {growth!r} instead.")
