"""What happens to the digital robot on the way, and motions of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jointwise
from jointwise.description import Payload
from jointwise.design import Experiment, make_experiment, sampled_motion
from jointwise.errors import JointwiseError, ModelError
from jointwise.experiment import Events, PlantOptions, Push, SimulationResult, simulate
from jointwise.experiment.options import WEAR_STEPS
from jointwise.spatial import Array
from kernels import needs_native
from simulation_options import grouped

pytestmark = needs_native

LOAD = Payload(0.5, (0.0, 0.05, 0.0))


def made(events: Events | None = None, **more: Any) -> SimulationResult:
    return simulate("planar2", duration=4.0, seed=1, events=events, **more)


def difference(events: Events) -> tuple[Array, Array]:
    """Return the clock and how far currents are from those of the same run without events, (samples,), A."""
    plain, synthetic = made().log, made(events).log
    return plain.t, np.abs(synthetic.channel("current") - plain.channel("current")).max(axis=1)


@pytest.mark.parametrize(
    "events",
    [
        Events(payloads={1.0: LOAD, 3.0: None}),
        Events(pushes=[Push(1.0, 0.2, (20.0, 20.0, 20.0))]),
        Events(wear={"friction": 0.5, "stiffness": -0.3}),
        Events(payloads={1.0: LOAD, 1.0002: Payload(1.0), 1.0004: None}),
        Events({1.5: LOAD}, [Push(1.0, 1.0, (0.0, 5.0, 0.0), (0.0, 0.0, 1.0))], {"stiffness": 0.2}),
    ],
)
def test_the_energy_that_events_bring_is_counted(events: Events) -> None:
    run = made(events).run
    assert run is not None
    assert np.abs(run.energy.residual).max() < 1e-6 * run.energy.moved


def test_wear_faster_than_the_controller_is_counted_too() -> None:
    """So short a motion is wild: the integration itself loses some 1e-4 of it."""
    for wear in ({}, {"stiffness": -0.5, "friction": 1.0}):
        run = simulate("planar2", duration=0.05, events=Events(wear=wear)).run
        assert run is not None
        assert np.abs(run.energy.residual).max() < 2e-4 * run.energy.moved


def test_nothing_happens_before_its_time() -> None:
    for events in (Events(payloads={2.0: LOAD}), Events(pushes=[Push(2.0, 0.1, (20.0, 20.0, 20.0))])):
        t, change = difference(events)
        assert change[t < 2.0].max() == 0.0
        assert change[(t > 2.0) & (t < 2.1)].max() > 0.05


def test_a_payload_from_the_start_draws_what_a_payload_draws() -> None:
    late = made(Events(payloads={0.0: LOAD})).log.channel("current")
    known = made(plant=PlantOptions(LOAD)).log.channel("current")
    assert np.sqrt(np.mean((late - known)[500:] ** 2)) < 0.05 * known.std()
    assert made(Events(payloads={0.0: LOAD})).truth["events"]["payloads"][0]["payload"]["mass"] == 0.5


def test_wear_grows_to_what_ageing_gives_at_once() -> None:
    stages = Events(wear={"friction": 0.4}).stages(made().digital, 1000.0, 4.0)
    assert len(stages) == WEAR_STEPS + 1 and stages[0][0] == 0
    friction = [robot.joints[0].friction.coulomb for _, robot in stages]
    assert stages[0][1].joints == made().digital.joints
    assert stages[-1][1].joints == made().digital.aged(friction=0.4).joints
    assert np.diff(friction) == pytest.approx(0.4 * friction[0] / WEAR_STEPS)
    t, change = difference(Events(wear={"friction": 0.4}))
    assert change[t > 3.0].mean() > 3.0 * change[t < 1.0].mean()


def test_events_are_unknown_to_the_controller() -> None:
    assert (made().log.channel("torque_des") == made(Events(payloads={1.0: LOAD})).log.channel("torque_des")).all()


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (lambda: Events(payloads={4.5: None}), "payload must come within the 4 s"),
        (lambda: Events(pushes=[Push(9.0, 1.0, (0, 0, 1))]), "push must come within"),
        (lambda: Events(wear={"colour": 1.0}), "wear must name friction or stiffness"),
        (lambda: Events(pushes=[Push(1.0, 0.0, (0, 0, 1))]), "last > 0 s"),
        (lambda: Events(pushes=[Push(1.0, 1.0, (0, 0, np.nan))]), "3 finite forces"),
        (lambda: Events(pushes=[Push("1", 1.0, (0, 0, 1))]), "start must be a number. Got '1'"),  # type: ignore[arg-type]
        (lambda: Events(pushes=[Push(1.0, 1.0, "down")]), "force must be a list of 3 numbers. Got 'down'"),  # type: ignore[arg-type]
        (lambda: Events(pushes=Push(1.0, 1.0, (0, 0, 1))), "a list of Push. Got a Push"),  # type: ignore[arg-type]
        (lambda: Events(payloads=[1, 2]), "payloads must be a dictionary of Payload by number. Got a list"),  # type: ignore[arg-type]
        (lambda: Events(payloads={1.0: 3}), r"payloads\[1.0\] must be a Payload. Got 3"),  # type: ignore[dict-item]
        (lambda: Events(wear={"friction": -2.0}), "wear: friction must be finite and > -1. Got -2.0"),
    ],
)
def test_events_that_cannot_be_are_refused(events: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        made(events())


# -- motions of one's own --


def test_a_sampled_motion_is_the_motion() -> None:
    robot = jointwise.load_robot("ur5e")
    motion = make_experiment("ellipse", robot, 4.0).motion
    t = np.arange(0.0, 4.001, 0.004)
    again, fine = sampled_motion(robot, 7.0 + t, motion.at(t).q), np.linspace(0.0, 4.0, 3001)
    np.testing.assert_allclose(again.at(fine).qdd, motion.at(fine).qdd, atol=1e-5)
    assert again.duration == pytest.approx(4.0)


def test_any_motion_can_be_recorded() -> None:
    robot = jointwise.load_robot("planar2")
    motion = make_experiment("bspline", robot, 9.8, seed=2).motion
    named = simulate(robot, "bspline", seed=2, duration=10.0)
    given = simulate(robot, motion, seed=2, duration=10.0)
    plan = simulate(robot, Experiment("own", motion, np.array([0.0, 0.0, -9.81]), "mine"), seed=2)
    assert given.truth["experiment"]["name"] == "motion" and plan.truth["experiment"]["note"] == "mine"
    assert (given.log.q == named.log.q).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, q: (t[::-1], q), "ascend"),
        (lambda t, q: (t, q[:, :1]), "samples of 2 joints"),
        (lambda t, q: (t[100:], q[100:]), "must begin at rest. Joint"),
        (lambda t, q: (t[:100], q[:100]), "must end at rest. Joint"),
        (lambda t, q: (t, np.where(q == q[9], np.nan, q)), "finite"),
    ],
)
def test_samples_that_are_no_motion_are_refused(change: Any, words: str) -> None:
    robot = jointwise.load_robot("planar2")
    t = np.arange(0.0, 5.0, 0.01)
    q = make_experiment("bspline", robot, 4.9).motion.at(t).q
    with pytest.raises(JointwiseError, match=words):
        sampled_motion(robot, *change(t, q))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"experiment": 3.0}, "must be a string, an Experiment or a Trajectory. Got 3.0"),
        ({"seed": -1}, "seed must not be negative"),
        ({"seed": 1.5}, "seed must be a whole number. Got 1.5"),
        ({"seed": None}, "seed must be a whole number. Got None"),
        ({"joint": 1.0}, "joint must be a whole number. Got 1.0"),
        ({"duration": "2"}, "duration must be a number. Got '2'"),
        ({"bandwidth": "5"}, "bandwidth must be a number. Got '5'"),
        ({"rate": 2e5}, "rate must be at most 100000 Hz"),
        ({"payload": 3}, "payload must be a Payload. Got 3"),
        ({"events": [1]}, "events must be Events. Got a list"),
        ({"temperature": "warm"}, "temperature must be a number or a list of numbers. Got 'warm'"),
        ({"temperature": [20.0, 300.0]}, "temperature must be -60 to 200 °C. Got 300.0"),
        ({"age": {"friction": "much"}}, r"age\['friction'\] must be a number. Got 'much'"),
        ({"without": "hysteresi"}, "unknown phenomenon 'hysteresi'"),
    ],
)
def test_wrong_arguments_are_reported(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        simulate("planar2", **({} if "experiment" in options else {"duration": 1.0}) | grouped(**options))


def test_joints_can_start_as_warm_as_each_is() -> None:
    made = simulate("planar2", duration=1.0, plant=PlantOptions(temperature=np.array([15.0, 40.0]).tolist()))
    assert made.truth["temperature"] == [15.0, 40.0]
    np.testing.assert_allclose(made.log.channel("temperature")[:20].mean(axis=0), [15.0, 40.0], atol=0.2)
