"""Memory stays flat: three times the rows, the same peak."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import jointwise
from jointwise.data import Log, Origin
from jointwise.design import make_experiment
from jointwise.experiment import SimulationResult, result
from jointwise.simulation.robot import digital_robot

STATUS = Path("/proc/self/status")
"""Contains the peak of this process alone; getrusage would include its parent."""

PROGRAM = """
import pathlib, sys
from jointwise.data import check_quality, read_log
log = read_log(sys.argv[1], spool_bytes=4_000_000)
assert log.pages is not None
total = sum(chunk.q.sum() for chunk in log.chunks(20000))
check_quality(log)
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


@pytest.mark.thorough
@pytest.mark.skipif(not STATUS.exists(), reason="the system does not report the peak memory of a process")
def test_peak_memory_does_not_grow_with_length(tmp_path):
    write_long(tmp_path / "short.csv", 100_000)
    write_long(tmp_path / "long.csv", 300_000)
    short, long = peak(tmp_path / "short.csv"), peak(tmp_path / "long.csv")
    assert long < short + 30.0, f"{short:.0f} MB for 100k rows, {long:.0f} MB for 300k rows"
    assert long < 500.0


ARROW = """
import sys, tracemalloc
import pyarrow as pa
from pyarrow import parquet
from jointwise.data import read_log
tracemalloc.start()
log = read_log(sys.argv[1], spool_bytes=1_000_000)
assert log.pages is not None
print(pa.default_memory_pool().max_memory(), tracemalloc.get_traced_memory()[1])
"""


def write_groups(path, groups, rows=20_000):
    """Write a Parquet log of row groups, all of the same motion."""
    arrow = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    rng = np.random.default_rng(0)
    block = rng.normal(size=(rows, 18))  # noise: nothing is packed into nothing
    names = [f"{stem}{j}" for stem in ("q", "qd", "i") for j in range(1, 7)]
    with arrow.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in ("t", *names)])) as file:
        for k in range(groups):
            t = 0.002 * (np.arange(rows) + k * rows)
            file.write_table(pa.table(dict(zip(("t", *names), (t, *block.T), strict=True))))


@pytest.mark.thorough
def test_a_parquet_log_is_read_without_keeping_its_blocks(tmp_path):
    peaks = []
    for groups in (2, 12):
        path = tmp_path / f"{groups}.parquet"
        write_groups(path, groups)
        done = subprocess.run([sys.executable, "-c", ARROW, str(path)], capture_output=True, text=True, check=True)
        peaks.append([int(peak) for peak in done.stdout.split()])
    for holder, short, long in zip(("Arrow", "Python"), *peaks, strict=True):
        reported = f"{holder} held {short / 1e6:.1f} MB of 2 row groups, {long / 1e6:.1f} MB of 12"
        assert 0 < long < 1.5 * short, reported


def recording_of(samples):
    """Return a recording of a joint under test with a log of so many samples, all of it of one kind."""
    arm = jointwise.load_robot("ur5e")
    experiment = make_experiment("reciprocate", arm, 20.0, joint=1)
    digital = digital_robot(arm, gravity=experiment.gravity)
    t = np.arange(samples) / 500.0
    q = 0.1 * np.sin(np.outer(t, np.arange(1.0, 7.0)))
    log = Log(t=t, q=q, current=q, temperature=20.0 + q, q_des=q + 1e-4, current_des=q, origin=Origin("made"))
    truth = {"gravity": list(experiment.gravity), "duration": float(t[-1]), "rate": 500.0}
    return SimulationResult(log, truth, None, experiment, digital)


def test_the_summary_of_a_recording_takes_no_more_memory_for_a_longer_one(monkeypatch):
    monkeypatch.setattr(result, "CHUNK_SAMPLES", 500)
    peaks = []
    for samples in (2_000, 60_000):
        recording = recording_of(samples)
        tracemalloc.start()
        recording.to_dict()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    short, long = peaks
    column = 8 * 6 * 60_000
    assert long < short + 0.3 * column, f"{short / 1e6:.2f} MB for 2k samples, {long / 1e6:.2f} MB for 60k"
