"""Controllers and estimators in C against their NumPy references: laws, saturation, gaps, restarts, logs and steps."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import jointwise as jw
from jointwise.backend import VARIABLE, native
from jointwise.control import (
    AdaptationOptions,
    OddPolynomial,
    Segments,
    adaptive,
    bandwidth_gains,
    computed_torque,
    feedback_linearisation,
    hand_guiding,
    pd_gravity,
    pid,
    torque_feedback,
)
from jointwise.control.controller import ControlSample
from jointwise.experiment.closed_loop import drives_of, run_loop
from jointwise.experiment.controllers import slip_friction_of
from jointwise.runtime.friction_estimator import Measurement
from jointwise.runtime.observers import TorqueFusion, TorqueObserver
from jointwise.simulation.robot import DigitalRobot, digital_robot
from jointwise.spatial import Array
from runtime_models import exact

pytestmark = pytest.mark.skipif(native() is None, reason="the native kernel is not built")

RATE = 1000.0
STEPS = 550
WEAK = 0.3
"""Share of the torque limits, so that motors saturate."""
Make = Callable[[], Any]


@contextmanager
def numpy_only() -> Iterator[None]:
    """Compute without the native kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "0")
        native.cache_clear()
        yield
    native.cache_clear()


@cache
def arm() -> DigitalRobot:
    return digital_robot(jw.load_robot("ur5e"))


def motion(t: Array, order: int = 0) -> Array:
    """Return a motion of six joints that turns often."""
    w = np.array([3.0, 2.5, 4.0, 5.0, 6.0, 7.0])
    return 0.3 * w**order * (np.cos(w * np.asarray(t)[:, None] + 0.5 * np.pi * order) - (order == 0))


def samples(seed: int, gaps: bool = True) -> list[ControlSample]:
    """Return noisy measurements about the motion, with currents that change a lot and single values missing."""
    rng, t = np.random.default_rng(seed), np.arange(STEPS) / RATE
    drift = 3e-3 * np.cumsum(rng.normal(size=(STEPS, 6)), axis=0) / np.sqrt(STEPS)
    q, qd = motion(t) + drift, motion(t, 1) + 1e-2 * rng.normal(size=(STEPS, 6))
    theta, speed = q + 1e-3 * np.sin(9.0 * q), qd + 1e-3 * rng.normal(size=(STEPS, 6))
    current = 0.3 * np.sign(qd) + 3.0 * np.sin(2.0 * q) + 0.1 * rng.normal(size=(STEPS, 6))
    signals = [q, qd, theta, speed, current, 25.0 + 8.0 * t[:, None] + np.zeros((STEPS, 6))]
    for values in signals if gaps else ():
        missing = rng.random(values.shape) < 0.01
        values[missing & (np.arange(STEPS)[:, None] > 0)] = rng.choice([np.nan, np.inf])
    return [ControlSample(*rows, time=float(s)) for s, *rows in zip(t, *signals, strict=True)]


def played(controller: Any, inputs: list[ControlSample], state: Any = None) -> tuple[Array, list[Any]]:
    """Return the torques and the memory after every period."""
    state = controller.init(inputs[0]) if state is None else state
    torques, states = [], []
    for sample in inputs:
        torque, state = controller.step(state, sample)
        torques.append(torque)
        states.append(state)
    return np.array(torques), states


def numbers(state: Any) -> Array:
    """Return all numbers of a memory, whatever their arrangement."""
    if isinstance(state, tuple | list):
        return np.concatenate([numbers(part) for part in state])
    if hasattr(state, "__dict__"):
        return np.concatenate([numbers(part) for part in vars(state).values()])
    return np.ravel(np.asarray(state, dtype=float))


def assert_same(make: Make, inputs: list[ControlSample], rtol: float = 1e-9) -> Array:
    """Compare torques and memory of a controller in C and in NumPy; return the torques."""
    torques, _ = played(make(), inputs)
    with numpy_only():
        twin, _ = played(make(), inputs)
    scale = np.abs(twin).max(axis=0)
    np.testing.assert_allclose(torques, twin, rtol=rtol, atol=rtol * float(scale.min()))
    assert np.isfinite(torques).all()
    return torques


def adapting(**options: Any) -> Make:
    """Return how a described arm with weak motors is controlled, from wrong parameters on."""

    def make() -> Any:
        digital = arm()
        drives = tuple(replace(drive, limit=WEAK * drive.limit) for drive in drives_of(digital))
        return adaptive(
            digital.robot, motion, RATE, duration=STEPS / RATE, friction=slip_friction_of(digital),
            motor_gains=digital.gains, drives=drives, start=(0.6, 0.1), release=0.2,
            gains=bandwidth_gains(4.0, 1.0, 0.3),
            options=AdaptationOptions(**{"time_constants": (0.05, 0.05)} | options),
        )  # fmt: skip

    return make


