"""Joint torques beside rigid-body dynamics: a joint is a list of terms, each law in one file.

A term names its parameters, returns their columns for the signals of one joint, and packs itself for the C core
(`runtime/core/terms.h`), which calibrated models and exports run. A new law is a file here with an entry in `KINDS`,
and a function in `terms.h`.

Beside the terms, the files have the functions that they are made of, for estimators. Speeds ω in rad/s and torques in
Nm at the joint side, positions θ in rad; laws with memory take a state and return the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib.metadata import entry_points
from typing import Any

from jointwise.errors import ModelError, nearest
from jointwise.model.terms.coulomb import Coulomb
from jointwise.model.terms.counterbalance import Spring
from jointwise.model.terms.direction import direction
from jointwise.model.terms.inertia import Inertia
from jointwise.model.terms.joint import JointLaw, core_terms, joint_columns
from jointwise.model.terms.load import LOAD_POWERS, check_load_law, load_growth, load_law_name, load_unit
from jointwise.model.terms.lugre import lugre_deflection, lugre_state
from jointwise.model.terms.maxwell_slip import (
    STEMS,
    Hysteresis,
    geometric_limits,
    linear_limits,
    polynomial_limits,
    polynomial_shares,
    slip_after_reversal,
    slip_elements,
    slip_slope_state,
    slip_slopes,
    slip_state,
)
from jointwise.model.terms.offset import Offset
from jointwise.model.terms.power_flow import PowerFlow, power_flow_columns
from jointwise.model.terms.rate_slip import rate_slip, rate_slip_state
from jointwise.model.terms.rated import RATE_MODELS, Rated
from jointwise.model.terms.ripple import SpeedRipple
from jointwise.model.terms.stribeck import Stribeck, steady_level, stribeck, stribeck_slope
from jointwise.model.terms.term import (
    DRIVERS,
    DRY,
    LOADS,
    NUMBERS,
    CoreTerm,
    JointSignals,
    Parameter,
    Role,
    State,
    Term,
    has_core_law,
)
from jointwise.model.terms.thermal import Temperature, root_speed, thermal_decay, thermal_factors
from jointwise.model.terms.viscous import Viscous, viscous_columns, viscous_factor, viscous_torque

KINDS: dict[str, type[Term]] = {
    term.kind: term
    for term in (
        *(Offset, Inertia, Spring, Coulomb, Hysteresis, Rated, Viscous),
        *(Stribeck, PowerFlow, Temperature, SpeedRipple),
    )
}

__all__ = [
    "DRIVERS",
    "DRY",
    "KINDS",
    "LOADS",
    "LOAD_POWERS",
    "NUMBERS",
    "RATE_MODELS",
    "STEMS",
    "CoreTerm",
    "Coulomb",
    "Hysteresis",
    "Inertia",
    "JointLaw",
    "JointSignals",
    "Offset",
    "Parameter",
    "PowerFlow",
    "Rated",
    "Role",
    "SpeedRipple",
    "Spring",
    "State",
    "Stribeck",
    "Temperature",
    "Term",
    "Viscous",
    "check_load_law",
    "core_terms",
    "direction",
    "geometric_limits",
    "has_core_law",
    "joint_columns",
    "linear_limits",
    "load_growth",
    "load_law_name",
    "load_unit",
    "lugre_deflection",
    "lugre_state",
    "polynomial_limits",
    "polynomial_shares",
    "power_flow_columns",
    "rate_slip",
    "rate_slip_state",
    "register_term",
    "root_speed",
    "slip_after_reversal",
    "slip_elements",
    "slip_slope_state",
    "slip_slopes",
    "slip_state",
    "steady_level",
    "stribeck",
    "stribeck_slope",
    "term_class",
    "term_from_dict",
    "thermal_decay",
    "thermal_factors",
    "viscous_columns",
    "viscous_factor",
    "viscous_torque",
]


ENTRY_POINTS = "jointwise.terms"
"""Group of the entry points by which installed packages offer terms, ``kind = "package.module:Class"``."""


def register_term(term: type[Term]) -> type[Term]:
    """Register a term of another package, so that structures can name it and saved models load; a class decorator.

    A class defined again under the same name and module, as by a cell that runs twice, replaces the former one.

    Args:
        term: A frozen dataclass derived from `Term`, all of whose settings have defaults.

    Returns:
        The same class.

    Raises:
        ModelError: It is no term, or its kind is in use.

    """
    kind = getattr(term, "kind", None)
    if not (isinstance(term, type) and issubclass(term, Term) and is_dataclass(term) and isinstance(kind, str)):
        raise ModelError(f"a term must be a dataclass derived from Term with a kind. Got {term!r} instead.")
    known = KINDS.get(kind, term)
    if (known.__module__, known.__qualname__) != (term.__module__, term.__qualname__):
        raise ModelError(f"the kind '{kind}' must not be in use. It is that of {known.__name__}.")
    KINDS[kind] = term
    return term


def term_class(kind: object, package: object = None) -> type[Term]:
    """Return the class of a kind of term: registered, or offered by an installed package.

    `package` is where a stored model has it from; it is only named in the error, never imported.
    """
    if kind not in KINDS:
        for entry in entry_points(group=ENTRY_POINTS):
            if entry.name == kind:
                register_term(entry.load())
    if kind in KINDS:
        return KINDS[str(kind)]
    if package:
        raise ModelError(
            f"term '{str(kind)[:60]}' is from the package '{str(package)[:60]}'. Install it, or import it before."
        )
    offered = {entry.name for entry in entry_points(group=ENTRY_POINTS)}
    raise ModelError(f"unknown term '{str(kind)[:60]}'. {nearest(str(kind), {*KINDS, *offered})}")


def term_from_dict(document: Mapping[str, Any]) -> Term:
    """Return the term of a stored document, ``{"kind": "viscous", "powers": [1]}``."""
    settings = dict(document)
    kind = settings.pop("kind", None)
    term = term_class(kind, settings.pop("package", None))
    try:
        return term.from_settings(settings)
    except (TypeError, ValueError) as problem:
        raise ModelError(f"term '{kind}': {str(problem).rstrip('.')}.") from None
