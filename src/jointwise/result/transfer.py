"""A calibration in another situation: with another payload, or mounted in another direction.

Base parameters are linear in the standard ones, ``β = P π``. A payload adds ten known numbers to the last link, so
``β' = β + P Δπ`` holds exactly. Another gravity has other base parameters, ``β' = P' π``: they follow from β where the
null space of P is in that of P', otherwise gravity shows parameters that the training data did not determine; they are
then those of the physically consistent bodies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jointwise.arguments import checked
from jointwise.data.coordinates import gravity_text
from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload
from jointwise.errors import ModelError
from jointwise.estimation.physical import PhysicalParameters
from jointwise.model.base import null_space
from jointwise.model.dynamics import Dynamics
from jointwise.result.calibration import Calibration, Estimate, Status
from jointwise.result.provenance import payload_numbers
from jointwise.spatial import Array, Mask, pseudo_inertia

UNKNOWN = 1e-7
"""Entry of P' times the null space of P (unit vectors) above which a base parameter is not determined."""


def refuse_unknown_scale(calibration: Calibration, what: str) -> None:
    """Reject a calibration with an unknown scale of the drive gains for what needs masses in kg or torques in Nm.

    Raises:
        ModelError: Only ratios of the drive gains are known.

    """
    if not calibration.scale_known:
        raise ModelError(
            f"{what} needs the scale of the drive gains, which this model does not have. Calibrate with --gains, or "
            "with a description that has masses or drive gains."
        )


@checked
def with_payload(calibration: Calibration, payload: Payload | None) -> Calibration:
    """Return a calibration with a payload in place of the one that its parameters include.

    The covariance stays: the payload is taken as exact. Validations are dropped, as they are of another arm.

    Args:
        calibration: The calibrated model.
        payload: The payload at the tool; None for none.

    Returns:
        The calibration of the loaded arm.

    Raises:
        ModelError: The scale of the drive gains is unknown, and a mass in kg cannot be added to relative parameters.

    """
    if payload is not None:
        refuse_unknown_scale(calibration, "a payload in kg")
    before, robot = calibration.provenance.carried, calibration.model.robot
    change = calibration.model.payload_values(payload, before)
    after, less = (np.zeros(10) if each is None else each.inertial_at_last_link(robot) for each in (payload, before))
    return replace(
        calibration,
        estimate=replace(calibration.estimate, values=calibration.estimate.values + change),
        physical=_loaded_bodies(calibration.physical, after - less, change),
        provenance=replace(calibration.provenance, payload=payload_numbers(payload)),
        validation=(),
    )


@checked
def with_mounting(calibration: Calibration, mounting: Mounting) -> Calibration:
    """Return a calibration under another gravity.

    Args:
        calibration: The calibrated model.
        mounting: Mounting of the base, or gravity in the base frame, m/s².

    Returns:
        The calibration with the base parameters of that gravity. Those that the training data did not determine are
        those of the physically consistent bodies, with the status `undetermined`.

    Raises:
        ModelError: That gravity shows body parameters that the training data did not determine, and the calibration has
            no physical parameters.

    """
    gravity = gravity_vector(mounting)
    if np.array_equal(gravity, calibration.model.gravity):
        return calibration
    x, y, z = gravity.tolist()
    moved = replace(calibration.model, gravity=(x, y, z))
    if calibration.physical is None:
        _refuse_unknown(calibration.model, moved)
    named = mounting if isinstance(mounting, str) else gravity_text(gravity)
    return replace(
        calibration,
        model=moved,
        estimate=_moved_estimate(calibration, moved),
        physical=_moved_bodies(calibration, moved),
        provenance=replace(calibration.provenance, mounting=named),
        validation=(),
    )


def standard_parameters(calibration: Calibration) -> Array:
    """Return standard parameters with the base parameters of a calibration: ten a link, then the rotor inertias.

    Of all such sets it is the one closest to the physically consistent bodies, or without them one that puts every base
    parameter on the body that heads it. Rotor inertias are zero where the model has none.
    """
    model, physical = calibration.model, calibration.physical
    prior = None if physical is None else _standard_vector(model, physical)
    bodies = model.base.to_standard(calibration.estimate.values[: model.base.count], prior)
    return bodies if model.rotors else np.concatenate([bodies, np.zeros(model.robot.dof)])


