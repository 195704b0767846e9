"""Power and energy on the DC bus: fit a power model, balance or predict the energy of a motion, minimise it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jointwise.call_settings import DirectorySettings, EnergySettings, MotorSheet
from jointwise.cli.command import Command, Common, UsageError
from jointwise.cli.inputs import Carried, Clear, LogFormat, Mounted, RobotFile, numbers
from jointwise.cli.output import Progress, check_file, check_files, check_page, read_model, show
from jointwise.errors import ModelError
from jointwise.formatting import table
from jointwise.settings import option, stated

if TYPE_CHECKING:
    from jointwise.description import Robot
    from jointwise.design.trajectory import Differentiable
    from jointwise.energy import PowerModel
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
OPTIMIZE = """\
examples:
  jointwise energy optimize power.json --model model.json --start 0,-1.2,1,-1,-1.5,0 --goal 1.5,-0.6,0.3,-1.5,-1,1 \\
    --duration 2.5 --payload 3 --output motion
  jointwise energy optimize power.json --robot ur5e --start 0,-1.2,1,-1,-1.5,0 --via 0.9,-1.3,0.9,-1,-1.2,0.4 \\
    --goal 1.5,-0.6,0.3,-1.5,-1,1 --longest 6 --output motion
  jointwise energy optimize power.json --model model.json --motion trajectory.csv --path fixed --output motion

