"""The clock of a log: steps, jitter, repeated and reversed stamps, gaps, and the segments between gaps.

Non-uniform clocks are the normal case: nothing here resamples or moves a stamp. A gap is a step so long that a motion
cannot be followed across it, ``> max(5 median steps, 50 ms)``; shorter holes, such as a host's hiccup at 1 kHz, are
bridged by interpolation on the true stamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import DataError
from jointwise.finding import Finding
from jointwise.spatial import Array

if TYPE_CHECKING:
    from jointwise.data.log import Log, Origin

GAP_STEPS = 5.0
"""A gap is longer than this many median steps ..."""
GAP_SECONDS = 0.05
"""... and than this, s."""
MAX_UNEVEN = 0.05
"""Share of steps that may differ from the median step, and the part of it by which they may, of a uniform clock."""
RATE_DIGITS = 9
"""Digits of a rate: the rest is rounding of the stamps, 1 µs in 20 minutes, and would turn 200 into 199.99999999997."""
_RESTART_STEPS = 10.0
_SHOWN = 5


@dataclass(frozen=True)
class Clock:
    """How a log's stamps run.

    Attributes:
        period: Mean step without gaps, s.
        rate: Inverse of `period`, Hz.
        median_step: Median step, s.
        jitter_rms: Standard deviation of the steps, without gaps, s.
        uneven: Whether more than `MAX_UNEVEN` of the steps differ from their median.
        usual_step: Mean of the steps that do not differ from the median, s; the median if `uneven`.
        quantiles: 0, 5, 50, 95 and 100 % quantiles of the steps, s.
        repeated: Samples (0-based) with the same stamp as the one before.
        reversed: Samples with an earlier stamp than the one before.
        gaps: Samples that follow a gap.
        segments: Slices of samples between gaps.
        findings: What is wrong with the stamps, in words.
    """

    period: float
    rate: float
    median_step: float
    jitter_rms: float
    uneven: bool
    usual_step: float
    quantiles: tuple[float, ...]
    repeated: NDArray[np.intp]
    reversed: NDArray[np.intp]
    gaps: NDArray[np.intp]
    segments: tuple[slice, ...]
    findings: tuple[Finding, ...]

    @property
    def uniform_rate(self) -> float:
        """Rate (Hz) of the uniform clock that fits the stamps, to the digits that stamps determine."""
        return float(f"{1.0 / self.usual_step:.{RATE_DIGITS}g}")

    @property
    def faulty(self) -> Finding | None:
        """The error among the findings, if any."""
        return next((finding for finding in self.findings if finding.severity == "error"), None)

    def to_dict(self) -> dict[str, object]:
        """Return the numbers for JSON."""
        return {
            "period": self.period,
            "rate": self.rate,
            "median_step": self.median_step,
            "jitter_rms": self.jitter_rms,
            "step_quantiles": list(self.quantiles),
            "repeated": len(self.repeated),
            "reversed": len(self.reversed),
            "gaps": len(self.gaps),
            "segments": [[part.start, part.stop] for part in self.segments],
        }


def examine_clock(log: Log) -> Clock:
    """Return how the stamps of a log run; see `Log.clock`, which computes it once."""
    t = log.t
    steps = np.diff(t)
    median = _median(steps[steps > 0])
    long = steps > max(GAP_STEPS * median, GAP_SECONDS)
    regular = steps[(steps > 0) & ~long]
    period = float(regular.mean()) if len(regular) else median
    near = steps[(steps > 0) & (np.abs(steps - median) <= MAX_UNEVEN * median)]
    uneven = len(near) < (1.0 - MAX_UNEVEN) * int((steps > 0).sum())
    repeated, backwards, gaps = (np.flatnonzero(which) + 1 for which in (steps == 0, steps < 0, long))
    return Clock(
        period=period,
        rate=1.0 / period if period > 0 else 0.0,
        median_step=median,
        jitter_rms=float(regular.std()) if len(regular) else 0.0,
        uneven=uneven,
        usual_step=_without_rounding(median, t) if uneven or not len(near) else _usual_step(near, steps, t),
        quantiles=_quantiles(steps),
        repeated=repeated,
        reversed=backwards,
        gaps=gaps,
        segments=_segments(len(t), gaps),
        findings=tuple(_findings(log, steps, median, repeated, backwards, gaps)),
    )


def forward_samples(log: Log) -> NDArray[np.intp]:
    """Return the samples with increasing stamps: of samples with the same stamp the first remains.

    Raises:
        DataError: Stamps run backwards or time stands still; names the row.
    """
    if log.clock.faulty is not None:
        raise DataError(f"{log.origin.path}: {log.clock.faulty.sentence}")
    return np.delete(np.arange(log.samples), log.clock.repeated)


def _usual_step(near: Array, steps: Array, t: Array) -> float:
    """Return the mean of the `near` ones among some steps (s): in a run of them, all roundings but two cancel."""
    runs = len(steps) - len(near) + 1
    return _without_rounding(float(near.mean()), t, min(runs / len(near), 1.0))


def _without_rounding(step: float, t: Array, share: float = 1.0) -> float:
    """Return a step (s) to the decimals that the stamps resolve, if it has this `share` of the rounding of a step.

    Stamps that count from 1970 are rounded to 0.24 µs. Without this, the same motion would have a rate that differs in
    its sixth digit, other times between the samples and other filter coefficients, than with stamps that count from 0.
    """
    resolution = 2.0 * float(np.spacing(np.abs(t).max())) * share if len(t) else 0.0
    return round(step, int(-np.log10(resolution))) if 0.0 < resolution < 1.0 and step > 0.0 else step


def _median(steps: Array) -> float:
    """Return the median of some steps, which may be reordered; 0 of none."""
    return float(np.median(steps, overwrite_input=True)) if len(steps) else 0.0


def _quantiles(steps: Array) -> tuple[float, ...]:
    """Return the 0, 5, 50, 95 and 100 % quantiles of the steps, s."""
    return tuple(float(value) for value in np.quantile(steps, (0.0, 0.05, 0.5, 0.95, 1.0))) if len(steps) else ()


def _segments(samples: int, gaps: NDArray[np.intp]) -> tuple[slice, ...]:
    """Return the slices between gaps."""
    edges = [0, *gaps.tolist(), samples]
    return tuple(slice(edges[k], edges[k + 1]) for k in range(len(edges) - 1))


def _findings(
    log: Log,
    steps: Array,
    median: float,
    repeated: NDArray[np.intp],
    backwards: NDArray[np.intp],
    gaps: NDArray[np.intp],
) -> list[Finding]:
    """Return the findings about the stamps."""
    found: list[Finding] = []
    if median == 0.0 and not len(backwards):
        found.append(
            Finding(
                "error", "stamps", "time stands still: all stamps are equal.", "Record t.", code="no-time", channel="t"
            )
        )
    elif len(repeated):
        found.append(_repeated(log, repeated))
    if len(backwards):
        found.append(_reversed(log, steps, median, backwards))
    if len(gaps):
        found.append(_gaps(log.origin, steps, gaps))
    return found


def _repeated(log: Log, repeated: NDArray[np.intp]) -> Finding:
    """Return the finding of equal stamps; repeated rows and other values are counted apart."""
    same = np.ones(len(repeated), dtype=bool)
    for name in log.available[1:]:
        values = getattr(log, name)
        here, before = values[repeated], values[repeated - 1]
        same &= ((here == before) | (np.isnan(here) & np.isnan(before))).all(axis=1)  # ignored outputs are NaN
    rows = int(same.sum())
    what = f"{len(repeated)} stamps repeat the one before ({rows} whole rows, {len(same) - rows} with other values)"
    return Finding(
        "info" if bool(same.all()) else "warning",
        "stamps",
        f"{what}, first at {_places(log.origin, repeated)}.",
        "The first of each is used.",
        code="repeated-stamps",
        channel="t",
    )


def _reversed(log: Log, steps: Array, median: float, backwards: NDArray[np.intp]) -> Finding:
    """Return the finding of stamps that run backwards."""
    if len(backwards) > 0.5 * len(steps):
        return Finding(
            "error",
            "stamps",
            "time runs backwards throughout.",
            "Reverse the rows of the file.",
            code="backwards",
            channel="t",
        )
    falls = -steps[backwards - 1]
    at = _places(log.origin, backwards)
    if bool((falls > _RESTART_STEPS * median).all()) and _restarts(log.t, backwards):
        return Finding(
            "error",
            "stamps",
            f"the clock starts again at {at}: several recordings in one file.",
            "Split it there.",
            code="restart",
            channel="t",
        )
    return Finding(
        "error",
        "stamps",
        f"{len(backwards)} stamps go backwards, first at {at} (by {falls[0]:.6g} s).",
        "Repair the stamps or cut those rows out.",
        code="reversed-stamps",
        channel="t",
    )


def _restarts(t: Array, backwards: NDArray[np.intp]) -> bool:
    """Return whether the stamps after each fall begin at or below the start of the part before it."""
    starts = t[[0, *backwards]]
    ends = t[[*(backwards - 1), len(t) - 1]]
    return bool((starts[1:] <= starts[:-1] + 0.1 * (ends[:-1] - starts[:-1])).all())


def _gaps(origin: Origin, steps: Array, gaps: NDArray[np.intp]) -> Finding:
    """Return the finding of gaps."""
    return Finding(
        "warning",
        "stamps",
        f"{len(gaps)} gaps, the longest {steps[gaps - 1].max():.4g} s, first at {_places(origin, gaps)}.",
        "Each part between them is treated on its own.",
        code="gaps",
        channel="t",
    )


def _places(origin: Origin, samples: NDArray[np.intp]) -> str:
    """Return the first places for a message."""
    shown = ", ".join(origin.where(int(k)) for k in samples[:_SHOWN])
    return shown + (" ..." if len(samples) > _SHOWN else "")
