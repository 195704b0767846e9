"""Friction that grows with the load, from slow runs to and fro under gravity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.joint.friction.checks import refuse_unless_useful
from jointwise.joint.friction.grouped import Linear, grouped_fit
from jointwise.joint.friction.law import velocity_law_of
from jointwise.joint.friction.ways import Ways, held_out, to_and_fro
from jointwise.joint.part import Alternative, Curve, Part, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent, rms
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

Flags = NDArray[np.bool_]

VARIES = 0.5
"""The load must vary by this part of the friction."""
FOLLOWS = 0.9
"""Correlation that the mean of to and fro must have with the modelled load."""
LAWS: dict[str, tuple[int, ...]] = {"none": (), "absolute": (1,), "square": (2,), "polynomial": (1, 2)}
"""Powers of |τ| of every model that is tried."""
CHOICES = ("square", "absolute")
"""Laws of a friction that grows with the load; one that does not is "none"."""


@dataclass(frozen=True)
class LoadLaw:
    """``f_l = F_l sgn(ω) |τ|^p``, p = 2 ("square") or 1 ("absolute"); |τ| is kept up to the `largest` measured, Nm.

    "none": friction that does not grow with the load, as far as was measured.
    """

    kind: str
    factor: float
    largest: float

    def torque(self, speed: Array, load: Array) -> Array:
        """Return the friction (samples,), Nm, that a load (samples,), Nm, adds."""
        size = np.minimum(np.abs(load), self.largest)
        grown = sum((size**power for power in LAWS[self.kind]), np.zeros_like(size))
        result: Array = self.factor * np.sign(speed) * grown
        return result

    def outside(self, load: Array) -> Flags:
        """Tell which loads are larger than measured, and are clamped."""
        result: Flags = np.abs(load) > self.largest
        return result


def identify_load(record: JointRecord, *, steady: Part | None = None) -> Part:
    """Return how friction grows with the load: ``F_0 + F_l τ²`` against ``F_0 + F_l |τ|``, by unseen data.

    Friction is half the difference between a run forwards and one back at the same position: an error of the gravity
    model cancels. `steady` (from `identify_friction`) takes the friction at no load off: F_0 is what is left. Where the
    interval of F_l holds zero, or F_0 alone predicts unseen data as well, the law is "none".
    """
    refuse_unless_useful(record, "load")
    points = to_and_fro(record)
    _refuse_unless_loaded(record, points)
    base = np.zeros(len(points.load)) if steady is None else velocity_law_of(steady).torque(points.speed)
    if steady is not None:
        base = 0.5 * (base - velocity_law_of(steady).torque(-points.speed))
    y = points.friction - base
    test = held_out(points)
    kind, fit, slight = _chosen(points, y, ~test)
    gravity = grouped_fit(np.column_stack([points.load, np.ones(len(y))]), points.total, points.block, points.weight)
    law = LoadLaw(kind, 0.0 if kind == "none" else float(fit.values[-1]), float(np.abs(points.load).max()))
    alternatives = tuple(_alternative(points, y, law, test) for law in LAWS)
    return Part(
        phenomenon="load",
        model=kind,
        values=_values(points, kind, fit, gravity),
        fitted=nrmse_percent(y, _columns(points, kind) @ fit.values),
        held_out=next(own.held_out for own in alternatives if own.model == kind),
        settings={"law": {"kind": law.kind, "factor": law.factor, "largest": law.largest}},
        ranges={
            "load": (float(points.load.min()), float(points.load.max())),
            "speed": (float(points.speed.min()), float(points.speed.max())),
        },
        alternatives=alternatives,
        curves=(_friction_curve(points, y, kind, fit), _gravity_curve(points, gravity)),
        notes=_notes(record, points, slight, gravity, steady),
        logs=record.logs,
    )


def load_law_of(part: Part) -> LoadLaw:
    """Return the law that `identify_load` found."""
    if part.phenomenon != "load" or "law" not in part.settings:
        raise ModelError(f"a load law comes from a load part. Got '{part.phenomenon}' instead.")
    return LoadLaw(**part.settings["law"])


def _refuse_unless_loaded(record: JointRecord, points: Ways) -> None:
    size = np.abs(points.load)
    if np.ptp(size) < VARIES * float(np.abs(points.friction).mean()):
        raise refuse(record, "load", f"the load never varies (from {size.min():.3g} to {size.max():.3g} Nm)")
    if not np.corrcoef(points.total, points.load)[0, 1] >= FOLLOWS:
        raise refuse(record, "load", "the torque does not follow the modelled load (mounting, payload or signals)")


# -- fits --


def _columns(points: Ways, law: str) -> Array:
    """Return the regressor: one for every speed, then the powers of |τ|."""
    levels = (points.level[:, None] == np.arange(points.level.max() + 1)).astype(float)
    return np.column_stack([levels, *(np.abs(points.load) ** power for power in LAWS[law])])


def _chosen(points: Ways, y: Array, use: Flags) -> tuple[str, Linear, str]:
    """Return the law that predicts points in use best, its fit to all, and a note where that law is "none"."""
    errors = {law: _unseen_error(points, y, law, use) for law in ("none", *CHOICES)}
    kind = min(CHOICES, key=lambda law: errors[law])
    fit = grouped_fit(_columns(points, kind), y, points.block, points.weight)
    grown, half = float(fit.values[-1]), fit.factor * float(fit.deviations[-1])
    if abs(grown) > half and errors[kind] < errors["none"]:
        return kind, fit, ""
    note = (
        f"no friction that grows with the load is seen up to {np.abs(points.load).max():.3g} Nm: "
        f"F_l of the {kind} law would be {grown:.2g} ± {half:.2g} {_UNITS[kind]}."
    )
    return "none", grouped_fit(_columns(points, "none"), y, points.block, points.weight), note


def _unseen_error(points: Ways, y: Array, law: str, use: Flags) -> float:
    """Return the error of a law by cross-validation among the points in use, leaving blocks out in four folds."""
    A, fold = points.weight[:, None] * _columns(points, law), (points.block // 2) % 4
    y, error = points.weight * y, 0.0
    for k in range(4):
        own, rest = use & (fold == k), use & (fold != k)
        x = np.linalg.lstsq(A[rest], y[rest], rcond=None)[0]
        error += float(np.sum((y[own] - A[own] @ x) ** 2))
    return error


def _alternative(points: Ways, y: Array, law: str, test: Flags) -> Alternative:
    A, w = _columns(points, law), points.weight
    x = np.linalg.lstsq((w[:, None] * A)[~test], (w * y)[~test], rcond=None)[0]
    note = {"none": "F_0", "polynomial": "F_0 + F_1 |tau| + F_2 tau²"}.get(law, "")
    return Alternative(law, nrmse_percent(y[~test], A[~test] @ x), nrmse_percent(y[test], A[test] @ x), note)


_UNITS = {"square": "1/Nm", "absolute": "1"}


def _values(points: Ways, kind: str, fit: Linear, gravity: Linear) -> tuple[Value, ...]:
    found: list[Value] = []
    if kind != "none":
        found.append(value_of("F_l", _UNITS[kind], fit.values[-1], fit.deviations[-1], fit.factor))
    for k in range(points.level.max() + 1):
        speed = points.speed[points.level == k].mean()
        name = "F_0" if points.level.max() == 0 else f"F_0 at {speed:.3g} rad/s"
        found.append(value_of(name, "Nm", fit.values[k], fit.deviations[k], fit.factor))
    found.append(value_of("gravity slope", "1", gravity.values[0], gravity.deviations[0], gravity.factor))
    found.append(value_of("gravity offset", "Nm", gravity.values[1], gravity.deviations[1], gravity.factor))
    return tuple(found)


def _friction_curve(points: Ways, y: Array, kind: str, fit: Linear) -> Curve:
    """Return friction over load, differences between speeds taken off."""
    own = fit.values[points.level] - fit.values[0]
    line = np.linspace(points.load.min(), points.load.max(), 101)
    rows = np.zeros((len(line), len(fit.values)))
    rows[:, 0] = 1.0
    for power in LAWS[kind]:
        rows[:, -1] = np.abs(line) ** power
    residual = y - _columns(points, kind) @ fit.values
    middle, half = rows @ fit.values, fit.band(rows, rms(residual))
    return Curve(
        title="Friction over load: half the difference between the ways to and fro",
        x_label="load [Nm]",
        y_label="friction [Nm]",
        x=plain(points.load),
        y=plain(y - own),
        line_x=plain(line),
        line_y=plain(middle),
        low=plain(middle - half),
        high=plain(middle + half),
        residual=plain(residual),
    )


def _gravity_curve(points: Ways, gravity: Linear) -> Curve:
    line = np.linspace(points.load.min(), points.load.max(), 21)
    rows = np.column_stack([line, np.ones(len(line))])
    residual = points.total - gravity.values[0] * points.load - gravity.values[1]
    middle, half = rows @ gravity.values, gravity.band(rows, rms(residual))
    return Curve(
        title="Gravity check: half the sum of the ways to and fro over the modelled load",
        x_label="modelled load [Nm]",
        y_label="torque of the motor [Nm]",
        x=plain(points.load),
        y=plain(points.total),
        line_x=plain(line),
        line_y=plain(middle),
        low=plain(middle - half),
        high=plain(middle + half),
        residual=plain(residual),
    )


def _notes(record: JointRecord, points: Ways, slight: str, gravity: Linear, steady: Part | None) -> tuple[str, ...]:
    slope, half = float(gravity.values[0]), gravity.factor * float(gravity.deviations[0])
    notes = [f"{len(np.unique(points.way))} way(s) to and fro at {points.level.max() + 1} constant speed(s)."]
    if abs(slope - 1.0) > max(half, 0.01):
        notes.append(
            f"the motor's torque grows {slope:.3f} ± {half:.3f} times as much as the modelled load: the payload or the "
            f"bodies differ, or the gain is {record.gain / slope:.4g} and not {record.gain:.4g} Nm/A."
        )
    if slight:
        notes.append(slight)
    if steady is not None:
        notes.append("the friction at no load was taken from the velocity law: F_0 is what is left of it.")
    return tuple(notes)
