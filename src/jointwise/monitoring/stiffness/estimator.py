"""Recursive estimate of the stiffness of a joint with two encoders while it moves.

A virtual measurement of the flexibility torque τ_E comes from the motor side, ``K_τ i - B θ̈ - f - D φ̇``, from the link
side, ``M q̈ + C q̇ + g - D φ̇``, or from both, weighted by their inverse variances. Recursive least squares with
directional forgetting fits ``τ_E = a_1 φ + a_2 φ³`` to it. Errors of the gear are part of the measured deflection
θ - q: where the joint file has no maps of them, columns for the zero of the encoders, the first two harmonics of the
kinematic error and the lost motion are estimated along with the spring. So is the relative change x of the friction
since it was identified, by wear or temperature: a friction (1 + x) f adds x f to τ_E of the motor side. Samples at
angles that the maps do not cover are not used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np

from jointwise.arguments import checked_fields
from jointwise.backend import native
from jointwise.call_settings import Side, Variant
from jointwise.errors import EstimationError
from jointwise.estimation.recursive import RecursiveLeastSquares, RecursiveState
from jointwise.joint.record import LoadModel
from jointwise.model.terms import slip_state
from jointwise.monitoring.stiffness.estimate import TERMS, StiffnessEstimate
from jointwise.monitoring.stiffness.signals import Flags, JointSamples, SignalPath, SignalState
from jointwise.runtime.observers import ObservedJoint, TorqueFusion
from jointwise.runtime.observers.fusion import LEAST_SHARE, SETTLING
from jointwise.spatial import Array

SIDES: tuple[Side, ...] = get_args(Side)

PRIOR = (1e9, 1e18)
"""Diagonal of P(0) for a_1 and a_2, SI: any stiffness of a robot's joint is possible."""
FLOOR = 0.3
"""δ of a_1 at 1 kHz: a memory 1/(√δ φ_rms) of about 2 s of motion at 1 mrad. More is more alert and less certain: 25 s
after the signal was halved the curve was 94.2 % right (0.6: 96.7, 0.1: 91.0), while the interval of a recording with
jitter of 0.2 ms was 24 % (0.6: 29, 0.1: 19)."""
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
    """An estimate sample by sample; all belong to the motion `delay` samples ago.

    Attributes:
        values: a_1 (Nm/rad) and a_2 (Nm/rad³), (samples, 2).
        measured: τ_E from the signals, (samples,), Nm.
        predicted: τ_E of the estimate, (samples,), Nm.
        phi: Deflection without the known errors of the gear, (samples,), rad.
        used: Whether a sample was used, (samples,).
    """

    values: Array
    measured: Array
    predicted: Array
    phi: Array
    used: Flags


HEAD = 22
"""Numbers of a state before recursion and friction: samples, samples in use, largest deflection, three sums of errors,
shares of motor and link side, four sums by pair of sides, lag of the lost motion and its last position."""


@dataclass(frozen=True, eq=False)
class StiffnessState:
    """State of a `StiffnessEstimator` between samples.

    Attributes:
        signals: State of the signal path.
        numbers: State of the estimate as the native kernel stores it: the `HEAD`, then the recursion, then the memory
            of the friction; a step does not change it.
        columns: Parameters of the recursion.

    """

    signals: SignalState
    numbers: Array
    columns: int

    @property
    def used(self) -> int:
        """Samples in use."""
        return int(self.numbers[1])

    @property
    def largest(self) -> float:
        """Largest deflection in use, rad."""
        return float(self.numbers[2])

    @property
    def errors(self) -> tuple[float, float]:
        """Sums of (φ ε)² and of the squares of its sums over blocks."""
        return float(self.numbers[3]), float(self.numbers[4])

    @property
    def recursion(self) -> RecursiveState:
        """Values and covariance."""
        return RecursiveState.of(self.numbers[HEAD : HEAD + recursion_size(self.columns)], self.columns)

    @property
    def dropped(self) -> int:
        """Faulty samples: not finite, jumping or frozen."""
        return self.signals.dropped + self.recursion.rejected


def recursion_size(columns: int) -> int:
    """Return how many numbers the state of a recursion has."""
    return columns * (columns + 1) + 5


