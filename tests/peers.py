"""The same questions put to Jointwise, Pinocchio and MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from jointwise.description import Robot
from jointwise.model import rigid
from jointwise.spatial import Array
from kernels import Answers, stacked, symmetric
from robots import Case

PINOCCHIO_TO_OURS = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
"""Pinocchio's ten parameters are m mx my mz Ixx Ixy Iyy Ixz Iyz Izz."""
OURS_TO_PINOCCHIO = np.argsort(PINOCCHIO_TO_OURS)


# -- Jointwise ---------------------------------------------------------------------------------------------------


def jointwise_answers(case: Case) -> Answers:
    robot, q, qd = case.robot, case.q, case.qd
    world, body = {"gravity": case.gravity}, {"payload": case.payload}
    drive = {"rotor_inertias": case.rotors}
    frames = rigid.forward_kinematics(robot, q)
    kinetic, potential = rigid.energy_regressors(robot, q, qd, gravity=case.gravity)
    return {
        "rotation": frames.rotation,
        "position": frames.position,
        "jacobian": rigid.jacobian(robot, q),
        "torque": rigid.inverse_dynamics(robot, q, qd, case.qdd, wrench=case.wrench, **world, **body, **drive),
        "regressor": rigid.compute_regressor(robot, q, qd, case.qdd, **world).matrices(),
        "mass": rigid.mass_matrix(robot, q, **body, **drive),
        "coriolis_matrix": rigid.coriolis_matrix(robot, q, qd, **body),
        "coriolis": rigid.coriolis_vector(robot, q, qd, **body),
        "gravity": rigid.gravity_torque(robot, q, **world, **body),
        "acceleration": rigid.forward_dynamics(robot, q, qd, case.effort, wrench=case.wrench, **world, **body, **drive),
        "kinetic": rigid.kinetic_energy(robot, q, qd, **body, **drive),
        "potential": rigid.potential_energy(robot, q, **world, **body),
        "kinetic_regressor": kinetic,
        "potential_regressor": potential,
        "wrench_torque": rigid.wrench_torque(robot, q, case.wrench),
    }


# -- Pinocchio ---------------------------------------------------------------------------------------------------


def pinocchio_model(robot: Robot) -> pin.Model:
    model = pin.Model()
    for joint, link in zip(robot.joints, robot.links, strict=True):
        kind = pin.JointModelRZ() if joint.kind == "revolute" else pin.JointModelPZ()
        index = model.addJoint(model.njoints - 1, kind, pin.SE3(joint.rotation, joint.translation), joint.name)
        body = pin.Inertia.FromDynamicParameters(link.inertial[OURS_TO_PINOCCHIO])
        model.appendBodyToJoint(index, body, pin.SE3.Identity())
    tool = pin.SE3(robot.tool_rotation, robot.tool_translation)
    model.addFrame(pin.Frame("tool", model.njoints - 1, 0, tool, pin.FrameType.OP_FRAME))
    return model


def loaded_pinocchio_model(case: Case) -> pin.Model:
    model = pinocchio_model(case.robot)
    model.gravity.linear = case.gravity
    model.armature = case.rotors
    body = pin.Inertia(case.payload.mass, case.payload.center_of_mass, case.payload.inertia)
    model.appendBodyToJoint(case.robot.dof, body, model.frames[model.getFrameId("tool")].placement)
    return model


def pinocchio_answers(case: Case) -> Answers:
    bare, loaded = pinocchio_model(case.robot), loaded_pinocchio_model(case)
    bare.gravity.linear = case.gravity
    return stacked(lambda k: _pinocchio_sample(bare, loaded, case, k), len(case.q))


def _pinocchio_sample(bare: pin.Model, loaded: pin.Model, case: Case, k: int) -> Answers:
    data, q, v, a = loaded.createData(), case.q[k], case.qd[k], case.qdd[k]
    pin.framesForwardKinematics(loaded, data, q)
    tool = loaded.getFrameId("tool")
    frames = [*list(data.oMi)[1:], data.oMf[tool]]
    frames = [pin.SE3(frame) for frame in frames]
    jacobian = pin.computeFrameJacobian(loaded, data, q, tool, pin.LOCAL_WORLD_ALIGNED).reshape(6, -1).copy()
    pushed = _pinocchio_push(loaded, frames, case.wrench[k])
    order = np.add.outer(10 * np.arange(len(q)), PINOCCHIO_TO_OURS).ravel()
    other = bare.createData()
    free = loaded.copy()
    free.gravity.linear = np.zeros(3)
    return {
        "rotation": np.array([frame.rotation for frame in frames]),
        "position": np.array([frame.translation for frame in frames]),
        "jacobian": jacobian,
        "torque": pin.rnea(loaded, data, q, v, a, pushed).copy(),
        "regressor": np.reshape(pin.computeJointTorqueRegressor(bare, other, q, v, a), (len(q), -1))[:, order],
        "mass": symmetric(np.reshape(pin.crba(loaded, data, q), (len(q), len(q)))),
        "coriolis_matrix": np.reshape(pin.computeCoriolisMatrix(loaded, data, q, v), (len(q), len(q))).copy(),
        "coriolis": pin.rnea(free, free.createData(), q, v, np.zeros_like(q)).copy(),
        "gravity": pin.computeGeneralizedGravity(loaded, data, q).copy(),
        "acceleration": pin.aba(loaded, data, q, v, case.effort[k], pushed).copy(),
        "kinetic": pin.computeKineticEnergy(loaded, data, q, v),
        "potential": pin.computePotentialEnergy(loaded, data, q),
        "kinetic_regressor": pin.computeKineticEnergyRegressor(bare, other, q, v)[order].copy(),
        "potential_regressor": pin.computePotentialEnergyRegressor(bare, other, q)[order].copy(),
        "wrench_torque": jacobian.T @ case.wrench[k],
    }


