"""The page of an energy balance: power over time, where the energy goes, and a table of the joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from jointwise.formatting import number
from jointwise.report.figure import MEASURED, PREDICTED, Figure, axis, joint_color, time_figure
from jointwise.report.page import render, write_page
from jointwise.spatial import Array

FILE = "energy.html"
POINTS = 3000
"""Largest number of points of a curve."""
SHARES = {
    "links": ("links and payload", "#2b7a3d"),
    "friction": ("friction heat", "#b4470f"),
    "mechanical": ("motor shaft", "#2b7a3d"),
    "copper": ("copper loss", "#8a6d00"),
    "drive": ("iron and drive loss", "#7a3b9c"),
}
"""Name and colour of the shares of the electrical energy of a joint."""
COLUMNS = {
    "electrical": "electrical, J",
    "mechanical": "motor shaft, J",
    "friction": "friction heat, J",
    "links": "links, J",
    "copper": "copper loss, J",
    "drive": "iron and drive loss, J",
    "braking": "braking, J",
    "efficiency": "efficiency of the motor",
}

Result = Mapping[str, Any]
"""Energies (J) of an energy balance: `robot` and `joints`."""


class Balance(Protocol):
    """What the page shows of an energy balance, `jointwise.energy.EnergyBalance`."""

    @property
    def t(self) -> Array:
        """Stamps (samples,), s."""

    @property
    def electrical(self) -> Array:
        """Electrical powers of the joints (samples, joints), W."""

    @property
    def power(self) -> Array:
        """Predicted power on the bus (samples,), W."""

    @property
    def measured(self) -> Array | None:
        """The same measured, or None."""

    def to_dict(self) -> Result:
        """Return energies (J), efficiencies and errors."""


def write_energy_page(balance: Balance, heading: str, path: str | Path) -> Path:
    """Write the page of an energy balance and return its path. The page is self-contained and needs no network.

    Args:
        balance: The balance, as returned by `jointwise.energy.energy_balance`.
        heading: Heading of the page: robot and log.
        path: A page (.html) or a directory, which is created if it does not exist.

    Returns:
        The page.

    """
    result, t = balance.to_dict(), balance.t
    series = [] if balance.measured is None else [("measured", balance.measured, MEASURED)]
    series.append(("predicted", balance.power, PREDICTED))
    drawn = [(f"joint {k + 1}", values, joint_color(k)) for k, values in enumerate(balance.electrical.T)]
    page = render(
        "energy.html",
        kind="Energy balance",
        heading=heading,
        origin=f"{number(result['robot']['duration'])} s, currents {result['robot']['currents']}",
        robot=result["robot"],
        joints=result["joints"],
        columns=COLUMNS,
        power=time_figure(t, series, "power [W]", "power on the bus over time", POINTS),
        flow=_flow(result["robot"]),
        bars=_bars(result["joints"]),
        joint_power=time_figure(t, drawn, "power [W]", "electrical power of the joints", POINTS),
    )
    return write_page(page, path, FILE)


def _bars(joints: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the energies of the joints as stacked bars."""
    split = joints[0]["friction"] is not None
    shown = [name for name in SHARES if name != ("mechanical" if split else "links") and (split or name != "friction")]
    names = [f"joint {joint['joint']}" for joint in joints]
    traces = [
        {
            "type": "bar",
            "name": SHARES[name][0],
            "x": names,
            "y": [joint[name] for joint in joints],
            "marker": {"color": SHARES[name][1]},
        }
        for name in shown
    ]
    layout = {"barmode": "relative", "yaxis": axis("energy [J]")}
    return Figure(traces, layout, "energies of the joints")


def _flow(robot: Mapping[str, Any]) -> Figure:
    """Return where the energy from the bus goes: every bar begins where the one before it ends."""
    parts = [
        ("standing power", robot["standing"], "#8b9bb0"),
        ("copper loss", robot["copper"], SHARES["copper"][1]),
        ("iron and drive loss", robot["drive"], SHARES["drive"][1]),
        ("braking resistor", robot["burnt"], "#a3265f"),
    ]
    if robot["friction"] is None:
        parts.append(("motor shafts", robot["mechanical"], SHARES["mechanical"][1]))
    else:
        parts.append(("friction heat", robot["friction"], SHARES["friction"][1]))
        parts.append(("links and payload", robot["links"], SHARES["links"][1]))
    sizes = np.array([size for _, size, _ in parts])
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": [name for name, _, _ in parts],
        "x": sizes.tolist(),
        "base": (np.cumsum(sizes) - sizes).tolist(),
        "text": [f"{number(size, 3)} J" for size in sizes.tolist()],
        "textposition": "auto",
        "cliponaxis": False,
        "marker": {"color": [color for _, _, color in parts]},
        "hovertemplate": "%{y}: %{text}<extra></extra>",
    }
    layout = {"xaxis": axis("energy [J]", zeroline=True), "yaxis": {"autorange": "reversed"}, "hovermode": "closest"}
    return Figure([trace], layout, "destinations of the energy", height=300)
