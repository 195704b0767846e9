"""Identifies the phenomena of one joint, one at a time or all at once; or plans the experiments for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jointwise.atomic import output_set
from jointwise.cli import joint_online_stiffness, joint_plan
from jointwise.cli.command import Command, Common, UsageError
from jointwise.cli.joint_logs import Record, joint_record_of, joint_records, logs_of, split_word, with_joint
from jointwise.cli.output import Progress, check_files, check_page, mounting_for, note, show
from jointwise.errors import EstimationError
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.settings import Count, Kilograms, option

if TYPE_CHECKING:
    from jointwise.description import Robot
    from jointwise.joint import HysteresisOptions, JointIdentification, JointModel, Part

EXAMPLES = """\
examples:
  jointwise joint plan --robot ur5e --joint 2 --output plan
  jointwise joint friction speeds.csv --robot ur5e --joint 2 --output joint2.json --report joint2.html
  jointwise joint load slow.csv --robot ur5e --joint 2 --payload 5,0,0,0.1 --output joint2.json
  jointwise joint hysteresis slow.csv --robot ur5e --joint 1 --method nlr --elements 4 --output joint1.json
  jointwise joint motor empty.csv --loaded full.csv --payload-mass 2.8 --robot ur10e --joint 2 --output joint2.json
  jointwise joint all locked.csv speeds.csv load=slow.csv@0,0,-9.81 --robot ur5e --joint 2 --output joint2.json
  jointwise calibrate log.csv --robot ur5e --joint joint2.json --output model.json
  jointwise joint online-stiffness work.csv --robot ur5e --joint 2 --known joint2.json

