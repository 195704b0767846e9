"""What an export consists of: files, what they cannot express, checks against the model, and the cost on logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jointwise.atomic import atomic_path, check_directory, make_directory, output_set
from jointwise.data.log import Log
from jointwise.errors import ModelError
from jointwise.finding import Finding, Severity, with_severity
from jointwise.result.metrics import CONTRADICTED
from jointwise.result.plausibility import Setup
from jointwise.result.validation import validate
from jointwise.runtime import RobotModel
from jointwise.spatial import Array

REPORT = "EXPORT.md"
"""Name of the report among the files of an export."""


@dataclass(frozen=True)
class Comparison(Finding):
    """The finding of a comparison of an export with the model, with its numbers.

    Attributes:
        difference: Largest difference.
        tolerance: Largest difference that is allowed.
        unit: Unit of both.
    """

    difference: float = 0.0
    tolerance: float = 0.0
    unit: str = ""


def compared(subject: str, difference: float, tolerance: float, unit: str = "") -> Comparison:
    """Return the finding that an export differs from the model by some amount: an error beyond the tolerance."""
    of = f" {unit}" if unit else ""
    text = f"largest difference {difference:.2g}{of}, allowed {tolerance:.2g}{of}"
    severity: Severity = "ok" if difference <= tolerance else "error"
    return Comparison(severity, subject, text, difference=difference, tolerance=tolerance, unit=unit)


def not_compared(subject: str, reason: str) -> Comparison:
    """Return the finding that an export could not be compared with the model."""
    return Comparison("info", subject, f"not checked, {reason}", code="skipped")


@dataclass(frozen=True)
class Loss:
    """Something that a target cannot express, and the prediction of a log without it and the losses listed before.

    `predict` is None where no log shows what it costs.
    """

    text: str
    predict: Callable[[Log], Array] | None = None


@dataclass(frozen=True)
class Cost:
    """What a loss costs on a log.

    Attributes:
        file: File of the log.
        loss: What the target cannot express.
        unit: Unit of the errors.
        before: Mean over the joints of the RMSE before the loss.
        after: The same with the loss.
    """

    file: str
    loss: str
    unit: str
    before: float
    after: float

    def __str__(self) -> str:
        """Return one line."""
        return f"RMSE {self.before:.3g} -> {self.after:.3g} {self.unit} on {Path(self.file).name}"


@dataclass(frozen=True)
class Content:
    """An export before it is written.

    Attributes:
        files: Contents of the files, by relative path.
        losses: What the target cannot express.
        checks: Comparisons with the model.
        next_step: What a user of the target types next.
    """

    files: Mapping[str, bytes]
    losses: tuple[Loss, ...] = ()
    checks: tuple[Comparison, ...] = ()
    next_step: str = ""

    @property
    def measurable(self) -> bool:
        """Whether logs show what a loss costs."""
        return any(loss.predict is not None for loss in self.losses)


@dataclass(frozen=True)
class Export:
    """An export that was written.

    Attributes:
        target: Name of the target.
        directory: Directory of the files.
        files: Files, relative to the directory.
        losses: What the target cannot express.
        costs: What the losses cost on logs.
        checks: Comparisons with the model.
        next_step: What a user of the target types next.
        measurable: Whether logs show what a loss costs.
        setup: Set-up of the model by its training data: "ok", "suspect" or "contradicted".
    """

    target: str
    directory: Path
    files: tuple[str, ...]
    losses: tuple[str, ...]
    costs: tuple[Cost, ...]
    checks: tuple[Comparison, ...]
    next_step: str = field(default="", repr=False)
    measurable: bool = field(default=False, repr=False)
    setup: Setup = "ok"

    def to_dict(self) -> dict[str, Any]:
        """Return the export for JSON."""
        return {
            "target": self.target,
            "directory": str(self.directory),
            "files": list(self.files),
            "losses": list(self.losses),
            "costs": [vars(cost) for cost in self.costs],
            "checks": [_entry(check) for check in self.checks],
            "next_step": self.next_step,
            "setup": self.setup,
        }

    def summary(self) -> str:
        """Return the export as text: what is lost, what that costs, what was checked, and what to do next."""
        return report_text(self.losses, self.costs, self.checks, self.next_step, self.measurable, self.setup)


def _entry(check: Comparison) -> dict[str, Any]:
    """Return a check for JSON, with the entries of earlier versions."""
    skipped = check.evidence.removeprefix("not checked, ") if check.code == "skipped" else None
    return {**check.to_dict(name="subject"), "passed": check.severity != "error", "skipped": skipped}


def costs_of(model: RobotModel, content: Content, logs: Sequence[Log]) -> tuple[Cost, ...]:
    """Return what every loss of an export costs on logs with a measured output."""
    costs = []
    for log in logs:
        before = validate(model, log).mean_rmse
        for loss in content.losses:
            if loss.predict is None:
                continue
            after = validate(model, log, prediction=loss.predict(log)).mean_rmse
            costs.append(Cost(log.origin.path, loss.text, model.unit, before, after))
            before = after
    return tuple(costs)


def report_text(
    losses: Sequence[str],
    costs: Sequence[Cost],
    checks: Sequence[Comparison],
    next_step: str,
    measurable: bool,
    setup: Setup,
) -> str:
    """Return the report of an export as lines of text.

    Args:
        losses: What the target cannot express.
        costs: What that costs on logs.
        checks: Comparisons with the model.
        next_step: What a user of the target types next.
        measurable: Whether logs would show what is lost.
        setup: Set-up of the model by its training data.
    """
    lines = [f"Do not use: {CONTRADICTED}.", ""] if setup == "contradicted" else []
    lines += ["Not expressed by the target:" if losses else "The target expresses the whole model."]
    for loss in losses:
        lines.append(f"- {loss}")
        lines += [f"  {cost}" for cost in costs if cost.loss == loss]
    if measurable and not costs:
        lines.append("What this costs on your data: give validation logs (--log).")
    lines += ["", "Checks:", *(f"- {check.line()}" for check in checks)]
    lines += ["", "Next:", *(f"    {line}" for line in next_step.splitlines())] if next_step else []
    return "\n".join(lines)


def write_export(
    target: str, model: RobotModel, content: Content, directory: Path, costs: tuple[Cost, ...], force: bool
) -> Export:
    """Write the files of an export with its report, all or none.

    Raises:
        ModelError: A check failed; nothing is written.
        OutputError: The directory is not empty and `force` is False, or cannot be written.

    """
    if failed := with_severity(content.checks, "error"):
        why = f"{failed[0].subject}: {failed[0].sentence}"
        raise ModelError(f"the export to {target} does not agree with the model and was not written: {why}")
    check_directory(directory, force=force)
    title = f"# {model.name}: export to {target}\n\n"
    losses = tuple(loss.text for loss in content.losses)
    setup = model.calibration.setup
    report = title + report_text(losses, costs, content.checks, content.next_step, content.measurable, setup) + "\n"
    files = {**content.files, REPORT: report.encode()}
    with output_set():
        for name, data in files.items():
            make_directory((directory / name).parent)
            with atomic_path(directory / name) as temporary:
                temporary.write_bytes(data)
    return Export(
        target,
        directory,
        tuple(sorted(files)),
        losses,
        costs,
        content.checks,
        content.next_step,
        content.measurable,
        setup,
    )
