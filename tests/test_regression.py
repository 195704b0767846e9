"""The regression of a log: factors and second moments are those of the same rows, under every filter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise as jw
from jointwise.estimation import select_structure
from jointwise.estimation.cross_validation import Score, cross_validate
from jointwise.estimation.least_squares import QuickProblem
from jointwise.estimation.regression import NEAR_MOTION, STILL_WEIGHT, Regression, motion_weights
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Coulomb, Offset, SpeedRipple, Viscous
from jointwise.motion import Motion
from jointwise.options import Options
from jointwise.preparation import make_regression
from jointwise.spatial import Array
from synthetic import synthetic_log

pytestmark = pytest.mark.compat

PLANAR = jw.load_robot("planar2")
LOG = synthetic_log(PLANAR, duration=8.0, rate=200.0, seed=5, jitter=1e-3).log
TERMS = [(Offset(), Viscous((1.0, 2.0)), Coulomb("square"), SpeedRipple(0.005))] * 2


def regression(options: Options | None = None, mounting: str = "table") -> Regression:
    return make_regression([LOG], PLANAR, mounting, "current", options or Options())


def load_of(rigid: list[Array]) -> Array:
    """Return a load torque (samples, joints) that is a fixed combination of the rigid columns."""
    return np.column_stack([columns.T @ np.linspace(1.0, 2.0, len(columns)) for columns in rigid])


@pytest.mark.parametrize("options", [Options(), Options(decimation=3), Options(parallel_cutoff=8.0, decimation=5)])
def test_moments_are_those_of_the_factors(options: Options) -> None:
    problem = regression(options).problem(TERMS, load_of)
    quick = regression(options).quick_problem(TERMS, load_of)
    for factors, moments in zip(problem.joints, quick.joints, strict=True):
        np.testing.assert_allclose(moments.sums, factors.sums, rtol=1e-12)
        for R, squares in zip(factors.triangles, moments.squares, strict=True):
            np.testing.assert_allclose(squares, R.T @ R, rtol=1e-9, atol=1e-9 * np.abs(squares).max())
    assert [list(index) for index in quick.layout.index] == [list(index) for index in problem.layout.index]


def test_lags_are_those_of_the_filters() -> None:
    lags = (-0.004, 0.0, 0.01)
    for lag, found in zip(lags, regression().lagged_problems(TERMS, lags, load_of), strict=True):
        alone = regression().filtered(lag=lag).quick_problem(TERMS, load_of)
        for one, other in zip(found.merged(), alone.merged(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12 * np.abs(other).max())


def test_columns_of_other_bodies_and_rows_on_the_same_motion_are_theirs() -> None:
    """The rigid columns of a motion are kept; those of another gravity, filter or decimation must not be used."""
    first = regression()
    first.quick_problem(TERMS, load_of)
    for changed in (
        replace(first, bodies=replace(first.bodies, gravity=(9.81, 0.0, 0.0))),
        first.filtered(decimation=3),
        first.filtered(position_cutoff=4.0),
        first.filtered(parallel_cutoff=8.0),
    ):
        fresh = replace(changed, logs=regression().logs)
        for one, other in zip(
            changed.quick_problem(TERMS, load_of).merged(), fresh.quick_problem(TERMS, load_of).merged(), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    again = first.quick_problem(TERMS, load_of).merged()
    for one, other in zip(again, regression().quick_problem(TERMS, load_of).merged(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_at_rest_end_near_a_motion() -> None:
    qd = np.zeros((200, 2))
    qd[60:80, 0], qd[3, 1] = 1.0, 1.0
    motion = Motion(100.0, qd, qd, qd)
    weights = motion_weights(motion, np.ones(2), started=True)
    near = round(NEAR_MOTION * motion.rate) - 1
    assert np.flatnonzero(weights[:, 0] == 1.0).tolist() == list(range(60 - near, 80 + near))
    assert np.flatnonzero(weights[:, 1] == 1.0).tolist() == list(range(3 + near + 1))
    assert set(weights.ravel()) == {1.0, STILL_WEIGHT}
    np.testing.assert_array_equal(motion_weights(motion, np.ones(2))[:3], 0.0)


def test_each_candidate_is_cross_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[bytes] = []

    def counted(problem: QuickProblem, sigma: Array) -> Score:
        scored.append(problem.joints[0].squares.tobytes())
        return cross_validate(problem, sigma)

    monkeypatch.setattr(select_structure, "cross_validate", counted)
    _, selection = select_structure.select_structure(
        regression(), np.ones(2), Structure("hysteresis"), ("direction", "powers", "stribeck")
    )
    assert len(scored) == len(set(scored)) < sum(len(choice.alternatives) for choice in selection.choices)
