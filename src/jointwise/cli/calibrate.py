"""Calibrates a model of a robot from one or more logs.

With no further options the program chooses: filters from the clock and noise of the logs, the joint model by
cross-validation inside them. An option fixes the choice that it names; the rest stays automatic.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointwise.cli.files import check_directory, check_files, mounting_for, note
from jointwise.cli.progress import Progress
from jointwise.cli.text import as_json
from jointwise.cli.usage import (
    UsageError,
    add_columns,
    add_gravity,
    add_json,
    add_robot,
    count,
    finite,
    fraction,
    mounting_of,
    payload_numbers,
    payload_of,
    positive,
    robot_of,
)

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.joint import JointModel
    from jointwise.result import Calibration, Validation

INTERMIXED = True
EXAMPLES = """\
examples:
  jointwise calibrate log.csv --robot ur10e --output model.json
  jointwise calibrate log.csv --robot ur10e --output model.json --holdout 0.3 --report report
  jointwise calibrate a.csv b.csv --robot arm.urdf --tip tool0 --mounting wall --validate c.csv --output model.json
  jointwise calibrate log.csv --robot ur5e --joint joint1.json joint2.json --joint-as known --output model.json
  jointwise calibrate log.csv --robot dh.csv --convention dh --direction tanh --load none --output model.json
  jointwise calibrate --model robot_dynamics --data log.csv --gravity 0 0 -9.81 --out-params parameters.csv \\
      --out-calibrated-model rd_calibrated                      (as AURT; --model is what compile-rd wrote)

A description without inertia (a DH table) is enough. The last line of a training table is no proof: use --holdout or
--validate."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add files, robot, outputs and everything that can be decided by hand."""
    parser.add_argument("logs", nargs="*", metavar="LOG", help="training logs, CSV or Parquet")
    add_robot(parser, required=False)
    add_gravity(parser)
    add_columns(parser)
    parser.add_argument(
        "--output-signal", choices=("current", "torque"), help="what the model predicts (default: torque if measured)"
    )
    out = parser.add_argument_group("results")
    out.add_argument(
        "--output", "--out-calibrated-model", "--out-calibration-model", metavar="FILE", help="the model, JSON"
    )
    out.add_argument("--report", metavar="DIR", help="write an HTML report there")
    out.add_argument("--out-params", metavar="CSV", help="write the parameters as a table")
    out.add_argument(
        "--holdout", type=fraction, metavar="PART", help="keep the last part of every log (0.3) for validation"
    )
    out.add_argument("--validate", nargs="+", default=[], metavar="LOG", help="validate on these logs")
    add_json(out)
    out.add_argument("--quiet", action="store_true", help="print nothing but errors")
    _add_structure(parser.add_argument_group("joint model (default: chosen by cross-validation)"))
    _add_treatment(parser.add_argument_group("signals and estimation (default: chosen from the data)"))
    aurt = parser.add_argument_group("AURT's spellings")
    aurt.add_argument("--model", metavar="F", help="robot and friction model that compile-rd wrote")
    aurt.add_argument("--data", metavar="CSV", help="the training log")
    aurt.add_argument("--plot", action="store_true", help="no window opens here: use --report")


def _add_structure(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--direction", choices=("sign", "tanh", "hysteresis"), help="how dry friction turns with the motion"
    )
    group.add_argument("--load", choices=("none", "square", "absolute"), help="dependence of dry friction on the load")
    group.add_argument(
        "--viscous-powers", nargs="+", type=positive, metavar="P", help="powers of the speed, such as 1 2"
    )
    group.add_argument("--stribeck", type=finite, metavar="V", help="Stribeck velocity in rad/s, 0 for none")
    group.add_argument("--power-flow", action="store_true", help="dry friction by direction of power")
    group.add_argument("--ripple", action=argparse.BooleanOptionalAction, help="the drive's answer to speed ripple")
    group.add_argument(
        "--elements",
        type=int,
        metavar="M",
        help="hysteresis of M elements, limits by a power law up to a scale per joint",
    )
    group.add_argument("--relaxation", type=finite, metavar="S", help="time in which hysteresis relaxes, 0 for never")
    group.add_argument(
        "--joint", nargs="+", default=[], metavar="FILE", help="joint files ('jointwise joint'): their friction instead"
    )
    group.add_argument(
        "--joint-as",
        choices=("start", "known"),
        default="start",
        help="estimate the values of those joints again, or hold them (default: start)",
    )
    group.add_argument("--no-rotors", action="store_true", help="without reflected rotor inertias")


