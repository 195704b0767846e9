"""Calibrates a model of a robot from one or more logs.

By default, filters are selected from the sampling rate and noise of the logs, and the joint model by cross-validation
within them. Each option fixes one choice; the others remain automatic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from jointwise.call_settings import SIGNALS, Fit
from jointwise.cli.command import Common, UsageError
from jointwise.cli.inputs import LogFormat, MaybeRobot, Mounted, Outputs, Temperature, of_log, payload_numbers
from jointwise.cli.output import Progress, check_files, mounting_for, note, show
from jointwise.settings import Count, Fraction, NotNegative, Range, converted, option, settings_of

if TYPE_CHECKING:
    from jointwise.cli.calibration_run import Outcome

RESULTS = "results"
MODEL = "joint model (default: selected by cross-validation)"
AURT = "options of AURT"
Power = Annotated[float, Range(0.0, 10.0, above=True)]
"""Power of the speed."""
Percent = Annotated[float, Range(0.0, 100.0, "%", above=True)]
ELASTIC_OPTIONS = (
    *("logs", "robot", "convention", "tip", "base", "fix_joint", "coupling", "log_coordinates", "mounting", "gravity"),
    *("columns", "topic", "effort_unit", "elastic", "gains", "position_cutoff", "output", "json", "quiet"),
    *("config", "save_config"),
)
"""Options that `--elastic` uses; the others belong to models of rigid joints."""
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


def temperature(text: str) -> float:
    """Return a temperature of a joint, degC."""
    return float(converted(text, Temperature))


@dataclass(frozen=True, kw_only=True)
class Friction:
    """The terms of friction that can be fixed, and known terms of single joints."""

    direction: Literal["sign", "tanh", "hysteresis"] | None = option(
        None, "sign of dry friction: step at zero speed (sign), smooth step (tanh), slip elements (hysteresis)",
        group=MODEL,
    )  # fmt: skip
    load: Literal["none", "square", "absolute"] | None = option(
        None, "dependence of dry friction on the load", group=MODEL
    )
    viscous_powers: tuple[Power, ...] | None = option(
        None, "exponents of the speed in viscous friction, such as 1 2", metavar="P", many="words", group=MODEL
    )
    stribeck: NotNegative | None = option(
        None, "Stribeck velocity in rad/s; 0 for no Stribeck term", metavar="V", group=MODEL
    )
    power_flow: bool = option(
        False, "separate dry friction for motoring and back-driving (direction of power flow)", group=MODEL
    )
    ripple: bool | None = option(None, "include the response of the drive to ripple of the measured speed", group=MODEL)
    elements: Count | None = option(
        None, "hysteresis with M slip elements whose limits follow a power law, scaled for each joint", metavar="M",
        group=MODEL,
    )  # fmt: skip
    relaxation: NotNegative | None = option(
        None, "relaxation time of the hysteresis; 0 for no relaxation", metavar="S", group=MODEL
    )
    joint: tuple[str, ...] = option(
        (), "use the friction of these joint files ('jointwise joint')", metavar="FILE", many="extend", group=MODEL
    )
    joint_as: Literal["start", "known"] | None = option(
        None, "start: estimate the values of the joint files again; known: keep them fixed", standard="start",
        group=MODEL,
    )  # fmt: skip
    terms: tuple[str, ...] = option(
        (), "additional terms of every joint: spring (a counterbalance), or a term of an installed package",
        metavar="KIND", many="extend", group=MODEL,
    )  # fmt: skip
    two_encoders: bool = option(
        False, "compute friction and rotor inertia from measured rotor positions (theta1..), bodies from link "
        "positions", group=MODEL,
    )  # fmt: skip
    rotor_inertia: tuple[NotNegative, ...] | None = option(
        None, "known rotor inertias for --two-encoders, kg m^2 at the joint, one value per joint", metavar="B",
        many="words", group=MODEL,
    )  # fmt: skip
    elastic: Literal["reduced", "complete"] | None = option(
        None, "identify elastic joints: bodies, rotor inertia, friction and stiffness (requires theta1..)", group=MODEL
    )
    no_rotors: bool = option(False, "do not estimate reflected rotor inertias", group=MODEL)


@dataclass(frozen=True, kw_only=True)
class Signals(Fit):
    """What is known of the logs, their filters, the method of the fit and the bodies that it estimates."""

    payload: tuple[tuple[str | None, tuple[float, ...]], ...] = option(
        (), "payload in the logs, with its centre of mass in m. It becomes part of the estimated parameters, and "
        "estimated drive gains take their scale from the described bodies including it. With LOG= it applies to one "
        "log and is subtracted, so that loaded and unloaded logs can be combined; can be repeated",
        metavar="[LOG=]KG[,X,Y,Z]", many="repeat", parse=of_log(payload_numbers), group=SIGNALS,
    )  # fmt: skip
    temperature: tuple[tuple[str | None, float], ...] = option(
        (), "joint temperature of logs that do not contain it; can be repeated", metavar="[LOG=]DEGC", many="repeat",
        parse=of_log(temperature), group=SIGNALS,
    )  # fmt: skip
    load_basis: Literal["model", "row-sum"] | None = option(
        None, "load torque from the model, or from the row sum of the regressor as in AURT", group=SIGNALS
    )
    essential: bool = option(
        False, "set base parameters to zero that are poorly determined and not needed for prediction", group=SIGNALS
    )
    essential_tolerance: Percent | None = option(
        None, "largest increase of the held-out error that --essential accepts", metavar="PERCENT", standard="0.5",
        group=SIGNALS,
    )  # fmt: skip
    no_physical: bool = option(False, "do not estimate physically consistent bodies", group=SIGNALS)


@dataclass(frozen=True, kw_only=True)
class Settings(MaybeRobot, Mounted, LogFormat, Outputs, Friction, Signals, Common):
    """Files, robot, results and the choices that can be fixed."""

    logs: tuple[str, ...] = option((), "training logs, CSV or Parquet", metavar="LOG", argument=True)
    output_signal: Literal["current", "torque"] | None = option(
        None, "signal that the model predicts", standard="torque if measured"
    )
    output: str | None = option(
        None, "model file to write, JSON", "--output", "--out-calibrated-model", "--out-calibration-model",
        metavar="FILE", group=RESULTS,
    )  # fmt: skip
    report: str | None = option(
        None, "write an HTML report to this page or directory", metavar="DIR|HTML", group=RESULTS
    )
    out_params: str | None = option(None, "write the parameters to a CSV file", metavar="CSV", group=RESULTS)
    holdout: Fraction | None = option(
        None, "fraction at the end of every log that is held out for validation, such as 0.3", metavar="PART",
        group=RESULTS,
    )  # fmt: skip
    validate: tuple[str, ...] = option((), "validate on these logs", metavar="LOG", many="extend", group=RESULTS)
    accept_implausible: bool = option(
        False, "calibrate even if the logs contradict the set-up (the model file records it), and use drive gains of "
        "joint files that contradict the description", group=RESULTS,
    )  # fmt: skip
    excitation: str | None = option(
        None, "output directory of 'jointwise excite': compare the standard errors with those predicted",
        metavar="DIR", group=RESULTS,
    )  # fmt: skip
    model: str | None = option(None, "robot and friction model that compile-rd wrote", metavar="F", group=AURT)
    data: str | None = option(None, "the training log", metavar="CSV", group=AURT)
    plot: bool = option(False, "accepted and ignored: use --report for plots", group=AURT)


def run(settings: Settings) -> int:
    """Calibrate, validate, write, and print a short table."""
    if settings.elastic:
        return _run_elastic(settings, settings.elastic)
    from jointwise.cli.calibration_run import carry_out

    with Progress(settings.silent) as progress:
        outcome = carry_out(settings, progress)
    report(settings, outcome)
    return 0


def _run_elastic(settings: Settings, model: Literal["reduced", "complete"]) -> int:
    """Identify elastic joints, write the parameters as JSON, and print them."""
    if not settings.robot or not settings.logs or not settings.output:
        raise UsageError("--elastic needs LOG, --robot and --output")
    others = [
        each.spellings[0]
        for each in settings_of(Settings)
        if each.name not in ELASTIC_OPTIONS and getattr(settings, each.name) != each.default
    ]
    if others:
        raise UsageError(
            f"{', '.join(others)} cannot be used with --elastic, which takes the robot, --mounting, --gains, "
            "--position-cutoff and --output"
        )
    from jointwise.data import read_log
    from jointwise.document import write_document
    from jointwise.elastic import CUTOFF, identify_elastic

    check_files([*settings.logs, settings.robot, settings.columns], {"--output": settings.output}, None)
    robot = settings.described(settings.robot)
    logs = [read_log(path, joints=robot, **settings.reading()) for path in settings.logs]
    found = identify_elastic(
        logs,
        robot,
        model=model,
        mounting=mounting_for(logs, settings.stated_mounting()),
        gains=settings.gains,
        cutoff=settings.position_cutoff or CUTOFF,
    )
    write_document(found.to_dict(), settings.output)
    show(settings, found.to_dict, lambda: f"{found.summary()}\n\nparameters: {settings.output}")
    return 0


def report(settings: Settings, outcome: Outcome) -> None:
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
    show(settings, lambda: outcome_document(settings, outcome), lambda: _text(settings, outcome))


def _text(settings: Settings, outcome: Outcome) -> str:
    from jointwise.cli.summary import cost_line, training_text

    parts = [training_text(outcome.calibration)]
    parts += [
        f"{'validation' if result.held_out else 'training'} error: {result.summary()}" for result in outcome.validations
    ]
    parts += [line for pair in zip(outcome.validations, outcome.consistent, strict=False) if (line := cost_line(*pair))]
    parts += _advice(outcome)
    parts += [] if outcome.errors is None else [outcome.errors.summary()]
    files = {"model": settings.output, "parameters": settings.out_params, "report": outcome.page}
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
