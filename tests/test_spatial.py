"""Rotations and inertial parameters against brute force and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from jointwise import spatial
from jointwise.spatial import Array
from kernels import assert_agree
from robots import law, random_body, random_rotation, seeds

pytestmark = pytest.mark.compat

UNIT_AXES = [sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]


def of_points(masses: Array, points: Array) -> Array:
    """Return the ten parameters of point masses by their definition."""
    tensor = np.zeros((3, 3))
    for m, (x, y, z) in zip(masses, points, strict=True):
        tensor += m * np.array([[y * y + z * z, -x * y, -x * z], [-x * y, x * x + z * z, -y * z], [-x * z, -y * z, 0]])
        tensor[2, 2] += m * (x * x + y * y)
    xx, xy, xz, yy, yz, zz = tensor[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    return np.array([xx, xy, xz, yy, yz, zz, *(masses @ points), masses.sum()])


def random_points(seed: int) -> tuple[np.random.Generator, Array, Array]:
    rng = np.random.default_rng(seed)
    return rng, rng.uniform(0.1, 2.0, 8), rng.uniform(-1.0, 1.0, (8, 3))


# -- rotations -----------------------------------------------------------------------------------------------------


@law(50)
@given(st.floats(-10.0, 10.0))
def test_elementary_rotations_are_those_of_scipy(angle: float) -> None:
    for axis, ours in zip("xyz", (spatial.rotation_x, spatial.rotation_y, spatial.rotation_z), strict=True):
        assert_agree(ours(angle), Rotation.from_euler(axis, angle).as_matrix(), tolerance=1e-14)


@law(50)
@given(seeds)
def test_rpy_is_fixed_axis_roll_pitch_yaw(seed: int) -> None:
    angles = np.random.default_rng(seed).uniform(-4.0, 4.0, 3)
    assert_agree(spatial.rotation_rpy(*angles), Rotation.from_euler("xyz", angles).as_matrix(), tolerance=1e-13)


@law(50)
@given(seeds)
def test_axis_angle_is_the_rotation_vector(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis, angle = rng.normal(size=3), rng.uniform(-7.0, 7.0)
    expected = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    assert_agree(spatial.rotation_axis_angle(axis, angle), expected, tolerance=1e-13)


@pytest.mark.parametrize("quarter", range(-8, 9))
def test_quarter_turns_are_exact(quarter: int) -> None:
    for turn in (spatial.rotation_x, spatial.rotation_y, spatial.rotation_z):
        R = turn(quarter * np.pi / 2)
        assert np.array_equal(R, np.round(R))


@law(50)
@given(seeds)
def test_rotation_z_to_is_the_shortest_turn_of_z(seed: int) -> None:
    direction = np.random.default_rng(seed).normal(size=3)
    R, unit = spatial.rotation_z_to(direction), direction / np.linalg.norm(direction)
    assert spatial.is_rotation(R, 1e-12)
    assert_agree(R[:, 2], unit, tolerance=1e-12)
    assert np.arccos((np.trace(R) - 1.0) / 2.0) == pytest.approx(np.arccos(unit[2]), abs=1e-7)


@pytest.mark.parametrize("axis", UNIT_AXES)
def test_rotation_z_to_is_exact_for_the_unit_axes(axis: Array) -> None:
    R = spatial.rotation_z_to(3.0 * axis)
    assert np.array_equal(R[:, 2], axis)
    assert np.array_equal(R, np.round(R))
    assert spatial.is_rotation(R, 0.0)


@pytest.mark.parametrize("tilt", 10.0 ** np.arange(-16.0, 0.0))
def test_rotation_z_to_stays_a_rotation_close_to_straight_down(tilt: float) -> None:
    direction = np.array([0.6 * tilt, 0.8 * tilt, -1.0])
    R = spatial.rotation_z_to(direction)
    assert spatial.is_rotation(R, 1e-12)
    assert np.abs(R[:, 2] - direction / np.linalg.norm(direction)).max() < 1e-12


@law(30)
@given(seeds)
def test_skew_is_the_cross_product(seed: int) -> None:
    a, b = np.random.default_rng(seed).normal(size=(2, 3))
    assert_agree(spatial.skew(a) @ b, np.cross(a, b), tolerance=1e-14)


def test_is_rotation_refuses_mirrors_scalings_and_shears() -> None:
    rng = np.random.default_rng(0)
    R = random_rotation(rng)
    assert spatial.is_rotation(R)
    assert not spatial.is_rotation(R @ np.diag([1.0, 1.0, -1.0]))
    assert not spatial.is_rotation(1.001 * R)
    assert not spatial.is_rotation(R + 1e-4 * rng.normal(size=(3, 3)))
    assert not spatial.is_rotation(np.full((3, 3), np.nan))


# -- ten parameters ------------------------------------------------------------------------------------------------


@law(50)
@given(seeds)
def test_inertial_vector_is_that_of_the_point_masses(seed: int) -> None:
    _, masses, points = random_points(seed)
    center = masses @ points / masses.sum()
    actual = of_points(masses, points - center)
    vector = spatial.inertial_vector(masses.sum(), center, spatial.six_to_tensor(actual[:6]))
    assert_agree(vector, of_points(masses, points), tolerance=1e-13)


@law(50)
@given(seeds)
def test_split_inertial_inverts_inertial_vector(seed: int) -> None:
    body = random_body(np.random.default_rng(seed))
    for ours, given_ in zip(spatial.split_inertial(spatial.inertial_vector(*body)), body, strict=True):
        assert_agree(np.asarray(ours), np.asarray(given_), tolerance=1e-12)


def test_split_inertial_of_a_massless_body_is_centred() -> None:
    mass, center, tensor = spatial.split_inertial([1.0, 0, 0, 2.0, 0, 3.0, 0, 0, 0, 0])
    assert mass == 0.0
    assert np.array_equal(center, np.zeros(3))
    assert np.array_equal(tensor, np.diag([1.0, 2.0, 3.0]))


@law(50)
@given(seeds)
def test_tensor_and_six_numbers_are_one_thing(seed: int) -> None:
    six = np.random.default_rng(seed).normal(size=6)
    tensor = spatial.six_to_tensor(six)
    assert np.array_equal(tensor, tensor.T)
    assert np.array_equal(spatial.tensor_to_six(tensor), six)


@law(50)
@given(seeds)
def test_pseudo_inertia_is_the_second_moment_of_the_points(seed: int) -> None:
    _, masses, points = random_points(seed)
    homogeneous = np.column_stack([points, np.ones(len(points))])
    expected = (masses[:, None] * homogeneous).T @ homogeneous
    assert_agree(spatial.pseudo_inertia(of_points(masses, points)), expected, tolerance=1e-13)


@law(50)
@given(seeds)
def test_pseudo_inertia_round_trip(seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=10)
    assert_agree(spatial.from_pseudo_inertia(spatial.pseudo_inertia(vector)), vector, tolerance=1e-14)


@law(50)
@given(seeds)
def test_move_inertial_moves_the_point_masses(seed: int) -> None:
    rng, masses, points = random_points(seed)
    R, p = random_rotation(rng), rng.uniform(-1.0, 1.0, 3)
    moved = spatial.move_inertial(of_points(masses, points), R, p)
    assert_agree(moved, of_points(masses, points @ R.T + p), tolerance=1e-13)


@law(30)
@given(seeds)
def test_move_inertial_there_and_back_is_the_identity(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vector, R, p = rng.normal(size=10), random_rotation(rng), rng.uniform(-1.0, 1.0, 3)
    again = spatial.move_inertial(spatial.move_inertial(vector, R, p), R.T, -R.T @ p)
    assert_agree(again, vector, tolerance=1e-13)


@law(30)
@given(seeds)
def test_move_inertial_matrix_is_the_linear_map(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vector, R, p = rng.normal(size=10), random_rotation(rng), rng.uniform(-1.0, 1.0, 3)
    assert_agree(spatial.move_inertial_matrix(R, p) @ vector, spatial.move_inertial(vector, R, p), tolerance=1e-13)


# -- what is physical ----------------------------------------------------------------------------------------------


def smallest(vector: Array) -> float:
    """Return the smallest eigenvalue of the pseudo-inertia: above zero for real bodies."""
    return float(np.linalg.eigvalsh(spatial.pseudo_inertia(vector))[0])


@law(200)
@given(seeds)
def test_the_pseudo_inertia_is_positive_iff_mass_is_positive_and_the_triangle_inequalities_hold(seed: int) -> None:
    """Principal moments a, b, c about the centre of mass: each less than the sum of the others."""
    rng = np.random.default_rng(seed)
    mass, moments, turn = rng.uniform(-0.2, 1.0), rng.uniform(0.02, 1.0, 3), random_rotation(rng)
    vector = spatial.inertial_vector(mass, rng.uniform(-0.3, 0.3, 3), turn @ np.diag(moments) @ turn.T)
    real = mass > 0.0 and bool((moments < moments.sum() - moments).all())
    assert (smallest(vector) > 0.0) == real


def test_random_bodies_are_sometimes_physical_and_sometimes_not() -> None:
    """The law above sees both sides."""
    rng = np.random.default_rng(0)
    moments = rng.uniform(0.02, 1.0, (200, 3))
    share = (2.0 * moments.max(axis=1) < moments.sum(axis=1)).mean()
    assert 0.2 < share < 0.8


@law(50)
@given(seeds)
def test_point_clouds_are_physical_and_flat_ones_are_not(seed: int) -> None:
    _, masses, points = random_points(seed)
    assert smallest(of_points(masses, points)) > 0.0
    assert smallest(of_points(masses, points * [1.0, 1.0, 0.0])) < 1e-12
    assert smallest(-of_points(masses, points)) < 0.0
