"""Examples of `jointwise joint`, one set a phenomenon."""

from __future__ import annotations

LINES = {
    "stiffness": (
        "stiffness locked.parquet --robot ur5e --joint 2 --output joint2.json",
        "stiffness locked.csv --robot ur5e --joint 2 --gravity 0 9.81 0 --output joint2.json --report joint2.html",
    ),
    "transmission": (
        "transmission slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "transmission slow.csv --robot ur5e --joint 2 --mounting wall --output joint2.json --report joint2.html",
    ),
    "friction": (
        "friction speeds.parquet --robot ur5e --joint 2 --output joint2.json --report joint2.html",
        "friction speeds.csv --robot ur10e --joint 1 --gain 11.3 --output joint1.json",
    ),
    "load": (
        "load slow.csv --robot ur5e --joint 2 --output joint2.json",
        "load slow.csv --robot ur5e --joint 2 --payload 5,0,0,0.1 --output joint2.json",
    ),
    "temperature": (
        "temperature warm-up.parquet --robot ur5e --joint 2 --output joint2.json",
        "temperature morning.csv noon.csv --robot ur5e --joint 2 --mounting wall --output joint2.json",
    ),
    "hysteresis": (
        "hysteresis slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "hysteresis slow.csv --robot ur5e --joint 1 --method nlr --elements 4 --output joint1.json",
    ),
    "motor": (
        "motor slow.csv --robot ur5e --joint 2 --output joint2.json",
        "motor empty.csv --loaded full.csv --payload-mass 2.8 --robot ur10e --joint 2 --output joint2.json",
        "motor log.csv --targets --robot ur10e --joint 2 --output joint2.json",
    ),
    "all": (
        "all locked.parquet speeds.parquet slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "all friction=speeds.csv@0,9.81,0 load=slow.csv --robot ur5e --joint 2 --output joint2.json",
    ),
}

NOTE = """\
What is found is added to what the output file knows already, and what is known there helps."""


def examples_of(name: str) -> str:
    """Return the examples of a phenomenon, or of `all`, for the end of its help."""
    return "\n".join(["examples:", *(f"  jointwise joint {line}" for line in LINES[name]), "", NOTE])
