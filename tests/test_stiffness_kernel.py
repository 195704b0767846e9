"""The native kernel of online stiffness against its NumPy reference: laws, sides, faults, single steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jointwise.backend import native
from jointwise.estimation.recursive import VARIANTS
from jointwise.joint.gear import FourierSeries, GearMap, GearMaps, RippledTable
from jointwise.joint.laws import FrictionLaw, FrictionMap, LoadLaw, OnlineFriction, TemperatureLaw, VelocityLaw
from jointwise.joint.record import LinkLoad
from jointwise.model.periodic_table import PeriodicTable
from jointwise.monitoring.stiffness import JointSamples, StiffnessEstimator, StiffnessState, StiffnessTrace
from jointwise.monitoring.stiffness.reference import StiffnessReference
from jointwise.monitoring.stiffness.signals import JointSignals, SignalPath, SignalState
from jointwise.runtime.observers import observed_joint
from jointwise.spatial import Array
from online_joints import moves, true_model

pytestmark = pytest.mark.skipif(native() is None, reason="the native kernel is not built")

VELOCITY = VelocityLaw(8.0, 10.0, 0.1, 1.4, 5.0, 0.3, -0.1, 0.1, 0.2, 0.01, 1.5)
LOADS = {kind: LoadLaw(kind, factor, 20.0) for kind, factor in (("none", 0.0), ("absolute", 0.05), ("square", 0.002))}
THERMAL = {
    "linear": TemperatureLaw("linear", (-0.1,), 20.0, 10.0, 40.0, 1.2),
    "three": TemperatureLaw("three-parameter", (-0.1, 900.0), 20.0, 10.0, 40.0, 1.2),
    "exponential": TemperatureLaw("affine-exponential", (9.0, -0.1, 0.4, 0.01), 20.0, 10.0, 40.0, 1.2),
}
BACKLASH = 1.0 + 0.2 * np.sin(np.arange(200) * 2.0 * np.pi / 200)
ELEMENTS = np.array([1e-4, 6e-4, 2e-3])
FORCES = np.array([4.0, 3.0, 2.0])
LEVEL = {"viscous": 4.0, "growth": 0.002, "extra": 0.3, "speed": 0.1, "exponent": 1.3, "most_load": 15.0}
LAWS = {
    "slip": FrictionLaw("nlr", ELEMENTS, FORCES, backlash=BACKLASH, **LEVEL),  # type: ignore[arg-type]
    "rate-gms": FrictionLaw("rate-gms", ELEMENTS, FORCES, rate=40.0, backlash=BACKLASH, **LEVEL),  # type: ignore[arg-type]
    "lugre": FrictionLaw("lugre", ELEMENTS[:1], np.array([8.0, 0.02]), power=1.0, **LEVEL),  # type: ignore[arg-type]
    "sgn": FrictionLaw("sgn", np.zeros(0), np.array([8.0]), viscous=4.0),
    "tanh": FrictionLaw("tanh", np.zeros(0), np.array([8.0, 0.01]), load=True, viscous=4.0),
    "stribeck": FrictionLaw("stribeck", np.zeros(0), np.array([8.0, 0.01, 2.0]), load=True, power=1.0, **LEVEL),  # type: ignore[arg-type]
}
SERIES = FourierSeries(1e-5, (1, 2, 100), (3e-4, 1e-4, 2e-5), (0.3, 1.0, 2.0))
TABLE = PeriodicTable(tuple(2e-4 * (1.0 + 0.3 * np.cos(np.arange(50) * 2.0 * np.pi / 50))))


@cache
def samples() -> JointSamples:
    """Return 3 s of moves with a temperature that changes."""
    log, _ = moves()
    assert log.theta is not None and log.current is not None
    warm = 20.0 + np.arange(len(log.t)) / 200.0
    return JointSamples(log.theta[:, 0], log.q, log.current[:, 0], warm).part(slice(500, 3500))


def estimator(side: str = "fused", **options: object) -> StiffnessEstimator:
    new = moves()[1]
    joint = replace(observed_joint(new.robot, true_model(new)), link_share=0.2)
    joint = replace(joint, **{name: options.pop(name) for name in ("friction", "maps") if name in options})  # type: ignore[arg-type]
    links = LinkLoad(new.robot, np.array([0.0, 0.0, -9.81]), None)
    settings = {"links": links, "temperature": True} | options
    return StiffnessEstimator(joint, 0, 6, 1000.0, side=side, **settings)  # type: ignore[arg-type]


def reference(
    made: StiffnessEstimator, state: StiffnessState, measured: JointSamples
) -> tuple[StiffnessTrace, StiffnessState]:
    """Return what `steps` does without the kernel."""
    path = made.path
    table, numbers = path._table(measured), state.signals.numbers.copy()
    filtered, usable = np.empty((len(table), 3, table.shape[1])), np.empty(len(table))
    path._numpy_steps(numbers, table, filtered, usable)
    signals = JointSignals(path, filtered, usable)
    links = None if made.links is None else made.links(*signals.links)[:, made.index]
    trace, after = StiffnessReference(made).steps(state.numbers, signals, links)
    return trace, StiffnessState(SignalState(numbers), after, state.columns)


def assert_equal(made: StiffnessEstimator, measured: JointSamples) -> None:
    start = made.init(measured)
    (fast, end), (slow, last) = made.steps(start, measured), reference(made, start, measured)
    assert np.count_nonzero(fast.used) > 1000
    np.testing.assert_array_equal(fast.used, slow.used)
    for name in ("phi", "measured", "predicted"):
        mine, other = getattr(fast, name)[fast.used], getattr(slow, name)[fast.used]
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-7 * np.abs(other).max(), err_msg=name)
    np.testing.assert_allclose(fast.values[-1], slow.values[-1], rtol=1e-6)
    np.testing.assert_allclose(end.numbers, last.numbers, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(end.signals.numbers, last.signals.numbers, rtol=1e-9, atol=1e-12)
    assert (end.used, end.dropped) == (last.used, last.dropped)


@pytest.mark.parametrize("side", ["motor", "link", "fused"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_side_and_variant_equals_the_reference(side: str, variant: str) -> None:
    assert_equal(estimator(side, variant=variant), samples())


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("thermal", THERMAL)
@pytest.mark.parametrize("hysteresis", [None, LAWS["slip"]])
def test_steady_friction_equals_the_reference(load: str, thermal: str, hysteresis: FrictionLaw | None) -> None:
    steady = FrictionMap(VELOCITY, LOADS[load], THERMAL[thermal], 25.0)
    assert_equal(estimator(friction=OnlineFriction(steady, hysteresis)), samples())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("steady", [None, FrictionMap(VELOCITY)])
def test_every_law_with_memory_equals_the_reference(law: str, steady: FrictionMap | None) -> None:
    assert_equal(estimator(friction=OnlineFriction(steady, LAWS[law])), samples())


@pytest.mark.parametrize("error", [SERIES, TABLE, RippledTable(TABLE, SERIES)])
@pytest.mark.parametrize("reach", [0.0, 0.02])
def test_gear_maps_equal_the_reference(error: GearMap, reach: float) -> None:
    assert_equal(estimator(maps=GearMaps(error, TABLE, reach, 1e-4)), samples())


def test_without_links_and_temperature_it_equals_the_reference() -> None:
    steady = FrictionMap(VELOCITY, LOADS["square"], THERMAL["three"], 25.0)
    made = estimator("motor", links=None, temperature=False, friction=OnlineFriction(steady, LAWS["slip"]))
    assert_equal(made, replace(samples(), temperature=None))


def spoiled() -> JointSamples:
    whole = samples()
    theta, q, current = whole.theta.copy(), whole.q.copy(), whole.current.copy()
    theta[700:703], q[900, 3], current[1000:1040], theta[1500:1700] = np.nan, np.inf, np.nan, theta[1500]
    q[2000:2003, 0] += 0.5
    q[2400:2500, 0] = q[2400, 0]
    return replace(whole, theta=theta, q=q, current=current)


def test_faults_equal_the_reference() -> None:
    made, measured = estimator(), spoiled()
    assert_equal(made, measured)
    assert made.steps(made.init(measured), measured)[1].dropped > 100


@pytest.mark.parametrize("measured", [samples(), spoiled()])
def test_single_steps_equal_the_batch_bit_by_bit(measured: JointSamples) -> None:
    made = estimator()
    whole, end = made.steps(made.init(measured), measured)
    state, rows = made.init(measured), list[StiffnessTrace]()
    for k in range(len(measured)):
        trace, state = made.step(state, measured.part(slice(k, k + 1)))
        rows.append(trace)
    for name in StiffnessTrace._fields:
        np.testing.assert_array_equal(np.concatenate([getattr(row, name) for row in rows]), getattr(whole, name))
    np.testing.assert_array_equal(state.numbers, end.numbers)
    np.testing.assert_array_equal(state.signals.numbers, end.signals.numbers)


def test_a_state_is_not_changed_by_a_step() -> None:
    made, measured = estimator(), samples()
    state = made.init(measured)
    numbers, signals = state.numbers.copy(), state.signals.numbers.copy()
    made.steps(state, measured)
    np.testing.assert_array_equal(state.numbers, numbers)
    np.testing.assert_array_equal(state.signals.numbers, signals)


@pytest.mark.parametrize("change", ["short options", "short state", "other channels", "wrong link"])
def test_wrong_arrays_raise_and_never_crash(change: str) -> None:
    kernel, made, measured = native(), estimator(), samples().part(slice(0, 4))
    assert kernel is not None
    state, signals = made.init(measured), made.path.steps(made.init(measured).signals, measured)[0]
    options, numbers, filtered = made.packed.copy(), state.numbers.copy(), signals.filtered
    out = np.empty((4, 6))
    if change == "short options":
        options = options[:-1]
    elif change == "short state":
        numbers = numbers[:-1].copy()
    elif change == "other channels":
        filtered = np.zeros((4, 3, 5))
    else:
        options[1] = 50.0
    with pytest.raises(ValueError, match="must be|not those"):
        kernel.stiffness_steps(options, numbers, filtered, signals.usable, None, out)


def test_wrong_arrays_of_the_signal_path_raise_and_never_crash() -> None:
    kernel, path = native(), SignalPath(0, 6, 1000.0)
    assert kernel is not None
    measured = replace(samples().part(slice(0, 4)), temperature=None)
    numbers, table = path.init(measured).numbers, path._table(measured)
    out, usable = np.empty((4, 3, 8)), np.empty(4)

    def refused(*args: Array) -> None:
        with pytest.raises(ValueError, match="must be|not those|not that"):
            kernel.joint_signals(*args)

    refused(path.filter.taps, path.packed, numbers[:-1].copy(), table, out, usable)
    refused(path.filter.taps, path.packed[:-1].copy(), numbers, table, out, usable)
    refused(path.filter.taps, path.packed, numbers, table, out, np.empty(3))
    broken = numbers.copy()
    broken[0] = 1e6
    refused(path.filter.taps, path.packed, broken, table, out, usable)
