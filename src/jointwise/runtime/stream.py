"""The calibrated robot sample by sample: explicit state, the same numbers as a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from jointwise.backend import native
from jointwise.data.conditioning import TRACK_TIME
from jointwise.errors import ModelError, ShapeError
from jointwise.model.dynamics import Dynamics
from jointwise.model.transmission import joint_torque, motor_motion, motor_torque, motor_values
from jointwise.motion import Motion
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.motion import States, reference_temperatures, start_states, term_torques
from jointwise.runtime.packing import CoreModel
from jointwise.spatial import Array


@dataclass(frozen=True)
class StreamState:
    """State of a stream: what friction remembers after the samples so far; a step does not change it.

    Attributes:
        core: Evaluator of the model at its sampling rate.
        memory: Its memory.
    """

    core: Core = field(repr=False)
    memory: Any = field(repr=False)


@dataclass(frozen=True)
class Sample:
    """Signals of one sample, (joints,) each; None where they are not measured.

    Attributes:
        q: Positions, rad.
        qd: Speeds, rad/s.
        qdd: Accelerations, rad/s².
        speed: Measured speeds, rad/s.
        rotor: Positions of the rotors at the joint side, rad.
        temperature: Joint temperatures, °C.
    """

    q: Array
    qd: Array
    qdd: Array
    speed: Array | None = None
    rotor: Array | None = None
    temperature: Array | None = None


class Core(Protocol):
    """An evaluator of single samples."""

    def init(self, q: Array, rotor: Array | None) -> Any:
        """Return the memory of relaxed gears at positions (joints,), rad."""

    def step(self, memory: Any, sample: Sample) -> tuple[Array, Any]:
        """Return the torque of a sample (joints,), Nm, and the memory after it."""


class NativeCore:
    """The C core."""

    def __init__(self, model: CoreModel) -> None:
        """Hand the numbers of a model to the native kernel."""
        kernel = native()
        if kernel is None:
            raise ModelError("the native kernel is not built.")
        self._kernel, self._joints = kernel, len(model.joints)
        try:
            self._model = kernel.runtime_open(model.packed())
        except ValueError as problem:
            raise ModelError(f"{problem}.") from None

    @property
    def handle(self) -> Any:
        """The model as the native kernel holds it, for kernels that are built on it."""
        return self._model

    def init(self, q: Array, rotor: Array | None) -> Array:
        """Return the memory of relaxed gears."""
        memory = np.empty(self._kernel.runtime_state_size())
        self._kernel.runtime_init(self._model, q, rotor, memory)
        return memory

    def step(self, memory: Array, sample: Sample) -> tuple[Array, Array]:
        """Return the torque of a sample and the memory after it."""
        torque, after = np.empty(self._joints), memory.copy()
        self._kernel.runtime_steps(
            self._model,
            after,
            1,
            sample.q,
            sample.qd,
            sample.qdd,
            sample.speed,
            sample.rotor,
            sample.temperature,
            torque,
        )
        return torque, after

    def steps(self, memory: Array, sample: Sample) -> tuple[Array, Array]:
        """Return torques and memory of consecutive samples, whose signals are (samples, joints), C-contiguous."""
        torque, after = np.empty_like(sample.q), memory.copy()
        rest = (sample.speed, sample.rotor, sample.temperature)
        args = (self._model, after, len(torque), sample.q, sample.qd, sample.qdd, *rest, torque)
        self._kernel.runtime_steps(*args)
        return torque, after

    def move(
        self, memory: Array, torque: Array, q: Array, qd: Array, steps: int = 1, temperature: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return q, qd and memory after `steps` periods under constant motor torques (joints,), Nm.

        Raises:
            ModelError: The mass matrix of the model is not positive definite.

        """
        q, qd, after = q.copy(), qd.copy(), memory.copy()
        if not self._kernel.runtime_move(self._model, after, steps, torque, temperature, q, qd):
            raise ModelError("the mass matrix of the model is not positive definite: it has no forward dynamics.")
        return q, qd, after


