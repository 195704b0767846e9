"""Friction over load, from pairs of runs forward and back at the same positions.

Half the difference of the two torques is friction, half their sum the load: an error of the gravity model cancels.
"""

from __future__ import annotations

import numpy as np

from jointwise.arguments import checked
from jointwise.estimation.cross_validation import first_or_best
from jointwise.estimation.jackknife import MIN_BLOCKS
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.curve import LINE_POINTS
from jointwise.joint.engine import Inputs, Law, Rows, estimate, fit_law, row_quality, try_law
from jointwise.joint.laws import CHOICES, LoadLaw, LoadSettings, velocity_law_of, with_surfaces
from jointwise.joint.part import MIN_QUALITY, Part, identified_part
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import LOAD_VARIATION, find_plateaus, level_columns
from jointwise.model.terms import load_growth, load_unit
from jointwise.spatial import Array

BINS = 60
"""Positions at which the two runs of a pair are compared."""
BLOCK_BINS = 5
"""Consecutive positions that form a block: the unit of standard errors and of held-out data."""
POWERS: dict[str, tuple[int, ...]] = {"none": (), "absolute": (1,), "square": (2,), "polynomial": (1, 2)}
"""Powers of |τ| of every model that is fitted; the polynomial is for comparison only."""
NOTES = {"none": "F_0", "polynomial": "F_0 + F_1 |tau| + F_2 tau²"}


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
    rows, total = load_rows(record, steady)
    load, notes = rows.inputs["load"], list(rows.notes)
    gravity = estimate(total, fit_law(total, Law("", ("gravity slope",), lambda inputs, _: inputs["load"][:, None])))
    slope = gravity.value("gravity slope", "1")
    if slope.value <= 0.0 or row_quality(total, gravity.fit.on(total)) < MIN_QUALITY:
        raise refuse(record, "load", "the torque does not follow the modelled load (mounting, payload or signals)")
    if not slope.covers(1.0):
        half = 0.5 * (slope.high - slope.low)
        notes.append(
            f"the motor torque grows {slope.value:.3f} ± {half:.3f} times as much as the modelled load: the payload or "
            f"the bodies differ, or the gain is {record.gain / slope.value:.4g} and not {record.gain:.4g} Nm/A."
        )
    trials = {kind: try_law(rows, _law(kind)) for kind in POWERS}
    kind = min(CHOICES, key=lambda name: float(trials[name].errors.mean()))
    found = estimate(rows, fit_law(rows, _law(kind)))
    growth = found.value("F_l", load_unit(kind))
    values = [growth]
    if growth.covers(0.0) or first_or_best({name: trials[name].errors for name in ("none", *CHOICES)}) == "none":
        notes.append(
            f"no friction that grows with the load is seen up to {np.abs(load).max():.3g} Nm: F_l of the {kind} law "
            f"would be {growth.value:.2g} ± {0.5 * (growth.high - growth.low):.2g} {growth.unit}."
        )
        kind, values, found = "none", [], estimate(rows, fit_law(rows, _law("none")))
    if steady is not None:
        notes.append("friction without load was subtracted according to the velocity law; F_0 is the remainder.")
    law = LoadLaw(kind, growth.value if values else 0.0, float(np.abs(load).max()))
    levels = [found.value(name, "Nm") for name in rows.names]
    above = rows.beside @ [level.value - levels[0].value for level in levels]  # the curve is that of the lowest speed
    title = "Friction over load: half the difference between the runs forward and back"
    check = "Gravity check: half the sum of the runs forward and back over the modelled load"
    line = {"load": np.linspace(load.min(), load.max(), LINE_POINTS)}
    part = identified_part(
        record,
        "load",
        model=kind,
        values=(*values, *levels, slope, gravity.value("gravity offset", "Nm")),
        fitted=row_quality(rows, found.fit.on(rows)),
        held_out=trials[kind].held_out,
        settings=LoadSettings(law),
        ranges=rows.inputs,
        alternatives=tuple(trial.tried for trial in trials.values()),
        curves=(
            found.curve(
                (title, "load [Nm]", "friction [Nm]"), (load, rows.y - above), found.residual, line, rows.names[0]
            ),
            gravity.curve(
                (check, "modelled load [Nm]", "torque of the motor [Nm]"),
                (load, total.y),
                gravity.residual,
                line,
                "gravity offset",
            ),
        ),
        notes=tuple(notes),
    )
    return with_surfaces(part, steady)


