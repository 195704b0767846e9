"""The gate: what is worse than the committed figures fails, and an update writes what was found."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import gate
from gate import Figure, compared, judged, written

COMMITTED = tomllib.loads(gate.LIMITS.read_text(encoding="utf-8"))
NMSE = {"better": "lower", "relative": 0.1, "absolute": 0.0}


@pytest.mark.parametrize(
    ("value", "better", "expected"),
    [
        (1.0, "lower", ""),
        (1.05, "lower", "moved"),
        (1.11, "lower", "worse"),
        (0.5, "lower", "better"),
        (0.89, "higher", "worse"),
        (1.2, "higher", "better"),
        (0.89, "equal", "worse"),
        (1.11, "equal", "worse"),
        (float("nan"), "lower", "worse"),
    ],
)
def test_a_figure_is_judged_by_direction_and_tolerance(value: float, better: str, expected: str) -> None:
    assert judged(value, 1.0, {**NMSE, "better": better}) == expected


def test_another_text_is_worse() -> None:
    assert [judged("a", other, NMSE) for other in ("a", "b")] == ["", "worse"]


def test_missing_new_and_skipped_figures_are_distinguished() -> None:
    limits = {"kinds": {"nmse": NMSE}, "figures": {"arm": {"nmse": {"joint 1": 1.0, "joint 2": 1.0}}}}
    rows = compared({"arm": [Figure("nmse", "joint 1", 2.0), Figure("nmse", "joint 3", 1.0)]}, limits)
    assert [(row.figure.name, row.verdict) for row in rows] == [
        ("joint 1", "worse"), ("joint 3", "new"), ("joint 2", "missing"),
    ]  # fmt: skip
    (skipped,) = compared({"arm": [Figure("", "arm", None, "no data")]}, limits)
    assert skipped.verdict == "skipped"
    failed = compared({"arm": [Figure("", "arm", None, "failed: ValueError: no")]}, limits)
    assert [row.verdict for row in failed] == ["failed", "missing", "missing"]


def test_an_update_holds_what_was_found_and_keeps_the_rest() -> None:
    """A section that was not run keeps its figures; kinds and tolerances stay as they are."""
    found = {"exports": [Figure("hash", "exported C", "0123"), Figure("signal", 'a "name"', 1.23456789012)]}
    again = tomllib.loads(written(COMMITTED, found))
    assert again["figures"]["exports"] == {"hash": {"exported C": "0123"}, "signal": {'a "name"': 1.23456789}}
    assert again["kinds"] == COMMITTED["kinds"]
    for section, figures in COMMITTED["figures"].items():
        assert section == "exports" or again["figures"][section] == figures


def test_every_committed_figure_belongs_to_a_section_and_a_kind() -> None:
    assert set(COMMITTED["figures"]) == set(gate.SECTIONS)
    assert {kind for kinds in COMMITTED["figures"].values() for kind in kinds} == set(COMMITTED["kinds"])
