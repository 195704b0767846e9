"""Identification of the phenomena of a joint: one of them, or all that a set of logs determines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jointwise.arguments import checked, checked_fields
from jointwise.description.robot import Robot
from jointwise.errors import EstimationError, JointwiseError
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.joint.record import MIN_TRAVEL, JointRecord

Progress = Callable[[str], None]


@checked_fields
@dataclass(frozen=True)
class HysteresisOptions:
    """Options of the hysteresis identification; the defaults leave every choice to the data.

    Attributes:
        method: Name of a model; "auto" for the best one on held-out data.
        elements: Number of slip elements; None for the best one.
        load: How hysteresis grows with the load, "none", "square" or "absolute"; None for that of the known load law,
            else the best one.
    """

    method: str = "auto"
    elements: int | None = None
    load: str | None = None


@dataclass(frozen=True)
class JointIdentification:
    """Result of identifying several phenomena of a joint.

    Attributes:
        model: What was identified and what was known before.
        found: Names of the phenomena that were identified.
        refused: For every other phenomenon the reasons why it could not be identified: one per log, the best suited log
            first.
    """

    model: JointModel
    found: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]


@checked
def identify(
    phenomenon: str,
    record: JointRecord,
    robot: Robot,
    known: JointModel | None = None,
    options: HysteresisOptions | None = None,
) -> Part:
    """Identify one phenomenon of a joint, as `jointwise joint PHENOMENON` does.

    Args:
        phenomenon: One of `PHENOMENA`, for example "friction".
        record: Signals of the joint, see `joint_record`.
        robot: The robot; its description provides the gear ratio.
        known: Phenomena identified before. They are used where they help: friction over speed for load, temperature
            and hysteresis, stiffness for the transmission and the reverse.
        options: Options of the phenomenon "hysteresis".

    Returns:
        The identified phenomenon.

    Raises:
        EstimationError: If the phenomenon is unknown or the record does not determine it.
    """
    from jointwise import joint as package  # each identification is imported on its first use
    from jointwise.joint.motor import identify_current_loop

    if phenomenon not in PHENOMENA:
        raise EstimationError(f"phenomenon must be one of {', '.join(PHENOMENA)}. Got '{phenomenon}' instead.")
    parts: Mapping[str, Part] = {} if known is None else known.parts
    choices = options or HysteresisOptions()
    ratio, steady = robot.joints[record.joint].motor.gear_ratio, parts.get("friction")
    gear, known_gain = parts.get("transmission"), record.gain if record.unit == "Nm" else None
    methods: dict[str, Callable[[], Part]] = {
        "stiffness": lambda: package.identify_stiffness(record, transmission=gear),
        "transmission": lambda: package.identify_transmission(
            record, stiffness=parts.get("stiffness"), gear_ratio=ratio
        ),
        "friction": lambda: package.identify_friction(record),
        "load": lambda: package.identify_load(record, steady=steady),
        "temperature": lambda: package.identify_temperature(record, steady=steady),
        "hysteresis": lambda: package.identify_hysteresis(
            record,
            method=choices.method,
            elements=choices.elements,
            backlash=gear,
            load=choices.load or parts.get("load") or "auto",
            steady=steady,
        ),
        "motor": lambda: identify_current_loop(record).added(
            package.identify_motor(record, gear_ratio=ratio, known=known_gain)
        ),
    }
    return methods[phenomenon]()


@checked
def identify_all(
    records: Sequence[JointRecord] | Mapping[str, Sequence[JointRecord]],
    robot: Robot,
    known: JointModel | None = None,
    options: HysteresisOptions | None = None,
    progress: Progress | None = None,
) -> JointIdentification:
    """Identify every phenomenon that a set of records determines, as `jointwise joint all` does.

    For each phenomenon the best suited record is tried first, and the others only where it fails. Where no drive gain
    is known, the motor is identified first. Stiffness and transmission depend on each other: stiffness is identified
    again once the transmission is known.

    Args:
        records: Records of one joint (one log each) for all phenomena, or the records to use by phenomenon.
        robot: The robot.
        known: Phenomena identified before; they are kept and used where they help.
        options: Options of the phenomenon "hysteresis".
        progress: Called with the name of each phenomenon before it is identified.

    Returns:
        The model with all phenomena, which of them were found, and the reasons for the others.

    Raises:
        EstimationError: If `records` is empty.
    """
    by_name = records if isinstance(records, Mapping) else dict.fromkeys(PHENOMENA, records)
    run = _Run(_start(by_name, known), dict(by_name), robot, options)
    for name in _order(run.lacks_gain):
        if by_name.get(name) and not (name in run.found and "transmission" not in run.found):
            if progress is not None:
                progress(name)
            run.identify(name)
    return run.result()


# -- all phenomena --


class _Run:
    """State of `identify_all`: the model so far, what was found, and why other phenomena were not."""

    def __init__(
        self,
        model: JointModel,
        records: dict[str, Sequence[JointRecord]],
        robot: Robot,
        options: HysteresisOptions | None,
    ) -> None:
        self.model, self.records, self.robot, self.options = model, records, robot, options
        self.lacks_gain = any(record.unit == "A" for group in records.values() for record in group)
        self.found: list[str] = []
        self.refused: dict[str, tuple[str, ...]] = {}

    def identify(self, name: str) -> None:
        """Identify a phenomenon from the first record that determines it, the best suited first."""
        reasons: list[str] = []
        for record in by_suitability(name, self.records[name]):
            try:
                part = identify(name, record, self.robot, self.model, self.options)
            except JointwiseError as problem:
                reasons.append(str(problem))
                continue
            self._add(part)
            return
        self.refused[name] = tuple(reasons)

    def _add(self, part: Part) -> None:
        self.model = self.model.with_part(part)
        self.found.append(part.phenomenon)
        if self.lacks_gain and part.phenomenon == "motor":
            self.records = _with_gain(self.records, self.model)

    def result(self) -> JointIdentification:
        """Return the result."""
        found = tuple(dict.fromkeys(self.found))
        refused = {name: reasons for name, reasons in self.refused.items() if name not in found}
        return JointIdentification(self.model, found, refused)


def _start(records: Mapping[str, Sequence[JointRecord]], known: JointModel | None) -> JointModel:
    """Return the known model, or an empty one of the joint of the records."""
    if known is not None:
        return known
    first = next((record for group in records.values() for record in group), None)
    if first is None:
        raise EstimationError("records must hold at least one record. Got none instead.")
    return JointModel(first.robot, first.joint)


def _order(motor_first: bool) -> list[str]:
    """Return the phenomena in the order of identification: stiffness again after the transmission."""
    names = list(PHENOMENA)
    names.insert(names.index("transmission") + 1, "stiffness")
    return sorted(names, key=lambda name: name != "motor") if motor_first else names


def _with_gain(records: Mapping[str, Sequence[JointRecord]], model: JointModel) -> dict[str, Sequence[JointRecord]]:
    """Return the records with the drive gain of a model where they have none."""
    from jointwise.joint.calibration_terms import drive_gain

    gain = drive_gain(model)
    if gain is None:
        return dict(records)
    return {
        name: [record.with_gain(gain) if record.unit == "A" else record for record in group]
        for name, group in records.items()
    }


# -- which record suits a phenomenon --

Score = tuple[float, ...]


def by_suitability(phenomenon: str, records: Sequence[JointRecord]) -> list[JointRecord]:
    """Return records, the one that suits a phenomenon best first, by how much each excites it."""
    score = _SCORES[PHENOMENA[phenomenon].main]
    return sorted(records, key=score, reverse=True)


def _twist(record: JointRecord) -> Score:
    """Return whether the output is locked, and the range of θ - q, rad."""
    phi = 0.0 if record.phi is None else float(np.ptp(record.phi))
    return float(phi > 0.0 and np.ptp(record.q) < MIN_TRAVEL), phi


def _reversals(record: JointRecord) -> Score:
    """Return whether the joint moves slowly, and the time (s) near its reversals; 0 if it does not move."""
    from jointwise.joint.transmission import MAX_SPEED, usual_top_speed
    from jointwise.joint.windows import moving, settled

    if np.ptp(record.position) < MIN_TRAVEL:
        return 0.0, 0.0
    slow = usual_top_speed(record) <= MAX_SPEED
    return float(slow), float(np.sum(moving(record) & ~settled(record))) / record.rate


def _speed(record: JointRecord) -> Score:
    """Return the logarithm of the fastest over the slowest constant speed, and the top speed, rad/s."""
    from jointwise.joint.windows import find_plateaus

    runs = np.abs(find_plateaus(record).speed)
    return float(np.ptp(np.log(runs))) if len(runs) else 0.0, record.top_speed


def _load_range(record: JointRecord) -> Score:
    """Return the range of the load, Nm, in motion at constant speed: weight, not inertia."""
    from jointwise.joint.windows import LOAD_QUANTILES, moving, unaccelerated

    steady = record.load[moving(record) & unaccelerated(record)]
    return (float(np.ptp(np.quantile(steady, LOAD_QUANTILES))) if len(steady) else 0.0,)


_SCORES: dict[str, Callable[[JointRecord], Score]] = {
    "twist": _twist,
    "reversals": _reversals,
    "speed": _speed,
    "load": _load_range,
    "temperature": lambda record: (0.0 if record.temperature is None else float(np.ptp(record.temperature)),),
}
