"""What a record says about a spring: deformation and torque, sample by sample, and whether that can answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointwise.data.filters import differences, low_pass
from jointwise.errors import EstimationError
from jointwise.joint.gear_maps import GearMaps, full_lag
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.joint.saturation import refuse_saturated
from jointwise.model.terms.slip import rest_state, slip_elements
from jointwise.spatial import Array

Kind = Literal["locked", "free"]

BLOCKS = 32
"""Blocks of time that are left out in turn."""
MOST_ROWS = 2000
"""Rows of a fit: longer records are averaged (locked) or thinned (free) to it."""
ELEMENTS = 8
"""Slip elements that stand for the rotor's friction in the motor's torque."""
LEAST_COUNTS = 8.0
"""Smallest range of the deformation, in encoder counts and in deviations of its noise."""

LEAST_TOGETHER = 0.5
"""Correlation that the torques of gauge and current must have."""


@dataclass(frozen=True)
class Signals:
    """Rows of a fit, (rows,) each: `phi` (rad) without the known part of the gear, its `rate` (rad/s), and torques.

    `torques` by channel, Nm: "gauge" and "motor" where the output is locked, "links" in free motion. `shifts` (rows,
    n) are shapes that may be hidden in φ (`shift_names`), `slips` (rows, m) states of slip elements of the rotor.
    `block` numbers stretches of time.
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
        """Rows kept from the fit that is tested: every other block."""
        result: NDArray[np.bool_] = self.block % 2 == 1
        return result

    def take(self, which: NDArray[np.bool_]) -> Signals:
        """Return some rows."""
        return self._mapped(lambda values: values[which])

    def averaged(self, size: int) -> Signals:
        """Return means over `size` rows of the same block."""
        if size <= 1:
            return self
        _, starts = np.unique(self.block, return_index=True)
        edges = np.append(np.sort(starts), len(self.block))
        cuts = np.concatenate([np.arange(a, b, size) for a, b in pairwise(edges)])
        counts = np.diff(np.append(cuts, len(self.block)))

        def mean(values: Array) -> Array:
            sums = np.add.reduceat(values, cuts, axis=0)
            return sums / (counts if values.ndim == 1 else counts[:, None])

        result = self._mapped(mean)
        return replace(result, block=self.block[cuts])

    def _mapped(self, change: object) -> Signals:
        assert callable(change)
        return replace(
            self,
            phi=change(self.phi),
            rate=change(self.rate),
            torques={name: change(torque) for name, torque in self.torques.items()},
            shifts=change(self.shifts),
            slips=change(self.slips),
            block=change(self.block),
        )


def stiffness_signals(record: JointRecord, maps: GearMaps | None = None, reach: float | None = None) -> Signals:
    """Return deformation and torques of a record, or refuse; `reach` (rad) allows for lost motion in free motion."""
    phi, theta = _deformation(record)
    if kind_of(record) == "locked":
        return _locked(record, phi, theta, maps)
    return _free(record, maps, reach)


def kind_of(record: JointRecord) -> Kind:
    """Tell a locked output (the link moves less than the gear deforms) from free motion."""
    phi, _ = _deformation(record)
    return "locked" if np.ptp(record.q) <= 2.0 * np.ptp(phi) else "free"


