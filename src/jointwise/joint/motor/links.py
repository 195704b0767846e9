"""Gain, offset and friction of one joint from the known load of its links.

``i = (τ + F_v v + F_2 v|v| + friction(direction)) / K + i_0`` with the torque τ of links and rotor. The friction is one
of: Coulomb; T_dir where the motor drives the load (v τ_load > 0) and T_rev where the load drives the motor; or Coulomb
friction that grows with the load. An offset and Coulomb friction that differs with direction are the same current; it
is reported as an offset.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from jointwise.arguments import checked
from jointwise.errors import EstimationError, check_positive
from jointwise.estimation.cross_validation import held_out_predictions, simplest_candidate, unit_errors
from jointwise.estimation.gram import block_grams, gram_solution
from jointwise.estimation.jackknife import MIN_BLOCKS, block_count, equal_blocks, jackknife, student_factor
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.curve import Curve, slope_curve
from jointwise.joint.motor.data import REVERSAL_TIME
from jointwise.joint.motor.result import (
    GAIN_TOLERANCE,
    MASS_ERROR,
    RELATION,
    inverse_value,
    torque_constant,
)
from jointwise.joint.part import TINY, Part, TriedModel, Value, identified_part, nrmse_percent, percent_off, value_of
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import has_both
from jointwise.model.terms import (
    LOAD_POWERS,
    direction,
    load_growth,
    power_flow_columns,
    viscous_columns,
)
from jointwise.spatial import Array

LAWS = ("Coulomb", "power flow", "load")
"""Laws of friction, the simplest first."""
MIN_LOAD = 0.05
"""Smallest standard deviation of the load relative to that of the motor torque."""


@checked
def identify_motor(
    record: JointRecord, *, gear_ratio: float | None = None, friction: str | None = None, known: float | None = None
) -> Part:
    """Return gain (Nm/A), offset (A) and friction of a joint from its current and the known load of its links.

    The gain is as accurate as the described links, whose uncertainty its interval includes; a gain that does not depend
    on them follows from `identify_gains_from_payload`.

    Args:
        record: Record of one joint in motion under a load that varies.
        gear_ratio: Gear ratio, for the torque constant at the motor shaft.
        friction: "Coulomb", "power flow" or "load"; None for the simplest law within one standard error of the best on
            held-out data.
        known: Gain that is known (Nm/A). A large difference shows a payload that is not described.

    Raises:
        EstimationError: Where the record does not determine a gain, or the gain is far from the known one.
    """
    check_positive("Nm/A", known=known)
    if friction is not None and friction not in LAWS:
        raise EstimationError(f"friction must be one of {', '.join(LAWS)}. Got '{friction}' instead.")
    moving = _moving(record)
    if friction == "power flow":
        moving = moving.take(_certain_flow(moving))
    fits = {law: _LinkFit(moving, law) for law in _possible_laws(moving, friction)}
    best = simplest_candidate({law: fit.errors for law, fit in fits.items()})
    return _part(record, moving, fits, best, gear_ratio, known)


def _moving(record: JointRecord) -> JointRecord:
    """Return the samples in motion; raise an error where a record does not determine a gain."""
    if not record.has_current:
        raise refuse(record, "motor", "torque is measured, not current: there is no gain to identify")
    if not np.ptp(record.motor) > 0.0:
        raise refuse(record, "motor", "the current does not vary")
    check_record(record, "motor")
    if not record.is_sliding.any():
        raise refuse(record, "motor", "the joint does not move")
    moving = record.take(record.is_sliding)
    if not has_both(moving.speed > 0.0):
        raise refuse(record, "motor", "the joint moves in one direction only")
    if moving.load.std() < max(MIN_LOAD * moving.motor.std(), TINY):
        raise refuse(record, "motor", f"the load never varies ({moving.load.std():.3g} Nm rms)")
    return moving


def _certain_flow(moving: JointRecord) -> NDArray[np.bool_]:
    """Return which samples are not near a change of the power flow, which filters shift and friction follows late."""
    drives = moving.speed * moving.load > 0.0
    changes = np.diff(drives, prepend=drives[:1])
    certain: NDArray[np.bool_] = ~maximum_filter1d(changes, 2 * int(REVERSAL_TIME * moving.rate) + 1)
    if not certain.any():
        raise refuse(moving, "motor", "the power flow changes all the time")
    return certain


def _possible_laws(moving: JointRecord, friction: str | None) -> tuple[str, ...]:
    """Return the laws that the data can distinguish."""
    if friction is not None:
        return (friction,)
    return LAWS if has_both(moving.speed * moving.load > 0.0) else ("Coulomb",)


class _LinkFit:
    """Fit of one law to the samples in motion, linear in ``(1, F...)/K``."""

    def __init__(self, moving: JointRecord, law: str) -> None:
        self.current = moving.motor / moving.gain
        self.columns, self.names = _columns(moving, law)
        self.block = _blocks(moving)
        self.grams = block_grams(np.column_stack([self.columns, self.current]), self.block)
        self.found = gram_solution(self.grams.sum(axis=0))
        self.modelled: Array = self.columns @ self.found
        self.predicted = held_out_predictions(self.block, self._predict)
        self.errors = unit_errors(self.current - self.predicted, self.block)
        self.quality = nrmse_percent(self.current, self.modelled), nrmse_percent(self.current, self.predicted)

    def _predict(self, training: NDArray[np.bool_]) -> Array:
        """Return the current (samples,), A, of a fit to whole blocks of samples."""
        return self.columns @ gram_solution(self.grams[np.unique(self.block[training])].sum(axis=0))

    def physical(self) -> tuple[Array, Array]:
        """Return (1/K, offset, F...) in A/Nm, A and Nm, and their standard errors."""

        def parameters(gram: Array) -> Array:
            c = gram_solution(gram)
            return np.concatenate([c[:2], c[2:] / c[0]])

        return jackknife(parameters, self.grams)


def _columns(moving: JointRecord, law: str) -> tuple[Array, tuple[tuple[str, str], ...]]:
    """Return the columns torque, offset, friction and rotor, and names and units from friction on."""
    v, d = moving.speed, direction(moving.speed)
    torque = moving.load + moving.inertia * moving.acceleration
    laws: dict[str, tuple[list[Array], list[tuple[str, str]]]] = {
        "Coulomb": ([d], [("coulomb", "Nm")]),
        "power flow": ([power_flow_columns(v, moving.load)], [("direct", "Nm"), ("reverse", "Nm")]),
        "load": ([d, d * load_growth(moving.load, LOAD_POWERS["absolute"])], [("coulomb", "Nm"), ("load", "Nm/Nm")]),
    }
    dry, names = laws[law]
    columns = [torque, np.ones_like(v), *dry, viscous_columns(v, (1, 2))]
    names += [("viscous", "Nm s/rad"), ("square", "Nm s²/rad²")]
    if moving.inertia == 0.0:  # not described: estimated as well
        columns.append(moving.acceleration)
        names.append(("inertia", "kg m²"))
    return np.column_stack(columns), tuple(names)


def _blocks(moving: JointRecord) -> NDArray[np.intp]:
    count = block_count(moving.samples / moving.rate)
    if count < MIN_BLOCKS:
        raise refuse(moving, "motor", f"only {moving.samples / moving.rate:.3g} s of motion")
    return equal_blocks(moving.samples, count)


def _part(
    record: JointRecord,
    moving: JointRecord,
    fits: dict[str, _LinkFit],
    best: str,
    gear_ratio: float | None,
    known: float | None,
) -> Part:
    fit = fits[best]
    found, errors = fit.physical()
    factor = student_factor(len(fit.grams) - 1)
    if inverse_value("gain", "Nm/A", found[0], errors[0], factor) is None:
        raise refuse(record, "motor", "the current does not follow the load")
    scaled = np.array([True, False, *(unit != "Nm/Nm" for _, unit in fit.names)])  # not currents and ratios
    errors = np.hypot(errors, np.where(scaled, MASS_ERROR * np.abs(found), 0.0))
    gain = inverse_value("gain", "Nm/A", found[0], errors[0], factor)
    assert gain is not None
    if known is not None and abs(gain.value / known - 1.0) > GAIN_TOLERANCE:
        raise _too_far(record, gain.value, known)
    values: list[Value] = [gain, value_of("offset", "A", found[1], errors[1], factor)]
    rows = zip(fit.names, found[2:], errors[2:], strict=True)
    values += [value_of(name, unit, value, error, factor) for (name, unit), value, error in rows]
    if gear_ratio:
        values.append(torque_constant(gain, gear_ratio))
    return identified_part(
        record,
        "motor",
        model=f"gain from the load of the links, friction: {best}",
        values=tuple(values),
        fitted=fit.quality[0],
        held_out=fit.quality[1],
        settings={"method": "links", "friction": best, "gear_ratio": gear_ratio},
        ranges={"speed": np.abs(moving.speed), "load": moving.load},
        alternatives=tuple(TriedModel(f"friction: {law}", *other.quality) for law, other in fits.items()),
        curves=(_curve(fit, gain),),
        notes=_notes(gain, known),
    )


def _too_far(record: JointRecord, gain: float, known: float) -> EstimationError:
    """Return the error of a gain that the uncertainty of the described links does not explain."""
    off = f"{percent_off(gain, known):+.0f} % off the known {known:.4g}"
    return EstimationError(
        f"{record.place}: the load of the links leads to a gain of {gain:.4g} Nm/A, {off}; motor is not fitted. Give "
        "the payload if it carried one (--payload KG,X,Y,Z), or the gain if it is wrong (--gain); a pair of logs "
        "without and with a weighed payload determines it (--loaded)."
    )


def _notes(gain: Value, known: float | None) -> tuple[str, ...]:
    notes = [
        "the gain is as accurate as the described masses, whose standard error is taken as "
        f"{100.0 * MASS_ERROR:g} %; later commands keep a described gain (--gain sets this one)"
    ]
    if known is not None:
        notes.append(f"known gain {known:g} Nm/A: {percent_off(gain.value, known):+.1f} %")
    notes.append("an offset and Coulomb friction that differs with direction are the same current")
    return (*notes, RELATION)


def _curve(fit: _LinkFit, gain: Value) -> Curve:
    """Return the current without friction over the torque of links and rotor."""
    labels = ("Current over the torque of links and rotor", "torque [Nm]", "current without friction [A]")
    order, slope = np.argsort(fit.columns[:, 0], kind="stable"), float(fit.found[0])
    torque, residual = fit.columns[order, 0], (fit.current - fit.modelled)[order]
    return slope_curve(
        labels, (torque, torque * slope + residual), slope, (1.0 / gain.low, 1.0 / gain.high), residual=residual
    )
