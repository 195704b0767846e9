"""What sensors and clocks do to a motion: quantisation, noise, jitter, lost and repeated samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jointwise.arguments import checked_fields
from jointwise.call_settings import SimulationSettings
from jointwise.description.robot import TORQUE_NOISE
from jointwise.errors import ModelError, ShapeError
from jointwise.spatial import Array


@dataclass(frozen=True)
class Encoders:
    """The encoders that a controller reads.

    Both are at the joint side: a motor's encoder has its counts of a turn times the gear ratio.

    Attributes:
        links: One count of the encoders of the links, (joints,), rad; 0 for true positions.
        rotors: One count of the encoders of the rotors, (joints,), rad; 0 for true positions.
    """

    links: Array
    rotors: Array

    def __post_init__(self) -> None:
        """Convert the counts to arrays; reject negative ones."""
        for name in ("links", "rotors"):
            counts = np.array(getattr(self, name), dtype=np.float64)
            if counts.ndim != 1 or not (np.isfinite(counts).all() and (counts >= 0.0).all()):
                raise ShapeError(f"{name} must be one count a joint, finite and not negative. Got {counts} instead.")
            object.__setattr__(self, name, counts)
        if self.links.shape != self.rotors.shape:
            raise ShapeError(f"links and rotors must be equally many. Got {len(self.links)}, {len(self.rotors)}.")

    def counts(self, dof: int) -> Array:
        """Return the counts as (2, joints) for the native side, or say that they are those of another robot."""
        if len(self.links) != dof:
            raise ShapeError(f"encoders must have {dof} joints. Got {len(self.links)} instead.")
        return np.stack([self.links, self.rotors])


def read(count: Array, now: Array, before: Array, period: float) -> tuple[Array, Array]:
    """Return position and speed that a controller has: ``x = c [x/c]``, ``v = c ([x/c] - [x_before/c]) / period``.

    `count` c in rad, 0 for none (then nothing is rounded), positions (joints,) now and one control `period` (s) ago.
    """
    unit = np.where(count > 0.0, count, 1.0)
    current, last = (np.where(count > 0.0, np.round(x / unit), x / unit) for x in (now, before))
    return current * unit, (current - last) * unit / period


def quantised(values: Array, step: float | Array | None) -> Array:
    """Return the values as whole multiples of a step (one value, or one per joint); as they are without a step."""
    return values if step is None or np.all(step == 0.0) else np.round(values / step) * step


JitterMode = Literal["sampling", "stamp"]

WIDEST_JITTER = 0.45
"""A stamp is never farther from its place than this part of a period, so that time runs forward."""
LARGEST_JITTER = 0.25
"""Largest rms of the clock's jitter, as a share of a period: beyond, clipping would reduce it noticeably."""
COLORED_SHARE = 0.5
"""Part of the variance of coloured current noise that is below `COLOR_FREQUENCY` (Hz)."""
COLOR_FREQUENCY = 10.0
LONE_NOISE = 0.03
"""Usual noise of a current (A rms) where no drive is known."""

_CLOCK, _DROPS, _SPEED, _CURRENT, _REPEATS, _TEMPERATURE, _TORQUE, _BUS = range(1, 9)
"""One stream of random numbers for each effect, so that switching one does not change the others."""


SIZES = (
    "jitter", "speed_noise", "current_noise", "encoder_counts", "current_quantisation",
    "motor_counts", "temperature_noise", "temperature_quantisation", "torque_noise", "bus_noise",
)  # fmt: skip
"""Settings that are sizes: not negative."""


