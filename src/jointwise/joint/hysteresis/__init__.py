"""Hysteresis of a joint: Maxwell-slip models, their rate-dependent form, LuGre and maps without memory."""

from jointwise.joint.hysteresis.identify import identify_hysteresis
from jointwise.joint.hysteresis.laws import FrictionLaw, Motion, friction_law, hysteresis_term, motion_of, rated_term
from jointwise.joint.hysteresis.methods import METHODS

__all__ = [
    "METHODS",
    "FrictionLaw",
    "Motion",
    "friction_law",
    "hysteresis_term",
    "identify_hysteresis",
    "motion_of",
    "rated_term",
]
