"""The adaptation law of friction parameters, and the torque of a model in parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jointwise.errors import ModelError, ShapeError
from jointwise.model.terms import Offset, Viscous
from jointwise.runtime import friction_adaptation, torque_parts
from jointwise.runtime.friction_adaptation import METHODS, AdaptationOptions, FrictionAdaptation, Method
from jointwise.runtime.stream import NumpyCore, Sample
from jointwise.runtime.torque_parts import model_parts
from jointwise.spatial import Array
from runtime_models import exact, swinging

RATE = 1000.0
DRY, DAMPING = np.array([10.0, 1.0]), np.array([8.0, 0.9])


def law(method: Method = "gradient", **options: object) -> FrictionAdaptation:
    return FrictionAdaptation(RATE, DRY, DAMPING, AdaptationOptions(method=method, **options))  # type: ignore[arg-type]


def signals(seconds: float, truth: tuple[Array, Array], noise: float = 0.0, seed: int = 0) -> tuple[Array, ...]:
    """Return virtual friction, dry friction and speed (samples, 2) of a motion with stops, and known parameters."""
    t = np.arange(int(seconds * RATE))[:, None] / RATE
    speed = np.array([1.5, 2.0]) * np.sin(np.array([2.0, 3.1]) * t) * (np.sin(0.7 * t) > -0.5)
    dry = DRY * np.tanh(speed / 0.05) * (1.0 + 0.5 * np.sin(0.9 * t))
    f = truth[0] * dry + truth[1] * speed
    return f + noise * DRY * np.random.default_rng(seed).normal(size=f.shape), dry, speed


@pytest.mark.parametrize("method", METHODS)
def test_the_parameters_converge_to_the_truth(method: Method) -> None:
    truth = np.array([1.3, 0.7]), np.array([2.0, -0.3])
    adaptation = law(method)
    out, state = adaptation.step(adaptation.init(0.47, 0.04), *signals(60.0, truth, noise=0.1))
    np.testing.assert_allclose(state.factor, truth[0], atol=0.02)
    np.testing.assert_allclose(state.viscous / DAMPING, truth[1] / DAMPING, atol=0.05)
    np.testing.assert_allclose(np.std(out.error[-10_000:] / DRY, axis=0), 0.1, rtol=0.03)  # the noise alone


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_data_do_not_move_the_parameters(method: Method) -> None:
    """Friction that has nothing to do with the motion leaves a1 near zero correlation, not near a wrong truth."""
    f, dry, speed = signals(60.0, (np.array([1.4, 1.4]), np.array([2.0, 0.2])))
    rng = np.random.default_rng(3)
    residual = rng.permutation(f - dry) + dry  # the surplus over the nominal model, out of order
    adaptation = law(method)
    out, _ = adaptation.step(adaptation.init(), residual, dry, speed)
    assert np.abs(out.factor[20_000:] - 1.0).mean() < 0.05
    assert (np.abs(out.viscous[20_000:]).mean(axis=0) < 0.1 * DAMPING).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_stream_gives_the_numbers_of_a_batch(method: Method) -> None:
    adaptation = law(method, leakage=0.1)
    f, dry, speed = signals(0.5, (np.array([1.3, 0.7]), np.array([2.0, -0.3])))
    start = adaptation.init(0.8)
    out, end = adaptation.step(start, f, dry, speed)
    state = start
    for k in range(len(f)):
        one, state = adaptation.step(state, f[k], dry[k], speed[k])
        np.testing.assert_array_equal(one.factor, out.factor[k])
        np.testing.assert_array_equal(one.error, out.error[k])
    np.testing.assert_array_equal(state.numbers, end.numbers)
    assert (start.factor == 0.8).all()


@pytest.mark.parametrize("method", METHODS)
def test_numpy_gives_the_numbers_of_the_native_kernel(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    adaptation = law(method, leakage=0.2)
    f, dry, speed = signals(4.0, (np.array([1.7, 0.7]), np.array([2.0, -0.3])), noise=0.2)
    f[17, 0] = np.nan
    out, end = adaptation.step(adaptation.init(), f, dry, speed)
    monkeypatch.setattr(friction_adaptation, "native", lambda: None)
    twin, last = adaptation.step(adaptation.init(), f, dry, speed)
    np.testing.assert_allclose(out.factor, twin.factor, rtol=1e-9)
    np.testing.assert_allclose(out.error, twin.error, atol=1e-9)
    np.testing.assert_allclose(end.numbers, last.numbers, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_projection_keeps_the_bounds(method: Method) -> None:
    """Whatever the friction, a1 and a2 stay within their bounds, and friction beyond them is reached at the bounds."""
    adaptation = law(method)
    low, high = adaptation.limits
    rng = np.random.default_rng(0)
    _, dry, speed = signals(20.0, (np.ones(2), np.zeros(2)))
    for f in (1e3 * rng.standard_cauchy(dry.shape), 5.0 * dry, -dry):
        out, _ = adaptation.step(adaptation.init(), f, dry, speed)
        assert (out.factor >= low[:, 0]).all() and (out.factor <= high[:, 0]).all()
        assert (out.viscous >= low[:, 1]).all() and (out.viscous <= high[:, 1]).all()
    _, state = adaptation.step(adaptation.init(), 5.0 * dry, dry, speed)
    np.testing.assert_allclose(state.factor, 1.5, rtol=1e-6)


def test_friction_beyond_the_bounds_is_reported() -> None:
    """Friction 40 % up is adapted and no reason for a note; what is not friction drives a1 into its bound."""
    adaptation = law()
    for factor, reported in ((np.array([1.4, 0.7]), ""), (np.array([1.2, 2.5]), "joint 2.")):
        f, dry, speed = signals(20.0, (factor, np.zeros(2)), noise=0.2)
        _, state = adaptation.step(adaptation.init(), f, dry, speed)
        notes = state.notes()
        assert len(notes) == bool(reported)
        assert all(f"a1 at its bound: {reported} Check the payload" in note for note in notes)


@pytest.mark.parametrize("method", METHODS)
def test_the_dead_zone_freezes_the_parameters(method: Method) -> None:
    """Below 0.01 rad/s for 50 ms nothing changes, however wrong the torque; until then and from then on it adapts."""
    adaptation = law(method, leakage=0.5)
    speed = np.concatenate([np.full(500, 0.2), np.full(1000, 0.005), np.full(100, -0.2)])[:, None] * np.ones(2)
    dry = DRY * np.sign(speed)
    out, _ = adaptation.step(adaptation.init(), 1.4 * dry + 0.1 * DRY, dry, speed)
    standing = slice(500 + 49, 1500)
    np.testing.assert_array_equal(np.ptp(out.factor[standing], axis=0), 0.0)
    np.testing.assert_array_equal(np.ptp(out.viscous[standing], axis=0), 0.0)
    assert (out.factor[540] != out.factor[520]).all() and (out.factor[1520] != out.factor[1499]).all()


def test_nothing_changes_unless_it_is_enabled() -> None:
    adaptation, data = law(), signals(2.0, (np.array([1.3, 0.7]), np.zeros(2)))
    out, state = adaptation.step(adaptation.init(0.47), *data, enabled=False)
    np.testing.assert_array_equal(state.factor, 0.47)
    np.testing.assert_allclose(out.error, data[0] - 0.47 * data[1])


def test_leakage_returns_to_the_nominal_values() -> None:
    """With friction as predicted only the leakage acts: a1 decays by its rate."""
    adaptation = law("normalised", leakage=2.0, time_constants=(1e9, 1e9))
    speed = np.ones((1000, 2))
    out, _ = adaptation.step(adaptation.init(0.5), 0.5 * DRY * speed, DRY * speed, speed)
    np.testing.assert_allclose(1.0 - out.factor[-1], 0.5 * (1.0 - 2.0 / RATE) ** 1000, rtol=1e-6)


def test_samples_that_are_not_finite_are_counted_and_change_nothing() -> None:
    adaptation = law()
    f, dry, speed = signals(1.0, (np.array([1.3, 0.7]), np.zeros(2)))
    _, clean = adaptation.step(adaptation.init(), f, dry, speed)
    state = adaptation.init()
    for k in range(len(f)):
        if k % 10 == 3:
            for bad in (np.nan, np.inf):
                _, state = adaptation.step(state, [bad, f[k, 1]], dry[k], [speed[k, 0], np.nan])
        _, state = adaptation.step(state, f[k], dry[k], speed[k])
    np.testing.assert_array_equal(state.dropped, 200)
    np.testing.assert_array_equal(state.numbers[:, :5], clean.numbers[:, :5])


def test_wrong_input() -> None:
    with pytest.raises(ModelError, match="method must be gradient, normalised or rls. Got 'newton' instead"):
        AdaptationOptions(method="newton")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="time_constants must be two times"):
        AdaptationOptions(time_constants=(0.0, 1.0))
    with pytest.raises(ModelError, match="factor_limits must be two numbers about 1. Got 1.2, 1.5 instead"):
        AdaptationOptions(factor_limits=(1.2, 1.5))
    with pytest.raises(ModelError, match="hold must be finite and >= 0"):
        AdaptationOptions(hold=-1.0)
    with pytest.raises(ModelError, match="time_constants must exceed 0.016 s at 1000 Hz"):
        law(time_constants=(0.01, 1.0))
    assert law("normalised", time_constants=(0.01, 1.0)).joints == 2
    with pytest.raises(ModelError, match=r"a1 of joint 1 must lie in \[0.4, 1.5\]. Got 2 instead"):
        law().init(2.0)
    with pytest.raises(ModelError, match="a2 of joint 2"):
        law().init(1.0, [0.0, 9.0])
    with pytest.raises(ModelError, match="dry must be a positive number for every joint"):
        FrictionAdaptation(RATE, np.array([0.0]), np.ones(1))
    with pytest.raises(ShapeError, match=r"must have shape \(2,\) or \(samples, 2\)"):
        law().step(law().init(), np.zeros(3), np.zeros(3), np.zeros(3))


# -- the torque of a model in parts ------------------------------------------------------------------------------------


def test_the_parts_of_a_model_add_up_to_its_torque() -> None:
    model = exact()
    q, qd, qdd = swinging(6, 200, RATE)
    parts = model_parts(model, RATE)
    sample = Sample(q, qd, qdd)
    out, _ = parts.steps(parts.init(q[0]), sample)
    np.testing.assert_allclose(out.body + out.friction, model.torque(q, qd, qdd, rate=RATE), atol=1e-9)
    np.testing.assert_allclose(out.body, model.body_torque(q, qd, qdd), atol=1e-9)
    rest = out.virtual_friction(out.body + out.friction)
    np.testing.assert_allclose(rest, out.dry, atol=1e-9)
    memory = parts.init(q[0])
    for k in range(len(q)):
        one, memory = parts.step(memory, Sample(q[k], qd[k], qdd[k]))
        np.testing.assert_array_equal(one.dry, out.dry[k])


def test_the_parts_in_numpy_are_those_of_the_native_core(monkeypatch: pytest.MonkeyPatch) -> None:
    model = exact()
    q, qd, qdd = swinging(6, 30, RATE)
    parts = model_parts(model, RATE)
    native, _ = parts.steps(parts.init(q[0]), Sample(q, qd, qdd))
    monkeypatch.setattr("jointwise.runtime.evaluation.native", lambda: None)
    parts = model_parts(model, RATE)
    assert all(isinstance(core, NumpyCore) for core in parts.cores)
    twin, _ = parts.steps(parts.init(q[0]), Sample(q, qd, qdd))
    for a, b in zip(native, twin, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_dry_friction_of_a_calibrated_model_is_found_when_it_grows() -> None:
    """A robot whose dry terms are 1.3 times those of the model: a1 converges to 1.3 and a2 stays at zero."""
    model = exact()
    parts = model_parts(model, RATE)
    worn = torque_parts._without(model.calibration, torque_parts.DRY).estimate.values
    values = model.calibration.estimate.values
    grown = replace(model.calibration.estimate, values=worn + 1.3 * (values - worn))
    old = replace(model, calibration=replace(model.calibration, estimate=grown))
    t = np.arange(60_000)[:, None] / RATE
    w = np.array([1.0, 0.9, 1.2, 1.6, 2.0, 1.4])
    q, qd, qdd = 0.6 * np.sin(w * t), 0.6 * w * np.cos(w * t), -0.6 * w**2 * np.sin(w * t)
    sample = Sample(q, qd, qdd)
    out, _ = parts.steps(parts.init(q[0]), sample)
    torque = old.torque(q, qd, qdd, rate=RATE)
    adaptation = FrictionAdaptation(RATE, parts.dry, parts.damping)
    adapted, state = adaptation.step(adaptation.init(), out.virtual_friction(torque), out.dry, qd)
    np.testing.assert_allclose(state.factor, 1.3, atol=0.02)
    assert np.abs(adapted.error[-5000:]).max() < 0.1 * np.abs(adapted.error[:5000]).max()


def test_a_model_without_dry_friction_has_nothing_to_adapt() -> None:
    model = exact("planar2", terms=((Offset(), Viscous((1.0,))),) * 2)
    with pytest.raises(ModelError, match="joint 1 of the model has no dry friction to adapt"):
        model_parts(model)
