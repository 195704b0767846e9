"""How a drive makes the current that it is asked for: how much later, and up to which limit.

``y[k] = a y[k-1] + (1 - a) clip(c(t_k - s h), ±L)``, ``i = g y + i_0``: a first-order lag of time constant T,
a = exp(-h/T), after a dead time s h; h is the period of the log, c the target, between samples on a straight line. The
current is behind by ``h (s + a / (1 - a))`` in all: what a controller needs to hand a target on counts with the drive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.data.statistics import noise
from jointwise.joint.jackknife import FEWEST_BLOCKS, block_count, half_width, newton_replicates, spread
from jointwise.joint.part import Curve, Part, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.record import JointRecord
from jointwise.spatial import Array

LEAST_QUALITY = 50.0
"""Fit % below which the current has nothing to do with its target."""
NOISY = 2.0
"""Multiple of its noise by which a current may miss what its target makes of it: beyond, the target is not what the
drive is given. Some controllers log one that they plan, and correct it by feedback."""
SAME = 0.1
"""Part by which current and target may differ in size."""
LONGEST = 100.0
"""Longest lag that is sought, in samples."""
SHARP = 0.5
"""Half width of the lag's interval, in parts of it or of a sample, up to which it counts as determined."""
SLOW = 0.5
"""Mean delay of the first-order part, in samples, from which on it is told from a dead time."""
FLOOR = 0.01
"""Relative deviation that is added to the time constant: between samples the target is not known."""
SPLIT = 0.02
"""Part of a sample that is added to the deviation of the lag, for the same reason."""
BEYOND = 1.05
"""Targets this much above the largest currents may be cut off..."""
FEWEST = 20
"""...if there are so many samples of them..."""
WORTH = 0.8
"""...and a limit leaves less than this part of the squares without."""
STARTS = ((0.5, 0.1), (1.0, 2.0), (1.0, 10.0))
"""Starts of dead time and mean delay, in samples."""
EXCERPT = 60
"""Samples to either side of the fastest change that are drawn."""


@dataclass(frozen=True)
class CurrentLoop:
    """What a record tells about a drive: its numbers, None where not determined, a plot, and what is to be said.

    `lag` (s) by which the current follows its target, `constant` (s) of its first-order part, `limit` (A).
    """

    lag: Value | None = None
    constant: Value | None = None
    limit: Value | None = None
    curve: Curve | None = None
    notes: tuple[str, ...] = ()

    def added(self, part: Part) -> Part:
        """Return a part of the motor with what is known here."""
        values = [own for own in (self.lag, self.constant, self.limit) if own is not None]
        curves = () if self.curve is None else (self.curve,)
        return replace(
            part,
            values=(*part.values, *values),
            curves=(*part.curves, *curves),
            notes=(*part.notes, *self.notes),
        )


