"""What a simulation leaves: samples at the control rate, energy accounts and the state at the end."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from jointwise.model.rigid import forward_kinematics, kinetic_energy, potential_energy
from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.state import State
from jointwise.spatial import Array

SERIES = (
    "q", "qd", "theta", "speed", "current", "temperature", "load", "friction", "command",
    "supplied", "rubbed", "damped", "play", "elastic", "held",
)  # fmt: skip
"""Columns a joint, in the order of the native side; the external work is the last column of all."""


@dataclass(frozen=True)
class Energy:
    """Energy in J, (samples,) each: what was put in since the start, where it went, and what is stored.

    In: `supplied` by the motors, `external` work of wrenches (and of payloads put on or off). Out: `friction`, the work
    done against it, of which `held` is still in the slip elements, and `damping`. Stored: `kinetic`, `potential` (zero
    at the base origin), `elastic`.
    """

    supplied: Array
    external: Array
    friction: Array
    damping: Array
    held: Array
    kinetic: Array
    potential: Array
    elastic: Array

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
class Run:
    """Samples at the start of every control period, (samples, joints); SI units at the joint side, °C.

    `t` (samples,) s; `q`, `qd` of the links and `theta`, `speed` of the rotors; `current` A; `temperature`; `load`, the
    torque transmitted by the gear, and `friction`, Nm; `play`, P of the lost motion, -1 to 1; `command`, the torque
    asked for, Nm, before the current limit.
    Then energies since the start in J: `supplied`, `rubbed` (friction), `damped`, `external` (samples,); and at that
    time: `elastic`, `held`.
    `parts` tells which robot (payload) made the samples from which index on; `final` is the state at the end.
    """

    t: Array
    q: Array
    qd: Array
    theta: Array
    speed: Array
    current: Array
    temperature: Array
    load: Array
    friction: Array
    play: Array
    command: Array
    supplied: Array
    rubbed: Array
    damped: Array
    elastic: Array
    held: Array
    external: Array
    parts: tuple[tuple[int, DigitalRobot], ...]
    final: State

    @cached_property
    def energy(self) -> Energy:
        """Energy accounts of the whole robot."""
        kinetic, potential = self._link_energies()
        sums = {name: getattr(self, name).sum(axis=1) for name in ("supplied", "damped", "held", "elastic", "rubbed")}
        return Energy(
            supplied=sums["supplied"],
            external=self.external,
            friction=sums["rubbed"],
            damping=sums["damped"],
            held=sums["held"],
            kinetic=kinetic,
            potential=potential,
            elastic=sums["elastic"],
        )

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
