"""How dry friction may grow with the load, and where the search for it starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.joint.hysteresis.loops import Loops
from jointwise.joint.hysteresis.shape import LOADS
from jointwise.joint.load import load_law_of
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.joint.refusal import refuse
from jointwise.spatial import Array

LEAST_LOAD = 1.0
"""Load (Nm) below which its size says nothing."""
CHOICES = ("auto", "none", *LOADS)


@dataclass(frozen=True)
class Growth:
    """``F_C (1 + c |τ|^p)``: `power` p, c where the search starts (None: no load), `held` where c is known."""

    start: float | None = None
    power: float = 2.0
    held: bool = False


NONE = Growth()


def growth_of(record: JointRecord, loops: Loops, load: str | Part) -> tuple[Growth, ...]:
    """Return the ways to try, simplest first; a law that is asked for is refused where the load does not vary.

    A load part tells the law; where the load varies its factor is estimated again, as the load part came from other
    data, else it is held. One that saw no growth leaves it to these data.
    """
    if isinstance(load, Part) and load_law_of(load).kind == "none":
        load = "auto"
    if isinstance(load, Part):
        law = load_law_of(load)
        power = LOADS[law.kind]
        return (_started(loops, power) if _varies(loops) else _held(loops, power, law.factor),)
    if load not in CHOICES:
        raise ModelError(f"load must be one of {', '.join(CHOICES)}, or a load part. Got '{load}' instead.")
    if load == "none" or (load == "auto" and not _varies(loops)):
        return (NONE,)
    if load == "auto":
        return (NONE, *(_started(loops, power) for power in LOADS.values()))
    if not _varies(loops):
        low, high = _range(loops)
        raise refuse(record, "hysteresis", f"the load never varies ({low:.3g} to {high:.3g} Nm)")
    return (_started(loops, LOADS[load]),)


def _range(loops: Loops) -> Array:
    return np.quantile(np.abs(loops.load), (0.05, 0.95))


def _varies(loops: Loops) -> bool:
    low, high = _range(loops)
    return bool(high >= LEAST_LOAD and low <= 0.8 * high)


def _started(loops: Loops, power: float) -> Growth:
    """Return c of ``F_C (1 + c |τ|^p) sgn ω``. Speed is left out: at one speed all of the friction could be viscous."""
    level, grown = _forces(loops, np.abs(loops.load) ** power)
    most = float(_range(loops)[1]) ** power
    return Growth(float(np.clip(grown / max(level, 1e-9), 0.01 / most, 10.0 / most)), power)


def _held(loops: Loops, power: float, factor: float) -> Growth:
    """Return the c at which the known growth ``F_l |τ|^p`` is part of the friction that is seen."""
    level = _forces(loops)[0] - factor * float(np.mean(np.abs(loops.load[loops.used]) ** power))
    return Growth(factor / level, power, held=True) if level > 0.0 and factor > 0.0 else NONE


def _forces(loops: Loops, *sizes: Array) -> Array:
    """Return the forces of ``sgn ω`` and of it times each size, by least squares with an offset."""
    direction, used = np.sign(loops.speed), loops.used
    columns = np.column_stack([direction, *(size * direction for size in sizes), np.ones(len(direction))])[used]
    result: Array = np.linalg.lstsq(columns, loops.friction[used], rcond=None)[0][:-1]
    return result
