"""Results as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.cli.text import table

if TYPE_CHECKING:
    from jointwise.result import Calibration, JointMetrics, Validation

MOST_NAMES = 12


def training_text(calibration: Calibration) -> str:
    """Return what was calibrated, and the error on the training data, labelled as such."""
    robot, filters = calibration.model.robot, calibration.filters
    joints = zip(robot.joints, calibration.estimate.sigma, calibration.gains, calibration.training["nmse"], strict=True)
    rows = [
        (str(j), joint.name, float(sigma / gain), float(nmse))
        for j, (joint, sigma, gain, nmse) in enumerate(joints, start=1)
    ]
    parallel = f", parallel {filters.parallel_cutoff:g} Hz" if filters.parallel_cutoff else ""
    lines = [
        f"{robot.title or robot.name}, output {calibration.output} [{calibration.unit}]; gains: "
        f"{calibration.gain_source}",
        f"joint model: {calibration.structure_text}",
        f"filters: position {filters.position_cutoff:g} Hz{parallel}, lag {1e3 * filters.lag:.1f} ms",
    ]
    if not calibration.load["converged"]:
        lines.append("the load torque has not settled: the load dependence is only roughly known")
    head = f"residual [{calibration.unit}]"
    lines += ["error on the TRAINING data (no proof)", table(("j", "joint", head, "MSE/variance"), rows)]
    return "\n".join([*lines, _parameters_text(calibration)])


def _parameters_text(calibration: Calibration) -> str:
    """Return how many parameters are known, and the names of those that are not."""
    status = calibration.estimate.status
    counts = ", ".join(
        f"{status.count(kind)} {kind}"
        for kind in ("determined", "weak", "at bound", "undetermined", "given")
        if kind in status
    )
    text = f"parameters: {len(status)} ({counts}), condition number {calibration.estimate.condition_scaled:.3g}"
    lost = calibration.undetermined()
    return text + (f"\nnot determined by these data: {shortened(lost)}" if lost else "")


def shortened(names: tuple[str, ...]) -> str:
    """Return names for one line."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def validation_text(validation: Validation) -> str:
    """Return the errors on one log: all samples, and those at which the joint moves."""
    rows = [_row(str(j), "all", own) for j, own in enumerate(validation.joints, start=1)] + [
        _row(str(j), "moving", own) for j, own in enumerate(validation.moving, start=1) if own is not None
    ]
    unit = validation.unit
    header = ("j", "samples", f"RMSE [{unit}]", f"mean [{unit}]", f"max [{unit}]", "MSE/variance", "fit %", "R2")
    mean = "the measurement does not vary: no R2"
    if validation.to_dict()["mean_r2"] is not None:
        mean = f"mean over the joints: MSE/variance {validation.mean_nmse:.5f}, R2 {validation.mean_r2:.5f}"
    return f"{validation.file}\n{table(header, rows)}\n{mean}"


def _row(joint: str, which: str, own: JointMetrics) -> tuple[object, ...]:
    figures = (own.rmse, own.mean, own.max, own.nmse, own.nrmse_percent, own.r2)
    return (joint, which, *(None if value is None else float(f"{value:.5g}") for value in figures))
