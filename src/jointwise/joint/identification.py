"""Every phenomenon by its name, each with what is known of the joint already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jointwise.description.robot import Robot
from jointwise.errors import EstimationError, JointwiseError
from jointwise.joint.gravity import refuse_unfit_gravity
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part
from jointwise.joint.phenomenon import PHENOMENA
from jointwise.joint.record import JointRecord

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What a user may decide: `method`, `elements` and `load` of hysteresis; None leaves it to the data."""

    method: str = "auto"
    elements: int | None = None
    load: str | None = None


@dataclass(frozen=True)
class Answers:
    """What some logs told about a joint: the `model` with what was known before, the names of what was `found`.

    `refused` tells why each phenomenon that was asked for and not found was refused, one reason a log, that of the log
    which suits it best first.
    """

    model: JointModel
    found: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]


def identify(
    phenomenon: str,
    record: JointRecord,
    robot: Robot,
    known: JointModel | None = None,
    settings: Settings | None = None,
) -> Part:
    """Return one phenomenon of a joint; `known` is what was identified before and helps where it is there."""
    if phenomenon not in PHENOMENA:
        raise EstimationError(f"phenomenon must be one of {', '.join(PHENOMENA)}. Got '{phenomenon}' instead.")
    refuse_unfit_gravity(record)
    parts = {} if known is None else dict(known.parts)
    part = _METHODS[phenomenon](record, robot, parts, settings or Settings())
    return _with_gain_note(_with_rival_note(part), record)


def _with_rival_note(part: Part) -> Part:
    """Return a part that says so where another model does better on the data held out, which have no vote."""
    figures = {own.model: round(own.held_out, 1) for own in part.alternatives if own.held_out is not None}
    if part.held_out is None or part.tried_on == "all data" or not figures:
        return part
    best, chosen = max(figures, key=lambda model: figures[model]), round(part.held_out, 1)
    if figures[best] <= chosen:
        return part
    told = (
        f"'{best}' does better on the data held out ({figures[best]} against {chosen} %): they judge, they do not "
        "choose; the model was chosen on the training part."
    )
    return replace(part, notes=(*part.notes, told))


def _with_gain_note(part: Part, record: JointRecord) -> Part:
    """Return a part in Nm with the gain that made them of amperes, which no interval counts."""
    if not record.has_current or record.unit != "Nm" or part.phenomenon in ("motor", "transmission"):
        return part
    told = f"torque is current times a drive gain of {record.gain:.5g} Nm/A: an error of it scales every torque alike"
    return replace(part, notes=(*part.notes, told))


def identify_all(
    records: Mapping[str, Sequence[JointRecord]],
    robot: Robot,
    known: JointModel,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Return all that some records tell; `records` are those to ask for each phenomenon.

    Of several records the one that suits a phenomenon best is asked first, and the others only where it cannot answer.
    Where no drive gain is known, the motor comes first and tells it. Stiffness and transmission help each other: the
    spring is told first, and once more when the transmission is known.
    """
    model, found, refused = known, list[str](), dict[str, tuple[str, ...]]()
    unknown = any(record.unit == "A" for own in records.values() for record in own)
    for name in _order(unknown):
        if not records.get(name) or (name in found and "transmission" not in found):
            continue
        if progress is not None:
            progress(name)
        part, reasons = _asked(name, records[name], robot, model, settings)
        if part is None:
            refused |= {name: reasons}
            continue
        model, found = model.with_part(part), [*found, name]
        records = _with_gain(records, model) if unknown and name == "motor" else records
    names = tuple(dict.fromkeys(found))
    return Answers(model, names, {name: own for name, own in refused.items() if name not in names})


def _order(unknown: bool) -> list[str]:
    """Return the phenomena in the order in which they are asked: stiffness again after the transmission."""
    names = list(PHENOMENA)
    names.insert(names.index("transmission") + 1, "stiffness")
    return sorted(names, key=lambda own: own != "motor") if unknown else names


def _with_gain(records: Mapping[str, Sequence[JointRecord]], model: JointModel) -> dict[str, list[JointRecord]]:
    """Return the records with the drive gain of a model where they have none."""
    from jointwise.joint.plug import drive_gain

    gain = drive_gain(model)
    assert gain is not None
    return {
        name: [record.with_gain(gain) if record.unit == "A" else record for record in own]
        for name, own in records.items()
    }


def _asked(
    name: str, records: Sequence[JointRecord], robot: Robot, model: JointModel, settings: Settings | None
) -> tuple[Part | None, tuple[str, ...]]:
    """Return what the first record that can answer tells, best suited first, and why those before it could not."""
    from jointwise.joint.suited import by_suitability

    reasons: list[str] = []
    for record in by_suitability(name, records):
        try:
            return identify(name, record, robot, model, settings), tuple(reasons)
        except JointwiseError as problem:
            reasons.append(str(problem))
    return None, tuple(reasons)


def _stiffness(record: JointRecord, robot: Robot, parts: dict[str, Part], settings: Settings) -> Part:
    from jointwise.joint.stiffness import identify_stiffness

    return identify_stiffness(record, transmission=parts.get("transmission"))


def _transmission(record: JointRecord, robot: Robot, parts: dict[str, Part], settings: Settings) -> Part:
    from jointwise.joint.transmission import identify_transmission

    ratio = robot.joints[record.joint].motor.gear_ratio
    return identify_transmission(record, stiffness=parts.get("stiffness"), gear_ratio=ratio)


def _friction(record: JointRecord, robot: Robot, parts: dict[str, Part], settings: Settings) -> Part:
    from jointwise.joint.friction import identify_friction

    return identify_friction(record)


def _load(record: JointRecord, robot: Robot, parts: dict[str, Part], settings: Settings) -> Part:
    from jointwise.joint.load import identify_load

    return _with_surfaces(identify_load(record, steady=parts.get("friction")), parts)


def _temperature(record: JointRecord, robot: Robot, parts: dict[str, Part], settings: Settings) -> Part:
    from jointwise.joint.temperature import identify_temperature

    return _with_surfaces(identify_temperature(record, steady=parts.get("friction")), parts)


def _with_surfaces(part: Part, parts: dict[str, Part]) -> Part:
    """Return a part with the maps over two quantities that it completes; none without the friction over speed."""
    from jointwise.joint.map import friction_map, map_surfaces

    if "friction" not in parts:
        return part
    surfaces = map_surfaces(friction_map([*(own for own in parts.values()), part]))
    return replace(part, surfaces=tuple(own for own in surfaces if part.phenomenon in own.y_label))


def _hysteresis(record: JointRecord, robot: Robot, parts: dict[str, Part], settings: Settings) -> Part:
    from jointwise.joint.hysteresis import identify_hysteresis

    return identify_hysteresis(
        record,
        method=settings.method,
        elements=settings.elements,
        backlash=parts.get("transmission"),
        load=settings.load or parts.get("load") or "auto",
        steady=parts.get("friction"),
    )


def _motor(record: JointRecord, robot: Robot, parts: dict[str, Part], settings: Settings) -> Part:
    from jointwise.joint.motor import identify_current_loop, identify_motor

    known = record.gain if record.unit == "Nm" else None
    part = identify_motor(record, gear_ratio=robot.joints[record.joint].motor.gear_ratio, known=known)
    return identify_current_loop(record).added(part)


_METHODS: dict[str, Callable[[JointRecord, Robot, dict[str, Part], Settings], Part]] = {
    "stiffness": _stiffness,
    "transmission": _transmission,
    "friction": _friction,
    "load": _load,
    "temperature": _temperature,
    "hysteresis": _hysteresis,
    "motor": _motor,
}
