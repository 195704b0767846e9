"""The direction of dry friction: the sign of the speed, tanh, or the state of slip elements.

Slip elements (`maxwell_slip`, `rate_slip`, `lugre`) remember where the joint came from. Their state H in [-1, 1] is the
sign of the speed in sliding and turns continuously at a reversal.
"""

from __future__ import annotations

import numpy as np

from jointwise.model.terms.term import DRIVERS, JointSignals
from jointwise.spatial import Array


def direction(speed: Array, width: float = 0.0) -> Array:
    """Return sgn(ω), or its smooth form tanh(ω / width).

    Args:
        speed: Joint speeds ω of any shape, rad/s.
        width: Speed (rad/s) over which tanh changes its sign; 0 for the discontinuous sign.

    Returns:
        Values in [-1, 1] of the shape of `speed`.

    """
    result: Array = np.tanh(speed / width) if width > 0.0 else np.sign(speed)
    return result


def term_direction(joint: JointSignals, driver: str, width: float) -> Array:
    """Return the direction (samples,) in which a term acts: of the speed, or of the slip term of a driver.

    Args:
        joint: Signals of the joint.
        driver: `speed`, or the driver of a slip term before it in the list of the joint.
        width: As in `direction`.

    Raises:
        ValueError: There is no slip term with that driver.

    """
    if driver == "speed":
        return direction(joint.qd, width)
    if joint.directions is None or driver not in joint.directions:
        raise ValueError(f"driver {driver} needs slip elements with that driver, before it in the list of terms")
    return joint.directions[driver]


def check_driver(driver: str) -> None:
    """Raise a `ValueError` unless a term can act in the direction of a driver."""
    if driver not in DRIVERS:
        raise ValueError(f"driver must be {', '.join(DRIVERS)}. Got '{driver}' instead")


def check_width(width: float) -> None:
    """Raise a `ValueError` unless the width of tanh is positive."""
    if not width > 0.0:
        raise ValueError(f"width must be positive. Got {width} instead")
