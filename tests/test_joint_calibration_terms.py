"""What a joint file brings into a calibration: its terms, what it leaves open, and when it is not taken."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import jointwise
from jointwise.calibration import calibrate
from jointwise.estimation.structure import JointTerms, Structure
from jointwise.joint.calibration_terms import drive_gain, joint_terms
from jointwise.joint.model import JointModel
from jointwise.joint.part import Part, Value, value_of
from jointwise.model.terms import Coulomb, Hysteresis, Offset, Rated, SpeedRipple, Stribeck, Term, Viscous
from jointwise.options import Options
from jointwise.result import Calibration, load_calibration, save_model, validate
from jointwise.result.text import costly_joint_friction_lines, joint_friction_lines
from synthetic import SyntheticLog, synthetic_log

RICH = Structure(
    "hysteresis", load="square", powers=(1.0, 0.5), drivers=("q", "track"), relaxation=3.0, stribeck=0.2, ripple=0.01
)


def values(**known: float) -> tuple[Value, ...]:
    return tuple(value_of(name.replace("_over_", "-"), "Nm", x, 0.1) for name, x in known.items())


def hysteresis_part(extra: float = 0.0, growth: float = 0.0, **more: float) -> Part:
    law = {
        "model": "nlr", "limits": [1e-4, 1e-3], "forces": [6.0, 2.0], "viscous": 3.0, "offset": 0.0, "growth": growth,
        "extra": extra, "speed": 0.05, "most_load": None, "backlash": None,
    }  # fmt: skip
    known = values(F_C=8.0, **more)
    return Part("hysteresis", "nlr", known, 90.0, settings={"law": law, "method": "nlr", "elements": 2})


def friction_part() -> Part:
    return Part("friction", "friction", values(F_C=9.0, F_V1=4.0), 90.0)


def completed(*parts: Part, known: bool = False, structure: Structure = RICH) -> JointTerms:
    model = JointModel("ur5e", 0, {part.phenomenon: part for part in parts})
    return joint_terms(model, known).completed(structure)


def kinds(given: JointTerms) -> list[type[Term]]:
    return [type(term) for term in given.terms]


def test_a_described_gain_is_taken_unless_the_identified_one_excludes_it() -> None:
    motor = Part("motor", "gain", (value_of("gain", "Nm/A", 10.6, 0.08),), 90.0)
    model = JointModel("ur5e", 0, {"motor": motor})
    assert drive_gain(model, 10.7) == 10.7 and drive_gain(model, 11.0) == drive_gain(model) == 10.6
    links = JointModel("ur5e", 0, {"motor": replace(motor, settings={"method": "links"})})
    assert drive_gain(links, 11.0) == 11.0 and drive_gain(links) == 10.6
    assert drive_gain(JointModel("ur5e", 0, {}), 9.0) == 9.0 and drive_gain(JointModel("ur5e", 0, {})) is None


def test_what_the_hysteresis_does_not_determine_is_chosen_by_the_calibration() -> None:
    terms = completed(hysteresis_part())
    assert kinds(terms) == [Offset, Hysteresis, Hysteresis, Viscous, Stribeck, SpeedRipple]
    assert [term.driver for term in terms.terms if isinstance(term, Hysteresis)] == ["q", "track"]
    for term in terms.terms:
        if isinstance(term, Hysteresis):
            assert (term.limits, term.load, term.relaxation) == ((1e-4, 1e-3), "square", 3.0)
    assert Viscous((1.0, 0.5)) in terms.terms and Stribeck(0.2) in terms.terms


def test_the_rise_towards_standstill_is_that_of_the_hysteresis() -> None:
    terms = completed(hysteresis_part(0.25, F_S=10.0, F_S_over_F_C=2.0, V_S=0.05), known=True)
    assert Stribeck(0.05) in terms.terms and terms.known["FS"][0] == 2.0
    assert sum(terms.known[name][0] for name in ("W1", "W2")) == pytest.approx(8.0)


def test_friction_that_is_least_at_rest_leaves_its_growth_to_viscous_friction() -> None:
    terms = completed(hysteresis_part(-0.5, F_S=4.0, F_S_over_F_C=-4.0, V_S=0.4), known=True)
    assert Stribeck(0.2) in terms.terms and "FS" not in terms.known
    assert sum(terms.known[name][0] for name in ("W1", "W2")) == pytest.approx(4.0)


def test_a_law_of_the_load_that_was_found_stays() -> None:
    (term,) = (t for t in completed(hysteresis_part(growth=0.01), known=True).terms if isinstance(t, Hysteresis))
    assert term.load == "square"
    plain = completed(hysteresis_part(), structure=Structure("sign"))
    assert all(term.load == "none" for term in plain.terms if isinstance(term, Hysteresis))


def rated_part(growth: float = 0.0, **more: float) -> Part:
    law = {
        "model": "lugre", "limits": [5e-4], "forces": [8.0, 0.0], "viscous": 3.0, "offset": 0.0, "growth": growth,
        "extra": 0.2, "speed": 0.05, "most_load": None, "backlash": None, "power": 1.0,
    }  # fmt: skip
    known = values(F_C=8.0, **more)
    return Part("hysteresis", "lugre", known, 90.0, settings={"law": law, "method": "lugre", "elements": 1})


def load_part() -> Part:
    settings = {"law": {"kind": "square", "factor": 1e-3, "largest": 60.0}}
    return Part("load", "square", (value_of("F_l", "1/Nm", 1e-3, 1e-4),), 90.0, settings=settings)


def test_friction_with_rate_takes_the_load_from_where_it_is_known() -> None:
    def term(given: JointTerms) -> Rated:
        (rated,) = (t for t in given.terms if isinstance(t, Rated))
        return rated

    assert term(completed(rated_part())).load == "square"  # of the calibration
    assert term(completed(rated_part(), structure=Structure("sign"))).load == "none"
    terms = completed(rated_part(0.01, F_C1=0.08), known=True)
    assert term(terms).load == "absolute" and terms.known["FCd1"] == (0.08, 0.1)
    part = completed(rated_part(0.01, F_C1=0.08), load_part(), known=True)
    assert term(part).load == "square" and part.known["FCd1"] == (1e-3, 1e-4)
    assert all(not isinstance(t, Rated) or t.load == "none" for t in part.without_load())


def test_the_growth_of_slip_elements_that_was_found_with_them_is_held() -> None:
    terms = completed(hysteresis_part(growth=0.01, F_C1=0.08), known=True)
    assert terms.known["FC1"] == (0.08, 0.1)


def test_friction_over_speed_says_nothing_about_how_it_turns() -> None:
    terms = completed(friction_part())
    assert kinds(terms) == [Offset, Hysteresis, Hysteresis, Viscous, SpeedRipple]
    assert next(term for term in terms.terms if isinstance(term, Hysteresis)).limits == RICH.limits
    held = completed(friction_part(), known=True)
    assert kinds(held) == kinds(terms) and held.sums["FC0"][0] == 9.0 and "FC0" not in held.known
    plain = completed(friction_part(), known=True, structure=Structure("tanh"))
    assert kinds(plain)[:2] == [Offset, Coulomb] and plain.known["FC0"][0] == 9.0 and not plain.sums


# -- in a calibration --


@lru_cache
def made() -> SyntheticLog:
    return synthetic_log(jointwise.load_robot("planar2"), duration=30.0, rate=100.0, seed=5)


SQUARE = Structure("hysteresis", load="square", powers=(1.0, 2.0))


def settled(joints: dict[int, JointTerms] | None = None, structure: Structure = SQUARE) -> Options:
    """Return options that leave nothing to choose but what is given of `joints`."""
    gains = made().truth.gains.tolist()
    return Options(gains=gains, structure=structure, free=(), lag=0.0, position_cutoff=20.0, joints=joints or {})


@lru_cache
def calibrated(limit: float, firm: bool) -> Calibration:
    """Return a calibration with the first joint given as one slip element; firm: its force is held at 1 Nm."""
    given = JointTerms(
        (Offset(), Hysteresis((limit,)), Viscous((1.0, 2.0))), {"W1": (1.0, 0.1)} if firm else {}, (), firm
    )
    options = settled({0: given})
    return calibrate(made().log, jointwise.load_robot("planar2"), options=options)


def test_slip_elements_share_a_known_size_of_dry_friction() -> None:
    """What is known is kept to the digit and its doubt goes into the elements; how friction turns is the log's."""
    sizes = {"F_C": (3.0, 0.2), "F_V1": (2.0, 0.1)}
    friction = Part("friction", "law", tuple(value_of(name, "Nm", *size) for name, size in sizes.items()), 90.0)
    law = {"kind": "square", "factor": 2e-3, "largest": 50.0}
    load = Part("load", "square", (value_of("F_l", "1/Nm", 2e-3, 1e-4),), 90.0, settings={"law": law})
    structure = Structure("hysteresis", powers=(1.0, 2.0), limits=(1e-4, 1e-3, 1e-2), drivers=("q", "track"))
    given = joint_terms(JointModel("planar2", 0, {"friction": friction, "load": load}), known=True)
    options = settled({0: given}, structure)
    found = calibrate(made().log, jointwise.load_robot("planar2"), options=options)
    places = {k: info.name for k, info in enumerate(found.model.parameters) if info.joint == 0}
    forces = [k for k, name in places.items() if name.startswith("W")]
    growth = [k for k, name in places.items() if name.startswith("FC")]
    assert len(forces) == 6 and found.estimate.values[forces].sum() == pytest.approx(3.0, rel=1e-4)
    assert len(growth) == 2 and found.estimate.values[growth].sum() == pytest.approx(2e-3, rel=1e-4)
    assert found.estimate.covariance[np.ix_(forces, forces)].sum() == pytest.approx(0.04, rel=0.05)


