"""Joint models from elsewhere inside a calibration: their terms as a start, or their values held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise
from jointwise.calibrate import Options, calibrate
from jointwise.errors import EstimationError
from jointwise.estimation.given import GivenTerms
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Offset, Temperature, Term
from jointwise.result import Calibration
from jointwise.simulation.synthetic import SyntheticLog, synthetic_log

JOINT = 0


@pytest.fixture(scope="module")
def made() -> SyntheticLog:
    return synthetic_log(jointwise.robot("planar2"), duration=30.0, rate=100.0, seed=5)


def options(made: SyntheticLog, given: GivenTerms | None) -> Options:
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
    names = [own.name for term in true_terms(made)[1:] for own in term.parameters()]
    return {name: (float(x), 0.01) for name, x in zip(names, friction.values(True, "square"), strict=True)}


def of_joint(calibration: Calibration, joint: int) -> dict[str, tuple[float, float, str]]:
    own = calibration.estimate
    rows = zip(calibration.model.parameters, own.values, own.deviation, own.status, strict=True)
    return {info.name.rsplit("_", 1)[0]: (float(x), float(d), s) for info, x, d, s in rows if info.joint == joint}


def test_given_terms_take_the_place_of_the_structure(made: SyntheticLog) -> None:
    own = calibrate(made.log, jointwise.robot("planar2"), options=options(made, GivenTerms(true_terms(made))))
    assert own.model.terms[JOINT][0] == true_terms(made)[0]
    assert own.model.terms[JOINT][1].limits == true_terms(made)[1].limits  # type: ignore[attr-defined]
    assert own.model.terms[1][1:] != own.model.terms[JOINT][1:]
    assert "joint 1 as identified by itself" in own.structure_text
    for name, (truth, _) in true_values(made).items():
        value, deviation, status = of_joint(own, JOINT)[name]
        assert abs(value - truth) < 4.0 * max(deviation, 0.02 * abs(truth)), name
        assert status != "given"


def test_known_values_are_held_with_their_own_deviation(made: SyntheticLog) -> None:
    given = GivenTerms(true_terms(made), true_values(made), firm=True)
    own = of_joint(calibrate(made.log, jointwise.robot("planar2"), options=options(made, given)), JOINT)
    for name, (truth, deviation) in true_values(made).items():
        assert own[name] == pytest.approx((truth, deviation, "given")), name
    assert own["offset"][2] != "given"


def test_true_friction_held_leaves_the_bodies_true(made: SyntheticLog) -> None:
    given = GivenTerms(true_terms(made), true_values(made), firm=True)
    own = calibrate(made.log, jointwise.robot("planar2"), options=options(made, given))
    base = own.model.base
    truth = base.from_standard(made.truth.plant.standard)
    half = 2.5 * own.estimate.deviation[: base.count]
    assert (np.abs(own.estimate.values[: base.count] - truth) < half).mean() > 0.8


def test_wrong_friction_held_is_seen_in_the_residual(made: SyntheticLog) -> None:
    right = GivenTerms(true_terms(made), true_values(made), firm=True)
    wrong = replace(right, known={name: (1.3 * x, d) for name, (x, d) in right.known.items()})
    good, bad = (calibrate(made.log, jointwise.robot("planar2"), options=options(made, own)) for own in (right, wrong))
    assert bad.estimate.sigma[JOINT] > 1.5 * good.estimate.sigma[JOINT]


def test_a_model_with_temperature_refuses_a_log_without(made: SyntheticLog) -> None:
    given = GivenTerms((*true_terms(made), Temperature()))
    with pytest.raises(EstimationError, match="temperature"):
        calibrate(made.log, jointwise.robot("planar2"), options=options(made, given))
