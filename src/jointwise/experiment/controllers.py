"""Controllers of an experiment: by name, or a user's own object with ``init`` and ``step``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jointwise import control
from jointwise.control.controller import GAINS, AffineControl, ControlSample
from jointwise.control.feedback_linearisation import DEFAULT_INTEGRAL
from jointwise.description.robot import Robot
from jointwise.design.trajectory import States, Trajectory, derivative
from jointwise.errors import ModelError, nearest
from jointwise.experiment.closed_loop import drives_of
from jointwise.model.rigid import mass_matrix
from jointwise.model.transmission import motor_inertia, motor_values
from jointwise.runtime.slip_friction import SlipFriction
from jointwise.simulation.robot import DigitalRobot
from jointwise.spatial import Array

GAIN_POSES = 64
"""Poses of a motion from which the gains of a named controller are computed."""
SERVO_POSES = 32
"""Poses of a motion over which the servo averages the inertia of the links."""
SERVO_BANDWIDTH = 2.0 * np.pi * 10.0
"""Natural frequency of the servo's position loop, rad/s; at most that of the link on its spring."""
SERVO_DAMPING = 0.9
"""Damping ratio of the servo's position loop."""
SERVO_INTEGRATION = 4.0
"""Integral gain over proportional gain of the servo, 1/s: slow compared with the position loop."""
LEEWAY = 1.0
"""Time (s) that a stepped controller may run beyond its motion, where it holds the last position."""
ADAPTED_SPACING, MOST_ADAPTED = 0.01, 1000
"""Least time (s) between adapted parameters that are kept, and how many are; longer runs keep fewer a second."""
Periods = NDArray[np.intp]
"""Numbers of control periods, ascending."""


class PeriodicLaw(Protocol):
    """A controller that provides its affine law for any set of control periods of a motion."""

    def law(self, periods: Periods, states: States, torque: Array) -> AffineControl:
        """Return the law of some periods, for reference states and the rigid model's `torque` (Nm) at each of them."""

    def to_dict(self) -> dict[str, Any]:
        """Return the gains as a document."""


@dataclass(frozen=True)
class DelayedMotion:
    """A motion that begins after some standstill; a function of time and derivative order.

    Attributes:
        motion: The motion.
        lead: Time of standstill, s.
        duration: Duration of standstill and motion together, s.
    """

    motion: Trajectory
    lead: float
    duration: float

    def __call__(self, t: Array, order: int) -> Array:
        """Return dᵏq/dtᵏ at times (samples,), s."""
        return derivative(self.motion, np.asarray(t) - self.lead, order)


ControllerFactory = Callable[[DelayedMotion, float], control.Controller[Any]]
"""A function of the motion and the control rate (Hz) that returns a controller."""
AnyController = str | control.Controller[Any] | ControllerFactory
"""A controller: a name of `CONTROLLERS`, an object with ``init`` and ``step``, or a function that returns one."""


@dataclass(frozen=True)
class NamedLaw:
    """A controller of `jointwise.control`, evaluated for the requested periods only, so that memory stays bounded.

    Attributes:
        make: Returns the controller of a reference.
        motion: The motion to follow.
        rate: Control rate, Hz.
        poses: Poses that represent the whole motion, (any, joints), so that gains are the same throughout.
    """

    make: Callable[[control.Reference], control.AffineController]
    motion: DelayedMotion
    rate: float
    poses: Array

    def law(self, periods: Periods, states: States, torque: Array) -> AffineControl:
        """Return the law of some periods; it computes its own references from the motion."""
        return self._law(periods / self.rate)

    def _law(self, times: Array) -> AffineControl:
        return self.make(control.part_of(self.motion, self.rate, times, self.poses)).law

    def to_dict(self) -> dict[str, Any]:
        """Return the gains that are constant; the others follow from the robot and the motion."""
        return _constant_gains(self._law(np.zeros(1)))


