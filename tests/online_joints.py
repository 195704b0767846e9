"""Joint files with the laws of a digital robot, and its moves, for tests of online estimators and observers."""

from __future__ import annotations

from functools import cache

import numpy as np

import jointwise
from joint_runs import RATE, log_of, run_experiment
from jointwise.data import Log
from jointwise.design import make_experiment
from jointwise.document import plain_json
from jointwise.joint.gear import MapSettings, TransmissionSettings
from jointwise.joint.laws import FrictionLaw, VelocityLaw
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part, value_of
from jointwise.model.periodic_table import TURN
from jointwise.simulation.robot import DigitalRobot, digital_robot
from jointwise.simulation.sensors import Sensors

SIMPLE = ("temperature", "asymmetry", "backlash", "kinematic_error", "lost_motion")
"""Phenomena switched off, so that the laws below are the truth but for the load."""


def true_model(digital: DigitalRobot, joint: int = 0) -> JointModel:
    """Return the joint file of friction, hysteresis and stiffness as they are."""
    plant = digital.joints[joint]
    f, spring = plant.friction, plant.stiffness
    law = VelocityLaw(
        coulomb=f.coulomb,
        static=f.coulomb + f.stribeck.extra,
        stribeck_speed=f.stribeck.speed,
        shape=f.stribeck.shape,
        viscous=f.viscous,
        square=f.square,
        cube=f.cube,
        asymmetry=f.asymmetry,
        fastest=4.0,
    )
    limits = plant.backlash.mean * np.array(f.slip.limits)
    slip = FrictionLaw("nlr", limits, f.coulomb * np.array(f.slip.shares))
    a1, a2 = spring.terms  # type: ignore[union-attr]
    values = (value_of("a_1", "Nm/rad", a1, 1.0), value_of("damping", "Nm s/rad", plant.damping, 0.1))
    spring_settings = {"kind": "polynomial", "coefficients": [a1, a2]}
    parts = (
        Part("stiffness", "cubic", values, 99.0, settings=spring_settings, ranges={"phi": (-3e-3, 3e-3)}),
        Part("friction", "Stribeck", (value_of("F_C", "Nm", f.coulomb, 0.1),), 99.0, settings={"law": plain_json(law)}),
        Part("hysteresis", "nlr", (), 99.0, settings={"law": plain_json(slip), "method": "nlr", "elements": 4}),
    )
    model = JointModel(digital.robot.name, joint)
    for part in parts:
        model = model.with_part(part)
    return model


def with_gear_map(model: JointModel, low: float, high: float) -> JointModel:
    """Return a joint file with a gear map of the angles from low to high (rad), where its errors are zero.

    At other angles the table has a value that nobody measured: 2 mrad.
    """
    angles = TURN * np.arange(1000) / 1000
    inside = np.mod(angles - low + 0.01, TURN) <= high - low + 0.02  # the table is interpolated between its points
    error = MapSettings(values=tuple(np.where(inside, 0.0, 2e-3).tolist()))
    settings = TransmissionSettings(error, MapSettings(values=(0.0,) * 4), reach=0.03)
    values = (value_of("offset", "rad", 0.0, 1e-6),)
    ranges = {"theta": (low, high)}
    return model.with_part(Part("transmission", "table", values, 99.0, settings=settings.to_dict(), ranges=ranges))


@cache
def moves(
    duration: float = 10.0,
    seed: int = 0,
    stiffness: float = 0.0,
    friction: float = 0.0,
    without: tuple[str, ...] = SIMPLE,
) -> tuple[Log, DigitalRobot]:
    """Return the log of random moves of the base of a UR5e with changed stiffness and friction, and the new arm."""
    arm = jointwise.load_robot("ur5e")
    experiment = make_experiment("bang-coast-bang", arm, duration, seed, joint=0)
    new = digital_robot(arm, gravity=experiment.gravity).without(*without)
    aged = new.aged(friction=friction, stiffness=stiffness)
    return log_of(run_experiment(aged, experiment), aged, Sensors(rate=RATE, seed=seed)), new
