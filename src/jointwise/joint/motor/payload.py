"""Drive gains from a known payload: the same motion without and with it, the difference of the currents.

``i_with - i_without = g_j (m a_j + B_j x + Δ_j) + friction``, g_j = 1/K_j. The mass m is known and sets the scale;
first moments and inertia x of the payload are estimated with the gains, as every joint sees the same body. Δ is what
the described links ask for the slightly different motion. Friction changes between the runs: by an offset, a Coulomb
and a viscous part (the joints get warmer) and by the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jointwise.data.log import Log
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Robot
from jointwise.errors import EstimationError
from jointwise.joint.jackknife import half_width, jackknife
from jointwise.joint.motor.bilinear import Products, solve
from jointwise.joint.motor.gain import GainEstimate, JointGain, inverse_value, same_drives, status_of
from jointwise.joint.motor.pair import CUTOFF
from jointwise.joint.motor.payload_data import PairData, aligned_pairs, pair_data
from jointwise.joint.motor.payload_fit import ASYMMETRIC, PayloadFit, body_scales, fit_payload
from jointwise.joint.part import Alternative, Curve, plain, value_of
from jointwise.spatial import Array

LAWS = ("none", "absolute", "square")
"""How friction may grow with the load; the best on blocks left out is taken, none where it does as well."""
ALIKE = 0.1
"""Mean of ln(MSE) over the joints by which a law may be worse than the best one and still be as likely."""
WORTH = 0.01
"""Mean of ln(MSE) over the joints by which friction without load may be worse and is taken."""


def identify_gains_from_payload(
    unloaded: Log | Sequence[Log],
    loaded: Log | Sequence[Log],
    robot: Robot,
    payload_mass: float | None,
    *,
    mounting: Mounting = "table",
    cutoff: float = CUTOFF,
    law: str | None = None,
) -> GainEstimate:
    """Return the drive gains (Nm/A) of all joints from pairs of logs of the same motion.

    The k-th `loaded` log repeats the k-th `unloaded` one with the same payload of `payload_mass` (kg). `law` fixes how
    friction grows with the load (none, absolute, square); without it the best on blocks left out is taken.
    """
    mass = _checked_mass(payload_mass)
    if law is not None and law not in LAWS:
        raise EstimationError(f"law must be one of {', '.join(LAWS)}. Got '{law}' instead.")
    data = pair_data(aligned_pairs(unloaded, loaded, robot, cutoff), robot, mass, gravity_vector(mounting))
    tried = {name: fit_payload(data, name) for name in (LAWS if law is None else (law,))}
    best = min(tried.values(), key=lambda fit: fit.error)
    if "none" in tried and tried["none"].error <= best.error + WORTH:
        best = tried["none"]
    doubts = [] if best.law == "none" else [fit_payload(data, best.law + ASYMMETRIC, best)]
    rivals = [fit for fit in (*tried.values(), *doubts) if fit is not best and fit.error < best.error + ALIKE]
    return _estimate(data, robot, tried, best, rivals)


def _checked_mass(mass: float | None) -> float:
    if mass is None or not (np.isfinite(mass) and mass > 0.0):
        raise EstimationError(f"the payload's mass must be a positive number of kg: weigh it. Got {mass} instead.")
    return float(mass)


def _estimate(
    data: PairData, robot: Robot, tried: dict[str, PayloadFit], fit: PayloadFit, rivals: list[PayloadFit]
) -> GainEstimate:
    factor = half_width(data.blocks)
    alone = np.arange(data.joints)
    inverse, spread = _with_deviations(data, fit, rivals, alone)
    drives = same_drives(robot)
    groups = np.array([next(k for k, own in enumerate(drives) if j in own) for j in alone])
    shared, shared_spread = _with_deviations(data, fit, rivals, groups)
    joints = []
    for j in range(data.joints):
        gain = inverse_value("gain", "Nm/A", inverse[j], spread[j], factor)
        own = JointGain(
            joint=j,
            alone=gain,
            status=status_of(gain, float(fit.held_out[j])),
            fitted=float(fit.fitted[j]),
            held_out=float(fit.held_out[j]),
            model=f"gain from a payload of {data.mass:g} kg, load-dependent friction: {fit.law}",
            alternatives=tuple(
                Alternative(f"friction over load: {name}", float(f.fitted[j]), float(f.held_out[j]))
                for name, f in tried.items()
            ),
            curves=_curves(data, fit, j, spread[j] * factor) if gain else (),
        )
        if len(drives[groups[j]]) > 1:
            own = replace(own, shared=inverse_value("gain", "Nm/A", shared[j], shared_spread[j], factor))
        joints.append(replace(own, notes=_notes(robot, own, drives[groups[j]])))
    if all(own.status != "determined" for own in joints):
        raise EstimationError(
            f"{', '.join(data.names)}: the difference of the currents does not follow a payload of {data.mass:g} kg; "
            f"no gain is fitted. Record the same motion without and with the payload: "
            f"jointwise joint plan --robot {robot.name} --joint 1"
        )
    return GainEstimate(robot.name, "payload", tuple(joints), _settings(data, fit), data.names)


def _with_deviations(
    data: PairData, fit: PayloadFit, rivals: list[PayloadFit], groups: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return 1/K (joints,), shared within groups, and its deviation: of blocks left out, and of laws as likely."""

    def gains_of(own: PayloadFit, gram: Array) -> Array:
        start = replace(own.solution, gains=_group_means(own.solution.gains, groups))
        return solve(Products(gram, groups, body_scales(data.mass)), own.weights, start).gains

    inverse, spread = jackknife(lambda gram: gains_of(fit, gram), fit.parts)
    others = [gains_of(own, own.parts.sum(axis=0)) for own in rivals]
    structure = np.max([np.zeros(data.joints), *(np.abs(own - inverse) for own in others)], axis=0)
    return inverse, np.hypot(spread, structure)


