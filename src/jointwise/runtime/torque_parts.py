"""The torque of a calibrated robot in parts, sample by sample: bodies, friction, and the dry part of friction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointwise.description.robot import Robot
from jointwise.errors import ModelError
from jointwise.model.terms import Coulomb, Hysteresis, Inertia, PowerFlow, Rated, Stribeck, Term
from jointwise.model.transmission import motor_torque
from jointwise.result.calibration import Calibration
from jointwise.result.predict import Use
from jointwise.runtime.evaluation import Evaluation
from jointwise.runtime.friction_adaptation import TYPICAL_SPEED
from jointwise.runtime.model import RobotModel
from jointwise.runtime.motion import checked_rate, steady_torques
from jointwise.runtime.stream import Core, NativeCore, Sample, joint_signal
from jointwise.spatial import Array

DRY = (Coulomb, PowerFlow, Stribeck, Hysteresis, Rated)
"""Terms of dry friction, which wear changes in proportion."""
NOT_FRICTION = (Inertia,)
"""Terms that count as bodies."""
LEAST = 1e-6
"""Nm, Nm s/rad: friction below this counts as none."""


class TorqueParts(NamedTuple):
    """Torques of the motors in parts, (joints,) or (samples, joints).

    Attributes:
        body: Torque of links, rotors and payload, Nm.
        friction: Torque of all other terms of the nominal model, Nm.
        dry: Dry part Y1 of `friction`, Nm.
    """

    body: Array
    friction: Array
    dry: Array

    def virtual_friction(self, torque: Array) -> Array:
        """Return f, the motor torque (Nm) without bodies and without friction that is not dry."""
        result: Array = torque - self.body - (self.friction - self.dry)
        return result


@dataclass(frozen=True, eq=False)
class ModelParts:
    """A calibrated robot that returns its torque in parts; see `model_parts`.

    Friction is linear in its parameters, so that the parts are differences of the model and of the model without some
    of its terms. Torques are those of the motors of `robot`, samples those of its joints.

    Attributes:
        cores: The model, the model without dry friction, and the model without any friction.
        dry: Size of dry friction at 1 rad/s, (joints,), Nm.
        damping: Size of other friction at 1 rad/s, (joints,), Nm s/rad.
        robot: The robot.
    """

    cores: tuple[Core, Core, Core]
    dry: Array
    damping: Array
    robot: Robot

    def init(self, q: ArrayLike, rotor: ArrayLike | None = None) -> Any:
        """Return the memory of relaxed gears at positions q (joints,), rad; `rotor` as in `RobotModel.init`.

        It is an array (cores, numbers) where all of them are native.
        """
        position = joint_signal(q, len(self.dry), "q")
        start = None if rotor is None else joint_signal(rotor, len(self.dry), "rotor")
        return _stacked([core.init(position, start) for core in self.cores])

    def step(self, memory: Any, sample: Sample) -> tuple[TorqueParts, Any]:
        """Return the parts of one sample, (joints,) each, and the memory after it."""
        pairs = [core.step(part, sample) for core, part in zip(self.cores, memory, strict=True)]
        return self._parts(*(torque for torque, _ in pairs)), _stacked([after for _, after in pairs])

    def steps(self, memory: Any, sample: Sample) -> tuple[TorqueParts, Any]:
        """Return the parts of consecutive samples, signals (samples, joints), and the memory after the last."""
        pairs = [_run(core, part, sample) for core, part in zip(self.cores, memory, strict=True)]
        return self._parts(*(torque for torque, _ in pairs)), _stacked([after for _, after in pairs])

    def _parts(self, *torques: Array) -> TorqueParts:
        full, without_dry, body = (motor_torque(self.robot, torque) for torque in torques)
        return TorqueParts(body, full - body, full - without_dry)


def model_parts(model: RobotModel, rate: float | None = None, use: Use = "sensor") -> ModelParts:
    """Return a calibrated robot that returns its torque in parts.

    Args:
        model: The calibrated robot.
        rate: Sampling rate of the samples, Hz; None for that of the model.
        use: `sensor` for measured positions with the channels in `extras`, `feed-forward` for planned ones.

    Raises:
        ModelError: A joint has no dry friction, so that there is nothing to adapt.
    """
    chosen, hertz = model.calibration.for_use(use), checked_rate(model.rate if rate is None else rate)
    friction = tuple({type(term) for terms in chosen.model.terms for term in terms} - set(NOT_FRICTION))
    reduced = (chosen, _without(chosen, DRY), _without(chosen, friction))
    full, rest, _ = (_steady(calibration) for calibration in reduced)
    dry, damping = np.abs(full - rest), np.maximum(np.abs(rest), LEAST)
    if (dry < LEAST).any():
        joint = int(np.argmin(dry))
        raise ModelError(f"joint {joint + 1} of the model has no dry friction to adapt: calibrate it with friction.")
    cores = tuple(Evaluation(calibration).core(hertz) for calibration in reduced)
    return ModelParts((cores[0], cores[1], cores[2]), dry, damping, chosen.model.robot)


def _without(calibration: Calibration, kinds: tuple[type[Term], ...]) -> Calibration:
    """Return a calibration with the parameters of some kinds of terms set to zero."""
    model, values = calibration.model, calibration.estimate.values.copy()
    for j, terms in enumerate(model.terms):
        start = model.joint_slices[j].start
        for term in terms:
            count = len(term.parameters())
            if isinstance(term, kinds):
                values[start : start + count] = 0.0
            start += count
    return replace(calibration, estimate=replace(calibration.estimate, values=values))


def _steady(calibration: Calibration) -> Array:
    """Return friction (joints,), Nm, in steady sliding at 1 rad/s without load."""
    speed = np.full((1, calibration.model.robot.dof), TYPICAL_SPEED)
    row: Array = steady_torques(calibration.model, speed, calibration.estimate.values, np.zeros_like(speed))[0]
    return row


def _stacked(memories: list[Any]) -> Any:
    """Return the memories of native cores as one array, others as they are."""
    return np.stack(memories) if all(isinstance(memory, np.ndarray) for memory in memories) else memories


def _run(core: Core, memory: Any, sample: Sample) -> tuple[Array, Any]:
    """Return torques (samples, joints) and the memory after the last sample."""
    signals = {name: None if x is None else np.ascontiguousarray(x, dtype=float) for name, x in vars(sample).items()}
    if isinstance(core, NativeCore):
        return core.steps(memory, Sample(**signals))  # type: ignore[arg-type]
    rows = []
    for k in range(len(sample.q)):
        row = {name: None if x is None else x[k] for name, x in signals.items()}
        torque, memory = core.step(memory, Sample(**row))  # type: ignore[arg-type]
        rows.append(torque)
    return np.array(rows), memory
