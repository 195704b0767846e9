"""The interface of joint terms and the signals that they are evaluated on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from jointwise.model.friction import LOAD_POWERS, load_growth, load_unit
from jointwise.motion import Signals
from jointwise.spatial import Array

State = Array | None


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

    `load` (Nm) is the torque that the links require of the joint, None where it is not known yet.
    """

    load: Array | None = None

    def known_load(self, term: str) -> Array:
        """Return the load torque; raise a `ValueError` that names the term if there is none."""
        if self.load is None:
            raise ValueError(f"term '{term}' needs the load torque")
        return self.load


class Term(ABC):
    """One physical effect at a joint: named parameters and their regressor columns."""

    kind: ClassVar[str]
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
        still = np.zeros(len(speed))
        return self.columns(JointSignals(1.0, still, speed, still, load=load, temperature=temperature))[0]

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

    def load_parameters(self, name: str, law: str) -> tuple[Parameter, ...]:
        """Return the coefficient of a load law in a tuple; empty for `none`."""
        return () if law == "none" else (Parameter(name, load_unit(law), non_negative=True),)

    def with_load(self, columns: list[Array], loaded: Array, joint: JointSignals, law: str) -> Array:
        """Return the columns stacked, followed by ℓ(τ_load) times `loaded` (samples,) unless the load law is `none`."""
        if law == "none":
            return np.column_stack(columns)
        growth = load_growth(joint.known_load(self.kind), LOAD_POWERS[law])
        return np.column_stack([*columns, growth * loaded])

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


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
