"""Terms of single joints that come from their own experiments, and what those experiments leave open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from jointwise.estimation.structure import Structure
from jointwise.model.terms import Coulomb, Hysteresis, Rated, SpeedRipple, Stribeck, Term, Viscous

OPEN = ("direction", "drivers", "relaxation", "load", "viscous", "stribeck", "ripple")
"""Effects that may be left to the structure of the calibration."""

TOTALS = ("FC0", "FC1")
"""Known sizes of dry friction, and of its growth with the load, which slip elements share between them."""


@dataclass(frozen=True)
class GivenTerms:
    """Terms of one joint that come from elsewhere; `known` are the values of parameters that are not estimated.

    `known` maps names of the terms' parameters (without the joint) to value and standard deviation. `open` are the
    effects (of `OPEN`) of which the joint's own experiments say nothing: they stay what the calibration takes for all
    joints. `firm` terms are kept even where the automatic ones predict better. `totals` are values that the slip
    elements of a joint share: of `FC0`, the sum of their forces, and of `FC1`, that of their growth with the load.
    """

    terms: tuple[Term, ...]
    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    firm: bool = False
    totals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def without_load(self) -> tuple[Term, ...]:
        """Return the terms as they are while no load torque is known."""
        return tuple(_unloaded(term) for term in self.terms if not term.needs_load)

    def completed(self, structure: Structure) -> GivenTerms:
        """Return the terms with what is open filled in from a structure."""
        terms = [own for term in self.terms for own in self._filled(term, structure)]
        terms += [Viscous(structure.powers)] if "viscous" in self.open and structure.powers else []
        if "stribeck" in self.open and structure.stribeck:
            terms.append(Stribeck(structure.stribeck, width=structure.width))
        terms += [SpeedRipple(structure.ripple)] if "ripple" in self.open and structure.ripple else []
        slipping = "direction" in self.open and structure.direction == "hysteresis"
        totals = {name: pair for name, pair in self.known.items() if slipping and name in TOTALS}
        others = {name: pair for name, pair in self.known.items() if name not in totals}
        return replace(self, terms=tuple(terms), open=(), known=others, totals=totals)

    def _filled(self, term: Term, structure: Structure) -> list[Term]:
        """Return dry friction as the structure turns it where that is open; other terms as they are."""
        if not isinstance(term, Coulomb | Hysteresis | Rated):
            return [term]
        load = structure.load if "load" in self.open else term.load
        if isinstance(term, Rated):
            return [replace(term, load=load)]
        if "direction" in self.open:
            dry = replace(structure, load=load, powers=(), stribeck=0.0, ripple=0.0, offset=False)
            return list(dry.terms())
        if isinstance(term, Coulomb) or structure.direction != "hysteresis":
            return [replace(term, load=load)]
        drivers = structure.drivers if "drivers" in self.open else (term.driver,)
        relaxation = structure.relaxation if "relaxation" in self.open else term.relaxation
        return [replace(term, load=load, driver=driver, relaxation=relaxation) for driver in drivers]


def _unloaded(term: Term) -> Term:
    return replace(term, load="none") if isinstance(term, Coulomb | Hysteresis | Rated) else term


NOTHING_GIVEN: Mapping[int, GivenTerms] = MappingProxyType({})