@checked_fields
@dataclass(frozen=True)
class Sensors:
    """Sensors, clock and noise of a simulated robot.

    Attributes:
        rate: Sampling rate, Hz.
        encoder_counts: Counts per turn of the link encoder (per 2π m of a prismatic joint); None for no quantisation.
        speed_noise: Noise of the speed, rad/s rms; None if speed is not measured.
        current_noise: Noise of the current, A rms, one number or one per joint; None for 0.12 % of the effort limit.
        colored: Whether half of the variance of the current noise lies below 10 Hz.
        current_quantisation: Step of the current, A; None for no quantisation.
        jitter: Jitter of the clock, s rms, at most a quarter of a period; single deviations are at most 0.45 periods.
        jitter_mode: `sampling`: irregular sampling times with correct stamps; `stamp`: regular times, wrong stamps.
        dropped: Fraction of samples that are lost, never the first or last.
        seed: Seed of the noise.
        repeated: Fraction of rows that are replaced by the row before.
        motor_counts: Counts per motor turn of the rotor encoder; None for no quantisation.
        temperature_noise: Noise of the temperature, K rms.
        temperature_quantisation: Step of the temperature, K; None for no quantisation.
        torque_noise: Noise of a load cell, Nm rms.
        bus: Whether voltage and current of the DC bus are logged.
        bus_noise: Noise of the current of the bus, A rms.

    """

    rate: float = SimulationSettings.rate
    encoder_counts: int | None = 1_250_000
    speed_noise: float | None = 1e-3
    current_noise: float | tuple[float, ...] | None = None
    colored: bool = True
    current_quantisation: float | None = None
    jitter: float = SimulationSettings.jitter
    jitter_mode: JitterMode = "sampling"
    dropped: float = SimulationSettings.dropped
    seed: int = SimulationSettings.seed
    repeated: float = SimulationSettings.repeated
    motor_counts: int | None = 65_536
    temperature_noise: float = 0.05
    temperature_quantisation: float | None = 0.1
    torque_noise: float = 0.05
    bus: bool = SimulationSettings.bus
    bus_noise: float = 0.02

    def __post_init__(self) -> None:
        """Reject values outside their range."""
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise ModelError(f"rate must be a positive number of Hz. Got {self.rate} instead.")
        for name in ("dropped", "repeated"):
            if not 0.0 <= getattr(self, name) <= 0.9:
                raise ModelError(f"{name} must be a fraction from 0 to 0.9. Got {getattr(self, name)} instead.")
        if self.jitter * self.rate > LARGEST_JITTER:
            raise ModelError(
                f"jitter must be at most {LARGEST_JITTER / self.rate:.3g} s rms, a quarter of a period at "
                f"{self.rate:g} Hz, so that time runs forward. Got {self.jitter:g} s instead."
            )
        if self.jitter_mode not in ("sampling", "stamp"):
            raise ModelError(f"jitter_mode must be sampling or stamp. Got '{self.jitter_mode}' instead.")
        for name in SIZES:
            _check_size(name, getattr(self, name))

    def at_drives(self, efforts: Array, gains: Array) -> Sensors:
        """Return these sensors with the default current noise of the drives unless they set it.

        ``σ_i = 0.12 % τ_max / gain`` for effort limits (joints,) Nm and gains (joints,) Nm/A.
        """
        if self.current_noise is not None:
            if np.shape(self.current_noise) not in {(), gains.shape}:
                raise ShapeError(f"current_noise must be one number or {len(gains)}. Got {self.current_noise} instead.")
            return self
        return replace(self, current_noise=tuple((TORQUE_NOISE * efforts / np.abs(gains)).tolist()))

    def clock(self, duration: float) -> tuple[Array, Array]:
        """Return when the samples of a motion are taken, and how they are stamped, (samples,) each, s."""
        regular = np.arange(round(duration * self.rate)) / self.rate
        if len(regular) < 2:
            raise ModelError(f"duration must give at least 2 samples at {self.rate:g} Hz. Got {duration} s instead.")
        widest = WIDEST_JITTER / self.rate
        wander = np.clip(self.jitter * self._rng(_CLOCK).normal(size=len(regular)), -widest, widest)
        irregular = np.maximum(regular + wander, 0.0)
        return (irregular, irregular) if self.jitter_mode == "sampling" else (regular, irregular)

    def kept(self, samples: int) -> NDArray[np.intp]:
        """Return the indices of the samples that are not lost, ascending."""
        lost = min(round(self.dropped * samples), samples - 2)
        drops = 1 + self._rng(_DROPS).permutation(samples - 2)[:lost]
        return np.delete(np.arange(samples), drops)

    def written(self, samples: int) -> NDArray[np.intp]:
        """Return the indices of the samples that stand in a log: those `kept`, some of them the one before again."""
        kept = self.kept(samples)
        again = 1 + self._rng(_REPEATS).permutation(len(kept) - 1)[: round(self.repeated * len(kept))]
        kept[again] = 0
        written: NDArray[np.intp] = np.maximum.accumulate(kept)
        return written

    def encoders(self, gear_ratios: Array) -> Encoders:
        """Return the encoders of a robot with these gear ratios (joints,)."""
        links, motors = _count(self.encoder_counts), _count(self.motor_counts)
        return Encoders(np.full(len(gear_ratios), links), motors / gear_ratios)

    def position(self, q: Array) -> Array:
        """Return what the encoders read of q (samples, joints), rad."""
        return quantised(q, _count(self.encoder_counts))

    def rotor(self, theta: Array, gear_ratios: Array) -> Array:
        """Return what the motor encoders read, at the joint side, (samples, joints), rad.

        Args:
            theta: Rotor positions after the gear, (samples, joints), rad.
            gear_ratios: Gear ratios, (joints,).
        """
        return quantised(theta, _count(self.motor_counts) / gear_ratios)

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream])


