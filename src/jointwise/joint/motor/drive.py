"""Gain, offset and power-flow dependent friction of one joint whose load is known.

``i = (τ + F_v v + F_2 v|v| + friction(direction)) / K + i_0`` with τ what links and rotor ask of the joint. The
friction is one of: Coulomb; T_dir where the motor drives the load (v τ_load > 0) and T_rev where the load drives the
motor; or Coulomb that grows with the load. An offset cannot be told from Coulomb friction that differs with direction:
both are the same current. It is given as an offset.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import EstimationError
from jointwise.joint.jackknife import FEWEST_BLOCKS, block_count, half_width, jackknife
from jointwise.joint.motor.gain import RELATION, inverse_value, torque_constant
from jointwise.joint.normal import gram_solution
from jointwise.joint.part import Alternative, Curve, Part, Value, plain, value_of
from jointwise.joint.quality import nrmse_percent
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.joint.saturation import refuse_saturated
from jointwise.spatial import Array

LAWS = ("Coulomb", "power flow", "load")
SLOW_PART = 0.02
"""Part of the largest speed below which the direction does not tell the friction; such samples are left out."""
LEAST_LOAD = 0.05
"""Least variation of the load (deviation) as a part of that of the motor's torque."""
LEAST_FLOW = 0.1
"""Least part of the samples with power flowing either way for two friction torques."""
WORTH = 1.01
"""Mean square error on blocks left out, over the least one, up to which plain Coulomb is taken."""
FOLDS = 4
DOUBT = 0.025
"""Deviation of the described masses, as a part of them, that the gain and all torques take over. Makers' tables round,
leave out cables and screws, and describe no single arm: on a real one the gain came out 2.6 % below the controller's
and 5 % below that of a weighed payload."""
FARTHEST = 0.15
"""Distance from a gain known before, as a part of it, beyond which the links must be others than described."""


@dataclass(frozen=True)
class PowerFlow:
    """Friction by the way power flows: `direct` T_dir and `reverse` T_rev, Nm, `viscous` Nm s/rad, `square`.

    Speeds beyond `fastest` (rad/s), the largest in the data, are taken as that.
    """

    direct: float
    reverse: float
    viscous: float
    square: float
    fastest: float

    def torque(self, speed: Array, load: Array) -> Array:
        """Return the friction torque (samples,), Nm, at speeds (rad/s) under loads (Nm)."""
        v = np.clip(speed, -self.fastest, self.fastest)
        dry = np.where(v * load > 0.0, self.direct, self.reverse) * np.sign(v)
        result: Array = dry + self.viscous * v + self.square * v * np.abs(v)
        return result


def power_flow_of(part: Part) -> PowerFlow:
    """Return the friction law of a motor part that was identified with power flow."""
    if part.settings.get("friction") != "power flow":
        raise EstimationError(f"the motor part has friction '{part.settings.get('friction')}', not 'power flow'.")
    names = ("direct", "reverse", "viscous", "square")
    return PowerFlow(**{name: part[name] for name in names}, fastest=part.ranges["speed"][1])


def identify_motor(
    record: JointRecord, *, gear_ratio: float | None = None, friction: str | None = None, known: float | None = None
) -> Part:
    """Return gain (Nm/A), offset (A) and friction of a joint from its current and the known load of its links.

    `gear_ratio` adds the torque constant at the motor shaft. `friction` fixes the law (Coulomb, power flow, load);
    without it the best on blocks left out is taken, Coulomb where it does as well. The gain is as good as the described
    links are, whose doubt the intervals count: see `identify_gains_from_payload` for one that does not need them. A
    gain far from one `known` before (Nm/A) is refused: a payload that was not told looks like that.
    """
    if friction is not None and friction not in LAWS:
        raise EstimationError(f"friction must be one of {', '.join(LAWS)}. Got '{friction}' instead.")
    moving = _moving(record)
    tried = {law: _Fit(moving, law) for law in _possible(moving, friction)}
    best = min(tried, key=lambda law: tried[law].error)
    if "Coulomb" in tried and tried["Coulomb"].error <= WORTH * tried[best].error:
        best = "Coulomb"
    return _part(record, moving, tried, best, gear_ratio, known)


