"""Friction over load, from slow runs forward and back under gravity."""

from jointwise.joint.load.identify import identify_load
from jointwise.joint.load.law import CHOICES, LoadLaw, load_law_of

__all__ = ["CHOICES", "LoadLaw", "identify_load", "load_law_of"]
