"""Friction over temperature, from a warm-up."""

from jointwise.joint.temperature.identify import identify_temperature
from jointwise.joint.temperature.law import PARAMETERS, TemperatureLaw, temperature_law_of

__all__ = ["PARAMETERS", "TemperatureLaw", "identify_temperature", "temperature_law_of"]
