"""The origin of a calibration: program, date, mounting, payload and training logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from jointwise.data.conditioning import CHUNK
from jointwise.data.log import Log
from jointwise.data.overlap import Sketch, sketch, sketched_fraction
from jointwise.data.quality import DataQuality
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload
from jointwise.formatting import shortened
from jointwise.spatial import six_to_tensor, tensor_to_six


@dataclass(frozen=True)
class Source:
    """A training log.

    Attributes:
        file: File name.
        sha256: Hash of the file.
        samples: Number of samples.
        duration: Duration, s.
        verdict: Verdict of the inspection.
        findings: Findings of the inspection.
        sketch: Recognises its samples in other files; None in models of earlier versions.
        temperatures: Mean temperatures of its joints, °C; None where they were not measured.
        period: Period with which its motion repeats itself, s; None if it does not.
    """

    file: str
    sha256: str
    samples: int
    duration: float
    verdict: str
    findings: tuple[str, ...] = ()
    sketch: Sketch | None = None
    temperatures: tuple[float, ...] | None = None
    period: float | None = None


@dataclass(frozen=True)
class Provenance:
    """Origin of a calibration.

    Attributes:
        version: Version of Jointwise.
        date: Date and time, ISO 8601.
        mounting: Mounting of the base.
        logs: Training logs.
        seconds: Duration of the calibration, s.
        payload: Payload that the parameters include: kg, centre x, y, z (m), and XX XY XZ YY YZ ZZ (kg m²) about the
            centre where they are known. It is that of the training logs, or the one set by `Calibration.with_payload`.
        notes: Warnings of the calibration: those of the inspection of its logs, weak excitation, poor joints.
    """

    version: str
    date: str
    mounting: str
    logs: tuple[Source, ...]
    seconds: float = 0.0
    payload: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()

    def shared_fraction(self, log: Log, output: str) -> float:
        """Return the fraction of the samples of a log that the model was trained on, whatever the file is."""
        if any(source.sketch is None and source.sha256 == log.origin.sha256 != "" for source in self.logs):
            return 1.0
        return sketched_fraction(log, [source.sketch for source in self.logs if source.sketch], output)

    @property
    def temperatures(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Lowest and highest mean temperatures of the joints in the logs, °C; None where one does not have them."""
        known = [source.temperatures for source in self.logs if source.temperatures is not None]
        if not known or len(known) < len(self.logs):
            return None
        return tuple(map(min, zip(*known, strict=True))), tuple(map(max, zip(*known, strict=True)))

    @property
    def carried(self) -> Payload | None:
        """The payload that the parameters include."""
        if self.payload is None:
            return None
        tensor = six_to_tensor(self.payload[4:]) if len(self.payload) > 4 else np.zeros((3, 3))
        return Payload(self.payload[0], self.payload[1:4], tensor)

    def payload_text(self) -> str:
        """Return a sentence about the payload that the parameters include; empty without payload."""
        if self.payload is None:
            return ""
        mass, x, y, z = self.payload[:4]
        return f"the parameters include the payload: {mass:g} kg at {x:g}, {y:g}, {z:g} m in the tool frame"

    def repetition_text(self) -> str:
        """Return how the confidence intervals count motions that repeat themselves; empty if none does."""
        found = [f"every {log.period:.1f} s ({log.file})" for log in self.logs if log.period is not None]
        if not found:
            return ""
        return f"the motion repeats {shortened(found)}: the confidence intervals count repetitions as one"


def payload_numbers(payload: Payload | None) -> tuple[float, ...] | None:
    """Return a payload as `Provenance` stores it."""
    if payload is None:
        return None
    center, tensor = np.asarray(payload.center_of_mass), tensor_to_six(payload.inertia)
    return (payload.mass, *center.tolist(), *(tensor.tolist() if tensor.any() else ()))


def provenance_of(
    inspections: Sequence[DataQuality],
    output: str,
    mounting: Mounting,
    payload: Payload | None,
    notes: Sequence[str],
    periods: Sequence[float | None],
    seconds: float,
) -> Provenance:
    """Return where a calibration comes from, with the period (s) of every log; `seconds` is how long it took."""
    from jointwise import __version__

    named = mounting if isinstance(mounting, str) else " ".join(f"{float(g):g}" for g in mounting)
    pairs = zip(inspections, periods, strict=True)
    sources = tuple(source_of(inspection, output, period) for inspection, period in pairs)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Provenance(__version__, date, named, sources, seconds, payload_numbers(payload), tuple(notes))


def source_of(inspection: DataQuality, output: str, period: float | None) -> Source:
    """Return what is kept of a training log: name, hash, verdict, sketch of its samples, mean temperatures, period."""
    log, findings = inspection.log, tuple(finding.line() for finding in inspection.findings)
    name = Path(log.origin.path).name
    return Source(
        file=name,
        sha256=log.origin.sha256,
        samples=log.samples,
        duration=log.duration,
        verdict=inspection.verdict,
        findings=findings,
        sketch=sketch(log, output),
        temperatures=_mean_temperatures(log),
        period=period,
    )


def _mean_temperatures(log: Log) -> tuple[float, ...] | None:
    """Return the mean temperature (degC) of every joint, chunk by chunk; None where a joint has none."""
    if log.temperature is None:
        return None
    total, count = np.zeros(log.joints), np.zeros(log.joints)
    for chunk in log.chunks(CHUNK):
        temperature = chunk.channel("temperature")
        total += np.nansum(temperature, axis=0)
        count += np.isfinite(temperature).sum(axis=0)
    return tuple((total / count).tolist()) if count.all() else None
