"""The springs that the native side knows, as numbers."""

from __future__ import annotations

import math

from jointwise.model.spring import Cubic, Rigid, Segments

Elasticity = Cubic | Segments | Rigid


def spring_numbers(spring: Elasticity) -> tuple[float, float, float, float, float, float]:
    """Return K1, K2, K3, φ_1, φ_2 and the cubic coefficient; zeros without a spring."""
    if isinstance(spring, Rigid):
        return 0.0, 0.0, 0.0, math.inf, math.inf, 0.0
    if isinstance(spring, Cubic):
        return spring.linear, spring.linear, spring.linear, math.inf, math.inf, spring.cubic
    return spring.K1, spring.K2, spring.K3, *spring.knees, 0.0
