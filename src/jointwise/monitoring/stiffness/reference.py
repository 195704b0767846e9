"""The stiffness estimate in NumPy: the readable form of the native kernel, and what tests compare it with.

Samples are taken in blocks of 0.25 s, within which the variances of the two sides are constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jointwise.estimation.recursive import RecursiveState
from jointwise.joint.laws import JointMotion
from jointwise.model.terms import slip_elements
from jointwise.monitoring.stiffness.estimate import TERMS, powers
from jointwise.monitoring.stiffness.estimator import HARMONICS, HEAD, REACH, StiffnessEstimator, StiffnessTrace
from jointwise.monitoring.stiffness.signals import Flags, JointSignals
from jointwise.runtime.observers import FusionState
from jointwise.spatial import Array


@dataclass(frozen=True, eq=False)
class _Parts:
    """The numbers of a `StiffnessState` by name.

    Attributes:
        samples: Samples so far.
        used: Samples in use.
        largest: Largest deflection in use, rad.
        errors: Sums of (φ ε)², of the squares of its sums over blocks, and its sum in the present block.
        shares: Shares of motor side and link side in the present block.
        fusion: Differences of the sides.
        lost_motion: State of the lost motion.
        recursion: Values and covariance.
        friction: State of the hysteresis.

    """

    samples: int
    used: int
    largest: float
    errors: tuple[float, float, float]
    shares: Array
    fusion: FusionState
    lost_motion: Array
    recursion: RecursiveState
    friction: Array

    @classmethod
    def of(cls, numbers: Array, n: int) -> _Parts:
        """Return the parts of the numbers of a state with n parameters."""
        samples, used, largest, squares, sums, products = numbers[:6].tolist()
        end = HEAD + n * (n + 1) + 5
        return cls(
            int(samples), int(used), largest, (squares, sums, products), numbers[6:8],
            FusionState(*numbers[8:20].reshape(4, 3)), numbers[20:HEAD], RecursiveState.of(numbers[HEAD:end], n),
            numbers[end:],
        )  # fmt: skip

    @property
    def numbers(self) -> Array:
        """The numbers of the state."""
        f, head = self.fusion, np.array([self.samples, self.used, self.largest, *self.errors])
        sums = (f.squares, f.weights, f.averages, f.counts)
        return np.concatenate([head, self.shares, *sums, self.lost_motion, self.recursion.numbers, self.friction])


class _Block(NamedTuple):
    """Samples of a block: φ, columns of the gear, τ_E of both sides, friction, and which samples are usable."""

    phi: Array
    gear: Array
    torques: Array
    friction: Array
    usable: Flags

    def part(self, rows: slice) -> _Block:
        """Return some of the samples."""
        phi, gear, torques, friction, usable = self
        return _Block(phi[rows], gear[rows], torques[rows], friction[rows], usable[rows])


@dataclass(frozen=True)
class StiffnessReference:
    """An estimator in NumPy."""

    estimator: StiffnessEstimator

    def steps(self, numbers: Array, signals: JointSignals, links: Array | None) -> tuple[StiffnessTrace, Array]:
        """Return the trace of consecutive samples and the numbers of the state after the last.

        Args:
            numbers: Numbers of a `StiffnessState`.
            signals: Filtered signals.
            links: Torque that the links require of the joint, (samples,), Nm; None where it is not known.

        """
        parts = _Parts.of(numbers, self.estimator.recursion.count)
        torques, friction, hysteresis = self.torques(parts.friction, signals, links)
        phi, gear, lost_motion = self._columns(parts.lost_motion, signals)
        parts = replace(parts, friction=hysteresis, lost_motion=lost_motion)
        whole = _Block(phi, gear, torques, friction, signals.usable > 0.0)
        traces, first, size = [], 0, self.estimator.block
        while first < len(phi):  # blocks begin at multiples of their size since the start
            last = min(first + size - parts.samples % size, len(phi))
            trace, parts = self._block(parts, whole.part(slice(first, last)))
            parts = parts if parts.samples % size else self._end_block(parts)
            traces.append(trace)
            first = last
        return StiffnessTrace(*(np.concatenate(pieces) for pieces in zip(*traces, strict=True))), parts.numbers

    def torques(self, state: Array, x: JointSignals, links: Array | None) -> tuple[Array, Array, Array]:
        """Return τ_E of both sides (samples, 2), NaN where there is none, friction (samples,) and its state."""
        joint, (_, rate) = self.estimator.joint, x.deflection
        load = self._load(x) if links is None else links
        motion = JointMotion(x.theta, x.speed, load, 1.0 / self.estimator.rate, temperature=x.temperature)
        friction, _, state = joint.friction.torque(state, motion)
        damped = joint.damping * rate
        motor = joint.motor_torque(x.current, x.acceleration, friction) - damped
        link = np.full_like(motor, np.nan) if links is None else joint.link_torque(links, friction) - damped
        return np.stack([motor, link], axis=1), friction, state

    def _load(self, x: JointSignals) -> Array:
        """Return the torque for friction that grows with the load, where no model of the links is there."""
        joint = self.estimator.joint
        steady = joint.friction.steady
        friction = np.zeros_like(x.speed) if steady is None else steady.torque(x.speed, 0.0, x.temperature)
        return joint.motor_torque(x.current, x.acceleration, friction)

    def _columns(self, state: Array, x: JointSignals) -> tuple[Array, Array, Array]:
        """Return the deflection, the columns of the gear (samples, columns), and the state of the lost motion."""
        maps, ones, (phi, _) = self.estimator.joint.maps, np.ones(len(x.theta)), x.deflection
        lag, state = slip_elements(x.theta, np.array([REACH if maps is None else maps.least_reach]), state)
        if maps is not None:
            phi = phi - maps.error(x.theta) - maps.backlash(x.theta) * lag[:, 0] - maps.offset
            return phi, ones[:, None], state
        waves = [wave(order * x.theta) for order in HARMONICS for wave in (np.sin, np.cos)]
        return phi, np.concatenate([np.stack([ones, *waves], axis=1), lag], axis=1), state

    def _block(self, parts: _Parts, block: _Block) -> tuple[StiffnessTrace, _Parts]:
        """Return the trace of a block and the state after it.

        Each side in use is a measurement of its own with its share as the weight.
        """
        estimator, phi = self.estimator, block.phi
        s, sides = estimator.joint.link_share, estimator.sides
        used = block.usable & np.isfinite(block.torques[:, sides]).all(axis=1)
        by_side = block.friction[:, None] * (1.0 - s, -s)  # of x in the τ_E of both sides
        common = np.concatenate([powers(phi), np.zeros((len(phi), 1)), block.gear], axis=1)
        rows = common.repeat(len(sides), axis=0)
        rows[:, TERMS] = by_side[:, sides].ravel()
        weights = used[:, None] * parts.shares[sides]
        y = block.torques[:, sides].ravel()
        _, values, recursion = estimator.recursion.run(parts.recursion, rows, y, weights.ravel())
        after = values[len(sides) - 1 :: len(sides)]
        before = np.concatenate([parts.recursion.values[None], after[:-1]])
        torques = block.torques - before[:, [TERMS]] * by_side
        measured = np.where(parts.shares > 0.0, torques, 0.0) @ parts.shares  # a side without a share may be missing
        trace = StiffnessTrace(after[:, :TERMS], measured, np.sum(common * before, axis=1), phi, used)
        return trace, self._after(replace(parts, recursion=recursion), trace, torques)

    def _after(self, parts: _Parts, trace: StiffnessTrace, torques: Array) -> _Parts:
        """Return the state after a block: differences of the sides (samples, 2), sums of errors, samples in use."""
        phi, fusion = trace.phi[trace.used], parts.fusion
        if self.estimator.side == "fused":
            known = np.concatenate([torques, trace.predicted[:, None]], axis=1)
            known[~trace.used] = np.nan
            fusion = self.estimator.fusion.observe(fusion, known)
        return replace(
            parts,
            samples=parts.samples + len(trace.phi),
            used=parts.used + len(phi),
            largest=max(parts.largest, float(np.abs(phi).max(initial=0.0))),
            errors=self._error_sums(parts.errors, phi * (trace.measured - trace.predicted)[trace.used]),
            fusion=fusion,
        )

    def _end_block(self, parts: _Parts) -> _Parts:
        squares, sums, products = parts.errors
        shares = parts.shares
        if self.estimator.side == "fused":
            weights = 1.0 / self.estimator.fusion.variances_of(parts.fusion)[:2]
            shares = weights / weights.sum()
        return replace(parts, shares=shares, errors=(squares, sums + products**2, 0.0))

    def _error_sums(self, sums: tuple[float, float, float], products: Array) -> tuple[float, float, float]:
        """Return the sums of `_Parts.errors` after some φ ε, with the memory of the recursion."""
        count = len(products)
        decay = self.estimator.remains ** np.arange(count, -1.0, -1.0)  # of the sums before, then of every product
        squares = float(decay[0] * sums[0] + decay[1:] @ np.square(products))
        return squares, float(decay[0] * sums[1]), sums[2] + float(products.sum())
