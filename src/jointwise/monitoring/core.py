"""The numbers of a monitor, its samples and their rate, and their evaluation in C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from jointwise.backend import native
from jointwise.data.coordinates import model_log
from jointwise.data.log import Log
from jointwise.errors import DataError, ModelError
from jointwise.result.spread import JointSpread
from jointwise.runtime import RobotModel
from jointwise.runtime.stream import NativeCore
from jointwise.spatial import Array, Mask

MOMENTS, SHARES = 4, 3
"""Unknowns of a payload (mass, first moments) and of a joint (dry friction, viscous friction, torque held at rest)."""
VERDICTS = ("not finite", "repeated", "reordered", "gap", "jump", "restart", "good")
"""What a sample was; the first three are dropped, after the next three the signals begin again."""
DROPPED = VERDICTS[:3]
COLUMNS = (
    *("external", "residual", "deviation", "ratio", "frozen", "speed", "inertia", "shock", "rest"),
    *("bound_fast", "bound_slow", "dry"),
)
"""Columns of a report with one number a joint."""
SLOWNESS = 0.05
"""Speed (rad/s) below which friction changes its sign or breaks away; that of the C core."""
FIRST = 64
"""Samples of a stream whose stamps decide its rate."""
SLOWEST, FASTEST = 5.0, 4000.0
"""Rates (Hz) between which a stream can be monitored."""


@dataclass(frozen=True, eq=False)
class WatchedJoint:
    """A joint as `jw_watched` of `core/monitor.h`.

    Attributes:
        spread: Standard deviations of the residuals without contact.
        held: Standard deviation of the torque that static friction holds, Nm.
        viscous: Standard deviation of a change of the viscous coefficient, Nm s/rad.
        gain: Drive gain, Nm per unit of the output.
        measured: Whether the output is measured.
        predictor: The two factors of `ChangeSpread.predictors`.
        change: Standard deviation of a sudden change of the momentum observer, Nm.
        fastest: Speed up to which changes are known, rad/s.
    """

    spread: JointSpread
    held: float
    viscous: float
    gain: float
    measured: bool
    predictor: tuple[float, float] = (0.0, 0.0)
    change: float = 1.0
    fastest: float = 0.0

    def packed(self) -> list[float]:
        """Return the numbers in the order of the native reader."""
        s = self.spread
        rest = [s.rest_fast, s.rest_slow, self.held, self.viscous, self.gain, float(self.measured)]
        return [*s.fast, *s.slow, *rest, *self.predictor, self.change, self.fastest]


@dataclass(frozen=True, eq=False)
class CoreMonitor:
    """A monitor as `jw_monitor`.

    Attributes:
        joints: The joints.
        bodies: Unit mass and unit first moments of a payload in the tool frame as bodies of the last link, (4, 10).
        mass: Standard deviation of the mass of an unknown payload, kg.
        moment: That of its first moments, kg m.
        limit_fast: Ratio to the spread above which the momentum observer shows a contact.
        limit_slow: The same of the direct residual.
        limit_change: Sudden change of the momentum observer above which there is a contact; 0 if it is not used.
        lag: Time (s) by which the output is before the motion.
        derived: Whether speeds are differences of positions.
        period: Period of the uniform clock, s.

    """

    joints: tuple[WatchedJoint, ...]
    bodies: Array
    mass: float
    moment: float
    limit_fast: float
    limit_slow: float
    limit_change: float
    lag: float
    derived: bool
    period: float

    def packed(self) -> Array:
        """Return all numbers in the order of the native reader."""
        limits = [self.limit_fast, self.limit_slow, self.limit_change]
        heads = [self.mass, self.moment, *limits, self.lag, float(self.derived)]
        return np.array([*self.bodies.ravel(), *heads, *(x for joint in self.joints for x in joint.packed())])


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples as they come; channels are (samples, joints), None where they are not measured.

    Attributes:
        t: Time stamps, (samples,), s.
        q: Joint positions, rad.
        output: Measured output of the model, current (A) or torque (Nm).
        qd: Measured speeds, rad/s.
        temperature: Joint temperatures, °C.
        theta: Rotor positions after the gear, rad, for the stiffness of the joints.
        current: Motor currents, A, for the stiffness of the joints.
    """

    t: Array
    q: Array
    output: Array
    qd: Array | None = None
    temperature: Array | None = None
    theta: Array | None = None
    current: Array | None = None

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.t)


