"""Small logs for the tests of `jointwise.data`: written, moved and broken on purpose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jointwise.data import Log

SHARED = Path(__file__).parents[1].parent / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared real logs (../shared/data) are not here")


def moving_log(samples: int = 2000, joints: int = 2, rate: float = 100.0, **channels: object) -> Log:
    """Return a clean log: sines of every joint, its true speed, a current with noise."""
    rng = np.random.default_rng(1)
    t = np.arange(samples) / rate
    phase = np.outer(t, 1.0 + 0.3 * np.arange(joints))
    signals: dict[str, object] = {
        "t": t,
        "q": np.sin(phase),
        "qd": np.cos(phase) * (1.0 + 0.3 * np.arange(joints)),
        "current": 2.0 * np.cos(phase) + 0.05 * rng.normal(size=phase.shape),
    }
    return Log(**{**signals, **channels})  # type: ignore[arg-type]


def rows_text(rows: int = 5, columns: int = 5, delimiter: str = ",") -> str:
    """Return rows of numbers: stamps 0, 0.01, ... and small values."""
    lines = (
        delimiter.join([f"{0.01 * k:.2f}", *(f"{0.1 * c + 0.001 * k:.4f}" for c in range(1, columns))])
        for k in range(rows)
    )
    return "\n".join(lines) + "\n"


def write(folder: Path, content: str | bytes, name: str = "log.csv") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
