"""Result of a run: signals at the control rate, energies and the final state."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from jointwise.model.rigid import forward_kinematics, kinetic_energy, potential_energy
from jointwise.motion import DriveSignals
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.state import State
from jointwise.spatial import Array

SERIES = (
    "q", "qd", "theta", "speed", "current", "temperature", "load", "friction", "command",
    "supplied", "friction_loss", "damped", "play", "electrical", "copper", "elastic", "held",
)  # fmt: skip
"""Columns a joint, in the order of the native side; the external work is the last column of all."""


@dataclass(frozen=True)
class EnergyAccount:
    """Energy in J, (samples,) each: what was put in since the start, where it went, and what is stored.

    Attributes:
        supplied: Work of the shafts of the motors (in).
        external: Work of wrenches, and of payloads put on or off (in).
        friction: Work done against friction (out).
        damping: Work of the damping of the gears (out).
        held: Part of `friction` that the slip elements still hold.
        kinetic: Kinetic energy (stored).
        potential: Potential energy, zero at the base origin (stored).
        elastic: Energy of the springs (stored).
        electrical: Energy at the terminals of the motors (in).
        copper: Heat of the windings, part of `electrical`.
        magnetic: Energy ½ L i² of the windings, part of `electrical` (stored).
    """

    supplied: Array
    external: Array
    friction: Array
    damping: Array
    held: Array
    kinetic: Array
    potential: Array
    elastic: Array
    electrical: Array
    copper: Array
    magnetic: Array

    @property
    def electrical_residual(self) -> Array:
        """What the balance from the terminals of the motors to heat and stores does not account for, J."""
        losses = self.copper + self.friction + self.damping
        balance: Array = self.electrical + self.external - losses - self.stored - self.magnetic
        rest: Array = balance - balance[0]
        return rest

    @property
    def stored(self) -> Array:
        """Kinetic, potential and elastic energy, J."""
        return self.kinetic + self.potential + self.elastic

    @property
    def residual(self) -> Array:
        """What the balance does not account for, J: 0 up to the integration error."""
        balance: Array = self.supplied + self.external - self.friction - self.damping - self.stored
        rest: Array = balance - balance[0]
        return rest

    @property
    def moved(self) -> float:
        """Energy moved, J: all changes of supply, external work, losses and stores, added up without their signs."""
        flows = (self.supplied, self.external, self.friction, self.damping, self.stored)
        return float(sum(np.abs(np.diff(flow)).sum() for flow in flows))


@dataclass(frozen=True)
class TrueSignals(DriveSignals):
    """True signals of a simulated robot, (samples, joints), SI units at the joint side, °C.

    Attributes:
        load: Torque transmitted by the gear, Nm.
        command: Commanded torque before the current limit, Nm.
    """

    load: Array
    command: Array


@dataclass(frozen=True)
class Run(TrueSignals):
    """Signals at the start of every control period, (samples, joints) unless stated; energies count from the start.

    Attributes:
        t: Time, s, (samples,).
        friction: Friction of the rotors, Nm.
        play: State P of the lost motion, -1 to 1.
        supplied: Work of the shafts of the motors, J.
        friction_loss: Work done against friction, J.
        damped: Work of the damping of the gears, J.
        electrical: Integral of voltage times current of the motors, J.
        copper: Heat of the windings, J.
        elastic: Energy of the springs at that time, J.
        held: Energy in the slip elements at that time, J.
        external: Work of wrenches and payloads, J, (samples,).
        parts: Robots (payloads) with their first sample.
        final: State at the end.
    """

    t: Array
    friction: Array
    play: Array
    supplied: Array
    friction_loss: Array
    damped: Array
    electrical: Array
    copper: Array
    elastic: Array
    held: Array
    external: Array
    parts: tuple[tuple[int, DigitalRobot], ...]
    final: State

    @cached_property
    def energy(self) -> EnergyAccount:
        """Energy accounts of the whole robot."""
        kinetic, potential = self._link_energies()
        names = ("supplied", "damped", "held", "elastic", "friction_loss", "electrical", "copper")
        sums = {name: getattr(self, name).sum(axis=1) for name in names}
        return EnergyAccount(
            supplied=sums["supplied"],
            external=self.external,
            friction=sums["friction_loss"],
            damping=sums["damped"],
            held=sums["held"],
            kinetic=kinetic,
            potential=potential,
            elastic=sums["elastic"],
            electrical=sums["electrical"],
            copper=sums["copper"],
            magnetic=self._magnetic_energy(),
        )

    def _magnetic_energy(self) -> Array:
        """Return ½ L i² of all motors (samples,), J."""
        inductances = np.array([joint.motor.inductance for joint in self.parts[0][1].joints])
        result: Array = 0.5 * np.square(self.current) @ inductances
        return result

    def bus_power(self) -> Array:
        """Return the power from the supply (samples,), W, at the currents and rotor speeds of the samples."""
        digital = self.parts[0][1]
        return digital.supply.power(digital.joints, self.current, self.speed)

    def _link_energies(self) -> tuple[Array, Array]:
        kinetic, potential = np.empty(len(self.t)), np.empty(len(self.t))
        ends = [first for first, _ in self.parts[1:]] + [len(self.t)]
        for (first, digital), last in zip(self.parts, ends, strict=True):
            rows = slice(first, last)
            kinetic[rows] = kinetic_of(digital, self.q[rows], self.qd[rows], self.speed[rows])
            potential[rows] = potential_energy(
                digital.robot, self.q[rows], gravity=digital.gravity, payload=digital.payload
            )
        return kinetic, potential

    def thinned(self, stride: int) -> Run:
        """Return every `stride`-th sample, the first included."""
        if stride == 1:
            return self
        series = [f.name for f in fields(self) if f.name not in ("parts", "final")]
        parts = tuple((-(-first // stride), digital) for first, digital in self.parts)
        return replace(self, **{name: getattr(self, name)[::stride].copy() for name in series}, parts=parts)

    @classmethod
    def joined(cls, runs: list[Run]) -> Run:
        """Return runs that follow each other as one."""
        series = [f.name for f in fields(cls) if f.name not in ("parts", "final")]
        parts, first = [], 0
        for run in runs:
            parts += [(first + start, digital) for start, digital in run.parts]
            first += len(run.t)
        arrays = {name: np.concatenate([getattr(run, name) for run in runs]) for name in series}
        return cls(**arrays, parts=tuple(parts), final=runs[-1].final)


def kinetic_of(digital: DigitalRobot, q: Array, qd: Array, speed: Array) -> Array:
    """Return ½ q̇ᵀ M q̇ + ½ ωᵀ B ω (+ q̇ᵀ S ω in the complete model) in J, (samples,)."""
    links = kinetic_energy(digital.robot, q, qd, payload=digital.payload, rotor_inertias=digital.chain.rotors)
    B = np.array([0.0 if joint.is_rigid else joint.inertia for joint in digital.joints])
    result: Array = links + 0.5 * np.square(speed) @ B
    if digital.model == "complete":
        result = result + np.einsum("ki,kij,kj->k", qd, spin_coupling(digital, q), speed)
    return result


def spin_coupling(digital: DigitalRobot, q: Array) -> Array:
    """Return S(q) of the complete model, kg m², (samples, joints, joints), strictly upper triangular."""
    axes = forward_kinematics(digital.robot, q).rotation[:, :-1, :, 2]
    spin = np.array([0.0 if joint.is_rigid else joint.inertia / joint.gear_ratio for joint in digital.joints])
    turns = digital.robot.revolute[:, None] * np.triu(np.ones((len(spin), len(spin))), 1)
    result: Array = np.einsum("kix,kjx->kij", axes, axes) * turns * spin
    return result


@dataclass(frozen=True)
class Saturation:
    """Motor saturation of a run.

    Attributes:
        names: Names of the joints.
        share: Share of samples above the limit, (joints,).
        peak: Largest command over the limit, (joints,).
        first: Time of the first sample above the limit, s; None if there is none.
    """

    names: tuple[str, ...]
    share: Array
    peak: Array
    first: float | None

    @property
    def happened(self) -> bool:
        """Whether any command exceeded the limit of its motor."""
        return bool((self.share > 0.0).any())

    def __str__(self) -> str:
        """Return one line for a user."""
        if not self.happened:
            j = int(np.argmax(self.peak))
            return (
                f"no motor saturates: the most is {100.0 * self.peak[j]:.0f} % of the limit, in joint '{self.names[j]}'"
            )
        j = int(np.argmax(self.share))
        return (
            f"motors saturate from t = {self.first:.3g} s on, most in joint '{self.names[j]}': "
            f"{100.0 * self.share[j]:.2g} % of the samples, up to {100.0 * self.peak[j]:.0f} % of the limit"
        )


def saturation(run: Run) -> Saturation:
    """Return how near the commands of a run came to the current limits of its motors."""
    digital = run.parts[0][1]
    limits = np.array([joint.motor.gain * joint.motor.limit for joint in digital.joints])
    relative = np.abs(run.command) / limits
    beyond = relative > 1.0
    late = np.flatnonzero(beyond.any(axis=1))
    names = tuple(joint.name for joint in digital.robot.joints)
    first = float(run.t[late[0]]) if late.size else None
    return Saturation(names, beyond.mean(axis=0), relative.max(axis=0), first)
