"""Drive gains from a known payload: the same motion without and with it, the difference of the currents.

``i_with - i_without = g_j (m a_j + B_j x + Δ_j) + friction``, ``g_j = 1/K_j``. The mass m is known and sets the scale;
first moments and inertia x of the payload are estimated with the gains, as every joint moves the same body. Δ is the
torque of the described links for the slightly different motion. Friction changes between the runs by an offset, a
Coulomb and a viscous part (the joints warm up), and with the load.

References:
    Gautier, Briot: Global identification of joint drive gains and dynamic parameters of robots, ASME J. Dynamic
    Systems, Measurement, and Control 136(5), 2014.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.description.transmission import refuse_coupled
from jointwise.errors import EstimationError
from jointwise.estimation.cross_validation import SIGNIFICANT, exceeds, first_or_best
from jointwise.estimation.jackknife import jackknife, student_factor
from jointwise.joint.curve import Curve, make_curve, slope_curve
from jointwise.joint.motor.data import PayloadData, aligned_pairs, payload_data
from jointwise.joint.motor.fit import ASYMMETRIC, GainFit, Products, body_scales, fit_payload, solve
from jointwise.joint.motor.result import JointGain, RobotGains, gain_status, inverse_value, same_drives
from jointwise.joint.part import TriedModel, percent_off
from jointwise.model.terms import LOAD_POWERS
from jointwise.spatial import Array

LAWS = ("none", *LOAD_POWERS)
"""Growth of friction with the load, the simplest law first."""


def identify_gains_from_payload(
    unloaded: Log | Sequence[Log],
    loaded: Log | Sequence[Log],
    robot: Robot,
    payload_mass: float | None,
    *,
    mounting: Mounting = "table",
    law: str | None = None,
) -> RobotGains:
    """Return the drive gains (Nm/A) of all joints from pairs of logs of the same motion.

    Args:
        unloaded: One or more logs without payload.
        loaded: As many logs of the same motions with the payload.
        robot: The robot.
        payload_mass: Mass of the payload, kg.
        mounting: Mounting of the robot.
        law: Growth of friction with the load, "none", "absolute" or "square"; None for the best on held-out data.

    Raises:
        EstimationError: Where the logs do not show the payload.
    """
    if payload_mass is None or not (np.isfinite(payload_mass) and payload_mass > 0.0):
        raise EstimationError(
            f"the payload's mass must be a positive number of kg: weigh it. Got {payload_mass} instead."
        )
    if law is not None and law not in LAWS:
        raise EstimationError(f"law must be one of {', '.join(LAWS)}. Got '{law}' instead.")
    refuse_coupled(robot, "the identification of gains by a payload")
    pairs = aligned_pairs(unloaded, loaded, robot)
    data = payload_data(pairs, robot, float(payload_mass), gravity_vector(mounting))
    fits = {name: fit_payload(data, name) for name in (LAWS if law is None else (law,))}
    best = fits[first_or_best({name: fit.errors for name, fit in fits.items()})]
    return _estimate(data, robot, fits, best, _rivals(data, fits, best))


def _rivals(data: PayloadData, fits: dict[str, GainFit], best: GainFit) -> list[GainFit]:
    """Return the fits under other laws whose held-out errors do not exceed those of the best one significantly."""
    others = [fit for fit in fits.values() if fit is not best]
    if best.law != "none":
        others.append(fit_payload(data, best.law + ASYMMETRIC, best))
    return [fit for fit in others if not exceeds(fit.errors - best.errors, SIGNIFICANT)]


def _estimate(
    data: PayloadData, robot: Robot, fits: dict[str, GainFit], fit: GainFit, rivals: list[GainFit]
) -> RobotGains:
    drives = same_drives(robot)
    groups = np.array([next(k for k, joints in enumerate(drives) if j in joints) for j in range(data.joints)])
    alone, shared = (_with_errors(data, fit, rivals, numbers) for numbers in (np.arange(data.joints), groups))
    factor = student_factor(data.blocks - 1)
    joints = []
    for j in range(data.joints):
        joint = _joint_gain(data, fits, fit, j, (float(alone[0][j]), float(alone[1][j])), factor)
        if len(drives[groups[j]]) > 1:
            joint = replace(joint, shared=inverse_value("gain", "Nm/A", shared[0][j], shared[1][j], factor))
        joints.append(replace(joint, notes=_notes(robot, joint, drives[groups[j]])))
    if all(joint.status != "determined" for joint in joints):
        raise EstimationError(
            f"{', '.join(data.names)}: the difference of the currents does not follow a payload of {data.mass:g} kg; "
            f"no gain is fitted. Record the same motion without and with the payload: "
            f"jointwise joint plan --robot {shlex.quote(robot.name)} --joint 1"
        )
    return RobotGains(robot.name, "payload", tuple(joints), _settings(data, fit), data.names)


def _joint_gain(
    data: PayloadData, fits: dict[str, GainFit], fit: GainFit, j: int, inverse: tuple[float, float], factor: float
) -> JointGain:
    """Return the gain of one joint from 1/K with its standard error."""
    gain = inverse_value("gain", "Nm/A", *inverse, factor)
    return JointGain(
        joint=j,
        alone=gain,
        status=gain_status(gain, float(fit.held_out[j])),
        fitted=float(fit.fitted[j]),
        held_out=float(fit.held_out[j]),
        model=f"gain from a payload of {data.mass:g} kg, load-dependent friction: {fit.law}",
        alternatives=tuple(
            TriedModel(f"friction over load: {name}", float(other.fitted[j]), float(other.held_out[j]))
            for name, other in fits.items()
        ),
        curves=_curves(data, fit, j, inverse[1] * factor) if gain else (),
    )


def _with_errors(
    data: PayloadData, fit: GainFit, rivals: list[GainFit], groups: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return 1/K (joints,), shared within groups, and its standard error: jackknife, and laws that are as likely."""

    def inverse_gains(one: GainFit, gram: Array) -> Array:
        means = np.array([one.solution.gains[groups == group].mean() for group in groups])
        start = replace(one.solution, gains=means)
        return solve(Products(gram, groups, body_scales(data.mass)), one.weights, start).gains

    inverse, error = jackknife(lambda gram: inverse_gains(fit, gram), fit.grams)
    others = [inverse_gains(rival, rival.grams.sum(axis=0)) for rival in rivals]
    law_error = np.max([np.zeros(data.joints), *(np.abs(other - inverse) for other in others)], axis=0)
    return inverse, np.hypot(error, law_error)


