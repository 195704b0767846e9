"""Identification of the stiffness of a gear, from a locked output or from free motion with two encoders."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from jointwise.estimation.cross_validation import held_out_predictions, simplest_candidate, unit_errors, unit_folds
from jointwise.estimation.jackknife import standard_error
from jointwise.joint.checks import check_gravity, refuse
from jointwise.joint.part import Part, TriedModel
from jointwise.joint.quality import MIN_QUALITY, TINY, nrmse_percent, tried_model
from jointwise.joint.record import JointRecord
from jointwise.joint.stiffness.data import StiffnessRows, kind_of, stiffness_rows
from jointwise.joint.stiffness.fit import SpringFit, fit_spring, linear_motion
from jointwise.joint.stiffness.law import CATALOGUE, PolynomialSpring, SegmentedSpring, SpringFamily
from jointwise.joint.stiffness.result import StiffnessResult, stiffness_part
from jointwise.joint.transmission.law import GearMaps, transmission_of
from jointwise.model.spring import Spring
from jointwise.spatial import Array

TERMS = (1, 2, 3)
"""Terms of the odd polynomials that are fitted."""
REACHES = (0.005, 0.015, 0.03, 0.06)
"""Travels (rad) over which unknown lost motion may build up."""
MAX_RELATIVE_ERROR = 0.25
"""Relative standard error of the stiffness at rest above which nothing is known."""


def identify_stiffness(record: JointRecord, *, transmission: Part | None = None) -> Part:
    """Identify the spring of a gear, as `jointwise joint stiffness` does: an odd polynomial, and three segments.

    With a locked output the torque is that of a gauge, of the current (without the rotor friction, which is fitted as
    slip elements) or both; in free motion it follows from the inverse dynamics of the links. Damping is estimated where
    a gauge or free motion shows it.

    Args:
        record: Signals of the joint with rotor positions, see `joint_record`.
        transmission: Part from `identify_transmission`; its kinematic error and lost motion are subtracted from the
            deformation. Without it, the two lowest orders and lost motion are fitted in free motion.

    Returns:
        The phenomenon "stiffness".

    Raises:
        EstimationError: If the record does not determine a stiffness.
    """
    check_gravity(record)
    maps = _known_maps(record, transmission)
    every = _rows(record, maps)
    rows = every.reduced()
    training, test = rows.take(~rows.held_out), every.take(every.held_out)
    family = _choose_terms(training)
    trained = fit_spring(family, training)
    quality = trained.undamped.quality(test)  # damping alone can follow a torque of another time
    if not quality >= MIN_QUALITY:
        reason = f"the torque does not follow the deformation (fit {quality:.0f} % on data held out)"
        raise refuse(record, "stiffness", reason)
    fit = fit_spring(family, rows)
    _check_certain(record, fit, rows)
    result = StiffnessResult(
        rows=every,
        fit=fit,
        segments=fit_spring(SegmentedSpring(), rows),
        maps=maps,
        is_gear_unseen=transmission is not None and maps is None,
    )
    return stiffness_part(record, result, trained.quality(test), _alternatives(training, test))


def _known_maps(record: JointRecord, transmission: Part | None) -> GearMaps | None:
    """Return the maps of a transmission part if they are known at the angles of the record."""
    maps = None if transmission is None else transmission_of(transmission)
    return maps if maps is None or record.theta is None or maps.knows(record.theta) else None


def _rows(record: JointRecord, maps: GearMaps | None) -> StiffnessRows:
    """Return the rows; in free motion with an unknown gear those with the best reach of lost motion."""
    if kind_of(record) == "locked" or maps is not None:
        return stiffness_rows(record, maps)

    def residual(rows: StiffnessRows) -> float:
        reduced = rows.reduced()
        return linear_motion(reduced.take(~reduced.held_out), 1.0)[1]

    return min((stiffness_rows(record, None, reach) for reach in REACHES), key=residual)


def _choose_terms(training: StiffnessRows) -> PolynomialSpring:
    """Return the polynomial chosen by the one-standard-error rule on held-out blocks; a gear does not soften."""
    springs = [PolynomialSpring(terms) for terms in TERMS]
    stiffening = [spring for spring in springs if spring.terms == 1 or _stiffens(fit_spring(spring, training))]
    return simplest_candidate({spring: _held_out_errors(spring, training) for spring in stiffening})


def _stiffens(fit: SpringFit) -> bool:
    """Return whether a gear is stiffer at the largest deformation than at rest."""
    at_rest, at_end = fit.stiffness(fit.values, np.array([0.0, fit.largest]))
    return bool(at_end > at_rest)


def _held_out_errors(family: SpringFamily, rows: StiffnessRows) -> Array:
    """Return the squared error of every block, predicted from the other folds; channels over their variance."""

    def predict(training: NDArray[np.bool_]) -> Array:
        return np.column_stack(list(fit_spring(family, rows.take(training)).predicted(rows).values()))

    measured = np.column_stack(list(rows.torques.values()))
    residual = (measured - held_out_predictions(unit_folds(rows.block), predict)) / measured.std(axis=0)
    return unit_errors(np.linalg.norm(residual, axis=1), rows.block)


def _check_certain(record: JointRecord, fit: SpringFit, rows: StiffnessRows) -> None:
    """Raise if the stiffness at rest is not positive or too uncertain."""
    slope = float(fit.stiffness(fit.values, np.zeros(1))[0])
    error = float(standard_error(np.array([fit.stiffness(x, np.zeros(1))[0] for x in fit.replicates])))
    if slope <= 0.0 or error > MAX_RELATIVE_ERROR * slope:
        size = max(float(np.ptp(torque)) for torque in rows.torques.values())
        relative = error / max(abs(slope), TINY)
        reason = f"the load varies by {size:.2g} Nm only, so the stiffness has a standard error of {relative:.0%}"
        raise refuse(record, "stiffness", reason)


def _alternatives(training: StiffnessRows, test: StiffnessRows) -> tuple[TriedModel, ...]:
    """Return every law fitted to the training blocks and tested on the others, and springs from catalogues."""
    families: list[SpringFamily] = [*(PolynomialSpring(p) for p in TERMS), SegmentedSpring()]
    fits = {family.title: fit_spring(family, training) for family in families}
    found = [tried_model(title, fit.quality, training, test) for title, fit in fits.items()]
    cubic = fits[PolynomialSpring(2).title]
    for name, gear in CATALOGUE.items():
        quality = partial(_catalogue_quality, gear, cubic)
        found.append(tried_model(f"segments, {name}", quality, training, test, "values of the catalogue"))
    if "motor" in training.torques:
        note = "motor torque taken as the torque of the gear"
        bare = training.without_slips, test.without_slips
        fit = fit_spring(PolynomialSpring(2), bare[0])
        found.append(tried_model("cubic, friction neglected", fit.quality, *bare, note))
    return tuple(found)


def _catalogue_quality(gear: Spring, cubic: SpringFit, rows: StiffnessRows) -> float:
    """Return the NRMSE % of a catalogue spring, with offset and friction of the fitted cubic."""
    predicted, phi = cubic.predicted(rows), cubic.deformation(rows)
    change = gear.torque(phi) - cubic.torque(cubic.values, phi)
    measured = np.concatenate([rows.torques[n] for n in rows.torques])
    return nrmse_percent(measured, np.concatenate([predicted[n] + change for n in rows.torques]))