def _add_treatment(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--gains", nargs="+", type=positive, metavar="K", help="drive gains in Nm/A, one a joint")
    group.add_argument(
        "--payload",
        type=payload_numbers,
        metavar="KG[,X,Y,Z]",
        help="carried in the logs, centre in m: becomes part of the parameters; estimated gains take their scale from "
        "the described bodies with it (none unless given)",
    )
    group.add_argument("--position-cutoff", type=positive, metavar="HZ", help="low-pass of the positions")
    group.add_argument("--parallel-cutoff", type=positive, metavar="HZ", help="low-pass of both sides (default: none)")
    group.add_argument("--lag", type=finite, metavar="S", help="the output at t belongs to the motion at t + lag")
    group.add_argument("--decimation", type=count, metavar="N", help="use every n-th sample")
    group.add_argument("--method", choices=("wls", "ols", "huber"), default="wls", help="default: wls")
    group.add_argument("--load-basis", choices=("model", "row-sum"), help="load torque from the model, or as AURT")


def run(args: argparse.Namespace) -> int:
    """Calibrate, validate, write, and print a short table."""
    with Progress(args.quiet or args.json) as progress:
        outcome = carry_out(args, progress)
    tell(args, outcome)
    return 0


@dataclass(frozen=True)
class Outcome:
    """A calibration, the logs it was trained on, those it was validated on with their errors, joints, report."""

    calibration: Calibration
    training: list[Log]
    proofs: list[tuple[Log, Validation]]
    joints: list[JointModel] = field(default_factory=list)
    report: Path | None = None


def carry_out(args: argparse.Namespace, progress: Progress, more: Mapping[str, str | None] | None = None) -> Outcome:
    """Check the arguments, calibrate, validate, and write what was asked for; `more` files the caller writes."""
    paths = [*args.logs, *([args.data] if args.data else [])]
    _check_usage(args, paths)
    inputs = [*paths, *args.validate, *args.joint, args.model, args.robot, args.columns]
    outputs = {"--output": args.output, "--out-params": args.out_params, **(more or {})}
    check_files(inputs, outputs, check_directory(args.report))
    if args.plot:
        note("--plot opens no window; --report DIR writes the plots.")
    return _written(args, _calibrated(args, paths, progress), progress)


def tell(args: argparse.Namespace, outcome: Outcome) -> None:
    """Print the result as text or JSON; warn of known joints that the automatic choice would beat."""
    from jointwise.estimation.weigh import told

    for line in told(outcome.calibration.choices)[1]:
        note(f"{line}. It was kept as asked: with --joint-as start the better one is taken.")
    if args.json:
        print(as_json(_document(args, outcome)))
    elif not args.quiet:
        print(_text(args, outcome))


def _check_usage(args: argparse.Namespace, paths: list[str]) -> None:
    if not paths:
        raise UsageError("a LOG is required (or AURT's --data CSV)")
    if bool(args.robot) == bool(args.model):
        raise UsageError("--robot is required" if not args.robot else "give --robot or --model, not both")
    if not (args.output or args.out_params):
        raise UsageError("--output is required")
    if args.power_flow and args.load not in (None, "none"):
        raise UsageError("--power-flow and --load do not go together: both depend on the load")


def _calibrated(args: argparse.Namespace, paths: list[str], progress: Progress) -> Outcome:
    """Return the calibration with its validations stored in it."""
    from jointwise.calibrate import calibrate
    from jointwise.cli.aurt import load_model
    from jointwise.cli.options import known_joints, make_options
    from jointwise.data import holdout, read_log
    from jointwise.result import validate

    given = load_model(args.model) if args.model else None
    robot = given.robot if given else robot_of(args)
    asked = mounting_of(args)
    progress("reading")
    training = [read_log(path, columns=args.columns, joints=robot.dof) for path in paths]
    unseen = [read_log(path, columns=args.columns, joints=robot.dof) for path in args.validate]
    mounting = mounting_for([*training, *unseen], asked)
    if args.holdout:
        parts = [holdout(log, args.holdout) for log in training]
        training, unseen = [first for first, _ in parts], [*(last for _, last in parts), *unseen]
    joints = known_joints(args.joint, robot)
    rotor, known = all(log.theta is not None for log in training), args.joint_as == "known"
    options = make_options(args, training, given).with_joints(joints, robot, rotor=rotor, known=known)
    payload = payload_of(args.payload)
    calibration = calibrate(training, robot, mounting=mounting, payload=payload, options=options, progress=progress)
    progress("validating")
    proofs = [(log, validate(calibration, log)) for log in unseen]
    stored = {"logs": [own.to_dict() for _, own in proofs]} if proofs else {}
    return Outcome(replace(calibration, validation=stored), training, proofs, joints)


def _written(args: argparse.Namespace, outcome: Outcome, progress: Progress) -> Outcome:
    """Write what was asked for: parameters, model, report."""
    from jointwise.result import save_calibration
    from jointwise.result.table import write_parameters

    progress("writing")
    if args.out_params:
        write_parameters(outcome.calibration, args.out_params)
    if args.output:
        save_calibration(outcome.calibration, args.output)
    if not args.report:
        return outcome
    from jointwise.report import write_report
    from jointwise.report.joint import joint_sections

    unseen = [log for log, _ in outcome.proofs]
    more = joint_sections(outcome.joints)
    logs = (outcome.training, unseen)
    page = write_report(outcome.calibration, Path(args.report), *logs, args.command_line, more, args.output)
    return replace(outcome, report=page)


def _document(args: argparse.Namespace, outcome: Outcome) -> dict[str, Any]:
    own = outcome.calibration
    return {
        "model": args.output,
        "parameters_file": args.out_params,
        "report": str(outcome.report) if outcome.report else None,
        "robot": own.model.robot.name,
        "output": own.output,
        "unit": own.unit,
        "gains": own.gains.tolist(),
        "gain_source": own.gain_source,
        "payload": own.provenance.payload,
        "structure": own.structure,
        "structure_text": own.structure_text,
        "filters": asdict(own.filters),
        "choices": [asdict(choice) for choice in own.choices],
        "training": own.training,
        "undetermined": list(own.undetermined()),
        "validation": [validation.to_dict() for _, validation in outcome.proofs],
    }


def _text(args: argparse.Namespace, outcome: Outcome) -> str:
    from jointwise.cli.summary import training_text, validation_text

    parts = [training_text(outcome.calibration)]
    parts += [f"error on data NOT used for training: {validation_text(own)}" for _, own in outcome.proofs]
    if not outcome.proofs:
        parts.append("not validated yet: use --holdout 0.3 or --validate LOG, or jointwise validate MODEL LOG")
    files = {"model": args.output, "parameters": args.out_params, "report": outcome.report}
    parts.append("\n".join(f"{name}: {path}" for name, path in files.items() if path))
    return "\n\n".join(parts)
