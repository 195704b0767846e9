"""The model for the controller of a UR: payload and friction scales of its direct-torque mode, as URScript."""

from __future__ import annotations

import re

import numpy as np

from jointwise.errors import ModelError
from jointwise.export.c_code import identifier
from jointwise.export.package import Content, Loss, compared
from jointwise.export.simple_friction import simple_friction
from jointwise.result.calibration import CalibratedModel, calibration_of
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

JOINTS = 6
VISCOUS, COULOMB = (0.9, 0.9, 0.8, 0.9, 0.9, 0.9), (0.8, 0.8, 0.7, 0.8, 0.8, 0.8)
"""Scales that the controller uses if none are passed to direct_torque()."""
DIGITS = 6
"""Decimals of the numbers in the script."""


def ur_script(model: RobotModel, rate: float, reference: CalibratedModel | None = None) -> Content:
    """Return the URScript with the payload and the friction scales of a model.

    The friction model of the controller is not published; it fits a robot as delivered. `reference` is a model of such
    a robot: scales are the default ones times the ratio of the identified friction to that of the reference, between 0
    and 1. Without it they are the default ones.

    Args:
        model: The model of an arm with six joints.
        rate: Not used; the controller runs at 500 Hz.
        reference: Model of the same type of arm that the friction model of the controller fits.

    """
    if model.dof != JOINTS:
        raise ModelError(f"a UR has {JOINTS} joints, the model has {model.dof}.")
    viscous, coulomb = friction_scales(model, reference)
    text = script_text(model, viscous, coulomb)
    note = "the bodies and friction of the arm: the controller has its built-in ones, only payload and scales are set"
    losses = (Loss(note),)
    source = (
        "of this arm relative to the reference model" if reference is not None else "the defaults of the controller"
    )
    return Content(
        {f"{identifier(model.name)}.script": text.encode()},
        losses=losses,
        checks=(
            compared("numbers of the script read back", _difference(text, model, viscous, coulomb), 10.0**-DIGITS),
        ),
        next_step=f"paste jointwise_setup() into your program and call it before direct_torque(); scales are {source}",
    )


def friction_scales(model: RobotModel, reference: CalibratedModel | None) -> tuple[Array, Array]:
    """Return viscous and Coulomb scales of every joint, (joints,) each, between 0 and 1."""
    viscous, coulomb = np.array(VISCOUS), np.array(COULOMB)
    if reference is None:
        return viscous, coulomb
    ours, theirs = simple_friction(model), simple_friction(RobotModel(calibration_of(reference)))
    return tuple(
        np.clip(scale * np.divide(here, there, out=np.ones_like(here), where=there > 0.0), 0.0, 1.0)
        for scale, here, there in (
            (viscous, ours.damping, theirs.damping),
            (coulomb, ours.coulomb, theirs.coulomb),
        )
    )


def script_text(model: RobotModel, viscous: Array, coulomb: Array) -> str:
    """Return the URScript: a function that sets the payload, one that returns compensated torques."""
    mass, center, inertia = payload_arguments(model)
    return (
        f"# Payload and friction of {identifier(model.name)}, calibrated with Jointwise on "
        f"{model.calibration.provenance.date[:10]}.\n"
        "# Inertia about the centre of gravity: [Ixx, Iyy, Izz, Ixy, Ixz, Iyz], kg m^2; scales for direct_torque().\n"
        "def jointwise_setup():\n"
        f"  set_target_payload({mass:.{DIGITS}f}, {_listed(center)}, {_listed(inertia)})\n"
        "end\n\n"
        f"global jointwise_viscous_scale = {_listed(viscous)}\n"
        f"global jointwise_coulomb_scale = {_listed(coulomb)}\n\n"
        "# Call it in every control period; torque is without gravity, Nm.\n"
        "def jointwise_direct_torque(torque):\n"
        "  direct_torque(torque, viscous_scale=jointwise_viscous_scale, coulomb_scale=jointwise_coulomb_scale)\n"
        "end\n"
    )


def payload_arguments(model: RobotModel) -> tuple[float, Array, Array]:
    """Return mass (kg), centre (m) and inertia (kg m²) of the payload as set_target_payload takes them."""
    payload = model.payload
    if payload is None:
        return 0.0, np.zeros(3), np.zeros(6)
    tensor = payload.inertia
    six = np.array([tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2]])
    return payload.mass, np.asarray(payload.center_of_mass), six


def read_script(text: str) -> dict[str, list[float]]:
    """Return the numbers of a script that `script_text` wrote: payload, viscous and coulomb."""
    lines = {
        "payload": r"set_target_payload\((.*)\)",
        "viscous": r"viscous_scale = \[(.*)\]",
        "coulomb": r"coulomb_scale = \[(.*)\]",
    }
    found = {name: re.search(pattern, text) for name, pattern in lines.items()}
    if not all(found.values()):
        raise ModelError("the text is not a script of a UR export.")
    return {name: [float(x) for x in re.findall(r"-?\d+\.\d+", match[1])] for name, match in found.items() if match}


def _difference(text: str, model: RobotModel, viscous: Array, coulomb: Array) -> float:
    """Return the largest difference of the numbers of a script, read back, from those of the model."""
    mass, center, inertia = payload_arguments(model)
    wanted = {"payload": np.concatenate([[mass], center, inertia]), "viscous": viscous, "coulomb": coulomb}
    found = read_script(text)
    return max(float(np.abs(np.array(found[name]) - values).max()) for name, values in wanted.items())


def _listed(values: Array) -> str:
    return "[" + ", ".join(f"{float(x) + 0.0:.{DIGITS}f}" for x in values) + "]"
