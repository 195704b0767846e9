"""A calibration refuses a set-up that its logs contradict, names the cause, and accepts right set-ups."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import jointwise as jw
from cli_runs import done, refused
from jointwise.estimation.structure import Structure
from jointwise.experiment.options import PlantOptions
from jointwise.finding import Finding, with_severity, worst
from jointwise.model.terms import Hysteresis
from jointwise.result.plausibility.channels import check_low_pass, check_zeros
from jointwise.result.plausibility.wording import SETUP
from jointwise.result.verdict import log_verdict, parameter_verdict
from wrong_setups import Setup, clipped, delayed, dropped, scaled, shifted, smoothed, swapped

OPTIONS = jw.Options(
    structure=Structure("hysteresis", "none", (1.0, 2.0), limits=Hysteresis.polynomial_limits(4, 5e-3)), free=()
)


@cache
def recording(robot: str = "ur5e", seed: int = 1, payload: float = 0.0) -> jw.Log:
    """Return a simulated excitation; it does not state its gravity."""
    plant = jw.PlantOptions(payload=jw.Payload(payload, (0.0, 0.0, 0.05)) if payload else None)
    log = jw.simulate(robot, duration=20.0, rate=100.0, seed=seed, plant=plant, keep=0).log
    return replace(log, origin=replace(log.origin, gravity=None)).without(("theta", "temperature"))


def right(robot: str = "ur5e") -> Setup:
    return Setup(robot, (recording(robot),), jw.load_robot(robot), recording(robot, 2))


def findings(setup: Setup) -> dict[str, str]:
    """Return the status of every check that is not ok."""
    model = jw.calibrate(
        setup.logs, setup.robot, mounting=setup.mounting, payload=setup.payload, options=OPTIONS, physical=False,
        accept_implausible=True,
    )  # fmt: skip
    return {check.subject: SETUP[check.severity] for check in model.plausibility if check.severity != "ok"}


WRONG = {
    "output sign": right().with_logs("sign", (), lambda log: scaled(log, ("current",), (3,), -1.0)),
    "output order": right().with_logs("order", (), lambda log: swapped(log, ("current",), 3, 4)),
    "zero offset": right().with_logs("zero", (), lambda log: shifted(log, "q", 2, np.pi / 2)),
    "mounting": right().altered("mounting", (), mounting=(1.7, 0.0, -9.66)),
    "robot": right().altered("robot", (), robot=jw.load_robot("ur10e")),
    "payload": right().altered("payload", (), logs=(recording(payload=2.5),)),
    "gain": right().with_logs("gain", (), lambda log: scaled(log, ("current",), (1,), 1.5)),
    "time shift": right().with_logs("late", (), lambda log: delayed(log, "current", range(6), 0.1)),
    "dropped samples": right().with_logs("zeros", (), lambda log: dropped(log, "current", 0.05, 0)),
    "saturation": right().with_logs("clipped", (), lambda log: clipped(log, "current", 2, 0.5)),
    "logs": right().altered("mixed", (), logs=(recording(), recording(seed=3, payload=3.0))),
}


LOW_PASSED = right().with_logs("low-pass", (), lambda log: smoothed(log, "current", (0,), 2.0))


def test_a_low_passed_output_is_named() -> None:
    assert "low-pass" in findings(LOW_PASSED)


@pytest.mark.parametrize("cause", WRONG)
def test_wrong_setup_is_noticed_with_its_cause(cause: str) -> None:
    assert cause in findings(WRONG[cause])


def test_a_zero_that_only_the_described_bodies_show_is_suspect() -> None:
    turned = right("puma560").with_logs("zero", (), lambda log: shifted(log, "q", 1, np.radians(24.0)))
    assert findings(turned) == {"zero offset": "suspect"}
    assert not findings(right("puma560"))


def test_a_log_that_is_too_short_is_rejected_for_its_excitation() -> None:
    with pytest.raises(jw.JointwiseError, match="excites the parameters too little"):
        findings(right().with_logs("short", (), lambda log: log.slice(100, 250)))


@pytest.mark.parametrize(("robot", "joint", "cutoff"), [("ur5e", 0, 2.5), ("panda", 6, 1.6), ("ur10e", 5, 3.0)])
def test_an_output_that_is_low_passed_on_its_own_is_noticed(robot: str, joint: int, cutoff: float) -> None:
    output = right(robot).output
    log = recording(robot).without(("current_des", "torque_des"))
    every = tuple(range(log.joints))
    assert not list(check_low_pass([log], output))
    assert not list(check_low_pass([smoothed(log, output, every, cutoff)], output))
    (check,) = check_low_pass([smoothed(log, output, (joint,), cutoff)], output)
    assert (check.subject, check.severity) == ("low-pass", "warning")
    assert log.names[output][joint] in check.evidence


def test_right_setups_are_accepted() -> None:
    assert findings(right()) == {}
    loaded = replace(right(), logs=(recording(payload=2.5),), payload=jw.Payload(2.5, (0.0, 0.0, 0.05)))
    assert findings(loaded) == {}
    bare = replace(right().robot, name="table", links=tuple(jw.Link(a.name, np.zeros(10)) for a in right().robot.links))
    assert findings(replace(right(), robot=bare)) == {}


@pytest.mark.thorough
def test_estimated_gains_are_right_unless_like_drives_differ() -> None:
    assert findings(right("ur3e")) == {}
    larger = right("ur3e").with_logs("gain", (), lambda log: scaled(log, ("current",), (4,), 1.6))
    assert findings(larger).get("gain") == "suspect"
    turned = right("ur3e").with_logs("sign", (), lambda log: scaled(log, ("current",), (1,), -1.0))
    assert findings(turned).get("output sign") == "contradicted"


def test_estimated_gains_without_gravity_are_no_evidence_against_zeros_and_robot() -> None:
    still = jw.simulate(
        "panda", duration=20.0, rate=100.0, seed=1, plant=jw.PlantOptions(gravity=(0, 0, 0)), keep=0
    ).log
    log = replace(still, origin=replace(still.origin, gravity=None)).without(("theta", "temperature", "current_des"))
    assert findings(Setup("panda", (log,), jw.load_robot("panda"), log, mounting=(0.0, 0.0, 0.0))) == {}


def test_all_outputs_with_zeros_are_named() -> None:
    log = recording()
    names = log.names["current"]
    every = check_zeros([dropped(log, "current", 0.05, 0)], "current")
    assert every.evidence.startswith(f"{', '.join(names[:-1])} and {names[-1]} are zero in up to ")
    current = np.array(log.current)
    current[::25, 2] = 0.0
    assert check_zeros([replace(log, current=current)], "current").evidence.startswith(f"{names[2]} is zero in ")


def test_contradicted_setup_is_refused_unless_accepted(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    log, model = tmp_path / "log.csv", tmp_path / "model.json"
    jw.write_log(scaled(recording(), ("current",), (1,), -1.0), log)
    command = ("calibrate", log, "--robot", "ur5e", "--output", model, "--direction", "tanh", "--load", "none")
    command = (*command, "--viscous-powers", 1, "--stribeck", 0, "--no-ripple", "--no-physical")
    line = refused(*command)
    assert "output of joint 2" in line
    assert "--accept-implausible" in line
    assert not model.exists()
    document = json.loads(done(*command, "--accept-implausible", "--json", "--report", tmp_path))
    statuses = {check["check"]: check["status"] for check in document["plausibility"]}
    assert statuses["output sign"] == "contradicted"
    assert jw.load_calibration(model).implausible
    assert "Implausible set-up" in (tmp_path / "report.html").read_text()
    with pytest.raises(jw.ImplausibleError, match="output of joint 2"):
        jw.calibrate(jw.read_log(log), jw.load_robot("ur5e"), options=OPTIONS)


@cache
def model() -> jw.Calibration:
    return jw.calibrate(recording(), jw.load_robot("ur5e"), options=OPTIONS, physical=False)


def test_validation_notices_a_log_of_another_arm() -> None:
    assert worst(jw.validate(model(), recording(seed=2)).plausibility) == "ok"
    (loaded,) = jw.validate(model(), recording(seed=2, payload=2.5)).plausibility
    assert loaded.subject == "payload"
    assert abs(float(loaded.evidence.split("about ")[1].split(" kg")[0]) - 2.5) < 0.4
    turned = jw.validate(model(), scaled(recording(seed=2), ("current",), (4,), -1.0)).plausibility
    assert [check.subject for check in with_severity(turned, "error")] == ["output sign"]
    crossed = jw.validate(model(), swapped(recording(seed=2), ("current",), 1, 2)).plausibility
    assert [check.subject for check in with_severity(crossed, "error")] == ["output order"]


def test_unknown_scale_gives_relative_parameters() -> None:
    motors = [replace(joint.motor, torque_constant=None, drive_gain=None) for joint in right().robot.joints]
    joints = tuple(replace(j, motor=motor) for j, motor in zip(right().robot.joints, motors, strict=True))
    table = replace(
        right().robot, joints=joints, links=tuple(jw.Link(a.name, np.zeros(10)) for a in right().robot.links)
    )
    found = jw.calibrate(recording(), table, options=OPTIONS)
    assert not found.scale_known
    assert np.isnan(found.conf_int()).all()
    assert found.summary().startswith("The scale of the drive gains is unknown")
    assert found.unit_of(0).endswith(" x gain")
    assert found.physical is None
    for use in (
        lambda: jw.identify_payload(found, recording(seed=2, payload=2.5)),
        lambda: found.with_payload(jw.Payload(1.0)),
    ):
        with pytest.raises(jw.errors.ModelError, match="needs the scale of the drive gains"):
            use()
    monitored = jw.monitoring.monitor_log(jw.RobotModel(found), recording(seed=2, payload=2.5)).result()
    assert monitored.payload.status == "unknown"
    assert any(text.startswith("payload: the scale of the drive gains is unknown") for text in monitored.missing)


def test_each_log_is_judged_as_what_it_is() -> None:
    moving = log_verdict(jw.validate(model(), recording(seed=2)))
    assert (moving.kind, moving.uses[0].code, moving.cause) == ("motion", "good", "")
    loaded = log_verdict(jw.validate(model(), recording(seed=2, payload=2.5)))
    assert (loaded.kind, loaded.uses[1].code) == ("payload", "plain")
    assert "payload of about" in loaded.cause
    still = recording(seed=2).slice(0, 200)
    still = replace(still, q=np.tile(still.q[:1], (200, 1)), qd=np.zeros((200, 6)))
    assert log_verdict(jw.validate(model(), still)).kind == "standstill"
    assert parameter_verdict(replace(model(), scale_known=False)).code == "poor"
    same = Finding("ok", "robot", "the data cannot decide: the robot 'twin' would fit as well", code="undecided")
    found = parameter_verdict(replace(model(), plausibility=(same,)))
    assert found.code == "fair"
    assert found.evidence.endswith(same.evidence)


def test_headline_ignores_standstill_before_and_after() -> None:
    log = recording(seed=2)
    rest = 1000
    stamps = np.concatenate([log.t, log.t[-1] + 0.01 * np.arange(1, rest + 1)])
    longer = jw.Log(
        stamps,
        np.vstack([log.q, np.tile(log.q[-1:], (rest, 1))]),
        np.vstack([log.qd, np.zeros((rest, 6))]),
        current=np.vstack([log.current, np.tile(log.current[-1:], (rest, 1))]),
    )
    short, long = jw.validate(model(), log), jw.validate(model(), longer)
    assert abs(long.motion_nmse / short.motion_nmse - 1.0) < 0.2
    assert long.motion_nmse < 0.8 * long.mean_nmse


@pytest.mark.parametrize("center", [(0.1, 0.0, 0.15), (0.0, 0.0, 0.0)])
def test_a_single_loaded_log_with_a_poor_centre_is_not_taken_for_a_wrong_gain(center: tuple[float, ...]) -> None:
    """Bodies absorb the payload of the only log: a centre within tolerance is no evidence against the drive gains."""
    robot, plant = jw.load_robot("ur5e"), PlantOptions(payload=jw.Payload(3.0, (0.1, 0.0, 0.15)))
    log = jw.simulate(robot, duration=20.0, rate=100.0, seed=5, keep=0, plant=plant).log
    found = jw.calibrate(log.with_payload(jw.Payload(3.0, center)), robot, physical=False)
    assert not found.implausible
    assert {check.subject for check in found.plausibility if check.severity != "ok"} <= {"logs"}
