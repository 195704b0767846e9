"""Laws that tell friction along a motion; made from a part, they hold nothing but numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.joint.hysteresis.dynamic import Curve, bristle_columns, rate_columns
from jointwise.joint.hysteresis.loops import relative_backlash
from jointwise.joint.hysteresis.recursion import maxwell_slip, maxwell_state
from jointwise.joint.hysteresis.shape import LOADS, Shape
from jointwise.joint.hysteresis.static import static_columns
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.model.terms import Hysteresis, Rated
from jointwise.model.terms.backlash import evened
from jointwise.spatial import Array

RATED = ("rate-gms", "lugre")
"""Models whose memory depends on the rate."""


@dataclass(frozen=True, eq=False)
class Motion:
    """What a law needs of a motion, (samples,): `path` of the rotor rad, `speed` rad/s, `load` Nm, `period` s."""

    path: Array
    speed: Array
    load: Array
    period: float
    stretch: NDArray[np.intp] | None = None

    def parts(self) -> list[NDArray[np.intp]]:
        """Return the indices of every gap-free stretch."""
        if self.stretch is None:
            return [np.arange(len(self.path))]
        return [np.flatnonzero(self.stretch == k) for k in np.unique(self.stretch)]


def motion_of(record: JointRecord) -> Motion:
    """Return the motion of a record."""
    return Motion(record.path, record.speed, record.load, 1.0 / record.rate, record.stretch)


@dataclass(frozen=True, eq=False)
class FrictionLaw:
    """``f = dry + F_V ω + c``, the dry part by `model`; see `torque`.

    `limits` (rad) and `forces` (Nm) of the elements; `growth` (1/Nm^p), `extra`, `speed` (rad/s): the level; `rate`
    (1/s) of slip; `backlash` (points,) the map B(θ) over a turn or None; `load` tells whether friction depends on it,
    with the power p. Beyond the identified load (`most_load`, Nm) the level stays that of its end.
    """

    model: str
    limits: Array
    forces: Array
    viscous: float
    offset: float
    growth: float = 0.0
    extra: float = 0.0
    speed: float = 0.05
    rate: float = 1.0
    backlash: Array | None = None
    load: bool = False
    most_load: float = np.inf
    power: float = 2.0

    def torque(self, motion: Motion | JointRecord, nuisance: bool = True) -> Array:
        """Return friction (samples,), Nm; elements are relaxed where a stretch begins.

        `nuisance` adds viscous friction and offset (a feed-forward may have them from elsewhere).
        """
        own = motion_of(motion) if isinstance(motion, JointRecord) else motion
        dry = np.empty(len(own.path))
        for part in own.parts():
            dry[part] = self._dry(own, part)
        return dry + self.viscous * own.speed + self.offset if nuisance else dry

    def hysteresis(self, path: Array) -> Array:
        """Return H (samples,) in [-1, 1] of a slip model along a path (rad)."""
        scale = None if self.backlash is None else relative_backlash(self.backlash, path)
        g = maxwell_slip(path, scale, self.limits, maxwell_state(path[0], len(self.limits)))
        result: Array = g @ (self.forces / self.forces.sum())
        return result

    def _dry(self, own: Motion, part: NDArray[np.intp]) -> Array:
        path, speed = own.path[part], own.speed[part]
        load = np.clip(own.load[part], -self.most_load, self.most_load)
        if self.model in RATED:
            return (1.0 + self.growth * np.abs(load) ** self.power) * self._rated(path, speed, own.period)
        if not len(self.limits):
            return (
                np.column_stack(static_columns(self.model, self.speed, self.power if self.load else 0.0, speed, load))
                @ self.forces
            )
        shape = Shape(self.limits, growth=self.growth, extra=self.extra, speed=self.speed, power=self.power)
        result: Array = shape.level(load, speed) * self.hysteresis(path) * self.forces.sum()
        return result

    def _rated(self, path: Array, speed: Array, period: float) -> Array:
        """Return friction with rate (samples,) without load, Nm."""
        x = path if self.backlash is None else evened(path, self.backlash / self.backlash.mean())
        curve = Curve(self.limits, self.extra, self.speed, self.rate)
        if self.model == "lugre":
            return bristle_columns(x, speed, curve, period, np.array([0.0, x[0]])) @ self.forces
        columns = rate_columns(x, speed, curve, period, maxwell_state(x[0], len(self.limits)))
        result: Array = columns @ self.forces
        return result


def friction_law(part: Part) -> FrictionLaw:
    """Return the law of a hysteresis part."""
    if part.phenomenon != "hysteresis":
        raise ModelError(f"part must be of hysteresis. Got '{part.phenomenon}' instead.")
    known: dict[str, Any] = dict(part.settings["law"])
    known["backlash"] = np.array(known["backlash"]) if known.get("backlash") else None
    known["limits"], known["forces"] = np.array(known["limits"]), np.array(known["forces"])
    known["most_load"] = np.inf if known["most_load"] is None else known["most_load"]
    return FrictionLaw(**known)


def law_settings(law: FrictionLaw) -> dict[str, Any]:
    """Return a law as plain JSON."""
    known = {name: getattr(law, name) for name in law.__dataclass_fields__}
    known["backlash"] = None if law.backlash is None else law.backlash.tolist()
    known["limits"], known["forces"] = law.limits.tolist(), law.forces.tolist()
    known["most_load"] = None if np.isinf(law.most_load) else law.most_load
    return known


def rated_term(part: Part, driver: str = "q") -> Rated:
    """Return the term of a calibration that a model with rate stands for: its shape is held, F_C and F_C1 estimated."""
    law = friction_law(part)
    if law.model not in RATED:
        raise ModelError(f"a term with rate needs {' or '.join(RATED)}. Got the model '{law.model}' instead.")
    lugre = law.model == "lugre"
    size = float(law.forces[0] if lugre else law.forces.sum())
    if not size > 0.0:
        raise ModelError(f"the {law.model} model has no dry friction: nothing for a calibration to start from.")
    return Rated(
        model=law.model,
        limits=tuple(law.limits.tolist()),
        shares=(1.0,) if lugre else tuple((law.forces / size).tolist()),
        extra=law.extra,
        speed=law.speed,
        rate=law.rate,
        damping=float(law.forces[1]) / size if lugre else 0.0,
        driver=driver,
        load=_dependence(law),
        backlash=_relative(law.backlash),
    )


def hysteresis_term(part: Part) -> Hysteresis:
    """Return the term of a calibration that a slip model starts from: limits, backlash map, shares with load."""
    law = friction_law(part)
    if law.model in RATED or not len(law.limits):
        raise ModelError(
            f"a term of slip elements needs a model with them. Got '{law.model}' instead: identify hysteresis again "
            "with --method nlr or auto."
        )
    shares = tuple((law.forces / law.forces.sum()).tolist())
    load = _dependence(law)
    return Hysteresis(
        limits=tuple(law.limits.tolist()),
        load=load,
        shape=shares if load != "none" else (),
        backlash=_relative(law.backlash),
    )


def _dependence(law: FrictionLaw) -> str:
    """Return the name of the load's law, none where friction does not grow with it."""
    return next(name for name, p in LOADS.items() if p == law.power) if law.growth > 0.0 else "none"


def _relative(backlash: Array | None) -> tuple[float, ...]:
    """Return a backlash map relative to its mean, () where it is the same everywhere."""
    return () if backlash is None else tuple((backlash / backlash.mean()).tolist())
