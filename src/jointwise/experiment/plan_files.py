"""Files of an experiment plan: trajectories, robot programs, a README and a JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import check_directory, make_directory, output_set
from jointwise.call_settings import PlanSettings
from jointwise.design.plan import Plan, PlannedExperiment
from jointwise.design.urscript import supports_urscript, urscript
from jointwise.errors import OutputError
from jointwise.experiment.motion_directory import write_rows, write_texts
from jointwise.report.plan import page
from jointwise.spatial import Array

CHUNK_ROWS = 20_000
"""Rows in memory at a time."""


@checked
def write_plan(
    plan: Plan,
    folder: str | Path,
    *,
    rate: float = PlanSettings.rate,
    programs: bool | None = None,
    force: bool = False,
) -> list[Path]:
    """Write a plan into a new or empty directory and return its files; on an error nothing is written.

    For every experiment a CSV of the motion - t, q1.., qd1.., and tau1.. if the output is locked - and a URScript
    program; README.md and plan.json. A rejected experiment gets neither trajectory nor program.

    Args:
        plan: The plan.
        folder: The directory; it is created if missing.
        rate: Rate of the trajectories in Hz.
        programs: Whether to write URScript programs; None for the six-axis arms of Universal Robots.
        force: Whether files in a directory that is not empty are overwritten.

    Raises:
        OutputError: If the rate is not positive, or the directory is not empty or cannot be created.
    """
    if not 0.0 < rate < np.inf:
        raise OutputError(f"rate must be a positive number of Hz. Got {rate} instead.")
    steps = {f"{number}-{step.purpose.name}": step for number, step in enumerate(plan.steps, start=1)}
    planned = {stem: step for stem, step in steps.items() if step.rejection is None}
    texts = _texts(plan, steps, rate, supports_urscript(plan.robot) if programs is None else programs)
    target = check_directory(folder, force=force)
    with output_set():
        make_directory(target)
        write_texts(target, texts)
        for stem, step in planned.items():
            _write_motion(step, target / f"{stem}.csv", rate)
    return [*(target / name for name in texts), *(target / f"{stem}.csv" for stem in planned)]


def _texts(plan: Plan, steps: Mapping[str, PlannedExperiment], rate: float, scripts: bool) -> dict[str, str]:
    """Return README, document and programs by file name."""
    endings = {"trajectory": "csv", **({"program": "script"} if scripts else {})}
    facts = [step.facts() | {"files": _names(step, stem, endings)} for stem, step in steps.items()]
    texts = {"README.md": page(plan, facts), "plan.json": _document(plan, facts, rate)}
    planned = [(stem, step) for stem, step in steps.items() if scripts and step.rejection is None]
    return texts | {f"{stem}.script": urscript(step) for stem, step in planned}


def _names(step: PlannedExperiment, stem: str, endings: dict[str, str]) -> dict[str, str]:
    """Return the files of an experiment by kind; none if it is rejected."""
    return {key: f"{stem}.{ending}" for key, ending in endings.items()} if step.rejection is None else {}


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


def _write_motion(step: PlannedExperiment, path: Path, rate: float) -> None:
    channels = ("q", "qd") if step.experiment.torque is None else ("q", "qd", "tau")
    write_rows(path, channels, step.robot.dof, _rows(step, rate))


def _rows(step: PlannedExperiment, rate: float) -> Iterator[Array]:
    """Yield the motion in chunks of rows."""
    motion = step.experiment.motion
    count = int(motion.duration * rate + 1e-9) + 1
    for first in range(0, count, CHUNK_ROWS):
        states = motion.at(np.arange(first, min(first + CHUNK_ROWS, count)) / rate)
        columns = [states.t[:, None], states.q, states.qd]
        if step.experiment.torque is not None:
            columns.append(step.experiment.torque.at(states.t))
        yield np.column_stack(columns)
