"""The clock of a log: steps, jitter, repeated and reversed stamps, gaps, and the segments between gaps.

Non-uniform clocks are the normal case: nothing here resamples or moves a stamp. A gap is a step so long that a motion
cannot be followed across it, ``> max(5 median steps, 50 ms)``; shorter holes, such as a host's hiccup at 1 kHz, are
bridged by interpolation on the true stamps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jointwise.data.finding import Finding
from jointwise.data.log import Log, Origin
from jointwise.errors import DataError
from jointwise.spatial import Array

GAP_STEPS = 5.0
GAP_SECONDS = 0.05
_RESTART_STEPS = 10.0
_SHOWN = 5


@dataclass(frozen=True)
class Clock:
    """How a log's stamps run.

    `period` (s) mean step and `rate` (Hz) its inverse, without gaps; `median_step`, `jitter_rms` (s, of the steps about
    their mean) and `quantiles` (s, of the steps: 0, 5, 50, 95, 100 %); `repeated`, `reversed`, `gaps` 0-based samples
    that follow an equal, a later or a much earlier stamp; `segments` slices without gaps; `findings` in words.
    """

    period: float
    rate: float
    median_step: float
    jitter_rms: float
    quantiles: tuple[float, ...]
    repeated: NDArray[np.intp]
    reversed: NDArray[np.intp]
    gaps: NDArray[np.intp]
    segments: tuple[slice, ...]
    findings: tuple[Finding, ...]

    @property
    def faulty(self) -> Finding | None:
        """The finding that refuses this clock, if any."""
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


@dataclass(frozen=True)
class Repaired:
    """A log whose stamps increase: `log`, its `clock`, and the samples `kept` of the original (None: all)."""

    log: Log
    clock: Clock
    kept: NDArray[np.intp] | None


def examine_clock(log: Log) -> Clock:
    """Return how the stamps of a log run; nothing is changed and nothing refused."""
    t = log.t
    steps = np.diff(t)
    median = _median(steps[steps > 0])
    long = steps > max(GAP_STEPS * median, GAP_SECONDS)
    regular = steps[(steps > 0) & ~long]
    period = float(regular.mean()) if len(regular) else median
    repeated, backwards, gaps = (np.flatnonzero(which) + 1 for which in (steps == 0, steps < 0, long))
    return Clock(
        period=period,
        rate=1.0 / period if period > 0 else 0.0,
        median_step=median,
        jitter_rms=float(regular.std()) if len(regular) else 0.0,
        quantiles=_quantiles(steps),
        repeated=repeated,
        reversed=backwards,
        gaps=gaps,
        segments=_segments(len(t), gaps),
        findings=tuple(_findings(log, steps, median, repeated, backwards, gaps)),
    )


def repair_clock(log: Log) -> Repaired:
    """Return the log with increasing stamps: of samples with the same stamp the first stays, with a note.

    Reversed stamps cannot be repaired honestly and are refused with their row.
    """
    clock = examine_clock(log)
    if clock.faulty is not None:
        raise DataError(f"{log.origin.path}: {clock.faulty.message} {clock.faulty.advice}")
    if not len(clock.repeated):
        return Repaired(log, clock, None)
    kept = np.delete(np.arange(log.samples), clock.repeated)
    fixed = log.take(kept, f"{len(clock.repeated)} samples left out: same stamp as the one before")
    again = examine_clock(fixed)
    told = (*clock.findings, *(f for f in again.findings if f.code not in {g.code for g in clock.findings}))
    return Repaired(fixed, replace(again, findings=told), kept)


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
    """Return what is to be said about the stamps."""
    found: list[Finding] = []
    if median == 0.0 and not len(backwards):
        found.append(Finding("error", "no-time", "time stands still: all stamps are equal.", "Record t.", "t"))
    elif len(repeated):
        found.append(_repeated(log, repeated))
    if len(backwards):
        found.append(_reversed(log, steps, median, backwards))
    if len(gaps):
        found.append(_gaps(log.origin, steps, gaps))
    return found


def _repeated(log: Log, repeated: NDArray[np.intp]) -> Finding:
    """Return the finding of equal stamps, telling repeated rows from other values."""
    same = np.ones(len(repeated), dtype=bool)
    for name in log.available[1:]:
        values = getattr(log, name)
        same &= (values[repeated] == values[repeated - 1]).all(axis=1)
    rows = int(same.sum())
    what = f"{len(repeated)} stamps repeat the one before ({rows} whole rows, {len(same) - rows} with other values)"
    return Finding(
        "info" if bool(same.all()) else "warning",
        "repeated-stamps",
        f"{what}, first at {_places(log.origin, repeated)}.",
        "The first of each is used.",
        "t",
    )


def _reversed(log: Log, steps: Array, median: float, backwards: NDArray[np.intp]) -> Finding:
    """Return the finding of stamps that run backwards."""
    if len(backwards) > 0.5 * len(steps):
        return Finding("error", "backwards", "time runs backwards throughout.", "Reverse the rows of the file.", "t")
    falls = -steps[backwards - 1]
    at = _places(log.origin, backwards)
    if bool((falls > _RESTART_STEPS * median).all()) and _restarts(log.t, backwards):
        return Finding(
            "error",
            "restart",
            f"the clock starts again at {at}: several recordings in one file.",
            "Split it there.",
            "t",
        )
    return Finding(
        "error",
        "reversed-stamps",
        f"{len(backwards)} stamps go backwards, first at {at} (by {falls[0]:.6g} s).",
        "Repair the stamps or cut those rows out.",
        "t",
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
        "gaps",
        f"{len(gaps)} gaps, the longest {steps[gaps - 1].max():.4g} s, first at {_places(origin, gaps)}.",
        "Each part between them is treated on its own.",
        "t",
    )


def _places(origin: Origin, samples: NDArray[np.intp]) -> str:
    """Return the first places for a message."""
    shown = ", ".join(origin.where(int(k)) for k in samples[:_SHOWN])
    return shown + (" ..." if len(samples) > _SHOWN else "")
