"""A declaration that does not belong to the data is named with its cause; a right one passes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jointwise import load_robot
from jointwise.description import Limits, Payload, Robot, gravity_vector
from jointwise.finding import Finding
from jointwise.model.rigid import inverse_dynamics
from jointwise.model.terms import slip_elements, slip_state
from jointwise.result.plausibility import refusal, undecided_text
from jointwise.result.plausibility.alternatives import motion_alternatives
from jointwise.result.plausibility.assess import assess
from jointwise.result.plausibility.declaration import Declaration
from jointwise.result.plausibility.evidence import evidence
from jointwise.result.plausibility.samples import Samples
from jointwise.result.plausibility.scales import like_drives
from jointwise.result.plausibility.wording import SETUP
from jointwise.spatial import Array

RATE, DURATION = 20.0, 20.0
LIMITS = np.array([1e-4, 1e-3, 6e-3])
TABLE = gravity_vector("table")
CATALOG = ("ur3e", "ur5e", "ur10e", "panda")


@cache
def samples(name: str = "ur5e", payload: float = 0.0, seed: int = 0, shift: float = 0.0) -> Samples:
    """Return samples of a Fourier motion with friction and 1 % noise, as a log of that robot would give."""
    robot = load_robot(name)
    rng = np.random.default_rng(seed)
    lags = np.array([-0.1, 0.0, 0.04, 0.08])
    t = np.arange(0.0, DURATION, 1.0 / RATE)
    weights = rng.normal(0.0, 0.4, (robot.dof, 4, 2))
    torque = {k: _torque(robot, _motion(weights, t + lag - shift), payload) for k, lag in enumerate(lags)}
    q, qd, qdd = _motion(weights, t)
    output = np.stack([torque[k] for k in range(len(lags))], axis=2)
    output += 0.01 * output.std(axis=0)[:, 0][:, None] * rng.normal(size=output.shape)
    friction = np.stack([_columns(q[:, j], qd[:, j]) for j in range(robot.dof)])
    moving = np.ones(robot.dof, bool)
    log = np.zeros(len(t), dtype=np.intp)
    return Samples(q, qd, qdd, output, friction, log, np.array([DURATION]), lags, moving)


def _motion(weights: Array, t: Array) -> tuple[Array, Array, Array]:
    w = 2.0 * np.pi * 0.1 * np.arange(1, weights.shape[1] + 1)
    c, s = np.cos(np.outer(t, w)), np.sin(np.outer(t, w))
    a, b = weights[:, :, 0].T, weights[:, :, 1].T
    return s @ a - c @ b, (w * c) @ a + (w * s) @ b, (w * w * c) @ b - (w * w * s) @ a


def _torque(robot: Robot, motion: tuple[Array, Array, Array], payload: float) -> Array:
    q, qd, qdd = motion
    load = Payload(payload, (0.02, 0.0, 0.06)) if payload else None
    torque = inverse_dynamics(robot, q, qd, qdd, gravity=TABLE, payload=load)
    scale = np.array([joint.limits.effort or 50.0 for joint in robot.joints])
    slip = [slip_elements(x, LIMITS, slip_state(x[0], len(LIMITS)))[0] @ [0.5, 0.3, 0.2] for x in q.T]
    result: Array = torque + 0.04 * scale * (np.column_stack(slip) + qd)
    return result


def _columns(q: Array, qd: Array) -> Array:
    elements = slip_elements(q, LIMITS, slip_state(q[0], len(LIMITS)))[0]
    return np.column_stack([elements, qd, qd * np.abs(qd), np.ones(len(q))])


def findings(data: Samples, robot: str = "ur5e", gravity: Array = TABLE, factor: float = 1.0) -> dict[str, str]:
    """Return the status of every check that is not ok."""
    arm = load_robot(robot)
    declaration = Declaration.plain(arm, gravity, np.full(arm.dof, factor), data)
    result = assess(data, declaration, [load_robot(name) for name in CATALOG])
    return {check.subject: SETUP[check.severity] for check in result if check.severity != "ok"}


@pytest.mark.parametrize("name", ["ur5e", "ur10e", "panda"])
@pytest.mark.parametrize("seed", [0, 1])
def test_right_declaration_passes(name: str, seed: int) -> None:
    assert findings(samples(name, seed=seed), name) == {}


@pytest.mark.parametrize("joint", range(6))
def test_wrong_output_sign_is_named(joint: int) -> None:
    data = samples()
    output = data.output.copy()
    output[:, joint] *= -1.0
    assert findings(replace(data, output=output)).get("output sign") == "contradicted"


def test_all_outputs_of_the_wrong_sign_are_named() -> None:
    data = samples()
    assert findings(replace(data, output=-data.output)).get("output sign") == "contradicted"


@pytest.mark.parametrize("pair", [(1, 2), (3, 4), (0, 5)])
def test_exchanged_outputs_are_named(pair: tuple[int, int]) -> None:
    data = samples()
    output = data.output.copy()
    output[:, list(pair)] = output[:, list(reversed(pair))]
    assert findings(replace(data, output=output)).get("output order") == "contradicted"


@pytest.mark.parametrize("joint", [1, 2, 3])
def test_wrong_position_sign_and_zero_are_named(joint: int) -> None:
    data = samples()
    sign, offset = np.ones(6), np.zeros(6)
    sign[joint], offset[joint] = -1.0, math.radians(90.0)
    friction = data.friction.copy()
    friction[joint, :, :-1] *= -1.0
    turned = replace(data, q=data.q * sign, qd=data.qd * sign, qdd=data.qdd * sign, friction=friction)
    assert findings(turned).get("position sign") == "contradicted"
    assert findings(replace(data, q=data.q + offset)).get("zero offset") == "contradicted"


def test_exchanged_positions_are_named() -> None:
    data = samples()
    order = [0, 2, 1, 3, 4, 5]
    mixed = replace(
        data, q=data.q[:, order], qd=data.qd[:, order], qdd=data.qdd[:, order], friction=data.friction[order]
    )
    assert findings(mixed).get("position order") == "contradicted"


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 9.81), (9.81, 0.0, 0.0), (0.0, 1.7, -9.66)])
def test_wrong_mounting_is_named(gravity: tuple[float, float, float]) -> None:
    assert findings(samples(), gravity=np.array(gravity)).get("mounting") == "contradicted"


@pytest.mark.parametrize("other", ["ur3e", "ur10e"])
def test_another_robot_is_named(other: str) -> None:
    assert findings(samples(), other).get("robot") == "contradicted"


def test_undeclared_payload_is_named_with_its_mass() -> None:
    data = samples(payload=3.0)
    declaration = Declaration.plain(load_robot("ur5e"), TABLE, np.ones(6), data)
    check = next(check for check in assess(data, declaration) if check.subject == "payload")
    assert check.severity == "error"
    mass = float(check.evidence.split("about ")[1].split(" kg")[0])
    assert abs(mass - 3.0) < 0.3


def test_a_declared_payload_that_is_absent_is_named() -> None:
    data = samples()
    declaration = Declaration.plain(load_robot("ur5e"), TABLE, np.ones(6), data, Payload(4.0, (0.0, 0.0, 0.06)))
    check = next(check for check in assess(data, declaration) if check.subject == "payload")
    assert check.severity != "ok"
    assert "instead of the declared 4.0 kg" in check.evidence
    right = Declaration.plain(load_robot("ur5e"), TABLE, np.ones(6), samples(payload=3.0), Payload(3.1, (0, 0, 0.05)))
    assert all(check.severity == "ok" for check in assess(samples(payload=3.0), right))


def payload_check(data: Samples, robot: str, payload: Payload | None) -> Finding:
    """Return the check of the payload."""
    arm = load_robot(robot)
    declaration = Declaration.plain(arm, TABLE, np.ones(arm.dof), data, payload)
    return next(check for check in assess(data, declaration) if check.subject == "payload")


@pytest.mark.parametrize("robot", ["ur5e", "ur10e", "panda"])
def test_a_declared_payload_of_another_mass_is_named(robot: str) -> None:
    data = samples(robot, payload=3.0)
    for mass in (1.8, 4.5, 7.0):
        check = payload_check(data, robot, Payload(mass, (0.0, 0.0, 0.05)))
        assert check.severity != "ok"
        estimate = float(check.advice.split("--payload ")[1].split(",")[0])
        assert estimate == pytest.approx(3.0, abs=0.3)
    for center in (0.02, 0.06, 0.1):
        assert payload_check(data, robot, Payload(3.0, (0.0, 0.0, center))).severity == "ok"
    light = samples(robot, payload=1.2)
    assert payload_check(light, robot, None).severity != "ok"
    assert payload_check(light, robot, Payload(1.2, (0.0, 0.0, 0.05))).severity == "ok"


@pytest.mark.parametrize("known", [True, False])
def test_the_centre_of_a_declared_payload_is_named(known: bool) -> None:
    data, robot = samples(payload=3.0), load_robot("ur5e")
    wrong = Payload(3.0, (0.02, -0.2, 0.06))
    checks = assess(data, Declaration.plain(robot, TABLE, np.ones(6), data, wrong, known))
    check = next(check for check in checks if check.subject == "payload centre")
    assert check.severity != "ok"
    center = [float(x) for x in check.advice.split("--payload ")[1].rstrip(".").split(",")[1:]]
    assert center == pytest.approx([0.02, 0.0, 0.06], abs=0.04)
    unstated = Declaration.plain(robot, TABLE, np.ones(6), data, Payload(3.0), known)
    assert all(check.severity != "error" for check in assess(data, unstated))
    assert not known or all(check.severity == "ok" for check in assess(data, unstated))


def test_the_mass_of_a_payload_is_named_where_gains_are_estimated() -> None:
    data, robot = samples(payload=3.0), load_robot("ur5e")
    for mass, status in ((3.0, "ok"), (4.5, "suspect"), (1.5, "suspect")):
        declaration = Declaration.plain(robot, TABLE, np.ones(6), data, Payload(mass, (0.02, 0.0, 0.06)), False)
        check = next(check for check in assess(data, declaration) if check.subject == "payload")
        assert (check.severity == "ok") == (status == "ok")


def test_a_common_factor_of_all_outputs_is_no_payload() -> None:
    data = samples()
    found = findings(replace(data, output=1.4 * data.output))
    assert "gain" in found
    assert "payload" not in found


def test_exchanged_and_inverted_joints_are_named() -> None:
    data = samples()
    order = [0, 1, 3, 2, 4, 5]
    swapped = replace(
        data, q=data.q[:, order], qd=data.qd[:, order], qdd=data.qdd[:, order],
        output=data.output[:, order], friction=data.friction[order],
    )  # fmt: skip
    assert findings(swapped).get("joint order") == "contradicted"
    sign = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
    friction = data.friction.copy()
    friction[2, :, :-1] *= -1.0
    turned = replace(
        data, q=data.q * sign, qd=data.qd * sign, qdd=data.qdd * sign, output=data.output * sign[:, None],
        friction=friction,
    )  # fmt: skip
    assert findings(turned).get("joint sign") == "contradicted"


def test_what_the_data_cannot_decide_is_said() -> None:
    data = samples()
    declaration = Declaration.plain(load_robot("ur5e"), TABLE, np.ones(6), data)
    checks = assess(data, declaration, [replace(load_robot("ur5e"), name="twin")])
    robot = next(check for check in checks if check.subject == "robot")
    assert robot.severity == "ok"
    assert robot.code == "undecided"
    assert robot.evidence == "the data cannot decide: the robot 'twin' would fit as well"


def sprung(data: Samples, stiffness: float, joints: tuple[int, ...] = (1,)) -> Samples:
    """Return samples of an arm with counterbalances, Nm/rad, whose preload is another 0.4 rad."""
    output = data.output.copy()
    for j in joints:
        output[:, j] += stiffness * (data.q[:, j] - data.q[:, j].mean() - 0.4)[:, None]
    return replace(data, output=output)


def with_term(data: Samples, kind: str, column: Array) -> Samples:
    """Return samples with a declared term; `column` (samples, joints)."""
    parts = [data.friction[:, :, :-1], column.T[:, :, None], data.friction[:, :, -1:]]
    return replace(data, friction=np.concatenate(parts, axis=2), terms=(*data.terms, kind))


@pytest.mark.parametrize(("name", "stiffness"), [("ur5e", 40.0), ("ur10e", 120.0), ("panda", 40.0)])
def test_a_spring_is_right_if_declared_and_named_if_not(name: str, stiffness: float) -> None:
    for joints in ((1,), (1, 2)):
        data = sprung(samples(name), stiffness, joints)
        assert findings(data, name) == {"spring": "suspect"}
        assert findings(with_term(data, "spring", data.q), name) == {}
    checks = assess(data, Declaration.plain(load_robot(name), TABLE, np.ones(load_robot(name).dof), data))
    check = next(check for check in checks if check.subject == "spring")
    assert "joints 2 and 3" in check.evidence and "--terms spring" in check.advice
    unsprung = samples(name)
    assert findings(with_term(unsprung, "spring", unsprung.q), name) == {}


def test_a_declared_spring_hides_no_other_error() -> None:
    data = sprung(samples(), 40.0)
    output, sign, offset = data.output.copy(), np.ones(6), np.zeros(6)
    output[:, 2] *= -1.0
    sign[1], offset[2] = -1.0, math.radians(40.0)
    friction = data.friction.copy()
    friction[1, :, :-1] *= -1.0
    turned = replace(data, q=data.q * sign, qd=data.qd * sign, qdd=data.qdd * sign, friction=friction)
    wrong = {
        "output sign": replace(data, output=output),
        "position sign": turned,
        "zero offset": replace(data, q=data.q + offset),
        "payload": sprung(samples(payload=3.0), 40.0),
    }
    for cause, each in wrong.items():
        assert findings(with_term(each, "spring", each.q)).get(cause) == "contradicted"
    tilted = findings(with_term(data, "spring", data.q), gravity=np.array([2.5, 0.0, -9.48]))
    assert tilted.get("mounting") == "contradicted"


def test_an_offset_is_not_taken_for_the_preload_of_a_spring_that_does_nothing() -> None:
    data = samples()
    output = data.output.copy()
    output[:, 2] += 0.6 * output[:, 2].std()
    offset = replace(data, output=output)
    assert findings(offset).get("offset") == "suspect"
    assert findings(with_term(offset, "spring", data.q)).get("offset") == "suspect"


def test_friction_that_the_user_declared_must_dissipate_too() -> None:
    data = samples()
    declared = with_term(data, "dry", np.tanh(data.qd / 0.03))
    assert findings(declared) == {}
    turned = data.output.copy()
    turned[:, 5] *= -1.0
    assert findings(replace(declared, output=turned)).get("output sign") == "contradicted"


def test_what_the_data_cannot_decide_is_said_by_joint() -> None:
    before, after = "the data cannot decide: ", " would fit as well"
    texts = {
        "joint sign": "another direction of joint 6",
        "zero offset": "another zero of joint 6",
        "robot": "the robot 'ur10'",
        "gain": "another gain of joints 3 and 4",
        "time shift": "the output of joint 5 shifted by +25 ms",
    }
    checks = [Finding("ok", name, f"{before}{text}{after}", code="undecided") for name, text in texts.items()]
    others = "the robot 'ur10', or another direction or zero of joint 6, or another gain of joints 3 and 4"
    assert undecided_text(checks) == f"{before}{others}{after}"
    assert undecided_text(checks[-1:]) == ""


def test_the_zero_of_a_vertical_first_axis_is_no_alternative() -> None:
    data = samples()
    for gravity in (TABLE, -TABLE):
        declaration = Declaration.plain(load_robot("ur5e"), gravity, np.ones(6), data)
        found = {a.joints[0] for a in motion_alternatives(declaration, data, ()) if a.cause == "zero offset"}
        assert found == {1, 2, 3, 4, 5}
    tilted = Declaration.plain(load_robot("ur5e"), np.array([1.0, 0.0, -9.7]), np.ones(6), data)
    assert 0 in {a.joints[0] for a in motion_alternatives(tilted, data, ()) if a.cause == "zero offset"}


def test_a_table_of_the_same_arm_is_no_other_robot() -> None:
    data, arm = samples(), load_robot("ur5e")
    bare = replace(arm, name="my table", links=tuple(replace(link, inertial=np.zeros(10)) for link in arm.links))
    checks = assess(data, Declaration.plain(bare, TABLE, np.ones(6), data), [arm])
    assert "robot" not in undecided_text(checks)


@pytest.mark.parametrize("robot", ["ur10e", "panda"])
def test_an_undeclared_payload_is_named_where_gains_are_estimated(robot: str) -> None:
    arm = load_robot(robot)
    for payload in (0.0, 3.0):
        data = samples(robot, payload=payload)
        checks = assess(data, Declaration.plain(arm, TABLE, np.ones(arm.dof), data, gains_known=False))
        found = {check.subject: SETUP[check.severity] for check in checks if check.severity != "ok"}
        assert found == ({"payload": "suspect"} if payload else {})


def joined(first: Samples, second: Samples) -> Samples:
    """Return the samples of two logs."""
    names = ("q", "qd", "qdd", "output")
    arrays = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in names}
    friction = np.concatenate([first.friction, second.friction], axis=1)
    log = np.concatenate([first.log, second.log + 1])
    return replace(first, friction=friction, log=log, duration=np.array([DURATION, DURATION]), **arrays)


def test_logs_with_and_without_a_payload_contradict_each_other() -> None:
    both = joined(samples(), samples(payload=3.0, seed=1))
    text = refusal(assess(both, Declaration.plain(load_robot("ur5e"), TABLE, np.ones(6), both)))
    assert text.startswith("the logs contradict each other: some logs carry a payload and others do not (log 2 about ")
    assert "--payload LOG=KG" in text


def test_a_wrong_centre_of_the_payload_of_one_log_is_named() -> None:
    robot, loaded = load_robot("ur5e"), samples(payload=3.0, seed=1)
    motion = loaded.q, loaded.qd, loaded.qdd

    def status(center: tuple[float, float, float]) -> str:
        load = inverse_dynamics(robot, *motion, gravity=TABLE, payload=Payload(3.0, center))
        known = load - inverse_dynamics(robot, *motion, gravity=TABLE)
        both = joined(samples(), replace(loaded, output=loaded.output - known[:, :, None]))
        checks = assess(both, Declaration.plain(robot, TABLE, np.ones(6), both))
        return next(SETUP[check.severity] for check in checks if check.subject == "logs")

    assert status((0.02, 0.0, 0.06)) == "ok"
    assert status((0.2, 0.0, 0.06)) == "suspect"


def test_wrong_gain_of_one_channel_is_named() -> None:
    data = samples()
    output = data.output.copy()
    output[:, 1] *= 1.5
    assert "gain" in findings(replace(data, output=output))


def test_late_outputs_are_named() -> None:
    assert "time shift" in findings(samples(shift=0.08))


def test_one_late_output_is_named_from_weak_evidence_on() -> None:
    data, late = samples(), samples(shift=0.028)
    output = data.output.copy()
    output[:, 3] = late.output[:, 3]
    assert findings(replace(data, output=output)).keys() == {"time shift"}


def test_joint_at_rest_carries_no_evidence() -> None:
    data = samples()
    output = data.output.copy()
    output[:, 5] = 3.0
    moving = np.array([True] * 5 + [False])
    assert findings(replace(data, output=output, moving=moving)) == {}


def test_friction_that_drives_the_joint_loses_evidence() -> None:
    data = samples()
    robot = load_robot("ur5e")
    right = evidence(data, Declaration.plain(robot, TABLE, np.ones(6), data))
    assert (right.dissipation > 3.0).all()
    output = data.output.copy()
    output[:, 5] *= -1.0
    wrong = evidence(replace(data, output=output), Declaration.plain(robot, TABLE, np.ones(6), data))
    assert wrong.dissipation[5] < -3.0
    assert wrong.log_evidence < right.log_evidence - 20.0


def scaled_output(joint: int, factor: float) -> Samples:
    data = samples()
    output = data.output.copy()
    output[:, joint] *= factor
    return replace(data, output=output)


@pytest.mark.parametrize(("joint", "factor"), [(5, 1.8), (5, 0.55)])
def test_a_gain_that_like_drives_contradict_is_suspect(joint: int, factor: float) -> None:
    data = scaled_output(joint, factor)
    checks = assess(data, Declaration.plain(load_robot("ur5e"), TABLE, np.ones(6), data))
    gain = next(check for check in checks if check.subject == "gain")
    assert gain.severity == "warning" and f"joint {joint + 1}" in gain.evidence


def test_a_gain_that_nothing_verifies_is_said() -> None:
    """Without effort limits there are no like drives, and joint 6 carries nothing."""
    arm = load_robot("ur5e")
    bare = replace(arm, joints=tuple(replace(joint, limits=Limits()) for joint in arm.joints))
    data = scaled_output(5, 1.8)
    checks = assess(data, Declaration.plain(bare, TABLE, np.ones(6), data))
    gain = next(check for check in checks if check.subject == "gain")
    assert gain.severity == "ok" and gain.code == "undecided"
    assert gain.evidence == "the data cannot decide: another gain of joint 6 would fit as well"
    assert "gain of joint 6 would" in undecided_text(checks)


def test_drives_are_compared_with_those_of_their_size() -> None:
    arm = load_robot("ur5e")
    levels = np.array([10.0, 10.0, 20.0, 1.0, 1.0, np.nan])
    found = like_drives("friction", levels, np.zeros(6), 0.1, arm)
    assert found.values[:5] == pytest.approx([-0.5 * np.log(2.0), -0.5 * np.log(2.0), np.log(2.0), 0.0, 0.0])
    assert found.spread[:3] == pytest.approx([0.1 * math.sqrt(1.5)] * 3)
    assert found.spread[3] == pytest.approx(0.1 * math.sqrt(2.0)) and np.isinf(found.spread[5])
