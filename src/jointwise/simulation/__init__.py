"""Robots whose truth is known.

`references` are motions to follow, `robot` is the digital robot that follows them, `sensors` and `recording` make a log
of it; `synthetic` makes logs that obey the linear model exactly.
"""

from jointwise.simulation.sensors import Sensors

__all__ = ["Sensors"]
