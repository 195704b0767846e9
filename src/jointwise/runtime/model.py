"""The calibrated robot: dynamics of arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from jointwise.arguments import checked, checked_fields
from jointwise.data.log import Log
from jointwise.description.mounting import Mounting
from jointwise.description.robot import Payload, Robot
from jointwise.description.transmission import refuse_coupled
from jointwise.errors import ModelError
from jointwise.model import rigid
from jointwise.model.rigid import Frames
from jointwise.result.calibration import Calibration
from jointwise.result.model_file import load_calibration
from jointwise.result.predict import Use
from jointwise.runtime.bodies import Energy
from jointwise.runtime.evaluation import Estimates, Friction, MotionSignals, TorqueOptions, half_widths, log_half_widths
from jointwise.runtime.motion import as_samples, checked_rate, is_single, joint_values, like
from jointwise.runtime.packing import CoreModel, core_model
from jointwise.runtime.stream import NativeCore, NumpyCore, StreamState, checked_sample, joint_signal
from jointwise.spatial import Array


@checked_fields
@dataclass(frozen=True, eq=False)
class RobotModel:
    """A calibrated robot; every method is that of the identified bodies, rotors and friction.

    Arrays are (samples, joints), or (joints,), in rad, rad/s, rad/s², Nm (m, N of a prismatic joint); so are results.

    Attributes:
        calibration: The calibration: parameters with their statistics.
    """

    calibration: Calibration

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.calibration.model.robot.name

    @property
    def dof(self) -> int:
        """Number of joints."""
        return self.calibration.model.robot.dof

    @property
    def output(self) -> str:
        """The signal that `predict` returns: `current` or `torque`."""
        return self.calibration.output

    @property
    def unit(self) -> str:
        """Unit of the output: A or Nm."""
        return self.calibration.unit

    @property
    def gains(self) -> Array:
        """Joint torque per unit of the output, shape (joints,), in Nm/A; 1 for a torque."""
        return self.calibration.gains

    @property
    def extras(self) -> tuple[str, ...]:
        """Measured channels that the model uses in addition to positions: `qd`, `theta`."""
        return self.calibration.extras

    @property
    def rate(self) -> float:
        """Sampling rate (Hz) at which the model was calibrated; the default of `torque` and `init`."""
        return self.calibration.filters.rate

    @property
    def gravity_vector(self) -> tuple[float, float, float]:
        """Gravity in the base frame, m/s²."""
        return self.calibration.model.gravity

    @property
    def payload(self) -> Payload | None:
        """The payload that the model includes."""
        return self.calibration.provenance.carried

    @cached_property
    def robot(self) -> Robot:
        """The robot with the identified bodies and reflected rotor inertias instead of the described ones.

        Single bodies are one of many sets with the identified torques: the one closest to the physically consistent
        bodies; those of `consistent` are physical.
        """
        return self._estimates.sensor.bodies.robot()

    def torque(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        rate: float | None = None,
        temperature: ArrayLike | float | None = None,
        measured_speed: ArrayLike | None = None,
        rotor: ArrayLike | None = None,
        friction: Friction | None = None,
    ) -> Array:
        """Return the joint torque of a motion, ``M q̈ + C q̇ + g + friction``, of the shape of `q`.

        Args:
            q: Positions, rad. The samples of an array are consecutive, as friction has a memory.
            qd: Speeds, rad/s.
            qdd: Accelerations, rad/s².
            rate: Sampling rate, Hz; None for `rate` of the model.
            temperature: Joint temperatures, °C, one number or of the shape of `q`; None for the temperature for which
                the friction parameters hold.
            measured_speed: Measured speeds, rad/s; None for a planned motion.
            rotor: Measured rotor positions at the joint side, rad; None for those of the joints. With all measured
                channels in `extras` the sensor-based estimate is used, else the feed-forward estimate.
            friction: `motion` (friction along the samples, gears relaxed at the first), `steady` (every sample in
                steady sliding) or `none`; None for `steady` with one sample, which has no past, else `motion`.

        Returns:
            Torques, Nm.

        Raises:
            ShapeError: An array has another shape, or a number is not finite.
        """
        kind = friction or ("steady" if is_single(q) else "motion")
        if kind not in ("motion", "steady", "none"):
            raise ModelError(f"friction must be motion, steady or none. Got '{friction}' instead.")
        chosen, motion = self._estimates.motion(
            q, qd, qdd, rate=rate, temperature=temperature, measured_speed=measured_speed, rotor=rotor
        )
        return like(q, chosen.torque(motion, kind))

    def current(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[TorqueOptions]) -> Array:
        """Return the motor currents of a motion, A; arguments as in `torque`.

        Raises:
            ModelError: The model was calibrated on torques: currents need drive gains.
        """
        if self.output != "current":
            raise ModelError("the model was calibrated on torques and has no drive gains. Use torque().")
        result: Array = self._estimates.sensor.at_motors(self.torque(q, qd, qdd, **options)) / self.gains
        return result

    def friction(
        self, qd: ArrayLike, *, load: ArrayLike | float = 0.0, temperature: ArrayLike | float | None = None
    ) -> Array:
        """Return friction in steady sliding, Nm, of the shape of `qd`; without the offset and the spring of a joint.

        Args:
            qd: Speeds, rad/s.
            load: Torque that the links require of the joints, Nm: a number, (joints,) or of the shape of `qd`.
            temperature: Joint temperatures, °C, likewise; None for those for which the parameters hold.
        """
        speed = as_samples(qd, self.dof, "qd")
        loads = joint_values(load, self.dof, "load", len(speed))
        return like(qd, self._estimates.planned.friction(speed, loads, self._temperature(temperature, len(speed))))

    def body_torque(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Return ``M q̈ + C q̇ + g`` without friction, Nm, of the shape of `q`."""
        return self.torque(q, qd, qdd, friction="none")

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Return M(q) with the rotors, kg m², (samples, joints, joints) or (joints, joints)."""
        return like(q, self._estimates.sensor.bodies.mass_matrix(as_samples(q, self.dof, "q")))

    def coriolis(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return C(q, q̇) q̇, Nm, of the shape of `q`."""
        return like(q, self._estimates.sensor.bodies.coriolis(*self._pair(q, qd)))

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return C(q, q̇) of Christoffel's symbols, (samples, joints, joints) or (joints, joints)."""
        return like(q, self._estimates.sensor.bodies.coriolis_matrix(*self._pair(q, qd)))

    def gravity(self, q: ArrayLike) -> Array:
        """Return g(q), Nm, of the shape of `q`."""
        return like(q, self._estimates.sensor.bodies.weight(as_samples(q, self.dof, "q")))

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        temperature: ArrayLike | float | None = None,
        friction: bool = True,
    ) -> Array:
        """Return ``q̈ = M⁻¹ (τ - friction - C q̇ - g)``, rad/s², of the shape of `q`.

        Friction is that of steady sliding; where it depends on the load torque ``τ - friction``, this is solved for.

        Args:
            q: Positions, rad.
            qd: Speeds, rad/s.
            tau: Joint torques of the motors, Nm.
            temperature: Joint temperatures, °C; None for those for which the parameters hold.
            friction: Whether friction and the offsets of the joints act.

        Raises:
            ModelError: Friction grows so fast with the load that there is no solution.
        """
        positions, speeds = self._pair(q, qd)
        torque = as_samples(tau, self.dof, "tau", len(positions))
        T = self._temperature(temperature, len(positions))
        body = self._estimates.planned.body_share(positions, speeds, torque, T) if friction else torque
        return like(q, self._estimates.sensor.bodies.accelerate(positions, speeds, body))

    def energy(self, q: ArrayLike, qd: ArrayLike) -> Energy:
        """Return kinetic energy (rotors included) and potential energy (zero at q = 0), J, (samples,) or numbers."""
        return Energy(*(like(q, part) for part in self._estimates.sensor.bodies.energy(*self._pair(q, qd))))

    def jacobian(self, q: ArrayLike) -> Array:
        """Return J with ``[v; ω] = J q̇`` of the tool in base axes, (samples, 6, joints) or (6, joints)."""
        return like(q, rigid.jacobian(self.calibration.model.robot, as_samples(q, self.dof, "q")))

    def forward_kinematics(self, q: ArrayLike) -> Frames:
        """Return the frames of links and tool in the base, with samples as the first axis."""
        return rigid.forward_kinematics(self.calibration.model.robot, as_samples(q, self.dof, "q"))

    @checked
    def init(
        self, q: ArrayLike, *, rate: float | None = None, rotor: ArrayLike | None = None, use: Use = "feed-forward"
    ) -> StreamState:
        """Return the state at the start of a stream: gears relaxed at positions q.

        Args:
            q: Positions (joints,), rad.
            rate: Sampling rate of the stream, Hz; None for `rate` of the model.
            rotor: Measured rotor positions at the joint side (joints,), rad, if the stream has them.
            use: `feed-forward` for planned positions, `sensor` for measured ones with the channels in `extras`.
        """
        core = (self._estimates.sensor if use == "sensor" else self._estimates.planned).core(self._rate(rate))
        start = None if rotor is None else joint_signal(rotor, self.dof, "rotor")
        return StreamState(core, core.init(joint_signal(q, self.dof, "q"), start))

    def step(
        self,
        state: StreamState,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        temperature: ArrayLike | None = None,
        *,
        measured_speed: ArrayLike | None = None,
        rotor: ArrayLike | None = None,
    ) -> tuple[Array, StreamState]:
        """Return the torque of the next sample, Nm, and the state after it; the numbers are those of `torque`.

        Args:
            state: State after the samples so far, from `init` or `step`; it is not changed.
            q: Positions (joints,), rad, one period after those before.
            qd: Speeds, rad/s.
            qdd: Accelerations, rad/s².
            temperature: Joint temperatures, °C; None for those for which the friction parameters hold.
            measured_speed: Measured speeds, rad/s, of a sensor-based stream.
            rotor: Measured rotor positions at the joint side, rad; None for those of the joints.
        """
        sample = checked_sample(self.dof, q, qd, qdd, measured_speed, rotor, temperature)
        torque, memory = state.core.step(state.memory, sample)
        return torque, StreamState(state.core, memory)

    def core_numbers(self, rate: float | None = None) -> CoreModel:
        """Return the model as the numbers of the C core for a sampling rate (Hz); None for `rate` of the model.

        They are those of the sensor-based estimate; see `for_use`.

        Raises:
            ModelError: A term is not implemented in C.
        """
        return core_model(self.calibration, self._estimates.sensor.bodies, self._rate(rate))

    def planned_core(self, rate: float) -> NativeCore | NumpyCore:
        """Return the evaluator of single samples of the feed-forward estimate at a rate (Hz)."""
        return self._estimates.planned.core(self._rate(rate))

    def predict(self, log: Log) -> Array:
        """Return the output at every stamp of a log, (samples, joints) in A or Nm; see `jointwise.predict`."""
        return self.calibration.predict(log)

    def residuals(self, log: Log) -> Array:
        """Return measured minus predicted output at every stamp of a log, (samples, joints)."""
        return self.calibration.residuals(log)

    def torque_interval(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        level: float = 0.95,
        observation: bool = True,
        **signals: Unpack[MotionSignals],
    ) -> tuple[Array, Array]:
        """Return the limits of the interval in which the torque of a motion lies, Nm, each of the shape of `q`.

        The variance is that of the parameters, ``y C yᵀ``, and with `observation` that of the residuals of the
        training data; infinite where a parameter acts that the training data did not determine.

        Args:
            q: Positions, rad.
            qd: Speeds, rad/s.
            qdd: Accelerations, rad/s².
            level: Probability of the interval.
            observation: Whether the interval is that of a measured torque; otherwise that of the model's mean.
            signals: `rate`, `temperature`, `measured_speed` and `rotor` as in `torque`.

        Returns:
            Lower and upper limit.
        """
        refuse_coupled(self.calibration.model.robot, "an interval of joint torques", remedy="use predict_interval")
        chosen, motion = self._estimates.motion(q, qd, qdd, **signals)
        torque, load = chosen.torque(motion, "motion"), chosen.load(motion)
        half = half_widths(chosen.calibration, motion, load, level, observation)
        return like(q, torque - half), like(q, torque + half)

    def predict_interval(self, log: Log, *, level: float = 0.95) -> tuple[Array, Array]:
        """Return the limits of the interval of the measured output at every stamp of a log, (samples, joints) each.

        Args:
            log: A log with the channels that the model uses.
            level: Probability of the interval.
        """
        predicted, half = self.predict(log), log_half_widths(self.calibration, log, level)
        return predicted - half, predicted + half

    def with_payload(
        self, mass: float, com: Sequence[float] | Array = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> RobotModel:
        """Return the model with a payload in place of the one that it includes.

        Args:
            mass: Mass, kg.
            com: Centre of mass in the tool frame, m, (3,).
            inertia: Inertia tensor about the centre of mass, kg m², (3, 3); None for a point mass.

        Raises:
            DescriptionError: The mass is negative, or no body has this inertia.
        """
        tensor = np.zeros((3, 3)) if inertia is None else np.asarray(inertia, dtype=float)
        return replace(self, calibration=self.calibration.with_payload(Payload(mass, com, tensor)))

    def without_payload(self) -> RobotModel:
        """Return the model of the arm without the payload that it includes."""
        return replace(self, calibration=self.calibration.with_payload(None))

    def consistent(self) -> RobotModel:
        """Return the model with the physically consistent bodies, whose masses and inertias can exist.

        Raises:
            ModelError: The calibration has no physical parameters.
        """
        return replace(self, calibration=self.calibration.consistent())

    def for_use(self, use: Use) -> RobotModel:
        """Return the model with one estimate: `sensor` (all channels) or `feed-forward` (planned positions only)."""
        return replace(self, calibration=self.calibration.for_use(use))

    def with_mounting(self, mounting: Mounting) -> RobotModel:
        """Return the model of the arm mounted in another direction.

        Args:
            mounting: `table`, `wall`, `ceiling`, ``tilt:AXIS:ANGLE``, or gravity in the base frame, m/s².

        Raises:
            ModelError: Parameters act there that the training data did not determine, and none are physical.
        """
        return replace(self, calibration=self.calibration.with_mounting(mounting))

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.calibration)

    def _rate(self, rate: float | None) -> float:
        return checked_rate(self.rate if rate is None else rate)

    def _temperature(self, temperature: ArrayLike | float | None, samples: int) -> Array | None:
        return None if temperature is None else joint_values(temperature, self.dof, "temperature", samples)

    def _pair(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        positions = as_samples(q, self.dof, "q")
        return positions, as_samples(qd, self.dof, "qd", len(positions))


def load_model(path: str | Path) -> RobotModel:
    """Return the calibrated robot of a model file; `load_calibration` returns the statistics only.

    Args:
        path: What `calibrate` or `save_model` wrote.

    Raises:
        ModelError: The file is not a model, or of a newer version; names the file and the entry.
    """
    return RobotModel(load_calibration(path))
