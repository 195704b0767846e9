"""The monitor of a robot: samples in, reports out, with explicit state; the same for a log and a live stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked_fields
from jointwise.call_settings import MonitoringSettings
from jointwise.description.robot import Payload
from jointwise.errors import ModelError, ShapeError
from jointwise.monitoring.core import CoreMonitor, Known, NativeWatch, Reports, Samples, WatchCore
from jointwise.monitoring.settings import core_monitor, known_spread
from jointwise.runtime import RobotModel
from jointwise.runtime.motion import checked_rate
from jointwise.runtime.stream import NativeCore
from jointwise.spatial import Mask

SAME_RATE = 0.02
"""Relative difference of the rates of two streams whose changes are comparable."""
FALSE_ALARMS = MonitoringSettings.false_alarms
"""Contacts an hour that a monitor may report without any."""


@dataclass(frozen=True)
class MonitorState:
    """State of a monitor after the samples so far; a step does not change it."""

    core: WatchCore = field(repr=False)
    memory: Any = field(repr=False)

    @property
    def known(self) -> Known:
        """Payload and friction with their covariance, and how many samples were used or dropped."""
        return self.core.known(self.memory)


@checked_fields
@dataclass(frozen=True, eq=False)
class Monitor:
    """Watches a robot with a calibrated model: external torque, contact, payload, friction, faults of the data.

    Where a transmission couples motors and joints, all that is watched is that of the motors; samples have positions
    and speeds of the joints, and outputs of the motors.

    Attributes:
        model: The calibrated robot, with the payload that it is said to carry (`RobotModel.with_payload`).
        rate: Rate of the stream, Hz; its stamps need not be uniform.
        false_alarms: Contacts an hour that may be reported without any.
        has_speed: Whether the stream has measured speeds.
        measured: Which joints have a measured output, (joints,); None for all that the model predicts.

    """

    model: RobotModel
    rate: float
    false_alarms: float = FALSE_ALARMS
    has_speed: bool = True
    measured: Mask | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        checked_rate(self.rate)
        if not (np.isfinite(self.false_alarms) and self.false_alarms > 0.0):
            raise ModelError(f"false_alarms must be a positive number an hour. Got {self.false_alarms} instead.")

    @cached_property
    def limits(self) -> tuple[float, float, float]:
        """Ratios of the fast and the slow residual to their spread, and sudden change, that are a contact.

        Each has an equal part of the alarms; the last is 0 where changes are not used.
        """
        spread = known_spread(self.model, self.has_speed)
        change = spread.change if self.uses_changes else None
        part = self.false_alarms / (2.0 if change is None else 3.0)
        return spread.fast.limit(part), spread.slow.limit(part), 0.0 if change is None else change.tail.limit(part)

    @property
    def uses_changes(self) -> bool:
        """Whether sudden changes are contacts: speeds are measured and the model knows changes at this rate."""
        change = known_spread(self.model, self.has_speed).change
        return self.has_speed and change is not None and abs(self.rate / change.rate - 1.0) < SAME_RATE

    @cached_property
    def numbers(self) -> CoreMonitor:
        """Priors, spreads and limits of the evaluator."""
        return core_monitor(
            self.model,
            self.rate,
            known_spread(self.model, self.has_speed),
            limits=self.limits,
            measured=self.measured,
            derived=not self.has_speed,
        )

    @cached_property
    def core(self) -> WatchCore:
        """Evaluator of samples in C, or in NumPy for models that C does not have."""
        from jointwise.monitoring.reference import ReferenceWatch

        numbers = self.numbers
        core = self.model.planned_core(self.rate)
        return NativeWatch(core, numbers) if isinstance(core, NativeCore) else ReferenceWatch(self.model, core, numbers)

    def init(self) -> MonitorState:
        """Return the state before the first sample."""
        return MonitorState(self.core, self.core.init())

    def step(
        self,
        state: MonitorState,
        t: float,
        q: ArrayLike,
        output: ArrayLike,
        qd: ArrayLike | None = None,
        temperature: ArrayLike | None = None,
    ) -> tuple[Reports, MonitorState]:
        """Return the report of one sample, arrays of (1, joints), and the state after it.

        A sample with a number that is not finite, or with a stamp that does not increase, is counted and not used; the
        report is then that of the sample before, but for `verdict`.

        Args:
            state: State after the samples so far, from `init` or `step`; it is not changed.
            t: Stamp, s.
            q: Positions (joints,), rad.
            output: Measured output (joints,) in the unit of the model, A or Nm.
            qd: Measured speeds (joints,), rad/s; needed where the monitor was made for them.
            temperature: Joint temperatures (joints,), °C.

        """
        rows = [None if value is None else np.atleast_2d(value) for value in (q, output, qd, temperature)]
        return self.steps(state, Samples(np.array([float(t)]), *rows))  # type: ignore[arg-type]

    def steps(self, state: MonitorState, samples: Samples) -> tuple[Reports, MonitorState]:
        """Return the reports of consecutive samples and the state after them; the numbers are those of `step`."""
        self._check(samples)
        reports, memory = state.core.steps(state.memory, samples)
        return reports, replace(state, memory=memory)

    def _check(self, samples: Samples) -> None:
        """Reject arrays of another shape, and a stream without the speeds that the monitor was made for."""
        shape = (len(samples.t), self.model.dof)
        for name in ("q", "output", "qd", "temperature"):
            values = getattr(samples, name)
            if values is not None and np.shape(values) != shape:
                raise ShapeError(f"{name} must have shape {shape}. Got {np.shape(values)} instead.")
        if (samples.qd is not None) != self.has_speed:
            raise ShapeError(f"qd must be {'given' if self.has_speed else 'None'}: has_speed is {self.has_speed}.")


def declared(model: RobotModel, payload: Payload | None) -> RobotModel:
    """Return the model with the payload that the user declared; as it is if None."""
    if payload is None:
        return model
    return model.with_payload(payload.mass, payload.center_of_mass, payload.inertia)
