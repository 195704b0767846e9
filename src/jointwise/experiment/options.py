"""Options of a simulated experiment: plant, controller, and events during it. Sensors: `simulation.Sensors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jointwise.arguments import checked_fields
from jointwise.call_settings import Feedback, SimulationSettings
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError, check_positive, is_number
from jointwise.experiment.controllers import AnyController
from jointwise.simulation.recording import payload_to_dict
from jointwise.simulation.robot import DigitalRobot, JointPlant, digital_robot
from jointwise.simulation.robot.joint import COLDEST, HOTTEST
from jointwise.spatial import Array

WEAR_STEPS = 100
"""Steps in which wear grows over a recording; 1 % of the total each, too small to show as a jump in the log."""
AGEING = ("friction", "stiffness")
"""Properties of the joints that age."""


@checked_fields
@dataclass(frozen=True)
class Push:
    """An external wrench at the origin of the tool, in the axes of the base frame.

    Attributes:
        start: Time at which it begins, s from the start of the recording.
        length: How long it lasts, s.
        force: Force, (3,), N.
        moment: Moment, (3,), Nm.
    """

    start: float
    length: float
    force: tuple[float, float, float]
    moment: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Reject times and vectors that are not those of a push."""
        if not (is_number(self.start) and is_number(self.length) and self.start >= 0.0 and self.length > 0.0):
            raise ModelError(f"a push must start at >= 0 s and last > 0 s. Got {self.start}, {self.length} instead.")
        if not (_is_vector(self.force) and _is_vector(self.moment)):
            raise ModelError(
                f"a push must have 3 finite forces and 3 finite moments. Got {self.force}, {self.moment} instead."
            )

    @property
    def wrench(self) -> tuple[float, ...]:
        """Force and moment, (6,)."""
        return (*self.force, *self.moment)


def _is_vector(values: Any) -> bool:
    return np.shape(values) == (3,) and all(is_number(value) for value in values)


