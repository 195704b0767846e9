"""The numbers in the figures of a page, as the script of the page reads them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from jointwise.spatial import Array


def numbers(spec: dict[str, Any]) -> Array:
    """Return floats as they are, and ``low + step k`` of packed integers k, NaN for the largest one."""
    if spec["dtype"] == "f4":
        return np.frombuffer(base64.b64decode(spec["bdata"]), dtype="<f4").astype(float)
    levels = np.frombuffer(base64.b64decode(spec["bdata"]), dtype="<u2")
    return np.where(levels == 65535, np.nan, spec["low"] + spec["step"] * levels)