@dataclass(frozen=True, eq=False)
class Reports:
    """What the monitor found at every sample, (samples, joints) each unless stated; torques in Nm.

    Attributes:
        external: External torque by the generalised-momentum observer.
        residual: External torque by the direct residual, which is smoother.
        deviation: Standard deviation of `residual` without contact.
        ratio: Residual over its threshold, the larger of both; above 1 is a contact.
        frozen: 0, or the sum of: 1 the position repeats, 2 the output repeats, 4 the output is saturated.
        speed: Joint speed, rad/s.
        inertia: ``M a``.
        shock: Torque of a sudden change of the motion by the motor itself, fading.
        rest: Whether the joint is at rest.
        bound_fast: What dry friction may add to `external` without contact: at stops, reversals and at rest.
        bound_slow: The same of `residual`.
        dry: Dry friction of the model, smoothed like `residual`.
        contact: Whether there is a contact, (samples,).
        joint: The joint (0-based) of the largest ratio, (samples,).
        verdict: Index into `VERDICTS`, (samples,).
        change: Sudden change of the momentum observer over all joints, in standard deviations, (samples,).

    """

    external: Array
    residual: Array
    deviation: Array
    ratio: Array
    frozen: Array
    speed: Array
    inertia: Array
    shock: Array
    rest: Array
    bound_fast: Array
    bound_slow: Array
    dry: Array
    contact: Array
    joint: Array
    verdict: Array
    change: Array

    @classmethod
    def of(cls, table: Array, joints: int) -> Reports:
        """Return the reports of a table of the native kernel, (samples, 12 joints + 4)."""
        parts = [table[:, k * joints : (k + 1) * joints] for k in range(len(COLUMNS))]
        return cls(*parts, *table[:, len(COLUMNS) * joints :].T)


@dataclass(frozen=True, eq=False)
class Known:
    """What a monitor knows after the samples so far.

    Attributes:
        x: Unknowns, (4 + 3 joints,): mass (kg) and first moments (kg m) of the payload, then of every joint the
            relative change of dry friction, the change of the viscous coefficient (Nm s/rad) and the torque held at
            rest (Nm).
        P: Their covariance, (4 + 3 joints, 4 + 3 joints).
        rest: Whether a joint is at rest, (joints,).
        counts: Number of samples by `VERDICTS`.
        adopted: Number of contacts that lasted so long that they were taken as the new state.
    """

    x: Array
    P: Array = field(repr=False)
    rest: Mask
    counts: dict[str, int]
    adopted: int

    @property
    def dropped(self) -> int:
        """Samples that were not used."""
        return sum(self.counts[name] for name in DROPPED)


class WatchCore(Protocol):
    """An evaluator of samples with explicit memory."""

    def init(self) -> Any:
        """Return the memory before the first sample."""

    def steps(self, memory: Any, samples: Samples) -> tuple[Reports, Any]:
        """Return the reports of samples and the memory after them; the memory before is not changed."""

    def known(self, memory: Any) -> Known:
        """Return what the monitor knows."""


class NativeWatch:
    """The C core."""

    def __init__(self, core: NativeCore, monitor: CoreMonitor) -> None:
        """Hand the numbers of a monitor to the native kernel."""
        kernel = native()
        if kernel is None:
            raise ModelError("the native kernel is not built.")
        self._kernel, self._joints = kernel, len(monitor.joints)
        self._monitor = kernel.monitor_open(core.handle, monitor.packed())

    def init(self) -> Array:
        """Return the memory before the first sample."""
        memory = np.empty(self._kernel.monitor_state_size())
        self._kernel.monitor_init(self._monitor, memory)
        return memory

    def steps(self, memory: Array, samples: Samples) -> tuple[Reports, Array]:
        """Return the reports of samples and the memory after them."""
        after = memory.copy()
        table = np.empty((len(samples), len(COLUMNS) * self._joints + 4))
        channels = (samples.q, samples.qd, samples.output, samples.temperature)
        contiguous = [None if c is None else np.ascontiguousarray(c, dtype=np.float64) for c in channels]
        t = np.ascontiguousarray(samples.t, dtype=np.float64)
        self._kernel.monitor_steps(self._monitor, after, len(samples), t, *contiguous, table)
        return Reports.of(table, self._joints), after

    def known(self, memory: Array) -> Known:
        """Return what the monitor knows."""
        count = MOMENTS + SHARES * self._joints
        x, P, rest, counts = np.empty(count), np.empty((count, count)), np.empty(self._joints), np.empty(8)
        self._kernel.monitor_known(self._monitor, memory, x, P, rest, counts)
        named = dict(zip(VERDICTS, counts[:-1].astype(int).tolist(), strict=True))
        return Known(x, P, rest != 0.0, named, int(counts[-1]))


def stream_rate(t: Array) -> float:
    """Return the rate (Hz) of a stream: that of the median step of its first stamps.

    Raises:
        DataError: The stamps do not run forwards, or at a rate that cannot be monitored.

    """
    steps = np.diff(np.asarray(t, dtype=float)[:FIRST])
    steps = steps[np.isfinite(steps) & (steps > 0.0)]
    if not len(steps):
        raise DataError("the stamps of a stream must increase. Got none that do in its first samples.")
    rate = 1.0 / float(np.median(steps))
    if not SLOWEST <= rate <= FASTEST:
        raise DataError(
            f"the rate of a stream must be {SLOWEST:g} to {FASTEST:g} Hz. Got {rate:.4g} Hz: are its stamps in s?"
        )
    return round(rate, 6)


def log_samples(model: RobotModel, log: Log) -> Samples:
    """Return the samples of a log for the monitor of a model.

    Raises:
        DataError: The log has no output of the model.
        ModelError: The log has another number of joints.

    """
    if log.joints != model.dof:
        raise ModelError(f"{log.origin.path}: the log has {log.joints} joints, the model {model.dof} ({model.name}).")
    log = model_log(log, model.calibration.model.robot)
    return Samples(log.t, log.q, log.channel(model.output), log.qd, log.temperature)
