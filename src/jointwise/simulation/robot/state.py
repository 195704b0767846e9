"""Everything the digital robot remembers between two control periods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.spatial import Array

ROWS = (
    "q", "qd", "theta", "speed", "current", "temperature", "load", "friction", "integral",
    "supplied", "friction_loss", "damped", "play", "electrical", "copper", "q_before", "theta_before",
)  # fmt: skip
"""Numbers a joint, in the order of the native side."""


@dataclass(frozen=True)
class State:
    """One instant; arrays of its rows are (joints,), read-only, SI units at the joint side.

    The row `integral` is the controller's ∫ (q - q_d) dt; `q_before` and `theta_before` are where links and rotors were
    one control period ago, for controllers that take differences.

    Attributes:
        values: Flat array of the native side: the `ROWS`, the memory of friction, and the external
            energy (J).
        dof: Number of joints.
        time: Time, s.
    """

    values: Array
    dof: int
    time: float = 0.0

    def __post_init__(self) -> None:
        """Freeze the numbers."""
        values = np.array(self.values, dtype=np.float64)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def row(self, name: str) -> Array:
        """Return one of `ROWS`, (joints,)."""
        k = ROWS.index(name) * self.dof
        return self.values[k : k + self.dof]

    @property
    def q(self) -> Array:
        """Link positions, rad."""
        return self.row("q")

    @property
    def qd(self) -> Array:
        """Link speeds, rad/s."""
        return self.row("qd")

    @property
    def theta(self) -> Array:
        """Rotor positions after the gear, rad."""
        return self.row("theta")

    @property
    def speed(self) -> Array:
        """Rotor speeds after the gear, rad/s."""
        return self.row("speed")

    @property
    def current(self) -> Array:
        """Motor currents, A."""
        return self.row("current")

    @property
    def temperature(self) -> Array:
        """Joint temperatures, °C."""
        return self.row("temperature")

    @property
    def load(self) -> Array:
        """Torque that the gear transmits to the link, Nm."""
        return self.row("load")

    @property
    def friction(self) -> Array:
        """Friction torque, mean of the last step, Nm."""
        return self.row("friction")

    @property
    def play(self) -> Array:
        """Where the teeth are between their flanks: P of the lost motion, -1 to 1."""
        return self.row("play")

    def arriving(self, rate: float) -> State:
        """Return the state as one that was reached at steady speeds at a control `rate` (Hz)."""
        return self.with_rows(q_before=self.q - self.qd / rate, theta_before=self.theta - self.speed / rate)

    @property
    def deformation(self) -> Array:
        """What friction remembers, (joints, numbers): deformations δ_i of the slip elements, rad."""
        return self.values[len(ROWS) * self.dof : -1].reshape(self.dof, -1)

    def with_rows(self, time: float | None = None, **rows: object) -> State:
        """Return the state with some of `ROWS`, `deformation` or `external` (J) replaced."""
        values = self.values.copy()
        for name, row in rows.items():
            if name == "external":
                values[-1] = np.asarray(row)
            elif name == "deformation":
                values[len(ROWS) * self.dof : -1] = np.broadcast_to(np.asarray(row), self.deformation.shape).ravel()
            else:
                k = ROWS.index(name) * self.dof
                values[k : k + self.dof] = np.asarray(row)
        return State(values, self.dof, self.time if time is None else time)


def blank_state(dof: int, elements: int) -> State:
    """Return a state of zeros."""
    return State(np.zeros(len(ROWS) * dof + dof * elements + 1), dof)