def _moving(record: JointRecord) -> JointRecord:
    """Return the samples in motion; refuse records that cannot tell a gain."""
    if not record.has_current:
        raise refuse(record, "motor", "torque is measured, not current: there is no gain to identify")
    current = record.motor / record.gain
    if not np.ptp(current) > 0.0:
        raise refuse(record, "motor", "the current does not vary")
    refuse_saturated(record, "motor")
    fastest = float(np.abs(record.speed).max())
    moving = record.take(np.abs(record.speed) > max(SLOW_PART * fastest, 1e-3))
    if fastest < 1e-2 or moving.samples < 200:
        raise refuse(record, "motor", "the joint does not move")
    if min(np.mean(moving.speed > 0.0), np.mean(moving.speed < 0.0)) < 0.05:
        raise refuse(record, "motor", "the joint moves in one direction only")
    if moving.load.std() < LEAST_LOAD * moving.motor.std() or moving.load.std() < 1e-9:
        raise refuse(record, "motor", f"the load never varies ({moving.load.std():.3g} Nm rms)")
    return moving


def _possible(moving: JointRecord, friction: str | None) -> tuple[str, ...]:
    """Return the laws that the data can tell apart."""
    if friction is not None:
        return (friction,)
    direct = float(np.mean(moving.speed * moving.load > 0.0))
    return LAWS if LEAST_FLOW <= direct <= 1.0 - LEAST_FLOW else ("Coulomb",)


class _Fit:
    """One law fitted to the samples in motion: linear in ``(1, F...)/K``."""

    def __init__(self, moving: JointRecord, law: str) -> None:
        self.current = moving.motor / moving.gain
        self.columns, self.names = _columns(moving, law)
        self.block = _blocks(moving)
        whole = np.column_stack([self.columns, self.current])
        self.parts = np.array([whole[self.block == b].T @ whole[self.block == b] for b in range(self.block.max() + 1)])
        self.found = gram_solution(self.parts.sum(axis=0))
        self.modelled: Array = self.columns @ self.found
        self.predicted = self._left_out()
        self.error = float(np.mean((self.current - self.predicted) ** 2))

    def _left_out(self) -> Array:
        predicted, total = np.empty_like(self.current), self.parts.sum(axis=0)
        for fold in range(FOLDS):
            out = np.arange(len(self.parts)) % FOLDS == fold
            inside = out[self.block]
            predicted[inside] = self.columns[inside] @ gram_solution(total - self.parts[out].sum(axis=0))
        return predicted

    def physical(self) -> tuple[Array, Array]:
        """Return (1/K, offset, F...) and deviations: offset in A, the rest over K."""

        def numbers(gram: Array) -> Array:
            c = gram_solution(gram)
            return np.concatenate([c[:2], c[2:] / c[0]])

        return jackknife(numbers, self.parts)


def _columns(moving: JointRecord, law: str) -> tuple[Array, tuple[tuple[str, str], ...]]:
    """Return the columns: asked torque, offset, friction, rotor; and names and units from the friction on."""
    v, d = moving.speed, np.sign(moving.speed)
    asked = moving.load + moving.inertia * moving.acceleration
    direct = v * moving.load > 0.0
    laws: dict[str, tuple[list[Array], list[tuple[str, str]]]] = {
        "Coulomb": ([d], [("coulomb", "Nm")]),
        "power flow": ([np.where(direct, d, 0.0), np.where(direct, 0.0, d)], [("direct", "Nm"), ("reverse", "Nm")]),
        "load": ([d, d * np.abs(moving.load)], [("coulomb", "Nm"), ("load", "Nm/Nm")]),
    }
    dry, names = laws[law]
    own = [asked, np.ones_like(v), *dry, v, v * np.abs(v)]
    names += [("viscous", "Nm s/rad"), ("square", "Nm s²/rad²")]
    if moving.inertia == 0.0:  # not described: found with the rest
        own.append(moving.acceleration)
        names.append(("inertia", "kg m²"))
    return np.column_stack(own), tuple(names)