def _standard_vector(model: Dynamics, physical: PhysicalParameters) -> Array:
    """Return the physically consistent parameters in the order of the base parameters of a model."""
    rotors = [physical.rotor_inertias] if model.rotors else []
    return np.concatenate([physical.inertials.ravel(), *rotors])


def _loaded_bodies(physical: PhysicalParameters | None, body: Array, change: Array) -> PhysicalParameters | None:
    """Return consistent bodies with ten parameters added to the last link; None if what remains cannot exist."""
    if physical is None:
        return None
    inertials = physical.inertials.copy()
    inertials[-1] += body
    if np.linalg.eigvalsh(pseudo_inertia(inertials[-1]))[0] <= 0.0:
        return None
    masses = physical.described_masses.copy()
    masses[-1:] += body[9]
    return replace(physical, inertials=inertials, values=physical.values + change, described_masses=masses)


def _moved_bodies(calibration: Calibration, moved: Dynamics) -> PhysicalParameters | None:
    """Return the consistent bodies with the base parameters of another gravity."""
    physical = calibration.physical
    if physical is None:
        return None
    bodies = moved.base.from_standard(_standard_vector(moved, physical))
    return replace(physical, values=np.concatenate([bodies, physical.values[calibration.model.base.count :]]))


def unknown_parameters(known: Dynamics, moved: Dynamics) -> tuple[str, ...]:
    """Return the base parameters of a model that those of the same arm under another gravity do not determine."""
    mixed = np.abs(moved.base.projection @ null_space(known.base.projection)).max(axis=1, initial=0.0)
    return tuple(name for name, size in zip(moved.base.names, mixed, strict=True) if size > UNKNOWN)


def _refuse_unknown(known: Dynamics, moved: Dynamics) -> None:
    if unknown := unknown_parameters(known, moved):
        raise ModelError(
            f"calibrated under gravity {gravity_text(known.gravity)} m/s^2, the model does not determine "
            f"{', '.join(unknown)}, which act under {gravity_text(moved.gravity)}. Calibrate with physical parameters "
            "(known gains, without --no-physical), or a log of that mounting."
        )


def _moved_estimate(calibration: Calibration, moved: Dynamics) -> Estimate:
    """Return ``β' = P' π`` of standard parameters π with ``β = P π``, and the covariance of ``P' L β``, L the lift."""
    old, known = calibration.estimate, calibration.model.base
    joints = calibration.model.count - known.count
    T = np.zeros((moved.base.count + joints, calibration.model.count))
    T[: moved.base.count, : known.count] = moved.base.projection @ known.lift
    T[moved.base.count :, known.count :] = np.eye(joints)
    values, covariance = T @ old.values, T @ old.covariance @ T.T
    standard = standard_parameters(calibration)[: len(known.standard_names)]
    values[: moved.base.count] = moved.base.from_standard(standard)
    unknown = np.isin(moved.base.names, unknown_parameters(calibration.model, moved))
    bodies = _body_status(T[: moved.base.count, : known.count], values, covariance, old, unknown)
    return replace(old, values=values, covariance=covariance, status=(*bodies, *old.status[known.count :]))


def _body_status(T: Array, values: Array, covariance: Array, old: Estimate, unknown: Mask) -> tuple[Status, ...]:
    """Return the status of moved base parameters: undetermined if unknown or if a part is, else by interval."""
    undetermined = np.array([status == "undetermined" for status in old.status[: T.shape[1]]])
    lost = unknown | ((np.abs(T) > UNKNOWN) @ undetermined)
    significant = np.abs(values[: len(T)]) > old.factor * np.sqrt(np.diag(covariance)[: len(T)])
    return tuple(
        "undetermined" if gone else "determined" if sure else "weak"
        for gone, sure in zip(lost, significant, strict=True)
    )
