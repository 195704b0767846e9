"""Calibrates a model of a robot from one or more logs.

By default, filters are selected from the sampling rate and noise of the logs, and the joint model by cross-validation
within them. Each option fixes one choice; the others remain automatic.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jointwise.cli.arguments import (
    UsageError,
    add_columns,
    add_gravity,
    add_ignored,
    add_json,
    add_quiet,
    add_robot,
    count,
    fraction,
    frequency,
    gain,
    mounting_of,
    not_negative,
    payload_of_log,
    reading,
    robot_of,
    temperature_of_log,
    within,
)
from jointwise.cli.output import Progress, as_json, check_files, mounting_for, note

if TYPE_CHECKING:
    from jointwise.cli.calibration_run import Outcome

INTERMIXED = True
LAG = within(-10.0, 10.0)
"""Lag in s, as in a model file; that of a drive is some milliseconds."""
POWER = within(0.0, 10.0, above=True)
"""Power of the speed."""
ELASTIC_OPTIONS = (
    *("logs", "robot", "convention", "tip", "base", "fix_joint", "coupling", "log_coordinates", "mounting", "gravity"),
    *("columns", "topic", "effort_unit", "elastic", "gains", "position_cutoff", "output", "json", "quiet"),
)
"""Arguments that `--elastic` uses; the others belong to models of rigid joints."""
EXAMPLES = """\
examples:
  jointwise calibrate log.csv --robot ur10e --output model.json
  jointwise calibrate log.csv --robot ur10e --output model.json --holdout 0.3 --report report
  jointwise calibrate a.csv b.csv --robot arm.urdf --tip tool0 --mounting wall --validate c.csv --output model.json
  jointwise calibrate a.csv b.csv --robot ur10e --payload b.csv=2.8,0,0,0.05 --output model.json
  jointwise calibrate log.csv --robot ur5e --joint joint1.json joint2.json --joint-as known --output model.json
  jointwise calibrate log.csv --robot dh.csv --convention dh --direction tanh --load none --output model.json
  jointwise calibrate log.csv --robot ur10e --output-signal current --no-rotors --relaxation 0 --output model.json
  jointwise calibrate log.csv --robot ur10e --parallel-cutoff 20 --decimation 5 --load-basis row-sum --output model.json
  jointwise calibrate --model robot_dynamics --data log.csv --gravity 0 0 -9.81 --out-params parameters.csv \\
      --out-calibrated-model rd_calibrated                      (as in AURT; --model is the output of compile-rd)

A description without inertias (a DH table) is sufficient. The training error does not replace a validation: use
--holdout or --validate."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add files, robot, outputs and the choices that can be fixed."""
    parser.add_argument("logs", nargs="*", metavar="LOG", help="training logs, CSV or Parquet")
    add_robot(parser, required=False)
    add_gravity(parser)
    add_columns(parser)
    add_ignored(parser)
    parser.add_argument(
        "--output-signal",
        choices=("current", "torque"),
        help="signal that the model predicts (default: torque if measured)",
    )
    _add_results(parser.add_argument_group("results"))
    joint_model = parser.add_argument_group("joint model (default: selected by cross-validation)")
    _add_friction(joint_model)
    _add_joint_model(joint_model)
    treatment = parser.add_argument_group("signals and estimation (default: selected from the data)")
    _add_signals(treatment)
    _add_estimation(treatment)
    aurt = parser.add_argument_group("options of AURT")
    aurt.add_argument("--model", metavar="F", help="robot and friction model that compile-rd wrote")
    aurt.add_argument("--data", metavar="CSV", help="the training log")
    aurt.add_argument("--plot", action="store_true", help="accepted and ignored: use --report for plots")


def _add_results(group: argparse._ArgumentGroup) -> None:
    """Add the files to write, validation and the output on the terminal."""
    group.add_argument(
        "--output",
        "--out-calibrated-model",
        "--out-calibration-model",
        metavar="FILE",
        help="model file to write, JSON",
    )
    group.add_argument("--report", metavar="DIR|HTML", help="write an HTML report to this page or directory")
    group.add_argument("--out-params", metavar="CSV", help="write the parameters to a CSV file")
    group.add_argument(
        "--holdout",
        type=fraction,
        metavar="PART",
        help="fraction at the end of every log that is held out for validation, such as 0.3",
    )
    group.add_argument(
        "--validate", nargs="+", action="extend", default=[], metavar="LOG", help="validate on these logs"
    )
    group.add_argument(
        "--accept-implausible",
        action="store_true",
        help="calibrate even if the logs contradict the set-up (the model file records it), and use drive gains of "
        "joint files that contradict the description",
    )
    group.add_argument(
        "--excitation",
        metavar="DIR",
        help="output directory of 'jointwise excite': compare the standard errors with those predicted",
    )
    add_json(group)
    add_quiet(group)


