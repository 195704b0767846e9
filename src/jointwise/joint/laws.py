"""Validation of the laws in a joint file: each is built and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from jointwise.errors import JointwiseError, ModelError
from jointwise.joint.part import Part
from jointwise.spatial import Array

SIGNED = np.array([-1.0, -0.1, 0.0, 0.1, 1.0])
"""Speeds (rad/s), or fractions of a range, at which laws are evaluated."""
SWING = np.sin(np.linspace(0.0, 2.0 * np.pi, 41))
"""A path (rad) forward and back."""
STEP = 1e-3
"""Time (s) between its samples."""


def check_laws(parts: Mapping[str, Part]) -> None:
    """Raise `ModelError` for a part whose law cannot be built or does not evaluate to finite numbers."""
    for name, part in parts.items():
        _check(name, partial(_LAWS[name], part))
    if "friction" in parts:
        _check("friction over speed, load and temperature", lambda: _combined(parts))


def _check(name: str, evaluate: Callable[[], list[Array]]) -> None:
    """Raise if a law cannot be evaluated, or its values are not finite or of another shape than its input."""
    try:
        with np.errstate(all="ignore"):
            inputs, *outputs = evaluate()
        is_valid = all(np.shape(y) == np.shape(inputs) and np.isfinite(y).all() for y in outputs)
    except JointwiseError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise ModelError(f"{name}: the law cannot be built from its settings ({problem}).") from None
    if not is_valid:
        raise ModelError(f"{name}: the law does not give finite numbers.")


def _combined(parts: Mapping[str, Part]) -> list[Array]:
    from jointwise.joint.combined_friction import friction_map

    return [SIGNED, friction_map(list(parts.values())).torque(SIGNED)]


def _stiffness(part: Part) -> list[Array]:
    from jointwise.joint.stiffness.law import stiffness_of

    law = stiffness_of(part)
    if not (law.largest > 0.0 and float(law.stiffness(np.zeros(1))[0]) > 0.0):
        raise ModelError("stiffness: the spring must be stiff at rest and have a range.")
    phi = SIGNED * law.largest
    return [phi, law.torque(phi), law.stiffness(phi)]


def _transmission(part: Part) -> list[Array]:
    from jointwise.joint.transmission.law import transmission_of

    maps = transmission_of(part)
    if maps.reach < 0.0:
        raise ModelError(f"transmission: reach must be at least 0. Got {maps.reach} instead.")
    return [SWING, maps.error(SWING), maps.backlash(SWING), maps.lag(SWING), maps.slope(SWING)]


def _friction(part: Part) -> list[Array]:
    from jointwise.joint.friction.law import stored_covariance, velocity_law_of

    stored_covariance(part)
    return [SIGNED, velocity_law_of(part).torque(SIGNED)]


def _load(part: Part) -> list[Array]:
    from jointwise.joint.load import CHOICES, load_law_of

    law = load_law_of(part)
    if law.kind not in ("none", *CHOICES) or law.largest < 0.0:
        raise ModelError(f"load: the law must be none or one of {', '.join(CHOICES)}, up to a load of at least 0.")
    return [SIGNED, law.torque(SIGNED, SIGNED * law.largest)]


def _temperature(part: Part) -> list[Array]:
    from jointwise.joint.temperature import PARAMETERS, temperature_law_of

    law = temperature_law_of(part)
    if law.kind not in PARAMETERS or not law.coldest <= law.hottest or law.fastest < 0.0:
        raise ModelError("temperature: the law must be a known one, from the coldest to the hottest, up to a speed.")
    return [SIGNED, *(law.torque(SIGNED, np.full(len(SIGNED), T)) for T in (law.coldest, law.hottest))]


def _hysteresis(part: Part) -> list[Array]:
    from jointwise.joint.hysteresis import METHODS, JointMotion, friction_law
    from jointwise.model.friction import LOAD_POWERS

    law = friction_law(part)
    if law.model not in METHODS or not (_is_list(law.forces) and _is_positive_list(law.limits)):
        raise ModelError("hysteresis: the law must be a known one, with a list of forces and of limits above 0.")
    if not law.growth >= 0.0 or law.power not in LOAD_POWERS.values():
        raise ModelError("hysteresis: its growth with the load must be at least 0, with the power 1 or 2.")
    if law.backlash is not None and not _is_positive_list(law.backlash):
        raise ModelError("hysteresis: the backlash map must be a list of numbers above 0.")
    if len(law.limits) and not law.forces.sum() > 0.0:
        raise ModelError("hysteresis: the forces must add up to more than 0.")
    return [SWING, law.torque(JointMotion(SWING, np.gradient(SWING, STEP), SWING, STEP))]


def _is_list(values: Array) -> bool:
    return values.ndim == 1


def _is_positive_list(values: Array) -> bool:
    return _is_list(values) and bool((values > 0.0).all())


def _motor(part: Part) -> list[Array]:
    if not part["gain"] > 0.0:
        raise ModelError(f"motor: gain must be > 0. Got {part['gain']} instead.")
    return [SIGNED, part["gain"] * SIGNED]


_LAWS: dict[str, Callable[[Part], list[Array]]] = {
    "stiffness": _stiffness,
    "transmission": _transmission,
    "friction": _friction,
    "load": _load,
    "temperature": _temperature,
    "hysteresis": _hysteresis,
    "motor": _motor,
}
