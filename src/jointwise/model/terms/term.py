"""The interface of joint terms and the signals that they are evaluated on.

A term is one law of a joint: a frozen dataclass whose settings are fields. It names its parameters, returns their
regressor columns along a motion, with explicit memory, and packs itself for the C core. The torque of a joint is the
sum of its terms (`joint.JointLaw`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from jointwise.backend import native
from jointwise.motion import Signals
from jointwise.spatial import Array

State = Array | None
Role = Literal["dry", "slip", "viscous", "thermal", "offset", "spring", "inertia", "drive", "other"]
"""What a term is physically: dry friction, without (`dry`) and with memory (`slip`); friction that grows with speed;
friction by temperature; a constant; a spring; an inertia; the response of the drive to ripple; anything else."""
DRY: tuple[Role, ...] = ("dry", "slip")
"""Dry friction, which wear changes in proportion."""
NUMBERS = 8
"""Numbers of a term in the C core, JW_NUMBERS."""
LOADS = {
    "none": "JW_LOAD_NONE",
    "absolute": "JW_LOAD_ABSOLUTE",
    "square": "JW_LOAD_SQUARE",
    "mixed": "JW_LOAD_MIXED",
}
"""How a term grows with the load, and the names in the C core, in their order."""
DRIVERS = {
    "q": "JW_DRIVER_Q",
    "track": "JW_DRIVER_TRACK",
    "rotor": "JW_DRIVER_ROTOR",
    "speed": "JW_DRIVER_SPEED",
}
"""What drives a term: a position that deforms slip elements, for other terms the state of the slip elements with that
driver, or the sign of the speed; and the names in the C core, in their order."""


@dataclass(frozen=True)
class Parameter:
    """A coefficient of a term.

    Attributes:
        name: Name, without the joint.
        unit: Unit.
        non_negative: Whether physics forbids negative values.
    """

    name: str
    unit: str
    non_negative: bool = False


@dataclass(frozen=True)
class JointSignals(Signals):
    """The motion of one joint, each (samples,); see `Signals`.

    Attributes:
        load: Torque that the links require of the joint, Nm; None where it is not known yet.
        directions: State H in [-1, 1] of the slip terms by their driver, for terms that act in that direction; it is
            filled where all terms of a joint are evaluated (`joint.joint_columns`).

    """

    load: Array | None = None
    directions: Mapping[str, Array] | None = None

    def known_load(self, term: str) -> Array:
        """Return the load torque; raise a `ValueError` that names the term if there is none."""
        if self.load is None:
            raise ValueError(f"term '{term}' needs the load torque")
        return self.load


@dataclass(frozen=True)
class CoreTerm:
    """A term with its values as `jw_term` of `runtime/core/terms.h`, which lists the numbers of every law.

    Attributes:
        kind: Name of the law in `terms.h`.
        number: Its numbers, at most `NUMBERS`, in SI units.
        load: How it grows with the load, a key of `LOADS`.
        driver: What drives its memory, or the direction in which it acts; a key of `DRIVERS`.
        count: Number of its elements.
        elements: Columns of the elements, one after the other, `count` numbers each.
        backlash: Relative backlash over a turn, equally spaced, (points,); () for 1 everywhere.
        width: Speed (rad/s) over which the sign of the speed turns as tanh; 0: at once.
    """

    kind: str
    number: tuple[float, ...]
    load: str = "none"
    driver: str = "speed"
    count: int = 0
    elements: tuple[float, ...] = ()
    backlash: tuple[float, ...] = ()
    width: float = 0.0

    def packed(self) -> list[float]:
        """Return the numbers in the order of the native reader (`term_reader.h`)."""
        heads = [_core_laws().index(self.kind), list(LOADS).index(self.load), list(DRIVERS).index(self.driver)]
        padded = [*self.number, *(0.0,) * (NUMBERS - len(self.number))]
        sizes = [float(self.count), float(len(self.backlash)), self.width]
        return [*map(float, heads), *sizes, *padded, *self.elements, *self.backlash]


def _core_laws() -> list[str]:
    """Return the names of the laws of the native kernel, in the order of their kinds."""
    kernel = native()
    return [] if kernel is None else kernel.term_laws().split()


class Term(ABC):
    """One physical effect at a joint: named parameters and their regressor columns."""

    kind: ClassVar[str]
    role: ClassVar[Role] = "other"
    needs_load: ClassVar[bool] = False
    """Whether the columns always depend on the load torque (see `uses_load`)."""

    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the coefficients in the order of the columns."""

    @abstractmethod
    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the regressor columns along a motion.

        Args:
            joint: Signals of the joint.
            state: State after the samples before, None at the start of a segment; it is not changed.

        Returns:
            Columns (samples, parameters), and the state for the samples that follow.

        """

    def pack(self, values: list[float], period: float) -> tuple[CoreTerm, ...]:
        """Return the term with its parameter values as laws of the C core, for a sampling period (s).

        A term without it is evaluated in Python, on arrays only.
        """
        raise NotImplementedError(f"term '{self.kind}' has no law in the C core")

    def hysteresis(self, columns: Array) -> Array:
        """Return the state H in [-1, 1], (samples,), of a term with the role `slip` from its columns."""
        raise NotImplementedError(f"term '{self.kind}' has no slip elements")

    def causal_state(self, rate: float) -> State:
        """Return the state at the start of a stream at a rate (Hz), in which no later sample is known; see `columns`.

        None where the start of a segment is the same.
        """
        return None

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return the columns at constant speeds, after all transients, (samples, parameters).

        Args:
            speed: Joint speeds (samples,), rad/s.
            load: Load torques (samples,), Nm.
            temperature: Joint temperatures (samples,), °C; None for the temperature at which the other terms hold.

        """
        still, side = np.zeros(len(speed)), np.sign(speed)
        directions = dict.fromkeys(("q", "track", "rotor"), side)
        return self.columns(
            JointSignals(1.0, still, speed, still, load=load, temperature=temperature, directions=directions)
        )[0]

    def uses_load(self) -> bool:
        """Return whether the columns depend on the load torque."""
        return self.needs_load

    def uses_speed(self) -> bool:
        """Return whether the columns depend on a measured speed (`track` or `ripple`)."""
        return False

    def uses_rotor(self) -> bool:
        """Return whether the columns depend on the measured position of the rotor."""
        return False

    def uses_temperature(self) -> bool:
        """Return whether the columns depend on a measured temperature."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return the term as a document: its kind and settings, and the package of a term that is not ours."""
        settings = {key: getattr(self, key) for key in getattr(self, "__dataclass_fields__", ())}
        package = type(self).__module__.partition(".")[0]
        origin = {} if package == __name__.partition(".")[0] else {"package": package}
        return {"kind": self.kind, **origin, **{key: _plain(value) for key, value in settings.items()}}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """Return the term with stored settings; unknown, missing and wrong ones raise ModelError."""
        from jointwise.document import decode

        return decode(settings, cls)


def has_core_law(term: Term) -> bool:
    """Return whether a term is evaluated in C: its class, not one that it derives from, has `pack`."""
    return "pack" in vars(type(term))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