def _add_friction(group: argparse._ArgumentGroup) -> None:
    """Add the terms of friction that can be fixed."""
    group.add_argument(
        "--direction",
        choices=("sign", "tanh", "hysteresis"),
        help="sign of dry friction: step at zero speed (sign), smooth step (tanh), slip elements (hysteresis)",
    )
    group.add_argument("--load", choices=("none", "square", "absolute"), help="dependence of dry friction on the load")
    group.add_argument(
        "--viscous-powers",
        nargs="+",
        type=POWER,
        metavar="P",
        help="exponents of the speed in viscous friction, such as 1 2",
    )
    group.add_argument(
        "--stribeck", type=not_negative, metavar="V", help="Stribeck velocity in rad/s; 0 for no Stribeck term"
    )
    group.add_argument(
        "--power-flow",
        action="store_true",
        help="separate dry friction for motoring and back-driving (direction of power flow)",
    )
    group.add_argument(
        "--ripple",
        action=argparse.BooleanOptionalAction,
        help="include the response of the drive to ripple of the measured speed",
    )
    group.add_argument(
        "--elements",
        type=count,
        metavar="M",
        help="hysteresis with M slip elements whose limits follow a power law, scaled for each joint",
    )
    group.add_argument(
        "--relaxation", type=not_negative, metavar="S", help="relaxation time of the hysteresis; 0 for no relaxation"
    )


def _add_joint_model(group: argparse._ArgumentGroup) -> None:
    """Add known terms of single joints, additional terms, and where rotors and springs are modelled."""
    group.add_argument(
        "--joint",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="use the friction of these joint files ('jointwise joint')",
    )
    group.add_argument(
        "--joint-as",
        choices=("start", "known"),
        help="start: estimate the values of the joint files again; known: keep them fixed (default: start)",
    )
    group.add_argument(
        "--terms",
        nargs="+",
        action="extend",
        default=[],
        metavar="KIND",
        help="additional terms of every joint: spring (a counterbalance), or a term of an installed package",
    )
    group.add_argument(
        "--two-encoders",
        action="store_true",
        help="compute friction and rotor inertia from measured rotor positions (theta1..), bodies from link positions",
    )
    group.add_argument(
        "--rotor-inertia",
        nargs="+",
        type=not_negative,
        metavar="B",
        help="known rotor inertias for --two-encoders, kg m^2 at the joint, one value per joint",
    )
    group.add_argument(
        "--elastic",
        choices=("reduced", "complete"),
        help="identify elastic joints: bodies, rotor inertia, friction and stiffness (requires theta1..)",
    )
    group.add_argument("--no-rotors", action="store_true", help="do not estimate reflected rotor inertias")


def _add_signals(group: argparse._ArgumentGroup) -> None:
    """Add what is known of the logs, and their filters."""
    group.add_argument("--gains", nargs="+", type=gain, metavar="K", help="drive gains in Nm/A, one value per joint")
    group.add_argument(
        "--payload",
        type=payload_of_log,
        action="append",
        default=[],
        metavar="[LOG=]KG[,X,Y,Z]",
        help="payload in the logs, with its centre of mass in m. It becomes part of the estimated parameters, and "
        "estimated drive gains take their scale from the described bodies including it. With LOG= it applies to one "
        "log and is subtracted, so that loaded and unloaded logs can be combined; can be repeated",
    )
    group.add_argument(
        "--temperature",
        type=temperature_of_log,
        action="append",
        default=[],
        metavar="[LOG=]DEGC",
        help="joint temperature of logs that do not contain it; can be repeated",
    )
    group.add_argument(
        "--position-cutoff",
        type=frequency,
        metavar="HZ",
        help="cut-off frequency of the low-pass filter of the positions",
    )
    group.add_argument(
        "--parallel-cutoff",
        type=frequency,
        metavar="HZ",
        help="cut-off frequency of a low-pass filter of regressor and output (default: none)",
    )
    group.add_argument(
        "--lag", type=LAG, metavar="S", help="lag: the output at time t belongs to the motion at t + lag"
    )
    group.add_argument("--decimation", type=count, metavar="N", help="use every N-th sample")


