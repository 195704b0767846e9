"""Data of a stiffness fit: deformation and torques of a gear, sample by sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointwise.data.filters import differences, low_pass
from jointwise.data.statistics import group_means, noise, quantum
from jointwise.errors import EstimationError
from jointwise.estimation.jackknife import equal_blocks
from jointwise.joint.checks import check_unsaturated, refuse
from jointwise.joint.record import MIN_TRAVEL, JointRecord
from jointwise.joint.transmission.law import GearMaps, full_lag
from jointwise.model.terms import slip_elements, slip_state
from jointwise.spatial import Array

Kind = Literal["locked", "free"]

BLOCKS = 32
"""Blocks of time, an even number: the jackknife leaves each out in turn, the test holds every other one out."""
MAX_ROWS = 2000
"""Rows of a fit: longer records are averaged (locked) or thinned (free)."""
SLIP_ELEMENTS = 8
"""Slip elements that represent the rotor friction in the motor torque."""
SLIP_RANGE = (3e-4, 0.2)
"""Smallest and largest slip limit as fractions of the range of θ: from the first samples after a reversal to
presliding over a fifth of the motion."""
MIN_RESOLUTION = 8.0
"""Smallest range of deformation and torque, in encoder counts and in standard deviations of the noise."""
LARGEST = 0.995
"""Quantile of a deformation that counts as the largest one: outliers do not."""
MIN_CORRELATION = 0.5
"""Smallest correlation between the torques of gauge and current."""
EDGE_TIME = 0.2
"""Time (s) at the ends of a segment in which smoothing lacks neighbours."""


@dataclass(frozen=True)
class StiffnessRows:
    """Rows of a fit, (rows,) each unless stated.

    Attributes:
        kind: Whether the output is locked or moves freely.
        phi: Deflection without the known part of the gear errors, rad.
        rate: Its rate, rad/s.
        torques: Torques by channel, Nm: "gauge" and "motor" where the output is locked, "links" in free motion.
        shifts: Unknown gear errors that may be part of the deflection, (rows, shifts).
        shift_names: Names of the columns of `shifts`.
        slips: States of slip elements of the rotor, (rows, elements).
        block: Number of the block of time.
    """

    kind: Kind
    phi: Array
    rate: Array
    torques: dict[str, Array]
    shifts: Array
    shift_names: tuple[str, ...]
    slips: Array
    block: NDArray[np.intp]

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Flags of the rows held out for the test: every other block."""
        result: NDArray[np.bool_] = self.block % 2 == 1
        return result

    @property
    def without_slips(self) -> StiffnessRows:
        """The rows without slip elements."""
        return replace(self, slips=np.zeros((len(self.phi), 0)))

    def take(self, which: NDArray[np.bool_]) -> StiffnessRows:
        """Return a selection of rows."""
        return self._mapped(lambda values: values[which])

    def reduced(self) -> StiffnessRows:
        """Return at most about `MAX_ROWS` rows: averaged where the output is locked, else thinned."""
        size = -(-len(self.phi) // MAX_ROWS)
        if self.kind == "locked":
            return self._averaged(size)
        return self.take(np.arange(len(self.phi)) % size == 0)

    def _averaged(self, size: int) -> StiffnessRows:
        """Return means over `size` rows of the same block."""
        if size <= 1:
            return self
        cuts, counts = group_means(self.block, size)

        def mean(values: Array) -> Array:
            sums = np.add.reduceat(values, cuts, axis=0)
            return sums / (counts if values.ndim == 1 else counts[:, None])

        return replace(self._mapped(mean), block=self.block[cuts])

    def _mapped(self, change: Callable[[Array], Array]) -> StiffnessRows:
        return replace(
            self,
            phi=change(self.phi),
            rate=change(self.rate),
            torques={name: change(torque) for name, torque in self.torques.items()},
            shifts=change(self.shifts),
            slips=change(self.slips),
            block=change(self.block),  # type: ignore[arg-type]
        )


def stiffness_rows(record: JointRecord, maps: GearMaps | None = None, reach: float | None = None) -> StiffnessRows:
    """Return deformation and torques of a record; raises if they do not determine a stiffness.

    Args:
        record: Signals of the joint.
        maps: Known kinematic error and lost motion, subtracted from the deformation.
        reach: Travel (rad) over which unknown lost motion may build up in free motion; None for no lost motion.
    """
    phi, theta = _deformation(record)
    if is_locked(record):
        return _locked(record, phi, theta, maps)
    return _free(record, theta, maps, reach)


def is_locked(record: JointRecord) -> bool:
    """Return whether the output is locked: the link hardly moves."""
    return bool(np.ptp(record.q) < MIN_TRAVEL)


def _deformation(record: JointRecord) -> tuple[Array, Array]:
    """Return φ and θ, rad."""
    if record.phi is None or record.theta is None:
        raise refuse(record, "stiffness", "no rotor position (theta) in the log, so no deformation")
    count = float(quantum(np.column_stack([record.theta, record.theta - record.phi])).max())
    spread = float(np.ptp(np.quantile(record.phi, (1.0 - LARGEST, LARGEST))))
    if spread <= MIN_RESOLUTION * max(count, _noise(record.phi)):
        reason = (
            f"the gear deforms by {spread:.2g} rad only, less than {MIN_RESOLUTION:g} counts or standard deviations of "
            "the noise"
        )
        raise refuse(record, "stiffness", reason)
    return record.phi, record.theta


def _noise(values: Array) -> float:
    """Return the standard deviation of the noise on a signal (samples,)."""
    return float(noise(values[:, None])[0])


# -- locked output --


def _locked(record: JointRecord, phi: Array, theta: Array, maps: GearMaps | None) -> StiffnessRows:
    torques = _locked_torques(record, theta, maps)
    if maps is not None:
        phi = phi - maps.error(theta) - _by_segment(record, theta, maps.lag)
    limits = np.ptp(theta) * np.geomspace(*SLIP_RANGE, SLIP_ELEMENTS)
    slips = _by_segment(record, theta, lambda path: slip_elements(path, limits, slip_state(path[0], SLIP_ELEMENTS))[0])
    if "gauge" in torques:  # smoothed like the deformation, whose rate would lag behind it otherwise
        phi, torques["gauge"] = (_smoothed(record, values) for values in (phi, torques["gauge"]))
    return StiffnessRows(
        "locked",
        phi,
        _rate(record, phi),
        torques,
        np.zeros((len(phi), 0)),
        (),
        slips,
        equal_blocks(record.samples, BLOCKS),
    )


def _locked_torques(record: JointRecord, theta: Array, maps: GearMaps | None) -> dict[str, Array]:
    """Return the torques of gauge and motor, Nm; raises if there is none, or they do not vary or contradict."""
    torques = {} if record.gauge is None else {"gauge": record.gauge}
    if record.unit == "Nm":
        check_unsaturated(record, "stiffness")
        ratio = 1.0 if maps is None else 1.0 - _by_segment(record, theta, maps.slope)
        torques["motor"] = (record.motor - record.inertia * record.acceleration) / ratio
    if not torques:
        raise EstimationError(
            f"{record.place}: a gauge or a drive gain (Nm/A) is needed for the torque; stiffness is not fitted."
        )
    for name, torque in torques.items():
        if np.ptp(torque) < MIN_RESOLUTION * _noise(torque) or np.ptp(torque) == 0.0:
            raise refuse(record, "stiffness", f"the load never varies beyond noise ({name})")
    if len(torques) == 2 and not (correlation := float(np.corrcoef([*torques.values()])[0, 1])) > MIN_CORRELATION:
        reason = (
            f"the gauge and the current contradict each other (correlation {correlation:.2f}): sign, order or joint"
        )
        raise refuse(record, "stiffness", reason)
    return torques


# -- free motion --


def _free(record: JointRecord, theta: Array, maps: GearMaps | None, reach: float | None) -> StiffnessRows:
    """Return the rows of free motion; the deformation is smoothed like the torque of the links."""
    phi = record.position - record.q
    if np.allclose(record.load, record.load.mean()):
        raise refuse(record, "stiffness", f"the load never varies: it stays at {record.load.mean():.3g} Nm")
    shifts: dict[str, Array] = {}
    if maps is None:
        shifts = _gear_errors(record, reach)
    else:
        phi = phi - _smoothed(record, maps.error(theta) + _by_segment(record, theta, maps.lag))
    columns = np.column_stack(list(shifts.values())) if shifts else np.zeros((len(phi), 0))
    rows = StiffnessRows(
        "free",
        phi,
        _rate(record, phi),
        {"links": record.load},
        columns,
        tuple(shifts),
        np.zeros((len(phi), 0)),
        equal_blocks(record.samples, BLOCKS),
    )
    return rows.take(_away_from_ends(record))


def _gear_errors(record: JointRecord, reach: float | None) -> dict[str, Array]:
    """Return regressors of an unknown gear: the two lowest orders of the kinematic error, and lost motion."""
    theta = record.position
    shapes = {"sin θ": np.sin(theta), "cos θ": np.cos(theta), "sin 2θ": np.sin(2 * theta), "cos 2θ": np.cos(2 * theta)}
    if reach is not None:
        lag = _by_segment(record, theta, lambda path: full_lag(path, reach))
        shapes |= {"lost motion": lag, "its sin θ": lag * np.sin(theta), "its cos θ": lag * np.cos(theta)}
    return shapes


def _away_from_ends(record: JointRecord) -> NDArray[np.bool_]:
    """Return flags of the samples away from the ends of segments, where smoothing lacks neighbours."""
    edges = np.array([0, *(np.flatnonzero(np.diff(record.segment)) + 1), record.samples])
    here = np.arange(record.samples)
    after = np.searchsorted(edges, here, side="right")
    distance = np.minimum(here - edges[after - 1], edges[after] - here)
    result: NDArray[np.bool_] = distance > EDGE_TIME * record.rate
    return result


# -- signals --


def _smoothed(record: JointRecord, values: Array) -> Array:
    return _by_segment(record, values, lambda piece: low_pass(piece, record.cutoff, record.rate))


def _rate(record: JointRecord, phi: Array) -> Array:
    return _by_segment(record, phi, lambda piece: differences(piece, record.rate)[0])


def _by_segment(record: JointRecord, values: Array, function: Callable[[Array], Array]) -> Array:
    """Return a function of values (samples,) evaluated on each gap-free segment."""
    segments = [values[record.segment == k] for k in np.unique(record.segment)]
    return np.concatenate([function(np.ascontiguousarray(segment)) for segment in segments])