def _blocks(moving: JointRecord) -> NDArray[np.intp]:
    count = min(block_count(moving.samples / moving.rate), moving.samples // 20)
    if count < FEWEST_BLOCKS:
        raise refuse(moving, "motor", f"only {moving.samples / moving.rate:.3g} s of motion")
    return np.arange(moving.samples) * count // moving.samples


def _part(
    record: JointRecord,
    moving: JointRecord,
    tried: dict[str, _Fit],
    best: str,
    gear_ratio: float | None,
    known: float | None,
) -> Part:
    fit = tried[best]
    found, spread = fit.physical()
    factor = half_width(len(fit.parts))
    if inverse_value("gain", "Nm/A", found[0], spread[0], factor) is None:
        raise refuse(record, "motor", "the current does not follow the load")
    spread = np.hypot(spread, _doubt(found, fit.names))
    gain = inverse_value("gain", "Nm/A", found[0], spread[0], factor)
    assert gain is not None
    if known is not None and abs(gain.value / known - 1.0) > FARTHEST:
        raise _too_far(record, gain.value, known)
    values: list[Value] = [gain, value_of("offset", "A", found[1], spread[1], factor)]
    rows = zip(fit.names, found[2:], spread[2:], strict=True)
    values += [value_of(name, unit, value, deviation, factor) for (name, unit), value, deviation in rows]
    if gear_ratio:
        values.append(torque_constant(gain, gear_ratio))
    return Part(
        phenomenon="motor",
        model=f"gain from the load of the links, friction: {best}",
        values=tuple(values),
        fitted=nrmse_percent(fit.current, fit.modelled),
        held_out=nrmse_percent(fit.current, fit.predicted),
        settings={"method": "links", "friction": best, "gear_ratio": gear_ratio},
        ranges={
            "speed": (float(np.abs(moving.speed).min()), float(np.abs(moving.speed).max())),
            "load": (float(moving.load.min()), float(moving.load.max())),
        },
        alternatives=tuple(_alternative(law, own) for law, own in tried.items()),
        curves=(_curve(moving, fit, gain),),
        notes=_notes(gain, known),
        logs=record.logs,
    )


def _doubt(found: Array, names: tuple[tuple[str, str], ...]) -> Array:
    """Return what the doubt of the described masses adds to (1/K, offset, F...): currents and ratios keep theirs."""
    scaled = np.array([True, False, *(unit != "Nm/Nm" for _, unit in names)])
    return np.where(scaled, DOUBT * np.abs(found), 0.0)


def _too_far(record: JointRecord, gain: float, known: float) -> EstimationError:
    """Return the error of a gain that no doubt of the described links explains."""
    off = f"{100.0 * (gain / known - 1.0):+.0f} % off the known {known:.4g}"
    return EstimationError(
        f"{record.place}: the load of the links asks for a gain of {gain:.4g} Nm/A, {off}; motor is not fitted. Give "
        "the payload if it carried one (--payload KG,X,Y,Z), or the gain if it is wrong (--gain); a pair of logs "
        "without and with a weighed payload tells it (--loaded)."
    )


def _notes(gain: Value, known: float | None) -> tuple[str, ...]:
    notes = [
        f"the gain is as good as the described masses, for which {100.0 * DOUBT:g} % deviation are counted; later "
        "commands keep a described gain (--gain takes this one)"
    ]
    if known is not None:
        notes.append(f"known gain {known:g} Nm/A: {100.0 * (gain.value / known - 1.0):+.1f} %")
    notes.append("an offset and Coulomb friction that differs with direction are the same current")
    return (*notes, RELATION)


def _alternative(law: str, fit: _Fit) -> Alternative:
    quality = nrmse_percent(fit.current, fit.modelled), nrmse_percent(fit.current, fit.predicted)
    return Alternative(f"friction: {law}", *quality)


def _curve(moving: JointRecord, fit: _Fit, gain: Value) -> Curve:
    """Return the current without friction over the torque that links and rotor ask."""
    asked = fit.columns[:, 0]
    residual = fit.current - fit.modelled
    order = np.argsort(asked, kind="stable")
    line = np.linspace(asked.min(), asked.max(), 50)
    bounds = line / gain.low, line / gain.high
    return Curve(
        title="Current over the torque of links and rotor",
        x_label="torque [Nm]",
        y_label="current without friction [A]",
        x=plain(asked[order]),
        y=plain((asked * fit.found[0] + residual)[order]),
        line_x=plain(line),
        line_y=plain(line * fit.found[0]),
        low=plain(np.minimum(*bounds)),
        high=plain(np.maximum(*bounds)),
        residual=plain(residual[order]),
    )
