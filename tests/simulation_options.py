"""Flat keyword arguments, grouped into the option objects of `jointwise.simulate`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from jointwise.experiment import ControllerOptions, PlantOptions

PLANT = {field.name for field in fields(PlantOptions)}
CONTROLLER = {"controller": "controller", "control_rate": "rate", "bandwidth": "bandwidth", "feedback": "feedback"}


def grouped(**options: Any) -> dict[str, Any]:
    """Return arguments of `simulate` with those of the plant and of the controller in their option objects."""
    plant = {name: value for name, value in options.items() if name in PLANT}
    controller = {CONTROLLER[name]: value for name, value in options.items() if name in CONTROLLER}
    rest = {name: value for name, value in options.items() if name not in PLANT and name not in CONTROLLER}
    if plant:
        rest["plant"] = PlantOptions(**plant)
    if controller:
        rest["controller"] = ControllerOptions(**controller)
    return rest
