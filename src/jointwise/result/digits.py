"""Digits that carry meaning."""

from __future__ import annotations

import math


def r2_decimals(r2: float) -> int:
    """Return with how many decimals an R² is told: two significant digits of what is missing to 1, from 2 to 4."""
    missing = abs(1.0 - r2)
    return 4 if missing < 1e-4 else min(max(1 - math.floor(math.log10(missing)), 2), 4)


def rounded(value: float | None, digits: int = 3) -> float | None:
    """Return a value with some significant digits; None where there is none or it is not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def rounded_r2(r2: float | None) -> float | None:
    """Return an R² with the decimals that mean something; None where there is none or it is not finite."""
    return None if r2 is None or not math.isfinite(r2) else round(r2, r2_decimals(r2))