@dataclass(frozen=True)
class Servo:
    """``u = u_model - Kθ (θ - θ_d) - Kω (ω - ω_d) - Ki ∫ (q - q_d) dt``, ``θ_d = q_d + τ_load / K``.

    The servo of an industrial arm: feed-forward of the rigid model and a cascade on the motor encoders. Position and
    speed are fed back from the rotor, where feedback does not excite the spring of the gear; only the slow integral
    uses the link position. Arrays are (joints,), at the motors of `robot`, ``θ = C q``.

    Attributes:
        k_theta: Kθ, Nm/rad.
        k_speed: Kω, Nm s/rad.
        ki: Ki, Nm/(rad s).
        compliance: Compliance 1/K of the gears in its model, rad/Nm.
        rotor_inertias: Rotor inertias in its model, kg m².
        robot: The robot.
    """

    k_theta: Array
    k_speed: Array
    ki: Array
    compliance: Array
    rotor_inertias: Array
    robot: Robot

    def law(self, periods: object, states: States, torque: Array) -> AffineControl:
        """Return the law along reference states; `torque` (periods, joints) of the rigid model at each, Nm."""
        q, qd, qdd = (motor_values(self.robot, x) for x in (states.q, states.qd, states.qdd))
        load, coupling = torque - self.rotor_inertias * qdd, self.robot.transmission
        return AffineControl(
            torque=torque, q=states.q, theta=q + self.compliance * load, speed=qd,
            k_theta=self.k_theta, k_speed=self.k_speed,
            ki=self.ki if coupling is None else self.ki[:, None] * coupling.matrix,
        )  # fmt: skip

    def to_dict(self) -> dict[str, list[float]]:
        """Return the gains as a document."""
        return {name: values.tolist() for name, values in vars(self).items() if name != "robot"}


@dataclass(frozen=True)
class CustomLaw:
    """A user's controller, called `name`, that has a law (`AffineControl`) for the whole recording."""

    whole: AffineControl
    name: str

    def law(self, periods: Periods, states: States, torque: Array) -> AffineControl:
        """Return the law of some periods.

        Raises:
            ModelError: if the law ends before the last of them.
        """
        if periods[-1] >= self.whole.periods:
            raise ModelError(
                f"the controller's reference must last as long as the recording, {periods[-1] + 1} periods or more. "
                f"Got {self.whole.periods} instead: pass a function (motion, rate) that returns the controller."
            )
        return self.whole.take(periods)

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the constant gains."""
        return {"name": self.name, **_constant_gains(self.whole)}


class SteppedController:
    """A controller with ``init(sample)`` and ``step(memory, sample)`` whose memory lasts from chunk to chunk."""

    def __init__(self, controller: Any, name: str | None = None, tracking: PeriodicLaw | None = None) -> None:
        """Start without a memory: `init` of the controller is called once; `name` is that of its class by default.

        `tracking` is the law to which the controller adds: where it is unstable alone, the run is refused.
        """
        self._controller = controller
        self._name = name or type(controller).__name__
        self.tracking = tracking
        self._memory: tuple[Any] | None = None
        self._adapted: list[tuple[float, Array, Array]] = []
        self._spacing = ADAPTED_SPACING

    def init(self, sample: ControlSample) -> Any:
        """Return the memory so far."""
        if self._memory is None:
            self._memory = (self._controller.init(sample),)
        return self._memory[0]

    def step(self, memory: Any, sample: ControlSample) -> tuple[Array, Any]:
        """Return the torque (joints,), Nm, of this period and the memory for the next."""
        answer = self._controller.step(memory, sample)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise ModelError(f"step must return a torque and a memory. Got {type(answer).__name__} instead.")
        self._memory = (answer[1],)
        if isinstance(self._controller, control.AdaptiveController):
            self._keep(sample.time, *self._controller.parameters(answer[1]))
        return answer

    def _keep(self, time: float, a1: Array, a2: Array) -> None:
        """Keep adapted parameters (joints,) at a time, s; of long runs every other time again and again."""
        if not self._adapted or time - self._adapted[-1][0] >= self._spacing:
            self._adapted.append((time, a1.copy(), a2.copy()))
        if len(self._adapted) > MOST_ADAPTED:
            self._adapted, self._spacing = self._adapted[::2], 2.0 * self._spacing

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the controller, adapted parameters, and its notes on the run where it has any."""
        notes = getattr(self._controller, "notes", None)
        found = notes(self._memory[0]) if callable(notes) and self._memory is not None else []
        return {"name": self._name} | self._parameters() | ({"notes": found} if found else {})

    def _parameters(self) -> dict[str, Any]:
        """Return adapted parameters, if any: times (s), a1 and a2 (Nm s/rad) as lists of numbers a joint."""
        if not self._adapted:
            return {}
        t, a1, a2 = zip(*self._adapted, strict=True)
        return {"adapted": {"t": list(t), "a1": np.array(a1).tolist(), "a2": np.array(a2).tolist()}}