def calibrated(**options: Any) -> Make:
    """Return how a calibrated robot with every kind of friction term is controlled."""
    return lambda: adaptive(
        exact(), motion, RATE, duration=STEPS / RATE, motor_gains=arm().gains, options=AdaptationOptions(**options)
    )


def fed_back(**options: Any) -> Make:
    """Return how an arm is controlled with joint torque feedback; its fifth joint is rigid."""
    drives = tuple(
        replace(drive, limit=WEAK * drive.limit, spring=None if j == 4 else drive.spring)
        for j, drive in enumerate(drives_of(arm()))
    )
    return lambda: torque_feedback(
        arm().robot, motion, RATE, duration=STEPS / RATE, drives=drives, gains=bandwidth_gains(4.0, 1.0, 0.3), **options
    )


def linearised(**options: Any) -> Make:
    """Return how an arm with cubic and segmented springs is linearised."""
    drives = list(drives_of(arm()))
    drives[1] = replace(drives[1], spring=Segments(1e4, 1.3e4, 1.6e4, 10.0, 40.0))
    drives[2] = replace(drives[2], spring=OddPolynomial((1.2e4, 3e7)))
    return lambda: feedback_linearisation(arm().robot, motion, RATE, duration=STEPS / RATE, drives=drives, **options)


def guided(weak: float = WEAK) -> Make:
    """Return how an arm with weak motors is led by hand."""
    drives = tuple(replace(drive, limit=weak * drive.limit) for drive in drives_of(arm()))
    friction, damping = slip_friction_of(arm()), np.arange(6.0)
    return lambda: hand_guiding(arm().robot, RATE, friction=friction, drives=drives, share=0.7, damping=damping)


# -- the affine law ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [computed_torque, pd_gravity, pid])
@pytest.mark.parametrize("side", ["motor", "link"])
def test_the_affine_law_equals_the_reference(law: Any, side: str) -> None:
    made = law(arm().robot, motion, RATE, duration=STEPS / RATE, drives=drives_of(arm()), side=side)
    inputs = samples(1, gaps=law is not pd_gravity)  # its gravity is that of the measured position
    assert_same(lambda: made, inputs)


# -- adaptive feed-forward ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "leakage"), [("gradient", 0.0), ("normalised", 0.5), ("rls", 0.5)])
def test_the_adaptive_step_equals_the_reference(method: str, leakage: float) -> None:
    """Every law, through bounds of the parameters, saturated motors and missing values."""
    make = adapting(method=method, leakage=leakage, slowest=0.3)
    torques = assert_same(make, samples(2))
    assert (np.abs(torques) == [WEAK * drive.limit for drive in drives_of(arm())]).sum() > 20


@pytest.mark.thorough
def test_the_adaptive_step_of_a_calibrated_robot_equals_the_reference() -> None:
    assert_same(calibrated(), samples(3))


def test_parameters_errors_and_memory_equal_the_reference() -> None:
    inputs, make = samples(4), adapting()
    _, states = played(make(), inputs)
    with numpy_only():
        _, others = played(make(), inputs)
    assert np.ptp([state.adapted.factor for state in states], axis=0).min() > 0.05
    for k in (0, 150, 400, STEPS - 1):
        np.testing.assert_allclose(numbers(states[k]), numbers(others[k]), rtol=1e-7, atol=1e-9)
    assert states[-1].estimator.phase.dropped == others[-1].estimator.phase.dropped > 50


ALL = {
    "adaptive": adapting(),
    "calibrated": calibrated(),
    "torque": fed_back(),
    "linearised": linearised(),
    "guided": guided(),
}
"""One of every kind."""


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "calibrated"])
def test_a_run_resumes_from_a_saved_state_in_either_implementation(kind: str) -> None:
    inputs, make = samples(5), ALL[kind]
    whole, states = played(make(), inputs)
    saved = pickle.dumps(states[299])
    again, _ = played(make(), inputs[300:], pickle.loads(saved))
    np.testing.assert_array_equal(again, whole[300:])
    with numpy_only():
        twin, _ = played(make(), inputs[300:500], pickle.loads(saved))
    np.testing.assert_allclose(twin, whole[300:500], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ALL)
def test_a_step_changes_no_state_and_a_start_forgets_all(kind: str) -> None:
    inputs, controller = samples(6), ALL[kind]()
    first, states = played(controller, inputs)
    before = numbers(states[400])
    controller.step(states[400], inputs[401])
    np.testing.assert_array_equal(numbers(states[400]), before)
    second, _ = played(controller, inputs)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", ALL)
