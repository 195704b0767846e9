"""The data doctor: each illness on a log that has only that one."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from data_files import SHARED, moving_log, needs_shared
from jointwise.data import Log, check_quality, read_log
from jointwise.data.statistics import saturated
from jointwise.description import load_robot


def codes(log: Log, robot=None) -> set[str]:
    return {finding.code for finding in check_quality(log, robot).findings}


def test_clean_log_is_good():
    inspection = check_quality(moving_log(), load_robot("planar2"))
    assert inspection.findings == ()
    assert inspection.verdict == "good"
    assert inspection.numbers.speed_max == pytest.approx([1.0, 1.3], rel=0.01)
    assert inspection.numbers.acceleration_max == pytest.approx([1.0, 1.69], rel=0.01)
    assert inspection.numbers.channels["current"].noise == pytest.approx([0.05, 0.05], rel=0.2)


def test_report_as_text_and_json():
    inspection = check_quality(moving_log(qd=-moving_log().qd))
    document = json.loads(json.dumps(inspection.to_dict()))
    assert document["verdict"] == "refused"
    assert document["findings"][0] == {
        "severity": "error",
        "code": "speed-sign",
        "channel": "qd",
        "joint": 1,
        "message": "qd1 has the opposite sign of the motion of q.",
        "subject": "qd1",
        "evidence": "qd1 has the opposite sign of the motion of q.",
        "advice": "Turn it.",
        "span": None,
    }
    lines = inspection.lines()
    assert lines[-1].startswith("verdict: refused.")
    assert sum(line.strip().startswith(("1 ", "2 ")) for line in lines) == 2


def test_a_current_held_below_its_target_is_at_its_limit():
    log = moving_log()
    target = np.asarray(log.current)
    top = 0.6 * np.abs(target).max(axis=0)
    noise = 0.01 * np.random.default_rng(0).normal(size=target.shape)
    held = replace(log, current=np.clip(target, -top, top) + noise, current_des=target)
    assert codes(held) == {"current-limit"}
    assert codes(replace(log, current_des=target)) == set()
    assert codes(replace(held, current=0.5 * target)) == set()  # a smaller current is no limit


def test_degrees():
    log = moving_log()
    assert codes(replace(log, q=np.rad2deg(log.q))) == {"degrees"}
    assert codes(replace(log, q=np.rad2deg(log.q), qd=None)) == {"degrees"}
    assert "degrees" in codes(replace(log, q=np.rad2deg(log.q), qd=np.rad2deg(log.qd)), load_robot("planar2"))
    assert "speed-unit" in codes(replace(log, qd=np.rad2deg(log.qd)))


def test_turns_of_a_wrist_are_no_degrees():
    log, robot = moving_log(), load_robot("planar2")
    ramp = np.linspace(0.0, 1.0, log.samples)[:, None] * [0.0, 13.0]
    slow = replace(log, q=0.2 * log.q + ramp, qd=None)
    assert slow.t[-1] > 6.0  # the second joint turns twice at less than 2 rad/s
    assert "degrees" not in codes(slow) | codes(slow, robot)
    assert "degrees" in codes(replace(slow, t=slow.t / 10.0))


def test_other_units():
    log = moving_log()
    assert "current-unit" in codes(replace(log, current=1000 * log.current))
    assert "torque-unit" in codes(replace(log, torque=20000 * log.q))
    assert "time-unit" in codes(replace(log, t=1000 * log.t))
    assert "temperature-unit" in codes(replace(log, temperature=np.full_like(log.q, 300.0)))


def test_motor_side():
    log = moving_log()
    assert "theta-side" in codes(replace(log, theta=100.0 * log.q))
    assert codes(replace(log, theta=log.q + 0.001 * log.q**2)) == set()


def test_nothing_moves():
    log = moving_log(q=np.zeros((2000, 2)), qd=np.zeros((2000, 2)), current=np.zeros((2000, 2)))
    inspection = check_quality(log)
    assert inspection.verdict == "refused"
    assert codes(log) == {"no-motion"}


def test_one_joint_never_moves():
    log = moving_log()
    still = np.array([1.0, 0.0])
    findings = check_quality(replace(log, q=log.q * still, qd=log.qd * still)).findings
    assert [(f.code, f.joint, f.severity) for f in findings] == [("still-joint", 1, "warning")]


def test_frozen_channels():
    log = moving_log()
    assert "frozen" in codes(replace(log, current=np.ones_like(log.q)))
    assert "frozen" in codes(replace(log, q=log.q * [1.0, 0.0]))
    stuck = np.array(log.current)
    stuck[500:700] = stuck[500]
    assert codes(replace(log, current=stuck)) == {"frozen"}


def test_saturated():
    log = moving_log()
    assert codes(replace(log, current=np.clip(log.current, -1.5, 1.5))) == {"saturated"}
    rounded = np.round(log.current, 1)
    assert codes(replace(log, current=rounded)) == set()


def test_coarse_steps_are_no_saturation():
    slow = np.sin(np.linspace(0.0, 40.0, 4000))[:, None]
    coarse = np.round(slow / 0.1) * 0.1
    assert saturated(coarse, coarse.min(axis=0), coarse.max(axis=0)) == 0.0
    cut = np.clip(coarse, -0.5, 0.5)
    assert saturated(cut, cut.min(axis=0), cut.max(axis=0)) > 0.5


def test_jump_and_wrap():
    log = moving_log()
    q = np.array(log.q)
    q[100, 1] += 5.0
    findings = check_quality(replace(log, q=q)).findings
    assert findings[0].evidence.startswith("sample 100, column 'q2': position jumps by 5")
    wrapped = np.array(log.q)
    wrapped[1000:, 0] -= 2 * np.pi
    assert "wrapped" in codes(replace(log, q=wrapped))


def test_quantisation():
    log = moving_log()
    coarse = replace(log, q=np.round(log.q / 0.005) * 0.005)
    assert "coarse" in codes(coarse)
    assert check_quality(coarse).numbers.channels["q"].quantum == pytest.approx([0.005, 0.005])


def test_stale_samples():
    log = moving_log(4000, rate=500.0)
    repeated = np.repeat(np.arange(1000), 4)
    held = Log(t=log.t, q=log.q[4 * repeated], qd=log.qd[4 * repeated], current=log.current[4 * repeated])
    assert "stale" in codes(held)


def test_desired_positions():
    log = moving_log()
    assert "desired-sign" in codes(replace(log, q_des=-log.q))
    assert "desired-offset" in codes(replace(log, q_des=log.q + 1.0))


def test_extent():
    assert "short" in codes(moving_log(100))
    assert "slow-rate" in codes(moving_log(200, rate=10.0))
    assert "no-output" in codes(moving_log(current=None))


def test_against_the_robot():
    assert "joint-count" in codes(moving_log(), load_robot("ur5e"))
    ur = load_robot("ur5e")
    log = moving_log(joints=6)
    assert "outside-limits" in codes(replace(log, q=log.q + 5.8), ur)
    assert "too-fast" in codes(replace(log, t=0.1 * log.t, qd=10 * log.qd), ur)


def test_reversed_stamps_are_a_finding():
    t = np.array(moving_log().t)
    t[100] -= 0.015
    assert check_quality(replace(moving_log(), t=t)).findings[0].code == "reversed-stamps"


def test_constant_stamps_do_not_break_it():
    assert codes(replace(moving_log(), t=np.ones(2000))) == {"no-time"}


def test_very_long_log_is_sampled():
    inspection = check_quality(moving_log(300_000, rate=500.0))
    assert inspection.verdict == "good"
    assert inspection.numbers.speed_max == pytest.approx([1.0, 1.3], rel=0.01)


@needs_shared
@pytest.mark.parametrize(
    ("pattern", "robot", "verdict"),
    [
        ("ur10e/id_*.csv", "ur10e", "good"),
        ("ur10e/joint_*.csv", "ur10e", "usable"),
        ("ur10e/val_*.csv", "ur10e", "refused"),
        ("panda/*.csv", "panda", "good"),
    ],
)
def test_real_logs(pattern, robot, verdict):
    for path in sorted(SHARED.glob(pattern)):
        assert check_quality(read_log(path), load_robot(robot)).verdict == verdict, path.name
