"""Settings of an optimal excitation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from jointwise.description.mounting import Mounting
from jointwise.design.clearance import CLEARANCE
from jointwise.design.information import Goal
from jointwise.design.trajectory import DurationError, check_positive
from jointwise.errors import ModelError
from jointwise.model.skeleton import Tool

Basis = Literal["fourier", "bspline"]
Optimality = Literal["d", "a"]

SHORTEST = 5.0
"""Shortest duration (s): fading in and out takes half of it."""
LONGEST: dict[Basis, float] = {"fourier": 600.0, "bspline": 60.0}
"""Longest duration (s): a series of ten minutes repeats its periods sixty times; splines have more unknowns with every
second."""


@dataclass(frozen=True)
class ExcitationOptions:
    """Settings of an optimal excitation; the same settings give the same motion.

    Attributes:
        duration: Duration in s, from rest to rest.
        speed: Share of the speed limits.
        seed: Seed of the random starts.
        goal: What shall be determined: all, bodies, friction, or payload (bodies of the arm known).
        basis: fourier (a series that fades in and out) or bspline (quintic, knots every half second).
        criterion: d (volume of the confidence region) or a (mean of the squared standard errors, each relative to that
            of random series).
        mounting: Mounting of the base.
        clearance: Height in m above the mounting plane that is kept; None to ignore the plane.
        tool: Geometry of the tool.
        acceleration: Limit of joints without described limit, rad/s² or m/s²; None for 6 rad/s² and 3 m/s².
        reference: Values by parameter name, such as those of a calibration; the description is the default.
        noise: Torque noise of every joint (Nm, rms) at 500 Hz that the prediction assumes, such as that of a
            calibration; None for a share of the effort limits.
        inflation: Factors by parameter name by which the standard errors of an earlier excitation exceeded those of
            white noise; parameters without one get the median. None for white noise.
        harmonics: Number of harmonics of the base frequency of a Fourier series.
        starts: Number of random starts.

    """

    duration: float = 20.0
    speed: float = 0.6
    seed: int = 1
    goal: Goal = "all"
    basis: Basis = "fourier"
    criterion: Optimality = "d"
    mounting: Mounting = "table"
    clearance: float | None = CLEARANCE
    tool: Tool | None = None
    acceleration: float | None = None
    reference: Mapping[str, float] | None = None
    noise: tuple[float, ...] | None = None
    inflation: Mapping[str, float] | None = None
    harmonics: int = 10
    starts: int = 4

    def __post_init__(self) -> None:
        """Reject settings out of range."""
        for name, kind in (("goal", Goal), ("basis", Basis), ("criterion", Optimality)):
            _check_choice(name, getattr(self, name), get_args(kind))
        check_positive(duration=self.duration, speed=self.speed, harmonics=self.harmonics, starts=self.starts)
        if self.duration < SHORTEST:
            raise DurationError("an excitation with its fades", SHORTEST, self.duration)
        if self.duration > LONGEST[self.basis]:
            raise ModelError(
                f"duration must be at most {LONGEST[self.basis]:g} s with the basis {self.basis}. "
                f"Got {self.duration:g} instead."
            )
        if self.speed > 1.0:
            raise ModelError(f"speed must be a share of the speed limits, 0 to 1. Got {self.speed:g} instead.")
        _check_prediction(self.noise, self.inflation)


def _check_prediction(noise: Sequence[float] | None, inflation: Mapping[str, float] | None) -> None:
    """Reject torque noise or factors of standard errors that are not positive."""
    check_positive(**{f"noise of joint {j + 1}": value for j, value in enumerate(noise or ())})
    if inflation is not None:
        check_positive(**{f"inflation of {name}": value for name, value in inflation.items()})
        if not inflation:
            raise ModelError("inflation must have at least one parameter.")


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ModelError(f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]}. Got '{value}' instead.")
