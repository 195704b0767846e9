"""The size of a drive, by which plausible numbers are chosen where a description is silent."""

from __future__ import annotations

from jointwise.description.robot import Joint


def joint_size(joint: Joint) -> float:
    """Return the size of a drive: 1 for an effort limit of 150 Nm, 0.1 for 28 Nm; else by its friction, 1 for 10 Nm."""
    effort, coulomb = joint.limits.effort, joint.motor.coulomb
    if effort is not None:
        return float((effort / 150.0) ** 1.37)
    return coulomb / 10.0 if coulomb else 1.0
