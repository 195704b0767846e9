"""The regressor's structure and memory: what is left out is zero, what is there lies where the docs say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from jointwise import spatial
from jointwise.description import Joint, Link, Robot, list_robots, load_robot
from jointwise.errors import ShapeError
from jointwise.model.rigid import (
    Regressor,
    compute_regressor,
    empty_series,
    inverse_dynamics,
    regressor_structure,
    standard_names,
)
from jointwise.model.rigid.chain import make_chain
from jointwise.model.rigid.regressor import _structure
from jointwise.spatial import INERTIAL_NAMES, Array
from kernels import ENGINES, assert_agree, engine
from robots import Case, cases, law, random_body, random_rotation, random_states

pytestmark = pytest.mark.compat

PAGE, CACHE_LINE = 4096, 64
MOUNTINGS = ("table", "wall", "tilt:x:45")
FULL_TILE_AND_TAIL = (1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 127, 1025)


def dense_regressor(robot: Robot, states: tuple[Array, Array, Array], gravity: object) -> Array:
    """Return Y (samples, joints, parameters) from inverse dynamics with one parameter at a time: no structure."""
    columns = []
    for k in range(10 * robot.dof):
        unit = np.zeros(10 * robot.dof)
        unit[k] = 1.0
        columns.append(inverse_dynamics(robot, *states, gravity=gravity, inertials=unit))
    return np.stack(columns, axis=2)


def gantry(rng: np.random.Generator) -> Robot:
    """Return three prismatic joints along x, y, z and a wrist: a chain full of structural zeros."""
    axes = (*np.eye(3), np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]))
    joints, before = [], np.eye(3)
    for k, axis in enumerate(axes):
        turned = spatial.rotation_z_to(axis)
        kind = "prismatic" if k < 3 else "revolute"
        joints.append(Joint(f"j{k}", kind, before.T @ turned, np.array([0.1, 0.0, 0.0]) * (k > 3)))
        before = turned
    links = [Link.from_center(f"l{k}", *random_body(rng)) for k in range(len(axes))]
    return Robot("gantry", tuple(joints), tuple(links))


def arms() -> dict[str, Robot]:
    return {name: load_robot(name) for name in list_robots()} | {"gantry": gantry(np.random.default_rng(0))}


@pytest.mark.parametrize("mounting", MOUNTINGS)
@pytest.mark.parametrize("name", arms())
def test_structural_zeros_are_zero_and_the_others_are_not(name: str, mounting: str) -> None:
    robot = arms()[name]
    states = random_states(np.random.default_rng(99), robot, 50)
    size = np.abs(dense_regressor(robot, states, mounting)).max(axis=0)
    structure = regressor_structure(robot, mounting)
    kept = np.zeros_like(size, dtype=bool)
    kept[structure.rows, structure.columns] = True
    assert size[~kept].max(initial=0.0) <= 1e-13 * size.max()
    assert size[kept].min() > 1e-9 * size.max()


@law(25)
@given(cases())
def test_structure_of_random_chains_leaves_nothing_out(case: Case) -> None:
    states = (case.q, case.qd, case.qdd)
    dense = dense_regressor(case.robot, states, case.gravity)
    assert_agree(compute_regressor(case.robot, *states, gravity=case.gravity).matrices(), dense)


def test_structure_is_block_upper_triangular_with_rotors_last() -> None:
    structure = regressor_structure(load_robot("ur5e"), rotors=True)
    inertial = structure.columns < 60
    assert (structure.columns[inertial] // 10 >= structure.rows[inertial]).all()
    assert structure.inertial_count == int(inertial.sum())
    assert inertial[: structure.inertial_count].all()
    assert np.array_equal(structure.columns[~inertial], 60 + np.arange(6))
    assert np.array_equal(structure.rows[~inertial], np.arange(6))
    assert structure.parameters == 66


def test_standard_names_follow_the_order_of_the_parameters() -> None:
    assert standard_names(1) == tuple(f"{name}1" for name in INERTIAL_NAMES)
    assert standard_names(2, rotors=True)[-3:] == ("m2", "Ia1", "Ia2")
    robot = load_robot("planar2")
    assert compute_regressor(robot, np.zeros((1, 2)), rotors=True).names == standard_names(2, rotors=True)


@pytest.mark.parametrize("name", ENGINES)
def test_columns_of_a_joint_are_those_of_the_matrix(name: str) -> None:
    robot = load_robot("puma560")
    states = random_states(np.random.default_rng(4), robot, 21)
    with engine(name):
        regressor = compute_regressor(robot, *states, rotors=True)
    Y = regressor.matrices()
    assert np.array_equal(regressor.stacked(), Y.reshape(21 * 6, 66))
    for j in range(6):
        columns, which = regressor.joint(j)
        assert np.array_equal(Y[:, j, which], columns)
        assert not np.delete(Y[:, j], which, axis=1).any()
        assert np.array_equal(Y[:, j, 60 + j], states[2][:, j])


def test_torque_refuses_the_wrong_number_of_parameters() -> None:
    regressor = compute_regressor(load_robot("planar2"), np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="must have 20 entries. Got 22 instead"):
        regressor.torque(np.zeros(22))


# -- memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [0, 1, 7, 8, 512, 513, 1024, 4096, 5000])
def test_series_are_contiguous_in_time_on_cache_lines_and_off_pages(samples: int) -> None:
    series = empty_series(5, samples)
    assert series.shape == (5, samples)
    if samples:
        assert series.strides[1] == series.itemsize
        assert series.strides[0] % CACHE_LINE == 0
        assert series.strides[0] % PAGE != 0
        assert series.ctypes.data % CACHE_LINE == 0


def test_series_do_not_overlap() -> None:
    series = empty_series(7, 512)
    series[:] = np.arange(7)[:, None]
    assert np.array_equal(series, np.repeat(np.arange(7.0), 512).reshape(7, 512))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("samples", FULL_TILE_AND_TAIL)
def test_out_is_filled_again_in_the_same_memory(name: str, samples: int) -> None:
    robot = load_robot("ur5e")
    rng = np.random.default_rng(samples)
    first, second = (random_states(rng, robot, samples) for _ in range(2))
    with engine(name):
        held = compute_regressor(robot, *first, rotors=True)
        fresh = compute_regressor(robot, *second, rotors=True)
        held.series[:] = np.nan
        again = compute_regressor(robot, *second, rotors=True, out=held)
    assert again.series is held.series
    assert again.series.ctypes.data == held.series.ctypes.data
    assert np.array_equal(again.series, fresh.series)


@pytest.mark.parametrize("samples", FULL_TILE_AND_TAIL)
def test_a_sample_has_the_same_row_in_any_batch(samples: int) -> None:
    robot = load_robot("panda")
    q, qd, qdd = random_states(np.random.default_rng(6), robot, samples)
    whole = compute_regressor(robot, q, qd, qdd).matrices()
    single = np.concatenate(
        [compute_regressor(robot, q[k : k + 1], qd[k : k + 1], qdd[k : k + 1]).matrices() for k in range(samples)]
    )
    assert np.array_equal(whole, single)


@pytest.mark.parametrize("layout", ["columns", "strided", "reversed", "misaligned with the cache"])
def test_out_of_any_layout_receives_the_same_series(layout: str) -> None:
    robot = load_robot("ur5e")
    states = random_states(np.random.default_rng(8), robot, 100)
    fresh = compute_regressor(robot, *states)
    count = len(fresh.structure.rows)
    series = {
        "columns": np.empty((100, count)).T,
        "strided": np.empty((2 * count, 300))[::2, ::3],
        "reversed": np.empty((count, 100))[::-1, ::-1],
        "misaligned with the cache": np.empty((count, 101))[:, 1:],
    }[layout]
    compute_regressor(robot, *states, out=Regressor(fresh.structure, series))
    assert np.array_equal(series, fresh.series)


def test_out_of_another_shape_is_refused() -> None:
    robot, q = load_robot("ur5e"), np.zeros((4, 6))
    regressor = compute_regressor(robot, q)
    for other in (
        {"robot": load_robot("puma560"), "q": q},
        {"robot": robot, "q": q[:3]},
        {"robot": robot, "q": q, "gravity": "wall"},
        {"robot": robot, "q": q, "rotors": True},
    ):
        with pytest.raises(ShapeError, match="out must be a regressor"):
            compute_regressor(**other, out=regressor)


def test_out_with_the_wrong_series_is_refused() -> None:
    robot, q = load_robot("planar2"), np.zeros((4, 2))
    structure = compute_regressor(robot, q).structure
    count = len(structure.rows)
    frozen = np.zeros((count, 4))
    frozen.setflags(write=False)
    for series in (frozen, np.zeros((count, 4), dtype=np.float32), np.zeros((count - 1, 4)), np.zeros((count + 1, 4))):
        with pytest.raises(ShapeError, match="out must be a writable float64 array"):
            compute_regressor(robot, q, out=Regressor(structure, series))
    with pytest.raises(ShapeError, match="out must be a regressor"):
        compute_regressor(robot, q, out=frozen)


def test_out_is_accepted_although_the_cache_forgot_its_structure() -> None:
    robot, q = load_robot("planar2"), np.zeros((4, 2))
    held = compute_regressor(robot, q)
    _structure.cache_clear()
    assert compute_regressor(robot, q, out=held).series is held.series


def test_structure_does_not_depend_on_the_inertials() -> None:
    rng = np.random.default_rng(3)
    joint = Joint("a", "revolute", random_rotation(rng), np.zeros(3))
    one, two = (Robot("r", (joint,), (Link.from_center("l", *random_body(rng)),)) for _ in range(2))
    assert regressor_structure(one) is regressor_structure(two)


@pytest.mark.parametrize("name", ENGINES)
def test_no_samples_give_no_rows(name: str) -> None:
    with engine(name):
        regressor = compute_regressor(load_robot("ur5e"), np.zeros((0, 6)), rotors=True)
    assert regressor.samples == 0
    assert regressor.matrices().shape == (0, 6, 66)
    assert regressor.torque(np.ones(66)).shape == (0, 6)


def test_the_kernel_is_handed_contiguous_numbers() -> None:
    chain = make_chain(load_robot("ur5e"), gravity=np.arange(6.0)[::2], rotor_inertias=np.arange(12.0)[::2])
    for part in chain[1:]:
        assert part.flags.c_contiguous
        assert part.flags.aligned
