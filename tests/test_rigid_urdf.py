"""Random URDFs read by Jointwise, Pinocchio and MuJoCo are the same robot."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from jointwise.description import Robot
from jointwise.description.urdf import robot_from_urdf
from jointwise.model import rigid
from jointwise.spatial import Array
from kernels import Answers, assert_all_agree, stacked, symmetric
from peers import numbers
from robots import law, random_body, random_states, seeds

KINDS = ("revolute", "continuous", "prismatic")
GRAVITY = np.array([1.3, -4.2, -8.1])
SAMPLES = 5
MUJOCO_EXTENSION = '<mujoco><compiler fusestatic="false" balanceinertia="false"/></mujoco>'


# -- the text -----------------------------------------------------------------------------------------------------


def origin(rng: np.random.Generator) -> str:
    """Return a random origin, now and then one with quarter turns, a part of it, or none."""
    xyz = f'xyz="{numbers(rng.uniform(-0.4, 0.4, 3))}"'
    rpy = rng.integers(-2, 3, 3) * (np.pi / 2) if rng.random() < 0.3 else rng.uniform(-3.0, 3.0, 3)
    form = rng.integers(0, 6)
    return ["", f"<origin {xyz}/>", *[f'<origin rpy="{numbers(rpy)}" {xyz}/>'] * 4][form]


def link(rng: np.random.Generator, name: str, hollow: bool = False) -> str:
    if hollow:
        return f'<link name="{name}"/>'
    mass, _, inertia = random_body(rng)
    xx, xy, xz, yy, yz, zz = inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]].tolist()
    tensor = f'ixx="{xx!r}" ixy="{xy!r}" ixz="{xz!r}" iyy="{yy!r}" iyz="{yz!r}" izz="{zz!r}"'
    return f'<link name="{name}"><inertial>{origin(rng)}<mass value="{mass!r}"/><inertia {tensor}/></inertial></link>'


def axis(rng: np.random.Generator) -> str:
    """Return a random direction, one of the six unit axes, or nothing, which means x."""
    direction = rng.normal(size=3)
    if rng.random() < 0.4:
        direction = np.eye(3)[rng.integers(0, 3)] * rng.choice([-1.0, 1.0])
    unit = direction / np.linalg.norm(direction)
    return "" if rng.random() < 0.1 else f'<axis xyz="{numbers(unit)}"/>'


def joint(rng: np.random.Generator, name: str, kind: str, parent: str, child: str) -> str:
    turns = "" if kind == "fixed" else axis(rng)
    limit = '<limit lower="-9" upper="9" effort="99" velocity="9"/>' if kind in ("revolute", "prismatic") else ""
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{origin(rng)}{ends}{turns}{limit}</joint>'


def fixed(rng: np.random.Generator, parent: str, child: str) -> str:
    return link(rng, child, hollow=rng.random() < 0.3) + joint(rng, f"to_{child}", "fixed", parent, child)


def urdf(seed: int, kinds: list[str]) -> str:
    """Return a chain of moving joints with fixed ones between and beside them, ending in the link `tool`."""
    rng = np.random.default_rng(seed)
    parts, end = [link(rng, "root", hollow=rng.random() < 0.5)], "root"
    for k, kind in enumerate(kinds):
        for between in range(rng.integers(0, 3)):
            parts.append(fixed(rng, end, f"between{k}_{between}"))
            end = f"between{k}_{between}"
        parts += [link(rng, f"link{k}"), joint(rng, f"joint{k}", kind, end, f"link{k}")]
        end = f"link{k}"
        parts += [fixed(rng, end, f"beside{k}_{side}") for side in range(rng.integers(0, 2))]
    parts.append(fixed(rng, end, "tool"))
    return f'<robot name="random">{"".join(parts)}</robot>'


# -- the answers --------------------------------------------------------------------------------------------------


def jointwise_answers(robot: Robot, q: Array, qd: Array, qdd: Array) -> Answers:
    rotation, position = rigid.forward_kinematics(robot, q).tool
    return {
        "rotation": rotation,
        "position": position,
        "jacobian": rigid.jacobian(robot, q),
        "torque": rigid.inverse_dynamics(robot, q, qd, qdd, gravity=GRAVITY),
        "mass": rigid.mass_matrix(robot, q),
        "acceleration": rigid.forward_dynamics(robot, q, qd, qdd, gravity=GRAVITY),
        "kinetic": rigid.kinetic_energy(robot, q, qd),
        "potential": rigid.potential_energy(robot, q, gravity=GRAVITY),
    }


def pinocchio_position(model: pin.Model, q: Array) -> Array:
    """Return Pinocchio's configuration: a continuous joint is a point of the circle."""
    parts = [[np.cos(x), np.sin(x)] if model.joints[k + 1].nq == 2 else [x] for k, x in enumerate(q)]
    return np.concatenate(parts)


