"""Plans the experiments that identify a joint: trajectories, robot programs, and a page with instructions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jointwise.call_settings import DirectorySettings, PlanSettings
from jointwise.cli.command import Common
from jointwise.cli.inputs import Clear, OnTable, RobotFile
from jointwise.cli.joint_logs import with_joint
from jointwise.cli.output import show
from jointwise.formatting import table
from jointwise.settings import Count, Kilograms, option

if TYPE_CHECKING:
    from jointwise.design.plan import Plan, PlannedExperiment


EXAMPLES = """\
examples:
  jointwise joint plan --robot ur5e --joint 2 --output plan
  jointwise joint plan --robot ur10e --joint 1 --experiments friction,temperature --rate 500 --output friction
  jointwise joint plan --robot arm.urdf --joint 3 --mounting wall --payload 3.2 --output plan --json
  jointwise joint plan --robot ur5e --joint 5 --tool 0.15 --output gripper

The directory must be new or empty. Limits, the mounting plane (z = 0 of the base) and self-collision are checked;
obstacles in the cell are not. For an arm 0.8 m above the floor on a pedestal use --clearance -0.75. Programs (URScript)
are written for the six-axis arms of Universal Robots; other controllers execute the trajectory files."""


def experiment_names(text: str) -> tuple[str, ...]:
    """Return the names of a list `a,b`."""
    words = tuple(name.strip() for name in text.split(","))
    if not all(words):
        raise ValueError(f"must be names with commas between them. Got '{text}' instead.")
    return words


@dataclass(frozen=True, kw_only=True)
class Settings(DirectorySettings, PlanSettings, RobotFile, Clear, OnTable, Common):
    """The joint, the experiments and where the files go."""

    joint: Count = option(help="the joint under test, counted from 1", metavar="J")
    experiments: tuple[str, ...] | None = option(
        None, "stiffness, friction, load, temperature, transmission, motor", metavar="A,B", parse=experiment_names,
        standard="all",
    )  # fmt: skip
    payload: Kilograms | None = option(None, "mass of the payload for the experiments that require one", metavar="KG")


def run(settings: Settings) -> int:
    """Write the plan and print its experiments."""
    from jointwise.design.plan import make_plan
    from jointwise.experiment.plan_files import write_plan

    robot = with_joint(settings.load_robot(), settings.joint)
    plan = make_plan(
        robot,
        settings.joint - 1,
        settings.experiments,
        mounting=settings.stated_mounting() or "table",
        payload=settings.payload,
        clearance=settings.clearance,
        tool=settings.shape(),
        called=_called(settings),
    )
    files = write_plan(plan, settings.output, rate=settings.rate, force=settings.force)
    show(
        settings,
        lambda: {"experiments": [step.facts() for step in plan.steps], "files": [str(path) for path in files]},
        lambda: _text(plan, files[0]),
    )
    return 0


def _text(plan: Plan, page: Path) -> str:
    """Return the experiments as a table, what was not planned, and what was not checked."""
    rejected = [f"{step.purpose.name}: not planned, {step.rejection}" for step in plan.steps if step.rejection]
    unseen = "the cell is" if plan.clearance is not None else "the mounting plane and the cell are"
    last = f"\nread {page} first; the arm is checked against itself, {unseen} not"
    return "\n".join([_table(plan), *rejected, last])


def _called(settings: Settings) -> str:
    """Return the robot as the command line names it, and how its file is read."""
    from shlex import quote

    words = [quote(settings.robot)]
    words += [f"--convention {settings.convention}"] if settings.convention else []
    words += [f"--tip {quote(settings.tip)}"] if settings.tip else []
    return " ".join(words)


def _table(plan: Plan) -> str:
    rows = [
        (
            step.purpose.name,
            step.purpose.experiment,
            step.experiment.motion.duration * (2 if step.purpose.twice else 1),
            round(step.lowest, 2) if math.isfinite(step.lowest) else None,
            None if step.nearest is None else round(step.nearest.distance, 3),
            round(step.reach, 2),
            step.purpose.axis,
            _suitability(step),
        )
        for step in plan.steps
    ]
    heads = ("identifies", "experiment", "seconds", "lowest [m]", "links [m]", "reach [m]", "axis", "mounting")
    return table(heads, rows)


def _suitability(step: PlannedExperiment) -> str:
    if step.rejection:
        return "not planned"
    return "suits" if step.suits else "does not suit, see the page"
