"""Estimates the stiffness of a joint along logs of normal work, and compares it with the joint file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jointwise.cli.arguments import UsageError, add_json, mounting_of, payload_of
from jointwise.cli.joint_logs import add_joint_logs, logs_of, robot_with_joint
from jointwise.cli.output import Progress, as_json, check_files, mounting_for
from jointwise.errors import ModelError
from jointwise.formatting import table

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add logs, joint file, method and limits."""
    add_joint_logs(parser, "logs with theta, q and i, in the order of time")
    parser.add_argument(
        "--known", required=True, metavar="FILE", help="joint file with friction and stiffness of the joint"
    )
    parser.add_argument(
        "--side",
        choices=("motor", "link", "fused"),
        default="fused",
        help="torque from the motor, from the links, or both by inverse variance (default)",
    )
    parser.add_argument(
        "--variant",
        metavar="NAME",
        default="directional-floor",
        help="how old samples are forgotten: plain, exponential, reset, on-off, directional or directional-floor "
        "(default)",
    )
    parser.add_argument(
        "--watch",
        type=float,
        default=7.5,
        metavar="%",
        help="loss of stiffness that gives the status watch (default: 7.5)",
    )
    parser.add_argument(
        "--worn",
        type=float,
        default=15.0,
        metavar="%",
        help="loss of stiffness that gives the status worn (default: 15)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the estimate and the status."""
    from jointwise.monitoring import monitor_stiffness

    limits = _limits(args)
    _check_variant(args.variant)
    check_files([*args.logs, args.known, args.robot, args.columns], {})
    with Progress(args.json) as progress:
        progress("reading")
        robot = robot_with_joint(args)
        logs = logs_of(args, robot, args.logs)
        report = monitor_stiffness(
            logs, robot, _known(args, robot.name),
            side=args.side, variant=args.variant, mounting=mounting_for(logs, mounting_of(args)),
            payload=payload_of(args.payload), gain=args.gain, limits=limits,
        )  # fmt: skip
    print(as_json(report.to_dict()) if args.json else _text(report))
    return 3 if report.status.status in ("watch", "worn") else 0


def _limits(args: argparse.Namespace) -> StiffnessLimits:
    from jointwise.monitoring import StiffnessLimits

    try:
        return StiffnessLimits(args.watch / PERCENT, args.worn / PERCENT)
    except ModelError:
        raise UsageError(
            f"--watch and --worn must be 0 < watch < worn < 100 %. Got {args.watch:g} and {args.worn:g} instead"
        ) from None


def _check_variant(name: str) -> None:
    from jointwise.estimation.recursive import VARIANTS

    if name not in VARIANTS:
        raise UsageError(f"--variant must be one of {', '.join(VARIANTS)}. Got '{name}' instead")


def _known(args: argparse.Namespace, robot: str) -> JointModel:
    from jointwise.joint import load_joints

    models = load_joints(args.known)
    others = {model.robot for model in models} - {robot}
    if others:
        raise ModelError(f"{args.known}: must hold joints of {robot}. Got joints of {others.pop()} instead.")
    for model in models:
        if model.joint == args.joint - 1:
            return model
    found = ", ".join(str(model.joint + 1) for model in models)
    raise ModelError(f"{args.known}: must hold joint {args.joint}. Got joints {found or 'none'} instead.")


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
