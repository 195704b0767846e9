"""Probabilities of the normal and of Student's distribution, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri, stdtr, stdtrit

from jointwise.distributions import log_normal_cdf, normal_quantile, student_cdf, student_quantile

DEGREES = (1, 2, 3, 5, 23, 29, 95, 1000)


@pytest.mark.parametrize("degrees", DEGREES)
def test_student_probabilities(degrees: int) -> None:
    for t in (-40.0, -3.0, -1.0, -0.1, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 10.0):
        assert student_cdf(degrees, t) == pytest.approx(stdtr(degrees, t), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("probability", [0.0123, 0.4, 0.5, 0.6, 0.9, 0.975, 0.995])
def test_student_quantiles(degrees: int, probability: float) -> None:
    assert student_quantile(degrees, probability) == pytest.approx(stdtrit(degrees, probability), rel=1e-9, abs=1e-12)


def test_normal_probabilities() -> None:
    for x in np.linspace(-200.0, 5.0, 500):
        assert log_normal_cdf(float(x)) == pytest.approx(float(log_ndtr(x)), rel=1e-7)
    for probability in (0.01, 0.5, 0.975):
        assert normal_quantile(probability) == pytest.approx(float(ndtri(probability)), abs=1e-12)
