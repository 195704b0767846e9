"""Identification of friction over load, from pairs of runs forward and back at the same positions.

Half the difference of the two torques is friction, half their sum the load: an error of the gravity model cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.arguments import checked
from jointwise.estimation.cross_validation import first_or_best, held_out_predictions, unit_errors
from jointwise.estimation.jackknife import MIN_BLOCKS
from jointwise.estimation.linear_fit import JackknifeFit, grouped_fit, scaled_solution
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.combined_friction import with_surfaces
from jointwise.joint.curve import LINE_POINTS, Curve, make_curve
from jointwise.joint.friction.data import (
    LOAD_VARIATION,
    Flags,
    Indices,
    Plateaus,
    find_plateaus,
    level_columns,
    opposite_runs,
)
from jointwise.joint.friction.law import velocity_law_of
from jointwise.joint.load.law import CHOICES, LoadLaw, LoadSettings
from jointwise.joint.part import (
    MIN_QUALITY,
    Part,
    TriedModel,
    Value,
    fit_value,
    identified_part,
    nrmse_percent,
    tried_model,
)
from jointwise.joint.record import JointRecord
from jointwise.model.friction import LOAD_POWERS, load_growth, load_unit
from jointwise.spatial import Array

BINS = 60
"""Positions at which the two runs of a pair are compared."""
BLOCK_BINS = 5
"""Consecutive positions that form a block: the unit of standard errors and of held-out data."""
POWERS: dict[str, tuple[int, ...]] = {"none": (), "absolute": (1,), "square": (2,), "polynomial": (1, 2)}
"""Powers of |τ| of every model that is fitted; the polynomial is for comparison only."""


@dataclass(frozen=True, eq=False)
class RunPairs:
    """Positions of pairs of runs, forth and back, each (points,).

    Attributes:
        friction: Half the difference of the torques, Nm.
        total: Half their sum, Nm.
        load: Modelled load torque, Nm.
        speed: Size of the speed, rad/s.
        level: Number of the speed.
        block: Number of the block of positions within one pair.
        pair: Number of the pair.
        weight: Proportional to the square root of the samples, with a mean square of 1.
    """

    friction: Array
    total: Array
    load: Array
    speed: Array
    level: Indices
    block: Indices
    pair: Indices
    weight: Array

    @property
    def levels(self) -> int:
        """Number of speeds."""
        return int(self.level.max()) + 1

    @property
    def held_out(self) -> Flags:
        """Flags of the points held out for the test: every second block of positions."""
        return np.asarray(self.block % 2 == 1)


def run_pairs(record: JointRecord) -> RunPairs:
    """Return the pairs of runs of a record at the same positions; raises if there are too few."""
    plateaus = find_plateaus(record)
    found = [_pair(record, plateaus, k, *pair) for k, pair in enumerate(opposite_runs(plateaus))]
    pieces = [piece for piece in found if piece is not None]
    if not pieces or sum(len(np.unique(piece.block)) for piece in pieces) < MIN_BLOCKS:
        raise refuse(record, "load", "no run at constant speed forward and back over the same positions in the log")
    names = RunPairs.__dataclass_fields__
    joined = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names}
    for name in ("level", "block"):
        joined[name] = np.unique(joined[name], return_inverse=True)[1]
    joined["weight"] = joined["weight"] / np.sqrt(np.mean(joined["weight"] ** 2))
    return RunPairs(**joined)


def _pair(record: JointRecord, plateaus: Plateaus, number: int, forward: int, back: int) -> RunPairs | None:
    """Return one pair of runs, None if they have no position in common."""
    runs = [slice(int(plateaus.first[k]), int(plateaus.last[k])) for k in (forward, back)]
    low, high = max(record.q[run].min() for run in runs), min(record.q[run].max() for run in runs)
    if high <= low:
        return None
    edges = np.linspace(low, high, BINS + 1)
    there, home = (_position_means(record, run, edges) for run in runs)
    count = np.minimum(there[2], home[2])
    used = np.flatnonzero(count)
    speed = 0.5 * (plateaus.speed[forward] - plateaus.speed[back])
    return RunPairs(
        friction=0.5 * (there[0] - home[0])[used],
        total=0.5 * (there[0] + home[0])[used],
        load=0.5 * (there[1] + home[1])[used],
        speed=np.full(len(used), speed),
        level=np.full(len(used), plateaus.levels[forward]),
        block=number * BINS + used // BLOCK_BINS,
        pair=np.full(len(used), number),
        weight=np.sqrt(count[used]),
    )


def _position_means(record: JointRecord, run: slice, edges: Array) -> tuple[Array, Array, Array]:
    """Return the mean torque and modelled load (Nm) of a run between edges of position (rad), and the samples there."""
    q, load, friction = record.q[run], record.load[run], record.friction[run]
    count, torque, loads = (np.histogram(q, edges, weights=w)[0] for w in (np.ones_like(q), friction + load, load))
    samples = np.maximum(count, 1.0)
    return torque / samples, loads / samples, count


@checked
def identify_load(record: JointRecord, *, steady: Part | None = None) -> Part:
    """Identify friction over load, as `jointwise joint load` does: ``F_0 + F_l τ²`` or ``F_0 + F_l |τ|``.

    Friction is half the difference between a run forward and one back at the same position, so that an error of the
    gravity model cancels. Where the 95 % confidence interval of F_l contains zero, or F_0 alone predicts held-out data
    as well, the law is "none".

    Args:
        record: Signals of the joint, see `joint_record`.
        steady: Part from `identify_friction`; its friction is subtracted first, and F_0 is the remainder.

    Returns:
        The phenomenon "load".

    Raises:
        EstimationError: If the record does not determine friction over load.
    """
    check_record(record, "load")
    points = run_pairs(record)
    gravity = _gravity_fit(record, points)
    y = points.friction if steady is None else points.friction - velocity_law_of(steady).even(points.speed)
    law, fit, note = _choose(points, y)
    tried = tuple(_alternative(points, y, law) for law in POWERS)
    return _part(record, LoadFit(points, y, law, fit, gravity), tried, note, steady)


def _gravity_fit(record: JointRecord, points: RunPairs) -> JackknifeFit:
    """Return slope and offset (Nm) of the torque over the modelled load; raises where it does not follow the load."""
    size = np.abs(points.load)
    if np.ptp(size) < LOAD_VARIATION * float(np.abs(points.friction).mean()):
        raise refuse(record, "load", f"the load never varies (from {size.min():.3g} to {size.max():.3g} Nm)")
    columns = np.column_stack([points.load, np.ones_like(size)])
    fit = grouped_fit(columns, points.total, points.block, points.weight)
    if fit.values[0] <= 0.0 or nrmse_percent(points.total, columns @ fit.values) < MIN_QUALITY:
        raise refuse(record, "load", "the torque does not follow the modelled load (mounting, payload or signals)")
    return fit


def _choose(points: RunPairs, y: Array) -> tuple[str, JackknifeFit, str]:
    """Return the law chosen by the one-standard-error rule among training points, its fit to all, and a note if "none".

    F_l must be significant.
    """
    errors = {law: _held_out_errors(points, y, law) for law in ("none", *CHOICES)}
    law = min(CHOICES, key=lambda name: float(errors[name].mean()))
    fit = grouped_fit(_columns(points, law), y, points.block, points.weight)
    factor, half = float(fit.values[-1]), fit.factor * float(fit.deviations[-1])
    if abs(factor) > half and first_or_best(errors) != "none":
        return law, fit, ""
    note = (
        f"no friction that grows with the load is seen up to {np.abs(points.load).max():.3g} Nm: "
        f"F_l of the {law} law would be {factor:.2g} ± {half:.2g} {load_unit(law)}."
    )
    return "none", grouped_fit(_columns(points, "none"), y, points.block, points.weight), note


def _columns(points: RunPairs, law: str) -> Array:
    """Return the regressor: F_0 of every speed, then the powers of |τ|."""
    growth = (load_growth(points.load, power) for power in POWERS[law])
    return np.column_stack([level_columns(points.level), *growth])


def _held_out_errors(points: RunPairs, y: Array, law: str) -> Array:
    """Return the mean squared error of every training block, predicted from the other folds."""
    A, y = points.weight[:, None] * _columns(points, law), points.weight * y

    def predict(rows: Flags) -> Array:
        return A @ scaled_solution(A[rows], y[rows])

    return unit_errors(y - held_out_predictions(points.block, predict, ~points.held_out), points.block)


def _alternative(points: RunPairs, y: Array, law: str) -> TriedModel:
    A, w, test = _columns(points, law), points.weight, points.held_out
    x = scaled_solution((w[:, None] * A)[~test], (w * y)[~test])
    note = {"none": "F_0", "polynomial": "F_0 + F_1 |tau| + F_2 tau²"}.get(law, "")
    return tried_model(law, lambda rows: nrmse_percent(y[rows], A[rows] @ x), ~test, test, note)


# -- result --


@dataclass(frozen=True)
class LoadFit:
    """Fit of friction by a load law, and of the motor torque by the gravity model.

    Attributes:
        points: Positions of pairs of runs.
        y: Friction that was fitted, (points,), Nm.
        law: Kind of the law, "none", "absolute" or "square".
        fit: F_0 of every speed (Nm), then F_l unless the law is "none".
        gravity: Slope (1) and offset (Nm) of the motor torque over the modelled load.
    """

    points: RunPairs
    y: Array
    law: str
    fit: JackknifeFit
    gravity: JackknifeFit

    @property
    def fitted(self) -> Array:
        """Friction of the law, (points,), Nm."""
        return _columns(self.points, self.law) @ self.fit.values

    @property
    def load_law(self) -> LoadLaw:
        """The identified law."""
        factor = 0.0 if self.law == "none" else float(self.fit.values[-1])
        return LoadLaw(self.law, factor, float(np.abs(self.points.load).max()))


def _part(record: JointRecord, fit: LoadFit, tried: tuple[TriedModel, ...], note: str, steady: Part | None) -> Part:
    """Return the phenomenon "load" of a fit, with friction over speed and load if `steady` is known."""
    part = identified_part(
        record,
        "load",
        model=fit.law,
        values=_values(fit),
        fitted=nrmse_percent(fit.y, fit.fitted),
        held_out=next(item.held_out for item in tried if item.model == fit.law),
        settings=LoadSettings(fit.load_law),
        ranges={"load": fit.points.load, "speed": fit.points.speed},
        alternatives=tried,
        curves=(_friction_curve(fit), _gravity_curve(fit)),
        notes=_notes(record, fit, note, steady),
    )
    return with_surfaces(part, steady)


def _values(fit: LoadFit) -> tuple[Value, ...]:
    points, linear, gravity = fit.points, fit.fit, fit.gravity
    values: list[Value] = []
    if fit.law != "none":
        values.append(fit_value("F_l", load_unit(fit.law), linear, -1))
    for k in range(points.levels):
        name = "F_0" if points.levels == 1 else f"F_0 at {points.speed[points.level == k].mean():.3g} rad/s"
        values.append(fit_value(name, "Nm", linear, k))
    return (*values, fit_value("gravity slope", "1", gravity, 0), fit_value("gravity offset", "Nm", gravity, 1))


def _friction_curve(fit: LoadFit) -> Curve:
    """Return friction over load at the lowest speed: differences between speeds are subtracted."""
    points, linear = fit.points, fit.fit
    y = fit.y - (linear.values[points.level] - linear.values[0])
    line = np.linspace(points.load.min(), points.load.max(), LINE_POINTS)
    rows = np.zeros((len(line), len(linear.values)))
    rows[:, 0] = 1.0
    if fit.law != "none":
        rows[:, -1] = load_growth(line, LOAD_POWERS[fit.law])
    title = "Friction over load: half the difference between the runs forward and back"
    labels, model = (title, "load [Nm]", "friction [Nm]"), (line, rows @ linear.values)
    return make_curve(labels, (points.load, y), model, linear.band(rows), residual=fit.y - fit.fitted)


def _gravity_curve(fit: LoadFit) -> Curve:
    load, total, gravity = fit.points.load, fit.points.total, fit.gravity
    line = np.linspace(load.min(), load.max(), LINE_POINTS)
    rows = np.column_stack([line, np.ones(len(line))])
    title = "Gravity check: half the sum of the runs forward and back over the modelled load"
    labels, model = (title, "modelled load [Nm]", "torque of the motor [Nm]"), (line, rows @ gravity.values)
    residual = total - gravity.values[0] * load - gravity.values[1]
    return make_curve(labels, (load, total), model, gravity.band(rows), residual=residual)


def _notes(record: JointRecord, fit: LoadFit, note: str, steady: Part | None) -> tuple[str, ...]:
    slope, half = float(fit.gravity.values[0]), fit.gravity.factor * float(fit.gravity.deviations[0])
    pairs, speeds = len(np.unique(fit.points.pair)), fit.points.levels
    notes = [f"{pairs} pair{'s' if pairs > 1 else ''} of runs forward and back at {speeds} constant speed(s)."]
    if abs(slope - 1.0) > half:
        notes.append(
            f"the motor torque grows {slope:.3f} ± {half:.3f} times as much as the modelled load: the payload or the "
            f"bodies differ, or the gain is {record.gain / slope:.4g} and not {record.gain:.4g} Nm/A."
        )
    if note:
        notes.append(note)
    if steady is not None:
        notes.append("friction without load was subtracted according to the velocity law; F_0 is the remainder.")
    return tuple(notes)
