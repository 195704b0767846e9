"""The report of a recording lists the whole configuration and needs little memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cli_runs import done
from jointwise.data import Log
from jointwise.experiment import SimulationResult, simulate
from jointwise.report.recording import render_recording
from kernels import needs_native

pytestmark = needs_native


@cache
def made() -> SimulationResult:
    return simulate("planar2", duration=2.0, rate=1000.0)


def page(recording: SimulationResult, log: Log | None = None) -> str:
    assert recording.run is not None
    robot = recording.digital.robot
    return render_recording(robot, log or recording.log, recording.truth, vars(recording.run))


def test_page_lists_the_configuration(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    words = "--rotors complete --jitter 0.0001 --dropped 0.01 --repeated 0.02 --bandwidth 6 --feedback sensors"
    events = "--wear friction=0.3 --payload-at 0.5:0.25 --payload-at 1:0 --push 1.5:0.2:0,3,4"
    files = ("--output", tmp_path / "log.csv", "--report", tmp_path / "page.html")
    done("simulate", "--robot", "planar2", "--duration", 2, *words.split(), *events.split(), *files)
    page_text = (tmp_path / "page.html").read_text(encoding="utf-8").split("<main>")[1]
    for text in (
        "complete",
        "jitter of 0.1 ms, 1 % of the samples dropped, 2 % of the rows repeated",
        "servo at 1000 Hz, bandwidth 6 Hz, feedback from the simulated sensors",
        "payload of 0.25 kg from 0.5 s; no payload from 1 s; push of 5 N at 1.5 s for 0.2 s",
        "wear: friction +30 % by the end",
    ):
        assert text in page_text
    assert page_text.count('"x0":1.5,"x1":1.7') == 4  # two plots over time of two joints


def test_no_marks_without_events() -> None:
    text = page(made())
    assert "<dt>Events</dt><dd>none</dd>" in text and '"shapes"' not in text
    assert "<dt>Clock</dt><dd>uniform</dd>" in text


def test_peaks_are_preserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regardless of the chunks in which a log is read."""
    log, q = made().log, np.array(made().log.q)
    q[[3, 1234, 1999], 0] += 7.0
    spoilt, error = replace(log, q=q), 1e3 * float(np.abs(q - log.channel("q_des"))[:, 0].max())
    monkeypatch.setattr("jointwise.report.recording.POINTS", 200)
    for rows in (65536, 700):
        monkeypatch.setattr("jointwise.report.recording.ROWS", rows)
        assert f"tracking error up to {error:.3g} mrad" in page(made(), spoilt)


def test_memory_stays_below_the_size_of_a_channel() -> None:
    log = made().log
    times = 300
    columns = {name: np.tile(log.channel(name), (times, 1)) for name in log.available if name != "t"}
    long = replace(log, t=np.arange(times * log.samples) / 1000.0, **columns)
    tracemalloc.start()
    try:
        page(made(), long)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.9 * long.q.nbytes