def _law(kind: str) -> Law:
    """Return a law as a sum of powers of |τ|."""

    def columns(inputs: Inputs, _: Array) -> Array:
        load = inputs["load"]
        return np.column_stack([np.empty((len(load), 0)), *(load_growth(load, power) for power in POWERS[kind])])

    return Law(kind, ("F_l", "F_2")[: len(POWERS[kind])], columns, note=NOTES.get(kind, ""))


def load_rows(record: JointRecord, steady: Part | None = None) -> tuple[Rows, Rows]:
    """Return friction and total torque at positions of pairs of runs, Nm; raises if there are too few.

    Every speed has its own friction without load (`beside`); every second block of positions is held out.
    """
    friction, plateaus = record.friction, find_plateaus(record)
    pairs, pieces = plateaus.opposite(), []
    for number, pair in enumerate(pairs):
        runs = [slice(plateaus.first[k], plateaus.last[k]) for k in pair]
        low, high = max(record.q[run].min() for run in runs), min(record.q[run].max() for run in runs)
        if high <= low:
            continue
        edges = np.linspace(low, high, BINS + 1)
        sums = [
            [
                np.histogram(record.q[run], edges, weights=x[run])[0]
                for x in (np.ones_like(friction), friction + record.load, record.load)
            ]
            for run in runs
        ]
        count = np.minimum(sums[0][0], sums[1][0])
        used = np.flatnonzero(count)
        (there, loaded), (home, unloaded) = ([(x / np.maximum(n, 1.0))[used] for x in means] for n, *means in sums)
        same = np.ones(len(used))
        speed = 0.5 * (plateaus.speed[pair[0]] - plateaus.speed[pair[1]])
        pieces.append(
            [
                0.5 * (there - home),
                0.5 * (there + home),
                0.5 * (loaded + unloaded),
                np.sqrt(count[used]),
                speed * same,
                plateaus.levels[pair[0]] * same,
                number * BINS + used // BLOCK_BINS,
            ]
        )
    y, total, load, weight, speed, level, block = np.concatenate(pieces, axis=1) if pieces else np.empty((7, 0))
    level, block = (np.unique(x, return_inverse=True)[1] for x in (level, block))
    if len(np.unique(block)) < MIN_BLOCKS:
        raise refuse(record, "load", "no run at constant speed forward and back over the same positions in the log")
    size, beside = np.abs(load), level_columns(level)
    if np.ptp(size) < LOAD_VARIATION * float(np.abs(y).mean()):
        raise refuse(record, "load", f"the load never varies (from {size.min():.3g} to {size.max():.3g} Nm)")
    y = y if steady is None else y - velocity_law_of(steady).even(speed)
    names = [f"F_0 at {speed[level == k].mean():.3g} rad/s" for k in range(beside.shape[1])]
    count = len(pieces)
    note = f"{count} pair{'s' if count > 1 else ''} of runs forward and back at {len(names)} constant speed(s)."
    inputs, weight, test = {"load": load, "speed": speed}, weight / np.sqrt(np.mean(weight**2)), block % 2 == 1
    rows = Rows(y, inputs, block, test, weight, beside, tuple(names) if len(names) > 1 else ("F_0",), notes=(note,))
    return rows, Rows(total, inputs, block, test, weight, np.ones((len(y), 1)), ("gravity offset",))
