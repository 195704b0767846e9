"""The channels of a log: their names, their columns' usual spellings, their units and what is beyond belief.

============== ========= ===================================================================
channel        unit      meaning, at the joint side unless a column says otherwise
============== ========= ===================================================================
t              s         stamp of the sample
q, qd          rad       measured position and speed (m and m/s for prismatic joints)
theta          rad       motor position divided by the gear ratio
current        A         measured motor current
torque         Nm        measured joint torque
temperature    degC      temperature of the joint
``*_des``      as above  what the controller asked for
============== ========= ===================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from jointwise.errors import DataError, nearest

TIME = "t"
POSITION = "q"


@dataclass(frozen=True)
class Channel:
    """One measured quantity: its short column stem, other spellings, SI unit, and the largest believable value."""

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
