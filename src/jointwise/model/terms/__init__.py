"""The joint's own torques: one file a physical effect.

A term names its parameters and gives their columns for the signals of one joint; the model only adds terms up. A new
friction law is one small file and its line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jointwise.errors import ModelError, nearest
from jointwise.model.terms.coulomb import Coulomb
from jointwise.model.terms.drive import SpeedRipple
from jointwise.model.terms.hysteresis import Hysteresis
from jointwise.model.terms.offset import Offset
from jointwise.model.terms.power_flow import PowerFlow
from jointwise.model.terms.rated import Rated
from jointwise.model.terms.stribeck import Stribeck
from jointwise.model.terms.temperature import Temperature
from jointwise.model.terms.term import JointSignals, Parameter, Term
from jointwise.model.terms.viscous import Viscous

KINDS: dict[str, type[Term]] = {
    term.kind: term
    for term in (Offset, Coulomb, Hysteresis, Rated, Viscous, Stribeck, PowerFlow, Temperature, SpeedRipple)
}

__all__ = [
    "KINDS",
    "Coulomb",
    "Hysteresis",
    "JointSignals",
    "Offset",
    "Parameter",
    "PowerFlow",
    "Rated",
    "SpeedRipple",
    "Stribeck",
    "Temperature",
    "Term",
    "Viscous",
    "term_from_dict",
]


def term_from_dict(document: Mapping[str, Any]) -> Term:
    """Return the term of a stored document, ``{"kind": "viscous", "powers": [1]}``."""
    settings = dict(document)
    kind = settings.pop("kind", None)
    if kind not in KINDS:
        raise ModelError(f"unknown term '{kind}'. {nearest(str(kind), KINDS)}")
    try:
        return KINDS[kind].from_settings(settings)
    except (TypeError, ValueError) as problem:
        raise ModelError(f"term '{kind}': {problem}.") from None
