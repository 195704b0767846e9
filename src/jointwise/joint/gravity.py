"""Whether a log fits the gravity that it is read with: a forgotten mounting is seen before anything is fitted."""

from __future__ import annotations

import numpy as np

from jointwise.data.gravity import gravity_text
from jointwise.errors import EstimationError
from jointwise.joint.quality import rms
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

MOST = 4000
"""Samples that are judged, evenly spread."""
SLOWEST = 5e-3
"""Speed (rad/s) below which a joint is taken to stand."""
LEAST = 100
"""Samples in motion that are needed to judge."""
SEEN = 0.2
"""Part of the strongest pull from which a direction of gravity counts as seen."""
OTHER = 0.4
"""Part of gravity that must point elsewhere before a log is said not to fit."""
SCALES = (0.5, 1.5)
"""Factors of the modelled load that a wrong gain, payload or body explains: they say nothing about gravity."""
BETTER = 0.5
"""Part of the error that another gravity must leave at most."""


def refuse_unfit_gravity(record: JointRecord) -> None:
    """Refuse a record whose torque asks for a gravity that points elsewhere than the given one.

    ``motor - B θ̈ - inertial load = P g + F_C sgn ω + F_V ω``: P (samples, 3) is the pull of a gravity along each axis
    of the base. g is estimated where P is strong against friction, and compared with the given one but for a factor.
    Joints that stand, or that gravity hardly loads, cannot tell and pass.
    """
    if record.pull is None or record.gravity is None or record.unit != "Nm":
        return
    given = np.array(record.gravity)
    found = _fitting_gravity(record, record.pull, given)
    if found is None:
        return
    fitting, seen = found
    if float(np.linalg.norm(fitting - _scale(fitting, seen) * seen)) > OTHER * float(np.linalg.norm(given)):
        raise EstimationError(
            f"{record.place}: the log does not fit gravity along {gravity_text(given)}: give --gravity or --mounting "
            "(or --payload, if it carried one)."
        )


def _scale(fitting: Array, seen: Array) -> float:
    size = float(seen @ seen)
    return float(np.clip(fitting @ seen / size, *SCALES)) if size > 0.0 else 0.0


def _fitting_gravity(record: JointRecord, pull: Array, given: Array) -> tuple[Array, Array] | None:
    """Return the gravity (3,) that fits best and what can be seen of the given one; None where none is told."""
    moving = np.abs(record.speed) > max(SLOWEST, 0.02 * float(np.abs(record.speed).max()))
    rows = np.flatnonzero(moving)[:: max(1, int(moving.sum()) // MOST)]
    if len(rows) < LEAST or not np.linalg.norm(given) > 0.0:
        return None
    torque = (record.motor - record.inertia * record.acceleration - record.load)[rows] + pull[rows] @ given
    friction = np.column_stack([np.sign(record.speed), record.speed])[rows]
    split = np.linalg.lstsq(friction, np.column_stack([pull[rows], torque]), rcond=None)[0]
    rest = np.column_stack([pull[rows], torque]) - friction @ split
    P, y = rest[:, :3], rest[:, 3]
    U, s, Vt = np.linalg.svd(P, full_matrices=False)
    strength = s / np.sqrt(len(rows)) * float(np.linalg.norm(given))
    kept = (s > SEEN * s[0]) & (strength > rms(friction @ split[:, 3]))
    if not kept.any():
        return None
    fitting = Vt[kept].T @ ((U[:, kept].T @ y) / s[kept])
    fitting *= min(1.0, float(np.linalg.norm(given)) / max(float(np.linalg.norm(fitting)), 1e-9))
    seen = Vt[kept].T @ (Vt[kept] @ given)
    return (fitting, seen) if rms(y - P @ fitting) < BETTER * rms(y - P @ seen) else None
