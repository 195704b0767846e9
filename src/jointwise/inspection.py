"""Inspection of a log before calibration: defects, and the parameters that its motion determines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointwise.arguments import checked
from jointwise.data.coordinates import mounting_of_logs
from jointwise.data.log import Log, log_list
from jointwise.data.quality import DataQuality, check_quality
from jointwise.description.files import as_robot
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Robot
from jointwise.estimation.identifiability import Identifiability, identifiability
from jointwise.formatting import condition_text
from jointwise.options import Options
from jointwise.preparation import held_still, make_regression


@dataclass(frozen=True)
class LogInspection:
    """The result of `inspect`.

    Attributes:
        quality: Clock, channels, motion, and the findings about them.
        identifiability: Which parameters the log determines; None if the log is rejected, or without a robot.

    """

    quality: DataQuality
    identifiability: Identifiability | None

    @property
    def rejected(self) -> bool:
        """Whether the log cannot be used for calibration."""
        return self.quality.verdict == "refused"

    def summary(self) -> str:
        """Return the inspection as lines of text, the verdict last."""
        *lines, verdict = self.quality.lines()
        parameters = [] if self.identifiability is None else _parameter_lines(self.identifiability)
        return "\n".join([*lines, *parameters, verdict])

    def to_dict(self) -> dict[str, Any]:
        """Return the inspection for JSON."""
        parameters = None if self.identifiability is None else self.identifiability.to_dict()
        return {**self.quality.to_dict(), "parameters": parameters}


@checked
def inspect(log: Log, robot: Robot | str | Path | None = None, *, mounting: Mounting | None = None) -> LogInspection:
    """Inspect a log: clock, channels, motion, suspicious units and signs, and the parameters that it determines.

    Args:
        log: The log.
        robot: The robot that it was recorded on, or its name; without it only the signals are inspected.
        mounting: Mounting or gravity vector (m/s²); None for the one stated in the log, else the table.

    Returns:
        The findings, and which parameters can be estimated (None if the log is rejected, or without a robot).

    Raises:
        DataError: The log states another gravity than `mounting`.

    """
    standing = mounting_of_logs(log_list(log), mounting)
    robot = None if robot is None else as_robot(robot)
    quality = check_quality(log, robot)
    if quality.verdict == "refused" or robot is None:
        return LogInspection(quality, None)
    regression = make_regression([held_still(quality)], robot, standing, "q", Options())
    return LogInspection(quality, identifiability(regression))


def _parameter_lines(result: Identifiability) -> list[str]:
    groups = result.to_dict()
    alone = {name: how == "alone" for name, how in result.known.items()}
    bodies, joints = ([how for name, how in alone.items() if ("_" in name) == joint] for joint in (False, True))
    lines = [
        f"  parameters: {sum(alone.values())} of {len(alone)} can be determined: {sum(bodies)} of {len(bodies)} of "
        f"bodies, {sum(joints)} of {len(joints)} of joints",
        f"    (offset, Coulomb and viscous friction); condition number {condition_text(result.condition)}.",
        "    calibrate may add hysteresis and other friction; elements that the data do not need stay at zero",
    ]
    missing = [
        f"    {words}: {', '.join(groups[key])}"
        for key, words in (("without_effect", "without effect here"), ("only_in_combination", "only in combination"))
        if groups[key]
    ]
    advice = "    To determine these too, move all joints at once, over large ranges and at several speeds."
    return [*lines, *missing, advice] if missing else lines