def test_a_missing_value_is_forgotten(kind: str) -> None:
    """One sample without any number: the torque stays finite, and some time later all is as without it."""
    whole, make = samples(7, gaps=False), ALL[kind]
    empty = replace(whole[100], **{name: np.full(6, np.nan) for name in ("q", "qd", "theta", "speed", "current")})
    good, _ = played(make(), whole)
    torques, states = played(make(), [*whole[:100], empty, *whole[101:]])
    assert np.isfinite(torques).all()
    dropped = states[-1].estimator.phase.dropped if hasattr(states[-1], "estimator") else states[-1].dropped
    assert dropped >= 1
    np.testing.assert_allclose(torques[-1], good[-1], rtol=2e-2, atol=0.5)


@pytest.mark.parametrize("kind", ["torque", "linearised", "guided"])
def test_a_log_replayed_gives_the_torques_of_the_robot(kind: str) -> None:
    digital, controller = arm(), ALL[kind]()
    run = run_loop(digital, digital.rest(motion(np.zeros(1))[0], 30.0), controller, periods=300)
    rows = zip(run.t, run.q, run.qd, run.theta, run.speed, run.current, run.temperature, strict=True)
    torques, _ = played(ALL[kind](), [ControlSample(*signals, time=float(t)) for t, *signals in rows])
    np.testing.assert_array_equal(torques, run.command)


def test_a_log_gives_the_numbers_of_the_robot_and_of_single_steps() -> None:
    """The digital robot, its log replayed step by step, and the estimator on the whole log: equal to the last bit."""
    digital, make = arm(), adapting()
    controller = make()
    run = run_loop(digital.aged(friction=0.3), digital.rest(motion(np.zeros(1))[0], 30.0), controller)
    rows = zip(run.t, run.q, run.qd, run.theta, run.speed, run.current, run.temperature, strict=True)
    torques, states = played(make(), [ControlSample(*signals, time=float(t)) for t, *signals in rows])
    np.testing.assert_array_equal(torques, run.command)
    estimator = controller.estimator
    measured = Measurement(run.q, run.theta, digital.gains * run.current, run.temperature)
    state = estimator.init(Measurement(*(values[0] for values in measured)), *controller.start)
    parts = [Measurement(*(values[rows] for values in measured)) for rows in (slice(0, 200), slice(200, None))]
    _, state = estimator.steps(state, parts[0], enabled=False)
    adapted, _ = estimator.steps(state, parts[1])
    np.testing.assert_array_equal(adapted.factor, [each.adapted.factor for each in states[200:]])
    np.testing.assert_array_equal(adapted.error, [each.adapted.error for each in states[200:]])


# -- observers ---------------------------------------------------------------------------------------------------------


def test_the_torque_observer_equals_the_reference() -> None:
    rng = np.random.default_rng(12)
    signals = rng.normal(size=(3, STEPS, 4))
    signals[rng.random(signals.shape) < 0.02] = np.nan
    observer = TorqueObserver(np.array([0.0, 0.1, 1.0, 3.0]), 60.0, RATE)
    found, end = observer.steps(observer.init(), *signals)
    with numpy_only():
        twin, last = observer.steps(observer.init(), *signals)
    np.testing.assert_allclose(found, twin, rtol=1e-10, atol=1e-9)
    np.testing.assert_array_equal(end.speed, last.speed)
    assert end.dropped == last.dropped > 100


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("averaging", [0.0, 0.05])
def test_the_fusion_of_torques_equals_the_reference(count: int, averaging: float) -> None:
    """Variances, fused torque and state, with estimates that are missing; parts equal the whole."""
    rng = np.random.default_rng(13)
    estimates = np.sin(np.arange(STEPS) / 50.0)[:, None] + np.arange(1.0, count + 1.0) * rng.normal(size=(STEPS, count))
    estimates[rng.random(estimates.shape) < 0.05] = np.nan
    fusion = TorqueFusion(count, RATE, averaging=averaging)
    found, end = fusion.steps(fusion.init(), estimates)
    first, middle = fusion.steps(fusion.init(), estimates[:300])
    second, _ = fusion.steps(middle, estimates[300:])
    with numpy_only():
        twin, last = fusion.steps(fusion.init(), estimates)
    for mine, other, a, b in zip(found, twin, first, second, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(np.concatenate([a, b]), mine)
    np.testing.assert_allclose(numbers(end), numbers(last), rtol=1e-9)


# -- joint torque feedback ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"link_share": 0.3, "torque_gain": 2.0}, {"friction_bandwidth": None}, {"variances": np.ones((6, 3))}],
)
def test_torque_feedback_equals_the_reference(options: dict[str, Any]) -> None:
    torques = assert_same(fed_back(**options), samples(8))
    assert (np.abs(torques) == [WEAK * drive.limit for drive in drives_of(arm())]).sum() > 20


