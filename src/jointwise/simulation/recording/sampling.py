"""A run at any time: between its control periods states are interpolated, commands are held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise.simulation.robot.run import Run
from jointwise.spatial import Array

ROUNDING = 1e-6
"""Part of a period by which a time may miss the start of its period."""


@dataclass(frozen=True)
class Signals:
    """True signals at given times, (samples, joints): rad, rad/s, A, °C, Nm; `load` is the torque of the gear."""

    q: Array
    qd: Array
    theta: Array
    current: Array
    temperature: Array
    load: Array
    command: Array


def signals_at(run: Run, rate: float, times: Array) -> Signals:
    """Return the signals of a run, made at a control rate (Hz), at times (samples,) s from its start to its end.

    Positions are the cubics through positions and speeds at both ends of a period, the rest is linear; a command holds
    until the next. At the start of a period the run's own numbers are returned.
    """
    place = (times - run.t[0]) * rate
    k = np.clip(np.floor(place + ROUNDING), 0, len(run.t) - 1).astype(np.intp)
    s = np.clip(place - k, 0.0, 1.0)[:, None]
    s[s < ROUNDING] = 0.0

    def linear(name: str) -> Array:
        before, after = _ends(run, name, k)
        result: Array = before + s * (after - before)
        return result

    return Signals(
        q=_cubic(_ends(run, "q", k), _ends(run, "qd", k), s, rate),
        qd=linear("qd"),
        theta=_cubic(_ends(run, "theta", k), _ends(run, "speed", k), s, rate),
        current=linear("current"),
        temperature=linear("temperature"),
        load=linear("load"),
        command=run.command[k],
    )


def _ends(run: Run, name: str, k: Array) -> tuple[Array, Array]:
    """Return a series at the start and at the end of the periods k, (samples, joints)."""
    series = np.vstack([getattr(run, name), run.final.row(name)])
    return series[k], series[k + 1]


def _cubic(x: tuple[Array, Array], v: tuple[Array, Array], s: Array, rate: float) -> Array:
    """Return Hermite's cubic at parts s of a period; x + s (...) so that s = 0 gives x to the bit."""
    step = x[1] - x[0]
    a, b = v[0] / rate - step, step - v[1] / rate
    result: Array = x[0] + s * (step + (1.0 - s) * ((1.0 - s) * a + s * b))
    return result
