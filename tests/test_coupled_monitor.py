"""The monitor of coupled transmissions: C against NumPy, contacts, payload and friction of a simulated arm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import computed
import jointwise as jw
from jointwise.backend import native
from jointwise.experiment.options import Events, PlantOptions, Push
from jointwise.monitoring import Monitor, Session, monitor_log, tool_force
from jointwise.monitoring.core import NativeWatch, log_samples
from jointwise.monitoring.reference import ReferenceWatch
from jointwise.monitoring.session import part_of
from jointwise.monitoring.settings import core_monitor, known_spread
from jointwise.monitoring.sources import follow_json
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.stream import NumpyCore
from test_monitoring import damaged
from test_transmission import PLAIN

COUPLING = "5:4:0.4,6:4:-0.3,6:5:1"
FORCE = (0.0, 40.0, 0.0)

pytestmark = pytest.mark.skipif(native() is None, reason="the native kernel is not built")


def arm(coordinates: str = "joint") -> jw.Robot:
    return jw.load_robot("ur5e", coupling=COUPLING, coordinates=coordinates)


def recorded(seed: int, coordinates: str = "joint", **options: object) -> jw.Log:
    return jw.simulate(arm(coordinates), duration=20.0, rate=100.0, seed=seed, keep=0, **options).log


@pytest.fixture(scope="module")
def model() -> jw.RobotModel:
    return jw.RobotModel(computed.calibrated([recorded(1), recorded(2)], arm(), physical=False))


@pytest.mark.thorough
@pytest.mark.parametrize("has_speed", [True, False])
def test_c_and_numpy_agree_on_a_damaged_stream(has_speed: bool) -> None:
    plain = jw.RobotModel(computed.calibrated(recorded(1), arm(), options=PLAIN))
    samples = damaged(part_of(log_samples(plain, recorded(3)), slice(0, 400)))
    samples = samples if has_speed else replace(samples, qd=None)
    limits = Monitor(plain, 100.0, has_speed=has_speed).limits
    numbers = core_monitor(plain, 100.0, known_spread(plain), limits=limits, derived=not has_speed)
    planned = plain.calibration.for_use("feed-forward")
    core = NumpyCore(planned.model, planned.estimate.values, Bodies.of(planned), 100.0)
    ours, theirs = NativeWatch(plain.planned_core(100.0), numbers), ReferenceWatch(plain, core, numbers)
    one, two = ours.steps(ours.init(), samples)[0], theirs.steps(theirs.init(), samples)[0]
    for name in one.__dataclass_fields__:
        a, b = getattr(one, name), getattr(two, name)
        assert np.abs(a - b).max() < 1e-8 * max(np.abs(a).max(), 1.0), name


def test_the_residual_is_what_the_model_does_not_explain_at_the_motors(model: jw.RobotModel) -> None:
    """A torque at the joints is seen by the motors as C^-T of it; the filter takes a part of that of joint 2."""
    log, pull, C = recorded(3), np.array([0.0, 0.0, 0.0, 2.0, -3.0, 1.0]), arm().transmission.matrix
    samples = log_samples(model, log)
    acts = (log.t > 10.0) & (log.t < 10.5)
    pulled = replace(samples, output=samples.output - acts[:, None] * np.linalg.solve(C.T, pull) / model.gains)
    monitor = Monitor(model, 100.0)
    free, loaded = (monitor.steps(monitor.init(), each)[0] for each in (samples, pulled))
    during = (log.t > 10.3) & (log.t < 10.5)
    change = (loaded.external - free.external)[during].mean(axis=0)
    np.testing.assert_allclose(change, np.linalg.solve(C.T, pull), atol=0.3)


def test_a_free_motion_is_quiet_and_a_push_is_found_with_its_force(model: jw.RobotModel) -> None:
    free = monitor_log(model, recorded(4)).result()
    assert free.status == "ok", free.reasons
    assert free.contacts == ()
    pushed = recorded(4, events=Events(pushes=(Push(6.0, 0.5, FORCE),)))
    (contact,) = monitor_log(model, pushed).result().contacts
    assert contact.start == pytest.approx(6.05, abs=0.1)
    assert np.linalg.norm(np.array(contact.force) - FORCE) < 0.5 * np.linalg.norm(FORCE)


def test_a_tool_force_is_that_of_motor_torques(model: jw.RobotModel) -> None:
    q, C = np.array([0.3, -1.2, 0.8, 0.4, -0.9, 0.2]), arm().transmission.matrix
    torque = np.linalg.solve(C.T, model.jacobian(q)[:3].T @ np.array(FORCE))
    assert tool_force(model, q, torque) == pytest.approx(FORCE, abs=1e-9)


def test_payload_and_friction_are_found(model: jw.RobotModel) -> None:
    payload = jw.Payload(2.0, (0.0, 0.02, 0.08))
    loaded = monitor_log(model, recorded(5, plant=PlantOptions(payload=payload))).result()
    assert loaded.payload.mass == pytest.approx(2.0, rel=0.05)
    assert loaded.contacts == ()
    aged = monitor_log(model, recorded(6, plant=PlantOptions(age={"friction": 0.3}))).result()
    assert aged.contacts == ()
    assert [joint.a1 for joint in aged.friction[3:]] == pytest.approx([1.3] * 3, abs=0.12)


def test_motor_coordinates_and_streams_have_the_same_reports(model: jw.RobotModel) -> None:
    log = recorded(7, "motor").slice(0, 300)
    calibration = replace(model.calibration, model=replace(model.calibration.model, robot=arm("motor")))
    motor = jw.RobotModel(calibration)
    session = monitor_log(motor, log)
    streamed = Session(motor, "stdin")
    rows = zip(
        log.t.tolist(), log.q.tolist(), log.qd.tolist(), log.current.tolist(), log.temperature.tolist(), strict=True
    )
    lines = [f'{{"t": {t}, "q": {q}, "qd": {v}, "current": {i}, "temperature": {T}}}' for t, q, v, i, T in rows]
    assert list(follow_json(streamed, lines)) == []
    one, two = session.result(), streamed.result()
    assert one.external_torque_rms == pytest.approx(two.external_torque_rms, rel=1e-6)
    at_joints = replace(log, q=arm().transmission.joint(log.q), qd=arm().transmission.joint(log.qd))
    assert one.external_torque_rms == pytest.approx(
        monitor_log(model, at_joints).result().external_torque_rms, rel=1e-6
    )
