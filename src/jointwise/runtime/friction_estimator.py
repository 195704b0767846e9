"""Friction of a robot at work: from measured positions, currents and temperatures to a1 and a2 of every joint.

Signals with one common delay (`phase`), the torque of the model in parts along them (a described robot with
`slip_friction`, or a calibrated one), the virtual friction, and its adaptation (`friction_adaptation`). The friction
state is that of the delayed measurement; a controller has a second one along its reference.

With the native kernel a sample is one call of C (estimator.h), step by step and on a whole log alike; what is composed
here of NumPy functions is its reference, and does the same without the kernel.

H, the state of slip elements, follows the rotor before it is smoothed and is then filtered as all signals: a filter
overshoots where a motion stops, which slip elements would take for a reversal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from jointwise.backend import native
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.errors import ModelError
from jointwise.model.rigid.chain import Chain, kernels, make_chain
from jointwise.model.transmission import motor_torque
from jointwise.runtime.friction_adaptation import AdaptationOptions, AdaptationState, Adapted, FrictionAdaptation
from jointwise.runtime.packing import MOST_JOINTS, core_bodies
from jointwise.runtime.phase import PhaseFilter, PhaseSignals, PhaseState
from jointwise.runtime.slip_friction import SlipFriction
from jointwise.runtime.stream import NativeCore, Sample
from jointwise.runtime.torque_parts import ModelParts, TorqueParts
from jointwise.spatial import Array


class DriveSample(NamedTuple):
    """Motion of links and rotors, (joints,) or (samples, joints).

    Where a transmission is coupled, links are in coordinates of the joints and rotors in those of the motors.

    Attributes:
        q: Positions of the links, rad.
        qd: Speeds of the links, rad/s.
        qdd: Accelerations of the links, rad/s².
        theta: Positions of the rotors after the gear, rad.
        speed: Speeds of the rotors after the gear, rad/s.
        acceleration: Accelerations of the rotors after the gear, rad/s².
        temperature: Joint temperatures, °C.
    """

    q: Array
    qd: Array
    qdd: Array
    theta: Array
    speed: Array
    acceleration: Array
    temperature: Array


class FrictionModel(Protocol):
    """The torque of a robot in parts along a motion."""

    @property
    def dry_scale(self) -> Array:
        """Typical dry friction of every joint, Nm."""
        ...

    @property
    def damping(self) -> Array:
        """Viscous coefficient of every joint, Nm s/rad."""
        ...

    @property
    def channels(self) -> int:
        """Number of signals that `follow` returns."""
        ...

    @property
    def handle(self) -> Any:
        """The model as the native kernel holds it; None where it cannot, or is not there."""
        ...

    def init(self, q: Array, theta: Array) -> Any:
        """Return the memory of relaxed gears at positions of links and rotors (joints,), rad."""
        ...

    def follow(self, memory: Any, theta: Array) -> tuple[Array, Any]:
        """Return signals (..., channels) that follow the rotor positions θ (..., joints), rad, and the memory."""
        ...

    def parts(self, memory: Any, sample: DriveSample, signals: Array) -> tuple[TorqueParts, Any]:
        """Return the parts of one sample, or of consecutive ones, with the signals of `follow`, and the memory."""
        ...


@dataclass(frozen=True, eq=False)
class DescribedFriction:
    """A described robot with the friction of slip elements; ``τ_body = M q̈ + C q̇ + g + B ω̇``.

    Attributes:
        robot: The robot.
        friction: Friction of its joints.
        rotors: Reflected rotor inertias B, kg m², (joints,).
        gravity: Mounting.
        payload: Payload at the tool.

    """

    robot: Robot
    friction: SlipFriction
    rotors: Array
    gravity: Mounting = "table"
    payload: Payload | None = None

    def __post_init__(self) -> None:
        """Reject friction of another number of joints."""
        if self.friction.joints != self.robot.dof or len(self.rotors) != self.robot.dof:
            raise ModelError(
                f"friction and rotors must be of {self.robot.dof} joints, as robot '{self.robot.name}'. "
                f"Got {self.friction.joints}, {len(self.rotors)} instead."
            )

    @property
    def dry_scale(self) -> Array:
        """Dry friction of every joint without load, Nm."""
        return self.friction.dry_scale

    @property
    def damping(self) -> Array:
        """Viscous coefficient of every joint, Nm s/rad."""
        return self.friction.damping

    @cached_property
    def _chain(self) -> Chain:
        return make_chain(self.robot, self.gravity, self.payload)

    @cached_property
    def handle(self) -> Any:
        """Bodies, friction laws, backlash and rotors; None for more joints than the C core has."""
        kernel = native()
        if kernel is None or self.robot.dof > MOST_JOINTS:
            return None
        core = NativeCore(core_bodies(self._chain, self.robot.transmission))
        return kernel.friction_open((core.handle,), *self.friction.packed, np.ascontiguousarray(self.rotors))

    def init(self, q: Array, theta: Array) -> Array:
        """Return the memory of relaxed gears."""
        return self.friction.init(theta)

    @property
    def channels(self) -> int:
        """One for each joint: H."""
        return self.robot.dof

    def follow(self, memory: Array, theta: Array) -> tuple[Array, Array]:
        """Return H along rotor positions and the memory after them."""
        return self.friction.hysteresis(memory, theta)

    def parts(self, memory: Array, sample: DriveSample, signals: Array) -> tuple[TorqueParts, Array]:
        """Return the parts of one sample, or of consecutive ones; the memory stays."""
        rows = (-1, self.robot.dof)
        motion = [np.ascontiguousarray(x).reshape(rows) for x in (sample.q, sample.qd, sample.qdd)]
        torque = np.empty_like(motion[0])
        kernels().inverse_dynamics(self._chain, *motion, torque)
        load = motor_torque(self.robot, torque.reshape(sample.q.shape))
        friction = self.friction.torque(signals, sample.speed, load, sample.temperature)
        return TorqueParts(load + self.rotors * sample.acceleration, *friction), memory


@dataclass(frozen=True, eq=False)
class CalibratedFriction:
    """A calibrated robot, its feed-forward estimate along link positions; see `torque_parts.model_parts`."""

    model: ModelParts

    @property
    def dry_scale(self) -> Array:
        """Dry friction of every joint without load, Nm."""
        return self.model.dry

    @property
    def damping(self) -> Array:
        """Friction of every joint at 1 rad/s that is not dry, Nm s/rad."""
        return self.model.damping

    def init(self, q: Array, theta: Array) -> Any:
        """Return the memory of relaxed gears."""
        return self.model.init(q)

    @property
    def channels(self) -> int:
        """None: friction follows the smoothed link positions."""
        return 0

    @cached_property
    def handle(self) -> Any:
        """The cores; None for a model with terms that C does not have."""
        kernel, cores = native(), [core.handle for core in self.model.cores if isinstance(core, NativeCore)]
        if kernel is None or len(cores) != len(self.model.cores):
            return None
        return kernel.friction_open(tuple(cores), None, None, None)

    def follow(self, memory: Any, theta: Array) -> tuple[Array, Any]:
        """Return no signals."""
        return theta[..., :0], memory

    def parts(self, memory: Any, sample: DriveSample, signals: Array) -> tuple[TorqueParts, Any]:
        """Return the parts of one sample, or of consecutive ones, and the memory after it."""
        q, qd, qdd, warm = (np.ascontiguousarray(x) for x in (sample.q, sample.qd, sample.qdd, sample.temperature))
        run = self.model.step if q.ndim == 1 else self.model.steps
        return run(memory, Sample(q, qd, qdd, None, None, warm))


class Measurement(NamedTuple):
    """What is measured, (joints,) or (samples, joints).

    Attributes:
        q: Positions of the links, rad.
        theta: Positions of the rotors after the gear, rad.
        torque: Torques of the motors, Nm.
        temperature: Joint temperatures, °C.
    """

    q: Array
    theta: Array
    torque: Array
    temperature: Array


class EstimatorState(NamedTuple):
    """State of an estimator; a step does not change it.

    Attributes:
        phase: Buffers of the filter.
        memory: Memory of friction.
        adaptation: Parameters a1 and a2 and what their adaptation remembers.
    """

    phase: PhaseState
    memory: Any
    adaptation: AdaptationState

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The numbers of the three parts, as the native kernel takes them."""
        return self.phase.numbers, self.memory, self.adaptation.numbers

    def copy(self) -> EstimatorState:
        """Return a copy of the arrays."""
        phase, memory, adaptation = (numbers.copy() for numbers in self.arrays)
        return EstimatorState(PhaseState(phase), memory, AdaptationState(adaptation))


