"""Damping of a gear: the torque D φ̇ that it transmits beside that of its spring."""

from __future__ import annotations

import numpy as np

from jointwise.joint.jackknife import spread
from jointwise.joint.part import Curve, Value, plain, value_of
from jointwise.joint.stiffness.fit import SpringFit
from jointwise.joint.stiffness.signals import Signals
from jointwise.spatial import Array

HIDDEN = 4.0
"""Deviations from which on an error of the gear stands out: its fast orders then hide the damping in free motion."""
FLOOR = 0.005
"""Relative deviation that is added: smoothing leaves as much."""
BINS = 60


def find_damping(fit: SpringFit, signals: Signals, gear_known: bool) -> tuple[Value | None, str]:
    """Return D (Nm s/rad), None where the data do not determine it, and what is to be said about it."""
    if not fit.layout.damping:
        what = "friction of the rotor hides it in the current: a gauge at the output, or free motion, would tell"
        return None, f"damping is not determined: {what}"
    if not gear_known and _stands_out(fit):
        what = "the gear's own error hides it in free motion: give a transmission part, or lock the output"
        return None, f"damping is not determined: {what}"
    found = float(_numbers(fit, fit.numbers)[0])
    scatter = float(spread(np.array([_numbers(fit, own)[0] for own in fit.replicates])))
    value = value_of("damping", "Nm s/rad", found, float(np.hypot(scatter, FLOOR * found)), fit.factor)
    slope = float(fit.stiffness(fit.numbers, np.zeros(1))[0])
    if value.high < 0.0:
        delay = f"as if the torque were stamped {-1e3 * found / slope:.2g} ms late"
        return None, f"damping is not determined: the torque is behind the twist, {delay}"
    stamps = f"torque and twist must be stamped alike to well below {1e3 * value.high / slope:.2g} ms"
    return value, f"damping makes the torque lead the twist: {stamps}"


def damping_curve(fit: SpringFit, signals: Signals, value: Value) -> Curve:
    """Return the torque beyond the spring over the speed of the twist, means of equally many samples."""
    name = "gauge" if "gauge" in signals.torques else "links"
    rest = signals.torques[name] - fit.torque(fit.numbers, fit.deformation(signals))
    x, y = _means(signals.rate, rest)
    line = np.linspace(min(x.min(), 0.0), max(x.max(), 0.0), 51)
    bounds = value.low * line, value.high * line
    return Curve(
        title="Damping: torque beyond the spring",
        x_label="speed of the twist [rad/s]",
        y_label="torque less the spring's [Nm]",
        x=plain(x),
        y=plain(y),
        line_x=plain(line),
        line_y=plain(value.value * line),
        low=plain(np.minimum(*bounds)),
        high=plain(np.maximum(*bounds)),
        residual=plain(y - value.value * x),
    )


def _numbers(fit: SpringFit, numbers: Array) -> Array:
    return fit.layout.split(numbers)["damping"]


def _stands_out(fit: SpringFit) -> bool:
    """Tell whether one of the shapes hidden in the deformation is there beyond doubt."""
    if fit.layout.shifts == 0:
        return False
    found = fit.layout.split(fit.numbers)["shifts"]
    deviation = spread(np.array([fit.layout.split(own)["shifts"] for own in fit.replicates]))
    return bool((np.abs(found) > HIDDEN * deviation).any())


def _means(x: Array, y: Array) -> tuple[Array, Array]:
    """Return means of both in the order of x, over `BINS` parts of equally many samples."""
    parts = np.array_split(np.argsort(x, kind="stable"), min(BINS, len(x)))
    return np.array([x[own].mean() for own in parts]), np.array([y[own].mean() for own in parts])
