"""The kernels that the tests compute with, native and NumPy, and the comparison of results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest

from jointwise.model.rigid import numpy_kernels
from jointwise.spatial import Array
from robots import Case

try:
    from jointwise import _native as native
except ImportError:
    native = None
    os.environ["JOINTWISE_NATIVE"] = "0"  # without its warning, which pytest turns into an error

needs_native = pytest.mark.skipif(native is None, reason="the native kernel is not built")
Answers = dict[str, Array]

TOLERANCE = 1e-9
INSTRUCTION_SETS = tuple(native.instruction_sets()) if native else ()
ENGINES = ("numpy", *INSTRUCTION_SETS)


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Compute with the NumPy kernels, or with the native kernel under one of its instruction sets."""
    module = numpy_kernels if name == "numpy" else native
    with ExitStack() as stack:
        if name != "numpy":
            stack.callback(native.use_instruction_set, INSTRUCTION_SETS[-1])
            native.use_instruction_set(name)
        for user in ("dynamics", "kinematics", "regressor"):
            stack.enter_context(patch(f"jointwise.model.rigid.{user}.kernels", lambda: module))
        yield


def symmetric(upper: Array) -> Array:
    return np.triu(upper) + np.triu(upper, 1).T


def stacked(answer: Callable[[int], Answers], samples: int) -> Answers:
    """Return the answers of every sample, each quantity as one array with samples first."""
    every = [answer(k) for k in range(samples)]
    return {name: np.array([one[name] for one in every]) for name in every[0]}


def relative_error(ours: Array, theirs: Array, scale: float = 0.0) -> float:
    """Return the largest difference over the largest magnitude (at least `scale`, for results that may vanish)."""
    assert np.shape(ours) == np.shape(theirs)
    size = max(scale, float(np.abs(theirs).max(initial=0.0)))
    worst = float(np.abs(np.asarray(ours) - theirs).max(initial=0.0))
    return worst / size if size else worst


def assert_agree(ours: Array, theirs: Array, scale: float = 0.0, tolerance: float = TOLERANCE) -> None:
    error = relative_error(ours, theirs, scale)
    assert error <= tolerance, f"relative error {error:.2e} is more than {tolerance:.0e}"


def natural_scales(case: Case, answers: Mapping[str, Array]) -> dict[str, float]:
    """Return the size of quantities that may vanish for a robot: gravity on a vertical axis, one joint's Coriolis."""
    robot = case.robot
    reach = float(np.linalg.norm(robot.translations, axis=1).sum()) + float(np.linalg.norm(robot.tool_translation))
    weight = float(np.linalg.norm(case.gravity)) * (float(robot.inertials[:, 9].sum()) + case.payload.mass)
    inertia, speed = float(np.abs(answers["mass"]).max()), float(np.abs(case.qd).max())
    return {
        "gravity": weight * max(reach, 0.1),
        "potential": weight * max(reach, 0.1),
        "coriolis": inertia * speed**2,
        "coriolis_matrix": inertia * speed,
    }


def disagreements(ours: Answers, theirs: Answers, scales: Mapping[str, float]) -> dict[str, float]:
    """Return the relative error of every quantity that both answer."""
    return {name: relative_error(ours[name], theirs[name], scales.get(name, 0.0)) for name in theirs}


def assert_all_agree(ours: Answers, theirs: Answers, scales: Mapping[str, float]) -> None:
    errors = disagreements(ours, theirs, scales)
    wrong = {name: error for name, error in errors.items() if not error <= TOLERANCE}
    assert not wrong, f"relative errors above {TOLERANCE:.0e}: {wrong}"
