"""Stiffness of a gear: which spring lies between rotor and link."""

from jointwise.joint.springs import CATALOGUE, StiffnessLaw, stiffness_of
from jointwise.joint.stiffness.identify import identify_stiffness
from jointwise.model.spring import OddPolynomial, Segments

__all__ = ["CATALOGUE", "OddPolynomial", "Segments", "StiffnessLaw", "identify_stiffness", "stiffness_of"]
