"""Power and energy on the DC bus: fit a power model, report where energy goes, predict power, optimise a motion."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

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
from jointwise.cli.output import as_json, check_file, check_files, check_page, table

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
  jointwise energy sheet joint_calibration_sheet.txt --standing 40 --output power.json
  jointwise energy optimize power.json --model model.json --start 0,-1.2,1,-1,-1.5,0 --goal 1.5,-0.6,0.3,-1.5,-1,1 \\
    --duration 2.5 --output motion

A log of a UR with the RTDE fields actual_robot_voltage and actual_robot_current (power on the bus), actual_current,
actual_qd, target_current, target_moment and target_qd (torque per ampere of the drives) determines a power model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one command each to fit, report and predict."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    fit = commands.add_parser("fit", help="power model from logs with bus power", **format_options(EXAMPLES))
    fit.add_argument("logs", nargs="+", metavar="LOG", help="logs with bus voltage and bus current")
    add_robot(fit)
    fit.add_argument("--output", required=True, metavar="JSON", help="the power model")
    gains = fit.add_mutually_exclusive_group()
    gains.add_argument(
        "--gains", type=numbers, metavar="K1,K2,..", help="torque per ampere, Nm/A (default: of the log)"
    )
    gains.add_argument("--joint", metavar="JSON", help="joint file of all joints (jointwise motor) with the gains")
    _add_braking(fit, "stored")
    report = commands.add_parser("report", help="where the energy of a motion goes", **format_options(EXAMPLES))
    report.add_argument("model_file", metavar="MODEL|POWER", help="what calibrate wrote, or what energy fit wrote")
    report.add_argument("log_file", metavar="LOG", help="a log, or positions of a planned motion with MODEL")
    report.add_argument("--power", metavar="JSON", help="power model, if the first file is a calibrated model")
    report.add_argument("--report", metavar="DIR|HTML", help="write a page with plots")
    _add_braking(report, "that of the power model")
    predict = commands.add_parser("predict", help="power at the stamps of a log", **format_options(EXAMPLES))
    predict.add_argument("power", metavar="POWER", help="what energy fit wrote")
    predict.add_argument("log_file", metavar="LOG", help="a log, or positions of a planned motion with --model")
    predict.add_argument("--model", metavar="MODEL", help="what calibrate wrote: predicts currents that are missing")
    predict.add_argument("--output", required=True, metavar="CSV", help="columns t, power_pred")
    for command in (fit, report, predict):
        add_columns(command)
    optimize = commands.add_parser(
        "optimize", help="motion of a task with the least energy", **format_options(energy_optimize.EXAMPLES)
    )
    energy_optimize.add_arguments(optimize)
    _add_sheet(commands.add_parser("sheet", help="motor data of a calibration sheet", **format_options(EXAMPLES)))
    add_json(fit)
    add_json(report)


def _add_sheet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", metavar="SHEET", help="joint calibration sheet of a UR")
    parser.add_argument("--output", metavar="JSON", help="write a power model of these motors")
    parser.add_argument("--robot", default="ur5e", metavar="NAME", help="name of the robot (default: ur5e)")
    parser.add_argument("--gear-ratio", type=positive, default=101.0, metavar="R", help="default: 101")
    parser.add_argument("--standing", type=finite, default=0.0, metavar="W", help="standing power (default: 0)")
    parser.add_argument(
        "--conversion", type=finite, default=0.0, metavar="C", help="loss of the drives per motor power (default: 0)"
    )
    add_json(parser)


def _add_braking(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--braking", choices=("stored", "burnt"), help=f"braking power that no joint uses (default: {default})"
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
    from jointwise.result import load_calibration

    if is_power_file(args.model_file):
        return load_power_model(args.model_file), None
    calibration = load_calibration(args.model_file)
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
    from jointwise.result import load_calibration

    check_files([args.power, args.log_file, args.model, args.columns], {"--output": args.output})
    check_file(args.output)
    power = load_power_model(args.power)
    balance = energy_balance(power, _read(args), model=load_calibration(args.model) if args.model else None)
    write_power(balance, args.output)
    print(f"{args.output}: {len(balance.t)} samples, {balance.energy:.1f} J; currents {balance.currents}")
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
