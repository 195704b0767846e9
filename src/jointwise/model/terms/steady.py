"""Terms without memory: offset, dry and viscous friction, temperature, and the response of the drive."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jointwise.errors import ModelError
from jointwise.model import friction
from jointwise.model.terms.term import JointSignals, Parameter, State, Term
from jointwise.spatial import Array


@dataclass(frozen=True)
class Offset(Term):
    """``τ = c``: a constant torque, such as the bias of a sensor or the pull of a cable."""

    kind = "offset"

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the constant."""
        return (Parameter("offset", "Nm"),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return ones."""
        return np.ones((len(joint.q), 1)), None


@dataclass(frozen=True)
class Spring(Term):
    """``τ = K q + K_3 q³``: a spring between the links of a joint, such as a counterbalance; its preload is the offset.

    Attributes:
        cubic: Whether the spring stiffens (K_3).

    """

    cubic: bool = False

    kind = "spring"

    def parameters(self) -> tuple[Parameter, ...]:
        """Return K, and K_3 of a cubic spring."""
        return (Parameter("K", "Nm/rad"), *((Parameter("K3", "Nm/rad^3"),) if self.cubic else ()))

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return q, and q³ of a cubic spring."""
        return np.column_stack([joint.q, joint.q**3] if self.cubic else [joint.q]), None


@dataclass(frozen=True)
class Inertia(Term):
    """``τ = I_a a``: inertia of the rotor reflected to the joint, on its acceleration.

    Attributes:
        value: I_a where it is known, kg m²; None to estimate it.
    """

    value: float | None = None

    kind = "inertia"

    def __post_init__(self) -> None:
        """Check the value."""
        if self.value is not None and not (math.isfinite(self.value) and self.value >= 0.0):
            raise ValueError(f"value must be a finite number of kg m^2, at least 0. Got {self.value} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the inertia."""
        return (Parameter("Ia", "kg m^2", non_negative=True),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the acceleration."""
        return joint.qdd[:, None], None


@dataclass(frozen=True)
class Coulomb(Term):
    """``τ = (F_C0 + F_C1 ℓ(τ_load)) h(v)``: dry friction.

    Attributes:
        load: The load law ℓ: `none`, `square` (τ²) or `absolute` (|τ|).
        direction: h(v) = sgn(v) (`sign`) or tanh(v / width) (`tanh`).
        width: Speed (rad/s) over which tanh changes its sign.

    """

    load: str = "none"
    direction: str = "sign"
    width: float = 0.01

    kind = "coulomb"

    def __post_init__(self) -> None:
        """Check the settings."""
        friction.check_load_law(self.load)
        if self.direction not in ("sign", "tanh"):
            raise ValueError(f"direction must be sign or tanh. Got '{self.direction}' instead")
        _check_width(self.width)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_C0, and F_C1 with load dependence."""
        return (Parameter("FC0", "Nm", non_negative=True), *self.load_parameters("FC1", self.load))

    def uses_load(self) -> bool:
        """Return whether F_C1 is a parameter."""
        return self.load != "none"

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return h and ℓ h."""
        h = friction.direction(joint.qd, self.width if self.direction == "tanh" else 0.0)
        return self.with_load([h], h, joint, self.load), None


@dataclass(frozen=True)
class Stribeck(Term):
    """``τ = F_S tanh(v / width) exp(-(|v| / velocity)^exponent)``: friction above the Coulomb level near standstill.

    Attributes:
        velocity: Stribeck velocity, rad/s.
        exponent: Exponent of the curve, 2 for a Gaussian.
        width: Speed over which friction changes its sign, rad/s.
    """

    velocity: float = 0.1
    exponent: float = 1.0
    width: float = 0.01

    kind = "stribeck"

    def __post_init__(self) -> None:
        """Check the settings."""
        if not (self.velocity > 0.0 and self.exponent > 0.0 and self.width > 0.0):
            raise ValueError("velocity, exponent and width must be positive")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_S."""
        return (Parameter("FS", "Nm", non_negative=True),)

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the direction times the Stribeck curve."""
        curve = friction.stribeck(joint.qd, self.velocity, self.exponent)
        return (friction.direction(joint.qd, self.width) * curve)[:, None], None


@dataclass(frozen=True)
class Viscous(Term):
    """``τ = Σ F_p sgn(v) |v|^p`` over positive powers p, continued along the tangent above the speed `known`.

    For integer powers this is v^p (odd) and |v| v^(p-1) (even); 0.5 is the square root that lubricants show. `known`
    (rad/s, 0 for no limit) is the largest speed of the training data, since polynomials do not extrapolate.
    """

    powers: tuple[float, ...] = (1.0,)
    known: float = 0.0

    kind = "viscous"

    def __post_init__(self) -> None:
        """Check the settings."""
        if not self.powers or not all(np.isfinite(p) and 0.0 < p <= 9.0 for p in self.powers):
            raise ValueError(f"powers must be positive numbers up to 9. Got {self.powers} instead")
        if len(set(self.powers)) != len(self.powers):
            raise ValueError(f"powers must differ from each other. Got {self.powers} instead")
        if not self.known >= 0.0:
            raise ValueError(f"known must be a speed in rad/s, or 0. Got {self.known} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return one coefficient per power; up to the first power friction cannot drive the motion."""
        return tuple(
            Parameter(f"Fv{p:g}", "Nm s/rad" if p == 1 else f"Nm (s/rad)^{p:g}", non_negative=p <= 1.0)
            for p in self.powers
        )

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return sgn(v) |v|^p."""
        return friction.viscous_columns(joint.qd, self.powers, self.known), None


@dataclass(frozen=True)
class PowerFlow(Term):
    """``τ = T_dir tanh(v/width)`` where the joint drives its load (v τ_load > 0), else ``T_rev tanh(v/width)``."""

    width: float = 0.01

    kind = "power_flow"
    needs_load = True

    def __post_init__(self) -> None:
        """Check the width."""
        _check_width(self.width)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return T_dir and T_rev."""
        return (Parameter("Tdir", "Nm", non_negative=True), Parameter("Trev", "Nm", non_negative=True))

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the direction function where power flows to the load, and elsewhere."""
        return friction.power_flow_columns(joint.qd, joint.known_load(self.kind), self.width), None


@dataclass(frozen=True)
class Temperature(Term):
    """``τ = sgn(v) √|v| (F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³))``, T in °C.

    Attributes:
        reference: T0, the temperature for which the other friction terms hold, °C.
        coldest: Least T, to which lower ones are clamped, °C.
        hottest: Greatest T, to which higher ones are clamped, °C.
    """

    reference: float = 20.0
    coldest: float = 10.0
    hottest: float = 60.0

    kind = "temperature"

    def __post_init__(self) -> None:
        """Check that T⁻³ is regular within the range."""
        if not 0.0 < self.coldest < self.hottest or not self.reference > 0.0:
            raise ValueError(
                f"temperatures must be 0 < coldest < hottest and reference > 0. "
                f"Got {self.coldest}, {self.hottest}, {self.reference} instead"
            )

    def parameters(self) -> tuple[Parameter, ...]:
        """Return F_T1 and F_T2."""
        return Parameter("FT1", "Nm sqrt(s/rad)/K"), Parameter("FT2", "Nm sqrt(s/rad) K^3")

    def uses_temperature(self) -> bool:
        """Return True: the columns depend on the measured temperature."""
        return True

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the root of the speed times the two functions of temperature."""
        if joint.temperature is None:
            raise ModelError("the friction of the model needs the temperature of every log (columns temp1..).")
        factors = friction.thermal_factors(joint.temperature, self.reference, self.coldest, self.hottest)
        return friction.root_speed(joint.qd)[:, None] * factors, None

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return the columns at constant speeds; zeros at the reference temperature."""
        return super().steady(speed, load, np.full(len(speed), self.reference) if temperature is None else temperature)


@dataclass(frozen=True)
class SpeedRipple(Term):
    """``τ = Σ_k c_k u(t + k step)``, k = -1, 0, 1: the response of the drive to fast ripple u of the measured speed.

    u is the measured speed above the bandwidth of the model's motion: the speed loop and the inertia of the rotor
    respond to it, the links do not. A planned motion has no ripple, so the term is zero in a feed-forward. `known`
    (rad/s, 0 for no limit) is the largest ripple of the training data: u is limited to it, since glitches are larger.
    """

    step: float
    known: float = 0.0

    kind = "speed_ripple"

    def __post_init__(self) -> None:
        """Check the settings."""
        if not self.step > 0.0:
            raise ValueError(f"step must be a positive time in s. Got {self.step} instead")
        if not self.known >= 0.0:
            raise ValueError(f"known must be a speed in rad/s, or 0. Got {self.known} instead")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the three coefficients."""
        return tuple(Parameter(f"ripple{k:+d}", "Nm s/rad") for k in (-1, 0, 1))

    def uses_speed(self) -> bool:
        """Return True: the columns depend on the measured speed."""
        return True

    def causal_state(self, rate: float) -> State:
        """Return the ripple of the samples before the first one, zero, as far back as one step."""
        return np.zeros(math.ceil(self.step * rate))

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return u one step earlier, now and one step later, constant beyond the ends.

        With a state (the u of the samples before) no later sample is used: u one step later is that of now.
        """
        if joint.ripple is None:
            raise ValueError("speed_ripple needs a measured speed")
        ripple = np.clip(joint.ripple, -self.known, self.known) if self.known > 0.0 else joint.ripple
        shift, past = self.step * joint.rate, np.zeros(0) if state is None else state
        known = np.concatenate([past, ripple])
        index = np.arange(len(past), len(known), dtype=float)
        grid = np.arange(len(known), dtype=float)
        before = np.interp(index - shift, grid, known)
        after = np.interp(index + shift, grid, known) if state is None else ripple
        return np.column_stack([before, ripple, after]), None if state is None else known[len(ripple) :]

    def steady(self, speed: Array, load: Array, temperature: Array | None = None) -> Array:
        """Return zeros: a constant speed has no ripple."""
        return np.zeros((len(speed), 3))


def _check_width(width: float) -> None:
    if not width > 0.0:
        raise ValueError(f"width must be positive. Got {width} instead")