@dataclass(frozen=True)
class _Memory:
    """Memory of `NumpyCore`: of the terms, and of the integrated measured speed."""

    states: States
    start: Array
    rotor: Array
    track: Array | None = None
    speed: Array | None = None


@dataclass(frozen=True, eq=False)
class NumpyCore:
    """The same in NumPy: reference of the C core, and its substitute where it is not built.

    Attributes:
        model: Robot, base parameters and terms.
        values: Values of all parameters, (parameters,).
        bodies: Bodies and rotors.
        rate: Sampling rate, Hz.
    """

    model: Dynamics
    values: Array
    bodies: Bodies
    rate: float

    def init(self, q: Array, rotor: Array | None) -> _Memory:
        """Return the memory of relaxed gears: that after one sample at rest."""
        q = motor_values(self.model.robot, q)
        start = q if rotor is None else rotor
        still = np.zeros((1, len(q)))
        temperature = reference_temperatures(self.model)[None]
        motion = Motion(
            self.rate,
            q[None],
            still,
            still,
            track=q[None],
            ripple=still,
            rotor=start[None],
            temperature=temperature,
        )
        _, states = term_torques(self.model, motion, self.values, still, start_states(self.model, self.rate))
        return _Memory(states, q, start)

    def step(self, memory: _Memory, sample: Sample, path: Array | None = None) -> tuple[Array, _Memory]:
        """Return the torque of a sample and the memory after it; `path` (joints,) deforms friction in place of q."""
        track = self._track(memory, sample) if path is None else path
        ripple = np.zeros_like(sample.q) if sample.speed is None else sample.speed - sample.qd
        warm = reference_temperatures(self.model) if sample.temperature is None else sample.temperature
        motion = Motion(
            self.rate,
            sample.q[None],
            sample.qd[None],
            sample.qdd[None],
            path=None if path is None else path[None],
            track=track[None],
            ripple=ripple[None],
            rotor=None if sample.rotor is None else sample.rotor[None],
            temperature=warm[None],
        )
        robot, body = self.model.robot, self.bodies.torque(motion.q, motion.qd, motion.qdd)
        load = motor_torque(robot, body)
        if self.model.load_basis != "model":
            load = self.model.load_torque(self.model.rigid_columns(motion), self.values)
        friction, states = term_torques(self.model, motor_motion(robot, motion), self.values, load, memory.states)
        torque = body + joint_torque(robot, friction)
        return torque[0], _Memory(states, memory.start, memory.rotor, track, sample.speed)

    def _track(self, memory: _Memory, sample: Sample) -> Array:
        """Return the integral of the measured speed that follows the encoder slowly."""
        if sample.speed is None or memory.track is None or memory.speed is None:
            return sample.q
        predicted = memory.track + 0.5 * (sample.speed + memory.speed) / self.rate
        result: Array = predicted + min(1.0 / (self.rate * TRACK_TIME), 1.0) * (sample.q - predicted)
        return result


def joint_signal(values: ArrayLike, joints: int, name: str) -> Array:
    """Return a signal of one sample as contiguous float64 (joints,)."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (joints,):
        raise ShapeError(f"{name} must have shape ({joints},). Got {array.shape} instead.")
    return array


def checked_sample(
    joints: int,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    speed: ArrayLike | None = None,
    rotor: ArrayLike | None = None,
    temperature: ArrayLike | None = None,
) -> Sample:
    """Return signals of one sample, each checked to be (joints,); None stays None."""
    measured = {"measured_speed": speed, "rotor": rotor, "temperature": temperature}
    return Sample(
        joint_signal(q, joints, "q"),
        joint_signal(qd, joints, "qd"),
        joint_signal(qdd, joints, "qdd"),
        *(None if values is None else joint_signal(values, joints, name) for name, values in measured.items()),
    )
