"""Friction over speed, from runs at constant speed or, where a log has none, from all sliding samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from jointwise.arguments import checked
from jointwise.estimation.cross_validation import FOLDS, simplest_candidate
from jointwise.joint.checks import check_record, refuse
from jointwise.joint.curve import LINE_POINTS, Curve
from jointwise.joint.engine import Estimate, Fit, Inputs, Law, Rows, Search, estimate, fit_law, row_quality, try_law
from jointwise.joint.laws import FrictionSettings, StoredCovariance, VelocityLaw
from jointwise.joint.part import MIN_QUALITY, TEST_EVERY, Part, Value, identified_part, positive_value
from jointwise.joint.record import JointRecord
from jointwise.joint.windows import (
    LOAD_QUANTILES,
    LOAD_VARIATION,
    VISIBLE_WARMING,
    Indices,
    find_plateaus,
    has_both,
    moving,
    settled,
    unaccelerated,
)
from jointwise.model.terms import root_speed, stribeck, viscous_columns
from jointwise.spatial import Array

# -- forms of the law --

EXPONENT_BOUNDS = (0.3, 4.0)
"""Range of the Stribeck exponent μ: published values lie between 0.5 and 2."""
STRIBECK_MARGINS = (3.0, 2.0)
"""V_S is sought from the slowest speed over the first to the fastest over the second: a rise that has faded before
the slowest run, or fades beyond the fastest, cannot be distinguished from F_C or viscous friction."""


@dataclass(frozen=True)
class FrictionForm:
    """Which terms of the velocity law a curve has.

    Attributes:
        dry: Whether it has Coulomb friction.
        stribeck: Whether friction rises at low speed.
        free: Whether the exponent μ of that rise is free; else it is 1.
        powers: Number of viscous terms out of ω, |ω| ω, ω³.
        side: How directions differ: "none", "offset" or "asymmetry".
    """

    dry: bool = True
    stribeck: bool = False
    free: bool = False
    powers: int = 1
    side: str = "none"

    @property
    def title(self) -> str:
        """Name of the form."""
        dry = ("Stribeck" if self.free else "Stribeck (mu = 1)") if self.stribeck else "Coulomb"
        viscous = "viscous" + ("", ", square", ", cubic")[self.powers - 1]
        full = " (seven parameters)" if self.free and self.powers == 3 else ""
        name = f"{dry} + {viscous}{full}" if self.dry else viscous
        return name if self.side == "none" else f"{name}, {self.side}"

    @property
    def nonlinear(self) -> tuple[str, ...]:
        """Names of the parameters in which the curve is nonlinear: log V_S, log μ, a."""
        asymmetric = self.side == "asymmetry" and self.dry
        return ("log V_S",) * self.stribeck + ("log mu",) * self.free + ("asymmetry",) * asymmetric

    @property
    def linear(self) -> tuple[str, ...]:
        """Names of the parameters in which the curve is linear, non-negative ones first."""
        dry = ("F_C",) * self.dry + ("F_S-F_C",) * self.stribeck
        return (*dry, *("F_V1", "F_V2", "F_V3")[: self.powers], *("offset",) * (self.side == "offset"))

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.nonlinear) + len(self.linear)

    @property
    def law(self) -> Law:
        """The form as a law to be fitted; F_C, F_S - F_C and F_V1 cannot be negative."""
        note = f"{self.size} parameter{'s' if self.size > 1 else ''}"
        return Law(self.title, self.linear, self._columns, self._searches, self.dry + self.stribeck + 1, note)

    def _columns(self, inputs: Inputs, nonlinear: Array) -> Array:
        speed, values = inputs["speed"], dict(zip(self.nonlinear, nonlinear, strict=True))
        dry = np.sign(speed) + values.get("asymmetry", 0.0)
        rise = dry * stribeck(speed, np.exp(values.get("log V_S", 0.0)), np.exp(values.get("log mu", 0.0)))
        viscous = viscous_columns(speed, range(1, self.powers + 1))
        offset = [np.ones_like(speed)] * (self.side == "offset")
        return np.column_stack([*[dry] * self.dry, *[rise] * self.stribeck, viscous, *offset])

    def _searches(self, inputs: Inputs) -> dict[str, Search]:
        """Return the nonlinear parameters; with |a| > 1 friction would drive the joint in one direction."""
        w = np.abs(inputs["speed"])
        low, high = np.log([w.min() / STRIBECK_MARGINS[0], w.max() / STRIBECK_MARGINS[1]])
        least, most = np.log(EXPONENT_BOUNDS)
        searches = {
            "log V_S": Search(low, high, 8),
            "log mu": Search(least, most, 4),
            "asymmetry": Search(-1.0, 1.0, 1),
        }
        return {name: searches[name] for name in self.nonlinear}


FORMS = (
    FrictionForm(dry=False),
    FrictionForm(),
    FrictionForm(powers=2),
    FrictionForm(powers=3),
    FrictionForm(stribeck=True),
    FrictionForm(stribeck=True, powers=2),
    FrictionForm(stribeck=True, free=True, powers=2),
    FrictionForm(stribeck=True, free=True, powers=3),
)
"""Candidate forms, from viscous friction alone to the seven parameters of the full law."""
SIDES = ("none", "asymmetry", "offset")


@checked
def identify_friction(record: JointRecord, *, form: FrictionForm | None = None) -> Part:
    """Identify friction over speed, as `jointwise joint friction` does.

    ``f = (1 + a sgn ω) sgn(ω) (F_C + (F_S - F_C) exp(-(|ω|/V_S)^μ)) + F_V1 ω + F_V2 |ω| ω + F_V3 ω³``. Means of runs at
    constant speed are used where the log has them, else all sliding samples.

    Args:
        record: Signals of the joint, see `joint_record`.
        form: Terms of the law; by default the simplest ones within one standard error of the best on held-out runs.

    Returns:
        The phenomenon "friction", with the 95 % band for the mean of a new run.

    Raises:
        EstimationError: If the record does not determine friction over speed.
    """
    check_record(record, "friction")
    rows = friction_rows(record)
    forms = _possible_forms(record, rows, form)
    trials = {candidate: try_law(rows, candidate.law) for candidate in forms}
    chosen = simplest_candidate({f: trials[f].errors for f in sorted(forms, key=lambda f: f.size)})
    if form is None and chosen.dry and _is_two_sided(rows):
        sided = [replace(chosen, side=side) for side in SIDES]
        trials |= {other: try_law(rows, other.law) for other in sided if other not in trials}
        chosen = simplest_candidate({f: trials[f].errors for f in sorted(sided, key=lambda f: f.size)})
    if trials[chosen].held_out < MIN_QUALITY:
        reason = f"the torque does not follow the speed (fit {trials[chosen].held_out:.0f} % on held-out data)"
        if record.without_masses:
            reason += "; gravity was not removed, as no masses are described"
        raise refuse(record, "friction", reason)
    final, found, dropped = _identifiable(rows, chosen)
    parameters = {name: found[name] for name in (*final.nonlinear, *final.linear)}
    law = _velocity_law(parameters, rows.inputs["speed"])
    T, is_runs = record.temperature, rows.kind == "runs"
    load = record.load[unaccelerated(record)] if is_runs else record.load  # between runs it is inertia
    return identified_part(
        record,
        "friction",
        model=final.title,
        values=_values(final, parameters, found),
        fitted=row_quality(rows, found.fit.on(rows)),
        held_out=trials[chosen].held_out,
        settings=FrictionSettings(
            law=law,
            covariance=StoredCovariance(
                tuple(name.removeprefix("log ") for name in parameters),
                tuple(map(tuple, found.jackknife.covariance[: final.size, : final.size].tolist())),
            ),
            temperature=None if T is None else float(np.median(T)),
            points=rows.kind,
            beside={name: found[name] for name in rows.names},
            band_check=_band_check(rows, final),
        ),
        ranges={
            "speed": (law.slowest, law.fastest),
            "load": np.quantile(load, LOAD_QUANTILES if is_runs else (0.0, 1.0)),
            **({} if T is None else {"temperature": T}),
        },
        alternatives=tuple(trial.tried for trial in trials.values()),
        curves=(_curve(rows, found, law),),
        notes=(*rows.notes, *dropped, *_notes(record, rows)),
    )


# -- rows: means of runs at constant speed, or of short blocks of sliding samples --

MIN_PLATEAU_SHARE = 0.5
"""Fraction of the moving time above which runs at constant speed are used alone: what lies between them is ramps."""
MIN_SPEEDS = 3
"""Speeds that a curve needs: one parameter more than Coulomb and viscous friction."""
MIN_SPEED_RATIO = 2.0
"""Smallest ratio of the highest to the lowest speed."""
BLOCK_TIME = 0.1
"""Time (s) over which sliding samples are averaged."""
MIN_CYCLES = 3
"""Cycles (forward and back) that this fit needs: they are the unit of standard errors and held-out tests."""
POINTS_PER_PARAMETER = 12
"""Blocks that a parameter needs where there are no runs: blocks of one cycle are correlated."""


def friction_rows(record: JointRecord) -> Rows:
    """Return the rows of a friction curve; raises if the record does not determine one."""
    friction, plateaus = record.friction, find_plateaus(record)
    share = float(plateaus.duration.sum() * record.rate / max(1, moving(record).sum()))
    mean: Callable[[Array], Array]
    if share >= MIN_PLATEAU_SHARE:
        kind, mean, count = "runs", plateaus.means, plateaus.duration
        order = np.argsort(plateaus.speed, kind="stable")  # neighbours in speed fall into different folds
        block = np.arange(plateaus.runs)
    else:
        kind, (mean, count, block) = "cycles", _sliding_blocks(record)
        order = np.arange(len(block))
    speed, torque = mean(record.speed), mean(friction)
    sizes = np.abs(speed)
    beside: dict[str, Array] = {}
    if kind == "runs":
        speeds = [float(sizes[plateaus.levels == k].mean()) for k in np.unique(plateaus.levels)]
        if len(speeds) < MIN_SPEEDS or speeds[-1] < MIN_SPEED_RATIO * speeds[0]:
            listed = ", ".join(f"{size:.3g}" for size in speeds)
            number = "one speed" if len(speeds) == 1 else f"{len(speeds)} speeds"
            raise refuse(record, "friction", f"only {number} ({listed} rad/s) in the log")
        notes = [f"{plateaus.runs} runs at {len(speeds)} constant speeds were found."]
    else:
        low, high = np.quantile(sizes, LOAD_QUANTILES)
        if high < MIN_SPEED_RATIO * low:
            raise refuse(record, "friction", f"only one speed ({np.median(sizes):.3g} rad/s) in the log")
        beside["inertia"] = mean(record.acceleration)
        notes = [
            f"constant speeds make up {100.0 * share:.0f} % of the moving time: all sliding samples away from "
            "reversals were used, and an inertia was fitted together with the friction."
        ]
    load = mean(record.load)
    if np.ptp(load) > LOAD_VARIATION * float(np.median(np.abs(torque))):
        sine, cosine, square = (mean(x) for x in (np.sin(record.q), np.cos(record.q), record.load**2))
        beside |= {"sin": sine, "cos": cosine, "load²": np.sign(speed) * square}
        notes.append(
            f"the load varies by {np.ptp(load):.3g} Nm: an error of the gravity model and friction that grows with "
            "the load were fitted together with the curve, which holds without load."
        )
    if record.temperature is not None:
        T0 = float(np.median(record.temperature))
        if np.ptp(warming := mean(record.temperature) - T0) > 0.0:
            # half a kelvin takes 1 % of the friction, mostly from fast runs: it would look like a viscous term
            beside["temperature"] = root_speed(speed) * warming
            notes.append(
                f"the temperature varies by {np.ptp(warming):.2g} K: its effect was fitted together with the curve, "
                f"which holds at {T0:.1f} °C."
            )
    return Rows(
        y=torque[order],
        inputs={"speed": speed[order]},
        block=block,
        test=np.isin(block, np.unique(block)[TEST_EVERY // 2 :: TEST_EVERY]),
        weight=np.sqrt(count / count.mean())[order],
        beside=np.column_stack([np.empty((len(speed), 0)), *beside.values()])[order],
        names=tuple(beside),
        kind=kind,
        notes=tuple(notes),
    )


def _sliding_blocks(record: JointRecord) -> tuple[Callable[[Array], Array], Array, Indices]:
    """Return the mean over short blocks of sliding samples, the samples of each, and its cycle (two reversals)."""
    index = np.flatnonzero(settled(record) & record.is_sliding)
    slot = (index // max(1, int(BLOCK_TIME * record.rate))) * 2 + (record.speed[index] > 0.0)
    first, block = np.unique(slot, return_index=True, return_inverse=True)[1:]
    side = np.sign(np.where(moving(record), record.speed, 0.0))
    latest = np.maximum.accumulate(np.where(side != 0.0, np.arange(record.samples), 0))
    turned = np.diff(side[latest], prepend=side[latest][0]) != 0.0
    cycle: Indices = (np.cumsum(turned) // 2)[index][first]
    if len(np.unique(cycle)) < MIN_CYCLES:
        reason = f"neither constant speeds nor {MIN_CYCLES} cycles forward and back in the log"
        raise refuse(record, "friction", reason)
    count = np.bincount(block).astype(float)
    return lambda values: np.bincount(block, values[index]) / count, count, cycle


def _is_two_sided(rows: Rows) -> bool:
    """Return whether both directions have enough rows."""
    return has_both(rows.inputs["speed"] > 0.0)


def _possible_forms(record: JointRecord, rows: Rows, form: FrictionForm | None) -> list[FrictionForm]:
    """Return the forms that the training rows can determine, or the requested one; raises if there is none.

    Directions differ by an offset, which needs no search.
    """
    training = rows.take(~rows.test)
    side = "offset" if _is_two_sided(training) else "none"
    forms = [replace(f, side=side if f.dry else "none") for f in FORMS] if form is None else [form]
    runs = rows.kind == "runs"
    most = len(training.y) if runs else len(training.y) // POINTS_PER_PARAMETER
    possible = [f for f in forms if f.size + len(rows.names) < most]
    if possible:
        return possible
    data = f"{len(rows.y)} runs" if runs else f"{len(rows.y) * BLOCK_TIME:.2g} s of sliding"
    beside = f" besides {', '.join(rows.names)}" if rows.names else ""
    raise refuse(record, "friction", f"{data} in the log do not determine a curve{beside}: record longer")


# -- fit and its uncertainty --

SLOW_SHARE = 0.25
"""Fraction of the slowest points whose band is checked by itself: a curve is least certain there."""
MAX_LOG_ERROR = 0.6
"""Standard error of log V_S or log μ above which the parameter is not identifiable: a factor of 3 within 95 %."""
CELL_SIZE = 4
"""Blocks of similar speed that form the mean of a cycle at that speed: 0.4 s, comparable to a short run."""
RIPPLE = 5e-4
"""Part of the dry friction by which a curve errs in the same way at every repetition: runs at the same places average
the kinematic error of the gear alike. Without it F_C of two joints of the digital robot changes by 7e-4 and 4e-4."""


def _estimate(rows: Rows, form: FrictionForm, fit: Fit) -> Estimate:
    """Return a fit with its uncertainty, leaving out one run or cycle at a time.

    The jackknife does not see what all runs have in common: `RIPPLE` is added to the standard error of dry friction.
    The scatter is the standard deviation (Nm) of the mean of a run, or of a cycle at one speed, about the curve.
    """
    means = _cell_means(rows, rows.y - fit.on(rows))[1]
    freedom = len(means) - form.size - len(rows.names)
    common = {"F_C": RIPPLE * float(fit.linear[0])} if form.dry else {}
    return estimate(rows, fit, float(np.sqrt(means @ means / max(1, freedom))), common)


def _identifiable(rows: Rows, form: FrictionForm) -> tuple[FrictionForm, Estimate, tuple[str, ...]]:
    """Return a form without parameters that are not identifiable, its fit to all rows, and a note for each of them."""
    notes: list[str] = []
    while True:
        found = _estimate(rows, form, fit_law(rows, form.law))
        if form.free and found.deviation("log mu") > MAX_LOG_ERROR:
            form = replace(form, free=False)
            notes.append("the Stribeck exponent mu is not identifiable from these speeds: it was kept at 1.")
        elif form.stribeck and (found.deviation("log V_S") > MAX_LOG_ERROR or found["F_S-F_C"] <= 0.0):
            form = replace(form, stribeck=False, free=False)
            notes.append("a Stribeck effect is not identifiable from these speeds: it was left out.")
        else:
            return form, found, tuple(notes)


def _band_check(rows: Rows, form: FrictionForm) -> dict[str, float]:
    """Return the fraction `inside` of `points` runs (or cycle means) in a 95 % band fitted without them.

    `slow` is that fraction for the slowest points.
    """
    blocks = np.unique(rows.block)
    folds = np.arange(len(blocks)) % (FOLDS if rows.kind == "runs" else len(blocks))
    full, pieces = fit_law(rows, form.law), []
    for fold in np.unique(folds):
        test = np.isin(rows.block, blocks[folds == fold])
        training, held_out = rows.take(~test), rows.take(test)
        found = _estimate(training, form, fit_law(training, form.law, full))
        speed, error = _cell_means(held_out, held_out.y - found.fit.on(held_out))
        sensitivity = found.fit.sensitivity({"speed": speed}, np.zeros((len(speed), len(rows.names))))
        pieces.append(np.column_stack([np.abs(speed), np.abs(error) <= found.jackknife.band(sensitivity)]))
    speed, inside = np.concatenate(pieces).T
    slow = inside[speed <= np.quantile(speed, SLOW_SHARE)]
    return {"inside": float(inside.mean()), "slow": float(slow.mean()), "points": len(inside)}


def _cell_means(rows: Rows, values: Array) -> tuple[Array, Array]:
    """Return speeds and mean `values` of every run, or of every `CELL_SIZE` blocks of similar speed in a cycle.

    The blocks of a cycle in one direction are sorted by speed and split into cells of equal size, slow ones too.
    """
    speed = rows.inputs["speed"]
    if rows.kind == "runs":
        return speed, values
    cells: list[Indices] = []
    for block in np.unique(rows.block):
        for side in (-1.0, 1.0):
            index = np.flatnonzero((rows.block == block) & (np.sign(speed) == side))
            order = index[np.argsort(np.abs(speed[index]), kind="stable")]
            cells += np.array_split(order, max(1, len(order) // CELL_SIZE)) if len(order) else []
    return np.array([speed[cell].mean() for cell in cells]), np.array([values[cell].mean() for cell in cells])


# -- result --

UNITS = {"F_C": "Nm", "F_S-F_C": "Nm", "F_V1": "Nm s/rad", "F_V2": "Nm s²/rad²", "F_V3": "Nm s³/rad³", "offset": "Nm"}
UNITS |= {"V_S": "rad/s", "mu": "1", "asymmetry": "1"}
ORDER = ("F_C", "F_S", "F_S-F_C", "V_S", "mu", "F_V1", "F_V2", "F_V3", "asymmetry", "offset", "F_C+", "F_C-")
"""Order of the values."""


def _velocity_law(parameters: Mapping[str, float], speed: Array) -> VelocityLaw:
    """Return the velocity law of parameters by name within the range of some speeds, rad/s."""
    x = defaultdict(float, parameters)
    return VelocityLaw(
        coulomb=x["F_C"],
        static=x["F_C"] + x["F_S-F_C"],
        stribeck_speed=float(np.exp(x["log V_S"])),
        shape=float(np.exp(x["log mu"])),
        viscous=x["F_V1"],
        square=x["F_V2"],
        cube=x["F_V3"],
        asymmetry=x["asymmetry"],
        offset=x["offset"],
        slowest=float(np.abs(speed).min()),
        fastest=float(np.abs(speed).max()),
    )


def _values(form: FrictionForm, x: Mapping[str, float], found: Estimate) -> tuple[Value, ...]:
    """Return the parameters with 95 % confidence intervals, and F_S and the directional F_C derived from them.

    The interval of a logarithm becomes an asymmetric one of its exponential.
    """
    values = [found.value(name, UNITS[name]) for name in x if not name.startswith("log ")]
    for name in (name for name in x if name.startswith("log ")):
        short, factor = name.removeprefix("log "), found.jackknife.factor
        values.append(positive_value(short, UNITS[short], float(np.exp(x[name])), found.deviation(name), factor))
    if form.stribeck:
        values.append(found.derived("F_S", "Nm", x["F_C"] + x["F_S-F_C"], {"F_C": 1.0, "F_S-F_C": 1.0}))
    for name, sign in (("F_C+", 1.0), ("F_C-", -1.0)) if form.dry else ():
        if form.side == "asymmetry":
            ratio = 1.0 + sign * x["asymmetry"]
            values.append(found.derived(name, "Nm", x["F_C"] * ratio, {"F_C": ratio, "asymmetry": sign * x["F_C"]}))
        elif form.side == "offset":
            values.append(found.derived(name, "Nm", x["F_C"] + sign * x["offset"], {"F_C": 1.0, "offset": sign}))
    return tuple(sorted(values, key=lambda value: ORDER.index(value.name)))


def _curve(rows: Rows, found: Estimate, law: VelocityLaw) -> Curve:
    """Return runs (or cycle means) over speed without the other effects, with the curve and its band."""
    x, y = _cell_means(rows, rows.y - rows.beside @ [found[name] for name in rows.names])
    sizes = np.geomspace(law.slowest, law.fastest, LINE_POINTS)
    line = np.concatenate([-sizes[::-1]] * bool((x < 0.0).any()) + [sizes] * bool((x > 0.0).any()))
    labels = "Friction over speed; band: the mean of another run (95 %)", "speed [rad/s]", "friction [Nm]"
    residual = y - found.fit.predict({"speed": x}, np.zeros((len(x), len(rows.names))))
    return found.curve(labels, (x, y), residual, {"speed": line})


def _notes(record: JointRecord, rows: Rows) -> list[str]:
    notes = ["the joint moved in one direction only: dry friction and an offset of the torque cannot be distinguished."]
    if _is_two_sided(rows):
        notes = [
            "in steady sliding, a torque offset cannot be distinguished from dry friction that differs by direction."
        ]
    T = record.temperature
    if T is not None and np.ptp(T) >= VISIBLE_WARMING:
        change = f"{T.min():.1f} to {T.max():.1f} °C"
        notes.append(f"the joint warmed from {change}: the curve holds at the mean temperature.")
    return notes
