"""Drive gains and power-flow friction: known values are identified, unsuitable data are rejected."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import jointwise
from data_files import SHARED, needs_shared
from joint_runs import RATE, log_of, run_experiment
from jointwise.data import Log, read_log
from jointwise.data.repetition import align_pair
from jointwise.description import Payload
from jointwise.design import make_experiment
from jointwise.errors import DataError, EstimationError
from jointwise.joint.calibration_terms import drive_gain
from jointwise.joint.drives import (
    RobotGains,
    gains_from_targets,
    identify_gains_from_payload,
    identify_motor_from_payload,
    same_drives,
)
from jointwise.joint.model import JointModel
from jointwise.joint.motor import identify_motor, implausible_gain
from jointwise.joint.part import Part
from jointwise.joint.record import JointRecord
from jointwise.model.terms import power_flow_columns, viscous_torque
from jointwise.options import Options
from jointwise.simulation.robot import digital_robot
from jointwise.simulation.sensors import Sensors

MASS, CENTER = 4.0, (0.03, 0.06, 0.08)
SCALES = np.array([1.08, 0.93, 1.05, 0.95, 1.02, 0.9])
"""True gains of the digital arm relative to the described ones: the estimate must not depend on those."""
UR10E = SHARED / "ur10e"


@lru_cache
def pair() -> tuple[Log, Log, np.ndarray]:
    """Return the logs of a digital UR5e without and with a payload, every tenth sample, and its true gains."""
    arm = jointwise.load_robot("ur5e")
    experiment = make_experiment("excitation", arm, 30.0, 1)
    plain = digital_robot(arm)
    joints = [
        replace(j, motor=replace(j.motor, gain=x * j.motor.gain)) for j, x in zip(plain.joints, SCALES, strict=True)
    ]
    robot = replace(plain, joints=tuple(joints))
    body = Payload(MASS, CENTER, np.diag([0.01, 0.012, 0.008]))
    logs = [
        log_of(run_experiment(arm, experiment), arm, Sensors(rate=RATE, seed=seed))
        for seed, arm in enumerate((robot, robot.with_payload(body)))
    ]
    return thinned(logs[0]), thinned(logs[1]), robot.gains


def thinned(log: Log) -> Log:
    return log.take(np.arange(0, log.samples, 5), "thinned")


@lru_cache
def estimate() -> RobotGains:
    unloaded, loaded, _ = pair()
    return identify_gains_from_payload(unloaded, loaded, jointwise.load_robot("ur5e"), MASS)


def later(log: Log, cut: int, shift: float) -> Log:
    """Return a log that begins `cut` samples later, its clock shifted."""
    part = log.slice(cut, log.samples)
    return replace(part, t=part.t + shift)


# -- gains from a payload --


def test_gains_from_a_payload_are_the_true_ones() -> None:
    gains = pair()[2]
    found = estimate()
    errors = found.gains / gains - 1.0
    assert np.abs(errors).max() < 0.04
    assert np.abs(errors[:4]).max() < 0.02
    covered = sum(
        joint.gain is not None and joint.gain.covers(true) for joint, true in zip(found.joints, gains, strict=True)
    )
    assert covered >= 5


def test_the_centre_of_mass_of_the_payload_is_identified() -> None:
    assert estimate().settings["payload_center"] == pytest.approx(CENTER, abs=2e-3)


def test_gains_are_proportional_to_the_mass_of_the_payload() -> None:
    unloaded, loaded, _ = pair()
    heavier = identify_gains_from_payload(unloaded, loaded, jointwise.load_robot("ur5e"), 1.5 * MASS, law="square")
    assert heavier.gains[1:3] / estimate().gains[1:3] == pytest.approx(1.5, rel=0.02)


def test_logs_that_begin_at_other_times_are_aligned() -> None:
    unloaded, loaded, _ = pair()
    found = align_pair(unloaded, later(loaded, 400, 7.0033))
    assert found.offset == pytest.approx(7.0033, abs=1e-3)
    assert found.mismatch.max() < 0.01


def test_a_part_of_a_gain_is_the_same_after_a_round_trip() -> None:
    part = estimate().part(1, gear_ratio=100.0)
    assert Part.from_dict(part.to_dict()) == replace(part, settings=part.to_dict()["settings"])
    assert part["torque_constant"] == pytest.approx(part["gain"] / 100.0)
    assert part.settings["status"] == "determined"
    assert part.curves and part.alternatives


def test_the_mass_of_the_payload_must_be_positive() -> None:
    unloaded, loaded, _ = pair()
    for mass in (None, 0.0, -1.0, float("nan")):
        with pytest.raises(EstimationError, match="mass must be a positive number of kg: weigh it"):
            identify_gains_from_payload(unloaded, loaded, jointwise.load_robot("ur5e"), mass)


def test_different_motions_are_rejected() -> None:
    unloaded, loaded, _ = pair()
    other = replace(loaded, q=loaded.q + 0.05 * np.sin(loaded.t)[:, None])
    with pytest.raises(EstimationError, match="not the same motion"):
        identify_gains_from_payload(unloaded, other, jointwise.load_robot("ur5e"), MASS)


def test_two_logs_without_payload_are_rejected() -> None:
    unloaded = pair()[0]
    with pytest.raises(EstimationError, match="neither or both carry the payload"):
        identify_gains_from_payload(unloaded, unloaded, jointwise.load_robot("ur5e"), MASS)


def test_shuffled_currents_are_rejected() -> None:
    unloaded, loaded, _ = pair()
    order = np.random.default_rng(0).permutation(loaded.samples)
    assert loaded.current is not None
    with pytest.raises(EstimationError, match="does not follow a payload"):
        identify_gains_from_payload(
            unloaded, replace(loaded, current=loaded.current[order]), jointwise.load_robot("ur5e"), MASS
        )


def test_unsuitable_pairs_are_rejected() -> None:
    unloaded, loaded, _ = pair()
    arm = jointwise.load_robot("ur5e")
    still = replace(unloaded, q=np.repeat(unloaded.q[:1], unloaded.samples, axis=0))
    cases: list[tuple[Log, Log, str]] = [
        (still, still, "nothing moves"),
        (unloaded.slice(0, 1000), loaded.slice(0, 1000), "too short"),
    ]
    for a, b, words in cases:
        with pytest.raises(EstimationError, match=words):
            identify_gains_from_payload(a, b, arm, MASS)
    with pytest.raises(DataError, match="no channel 'current'"):
        identify_gains_from_payload(unloaded.select(current=False), loaded, arm, MASS)
    with pytest.raises(EstimationError, match="must have one with it"):
        identify_gains_from_payload([unloaded, unloaded], loaded, arm, MASS)


# -- gains from the controller --


def controller_log(gain: float, offset: float, samples: int = 3000) -> Log:
    """Return a joint that stands at three positions and moves between them, with the targets of its controller."""
    t = np.arange(samples) / 100.0
    u = np.clip(np.mod(t, 10.0) / 5.0, 0.0, 1.0)
    q = np.floor(t / 10.0) * 0.7 + 0.7 * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    qd = np.gradient(q, t)
    torque = 30.0 * np.sin(q + 0.4)
    current = torque / gain + offset + 0.4 * np.sign(np.round(qd, 4)) + 0.3 * qd
    return Log(t=t, q=q[:, None], qd=qd[:, None], torque_des=torque[:, None], current_des=np.round(current, 5)[:, None])


def test_the_gain_of_the_controller_follows_from_standstill() -> None:
    found = gains_from_targets(controller_log(11.5, 0.07), jointwise.load_robot("planar1")).joints[0]
    assert found.gain is not None and found.offset is not None
    assert found.gain.value == pytest.approx(11.5, rel=1e-4)
    assert found.gain.covers(11.5)
    assert found.offset.value == pytest.approx(0.07, abs=1e-3)
    assert "standstill" in found.model and "in motion" in found.notes[-1]


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_without_standstill_the_gain_follows_from_motion(seed: int) -> None:
    t = np.arange(4000) / 100.0
    q, qd = np.sin(0.9 * t) + 0.3 * np.sin(2.1 * t), 0.9 * np.cos(0.9 * t) + 0.63 * np.cos(2.1 * t)
    torque = 30.0 * np.sin(q + 0.4)
    current = torque / 9.0 + 0.1 + 0.4 * np.sign(qd) + 0.3 * qd
    torque += 0.02 * np.random.default_rng(seed).normal(size=len(t))
    log = Log(t=t, q=q[:, None], qd=qd[:, None], torque_des=torque[:, None], current_des=current[:, None])
    found = gains_from_targets(log, jointwise.load_robot("planar1")).joints[0]
    assert found.gain is not None and found.gain.covers(9.0)
    assert found.gain.value == pytest.approx(9.0, rel=1e-3)
    assert "from motion alone" in found.notes[0]


def test_unrelated_or_missing_targets_are_rejected() -> None:
    log = controller_log(11.5, 0.0)
    assert log.current_des is not None and log.torque_des is not None
    order = np.random.default_rng(0).permutation(log.samples)
    moving = replace(log, qd=np.full_like(log.q, 0.5), current_des=log.current_des[order])
    with pytest.raises(EstimationError, match="do not determine any gain"):
        gains_from_targets(moving, jointwise.load_robot("planar1"))
    for name in ("current_des", "torque_des"):
        with pytest.raises(EstimationError, match="which determine the gains of the controller"):
            gains_from_targets(log.select(**{name: False}), jointwise.load_robot("planar1"))


# -- gain and power-flow friction from known links --


def record(friction: str = "power flow", seconds: float = 60.0, seed: int = 0, **changes: object) -> JointRecord:
    """Return a joint under a load that varies, with friction by the direction of power flow or Coulomb friction."""
    rate = 100.0
    t = np.arange(int(seconds * rate)) / rate
    q = 1.2 * np.sin(0.6 * t) + 0.5 * np.sin(1.7 * t)
    qd = 0.72 * np.cos(0.6 * t) + 0.85 * np.cos(1.7 * t)
    qdd = -0.432 * np.sin(0.6 * t) - 1.445 * np.sin(1.7 * t)
    load = 40.0 * np.sin(q + 0.5)
    dry = np.where(qd * load > 0.0, 9.0, 6.0) if friction == "power flow" else 8.0
    torque = load + 1.5 * qdd + dry * np.sign(qd) + 12.0 * qd - 2.0 * qd * np.abs(qd)
    current = torque / 10.5 + 0.12 + 0.05 * np.random.default_rng(seed).normal(size=len(t))
    motion = {"q": q, "qd": qd, "qdd": qdd, "position": q, "speed": qd, "acceleration": qdd, "path": q}
    values: dict[str, object] = {
        **motion, "robot": "arm", "joint": 0, "logs": ("made",), "rate": rate, "unit": "Nm", "gain": 8.0,
        "inertia": 1.5, "t": t, "segment": np.zeros(len(t), dtype=np.intp), "motor": 8.0 * current, "load": load,
    }  # fmt: skip
    return JointRecord(**{**values, **changes})  # type: ignore[arg-type]


def test_gain_offset_and_power_flow_friction_are_identified() -> None:
    part = identify_motor(record(), gear_ratio=101.0)
    assert part.settings["friction"] == "power flow"
    truth = {"gain": 10.5, "offset": 0.12, "direct": 9.0, "reverse": 6.0, "viscous": 12.0, "square": -2.0}
    assert [name for name, value in truth.items() if not part.value(name).covers(value)] == []
    assert part["gain"] == pytest.approx(10.5, rel=0.01)
    assert part["torque_constant"] == pytest.approx(part["gain"] / 101.0)
    quality = {other.model: other.held_out for other in part.alternatives}
    assert quality["friction: power flow"] == max(quality.values())  # type: ignore[type-var]
    speed, load = np.array([0.5, 0.5, -0.5]), np.array([10.0, -10.0, -10.0])
    dry = power_flow_columns(speed, load) @ [part["direct"], part["reverse"]]
    friction = dry + viscous_torque(speed, [part["viscous"], part["square"]])
    assert friction == pytest.approx([14.5, 11.5, -14.5], abs=0.5)


def test_power_flow_does_not_improve_the_fit_of_coulomb_friction() -> None:
    part = identify_motor(record("Coulomb"))
    assert part.settings["friction"] == "Coulomb"
    assert part["gain"] == pytest.approx(10.5, rel=0.01)
    quality = {other.model: other.held_out for other in part.alternatives}
    assert quality["friction: power flow"] - quality["friction: Coulomb"] < 0.05  # type: ignore[operator]
    flow = identify_motor(record("Coulomb"), friction="power flow")
    assert flow.value("direct").covers(8.0) and flow.value("reverse").covers(8.0)


def test_intervals_of_the_gain_cover_the_true_value_over_seeds() -> None:
    covered = [identify_motor(record(seconds=30.0, seed=seed)).value("gain").covers(10.5) for seed in range(20)]
    assert sum(covered) >= 16


def test_an_error_of_the_described_masses_is_within_the_interval() -> None:
    """A gain from links is proportional to their masses: the intervals include an error of a few per cent."""
    for part in (0.96, 1.04):
        made = record("Coulomb")
        found = identify_motor(
            record("Coulomb", load=part * made.load, inertia=part * made.inertia), friction="Coulomb"
        )
        assert found["gain"] == pytest.approx(part * 10.5, rel=0.01)
        assert found.value("gain").covers(10.5) and found.value("viscous").covers(12.0)


def test_a_payload_that_is_not_described_is_rejected_by_the_known_gain() -> None:
    made = record()
    with pytest.raises(EstimationError, match=r"-40 % off the known 10.5; motor is not fitted. Give the payload"):
        identify_motor(record(load=0.6 * made.load, inertia=0.0), known=10.5)
    part = identify_motor(made, known=10.0)
    assert "known gain 10 Nm/A: +5.0 %" in part.notes


def test_an_unknown_rotor_inertia_is_identified() -> None:
    part = identify_motor(record(inertia=0.0))
    assert part.value("inertia").covers(1.5) and part.value("gain").covers(10.5)


def test_a_known_gain_of_one_is_still_a_current() -> None:
    made = record()
    assert identify_motor(record(motor=made.motor / made.gain, gain=1.0)).value("gain").covers(10.5)


def test_unsuitable_records_are_rejected() -> None:
    made = record()
    rng = np.random.default_rng(0)
    current = made.motor / made.gain
    cases = {
        "does not follow the load": record(motor=made.motor[rng.permutation(made.samples)]),
        "load never varies": record(load=np.full(made.samples, 5.0)),
        "saturated in 3.* at about 3 A": record(motor=made.gain * np.clip(current, -3.0, 3.0)),
        "one direction only": made.take(made.speed > 0.0),
        "does not move": record(speed=np.zeros(made.samples)),
        "current does not vary": record(motor=np.zeros(made.samples)),
        "torque is measured, not current": record(has_current=False),
        "only 5.* s of motion": made.take(np.arange(600)),
    }
    for words, wrong in cases.items():
        with pytest.raises(EstimationError, match=words) as problem:
            identify_motor(wrong)
        assert "motor is not fitted" in str(problem.value)
        assert "jointwise joint plan" in str(problem.value)


def test_joints_with_the_same_described_drive_are_grouped() -> None:
    assert same_drives(jointwise.load_robot("ur10e")) == ((0, 1), (2,), (3, 4, 5))
    assert same_drives(jointwise.load_robot("ur5e")) == tuple((k,) for k in range(6))


# -- real logs --

CONTROLLER = np.array([11.976, 11.976, 9.839, 10.763, 10.763, 10.763])


@needs_shared
def test_the_payload_of_a_real_arm_leads_to_the_gains_of_its_controller() -> None:
    unloaded = read_log(UR10E / "id_20_02_19_14harm50sec.csv")
    loaded = read_log(UR10E / "id_20_02_19_14harm50secLoad.csv")
    found = identify_gains_from_payload(unloaded, loaded, jointwise.load_robot("ur10e"), 2.805)
    assert np.abs(found.gains / CONTROLLER - 1.0).max() < 0.05
    assert found.joints[0].status == "hardly determined"
    alone = np.array([joint.alone.value for joint in found.joints if joint.alone is not None])
    assert np.abs(alone[1:] / CONTROLLER[1:] - 1.0).max() < 0.06


@needs_shared
def test_the_targets_of_a_real_controller_lead_to_its_gains() -> None:
    logs = [read_log(path) for path in sorted(UR10E.glob("val_*.csv"))]
    found = gains_from_targets([*logs, read_log(UR10E / "joint_20_01_22_joint_2.csv")], jointwise.load_robot("ur10e"))
    assert found.gains[:5] == pytest.approx(CONTROLLER[:5], rel=2e-4)
    assert found.joints[5].status == "not determined"


# -- gains that contradict the description --


def test_a_gain_that_contradicts_the_description_is_marked_and_not_used() -> None:
    unloaded, loaded, gains = pair()
    arm, joint = jointwise.load_robot("ur5e"), 1
    described = arm.joints[joint].motor.joint_gain
    right = identify_motor_from_payload([unloaded], [loaded], arm, joint, MASS)
    assert implausible_gain(right) == ""
    wrong = identify_motor_from_payload([unloaded], [loaded], arm, joint, 1.8 * MASS)
    assert wrong["gain"] == pytest.approx(1.8 * gains[joint], rel=0.05)
    assert "off the" in implausible_gain(wrong) and any(note.startswith("implausible") for note in wrong.notes)
    model = JointModel("ur5e", joint).with_part(Part.from_dict(json.loads(json.dumps(wrong.to_dict()))))
    assert drive_gain(model, described) == described
    assert drive_gain(model) is None
    assert drive_gain(model, described, accept_implausible=True) == wrong["gain"]
    options = Options().with_joints([model], arm, rotor=False, known=False)
    assert options.gains == tuple(link.motor.joint_gain for link in arm.joints)
    accepted = Options().with_joints([model], arm, rotor=False, known=False, accept_implausible=True)
    assert accepted.gains is not None and accepted.gains[joint] == wrong["gain"]


def test_without_a_described_gain_the_described_links_are_the_reference() -> None:
    unloaded, loaded, _ = pair()
    arm = jointwise.load_robot("ur5e")
    silent = replace(
        arm, joints=tuple(replace(j, motor=replace(j.motor, drive_gain=None, torque_constant=None)) for j in arm.joints)
    )
    assert silent.joints[1].motor.joint_gain is None
    assert implausible_gain(identify_motor_from_payload([unloaded], [loaded], silent, 1, MASS)) == ""
    wrong = identify_motor_from_payload([unloaded], [loaded], silent, 1, 1.8 * MASS)
    assert "of the described links" in implausible_gain(wrong)
