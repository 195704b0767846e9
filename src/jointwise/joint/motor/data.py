"""Data of a payload identification: pairs of logs of the same motion, without and with a payload, on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.interpolate import CubicSpline
from scipy.ndimage import maximum_filter1d
from scipy.optimize import minimize_scalar

from jointwise.data.conditioning import clean_log, resample, uniform_times
from jointwise.data.filters import differences, low_pass
from jointwise.data.log import Log, log_list
from jointwise.description.robot import Robot
from jointwise.errors import DataError, EstimationError
from jointwise.estimation.jackknife import BLOCK_DURATION, MIN_BLOCKS, recording_blocks
from jointwise.joint.checks import MIN_TRAVEL
from jointwise.joint.record import refuse_faulty
from jointwise.model.friction import direction
from jointwise.model.rigid import compute_regressor, inverse_dynamics
from jointwise.spatial import Array

CUTOFF = 5.0
"""Cut-off frequency (Hz) of positions and currents: a payload acts slowly, ripple and noise do not matter."""
MAX_RATE = 200.0
"""Highest rate (Hz) of the common clock: forty times the cut-off frequency."""
MAX_MISMATCH = (0.005, 0.01)
"""Largest rms difference of two motions: rad, plus a fraction of the standard deviation of the position."""
MIN_OVERLAP = 0.5
"""Fraction of the shorter log that both must cover."""
SLOW = 0.02
"""Speed (rad/s) below which the sign of friction is uncertain; such samples are left out."""
REVERSAL_TIME = 0.05
"""Time (s) around slow samples that is left out as well: the two runs turn back at slightly different times."""
DIRECTION_WIDTH = 0.01
"""Speed (rad/s) over which the direction of friction changes its sign: half of `SLOW`, so that used samples have it."""
MIN_DIFFERENCE = 1e-3
"""Difference of the currents (A rms) below which no payload was carried."""
MIN_MOVING = 0.05
"""Fraction of the samples in which every joint must move."""
BODY = 9
"""Unknown parameters of the payload: six of its inertia tensor, three first moments."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A motion recorded twice; arrays (samples, joints), filtered alike, in rad, rad/s, rad/s², A.

    Attributes:
        names: Files without and with payload.
        rate: Rate of the common clock, Hz.
        offset: Delay of the motion in the loaded log, s.
        mismatch: Difference of the two motions (joints,), rad rms.
        before: Motion (q, q̇, q̈) without payload.
        after: Motion with payload.
        unloaded: Currents without payload.
        loaded: Currents with payload.

    """

    names: tuple[str, str]
    rate: float
    offset: float
    mismatch: Array
    before: tuple[Array, Array, Array]
    after: tuple[Array, Array, Array]
    unloaded: Array
    loaded: Array

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.loaded)

    @property
    def difference(self) -> Array:
        """Current with minus current without payload (samples, joints), A."""
        result: Array = self.loaded - self.unloaded
        return result

    @property
    def speed(self) -> Array:
        """Mean speed of the two runs (samples, joints), rad/s."""
        result: Array = 0.5 * (self.before[1] + self.after[1])
        return result


@dataclass(frozen=True, eq=False)
class PayloadData:
    """Signals of all pairs that do not depend on the unknown payload; arrays (samples, joints).

    Attributes:
        mass: Mass of the payload, kg.
        names: Files.
        difference: Current with minus current without payload, A.
        direction: Direction of motion, -1 to 1.
        speed: Mean speed of the two runs, rad/s.
        pair: Number of the pair, (samples,).
        block: Number of the jackknife block, (samples,).
        used: Samples in motion.
        base: Load of the links without payload, Nm.
        known: ``m a + Δ``, Nm: torque of the known mass at the flange, and of the difference of the two motions.
        body: B (samples, joints, 9), Nm per unit of the unknown parameters of the payload.

    """

    mass: float
    names: tuple[str, ...]
    difference: Array
    direction: Array
    speed: Array
    pair: NDArray[np.intp]
    block: NDArray[np.intp]
    used: NDArray[np.bool_]
    base: Array
    known: Array
    body: Array

    @property
    def joints(self) -> int:
        """Number of joints."""
        return int(self.difference.shape[1])

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self.block.max()) + 1


def payload_data(pairs: list[Pair], robot: Robot, mass: float, gravity: Array) -> PayloadData:
    """Return the signals of pairs for a payload of a mass (kg) under a gravity (3,), m/s²; check that they show it."""
    torques = [_torques(pair, robot, mass, gravity) for pair in pairs]
    base, known, body = (np.concatenate(arrays) for arrays in zip(*torques, strict=True))
    speed = np.concatenate([pair.speed for pair in pairs])
    data = PayloadData(
        mass=mass,
        names=tuple(dict.fromkeys(name for pair in pairs for name in pair.names)),
        difference=np.concatenate([pair.difference for pair in pairs]),
        direction=direction(speed, DIRECTION_WIDTH),
        speed=speed,
        pair=np.repeat(np.arange(len(pairs)), [pair.samples for pair in pairs]),
        block=recording_blocks([(pair.samples, pair.samples / pair.rate) for pair in pairs]),
        used=np.concatenate([_moving(pair.speed, pair.rate) for pair in pairs]),
        base=base,
        known=known,
        body=body,
    )
    _check_payload(data)
    return data


def _moving(speed: Array, rate: float) -> NDArray[np.bool_]:
    """Return which samples (samples, joints) are in motion and away from reversals, whose pulses the filter spreads."""
    slow = np.abs(speed) <= SLOW
    moving: NDArray[np.bool_] = ~maximum_filter1d(slow, 2 * int(REVERSAL_TIME * rate) + 1, axis=0)
    return moving


def _torques(pair: Pair, robot: Robot, mass: float, gravity: Array) -> tuple[Array, Array, Array]:
    """Return the load of the links, the known part ``m a + Δ`` (samples, joints) and B (samples, joints, 9), Nm."""
    before, after = (inverse_dynamics(robot, *motion, gravity=gravity) for motion in (pair.before, pair.after))
    last = compute_regressor(robot, *pair.after, gravity=gravity).matrices()[:, :, -BODY - 1 :]
    links = before - robot.rotor_inertias * pair.before[2]  # rotors load the motor, not the gear
    return links, mass * last[:, :, BODY] + after - before, last[:, :, :BODY]


def _check_payload(data: PayloadData) -> None:
    where = ", ".join(data.names)
    if np.sqrt(np.mean(data.difference**2)) < MIN_DIFFERENCE:
        raise EstimationError(f"{where}: the currents of both logs are the same: neither or both carry the payload.")
    if data.blocks < MIN_BLOCKS:
        raise EstimationError(
            f"{where}: too short: {data.blocks} blocks of {BLOCK_DURATION:g} s. At least {MIN_BLOCKS} are needed."
        )
    for j, used in enumerate(data.used.T):
        if used.mean() < MIN_MOVING:
            raise EstimationError(f"{where}: joint {j + 1} stands; gains from a payload need a motion of all joints.")


# -- alignment -------------------------------------------------------------------------------------------------------


def aligned_pairs(
    unloaded: Log | Sequence[Log], loaded: Log | Sequence[Log], robot: Robot, cutoff: float
) -> list[Pair]:
    """Return logs without and with the payload in pairs, filtered at a cut-off frequency (Hz)."""
    first, second = log_list(unloaded), log_list(loaded)
    if not first or len(first) != len(second):
        raise EstimationError(
            f"every log without payload must have one with it. Got {len(first)} without and {len(second)} with it."
        )
    for log in (*first, *second):
        refuse_faulty(log, robot)
    return [align_pair(a, b, cutoff) for a, b in zip(first, second, strict=True)]


def align_pair(unloaded: Log, loaded: Log, cutoff: float = CUTOFF) -> Pair:
    """Return two logs of the same motion on the clock of the first.

    Args:
        unloaded: Log without payload.
        loaded: Log with payload.
        cutoff: Cut-off frequency of positions and currents, Hz.

    Raises:
        DataError: Without currents, or with different joints.
        EstimationError: Where nothing moves, or the motions differ.

    """
    first, second = (_longest_segment(log) for log in (unloaded, loaded))
    names = (unloaded.origin.path, loaded.origin.path)
    if first.joints != second.joints:
        raise DataError(f"{names[1]}: {second.joints} joints, {first.joints} in {names[0]}.")
    if np.ptp(first.q, axis=0).max() < MIN_TRAVEL:
        raise EstimationError(f"{names[0]}: nothing moves; gains from a payload need a motion of all joints.")
    rate = min(MAX_RATE, *(1.0 / float(np.median(np.diff(log.t))) for log in (first, second)))
    offset = find_offset(first.t, first.q, second.t, second.q, rate)
    t = _common_times(first.t, second.t, offset, rate)
    positions = resample(first.t, first.q, t), resample(second.t, second.q, t + offset)
    mismatch = np.sqrt(np.mean((positions[0] - positions[1]) ** 2, axis=0))
    _check_same_motion(names, mismatch, positions[0])
    currents = [resample(log.t, log.channel("current"), t + s) for log, s in ((first, 0.0), (second, offset))]
    before, after = (_motion(q, cutoff, rate) for q in positions)
    unloaded_current, loaded_current = (low_pass(current, cutoff, rate) for current in currents)
    return Pair(names, rate, offset, mismatch, before, after, unloaded_current, loaded_current)


def find_offset(t: Array, q: Array, other_t: Array, other_q: Array, rate: float) -> float:
    """Return the s for which ``other(t + s)`` is nearest to ``q(t)`` in the mean square, to a fraction of a sample."""
    grid, other_grid = uniform_times(t, rate), uniform_times(other_t, rate)
    shift = _coarse_shift(resample(t, q, grid), resample(other_t, other_q, other_grid))
    start = other_grid[0] - grid[0] + shift / rate
    spline, other = CubicSpline(t, q), CubicSpline(other_t, other_q)
    times = _common_times(t, other_t, start, rate, margin=2.0 / rate)

    def distance(s: float) -> float:
        return float(np.mean((spline(times) - other(times + s)) ** 2))

    around = (start - 1.5 / rate, start + 1.5 / rate)
    return float(minimize_scalar(distance, bounds=around, method="bounded", options={"xatol": 1e-4 / rate}).x)


def _coarse_shift(a: Array, b: Array) -> int:
    """Return the shift k with the least mean of ``(a[i] - b[i + k])²`` over the samples that overlap."""
    middle = a.mean(axis=0)
    a, b = a - middle, b - middle
    n, m = len(a), len(b)
    length = next_fast_len(n + m, real=True)
    spectrum = (np.conj(rfft(a, length, axis=0)) * rfft(b, length, axis=0)).sum(axis=1)
    shifts = np.arange(-n + 1, m)
    cross = irfft(spectrum, length)[shifts]
    first, last = np.maximum(0, -shifts), np.minimum(n, m - shifts)
    power_a, power_b = (np.append(0.0, np.cumsum((x**2).sum(axis=1))) for x in (a, b))
    total = power_a[last] - power_a[first] + power_b[last + shifts] - power_b[first + shifts] - 2.0 * cross
    overlap = last - first
    enough = overlap >= MIN_OVERLAP * min(n, m)
    return int(shifts[np.argmin(np.where(enough, total / np.maximum(overlap, 1), np.inf))])


def _common_times(t: Array, other_t: Array, offset: float, rate: float, margin: float = 0.0) -> Array:
    """Return times of the first clock at which both logs have samples."""
    begin = max(t[0], other_t[0] - offset) + margin
    end = min(t[-1], other_t[-1] - offset) - margin
    return uniform_times(np.array([begin, end]), rate)


def _motion(q: Array, cutoff: float, rate: float) -> tuple[Array, Array, Array]:
    smooth = low_pass(q, cutoff, rate)
    return smooth, *differences(smooth, rate)


def _longest_segment(log: Log) -> Log:
    """Return the longest segment of a log without a gap in its clock."""
    log.channel("current")
    clean = clean_log(log)
    longest = max(clean.segments, key=lambda part: part.stop - part.start)
    return log.take(clean.kept[longest], "longest segment")


def _check_same_motion(names: tuple[str, str], mismatch: Array, q: Array) -> None:
    constant, fraction = MAX_MISMATCH
    allowed = constant + fraction * q.std(axis=0)
    if (mismatch > allowed).any():
        joint = int(np.argmax(mismatch / allowed))
        raise EstimationError(
            f"{names[0]} and {names[1]}: not the same motion: joint {joint + 1} differs by {mismatch[joint]:.3g} rad "
            f"rms, more than {allowed[joint]:.2g}. Record the same program twice, without and with the payload."
        )
