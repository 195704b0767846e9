"""The model as MJCF: bodies, armature, damping, friction loss, and motors with their gear and force limits."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

import numpy as np
from scipy.spatial.transform import Rotation

from jointwise import spatial
from jointwise.description.robot import Joint, Robot
from jointwise.export.c_code import identifier
from jointwise.export.package import Comparison, Content
from jointwise.export.peer_checks import STATES, mujoco_torques, random_states, torque_check
from jointwise.export.simple_friction import SimpleFriction, simple_friction, simple_losses
from jointwise.export.urdf_model import consistent_model
from jointwise.model.transmission import joint_values
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

SLIDING = 0.3
"""Speed (rad/s) above which the friction loss of MuJoCo, a soft constraint, has reached its limit."""


def mjcf_model(model: RobotModel, rate: float) -> Content:
    """Return the model as MJCF with the sampling period as time step; it must have physically consistent bodies."""
    bodies, friction = consistent_model(model, "MJCF"), simple_friction(model)
    text = mjcf_text(bodies, friction, rate)
    name = f"{identifier(model.name)}.xml"
    return Content(
        {name: text.encode()},
        losses=simple_losses(model, bodies, friction),
        checks=_checks(bodies, friction, text),
        next_step=f"python -m mujoco.viewer --mjcf={name}",
    )


def mjcf_text(model: RobotModel, friction: SimpleFriction, rate: float) -> str:
    """Return the MJCF of bodies with simple friction; motors take the current (A) or torque (Nm) of the model."""
    robot, motors = model.robot, []
    placed = f"pos={_words(robot.tool_translation)} quat={_quaternion(robot.tool_rotation)}"
    body = f'<site name="tool" {placed}/>'
    coupled = _coupled_motors(robot)
    drives = [_drive(robot, friction, j) for j in range(robot.dof)]
    for j in reversed(range(robot.dof)):
        body = _body(robot, j, "" if coupled[j] else drives[j], body)
    for j, joint in enumerate(robot.joints):
        effort, gain = joint.limits.effort, float(model.gains[j])
        limits = "" if effort is None else f' ctrlrange="{-effort / abs(gain)!r} {effort / abs(gain)!r}"'
        forces = "" if effort is None else f' forcerange="{-effort / abs(gain)!r} {effort / abs(gain)!r}"'
        acts = f"{'tendon' if coupled[j] else 'joint'}={quoteattr(joint.name)}"
        motors.append(f'<motor name={quoteattr(joint.name)} {acts} gear="{gain!r}"{limits}{forces}/>')
    listed = "\n    ".join(motors)
    return (
        f"<mujoco model={quoteattr(model.name)}>\n"
        f"  <!-- motors: 1 {model.unit} is `gear` Nm at the joint side; tendons are motors of several joints -->\n"
        '  <compiler angle="radian" balanceinertia="false"/>\n'
        f'  <option gravity={_words(model.gravity_vector)} timestep="{1.0 / rate!r}" integrator="implicitfast"/>\n'
        f"  <worldbody>\n    {body}\n  </worldbody>\n"
        f"{_tendons(robot, coupled, drives)}"
        f"  <actuator>\n    {listed}\n  </actuator>\n</mujoco>\n"
    )


def _coupled_motors(robot: Robot) -> list[bool]:
    """Return whether every motor turns with another joint too."""
    C = np.eye(robot.dof) if robot.transmission is None else robot.transmission.matrix
    return [bool((row != unit).any()) for row, unit in zip(C, np.eye(robot.dof), strict=True)]


def _tendons(robot: Robot, coupled: list[bool], drives: list[str]) -> str:
    """Return a fixed tendon for every coupled motor, whose length is ``theta = C q``, with its rotor and friction."""
    if robot.transmission is None:
        return ""
    rows = []
    for joint, row, drive, is_coupled in zip(robot.joints, robot.transmission.matrix, drives, coupled, strict=True):
        turns = [
            f"<joint joint={quoteattr(other.name)} coef={quoteattr(repr(float(ratio)))}/>"
            for other, ratio in zip(robot.joints, row, strict=True)
            if ratio
        ]
        rows += [f"    <fixed name={quoteattr(joint.name)} {drive}>{''.join(turns)}</fixed>\n"] if is_coupled else []
    return f"  <tendon>\n{''.join(rows)}  </tendon>\n"


def _drive(robot: Robot, friction: SimpleFriction, j: int) -> str:
    """Return rotor inertia and friction of motor j as attributes of its joint or tendon."""
    values = {
        "armature": float(robot.rotor_inertias[j]),
        "damping": float(friction.damping[j]),
        "frictionloss": float(friction.coulomb[j]),
    }
    return " ".join(f'{name}="{value!r}"' for name, value in values.items())


def _body(robot: Robot, j: int, drive: str, inside: str) -> str:
    """Return the body of link j with its joint, the `drive` of that joint alone, and everything that it carries."""
    joint, link = robot.joints[j], robot.links[j]
    placed = f"pos={_words(joint.translation)} quat={_quaternion(joint.rotation)}"
    kind = "hinge" if joint.kind == "revolute" else "slide"
    return (
        f"<body name={quoteattr(link.name)} {placed}>\n"
        f'<joint name={quoteattr(joint.name)} type="{kind}" axis="0 0 1"{_range(joint)} {drive}/>\n'
        f"{_inertial(link.inertial)}\n{inside}\n</body>"
    )


def _range(joint: Joint) -> str:
    low, high = joint.limits.lower, joint.limits.upper
    return "" if low is None or high is None else f' range="{low!r} {high!r}"'


def _inertial(inertial: Array) -> str:
    mass, center, tensor = spatial.split_inertial(inertial)
    six = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return f'<inertial mass="{mass!r}" pos={_words(center)} fullinertia={_words(six)}/>'


def _quaternion(rotation: Array) -> str:
    return _words(Rotation.from_matrix(rotation).as_quat(scalar_first=True))


def _words(values: object) -> str:
    return '"' + " ".join(repr(float(x) + 0.0) for x in np.asarray(values, dtype=float)) + '"'


def _checks(model: RobotModel, friction: SimpleFriction, text: str) -> tuple[Comparison, ...]:
    """Return the comparison of MuJoCo's inverse dynamics with the bodies, rotors and simple friction."""
    robot, (q, speed, qdd) = model.robot, random_states(model)
    qd = joint_values(robot, np.sign(speed) * np.maximum(np.abs(speed), SLIDING))
    names, gravity = [joint.name for joint in robot.joints], model.gravity_vector
    body = model.body_torque(q, qd, qdd)
    wanted = {
        "": body + friction.torque(robot, qd, dry=False),
        ", with dry friction": body + friction.torque(robot, qd),
    }
    checks = []
    for label, expected in wanted.items():
        name = f"MuJoCo's inverse dynamics of the MJCF at {STATES} states{label}"
        torque = mujoco_torques(text, names, gravity, q, qd, qdd, dry=bool(label))
        checks.append(torque_check(name, torque, expected))
    return tuple(checks)
