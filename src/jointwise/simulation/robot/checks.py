"""Checks of parameters: one clear line for every mistake."""

from __future__ import annotations

import math

from jointwise.errors import ModelError


def check_range(owner: str, least: float, above: bool = False, **values: float) -> None:
    """Refuse values that are not finite and at least `least` (or `above` it)."""
    for name, value in values.items():
        if not (math.isfinite(value) and (value > least if above else value >= least)):
            wanted = f"{'>' if above else '>='} {least:g}"
            raise ModelError(f"{owner}: {name} must be finite and {wanted}. Got {value} instead.")


def check_finite(owner: str, **values: float) -> None:
    """Refuse NaN and infinity."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise ModelError(f"{owner}: {name} must be finite. Got {value} instead.")