@checked_fields
@dataclass(frozen=True)
class Events:
    """Payload changes, pushes and wear during a recording; times in s from its start.

    Attributes:
        payloads: Payload carried from a time (s) on, by that time; None for no payload.
        pushes: External wrenches.
        wear: Relative change of "friction" and "stiffness" at the end of the recording (0.2 is +20 %), reached in
            `WEAR_STEPS` equal steps.
    """

    payloads: Mapping[float, Payload | None] = field(default_factory=dict)
    pushes: Sequence[Push] = ()
    wear: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject a wear that does not exist."""
        check_ageing("wear", self.wear)

    def check(self, duration: float) -> None:
        """Reject events that do not begin within a recording of a duration (s)."""
        for what, times in (("payload", list(self.payloads)), ("push", [push.start for push in self.pushes])):
            outside = [time for time in times if not 0.0 <= time < duration]
            if outside:
                raise ModelError(
                    f"a {what} must come within the {duration:g} s recorded. Got {outside[0]:g} s instead."
                )

    def stages(self, digital: DigitalRobot, rate: float, duration: float) -> list[tuple[int, DigitalRobot]]:
        """Return the robot after every change, with the first control period (at a `rate` in Hz) of each.

        Of several changes within one period only the last has an effect. `duration` (s) is that of the recording.
        """
        worn = (np.arange(WEAR_STEPS + 1) / (WEAR_STEPS + 1) * duration).tolist() if self.wear else []
        last = {round(time * rate): time for time in sorted({0.0, *self.payloads, *worn})}
        return [(period, self._robot_at(digital, time, duration)) for period, time in last.items()]

    def _robot_at(self, digital: DigitalRobot, time: float, duration: float) -> DigitalRobot:
        carried = [payload for start, payload in sorted(self.payloads.items()) if start <= time]
        loaded = digital.with_payload(carried[-1]) if carried else digital
        share = np.floor(time / duration * (WEAR_STEPS + 1) + 1e-9) / WEAR_STEPS
        return loaded.aged(**{name: share * growth for name, growth in self.wear.items()}) if self.wear else loaded

    def wrench(self, times: Array) -> Array | None:
        """Return force and moment on the tool at times (samples,), (samples, 6); None without any push."""
        if not self.pushes:
            return None
        wrench: Array = np.zeros((len(times), 6))
        for push in self.pushes:
            wrench[(times >= push.start) & (times < push.start + push.length)] += push.wrench
        return wrench

    def to_dict(self) -> dict[str, Any]:
        """Return the events as a document."""
        carried = sorted(self.payloads.items())
        return {
            "payloads": [
                {"time": time, "payload": None if payload is None else payload_to_dict(payload)}
                for time, payload in carried
            ],
            "pushes": [asdict(push) for push in self.pushes],
            "wear": dict(self.wear),
        }


def check_ageing(name: str, changes: Mapping[str, Any]) -> None:
    """Reject relative changes other than those of friction and stiffness, and changes of -100 % or less."""
    for key, change in changes.items():
        if key not in AGEING:
            raise ModelError(f"{name} must name {' or '.join(AGEING)}. Got '{key}' instead.")
        if not -1.0 < change < np.inf:
            raise ModelError(f"{name}: {key} must be finite and > -1. Got {change} instead.")


FEEDBACKS: tuple[Feedback, ...] = ("states", "sensors")
"""What controllers read: the true states, or the encoders, whose differences over a period are the speeds."""
DEFAULT_CONTROLLER = SimulationSettings.controller


@checked_fields
@dataclass(frozen=True)
class PlantOptions:
    """The simulated robot.

    Attributes:
        payload: Payload at the tool from the start.
        gravity: Mounting of the base, a name or gravity (3,) in m/s² in the base frame; None for the mounting that the
            experiment requires.
        without: Phenomena to switch off, names of `simulation.robot.PHENOMENA`.
        model: Model of the rotors, "spong" or "complete".
        joints: Parameters of the joints, one `JointPlant` each; None for typical values of the joint sizes.
        temperature: Initial temperature of the joints in °C, one or one per joint; None for ambient temperature.
        age: Relative change of `friction` and `stiffness` since the robot was new (0.2 is +20 %).
    """

    payload: Payload | None = None
    gravity: Mounting | None = None
    without: str | Sequence[str] = ()
    model: str = SimulationSettings.rotors
    joints: Sequence[JointPlant] | None = None
    temperature: float | Sequence[float] | None = None
    age: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        check_ageing("age", self.age)
        for value in [] if self.temperature is None else np.ravel(self.temperature):
            if not COLDEST <= value <= HOTTEST:
                raise ModelError(f"temperature must be {COLDEST:g} to {HOTTEST:g} °C. Got {value} instead.")

    @property
    def disabled(self) -> tuple[str, ...]:
        """The phenomena of `without`, as a tuple."""
        return (self.without,) if isinstance(self.without, str) else tuple(self.without)

    def build(self, robot: Robot, gravity: Array) -> DigitalRobot:
        """Return the digital robot under a gravity (3,), m/s² in the base frame."""
        digital = digital_robot(robot, gravity, self.payload, self.model, self.joints)  # type: ignore[arg-type]
        return digital.without(*self.disabled).aged(self.age.get("friction", 0.0), self.age.get("stiffness", 0.0))


@checked_fields
@dataclass(frozen=True)
class ControllerOptions:
    """The controller of an experiment.

    Attributes:
        controller: A name of `CONTROLLERS`, an object with ``init(sample)`` and ``step(memory, sample)``
            (`control.Controller`), or a function of the motion and the control rate that returns such an object.
        rate: Control rate in Hz, independent of the rate of the log.
        bandwidth: Bandwidth in Hz of a named controller; None for its default.
        feedback: "states" feeds back the true positions and speeds; "sensors" the encoders, whose differences over a
            control period are the speeds.
    """

    controller: AnyController = DEFAULT_CONTROLLER
    rate: float = SimulationSettings.control_rate
    bandwidth: float | None = None
    feedback: Feedback = SimulationSettings.feedback

    def __post_init__(self) -> None:
        """Reject rates and a feedback that do not exist."""
        check_positive("Hz", control_rate=self.rate, bandwidth=self.bandwidth)
        if self.feedback not in FEEDBACKS:
            raise ModelError(f"feedback must be states or sensors. Got '{self.feedback}' instead.")

    @property
    def is_default(self) -> bool:
        """Whether nothing but the rate differs from the defaults."""
        return (self.controller, self.bandwidth, self.feedback) == (DEFAULT_CONTROLLER, None, "states")
