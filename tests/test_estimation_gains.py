"""Drive gains that nobody knows: found, doubted as much as they should be, and their doubt in the bodies."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from jointwise.calibration import calibrate
from jointwise.description import Payload, Robot, load_robot
from jointwise.estimation.drive_gains import DriveGains, drive_gains, gains_again
from jointwise.estimation.fit import Fit, fit_structure
from jointwise.estimation.gains import Described, Ratios, gain_slopes, is_significant, missing_mass
from jointwise.estimation.structure import Structure
from jointwise.estimation.uncertainty import NORMAL_QUANTILE, uncertainty_of, with_selection
from jointwise.model.terms import Hysteresis
from jointwise.options import Options
from jointwise.preparation import make_regression
from jointwise.result import Calibration
from jointwise.result.model_file import load_calibration, save_model
from jointwise.spatial import Array
from synthetic import SyntheticLog, default_friction, synthetic_log

pytestmark = pytest.mark.compat

UR5E = load_robot("ur5e")
GAINS = (14.0, 11.0, 9.0, 12.0, 10.0, 8.0)
SCALE = 2e-3
STRUCTURE = Structure("hysteresis", "square", (1.0, 2.0), limits=Hysteresis.polynomial_limits(4, SCALE))
OPTIONS = Options(structure=STRUCTURE, free=(), position_cutoff=20.0, lag=0.0)
CARRIED = Payload(4.0, (0.0, 0.0, 0.1))


def bare(robot: Robot) -> Robot:
    """Return a robot whose description does not contain its drives."""
    motors = [replace(joint.motor, torque_constant=None, drive_gain=None) for joint in robot.joints]
    joints = tuple(replace(joint, motor=motor) for joint, motor in zip(robot.joints, motors, strict=True))
    return replace(robot, joints=joints)


@cache
def log_of(seed: int, payload: bool = False, spread: float = 0.0) -> SyntheticLog:
    """Return a log of a UR5e with gains unlike each other; every link differs from its description by `spread`."""
    friction = tuple(replace(law, scale=SCALE) for law in default_friction(UR5E, "square"))
    factor = np.exp(spread * np.random.default_rng(seed).normal(size=(UR5E.dof, 1)))
    return synthetic_log(
        UR5E, duration=20.0, rate=100.0, seed=seed, friction=friction, gains=GAINS, current_noise=0.03,
        inertials=UR5E.inertials * factor, payload=CARRIED if payload else None,
    )  # fmt: skip


def misses(made: SyntheticLog, found: Calibration) -> Array:
    """Return (estimate - truth) over half the interval of the base parameters."""
    count, estimate = found.model.base.count, found.estimate
    truth = found.model.base.from_standard(made.truth.plant.standard)
    result: Array = (estimate.values[:count] - truth) / (estimate.factor * estimate.deviation[:count])
    return result


@cache
def fitted(seed: int = 4) -> tuple[DriveGains, Fit]:
    regression = make_regression([log_of(seed).log], bare(UR5E), "table", "current", OPTIONS)
    first = drive_gains(regression, bare(UR5E), "current", None, "given")
    gains = gains_again(regression, bare(UR5E), STRUCTURE, first)
    return gains, fit_structure(regression, STRUCTURE, gains.values)


def test_gains_are_within_their_doubt() -> None:
    gains, _ = fitted()
    assert gains.covariance is not None
    doubt = np.sqrt(np.diag(gains.covariance))
    assert (np.abs(np.log(gains.values / GAINS)) < 2.5 * doubt).all()
    assert doubt[1:4].max() < 0.08  # these carry the arm
    assert doubt[5] > 1.5 * doubt[1:4].max()  # the last one carries next to nothing


def test_all_gains_together_are_a_change_of_unit() -> None:
    _, fit = fitted()
    slopes = gain_slopes(fit.problem, fit.solution)
    np.testing.assert_allclose(slopes.sum(axis=1), fit.solution.values, atol=1e-6 * np.abs(fit.solution.values).max())


def test_slopes_predict_how_another_gain_changes_the_bodies() -> None:
    gains, fit = fitted()
    slopes, base = gain_slopes(fit.problem, fit.solution), fit.model.base.count
    regression = make_regression([log_of(4).log], bare(UR5E), "table", "current", OPTIONS)
    step = np.array([0.0, 0.01, 0.0, -0.01, 0.0, 0.0])
    moved = fit_structure(regression, STRUCTURE, gains.values * np.exp(step)).solution.values - fit.solution.values
    expected = slopes @ step
    assert np.linalg.norm((moved - expected)[:base]) < 0.1 * np.linalg.norm(expected[:base])


def test_the_doubt_in_the_gains_is_in_all_parameters() -> None:
    gains, fit = fitted()
    alone = uncertainty_of(fit.problem, fit.solution)
    whole = with_selection(alone, gains.alternatives(fit))
    slopes = gain_slopes(fit.problem, fit.solution)
    added = whole.covariance - alone.covariance
    least = (NORMAL_QUANTILE / alone.factor) ** 2 * slopes @ gains.covariance @ slopes.T
    assert (np.diag(added) >= np.diag(least) * (1.0 - 1e-9)).all()
    assert not replace(gains, covariance=None).alternatives(fit)


@pytest.mark.thorough
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_bodies_lie_in_their_intervals_though_gains_are_estimated(spread: float) -> None:
    made = log_of(5, spread=spread)
    found = calibrate(made.log, bare(UR5E), options=OPTIONS)
    assert (np.abs(misses(made, found)) < 1.0).mean() >= 0.95


def test_a_stated_payload_sets_the_scale_and_is_stored(tmp_path: Path) -> None:
    made = log_of(6, payload=True)
    found = calibrate(made.log, bare(UR5E), payload=CARRIED, options=OPTIONS)
    np.testing.assert_allclose(found.gains[1:4], GAINS[1:4], rtol=0.1)
    assert (np.abs(misses(made, found)) < 1.0).mean() >= 0.95
    assert found.gain_source.endswith("and a payload of 4 kg")
    assert "include the payload: 4 kg at 0, 0, 0.1 m" in found.summary()
    save_model(found, tmp_path / "model.json")
    again = load_calibration(tmp_path / "model.json")
    assert again.provenance.payload == (4.0, 0.0, 0.0, 0.1)


@pytest.mark.thorough
def test_an_undeclared_payload_is_noticed() -> None:
    made = log_of(6, payload=True)
    found = calibrate(made.log, bare(UR5E), options=OPTIONS)
    assert "the data contradict" in found.gain_source
    assert (np.abs(misses(made, found)) < 1.0).mean() >= 0.8
    quiet = calibrate(log_of(4).log, bare(UR5E), options=OPTIONS)
    assert "no payload" in quiet.gain_source
    assert "contradict" not in quiet.gain_source


def test_a_joint_with_the_tool_on_its_axis_does_not_set_the_scale_of_a_missing_mass() -> None:
    """1 kg at the tool has no torque there: the ratio to the torque of the bodies is rounding, not a mass."""
    ratios = Ratios(np.array([[1.0], [-1.0]]) / np.sqrt(2.0), np.array([0.5]), np.array([[1e-4]]))
    described = Described(np.array([0.4, 0.0]), np.array([1e-4, 1e-4]), np.array([5.0, np.inf]))
    assert 0.0 < missing_mass(ratios, described) <= 5.0


def test_a_missing_mass_is_reported_only_where_it_is_significant() -> None:
    directions = np.array([[1.0], [-1.0]]) / np.sqrt(2.0)
    described = Described(np.array([0.4, 0.0]), np.array([1e-4, 1e-4]), np.array([5.0, 50.0]))
    for ratio, significant in ((0.18, False), (-0.5, True)):
        ratios = Ratios(directions, np.array([ratio]), np.array([[1e-4]]))
        assert is_significant(missing_mass(ratios, described), ratios, described) == significant
