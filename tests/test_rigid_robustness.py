"""Whatever arrays come in, the answer is right or the error is one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from jointwise.description import Joint, Link, Robot, load_robot
from jointwise.errors import JointwiseError, ShapeError
from jointwise.model import rigid
from jointwise.spatial import Array
from kernels import ENGINES, assert_agree, engine
from robots import random_states

ROBOT = load_robot("ur5e")
SAMPLES = 13
BATCHES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 1023, 1024, 1025)

States = tuple[Array, Array, Array]
Computation = Callable[[Array, Array, Array], Array]

COMPUTATIONS: dict[str, Computation] = {
    "inverse_dynamics": lambda q, qd, qdd: rigid.inverse_dynamics(ROBOT, q, qd, qdd),
    "regressor": lambda q, qd, qdd: rigid.compute_regressor(ROBOT, q, qd, qdd, rotors=True).matrices(),
    "forward_dynamics": lambda q, qd, qdd: rigid.forward_dynamics(ROBOT, q, qd, qdd),
    "mass_matrix": lambda q, qd, qdd: rigid.mass_matrix(ROBOT, q),
    "coriolis_matrix": lambda q, qd, qdd: rigid.coriolis_matrix(ROBOT, q, qd),
    "coriolis_vector": lambda q, qd, qdd: rigid.coriolis_vector(ROBOT, q, qd),
    "gravity_torque": lambda q, qd, qdd: rigid.gravity_torque(ROBOT, q),
    "positions": lambda q, qd, qdd: rigid.forward_kinematics(ROBOT, q).position,
    "jacobian": lambda q, qd, qdd: rigid.jacobian(ROBOT, q),
    "kinetic_regressor": lambda q, qd, qdd: rigid.energy_regressors(ROBOT, q, qd)[0],
    "potential_regressor": lambda q, qd, qdd: rigid.energy_regressors(ROBOT, q, qd)[1],
    "kinetic_energy": lambda q, qd, qdd: rigid.kinetic_energy(ROBOT, q, qd),
    "potential_energy": lambda q, qd, qdd: rigid.potential_energy(ROBOT, q),
    "wrench_torque": lambda q, qd, qdd: rigid.wrench_torque(ROBOT, q, np.arange(6.0)),
}
READS = {
    **dict.fromkeys(COMPUTATIONS, ("q",)),
    **dict.fromkeys(("coriolis_matrix", "coriolis_vector", "kinetic_regressor", "kinetic_energy"), ("q", "qd")),
    "inverse_dynamics": ("q", "qd", "qdd"),
    "regressor": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "torque"),
}
PLACES = {"q": 0, "qd": 1, "qdd": 2, "torque": 2}
READINGS = [(name, array) for name in COMPUTATIONS for array in READS[name]]


def states(samples: int = SAMPLES) -> States:
    return random_states(np.random.default_rng(samples), ROBOT, samples)


@pytest.fixture(params=ENGINES, autouse=True)
def _every_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    with engine(request.param):
        yield


# -- every layout of memory ----------------------------------------------------------------------------------


def big_endian(array: Array) -> Array:
    return array.astype(">f8")


def fortran(array: Array) -> Array:
    return np.asfortranarray(array)


def strided(array: Array) -> Array:
    wide = np.full((3 * len(array), 2 * array.shape[1]), np.nan)
    wide[::3, ::2] = array
    return wide[::3, ::2]


def reversed_twice(array: Array) -> Array:
    return array[::-1, ::-1].copy()[::-1, ::-1]


def misaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:]
    view = memory.view(np.float64).reshape(array.shape)
    view[:] = array
    return view


def packed_records(array: Array) -> Array:
    """Return a field of packed records: strides that are no multiple of a double."""
    records = np.zeros(array.shape, dtype=np.dtype([("tag", "i4"), ("value", "f8")]))
    records["value"] = array
    return records["value"]


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def nested_lists(array: Array) -> list[list[float]]:
    return array.tolist()


@pytest.mark.parametrize(
    "layout",
    [big_endian, fortran, strided, reversed_twice, misaligned, packed_records, read_only, nested_lists],
    ids=lambda layout: layout.__name__,
)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_layout_of_the_input_does_not_matter(name: str, layout: Callable[[Array], object]) -> None:
    compute = COMPUTATIONS[name]
    assert_agree(compute(*(layout(array) for array in states())), compute(*states()), tolerance=1e-14)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint16, np.float16, np.float32, np.bool_])
def test_other_kinds_of_real_numbers_are_converted(kind: type) -> None:
    given_ = [(np.abs(array) * 2.0).astype(kind) for array in states()]
    expected = rigid.inverse_dynamics(ROBOT, *(array.astype(np.float64) for array in given_))
    assert np.array_equal(rigid.inverse_dynamics(ROBOT, *given_), expected)


def test_input_may_be_one_sample_repeated() -> None:
    rows = [np.broadcast_to(array[:1], array.shape) for array in states()]
    torque = rigid.inverse_dynamics(ROBOT, *rows)
    assert np.array_equal(torque, np.broadcast_to(torque[:1], torque.shape))


def test_input_is_left_as_it_was() -> None:
    before = states()
    given_ = [array.copy() for array in before]
    for compute in COMPUTATIONS.values():
        compute(*given_)
    assert all(np.array_equal(one, other) for one, other in zip(given_, before, strict=True))


@pytest.mark.parametrize("name", COMPUTATIONS)
@pytest.mark.parametrize("samples", BATCHES)
def test_a_sample_does_not_depend_on_its_batch(name: str, samples: int) -> None:
    compute, given_ = COMPUTATIONS[name], states(samples)
    whole = compute(*given_)
    assert len(whole) == samples
    for first in range(0, samples, 211):
        part = compute(*(array[first : first + 1] for array in given_))
        assert_agree(whole[first : first + 1], part, tolerance=1e-13)


def test_gravity_and_rotors_may_be_strided() -> None:
    q, qd, qdd = states()
    gravity, rotors = np.arange(6.0)[::2], np.arange(12.0)[::-2]
    expected = rigid.inverse_dynamics(ROBOT, q, qd, qdd, gravity=gravity.copy(), rotor_inertias=rotors.copy())
    assert np.array_equal(rigid.inverse_dynamics(ROBOT, q, qd, qdd, gravity=gravity, rotor_inertias=rotors), expected)


# -- what is refused, and in which words ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [np.zeros(6), np.zeros((4, 5)), np.zeros((4, 7)), np.zeros((2, 4, 6)), np.float64(1.0), np.zeros((6, 4))],
    ids=lambda bad: str(np.shape(bad)),
)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_wrong_shape_is_named_with_the_right_one(name: str, bad: Array) -> None:
    with pytest.raises(ShapeError, match=r"q must have shape \(samples, 6\)\. Got \(.*\) instead"):
        COMPUTATIONS[name](bad, bad, bad)


@pytest.mark.parametrize(("name", "array"), [pair for pair in READINGS if pair[1] != "q"])
def test_arrays_of_different_lengths_are_refused(name: str, array: str) -> None:
    given_ = list(states())
    given_[PLACES[array]] = given_[PLACES[array]][:-1]
    with pytest.raises(ShapeError, match=rf"^{array} must have shape \(13, 6\)\. Got \(12, 6\) instead"):
        COMPUTATIONS[name](*given_)


@pytest.mark.parametrize("bad", [np.zeros((4, 6), dtype=complex), [["a"] * 6], [[None] * 6], [[1.0], [1.0, 2.0]], "q"])
def test_what_is_no_array_of_real_numbers_is_refused(bad: object) -> None:
    with pytest.raises(ShapeError, match="q must be an array of real numbers"):
        rigid.inverse_dynamics(ROBOT, bad)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("name", "array"), READINGS)
def test_non_finite_input_is_named_with_its_place(name: str, array: str, value: float) -> None:
    for sample, joint in ((0, 0), (7, 5), (SAMPLES - 1, 2)):
        given_ = [array.copy() for array in states()]
        given_[PLACES[array]][sample, joint] = value
        message = rf"^{array} must be finite\. Got {value} at sample {sample}, joint {joint + 1}\."
        with pytest.raises(ShapeError, match=message):
            COMPUTATIONS[name](*given_)


@pytest.mark.parametrize("robot", ["planar1", "planar2"])
@pytest.mark.parametrize("gravity", [np.zeros(3), "table"], ids=["weightless", "table"])
def test_non_finite_input_is_found_where_it_hardly_matters(robot: str, gravity: object) -> None:
    """One joint, no gravity: the torque does not depend on q, the error does."""
    arm = load_robot(robot)
    for joint in range(arm.dof):
        q = np.zeros((5, arm.dof))
        q[3, joint] = np.nan
        for compute in (
            partial(rigid.inverse_dynamics, arm, gravity=gravity),
            partial(rigid.compute_regressor, arm, gravity=gravity),
            partial(rigid.mass_matrix, arm),
            partial(rigid.forward_kinematics, arm),
            partial(rigid.energy_regressors, arm, gravity=gravity),
        ):
            with pytest.raises(ShapeError, match=f"q must be finite. Got nan at sample 3, joint {joint + 1}"):
                compute(q)


@pytest.mark.parametrize("size", [1e100, 1e160, 1e300])
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_huge_motion_gives_finite_numbers_or_an_error(name: str, size: float) -> None:
    q, qd, qdd = states()
    try:
        result = COMPUTATIONS[name](q, qd * size, qdd * size)
    except ShapeError as problem:
        assert "the inputs are too large or M is singular" in str(problem)
    else:
        assert np.isfinite(result).all()


def test_overflow_of_a_single_joint_is_not_silent() -> None:
    arm = load_robot("planar1")
    for compute in (rigid.compute_regressor, rigid.energy_regressors):
        with pytest.raises(ShapeError, match="the inputs are too large"):
            compute(arm, np.zeros((3, 1)), np.full((3, 1), 1e200))


def massless(robot: Robot) -> Robot:
    return Robot("massless", robot.joints, tuple(Link(link.name, np.zeros(10)) for link in robot.links))


@pytest.mark.parametrize("name", ["planar1", "ur5e"])
def test_singular_mass_matrix_is_an_error(name: str) -> None:
    arm = massless(load_robot(name))
    q = np.zeros((3, arm.dof))
    with pytest.raises(ShapeError, match="M is singular"):
        rigid.forward_dynamics(arm, q, q, np.ones_like(q))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gravity": [0.0, 1.0]}, "gravity must be three finite numbers"),
        ({"gravity": [0.0, 1.0, np.nan]}, "gravity must be three finite numbers"),
        ({"gravity": "celing"}, "unknown mounting 'celing'"),
        ({"inertials": np.zeros((5, 10))}, r"inertials must have shape \(6, 10\). Got \(5, 10\) instead"),
        ({"inertials": np.full((6, 10), np.inf)}, "inertials must be finite"),
        ({"rotor_inertias": np.zeros(7)}, r"rotor_inertias must have shape \(6,\). Got \(7,\) instead"),
        ({"rotor_inertias": [0, 0, 0, 0, 0, np.nan]}, "rotor_inertias must be finite"),
        ({"wrench": np.zeros(5)}, r"wrench must be finite, of shape \(6,\) or \(13, 6\). Got \(5,\) instead"),
        ({"wrench": np.zeros((12, 6))}, r"wrench must be finite, of shape \(6,\) or \(13, 6\)"),
        ({"wrench": [0, 0, 0, 0, 0, np.inf]}, "wrench must be finite"),
        ({"out": np.zeros((12, 6))}, r"out must be a writable float64 array of shape \(13, 6\)"),
        ({"out": np.zeros((13, 6), dtype=np.float32)}, "out must be a writable float64 array"),
        ({"out": np.zeros((13, 6), dtype=">f8")}, "out must be a writable float64 array"),
        ({"out": read_only(np.zeros((13, 6)))}, "out must be a writable float64 array"),
        ({"out": [[0.0] * 6] * 13}, "out must be a writable float64 array"),
        ({"out": misaligned(np.zeros((13, 6)))}, "out must be aligned"),
        ({"out": packed_records(np.zeros((13, 6)))}, "out must be aligned"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(JointwiseError, match=message):
        rigid.inverse_dynamics(ROBOT, *states(), **options)
    q, qd, qdd = states()
    with pytest.raises(JointwiseError, match=message):
        rigid.forward_dynamics(ROBOT, q, qd, qdd, **options)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
def test_out_receives_the_result_in_any_layout(layout: str) -> None:
    q, qd, qdd = states()
    out = {
        "C": np.empty((SAMPLES, 6)),
        "F": np.empty((SAMPLES, 6), order="F"),
        "strided": np.empty((2 * SAMPLES, 18))[::2, ::3],
        "reversed": np.empty((SAMPLES, 6))[::-1, ::-1],
    }[layout]
    assert rigid.inverse_dynamics(ROBOT, q, qd, qdd, out=out) is out
    assert np.array_equal(out, rigid.inverse_dynamics(ROBOT, q, qd, qdd))
    assert rigid.forward_dynamics(ROBOT, q, qd, qdd, out=out) is out
    assert np.array_equal(out, rigid.forward_dynamics(ROBOT, q, qd, qdd))


# -- without the native kernel -------------------------------------------------------------------------------

PROGRAM = """
import sys, warnings
import numpy as np
if "block" in sys.argv:
    sys.modules["jointwise._native"] = None
