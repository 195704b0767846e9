"""Power and energy on the DC bus: fit a power model, balance or predict the energy of a motion, minimise it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointwise.cli import energy_optimize
from jointwise.cli.arguments import (
    add_columns,
    add_json,
    add_robot,
    finite,
    format_options,
    positive,
    reading,
    robot_of,
)
from jointwise.cli.output import as_json, check_file, check_files, check_page, read_model
from jointwise.formatting import table

if TYPE_CHECKING:
    from jointwise.data import Log
    from jointwise.energy import EnergyBalance, PowerModel
    from jointwise.joint.part import Value
    from jointwise.result import Calibration

EXAMPLES = """\
examples:
  jointwise energy fit move1.csv move2.csv --robot ur3e --output power.json
  jointwise energy report power.json move3.csv --report energy.html
  jointwise energy report model.json planned.csv --power power.json --json
  jointwise energy predict power.json move3.csv --output power.csv
  jointwise energy sheet joint_calibration_sheet.txt --standing 40 --gear-ratio 101 --output power.json
  jointwise energy optimize power.json --model model.json --start 0,-1.2,1,-1,-1.5,0 --goal 1.5,-0.6,0.3,-1.5,-1,1 \\
    --duration 2.5 --output motion

A log of a UR with the RTDE fields actual_robot_voltage and actual_robot_current (power on the bus), actual_current,
actual_qd, target_current, target_moment and target_qd (torque per ampere of the drives) determines a power model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    _add_fit(_subparser(commands, "fit", "fit a power model to logs with bus power"))
    _add_report(_subparser(commands, "report", "energy balance of a motion, by joint and kind of loss"))
    _add_predict(_subparser(commands, "predict", "predict the power at every time stamp of a log"))
    optimize = commands.add_parser(
        "optimize", help="find the motion with the least energy", **format_options(energy_optimize.EXAMPLES)
    )
    energy_optimize.add_arguments(optimize)
    _add_sheet(_subparser(commands, "sheet", "read the motor data of a joint calibration sheet"))