def make_controller(
    controller: AnyController, digital: DigitalRobot, motion: DelayedMotion, rate: float, bandwidth: float | None = None
) -> PeriodicLaw | SteppedController:
    """Return a controller at a control rate (Hz); `bandwidth` (Hz) replaces the default of a named controller."""
    if isinstance(controller, str):
        if controller not in CONTROLLERS:
            raise ModelError(f"unknown controller '{controller}'. {nearest(controller, CONTROLLERS)}")
        return CONTROLLERS[controller][1](digital, motion, rate, bandwidth)
    if bandwidth is not None:
        raise ModelError("bandwidth must be None for a controller object: set its gains instead.")
    return _custom_controller(controller, motion, rate, digital.robot.dof)


def _custom_controller(controller: Any, motion: DelayedMotion, rate: float, dof: int) -> SteppedController | CustomLaw:
    """Return a user's controller, created from the motion and the rate (Hz) if it is a function of them."""
    made = controller(motion, rate) if _is_factory(controller, motion, rate) else controller
    if not _is_controller(made):
        raise ModelError(
            "controller must be a name, have init(sample) and step(memory, sample), or be a function (motion, rate) "
            f"that returns such an object. Got {type(made).__name__} instead."
        )
    designed_rate, law = getattr(made, "rate", None), getattr(made, "law", None)
    if designed_rate is not None and designed_rate != rate:
        raise ModelError(f"the controller is made for {designed_rate:g} Hz. Got a control_rate of {rate:g} Hz instead.")
    if not isinstance(law, AffineControl):
        return SteppedController(made)
    return CustomLaw(law.checked(dof), type(made).__name__)


def _is_controller(candidate: Any) -> bool:
    has_methods = all(callable(getattr(candidate, name, None)) for name in ("init", "step"))
    return has_methods and not isinstance(candidate, type)


def _is_factory(candidate: Any, motion: DelayedMotion, rate: float) -> bool:
    """Return whether a candidate is a function of a motion and a rate."""
    if _is_controller(candidate) or not callable(candidate):
        return False
    try:
        inspect.signature(candidate).bind(motion, rate)
    except (TypeError, ValueError):
        return False
    return True


def _constant_gains(law: AffineControl) -> dict[str, list[float]]:
    gains = {name: getattr(law, name) for name in GAINS}
    return {name: value.tolist() for name, value in gains.items() if value is not None and value.ndim == 1}


NamedFactory = Callable[[DigitalRobot, DelayedMotion, float, float | None], PeriodicLaw | SteppedController]
"""Robot, motion, control rate (Hz) and bandwidth (Hz, None: the default) to a controller."""


def _make_servo(digital: DigitalRobot, motion: DelayedMotion, rate: float, bandwidth: float | None) -> Servo:
    """Return the servo for a motion."""
    q = motion(np.linspace(0.0, motion.duration, 1000), 0)
    poses = q[np.linspace(0, len(q) - 1, SERVO_POSES).astype(int)]
    at_motors = motor_inertia(digital.robot, mass_matrix(digital.robot, poses, payload=digital.payload))
    links = np.diagonal(at_motors, axis1=1, axis2=2).mean(axis=0)
    rotors = np.array([joint.inertia for joint in digital.joints])
    stiffness = np.array([float(joint.stiffness.stiffness(np.zeros(()))) for joint in digital.joints])
    slowest = np.minimum(SERVO_BANDWIDTH, np.sqrt(stiffness / links))
    omega = slowest if bandwidth is None else np.full(len(links), 2.0 * np.pi * bandwidth)
    k_theta = (links + rotors) * omega**2
    return Servo(
        k_theta=k_theta,
        k_speed=2.0 * SERVO_DAMPING * omega * (links + rotors),
        ki=SERVO_INTEGRATION * k_theta,
        compliance=1.0 / stiffness,
        rotor_inertias=rotors,
        robot=digital.robot,
    )