def test_terms_that_predict_worse_than_the_automatic_ones_are_not_taken() -> None:
    calibration = calibrated(0.5, False)
    automatic = calibrate(
        made().log,
        jointwise.load_robot("planar2"),
        options=settled(),
    )
    np.testing.assert_allclose(calibration.estimate.values, automatic.estimate.values)
    (line,), costly = joint_friction_lines(calibration.choices), costly_joint_friction_lines(calibration.choices)
    assert "joint 1: automatic" in line and "more held-out error" in line and not costly
    assert "identified by itself" not in calibration.structure_text


@lru_cache
def with_rate(load: str) -> Calibration:
    """Return a calibration whose first joint is given as a bristle."""
    bristle = Rated("lugre", (5e-5,), (1.0,), load=load)
    options = settled({0: JointTerms((Offset(), bristle, Viscous((1.0, 2.0))), firm=True)})
    return calibrate(made().log, jointwise.load_robot("planar2"), options=options)


def test_friction_with_rate_under_load_predicts_better_and_survives_its_file(tmp_path: Path) -> None:
    other = synthetic_log(jointwise.load_robot("planar2"), duration=20.0, rate=100.0, seed=8).log
    calibration, plain = with_rate("square"), with_rate("none")
    assert Rated("lugre", (5e-5,), (1.0,), load="square") in calibration.model.terms[0]
    errors = [validate(one, other).joints[0].rmse for one in (calibration, plain)]
    assert errors[0] < 0.98 * errors[1]
    save_model(calibration, tmp_path / "model.json")
    again = load_calibration(tmp_path / "model.json")
    assert again.model.terms == calibration.model.terms
    np.testing.assert_array_equal(again.predict(other), calibration.predict(other))


def test_known_values_are_kept_and_their_cost_is_reported() -> None:
    calibration = calibrated(0.5, True)
    assert "joint 1 as identified by itself" in calibration.structure_text
    (line,) = costly_joint_friction_lines(calibration.choices)
    assert "own experiments" in line and "more held-out error" in line