def test_the_memory_of_torque_feedback_equals_the_reference() -> None:
    inputs, make = samples(9), fed_back()
    _, states = played(make(), inputs)
    with numpy_only():
        _, others = played(make(), inputs)
    np.testing.assert_allclose(states[-1].rows, others[-1].rows, rtol=1e-9, atol=1e-9)
    assert states[-1].dropped == others[-1].dropped > 10


# -- feedback linearisation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "elastic",
    [
        None,
        pytest.param(True, marks=pytest.mark.thorough),
        pytest.param([True, False, True, True, False, False], marks=pytest.mark.thorough),
    ],
)
def test_feedback_linearisation_equals_the_reference(elastic: Any) -> None:
    """Springs of all kinds, some joints rigid, missing values, and motors that saturate."""
    make, inputs = linearised(elastic=elastic), samples(10)
    torques = assert_same(make, inputs, rtol=1e-7)
    assert (np.abs(torques) == [drive.limit for drive in drives_of(arm())]).sum() > 20
    _, states = played(make(), inputs)
    assert states[-1].dropped > 10


def test_springs_of_a_higher_degree_are_left_to_numpy() -> None:
    drives = [replace(drive, spring=OddPolynomial((1e4, 1e7, 1.0))) for drive in drives_of(arm())]
    made = feedback_linearisation(arm().robot, motion, RATE, duration=0.1, drives=drives)
    cubic = [replace(drive, spring=OddPolynomial((1e4, 1e7))) for drive in drives_of(arm())]
    near = feedback_linearisation(arm().robot, motion, RATE, duration=0.1, drives=cubic)
    inputs = samples(11)[:20]
    np.testing.assert_allclose(played(made, inputs)[0], played(near, inputs)[0], rtol=1e-6)


# -- hand guiding ------------------------------------------------------------------------------------------------------


def test_hand_guiding_equals_the_reference() -> None:
    """Missing values and motors that saturate; the memory too."""
    make, inputs = guided(), samples(14)
    torques = assert_same(make, inputs)
    assert (np.abs(torques) == [WEAK * drive.limit for drive in drives_of(arm())]).sum() > 20
    _, states = played(make(), inputs)
    with numpy_only():
        _, others = played(make(), inputs)
    np.testing.assert_allclose(numbers(states[-1]), numbers(others[-1]), rtol=1e-9, atol=1e-12)
    assert states[-1].dropped == others[-1].dropped > 10


@pytest.mark.thorough
def test_hand_guiding_of_a_calibrated_robot_equals_the_reference() -> None:
    assert_same(lambda: hand_guiding(exact(), RATE), samples(15))


def test_hand_guiding_without_a_sample_carries_the_last_pose() -> None:
    """Values that are missing for long: the torque is that of the last ones; a start needs them all."""
    make, inputs = guided(weak=1.0), samples(16, gaps=False)
    missing = np.full(6, np.nan)
    names = ("q", "qd", "theta", "speed", "current", "temperature")
    empty = replace(inputs[0], **dict.fromkeys(names, missing))
    controller = make()
    torques, states = played(controller, [*inputs[:100], *[empty] * 50])
    again, _ = controller.step(states[99], inputs[99])
    np.testing.assert_array_equal(torques[100:], np.broadcast_to(again, (50, 6)))
    assert states[-1].dropped == 50
    with pytest.raises(jw.errors.ModelError, match="must be finite"):
        controller.init(empty)


# -- coupled transmissions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["torque", "linearised", "adaptive", "guided"])
def test_coupled_motors_equal_the_reference(kind: str) -> None:
    digital = digital_robot(jw.load_robot("ur5e", coupling="5:4:0.4,6:4:-0.3,6:5:1"))
    assert digital.robot.transmission is not None
    C, drives, known = digital.robot.transmission.matrix, drives_of(digital), {"duration": STEPS / RATE}
    friction = {"friction": slip_friction_of(digital), "motor_gains": digital.gains}
    makes: dict[str, Make] = {
        "torque": lambda: torque_feedback(digital.robot, motion, RATE, drives=drives, **known),  # type: ignore[arg-type]
        "linearised": lambda: feedback_linearisation(digital.robot, motion, RATE, drives=drives, **known),  # type: ignore[arg-type]
        "adaptive": lambda: adaptive(digital.robot, motion, RATE, drives=drives, **known, **friction),  # type: ignore[arg-type]
        "guided": lambda: hand_guiding(digital.robot, RATE, drives=drives, friction=friction["friction"]),  # type: ignore[arg-type]
    }
    inputs = [replace(x, theta=C @ x.q + (x.theta - x.q), speed=C @ x.speed) for x in samples(13, gaps=False)[:300]]
    inputs[50] = replace(inputs[50], q=np.where(np.arange(6) == 3, np.nan, inputs[50].q))
    assert_same(makes[kind], inputs, rtol=1e-7)
