"""A robot that becomes another on the way: a payload picked up, a gear that wore."""

from __future__ import annotations

import numpy as np

from jointwise.simulation.robot.digital import DigitalRobot
from jointwise.simulation.robot.integrate import simulate
from jointwise.simulation.robot.state import State


def carried_over(state: State, before: DigitalRobot, after: DigitalRobot) -> State:
    """Return the state of one robot for another; the energy that the change brings is external work."""
    gained = stored_energy(after, state) - stored_energy(before, state)
    return state.with_rows(external=state.values[-1] + gained)


def stored_energy(digital: DigitalRobot, state: State) -> float:
    """Return kinetic, potential and elastic energy of a robot in a state, J."""
    idle = np.zeros((1, digital.robot.dof))
    return float(simulate(digital, state, idle, substeps=1).energy.stored[0])
