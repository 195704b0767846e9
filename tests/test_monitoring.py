"""The monitor: C against NumPy, contacts, payload, friction, damaged streams, files, real recordings."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from importlib import resources

import numpy as np
import pytest

import computed
import jointwise as jw
from cli_runs import UR10E
from data_files import needs_shared
from jointwise.errors import DataError, ModelError, ShapeError
from jointwise.estimation.structure import Structure
from jointwise.monitoring import (
    Monitor,
    Samples,
    Session,
    learn,
    monitor_log,
    reference_constants,
    residual_spread,
    tool_force,
)
from jointwise.monitoring.core import MOMENTS, SHARES, Reports, log_samples, stream_rate
from jointwise.monitoring.estimates import (
    FrictionMotion,
    colder_hint,
    friction_estimates,
    friction_status,
    more_motion,
)
from jointwise.monitoring.events import Events, advance, event_text
from jointwise.monitoring.history import History
from jointwise.monitoring.learn import MARGIN
from jointwise.monitoring.reference import ReferenceWatch
from jointwise.monitoring.reference_contact import ReferenceContact
from jointwise.monitoring.reference_state import WatchMemory
from jointwise.monitoring.session import part_of
from jointwise.monitoring.settings import core_monitor, known_spread
from jointwise.monitoring.summary import PayloadEstimate, TemperatureRange
from jointwise.monitoring.sums import StreamSums
from jointwise.monitoring.text import result_text
from jointwise.monitoring.verdict import _contact_reason, _impossible, _mismatch, thermal_note, warmer_than_known
from jointwise.options import Options
from jointwise.result.spread import LEAST_LIMIT, ChangeSpread, Tail
from jointwise.runtime.stream import NumpyCore
from synthetic import synthetic_log

QUICK = Options(structure=Structure(load="square"), free=(), position_cutoff=10.0, lag=0.0)
PAYLOAD = jw.Payload(3.0, (0.03, -0.05, 0.12))


@pytest.fixture(scope="module")
def robot():
    return jw.load_robot("ur5e")


def recorded(robot, seed, payload=None, duration=20.0):
    made = synthetic_log(
        robot, duration=duration, rate=100, seed=seed, payload=payload, load_dependence="square", hysteresis=False
    )
    return replace(made.log, torque=None)


@pytest.fixture(scope="module")
def model(robot):
    return jw.RobotModel(computed.calibrated(recorded(robot, 1), robot, options=QUICK))


@pytest.fixture(scope="module")
def free(robot):
    return recorded(robot, 2)


def pushed(model, log, force, start, length):
    """Return a log in which a force (N, base frame) acts at the tool; the arm does not give way."""
    acts = (log.t >= log.t[0] + start) & (log.t < log.t[0] + start + length)
    torque = model.jacobian(np.asarray(log.q))[:, :3].transpose(0, 2, 1) @ np.asarray(force, dtype=float)
    return replace(log, current=log.current - acts[:, None] * torque / model.gains)


def run(model, samples, **options):
    monitor = Monitor(model, stream_rate(samples.t), **options)
    return monitor.steps(monitor.init(), samples)


def _with_changes(spread):
    """Return a spread with arbitrary figures of sudden changes."""
    joints = len(spread.joints)
    change = ChangeSpread(100.0, ((1.2, -0.4),) * joints, (0.3,) * joints, (2.0,) * joints, Tail(4.0, 0.3))
    return replace(spread, change=change)


def damaged(samples):
    """Return a stream with a value that is missing, a repeated and a late stamp, a gap, a jump and a push."""
    t, q, output = np.array(samples.t), np.array(samples.q), np.array(samples.output)
    q[50, 0], t[80] = np.nan, t[79]
    t[90] -= 0.05
    t[200:] += 0.3
    q[250:, 2] += 1.0
    output[300:340, 1] += 2.0
    return replace(samples, t=t, q=q, output=output)


def numpy_watch(model, numbers):
    """Return the evaluator of the monitor in NumPy, at 100 Hz."""
    from jointwise.runtime.bodies import Bodies

    planned = model.calibration.for_use("feed-forward")
    return ReferenceWatch(model, NumpyCore(planned.model, planned.estimate.values, Bodies.of(planned), 100.0), numbers)


# -- kernels --


@pytest.mark.parametrize("has_speed", [True, False])
def test_c_and_numpy_agree_on_a_damaged_stream(model, free, has_speed):
    samples = damaged(part_of(log_samples(model, free), slice(0, 420)))
    samples = samples if has_speed else replace(samples, qd=None)
    monitor = Monitor(model, 100.0, has_speed=has_speed)
    spread, limits = _with_changes(known_spread(model)), (*monitor.limits[:2], 3.0 * has_speed)
    numbers = core_monitor(model, 100.0, spread, limits=limits, derived=not has_speed)
    numbers = replace(numbers, lag=0.013)
    from jointwise.monitoring.core import NativeWatch

    if has_speed:
        qd = np.array(samples.qd)
        qd[350:400] = 0.4
        samples = replace(samples, qd=qd)
    native, reference = NativeWatch(model.planned_core(100.0), numbers), numpy_watch(model, numbers)
    ours, memory = native.steps(native.init(), samples)
    theirs, other = reference.steps(reference.init(), samples)
    for name in ours.__dataclass_fields__:
        one, two = getattr(ours, name), getattr(theirs, name)
        assert np.abs(one - two).max() < 1e-9 * max(np.abs(one).max(), 1.0), name
    assert ours.contact.any()
    assert (ours.change.max() > 3.0) == has_speed
    assert (ours.frozen >= 8.0).any() == has_speed
    one, two = native.known(memory), reference.known(other)
    assert one.counts == two.counts
    assert np.abs(one.P - two.P).max() < 1e-9 * one.P.max()


def test_constants_of_the_reference_are_those_of_c():
    core = resources.files("jointwise.runtime") / "core"
    defined = re.findall(r"^#define (\w+) JW\(([^)]+)\)", (core / "monitor.c").read_text(), re.MULTILINE)
    defined += re.findall(r"^#define JW_(CHANGES|MOST_DELAY) (\d+)", (core / "monitor.h").read_text(), re.MULTILINE)
    ours = {name: value for name, value in vars(reference_constants).items() if name.isupper()}
    assert ours == {name: float(value) for name, value in defined}


def test_sample_by_sample_is_the_same_as_at_once(model, free):
    samples = damaged(part_of(log_samples(model, free), slice(0, 420)))
    whole, after = run(model, samples)
    monitor = Monitor(model, stream_rate(samples.t))
    state = monitor.init()
    for k in range(len(samples)):
        report, state = monitor.step(state, samples.t[k], samples.q[k], samples.output[k], samples.qd[k])
        assert (report.ratio[0] == whole.ratio[k]).all()
        assert (report.external[0] == whole.external[k]).all()
    assert (state.known.x == after.known.x).all()


def test_a_step_does_not_change_its_state(model, free):
    samples = log_samples(model, free)
    monitor = Monitor(model, 100.0)
    state = monitor.init()
    first = monitor.step(state, 0.0, samples.q[0], samples.output[0], samples.qd[0])[0]
    again = monitor.step(state, 0.0, samples.q[0], samples.output[0], samples.qd[0])[0]
    assert (first.residual == again.residual).all()


# -- contacts --


def test_a_free_log_is_quiet(model, free):
    result = monitor_log(model, free).result()
    assert result.status == "ok", result.reasons
    assert result.contacts == ()
    assert (np.array(result.external_torque_rms) < 2.0 * np.array(result.external_torque_deviation)).all()


def test_nothing_is_learned_before_the_filters_settle(model, free):
    moving = part_of(log_samples(model, free), slice(700, None))
    before = Monitor(model, 100.0).init().known.x
    early, later = (run(model, part_of(moving, slice(0, count)))[1].known.x for count in (20, 60))
    assert (early == before).all()
    assert (later != before).any()


@pytest.mark.parametrize("force", [(0.0, 40.0, 0.0), (30.0, 0.0, 30.0)])
def test_a_push_is_found_with_its_time_torque_and_force(model, free, force):
    log = pushed(model, free, force, 12.0, 1.0)
    (contact,) = monitor_log(model, log).result().contacts
    assert contact.start - log.t[0] == pytest.approx(12.1, abs=0.1)
    assert contact.end - log.t[0] == pytest.approx(13.25, abs=0.25)
    moments = (free.t > free.t[0] + 12.0) & (free.t < free.t[0] + 13.0)
    expected = model.jacobian(np.asarray(free.q))[moments, :3].transpose(0, 2, 1) @ np.array(force)
    largest = expected[np.abs(expected[:, contact.joint - 1]).argmax(), contact.joint - 1]
    assert contact.peak == pytest.approx(largest, rel=0.35, abs=3.0 * contact.deviation)
    assert np.linalg.norm(np.array(contact.force) - force) < 0.5 * np.linalg.norm(force)


def test_a_contact_ends_where_the_push_itself_reversed_a_joint(model):
    contact, memory = ReferenceContact(Monitor(model, 100.0).numbers), WatchMemory.empty(6)
    memory.contact, memory.joints.settled = True, np.full(6, 10.0)
    memory.joints.followed = np.full(6, 5.0)  # Nm, followed while the joints reversed
    memory.joints.at_rest = np.arange(6) == 5
    assert contact._recent_change(memory, np.full(6, 0.1)).tolist() == pytest.approx([0.1] * 5 + [-4.9])


def test_a_change_of_the_filter_is_no_push(model):
    """A payload that the filter attributes to a residual does not appear as a change of the other joints."""
    clock, m = numpy_watch(model, Monitor(model, 100.0).numbers).clock, WatchMemory.empty(6)
    rng, s = np.random.default_rng(0), m.joints
    m.P, s.columns = np.diag(rng.uniform(0.1, 1.0, len(m.x))), rng.normal(size=(6, MOMENTS))
    s.slow, s.followed, s.dry, s.slow_speed = rng.normal(size=(4, 6))
    s.at_rest, s.slow_grip = np.arange(6) > 2, (np.arange(6) > 1).astype(float)
    before = s.slow - clock.contact.explained(m) - s.followed
    clock._update(m, 0.05, np.ones(6))
    assert np.abs(m.x[:MOMENTS]).min() > 0.01
    np.testing.assert_allclose(s.slow - clock.contact.explained(m) - s.followed, before, atol=1e-12)


def test_nothing_is_learned_from_a_joint_that_breaks_away(model):
    """Dry friction that is not known yet does not become a change of friction or a payload."""
    changes = []
    for bound in (0.0, 5.0):
        clock, m = numpy_watch(model, Monitor(model, 100.0).numbers).clock, WatchMemory.empty(6)
        m.P, m.joints.dry, m.joints.slow = np.eye(len(m.x)), np.ones(6), np.ones(6)
        m.joints.loose_slow = np.full(6, bound)  # Nm
        clock._update(m, 0.05, np.full(6, 0.1))
        changes.append(m.x[MOMENTS::SHARES])
    assert (changes[0] > 0.9).all()
    assert (changes[1] < 0.1).all()


def test_friction_of_a_joint_at_rest_takes_up_a_load_that_changes(model):
    """A residual at rest that changes with the load is no push; one that changes without it is."""
    contact, memory = ReferenceContact(Monitor(model, 100.0).numbers), WatchMemory.empty(6)
    s, change = memory.joints, 0.8 * contact.friction
    s.at_rest, memory.moved = np.ones(6, dtype=bool), 10.0
    nothing = np.zeros(6)
    pushed = contact._relative_change(memory, change, nothing, nothing)
    s.usual, s.slow_load = nothing, 3.0 * contact.friction  # Nm, followed from 0 on
    assert (pushed > 100.0).all()
    assert (contact._relative_change(memory, change, nothing, nothing) == 0.0).all()
    s.usual = nothing
    assert (contact._relative_change(memory, 3.0 * change, nothing, nothing) > 100.0).all()


def test_what_the_filter_does_not_know_is_no_push(model):
    """The uncertainty of friction and payload counts for the changes of a joint in motion."""
    contact, memory = ReferenceContact(Monitor(model, 100.0).numbers), WatchMemory.empty(6)
    memory.joints.settled, ones = np.full(6, 10.0), np.ones(6)
    sure = contact._relative_change(memory, ones, 0.1 * ones, 0.0 * ones)
    memory.joints.usual = np.zeros(6)
    unsure = contact._relative_change(memory, ones, 0.1 * ones, ones)
    assert (sure > 100.0).all()
    assert (unsure < 1.0).all()


def test_motions_that_begin_anywhere_are_quiet():
    """Sections of bang-coast-bang motions: joints start, stop and rest at other times than those of the training."""
    made = [
        replace(jw.simulate("ur5e", kind, duration=30.0, rate=500.0, seed=s, keep=0).log, torque=None, theta=None)
        for kind, s in (("excitation", 41), ("bang-coast-bang", 61000), ("bang-coast-bang", 61001))
    ]
    fast = jw.RobotModel(jw.calibrate(made[0], jw.load_robot("ur5e"), options=QUICK))
    parts = [log.slice(first, first + 3000) for log in made[1:] for first in range(500, 12000, 700)]
    assert sum(bool(monitor_log(fast, part).contacts) for part in parts) == 0


def test_a_payload_that_is_not_known_well_is_not_impossible(model):
    """Torque at rest and negative mass are faults only beyond their errors; at standstill nothing was learned."""
    monitor = Monitor(model, 100.0)
    known, held = monitor.init().known, np.array([joint.held for joint in monitor.numbers.joints])
    x, P = np.zeros_like(known.x), np.diag(np.full(len(known.x), 1e-6))
    x[MOMENTS + 2 :: SHARES], P[MOMENTS + 2, MOMENTS + 2] = [5.0 * held[0], 0, 0, 0, 0, 0], held[0] ** 2
    free, heavy = ((0.0, (-0.1, 0.1)), (-1.2, (-1.5, -0.9)))
    found = []
    for scale, (mass, interval), moved, rested in (
        (1.0, free, 0.0, 2.0),
        (1.0, free, 5.0, 2.0),
        (0.01, free, 5.0, 2.0),
        (0.01, free, 5.0, 0.5),
        (1.0, (-1.2, (-2.7, 0.4)), 5.0, 2.0),
        (1.0, heavy, 5.0, 2.0),
    ):
        sums = StreamSums(6, 0.0, 0.01, np.ones(6))
        sums.moved[1], sums.rested[:] = moved, rested
        payload = PayloadEstimate("ok", mass, interval, None, None, 0.0)
        state = replace(known, x=x, P=scale * P, rest=np.ones(6, dtype=bool))
        found.append(_impossible(monitor, state, payload, (), sums))
    assert [bool(lines) for lines in found] == [True, False, True, False, False, True]
    assert "hold at joint 1)" in found[0][0]
    assert "negative payload of -1.2 kg" in found[5][0]


def test_the_same_push_on_shuffled_currents_is_no_single_contact(model, free):
    order = np.random.default_rng(0).permutation(free.samples)
    result = monitor_log(model, replace(free, current=np.asarray(free.current)[order])).result()
    assert result.status == "fault"
    assert "does not explain" in result.reasons[0]


def simulated(seed, duration, **options):
    """Return the log of a simulated UR5e with elastic joints at 500 Hz."""
    log = jw.simulate("ur5e", "excitation", duration=duration, rate=500.0, seed=seed, keep=0, **options).log
    return replace(log, torque=None, theta=None)


@pytest.fixture(scope="module")
def training():
    return simulated(1, 30.0)


@pytest.fixture(scope="module")
def fast(training, robot):
    return jw.RobotModel(computed.calibrated(training, robot, options=QUICK))


def test_a_sudden_push_is_found_within_20_ms(fast, training):
    free = simulated(2, 8.0)
    change = residual_spread(fast, [training], "training").change
    assert change.rate == pytest.approx(500.0)
    samples, start = log_samples(fast, free), 6.0
    assert Monitor(fast, 500.0).uses_changes
    assert not Monitor(fast, 100.0).uses_changes
    assert not Monitor(fast, 500.0, has_speed=False).uses_changes
    quiet = run(fast, samples)[0]
    assert quiet.change[samples.t > 0.5].max() < Monitor(fast, 500.0).limits[2]
    assert not quiet.contact[samples.t < start + 0.3].any()
    push = jw.Push(start, 0.3, (0.0, 14.0, 14.0))
    events = jw.Events(pushes=[push])
    pushed_samples = log_samples(fast, simulated(2, 8.0, events=events))
    found = np.flatnonzero(run(fast, pushed_samples)[0].contact)
    assert 0.0 <= pushed_samples.t[found[0]] - start <= 0.02
    old = replace(fast.calibration, spread=replace(fast.calibration.spread, change=None))
    late = np.flatnonzero(run(jw.RobotModel(old), pushed_samples)[0].contact)
    assert len(late) == 0 or late[0] > found[0]


@pytest.mark.parametrize(("seed", "force"), [(2, (0.0, 30.0, 30.0)), (3, (-40.0, 0.0, 0.0)), (4, (0.0, -20.0, 50.0))])
def test_a_contact_has_no_torque_or_force_before_they_have_settled(fast, seed, force):
    """Elastic joints swing for some 20 ms after a push, and show several times its torque."""
    log = simulated(seed, 8.0, events=jw.Events(pushes=[jw.Push(6.0, 0.8, force)]))
    events = []
    monitor_log(fast, log, on_event=events.append)
    begin, update, end = events
    assert [event.stage for event in events] == ["begin", "update", "end"]
    assert (begin.peak, begin.force, begin.force_deviation) == (None, None, None)
    for event in (update, end):
        assert event.force is not None
        assert np.linalg.norm(event.force) == pytest.approx(np.linalg.norm(force), rel=0.15)
        assert event.force_deviation < 0.2 * np.linalg.norm(force)
    index = int(np.searchsorted(log.t, 6.07))
    torque = fast.jacobian(np.asarray(log.q[index]))[:3].T @ np.array(force)
    assert update.peak == pytest.approx(torque[update.joint - 1], abs=2.0 * update.deviation)
    assert event_text(begin).endswith("contact")
    assert re.search(r"Nm, tool force \d+ ± \d+ N$", event_text(update))


@pytest.mark.parametrize(("pause", "sign", "count"), [(0.1, 1.0, 1), (0.1, -1.0, 2), (0.5, 1.0, 2)])
def test_torques_of_one_sign_with_a_short_pause_are_one_push(model, free, pause, sign, count):
    samples = part_of(log_samples(model, free), slice(0, 600))
    again = 140 + round(100.0 * pause)
    flags, torque = np.zeros(600), np.zeros((600, 6))
    flags[100:140], flags[again : again + 50] = 1.0, 1.0
    torque[100:140, 1], torque[again : again + 50, 1] = 5.0, 7.0 * sign
    reports = run(model, samples)[0]
    ratio = np.abs(torque)
    reports = replace(reports, contact=flags, residual=torque, external=torque, ratio=ratio, joint=np.ones(600))
    at_once, _ = advance(model, Events(), samples, reports)
    assert sum(event.stage == "end" for event in at_once) == count
    assert at_once[-1].peak == pytest.approx(7.0 * sign)
    one_by_one, state = [], Events()
    for k in range(600):
        row = Reports(*(getattr(reports, name)[k : k + 1] for name in reports.__dataclass_fields__))
        found, state = advance(model, state, part_of(samples, slice(k, k + 1)), row)
        one_by_one += found
    assert one_by_one == at_once


def test_noisier_joints_than_those_of_the_training_are_no_contact(fast):
    samples = log_samples(fast, simulated(2, 30.0))
    error = np.diff(np.asarray(samples.qd), 3, axis=0).std(axis=0) / np.sqrt(20.0)  # of white noise, which dominates it
    noise = np.random.default_rng(0).normal(size=samples.qd.shape) * np.array([6.0, 0.0, 0.0, 0.0, 0.0, 0.0]) * error
    reports = run(fast, replace(samples, qd=samples.qd + noise))[0]
    assert reports.change[samples.t > 1.0].max() < Monitor(fast, 500.0).limits[2]
    assert not reports.contact.any()


def test_the_contact_that_is_named_has_the_largest_torque(model, free):
    once = pushed(model, free, (0.0, 25.0, 0.0), 8.0, 1.0)
    result = monitor_log(model, pushed(model, once, (60.0, 0.0, 60.0), 14.0, 1.0)).result()
    largest = max(result.contacts, key=lambda contact: abs(contact.peak))
    assert f"2 contacts, the largest torque {largest.peak:+.3g} Nm at joint {largest.joint}" in result.reasons
    assert _contact_reason([replace(c, ratio=1.0 / abs(c.peak)) for c in result.contacts]) in result.reasons
    assert _contact_reason([largest]) == f"1 contact, {largest.peak:+.3g} Nm at joint {largest.joint}"


def test_a_stream_that_the_model_does_not_explain_without_contacts_has_no_count_of_them(model):
    sums = StreamSums(6, 0.0, 0.01, np.ones(6), samples=1000, in_contact=450)
    sums.duration = 10.0
    assert "(45 % of it is beyond the thresholds)" in _mismatch(model, sums, 0, 0)[0]
    assert "(45 % of it is beyond the thresholds in 1 contact)" in _mismatch(model, sums, 1, 0)[0]


def test_poses_that_the_training_does_not_cover_are_named(model):
    """Residuals within the uncertainty of the model in these poses are not a sign of another robot."""
    poses = np.zeros((20, 6))
    low, high = model.torque_interval(poses, poses, poses, observation=False)
    half = 0.5 * (high - low)[0]
    hints = []
    for part in (1.2, 1.7):
        sums = StreamSums(6, 0.0, 0.01, np.ones(6), samples=1000, in_contact=450, duration=10.0, poses=list(poses))
        sums.square[1], sums.deviation[:] = 1000.0 * (part * half[1]) ** 2, 1000.0 * 0.3 * half[1]
        hints.append(_mismatch(model, sums, 1, 0)[0])
    assert f"(joint 2 by {half[1]:.2g} Nm): calibrate with logs that cover them" in hints[0]
    assert hints[1].endswith("units of its channels")


def test_the_time_at_rest_counts_from_the_last_motion(model, free):
    samples = log_samples(model, free)
    reports, _ = run(model, samples)
    rest, sums = np.zeros((100, 6)), StreamSums(6, 0.0, 0.01, np.ones(6))
    rest[30:, 0] = rest[:, 1] = rest[:99, 2] = 1.0
    cut = Reports(*(getattr(reports, f.name)[:100] for f in fields(reports)))
    for piece in (slice(0, 40), slice(40, 100)):
        part = Reports(*(getattr(replace(cut, rest=rest), f.name)[piece] for f in fields(reports)))
        sums.add(part_of(samples, piece), part)
    assert sums.rested.tolist() == pytest.approx([0.7, 1.0, 0.0, 0.0, 0.0, 0.0])


def test_few_poses_of_a_long_stream_are_kept(model, free):
    samples = log_samples(model, free)
    reports, _ = run(model, samples)
    sums = StreamSums(6, 0.0, 0.01, np.ones(6))
    for k in range(0, len(samples), 7):  # chunks of a live stream
        piece = slice(k, k + 7)
        sums.add(part_of(samples, piece), Reports(*(getattr(reports, f.name)[piece] for f in fields(reports))))
    assert 64 <= len(sums.poses) <= 128
    assert sums.every == 16
    np.testing.assert_array_equal(np.array(sums.poses), np.asarray(samples.q)[::16])


def test_a_singular_arm_has_no_tool_force(model):
    upright = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])
    pose = np.array([0.3, -1.2, 1.5, -0.8, 0.9, 0.2])
    J = model.jacobian(pose)[:3]
    assert tool_force(model, pose, J.T @ [10.0, -5.0, 3.0], np.ones(6)) == pytest.approx((10.0, -5.0, 3.0))
    assert tool_force(model, pose, J.T @ [10.0, -5.0, 3.0], np.full(6, 20.0)) is None
    assert tool_force(model, upright, np.ones(6), np.full(6, 5.0)) is None
    assert tool_force(model, np.full(6, np.nan), np.ones(6)) is None


def test_fewer_false_alarms_mean_higher_thresholds(model):
    spread = replace(model.calibration.spread, slow=Tail(3.0, 0.3), fast=Tail(0.0, 0.1))
    wide = replace(model, calibration=replace(model.calibration, spread=spread))
    limits = [Monitor(wide, 100.0, false_alarms=rate).limits for rate in (100.0, 1.0, 0.01)]
    assert limits[0][1] < limits[1][1] < limits[2][1]
    assert {fast for fast, _, _ in limits} == {LEAST_LIMIT}


def test_the_limit_is_the_quantile_of_the_tail():
    tail = Tail(10.0, 1.0)
    largest = np.random.default_rng(0).gumbel(10.0, 1.0, 200_000)
    assert np.mean(largest > tail.limit(36.0)) == pytest.approx(0.01, rel=0.1)
    assert Tail(0.0, 0.1).limit(1.0) == LEAST_LIMIT


def test_thresholds_come_from_the_residuals(model, free):
    noisy = replace(free, current=free.current + np.random.default_rng(0).normal(0.0, 0.2, free.current.shape))
    quiet, loud = (residual_spread(model, [log], "validation") for log in (free, noisy))
    assert all(b.fast[0] > a.fast[0] for a, b in zip(quiet.joints, loud.joints, strict=True))
    training = residual_spread(model, [free], "training")
    ratio = training.joints[0].slow[0] / quiet.joints[0].slow[0]
    assert ratio == pytest.approx(MARGIN["training"] / MARGIN["validation"], rel=0.1)


def test_the_spread_of_long_logs_is_that_of_pieces_of_them(model, free, monkeypatch):
    """Pieces from all over the logs give nearly the spread of the whole, from a bounded number of samples."""
    whole = residual_spread(model, [free], "training")
    monkeypatch.setattr(learn, "PIECE", 250)
    monkeypatch.setattr(learn, "MOST_SAMPLES", 1000)
    some = residual_spread(model, [free], "training")
    assert 0.35 * whole.seconds < some.seconds <= 0.5 * whole.seconds
    reports = run(model, log_samples(model, free))[0]
    means = [
        np.mean([learn.features(reports, j) @ joint.fast for j, joint in enumerate(spread.joints)])
        for spread in (whole, some)
    ]
    assert means[1] == pytest.approx(means[0], rel=0.4)


# -- payload and friction --


@pytest.mark.parametrize(("has_speed", "most"), [(True, 0.005), (False, 0.02)])
@pytest.mark.parametrize("rate", [100.0, 500.0])
def test_inertia_is_not_read_as_friction(model, rate, has_speed, most):
    """An acceleration that lags by δ turns the inertia M of a motion of frequency ω into a friction of -M δ ω² q̇.

    Without measured speeds, dry friction passes their filter, which attenuates it by 1 % in this motion.
    """
    t, omega = np.arange(0.0, 40.0, 1.0 / rate), 4.0 * np.sqrt(np.arange(2.0, 8.0)) / 2.0
    middle = np.array([0.0, -1.0, 1.0, 0.0, 0.5, 0.0])
    q, qd = middle + 0.3 * np.sin(np.outer(t, omega)), 0.3 * omega * np.cos(np.outer(t, omega))
    log = jw.Log(t=t, q=q, qd=qd, current=np.zeros_like(q))
    log = replace(log, current=jw.predict(model, log), qd=qd if has_speed else None)
    friction = monitor_log(model, log).result().friction
    assert max(abs(joint.change) for joint in friction) < most


def test_the_payload_is_found_and_a_wrong_declaration_reported(robot, model):
    log = recorded(robot, 3, PAYLOAD)
    found = monitor_log(model, log).result()
    assert found.contacts == ()
    assert found.status == found.payload.status == "watch"
    assert found.payload.mass == pytest.approx(3.0, rel=0.03)
    assert found.payload.mass_interval[0] < 3.0 < found.payload.mass_interval[1]
    assert found.payload.com == pytest.approx(PAYLOAD.center_of_mass, abs=0.02)
    declared = monitor_log(model, log, payload=PAYLOAD).result()
    assert (declared.status, declared.payload.status) == ("ok", "ok")
    wrong = monitor_log(model, log, payload=jw.Payload(2.0, (0.0, 0.0, 0.1))).result()
    assert wrong.payload.status == "watch"
    assert "instead of 2.00 kg" in wrong.reasons[0]


@pytest.mark.parametrize("mass", [0.0, 0.6])
def test_stop_and_go_shows_no_payload_that_is_not_there(fast, mass):
    """Friction where joints break away and stop is not that of the training log, and no payload."""
    plant = jw.PlantOptions(payload=jw.Payload(mass, (0.0, 0.0, 0.05)) if mass else None)
    log = jw.simulate("ur5e", "waypoints", rate=500.0, seed=11, keep=0, plant=plant).log
    payload = monitor_log(fast, replace(log, torque=None, theta=None)).result().payload
    assert payload.status == ("watch" if mass else "ok")
    assert payload.mass_interval[0] < mass < payload.mass_interval[1]


def test_more_friction_is_found_at_its_joint(model, robot):
    log = recorded(robot, 4, duration=40.0)
    dry = model.friction(np.sign(log.qd) * 0.05)  # the dry part of the synthetic robot is a sign
    more = replace(log, current=log.current + 0.25 * dry * [0, 0, 1, 0, 0, 0] / model.gains)
    result = monitor_log(model, more).result()
    assert [joint.status for joint in result.friction] == ["unknown", "unknown", "watch", *["unknown"] * 3]
    unknown = [joint.change_error for joint in result.friction if joint.status == "unknown"]
    assert min(unknown) > 0.05  # 10 % more would not be seen in 40 s
    assert result.friction[2].a1 == pytest.approx(1.25, abs=0.08)
    assert "joint 3" in result.reasons[0]


# -- damaged streams --


def trained_at(model, level):
    """Return the model as if its training log had joints of a temperature (degC), or none (None)."""
    calibration = model.calibration
    warm = None if level is None else (level,) * model.dof
    logs = tuple(replace(source, temperatures=warm) for source in calibration.provenance.logs)
    return replace(model, calibration=replace(calibration, provenance=replace(calibration.provenance, logs=logs)))


def in_motion(model, warmer, speed=0.0):
    """Return a minute of motion at a mean speed (rad/s) with dry friction of 10 Nm and 5 Nm s/rad."""
    full = [np.full(model.dof, value) for value in (60.0, speed, 10.0, 5.0)]
    return FrictionMotion(*full, np.broadcast_to(warmer, model.dof))


@pytest.mark.parametrize(
    ("a1", "a2", "warmer", "status"),
    [
        (0.09, -2.0, 0.0, "ok"),  # one log does not separate dry from viscous friction
        (-0.04, 3.0, 0.0, "watch"),
        (0.0, -3.0, 2.0, "ok"),
        (0.0, -3.0, 0.0, "watch"),
        (0.08, -1.0, 0.0, "ok"),
        (0.08, -1.0, 2.0, "watch"),  # a warmer joint has less friction
    ],
)
def test_friction_is_judged_by_its_torque_in_the_motion(model, a1, a2, warmer, status):
    known = Monitor(model, 100.0).init().known
    x = known.x.copy()
    x[MOMENTS::SHARES], x[MOMENTS + 1 :: SHARES] = a1, a2
    known = replace(known, x=x, P=1e-6 * np.eye(len(x)))
    judged = friction_estimates(known, in_motion(model, warmer, speed=0.5), np.ones(model.dof, dtype=bool))
    assert {joint.status for joint in judged} == {status}
    assert judged[0].change == pytest.approx(a1 + a2 * 0.5 / 10.0)
    assert judged[0].change_deviation == pytest.approx(1e-3 * np.hypot(1.0, 0.05))
    explained = 0.02 * (warmer > 0.0)  # at least: 2 K (0.5 % + 2 % · 5 Nm s/rad · 0.5 rad/s / 10 Nm)
    if status == "watch" and a1 > 0.0:
        assert judged[0].unexplained == pytest.approx(judged[0].change + explained)


def test_unknown_friction_has_a_reason(model, free):
    """In text and JSON: how much more motion is needed, or why more motion does not help."""
    result = monitor_log(model, free).result()
    assert {joint.reason for joint in result.friction} == {"temperatures are not measured"}
    text = result_text(result)
    assert "    status                   unknown j1 j2 j3 j4 j5 j6" in text
    assert "j1 j2 j3 j4 j5 j6 unknown: temperatures are not measured" in text
    known = replace(Monitor(model, 100.0).init().known, P=0.017**2 * np.eye(MOMENTS + SHARES * model.dof))
    motion = replace(in_motion(model, 0.0), moved=np.array([15.0, 0.0, 60.0, 60.0, 60.0, 60.0]))
    motion = replace(motion, warmer=np.array([0.0, 0.0, 0.0, 20.0, 0.0, 0.0]))
    judged = friction_estimates(known, motion, np.arange(6) != 4)
    assert [joint.reason for joint in judged] == [
        "about 20 s more of this motion are needed",
        "it does not move",
        "",
        "temperatures may hide 10 % more",
        "its output is not measured",
        "",
    ]
    assert judged[0].to_dict()["reason"] == judged[0].reason


def test_more_motion_makes_ten_per_cent_visible():
    time = 15.0 + more_motion(15.0, 0.017, 0.0)  # the filter has forgotten the first seconds: the error stays
    assert 2.0 * 0.017 * (1.0 + 60.0 / time) == pytest.approx(0.1, rel=0.02)
    assert more_motion(30.0, 0.01, 0.0) == 0.0
    assert more_motion(15.0, 0.017, 0.05) > more_motion(15.0, 0.017, 0.0)
    assert more_motion(600.0, 0.06, 0.0) is None


@pytest.mark.parametrize(
    ("trained", "level", "change", "status"),
    [
        (25.0, 45.0, -0.15, "unknown"),  # 10 % more friction would not be seen
        (25.0, 30.0, -0.04, "ok"),
        (25.0, 45.0, +0.10, "watch"),
        (25.0, 45.0, -0.35, "watch"),
        (25.0, 25.0, -0.15, "watch"),
        (25.0, 25.0, +0.050, "watch"),
        (25.0, 25.0, +0.040, "ok"),
        (25.0, 5.0, +0.15, "unknown"),
        (25.0, 5.0, -0.10, "watch"),
        (None, 45.0, -0.15, "watch"),
        (25.0, None, -0.15, "watch"),
        (None, 45.0, 0.0, "unknown"),
        (25.0, None, 0.0, "unknown"),
    ],
)
def test_warming_explains_less_friction_and_nothing_else(model, trained, level, change, status):
    temperatures = [] if level is None else [np.full(model.dof, level)] * 3
    warmer = warmer_than_known(trained_at(model, trained), temperatures)
    monitor = Monitor(model, 100.0)
    known = monitor.init().known
    x, deviations = known.x.copy(), np.full(len(known.x), 1e-3)
    x[MOMENTS::SHARES] = change
    judged = friction_estimates(
        replace(known, x=x, P=np.diag(deviations**2)), in_motion(model, warmer), np.ones(model.dof, dtype=bool)
    )
    assert {joint.status for joint in judged} == {status}
    unknown = trained is None or level is None
    assert len(thermal_note(warmer)) == (unknown or trained != level)
    assert ("not measured" in " ".join(thermal_note(warmer))) == unknown


def test_temperatures_of_the_calibration_are_stored(tmp_path, model, free, robot):
    assert model.calibration.provenance.temperatures is None
    warm = np.linspace(20.0, 30.0, free.samples)[:, None] + np.arange(6.0)
    calibration = jw.calibrate(replace(recorded(robot, 1), temperature=warm), robot, options=QUICK, physical=False)
    jw.save_model(calibration, tmp_path / "model.json")
    low, high = jw.load_model(tmp_path / "model.json").calibration.provenance.temperatures
    np.testing.assert_allclose(low, 25.0 + np.arange(6.0), atol=0.01)
    assert low == high


def test_every_dropped_sample_is_counted_and_the_monitor_recovers(model, free):
    log = pushed(model, free, (0.0, 50.0, 0.0), 15.0, 1.0)
    samples = log_samples(model, log)
    t, output = np.array(samples.t), np.array(samples.output)
    output[300:305] = np.nan
    t[400:403] = t[399]
    order = np.arange(len(t))
    order[500:502] = order[501], order[500]
    session = Session(model, "stream")
    session.feed(part_of(replace(samples, t=t, output=output), order))
    result = session.result()
    assert result.data.dropped == {"not finite": 5, "repeated": 3, "reordered": 1}
    assert result.data.samples == len(t) - 9
    assert len(result.contacts) == 1
    assert result.contacts[0].start == pytest.approx(float(t[0]) + 15.1, abs=0.1)


@pytest.mark.parametrize("kind", ["gap", "jump", "restart", "late stamps"])
def test_breaks_do_not_look_like_contacts(model, free, kind):
    samples = log_samples(model, free)
    t, q = np.array(samples.t), np.array(samples.q)
    if kind == "gap":
        t[900:] += 7.0
    elif kind == "jump":
        q[900:, 0] += 2.0 * np.pi
    elif kind == "restart":
        t[900:] -= t[900] - t[0]
    else:
        t[900] += 1000.0
    result = _fed(model, replace(samples, t=t, q=q))
    assert result.contacts == ()
    if kind == "restart":
        assert result.duration == pytest.approx(samples.t[-1] - samples.t[0], abs=0.2)  # samples until it is noticed
    assert result.data.status == "watch"
    assert sum(result.data.breaks.values()) in (1, 2)


def test_frozen_and_saturated_channels_are_faults(model, free):
    samples = log_samples(model, free)
    moves = int(np.argmax(np.abs(samples.qd[:, 0]) > 0.4))
    q, output = np.array(samples.q), np.array(samples.output)
    q[moves : moves + 60, 0] = q[moves, 0]
    result = _fed(model, replace(samples, q=q))
    assert {(fault.joint, fault.kind) for fault in result.data.faults} == {(1, "position repeats")}
    assert result.status == "fault"
    qd = np.array(samples.qd)
    qd[moves : moves + 100, 0] = 0.0
    still = _fed(model, replace(samples, qd=qd))
    assert {(fault.joint, fault.kind) for fault in still.data.faults} == {(1, "speed repeats")}
    assert still.contacts == ()
    output[:, 0] = np.clip(output[:, 0], -0.3, 0.3)
    clipped = _fed(model, replace(samples, output=output))
    saturated = [fault for fault in clipped.data.faults if fault.kind == "output is saturated"]
    (line,) = (reason for reason in clipped.reasons if "output is saturated" in reason)
    assert len(saturated) > 1
    assert line == clipped.reasons[0]  # before what may follow from it
    assert line.startswith(f"joint 1: output is saturated {len(saturated)} times, first at {saturated[0].start:.3f} s")


def _fed(model, samples):
    session = Session(model, "stream")
    session.feed(samples)
    return session.result()


def test_what_runs_without_some_channels_is_listed(model, free):
    bare = monitor_log(model, replace(free, qd=None)).result()
    assert any("momentum observer" in line for line in bare.missing)
    assert bare.contacts == ()
    less = monitor_log(model, free.ignore_output([4])).result()
    assert any("joint 5" in line for line in less.missing)
    strong = pushed(model, replace(free, qd=None), (0.0, 60.0, 0.0), 12.0, 1.0)
    assert len(monitor_log(model, strong).result().contacts) == 1


def test_a_joint_without_output_has_no_external_torque(model, free):
    """It is missing in text and JSON, and the force at the tool is that which the other joints show."""
    force = (0.0, 40.0, 0.0)
    result = monitor_log(model, pushed(model, free, force, 12.0, 1.0).ignore_output([3])).result()
    assert [value is None for value in result.external_torque_rms] == [False, False, False, True, False, False]
    assert result.to_dict()["external_torque_deviation"][3] is None
    assert "  -  " in result_text(result)
    (contact,) = result.contacts
    assert np.linalg.norm(np.array(contact.force) - force) < 0.5 * np.linalg.norm(force)


def test_more_friction_with_speed_alone_is_named_where_temperatures_lack(model, free):
    joint = replace(monitor_log(model, free).result().friction[1], status="watch", a2=4.0, a2_deviation=1.0, a1=1.0)
    assert "joint 2: with speed only, as of a colder joint" in colder_hint([joint], None)
    assert colder_hint([joint], TemperatureRange("ok", (), (), ())) == ""
    assert colder_hint([replace(joint, a1=1.5, a1_deviation=0.1)], None) == ""


def test_other_robots_are_noticed(model, robot):
    with pytest.raises(ModelError, match="2 joints"):
        monitor_log(model, recorded(jw.load_robot("planar2"), 1, duration=5.0))
    other = monitor_log(model, recorded(jw.load_robot("ur10e"), 5)).result()
    assert other.status == "fault"
    assert "check that it is of this robot" in other.reasons[0]


@pytest.mark.parametrize("wrong", ["signs", "order", "ceiling"])
def test_wrong_declarations_are_noticed_at_rest(model, wrong):
    pose = np.tile([0.3, -0.6, 0.9, -1.0, 0.5, 0.2], (800, 1))
    noise = np.random.default_rng(0).normal(0.0, 0.02, pose.shape)
    torque = model.gravity(pose)
    still = Samples(0.01 * np.arange(800), pose, torque / model.gains + noise, np.zeros_like(pose))
    loaded = model.with_payload(3.0, (0.0, 0.0, 0.1)).gravity(pose) / model.gains + noise
    for right in (still, replace(still, output=loaded)):
        assert _fed(model, right).status in ("ok", "watch")
    watched = model.with_mounting("ceiling") if wrong == "ceiling" else model
    outputs = {"signs": -still.output, "order": still.output[:, [0, 2, 1, 3, 4, 5]], "ceiling": still.output}
    result = _fed(watched, replace(still, output=outputs[wrong]))
    assert result.status == "fault"
    assert "does not explain" in result.reasons[0]
    assert result.contacts == ()


def test_signs_that_a_pose_does_not_show_are_listed(model, free):
    pose = np.tile([0.3, -0.6, 0.9, -1.0, 0.5, 0.2], (800, 1))
    still = Samples(0.01 * np.arange(800), pose, model.gravity(pose) / model.gains, np.zeros_like(pose))
    for joint in range(model.dof):
        wrong = replace(still, output=still.output * np.where(np.arange(model.dof) == joint, -1.0, 1.0))
        result = _fed(model, wrong)
        listed = next((line for line in result.missing if line.startswith("sign of joint")), "").split(":")[0]
        assert result.status == "fault" or str(joint + 1) in listed
    assert "6" in listed
    assert "2" not in listed
    assert not any("sign of joint" in line for line in monitor_log(model, free).result().missing)


def test_the_wrong_sign_of_one_wrist_current_is_a_fault(model, robot):
    log = recorded(robot, 6, duration=30.0)
    result = monitor_log(model, replace(log, current=log.current * [1.0, 1.0, 1.0, 1.0, 1.0, -1.0])).result()
    assert result.status == "fault"
    assert "does not explain" in result.reasons[0]


def test_wrong_input(model, free):
    with pytest.raises(DataError, match="no channel 'current'"):
        monitor_log(model, replace(free, current=None))
    with pytest.raises(ModelError, match="false_alarms"):
        Monitor(model, 100.0, false_alarms=0.0)
    with pytest.raises(ModelError, match="rate"):
        Monitor(model, -1.0)
    samples = log_samples(model, free)
    with pytest.raises(ShapeError, match="output must have shape"):
        run(model, replace(samples, output=samples.output[:, :5]))
    with pytest.raises(ShapeError, match="qd must be given"):
        monitor = Monitor(model, 100.0)
        monitor.steps(monitor.init(), replace(samples, qd=None))
    with pytest.raises(DataError, match="stamps"):
        _fed(model, Samples(np.zeros(100), samples.q[:100], samples.output[:100]))
    with pytest.raises(DataError, match="no samples"):
        Session(model, "stream").result()
    with pytest.raises(DataError, match="are its stamps in s"):
        _fed(model, replace(samples, t=samples.t * 1e6))


# -- files --


def test_the_spread_is_stored_and_files_without_it_load(tmp_path, model, free):
    jw.save_model(model, tmp_path / "model.json")
    loaded = jw.load_model(tmp_path / "model.json")
    assert loaded.calibration.spread == model.calibration.spread
    document = json.loads((tmp_path / "model.json").read_text())
    del document["spread"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = jw.load_model(tmp_path / "old.json")
    result = monitor_log(old, free).result()
    assert (result.status, result.thresholds) == ("ok", "assumed")
    document["spread"] = {"joints": [], "fast": {}, "slow": {}, "seconds": 1, "source": "training"}
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match="spread"):
        jw.load_model(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("change", "error", "status"),
    [
        (0.0, 0.01, "ok"),
        (0.05, 0.01, "watch"),
        (0.05, 0.03, "ok"),
        (-0.05, 0.01, "ok"),
        (-0.13, 0.01, "watch"),
        (0.08, 0.051, "unknown"),
        (0.11, 0.051, "watch"),
    ],
)
def test_friction_is_ok_only_where_ten_per_cent_more_would_be_seen(change, error, status):
    assert friction_status(change, error) == status


def test_two_short_runs_are_no_trend(tmp_path, model, free):
    """Errors of a model repeat at the poses of a short run: only long ones show a change of 15 % of dry friction."""
    from datetime import UTC, datetime

    result = monitor_log(model, free).result()
    for moved, watched in ((20.0, False), (600.0, True)):
        history = History(tmp_path / f"{moved:g}.sqlite")
        for year, change in ((2024, 0.0), (2025, 0.15)):
            found = {"unexplained": change, "change_deviation": 0.02, "moved": moved}
            joints = [replace(joint, **found) for joint in result.friction]
            history.add(replace(result, friction=tuple(joints)), robot="r", date=datetime(year, 1, 1, tzinfo=UTC))
            if year == 2024:
                assert "nothing to compare with yet" in history.summary("r")
        assert any(trend.status == "watch" for trend in history.trends("r")) == watched


def test_the_history_judges_the_number_that_the_status_of_a_run_refers_to(tmp_path, model, free):
    """Parts of friction that cancel in the motion are no change; a change against the model alone is said to be one."""
    from datetime import UTC, datetime

    result = monitor_log(model, free).result()
    calm = {"a1": 1.0, "a1_deviation": 0.01, "change_deviation": 0.001, "moved": 600.0, "unexplained": 0.0}
    for name, later, watched in (
        ("parts", {"a1": 1.3}, 0),
        ("change", {"unexplained": 0.1}, 1),
        ("model", {"unexplained": 0.03, "status": "watch"}, 0),
    ):
        history = History(tmp_path / f"{name}.sqlite")
        for year, values in ((2024, calm), (2025, {**calm, **later})):
            joints = (replace(result.friction[0], **values), *result.friction[1:])
            history.add(replace(result, friction=joints), robot="r", date=datetime(year, 1, 1, tzinfo=UTC))
        changed = [trend for trend in history.trends("r") if trend.status == "watch"]
        assert [(trend.joint, trend.quantity) for trend in changed] == [(1, "friction")] * watched
        text = history.summary("r")
        assert ("no significant change" in text) == (not watched)
        assert ("joint 1: friction +3 % against the model in the latest run, but +3 ±" in text) == (name == "model")


def test_runs_with_another_payload_or_a_fault_are_not_part_of_the_friction_of_a_history(tmp_path, model, free):
    from datetime import UTC, datetime

    result, history = monitor_log(model, free).result(), History(tmp_path / "h.sqlite")
    joints = tuple(replace(joint, moved=60.0) for joint in result.friction)
    loaded = replace(result.payload, status="watch")
    for year, changes in enumerate(({}, {"payload": loaded}, {"status": "fault"}), start=2024):
        history.add(replace(result, friction=joints, **changes), robot="r", date=datetime(year, 1, 1, tzinfo=UTC))
    assert len(history.runs("r")) == 3 and len(history.series("r", 1)) == 1
    assert "nothing to compare with yet" in history.summary("r")
    with pytest.raises(DataError, match="quantity must be friction, a1, a2, stiffness"):
        history.series("r", 1, "backlash")


def test_history_shows_what_changed_since_commissioning(tmp_path, model, free):
    from datetime import UTC, datetime, timedelta

    history = History(tmp_path / "robot.sqlite")
    result = monitor_log(model, free).result()
    for month in range(8):
        worn = [replace(joint, unexplained=0.03 * month * (joint.joint == 2), moved=60.0) for joint in result.friction]
        date = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=30 * month)
        history.add(replace(result, friction=tuple(worn)), robot="cell7", date=date)
        history.add(replace(result, friction=tuple(worn)), robot="cell7", date=date)  # replaced, not doubled
    assert len(history.runs("cell7")) == 8
    watched = [trend for trend in history.trends("cell7") if trend.status == "watch"]
    assert [(trend.joint, trend.quantity) for trend in watched] == [(2, "friction")]
    assert watched[0].per_year == pytest.approx(0.03 * 365.25 / 30.0, rel=0.01)
    assert "joint 2: friction +15" in history.summary("cell7")
    assert History(tmp_path / "robot.sqlite").robots() == ["cell7"]
    (tmp_path / "text.sqlite").write_text("no data base, but a text that is long enough to be taken for one" * 20)
    with pytest.raises(DataError, match="cannot be used as a history"):
        History(tmp_path / "text.sqlite")


# -- stops --


def stopping(model, settles):
    """Return 6 s of a stream at 100 Hz in which joint 3 stops at 5 s, and joint 6 at rest holds another torque then.

    It is its largest static friction from `settles` (s) on.
    """
    t = np.arange(0.0, 6.0, 0.01)
    acceleration = np.where((t >= 1.0) & (t < 1.2), 1.5, 0.0) - np.where((t >= 4.8) & (t < 5.0), 1.5, 0.0)
    speed = np.cumsum(acceleration) * 0.01
    moves = np.arange(6) == 2
    q = np.array([0.0, -1.2, 1.0, -0.6, -1.5, 0.3]) + np.outer(np.cumsum(speed) * 0.01, moves)
    qd, qdd = np.outer(speed, moves), np.outer(acceleration, moves)
    friction = reference_constants.STATIC * reference_constants.COULOMB * Monitor(model, 100.0).numbers.joints[5].held
    torque = friction * np.outer(t >= settles, np.arange(6) == 5)
    return Samples(t, q, model.current(q, qd, qdd, rate=100.0) + torque / model.gains, qd)


@pytest.mark.parametrize(("settles", "found"), [(5.0, False), (4.0, True)])
def test_friction_that_settles_at_a_stop_is_no_push(model, settles, found):
    samples, reference = stopping(model, settles), numpy_watch(model, Monitor(model, 100.0).numbers)
    reports, _ = run(model, samples)
    assert bool(reports.contact.any()) == found
    assert reports.rest[-1].all()
    theirs, _ = reference.steps(reference.init(), samples)
    assert np.array_equal(theirs.contact, reports.contact)
    assert np.abs(theirs.ratio - reports.ratio).max() < 1e-9


# -- real recordings --


@pytest.fixture(scope="module")
def ur10e():
    training = jw.read_log(UR10E / "id_20_02_12_50sec_12harm.csv")
    return jw.RobotModel(computed.calibrated(training, "ur10e", physical=False))


@needs_shared
def test_real_recordings_are_quiet_and_loads_are_payloads(ur10e):
    for path in sorted(UR10E.glob("*.csv")):
        result = monitor_log(ur10e, jw.read_log(path)).result()
        assert result.contacts == (), (path.name, result.contacts)
        assert result.is_quiet, (path.name, result.reasons)
        if "oad" in path.stem and "unload" not in path.stem:
            assert result.payload.mass == pytest.approx(2.805, rel=0.03)
            assert result.payload.status == "watch"


@needs_shared
@pytest.mark.parametrize("start", [20.0, 33.0, 46.0])
def test_a_push_is_found_by_joints_that_rest_while_another_moves(ur10e, start):
    log = jw.read_log(UR10E / "joint_20_01_22_joint_1.csv")
    rise = np.clip((log.t - log.t[0] - start) / 0.2, 0.0, 1.0) * np.clip(
        (log.t[0] + start + 1.5 - log.t) / 0.2, 0.0, 1.0
    )
    J = ur10e.jacobian(np.asarray(log.q))[:, :3]
    force = 20.0 * J[:, :, 1] / np.linalg.norm(J[:, :, 1], axis=1, keepdims=True)  # as joint 2 would move the tool
    torque = rise[:, None] * np.einsum("kij,ki->kj", J, force)
    (contact,) = monitor_log(ur10e, replace(log, current=log.current - torque / ur10e.gains)).result().contacts
    assert contact.start - log.t[0] == pytest.approx(start + 0.25, abs=0.25)
    assert contact.end - log.t[0] == pytest.approx(start + 1.75, abs=0.5)
    assert contact.joint in (2, 3)
