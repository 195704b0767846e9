"""Stiffness of a gear: the spring between rotor and link."""

from jointwise.joint.stiffness.identify import identify_stiffness
from jointwise.joint.stiffness.law import CATALOGUE, StiffnessLaw, stiffness_of
from jointwise.model.spring import OddPolynomial, Segments

__all__ = ["CATALOGUE", "OddPolynomial", "Segments", "StiffnessLaw", "identify_stiffness", "stiffness_of"]
