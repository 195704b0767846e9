"""Estimates the stiffness of a joint along logs of normal work, and compares it with the joint file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jointwise.call_settings import StiffnessSettings
from jointwise.cli.command import Common, UsageError
from jointwise.cli.joint_logs import JointLogs, logs_of, with_joint
from jointwise.cli.output import Progress, check_files, mounting_for, show
from jointwise.errors import ModelError
from jointwise.formatting import table
from jointwise.settings import option

if TYPE_CHECKING:
    from jointwise.joint import JointModel
    from jointwise.monitoring import StiffnessLimits, StiffnessReport
    from jointwise.monitoring.stiffness import StiffnessStatus

LINE = "stiffness while the robot works, from two encoders and the current; status ok, watch or worn"
EXAMPLES = """\
examples:
  jointwise joint online-stiffness monday.parquet --robot ur5e --joint 1 --known joint1.json
  jointwise joint online-stiffness may.csv june.csv --robot ur5e --joint 1 --known joint1.json --watch 5 --worn 10
  jointwise joint online-stiffness log.csv --robot ur5e --joint 1 --known joint1.json --side motor --json

The joint file must know the friction of the joint ('joint friction' or 'joint hysteresis'); its stiffness is what the
estimate is compared with. Exit code 0: ok or unknown, 3: watch or worn. The method was the subject of a patent
application by the maker of the UR robots: check your situation before you use it in a product."""

PERCENT = 100.0


@dataclass(frozen=True, kw_only=True)
class Settings(StiffnessSettings, JointLogs, Common):
    """Logs, joint file, method and limits."""

    logs: tuple[str, ...] = option(help="logs with theta, q and i, in the order of time", metavar="LOG", argument=True)
    known: str = option(help="joint file with friction and stiffness of the joint", metavar="FILE")


def run(settings: Settings) -> int:
    """Print the estimate and the status."""
    from jointwise.monitoring import monitor_stiffness

    limits = _limits(settings)
    check_files([*settings.logs, settings.known, settings.robot, settings.columns], {})
    with Progress(settings.silent) as progress:
        progress("reading")
        robot = with_joint(settings.load_robot(), settings.joint)
        logs = logs_of(settings, robot, settings.logs)
        report = monitor_stiffness(
            logs, robot, _known(settings, robot.name),
            side=settings.side, variant=settings.variant, mounting=mounting_for(logs, settings.stated_mounting()),
            payload=settings.load(), gain=settings.gain, limits=limits,
        )  # fmt: skip
    show(settings, report.to_dict, lambda: _text(report))
    return 3 if report.status.status in ("watch", "worn") else 0


def _limits(settings: Settings) -> StiffnessLimits:
    from jointwise.monitoring import StiffnessLimits

    try:
        return StiffnessLimits(settings.watch / PERCENT, settings.worn / PERCENT)
    except ModelError:
        raise UsageError(
            f"--watch and --worn must be 0 < watch < worn < 100 %. Got {settings.watch:g} and {settings.worn:g} instead"
        ) from None


def _known(settings: Settings, robot: str) -> JointModel:
    from jointwise.joint import load_joints

    models = load_joints(settings.known)
    others = {model.robot for model in models} - {robot}
    if others:
        raise ModelError(f"{settings.known}: must hold joints of {robot}. Got joints of {others.pop()} instead.")
    for model in models:
        if model.joint == settings.joint - 1:
            return model
    found = ", ".join(str(model.joint + 1) for model in models)
    raise ModelError(f"{settings.known}: must hold joint {settings.joint}. Got joints {found or 'none'} instead.")


def _text(report: StiffnessReport) -> str:
    """Return the text for a terminal."""
    lines = [
        f"{report.robot}, joint {report.joint + 1}, stiffness while working: {report.status.status}",
        f"{report.used} samples in motion of {report.duration:.0f} s used, {report.dropped} faulty; "
        f"side: {report.side}; torque {_predicted(report.status.prediction)}",
    ]
    if report.outside > 0.0:
        lines.append(
            f"{PERCENT * report.outside:.3g} % of the samples are at angles that the transmission part of the joint "
            "file does not cover, and were not used"
        )
    if report.used > 0:
        lines.append(_table(report.status))
    if report.used > 0 and report.side != "link":
        lines.append(f"friction changed by {PERCENT * report.friction_change:+.1f} % since it was identified")
    if report.status.is_stiffer:
        lines.append("gears never become stiffer than they were stored: check payload, drive gain and joint file")
    return "\n".join(lines)


def _table(status: StiffnessStatus) -> str:
    """Return the stiffness, the stored one and the loss."""
    rows = [
        ("stiffness at rest", "Nm/rad", *_numbers(status.at_rest), _stored(status.stored_at_rest)),
        (
            f"secant at {1e3 * status.deflection:.2g} mrad",
            "Nm/rad",
            *_numbers(status.secant),
            _stored(status.stored_secant),
        ),
    ]
    for name, loss in (("loss at rest", status.loss_at_rest), ("loss of the secant", status.loss)):
        if loss is not None:
            rows.append((name, "%", *_numbers([PERCENT * value for value in loss]), ""))
    return table(("", "unit", "value", "95 % from", "to", "stored"), rows)


def _predicted(percent: float | None) -> str:
    return "without variation" if percent is None else f"predicted to {percent:.1f} % (NRMSE)"


def _numbers(values: tuple[float, float, float] | list[float]) -> list[str]:
    return [f"{value:.5g}" for value in values]


def _stored(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.5g}"
