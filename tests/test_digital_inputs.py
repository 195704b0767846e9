"""The digital robot's parameters, switches and refusals: every wrong argument gets its own clear line."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest

import jointwise.simulation.robot as package
from jointwise.control.controller import AffineControl
from jointwise.description import Payload, list_robots, load_robot
from jointwise.design import waypoint_trajectory
from jointwise.errors import JointwiseError, ModelError
from jointwise.simulation.robot import (
    PHENOMENA,
    Backlash,
    Cubic,
    DigitalRobot,
    Friction,
    Harmonic,
    JointPlant,
    LostMotion,
    MotorPlant,
    Rigid,
    Segments,
    Slip,
    Stribeck,
    Thermal,
    ThermalFriction,
    default_joints,
    digital_robot,
    integrate,
    load_joints,
    step,
)
from kernels import native, needs_native

ROBOT = load_robot("ur5e")
FULL = digital_robot(ROBOT)


def test_no_function_hides_a_module_of_the_digital_robot() -> None:
    for module in iter_modules(package.__path__):
        assert import_module(f"{package.__name__}.{module.name}") is getattr(package, module.name)


def test_defaults_are_those_of_the_theory() -> None:
    base, wrist = FULL.joints[0], FULL.joints[-1]
    assert base.inertia == pytest.approx(ROBOT.rotor_inertias[0])
    assert base.friction.coulomb + 3.0 * base.friction.viscous + 9.0 * base.friction.square == pytest.approx(
        30.0, abs=1
    )
    assert wrist.friction.coulomb == pytest.approx(0.1 * base.friction.coulomb, rel=0.02)
    assert isinstance(base.stiffness, Cubic)
    assert base.stiffness.linear == pytest.approx(1.5e4)
    assert base.backlash.mean == pytest.approx(1e-3)
    assert [wave.order for wave in base.kinematic_error] == [1.0, 2.0, 200.0]


@pytest.mark.parametrize("name", list_robots())
def test_every_robot_has_joints(name: str) -> None:
    robot = load_robot(name)
    assert len(default_joints(robot)) == robot.dof
    assert 1e-6 < digital_robot(robot).largest_step <= 1e-3


def test_a_file_overrules_single_values(tmp_path: Path) -> None:
    path = tmp_path / "joints.toml"
    rows = "".join(f"[[joint]]\ncoulomb = {k + 1}.0\n" for k in range(6))
    path.write_text(f"schema = 1\n[drive]\nlag = 0.001\n{rows}")
    joints = load_joints(path, ROBOT)
    assert [joint.friction.coulomb for joint in joints] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert {joint.motor.lag for joint in joints} == {0.001}
    assert joints[0].friction.viscous == FULL.joints[0].friction.viscous
    assert joints[0].kinematic_error == FULL.joints[0].kinematic_error


def test_a_file_of_drives_without_lag_needs_no_inductance(tmp_path: Path) -> None:
    path = tmp_path / "drives.toml"
    path.write_text("schema = 1\n[drive]\nlag = 0.0\n")
    assert {joint.motor.inductance for joint in load_joints(path, ROBOT)} == {0.0}


def test_a_file_overrules_what_the_robot_is_described_with(tmp_path: Path) -> None:
    path = tmp_path / "joints.toml"
    path.write_text("schema = 1\nkinematic_error = []\n[drive]\ngain = 3.0\n")
    joints = load_joints(path, ROBOT)
    assert {joint.motor.gain for joint in joints} == {3.0}
    assert {joint.kinematic_error for joint in joints} == {()}
    assert [joint.inertia for joint in joints] == [joint.inertia for joint in FULL.joints]


def test_a_file_gives_a_spring_of_three_segments(tmp_path: Path) -> None:
    path = tmp_path / "joints.toml"
    path.write_text(
        "schema = 1\n[drive]\nK1 = 1e4\nK2 = 1.4e4\nK3 = 2e4\nT1 = 14.0\nT2 = { value = 48.0, power = 0 }\n"
    )
    assert {joint.stiffness for joint in load_joints(path, ROBOT)} == {Segments(1e4, 1.4e4, 2e4, 14.0, 48.0)}


def test_a_copy_of_the_usual_file_changes_nothing(tmp_path: Path) -> None:
    usual = (files("jointwise.simulation.robot") / "drive.toml").read_text(encoding="utf-8")
    path = tmp_path / "joints.toml"
    path.write_text(usual, encoding="utf-8")
    assert load_joints(path, ROBOT) == FULL.joints


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema = 2", "schema must be 1"),
        ("schema = ", "not valid TOML"),
        ("schema = 1\n[drive]\ncoulom = 1.0", "unknown key 'coulom'. Did you mean coulomb"),
        ("schema = 1\n[[joint]]\ncoulomb = 1.0", "6 .* tables"),
        ("schema = 1\n[drive]\ncoulomb = 'much'", "coulomb must be a number"),
        ("schema = 1\n[drive]\ncoulomb = { value = 1.0, powr = 2 }", "coulomb must be a number or { value, power }"),
        ("schema = 1\n[drive]\ncoulomb = nan", "joints.toml, joint 'shoulder_pan': .*coulomb must be finite"),
        ("schema = 1\n[drive]\nelements = 2.7", "elements must be a whole number from 0 to 100. Got 2.7"),
        ("schema = 1\n[drive]\ngain = 0", "motor: gain must be finite and > 0. Got 0.0"),
        ("schema = 1\n[drive]\nbacklash_variation = 3", r"backlash: variation must lie in \[0, 1\). Got 3.0"),
        ("schema = 1\n[drive]\nbacklash = 0", "backlash: mean must be finite and > 0. Got 0.0"),
        ("schema = 1\n[drive]\nambient = 500", "thermal: ambient must be -60 to 200 °C. Got 500.0"),
        ("schema = 1\n[drive]\nK1 = 1e4\nT1 = 3.0", "three segments needs .* There is no K2, K3, T2"),
        ("schema = 1\n[drives]\ncoulomb = 1.0", "unknown key 'drives'. Did you mean drive"),
        ("schema = 1\ndrive = 3", "must be a table"),
        ("schema = 1\n[joint]\ncoulomb = 1.0", "6 .* tables. Got one"),
        ("schema = 1\n[[kinematic_error]]\namplitude = 1e-4", "amplitude, order and phase"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "joints.toml"
    path.write_text(text)
    with pytest.raises(ModelError, match=message):
        load_joints(path, ROBOT)


def test_without_everything_the_joints_are_bare() -> None:
    for joint in FULL.without(*PHENOMENA).joints:
        assert joint.is_rigid
        assert joint.friction == Friction(slip=joint.friction.slip)
        assert joint.kinematic_error == ()
        assert joint.lost_motion == LostMotion()
        assert joint.motor == MotorPlant(joint.motor.gain)
        assert joint.thermal.capacity == 0.0
        assert joint.inertia > 0.0


def test_groups_are_all_that_they_name() -> None:
    assert FULL.without("all").joints == FULL.without(*PHENOMENA).joints
    assert not any(joint.friction.is_dry or joint.friction.viscous for joint in FULL.without("friction").joints)
    alone = FULL.without(*(name for name in PHENOMENA if name != "viscous")).joints[0].friction
    assert alone.viscous > 0.0 and not alone.is_dry


def test_what_is_no_joint_or_temperature_is_refused() -> None:
    with pytest.raises(ModelError, match="joint must be 0 to 5. Got 9"):
        FULL.aged(friction=0.5, joints=[9])
    with pytest.raises(JointwiseError, match="temperature"):
        FULL.rest(np.zeros(6), temperature=[1.0, 2.0])
    with pytest.raises(ModelError, match="waypoints must differ"):
        waypoint_trajectory(ROBOT, np.zeros((2, 6)))


@pytest.mark.parametrize("name", PHENOMENA)
def test_each_switch_changes_something(name: str) -> None:
    assert FULL.without(name).joints != FULL.joints


@pytest.mark.parametrize(
    "make",
    [
        lambda: Slip((1.0, 2.0), (1.0,)),
        lambda: Slip((1.0,), (0.5,)),
        lambda: Slip((0.0,), (1.0,)),
        lambda: Stribeck(1.0, 0.0),
        lambda: ThermalFriction(coldest=0.0),
        lambda: ThermalFriction(coldest=30.0, hottest=20.0),
        lambda: Friction(coulomb=-1.0),
        lambda: Friction(viscous=float("nan")),
        lambda: Friction(asymmetry=1.0),
        lambda: Backlash(()),
        lambda: Backlash((1e-3, 0.0)),
        lambda: MotorPlant(gain=0.0),
        lambda: MotorPlant(limit=0.0),
        lambda: MotorPlant(lag=-1.0),
        lambda: Thermal(capacity=-1.0),
        lambda: JointPlant(-1.0),
        lambda: JointPlant(0.0, stiffness=Cubic(1.0)),
        lambda: JointPlant(1.0, damping=-1.0),
        lambda: JointPlant(1.0, kinematic_error=(Harmonic(0.01, 200.0),)),
        lambda: JointPlant(1.0, kinematic_error=(Harmonic(1e-4, 1.0),) * 9),
        lambda: LostMotion(-0.1),
        lambda: LostMotion(0.3, 0.0),
        lambda: LostMotion(float("nan")),
        lambda: JointPlant(1.0, lost_motion=LostMotion(1.0, 1e-3)),
        lambda: JointPlant(1.0, kinematic_error=(Harmonic(4e-3, 200.0),), lost_motion=LostMotion(0.3, 1e-3)),
        lambda: DigitalRobot(ROBOT, FULL.joints[:5]),
        lambda: DigitalRobot(ROBOT, FULL.joints, model="exact"),
        lambda: FULL.without("friktion"),
        lambda: FULL.aged(stiffness=-1.0),
        lambda: FULL.rest([0.0, 1.0]),
        lambda: FULL.rest(np.full(6, np.nan)),
        AffineControl,
        lambda: AffineControl(q=np.zeros((5, 6)), qd=np.zeros((4, 6))),
        lambda: AffineControl(q=np.zeros((5, 6)), kd=np.ones(6)),
    ],
)
def test_wrong_parameters_are_refused(make: object) -> None:
    with pytest.raises(JointwiseError):
        make()


ZERO = np.zeros((5, 6))


@needs_native
@pytest.mark.parametrize(
    ("control", "options"),
    [
        (np.zeros((5, 5)), {}),
        (np.zeros(6), {}),
        (np.full((5, 6), np.nan), {}),
        (ZERO, {"rate": 0.0}),
        (ZERO, {"rate": np.nan}),
        (ZERO, {"substeps": 0}),
        (ZERO, {"wrench": np.zeros(3)}),
        (ZERO, {"wrench": np.full(6, np.inf)}),
        (ZERO, {"payloads": {1.0: Payload(1.0)}}),
        (AffineControl(q=ZERO, kp=np.ones(5)), {}),
        (AffineControl(q=ZERO, kp=np.ones((4, 6, 6))), {}),
        (AffineControl(q=ZERO, kp=np.full(6, np.inf)), {}),
        (AffineControl(q=ZERO, kp=np.ones(6)), {"current": True}),
    ],
)
def test_wrong_runs_are_refused(control: object, options: dict[str, object]) -> None:
    with pytest.raises(JointwiseError):
        integrate(FULL, FULL.rest(np.zeros(6)), control, **options)


@needs_native
def test_states_of_another_robot_are_refused() -> None:
    other = digital_robot(load_robot("panda"))
    with pytest.raises(JointwiseError, match="another robot"):
        integrate(FULL, other.rest(np.zeros(7)), ZERO)
    with pytest.raises(JointwiseError, match="finite"):
        integrate(FULL, FULL.rest(np.zeros(6)).with_rows(q=np.full(6, np.nan)), ZERO)
    with pytest.raises(JointwiseError, match="play must lie"):
        integrate(FULL, FULL.rest(np.zeros(6)).with_rows(play=np.full(6, 1.1)), ZERO)
    with pytest.raises(JointwiseError, match="torque must be 6"):
        step(FULL, FULL.rest(np.zeros(6)), np.zeros(5))


@needs_native
def test_wrong_native_calls_raise() -> None:
    joints, backlash = FULL.packed
    state = FULL.rest(np.zeros(6)).values.copy()
    nothing = (None,) * 12
    rest = (nothing, None, 1e-3, 3, 2, False, np.empty((3, 103)), None, None)
    terms = FULL.terms(5e-4)
    good = [FULL.chain, joints, terms, backlash, np.zeros(3), state, 4, *rest]
    assert native.simulate(*good) == -1
    wrong = {
        0: (FULL.chain[:5], tuple(x if k else b"" for k, x in enumerate(FULL.chain))),
        1: (joints[:5].copy(), joints.astype(np.float32), None, joints * np.nan),
        2: (terms[:-1].copy(), np.append(terms, 0.0), np.append(33.0, terms[1:]), terms * np.nan, np.zeros(0), None),
        3: (backlash[:, :0].copy(), np.zeros(7)),
        4: (np.zeros(2),),
        5: (state[:-1].copy(), FULL.rest(np.zeros(6)).values),
        6: (3, -1, 17),
        7: (nothing[:10], (np.zeros((2, 6)), *nothing[1:]), (*nothing[:5], np.zeros(7), *nothing[6:])),
        8: (np.zeros(5), np.zeros((2, 6))),
        9: (0.0, -1.0, np.nan),
        10: (-1, 4),
        11: (0,),
        13: (np.empty((2, 91)),),
        14: (np.zeros(6), np.zeros((3, 6)), 1.0),
        15: (np.zeros(6), np.zeros((5, 6)), 1.0),
    }
    for place, values in wrong.items():
        for value in values:
            with pytest.raises((ValueError, TypeError, BufferError)):
                native.simulate(*[value if k == place else x for k, x in enumerate(good)])


@needs_native
def test_few_joints_or_none_may_be_elastic() -> None:
    joints = tuple(joint if k % 2 else replace(joint, stiffness=Rigid()) for k, joint in enumerate(FULL.joints))
    mixed = replace(FULL, joints=joints)
    state = mixed.rest([0.0, -1.0, 1.0, 0.0, 0.5, 0.0])
    wave = state.load + 30.0 * np.sin(np.arange(1000)[:, None] / 60.0) * np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
    run = integrate(mixed, state, wave)
    assert (run.theta[:, ::2] == run.q[:, ::2]).all()
    assert np.abs(run.energy.residual).max() <= 1e-6 * run.energy.moved


def test_without_the_native_kernel_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointwise.simulation.robot.packing.native", lambda: None)
    for switch, remedy in (("0", "unset JOINTWISE_NATIVE"), ("1", "C compiler")):
        monkeypatch.setenv("JOINTWISE_NATIVE", switch)
        with pytest.raises(ModelError, match=f"needs the native kernel.*{remedy}"):
            integrate(FULL, FULL.rest(np.zeros(6)), ZERO)
