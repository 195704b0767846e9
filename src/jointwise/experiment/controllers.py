"""Controllers by name, for a digital robot and a motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jointwise import control
from jointwise.errors import ModelError, nearest
from jointwise.experiment.asked import refuse_no_positive
from jointwise.experiment.own import Stepping, own_controller
from jointwise.experiment.servo import make_servo
from jointwise.model.control_law import GAINS, AffineControl
from jointwise.simulation.references import derivative
from jointwise.simulation.references.trajectory import States, Trajectory
from jointwise.simulation.robot import DigitalRobot, drives_of
from jointwise.spatial import Array

POSES = 64
"""Poses of a motion from which gains follow."""
Periods = NDArray[np.intp]
"""Numbers of control periods, ascending."""


class Following(Protocol):
    """A controller along a motion, asked for some of its periods at a time."""

    def law(self, periods: Periods, states: States, torque: Array) -> AffineControl:
        """Return the law of some periods, for references and the rigid model's `torque` at each of them."""

    def to_dict(self) -> dict[str, Any]:
        """Return the gains as a document."""


@dataclass(frozen=True)
class Delayed:
    """A motion that begins `lead` (s) later, with its derivatives, and lasts for `duration` (s)."""

    motion: Trajectory
    lead: float
    duration: float

    def __call__(self, t: Array, order: int) -> Array:
        """Return dᵏq/dtᵏ at times (samples,), s."""
        return derivative(self.motion, np.asarray(t) - self.lead, order)


@dataclass(frozen=True)
class Made:
    """A controller of `control`, made for the periods that are asked for: memory does not grow with the motion.

    `make` takes a reference; `poses` (any, joints) stand for the whole motion, so that gains are the same throughout.
    """

    make: Callable[[control.Reference], control.AffineController]
    motion: Delayed
    rate: float
    poses: Array

    def law(self, periods: Periods, states: States, torque: Array) -> AffineControl:
        """Return the law of some periods; it has its own references."""
        return self._law(periods / self.rate)

    def _law(self, times: Array) -> AffineControl:
        return self.make(control.part_of(self.motion, self.rate, times, self.poses)).law

    def to_dict(self) -> dict[str, Any]:
        """Return the gains that do not change on the way; the others follow from the robot and the motion."""
        first = self._law(np.zeros(1))
        gains = {name: getattr(first, name) for name in GAINS}
        return {name: value.tolist() for name, value in gains.items() if value is not None and value.ndim == 1}


Maker = Callable[[DigitalRobot, Delayed, float, float | None], Following]


Asked = str | control.Controller[Any] | Callable[[Delayed, float], control.Controller[Any]]
"""A controller: by name, of one's own, or a function of the motion and the control rate (Hz) that makes it."""


def make_controller(
    asked: Asked, digital: DigitalRobot, motion: Delayed, rate: float, bandwidth: float | None = None
) -> Following | Stepping:
    """Return a controller at a control rate (Hz); `bandwidth` (Hz) replaces the usual one of a controller by name."""
    if isinstance(asked, str) and asked not in CONTROLLERS:
        raise ModelError(f"unknown controller '{asked}'. {nearest(asked, CONTROLLERS)}")
    refuse_no_positive("Hz", control_rate=rate, bandwidth=bandwidth)
    if isinstance(asked, str):
        return CONTROLLERS[asked][1](digital, motion, rate, bandwidth)
    if bandwidth is not None:
        raise ModelError("bandwidth is for controllers by name: give your own controller its gains.")
    return own_controller(asked, motion, rate, digital.robot.dof)


def _servo(digital: DigitalRobot, motion: Delayed, rate: float, bandwidth: float | None) -> Following:
    q = motion(np.linspace(0.0, motion.duration, 1000), 0)
    return make_servo(digital, q) if bandwidth is None else make_servo(digital, q, 2.0 * np.pi * bandwidth)


def _whole(
    make: Callable[..., control.AffineController], integral: float | None = 0.0, knows_gravity: bool = True
) -> Maker:
    """Return the maker of a controller of `control`; `integral` of its gains, None if it has no bandwidth."""

    def maker(digital: DigitalRobot, motion: Delayed, rate: float, bandwidth: float | None) -> Following:
        more: dict[str, Any] = {"gravity": digital.gravity} if knows_gravity else {}
        if bandwidth is not None:
            if integral is None:
                raise ModelError("bandwidth is not for this controller: its gains follow from tolerances.")
            more["gains"] = control.bandwidth_gains(bandwidth, 1.0, integral)
        periods = max(1, round(motion.duration * rate))
        poses = motion(np.linspace(0, periods - 1, POSES).astype(np.intp) / rate, 0)
        knows = {"drives": drives_of(digital), "payload": digital.payload, **more}
        return Made(lambda reference: make(digital.robot, reference, rate, **knows), motion, rate, poses)

    return maker


CONTROLLERS: dict[str, tuple[str, Maker]] = {
    "servo": ("rigid feed-forward, feedback at the rotors, a slow integral at the links", _servo),
    "pd": ("PD with gravity", _whole(control.pd_gravity)),
    "pid": ("PID without a model", _whole(control.pid, 0.3, knows_gravity=False)),
    "computed-torque": ("computed torque with feedback scaled by the mass matrix", _whole(control.computed_torque)),
    "flexible": ("feed-forward of elastic joints and friction", _whole(control.flexible_feedforward)),
    "lqr": ("decentralised LQR with feed-forward", _whole(control.lqr, None)),
}
"""One line about each controller, and its maker."""