@checked_fields
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
        step = 1000.0 / (self.rate * len(self.sides))  # of a row, relative to one of 1 kHz
        period = max(1, round(10.0 * self.rate * len(self.sides)))
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
    def fusion(self) -> TorqueFusion:
        """Variances of motor side, link side and prediction from their differences."""
        return TorqueFusion(3, self.rate, averaging=AVERAGING)

    @property
    def block(self) -> int:
        """Samples for which the shares of the sides are constant."""
        return max(1, round(BLOCK * self.rate))

    @property
    def remains(self) -> float:
        """Share of the sums of errors that remains after a sample in use: the memory of the recursion."""
        return float(self.memory ** (1000.0 / self.rate))

    @cached_property
    def sides(self) -> list[int]:
        """Columns of the sides in use: motor, link."""
        return [0, 1] if self.side == "fused" else [SIDES.index(self.side)]

    @cached_property
    def packed(self) -> Array:
        """The settings as `stiffness_options` of the native kernel."""
        path, joint, fusion, recursion = self.path, self.joint, self.fusion, self.recursion
        head = [path.filter.channels, path.link, path.temperature, 0 in self.sides, 1 in self.sides, self.block]
        drive = [joint.link_share, joint.gain, joint.inertia, joint.damping]
        sums = [self.remains, *fusion.decays, SETTLING * self.rate, LEAST_SHARE]
        gear = [0.0, REACH, len(HARMONICS), *HARMONICS] if joint.maps is None else [1.0, *joint.maps.packed()]
        last = [*recursion.options, recursion.count, *recursion.prior, *np.atleast_1d(recursion.floor)]
        friction = joint.friction.packed(1.0 / self.rate)
        return np.array([*head, *drive, *sums, *friction, *gear, *last], dtype=np.float64)

    def init(self, samples: JointSamples, before: StiffnessState | None = None) -> StiffnessState:
        """Return the state before the first of some samples.

        Args:
            samples: Samples that follow; the first must be finite.
            before: State before a gap: its estimate is kept, filters and hysteresis start again.

        """
        signals, theta, end = self.path.init(samples), float(samples.theta[0]), HEAD - 2
        head, recursion = np.zeros(end), self.recursion.init().numbers
        head[6:8] = [0.5, 0.5] if self.side == "fused" else [self.side == "motor", self.side == "link"]
        if before is not None:
            head[1:], recursion = before.numbers[1:end], before.numbers[HEAD : HEAD + len(recursion)]
            signals.numbers[-1] = before.signals.dropped
        memory = self.joint.friction.init(theta)
        numbers = np.concatenate([head, slip_state(theta, 1), recursion, memory])
        return StiffnessState(signals, numbers, self.recursion.count)

    def step(self, state: StiffnessState, samples: JointSamples) -> tuple[StiffnessTrace, StiffnessState]:
        """Return the trace of one sample, arrays of length 1, and the state after it."""
        return self.steps(state, samples)

    def steps(self, state: StiffnessState, samples: JointSamples) -> tuple[StiffnessTrace, StiffnessState]:
        """Return the trace of consecutive samples and the state after the last; parts of a run equal the whole run."""
        signals, after = self.path.steps(state.signals, samples)
        if self.joint.maps is not None and not self.joint.maps.is_whole:
            signals = replace(signals, usable=signals.usable * self.joint.maps.covers(signals.theta))
        links = None
        if self.links is not None:
            links = np.ascontiguousarray(self.links(*signals.links)[:, self.index])
        if (kernel := native()) is None:
            from jointwise.monitoring.stiffness.reference import StiffnessReference

            trace, numbers = StiffnessReference(self).steps(state.numbers, signals, links)
            return trace, StiffnessState(after, numbers, state.columns)
        numbers, out = state.numbers.copy(), np.empty((len(samples), 6))
        kernel.stiffness_steps(self.packed, numbers, signals.filtered, signals.usable, links, out)
        trace = StiffnessTrace(out[:, :TERMS], out[:, 2], out[:, 3], out[:, 4], out[:, 5] > 0.0)
        return trace, StiffnessState(after, numbers, state.columns)

    def estimate(self, state: StiffnessState) -> StiffnessEstimate:
        """Return the curve and its uncertainty.

        The covariance is σ² P times ``Σ_b (Σ φ ε)² / Σ (φ ε)²``, sums over blocks b of time: 1 for white errors, more
        for errors that last.
        """
        squares, sums = state.errors
        recursion = state.recursion
        noise = recursion.noise * (max(sums / squares, 1.0) if squares > 0.0 else 1.0)
        covariance = recursion.covariance[:TERMS, :TERMS]
        spread = np.full((TERMS, TERMS), np.inf) if not math.isfinite(noise) else noise * covariance
        return StiffnessEstimate(recursion.values[:TERMS].copy(), spread, state.largest)

    def outside(self, theta: Array) -> int:
        """Return how many rotor positions (samples,), rad, the gear maps do not cover; these samples are not used."""
        maps = self.joint.maps
        return 0 if maps is None else int(np.count_nonzero(np.isfinite(theta) & ~maps.covers(theta)))

    def friction_change(self, state: StiffnessState) -> float:
        """Return the relative change of the friction since it was identified; 0 where the side does not see it."""
        return float(state.recursion.values[TERMS])
