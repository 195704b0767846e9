"""Data that cannot answer, whatever is asked of them."""

from __future__ import annotations

import numpy as np

from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.joint.saturation import refuse_saturated

LEAST_WAY = 0.05
"""Way (rad) below which a joint did not move."""


def refuse_unless_useful(record: JointRecord, phenomenon: str) -> None:
    """Refuse logs in which the joint does not move or its current sits at a limit."""
    if np.ptp(record.position) < LEAST_WAY:
        raise refuse(record, phenomenon, f"the joint does not move (it covers {np.ptp(record.position):.2g} rad)")
    refuse_saturated(record, phenomenon)
