"""What a joint term is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from jointwise.spatial import Array

State = Array | None


@dataclass(frozen=True)
class Parameter:
    """A coefficient of a term: its name (without the joint), unit, and whether physics forbids negative values."""

    name: str
    unit: str
    non_negative: bool = False


@dataclass(frozen=True)
class JointSignals:
    """The motion of one joint on a uniform clock, each (samples,): rad, rad/s, rad/s²; `load` in Nm.

    `path`, `track`, `ripple`, `rotor` and `temperature` (°C) as in `Motion`, None where it has none; `load` is the
    torque that the links ask of the joint, None where it is not known yet.
    """

    rate: float
    q: Array
    qd: Array
    qdd: Array
    path: Array | None = None
    track: Array | None = None
    ripple: Array | None = None
    load: Array | None = None
    temperature: Array | None = None
    rotor: Array | None = None

    def known_load(self, term: str) -> Array:
        """Return the load torque; a term that needs it cannot be evaluated without."""
        if self.load is None:
            raise ValueError(f"term '{term}' needs the load torque")
        return self.load


class Term(ABC):
    """One physical effect at a joint: named parameters and their regressor columns."""

    kind: ClassVar[str]
    needs_load: ClassVar[bool] = False
    """Whether the columns may depend on the load torque (see `uses_load`)."""

    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the coefficients in the order of the columns."""

    @abstractmethod
    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the columns (samples, parameters) and the state to carry to the next stretch of the same log."""

    def uses_load(self) -> bool:
        """Tell whether this term's columns depend on the load torque."""
        return self.needs_load

    def uses_speed(self) -> bool:
        """Tell whether this term needs a measured speed (`track` or `ripple`)."""
        return False

    def uses_rotor(self) -> bool:
        """Tell whether this term needs the measured position of the rotor."""
        return False

    def uses_temperature(self) -> bool:
        """Tell whether this term needs a measured temperature."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return the term as a document: its kind and settings."""
        settings = {key: getattr(self, key) for key in getattr(self, "__dataclass_fields__", ())}
        return {"kind": self.kind, **{key: _plain(value) for key, value in settings.items()}}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """Return the term of stored settings."""
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()})


def load_factor(load: Array, dependence: str) -> Array:
    """Return |τ| (`absolute`) or τ² (`square`) of the load torque."""
    return np.abs(load) if dependence == "absolute" else load**2


def check_dependence(dependence: str) -> None:
    """Refuse anything but none, square, absolute."""
    if dependence not in ("none", "square", "absolute"):
        raise ValueError(f"load must be none, square or absolute. Got '{dependence}' instead")


def load_unit(dependence: str) -> str:
    """Return the unit of a load coefficient: 1 (`absolute`) or 1/Nm (`square`)."""
    return "1" if dependence == "absolute" else "1/Nm"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
