"""A plan on disk: trajectories, programs, a page to read and a document for other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.atomic import atomic_write
from jointwise.errors import OutputError
from jointwise.plan.page import page
from jointwise.plan.plan import Plan, Step
from jointwise.plan.urscript import speaks_urscript, urscript
from jointwise.spatial import Array

ROWS = 20_000
"""Rows written at a time."""


def write_plan(plan: Plan, folder: str | Path, *, rate: float = 125.0, programs: bool | None = None) -> list[Path]:
    """Write a plan into a new or empty directory and return its files.

    For every step a CSV of the motion at `rate` (Hz) - t, q1.., qd1.., and tau1.. where the output is locked - and a
    URScript program where `programs` says so (None: for the six-axis arms of that maker); README.md and plan.json. A
    step that is refused gets neither trajectory nor program.
    """
    if not (np.isfinite(rate) and rate > 0.0):
        raise OutputError(f"rate must be a positive number of Hz. Got {rate} instead.")
    scripts = speaks_urscript(plan.robot) if programs is None else programs
    stems = [f"{number}-{step.purpose.name}" for number, step in enumerate(plan.steps, start=1)]
    endings = {"trajectory": "csv", **({"program": "script"} if scripts else {})}
    facts = [
        {**step.facts(), "files": _names(step, stem, endings)} for stem, step in zip(stems, plan.steps, strict=True)
    ]
    made = [(stem, step) for stem, step in zip(stems, plan.steps, strict=True) if step.refusal is None]
    texts = {"README.md": page(plan, facts), "plan.json": _document(plan, facts, rate)}
    if scripts:
        texts |= {f"{stem}.script": urscript(step) for stem, step in made}
    target = _empty(folder)
    for name, text in texts.items():
        with atomic_write(target / name) as file:
            file.write(text)
    for stem, step in made:
        _write_motion(step, target / f"{stem}.csv", rate)
    return [*(target / name for name in texts), *(target / f"{stem}.csv" for stem, _ in made)]


def _names(step: Step, stem: str, endings: dict[str, str]) -> dict[str, str]:
    """Return the files of a step by kind; none of one that is refused."""
    return {key: f"{stem}.{ending}" for key, ending in endings.items()} if step.refusal is None else {}


def _document(plan: Plan, facts: list[dict[str, Any]], rate: float) -> str:
    """Return plan.json."""
    document = {
        "schema": 1,
        "kind": "jointwise plan",
        "robot": plan.robot.name,
        "joint": plan.joint + 1,
        "rate_Hz": rate,
        "clearance_m": plan.clearance,
        "tool_m": None if plan.tool is None else {"length": plan.tool.length, "radius": plan.tool.radius},
        "collisions_checked": ["links", *([] if plan.clearance is None else ["mounting plane"])],
        "experiments": facts,
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _empty(folder: str | Path) -> Path:
    """Return the directory, made if need be; refuse one that holds something."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target}: is a file. Give the name of a new directory.")
    if target.exists() and any(target.iterdir()):
        raise OutputError(f"{target}: is not empty, and a plan overwrites nothing. Give the name of a new directory.")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(f"{target}: no directory can be made there ({problem.strerror}).") from None
    return target


def _write_motion(step: Step, path: Path, rate: float) -> None:
    numbers = range(1, step.robot.dof + 1)
    torque = step.experiment.torque is not None
    names = ["t", *(f"q{j}" for j in numbers), *(f"qd{j}" for j in numbers)]
    names += [f"tau{j}" for j in numbers] if torque else []
    with atomic_write(path) as file:
        file.write(",".join(names) + "\n")
        for rows in _rows(step, rate):
            np.savetxt(file, rows, fmt="%.9g", delimiter=",")


def _rows(step: Step, rate: float) -> Iterator[Array]:
    """Yield the motion in blocks of rows."""
    motion = step.experiment.motion
    count = int(motion.duration * rate + 1e-9) + 1
    for first in range(0, count, ROWS):
        states = motion.at(np.arange(first, min(first + ROWS, count)) / rate)
        columns = [states.t[:, None], states.q, states.qd]
        if step.experiment.torque is not None:
            columns.append(step.experiment.torque.at(states.t))
        yield np.column_stack(columns) + 0.0