class Readings:
    """What noisy sensors read, block after block of one recording: noise goes on where the last block ended."""

    def __init__(self, sensors: Sensors) -> None:
        """Begin every stream of noise at its seed."""
        self._sensors = sensors
        self._streams = {stream: sensors._rng(stream) for stream in (_SPEED, _CURRENT, _TEMPERATURE, _TORQUE, _BUS)}
        self._color: Array | None = None

    def speed(self, qd: Array) -> Array | None:
        """Return the measured speed (samples, joints), rad/s; None if it is not measured."""
        size = self._sensors.speed_noise
        return None if size is None else qd + size * self._streams[_SPEED].normal(size=qd.shape)

    def current(self, current: Array) -> Array:
        """Return the measured current (samples, joints), A."""
        noise = self._streams[_CURRENT].normal(size=(2, *current.shape))
        unit = self._partly_colored(noise) if self._sensors.colored else noise[0]
        size = LONE_NOISE if self._sensors.current_noise is None else np.asarray(self._sensors.current_noise)
        return quantised(current + size * unit, self._sensors.current_quantisation)

    def temperature(self, temperature: Array) -> Array:
        """Return the measured temperature (samples, joints), °C."""
        noise = self._sensors.temperature_noise * self._streams[_TEMPERATURE].normal(size=temperature.shape)
        return quantised(temperature + noise, self._sensors.temperature_quantisation)

    def torque(self, torque: Array) -> Array:
        """Return what load cells read (samples, joints), Nm."""
        return torque + self._sensors.torque_noise * self._streams[_TORQUE].normal(size=torque.shape)

    def bus_current(self, current: Array) -> Array:
        """Return the measured current of the DC bus (samples,), A."""
        return current + self._sensors.bus_noise * self._streams[_BUS].normal(size=current.shape)

    def _partly_colored(self, white: Array) -> Array:
        """Return noise of unit variance, a mixture of a white series and one through a first-order low-pass.

        `white` (2, samples, joints). ``c[k] = a c[k-1] + √(1 - a²) w[k]``, ``a = exp(-2π f / rate)``, steady at once.
        """
        from scipy.signal import lfilter

        a = float(np.exp(-2.0 * np.pi * COLOR_FREQUENCY / self._sensors.rate))
        driven = white[1] * np.sqrt(1.0 - a**2)
        if self._color is None:
            driven[0], self._color = white[1, 0], np.zeros_like(white[1, :1])
        colored, self._color = lfilter([1.0], [1.0, -a], driven, axis=0, zi=self._color)
        result: Array = np.sqrt(1.0 - COLORED_SHARE) * white[0] + np.sqrt(COLORED_SHARE) * colored
        return result


def _check_size(name: str, value: float | tuple[float, ...] | None) -> None:
    size = np.asarray(value or 0.0)
    if not (np.isfinite(size).all() and (size >= 0.0).all()):
        raise ModelError(f"{name} must be finite and not negative. Got {value} instead.")


def _count(counts: int | None) -> float:
    """Return one count (rad) of so many a turn, 0 for none."""
    return 2.0 * np.pi / counts if counts else 0.0
