"""Memory stays flat: three times the rows, the same peak."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

STATUS = Path("/proc/self/status")
"""Tells the peak of this process alone; getrusage would count the one that started it."""

PROGRAM = """
import pathlib, sys
from jointwise.data import examine, read_log
log = read_log(sys.argv[1], spool_bytes=4_000_000)
assert log.pages is not None
total = sum(chunk.log.q[chunk.inner].sum() for chunk in log.chunks(20000, 100))
examine(log)
status = pathlib.Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


def write_long(path, rows):
    t = np.arange(1000) * 0.002
    phase = np.outer(t, np.arange(1, 7)) * np.pi
    block = np.column_stack([np.sin(phase), np.cos(phase), np.cos(phase)])
    tails = [",".join(f"{value:.5f}" for value in row) for row in block]
    with path.open("w") as file:
        file.write("t," + ",".join(f"{stem}{j}" for stem in ("q", "qd", "i") for j in range(1, 7)) + "\n")
        for start in range(0, rows, 1000):
            file.writelines(f"{(start + k) * 0.002:.3f},{tail}\n" for k, tail in enumerate(tails))


def peak(path) -> float:
    """Return the peak resident size in MB of a process that reads, walks through and examines a log."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


@pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell the peak memory of a process")
def test_peak_memory_does_not_grow_with_length(tmp_path):
    write_long(tmp_path / "short.csv", 100_000)
    write_long(tmp_path / "long.csv", 300_000)
    short, long = peak(tmp_path / "short.csv"), peak(tmp_path / "long.csv")
    assert long < short + 30.0, f"{short:.0f} MB for 100k rows, {long:.0f} MB for 300k rows"
    assert long < 500.0
