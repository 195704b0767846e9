"""Native calls with flat arrays: each array is checked alike, sizes cannot wrap, and a wrong call raises."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise.control import Links
from jointwise.description import load_robot
from jointwise.experiment.controllers import slip_friction_of
from jointwise.model.rigid.chain import make_chain
from jointwise.runtime.friction_estimator import DescribedFriction, Measurement, friction_estimator
from jointwise.runtime.packing import core_bodies
from jointwise.runtime.stream import NativeCore
from jointwise.simulation.robot import digital_robot
from jointwise.simulation.robot.run import SERIES
from jointwise.simulation.robot.state import ROWS
from jointwise.spatial import Array
from kernels import native, needs_native

pytestmark = needs_native

REFUSALS = (ValueError, TypeError, BufferError)
SAMPLES = 5
LIMITS = np.array([1e-3, 2e-3])
ROBOT = digital_robot(load_robot("ur5e"))
NOTHING = (None,) * 12
LAWS = np.array([joint.friction.packed() for joint in ROBOT.joints[:2]])
ARM = Links(ROBOT.robot).core
MODEL = DescribedFriction(ROBOT.robot, slip_friction_of(ROBOT), np.ones(6))
ESTIMATOR = friction_estimator(MODEL, 1e3)


def series(*shape: int) -> Array:
    return np.linspace(0.1, 1.0, int(np.prod(shape))).reshape(shape)


def rows(count: int = 6) -> Array:
    """Return one number a period and joint."""
    return series(SAMPLES, count)


def control() -> tuple[object, ...]:
    """Return the law of a controller for six joints."""
    zeros = tuple(np.zeros(6) for _ in range(5))
    return np.zeros((SAMPLES, 6)), *(rows() for _ in range(4)), *zeros, None, None


def zeros(*shapes: int | tuple[int, ...]) -> list[Array]:
    """Return arrays that a call writes to."""
    return [np.zeros(shape) for shape in shapes]


Call = tuple[list[object], set[int]]
"""Arguments of a right call, and the places of arrays that it writes to."""


def signal_calls() -> dict[str, Call]:
    """Return calls of filters and of linear algebra."""
    x, pair = series(SAMPLES), (SAMPLES, 2)
    return {
        "decimate": ([x, np.ones(3), 2, *zeros(2)], {3}),
        "leaky_sum": ([x, 0.5], {0}),
        "cubic_spline": ([x, rows(2), series(3), *zeros((3, 2))], {3}),
        "nnls": ([np.eye(3), series(3), *zeros(3)], {2}),
        "phase_steps": ([np.ones(3) / 3.0, 2, 1e3, *zeros(15), rows(2), *zeros((SAMPLES, 3, 2))], {3, 5}),
        "observer_steps": ([np.ones(2), 0.9, 1e3, *zeros(2, 2), rows(2), rows(2), rows(2), *zeros(pair)], {3, 4, 8}),
        "fusion_steps": ([series(4), series(3, 3), *zeros((4, 3)), rows(3), *zeros(pair, (SAMPLES, 3))], {2, 4, 5}),
        "recursive": (
            [4, 0.9, 1.0, 3.0, np.ones(2), *zeros(2, pair), x, x.copy(), *zeros(11, SAMPLES, pair)],
            {9, 10, 11},
        ),
    }


def pair_terms() -> Array:
    """Return the friction terms of two joints."""
    return np.array([x for joint in ROBOT.joints[:2] for x in joint.law.packed(1e-3)])


def friction_calls() -> dict[str, Call]:
    """Return calls of friction laws along a path."""
    x, pair = series(SAMPLES), (SAMPLES, 2)
    level, terms = 1.0 + x, np.array(ROBOT.joints[0].law.packed(1e-3))
    gram = [x, level, x.copy(), LIMITS.copy(), np.ones(2), rows(1), rows(3), True, 1, *zeros(5, (8, 8))]
    return {
        "slip": ([x, level, LIMITS.copy(), 0.9, *zeros(5, pair, pair)], {4, 5, 6}),
        "maxwell_gram": (gram, {9, 10}),
        "rate_slip": ([x, level, level.copy(), LIMITS.copy(), 0.1, *zeros(6, pair)], {5, 6}),
        "lugre": ([x, level, level.copy(), *zeros(2, SAMPLES)], {3, 4}),
        "hysteresis": ([terms, x, *zeros(4, pair)], {2, 3}),
        "joint_friction": ([pair_terms(), *zeros((2, 4)), *(series(2) for _ in range(4)), *zeros(2)], {6}),
        "steady_friction": ([terms, x, x.copy(), x.copy(), *zeros(pair)], {4}),
        "slip_hysteresis": ([LAWS.copy(), np.ones((2, 3)), *zeros((2, 5)), rows(2), *zeros(pair)], {2, 4}),
        "slip_torque": ([LAWS.copy(), *(rows(2) for _ in range(4)), *zeros(pair, pair)], {5, 6}),
        "adapt_steps": (
            [np.ones((2, 15)), *zeros((2, 8)), rows(2), rows(2), rows(2), True, *zeros((SAMPLES, 2, 2), pair)],
            {1, 6, 7},
        ),
    }


def control_calls() -> dict[str, Call]:
    """Return calls of controllers, of the estimator of friction and of the digital robot, with six joints."""
    start = ESTIMATOR.init(Measurement(*(series(6) for _ in range(4))))
    law, four, six = control(), (series(6),) * 4, (series(6),) * 6
    estimator = [ESTIMATOR.handle, *start.arrays]
    joints, backlash = ROBOT.packed
    plant = [ROBOT.chain, joints, ROBOT.terms(1e-5), backlash, np.zeros(3), ROBOT.rest(np.zeros(6)).values.copy(), 4]
    plant += [law, rows(), 1e-5]
    record = (SAMPLES, 6 * len(SERIES) + 1)
    return {
        "affine_step": ([law, 1, SAMPLES, 1e3, four, *zeros(6, 6)], {5, 6}),
        "estimator_steps": (
            [*estimator, *(rows() for _ in range(4)), True, *zeros((SAMPLES, 2, 6), (SAMPLES, 6))],
            {1, 2, 3, 9, 10},
        ),
        "adaptive_step": (
            [
                *(*estimator, 1, SAMPLES, law, (rows(),) * 6, six, series(6), series(6), True),
                *(start.memory.copy(), *zeros(6, 6, 6)),
            ],
            {1, 2, 3, 12, 13, 14, 15},
        ),
        "guiding_step": (
            [MODEL.handle, start.memory.copy(), *zeros((6, 6)), six, 0.8, *zeros(6), np.ones(6), *zeros(6)],
            {1, 2, 7},
        ),
        "torque_loop_step": (
            [ARM, law, 1, SAMPLES, 1e3, four, rows(), rows(), series(6, 13), series(4), *zeros((7, 6), 6)],
            {10, 11},
        ),
        "linearisation_step": (
            [ARM, 1, SAMPLES, 1e3, 9.0, 1e-3, four, (rows(),) * 8, series(6, 18), *zeros(6, 6, 6)],
            {9, 10, 11},
        ),
        "simulate": ([*plant, SAMPLES, 1, False, *zeros(record), np.ones((2, 6)), np.eye(6)], {5, 13}),
    }


def right_call(name: str) -> Call:
    """Return a right call with arrays of its own."""
    calls = signal_calls() | friction_calls() | control_calls()
    return calls[name]


NAMES = tuple(signal_calls() | friction_calls() | control_calls())
ANY_SIZE = {
    ("decimate", 0),
    ("decimate", 1),
    ("decimate", 3),
    ("leaky_sum", 0),
    ("hysteresis", 1),
    ("hysteresis", 2),
    ("joint_friction", 1),
}
"""Arrays that may be longer."""


def misaligned(right: Array) -> memoryview:
    """Return the same numbers at an unaligned address; NumPy marks it by another format, raw memory does not."""
    return memoryview(bytearray(b" " + right.tobytes()))[1:].cast("d", right.shape)


def wrong_arrays(right: Array) -> list[object]:
    return [
        right.astype(np.float32),
        np.zeros(right.shape, dtype=np.int64),
        right.astype(">f8"),
        right.astype(object),
        np.repeat(right, 2, axis=-1)[..., ::2],
        misaligned(right),
        right.tolist(),
        right.tobytes(),
        3.0,
    ]


def refuses(name: str, arguments: list[object], place: int, wrong: object) -> None:
    with pytest.raises(REFUSALS):
        getattr(native, name)(*arguments[:place], wrong, *arguments[place + 1 :])


@pytest.mark.parametrize("name", NAMES)
def test_the_right_calls_are_right(name: str) -> None:
    assert getattr(native, name)(*right_call(name)[0]) in {None, -1, 0, True}


@pytest.mark.parametrize("name", NAMES)
def test_every_array_is_checked_for_type_layout_alignment_and_size(name: str) -> None:
    arguments, written = right_call(name)
    for place, right in enumerate(arguments):
        if not isinstance(right, np.ndarray):
            continue
        for wrong in wrong_arrays(right):
            refuses(name, arguments, place, wrong)
        if (name, place) not in ANY_SIZE:
            refuses(name, arguments, place, np.concatenate([right.ravel(), [1.0]]))
        if place in written:
            frozen = right.copy()
            frozen.setflags(write=False)
            refuses(name, arguments, place, frozen)


TUPLES = {
    "simulate": {7: 10},
    "affine_step": {0: 10, 4: 4},
    "adaptive_step": {6: 10, 7: 6, 8: 6},
    "torque_loop_step": {1: 10, 5: 4},
    "linearisation_step": {6: 4, 7: 8},
    "guiding_step": {3: 6},
}
"""Places of tuples of arrays, and how many arrays each has."""


@pytest.mark.parametrize("name", TUPLES)
def test_every_part_of_a_tuple_is_checked(name: str) -> None:
    arguments, _ = right_call(name)
    for at, count in TUPLES[name].items():
        parts = arguments[at]
        assert isinstance(parts, tuple)
        refuses(name, arguments, at, parts[:-1])
        for place in range(count):
            for wrong in (*wrong_arrays(parts[place]), np.zeros(7)):
                refuses(name, arguments, at, (*parts[:place], wrong, *parts[place + 1 :]))


@pytest.mark.parametrize(
    ("name", "place"), [("affine_step", 1), ("adaptive_step", 4), ("torque_loop_step", 2), ("linearisation_step", 1)]
)
@pytest.mark.parametrize("period", [-1, SAMPLES, 2**62])
def test_a_period_outside_the_reference_is_refused(name: str, place: int, period: int) -> None:
    refuses(name, right_call(name)[0], place, period)


def test_friction_is_made_of_what_fits_together() -> None:
    core = NativeCore(core_bodies(make_chain(ROBOT.robot), None)).handle
    right = [(core,), *MODEL.friction.packed, MODEL.rotors]
    native.friction_open(*right)
    for place, right_array in enumerate(right):
        if isinstance(right_array, np.ndarray):
            for wrong in (*wrong_arrays(right_array), right_array.ravel()[:-1], None):
                refuses("friction_open", right, place, wrong)
    for cores in ((), (core,) * 2, (None,), (3.0,), None):
        refuses("friction_open", right, 0, cores)


def test_an_estimator_is_made_of_what_fits_together() -> None:
    right = [MODEL.handle, ESTIMATOR.filter.taps, ESTIMATOR.adaptation.laws, 1e3]
    native.estimator_open(*right)
    for place in (1, 2):
        array = right[place]
        assert isinstance(array, np.ndarray)
        for wrong in (*wrong_arrays(array), array.ravel()[:-1] if place == 2 else np.empty(0), None):
            refuses("estimator_open", right, place, wrong)
    for friction in (ESTIMATOR.handle, None, 3.0):
        refuses("estimator_open", right, 0, friction)


@pytest.mark.parametrize("name", ["inverse_dynamics", "simulate"])
def test_the_robot_must_be_aligned(name: str) -> None:
    chain = tuple(ROBOT.chain)
    right = [chain, *(series(2, 6) for _ in range(4))] if name == "inverse_dynamics" else right_call(name)[0]
    for place in range(1, 6):
        refuses(name, right, 0, (*chain[:place], misaligned(chain[place]), *chain[place + 1 :]))


# -- sizes that wrap -------------------------------------------------------------------------------------------------


def two_joints(periods: int) -> list[object]:
    """Return a call for two joints and no arrays of a number a period."""
    chain = make_chain(load_robot("ur5e"))
    pair = (chain[0][:2], *(part[:2].copy() for part in chain[1:5]), chain[5])
    joints, backlash = (part[:2].copy() for part in ROBOT.packed)
    terms, state = pair_terms(), np.zeros(2 * (len(ROWS) + 4) + 1)
    return [
        pair,
        joints,
        terms,
        backlash,
        np.zeros(3),
        state,
        4,
        NOTHING,
        None,
        1e-3,
        periods,
        1,
        False,
        None,
        None,
        None,
    ]


def test_a_number_of_periods_whose_arrays_would_wrap_is_refused() -> None:
    """2^62 periods of two joints are 2^63 numbers, or 2^66 bytes: none, to arithmetic that wraps."""
    empty = np.empty(0)
    assert native.simulate(*two_joints(3)) == -1
    for periods in (2**59, 2**60, 2**61, 2**62, 2**63 - 1):
        call = two_joints(periods)
        for place in range(10):
            refuses("simulate", call, 7, tuple(empty if k == place else None for k in range(12)))
        refuses("simulate", call, 8, empty)
        refuses("simulate", call, 13, empty)
        refuses("simulate", call, 13, np.zeros(100))


def test_a_length_that_is_a_lie_is_refused() -> None:
    class Long:
        def __len__(self) -> int:
            return 2**62

    for name in ("slip", "maxwell_gram", "rate_slip"):
        refuses(name, right_call(name)[0], 0, Long())
    refuses("inverse_dynamics", [ROBOT.chain, *(series(2, 6) for _ in range(4))], 1, Long())


@pytest.mark.parametrize("shares", [2**62, 2**61, -1, 64])
def test_columns_that_would_wrap_are_refused(shares: int) -> None:
    arguments, _ = right_call("maxwell_gram")
    refuses("maxwell_gram", [*arguments[:5], np.empty(0), *arguments[6:]], 8, shares)


def test_a_step_beyond_the_samples_is_harmless_or_refused() -> None:
    out = np.zeros(1)
    native.decimate(np.ones(5), np.ones(3), 2**62, out)
    assert out[0] == 3.0
    refuses("decimate", [np.ones(5), np.ones(3), 2, np.zeros(2)], 2, 2**62)


def test_places_must_be_bytes() -> None:
    """Places are read as whole numbers where they lie; of bytes alone is the place known to be aligned."""
    places = np.full(360, -1, dtype=np.int32)
    call = [ROBOT.chain, *(series(2, 6) for _ in range(3)), places.tobytes(), np.empty((2, 0))]
    assert native.regressor(*call) is True
    refuses("regressor", call, 4, np.frombuffer(b"\xff" * 1441, dtype=np.uint8)[1:])