def pinocchio_answers(text: str, q: Array, qd: Array, qdd: Array) -> Answers:
    model = pin.buildModelFromXML(text)
    model.gravity.linear = GRAVITY
    tool = model.getFrameId("tool")

    def sample(k: int) -> Answers:
        data, x, v, a = model.createData(), pinocchio_position(model, q[k]), qd[k], qdd[k]
        pin.framesForwardKinematics(model, data, x)
        frame = pin.SE3(data.oMf[tool])
        jacobian = pin.computeFrameJacobian(model, data, x, tool, pin.LOCAL_WORLD_ALIGNED)
        return {
            "rotation": frame.rotation,
            "position": frame.translation,
            "jacobian": jacobian.reshape(6, -1).copy(),
            "torque": pin.rnea(model, data, x, v, a).copy(),
            "mass": symmetric(np.reshape(pin.crba(model, data, x), (len(v), len(v)))),
            "acceleration": pin.aba(model, data, x, v, a).copy(),
            "kinetic": pin.computeKineticEnergy(model, data, x, v),
            "potential": pin.computePotentialEnergy(model, data, x),
        }

    return stacked(sample, len(q))


def mujoco_answers(text: str, q: Array, qd: Array, qdd: Array) -> Answers:
    model = mujoco.MjModel.from_xml_string(text.replace("</robot>", f"{MUJOCO_EXTENSION}</robot>"))
    model.opt.gravity = GRAVITY
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data, tool, n = mujoco.MjData(model), model.body("tool").id, model.nv

    def sample(k: int) -> Answers:
        data.qpos, data.qvel, data.qfrc_applied = q[k], qd[k], qdd[k]
        mujoco.mj_forward(model, data)
        jacobian, mass = np.zeros((6, n)), np.zeros((n, n))
        mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], tool)
        for row, unit in zip(mass, np.eye(n), strict=True):
            mujoco.mj_mulM(model, data, row, unit)
        answers = {
            "rotation": Rotation.from_quat(data.xquat[tool], scalar_first=True).as_matrix(),
            "position": data.xpos[tool].copy(),
            "jacobian": jacobian,
            "mass": mass,
            "acceleration": data.qacc.copy(),
            "kinetic": data.energy[1],
        }
        data.qacc = qdd[k]
        mujoco.mj_inverse(model, data)
        return {**answers, "torque": data.qfrc_inverse.copy()}

    return stacked(sample, len(q))


@law(60)
@given(seeds, st.lists(st.sampled_from(KINDS), min_size=1, max_size=7))
def test_random_urdfs_agree_with_the_peers(seed: int, kinds: list[str]) -> None:
    text = urdf(seed, kinds)
    robot = robot_from_urdf(text, "x.urdf", tip="tool")
    assert [joint.name for joint in robot.joints] == [f"joint{k}" for k in range(len(kinds))]
    motion = random_states(np.random.default_rng(seed), robot, SAMPLES)
    ours = jointwise_answers(robot, *motion)
    weight = float(np.linalg.norm(GRAVITY)) * float(robot.inertials[:, 9].sum())
    scales = {"potential": weight, "position": 1.0, "jacobian": 1.0}
    assert_all_agree(ours, pinocchio_answers(text, *motion), scales)
    assert_all_agree(ours, mujoco_answers(text, *motion), scales)