def _group_means(gains: Array, groups: NDArray[np.intp]) -> Array:
    return np.array([gains[groups == own].mean() for own in groups])


def _settings(data: PairData, fit: PayloadFit) -> dict[str, object]:
    """Return what was found beside the gains: the payload in the frame of the last joint, friction per unit of load."""

    def body_of(gram: Array) -> Array:
        return solve(Products(gram, np.arange(data.joints), body_scales(data.mass)), fit.weights, fit.solution).body

    body, spread = jackknife(body_of, fit.parts)
    center = [value_of("center", "m", body[6 + k] / data.mass, spread[6 + k] / data.mass) for k in range(3)]
    return {
        "payload_mass": data.mass,
        "payload_center": [own.value for own in center],
        "payload_center_deviation": [own.deviation for own in center],
        "load_law": fit.law,
        "blocks": data.blocks,
    }


def _notes(robot: Robot, own: JointGain, alike: tuple[int, ...]) -> tuple[str, ...]:
    notes: list[str] = []
    described = robot.joints[own.joint].motor.joint_gain
    if own.status == "not determined":
        notes.append("the payload loads this joint too little in this motion")
    elif own.status == "hardly determined":
        notes.append(
            f"hardly determined: the payload loads this joint little; {own.held_out or 0.0:.0f} % of the difference is "
            f"explained, and what friction did between the runs may hide in the gain"
        )
    if own.gain is not None and described:
        notes.append(f"described gain {described:g} Nm/A: {100.0 * (own.gain.value / described - 1.0):+.1f} %")
    if own.shared is not None:
        names = ", ".join(str(k + 1) for k in alike)
        notes.append(f"one gain for joints {names}, which are described with the same drive; gain_alone is of this one")
    return tuple(notes)


def _curves(data: PairData, fit: PayloadFit, j: int, half: float) -> tuple[Curve, ...]:
    """Return the current that the payload takes over the torque it asks, and the difference along the motion."""
    used = data.used[:, j]
    torque, inverse = fit.payload[used, j], fit.solution.gains[j]
    residual = data.difference[used, j] - fit.modelled[used, j]
    line = np.linspace(torque.min(), torque.max(), 50)
    order = np.argsort(torque, kind="stable")
    over_torque = Curve(
        title="Current of the payload over its torque",
        x_label="torque of the payload [Nm]",
        y_label="difference of the currents without friction [A]",
        x=plain(torque[order]),
        y=plain((inverse * torque + residual)[order]),
        line_x=plain(line),
        line_y=plain(inverse * line),
        low=plain(inverse * line - half * np.abs(line)),
        high=plain(inverse * line + half * np.abs(line)),
        residual=plain(residual[order]),
    )
    place = np.flatnonzero(used).astype(float)
    along = Curve(
        title="Difference of the currents along the motion",
        x_label="sample",
        y_label="loaded - unloaded [A]",
        x=plain(place),
        y=plain(data.difference[used, j]),
        line_x=plain(place),
        line_y=plain(fit.modelled[used, j]),
        residual=plain(residual),
    )
    return over_torque, along
