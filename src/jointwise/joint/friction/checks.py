"""Data that cannot answer, whatever is asked of them."""

from __future__ import annotations

import numpy as np

from jointwise.joint.friction.plateaus import intervals
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse

LEAST_WAY = 0.05
"""Way (rad) below which a joint did not move."""
PILE = 1e-5
"""Samples this near to the extreme, in parts of the range, sit at it..."""
LEAST_RUN = 5
"""...and are a limit if so many in a row do..."""
LEAST_SHARE = 0.002
"""...and this part of all."""


def refuse_unless_useful(record: JointRecord, phenomenon: str) -> None:
    """Refuse logs in which the joint does not move or its torque sits at a limit."""
    if np.ptp(record.position) < LEAST_WAY:
        raise refuse(record, phenomenon, f"the joint does not move (it covers {np.ptp(record.position):.2g} rad)")
    if (share := saturated_share(record)) > LEAST_SHARE:
        raise refuse(record, phenomenon, f"the current sits at its limit in {100.0 * share:.1f} % of the samples")


def saturated_share(record: JointRecord) -> float:
    """Return the part of the samples that sit at the extreme of the motor's torque, five in a row or more."""
    span, share = float(np.ptp(record.motor)), 0.0
    for distance in (record.motor.max() - record.motor, record.motor - record.motor.min()):
        runs = [b - a for a, b in intervals(distance <= PILE * span) if b - a >= LEAST_RUN]
        share += sum(runs) / record.samples
    return share if span > 0.0 else 1.0
