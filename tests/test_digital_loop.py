"""One loop runs every controller, natively or step by step, and refuses what cannot go well."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointwise import control
from jointwise.control.controller import AffineControl
from jointwise.control.stability import check_stability, closed_loop_stability
from jointwise.description import Payload, load_robot
from jointwise.design import joint_moves
from jointwise.errors import ModelError, ShapeError
from jointwise.experiment.closed_loop import drives_of, run_loop
from jointwise.model.rigid import gravity_torque
from jointwise.simulation.robot import (
    PHENOMENA,
    InstabilityError,
    digital_robot,
    integrate,
    saturation,
)
from jointwise.spatial import Array
from kernels import needs_native

pytestmark = needs_native

EXAMPLES = Path(__file__).parents[1] / "examples"
ROBOT = load_robot("ur5e")
ARM = digital_robot(ROBOT)
DRIVES = drives_of(ARM)
HOME = np.array([0.2, -1.2, 1.0, -1.0, -1.5, 0.3])
MOTION = joint_moves(np.stack([HOME, HOME + 0.3]), np.full(6, 1.0), np.full(6, 4.0), ramp="smooth")
CONTROLLERS = {
    "pd": control.pd_gravity(ROBOT, MOTION, drives=DRIVES),
    "pid": control.pid(ROBOT, MOTION, drives=DRIVES),
    "computed torque": control.computed_torque(
        ROBOT, MOTION, drives=DRIVES, gains=control.bandwidth_gains(3.0, 1.0, 0.2)
    ),
    "elastic": control.flexible_feedforward(ROBOT, MOTION, drives=DRIVES),
    "lqr": control.lqr(ROBOT, MOTION, drives=DRIVES, tolerances=control.Tolerances(integral=0.1)),
}


def held(seconds: float, rate: float = 1000.0, **gains: Array) -> AffineControl:
    rows = np.repeat(HOME[None], round(seconds * rate), axis=0)
    return AffineControl(q=rows, qd=0.0 * rows, theta=rows, speed=0.0 * rows, **gains)


# -- one loop ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTROLLERS)
def test_native_and_stepped_are_the_same_run(name: str) -> None:
    law = CONTROLLERS[name]
    fast, slow = (run_loop(ARM, ARM.rest(HOME), law, native=native, periods=300) for native in (True, False))
    assert np.ptp(fast.q, axis=0).min() > 0.005
    for series in ("q", "theta", "command", "friction", "temperature", "supplied"):
        np.testing.assert_allclose(getattr(slow, series), getattr(fast, series), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(slow.t, fast.t)
    np.testing.assert_allclose(slow.final.q, fast.final.q, rtol=1e-9)
    assert np.abs(slow.energy.residual).max() <= 1e-6 * slow.energy.moved


@pytest.mark.parametrize("name", CONTROLLERS)
def test_every_controller_brings_the_full_arm_there(name: str) -> None:
    run = run_loop(ARM, ARM.rest(HOME), CONTROLLERS[name])
    assert np.abs(run.final.q - HOME - 0.3).max() < 0.05
    assert not saturation(run).happened


def test_a_second_run_starts_with_an_empty_integral() -> None:
    law = CONTROLLERS["pid"]
    first = run_loop(ARM, ARM.rest(HOME), law, periods=200)
    again = ARM.rest(HOME).with_rows(integral=first.final.row("integral"))
    np.testing.assert_array_equal(run_loop(ARM, again, law, periods=200).q, first.q)


def test_ten_lines_of_a_user_run_in_the_loop() -> None:
    class Damper:
        """Holds where it starts, harder and harder."""

        def init(self, sample: control.ControlSample) -> tuple[Array, float]:
            return sample.theta, 0.0

        def step(self, state: tuple[Array, float], sample: control.ControlSample) -> tuple[Array, tuple[Array, float]]:
            start, gain = state
            torque = -gain * (sample.theta - start) - 20.0 * sample.speed
            return torque, (start, min(gain + 10.0, 2000.0))

    run = run_loop(ARM, ARM.rest(HOME), Damper(), periods=600)
    assert len(run.t) == 600
    assert np.abs(run.speed[-1]).max() < 0.02
    assert np.abs(run.q - HOME).max() > 0.01


def test_a_wrench_reaches_the_stepped_arm_too() -> None:
    push = np.array([0.0, 40.0, 0.0, 0.0, 0.0, 0.0])
    fast, slow = (
        run_loop(ARM, ARM.rest(HOME), CONTROLLERS["pd"], native=native, periods=100, wrench=push)
        for native in (True, False)
    )
    np.testing.assert_allclose(slow.q, fast.q, rtol=1e-9)


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    run_loop(ARM, ARM.rest(HOME), CONTROLLERS["pd"], native=False, periods=3, progress=lambda k, n: seen.append((k, n)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


# -- what a controller may know ------------------------------------------------------------------------------------


def test_drives_carry_the_numbers_of_the_plant() -> None:
    base = DRIVES[0]
    joint = ARM.joints[0]
    assert (base.inertia, base.damping, base.lag) == (joint.inertia, joint.damping, joint.motor.lag)
    assert base.forward - base.backward == pytest.approx(2.0 * joint.friction.asymmetry * joint.friction.coulomb)
    assert base.spring == joint.stiffness
    assert all(drive.spring is None for drive in drives_of(ARM.without("stiffness")))


# -- stability -----------------------------------------------------------------------------------------------------


def grows(law: AffineControl) -> bool:
    """Return whether a push of 10 µrad grows in a simulation without friction."""
    plant = ARM.without(*(name for name in PHENOMENA if name not in ("stiffness", "damping", "current_lag")))
    start = plant.rest(HOME)
    law = replace(law, theta=np.repeat(start.theta[None], law.periods, axis=0), torque=_weight(law.periods))
    try:
        run = integrate(plant, start.with_rows(q=start.q + 1e-5), law)
    except InstabilityError:
        return True
    return bool(np.abs(run.q[-300:] - HOME).max() > 3.0 * np.abs(run.q[:300] - HOME).max())


def _weight(periods: int) -> Array:
    return np.repeat(gravity_torque(ROBOT, HOME[None]), periods, axis=0)


PLANT_DRIVES = tuple(replace(d, viscous=0.0, forward=0.0, backward=0.0) for d in DRIVES)
KD = np.array([150.0, 150.0, 100.0, 12.0, 10.0, 6.0])


@pytest.mark.parametrize(
    ("gains", "stable"),
    [
        ({"k_theta": 30.0 * KD, "k_speed": KD}, True),
        ({"k_theta": 30.0 * KD, "k_speed": 30.0 * KD}, True),
        ({"k_theta": 30.0 * KD, "k_speed": 40.0 * KD}, False),
        ({"kp": 50.0 * KD, "kd": 0.1 * KD}, True),
        ({"kp": 200.0 * KD, "kd": 0.1 * KD}, False),
    ],
)
def test_the_linear_verdict_is_that_of_the_simulation(gains: dict[str, Array], stable: bool) -> None:
    law = held(1.5, **gains)
    assert closed_loop_stability(control.Links(ROBOT), law, 1000.0, PLANT_DRIVES).is_stable is stable
    assert grows(law) is not stable


def test_gains_too_high_for_the_rate_are_refused_before_anything_moves() -> None:
    law = control.pd_gravity(ROBOT, MOTION, 50.0, drives=DRIVES, gains=control.bandwidth_gains(15.0))
    with pytest.raises(ModelError, match=r"rate of 50 Hz is too low for the gains.*joint \d '\w+'.*raise the rate"):
        run_loop(ARM, ARM.rest(HOME), law)
    fast = control.pd_gravity(ROBOT, MOTION, 1000.0, drives=DRIVES, gains=control.bandwidth_gains(15.0))
    run_loop(ARM, ARM.rest(HOME), fast, periods=10)


def test_link_side_gains_that_no_rate_helps_are_refused_with_what_would() -> None:
    law = held(0.1, kp=200.0 * KD, kd=0.1 * KD)
    with pytest.raises(ModelError, match="unstable.*times the gains"):
        check_stability(control.Links(ROBOT), law, 1000.0, PLANT_DRIVES)


def test_gains_too_weak_for_gravity_are_refused() -> None:
    upright = AffineControl(
        q=np.tile([0.0, -np.pi / 2, 0.0, 0.0, 0.0, 0.0], (10, 1)), kp=np.full(6, 1.0), kd=np.full(6, 5.0),
        qd=np.zeros((10, 6)),
    )  # fmt: skip
    with pytest.raises(ModelError, match="times the gains"):
        check_stability(control.Links(ROBOT), upright, 1000.0, drives_of(ARM.without("stiffness")))


def test_feed_forward_alone_is_not_judged() -> None:
    check_stability(control.Links(ROBOT), AffineControl(torque=np.zeros((10, 6))), 1000.0, DRIVES)


def test_a_sampled_rigid_joint_is_judged_exactly() -> None:
    """J θ̈ = u, u = -k_speed ω held over T: stable up to k_speed T = 2 J."""
    robot = load_robot("planar1")
    drive = (control.JointDrive(inertia=0.5),)
    J = float(control.effective_inertias(robot, np.zeros((1, 1)))[0]) + 0.5
    for factor, stable in ((1.99, True), (2.01, False)):
        law = AffineControl(
            q=np.zeros((4, 1)), qd=np.zeros((4, 1)), kp=np.array([1e-6]), kd=np.array([factor * J / 1e-2])
        )
        found = closed_loop_stability(control.Links(robot, np.zeros(3)), law, 100.0, drive)
        assert (found.radius < 1.0 + 1e-6) is stable
        assert stable or found.radius == pytest.approx(1.01, abs=1e-6)


@pytest.mark.parametrize("name", ["ur3e", "ur5e", "ur10e", "panda", "puma560"])
def test_usual_gains_suit_every_arm(name: str) -> None:
    robot = load_robot(name)
    arm = digital_robot(robot)
    drives = drives_of(arm)
    still = np.zeros((4, robot.dof)) + 0.3
    reference = control.Reference(500.0, still, 0.0 * still, 0.0 * still, 0.0 * still, 0.0 * still)
    makers = (control.pd_gravity, control.pid, control.computed_torque, control.flexible_feedforward, control.lqr)
    for make in makers:
        law = make(robot, reference, 500.0, drives=drives).law
        for payload in (None, Payload(2.0)):
            check_stability(control.Links(robot, payload=payload), law, 500.0, drives)


@pytest.mark.parametrize("name", ["ur3e", "ur5", "ur10e", "panda", "planar2"])
def test_robot_motion_and_rate_are_enough_for_any_arm(name: str) -> None:
    """The full arm, nothing known of its drives: stable, and within a degree of the motion."""
    robot = load_robot(name)
    arm = digital_robot(robot)
    start = np.full(robot.dof, -0.6)
    motion = joint_moves(
        np.stack([start, start + 0.4]), np.full(robot.dof, 1.0), np.full(robot.dof, 4.0), ramp="smooth"
    )
    wanted = control.as_reference(motion, 500.0)
    for make in (control.pd_gravity, control.computed_torque):
        run = run_loop(arm, arm.rest(start), make(robot, motion, 500.0))
        assert np.abs(run.q - wanted.q).max() < np.deg2rad(1.0)


# -- limits and wrong arguments --------------------------------------------------------------------------------------


def test_saturation_is_reported() -> None:
    weak = replace(ARM, joints=tuple(replace(j, motor=replace(j.motor, limit=0.6)) for j in ARM.joints))
    reported = saturation(run_loop(weak, weak.rest(HOME), CONTROLLERS["pd"], periods=200))
    assert reported.happened
    assert reported.first is not None
    assert "motors saturate from t =" in str(reported)
    calm = saturation(run_loop(ARM, ARM.rest(HOME), CONTROLLERS["pd"], periods=200))
    assert calm.first is None
    assert "no motor saturates" in str(calm)


class Returns:
    def __init__(self, torque: object) -> None:
        self.torque = torque

    def init(self, sample: control.ControlSample) -> None:
        return None

    def step(self, state: None, sample: control.ControlSample) -> tuple[object, None]:
        return self.torque, None


@pytest.mark.parametrize(
    ("controller", "options", "error", "text"),
    [
        (Returns(np.zeros(6)), {}, ModelError, "periods"),
        (Returns(np.zeros(5)), {"periods": 2}, ShapeError, "6 finite torques"),
        (Returns(np.full(6, np.nan)), {"periods": 2}, ShapeError, "period 0"),
        (CONTROLLERS["pd"], {"rate": 500.0}, ModelError, "made for 1000 Hz"),
        (CONTROLLERS["pd"], {"periods": 10**6}, ModelError, "lasts"),
        (CONTROLLERS["pd"], {"periods": 0}, ModelError, "at least 1"),
    ],
)
def test_wrong_arguments_get_one_clear_line(
    controller: object, options: dict[str, float], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        run_loop(ARM, ARM.rest(HOME), controller, **options)  # type: ignore[arg-type]


def test_a_controller_that_runs_away_is_stopped_with_its_period() -> None:
    class Wild(Returns):
        def step(self, state: None, sample: control.ControlSample) -> tuple[object, None]:
            return 1e8 * sample.speed + 1e5, None

    arm = ARM.without("current_limit")
    with pytest.raises(InstabilityError) as failure:
        run_loop(arm, arm.rest(HOME), Wild(0.0), periods=100)
    assert failure.value.period > 0
    assert failure.value.time == pytest.approx(failure.value.period / 1000.0)


# -- the documented example ------------------------------------------------------------------------------------------


def test_the_ur5_with_harmonic_drives_draws_its_ellipse_within_a_millimetre(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    import ur5_harmonic_drives as ur5

    arm = ur5.make_arm()
    motion = ur5.make_motion(arm, 9.0)
    laws = ur5.make_controllers(arm, motion)
    steady = {name: ur5.try_controller(arm, motion, laws[name]).steady.max() for name in ("LQR", "PD with gravity")}
    assert steady["LQR"] < 1e-3
    assert steady["PD with gravity"] > 2.0 * steady["LQR"]
    rows = ur5.inertia_rows(arm, motion)
    report, repeated = rows["the report"], rows["its experiment, at home"]
    assert np.abs(repeated / report - 1.0).max() < 0.4
    assert np.abs(repeated / report - 1.0)[[0, 2, 3, 5]].max() < 0.06
