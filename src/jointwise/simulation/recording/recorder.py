"""The recorder: runs of the digital robot in, block after block, a log out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.data.channels import CHANNELS
from jointwise.data.log import Log, Origin, log_from_matrix
from jointwise.data.spool import Spool
from jointwise.errors import ModelError
from jointwise.simulation.drive_size import joint_effort
from jointwise.simulation.encoders import Encoders
from jointwise.simulation.recording.sampling import signals_at
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.run import Run
from jointwise.simulation.sensors import Readings, Sensors
from jointwise.spatial import Array

ORIGIN = "digital robot"


@dataclass(frozen=True)
class Targets:
    """What the controller logs beside the measurements, (samples, joints): rad, rad/s, rad/s², Nm."""

    q_des: Array
    qd_des: Array
    qdd_des: Array
    torque_des: Array


class Recorder:
    """Sensors on a digital robot for `duration` (s); `gauge` adds load cells at the joints (channel `torque`).

    Runs are given in order with `times` and `add`; `finish` gives the log. A large log lives on disk. `sensors` are
    those given, with the usual current noise of the robot's drives unless they have their own.
    """

    def __init__(self, digital: DigitalRobot, sensors: Sensors, duration: float, gauge: bool = False) -> None:
        """Lay out the clock of the whole recording."""
        efforts = np.array([joint_effort(joint) for joint in digital.robot.joints])
        self.sensors = sensors.at_drives(efforts, digital.gains)
        self._digital, self._gauge = digital, gauge
        self._taken, self._stamps = self.sensors.clock(duration)
        self._ratios = np.array([joint.gear_ratio for joint in digital.joints])
        self._readings = Readings(self.sensors)
        self._next = 0
        self._spool: Spool | None = None
        self._widths: dict[str, int] = {}

    @property
    def encoders(self) -> Encoders:
        """The encoders of the robot, as a controller reads them."""
        return self.sensors.encoders(self._ratios)

    @property
    def end(self) -> float:
        """When the last sample is taken, s."""
        return float(self._taken[-1])

    def times(self, until: float) -> Array:
        """Return when the samples are taken that come next, up to `until` (s, not included)."""
        last = int(np.searchsorted(self._taken, until, side="left"))
        return self._taken[self._next : last]

    def add(self, run: Run, rate: float, until: float, targets: Targets) -> None:
        """Record a run made at a control rate (Hz) with the targets at `times(until)`."""
        times = self.times(until)
        if len(times) == 0:
            return
        signals, readings = signals_at(run, rate, times), self._readings
        channels: dict[str, Array | None] = {
            "t": self._stamps[self._next : self._next + len(times), None],
            "q": self.sensors.position(signals.q),
            "qd": readings.speed(signals.qd),
            "theta": self.sensors.rotor(signals.theta, self._ratios),
            "current": readings.current(signals.current),
            "torque": readings.torque(signals.load) if self._gauge else None,
            "temperature": readings.temperature(signals.temperature),
            **vars(targets),
            "current_des": signals.command / self._digital.gains,
        }
        self._append({name: channels[name] for name in CHANNELS if channels.get(name) is not None})
        self._next += len(times)

    def _append(self, channels: dict[str, Array | None]) -> None:
        columns = {name: values for name, values in channels.items() if values is not None}
        if self._spool is None:
            self._widths = {name: values.shape[1] for name, values in columns.items()}
            self._spool = Spool(sum(self._widths.values()))
        self._spool.append(np.column_stack(list(columns.values())))

    def finish(self) -> Log:
        """Return the log, without the samples that are lost."""
        if self._spool is None or self._next < len(self._taken):
            raise ModelError("the recording must be added to its end before it is finished.")
        matrix, pages = self._spool.finish()
        log = log_from_matrix(matrix, self._widths, {}, Origin(path=ORIGIN), pages)
        if self.sensors.dropped == 0.0 and self.sensors.repeated == 0.0:
            return log
        return log.take(self.sensors.written(len(self._taken)), "samples lost and repeated on purpose")
