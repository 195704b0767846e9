"""Recursive estimate of the stiffness of a joint with two encoders while it moves.

A virtual measurement of the flexibility torque τ_E comes from the motor side, ``K_τ i - B θ̈ - f - D φ̇``, from the link
side, ``M q̈ + C q̇ + g - D φ̇``, or from both, weighted by their inverse variances. Recursive least squares with
directional forgetting fits ``τ_E = a_1 φ + a_2 φ³`` to it. Errors of the gear are part of the measured deflection
θ - q: where the joint file has no maps of them, columns for the zero of the encoders, the first two harmonics of the
kinematic error and the lost motion are estimated along with the spring. So is the relative change x of the friction
since it was identified, by wear or temperature: a friction (1 + x) f adds x f to τ_E of the motor side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np

from jointwise.errors import EstimationError
from jointwise.estimation.recursive import RecursiveLeastSquares, RecursiveState, Variant
from jointwise.joint.hysteresis.law import JointMotion
from jointwise.joint.record import LoadModel
from jointwise.model.friction import slip_elements, slip_state
from jointwise.monitoring.stiffness.estimate import TERMS, StiffnessEstimate, powers
from jointwise.monitoring.stiffness.signals import Flags, JointSamples, JointSignals, SignalPath, SignalState
from jointwise.runtime.observers import FusionState, ObservedJoint, TorqueFusion
from jointwise.spatial import Array

Side = Literal["motor", "link", "fused"]
SIDES: tuple[Side, ...] = get_args(Side)

PRIOR = (1e9, 1e18)
"""Diagonal of P(0) for a_1 and a_2, SI: any stiffness of a robot's joint is possible."""
FLOOR = 0.3
"""δ of a_1 at 1 kHz: a memory of about 2 s of motion at 1 mrad."""
GEAR_PRIOR = 1e4
"""P(0) of the gear's columns: errors of up to some mrad times the stiffness of a large joint are possible, Nm²."""
TYPICAL = 2e-3
"""Large deflection (rad) of a strain-wave gear at work; scales the floors of a_2 and of the gear's columns to that of
a_1, so that all of them are forgotten alike."""
FRICTION_PRIOR = 10.0
"""P(0) of the relative change of friction: it may well double."""
TYPICAL_FRICTION = 10.0
"""Friction (Nm) of a large joint; scales the floor of its relative change."""
HARMONICS = (1, 2)
"""Orders of the kinematic error (1/turn) that are estimated where no map is known."""
REACH = math.pi / 100.0
"""Travel (rad) in which lost motion builds up where no map is known: half a turn of the motor at a ratio of 100."""
BLOCK = 0.25
"""Time (s) for which the variances of the two sides stay constant, and over which errors are summed to see whether they
last: longer than the noise of the encoders and the vibration of a joint."""
AVERAGING = 0.1
"""Time (s) over which differences of the sides are averaged: noise of differentiated encoders is shorter and averages
out in the estimate, errors of the friction last longer and do not."""


class StiffnessTrace(NamedTuple):
    """Samples of an estimate: `values` a (samples, 2), τ_E `measured` and `predicted` (samples,) Nm, `used` flags.

    `phi` is the deflection (samples,), rad, without the known errors of the gear. All belong to the motion `delay`
    samples ago.
    """

    values: Array
    measured: Array
    predicted: Array
    phi: Array
    used: Flags


@dataclass(frozen=True, eq=False)
class StiffnessState:
    """State of a `StiffnessEstimator` between samples.

    Attributes:
        signals: State of the signal path.
        recursion: Values and covariance.
        friction: State of the hysteresis.
        lost_motion: State of the lost motion.
        fusion: Differences of the sides.
        shares: Shares of motor side and link side in the present block.
        errors: Sums of (φ ε)², of the squares of its sums over blocks, and its sum in the present block.
        largest: Largest deflection in use, rad.
        used: Samples in use.

    """

    signals: SignalState
    recursion: RecursiveState
    friction: Array
    lost_motion: Array
    fusion: FusionState
    shares: Array
    errors: tuple[float, float, float] = (0.0, 0.0, 0.0)
    largest: float = 0.0
    used: int = 0

    @property
    def dropped(self) -> int:
        """Faulty samples: not finite, jumping or frozen."""
        return self.signals.dropped + self.recursion.rejected


