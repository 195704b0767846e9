"""The model sample by sample: the C core, its NumPy reference and the batch agree, and torques move the arm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jointwise as jw
from jointwise.backend import native
from jointwise.errors import ModelError, ShapeError
from jointwise.model.terms import Coulomb, Hysteresis, Inertia, Offset, SpeedRipple, Spring, Viscous
from jointwise.result.predict import FeedForward
from jointwise.runtime.bodies import Bodies
from jointwise.runtime.stream import NativeCore, NumpyCore, Sample
from jointwise.spatial import Array
from runtime_models import exact, integrated, swinging

RATE = 500.0

pytestmark = pytest.mark.skipif(native() is None, reason="the native kernel is not built")


@pytest.fixture(scope="module")
def model() -> jw.RobotModel:
    return exact("ur5e")


def numpy_core(model: jw.RobotModel, rate: float = RATE) -> NumpyCore:
    calibration = model.calibration
    return NumpyCore(calibration.model, calibration.estimate.values, Bodies.of(calibration), rate)


def cores_agree(model: jw.RobotModel, signals: dict[str, Array]) -> None:
    """Assert that the C core and its reference return the same torques, sample by sample."""
    cores = NativeCore(model.core_numbers(RATE)), numpy_core(model)
    memories = [core.init(signals["q"][0], signals["rotor"][0]) for core in cores]
    for k in range(len(signals["q"])):
        one = {name.removeprefix("measured_"): values[k] for name, values in signals.items()}
        (a, memories[0]), (b, memories[1]) = (
            core.step(memory, Sample(**one)) for core, memory in zip(cores, memories, strict=True)
        )
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-11)


def sensors(joints: int, samples: int = 400) -> dict[str, Array]:
    """Return the motion of `swinging` as sensors see it: a noisy speed, wound-up rotors, warm joints."""
    rng = np.random.default_rng(5)
    q, qd, qdd = swinging(joints, samples, RATE)
    return {
        "q": q,
        "qd": qd,
        "qdd": qdd,
        "measured_speed": qd + 0.05 * rng.normal(size=qd.shape),
        "rotor": q + 1e-4 * np.sin(3.0 * qdd),
        "temperature": 25.0 + 10.0 * np.abs(np.sin(q)),
    }


def streamed(model: jw.RobotModel, signals: dict[str, Array]) -> Array:
    rotor = signals.get("rotor")
    start, use = None if rotor is None else rotor[0], "sensor" if "measured_speed" in signals else "feed-forward"
    state = model.init(signals["q"][0], rate=RATE, rotor=start, use=use)
    torques = []
    for k in range(len(signals["q"])):
        torque, state = model.step(state, **{name: values[k] for name, values in signals.items()})
        torques.append(torque)
    return np.array(torques)


PLANNED = ("q", "qd", "qdd")


@pytest.mark.parametrize("names", [PLANNED, (*PLANNED, "temperature"), None], ids=["planned", "warm", "sensors"])
def test_a_stream_has_the_numbers_of_the_batch(model: jw.RobotModel, names: tuple[str, ...] | None) -> None:
    signals = {name: values for name, values in sensors(6).items() if names is None or name in names}
    batch = model.torque(**signals, rate=RATE)
    np.testing.assert_allclose(streamed(model, signals), batch, rtol=0.0, atol=1e-10)
    without = model.torque(*(signals[name] for name in PLANNED), rate=RATE, friction="none")
    assert np.abs(batch - without).max(axis=0).min() > 0.1  # friction acts on every joint


def test_the_core_and_its_reference_agree_sample_by_sample(model: jw.RobotModel) -> None:
    cores_agree(model, sensors(6, 120))


def test_a_step_does_not_change_its_state(model: jw.RobotModel) -> None:
    q, qd, qdd = swinging(6, 5)
    state = model.init(q[0], rate=RATE)
    _, state = model.step(state, q[1], qd[1], qdd[1])
    first, _ = model.step(state, q[2], qd[2], qdd[2])
    model.step(state, q[4], qd[4], qdd[4])
    again, _ = model.step(state, q[2], qd[2], qdd[2])
    np.testing.assert_array_equal(first, again)


def test_the_rate_of_a_stream_matters_where_friction_relaxes(model: jw.RobotModel) -> None:
    q, qd, qdd = swinging(6)
    at = {rate: model.torque(q, qd, qdd, rate=rate) for rate in (RATE, 2.0 * RATE)}
    assert np.abs(at[RATE] - at[2.0 * RATE])[:, 1].max() > 1e-3  # joint 2 relaxes within 2 s
    with pytest.raises(ModelError, match="rate must be at most"):
        model.init(q[0], rate=1e6)
    with pytest.raises(ModelError, match="rate must be a positive number of Hz"):
        model.init(q[0], rate=-1.0)


def test_wrong_samples_are_refused(model: jw.RobotModel) -> None:
    with pytest.raises(ShapeError, match=r"q must have shape \(6,\). Got \(5,\) instead."):
        model.init(np.zeros(5))
    state = model.init(np.zeros(6))
    with pytest.raises(ShapeError, match=r"qdd must have shape \(6,\). Got \(1, 6\) instead."):
        model.step(state, np.zeros(6), np.zeros(6), np.zeros((1, 6)))


def test_the_bodies_of_the_core_are_those_of_the_kernels() -> None:
    for name in ("ur5e", "panda", "puma560"):
        model = exact(name, "tilt:x:40")
        core = NativeCore(model.core_numbers(RATE))
        for q, qd, qdd in np.random.default_rng(1).uniform(-2.0, 2.0, (10, 3, model.dof)):
            torque, M = np.empty(model.dof), np.empty((model.dof, model.dof))
            native().runtime_bodies(core._model, q, qd, qdd, torque, M)
            np.testing.assert_allclose(torque, model.body_torque(q, qd, qdd), rtol=0.0, atol=1e-9)
            np.testing.assert_allclose(M, model.mass_matrix(q), rtol=0.0, atol=1e-9)


def test_prismatic_joints_and_aurt_loads_are_streamed_too() -> None:
    from robots import random_robot

    robot = random_robot(np.random.default_rng(2), (True, False, True))
    q, qd, qdd = swinging(3)
    model = exact("ur5e", robot=robot)
    basis = replace(model.calibration.model, load_basis="row_sum")
    for each in (model, jw.RobotModel(replace(model.calibration, model=basis))):
        signals = {"q": q, "qd": qd, "qdd": qdd}
        np.testing.assert_allclose(streamed(each, signals), each.torque(q, qd, qdd, rate=RATE), rtol=0.0, atol=1e-10)


def test_numbers_that_are_no_model_are_refused(model: jw.RobotModel) -> None:
    numbers = model.core_numbers(RATE).packed()
    kernel = native()
    for wrong in (numbers[:-1], np.append(numbers, 0.0), numbers[:5], np.zeros(0), 1e9 * numbers, np.full(50, np.nan)):
        with pytest.raises(ValueError, match="numbers are not those of a model"):
            kernel.runtime_open(np.ascontiguousarray(wrong))
    capsule = kernel.runtime_open(numbers)
    with pytest.raises(ValueError, match="state must be 1024 numbers"):
        kernel.runtime_init(capsule, np.zeros(6), None, np.zeros(7))
    with pytest.raises(ValueError, match="PyCapsule"):
        kernel.runtime_init(None, np.zeros(6), None, np.zeros(1024))


def test_a_term_without_c_code_is_streamed_in_numpy_and_named_in_exports(model: jw.RobotModel) -> None:
    class Magic(Offset):
        kind = "magic"

    terms = ((Magic(),), *model.calibration.model.terms[1:])
    other = exact("ur5e", terms=terms)
    q, qd, qdd = swinging(6, 20)
    np.testing.assert_allclose(
        streamed(other, {"q": q, "qd": qd, "qdd": qdd}), other.torque(q, qd, qdd, rate=RATE), atol=1e-10
    )
    with pytest.raises(ModelError, match="term 'magic' is not implemented in the C runtime"):
        other.core_numbers()


# -- motion of a torque ------------------------------------------------------------------------------------------------


def smooth_terms(joints: int) -> tuple:
    return tuple((Offset(), Viscous((1.0,)), Coulomb("absolute", "tanh", 0.1)) for _ in range(joints))


def moved(model: jw.RobotModel, period: float, torque: Array, seconds: float) -> tuple[Array, Array]:
    core = NativeCore(model.core_numbers(1.0 / period))
    q, qd = np.zeros(model.dof), np.zeros(model.dof)
    memory = core.init(q, None)
    q, qd, _ = core.move(memory, torque, q, qd, steps=round(seconds / period))
    return q, qd


def test_a_constant_torque_moves_the_arm_as_an_independent_integrator_does() -> None:
    model = exact("planar2", terms=smooth_terms(2))
    torque = model.gravity(np.zeros(2)) + np.array([8.0, 5.0])
    expected = integrated(model, torque, 0.5)
    errors = [np.abs(np.concatenate(moved(model, h, torque, 0.5)) - expected).max() for h in (1e-3, 5e-4, 2.5e-4)]
    assert errors[-1] < 3e-3 * np.abs(expected).max()
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2.0, atol=0.2)  # an error of first order


def test_dry_friction_holds_the_arm_at_rest() -> None:
    for terms in ((Coulomb(),), (Hysteresis((1e-4, 1e-3)),)):
        model = exact("planar2", terms=(terms, terms))
        hold = model.gravity(np.zeros(2))
        q, qd = moved(model, 1e-3, hold + 0.2, 2.0)  # below the friction of each joint
        assert np.abs(q).max() < 1e-3
        assert np.abs(qd).max() < 1e-4
        q, _ = moved(model, 1e-3, hold + 20.0, 0.2)
        assert np.abs(q).max() > 1e-2


def test_friction_takes_energy_from_a_free_swing() -> None:
    model = exact("planar2", terms=((Hysteresis((1e-4, 1e-3)), Viscous()),) * 2)
    core = NativeCore(model.core_numbers(2000.0))
    q, qd = np.array([0.5, -0.3]), np.zeros(2)
    memory, energies = core.init(q, None), []
    for _ in range(40):
        q, qd, memory = core.move(memory, np.zeros(2), q, qd, steps=50)
        energies.append(float(sum(model.energy(q, qd))))
    assert (np.diff(energies) < 1e-3).all()
    assert energies[-1] < energies[0]


def test_a_model_without_inertia_has_no_forward_dynamics(model: jw.RobotModel) -> None:
    values = model.calibration.estimate.values.copy()
    values[: model.calibration.model.base.count] *= -1.0
    estimate = replace(model.calibration.estimate, values=values)
    wrong = jw.RobotModel(replace(model.calibration, estimate=estimate))
    with pytest.raises(ModelError, match="not positive definite"):
        moved(wrong, 1e-3, np.zeros(6), 1e-3)


def test_ripple_holds_what_it_cannot_know_yet() -> None:
    term = SpeedRipple(0.003)
    model = exact("planar2", terms=((term,), (Offset(),)))
    c = model.calibration.estimate.values[model.calibration.model.joint_slices[0]]
    still = np.zeros((6, 2))
    speed = np.zeros((6, 2))
    speed[2, 0] = 1.0
    torque = model.torque(still, still, still, rate=1000.0, measured_speed=speed)[:, 0] - model.gravity(still)[:, 0]
    expected = np.zeros(6)
    expected[2], expected[5] = c[1] + c[2], c[0]
    np.testing.assert_allclose(torque, expected, atol=1e-12)


def test_springs_and_rotors_among_the_terms_move_with_the_arm() -> None:
    terms = (Spring(cubic=True), Inertia(), Coulomb("square", "tanh", 0.1), Viscous())
    model = exact("planar2", terms=(terms, terms))
    q, qd, qdd = swinging(2, 100)
    signals = {"q": q, "qd": qd, "qdd": qdd}
    np.testing.assert_allclose(streamed(model, signals), model.torque(q, qd, qdd, rate=RATE), rtol=0.0, atol=1e-10)
    steady = model.torque(q, qd, qdd, friction="steady")
    np.testing.assert_allclose(model.forward_dynamics(q, qd, steady), qdd, atol=1e-6)
    inertias = [value for name, value in named_values(model) if name.startswith("Ia_")]
    bare = exact("planar2", terms=((Offset(),),) * 2)
    np.testing.assert_allclose(model.mass_matrix(q[0]) - bare.mass_matrix(q[0]), np.diag(inertias), atol=1e-9)
    torque = model.torque(np.zeros(2), np.zeros(2), np.zeros(2)) + np.array([8.0, 5.0])
    expected = integrated(model, torque, 0.3)
    reached = np.concatenate(moved(model, 1e-4, torque, 0.3))
    np.testing.assert_allclose(reached, expected, atol=3e-3 * np.abs(expected).max())


def named_values(model: jw.RobotModel) -> list[tuple[str, float]]:
    names = [info.name for info in model.calibration.model.parameters]
    return list(zip(names, model.calibration.estimate.values.tolist(), strict=True))


def test_planned_and_measured_motions_use_their_estimates() -> None:
    calibration = exact("planar2", terms=((Hysteresis((1e-4, 1e-3), driver="track"), Offset()),) * 2).calibration
    friction = FeedForward(
        terms=((Coulomb("none", "tanh"),),) * 2,
        values=np.array([3.0, 4.0]),
        deviation=np.array([0.1, 0.1]),
        status=("determined", "determined"),
        sigma=np.array([0.1, 0.1]),
        structure=calibration.structure,
        structure_text="",
        choices=(),
    )
    model = jw.RobotModel(replace(calibration, feed_forward=friction))
    q, qd, qdd = swinging(2, 100)
    planned = model.torque(q, qd, qdd, rate=RATE)
    expected = calibration.body_torque(q, qd, qdd) + np.array([3.0, 4.0]) * np.tanh(qd / 0.01)
    np.testing.assert_allclose(planned, expected, atol=1e-9)
    np.testing.assert_allclose(streamed(model, {"q": q, "qd": qd, "qdd": qdd}), planned, atol=1e-10)
    np.testing.assert_allclose(model.friction(np.ones(2)), [3.0, 4.0], atol=1e-9)
    measured = model.torque(q, qd, qdd, rate=RATE, measured_speed=qd)
    assert np.abs(measured - planned).max() > 0.5
    state, found = model.init(q[0], rate=RATE, use="sensor"), []
    for row in zip(q, qd, qdd, strict=True):
        torque, state = model.step(state, *row, measured_speed=row[1])
        found.append(torque)
    np.testing.assert_allclose(found, measured, atol=1e-10)


@pytest.mark.parametrize("law", ["square", "absolute"])
def test_friction_that_grows_faster_than_the_load_is_solved_for(law: str) -> None:
    model = exact("planar2", terms=((Coulomb(law, "tanh", 0.05), Viscous()),) * 2)
    values = model.calibration.estimate.values.copy()
    index = [k for k, info in enumerate(model.calibration.model.parameters) if info.name.startswith("FC1")]
    values[index] = 0.5 if law == "square" else 0.8
    model = jw.RobotModel(replace(model.calibration, estimate=replace(model.calibration.estimate, values=values)))
    q, qd, qdd = 0.3 * np.random.default_rng(0).uniform(-1.0, 1.0, (3, 50, 2))
    qd += 0.2 * np.sign(qd)
    forward = model.torque(q, qd, qdd, friction="steady")
    driving = np.sign(qd) * model.body_torque(q, qd, qdd) > 0.0  # else friction alone could hold the load
    found = model.forward_dynamics(q, qd, forward)
    chosen = driving.all(axis=1)
    assert chosen.sum() > 5
    np.testing.assert_allclose(found[chosen], qdd[chosen], atol=1e-6)
    torque = model.gravity(np.zeros(2)) + np.array([300.0, 200.0])
    reached = [np.concatenate(moved(model, h, torque, 0.2)) for h in (2e-4, 1e-4)]
    assert np.isfinite(reached).all()
    np.testing.assert_allclose(reached[0], reached[1], atol=0.02 * np.abs(reached[1]).max())
