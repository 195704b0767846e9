"""What is being done, on one line of the terminal, for work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

PATIENCE = 1.0
"""Seconds before anything is shown."""
WIDTH = 24
"""Characters of a full bar."""
TICK = 0.25
"""Seconds between two looks of the line."""


class Progress:
    """A line on stderr with the time and the present step; only on a terminal, and gone when the work is done."""

    def __init__(self, quiet: bool = False) -> None:
        """Stay silent if `quiet`, or if nobody is looking."""
        self._step = ""
        self._started = time.monotonic()
        self._done = threading.Event()
        self._drawn = False
        shown = not quiet and sys.stderr.isatty()
        self._thread = threading.Thread(target=self._draw, daemon=True) if shown else None

    def __call__(self, step: str) -> None:
        """Tell what is being done now."""
        self._step = step

    def part(self, step: str, share: float) -> None:
        """Tell what is being done and how much of it is finished, 0 to 1."""
        done = "#" * round(WIDTH * share)
        self._step = f"{step} {100 * share:.0f} % [{done:<{WIDTH}}]"

    def __enter__(self) -> Self:
        """Start to watch."""
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wipe the line, however the work ended."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _draw(self) -> None:
        while not self._done.wait(TICK):
            elapsed = time.monotonic() - self._started
            if elapsed > PATIENCE:
                self._drawn = True
                print(f"\r\x1b[K{elapsed:5.0f} s  {self._step}", end="", file=sys.stderr, flush=True)