@dataclass(frozen=True, eq=False)
class FrictionEstimator:
    """Estimates a1 and a2 of every joint from measurements at a fixed rate; see `friction_estimator`.

    Attributes:
        model: Torque of the robot in parts.
        filter: Filter that gives all signals and their derivatives with the same delay.
        adaptation: Law by which the parameters follow the measured friction.
    """

    model: FrictionModel
    filter: PhaseFilter
    adaptation: FrictionAdaptation

    def init(self, first: Measurement, factor: ArrayLike = 1.0, viscous: ArrayLike = 0.0) -> EstimatorState:
        """Return the state before the first measurement, with a1 and a2 (Nm s/rad) to start from."""
        memory = self.model.init(first.q, first.theta)
        signals, memory = self.model.follow(memory, first.theta)
        return EstimatorState(
            self.filter.init(np.concatenate([*first, signals])), memory, self.adaptation.init(factor, viscous)
        )

    @cached_property
    def handle(self) -> Any:
        """The estimator as the native kernel holds it; None where NumPy does the same."""
        model, kernel = self.model.handle, native()
        if model is None or kernel is None:
            return None
        return kernel.estimator_open(model, self.filter.taps, self.adaptation.laws, self.filter.rate)

    def step(
        self, state: EstimatorState, measured: Measurement, *, enabled: bool = True
    ) -> tuple[Adapted, EstimatorState]:
        """Return parameters and prediction error, delayed as the filter is, and the state after a measurement.

        The parameters do not change before the filter has seen as many samples as it needs.
        """
        rows = Measurement(*(values[None] for values in measured))
        adapted, state = self.steps(state, rows, enabled=enabled)
        return Adapted(adapted.factor[0], adapted.viscous[0], adapted.error[0]), state

    def steps(
        self, state: EstimatorState, measured: Measurement, *, enabled: bool = True
    ) -> tuple[Adapted, EstimatorState]:
        """Return parameters and prediction errors (samples, joints) of consecutive measurements; as single steps."""
        if self.handle is None:
            return self._numpy_steps(state, measured, enabled)
        rows = [np.ascontiguousarray(values, dtype=np.float64) for values in measured]
        after = state.copy()
        parameters, error = np.empty((len(rows[0]), 2, self.adaptation.joints)), np.empty_like(rows[0])
        native().estimator_steps(self.handle, *after.arrays, *rows, enabled, parameters, error)  # type: ignore[union-attr]
        return Adapted(parameters[:, 0], parameters[:, 1], error), after

    def _numpy_steps(
        self, state: EstimatorState, measured: Measurement, enabled: bool
    ) -> tuple[Adapted, EstimatorState]:
        raw, memory = self.model.follow(state.memory, measured.theta)
        signals, phase = self.filter.steps(state.phase, np.concatenate([*measured, raw], axis=1))
        sample, torque, smooth = _motion(signals, self.adaptation.joints)
        parts, memory = self.model.parts(memory, sample, smooth)
        f, first = parts.virtual_friction(torque), max(0, self.filter.warm_up - 1 - state.phase.samples)
        early, adaptation = self.adaptation.step(
            state.adaptation, f[:first], parts.dry[:first], sample.speed[:first], enabled=False
        )
        late, adaptation = self.adaptation.step(
            adaptation, f[first:], parts.dry[first:], sample.speed[first:], enabled=enabled
        )
        series = [np.concatenate([getattr(part, name) for part in (early, late)]) for name in vars(late)]
        return Adapted(*series), EstimatorState(phase, memory, adaptation)

    def temperatures(self, state: EstimatorState) -> Array:
        """Return the temperatures (joints,), °C, of the filter after the samples so far."""
        n = self.adaptation.joints
        return self.filter.value(state.phase)[3 * n : 4 * n]


def friction_estimator(
    model: FrictionModel, rate: float, options: AdaptationOptions | None = None, *, length: int = 101, order: int = 3
) -> FrictionEstimator:
    """Return an estimator at a sampling rate (Hz) with a Savitzky-Golay filter of `length` samples and `order`."""
    scale, chosen = model.dry_scale, options or AdaptationOptions()
    adaptation = FrictionAdaptation(rate, scale, model.damping, chosen)
    return FrictionEstimator(model, PhaseFilter(4 * len(scale) + model.channels, rate, length, order), adaptation)


def _motion(signals: PhaseSignals, n: int) -> tuple[DriveSample, Array, Array]:
    """Return motion, motor torque and further signals of smoothed measurements (..., 4 n or more)."""
    q, qd, qdd = (x[..., :n] for x in signals)
    theta, speed, acceleration = (x[..., n : 2 * n] for x in signals)
    value = signals.value
    torque, temperature, rest = value[..., 2 * n : 3 * n], value[..., 3 * n : 4 * n], value[..., 4 * n :]
    return DriveSample(q, qd, qdd, theta, speed, acceleration, temperature), torque, rest