def _settings(data: PayloadData, fit: GainFit) -> dict[str, object]:
    """Return the results beside the gains: the payload in the frame of the last joint, and the load law."""

    def body(gram: Array) -> Array:
        return solve(Products(gram, np.arange(data.joints), body_scales(data.mass)), fit.weights, fit.solution).body

    moments, errors = (values[-3:] for values in jackknife(body, fit.grams))
    return {
        "payload_mass": data.mass,
        "payload_center": (moments / data.mass).tolist(),
        "payload_center_deviation": (errors / data.mass).tolist(),
        "load_law": fit.law,
        "blocks": data.blocks,
    }


def _notes(robot: Robot, joint: JointGain, alike: tuple[int, ...]) -> tuple[str, ...]:
    notes: list[str] = []
    described = robot.joints[joint.joint].motor.joint_gain
    if joint.status == "not determined":
        notes.append("the payload loads this joint too little in this motion")
    elif joint.status == "hardly determined":
        notes.append(
            f"hardly determined: the payload loads this joint little; {joint.held_out or 0.0:.0f} % of the difference "
            "is explained, and a change of friction between the runs may be part of the gain"
        )
    if joint.gain is not None and described:
        notes.append(f"described gain {described:g} Nm/A: {percent_off(joint.gain.value, described):+.1f} %")
    if joint.shared is not None:
        names = ", ".join(str(k + 1) for k in alike)
        notes.append(f"one gain for joints {names}, which are described with the same drive; gain_alone is of this one")
    return tuple(notes)


def _curves(data: PayloadData, fit: GainFit, j: int, half: float) -> tuple[Curve, ...]:
    """Return the current over the torque of the payload, and the difference of the currents along the motion."""
    used, inverse = data.used[:, j], float(fit.solution.gains[j])
    residual = data.difference[used, j] - fit.modelled[used, j]
    order = np.argsort(fit.payload[used, j], kind="stable")
    torque, scatter = fit.payload[used, j][order], residual[order]
    over_torque = slope_curve(
        (
            "Current of the payload over its torque",
            "torque of the payload [Nm]",
            "difference of the currents without friction [A]",
        ),
        (torque, inverse * torque + scatter),
        inverse,
        (inverse - half, inverse + half),
        residual=scatter,
    )
    sample = np.flatnonzero(used).astype(float)
    along = make_curve(
        ("Difference of the currents along the motion", "sample", "loaded - unloaded [A]"),
        (sample, data.difference[used, j]),
        (sample, fit.modelled[used, j]),
        residual=residual,
    )
    return over_torque, along
