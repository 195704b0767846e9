"""What the channels of a log say by themselves: zeros between samples, saturation, the controller's set points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jointwise.data import statistics
from jointwise.data.conditioning import CHUNK
from jointwise.data.log import Log
from jointwise.data.quality import MOST_SATURATED, check_quality, coarse_outputs
from jointwise.finding import Finding, Severity
from jointwise.formatting import listed
from jointwise.spatial import Array

ZEROS_SUSPECT, ZEROS_CONTRADICTED = 2e-3, 1e-2
"""Shares of samples that are zero although those around them are not."""
RATE, LONGEST_DELAY = 200.0, 0.15
"""Clock (Hz) on which set points are compared, and the longest delay (s) that is considered."""
SIMILAR, SAME = 0.97, 0.997
"""Correlations from which the set point predicts the output of a joint well, and nearly perfectly (no friction, no
undeclared load)."""
GAIN_RATIO = 1.25
"""Ratio of measured output and set point beyond which a gain is suspect; friction explains up to 1.2."""
OFFSET_SHARE = 0.25
"""Constant part of an output, relative to its standard deviation, above which it is suspect."""
COMMON_DELAY, JOINT_DELAY = 0.012, 0.04
"""Delays (s) of all outputs, and of one output against the others, above which time stamps are suspect: friction that
is not in the set point delays an output by up to 0.03 s."""

SMOOTH_SHARE = 0.45
"""Roughness of an output, relative to the median of the others, below which it was low-passed on its own: it is 0.56
to 1.6 in logs of UR, Franka and simulated arms, at most 0.44 after a first-order filter of 3 Hz on one output."""
ROUNDING_SUSPECT, ROUNDING_CONTRADICTED = 0.02, 0.1
"""Variances of the rounding error, relative to that of an output, from which no model of the joint is good or fair."""
LEAST_ROUGHNESS = 0.1
"""Median roughness below which the outputs show no noise: all are smooth, and none of them differs by a filter."""


def check_resolution(logs: Sequence[Log], output: str) -> Iterator[Finding]:
    """Yield the outputs whose few levels alone make every model of the joint poor, or not good.

    A log in which an output has enough levels is enough for its joint.
    """
    shares = np.min([_rounding_shares(log, output) for log in logs], axis=0)
    joints = np.flatnonzero(shares > ROUNDING_SUSPECT)
    if joints.size == 0:
        return
    names = [logs[0].names[output][j] for j in joints]
    text = f"{listed(names)} {'has' if len(names) == 1 else 'have'} a few levels only"
    advice = f"Leave out what is too coarse (--ignore-output {','.join(str(j + 1) for j in joints)})."
    severity: Severity = "error" if shares.max() > ROUNDING_CONTRADICTED else "warning"
    yield Finding(
        severity, "resolution", f"{text}: rounding is up to {100.0 * shares.max():.2g} % of the variance", advice
    )


def _rounding_shares(log: Log, output: str) -> Array:
    """Return the variance of rounding, quantum² / 12, over that of the output, (joints,); 0 with enough levels."""
    result, coarse = np.zeros(log.joints), coarse_outputs(log, output)
    if coarse:
        quantum = check_quality(log).numbers.channels[output].quantum[coarse]
        variances = [np.var(part.channel(output)[:, coarse], axis=0) for part in statistics.windows(log)]
        result[coarse] = quantum**2 / 12.0 / np.maximum(np.mean(variances, axis=0), 1e-300)
        log.release()
    return result


def check_zeros(logs: Sequence[Log], output: str) -> Finding:
    """Return whether an output drops to zero for single samples; one with a few levels only may do so."""
    shares = [_zero_share(log, output) for log in logs]
    worst = int(np.argmax([share.max() for share in shares]))
    share = float(shares[worst].max())
    if share < ZEROS_SUSPECT:
        return Finding(
            "ok", "dropped samples", f"at most {100.0 * share:.2g} % of the output are zeros between samples"
        )
    names = [logs[worst].names[output][j] for j in np.flatnonzero(shares[worst] >= ZEROS_SUSPECT)]
    verb, most = ("is", "") if len(names) == 1 else ("are", "up to ")
    text = (
        f"{listed(names)} {verb} zero in {most}{100.0 * share:.2g} % of the samples although the samples around are not"
    )
    advice = "Leave these rows out: a zero that stands for a missing value is not a measurement."
    return Finding("error" if share >= ZEROS_CONTRADICTED else "warning", "dropped samples", text, advice)


def check_saturation(logs: Sequence[Log], output: str) -> Finding:
    """Return whether an output piles up at its extreme values, as if it were cut off."""
    shares = [check_quality(log).numbers.channels[output].saturated.copy() for log in logs]
    for share_of_log, log in zip(shares, logs, strict=True):
        share_of_log[coarse_outputs(log, output)] = 0.0
    worst = int(np.argmax([share.max() for share in shares]))
    joint, share = int(np.argmax(shares[worst])), float(shares[worst].max())
    text = f"{logs[worst].names[output][joint]} is at its extreme value in {100.0 * share:.2g} % of the samples"
    if share <= MOST_SATURATED:
        return Finding("ok", "saturation", "no output piles up at its extreme values")
    return Finding("warning", "saturation", text, "Check the range of this channel, or move less violently.")


def check_low_pass(logs: Sequence[Log], output: str) -> Iterator[Finding]:
    """Yield the output of a joint that is much smoother than those of the others: low-passed, and so late."""
    ratios = [_relative_roughness(log, output) for log in logs]
    worst = int(np.argmin([ratio.min() for ratio in ratios]))
    joint, ratio = int(np.argmin(ratios[worst])), float(ratios[worst].min())
    if ratio < SMOOTH_SHARE:
        text = f"{logs[worst].names[output][joint]} is {1.0 / ratio:.1f} times as smooth as the outputs of other joints"
        advice = "It was probably low-passed, and so delayed: record it without a filter, or filter all outputs alike."
        yield Finding("warning", "low-pass", text, advice)


def _relative_roughness(log: Log, output: str) -> Array:
    """Return the roughness of every output over the median of the others, (joints,); 1 where it cannot be compared.

    Roughness is the size of second differences over that of first ones, 1 for white noise, about 0 for a smooth signal.
    """
    values = [np.asarray(part.channel(output)) for part in statistics.windows(log)]
    first, second = (
        np.sqrt(np.mean([np.square(np.diff(part, order, axis=0)).mean(axis=0) for part in values], axis=0))
        for order in (1, 2)
    )
    moving = check_quality(log).numbers.moved & ~log.unmeasured(output) & (first > 0.0)
    rough = np.divide(second / np.sqrt(3.0), first, out=np.zeros_like(first), where=moving)
    result: Array = np.ones_like(rough)
    for j in np.flatnonzero(moving):
        others = rough[moving & (np.arange(len(rough)) != j)]
        usual = float(np.median(others)) if others.size > 1 else 0.0
        result[j] = rough[j] / usual if usual > LEAST_ROUGHNESS else 1.0
    return result


def _zero_share(log: Log, output: str) -> Array:
    """Return the share of samples (joints,) that are exactly zero and far from the median of their neighbours."""
    shares, coarse = [], coarse_outputs(log, output)
    for part in statistics.windows(log):
        values = np.where(part.unmeasured(output), 1.0, part.channel(output))
        values[:, coarse] = 1.0
        around = _running_median(values)
        limit = np.maximum(5.0 * statistics.noise(values), 0.05 * np.abs(around).max(axis=0))
        shares.append(((values == 0.0) & (np.abs(around) > limit)).mean(axis=0))
    log.release()
    return np.asarray(np.mean(shares, axis=0))


def _running_median(values: Array) -> Array:
    """Return the median of every sample (samples, joints) and its three neighbours on either side, the ends held."""
    wide = np.pad(values, ((3, 3), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(wide, 7, axis=0)
    chunks = [np.median(windows[k : k + CHUNK], axis=-1) for k in range(0, len(values), CHUNK)]  # it copies the windows
    return np.concatenate(chunks)


@dataclass(frozen=True, eq=False)
class SetPoints:
    """Measured output and set point of a log on a uniform clock.

    Attributes:
        output: Measured output, (samples, joints), A or Nm.
        target: Set point of the output, (samples, joints), in the same unit.
        moving: Whether a joint moves and its set point varies, (joints,).
    """

    output: Array
    target: Array
    moving: NDArray[np.bool_]

    @classmethod
    def of_log(cls, log: Log, output: str) -> SetPoints | None:
        """Return the signals of a log; None where it has no set point of the output."""
        target = getattr(log, f"{output}_des")
        if target is None or not (np.diff(log.t) > 0.0).all():
            return None
        times = np.arange(log.t[0], log.t[-1], 1.0 / RATE)
        measured, wanted = (
            np.column_stack([np.interp(times, log.t, column) for column in np.asarray(values).T])
            for values in (np.nan_to_num(log.channel(output)), target)
        )
        varies = wanted.std(axis=0) > 0.02 * measured.std(axis=0)
        return cls(measured, wanted, check_quality(log).numbers.moved & varies & ~log.unmeasured(output))

    @cached_property
    def correlation(self) -> Array:
        """Correlation of every output with every set point, (joints, joints); 0 for joints that do not move."""
        a, b = (x - x.mean(axis=0) for x in (self.output, self.target))
        size = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
        both = np.outer(self.moving, self.moving)
        return np.asarray(np.where(both, a.T @ b / np.maximum(size, 1e-12), 0.0))

    @cached_property
    def lines(self) -> Array:
        """Slope and intercept of output over set point, (joints, 2)."""
        fits = [
            np.polyfit(b, a, 1) if m else (1.0, 0.0)
            for a, b, m in zip(self.output.T, self.target.T, self.moving, strict=True)
        ]
        return np.array(fits)

    @cached_property
    def delays(self) -> tuple[Array, Array]:
        """Delay (s) of every output against its set point, (joints,), and the correlation at that delay."""
        steps = int(LONGEST_DELAY * RATE)
        b = self.target[steps : len(self.target) - steps]
        a, b = self.output - self.output.mean(axis=0), b - b.mean(axis=0)
        products = np.column_stack([np.correlate(x, y, "valid") for x, y in zip(a.T, b.T, strict=True)])
        spread = _window_sums(a**2, len(b)) - _window_sums(a, len(b)) ** 2 / len(b)
        table = products / np.maximum(np.sqrt(np.maximum(spread, 0.0)) * np.linalg.norm(b, axis=0), 1e-12)
        best = np.argmax(np.abs(table), axis=0)
        return (best - steps) / RATE, table[best, np.arange(b.shape[1])]


def _window_sums(values: Array, count: int) -> Array:
    """Return the sums of `count` successive values (samples, joints), one for every first sample."""
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    return np.asarray(total[count:] - total[:-count])


def check_set_points(log: Log, output: str, loaded: bool) -> Iterator[Finding]:
    """Yield what the set points of a log make suspect.

    Args:
        log: The log.
        output: Current or torque.
        loaded: Whether a payload is declared or suspected: the controller need not know of it, so only signs and order
            are compared.

    """
    signals = SetPoints.of_log(log, output)
    if signals is None or not signals.moving.any():
        return
    yield from _order(log, output, signals)
    if not loaded:
        yield from _scale(log, output, signals)
        yield from _times(log, output, signals)


def _order(log: Log, output: str, signals: SetPoints) -> Iterator[Finding]:
    """Yield outputs that follow minus their set point, or that of another joint."""
    names, targets = log.names[output], log.names[f"{output}_des"]
    same = np.diag(signals.correlation)
    for j in np.flatnonzero(same < -SIMILAR):
        text = f"{names[j]} follows -{targets[j]} (correlation {same[j]:.2f})"
        yield Finding("warning", "output sign", text, "Check the sign of this column.")
    size = np.abs(signals.correlation)
    for j in np.flatnonzero(signals.moving):
        k = int(np.argmax(size[j]))
        if k != j and size[j, k] > SIMILAR and int(np.argmax(size[k])) != k:
            text = (
                f"{names[j]} follows {targets[k]} (correlation {size[j, k]:.2f}), not {targets[j]} ({size[j, j]:.2f})"
            )
            yield Finding("warning", "output order", text, "Check the order of the columns.")


def _scale(log: Log, output: str, signals: SetPoints) -> Iterator[Finding]:
    """Yield outputs whose size or mean differs from the set point's."""
    names, targets = log.names[output], log.names[f"{output}_des"]
    spread = signals.output.std(axis=0)
    for j in np.flatnonzero(np.diag(signals.correlation) > SIMILAR):
        slope, offset = signals.lines[j]
        if abs(np.log(slope)) > np.log(GAIN_RATIO):
            text = f"{names[j]} is {slope:.2f} times {targets[j]}"
            yield Finding("warning", "gain", text, "Check the unit and the scale of this column.")
        if abs(offset) > OFFSET_SHARE * spread[j]:
            text = f"{names[j]} exceeds {targets[j]} by {offset:.2g} on average"
            yield Finding("warning", "offset", text, "Subtract the offset of this channel before calibration.")


def _times(log: Log, output: str, signals: SetPoints) -> Iterator[Finding]:
    """Yield outputs that are late against the set point."""
    delays, correlation = signals.delays
    good = correlation > SAME
    advice = "Check the time stamps and the filter of this channel, or declare --lag."
    common = float(np.median(delays[good])) if good.any() else 0.0
    if abs(common) > COMMON_DELAY:
        text = f"the outputs follow their set points with a delay of {1e3 * common:.0f} ms"
        yield Finding("warning", "time shift", text, advice)
    usable = signals.moving & (correlation > SIMILAR)
    usual = float(np.median(delays[usable])) if usable.any() else 0.0
    for j in np.flatnonzero(usable & (np.abs(delays - usual) > JOINT_DELAY)):
        late = f"{1e3 * (delays[j] - usual):.0f} ms"
        text = f"{log.names[output][j]} is {late} later than the outputs of other joints: delayed or low-passed"
        yield Finding("warning", "time shift", text, advice)