def name(warning):
    return warning.category.__name__ + ": simulated robot" * ("simulated robot" in str(warning.message))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from jointwise.description import load_robot
    from jointwise.model import rigid
    q, qd, qdd = np.random.default_rng(7).uniform(-2.0, 2.0, (3, 5, 6))
    torque = rigid.inverse_dynamics(load_robot("ur5e"), q, qd, qdd)
    rigid.mass_matrix(load_robot("ur5e"), q)
print(rigid.is_native(), "jointwise._native" in sys.modules, [name(w) for w in caught])
print(" ".join(value.hex() for value in torque.ravel().tolist()))
"""


def run_program(*arguments: str, **environment: str) -> tuple[str, Array]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    state, values = done.stdout.splitlines()
    return state, np.array([float.fromhex(value) for value in values.split()]).reshape(5, 6)


def expected_torque() -> Array:
    return rigid.inverse_dynamics(ROBOT, *np.random.default_rng(7).uniform(-2.0, 2.0, (3, 5, 6)))


@pytest.mark.parametrize("_every_engine", ["numpy"], indirect=True)
class TestWithoutTheNativeKernel:
    def test_switched_off_it_is_silent_and_gives_the_same(self) -> None:
        state, torque = run_program(JOINTWISE_NATIVE="0")
        assert state == "False False []"
        assert_agree(torque, expected_torque())

    def test_not_built_it_warns_once_and_gives_the_same(self) -> None:
        state, torque = run_program("block", JOINTWISE_NATIVE="1")
        assert state == "False True ['NativeKernelWarning: simulated robot']"
        assert_agree(torque, expected_torque())


def test_a_speed_that_is_not_finite_is_found_where_it_moves_nothing() -> None:
    """A lone sliding joint has no velocity torque; a NaN must not pass for it."""
    slider = Robot("slider", (Joint("j", "prismatic", np.eye(3), np.zeros(3)),), (Link("l", np.r_[np.ones(9), 2.0]),))
    with pytest.raises(ShapeError, match="qd must be finite"):
        rigid.inverse_dynamics(slider, np.zeros((3, 1)), np.full((3, 1), np.nan), np.zeros((3, 1)))