def _factory(
    make: Callable[..., control.AffineController], integral: float | None = 0.0
) -> Callable[[DigitalRobot, DelayedMotion, float, float | None], PeriodicLaw]:
    """Return the factory of a controller of `control`; `integral` of its gains, None if it has no bandwidth."""

    def make_law(digital: DigitalRobot, motion: DelayedMotion, rate: float, bandwidth: float | None) -> PeriodicLaw:
        options = _known(digital)
        if bandwidth is not None:
            if integral is None:
                raise ModelError("bandwidth must be None for this controller: its gains follow from tolerances.")
            options["gains"] = control.bandwidth_gains(bandwidth, 1.0, integral)
        periods = max(1, round(motion.duration * rate))
        poses = motion(np.linspace(0, periods - 1, GAIN_POSES).astype(np.intp) / rate, 0)
        return NamedLaw(lambda reference: make(digital.robot, reference, rate, **options), motion, rate, poses)

    return make_law


def slip_friction_of(digital: DigitalRobot) -> SlipFriction:
    """Return the friction of a digital robot with hysteresis and backlash, as a perfect data sheet would state it."""
    return SlipFriction(
        tuple(joint.friction for joint in digital.joints), tuple(joint.backlash for joint in digital.joints)
    )


def _known(digital: DigitalRobot) -> dict[str, Any]:
    """Return what a controller knows of a digital robot besides its description."""
    return {"drives": drives_of(digital), "gravity": digital.gravity, "payload": digital.payload}


def _stepped(
    name: str,
    gains: Callable[[float], Any] = control.bandwidth_gains,
    law: Callable[..., control.AffineController] | None = control.computed_torque,
) -> NamedFactory:
    """Return the factory of the controller of that name in `control`, which is stepped.

    `gains` are those of a bandwidth (Hz); `law` is what the controller adds to, None if it stands alone.
    """

    def make(digital: DigitalRobot, motion: DelayedMotion, rate: float, bandwidth: float | None) -> SteppedController:
        options = _known(digital) | {"duration": motion.duration + LEEWAY}
        if name == "adaptive":
            options |= {"motor_gains": digital.gains, "friction": slip_friction_of(digital)}
        if bandwidth is not None:
            options["gains"] = gains(bandwidth)
        controller = getattr(control, name)(digital.robot, motion, rate, **options)
        tracking = None if law is None else _factory(law)(digital, motion, rate, bandwidth)
        return SteppedController(controller, name.replace("_", "-"), tracking)

    return make


def _chain_gains(bandwidth: float) -> control.ChainGains:
    return control.chain_gains(bandwidth, DEFAULT_INTEGRAL)


CONTROLLERS: dict[str, tuple[str, NamedFactory]] = {
    "servo": ("rigid feed-forward, feedback from the motor encoders, a slow integral of the link error", _make_servo),
    "pd": ("PD with gravity compensation", _factory(control.pd_gravity)),
    "pid": ("PID without a model", _factory(control.pid, 0.3)),
    "computed-torque": ("computed torque with feedback scaled by the mass matrix", _factory(control.computed_torque)),
    "flexible": ("feed-forward of elastic joints and friction", _factory(control.flexible_feedforward)),
    "lqr": ("decentralised LQR with feed-forward", _factory(control.lqr, None)),
    "adaptive": ("computed torque with feed-forward of friction whose parameters are adapted", _stepped("adaptive")),
    "torque-feedback": (
        "computed torque with a joint torque loop and a friction observer",
        _stepped("torque_feedback"),
    ),
    "feedback-linearisation": (
        "feedback of elastic joints from both encoders",
        _stepped("feedback_linearisation", _chain_gains, None),
    ),
}
"""Named controllers: a one-line description and the factory of each."""
