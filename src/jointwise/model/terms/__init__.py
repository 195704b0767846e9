"""Joint torques beside rigid-body dynamics, each as a term of the regressor.

A term names its parameters and returns their columns for the signals of one joint; the model adds terms up. The physics
is in `model/friction`; a new term is a class here and an entry in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib.metadata import entry_points
from typing import Any

from jointwise.errors import ModelError, nearest
from jointwise.model.terms.hysteresis import Hysteresis, Rated
from jointwise.model.terms.steady import (
    Coulomb,
    Inertia,
    Offset,
    PowerFlow,
    SpeedRipple,
    Spring,
    Stribeck,
    Temperature,
    Viscous,
)
from jointwise.model.terms.term import JointSignals, Parameter, Term

KINDS: dict[str, type[Term]] = {
    term.kind: term
    for term in (
        *(Offset, Inertia, Spring, Coulomb, Hysteresis, Rated, Viscous),
        *(Stribeck, PowerFlow, Temperature, SpeedRipple),
    )
}

__all__ = [
    "KINDS",
    "Coulomb",
    "Hysteresis",
    "Inertia",
    "JointSignals",
    "Offset",
    "Parameter",
    "PowerFlow",
    "Rated",
    "SpeedRipple",
    "Spring",
    "Stribeck",
    "Temperature",
    "Term",
    "Viscous",
    "register_term",
    "term_class",
    "term_from_dict",
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
