"""Physically consistent bodies do not depend on rounding: the last bit of the input, the processor, the BLAS kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bodies_trial import PROBLEMS, solution

TRIAL = Path(__file__).with_name("bodies_trial.py")
KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX")
"""OPENBLAS_CORETYPE of x86 processors, from the oldest; OpenBLAS ignores those that the processor does not support."""
PREDICTIONS, MASSES = 1e-6, 1e-3
FEW = 16


def solutions(kernel: str, first: int, last: int, folder: Path) -> dict[str, np.ndarray]:
    """Return the solutions of problems, computed by another process with a BLAS kernel."""
    target = folder / f"{kernel}.npz"
    variables = os.environ | {"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(TRIAL), str(first), str(last), str(target)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr
    with np.load(target) as arrays:
        return {name: arrays[name] for name in arrays.files}


def compare(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for name, values in found.items():
        kind, seed, _ = name.split()
        limit = PREDICTIONS if kind == "predictions" else MASSES
        np.testing.assert_allclose(values, expected[f"{kind} {seed} False"], rtol=0.0, atol=limit, err_msg=name)


@pytest.mark.compat
@pytest.mark.parametrize("seed", range(FEW))
def test_the_last_bit_of_the_input_changes_nothing(seed: int) -> None:
    (predictions, masses), (again, moved) = solution(seed, False), solution(seed, True)
    np.testing.assert_allclose(again, predictions, rtol=0.0, atol=PREDICTIONS)
    np.testing.assert_allclose(moved, masses, rtol=0.0, atol=MASSES)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(FEW, PROBLEMS))
def test_the_last_bit_of_the_input_changes_nothing_in_any_problem(seed: int) -> None:
    test_the_last_bit_of_the_input_changes_nothing(seed)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernels are names of OpenBLAS on Linux")
@pytest.mark.parametrize("last", [FEW // 4, pytest.param(PROBLEMS, marks=pytest.mark.thorough)])
def test_every_kernel_finds_the_same_bodies(last: int, tmp_path: Path) -> None:
    expected = solutions(KERNELS[0], 0, last, tmp_path)
    assert len(expected) == 4 * last
    compare(expected, expected)
    for kernel in KERNELS[1:]:
        found = solutions(kernel, 0, last, tmp_path)
        assert found.keys() == expected.keys()
        compare(found, expected)
