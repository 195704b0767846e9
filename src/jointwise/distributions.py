"""Probabilities of the normal and of Student's distribution for single numbers, without the import time of SciPy."""

from __future__ import annotations

import math

LOWEST = -30.0
"""Standard deviations below which log Φ is computed by its asymptotic series: the complementary error function is 0."""


def normal_quantile(probability: float) -> float:
    """Return x with Φ(x) = `probability`."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def log_normal_cdf(x: float) -> float:
    """Return log Φ(x); far below zero ``log Φ ≈ -x²/2 - log(-x √(2π)) - 1/x²``."""
    if x > LOWEST:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2.0)))
    return -0.5 * x * x - math.log(-x * math.sqrt(2.0 * math.pi)) - 1.0 / (x * x)


def student_cdf(degrees_of_freedom: float, t: float) -> float:
    """Return the probability of a value below t: ``1 - ½ I_x(ν/2, ½)`` with ``x = ν / (ν + t²)`` for t > 0."""
    nu = degrees_of_freedom
    tail = 0.5 * _incomplete_beta(0.5 * nu, 0.5, nu / (nu + t * t))
    return 1.0 - tail if t > 0.0 else tail


def student_quantile(degrees_of_freedom: float, probability: float) -> float:
    """Return t with `student_cdf` = `probability`, by bisection to rounding."""
    if probability < 0.5:
        return -student_quantile(degrees_of_freedom, 1.0 - probability)
    low, high = 0.0, 1.0
    while student_cdf(degrees_of_freedom, high) < probability:
        low, high = high, 2.0 * high
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if student_cdf(degrees_of_freedom, middle) < probability else (low, middle)
    return middle


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) by its continued fraction.

    DLMF 8.17.22, by the modified Lentz method; it converges fast for x < (a + 1) / (a + b + 2), and
    ``I_x(a, b) = 1 - I_{1-x}(b, a)`` serves the rest.
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    log_front = a * math.log(x) + b * math.log1p(-x) - math.log(a)
    log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    fraction, m, change = d, 0, 0.0
    while abs(change - 1.0) > 1e-16 and m < 500:
        m += 1
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1.0 / (1.0 + step * d), 1.0 + step / c
            change = c * d
            fraction *= change
    return math.exp(log_front) * fraction
