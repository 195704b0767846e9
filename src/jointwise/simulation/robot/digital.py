"""The digital robot: an immutable arm with its joints and DC supply.

`integrate` runs it from a state under a command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from jointwise.description.mounting import Mounting, gravity_vector
from jointwise.description.robot import Payload, Robot, frozen_array
from jointwise.description.transmission import refuse_coupled
from jointwise.errors import ModelError, ShapeError, check_range
from jointwise.model.motor import dq_power, dq_voltages, drawn_power, drive_loss
from jointwise.model.rigid import gravity_torque
from jointwise.model.rigid.chain import Chain, make_chain
from jointwise.model.transmission import motor_torque, motor_values
from jointwise.simulation.robot.defaults import default_joints
from jointwise.simulation.robot.joint import JointPlant, aged_joint, kinematic_error, switched_off
from jointwise.simulation.robot.packing import kernel, pack_backlash, pack_joints
from jointwise.simulation.robot.stability import largest_step
from jointwise.simulation.robot.state import State, blank_state
from jointwise.spatial import Array

CouplingModel = Literal["spong", "complete"]


@dataclass(frozen=True)
class Supply:
    """Bus of all drives; the defaults are near those identified on a UR3e.

    Iron and drive losses of a joint are ``no_load_current K |ω| + conversion |K i ω|``.

    Attributes:
        voltage: Voltage without load, V.
        source: Resistance of the source, Ω.
        standing: Power of controller and brakes, W.
        no_load_current: Iron losses as a current, A.
        conversion: Losses of the drives as a share of the power at the shafts.
        braking: Whether braking power that no joint uses is "stored" or "burnt".
    """

    voltage: float = 48.0
    source: float = 0.1
    standing: float = 36.0
    no_load_current: float = 0.08
    conversion: float = 0.0
    braking: Literal["stored", "burnt"] = "stored"

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        check_range("supply", 0.0, above=True, voltage=self.voltage)
        losses = {name: getattr(self, name) for name in ("source", "standing", "no_load_current", "conversion")}
        check_range("supply", 0.0, **losses)
        if self.braking not in ("stored", "burnt"):
            raise ModelError(f"supply: braking must be stored or burnt. Got '{self.braking}' instead.")

    def power(self, joints: tuple[JointPlant, ...], current: Array, speed: Array) -> Array:
        """Return the power from the supply (samples,), W, at steady currents (A) and speeds (rad/s) of the motors."""
        gains = np.array([joint.motor.gain for joint in joints])
        voltages = motor_voltages(joints, current, np.zeros_like(current), speed)
        motors = dq_power((voltages[0], np.zeros_like(current)), (voltages[1], current))
        losses = drive_loss(gains * current * speed, speed, self.no_load_current * gains, self.conversion)
        return drawn_power(motors + losses, self.standing, self.braking == "burnt")

    def bus(self, power: Array) -> tuple[Array, Array]:
        """Return the voltage (V) and the current (A) of the bus, (samples,) each: ``V = U - R I``, ``P = V I``.

        Args:
            power: P, (samples,), W.

        Raises:
            ModelError: The source cannot deliver the power.
        """
        root = self.voltage**2 - 4.0 * self.source * power
        if (root < 0.0).any():
            most = self.voltage**2 / (4.0 * self.source)
            raise ModelError(f"supply: at most {most:.0f} W. The motion draws {power.max():.0f} W.")
        voltage = 0.5 * (self.voltage + np.sqrt(root))
        return voltage, power / voltage


def motor_voltages(joints: tuple[JointPlant, ...], current: Array, slope: Array, speed: Array) -> tuple[Array, Array]:
    """Return the voltages v_d and v_q of the motors, (samples, joints) each, V.

    Args:
        joints: Plant of every joint.
        current: Currents, (samples, joints), A.
        slope: Their derivatives, (samples, joints), A/s.
        speed: Speeds of the rotors, (samples, joints), rad/s.
    """
    motors = [joint.motor for joint in joints]
    return dq_voltages(
        current,
        slope,
        speed,
        resistance=np.array([motor.resistance for motor in motors]),
        inductance=np.array([motor.inductance for motor in motors]),
        gain=np.array([motor.gain for motor in motors]),
        pole_speed=np.array([joint.motor.pole_pairs * joint.gear_ratio for joint in joints]),
    )


@dataclass(frozen=True)
class DigitalRobot:
    """An arm whose joints have rotors, springs, friction, motors and heat.

    ``M(q) q̈ + C q̇ + g = τ_J + Jᵀ w``, ``B θ̈ + (dφ/dθ) τ_J + f = gain · i`` with ``τ_J = spring(φ) + D φ̇`` and
    ``φ = θ - e(θ) - d(θ) P - q`` (kinematic error, lost motion). Where a transmission C couples motors and joints, C q
    takes the place of q and Cᵀ τ_J that of τ_J; joints then are motors with their gears.

    Attributes:
        robot: Kinematics and bodies.
        joints: Plant of every joint.
        gravity: A mounting, or gravity in the base frame, (3,), m/s².
        payload: Payload at the tool; None for none.
        model: "complete" adds the spin of each rotor to the link that carries it: ``S(q) θ̈`` and its Coriolis terms, S
            strictly upper triangular with ``S_ij = B_j / r_j z_i·z_j`` (elastic joints only); "spong" omits S.
        supply: Power supply of the drives.
    """

    robot: Robot
    joints: tuple[JointPlant, ...]
    gravity: Mounting = "table"
    payload: Payload | None = None
    model: CouplingModel = "spong"
    supply: Supply = field(default_factory=Supply)

    def __post_init__(self) -> None:
        """Check that there is one plant a joint and take gravity as a vector."""
        object.__setattr__(self, "joints", tuple(self.joints))
        if len(self.joints) != self.robot.dof:
            raise ModelError(
                f"joints must have one entry for each of {self.robot.dof} joints. Got {len(self.joints)} instead."
            )
        self._check_coupling()
        if self.model not in ("spong", "complete"):
            raise ModelError(f"model must be 'spong' or 'complete'. Got '{self.model}' instead.")
        object.__setattr__(self, "gravity", frozen_array(gravity_vector(self.gravity), (3,), "gravity"))

    def _check_coupling(self) -> None:
        """Reject coupled motors without an elastic gear, whose rotors would be part of several links."""
        for j, joint in enumerate(self.joints):
            if joint.is_rigid:
                refuse_coupled(self.robot, "a simulated robot with rigid gears", j)
        if self.model == "complete":
            refuse_coupled(self.robot, "the complete model of spinning rotors")

    # -- variants --

    def without(self, *phenomena: str) -> DigitalRobot:
        """Return the robot without some of `PHENOMENA` or `GROUPS`; without `all` it is the rigid arm with rotors."""
        return replace(self, joints=tuple(switched_off(joint, phenomena) for joint in self.joints))

    def aged(self, friction: float = 0.0, stiffness: float = 0.0, joints: Sequence[int] | None = None) -> DigitalRobot:
        """Return the robot with friction times 1 + `friction` and stiffness times 1 + `stiffness`.

        `joints` (counted from 0) are those that aged, None for all.
        """
        worn = range(self.robot.dof) if joints is None else joints
        for joint in worn:
            if not 0 <= joint < self.robot.dof:
                raise ModelError(f"joint must be 0 to {self.robot.dof - 1}. Got {joint} instead.")
        changed = [aged_joint(j, friction, stiffness) if k in worn else j for k, j in enumerate(self.joints)]
        return replace(self, joints=tuple(changed))

    def with_payload(self, payload: Payload | None) -> DigitalRobot:
        """Return the robot with another payload."""
        return replace(self, payload=payload)

    # -- numbers --

    @cached_property
    def chain(self) -> Chain:
        """The links with payload; rotors of rigid joints belong to them."""
        rotors = np.array([joint.inertia if joint.is_rigid else 0.0 for joint in self.joints])
        return make_chain(self.robot, self.gravity, self.payload, rotor_inertias=rotors)

    @cached_property
    def packed(self) -> tuple[Array, Array]:
        """Joint rows and backlash maps for the native side."""
        return pack_joints(self.joints, self.model == "complete"), pack_backlash(self.joints)

    @property
    def coupling(self) -> Array | None:
        """The matrix C of ``theta = C q``, (joints, joints), for the native side; None without coupling."""
        transmission = self.robot.transmission
        return None if transmission is None else np.ascontiguousarray(transmission.matrix)

    def terms(self, step: float) -> Array:
        """Return the friction terms of all joints for the native side, for an integration step (s)."""
        if step not in self._terms:
            self._terms[step] = np.array([x for joint in self.joints for x in joint.law.packed(step)])
        return self._terms[step]

    @cached_property
    def _terms(self) -> dict[float, Array]:
        return {}

    @cached_property
    def elements(self) -> int:
        """Numbers that the friction of a joint remembers, in the state: deformations of slip elements, rad."""
        described = max(len(joint.friction.slip.limits) for joint in self.joints)
        if all(joint.terms is None for joint in self.joints):
            return described
        return max(described, int(kernel().joint_memory(self.terms(1.0), len(self.joints))))

    def friction(self, state: State) -> Array:
        """Return the friction of the rotors at the instant of a state, (joints,), Nm.

        The row `friction` of a state is the mean over the last step; without the damping of LuGre bristles both agree
        as the step goes to zero.
        """
        out, rows = np.empty(self.robot.dof), ("speed", "load", "temperature", "theta")
        signals = [np.ascontiguousarray(state.row(name)) for name in rows]
        kernel().joint_friction(self.terms(1.0), np.ascontiguousarray(state.deformation), *signals, out)
        return out

    @cached_property
    def gains(self) -> Array:
        """Motor gains, Nm/A, (joints,)."""
        return np.array([joint.motor.gain for joint in self.joints])

    @cached_property
    def largest_step(self) -> float:
        """Longest integration step (s) that resolves friction and is stable at seeded poses within the joint limits."""
        return largest_step(self.robot, self.joints, self.payload)

    # -- states --

    def rest(self, q: Array | Sequence[float], temperature: float | Sequence[float] | None = None) -> State:
        """Return the robot at rest at q (joints,) rad, its motors and springs holding it against gravity.

        `temperature` in °C, one value or one per joint, None for ambient (a cold start: the robot has not moved).
        Slip elements are relaxed, teeth stand between their flanks.
        """
        position = frozen_array(q, (self.robot.dof,), "q")
        weight = gravity_torque(self.robot, position[None], gravity=self.gravity, payload=self.payload)[0]
        holding, side = motor_torque(self.robot, weight), motor_values(self.robot, position)
        ambient = [joint.thermal.ambient for joint in self.joints]
        start = np.asarray(ambient if temperature is None else temperature, dtype=float)
        start = np.full(self.robot.dof, start) if start.ndim == 0 else start
        state = blank_state(self.robot.dof, self.elements).with_rows(
            q=position,
            theta=[_held(joint, x, g) for joint, x, g in zip(self.joints, side, holding, strict=True)],
            load=holding,
            temperature=frozen_array(start, position.shape, "temperature"),
        )
        slopes = [_gear_ratio(joint, x) for joint, x in zip(self.joints, state.theta, strict=True)]
        current = np.array(slopes) * holding / self.gains
        return state.with_rows(current=current, q_before=state.q, theta_before=state.theta)

    def moving(self, q: Array | Sequence[float], qd: Array | Sequence[float]) -> State:
        """Return the robot as in `rest`, links and rotors moving at q̇ (joints,) rad/s."""
        speed = frozen_array(qd, (self.robot.dof,), "qd")
        return self.rest(q).with_rows(qd=speed, speed=motor_values(self.robot, speed))

    def checked(self, state: State) -> State:
        """Return the state if it is one of this robot, or say that it is not."""
        if state.dof != self.robot.dof or state.deformation.shape[1] != self.elements:
            raise ShapeError("the state is that of another robot: make it with rest() of this one.")
        if not np.isfinite(state.values).all():
            raise ShapeError("the state must be finite.")
        if np.abs(state.play).max() > 1.0:
            raise ShapeError(f"the state's play must lie in -1 .. 1. Got {state.play.tolist()} instead.")
        return state


def digital_robot(
    robot: Robot,
    gravity: Mounting = "table",
    payload: Payload | None = None,
    model: CouplingModel = "spong",
    joints: Sequence[JointPlant] | None = None,
) -> DigitalRobot:
    """Return the digital robot of a description.

    Args:
        robot: The robot.
        gravity: Mounting, or gravity (3,) in the base frame, m/s².
        payload: Payload at the tool.
        model: Coupling of rotors and links, "spong" or "complete".
        joints: One plant per joint; None for typical ones of the size of its drives.
    """
    return DigitalRobot(robot, default_joints(robot) if joints is None else tuple(joints), gravity, payload, model)


def _held(joint: JointPlant, q: float, torque: float) -> float:
    """Return θ with ``spring(θ - e(θ) - q) = torque``; e is a contraction. A rigid joint has θ = q."""
    if joint.is_rigid:
        return q
    target = q + float(joint.stiffness.deformation(np.array(torque)))
    theta = target
    for _ in range(200):
        theta = target + float(kinematic_error(joint.kinematic_error, np.array(theta)))
    return theta


def _gear_ratio(joint: JointPlant, theta: float) -> float:
    """Return ``dφ/dθ = 1 - e'(θ) - d(θ) / L`` between the flanks, 1 for a rigid joint."""
    if joint.is_rigid:
        return 1.0
    waves = sum(w.amplitude * w.order * float(np.cos(w.order * theta + w.phase)) for w in joint.kinematic_error)
    lost = joint.lost_motion
    return 1.0 - waves - lost.fraction * float(joint.backlash.at(np.array(theta))) / lost.reach
