"""The phenomena of a joint that can be identified. This module imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phenomenon:
    """A phenomenon of a joint that can be identified.

    Attributes:
        name: Name in files and commands.
        title: Title in reports.
        line: Description in one line.
        experiment: Name of its experiment in `jointwise joint plan` and `jointwise simulate`.
        main: Quantity that a log must excite: twist of the gear, reversals, speed, load or temperature.
    """

    name: str
    title: str
    line: str
    experiment: str
    main: str


PHENOMENA = {
    phenomenon.name: phenomenon
    for phenomenon in (
        Phenomenon(
            name="stiffness",
            title="Stiffness",
            line="spring of the gear, from a locked output with a known torque or from two encoders",
            experiment="locked",
            main="twist",
        ),
        Phenomenon(
            name="transmission",
            title="Kinematic error and backlash",
            line="kinematic error and position-dependent backlash, from slow reciprocation",
            experiment="reciprocate",
            main="reversals",
        ),
        Phenomenon(
            name="friction",
            title="Friction over speed",
            line="friction over speed, from constant-speed runs",
            experiment="constant-speed",
            main="speed",
        ),
        Phenomenon(
            name="load",
            title="Friction over load",
            line="friction over load, from slow runs into gravity",
            experiment="load",
            main="load",
        ),
        Phenomenon(
            name="temperature",
            title="Friction over temperature",
            line="friction over temperature, from a warm-up",
            experiment="warm-up",
            main="temperature",
        ),
        Phenomenon(
            name="hysteresis",
            title="Hysteresis",
            line="Maxwell-slip hysteresis, from slow reciprocation",
            experiment="reciprocate",
            main="reversals",
        ),
        Phenomenon(
            name="motor",
            title="Motor",
            line="drive gain and offset, from a load/unload pair, the controller's signals, or the known links",
            experiment="load",
            main="load",
        ),
    )
}
"""Phenomena by name, in the order of identification: each uses those before, and stiffness is identified again once the
transmission is known."""
