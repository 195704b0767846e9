"""What `calibrate` and AURT's `calibrate-validate` have in common: arguments to calibration, validation and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jointwise.atomic import output_set
from jointwise.cli.command import UsageError
from jointwise.cli.inputs import payload_of
from jointwise.cli.output import Progress, check_files, check_page, mounting_for, note

if TYPE_CHECKING:
    from jointwise.cli.calibrate import Settings
    from jointwise.data import Log
    from jointwise.description import Robot
    from jointwise.joint import JointModel
    from jointwise.options import Options
    from jointwise.result import Calibration, Validation
    from jointwise.result.excitation import ErrorComparison

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """A calibration with everything that a command reports about it.

    Attributes:
        calibration: The calibration.
        training: Training logs.
        joints: Joint files that were used.
        consistent: Validations of the physically consistent bodies.
        page: Page of the report; None if none was written.
        errors: Comparison with the prediction of an excitation; None if there is none.
    """

    calibration: Calibration
    training: list[Log]
    joints: list[JointModel]
    consistent: tuple[Validation, ...] = ()
    page: Path | None = None
    errors: ErrorComparison | None = None

    @property
    def validations(self) -> tuple[Validation, ...]:
        """The errors on the logs for validation; `held_out` says whether they share samples with the training data."""
        return self.calibration.validation


def carry_out(settings: Settings, progress: Progress, more: Mapping[str, str | None] | None = None) -> Outcome:
    """Check the arguments, calibrate, validate, and write the outputs; the caller writes the files of `more`."""
    paths = [*settings.logs, *([settings.data] if settings.data else [])]
    _check_usage(settings, paths)
    inputs = [*paths, *settings.validate, *settings.joint, settings.model, settings.robot, settings.columns]
    outputs = {"--output": settings.output, "--out-params": settings.out_params, **(more or {})}
    check_files(inputs, outputs, check_page(settings.report, "report.html"))
    if settings.plot:
        note("--plot opens no window; --report DIR writes the plots.")
    return _written(settings, _compared(settings, _calibrated(settings, paths, progress)), progress)


def _compared(settings: Settings, outcome: Outcome) -> Outcome:
    """Return the outcome with its standard errors beside those that an excitation predicted, if there is one."""
    if not settings.excitation:
        return outcome
    from jointwise.result.excitation import compare_with_prediction

    return replace(outcome, errors=compare_with_prediction(outcome.calibration, settings.excitation))


def _check_usage(settings: Settings, paths: list[str]) -> None:
    if not paths:
        raise UsageError("a LOG is required (or AURT's --data CSV)")
    if bool(settings.robot) == bool(settings.model):
        raise UsageError("--robot is required" if not settings.robot else "give --robot or --model, not both")
    if not (settings.output or settings.out_params):
        raise UsageError("--output is required")
    _check_named_logs(settings, paths)
    _check_combinations(settings)


def _check_combinations(settings: Settings) -> None:
    """Reject options that exclude each other or are out of range."""
    if settings.power_flow and settings.load not in (None, "none"):
        raise UsageError("--power-flow and --load do not go together: both depend on the load")
    if settings.essential_tolerance is not None and not settings.essential:
        raise UsageError("--essential-tolerance is used with --essential")
    if settings.joint_as is not None and not settings.joint:
        raise UsageError("--joint-as is for the joint files of --joint. Got none instead.")
    if settings.elements is not None:
        _check_elements(settings.elements)


def _check_elements(count: int) -> None:
    from jointwise.options import MOST_ELEMENTS

    if count > MOST_ELEMENTS:
        raise UsageError(f"--elements must be from 1 to {MOST_ELEMENTS}. Got {count} instead.")


def _calibrated(settings: Settings, paths: list[str], progress: Progress) -> Outcome:
    """Return the calibration with its validations."""
    from jointwise.calibration import calibrate
    from jointwise.cli.aurt import load_aurt_model
    from jointwise.options import Options, read_joints
    from jointwise.result import validate

    aurt = load_aurt_model(settings.model) if settings.model else None
    robot, payload = (
        aurt.robot if aurt else settings.described(settings.robot or ""),
        payload_of(_shared(settings.payload, "--payload")),
    )
    checked = settings.stated_mounting()
    progress("reading")
    training, held_out = _logs(settings, paths, robot)
    mounting = mounting_for([*training, *held_out], checked)
    joints = read_joints(settings.joint, robot)
    options = _options(settings, Options() if aurt is None else aurt.options(training), training)
    _note_implausible_gains(joints, settings.accept_implausible)
    calibration = calibrate(
        training,
        robot,
        mounting=mounting,
        payload=payload,
        options=options,
        physical=not settings.no_physical,
        progress=progress,
        accept_implausible=settings.accept_implausible,
        validation=held_out,
        joints=joints,
        joint_values=settings.joint_as or "start",
    )
    if settings.temperature and not calibration.model.needs_temperature:
        note("--temperature: no term of the model depends on temperature (--joint, --terms); it is only stored.")
    consistent = calibration.consistent() if calibration.physical is not None and held_out else None
    bodies = () if consistent is None else tuple(validate(consistent, log) for log in held_out)
    return Outcome(calibration, training, joints, bodies)


def _note_implausible_gains(joints: list[JointModel], accept: bool) -> None:
    """Print a note for every drive gain that contradicts the description."""
    if not joints:
        return
    from jointwise.joint.motor import implausible_gain

    for model in joints:
        if reason := implausible_gain(model.parts.get("motor")):
            used = "used because of --accept-implausible" if accept else "not used"
            note(f"drive gain of joint {model.joint + 1} is {used}: {reason}.")


def _logs(settings: Settings, paths: list[str], robot: Robot) -> tuple[list[Log], list[Log]]:
    """Return the logs for training and those for validation."""
    from jointwise.data import holdout

    training, validation = ([_log(settings, path, robot) for path in group] for group in (paths, settings.validate))
    if not settings.holdout:
        return training, validation
    parts = [holdout(log, settings.holdout) for log in training]
    return [first for first, _ in parts], [*(last for _, last in parts), *validation]


def _log(settings: Settings, path: str, robot: Robot) -> Log:
    """Return a log without the outputs to ignore; with `auto` those that are useless in this log."""
    from jointwise.data import read_log, useless_outputs

    log = read_log(path, joints=robot, **settings.reading(), ignore_output=settings.ignore_output or ())
    log = log.ignore_output(useless_outputs(log)) if settings.ignore_output is None else log
    payload, temperature = _of_log(settings.payload, path), _of_log(settings.temperature, path)
    if temperature is None and log.temperature is None:
        temperature = _shared(settings.temperature, "--temperature")
    log = log if temperature is None else log.with_temperature(temperature)
    return log.with_payload(payload_of(payload))


def _shared(stated: Sequence[tuple[str | None, T]], option: str) -> T | None:
    """Return what an option states for all logs, None if it states nothing."""
    values = [value for log, value in stated if log is None]
    if len(values) > 1:
        raise UsageError(f"{option}: stated twice for all logs; name the log, as in {option} LOG=...")
    return values[0] if values else None


def _of_log(stated: Sequence[tuple[str | None, T]], path: str) -> T | None:
    """Return what an option states for one log, by its path or file name; None if it states nothing."""
    values = [value for log, value in stated if log is not None and log in (path, Path(path).name)]
    return values[-1] if values else None


def _check_named_logs(settings: Settings, paths: list[str]) -> None:
    """Reject options for a log that is not there."""
    from jointwise.errors import nearest

    known = [name for path in (*paths, *settings.validate) for name in (path, Path(path).name)]
    for log, _ in (*settings.payload, *settings.temperature):
        if log is not None and log not in known:
            raise UsageError(f"'{log}=...': no such log. {nearest(log, {Path(name).name for name in known})}")


def _options(settings: Settings, start: Options, logs: list[Log]) -> Options:
    """Return options with what the arguments fix."""
    from jointwise.options import with_friction

    fixed = with_friction(
        start,
        logs,
        direction=settings.direction,
        load=settings.load,
        viscous_powers=settings.viscous_powers,
        stribeck=settings.stribeck,
        power_flow=settings.power_flow,
        ripple=settings.ripple,
        elements=settings.elements,
        relaxation=settings.relaxation,
        terms=settings.terms,
        two_encoders=settings.two_encoders,
        rotor_inertias=settings.rotor_inertia,
    )
    return replace(
        fixed,
        output=settings.output_signal or start.output,
        position_cutoff=settings.position_cutoff,
        parallel_cutoff=settings.parallel_cutoff,
        lag=settings.lag,
        decimation=settings.decimation,
        gains=settings.gains,
        rotors=start.rotors and not settings.no_rotors,
        method=settings.method,
        load_basis=(settings.load_basis or start.load_basis).replace("-", "_"),
        body_prior=settings.body_prior,
        essential=_essential_tolerance(settings),
    )


def _essential_tolerance(settings: Settings) -> float | None:
    """Return the tolerance of the held-out error as a part; None where all parameters are kept."""
    from jointwise.estimation.essential import TOLERANCE

    percent = settings.essential_tolerance
    return (TOLERANCE if percent is None else 0.01 * percent) if settings.essential else None


def _written(settings: Settings, outcome: Outcome, progress: Progress) -> Outcome:
    """Write parameters, model and report: all of them or none."""
    from jointwise.result import save_model
    from jointwise.result.predict import write_parameters

    progress("writing")
    with output_set():
        if settings.out_params:
            write_parameters(outcome.calibration, settings.out_params)
        if settings.output:
            save_model(outcome.calibration, settings.output)
        return _with_report(settings, Path(settings.report), outcome) if settings.report else outcome


def _with_report(settings: Settings, path: Path, outcome: Outcome) -> Outcome:
    """Write the report and return the outcome with its page."""
    from jointwise.report import write_report
    from jointwise.report.joint import joint_sections
    from jointwise.result.validation import validate_training

    sections = joint_sections(outcome.joints)
    logs = (validate_training(outcome.calibration, outcome.training), list(outcome.validations))
    page = write_report(outcome.calibration, path, *logs, settings.command_line, sections, settings.output)
    return replace(outcome, page=page)


def outcome_document(settings: Settings, outcome: Outcome) -> dict[str, Any]:
    """Return a calibration, its validations and the files that were written, for JSON."""
    from jointwise.result.model_file import hash_of, physical_entry
    from jointwise.result.plausibility import setup_entry
    from jointwise.result.verdict import judged_parameters, judged_validation

    calibration = outcome.calibration
    return {
        "model": settings.output,
        "hash": hash_of(calibration),
        "parameters_file": settings.out_params,
        "report": str(outcome.page) if outcome.page else None,
        "robot": calibration.model.robot.name,
        "output": calibration.output,
        "unit": calibration.unit,
        "gains": calibration.gains.tolist(),
        "gain_source": calibration.gain_source,
        "scale_known": calibration.scale_known,
        "payload": calibration.provenance.payload,
        "structure": calibration.structure.to_dict(),
        "structure_text": calibration.structure_text,
        "filters": asdict(calibration.filters),
        "choices": [asdict(choice) for choice in calibration.choices],
        "training": calibration.training.to_dict(),
        "physical": None if calibration.physical is None else physical_entry(calibration.physical),
        "plausibility": [setup_entry(finding) for finding in calibration.plausibility],
        "logs": [
            {
                "file": source.file,
                "verdict": source.verdict,
                "findings": list(source.findings),
                "period": source.period,
            }
            for source in calibration.provenance.logs
        ],
        "notes": list(calibration.provenance.notes),
        "setup": calibration.setup,
        "parameters": judged_parameters(calibration),
        "undetermined": list(calibration.undetermined()),
        "essential": None if calibration.essential is None else asdict(calibration.essential),
        "validation": [judged_validation(validation) for validation in outcome.validations],
        "excitation": None if outcome.errors is None else outcome.errors.to_dict(),
        "validation_consistent_bodies": [validation.to_dict() for validation in outcome.consistent],
    }
