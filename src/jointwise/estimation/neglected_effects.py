"""What effects that the model neglects do to the base parameters.

Some effects of gears resemble the torque of bodies. They bias the base parameters in every part of a log alike, so no
resampling of the log shows it; a fit with columns for these effects does. Three of them:

- A gear of stiffness K that transmits the load torque τ turns its rotor by τ / K more than the link. The rotor of
  inertia I_a needs the torque ``I_a (θ̈ - q̈) = (I_a / K) d²τ/dt²``, which resembles inertia of the links.
- Dry friction that grows with the load and differs by direction has an even part ``a τ²``, which resembles gravity.
- Dry friction grows with the torque in the gear, ``(τ - I_a q̈)²``; the load torque of the model contains the rotors.
  To first order the difference is ``b τ q̈ h(q̇)``, h the direction of the motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jointwise.estimation.cross_validation import cross_validate
from jointwise.estimation.fit import Fit, known_sums, known_values
from jointwise.estimation.least_squares import QuickProblem, bounded_from_moments
from jointwise.estimation.regression import Regression
from jointwise.estimation.structure import JointTerms
from jointwise.estimation.uncertainty import WITHIN_CELL, Alternatives
from jointwise.model.terms import JointSignals, Parameter, Term
from jointwise.model.terms.term import State
from jointwise.spatial import Array

HALF_SPAN = 0.0125
"""Half of the time (s) over which signals are differentiated twice: short against the motion, long against noise."""
WIDTH = 0.01
"""Speed (rad/s) over which the direction of the motion changes."""


@dataclass(frozen=True)
class NeglectedEffects(Term):
    """``τ = c d²x/dt² + a τ_load² + b τ_load q̈ h(q̇)``.

    x is the deflection θ - q where rotors are `measured` (c = I_a in kg m²), else the load torque (c = I_a / K in s²).
    """

    measured: bool = False

    kind = "neglected effects"
    needs_load = True

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the three coefficients."""
        elastic = Parameter("neglected_c", "kg m^2" if self.measured else "s^2", non_negative=True)
        return elastic, Parameter("neglected_a", "1/Nm"), Parameter("neglected_b", "s^2")

    def columns(self, joint: JointSignals, state: State = None) -> tuple[Array, State]:
        """Return the three columns; at the ends, the values that a second difference needs are repeated."""
        load = joint.known_load(self.kind)
        x = joint.rotor - joint.q if self.measured and joint.rotor is not None else load
        step = max(round(HALF_SPAN * joint.rate), 1)
        wide = np.pad(x, step, mode="edge")
        second = (wide[2 * step :] - 2.0 * x + wide[: -2 * step]) * (joint.rate / step) ** 2
        return np.column_stack([second, load**2, load * joint.qdd * np.tanh(joint.qd / WIDTH)]), None


def neglected_effects(
    regression: Regression, fit: Fit, gains: Array, joint_terms: Mapping[int, JointTerms]
) -> list[Alternatives]:
    """Return how far neglected effects move the base parameters, weighted by the probability that they are real.

    It is the probability that the model with them predicts held-out data better. The true effect is taken to lie
    anywhere between none and the fitted one.

    Args:
        regression: The training logs; of long ones an excerpt is used.
        fit: The fit of the model without them.
        gains: Nm per unit of the output, shape (joints,).
        joint_terms: Terms of single joints (0-based) with known values.

    """
    values, model = fit.solution.values, fit.model
    effects = NeglectedEffects(regression.has_rotor)
    wide = replace(model, terms=tuple((*terms, effects) for terms in model.terms))
    problem = regression.excerpt().quick_problem(wide.terms, lambda rigid: model.load_torque(rigid, values))
    known = known_values(wide, joint_terms)[0]
    problem = problem.scaled(gains).with_known(known).with_sums(known_sums(wide, joint_terms))
    added = np.array([info.name.startswith("neglected_") for info in wide.parameters])
    plain = problem.with_known(np.where(added, 0.0, np.nan))
    sigma, base = fit.solution.sigma, model.base.count
    chance = cross_validate(problem, sigma).probability_better(cross_validate(plain, sigma))
    step = _base_parameters(problem, sigma, base) - _base_parameters(plain, sigma, base)
    weights = np.array([WITHIN_CELL * chance])  # anywhere between none and the fitted effect
    return [Alternatives("neglected effects", step[None], weights, "neglected effects")]


def _base_parameters(problem: QuickProblem, sigma: Array, base: int) -> Array:
    values: Array = bounded_from_moments(problem.whole(sigma), problem.layout.bound)[:base]
    return values
