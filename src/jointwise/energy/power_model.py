"""Electrical power of a robot on its DC bus: standing power, motor power, copper loss, and iron and drive loss."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jointwise.arguments import checked
from jointwise.atomic import read_limited
from jointwise.description.transmission import Coordinates, Transmission
from jointwise.document import LARGEST, Kind, load_document, write_document
from jointwise.errors import DataError, JointwiseError, ModelError
from jointwise.joint.part import Value
from jointwise.model.motor import drawn_power, drive_loss
from jointwise.spatial import Array

Braking = Literal["stored", "burnt"]
POWER_FILE = Kind(
    format="jointwise-power",
    name="a power model (energy fit writes one)",
    noun="power model",
    remedy="Fit it again (jointwise energy fit).",
)


@dataclass(frozen=True)
class PowerModel:
    """Power on the DC bus of a robot, ``P = P_0 + Σ_j (R_j i_j² + η K_j i_j w_j + D_j |w_j| + c |η K_j i_j w_j|)``.

    i is the motor current (A) and w the speed (rad/s) of the joint, or of the motor where a transmission couples them.
    Braking joints feed the other joints through the bus. What remains is `stored` (it lowers the power from the supply)
    or `burnt` in a resistor (it does not).

    Attributes:
        robot: Name of the robot.
        standing: P_0, power of the controller and the brakes at standstill, W.
        share: η, motor power per ``K i w``: 1 where the gains K are right.
        gains: K_j, joint torque per ampere, Nm/A.
        resistance: R_j, equivalent DC resistance of winding and drive, Ω.
        drag: D_j, iron and drive loss per speed, W s/rad.
        conversion: c, loss of the drive per motor power in either direction.
        braking: What happens to braking power that no other joint uses.
        values: Estimated parameters with their 95 % confidence intervals; empty where none was estimated.
        rmse: Root mean square error on the training logs, W; None where nothing was fitted.
        logs: Training logs.
        notes: What a user should know.
        coupling: Rows of C where a transmission couples motors and joints, ``theta = C q``; empty if it does not.
        coordinates: Those of positions, speeds and torques in the logs of a coupled robot.

    """

    robot: str
    standing: float
    share: float
    gains: tuple[float, ...]
    resistance: tuple[float, ...]
    drag: tuple[float, ...]
    conversion: float = 0.0
    braking: Braking = "stored"
    values: tuple[Value, ...] = ()
    rmse: float | None = None
    logs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    coupling: tuple[tuple[float, ...], ...] = ()
    coordinates: Coordinates = "joint"

    def __post_init__(self) -> None:
        """Reject negative losses and lists of different lengths."""
        if len(self.coupling) not in (0, len(self.gains)):
            raise ModelError(f"coupling must have {len(self.gains)} rows. Got {len(self.coupling)} instead.")
        for name in ("gains", "resistance", "drag"):
            values = getattr(self, name)
            if len(values) != len(self.gains) or not values:
                raise ModelError(f"{name} must have one number per joint. Got {len(values)} instead.")
            if min(values) < 0.0:
                raise ModelError(f"{name} must be at least 0: a loss that creates power. Got {min(values):g} instead.")
        for name in ("standing", "share", "conversion"):
            if getattr(self, name) < 0.0:
                raise ModelError(f"{name} must be at least 0. Got {getattr(self, name):g} instead.")

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.gains)

    @cached_property
    def transmission(self) -> Transmission | None:
        """How the motors turn with the joints; None where every motor drives its own joint only."""
        return Transmission(np.array(self.coupling), self.coordinates) if self.coupling else None

    def joint_powers(self, current: Array, speed: Array) -> JointPowers:
        """Return the powers of the joints (samples, joints), W, at currents (A) and speeds (rad/s)."""
        if current.shape[1] != self.dof:
            raise DataError(f"the log has {current.shape[1]} joints, the power model {self.dof} ({self.robot}).")
        mechanical = self.share * np.array(self.gains) * current * speed
        copper = np.array(self.resistance) * current**2
        drive = drive_loss(mechanical, speed, np.array(self.drag), self.conversion)
        return JointPowers(mechanical, copper, drive)

    def power(self, current: Array, speed: Array) -> Array:
        """Return the power on the bus, (samples,), W.

        Args:
            current: Currents of the motors, (samples, joints), A.
            speed: Speeds of the motors, (samples, joints), rad/s.
        """
        return self.bus_power(self.joint_powers(current, speed).electrical)

    def bus_power(self, electrical: Array) -> Array:
        """Return the power on the bus (samples,), W, for electrical powers of the joints (samples, joints), W."""
        return drawn_power(electrical, self.standing, self.braking == "burnt")

    def slopes(self, current: Array, speed: Array) -> tuple[Array, Array]:
        """Return the derivatives of the power on the bus with respect to currents and speeds, (samples, joints).

        Where a loss has a kink (a joint at rest) or braking power is burnt, that of the power at the point itself.
        """
        gains, drag = self.share * np.array(self.gains), np.array(self.drag)
        flow = 1.0 + self.conversion * np.sign(current * speed)
        by_current = 2.0 * np.array(self.resistance) * current + flow * gains * speed
        by_speed = flow * gains * current + drag * np.sign(speed)
        if self.braking == "burnt":
            drawn = (self.joint_powers(current, speed).electrical.sum(axis=1) > 0.0)[:, None]
            by_current, by_speed = by_current * drawn, by_speed * drawn
        return by_current, by_speed

    def save(self, path: str | Path) -> None:
        """Write the model as a JSON document."""
        write_document(self.to_dict(), path)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as a JSON document."""
        return POWER_FILE.stamped(asdict(self))

    def summary(self) -> str:
        """Return the parameters and the training error as text."""
        logs = f"{len(self.logs)} log{'s' * (len(self.logs) != 1)}"
        fitted = "" if self.rmse is None else f", training RMSE {self.rmse:.2f} W ({logs})"
        lines = [f"power model of {self.robot}: {self.dof} joints, braking power {self.braking}{fitted}"]
        lines += [
            f"  {value.name:<16}{value.value:10.4g}  [{value.low:.4g}, {value.high:.4g}] {value.unit}"
            for value in self.values
        ]
        lines.append("  gains [Nm/A]    " + " ".join(f"{gain:.3f}" for gain in self.gains))
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True, eq=False)
class JointPowers:
    """Powers of the joints, (samples, joints) each.

    Attributes:
        mechanical: Power at the shaft of the motor, W.
        copper: Copper loss, W.
        drive: Iron and drive loss, W.
    """

    mechanical: Array
    copper: Array
    drive: Array

    @property
    def electrical(self) -> Array:
        """Electrical power of the joints: positive from the bus, negative while braking."""
        return self.mechanical + self.copper + self.drive


@checked
def load_power_model(path: str | Path) -> PowerModel:
    """Return the power model of a file.

    Raises:
        ModelError: The file is no power model, or an entry is wrong; one line.

    """
    return load_document(path, POWER_FILE, PowerModel)


@checked
def is_power_file(path: str | Path) -> bool:
    """Return whether a file is a power model, of any version; other files are no error."""
    try:
        content = json.loads(read_limited(path, LARGEST, "a power model"))
    except (JointwiseError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == POWER_FILE.format