def _add_estimation(group: argparse._ArgumentGroup) -> None:
    """Add the method of the fit and the bodies that it estimates."""
    group.add_argument(
        "--method",
        choices=("wls", "ols", "huber", "iv"),
        default="wls",
        help="weighted, ordinary or robust least squares, or instrumental variables from q_des1.. (default: wls)",
    )
    group.add_argument(
        "--load-basis",
        choices=("model", "row-sum"),
        help="load torque from the model, or from the row sum of the regressor as in AURT",
    )
    group.add_argument(
        "--essential",
        action="store_true",
        help="set base parameters to zero that are poorly determined and not needed for prediction",
    )
    group.add_argument(
        "--essential-tolerance",
        type=within(0.0, 100.0, above=True),
        metavar="PERCENT",
        help="largest increase of the held-out error that --essential accepts (default: 0.5)",
    )
    group.add_argument("--no-physical", action="store_true", help="do not estimate physically consistent bodies")
    group.add_argument(
        "--body-prior",
        choices=("entropic", "euclidean"),
        default="entropic",
        help="distance between consistent and described bodies (default: entropic)",
    )


def run(args: argparse.Namespace) -> int:
    """Calibrate, validate, write, and print a short table."""
    if args.elastic:
        return _run_elastic(args)
    from jointwise.cli.calibration_run import carry_out

    with Progress(args.quiet or args.json) as progress:
        outcome = carry_out(args, progress)
    report(args, outcome)
    return 0


def _run_elastic(args: argparse.Namespace) -> int:
    """Identify elastic joints, write the parameters as JSON, and print them."""
    if not all((args.logs, args.robot, args.output)):
        raise UsageError("--elastic needs LOG, --robot and --output")
    if others := _options_beside(args, ELASTIC_OPTIONS):
        raise UsageError(
            f"{', '.join(others)} cannot be used with --elastic, which takes the robot, --mounting, --gains, "
            "--position-cutoff and --output"
        )
    from jointwise.data import read_log
    from jointwise.document import write_document
    from jointwise.elastic import CUTOFF, identify_elastic

    check_files([*args.logs, args.robot, args.columns], {"--output": args.output}, None)
    robot = robot_of(args)
    logs = [read_log(path, joints=robot, **reading(args)) for path in args.logs]
    found = identify_elastic(
        logs,
        robot,
        model=args.elastic,
        mounting=mounting_for(logs, mounting_of(args)),
        gains=args.gains,
        cutoff=args.position_cutoff or CUTOFF,
    )
    write_document(found.to_dict(), args.output)
    if args.json:
        print(as_json(found.to_dict()))
    elif not args.quiet:
        print(f"{found.summary()}\n\nparameters: {args.output}")
    return 0


def _options_beside(args: argparse.Namespace, known: Sequence[str]) -> list[str]:
    """Return the options on the command line that are not among the known ones."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    defaults = vars(parser.parse_args([]))
    return [
        f"--{name.replace('_', '-')}"
        for name in defaults
        if name not in known and getattr(args, name) != defaults[name]
    ]


def report(args: argparse.Namespace, outcome: Outcome) -> None:
    """Print the result as text or JSON; warn of known joints that predict worse than the automatic choice."""
    from jointwise.cli.calibration_run import outcome_document
    from jointwise.result.text import costly_joint_friction_lines

    for line in outcome.calibration.provenance.notes:
        note(line)
    for result in outcome.validations:
        if result.training_text is not None:
            note(f"{result.file}: {result.training_text}.")
    for line in costly_joint_friction_lines(outcome.calibration.choices):
        note(f"{line}. It was kept because of --joint-as known; with --joint-as start the better one is taken.")
    if args.json:
        print(as_json(outcome_document(args, outcome)))
    elif not args.quiet:
        print(_text(args, outcome))


def _text(args: argparse.Namespace, outcome: Outcome) -> str:
    from jointwise.cli.summary import cost_line, training_text

    parts = [training_text(outcome.calibration)]
    parts += [
        f"{'validation' if result.held_out else 'training'} error: {result.summary()}" for result in outcome.validations
    ]
    parts += [line for pair in zip(outcome.validations, outcome.consistent, strict=False) if (line := cost_line(*pair))]
    parts += _advice(outcome)
    parts += [] if outcome.errors is None else [outcome.errors.summary()]
    files = {"model": args.output, "parameters": args.out_params, "report": outcome.page}
    parts.append("\n".join(f"{name}: {path}" for name, path in files.items() if path))
    return "\n\n".join(parts)


def _advice(outcome: Outcome) -> list[str]:
    """Return what a user could do next."""
    advice = []
    if not any(result.held_out for result in outcome.validations):
        advice.append("not validated yet: use --holdout 0.3 or --validate LOG, or jointwise validate MODEL LOG")
    if _encoders_unused(outcome):
        advice.append("the logs contain rotor positions: --two-encoders computes friction and rotor inertia from them")
    return advice


def _encoders_unused(outcome: Outcome) -> bool:
    """Return whether all logs have rotor positions and the model computes the rotors from those of the links."""
    return not outcome.calibration.model.rotor_side and all(log.theta is not None for log in outcome.training)
