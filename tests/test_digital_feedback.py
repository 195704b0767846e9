"""Controllers that read encoders: positions in counts, speeds their differences, natively and step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise
from jointwise import control
from jointwise.control.controller import AffineControl, ControlSample
from jointwise.control.stability import UnstableError, check_stability, closed_loop_stability
from jointwise.description import load_robot
from jointwise.design import joint_moves
from jointwise.errors import ModelError, ShapeError
from jointwise.experiment import CONTROLLERS, ControllerOptions, default_sensors
from jointwise.experiment.closed_loop import drives_of, run_loop, sample_of
from jointwise.model.rigid import gravity_torque
from jointwise.simulation import Sensors
from jointwise.simulation.robot import (
    PHENOMENA,
    InstabilityError,
    Run,
    digital_robot,
    integrate,
)
from jointwise.simulation.sensors import Encoders
from jointwise.spatial import Array
from kernels import needs_native
from simulation_options import grouped

pytestmark = needs_native

ROBOT = load_robot("ur5e")
ARM = digital_robot(ROBOT)
SENSED = ControllerOptions(feedback="sensors")
DRIVES = drives_of(ARM)
HOME = np.array([0.2, -1.2, 1.0, -1.0, -1.5, 0.3])
MOTION = joint_moves(np.stack([HOME, HOME + 0.3]), np.full(6, 1.0), np.full(6, 4.0), ramp="smooth")
RATIOS = np.full(6, 100.0)
USUAL = Sensors().encoders(RATIOS)
PERFECT = Sensors(encoder_counts=None, motor_counts=None).encoders(RATIOS)
COARSE = Sensors(encoder_counts=50_000, motor_counts=1024).encoders(RATIOS)
LAWS = {
    "pd": control.pd_gravity(ROBOT, MOTION, drives=DRIVES),
    "pid": control.pid(ROBOT, MOTION, drives=DRIVES),
    "lqr": control.lqr(ROBOT, MOTION, drives=DRIVES, tolerances=control.Tolerances(integral=0.1)),
}
KD = np.array([150.0, 150.0, 100.0, 12.0, 10.0, 6.0])


def held(periods: int, **gains: Array) -> AffineControl:
    """Return a law that holds the arm where it starts."""
    start = ARM.rest(HOME)
    q, theta = (np.repeat(rows[None], periods, axis=0) for rows in (start.q, start.theta))
    weight = np.repeat(gravity_torque(ROBOT, HOME[None]), periods, axis=0)
    return AffineControl(q=q, qd=0.0 * q, theta=theta, speed=0.0 * q, torque=weight, **gains)


class Listener:
    """Steps a controller and keeps what it was given."""

    def __init__(self, controller: control.AffineController) -> None:
        self.controller, self.seen = controller, list[ControlSample]()

    def init(self, sample: ControlSample) -> object:
        return self.controller.init(sample)

    def step(self, state: control.ControlState, sample: ControlSample) -> tuple[Array, object]:
        self.seen.append(sample)
        return self.controller.step(state, sample)


def heard(feedback: Encoders, periods: int = 300) -> tuple[Run, dict[str, Array]]:
    """Return a stepped run and the positions and speeds (periods, joints) that its controller was given."""
    listener = Listener(LAWS["pd"])
    run = run_loop(ARM, ARM.rest(HOME), listener, periods=periods, feedback=feedback)
    names = ("q", "qd", "theta", "speed")
    return run, {name: np.array([getattr(item, name) for item in listener.seen]) for name in names}


# -- what a controller is given --


def test_a_reading_is_within_half_a_count_and_a_speed_within_a_count_a_period() -> None:
    run, seen = heard(COARSE)
    for side, speed, count in (("q", "qd", COARSE.links), ("theta", "speed", COARSE.rotors)):
        true = getattr(run, side)
        assert (np.abs(seen[side] - true) <= 0.5 * count + 1e-12).all()
        assert np.abs(seen[side] - true).max() > 0.4 * count.min()
        mean = np.diff(true, axis=0) * 1000.0
        assert (np.abs(seen[speed][1:] - mean) <= count * 1000.0 * (1.0 + 1e-9)).all()
        places = seen[side] / count
        np.testing.assert_allclose(places, np.round(places), atol=1e-6)


def test_speeds_come_half_a_period_late() -> None:
    run, seen = heard(PERFECT)
    for side, true in (("qd", run.qd), ("speed", run.speed)):
        between = 0.5 * (true[1:] + true[:-1])
        assert np.std(seen[side][1:] - between) < 0.05 * np.std(seen[side][1:] - true[1:])


def test_an_arm_that_arrives_at_speed_is_seen_at_that_speed() -> None:
    speed = np.linspace(-0.5, 0.5, 6)
    state = ARM.moving(HOME, speed).arriving(500.0)
    np.testing.assert_allclose(sample_of(state, PERFECT, 500.0).qd, speed, atol=1e-10)
    np.testing.assert_array_equal(sample_of(state).qd, speed)


def test_without_counts_and_without_speeds_sensors_and_states_are_the_same() -> None:
    """To rounding: the only other thing that a controller loses is the speed itself."""
    law = held(500, k_theta=20.0 * KD, ki=10.0 * KD)
    push = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
    states, sensors = (integrate(ARM, ARM.rest(HOME), law, wrench=push, feedback=item) for item in (None, PERFECT))
    assert np.ptp(states.q, axis=0).max() > 1e-4
    np.testing.assert_array_equal(sensors.command, states.command)
    np.testing.assert_array_equal(sensors.q, states.q)


def test_faster_sampling_brings_differences_to_the_speeds() -> None:
    """Half the period, half the difference between the two kinds of feedback."""
    gaps = []
    for rate in (1000.0, 2000.0, 4000.0):
        law = control.pd_gravity(ROBOT, MOTION, rate, drives=DRIVES)
        runs = [
            run_loop(ARM, ARM.rest(HOME), law, periods=round(0.4 * rate), feedback=item) for item in (None, PERFECT)
        ]
        gaps.append(np.abs(runs[0].q - runs[1].q).max())
    assert gaps[0] > 1.6 * gaps[1] > 2.5 * gaps[2] > 0.0


# -- one loop --


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("encoders", [PERFECT, USUAL, COARSE], ids=["perfect", "usual", "coarse"])
def test_native_and_stepped_are_the_same_run(name: str, encoders: Encoders) -> None:
    law = LAWS[name]
    fast, slow = (
        run_loop(ARM, ARM.rest(HOME), law, native=native, periods=200, feedback=encoders) for native in (True, False)
    )
    assert np.ptp(fast.q, axis=0).min() > 0.002
    for series in ("q", "theta", "command", "supplied"):
        np.testing.assert_allclose(getattr(slow, series), getattr(fast, series), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", LAWS)
def test_the_energy_balance_closes(name: str) -> None:
    run = run_loop(ARM, ARM.rest(HOME), LAWS[name], feedback=USUAL)
    assert run.energy.moved > 10.0
    assert np.abs(run.energy.residual).max() <= 1e-6 * run.energy.moved


def test_what_jumping_torques_leave_of_the_balance_falls_with_the_step() -> None:
    """Coarse encoders shake the springs: the error is the integrator's, not the accounts'."""
    steps = round(1e-3 / ARM.largest_step + 0.5)
    runs = [run_loop(ARM, ARM.rest(HOME), LAWS["lqr"], substeps=n * steps, feedback=COARSE) for n in (1, 4)]
    rests = [np.abs(run.energy.residual).max() / run.energy.moved for run in runs]
    assert rests[0] < 1e-4
    assert rests[1] < 0.1 * rests[0]


def test_a_run_goes_on_where_another_ended() -> None:
    law = LAWS["lqr"].law
    whole = integrate(ARM, ARM.rest(HOME), law.part(0, 300), feedback=COARSE)
    first = integrate(ARM, ARM.rest(HOME), law.part(0, 120), feedback=COARSE)
    second = integrate(ARM, first.final, law.part(120, 300), feedback=COARSE)
    np.testing.assert_array_equal(second.command, whole.command[120:])
    np.testing.assert_array_equal(second.final.values, whole.final.values)


def test_encoders_of_another_robot_are_refused() -> None:
    five = Encoders(np.zeros(5), np.zeros(5))
    with pytest.raises(ShapeError, match="encoders must have 6 joints"):
        integrate(ARM, ARM.rest(HOME), held(10, kp=KD), feedback=five)
    for counts in (-np.ones(6), np.full(6, np.nan), np.zeros((6, 1)), np.zeros(4)):
        with pytest.raises(ShapeError):
            Encoders(np.zeros(6), counts)


# -- stability --


def grows(law: AffineControl, feedback: Encoders | None) -> bool:
    """Return whether a push of 10 µrad grows in a simulation without friction."""
    plant = ARM.without(*(name for name in PHENOMENA if name not in ("stiffness", "damping", "current_lag")))
    start = plant.rest(HOME)
    law = replace(law, theta=np.repeat(start.theta[None], law.periods, axis=0))
    try:
        run = integrate(plant, start.with_rows(q=start.q + 1e-5), law, feedback=feedback)
    except InstabilityError:
        return True
    return bool(np.abs(run.q[-300:] - HOME).max() > 3.0 * np.abs(run.q[:300] - HOME).max())


@pytest.mark.parametrize(("damping", "states", "sensors"), [(1.0, True, True), (6.0, True, True), (25.0, True, False)])
def test_the_check_knows_the_delay_of_differences(damping: float, states: bool, sensors: bool) -> None:
    law = held(1500, k_theta=30.0 * KD, k_speed=damping * KD)
    drives = tuple(replace(joint, viscous=0.0, forward=0.0, backward=0.0) for joint in DRIVES)
    for feedback, stable in ((None, states), (PERFECT, sensors)):
        differenced, links = feedback is not None, control.Links(ROBOT)
        assert closed_loop_stability(links, law, 1000.0, drives, differenced=differenced).is_stable is stable
        assert grows(law, feedback) is not stable


def test_gains_that_only_states_can_bear_are_refused_with_sensors() -> None:
    law = control.AffineController(held(100, k_theta=30.0 * KD, k_speed=25.0 * KD, ki=KD), 1000.0)
    run_loop(ARM, ARM.rest(HOME), law)
    with pytest.raises(UnstableError, match=r"rate of 1000 Hz is too low for the gains: .* \((\d+) Hz would do\)"):
        run_loop(ARM, ARM.rest(HOME), law, feedback=USUAL)
    check_stability(control.Links(ROBOT), law.law, 4000.0, DRIVES, differenced=True)


# -- experiments --


def test_coarse_encoders_make_the_current_ripple() -> None:
    def ripple(counts: int | None) -> Array:
        sensors = default_sensors(encoder_counts=counts, motor_counts=counts and counts // 20)
        made = jointwise.simulate(ROBOT, MOTION, controller=SENSED, sensors=sensors)
        assert made.run is not None
        moving = made.run.command[600:1100]
        jumps: Array = np.diff(moving, 2, axis=0).std(axis=0)
        return jumps

    fine, usual, coarse = ripple(None), ripple(1_250_000), ripple(60_000)
    assert (usual > 1.2 * fine).all()
    assert (coarse > 3.0 * usual).all()


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_follows_by_its_sensors(controller: str) -> None:
    states, sensors = (
        jointwise.simulate(ROBOT, MOTION, keep=0, **grouped(controller=controller, feedback=source))
        for source in ("states", "sensors")
    )
    errors = [np.array([item["tracking_rms"] for item in made.to_dict()["joints"]]) for made in (states, sensors)]
    assert (errors[1] < 1.2 * errors[0] + 1e-4).all()
    assert sensors.truth["controller"]["feedback"] == "sensors"
    assert states.truth["controller"]["feedback"] == "states"


def test_blocks_leave_the_readings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = jointwise.simulate(ROBOT, MOTION, controller=SENSED)
    monkeypatch.setattr("jointwise.experiment.run.CHUNK", 233)
    parts = jointwise.simulate(ROBOT, MOTION, controller=SENSED)
    assert whole.run is not None
    assert parts.run is not None
    np.testing.assert_array_equal(parts.run.command, whole.run.command)
    np.testing.assert_array_equal(parts.log.q, whole.log.q)


def test_wrong_feedback_is_refused() -> None:
    with pytest.raises(ModelError, match=r"feedback must be states or sensors. Got 'eyes'"):
        ControllerOptions(feedback="eyes")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="prescribes the torques"):
        jointwise.simulate("planar2", "locked", duration=1.0, controller=SENSED)
