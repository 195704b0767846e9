"""State of the NumPy monitor: what it remembers, and what it computes at a time of its uniform clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jointwise.monitoring.core import MOMENTS, SHARES, VERDICTS
from jointwise.spatial import Array


@dataclass
class WatchMemory:
    """Memory of the reference, see `jw_watch_state`; arrays are (joints,)."""

    joints: int
    friction: Any = None
    started: bool = False
    fresh: bool = True
    origin: float = 0.0
    stamp: float = 0.0
    grid: float = 0.0
    backwards: int = 0
    last: dict[str, Array] = field(default_factory=dict)
    s: dict[str, Array] = field(default_factory=dict)
    x: Array = field(default_factory=lambda: np.zeros(0))
    P: Array = field(default_factory=lambda: np.zeros((0, 0)))
    contact: bool = False
    lasted: float = 0.0
    quiet: float = 0.0
    peak: float = 0.0
    calm: float = 0.0
    age: float = 0.0
    still: float = 0.0
    moved: float = 0.0
    rising: float = 0.0
    highest_rise: float = 0.0
    since: int = 0
    adopted: int = 0
    delayed: list[Array] = field(default_factory=list)
    before: list[Array] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    level: Array = field(default_factory=lambda: np.zeros(0))
    steady: Array = field(default_factory=lambda: np.zeros(0))
    rested: Array = field(default_factory=lambda: np.zeros(0))
    counts: Array = field(default_factory=lambda: np.zeros(len(VERDICTS)))
    report: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """What is computed at a time of the uniform clock and not remembered."""

    columns: Array
    dry: Array
    raw: Array
    direct: Array
    inertia: Array
    load: Array


@dataclass(frozen=True)
class JointsAt:
    """Signals of the motors as those of the joints."""

    q: Array
    qd: Array
    sliding: Array
    qdd: Array
    path: Array


def index_of(joint: int, share: int) -> int:
    """Return the index of an unknown of a joint."""
    return MOMENTS + SHARES * joint + share


def share_of(period: float, time: float) -> float:
    """Return the share of a new value in a first-order filter."""
    return float(1.0 - np.exp(-period / time))


def forget(m: WatchMemory, k: int, variance: float) -> None:
    """Forget an unknown; then it has this variance."""
    m.P[k, :] = m.P[:, k] = 0.0
    m.x[k], m.P[k, k] = 0.0, variance
