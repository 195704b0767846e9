"""Which of several logs suits a phenomenon: how much a record offers of what its experiment seeks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jointwise.joint.friction.checks import LEAST_WAY
from jointwise.joint.friction.identify import STEADY
from jointwise.joint.friction.plateaus import find_plateaus, moving, settled, top_speed
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.joint.record import JointRecord
from jointwise.joint.transmission.strokes import FASTEST

NEAR = 0.05
"""Way (rad) after a reversal over which lost motion and presliding show."""

Score = tuple[float, ...]


def by_suitability(phenomenon: str, records: Sequence[JointRecord]) -> list[JointRecord]:
    """Return records, the one that suits a phenomenon best first; it is measured, names of logs do not count."""
    measure = _MEASURES[PHENOMENA[phenomenon].main]
    return sorted(records, key=measure, reverse=True)


def _twist(record: JointRecord) -> Score:
    """Return whether the output is locked, and the range of θ - q, rad."""
    phi = 0.0 if record.phi is None else float(np.ptp(record.phi))
    return float(phi > 0.0 and np.ptp(record.q) < LEAST_WAY), phi


def _reversals(record: JointRecord) -> Score:
    """Return whether the joint moves slowly, and the time (s) near its reversals; none where it does not leave them."""
    if np.ptp(record.position) < LEAST_WAY:
        return 0.0, 0.0
    slow = np.percentile(np.abs(record.speed), 95.0) <= FASTEST
    return float(slow), float(np.sum(moving(record) & ~settled(record, NEAR))) / record.rate


def _speed(record: JointRecord) -> Score:
    """Return the logarithm of the fastest over the slowest constant speed, and the top speed, rad/s."""
    runs = np.abs(find_plateaus(record if record.unit == "Nm" else record.with_gain(1.0)).speed)
    return float(np.ptp(np.log(runs))) if len(runs) else 0.0, top_speed(record)


def _load(record: JointRecord) -> Score:
    """Return the range of the load, Nm, in motion that does not accelerate: weight, not inertia."""
    pushed = np.abs(record.acceleration)
    steady = record.load[moving(record) & (pushed <= STEADY * pushed.max())]
    return (float(np.subtract(*np.quantile(steady, (0.95, 0.05)))) if len(steady) else 0.0,)


def _temperature(record: JointRecord) -> Score:
    """Return the range of temperatures, K."""
    return (0.0 if record.temperature is None else float(np.ptp(record.temperature)),)


_MEASURES: dict[str, Callable[[JointRecord], Score]] = {
    "twist": _twist,
    "reversals": _reversals,
    "speed": _speed,
    "load": _load,
    "temperature": _temperature,
}
