"""The model as URDF: the identified bodies and simple friction in the user's file, or in a new one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jointwise import spatial
from jointwise.description.files import read_text
from jointwise.description.table import Placement
from jointwise.description.urdf import MovingLink, moving_links, robot_from_urdf, urdf_text
from jointwise.errors import ModelError
from jointwise.export.c_code import identifier
from jointwise.export.package import Comparison, Content, Loss
from jointwise.export.peer_checks import (
    STATES,
    mujoco_torques,
    pinocchio_torques,
    random_states,
    torque_check,
    without_shapes,
)
from jointwise.export.simple_friction import SimpleFriction, simple_friction, simple_losses, with_simple_friction
from jointwise.export.urdf_edit import edited_urdf
from jointwise.model.rigid import inverse_dynamics
from jointwise.result.transfer import refuse_unknown_scale
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

SAME_PLACE = 1e-6
"""Difference (m, or entry of a rotation) up to which two joints are at the same place."""


def urdf_model(model: RobotModel, rate: float, urdf: str | Path | None = None, tip: str | None = None) -> Content:
    """Return the model as URDF.

    Args:
        model: The model; it must have physically consistent bodies.
        rate: Not used; a URDF has no sampling rate.
        urdf: The user's file, which is changed in the inertials and dynamics only; None for a new one.
        tip: Last link of the chain, where the file branches.

    """
    bodies = consistent_model(model, "URDF")
    friction = simple_friction(model)
    source = urdf_text(bodies.robot) if urdf is None else read_text(Path(urdf))
    origin = "URDF" if urdf is None else str(urdf)
    _refuse_other_robot(model, source, origin, tip)
    links = moving_links(source, origin, tip)
    text = edited_urdf(source, _inertials(bodies, links), _dynamics(links, friction))
    name = f"{identifier(model.name)}.urdf" if urdf is None else Path(urdf).name
    bare = with_simple_friction(bodies, friction, rotors=False)
    rotors = Loss("rotor inertias: a URDF has no place for them (MJCF has: armature)", bare.predict)
    coupling = Loss("coupled motors: friction is that of their own joints (MJCF has tendons)")
    coupled = () if model.robot.transmission is None else (coupling,)
    return Content(
        {name: text.encode()},
        losses=(*simple_losses(model, bodies, friction), rotors, *coupled),
        checks=_checks(bodies, friction, text, origin, tip),
        next_step=f'python -c "import pinocchio; print(pinocchio.buildModelFromUrdf({name!r}))"',
    )


def consistent_model(model: RobotModel, target: str) -> RobotModel:
    """Return the model with physically consistent bodies, or say how to get them."""
    refuse_unknown_scale(model.calibration, target)
    if model.calibration.physical is None:
        raise ModelError(
            f"{target} needs the inertia of every body, and this model has base parameters only. Calibrate again "
            "without --no-physical, and export that model."
        )
    return model.for_use("feed-forward").consistent()


def _refuse_other_robot(model: RobotModel, text: str, origin: str, tip: str | None) -> None:
    """Reject a URDF whose joints are not those of the model."""
    robot, ours = robot_from_urdf(text, origin, tip), model.robot
    advice = "Calibrate with this file as --robot, or leave --urdf out for a new URDF."
    if robot.dof != ours.dof:
        raise ModelError(f"{origin}: has {robot.dof} moving joints, the model {ours.dof}. {advice}")
    for there, here in zip(robot.joints, ours.joints, strict=True):
        apart = max(
            float(np.abs(there.rotation - here.rotation).max()),
            float(np.abs(there.translation - here.translation).max()),
        )
        if there.kind != here.kind or apart > SAME_PLACE:
            raise ModelError(f"{origin}: joint '{there.name}' is not where the model has '{here.name}'. {advice}")


def _inertials(model: RobotModel, links: tuple[MovingLink, ...]) -> dict[str, Array | None]:
    """Return the inertials of the moving links in their URDF frames.

    Links that are fixed to a moving one keep theirs, and the moving link has the rest; if no body is like that rest,
    the moving link has all and theirs are removed.
    """
    found: dict[str, Array | None] = {}
    for link, inertial in zip(links, model.robot.inertials, strict=True):
        whole = Placement(link.rotation).moved(inertial)
        rest = whole - link.fixed
        possible = np.linalg.eigvalsh(spatial.pseudo_inertia(rest))[0] > 0.0
        found[link.link] = rest if possible else whole
        if not possible:
            found |= dict.fromkeys(link.fixed_names)
    return found


def _dynamics(links: tuple[MovingLink, ...], friction: SimpleFriction) -> dict[str, tuple[float, float]]:
    pairs = zip(links, friction.damping.tolist(), friction.coulomb.tolist(), strict=True)
    return {link.joint: (damping, coulomb) for link, damping, coulomb in pairs}


def _checks(
    model: RobotModel, friction: SimpleFriction, text: str, origin: str, tip: str | None
) -> tuple[Comparison, ...]:
    """Return the comparisons of the torques of the written file with those of the bodies, without rotors."""
    q, qd, qdd = random_states(model)
    gravity = model.gravity_vector
    expected = inverse_dynamics(model.robot, q, qd, qdd, gravity=gravity)
    written = robot_from_urdf(text, origin, tip)
    names, plain = [joint.name for joint in written.joints], without_shapes(text)
    results = {
        "Jointwise": inverse_dynamics(written, q, qd, qdd, gravity=gravity),
        "Pinocchio": pinocchio_torques(plain, names, gravity, q, qd, qdd),
        "MuJoCo": mujoco_torques(plain, names, gravity, q, qd, qdd),
    }
    wanted = {"MuJoCo": expected + friction.damping * qd}
    return tuple(
        torque_check(f"{peer} reads the URDF: torques at {STATES} states", torque, wanted.get(peer, expected))
        for peer, torque in results.items()
    )