def rows_of(signals: Signals) -> Signals:
    """Return the rows of a fit: averaged where the output is locked, else thinned."""
    size = -(-len(signals.phi) // MOST_ROWS)
    if signals.kind == "locked":
        return signals.averaged(size)
    return signals.take(np.arange(len(signals.phi)) % size == 0)


def _deformation(record: JointRecord) -> tuple[Array, Array]:
    if record.phi is None or record.theta is None:
        raise refuse(record, "stiffness", "no rotor position (theta) in the log, so no deformation")
    _refuse_small(record, record.phi, record.theta)
    return record.phi, record.theta


def _refuse_small(record: JointRecord, phi: Array, theta: Array) -> None:
    count = max(_smallest_step(theta), _smallest_step(theta - phi))
    noise = float(np.median(np.abs(np.diff(phi)))) / 0.95
    spread = float(np.subtract(*np.percentile(phi, [99.5, 0.5])))
    least = LEAST_COUNTS * max(count, noise)
    if spread <= least:
        what = f"the gear deforms by {spread:.2g} rad only, less than {LEAST_COUNTS:g} counts or deviations of noise"
        raise refuse(record, "stiffness", what)


def _smallest_step(values: Array) -> float:
    """Return the smallest change of a quantised signal; 0 where it stands still."""
    steps = np.abs(np.diff(values))
    steps = steps[steps > 1e-10]
    return float(steps.min()) if steps.size else 0.0


def _locked(record: JointRecord, phi: Array, theta: Array, maps: GearMaps | None) -> Signals:
    torques = {} if record.gauge is None else {"gauge": record.gauge}
    if record.unit == "Nm":
        refuse_saturated(record, "stiffness")
        ratio = 1.0 if maps is None else 1.0 - _joined(record, theta, maps.slope)
        torques["motor"] = (record.motor - record.inertia * record.acceleration) / ratio
    if not torques:
        raise EstimationError(
            f"{record.place}: neither a gauge nor a drive gain (Nm/A) tells the torque; stiffness is not fitted."
        )
    for name, torque in torques.items():
        if np.ptp(torque) < LEAST_COUNTS * _noise(torque) or np.ptp(torque) == 0.0:
            raise refuse(record, "stiffness", f"the load never varies beyond noise ({name})")
    _refuse_contradiction(record, torques)
    known = phi if maps is None else phi - maps.error(theta) - _joined(record, theta, maps.lag)
    limits = np.ptp(theta) * np.geomspace(0.0003, 0.2, ELEMENTS)
    slips = _joined(record, theta, lambda path: slip_elements(path, limits, 1.0, rest_state(path, ELEMENTS)))
    none = np.zeros((len(phi), 0))
    if "gauge" in torques:  # smoothed as the deformation is, whose rate would lag behind it otherwise
        known, torques["gauge"] = (_smoothed(record, own) for own in (known, torques["gauge"]))
    rate = _joined(record, known, lambda own: differences(own, record.rate)[0])
    return Signals("locked", known, rate, torques, none, (), slips, _blocks(record))


def _smoothed(record: JointRecord, values: Array) -> Array:
    return _joined(record, values, lambda own: low_pass(own, record.cutoff, record.rate))


def _refuse_contradiction(record: JointRecord, torques: dict[str, Array]) -> None:
    """Refuse a gauge and a current that do not rise and fall together."""
    if len(torques) == 2 and not (together := _together(torques)) > LEAST_TOGETHER:
        what = f"the gauge and the current contradict each other (correlation {together:.2f}): sign, order or joint"
        raise refuse(record, "stiffness", what)


def _together(torques: dict[str, Array]) -> float:
    return float(np.corrcoef(np.array(list(torques.values())))[0, 1])


def _free(record: JointRecord, maps: GearMaps | None, reach: float | None) -> Signals:
    """Return the signals of free motion: smoothed alike, as the torque of the links is."""
    phi, theta = record.position - record.q, record.position
    raw, smoothing = record.theta, (record.cutoff, record.rate)
    assert raw is not None
    if np.ptp(record.load) < 1e-6:
        raise refuse(record, "stiffness", f"the load never varies: it stays at {record.load.mean():.3g} Nm")
    if maps is not None:
        phi = phi - _joined(record, raw, lambda path: low_pass(maps.error(path) + maps.lag(path), *smoothing))
        names: tuple[str, ...] = ()
        shapes = np.zeros((len(phi), 0))
    else:
        names = ("sin θ", "cos θ", "sin 2θ", "cos 2θ")
        shapes = np.column_stack([np.sin(theta), np.cos(theta), np.sin(2 * theta), np.cos(2 * theta)])
        if reach is not None:
            lag = _joined(record, theta, lambda path: full_lag(path, reach))
            names = (*names, "lost motion", "its sin θ", "its cos θ")
            shapes = np.column_stack([shapes, lag, lag * np.sin(theta), lag * np.cos(theta)])
    rate = _joined(record, phi, lambda own: differences(own, record.rate)[0])
    signals = Signals(
        "free", phi, rate, {"links": record.load}, shapes, names, np.zeros((len(phi), 0)), _blocks(record)
    )
    return signals.take(_settled(record))


def _settled(record: JointRecord) -> NDArray[np.bool_]:
    """Leave out the ends of stretches, where smoothing has no neighbours."""
    edges = np.array([0, *(np.flatnonzero(np.diff(record.stretch)) + 1), record.samples])
    here = np.arange(record.samples)
    after = np.searchsorted(edges, here, side="right")
    distance = np.minimum(here - edges[after - 1], edges[after] - here)
    result: NDArray[np.bool_] = distance > min(0.2 * record.rate, 0.05 * np.diff(edges).min())
    return result


def _joined(record: JointRecord, theta: Array, make: object) -> Array:
    """Return a state that follows θ, begun anew in every stretch."""
    assert callable(make)
    return np.concatenate([make(np.ascontiguousarray(theta[record.stretch == k])) for k in np.unique(record.stretch)])


def _blocks(record: JointRecord) -> NDArray[np.intp]:
    return np.arange(record.samples) * BLOCKS // record.samples


def _noise(values: Array) -> float:
    return float(np.median(np.abs(np.diff(values)))) / 0.95
