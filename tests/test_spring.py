"""Springs of a gear: one law for plant, joint and controller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise
from jointwise.control.joint_drive import JointDrive
from jointwise.errors import ModelError
from jointwise.joint.gear import CATALOGUE, StiffnessLaw
from jointwise.model.periodic_table import PeriodicTable
from jointwise.model.spring import Cubic, OddPolynomial, Rigid, Segments, Spring
from jointwise.simulation.recording import joint_from_dict, joint_to_dict
from jointwise.simulation.robot import Backlash, digital_robot, integrate
from kernels import needs_native

pytestmark = pytest.mark.compat

GEAR = Segments(16e3, 25e3, 29e3, 7.0, 25.0)
SPRINGS: list[Spring] = [
    Cubic(1e4),
    Cubic(1.5e4, 5e8),
    Cubic(100.0),
    GEAR,
    OddPolynomial((1e4, -1e6, 1e12)),
    OddPolynomial((1e4, -5e6)),
    StiffnessLaw(OddPolynomial((1e4, 5e8)), 2e-3),
    StiffnessLaw(GEAR, 7e-4),
]


@pytest.mark.parametrize("spring", SPRINGS)
def test_a_spring_bends_as_far_as_its_torque_says(spring: Spring) -> None:
    torque = np.append(np.linspace(-150.0, 150.0, 301), [-1e-6, 1e-9])
    phi = spring.deformation(torque)
    np.testing.assert_allclose(spring.torque(phi), torque, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(spring.deformation(-torque), -phi)
    assert spring.deformation(np.array(3.0)).shape == ()


@pytest.mark.parametrize("spring", SPRINGS)
def test_torque_stiffness_and_curvature_are_derivatives_of_the_energy(spring: Spring) -> None:
    phi, d = spring.deformation(np.linspace(-140.0, 143.0, 39)), 1e-8

    def slope(law) -> np.ndarray:  # type: ignore[no-untyped-def, type-arg]
        return (law(phi + d) - law(phi - d)) / (2.0 * d)

    np.testing.assert_allclose(slope(spring.energy), spring.torque(phi), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(slope(spring.torque), spring.stiffness(phi), rtol=1e-4)
    np.testing.assert_allclose(slope(spring.stiffness), spring.curvature(phi), rtol=1e-4, atol=1.0)


def test_a_cubic_is_a_case_of_the_odd_polynomial() -> None:
    phi = np.linspace(-0.01, 0.01, 21).reshape(3, 7)
    for name in ("torque", "stiffness", "curvature", "energy"):
        same = [getattr(spring, name)(phi) for spring in (Cubic(1e4, 5e8), OddPolynomial((1e4, 5e8)))]
        np.testing.assert_array_equal(*same)


def test_knees_lie_at_their_torques_and_belong_to_the_softer_line() -> None:
    knees = np.array(GEAR.knees)
    np.testing.assert_allclose(GEAR.torque(knees), [7.0, 25.0])
    np.testing.assert_allclose(GEAR.torque(-knees), [-7.0, -25.0])
    for law in (GEAR, StiffnessLaw(GEAR, 1.0), JointDrive(inertia=1.0, spring=GEAR).spring):
        assert law is not None
        np.testing.assert_array_equal(law.stiffness(np.array([0.0, *knees])), [16e3, 16e3, 25e3])
        np.testing.assert_array_equal(law.stiffness(-np.nextafter(knees, 1.0)), [25e3, 29e3])


@needs_native
@pytest.mark.parametrize("spring", [GEAR, Cubic(1.5e4, 5e9)])
def test_the_plant_stores_the_energy_and_carries_the_torque_of_the_law(spring: Cubic | Segments) -> None:
    digital = digital_robot(jointwise.load_robot("ur5e")).without(
        "friction", "damping", "kinematic_error", "lost_motion"
    )
    digital = replace(digital, joints=tuple(replace(joint, stiffness=spring) for joint in digital.joints))
    ramp = np.linspace(0.0, 60.0, 200)[:, None] * np.ones(6)
    run = integrate(digital, digital.rest(np.zeros(6)), ramp, locked=True)
    phi = run.theta - run.q
    assert np.abs(spring.torque(phi)).max() > 30.0
    np.testing.assert_allclose(run.load, spring.torque(phi), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.elastic, spring.energy(phi), rtol=1e-9, atol=1e-12)


def test_a_rigid_joint_does_not_bend() -> None:
    torque = np.array([-3.0, 0.0, 1e9])
    np.testing.assert_array_equal(Rigid().deformation(torque), 0.0)
    np.testing.assert_array_equal(Rigid().energy(torque), 0.0)
    np.testing.assert_array_equal(Rigid().stiffness(torque), np.inf)
    with pytest.raises(ModelError, match="rigid"):
        Rigid().torque(torque)


def test_a_torque_that_a_spring_never_carries_is_refused() -> None:
    with pytest.raises(ModelError, match="no deformation"):
        OddPolynomial((1e4, -1e9)).deformation(np.array([1.0, 1e3]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cubic(0.0),
        lambda: Cubic(float("inf")),
        lambda: Cubic(1.0, -1.0),
        lambda: OddPolynomial(()),
        lambda: OddPolynomial((-1.0, 1.0)),
        lambda: OddPolynomial((1.0, float("nan"))),
        lambda: Segments(29e3, 25e3, 16e3, 7.0, 25.0),
        lambda: Segments(0.0, 2.0, 3.0, 7.0, 25.0),
        lambda: Segments(1.0, 2.0, 3.0, 25.0, 7.0),
    ],
)
def test_what_is_no_spring_is_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ModelError, match="stiffness"):
        make()


@pytest.mark.parametrize(
    ("document", "spring"),
    [
        ({"kind": "rigid"}, Rigid()),
        ({"kind": "cubic", "linear": 1.5e4, "cubic": 5e7}, Cubic(1.5e4, 5e7)),
        ({"kind": "segments", "K1": 16e3, "K2": 25e3, "K3": 29e3, "T1": 7.0, "T2": 25.0}, GEAR),
    ],
)
def test_springs_keep_their_words_in_truth_files(document: dict[str, float], spring: Spring) -> None:
    joint = joint_from_dict({"inertia": 1.0, "stiffness": document, "backlash": {"values": [1e-3, 2e-3]}})
    assert joint.stiffness == spring and joint.backlash == Backlash((1e-3, 2e-3))
    written = joint_to_dict(joint)
    assert written["stiffness"] == document and written["backlash"] == {"values": [1e-3, 2e-3]}


def test_the_catalogue_stiffens() -> None:
    assert all(gear.K1 < gear.K2 < gear.K3 for gear in CATALOGUE.values())


# -- tables over a turn ------------------------------------------------------------------------------------------


def test_backlash_is_read_as_every_periodic_table() -> None:
    values = tuple(np.random.default_rng(1).uniform(1e-3, 2e-3, 7).tolist())
    theta = np.linspace(-20.0, 20.0, 501)
    np.testing.assert_array_equal(Backlash(values).at(theta), PeriodicTable(values).at(theta))


def test_a_periodic_table_repeats_and_passes_its_points() -> None:
    table = PeriodicTable((1.0, 3.0, -2.0, 0.5))
    quarters = np.pi / 2 * np.arange(-8, 9)
    np.testing.assert_allclose(table.at(quarters), np.resize([1.0, 3.0, -2.0, 0.5], 17), atol=1e-12)
    np.testing.assert_array_equal(table.resampled(8)[::2], table.values)
    theta, d = np.linspace(-9.0, 9.0, 100), 1e-7
    rise = (table.at(theta + d) - table.at(theta - d)) / (2.0 * d)
    np.testing.assert_allclose(table.slope(theta), rise, rtol=1e-6)