def identify_current_loop(record: JointRecord) -> CurrentLoop:
    """Return lag and limit of the current against its target; nothing of it is refused, only not determined."""
    if record.asked is None or not record.has_current:
        return CurrentLoop()
    signals = _Signals(record.asked, record.motor / record.gain, record.stretch, record.t)
    blocks = block_count(record.samples / record.rate)
    if not np.ptp(signals.target) > 0.0 or blocks < FEWEST_BLOCKS:
        return CurrentLoop(notes=("lag of the current is not determined: its target hardly varies",))
    fit = _fitted(signals)
    quality = nrmse_percent(signals.current, signals.current - fit.residual)
    if not quality >= LEAST_QUALITY:
        what = f"the current does not follow its target (fit {quality:.0f} %)"
        return CurrentLoop(notes=(f"lag of the current is not determined: {what}",))
    return _told(record, signals, fit, np.arange(record.samples) * blocks // record.samples)


def _doubt(signals: _Signals, fit: _Fit) -> str:
    """Return why the logged target is not what the drive is given; nothing where it is."""
    gain = float(fit.numbers[2])
    if abs(gain - 1.0) > SAME:
        return f"the current is {gain:.2f} times its target"
    rest, least = float(np.sqrt(np.mean(fit.residual**2))), float(noise(signals.current[:, None])[0])
    if rest > NOISY * least:
        return (
            f"the current misses its target by {rest:.2g} A, its noise is {least:.2g} A: the drive is given another "
            "target, or it changes between samples"
        )
    return ""


@dataclass(frozen=True, eq=False)
class _Signals:
    """Target and current (A), stretch and time (s), (samples,) each."""

    target: Array
    current: Array
    stretch: NDArray[np.intp]
    t: Array

    def modelled(self, numbers: Array) -> Array:
        """Return the current of ``s, p, g, i_0[, L]``; p = a / (1 - a) is the mean delay of the first-order part."""
        from scipy.signal import lfilter

        s, p, gain, offset = numbers[:4]
        a = p / (1.0 + p)
        parts = []
        for k in np.unique(self.stretch):
            own = self.target[self.stretch == k]
            here = np.arange(len(own), dtype=float)
            asked = np.interp(here - s, here, own)
            if len(numbers) > 4:
                asked = np.clip(asked, -numbers[4], numbers[4])
            parts.append(lfilter([1.0 - a], [1.0, -a], asked, zi=a * asked[:1])[0])
        result: Array = gain * np.concatenate(parts) + offset
        return result


@dataclass(frozen=True)
class _Fit:
    numbers: Array
    residual: Array
    jacobian: Array

    @property
    def cost(self) -> float:
        return float(self.residual @ self.residual)


def _fitted(signals: _Signals) -> _Fit:
    """Return the best lag, with a limit where the targets go beyond the currents and it leaves clearly less."""
    free = min((_least(signals, np.array([s, p, 1.0, 0.0])) for s, p in STARTS), key=lambda fit: fit.cost)
    top = float(np.quantile(np.abs(signals.current), 0.999))
    cut = np.abs(signals.target) > BEYOND * top
    if cut.sum() < FEWEST:
        return free
    starts = [np.append(free.numbers, level) for level in (top, float(np.median(np.abs(signals.current[cut]))))]
    starts += [np.array([s, p, 1.0, 0.0, top]) for s, p in STARTS]
    limited = min((_least(signals, start) for start in starts), key=lambda fit: fit.cost)
    return limited if limited.cost < WORTH * free.cost else free


def _least(signals: _Signals, start: Array) -> _Fit:
    from scipy.optimize import least_squares

    most = float(np.abs(signals.target).max())
    low = np.array([-LONGEST, 0.0, -np.inf, -np.inf, 1e-3 * most])[: len(start)]
    high = np.array([LONGEST, LONGEST, np.inf, np.inf, most])[: len(start)]
    found = least_squares(
        lambda x: signals.current - signals.modelled(x),
        np.clip(start, low + 1e-6, high - 1e-9),
        bounds=(low, high),
        x_scale=np.array([1.0, 1.0, 1.0, 1.0, most])[: len(start)],
        diff_step=1e-4,
    )
    return _Fit(found.x, found.fun, found.jac)


def _told(record: JointRecord, signals: _Signals, fit: _Fit, block: NDArray[np.intp]) -> CurrentLoop:
    others = newton_replicates(fit.numbers, fit.residual, fit.jacobian, block)
    h = 1.0 / record.rate
    factor = half_width(len(others))

    def value(name: str, unit: str, number: float, left: Array) -> Value:
        return value_of(name, unit, number, float(spread(left)), factor)

    s, p = fit.numbers[:2]
    scatter = float(spread(others[:, 0] + others[:, 1]))
    lag = value_of("lag", "s", h * (s + p), h * float(np.hypot(scatter, SPLIT)), factor)
    delay = value("delay", "1", p, others[:, 1])
    constant = None
    if delay.low > 0.0 and p > SLOW:
        constant = _widened(value("time_constant", "s", float(_constant(p, h)), _constant(others[:, 1], h)), factor)
    limit = _limit(signals, fit, others, factor) if len(fit.numbers) > 4 else None
    notes = () if limit else (f"no limit of the current is seen up to {np.abs(signals.current).max():.3g} A",)
    doubt = _doubt(signals, fit)
    if not doubt and lag.high < 0.0:
        doubt = "the current is ahead of its target"
    if not doubt and 0.5 * (lag.high - lag.low) > SHARP * max(lag.value, h):
        doubt = "the target changes too slowly for the noise"
    if doubt:
        return CurrentLoop(limit=limit, notes=(f"lag of the current is not determined: {doubt}", *notes))
    counted = (
        f"the lag of the current counts what the controller takes to hand a target on; a sample takes {1e3 * h:.3g} ms"
    )
    return CurrentLoop(lag, constant, limit, _curve(signals, fit), (counted, *notes))


def _limit(signals: _Signals, fit: _Fit, others: Array, factor: float) -> Value:
    """Return g L; noise that goes on while the current sits there is averaged over the times it does, no more."""
    at = np.abs(signals.target) > fit.numbers[4]
    times = np.count_nonzero(np.diff(at.astype(np.int8), prepend=0) > 0)
    scatter = float(np.std(fit.residual[at])) / np.sqrt(max(int(times), 1))
    left = float(spread(others[:, 2] * others[:, 4]))
    return value_of("limit", "A", float(fit.numbers[2] * fit.numbers[4]), float(np.hypot(left, scatter)), factor)


def _constant(delay: Array | float, period: float) -> Array:
    """Return T = -h / ln a in s of a mean delay p = a / (1 - a) in samples."""
    result: Array = period / np.log1p(1.0 / np.maximum(delay, 1e-3))
    return result


def _widened(value: Value, factor: float) -> Value:
    return value_of(value.name, value.unit, value.value, float(np.hypot(value.deviation, FLOOR * value.value)), factor)


def _curve(signals: _Signals, fit: _Fit) -> Curve:
    """Return by how much the current misses its target around the fastest change of it."""
    fastest = int(np.argmax(np.abs(np.diff(signals.target))))
    near = slice(max(fastest - EXCERPT, 0), fastest + EXCERPT)
    own = signals.stretch[near] == signals.stretch[fastest]
    t, target, current, modelled = (
        x[near][own] for x in (signals.t, signals.target, signals.current, signals.modelled(fit.numbers))
    )
    return Curve(
        title="Current behind its target, at the fastest change",
        x_label="time [s]",
        y_label="target less current [A]",
        x=plain(t),
        y=plain(target - current),
        line_x=plain(t),
        line_y=plain(target - modelled),
        residual=plain(modelled - current),
    )