def _subparser(commands: argparse._SubParsersAction[Any], name: str, line: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand with those of `EXAMPLES` that name it."""
    examples = [text for text in EXAMPLES.splitlines() if text.startswith(f"  jointwise energy {name} ")]
    options = format_options("\n".join(["examples:", *examples]))
    parser: argparse.ArgumentParser = commands.add_parser(name, help=line, description=line, **options)
    return parser


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", nargs="+", metavar="LOG", help="logs with bus voltage and bus current")
    add_robot(parser)
    parser.add_argument("--output", required=True, metavar="JSON", help="power model to write")
    gains = parser.add_mutually_exclusive_group()
    gains.add_argument("--gains", type=numbers, metavar="K1,K2,..", help="drive gains, Nm/A (default: from the log)")
    gains.add_argument(
        "--joint", metavar="JSON", help="take the drive gains from a joint file of all joints ('jointwise motor')"
    )
    _add_braking(parser, "stored")
    add_columns(parser)
    add_json(parser)


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model_file", metavar="MODEL|POWER", help="calibrated model, or power model of 'energy fit'")
    _add_log(parser, "MODEL")
    parser.add_argument("--power", metavar="JSON", help="power model, if the first file is a calibrated model")
    parser.add_argument("--report", metavar="DIR|HTML", help="write a page with plots")
    _add_braking(parser, "that of the power model")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("power", metavar="POWER", help="power model of 'energy fit'")
    _add_log(parser, "--model")
    parser.add_argument(
        "--model", metavar="MODEL", help="calibrated model that predicts the currents if the log has none"
    )
    parser.add_argument("--output", required=True, metavar="CSV", help="file to write: columns t and power_pred")


def _add_log(parser: argparse.ArgumentParser, model: str) -> None:
    """Add the log, which has positions only where `model` (an argument) predicts the currents, and its columns."""
    parser.add_argument("log_file", metavar="LOG", help=f"log, or with {model} the positions of a planned motion")
    add_columns(parser)
    add_json(parser)


def _add_sheet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", metavar="SHEET", help="joint calibration sheet of a UR")
    parser.add_argument("--output", metavar="JSON", help="write a power model of these motors")
    parser.add_argument("--robot", default="ur5e", metavar="NAME", help="name of the robot (default: ur5e)")
    parser.add_argument("--gear-ratio", type=positive, default=101.0, metavar="R", help="gear ratio (default: 101)")
    parser.add_argument("--standing", type=finite, default=0.0, metavar="W", help="standing power (default: 0)")
    parser.add_argument(
        "--conversion", type=finite, default=0.0, metavar="C", help="loss of the drives per motor power (default: 0)"
    )
    add_json(parser)


def _add_braking(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--braking",
        choices=("stored", "burnt"),
        help=f"braking power that no joint uses is stored on the bus or burnt in a resistor (default: {default})",
    )


def numbers(text: str) -> list[float]:
    """Return numbers separated by commas."""
    return [finite(word) for word in text.split(",")]


def run(args: argparse.Namespace) -> int:
    """Run one of the commands."""
    commands = {"fit": _fit, "report": _report, "predict": _predict, "sheet": _sheet, "optimize": energy_optimize.run}
    return commands[args.what](args)


def _fit(args: argparse.Namespace) -> int:
    from jointwise import energy
    from jointwise.options import read_joints

    check_files([*args.logs, args.columns, args.robot, args.joint], {"--output": args.output})
    robot = robot_of(args)
    logs = [energy.read_power_log(path, robot, **reading(args)) for path in args.logs]
    gains = energy.gains_from_joints(read_joints([args.joint], robot), robot) if args.joint else args.gains
    model = energy.fit_power(logs, robot, gains=gains, braking=args.braking or "stored")
    model.save(args.output)
    print(as_json(model.to_dict()) if args.json else f"{args.output}: {model.summary()}")
    return 0


def _report(args: argparse.Namespace) -> int:
    from jointwise.errors import ModelError
    from jointwise.report.energy import write_energy_page

    page = check_page(args.report, "energy.html")
    check_files([args.model_file, args.log_file, args.power, args.columns], {}, page)
    power, calibration = _models(args)
    if power is None:
        raise ModelError(
            f"{args.model_file}: a calibrated model has no losses of motors and drives. Give a power model (--power "
            "power.json, from jointwise energy fit)."
        )
    balance = _balance(args, power, calibration)
    if page is not None:
        write_energy_page(balance, f"{power.robot}: {Path(args.log_file).name}", page)
    print(as_json(balance.to_dict()) if args.json else balance.summary())
    return 0


def _models(args: argparse.Namespace) -> tuple[PowerModel | None, Calibration | None]:
    """Return the power model and the calibrated model of a report."""
    from jointwise.energy import is_power_file, load_power_model

    if is_power_file(args.model_file):
        return load_power_model(args.model_file), None
    calibration = read_model(args.model_file)
    return (load_power_model(args.power) if args.power else None), calibration


def _balance(args: argparse.Namespace, power: PowerModel, calibration: Calibration | None) -> EnergyBalance:
    from dataclasses import replace

    from jointwise.energy import energy_balance

    if args.braking is not None:
        power = replace(power, braking=args.braking)
    return energy_balance(power, _read(args), model=calibration)


def _read(args: argparse.Namespace) -> Log:
    from jointwise.energy import read_power_log

    return read_power_log(args.log_file, **reading(args))


def _predict(args: argparse.Namespace) -> int:
    from jointwise.energy import energy_balance, load_power_model, write_power

    check_files([args.power, args.log_file, args.model, args.columns], {"--output": args.output})
    check_file(args.output)
    power = load_power_model(args.power)
    balance = energy_balance(power, _read(args), model=read_model(args.model) if args.model else None)
    write_power(balance, args.output)
    facts = {"file": args.output, "samples": len(balance.t), "energy_J": balance.energy, "currents": balance.currents}
    text = f"{args.output}: {len(balance.t)} samples, {balance.energy:.1f} J; currents {balance.currents}"
    print(as_json(facts) if args.json else text)
    return 0


def _sheet(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from jointwise.energy import motor_data, power_from_motors, read_calibration_sheet

    check_files([args.sheet], {"--output": args.output})
    motors = tuple(motor_data(sheet, args.gear_ratio) for sheet in read_calibration_sheet(args.sheet))
    if args.output:
        options = {"standing": args.standing, "conversion": args.conversion, "gear_ratio": args.gear_ratio}
        power_from_motors(args.robot, motors, **options).save(args.output)
    if args.json:
        print(as_json([{**asdict(motor), "joint": motor.joint + 1} for motor in motors]))
        return 0
    names = ("resistance", "back_emf", "torque_constant", "coulomb", "viscous", "square")
    header = ["", *(f"{name} [{getattr(motors[0], name).unit}]" for name in names)]
    print(table(header, [[f"joint {m.joint + 1}", *(_interval(getattr(m, name)) for name in names)] for m in motors]))
    return 0


def _interval(value: Value) -> str:
    return f"{value.value:.3g} [{value.low:.3g}, {value.high:.3g}]"
