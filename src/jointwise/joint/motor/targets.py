"""Drive gains from the controller's own signals: the torque it plans over the current it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.data.log import Log
from jointwise.description.robot import Robot
from jointwise.errors import DataError, EstimationError
from jointwise.joint.doctor import refuse_faulty
from jointwise.joint.jackknife import FEWEST_BLOCKS, block_count, half_width, jackknife
from jointwise.joint.motor.gain import GainEstimate, JointGain, status_of
from jointwise.joint.normal import gram_solution
from jointwise.joint.part import Curve, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent
from jointwise.spatial import Array

STILL = 2e-3
"""Largest speed (rad/s) of a joint that stands."""
SETTLED = 0.3
"""Time (s) left out at both ends of a standstill."""
LEAST_CURRENT = 0.01
"""Current (A) at standstill below which nothing can be divided by it."""
RESOLUTION = 1e-4
"""Last digit (A) of a target current, where the log does not show a finer one: limits the precision of a ratio."""
SLOW = 0.02
"""Speed (rad/s) above which the controller's friction compensation is known by its direction."""
CLEAN = 0.01
"""Residual at standstill, as a part of the torque's variation, below which nothing is left out as an outlier."""
LEAST_SHARE = 0.5
"""Part of the torque's variation in motion that the current must explain."""


def gains_from_targets(logs: Log | Sequence[Log], robot: Robot) -> GainEstimate:
    """Return the gains (Nm/A) and offsets (A) by which the controller turns planned torque into current.

    At standstill ``τ_des = K (i_des - i_0)`` holds exactly. A joint that never stands under load is fitted in motion,
    where the controller compensates friction as well: ``τ_des = K i_des - F_c sgn(v) - F_v v - F_2 v|v| - K i_0``.
    What the controller believes is told, which need not be true.
    """
    recordings = [logs] if isinstance(logs, Log) else list(logs)
    for log in recordings:
        _refuse_unusable(log, robot)
    joints = tuple(_joint(recordings, j) for j in range(robot.dof))
    names = tuple(log.origin.path for log in recordings)
    if all(own.gain is None for own in joints):
        raise EstimationError(
            f"{', '.join(names)}: no joint stands under load and none moves enough: the target signals tell no gain."
        )
    return GainEstimate(robot.name, "targets", joints, {}, names)


@dataclass(frozen=True, eq=False)
class _Signals:
    """Target current x (A), target torque y (Nm), speed v of one joint; `stand` numbers standstills, -1 elsewhere."""

    x: Array
    y: Array
    v: Array
    stand: NDArray[np.intp]
    block: NDArray[np.intp]


def _joint(logs: list[Log], j: int) -> JointGain:
    signals = _signals(logs, j)
    standing = _standing(signals, j)
    moving = _moving(signals, j)
    if standing is None and moving is None:
        return JointGain(j, None, "not determined", 0.0, notes=("it never stands under load and hardly moves",))
    if standing is None or moving is None or standing.gain is None or moving.gain is None:
        found = standing if standing is not None else moving
        assert found is not None
        return found
    off = 100.0 * (moving.gain.value / standing.gain.value - 1.0)
    note = f"in motion {moving.gain.value:.4g} [{moving.gain.low:.4g}, {moving.gain.high:.4g}] Nm/A ({off:+.1f} %)"
    return replace(standing, notes=(*standing.notes, note))


def _signals(logs: list[Log], j: int) -> _Signals:
    parts: list[list[NDArray[Any]]] = [[], [], [], [], []]
    stands = blocks = 0
    for log in logs:
        v = _speed(log)[:, j]
        stand = _standstills(log.t, v)
        count = max(1, block_count(log.duration))
        block = np.arange(log.samples) * count // log.samples
        values = [log.channel("current_des")[:, j], log.channel("torque_des")[:, j], v]
        for own, part in zip(parts, [*values, np.where(stand < 0, -1, stand + stands), block + blocks], strict=True):
            own.append(part)
        stands, blocks = stands + int(stand.max()) + 1, blocks + count
    x, y, v, stand, block = (np.concatenate(own) for own in parts)
    return _Signals(x, y, v, stand, block)


def _speed(log: Log) -> Array:
    return np.gradient(log.q, log.t, axis=0) if log.qd is None else log.qd


def _standstills(t: Array, v: Array) -> NDArray[np.intp]:
    """Return the number of the standstill of every sample (samples,), -1 in motion and near it."""
    still = np.abs(v) < STILL
    edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]]).astype(int)))
    number = np.full(len(t), -1, dtype=np.intp)
    for k, (begin, end) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
        first = t[begin] + (SETTLED if begin else 0.0)
        last = t[end - 1] - (SETTLED if end < len(t) else 0.0)
        number[begin:end][(t[begin:end] >= first) & (t[begin:end] <= last)] = k
    return number


