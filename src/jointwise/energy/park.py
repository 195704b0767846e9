"""Park transform: phase currents of a synchronous motor to the rotor frame, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from jointwise.errors import ShapeError
from jointwise.spatial import Array

_PHASES = 2.0 * np.pi / 3.0 * np.arange(3)


def park(phases: ArrayLike, rotor: ArrayLike, pole_pairs: int) -> tuple[Array, Array]:
    """Return the currents i_d and i_q (samples,) of phase currents (amplitude-invariant).

    ``i_d = 2/3 Σ_k i_k cos(p θ - 2πk/3)``, ``i_q = -2/3 Σ_k i_k sin(p θ - 2πk/3)``; the torque is ``3/2 p Ψ i_q``.

    Args:
        phases: Currents of the three phases (samples, 3), A.
        rotor: Position of the rotor θ (samples,), rad; zero where the flux of phase 0 is largest.
        pole_pairs: Pole pairs p.

    Raises:
        ShapeError: There are not three phases, or not one position per sample.

    """
    currents, angle = np.asarray(phases, dtype=float), np.asarray(rotor, dtype=float)
    if currents.ndim != 2 or currents.shape[1:] != (3,) or angle.shape != currents.shape[:1]:
        raise ShapeError(f"phases must be (samples, 3) and rotor (samples,). Got {currents.shape} and {angle.shape}.")
    turned = _electrical(angle, pole_pairs)
    return (2.0 / 3.0 * (currents * np.cos(turned)).sum(axis=1), -2.0 / 3.0 * (currents * np.sin(turned)).sum(axis=1))


def inverse_park(direct: ArrayLike, quadrature: ArrayLike, rotor: ArrayLike, pole_pairs: int) -> Array:
    """Return the phase currents (samples, 3), A, of i_d and i_q (samples,): ``i_k = i_d cos(..) - i_q sin(..)``."""
    turned = _electrical(np.asarray(rotor, dtype=float), pole_pairs)
    d, q = (np.asarray(values, dtype=float)[:, None] for values in (direct, quadrature))
    result: Array = d * np.cos(turned) - q * np.sin(turned)
    return result


def _electrical(rotor: Array, pole_pairs: int) -> Array:
    """Return the electrical angle of the rotor relative to the three phases (samples, 3), rad."""
    if pole_pairs < 1:
        raise ShapeError(f"pole pairs must be 1 or more. Got {pole_pairs} instead.")
    result: Array = pole_pairs * rotor[:, None] - _PHASES
    return result
