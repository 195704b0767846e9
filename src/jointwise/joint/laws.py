"""The law of every part, built and tried: a part whose law cannot be used is damaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from jointwise.errors import JointwiseError, ModelError
from jointwise.joint.part import Part
from jointwise.spatial import Array

SIGNED = np.array([-1.0, -0.1, 0.0, 0.1, 1.0])
"""Speeds (rad/s), or parts of a range, at which laws are tried."""
SWING = np.sin(np.linspace(0.0, 2.0 * np.pi, 41))
"""A path (rad) to and fro."""


def check_laws(parts: Mapping[str, Part]) -> None:
    """Refuse parts of a joint whose laws cannot be built, or give something else than finite numbers."""
    for name, part in parts.items():
        _check(name, partial(_TRIED[name], part))
    if "friction" in parts:
        _check("friction over speed, load and temperature", lambda: _together(parts))


def _check(name: str, tried: Callable[[], list[Array]]) -> None:
    """Refuse a law that stumbles, or whose numbers, (samples,) each, are not finite."""
    try:
        with np.errstate(all="ignore"):
            first, *others = tried()
        whole = all(np.shape(own) == np.shape(first) and np.isfinite(own).all() for own in others)
    except JointwiseError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise ModelError(f"{name}: the law cannot be built from its settings ({problem}).") from None
    if not whole:
        raise ModelError(f"{name}: the law does not give finite numbers.")


def _together(parts: Mapping[str, Part]) -> list[Array]:
    from jointwise.joint.map import friction_map

    return [SIGNED, friction_map(list(parts.values())).torque(SIGNED)]


def _stiffness(part: Part) -> list[Array]:
    from jointwise.joint.springs import stiffness_of

    law = stiffness_of(part)
    if not (law.largest > 0.0 and float(law.stiffness(np.zeros(1))[0]) > 0.0):
        raise ModelError("stiffness: the spring must be stiff at rest and have a range.")
    phi = SIGNED * law.largest
    return [phi, law.torque(phi), law.stiffness(phi)]


def _transmission(part: Part) -> list[Array]:
    from jointwise.joint.gear_maps import transmission_of

    maps = transmission_of(part)
    if maps.reach < 0.0:
        raise ModelError(f"transmission: reach must be at least 0. Got {maps.reach} instead.")
    return [SWING, maps.error(SWING), maps.backlash(SWING), maps.lag(SWING), maps.slope(SWING)]


def _friction(part: Part) -> list[Array]:
    from jointwise.joint.friction.law import velocity_law_of
    from jointwise.joint.hysteresis.given import told_covariance

    told_covariance(part)
    return [SIGNED, velocity_law_of(part).torque(SIGNED)]


def _load(part: Part) -> list[Array]:
    from jointwise.joint.load import CHOICES, load_law_of

    law = load_law_of(part)
    if law.kind not in ("none", *CHOICES) or law.largest < 0.0:
        raise ModelError(f"load: the law must be none or one of {', '.join(CHOICES)}, up to a load of at least 0.")
    return [SIGNED, law.torque(SIGNED, SIGNED * law.largest)]


def _temperature(part: Part) -> list[Array]:
    from jointwise.joint.friction.warmth import PARAMETERS
    from jointwise.joint.temperature import temperature_law_of

    law = temperature_law_of(part)
    if law.kind not in PARAMETERS or not law.coldest <= law.hottest or law.fastest < 0.0:
        raise ModelError("temperature: the law must be a known one, from the coldest to the hottest, up to a speed.")
    return [SIGNED, *(law.torque(SIGNED, np.full(len(SIGNED), T)) for T in (law.coldest, law.hottest))]


def _hysteresis(part: Part) -> list[Array]:
    from jointwise.joint.hysteresis import METHODS, Motion, friction_law
    from jointwise.joint.hysteresis.shape import LOADS

    law = friction_law(part)
    if law.model not in METHODS or law.limits.ndim != 1 or law.forces.ndim != 1 or (law.limits <= 0.0).any():
        raise ModelError("hysteresis: the law must be a known one, with a list of forces and of limits above 0.")
    if not law.growth >= 0.0 or law.power not in LOADS.values():
        raise ModelError("hysteresis: its growth with the load must be at least 0, with the power 1 or 2.")
    if law.backlash is not None and (law.backlash.ndim != 1 or (law.backlash <= 0.0).any()):
        raise ModelError("hysteresis: the backlash map must be a list of numbers above 0.")
    if len(law.limits) and not law.forces.sum() > 0.0:
        raise ModelError("hysteresis: the forces must add up to more than 0.")
    return [SWING, law.torque(Motion(SWING, np.gradient(SWING, 1e-3), SWING, 1e-3))]


def _motor(part: Part) -> list[Array]:
    if not part["gain"] > 0.0:
        raise ModelError(f"motor: gain must be > 0. Got {part['gain']} instead.")
    return [SIGNED, part["gain"] * SIGNED]


_TRIED: dict[str, Callable[[Part], list[Array]]] = {
    "stiffness": _stiffness,
    "transmission": _transmission,
    "friction": _friction,
    "load": _load,
    "temperature": _temperature,
    "hysteresis": _hysteresis,
    "motor": _motor,
}
