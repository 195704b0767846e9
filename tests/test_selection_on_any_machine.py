"""What is selected does not hang on rounding: copies of a log, BLAS kernels, and candidates that are equally good."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_files import needs_shared
from jointwise.estimation.cross_validation import Score
from jointwise.estimation.dictionary import Dictionary
from jointwise.estimation.select_structure import SCALES, Selection, best_scales
from jointwise.estimation.structure import Structure
from jointwise.spatial import Array
from selection_trial import REAL, SIMULATED, calibrated, selected

TRIAL = Path(__file__).with_name("selection_trial.py")
NAMES = [*SIMULATED, *(pytest.param(name, marks=needs_shared) for name in REAL)]
COPIES = 5
KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX")
AGREEMENT = 2e-11
"""A; the largest difference of predictions on four logs was 8e-12 A of 5.7 A: rounding times the condition number."""


def assert_same_model(name: str, copies: int) -> None:
    first = selected(calibrated(name))
    for number in range(1, copies + 1):
        assert selected(calibrated(name, number)) == first


def assert_same_prediction(name: str, kernels: tuple[str, ...], folder: Path) -> None:
    """Compare the models and predictions that other processes compute with BLAS kernels."""
    found = []
    for kernel in kernels:
        target = folder / f"{kernel}.npy"
        variables = os.environ | {"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(TRIAL), name, str(target)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append((done.stdout, np.load(target)))
    for text, prediction in found[1:]:
        assert text == found[0][0]
        np.testing.assert_allclose(prediction, found[0][1], rtol=0.0, atol=AGREEMENT)


def test_noise_far_below_every_sensor_selects_the_same_model() -> None:
    assert_same_model(SIMULATED[0], 1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_five_copies_of_every_log_select_the_same_model(name: str) -> None:
    assert_same_model(name, COPIES)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernels are names of OpenBLAS on Linux")
def test_two_kernels_select_the_same_model_and_predict_the_same(tmp_path: Path) -> None:
    assert_same_prediction("puma560", ("Prescott", "SkylakeX"), tmp_path)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the kernels are names of OpenBLAS on Linux")
@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_selects_the_same_model_and_predicts_the_same(name: str, tmp_path: Path) -> None:
    assert_same_prediction(name, KERNELS, tmp_path)


# -- ties ------------------------------------------------------------------------------------------------------------

SMALL = Structure("tanh", "none", (1.0,))
LARGE = replace(SMALL, powers=(1.0, 0.5))
OTHER = replace(SMALL, powers=(1.0, 2.0))
FOLDS = np.array([0.9, 1.1, 1.0, 0.95, 1.05, 1.0])


def score(gain: float, spread: float) -> Score:
    """Return a score whose logarithm is lower by `gain` on average, with differences between the folds."""
    errors = (FOLDS * np.exp(-gain + spread * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])))[:, None]
    return Score(errors, errors.mean(axis=0))


class Fixed(Selection):
    """A selection with given scores and sizes."""

    def __init__(self, scores: dict[Structure, tuple[Score, int]]) -> None:
        super().__init__(Dictionary.__new__(Dictionary), np.ones(1))
        self._scores = scores


@pytest.mark.parametrize("turn", [1, -1])
def test_a_gain_below_its_standard_error_is_a_tie_that_the_simpler_structure_wins_wherever_it_is_listed(
    turn: int,
) -> None:
    scores = {SMALL: (score(0.0, 0.0), 5), LARGE: (score(0.03, 0.2), 7), OTHER: (score(0.02, 0.2), 7)}
    assert Fixed(scores).best("viscous powers", [SMALL, LARGE, OTHER][::turn]) == SMALL
    scores[LARGE] = (score(0.03, 0.01), 7)
    assert Fixed(scores).best("viscous powers", [SMALL, LARGE, OTHER][::turn]) == LARGE


@pytest.mark.parametrize("turn", [1, -1])
def test_a_gain_below_one_percent_is_a_tie_too(turn: int) -> None:
    scores = {SMALL: (score(0.0, 0.0), 5), LARGE: (score(0.009, 0.0), 7)}
    assert Fixed(scores).best("viscous powers", [SMALL, LARGE][::turn]) == SMALL


def test_a_scale_of_hysteresis_that_wins_by_less_than_its_standard_error_stays_one() -> None:
    usual, rng = SCALES.index(1.0), np.random.default_rng(3)
    clear = np.where(np.arange(len(SCALES)) == 5, -0.3, 0.0)
    tied = np.where(np.arange(len(SCALES)) == 5, -0.01, 0.0)
    logs = np.stack([clear, tied], axis=1)[:, None] + 0.05 * rng.normal(size=(len(SCALES), 6, 2))

    def scores(logs: Array) -> list[Score]:
        return [Score(np.exp(each), np.exp(each).mean(axis=0)) for each in logs]

    assert best_scales(scores(logs)) == [5, usual]
    assert best_scales(scores(np.zeros((len(SCALES), 6, 2)))) == [usual, usual]
