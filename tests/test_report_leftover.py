"""What a model leaves: patterns are found where they are, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise
from jointwise.calibrate import Options, calibrate
from jointwise.data.log import Log
from jointwise.estimation.structure import Structure
from jointwise.report.evidence import gather
from jointwise.report.leftover import NOTEWORTHY, Pattern, patterns
from jointwise.report.sections import leftover
from jointwise.result import Calibration
from jointwise.simulation.synthetic import synthetic_log
from jointwise.spatial import Array

ROBOT = jointwise.robot("planar2")


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    made = synthetic_log(ROBOT, duration=20.0, rate=100.0, seed=1)
    structure = Structure("hysteresis", load="square", powers=(1.0, 2.0))
    own = Options(gains=made.truth.gains.tolist(), structure=structure, free=(), lag=0.0, position_cutoff=20.0)
    return calibrate(made.log, ROBOT, options=own)


@pytest.fixture(scope="module")
def unseen() -> Log:
    log = synthetic_log(ROBOT, duration=40.0, rate=100.0, seed=2).log
    rise = np.linspace(25.0, 35.0, log.samples)[:, None] + 0.2 * np.sin(3.0 * log.t)[:, None] * np.ones((1, 2))
    return replace(log, temperature=rise)


def found(calibration: Calibration, log: Log) -> dict[str, Pattern]:
    exhibit = gather(calibration, [], [log], None).all[0]
    return {own.quantity: own for own in patterns(calibration, exhibit, 0)}


def with_pattern(log: Log, pattern: Array) -> Log:
    assert log.current is not None
    added = np.zeros_like(log.q)
    added[:, 0] = pattern
    return replace(log, current=np.asarray(log.current) + added)


def test_what_a_good_model_leaves_follows_nothing(calibration: Calibration, unseen: Log) -> None:
    for own in found(calibration, unseen).values():
        assert own.share < NOTEWORTHY, own.quantity


@pytest.mark.parametrize("quantity", ["position", "speed", "temperature"])
def test_a_pattern_is_found_along_what_it_depends_on(calibration: Calibration, unseen: Log, quantity: str) -> None:
    x = {"position": unseen.q, "speed": unseen.qd, "temperature": unseen.temperature}[quantity]
    assert x is not None
    assert unseen.qd is not None
    sign = np.sign(unseen.qd[:, 0]) if quantity == "temperature" else 1.0
    pattern = sign * np.cos(4.0 * np.asarray(x[:, 0]) / np.ptp(x[:, 0]) * np.pi)
    own = found(calibration, with_pattern(unseen, pattern))
    assert own[quantity].share > 0.5
    np.testing.assert_allclose(np.ptp(own[quantity].mean), 2.0, rtol=0.25)


def test_a_pattern_that_repeats_in_nothing_is_not_found_in_the_position(calibration: Calibration, unseen: Log) -> None:
    noise = 1.0 * np.random.default_rng(0).normal(size=unseen.samples)
    assert found(calibration, with_pattern(unseen, noise))["position"].share < NOTEWORTHY


def test_the_section_names_the_joint_the_quantity_and_the_usual_cause(calibration: Calibration, unseen: Log) -> None:
    log = with_pattern(unseen, 1.0 * np.cos(2.0 * np.asarray(unseen.q[:, 0])))
    page = leftover.body(gather(calibration, [], [log], None))
    assert "follows the position" in page
    assert "kinematic error" in page
    assert "Nothing that is left" in leftover.body(gather(calibration, [], [unseen], None))
