"""Logs that obey the linear model exactly: inverse dynamics and friction along a motion, no integration.

Estimators are tested on them, for here the model is true and only the sensors err. Everything else that needs a robot
with a known truth takes the digital one (`simulation.robot`).
"""

from synthetic.friction import FRICTIONLESS, JointFriction, default_friction
from synthetic.log import SyntheticLog, synthetic_log
from synthetic.plant import Plant
from synthetic.truth import Truth

__all__ = ["FRICTIONLESS", "JointFriction", "Plant", "SyntheticLog", "Truth", "default_friction", "synthetic_log"]
