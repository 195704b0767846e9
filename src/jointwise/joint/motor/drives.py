"""Drives of a robot from one log: inertia from the targets, then gain and power-flow friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jointwise.data.log import Log
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import DataError, EstimationError
from jointwise.joint.model import JointModel
from jointwise.joint.motor.inertia import DriveInertia, inertias_from_targets
from jointwise.joint.motor.links import identify_motor
from jointwise.joint.part import Part
from jointwise.joint.record import joint_record


@dataclass(frozen=True)
class DriveIdentification:
    """Inertias and motor parts of the drives of a robot.

    Attributes:
        robot: Name of the robot.
        inertias: Inertia of motor and reducer, one per joint.
        parts: Motor part (gain, offset, friction, inertia), one per joint; None where it is not determined.
        reasons: Why it is not, "" where it is.
        alike: Whether like drives share their inertia.

    """

    robot: str
    inertias: tuple[DriveInertia, ...]
    parts: tuple[Part | None, ...]
    reasons: tuple[str, ...]
    alike: bool

    def models(self) -> list[JointModel]:
        """Return the joints whose motor is determined, for `save_joints` and `calibrate --joint`.

        Raises:
            EstimationError: No motor is determined.

        """
        if not any(self.parts):
            raise EstimationError(f"no motor is determined. {self.reasons[0]}")
        found = enumerate(self.parts)
        return [JointModel(self.robot, j, {"motor": part}) for j, part in found if part is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return inertias, gains and friction as plain JSON; joints count from 1."""
        rows = zip(self.inertias, self.parts, self.reasons, strict=True)
        return {"robot": self.robot, "joints": [self._joint(*row) for row in rows]}

    def _joint(self, inertia: DriveInertia, part: Part | None, reason: str) -> dict[str, Any]:
        used = inertia.shared if self.alike else inertia.alone
        values = {} if part is None else {value.name: vars(value) for value in part.values}
        return {
            "joint": inertia.joint + 1,
            "inertia": vars(used),
            "torque_r2": inertia.r2,
            "torque_rms": inertia.rms,
            "like_drives_probability": inertia.alike,
            "motor": {name: value for name, value in values.items() if name != "inertia"} or None,
            "held_out": None if part is None else part.held_out,
            "reason": reason or None,
        }

    def summary(self) -> str:
        """Return a line per joint, and whether like drives are alike."""
        lines = [self._line(j) for j in range(len(self.inertias))]
        different = [str(each.joint + 1) for each in self.inertias if each.differs]
        if different:
            lines.append(f"joints {', '.join(different)}: the inertias differ: unequal drives, or errors of the links")
        return "\n".join(lines)

    def _line(self, j: int) -> str:
        inertia, part = self.inertias[j], self.parts[j]
        used = inertia.shared if self.alike else inertia.alone
        head = f"joint {j + 1}: inertia {used.value:.4g} [{used.low:.4g}, {used.high:.4g}] kg m², R² {inertia.r2:.4f}"
        if part is None:
            return f"{head}; motor not determined: {self.reasons[j]}"
        listed = (v for v in part.values if v.name not in ("inertia", "offset"))
        return f"{head}; " + ", ".join(f"{v.name} {v.value:.4g} [{v.low:.4g}, {v.high:.4g}] {v.unit}" for v in listed)


def identify_drives(
    logs: Log | Sequence[Log],
    robot: Robot,
    *,
    mounting: Mounting | None = None,
    payload: Payload | None = None,
    alike: bool = False,
) -> DriveIdentification:
    """Return inertias, gains and friction of all drives of a robot.

    First the inertia of motor and reducer from the controller's targets (`inertias_from_targets`), then, per joint,
    gain and friction by the direction of power flow in one regression of the measured current (`identify_motor`).

    Args:
        logs: Logs with targets and measured currents.
        robot: The robot, whose links are known.
        mounting: Mounting of the base; by default as the logs state, else "table".
        payload: Payload in the logs.
        alike: Whether joints with the same torque limit share their inertia.

    Raises:
        DataError: A log lacks targets.
        EstimationError: The motion does not determine the inertias. Motors that are not determined have a reason.

    """
    inertias = inertias_from_targets(logs, robot, mounting=mounting, payload=payload)
    parts: list[Part | None] = []
    reasons: list[str] = []
    for each in inertias:
        value, motor = each.shared if alike else each.alone, robot.joints[each.joint].motor
        gain, inertia = motor.joint_gain or 1.0, max(value.value, 0.0)
        try:
            record = joint_record(
                logs, robot, each.joint, mounting=mounting, payload=payload, gain=gain, inertia=inertia
            )
            part = identify_motor(record, gear_ratio=motor.gear_ratio, friction="power flow")
            others = tuple(v for v in part.values if v.name != "inertia")
            parts.append(replace(part, values=(*others, value)))
            reasons.append("")
        except (DataError, EstimationError) as problem:
            parts.append(None)
            reasons.append(str(problem))
    return DriveIdentification(robot.name, inertias, tuple(parts), tuple(reasons), alike)
