"""Growth of dry friction with the load: ``F_C1 ℓ(τ_load) h``, ℓ = τ² (`square`) or |τ| (`absolute`).

h is the direction of the dry friction that grows: a sign, tanh, or the state of slip elements. A term of dry friction
has the load law as its setting `load` and F_C1 as its last parameter. In C it is the law `load` of `terms.h`.

Reference: P. Hamon, M. Gautier and P. Garrec, "Dynamic identification of robots with a dry friction model depending on
load and velocity", IEEE/RSJ Int. Conf. on Intelligent Robots and Systems (IROS), 2010.
"""

from __future__ import annotations

import numpy as np

from jointwise.model.terms.term import CoreTerm, JointSignals, Parameter
from jointwise.spatial import Array

LOAD_POWERS = {"absolute": 1.0, "square": 2.0}
"""Names of the laws in documents, and their power p."""


def load_growth(load: Array, power: float) -> Array:
    """Return |τ|^p of transmitted torques τ (Nm) of any shape."""
    return absolute_power(load, power)


def check_load_law(name: str) -> None:
    """Raise a `ValueError` unless the name is none, square or absolute."""
    if name != "none" and name not in LOAD_POWERS:
        raise ValueError(f"load must be none, square or absolute. Got '{name}' instead")


def load_law_name(power: float) -> str:
    """Return the name of the law with a power p, 1 or 2."""
    return next(name for name, p in LOAD_POWERS.items() if p == power)


def load_unit(name: str) -> str:
    """Return the unit of F_C1: 1 (`absolute`) or 1/Nm (`square`)."""
    return "1" if name == "absolute" else "1/Nm"


def absolute_power(x: Array, power: float) -> Array:
    """Return |x|^p; the powers 1 and 2 without a call of `pow`."""
    size = np.abs(x)
    result: Array = size if power == 1.0 else np.square(size) if power == 2.0 else size**power
    return result


def load_parameters(name: str, law: str) -> tuple[Parameter, ...]:
    """Return the coefficient of a load law in a tuple; empty for `none`."""
    return () if law == "none" else (Parameter(name, load_unit(law), non_negative=True),)


def with_load(columns: list[Array], direction: Array, joint: JointSignals, law: str, term: str) -> Array:
    """Return the columns of a `term` stacked, followed by ℓ(τ_load) times its direction unless the law is `none`."""
    if law == "none":
        return np.column_stack(columns)
    growth = load_growth(joint.known_load(term), LOAD_POWERS[law])
    return np.column_stack([*columns, growth * direction])


def with_load_law(core: CoreTerm, law: str, factor: list[float]) -> tuple[CoreTerm, ...]:
    """Return a term of the core, followed by the law `load` in its direction; `factor` is F_C1, if it has one."""
    if law == "none":
        return (core,)
    return core, CoreTerm("load", tuple(factor), load=law, driver=core.driver, width=core.width)
