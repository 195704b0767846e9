"""Results as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointwise.cli.text import table
from jointwise.result.calibration import EXTRAS
from jointwise.result.digits import rounded, rounded_r2
from jointwise.result.words import explained

if TYPE_CHECKING:
    from jointwise.result import Calibration, JointMetrics, Validation

MOST_NAMES = 12
STATUS = {
    "weak": "weak: zero lies inside the 95 % interval, the value is small or hard to tell from others",
    "at bound": "at bound: friction is offered more elements than it needs; those held at zero are not missing",
}
REST = "at rest: a joint that stands still has no R2, for friction may hold anything up to break-away there"


def training_text(calibration: Calibration) -> str:
    """Return what was calibrated, and the error on the training data, labelled as such."""
    from jointwise.estimation.weigh import told

    robot, filters = calibration.model.robot, calibration.filters
    joints = zip(robot.joints, calibration.estimate.sigma, calibration.gains, calibration.training["nmse"], strict=True)
    rows = [
        (str(j), joint.name, rounded(float(sigma / gain)), rounded(float(nmse)))
        for j, (joint, sigma, gain, nmse) in enumerate(joints, start=1)
    ]
    parallel = f", parallel {filters.parallel_cutoff:g} Hz" if filters.parallel_cutoff else ""
    lines = [
        f"{robot.title or robot.name}, output {calibration.output} [{calibration.unit}]; gains: "
        f"{calibration.gain_source}",
        f"joint model: {calibration.structure_text}",
        *(f"  {line}" for line in explained(calibration.structure)),
        f"filters: position {filters.position_cutoff:g} Hz{parallel}, lag {1e3 * filters.lag:.1f} ms",
    ]
    lines += told(calibration.choices)[0]
    if calibration.provenance.payload:
        lines.append(calibration.provenance.payload_text())
    if not calibration.load["converged"]:
        lines.append("the load torque has not settled: the load dependence is only roughly known")
    head = f"residual [{calibration.unit}]"
    lines += ["error on the TRAINING data (no proof)", table(("j", "joint", head, "MSE/variance"), rows)]
    alone = [own for own in calibration.training.get("positions_alone") or () if own is not None]
    if alone:
        used = " and ".join(EXTRAS[name] for name in calibration.extras)
        lines.append(
            f"uses {used}; from positions alone MSE/variance {rounded(sum(alone) / len(alone))} (TRAINING data)"
        )
    return "\n".join([*lines, _parameters_text(calibration)])


def _parameters_text(calibration: Calibration) -> str:
    """Return how many parameters are known, of bodies and of joints apart, and the names of those that are not."""
    counts = "; ".join(f"{whose} {number} ({kinds})" for whose, number, kinds in calibration.counts())
    lines = [f"parameters: {counts}; condition number {calibration.estimate.condition_scaled:.3g}"]
    lost = calibration.undetermined()
    lines += [f"not determined by these data: {shortened(lost)}"] if lost else []
    return "\n".join([*lines, *(f"  {why}" for kind, why in STATUS.items() if kind in calibration.estimate.status)])


def shortened(names: tuple[str, ...]) -> str:
    """Return names for one line."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def validation_text(validation: Validation) -> str:
    """Return the errors on one log: all samples, and those at which the joint moves; of joints at rest no R2."""
    rows = [_row(str(j), "at rest" if own.still else "all", own) for j, own in enumerate(validation.joints, start=1)]
    rows += [_row(str(j), "moving", own) for j, own in enumerate(validation.moving, start=1) if own is not None]
    unit = validation.unit
    errors = tuple(f"{name} [{unit}]" for name in ("RMSE", "mean", "max", "offset"))
    lines = [validation.file, table(("j", "samples", *errors, "MSE/variance", "fit %", "R2"), rows)]
    if any(own.still for own in validation.joints):
        lines.append(REST)
    if validation.reason is not None:
        return "\n".join([*lines, validation.reason])
    nmse, r2 = rounded(validation.mean_nmse), rounded_r2(validation.mean_r2)
    whose = "joints that move" if any(own.still for own in validation.joints) else "joints"
    return "\n".join([*lines, f"mean over the {whose}: MSE/variance {nmse}, R2 {r2}", *_alone_lines(validation)])


def _alone_lines(validation: Validation) -> list[str]:
    """Return the error of the prediction from positions alone, where the log has more that the model uses."""
    own = validation.alone
    if own is None or own.reason is not None:
        return []
    moving, full = rounded(own.moving_nmse), rounded(validation.moving_nmse)
    part = "" if moving is None else f"; moving samples {moving} instead of {full}"
    return [f"from positions alone: MSE/variance {rounded(own.mean_nmse)}, R2 {rounded_r2(own.mean_r2)}{part}"]


def _row(joint: str, which: str, own: JointMetrics) -> tuple[object, ...]:
    figures = (own.rmse, own.mean, own.max, own.offset, own.nmse, own.nrmse_percent)
    return (joint, which, *(rounded(value) for value in figures), rounded_r2(own.r2))
