"""What happens to an arm while it moves: payloads picked up and put down, pushes, wear. Its controller is not told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jointwise.description.payload import Payload
from jointwise.errors import ModelError
from jointwise.experiment.asked import is_number, refuse_no_changes, refuse_other
from jointwise.simulation.recording import payload_to_dict
from jointwise.simulation.robot import DigitalRobot
from jointwise.spatial import Array

WEAR_STEPS = 100
"""Steps in which wear grows over a recording, from none to all of it: one percent each."""
AGEING = ("friction", "stiffness")


@dataclass(frozen=True)
class Push:
    """A push at the origin of the tool from `start` (s) on for `length` (s): `force` N and `moment` Nm in base axes."""

    start: float
    length: float
    force: tuple[float, float, float]
    moment: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Refuse what is no push."""
        if not (is_number(self.start) and is_number(self.length) and self.start >= 0.0 and self.length > 0.0):
            raise ModelError(f"a push must start at >= 0 s and last > 0 s. Got {self.start}, {self.length} instead.")
        parts = (self.force, self.moment)
        if any(np.shape(own) != (3,) for own in parts) or not all(is_number(own) for part in parts for own in part):
            raise ModelError(
                f"a push must be of 3 finite forces and 3 moments. Got {self.force}, {self.moment} instead."
            )

    @property
    def wrench(self) -> tuple[float, ...]:
        """Force and moment, (6,)."""
        return (*self.force, *self.moment)


@dataclass(frozen=True)
class Events:
    """Times in s since the start of the recording.

    `payloads` tells what the tool carries from a time on, None for nothing. `wear` is the growth of `friction` and
    `stiffness` at the end (0.2 is +20 %), which comes in `WEAR_STEPS` equal steps. `pushes` act at the tool.
    """

    payloads: Mapping[float, Payload | None] = field(default_factory=dict)
    pushes: Sequence[Push] = ()
    wear: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what are no events."""
        refuse_other(Mapping, "a Payload or None by time (s)", payloads=self.payloads)
        for time, payload in self.payloads.items():
            if not is_number(time):
                raise ModelError(f"payloads must come at times in s. Got {time!r} instead.")
            refuse_other(Payload, "Payload or None", payloads=payload)
        refuse_other(Sequence, "a list of Push", pushes=self.pushes)
        for push in self.pushes:
            refuse_other(Push, "a list of Push", pushes=push)
        refuse_ageing(self.wear, "wear")

    def check(self, duration: float) -> None:
        """Refuse what does not happen within a recording of a duration (s)."""
        for what, times in (("payload", list(self.payloads)), ("push", [push.start for push in self.pushes])):
            outside = [time for time in times if not 0.0 <= time < duration]
            if outside:
                raise ModelError(
                    f"a {what} must come within the {duration:g} s recorded. Got {outside[0]:g} s instead."
                )

    def stages(self, digital: DigitalRobot, rate: float, duration: float) -> list[tuple[int, DigitalRobot]]:
        """Return what a robot becomes, each with its first period at a control rate (Hz), over a duration (s).

        Of what falls into one period only the last is there.
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
        """Return force and moment on the tool at times (samples,), (samples, 6); None if nothing ever pushes."""
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
                {"time": time, "payload": None if own is None else payload_to_dict(own)} for time, own in carried
            ],
            "pushes": [asdict(push) for push in self.pushes],
            "wear": dict(self.wear),
        }


def refuse_ageing(changes: Mapping[str, float], name: str) -> None:
    """Refuse changes of anything but friction and stiffness, and of all of it."""
    refuse_no_changes(changes, name, AGEING)
