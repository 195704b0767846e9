"""The numbers of a log that its quality is judged by: clock, ranges, noise, speeds and relations between channels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jointwise.data import statistics
from jointwise.data.clock import Clock
from jointwise.data.log import Log
from jointwise.data.statistics import Flags
from jointwise.spatial import Array

JUMP_SPEED = 50.0
"""rad/s between neighbouring samples that no joint reaches."""

JUMP_SIZE = 0.3
"""rad below which a step is noise, not a jump."""

_CHUNK = 32768

COUPLING_RANGE = 0.1
"""Travel (rad) above which a joint shows whether a motor turns with it: gears deflect by some mrad."""


@dataclass(frozen=True)
class ChannelNumbers:
    """Numbers of a channel per joint, each (joints,), in the unit of the channel.

    Attributes:
        low: Least value.
        high: Greatest value.
        noise: Noise, rms.
        quantum: Quantisation step; 0 where none is seen.
        frozen: Longest run of samples that repeat a value while the joint moves.
        saturated: Share of samples that pile up at the extreme values.
    """

    low: Array
    high: Array
    noise: Array
    quantum: Array
    frozen: Array
    saturated: Array

    def to_dict(self) -> dict[str, list[float | None]]:
        """Return the numbers for JSON; null for a joint without values."""
        columns = {name: getattr(self, name).tolist() for name in self.__dataclass_fields__}
        return {name: [None if math.isnan(x) else x for x in column] for name, column in columns.items()}


@dataclass(frozen=True)
class Jump:
    """A step of a position that no joint makes.

    Attributes:
        sample: Sample after the step, 0-based.
        joint: Joint, 0-based.
        size: Size of the step, rad.
    """

    sample: int
    joint: int
    size: float


@dataclass(frozen=True)
class Measures:
    """What was measured on a log; arrays are (joints,), None where a channel is absent.

    Attributes:
        clock: How the stamps run.
        channels: Numbers of every channel.
        speed_95: 95 % quantile of the speed, rad/s.
        speed_max: Greatest speed, rad/s.
        acceleration_95: 95 % quantile of the acceleration, rad/s².
        acceleration_max: Greatest acceleration, rad/s².
        moving: Share of samples in which the joint moves.
        standstill: Share of samples in which no joint moves.
        stale: Share of samples that repeat the whole one before.
        jumps: Jumps of positions.
        speed_ratio: Slope of measured over differentiated speed.
        speed_match: Their correlation.
        theta_ratio: Slope of theta over q.
        theta_matrix: Slopes of theta over all q, (joints, joints).
        command_match: Correlation of q with q_des.
        command_offset: Their median distance, rad.
        limited: Share of samples in which a limit holds a current clearly below its target.
    """

    clock: Clock
    channels: Mapping[str, ChannelNumbers]
    speed_95: Array
    speed_max: Array
    acceleration_95: Array
    acceleration_max: Array
    moving: Array
    standstill: float
    stale: float
    jumps: tuple[Jump, ...]
    speed_ratio: Array | None
    speed_match: Array | None
    theta_ratio: Array | None
    theta_matrix: Array | None
    command_match: Array | None
    command_offset: Array | None
    limited: Array | None

    @property
    def travel(self) -> Array:
        """Range of each position, rad, (joints,)."""
        return self.channels["q"].high - self.channels["q"].low

    @property
    def moved(self) -> Flags:
        """True for joints that moved at all, (joints,)."""
        return self.travel > statistics.STILL_RANGE


def measure(log: Log) -> Measures:
    """Return the numbers of a log."""
    clock = log.clock
    parts = [statistics.motion(part, clock.period) for part in statistics.windows(log)]
    speed = np.abs(np.concatenate([part.speed for part in parts]))
    acceleration = np.abs(np.concatenate([part.acceleration for part in parts]))
    moving = speed > statistics.MOVING_SPEED
    speed_ratio, speed_match = _speeds(parts)
    command_match, command_offset = _commanded(parts)
    measures = Measures(
        clock=clock,
        channels={name: _channel(log, name, parts) for name in log.available[1:]},
        speed_95=np.quantile(speed, 0.95, axis=0),
        speed_max=speed.max(axis=0),
        acceleration_95=np.quantile(acceleration, 0.95, axis=0),
        acceleration_max=acceleration.max(axis=0),
        moving=moving.mean(axis=0),
        standstill=float((~moving.any(axis=1)).mean()),
        stale=_stale(parts),
        jumps=tuple(_jumps(log, clock.period)),
        speed_ratio=speed_ratio,
        speed_match=speed_match,
        theta_ratio=_theta(parts),
        theta_matrix=_theta_matrix(parts),
        command_match=command_match,
        command_offset=command_offset,
        limited=_limited(parts),
    )
    log.release()
    return measures


def _channel(log: Log, name: str, parts: list[statistics.Window]) -> ChannelNumbers:
    """Return the numbers of one channel."""
    low, high = statistics.ranges(log, name)
    values = [part.log.channel(name) for part in parts]
    moving = [np.abs(part.speed) > statistics.MOVING_SPEED for part in parts]
    return ChannelNumbers(
        low,
        high,
        noise=np.median([statistics.noise(part) for part in values], axis=0),
        quantum=statistics.quantum(np.concatenate([part[: 20000 // len(parts)] for part in values])),
        frozen=np.max([statistics.longest_frozen(v, m) for v, m in zip(values, moving, strict=True)], axis=0),
        saturated=np.mean([statistics.saturated(part, low, high) for part in values], axis=0),
    )


def _speeds(parts: list[statistics.Window]) -> tuple[Array | None, Array | None]:
    """Return slope and correlation of the measured over the differentiated speed."""
    measured = [part.log.qd for part in parts if part.log.qd is not None]
    if not measured:
        return None, None
    return statistics.relation(np.concatenate([part.speed for part in parts]), np.concatenate(measured))


def _theta(parts: list[statistics.Window]) -> Array | None:
    """Return the slope of theta over q about their means."""
    theta = [part.log.theta for part in parts if part.log.theta is not None]
    if not theta:
        return None
    return statistics.relation(_centred([part.log.q for part in parts]), _centred(theta))[0]


def _theta_matrix(parts: list[statistics.Window]) -> Array | None:
    """Return A of the least-squares fit ``theta = A q`` about their means, (joints, joints); 0 for joints near rest."""
    theta = [part.log.theta for part in parts if part.log.theta is not None]
    if not theta:
        return None
    q = _centred([part.log.q for part in parts])
    q = np.where(np.ptp(q, axis=0) > COUPLING_RANGE, q, 0.0)
    return np.asarray(np.linalg.lstsq(q, _centred(theta), rcond=None)[0].T, dtype=np.float64)


def _commanded(parts: list[statistics.Window]) -> tuple[Array | None, Array | None]:
    """Return the correlation of q with q_des and the median of their distance."""
    commanded = [part.log.q_des for part in parts if part.log.q_des is not None]
    if not commanded:
        return None, None
    q = [part.log.q for part in parts]
    offset: Array = np.median(np.abs(np.concatenate(q) - np.concatenate(commanded)), axis=0)
    return statistics.relation(_centred(q), _centred(commanded))[1], offset


def _limited(parts: list[statistics.Window]) -> Array | None:
    """Return the share of samples whose current a limit holds below its target."""
    currents = [part.log.current for part in parts if part.log.current is not None]
    targets = [part.log.current_des for part in parts if part.log.current_des is not None]
    if not currents or not targets:
        return None
    share: Array = statistics.limited(np.concatenate(currents), np.concatenate(targets)).mean(axis=0)
    return share


def _centred(parts: list[Array]) -> Array:
    """Return values (samples, joints) about their mean."""
    values = np.concatenate(parts)
    result: Array = values - values.mean(axis=0)
    return result


def _stale(parts: list[statistics.Window]) -> float:
    """Return the share of samples that repeat every value of the one before, while something moves."""
    repeats = samples = 0
    for part in parts:
        moving = (np.abs(part.speed[1:]) > statistics.MOVING_SPEED).any(axis=1)
        same = moving.copy()
        for name in part.log.available[1:]:
            same &= (np.nan_to_num(np.diff(getattr(part.log, name), axis=0)) == 0.0).all(axis=1)
        repeats, samples = repeats + int(same.sum()), samples + int(moving.sum())
    return repeats / samples if samples else 0.0


def _jumps(log: Log, period: float) -> list[Jump]:
    """Return the first jumps of the positions, over all samples."""
    found: list[Jump] = []
    for start in range(0, log.samples - 1, _CHUNK):
        part = log.slice(start, start + _CHUNK + 1)
        steps = np.diff(part.q, axis=0)
        fast = np.abs(steps) > JUMP_SPEED * np.maximum(np.diff(part.t), period)[:, None]
        for sample, joint in np.argwhere(fast & (np.abs(steps) > JUMP_SIZE)):
            found.append(Jump(start + int(sample) + 1, int(joint), float(steps[sample, joint])))
        log.release()
        if len(found) > 1000:
            break
    return found