The directory contains trajectory.csv (500 Hz), joint_trajectory.json (ROS 2), motion.script (URScript, for arms of
Universal Robots and motions without stops), energy.json and energy.html. With --longest the duration is optimised as
well, because the standing power counts. Limits, the mounting plane and self-collision are checked; obstacles in the
cell are not. Repeat an interrupted command to resume it."""


def braking(standard: str) -> Any:
    """Return the field of what becomes of braking power; `standard` says what holds without it."""
    return option(
        None, "braking power that no joint uses is stored on the bus or burnt in a resistor", standard=standard
    )


def log_argument(model: str) -> Any:
    """Return the field of a log, which has positions only where `model` (an argument) predicts the currents."""
    return option(help=f"log, or with {model} the positions of a planned motion", metavar="LOG", argument=True)


@dataclass(frozen=True, kw_only=True)
class Fit(RobotFile, LogFormat, Common):
    """Logs, robot and drive gains."""

    logs: tuple[str, ...] = option(help="logs with bus voltage and bus current", metavar="LOG", argument=True)
    output: str = option(help="power model to write", metavar="JSON")
    gains: tuple[float, ...] | None = option(
        None, "drive gains, Nm/A", metavar="K1,K2,..", parse=numbers, one_of="gains", standard="from the log"
    )
    joint: str | None = option(
        None, "take the drive gains from a joint file of all joints ('jointwise motor')", metavar="JSON",
        one_of="gains",
    )  # fmt: skip
    braking: Literal["stored", "burnt"] | None = braking("stored")


@dataclass(frozen=True, kw_only=True)
class Report(LogFormat, Common):
    """The models, the log and the page."""

    model_file: str = option(
        help="calibrated model, or power model of 'energy fit'", metavar="MODEL|POWER", argument=True
    )
    log_file: str = log_argument("MODEL")
    power: str | None = option(None, "power model, if the first file is a calibrated model", metavar="JSON")
    report: str | None = option(None, "write a page with plots", metavar="DIR|HTML")
    braking: Literal["stored", "burnt"] | None = braking("that of the power model")


@dataclass(frozen=True, kw_only=True)
class Predict(LogFormat, Common):
    """The models, the log and the file."""

    power: str = option(help="power model of 'energy fit'", argument=True)
    log_file: str = log_argument("--model")
    model: str | None = option(None, "calibrated model that predicts the currents if the log has none", metavar="MODEL")
    output: str = option(help="file to write: columns t and power_pred", metavar="CSV")


@dataclass(frozen=True, kw_only=True)
class Sheet(MotorSheet, Common):
    """The sheet, and what it does not state."""

    sheet: str = option(help="joint calibration sheet of a UR", argument=True)
    output: str | None = option(None, "write a power model of these motors", metavar="JSON")
    robot: str = option("ur5e", "name of the robot", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class Optimize(DirectorySettings, EnergySettings, Carried, Clear, Mounted, Common):
    """The model, the task and its limits."""

    power: str = option(help="power model (energy fit or energy sheet)", argument=True)
    model: str | None = option(None, "calibrated model: bodies and friction", metavar="MODEL", one_of="source")
    robot: str | None = option(
        None, "use described bodies and friction instead of a model", metavar="NAME|FILE", one_of="source"
    )
    start: tuple[float, ...] | None = option(None, "positions at the start, rad", metavar="Q1,Q2,..", parse=numbers)
    goal: tuple[float, ...] | None = option(None, "positions at the end, rad", metavar="Q1,Q2,..", parse=numbers)
    via: tuple[tuple[float, ...], ...] = option(
        (), "waypoint, rad; can be repeated", metavar="Q1,Q2,..", parse=numbers, many="repeat"
    )
    motion: str | None = option(None, "planned motion, instead of start and goal", metavar="CSV")


def fit(settings: Fit) -> int:
    """Fit a power model to logs with bus power."""
    from jointwise import energy
    from jointwise.options import read_joints

    check_files([*settings.logs, settings.columns, settings.robot, settings.joint], {"--output": settings.output})
    robot = settings.load_robot()
    logs = [energy.read_power_log(path, robot, **settings.reading()) for path in settings.logs]
    joints = read_joints([settings.joint], robot) if settings.joint else None
    gains = settings.gains if joints is None else energy.gains_from_joints(joints, robot)
    model = energy.fit_power(logs, robot, gains=gains, braking=settings.braking or "stored")
    model.save(settings.output)
    show(settings, model.to_dict, lambda: f"{settings.output}: {model.summary()}")
    return 0


def report(settings: Report) -> int:
    """Print the energy balance of a motion, by joint and kind of loss."""
    from jointwise.energy import energy_balance, read_power_log
    from jointwise.report.energy import write_energy_page

    page = check_page(settings.report, "energy.html")
    check_files([settings.model_file, settings.log_file, settings.power, settings.columns], {}, page)
    power, calibration = _models(settings)
    if power is None:
        raise ModelError(
            f"{settings.model_file}: a calibrated model has no losses of motors and drives. Give a power model "
            "(--power power.json, from jointwise energy fit)."
        )
    if settings.braking is not None:
        power = replace(power, braking=settings.braking)
    log = read_power_log(settings.log_file, **settings.reading())
    balance = energy_balance(power, log, model=calibration)
    if page is not None:
        write_energy_page(balance, f"{power.robot}: {Path(settings.log_file).name}", page)
    show(settings, balance.to_dict, balance.summary)
    return 0


def _models(settings: Report) -> tuple[PowerModel | None, Calibration | None]:
    """Return the power model and the calibrated model of a report."""
    from jointwise.energy import is_power_file, load_power_model

    if is_power_file(settings.model_file):
        return load_power_model(settings.model_file), None
    calibration = read_model(settings.model_file)
    return (load_power_model(settings.power) if settings.power else None), calibration


def predict(settings: Predict) -> int:
    """Write the power at every time stamp of a log."""
    from jointwise.energy import energy_balance, load_power_model, read_power_log, write_power

    check_files([settings.power, settings.log_file, settings.model, settings.columns], {"--output": settings.output})
    check_file(settings.output)
    power, log = load_power_model(settings.power), read_power_log(settings.log_file, **settings.reading())
    balance = energy_balance(power, log, model=read_model(settings.model) if settings.model else None)
    write_power(balance, settings.output)
    samples, currents = len(balance.t), balance.currents
    facts = {"file": settings.output, "samples": samples, "energy_J": balance.energy, "currents": currents}
    text = f"{settings.output}: {samples} samples, {balance.energy:.1f} J; currents {currents}"
    show(settings, lambda: facts, lambda: text)
    return 0


def sheet(settings: Sheet) -> int:
    """Print the motor data of a calibration sheet; write a power model of these motors."""
    from jointwise.energy import motor_data, power_from_motors, read_calibration_sheet

    check_files([settings.sheet], {"--output": settings.output})
    motors = tuple(motor_data(joint, settings.gear_ratio) for joint in read_calibration_sheet(settings.sheet))
    if settings.output:
        power_from_motors(settings.robot, motors, **stated(MotorSheet, settings)).save(settings.output)
    names = ("resistance", "back_emf", "torque_constant", "coulomb", "viscous", "square")
    header = ["", *(f"{name} [{getattr(motors[0], name).unit}]" for name in names)]
    rows = [[f"joint {m.joint + 1}", *(_interval(getattr(m, name)) for name in names)] for m in motors]
    facts = [{**asdict(motor), "joint": motor.joint + 1} for motor in motors]
    show(settings, lambda: facts, lambda: table(header, rows))
    return 0


def _interval(value: Value) -> str:
    return f"{value.value:.3g} [{value.low:.3g}, {value.high:.3g}]"


def optimize(settings: Optimize) -> int:
    """Optimise, write the files and print the comparison."""
    from jointwise.energy import load_power_model
    from jointwise.experiment.motion_files import minimize_energy

    check_files([settings.power, settings.model, settings.motion], {})
    model, robot = _model(settings)
    task = _task(settings, robot)
    with Progress(settings.silent) as progress:
        result = minimize_energy(
            model, load_power_model(settings.power), settings.output, **task, **stated(EnergySettings, settings),
            payload=settings.load(), mounting=settings.stated_mounting(), clearance=settings.clearance,
            tool=settings.shape(), force=settings.force, progress=progress,
        )  # fmt: skip
    first = f"read {settings.output}/energy.html first; the cell is not checked"
    show(settings, result.to_dict, lambda: f"{result.summary()}\n{first}")
    return 0


def _model(settings: Optimize) -> tuple[Calibration | Robot, Robot]:
    """Return the model of a task, and its robot."""
    import jointwise

    if settings.model is not None:
        calibration = read_model(settings.model)
        return calibration, calibration.model.robot
    if settings.robot is None:
        raise UsageError("one of the arguments --model --robot is required")
    robot = jointwise.load_robot(settings.robot)
    return robot, robot


def _task(settings: Optimize, robot: Robot) -> dict[str, object]:
    """Return points or motion of a task."""
    if settings.motion is not None:
        if settings.start or settings.goal or settings.via:
            raise ModelError("a task must have either --motion, or --start and --goal with --via.")
        return {"motion": _motion(settings.motion, robot)}
    if settings.start is None or settings.goal is None:
        raise ModelError("a task must have --start and --goal, or --motion.")
    points = [settings.start, *settings.via, settings.goal]
    for each in points:
        if len(each) != robot.dof:
            raise ModelError(f"positions must be {robot.dof} numbers. Got {len(each)} instead.")
    return {"points": points}


def _motion(path: str, robot: Robot) -> Differentiable:
    """Return the planned motion of a file."""
    from jointwise.data import read_log
    from jointwise.design.sampled import experiment_from_log
    from jointwise.design.trajectory import Differentiable

    motion = experiment_from_log(robot, read_log(path, joints=robot)).motion
    assert isinstance(motion, Differentiable)
    return motion


_EXAMPLES = EXAMPLES.splitlines()


def _command(run: Any, settings: type[Common], about: str) -> Command:
    """Return a command with those of `EXAMPLES` that name it."""
    own = [text for text in _EXAMPLES if text.startswith(f"  jointwise energy {settings.__name__.lower()} ")]
    return Command(settings, run, about, "\n".join(["examples:", *own]))


COMMANDS = {
    "fit": _command(fit, Fit, "fit a power model to logs with bus power"),
    "report": _command(report, Report, "energy balance of a motion, by joint and kind of loss"),
    "predict": _command(predict, Predict, "predict the power at every time stamp of a log"),
    "optimize": Command(Optimize, optimize, "find the motion with the least energy", OPTIMIZE),
    "sheet": _command(sheet, Sheet, "read the motor data of a joint calibration sheet"),
}
