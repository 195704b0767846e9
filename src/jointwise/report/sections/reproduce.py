"""How to reproduce: the command, the files, the versions."""

from __future__ import annotations

import shlex
from pathlib import Path

from jointwise.data.log import Log
from jointwise.report.evidence import Evidence
from jointwise.report.markup import Html, element, facts, join, paragraph, table
from jointwise.report.numbers import NOTHING, robot_title
from jointwise.result.calibration import Provenance
from jointwise.result.store import SCHEMA

ID, TITLE = "reproduce", "How to reproduce"


def body(evidence: Evidence) -> Html:
    """Return the command, the table of files and what made the model."""
    origin = evidence.calibration.provenance
    pairs: list[tuple[object, object]] = [
        ("Robot", f"{robot_title(evidence.robot)} ({evidence.robot.name}), {evidence.robot.dof} joints"),
        ("Mounting", origin.mounting),
        ("Output", f"{evidence.calibration.output} [{evidence.calibration.unit}]"),
        ("Jointwise", origin.version),
        ("Model schema", str(SCHEMA)),
        ("Calibrated", origin.date),
        ("Took", f"{origin.seconds:.1f} s"),
    ]
    return join([_command(evidence), _files(evidence), facts(pairs)])


def usual_command(evidence: Evidence) -> str:
    """Return the command of a calibration in which everything was left to the program."""
    calibration = evidence.calibration
    origin = calibration.provenance
    words = ["jointwise", "calibrate", *_training_paths(evidence), "--robot", evidence.robot.name]
    gravity = origin.mounting.split()
    words += ["--mounting", origin.mounting] if len(gravity) == 1 else ["--gravity", *gravity]
    words += _proof(evidence)
    words += ["--output-signal", calibration.output, "--output", "model.json", "--report", "report"]
    return shlex.join(words)


def _proof(evidence: Evidence) -> list[str]:
    """Return the options that name the unseen data: other files, or the held-out part of the same ones."""
    hashes = {own.log.origin.sha256 for own in evidence.training}
    parts = [own.log for own in evidence.unseen if own.log.origin.sha256 in hashes and own.log.origin.start > 0]
    others = [own.log.origin.path for own in evidence.unseen if own.log not in parts]
    held = ["--holdout", f"{parts[0].samples / parts[0].origin.rows:.3g}"] if parts else []
    return [*held, *(["--validate", *others] if others else [])]


def _command(evidence: Evidence) -> Html:
    line = element("pre", element("code", evidence.command or usual_command(evidence)), tabindex="0")
    if evidence.command or evidence.calibration.choices:
        return line
    note = "Settings that were given by hand are not in this line; they are listed under Choices."
    return join([line, paragraph(note, class_="small")])


def _training_paths(evidence: Evidence) -> list[str]:
    if evidence.training:
        return [own.log.origin.path for own in evidence.training]
    return [own.file for own in evidence.calibration.provenance.logs]


def _files(evidence: Evidence) -> Html:
    rows = [*_training_rows(evidence.calibration.provenance)]
    rows += [
        (_name(own.log), own.label, f"{own.log.samples:,}", _hash(own.log.origin.sha256)) for own in evidence.validation
    ]
    return table("Files", ("File", "Part", "Samples", "SHA-256"), rows, words=(0, 1, 3))


def _training_rows(origin: Provenance) -> list[tuple[object, ...]]:
    return [(own.file, "training data", f"{own.samples:,}", _hash(own.sha256)) for own in origin.logs]


def _name(log: Log) -> str:
    return Path(log.origin.path).name


def _hash(sha256: str) -> Html:
    return element("code", sha256 or NOTHING)
