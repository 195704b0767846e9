"""The channels of a log: their names, the usual spellings of their columns, their units and their ranges.

A mapping may state another unit, which the reader converts to SI; units are never guessed.

============== ========= ===================================================================
channel        unit      meaning, at the joint side unless a column says otherwise
============== ========= ===================================================================
t              s         time stamp of the sample
q, qd          rad       measured position and speed (m and m/s for prismatic joints)
theta          rad       motor position divided by the gear ratio
current        A         measured motor current
torque         Nm        measured joint torque
temperature    degC      temperature of the joint
``*_des``      as above  the set point of the controller
============== ========= ===================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

from jointwise.errors import DataError, nearest

_DEGREE = math.pi / 180.0
_TURN = 2.0 * math.pi


TIME = "t"
POSITION = "q"


@dataclass(frozen=True)
class Channel:
    """One measured quantity.

    Attributes:
        name: Name of the channel.
        stem: Short stem of its columns.
        spellings: Other names of its columns.
        unit: SI unit.
        largest: Largest plausible magnitude, in `unit`.
    """

    name: str
    stem: str
    spellings: tuple[str, ...]
    unit: str
    largest: float


_ALL = (
    Channel("t", "t", ("time", "timestamp"), "s", 1e19),
    Channel("q", "q", ("actual_q",), "rad", 1e6),
    Channel("qd", "qd", ("actual_qd",), "rad/s", 1e6),
    Channel("theta", "theta", (), "rad", 1e6),
    Channel("current", "i", ("current", "actual_current"), "A", 1e6),
    Channel("torque", "tau", ("torque",), "Nm", 1e7),
    Channel("temperature", "temp", ("temperature", "joint_temperatures"), "degC", 1e5),
    Channel("q_des", "q_des", ("target_q",), "rad", 1e6),
    Channel("qd_des", "qd_des", ("target_qd",), "rad/s", 1e6),
    Channel("qdd_des", "qdd_des", ("target_qdd",), "rad/s^2", 1e7),
    Channel("current_des", "i_des", ("current_des", "target_current"), "A", 1e6),
    Channel("torque_des", "tau_des", ("torque_des", "target_moment"), "Nm", 1e7),
)

CHANNELS = MappingProxyType({channel.name: channel for channel in _ALL})
"""Every channel by its name, in the order of a log."""

OPTIONAL = tuple(name for name in CHANNELS if name not in (TIME, POSITION))
"""The channels that a log may lack."""

OUTPUTS = ("current", "torque")
"""The channels that a model can predict."""

SPELLINGS = MappingProxyType({s: c.name for c in _ALL for s in (c.name, c.stem, *c.spellings)})
"""Channel of every recognised column stem."""


def channel_named(name: str, where: str) -> Channel:
    """Return the channel that `name` (a channel's name or a column stem) means; `where` opens the error line."""
    try:
        return CHANNELS[SPELLINGS[name.strip()]]
    except KeyError:
        raise DataError(f"{where}: unknown channel '{name.strip()}'. {nearest(name, CHANNELS)}") from None


def default_names(channel: str, joints: int) -> tuple[str, ...]:
    """Return our own column names of a channel, such as ("i1", "i2")."""
    if channel == TIME:
        return (TIME,)
    return tuple(f"{CHANNELS[channel].stem}{j}" for j in range(1, joints + 1))


def complete_names(
    channel: str, names: tuple[str, ...], measured: tuple[int, ...] | None, joints: int
) -> tuple[str, ...]:
    """Return the names of the columns of a channel, with ours for joints that have no column.

    Args:
        channel: Name of the channel.
        names: Names of the columns in the file.
        measured: Joints (0-based) of these columns; None if there is one for every joint.
        joints: Number of joints.
    """
    if measured is None:
        return names
    every = list(default_names(channel, joints))
    for j, name in zip(measured, names, strict=True):
        every[j] = name
    return tuple(every)


@dataclass(frozen=True)
class Conversion:
    """``SI value = scale · value + offset``."""

    scale: float = 1.0
    offset: float = 0.0

    @property
    def identity(self) -> bool:
        """True if nothing changes."""
        return self.scale == 1.0 and self.offset == 0.0


_UNITS: dict[str, dict[str, Conversion]] = {
    "s": {"s": Conversion(), "ms": Conversion(1e-3), "us": Conversion(1e-6), "ns": Conversion(1e-9)},
    "rad": {
        "rad": Conversion(),
        "mrad": Conversion(1e-3),
        "deg": Conversion(_DEGREE),
        "turn": Conversion(_TURN),
        "m": Conversion(),
        "mm": Conversion(1e-3),
    },
    "rad/s": {
        "rad/s": Conversion(),
        "deg/s": Conversion(_DEGREE),
        "rpm": Conversion(_TURN / 60.0),
        "m/s": Conversion(),
        "mm/s": Conversion(1e-3),
    },
    "rad/s^2": {
        "rad/s^2": Conversion(),
        "deg/s^2": Conversion(_DEGREE),
        "m/s^2": Conversion(),
        "mm/s^2": Conversion(1e-3),
    },
    "A": {"A": Conversion(), "mA": Conversion(1e-3)},
    "Nm": {"Nm": Conversion(), "mNm": Conversion(1e-3), "kNm": Conversion(1e3), "N": Conversion()},
    "degC": {"degC": Conversion(), "K": Conversion(1.0, -273.15), "degF": Conversion(5.0 / 9.0, -160.0 / 9.0)},
}


def conversion(channel: Channel, unit: str, where: str) -> Conversion:
    """Return how to bring `unit` to the channel's SI unit; `where` opens the error line."""
    known = _UNITS[channel.unit]
    if unit not in known:
        raise DataError(f"{where}: unit of '{channel.name}' must be one of {', '.join(known)}. Got '{unit}' instead.")
    return known[unit]