def _pinocchio_push(model: pin.Model, frames: list[pin.SE3], wrench: Array) -> pin.StdVec_Force:
    """Return the wrench, given at the tool in base axes, as a force on the last joint in its own frame."""
    at_base = pin.SE3(np.eye(3), frames[-1].translation).act(pin.Force(wrench[:3], wrench[3:]))
    forces = pin.StdVec_Force([pin.Force.Zero() for _ in range(model.njoints)])
    forces[model.njoints - 1] = frames[-2].actInv(at_base)
    return forces


# -- MuJoCo ------------------------------------------------------------------------------------------------------

MJCF = """<mujoco><compiler angle="radian"/>
<option gravity="{gravity}"><flag constraint="disable" energy="enable"/></option>
<worldbody>{bodies}</worldbody></mujoco>"""


def mujoco_model(case: Case) -> mujoco.MjModel:
    robot, load = case.robot, case.payload
    tool = _placed(robot.tool_rotation, robot.tool_translation)
    weight = _inertial(load.mass, np.asarray(load.center_of_mass), load.inertia)
    text = f'<body name="payload" {tool}>{weight}</body><site name="tool" {tool}/>'
    for k in reversed(range(robot.dof)):
        joint, link = robot.joints[k], robot.links[k]
        kind = "hinge" if joint.kind == "revolute" else "slide"
        text = (
            f'<body name="link{k}" {_placed(joint.rotation, joint.translation)}>'
            f'<joint type="{kind}" axis="0 0 1" armature="{float(case.rotors[k])!r}"/>'
            f"{_inertial(link.mass, link.center_of_mass, link.inertia_at_center)}{text}</body>"
        )
    return mujoco.MjModel.from_xml_string(MJCF.format(gravity=numbers(case.gravity), bodies=text))


def mujoco_answers(case: Case) -> Answers:
    model = mujoco_model(case)
    data = mujoco.MjData(model)
    return stacked(lambda k: _mujoco_sample(model, data, case, k), len(case.q))


def _mujoco_sample(model: mujoco.MjModel, data: mujoco.MjData, case: Case, k: int) -> Answers:
    n, tool, last = case.robot.dof, model.site("tool").id, model.body(f"link{case.robot.dof - 1}").id
    bodies = [model.body(f"link{j}").id for j in range(n)]
    jacobian, pushed, force = np.zeros((6, n)), np.zeros(n), case.wrench[k]
    data.qpos, data.qvel, data.qfrc_applied = case.q[k], case.qd[k], case.effort[k]
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], tool)
    mujoco.mj_applyFT(model, data, force[:3], force[3:], data.site_xpos[tool], last, pushed)
    data.qfrc_applied += pushed
    mujoco.mj_forward(model, data)
    answers = {
        "rotation": np.array([*data.xmat[bodies], data.site_xmat[tool]]).reshape(-1, 3, 3),
        "position": np.array([*data.xpos[bodies], data.site_xpos[tool]]),
        "jacobian": jacobian,
        "mass": np.array([_mujoco_mass_times(model, data, unit) for unit in np.eye(n)]),
        "acceleration": data.qacc.copy(),
        "kinetic": data.energy[1],
        "potential": data.energy[0],
        "wrench_torque": pushed,
    }
    data.qacc = case.qdd[k]
    mujoco.mj_inverse(model, data)
    answers["torque"] = data.qfrc_inverse - pushed
    bias = data.qfrc_bias.copy()
    data.qvel = 0.0
    mujoco.mj_forward(model, data)
    answers["gravity"] = data.qfrc_bias.copy()
    answers["coriolis"] = bias - answers["gravity"]
    return answers


def _mujoco_mass_times(model: mujoco.MjModel, data: mujoco.MjData, unit: Array) -> Array:
    column = np.zeros_like(unit)
    mujoco.mj_mulM(model, data, column, unit)
    return column


def _placed(rotation: Array, translation: Array) -> str:
    quaternion = Rotation.from_matrix(rotation).as_quat(scalar_first=True)
    return f'pos="{numbers(translation)}" quat="{numbers(quaternion)}"'


def _inertial(mass: float, center: Array, tensor: Array) -> str:
    six = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return f'<inertial mass="{float(mass)!r}" pos="{numbers(center)}" fullinertia="{numbers(six)}"/>'


def numbers(values: Array) -> str:
    """Return the values as text that reads back exactly."""
    return " ".join(repr(float(value)) for value in values)