'jointwise joint WHAT --help' lists the options of each. A phenomenon is added to the output file, and phenomena in that
file are used: friction over speed is subtracted before load, temperature and hysteresis are identified."""

EXAMPLE_LINES = {
    "stiffness": (
        "stiffness locked.parquet --robot ur5e --joint 2 --output joint2.json",
        "stiffness locked.csv --robot ur5e --joint 2 --gravity 0 9.81 0 --output joint2.json --report joint2.html",
    ),
    "transmission": (
        "transmission slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "transmission slow.csv --robot ur5e --joint 2 --mounting wall --output joint2.json --report joint2.html",
    ),
    "friction": (
        "friction speeds.parquet --robot ur5e --joint 2 --output joint2.json --report joint2.html",
        "friction speeds.csv --robot ur10e --joint 1 --gain 11.3 --output joint1.json",
    ),
    "load": (
        "load slow.csv --robot ur5e --joint 2 --output joint2.json",
        "load slow.csv --robot ur5e --joint 2 --payload 5,0,0,0.1 --output joint2.json",
    ),
    "temperature": (
        "temperature warm-up.parquet --robot ur5e --joint 2 --output joint2.json",
        "temperature morning.csv noon.csv --robot ur5e --joint 2 --mounting wall --output joint2.json",
    ),
    "hysteresis": (
        "hysteresis slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "hysteresis slow.csv --robot ur5e --joint 1 --method nlr --elements 4 --output joint1.json",
    ),
    "motor": (
        "motor slow.csv --robot ur5e --joint 2 --output joint2.json",
        "motor empty.csv --loaded full.csv --payload-mass 2.8 --robot ur10e --joint 2 --output joint2.json",
        "motor log.csv --targets --robot ur10e --joint 2 --output joint2.json",
    ),
    "all": (
        "all locked.parquet speeds.parquet slow.parquet --robot ur5e --joint 2 --output joint2.json",
        "all friction=speeds.csv@0,9.81,0 load=slow.csv --robot ur5e --joint 2 --output joint2.json",
    ),
}
"""Arguments of `jointwise joint` in the help of each phenomenon, and of all."""
EXAMPLE_NOTE = """\
The result is added to the output file. Results already in that file are used for the identification."""


@dataclass(frozen=True, kw_only=True)
class Settings(Record, Common):
    """The logs of a phenomenon and the files to write."""

    output: str | None = option(None, "joint file, JSON; other phenomena in it are kept", metavar="FILE")
    report: str | None = option(None, "write a page with curves, .html, or into a directory", metavar="PAGE")


@dataclass(frozen=True, kw_only=True)
class Hysteresis(Settings):
    """The options of the hysteresis."""

    method: str = option(
        "auto", "hysteresis model, such as nlr, gms or lugre", metavar="NAME",
        standard="auto, selected by cross-validation",
    )  # fmt: skip
    elements: Count | None = option(
        None, "number of slip elements", metavar="M", standard="selected by cross-validation"
    )
    hysteresis_load: Literal["none", "square", "absolute"] | None = option(
        None, "load dependence of the hysteresis", "--load",
        standard="that of the joint file, else selected by cross-validation",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Everything(Hysteresis):
    """Logs for all phenomena."""

    logs: tuple[str, ...] = option(help="[PHENOMENON=]LOG[@GRAVITY]", metavar="LOG", argument=True)


@dataclass(frozen=True, kw_only=True)
class Motor(Settings):
    """The two methods that use more than friction and load."""

    loaded: tuple[str, ...] = option((), "logs of the same motions with a payload", metavar="LOG", many="extend")
    payload_mass: Kilograms | None = option(None, "mass of that payload; its centre is estimated", metavar="KG")
    targets: bool = option(False, "use tau_des and i_des of the controller")


def identified(what: str, settings: Settings) -> int:
    """Identify a phenomenon, or `all`; write and print."""
    if isinstance(settings, Motor):
        _check_motor(settings)
    if isinstance(settings, Hysteresis):
        _check_method(settings)
    check_files(_inputs(settings), {"--output": settings.output}, check_page(settings.report, "joint.html"))
    with Progress(settings.silent) as progress:
        progress("reading")
        robot = with_joint(settings.load_robot(), settings.joint)
        result = _identified(what, settings, robot, _known(settings, robot), progress)
        page = _written(settings, result)
    for name, (reason, *_) in result.refused.items():  # of each the reason of the best suited log; --json has them all
        note(f"{name}: {reason}")
    everything = isinstance(settings, Everything)
    show(
        settings,
        lambda: _document(settings, result, page, everything),
        lambda: _summary(settings, result, page, everything),
    )
    return 0


def _inputs(settings: Settings) -> list[str | None]:
    """Return all input files but the output file, which is extended."""
    logs = [split_word(word)[1] if isinstance(settings, Everything) else word for word in settings.logs]
    loaded = settings.loaded if isinstance(settings, Motor) else ()
    return [*logs, *loaded, settings.model, settings.robot, settings.columns]


def _check_motor(settings: Motor) -> None:
    """Reject options of the motor that exclude each other."""
    if bool(settings.loaded) != (settings.payload_mass is not None):
        raise UsageError("--loaded and --payload-mass must be used together: the mass sets the scale of the gain")
    if settings.targets and settings.loaded:
        raise UsageError("--targets and --loaded are two methods: choose one")


def _check_method(settings: Hysteresis) -> None:
    """Reject an unknown method of hysteresis."""
    if settings.method == "auto":
        return
    from jointwise.joint.laws import METHODS

    if settings.method not in METHODS:
        raise UsageError(f"--method must be auto or one of {', '.join(METHODS)}. Got '{settings.method}' instead")


def _known(settings: Settings, robot: Robot) -> JointModel:
    from jointwise.joint import JointModel, load_joint

    return (
        load_joint(settings.output, robot.name, settings.joint - 1)
        if settings.output
        else JointModel(robot.name, settings.joint - 1)
    )


def _identified(
    what: str, settings: Settings, robot: Robot, known: JointModel, progress: Progress
) -> JointIdentification:
    from jointwise.joint import JointIdentification, identify, identify_all

    if isinstance(settings, Everything):
        result = identify_all(joint_records(settings, robot, known), robot, known, _options(settings), progress)
        if not result.found:
            raise EstimationError(next(iter(result.refused.values()))[0])
        return result
    if isinstance(settings, Motor) and (settings.loaded or settings.targets):
        progress("drive gains")
        part = _motor(settings, robot)
    else:
        before = None if what == "motor" else known
        record = joint_record_of(settings, robot, settings.logs, settings.stated_mounting(), before)
        progress(what)
        part = identify(what, record, robot, known, _options(settings))
    return JointIdentification(known.with_part(part), (what,), {})


def _options(settings: Settings) -> HysteresisOptions | None:
    from jointwise.joint import HysteresisOptions

    if not isinstance(settings, Hysteresis):
        return None
    return HysteresisOptions(settings.method, settings.elements, settings.hysteresis_load)


def _motor(settings: Motor, robot: Robot) -> Part:
    """Return the motor of the joint from logs without and with a payload, or from the targets of the controller."""
    from jointwise.joint import identify_motor_from_payload, identify_motor_from_targets

    logs, loaded = logs_of(settings, robot, settings.logs), logs_of(settings, robot, settings.loaded)
    if settings.targets:
        return identify_motor_from_targets(logs, robot, settings.joint - 1)
    mounting = mounting_for([*logs, *loaded], settings.stated_mounting())
    return identify_motor_from_payload(
        logs, loaded, robot, settings.joint - 1, settings.payload_mass or 0.0, mounting=mounting
    )


def _written(settings: Settings, result: JointIdentification) -> Path | None:
    """Write the joint file and the report, both or neither; return the page of the report."""
    from jointwise.joint import save_joint

    with output_set():
        page = None if settings.report is None else _report(settings, settings.report, result.model)
        if settings.output:
            save_joint(result.model, settings.output, result.found)
    return page


def _report(settings: Settings, page: str, model: JointModel) -> Path:
    from jointwise.report.joint import write_joint_report

    return write_joint_report([model], page, settings.output)


def _document(settings: Settings, result: JointIdentification, page: Path | None, everything: bool) -> dict[str, Any]:
    """Return the document of `--json`: `found` are the parts from these logs, others were known before."""
    model = result.model
    return {
        "robot": model.robot,
        "joint": model.joint + 1,
        "found": result.found,
        "parts": {name: part.to_dict() for name, part in model.parts.items() if everything or name in result.found},
        "refused": result.refused,
        "files": {"output": settings.output, "report": None if page is None else str(page)},
    }


def _summary(settings: Settings, result: JointIdentification, page: Path | None, everything: bool) -> str:
    """Return the text for a terminal: parts that were found, parts known before, files."""
    model = result.model
    text = "\n\n".join(f"{model.title}, {part.summary()}" for name, part in model.parts.items() if name in result.found)
    before = [name for name in model.parts if name not in result.found]
    if before and everything:
        text += f"\n\nknown before, unchanged: {', '.join(before)}"
    files = [f"\n{name}: {path}" for name, path in (("joint", settings.output), ("report", page)) if path]
    return "\n".join([text, *files]) if files else text


def _command(name: str, about: str) -> Command:
    """Return the command of a phenomenon, or of `all`."""
    settings = {"hysteresis": Hysteresis, "motor": Motor, "all": Everything}.get(name, Settings)
    examples = "\n".join(
        ["examples:", *(f"  jointwise joint {line}" for line in EXAMPLE_LINES[name]), "", EXAMPLE_NOTE]
    )
    return Command(settings, partial(identified, name), about, examples)


COMMANDS = {
    **{name: _command(name, phenomenon.line) for name, phenomenon in PHENOMENA.items()},
    "all": _command("all", "every phenomenon that a set of logs determines"),
    "plan": Command(
        joint_plan.Settings,
        joint_plan.run,
        "write the experiments that each method needs",
        joint_plan.EXAMPLES,
    ),
    "online-stiffness": Command(
        joint_online_stiffness.Settings,
        joint_online_stiffness.run,
        joint_online_stiffness.LINE,
        joint_online_stiffness.EXAMPLES,
    ),
}
