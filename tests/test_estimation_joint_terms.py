"""Joint models from elsewhere inside a calibration: their terms as a start, or their values held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise
from jointwise.calibration import calibrate
from jointwise.errors import EstimationError
from jointwise.estimation.structure import JointTerms, Structure
from jointwise.model.terms import Offset, Temperature, Term
from jointwise.options import Options
from jointwise.result import Calibration
from synthetic import SyntheticLog, synthetic_log

pytestmark = pytest.mark.compat

JOINT = 0


@pytest.fixture(scope="module")
def made() -> SyntheticLog:
    return synthetic_log(jointwise.load_robot("planar2"), duration=30.0, rate=100.0, seed=5)


def options(made: SyntheticLog, given: JointTerms | None) -> Options:
    return Options(
        gains=made.truth.gains.tolist(),
        structure=Structure("hysteresis", load="square", powers=(1.0, 2.0)),
        free=(),
        lag=0.0,
        position_cutoff=20.0,
        joints={} if given is None else {JOINT: given},
    )


def true_terms(made: SyntheticLog) -> tuple[Term, ...]:
    return (Offset(), *made.truth.plant.dynamics().terms[JOINT])


def true_values(made: SyntheticLog) -> dict[str, tuple[float, float]]:
    friction = made.truth.friction[JOINT]
    names = [item.name for term in true_terms(made)[1:] for item in term.parameters()]
    return {name: (float(x), 0.01) for name, x in zip(names, friction.values(True, "square"), strict=True)}


def of_joint(calibration: Calibration, joint: int) -> dict[str, tuple[float, float, str]]:
    estimate = calibration.estimate
    rows = zip(calibration.model.parameters, estimate.values, estimate.deviation, estimate.status, strict=True)
    return {info.name.rsplit("_", 1)[0]: (float(x), float(d), s) for info, x, d, s in rows if info.joint == joint}


def test_terms_of_a_joint_replace_those_of_the_structure(made: SyntheticLog) -> None:
    calibration = calibrate(
        made.log, jointwise.load_robot("planar2"), options=options(made, JointTerms(true_terms(made)))
    )
    assert calibration.model.terms[JOINT][0] == true_terms(made)[0]
    assert calibration.model.terms[JOINT][1].limits == true_terms(made)[1].limits  # type: ignore[attr-defined]
    assert calibration.model.terms[1][1:] != calibration.model.terms[JOINT][1:]
    assert "joint 1 as identified by itself" in calibration.structure_text
    for name, (truth, _) in true_values(made).items():
        value, deviation, status = of_joint(calibration, JOINT)[name]
        assert abs(value - truth) < 4.0 * max(deviation, 0.02 * abs(truth)), name
        assert status != "given"


def test_known_values_are_held_with_their_own_deviation(made: SyntheticLog) -> None:
    given = JointTerms(true_terms(made), true_values(made), firm=True)
    calibration = of_joint(calibrate(made.log, jointwise.load_robot("planar2"), options=options(made, given)), JOINT)
    for name, (truth, deviation) in true_values(made).items():
        assert calibration[name] == pytest.approx((truth, deviation, "given")), name
    assert calibration["offset"][2] != "given"


def test_true_friction_held_leaves_the_bodies_true(made: SyntheticLog) -> None:
    given = JointTerms(true_terms(made), true_values(made), firm=True)
    calibration = calibrate(made.log, jointwise.load_robot("planar2"), options=options(made, given))
    base = calibration.model.base
    truth = base.from_standard(made.truth.plant.standard)
    half = 2.5 * calibration.estimate.deviation[: base.count]
    assert (np.abs(calibration.estimate.values[: base.count] - truth) < half).mean() > 0.8


def test_wrong_friction_held_is_seen_in_the_residual(made: SyntheticLog) -> None:
    right = JointTerms(true_terms(made), true_values(made), firm=True)
    wrong = replace(right, known={name: (1.3 * x, d) for name, (x, d) in right.known.items()})
    good, bad = (
        calibrate(made.log, jointwise.load_robot("planar2"), options=options(made, item)) for item in (right, wrong)
    )
    assert bad.estimate.sigma[JOINT] > 1.5 * good.estimate.sigma[JOINT]


def test_a_model_with_temperature_refuses_a_log_without(made: SyntheticLog) -> None:
    given = JointTerms((*true_terms(made), Temperature()))
    with pytest.raises(EstimationError, match="temperature"):
        calibrate(made.log, jointwise.load_robot("planar2"), options=options(made, given))
