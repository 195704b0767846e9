"""Single joints of another make: a joint written apart from the package is identified from its own recordings."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import jointwise
from jointwise.data.log import Log, Origin
from jointwise.errors import EstimationError
from jointwise.joint import JointRecord, Part, identify_friction, identify_hysteresis, joint_record
from plants import one_joint
from plants.one_joint import LuGre, Motion, OneJoint, Stribeck, runs, swings

SPEEDS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2)
NOISE, STEP = 0.3, 2e-6
"""Noise of the torque (Nm) and step of the encoders (rad)."""


def record_of(motion: Motion, plant: OneJoint, seed: int) -> JointRecord:
    """Return what encoders and drive record of a run."""
    noise = NOISE * np.random.default_rng(seed).normal(size=len(motion.t))
    q, theta = (np.round(x / STEP)[:, None] * STEP for x in (motion.q, motion.theta))
    log = Log(t=motion.t, q=q, theta=theta, current=(motion.torque + noise)[:, None], origin=Origin("plant"))

    def load(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return plant.link * qdd + plant.weight * np.sin(q)

    return joint_record(log, jointwise.load_robot("planar1"), 0, gain=1.0, load=load, inertia=plant.rotor)


def slow(plant: OneJoint, seed: int = 11) -> JointRecord:
    """Return a slow reciprocation."""
    return record_of(plant.run(swings(0.05, 8.0, 0.002), 60.0), plant, seed)


def friction_part(plant: OneJoint, seed: int = 12) -> Part:
    """Return friction over speed from runs at constant speed."""
    motion = plant.run(runs(SPEEDS, 2.0), 2 * len(SPEEDS) * 2.9)
    return identify_friction(record_of(motion, plant, seed))


@pytest.fixture(scope="module")
def lugre() -> OneJoint:
    return OneJoint(LuGre())


@pytest.fixture(scope="module")
def lugre_record(lugre: OneJoint) -> JointRecord:
    return slow(lugre)


@pytest.fixture(scope="module")
def lugre_friction(lugre: OneJoint) -> Part:
    return friction_part(lugre)


def test_the_plant_imports_nothing_of_the_package() -> None:
    tree = ast.parse(Path(one_joint.__file__).read_text(encoding="utf-8"))
    modules = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    modules += [alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    assert modules and not any((name or "").startswith("jointwise") for name in modules)


@pytest.mark.parametrize("friction", [LuGre(), Stribeck()])
def test_the_plant_slides_with_its_steady_friction(friction: LuGre | Stribeck) -> None:
    motion = OneJoint(friction).run(runs((0.1, 0.5), 2.0), 4 * 2.9)
    for k, speed in enumerate((0.1, -0.1, 0.5, -0.5)):
        at = np.searchsorted(motion.t, k * 2.9 + 1.8)
        assert motion.speed[at] == pytest.approx(speed, rel=0.02)
        assert motion.friction[at] == pytest.approx(float(friction.steady(motion.speed[[at]])[0]), rel=0.01)


@pytest.mark.parametrize("is_known", [False, True])
def test_hysteresis_of_a_lugre_joint_does_not_collapse(
    is_known: bool, lugre: OneJoint, lugre_record: JointRecord, lugre_friction: Part
) -> None:
    found = identify_hysteresis(lugre_record, steady=lugre_friction if is_known else None)
    assert found.model == "lugre"
    assert found.held_out == max(item.held_out for item in found.alternatives)
    assert found["F_C"] == pytest.approx(6.5, rel=0.03)
    assert found["F_S"] == pytest.approx(8.6, rel=0.03)
    assert found.value("F_V").covers(0.0 if is_known else 10.0)
    assert not any("do not separate" in note for note in found.notes)


def test_a_stribeck_rise_of_slip_elements_does_not_take_all_of_the_dry_friction(lugre_record: JointRecord) -> None:
    """Its exponential is not the Gaussian of the plant, so that F_C is low; it must not vanish in the rise."""
    found = identify_hysteresis(lugre_record, method="nlr-stribeck")
    assert found["V_S"] <= np.abs(lugre_record.speed).max()
    assert 0.4 * 6.5 < found["F_C"] < 8.6


def test_a_law_that_contradicts_the_friction_part_says_so(lugre_record: JointRecord, lugre_friction: Part) -> None:
    found = identify_hysteresis(lugre_record, method="nlr", steady=lugre_friction)
    assert any("these data do not separate dry and viscous friction" in note for note in found.notes)


def test_a_joint_without_memory_has_friction_over_speed_and_no_hysteresis() -> None:
    plant = OneJoint(Stribeck())
    found = friction_part(plant)
    truth = {"F_C": 6.5, "F_S": 8.6, "V_S": 0.05, "F_V1": 10.0}
    assert sum(found.value(name).covers(value) for name, value in truth.items()) >= 3
    assert all(found[name] == pytest.approx(value, rel=0.05) for name, value in truth.items())
    with pytest.raises(EstimationError, match="friction shows no memory"):
        identify_hysteresis(slow(plant))
