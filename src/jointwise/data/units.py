"""Units that a mapping may state; the reader converts them to SI explicitly, it never guesses."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jointwise.data.channels import Channel
from jointwise.errors import DataError

_DEGREE = math.pi / 180.0
_TURN = 2.0 * math.pi


@dataclass(frozen=True)
class Conversion:
    """SI value = scale · value + offset."""

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