@dataclass(frozen=True, eq=False)
class StiffnessEstimator:
    """Online stiffness of one joint; `init`, `step` or `steps`, then `estimate`.

    Attributes:
        joint: The joint with its friction, drive and, where known, gear maps.
        index: Its index, from 0.
        joints: Number of joints of the robot.
        rate: Sampling rate, Hz.
        links: Torque that the links require; None for the motor side alone.
        side: "motor", "link" or "fused".
        variant: How old samples are forgotten, see `estimation.recursive`.
        memory: μ or λ of the variant for a sample at 1 kHz.
        floor: δ of a_1, the increment of its variance with every sample at 1 kHz, SI.
        temperature: Whether samples have temperatures.

    """

    joint: ObservedJoint
    index: int
    joints: int
    rate: float
    links: LoadModel | None = None
    side: Side = "motor"
    variant: Variant = "directional-floor"
    memory: float = 0.99995
    floor: float = FLOOR
    temperature: bool = False

    def __post_init__(self) -> None:
        """Reject a side that cannot be evaluated."""
        if self.side not in SIDES:
            raise EstimationError(f"side must be one of {', '.join(SIDES)}. Got '{self.side}' instead.")
        if self.side != "motor" and self.links is None:
            raise EstimationError(f"side '{self.side}' needs a model of the links. Got none: give links, or use motor.")

    @cached_property
    def path(self) -> SignalPath:
        """Conditioning of the signals."""
        return SignalPath(self.index, self.joints, self.rate, self.temperature)

    @cached_property
    def recursion(self) -> RecursiveLeastSquares:
        """The recursive least squares of a_1, a_2, x and the gear's columns."""
        gear = 1 + (0 if self.joint.maps is not None else 2 * len(HARMONICS) + 1)
        share = self.floor * TYPICAL**2
        floors = [self.floor, self.floor / TYPICAL**4, share / TYPICAL_FRICTION**2, *[share] * gear]
        step = 1000.0 / (self.rate * len(self._sides))  # of a row, relative to one of 1 kHz
        period = max(1, round(10.0 * self.rate * len(self._sides)))
        return RecursiveLeastSquares(
            np.array([*PRIOR, FRICTION_PRIOR, *[GEAR_PRIOR] * gear]),
            self.variant,
            self.memory**step,
            np.array(floors) * step,
            period=period,
        )

    @property
    def delay(self) -> int:
        """Samples by which the trace is behind the samples."""
        return self.path.delay

    @cached_property
    def _fusion(self) -> TorqueFusion:
        """Variances of motor side, link side and prediction from their differences."""
        return TorqueFusion(3, self.rate, averaging=AVERAGING)

    def init(self, samples: JointSamples, before: StiffnessState | None = None) -> StiffnessState:
        """Return the state before the first of some samples.

        Args:
            samples: Samples that follow; the first must be finite.
            before: State before a gap: its estimate is kept, filters and hysteresis start again.

        """
        theta = float(samples.theta[0])
        state = StiffnessState(
            signals=self.path.init(samples),
            recursion=self.recursion.init(),
            friction=self.joint.friction.init(theta),
            lost_motion=slip_state(theta, 1),
            fusion=self._fusion.init(),
            shares=self._shares(self._fusion.init()),
        )
        if before is None:
            return state
        signals = replace(state.signals, dropped=before.signals.dropped)
        kept = {name: getattr(before, name) for name in ("recursion", "fusion", "shares", "errors", "largest", "used")}
        return replace(state, signals=signals, **kept)

    def step(self, state: StiffnessState, samples: JointSamples) -> tuple[StiffnessTrace, StiffnessState]:
        """Return the trace of one sample, arrays of length 1, and the state after it."""
        return self.steps(state, samples)

    def steps(self, state: StiffnessState, samples: JointSamples) -> tuple[StiffnessTrace, StiffnessState]:
        """Return the trace of consecutive samples and the state after the last; parts of a run equal the whole run."""
        signals, after = self.path.steps(state.signals, samples)
        torques, friction, hysteresis = self._torques(state.friction, signals)
        phi, rows, lost_motion = self._rows(state.lost_motion, signals)
        state = replace(state, signals=after, friction=hysteresis, lost_motion=lost_motion)
        traces = []
        size = max(1, round(BLOCK * self.rate))
        first, done = 0, after.filter.samples - len(samples)
        while first < len(samples):  # blocks begin at multiples of their size since the start
            last = min(first + size - (done + first) % size, len(samples))
            part = slice(first, last)
            block = _Block(phi[part], rows[part], torques[part], friction[part], signals.usable[part])
            trace, state = self._block(state, block)
            state = state if (done + last) % size else self._end_block(state)
            traces.append(trace)
            first = last
        if len(traces) == 1:
            return traces[0], state
        return StiffnessTrace(*(np.concatenate(parts) for parts in zip(*traces, strict=True))), state

    def estimate(self, state: StiffnessState) -> StiffnessEstimate:
        """Return the curve and its uncertainty.

        The covariance is σ² P times ``Σ_b (Σ φ ε)² / Σ (φ ε)²``, sums over blocks b of time: 1 for white errors, more
        for errors that last.
        """
        squares, sums, _ = state.errors
        noise = state.recursion.noise * (max(sums / squares, 1.0) if squares > 0.0 else 1.0)
        covariance = state.recursion.covariance[:TERMS, :TERMS]
        spread = np.full((TERMS, TERMS), np.inf) if not math.isfinite(noise) else noise * covariance
        return StiffnessEstimate(state.recursion.values[:TERMS].copy(), spread, state.largest)

    def friction_change(self, state: StiffnessState) -> float:
        """Return the relative change of the friction since it was identified; 0 where the side does not see it."""
        return float(state.recursion.values[TERMS])

    def _torques(self, state: Array, x: JointSignals) -> tuple[Array, Array, Array]:
        """Return τ_E of both sides (samples, 2), NaN where there is none, friction (samples,) and its state."""
        joint = self.joint
        links = None if self.links is None else self.links(x.q, x.qd, x.qdd)[:, self.index]
        load = self._load(x) if links is None else links
        path = JointMotion(x.theta, x.speed, load, 1.0 / self.rate, temperature=x.temperature)
        friction, _, state = joint.friction.torque(state, path)
        damped = joint.damping * x.phi_rate
        motor = joint.motor_torque(x.current, x.acceleration, friction) - damped
        link = np.full_like(motor, np.nan) if links is None else joint.link_torque(links, friction) - damped
        return np.stack([motor, link], axis=1), friction, state

    def _load(self, x: JointSignals) -> Array:
        """Return the torque for friction that grows with the load, where no model of the links is there."""
        steady = self.joint.friction.steady
        friction = np.zeros_like(x.speed) if steady is None else steady.torque(x.speed, 0.0, x.temperature)
        return self.joint.motor_torque(x.current, x.acceleration, friction)

    def _rows(self, state: Array, x: JointSignals) -> tuple[Array, Array, Array]:
        """Return the deflection, the columns of the gear (samples, columns), and the state of the lost motion."""
        maps, ones = self.joint.maps, np.ones(len(x.theta))
        lag, state = slip_elements(x.theta, np.array([REACH if maps is None else max(maps.reach, 1e-9)]), state)
        if maps is not None:
            phi = x.phi - maps.error(x.theta) - maps.backlash(x.theta) * lag[:, 0] - maps.offset
            return phi, ones[:, None], state
        waves = [wave(order * x.theta) for order in HARMONICS for wave in (np.sin, np.cos)]
        return x.phi, np.concatenate([np.stack([ones, *waves], axis=1), lag], axis=1), state

    def _block(self, state: StiffnessState, block: _Block) -> tuple[StiffnessTrace, StiffnessState]:
        """Return the trace of a block, within which the variances of the sides are constant, and the state after it.

        Each side in use is a measurement of its own with its share as the weight.
        """
        s, phi, used = self.joint.link_share, block.phi, self._used(block)
        by_side = block.friction[:, None] * (1.0 - s, -s)  # of x in the τ_E of both sides
        common = np.concatenate([powers(phi), np.zeros((len(phi), 1)), block.gear], axis=1)
        rows = common.repeat(len(self._sides), axis=0)
        rows[:, TERMS] = by_side[:, self._sides].ravel()
        weights = used[:, None] * state.shares[self._sides]
        y = block.torques[:, self._sides].ravel()
        _, values, recursion = self.recursion.run(state.recursion, rows, y, weights.ravel())
        after = values[len(self._sides) - 1 :: len(self._sides)]
        before = np.concatenate([state.recursion.values[None], after[:-1]])
        predicted = np.sum(common * before, axis=1)
        sides = block.torques - before[:, [TERMS]] * by_side
        measured = _weighted(sides, state.shares)
        trace = StiffnessTrace(after[:, :TERMS], measured, predicted, phi, used)
        return trace, self._after(state, recursion, trace, sides)

    def _after(
        self, state: StiffnessState, recursion: RecursiveState, trace: StiffnessTrace, sides: Array
    ) -> StiffnessState:
        """Return the state after a block: differences of the sides (samples, 2), sums of errors, samples in use."""
        used = trace.used
        phi = trace.phi[used]
        return replace(
            state,
            recursion=recursion,
            fusion=self._differences(state, trace, sides),
            errors=self._error_sums(state.errors, phi * (trace.measured - trace.predicted)[used]),
            largest=max(state.largest, float(np.abs(phi).max(initial=0.0))),
            used=state.used + len(phi),
        )

    def _differences(self, state: StiffnessState, trace: StiffnessTrace, sides: Array) -> FusionState:
        """Return the differences of the sides after a block; a single side needs none."""
        if self.side != "fused":
            return state.fusion
        known = np.concatenate([sides, trace.predicted[:, None]], axis=1)
        known[~trace.used] = np.nan
        return self._fusion.observe(state.fusion, known)

    @cached_property
    def _sides(self) -> list[int]:
        """Columns of the sides in use: motor, link."""
        return [0, 1] if self.side == "fused" else [SIDES.index(self.side)]

    def _used(self, block: _Block) -> Flags:
        """Return flags of the samples that are usable on all sides in use."""
        return np.logical_and(block.usable, np.isfinite(block.torques[:, self._sides]).all(axis=1))

    def _end_block(self, state: StiffnessState) -> StiffnessState:
        squares, sums, products = state.errors
        return replace(state, shares=self._shares(state.fusion), errors=(squares, sums + products**2, 0.0))

    def _shares(self, state: FusionState) -> Array:
        """Return the shares (2,) of motor side and link side in the virtual measurement."""
        if self.side != "fused":
            return np.array([self.side == "motor", self.side == "link"], dtype=np.float64)
        weights = 1.0 / self._fusion.variances_of(state)[:2]
        result: Array = weights / weights.sum()
        return result

    def _error_sums(self, sums: tuple[float, float, float], products: Array) -> tuple[float, float, float]:
        """Return the sums of `StiffnessState.errors` after some φ ε, with the memory of the recursion."""
        decay = float(self.memory ** (len(products) * 1000.0 / self.rate))
        return decay * sums[0] + float(products @ products), decay * sums[1], sums[2] + float(products.sum())


class _Block(NamedTuple):
    """Samples of a block: φ, columns of the gear, τ_E of both sides, friction, and which samples are usable."""

    phi: Array
    gear: Array
    torques: Array
    friction: Array
    usable: Flags


def _weighted(torques: Array, shares: Array) -> Array:
    """Return the weighted mean of the sides; a side without a share may be missing (NaN)."""
    result: Array = np.where(shares > 0.0, torques, 0.0) @ shares
    return result
