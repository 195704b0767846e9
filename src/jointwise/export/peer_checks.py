"""Torques of exported files in Pinocchio and MuJoCo, where they are installed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from jointwise.export.package import Comparison, compared, not_compared
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

STATES = 50
"""Random states at which files are compared with the model."""
TORQUE_TOLERANCE = 1e-9
"""Allowed difference of torques, relative to the largest one."""


def torque_check(name: str, torque: Array | str, expected: Array) -> Comparison:
    """Return the comparison of torques (states, joints) with the expected ones; a text says why there are none."""
    if isinstance(torque, str):
        return not_compared(name, torque)
    apart = float(np.abs(torque - expected).max() / np.abs(expected).max())
    return compared(name, apart, TORQUE_TOLERANCE, "of the largest torque")


def random_states(model: RobotModel) -> tuple[Array, Array, Array]:
    """Return random positions, speeds and accelerations, (states, joints)."""
    q, qd, qdd = np.random.default_rng(0).uniform(-2.0, 2.0, (3, STATES, model.dof))
    return q, qd, qdd


def without_shapes(urdf: str) -> str:
    """Return a URDF without visual and collision elements, whose meshes need not be there."""
    return re.sub(r"<(visual|collision)\b.*?(</\1\s*>)", "", urdf, flags=re.DOTALL)


def pinocchio_torques(
    urdf: str, names: Sequence[str], gravity: Sequence[float], q: Array, qd: Array, qdd: Array
) -> Array | str:
    """Return the torques of a URDF in Pinocchio, (states, joints), or why there are none."""
    try:
        import pinocchio as pin
    except ImportError:
        return "Pinocchio is not installed"
    model = pin.buildModelFromXML(urdf)
    chosen = [model.getJointId(name) for name in names]
    locked = [k for k in range(1, model.njoints) if k not in chosen]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    model.gravity.linear = np.array(gravity)
    data = model.createData()
    return np.array(
        [pin.rnea(model, data, *_pinocchio_state(model, names, *row)) for row in zip(q, qd, qdd, strict=True)]
    )


def _pinocchio_state(model: Any, names: Sequence[str], q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
    """Return a state as Pinocchio has it: a continuous joint is cosine and sine."""
    position = np.zeros(model.nq)
    for name, value in zip(names, q, strict=True):
        joint = model.joints[model.getJointId(name)]
        position[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
    return position, qd, qdd


def mujoco_torques(
    text: str, names: Sequence[str], gravity: Sequence[float], q: Array, qd: Array, qdd: Array, *, dry: bool = False
) -> Array | str:
    """Return the torques of a URDF or MJCF in MuJoCo, (states, joints), with damping, or why there are none.

    Args:
        text: URDF or MJCF.
        names: Names of the joints.
        gravity: Gravity in the base frame, m/s².
        q: Positions (states, joints), rad.
        qd: Speeds, rad/s.
        qdd: Accelerations, rad/s².
        dry: Whether dry friction acts too.

    """
    try:
        import mujoco
    except ImportError:
        return "MuJoCo is not installed"
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.gravity[:] = gravity
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    if not dry:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS
    data = mujoco.MjData(model)
    index = [model.joint(name).dofadr[0] for name in names]
    torques = []
    for state in zip(q, qd, qdd, strict=True):
        data.qpos[index], data.qvel[index], data.qacc[index] = state
        mujoco.mj_inverse(model, data)
        torques.append(data.qfrc_inverse[index].copy())
    return np.array(torques)
