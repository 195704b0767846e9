"""A controller of one's own in an experiment: stepped in Python, or natively where it has a law."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointwise.errors import ModelError
from jointwise.model.control_law import GAINS, AffineControl, Sample
from jointwise.simulation.references.trajectory import States
from jointwise.spatial import Array


class Stepping:
    """A controller with ``init(sample)`` and ``step(memory, sample)`` that goes on from block to block."""

    def __init__(self, controller: Any) -> None:
        """Begin anew: `init` is asked once."""
        self._controller = controller
        self._memory: tuple[Any] | None = None

    def init(self, sample: Sample) -> Any:
        """Return the memory so far."""
        if self._memory is None:
            self._memory = (self._controller.init(sample),)
        return self._memory[0]

    def step(self, memory: Any, sample: Sample) -> tuple[Array, Any]:
        """Return the torque (joints,), Nm, of this period and the memory for the next."""
        answer = self._controller.step(memory, sample)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise ModelError(f"step must return a torque and a memory. Got {type(answer).__name__} instead.")
        self._memory = (answer[1],)
        return answer

    def to_dict(self) -> dict[str, Any]:
        """Return who it is."""
        return {"name": type(self._controller).__name__}


@dataclass(frozen=True)
class Lawful:
    """A controller with a `law` (`AffineControl`) of the whole recording, called `name`."""

    whole: AffineControl
    name: str

    def law(self, periods: NDArray[np.intp], states: States, torque: Array) -> AffineControl:
        """Return the law of some periods; refuse those beyond its end."""
        if periods[-1] >= self.whole.periods:
            raise ModelError(
                f"the controller's reference must last as long as the recording, {periods[-1] + 1} periods or more. "
                f"Got {self.whole.periods} instead: give a function (motion, rate) that makes the controller."
            )
        return self.whole.take(periods)

    def to_dict(self) -> dict[str, Any]:
        """Return who it is, and the gains that do not change on the way."""
        gains = {name: getattr(self.whole, name) for name in GAINS}
        constant = {name: value.tolist() for name, value in gains.items() if value is not None and value.ndim == 1}
        return {"name": self.name, **constant}


def own_controller(asked: Any, motion: Callable[..., Array], rate: float, dof: int) -> Stepping | Lawful:
    """Return a controller of one's own at a control `rate` (Hz).

    `asked` has init and step, or is a function ``(motion, rate)`` that returns what has; `motion` is itself a function
    ``(t, order)`` of times (samples,) since the start of the recording.
    """
    made = asked(motion, rate) if _makes(asked, motion, rate) else asked
    if not _steps(made):
        raise ModelError(
            "controller must be a name, have init(sample) and step(memory, sample), or be a function (motion, rate) "
            f"that makes such a one. Got {type(made).__name__} instead."
        )
    own_rate, law = getattr(made, "rate", None), getattr(made, "law", None)
    if own_rate is not None and own_rate != rate:
        raise ModelError(f"the controller is made for {own_rate:g} Hz. Got a control_rate of {rate:g} Hz instead.")
    if not isinstance(law, AffineControl):
        return Stepping(made)
    return Lawful(law.checked(dof), type(made).__name__)


def _steps(asked: Any) -> bool:
    return not isinstance(asked, type) and all(callable(getattr(asked, name, None)) for name in ("init", "step"))


def _makes(asked: Any, motion: Any, rate: float) -> bool:
    """Tell whether something is a function of a motion and a rate."""
    if _steps(asked) or not callable(asked):
        return False
    try:
        inspect.signature(asked).bind(motion, rate)
    except (TypeError, ValueError):
        return False
    return True
