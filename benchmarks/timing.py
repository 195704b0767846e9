"""Fair timing on a shared machine: contestants take turns, ratios are formed round by round."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Task = Callable[[], object]

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def use_one_thread() -> None:
    """Keep every library to one thread; must run before NumPy is imported."""
    for name in ONE_THREAD:
        os.environ[name] = "1"


def cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def seconds(task: Task, repeat: int = 1) -> float:
    """Return the mean time of `repeat` runs, s."""
    start = time.perf_counter()
    for _ in range(repeat):
        task()
    return (time.perf_counter() - start) / repeat


def fastest(task: Task, seconds_in_all: float) -> float:
    """Return the fastest of the runs that fit into `seconds_in_all`, two at least, s: the cost without the noise."""
    runs = [seconds(task) for _ in range(2)]
    while sum(runs) < seconds_in_all:
        runs.append(seconds(task))
    return min(runs)


@dataclass(frozen=True)
class Spread:
    """Median of a list and its extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Summarise the values."""
        return cls(statistics.median(values), min(values), max(values))


def take_turns(tasks: Mapping[str, Task], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every task, one entry a round.

    In a round every task runs for about as long as the slowest: a short one several times, and its mean counts.
    """
    for task in tasks.values():
        task()  # first touch of memory, caches, lazy imports
    once = {name: seconds(task) for name, task in tasks.items()}
    repeat = {name: min(20, max(1, round(max(once.values()) / once[name] / 2))) for name in tasks}
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            times[name].append(seconds(task, repeat[name]))
    return times


def ratios(peer: list[float], actual: list[float]) -> Spread:
    """Return how many times faster `own` is than `peer`, from the ratios of the rounds."""
    return Spread.of([p / o for p, o in zip(peer, actual, strict=True)])
