"""The phenomena of a joint: the one list of what can be identified. Importing it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phenomenon:
    """One phenomenon: its `name` in files and commands, its `title` on a page, the `line` that tells how it is found.

    `experiment` identifies it, as `jointwise joint plan` and `jointwise simulate` name it; `main` is what a log must
    offer much of to tell about it: twist of the gear, reversals, speed, load or temperature.
    """

    name: str
    title: str
    line: str
    experiment: str
    main: str


PHENOMENA = {
    own.name: own
    for own in (
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
"""Phenomena by name, in the order in which they are identified: each builds on those before, and stiffness is told once
more when the transmission is known."""
