"""Instrumental variables: no bias from noise in the regressor, intervals that cover, and wrong input."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import refused
from jointwise import spatial
from jointwise.errors import DataError, EstimationError, ModelError
from jointwise.estimation.factors import JointFactors
from jointwise.estimation.instruments import instrumental_variables
from jointwise.estimation.least_squares import Layout, Problem, weighted_least_squares
from jointwise.estimation.structure import Structure
from jointwise.options import Options

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from instruments import ABSENT, COUNTS, compare

PLANAR = jw.load_robot("planar2")


def noisy_columns(seed: int, instruments: bool = True) -> tuple[Problem, list[JointFactors]]:
    """Return a regression whose columns have noise, and the same with clean instruments."""
    rng = np.random.default_rng(seed)
    plain, both = JointFactors(), JointFactors()
    for _ in range(24):
        clean = rng.normal(size=(200, 2))
        measured = clean + 0.7 * rng.normal(size=clean.shape)
        y = clean @ [2.0, -1.0] + 0.1 * rng.normal(size=200)
        Z = clean + 0.3 * rng.normal(size=clean.shape) if instruments else rng.normal(size=clean.shape) * [1.0, 0.0]
        plain.add(np.column_stack([measured, y]), np.ones(200))
        both.add(np.column_stack([Z, measured, y]), np.ones(200))
    return Problem([plain], Layout([np.arange(2)], np.zeros(2, dtype=bool))), [both]


def test_clean_instruments_remove_the_attenuation() -> None:
    covered = []
    for seed in range(10):
        problem, factors = noisy_columns(seed)
        start = weighted_least_squares(problem)
        values, uncertainty = instrumental_variables(factors, problem.layout, start, np.zeros(2, dtype=bool))
        assert abs(start.values[0] - 2.0) > 0.5
        assert abs(values[0] - 2.0) < 0.12
        covered += [abs(values - [2.0, -1.0]) < uncertainty.factor * uncertainty.deviation]
    assert 0.8 <= np.mean(covered) <= 1.0


def test_instruments_without_relation_are_rejected() -> None:
    problem, factors = noisy_columns(0, instruments=False)
    with pytest.raises(EstimationError, match="reference positions do not explain the motion"):
        instrumental_variables(factors, problem.layout, weighted_least_squares(problem), np.zeros(2, dtype=bool))


@pytest.mark.thorough
def test_the_bias_of_coarse_encoders_is_at_least_halved() -> None:
    found = compare("planar2", 4, 25.0)
    assert found["iv"][0] < 0.5 * found["wls"][0]
    assert found["iv"][1] > 0.75


@pytest.mark.thorough
def test_bodies_are_nearest_to_the_estimate_of_the_instruments() -> None:
    """Bodies of least squares with coarse encoders are wrong by factors; those of the instruments are not."""
    robot, plain = jw.load_robot("ur5e"), jw.PlantOptions(without=ABSENT)
    sensors = jw.Sensors(encoder_counts=COUNTS, speed_noise=None)
    made = jw.simulate(robot, duration=20.0, rate=500.0, seed=31, sensors=sensors, plant=plain, keep=0)
    options = Options(
        structure=Structure("tanh", "none", (1.0,)), free=(), position_cutoff=25.0, lag=0.0, gains=made.truth["gains"]
    )
    errors = {}
    for method in ("wls", "iv"):
        found = jw.calibrate(made.log, robot, options=replace(options, method=method))  # type: ignore[arg-type]
        base, bodies = found.model.base, found.physical
        assert bodies is not None
        truth = base.from_standard(np.append(np.ravel(made.truth["inertials"]), made.truth["rotor_inertias"]))
        errors[method] = np.abs(bodies.values[: base.count] - truth).max()
    assert bodies.held_out is None and not bodies.suspect_masses
    assert min(np.linalg.eigvalsh(spatial.pseudo_inertia(body))[0] for body in bodies.inertials) > 0.0
    assert errors["iv"] < 0.5 * errors["wls"]
    distance = (bodies.values - found.estimate.values)[: base.count] / found.estimate.deviation[: base.count]
    assert np.sqrt(np.mean(distance**2)) < 1.0


@pytest.fixture(scope="module")
def log() -> jw.Log:
    return jw.simulate(PLANAR, duration=10.0, rate=200.0, seed=1, keep=0).log


def test_wrong_input_is_one_line(log: jw.Log, tmp_path: Path) -> None:
    options = Options(method="iv", gains=[10.0, 10.0])
    bare = log.without(["q_des"])
    with pytest.raises(DataError, match=r"no reference positions \(q_des1..\), which --method iv needs"):
        jw.calibrate(bare, PLANAR, options=options)
    for change in ({"parallel_cutoff": 10.0}, {"essential": 0.01}):
        with pytest.raises(ModelError, match="--method iv does not go with --parallel-cutoff, --essential"):
            jw.calibrate(log, PLANAR, options=replace(options, **change))
    order = np.random.default_rng(0).permutation(log.samples)
    for wrong in (log.channel("q_des")[order], np.zeros_like(log.q), log.channel("q_des")[:, ::-1]):
        with pytest.raises(
            DataError, match=r"q_des\d must follow the measured one, q\d, for --method iv. .*--method wls"
        ):
            jw.calibrate(replace(log, q_des=wrong), PLANAR, options=options)
    jw.write_log(bare, tmp_path / "bare.csv")
    argv = ("calibrate", tmp_path / "bare.csv", "--robot", "planar2", "--gains", 10, 10, "--method", "iv")
    assert "q_des1" in refused(*argv, "--output", tmp_path / "m.json")
