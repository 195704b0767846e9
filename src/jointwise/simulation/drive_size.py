"""The size of a drive, by which plausible numbers are chosen where a description is silent."""

from __future__ import annotations

from jointwise.description.robot import Joint

USUAL_EFFORT = 150.0
"""Effort limit (Nm) of a drive of size 1."""
POWER = 1.37
"""A drive has size (effort limit / `USUAL_EFFORT`) to this power."""


def joint_size(joint: Joint) -> float:
    """Return the size of a drive: 1 for an effort limit of 150 Nm, 0.1 for 28 Nm; else by its friction, 1 for 10 Nm."""
    effort, coulomb = joint.limits.effort, joint.motor.coulomb
    if effort is not None:
        return float((effort / USUAL_EFFORT) ** POWER)
    return coulomb / 10.0 if coulomb else 1.0


def joint_effort(joint: Joint) -> float:
    """Return the effort limit of a drive, Nm (N): described, else that of its size."""
    described = joint.limits.effort
    return float(USUAL_EFFORT * joint_size(joint) ** (1.0 / POWER)) if described is None else described