def _standing(signals: _Signals, j: int) -> JointGain | None:
    """Return the gain at standstill: the slope over all of it, through zero where the current does not vary."""
    used = signals.stand >= 0
    x, y = signals.x[used], signals.y[used]
    if len(x) < 3 or np.abs(x).max() < LEAST_CURRENT:
        return None
    step = min(RESOLUTION, _resolution(signals.x))
    varies = bool(np.ptp(x) > max(LEAST_CURRENT, 100.0 * step))
    spread = x - x.mean() if varies else x
    gain = float(_robust_slope(x, y, varies))
    if gain <= 0.0:
        return None
    offset = float(np.median(x - y / gain)) if varies else 0.0
    residual = y - gain * (x - offset)
    numbers = len(np.unique(signals.stand[used]))
    noise = max(float(residual.std()), gain * step / np.sqrt(12.0))
    deviation = noise / float(np.sqrt(numbers * np.mean(spread**2)))
    value = value_of("gain", "Nm/A", gain, deviation)
    notes = () if varies else ("one load only: the offset is taken as zero",)
    return JointGain(
        joint=j,
        alone=value,
        status=status_of(value),
        fitted=nrmse_percent(y, y - residual) if np.ptp(y) > 0.0 else 100.0,
        offset=value_of("offset", "A", offset, noise / gain / np.sqrt(numbers)) if varies else None,
        model="the controller's own gain at standstill",
        curves=(_curve(x, y, gain, offset, value),),
        notes=notes,
    )


def _resolution(x: Array) -> float:
    """Return the smallest step between values of a signal, A."""
    steps = np.diff(np.unique(np.round(x, 9)))
    return float(steps.min()) if steps.size else RESOLUTION


def _robust_slope(x: Array, y: Array, varies: bool) -> float:
    """Return the slope of y over x, through zero unless x varies; residuals beyond three deviations are left out."""
    keep = np.ones(len(x), dtype=bool)
    slope = 0.0
    for _ in range(5):
        a, b = (x - x[keep].mean(), y - y[keep].mean()) if varies else (x, y)
        slope = float(a[keep] @ b[keep] / (a[keep] @ a[keep]))
        residual = np.abs(b - slope * a)
        keep = residual <= max(3.0 * 1.4826 * float(np.median(residual)), CLEAN * float(b.std()), 1e-9)
    return slope


def _moving(signals: _Signals, j: int) -> JointGain | None:
    """Return the gain in motion, with the controller's friction compensation beside it."""
    used = np.abs(signals.v) > SLOW
    blocks = np.unique(signals.block[used])
    if used.sum() < 100 or len(blocks) < FEWEST_BLOCKS or np.ptp(signals.x[used]) < LEAST_CURRENT:
        return None
    v, y = signals.v[used], signals.y[used]
    columns = np.column_stack([signals.x[used], np.sign(v), v, v * np.abs(v), np.ones(len(v)), y])
    number = signals.block[used]
    parts = np.array([columns[number == b].T @ columns[number == b] for b in blocks])
    found, spread = jackknife(gram_solution, parts)
    factor = half_width(len(blocks))
    without = columns[:, 1:-1] @ np.linalg.lstsq(columns[:, 1:-1], y, rcond=None)[0]
    modelled = columns[:, :-1] @ found
    explained = 1.0 - np.sum((y - modelled) ** 2) / max(float(np.sum((y - without) ** 2)), 1e-30)
    if explained < LEAST_SHARE or found[0] - factor * spread[0] <= 0.0:
        return None
    value = value_of("gain", "Nm/A", found[0], spread[0], factor)
    return JointGain(
        joint=j,
        alone=value,
        status=status_of(value),
        fitted=nrmse_percent(y, modelled),
        offset=value_of("offset", "A", -found[4] / found[0], spread[4] / found[0], factor),
        model="the controller's own gain in motion, beside its friction compensation",
        notes=("from motion alone: the joint never stands under load",),
    )


def _curve(x: Array, y: Array, gain: float, offset: float, value: Value) -> Curve:
    line = np.linspace(x.min(), x.max(), 20)
    return Curve(
        title="Target torque over target current at standstill",
        x_label="target current [A]",
        y_label="target torque [Nm]",
        x=plain(x),
        y=plain(y),
        line_x=plain(line),
        line_y=plain(gain * (line - offset)),
        low=plain(np.minimum(value.low * (line - offset), value.high * (line - offset))),
        high=plain(np.maximum(value.low * (line - offset), value.high * (line - offset))),
        residual=plain(y - gain * (x - offset)),
    )


def _refuse_unusable(log: Log, robot: Robot) -> None:
    if log.joints != robot.dof:
        raise DataError(f"{log.origin.path}: the log has {log.joints} joints, {robot.name} has {robot.dof}.")
    refuse_faulty(log, robot)
    for name, columns in (("current_des", "target currents (i_des1..)"), ("torque_des", "target torques (tau_des1..)")):
        if name not in log.available:
            raise EstimationError(
                f"{log.origin.path}: no {columns}: the controller's gains cannot be told. Log them, or use a pair of "
                f"logs without and with a known payload."
            )
