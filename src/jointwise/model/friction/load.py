"""Load dependence: dry friction grows with the transmitted torque, ``F_C0 + F_C1 |τ|^p``.

Reference: P. Hamon, M. Gautier and P. Garrec, "Dynamic identification of robots with a dry friction model depending on
load and velocity", IEEE/RSJ Int. Conf. on Intelligent Robots and Systems (IROS), 2010.
"""

from __future__ import annotations

import numpy as np

from jointwise.spatial import Array

LOAD_POWERS = {"absolute": 1.0, "square": 2.0}
"""Names of the laws in documents, and their power p."""


def load_growth(load: Array, power: float) -> Array:
    """Return |τ|^p of transmitted torques τ (Nm) of any shape."""
    size = np.abs(load)
    result: Array = size if power == 1.0 else np.square(size) if power == 2.0 else size**power
    return result


def check_load_law(name: str) -> None:
    """Raise a `ValueError` unless the name is none, square or absolute."""
    if name != "none" and name not in LOAD_POWERS:
        raise ValueError(f"load must be none, square or absolute. Got '{name}' instead")


def load_law_name(power: float) -> str:
    """Return the name of the law with a power p, 1 or 2."""
    return next(name for name, p in LOAD_POWERS.items() if p == power)


def load_unit(name: str) -> str:
    """Return the unit of F_C1: 1 (`absolute`) or 1/Nm (`square`)."""
    return "1" if name == "absolute" else "1/Nm"
