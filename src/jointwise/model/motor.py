"""A permanent-magnet synchronous motor in the rotor frame (d, q), and the losses of its drive.

Amplitude-invariant: ``v_d = R i_d + L di_d/dt - p ω L i_q``, ``v_q = R i_q + L di_q/dt + p ω (L i_d + Ψ)``;
the torque is ``3/2 p Ψ i_q`` and the electrical power ``3/2 (v_d i_d + v_q i_q)``. With i_d = 0 the power is that of a
DC motor with the resistance 3/2 R, the inductance 3/2 L and the torque per ampere ``K = 3/2 p Ψ r`` at the joint.
"""

from __future__ import annotations

import numpy as np

from jointwise.spatial import Array

PHASES = 1.5
"""Power of three phases per product of amplitudes in the rotor frame."""


def dq_voltages(
    current: Array,
    slope: Array,
    speed: Array,
    *,
    resistance: Array,
    inductance: Array,
    gain: Array,
    pole_speed: Array,
) -> tuple[Array, Array]:
    """Return v_d and v_q (samples, joints), V, of motors without direct current (i_d = 0).

    Args:
        current: Quadrature currents i_q (samples, joints), A.
        slope: Their derivatives, A/s.
        speed: Speeds of the joints, rad/s.
        resistance: Equivalent DC resistance 3/2 R (joints,), Ω.
        inductance: Equivalent DC inductance 3/2 L (joints,), H.
        gain: Torque of the joint per ampere (joints,), Nm/A.
        pole_speed: Electrical speed per speed of the joint (joints,): pole pairs times gear ratio.

    """
    direct: Array = -pole_speed * speed * inductance / PHASES * current
    quadrature: Array = (resistance * current + inductance * slope + gain * speed) / PHASES
    return direct, quadrature


def dq_power(direct: tuple[Array, Array], quadrature: tuple[Array, Array]) -> Array:
    """Return ``3/2 (v_d i_d + v_q i_q)``, W, of (voltage, current) of both axes."""
    result: Array = PHASES * (direct[0] * direct[1] + quadrature[0] * quadrature[1])
    return result


def drive_loss(mechanical: Array, speed: Array, drag: Array, conversion: float) -> Array:
    """Return iron and drive loss ``D |ω| + c |P|`` (samples, joints), W, of shaft powers P (W) and speeds (rad/s)."""
    result: Array = drag * np.abs(speed) + conversion * np.abs(mechanical)
    return result


def drawn_power(electrical: Array, standing: float, burnt: bool) -> Array:
    """Return the power from the supply (samples,), W, for powers of the joints (samples, joints), W.

    Braking joints feed the others; what remains is returned, or `burnt` in a resistor.
    """
    total: Array = electrical.sum(axis=1)
    return standing + (np.maximum(total, 0.0) if burnt else total)
