"""Calibration of logs whose truth is known: what every method must find, and what no method may."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import computed
from jointwise.calibration import calibrate
from jointwise.data import Log, conditioning, holdout
from jointwise.data.conditioning import clean_log
from jointwise.description import Robot, load_robot
from jointwise.design import fourier_trajectory
from jointwise.errors import DataError, EstimationError, JointwiseError, ModelError
from jointwise.estimation import regression as regression_module
from jointwise.estimation.fit import METHODS, LoadIteration, fit_structure
from jointwise.estimation.select_filters import select_filters
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Hysteresis
from jointwise.options import Options
from jointwise.preparation import make_regression
from jointwise.result import Calibration, validate
from jointwise.result.predict import output_chunks
from jointwise.spatial import Array
from synthetic import FRICTIONLESS, SyntheticLog, default_friction, synthetic_log

PLANAR, UR5E = load_robot("planar2"), load_robot("ur5e")
SCALE = 2e-3
HYSTERETIC = Structure("hysteresis", "square", (1.0, 2.0), limits=Hysteresis.polynomial_limits(4, SCALE))
SIGN = Structure("sign", "none", (1.0, 2.0))
EXACT: dict[str, Any] = {"encoder_counts": None, "speed_noise": 0.0, "current_noise": 0.0}


def made(robot: Robot = PLANAR, trajectory: Any = "fourier", **settings: Any) -> SyntheticLog:
    """Return a synthetic log with hysteresis of one size in all joints."""
    dependence = settings.get("load_dependence", "square")
    friction = tuple(replace(law, scale=SCALE) for law in default_friction(robot, dependence))
    chosen = {"duration": 20.0, "rate": 200.0, "seed": 1, "friction": friction, **settings}
    return synthetic_log(robot, trajectory, **chosen)


def fitted(
    synthetic: SyntheticLog, structure: Structure = HYSTERETIC, robot: Robot = PLANAR, **options: Any
) -> Calibration:
    """Return the calibration of a fixed structure under fixed filters, gains known."""
    chosen = {"position_cutoff": 20.0, "lag": 0.0, "gains": synthetic.truth.gains, "free": (), **options}
    return calibrate(synthetic.log, robot, options=Options(structure=structure, **chosen))


def base_truth(synthetic: SyntheticLog, calibration: Calibration) -> Array:
    return calibration.model.base.from_standard(synthetic.truth.plant.standard)


def base_values(calibration: Calibration) -> Array:
    return calibration.estimate.values[: calibration.model.base.count]


def misses(synthetic: SyntheticLog, calibration: Calibration) -> Array:
    """Return (estimate - truth) over half the interval of every determined base parameter."""
    count, estimate = calibration.model.base.count, calibration.estimate
    known = np.array([status != "undetermined" for status in estimate.status[:count]])
    half = estimate.factor * estimate.deviation[:count]
    return ((base_values(calibration) - base_truth(synthetic, calibration)) / half)[known]


def value(calibration: Calibration, name: str) -> float:
    names = [info.name for info in calibration.model.parameters]
    return float(calibration.estimate.values[names.index(name)])


def with_current(log: Log, current: Array) -> Log:
    return replace(log, current=current)


@pytest.fixture(scope="module")
def planar() -> SyntheticLog:
    return made()


# -- what every method must do ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_recovers_the_truth(method: str, planar: SyntheticLog) -> None:
    found = fitted(planar, method=method)
    truth = base_truth(planar, found)
    np.testing.assert_allclose(base_values(found), truth, atol=0.01 * np.abs(truth).max())
    assert np.mean(np.abs(misses(planar, found)) < 1.0) > 0.7
    assert found.estimate.method == method
    for j, law in enumerate(planar.truth.friction):
        assert value(found, f"Fv1_{j + 1}") == pytest.approx(law.viscous, rel=0.1)
        dry = sum(value(found, f"W{i}_{j + 1}") for i in range(1, 5))
        assert dry == pytest.approx(law.coulomb, rel=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_no_method_finds_a_model_in_shuffled_currents(method: str, planar: SyntheticLog) -> None:
    order = np.random.default_rng(0).permutation(planar.log.samples)
    shuffled = SyntheticLog(with_current(planar.log, planar.log.channel("i")[order]), planar.truth)
    with pytest.raises(EstimationError, match="not identifiable"):
        fitted(shuffled, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_no_method_finds_a_model_in_a_motionless_log(method: str, planar: SyntheticLog) -> None:
    log = planar.log
    still = replace(log, q=np.tile(log.q[:1], (log.samples, 1)), qd=np.zeros(log.q.shape))
    with pytest.raises(JointwiseError, match="nothing moves|no joint moves"):
        fitted(SyntheticLog(still, planar.truth), method=method)


def test_shuffled_currents_are_refused_with_no_options_either(planar: SyntheticLog) -> None:
    order = np.random.default_rng(1).permutation(planar.log.samples)
    with pytest.raises(EstimationError, match="not identifiable"):
        calibrate(with_current(planar.log, planar.log.channel("i")[order]), PLANAR)


def test_the_currents_of_another_motion_are_refused(planar: SyntheticLog) -> None:
    other = made(seed=2).log.channel("i")
    with pytest.raises(EstimationError, match="not identifiable"):
        fitted(SyntheticLog(with_current(planar.log, other), planar.truth), SIGN)


def test_an_unknown_method_is_refused(planar: SyntheticLog) -> None:
    with pytest.raises(ModelError, match="method must be wls, ols, huber or iv. Got 'magic' instead"):
        fitted(planar, method="magic")


def test_outliers_hurt_huber_much_less(planar: SyntheticLog) -> None:
    rng, current = np.random.default_rng(5), planar.log.channel("i").copy()
    hit = rng.random(current.shape) < 0.03
    current[hit] += rng.choice([-1.0, 1.0], hit.sum()) * rng.uniform(3.0, 6.0, hit.sum())
    spoilt = SyntheticLog(with_current(planar.log, current), planar.truth)
    errors = {}
    for method in ("wls", "huber"):
        found = fitted(spoilt, method=method)
        errors[method] = float(np.linalg.norm(base_values(found) - base_truth(planar, found)))
    assert errors["huber"] < 0.4 * errors["wls"]


def test_a_joint_that_never_moves_leaves_its_parameters_open() -> None:
    motion = fourier_trajectory(PLANAR, 20.0, 1)
    motion = replace(motion, sine=motion.sine * [1.0, 0.0], cosine=motion.cosine * [1.0, 0.0])
    found = fitted(made(trajectory=motion), SIGN)
    assert {"FC0_2", "Fv1_2", "Fv2_2"} <= set(found.undetermined())
    assert "ZZR1" in found.undetermined() or "Ia2" in found.undetermined()
    assert "Fv1_1" not in found.undetermined()
    assert all(line.split()[1] == "-" for line in found.summary(full=True).splitlines() if "undetermined" in line)


# -- exactness -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hysteresis", [True, False])
def test_the_truth_predicts_a_clean_log(hysteresis: bool) -> None:
    synthetic = made(UR5E, duration=10.0, rate=1000.0, hysteresis=hysteresis, **EXACT)
    plant = synthetic.truth.plant
    regression = make_regression([synthetic.log], UR5E, "table", "current", Options(position_cutoff=450.0))
    error = np.zeros(synthetic.log.q.shape)
    for piece, values in output_chunks(
        plant.dynamics(), plant.values(), synthetic.log, regression.filters, plant.gains
    ):
        error[piece] = values - synthetic.log.channel("i")[piece]
    rms = np.sqrt(np.mean(error**2, axis=0)) / synthetic.log.channel("i").std(axis=0)
    assert rms.max() < 0.02  # what one sample at each reversal leaves
    assert np.median(np.abs(error)) < 1e-4


def test_a_clean_log_without_friction_gives_the_truth() -> None:
    law = made(UR5E, duration=15.0, rate=400.0, friction=FRICTIONLESS, load_dependence="none", **EXACT)
    found = fitted(law, SIGN, UR5E, position_cutoff=180.0)
    truth = base_truth(law, found)
    known = np.array([status != "undetermined" for status in found.estimate.status[: len(truth)]])
    np.testing.assert_allclose(base_values(found)[known], truth[known], atol=1e-3 * np.abs(truth).max())
    assert max(found.training.nmse) < 1e-7


# -- load ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hysteresis", [True, False])
@pytest.mark.parametrize("dependence", ["square", "absolute"])
def test_the_load_iteration_settles_on_the_true_load_dependence(hysteresis: bool, dependence: Any) -> None:
    synthetic = made(hysteresis=hysteresis, load_dependence=dependence, duration=30.0)
    structure = replace(HYSTERETIC if hysteresis else SIGN, load=dependence)
    found = fitted(synthetic, structure)
    assert found.load.converged
    assert 1 <= found.load.passes <= 5
    for j, truth in enumerate(synthetic.truth.friction):
        k = [info.name for info in found.model.parameters].index(f"FC1_{j + 1}")
        assert found.estimate.values[k] == pytest.approx(
            truth.load, abs=2.0 * found.estimate.deviation[k] + 0.05 * truth.load
        )


def test_validation_logs_belong_to_the_calibration() -> None:
    training, test = holdout(made(duration=30.0).log, 0.3)
    chosen = Options(structure=SIGN, free=(), position_cutoff=20.0, lag=0.0)
    plain = calibrate(training, PLANAR, options=chosen, physical=False)
    found = calibrate(training, PLANAR, options=chosen, physical=False, validation=test)
    assert plain.validation == ()
    assert [each.mean_nmse for each in found.validation] == [validate(plain, test).mean_nmse]
    assert found.validation[0].held_out
    np.testing.assert_array_equal(found.estimate.values, plain.estimate.values)


def test_without_load_dependence_no_load_is_iterated(planar: SyntheticLog) -> None:
    assert fitted(planar, replace(HYSTERETIC, load="none")).load == LoadIteration(0, True, 0.0)


def test_a_model_without_load_dependence_is_worse_under_load() -> None:
    one = load_robot("planar1")
    heavy = tuple(replace(law, load=2.0 * law.load) for law in default_friction(one, "square"))
    law = synthetic_log(one, duration=30.0, rate=200.0, seed=1, friction=heavy, hysteresis=False, current_noise=0.01)
    errors = {}
    for load in ("none", "square", "absolute"):
        options = {"position_cutoff": 20.0, "lag": 0.0, "gains": law.truth.gains, "free": ()}
        found = calibrate(law.log, one, options=Options(structure=replace(SIGN, load=load), **options))
        errors[load] = found.training.nmse[0]
    assert errors["none"] > 2.0 * errors["square"]
    assert errors["none"] > 2.0 * errors["absolute"]


def test_the_row_sum_basis_needs_one_pass_and_fits_about_as_well(planar: SyntheticLog) -> None:
    none, calibration, theirs = (
        fitted(planar, replace(HYSTERETIC, load=load), load_basis=basis)
        for load, basis in (("none", "model"), ("square", "model"), ("square", "row_sum"))
    )
    assert theirs.load.passes == 1
    assert theirs.model.load_basis == "row_sum"
    assert np.mean(calibration.training.nmse) < np.mean(theirs.training.nmse) <= np.mean(none.training.nmse) * 1.001
    error = (theirs.predict(planar.log) - planar.log.channel("i")).var(axis=0) / planar.log.channel("i").var(axis=0)
    assert error.max() < 1e-3


# -- drive gains -----------------------------------------------------------------------------------------------------


GAINS = (14.0, 11.0, 9.0, 12.0, 10.0, 8.0)


def undescribed(known: dict[int, float]) -> Robot:
    """Return a UR5e whose drive gains (Nm/A) are not described, but for the `known` joints."""
    motors = [
        replace(joint.motor, torque_constant=None, drive_gain=known.get(j)) for j, joint in enumerate(UR5E.joints)
    ]
    joints = tuple(replace(joint, motor=motor) for joint, motor in zip(UR5E.joints, motors, strict=True))
    return replace(UR5E, joints=joints)


@pytest.mark.parametrize(
    ("known", "source"),
    [({}, "their scale assumes the described bodies and no payload"), ({1: GAINS[1]}, "beside the known ones")],
)
def test_unknown_gains_are_found(known: dict[int, float], source: str) -> None:
    synthetic = made(UR5E, duration=30.0, gains=GAINS)
    options = Options(structure=HYSTERETIC, free=(), position_cutoff=20.0, lag=0.0)
    found = calibrate(synthetic.log, undescribed(known), options=options)
    assert found.gain_source.startswith("estimated (standard errors ")
    assert found.gain_source.endswith(source)
    np.testing.assert_allclose(found.gains[1:4], GAINS[1:4], rtol=0.05)  # these carry the arm
    np.testing.assert_allclose(found.gains[[0, 4]], np.array(GAINS)[[0, 4]], rtol=0.12)
    for j, gain in known.items():
        assert found.gains[j] == gain


def test_torque_needs_no_gains(planar: SyntheticLog) -> None:
    log = replace(planar.log, current=None, torque=planar.log.channel("i") * planar.truth.gains)
    found = calibrate(log, PLANAR, options=Options(structure=HYSTERETIC, free=(), position_cutoff=20.0, lag=0.0))
    assert (found.output, found.gain_source) == ("torque", "torque is measured")
    np.testing.assert_allclose(base_values(found), base_values(fitted(planar)), rtol=1e-9)


@pytest.mark.parametrize(
    ("gains", "message"),
    [((1.0,), "2 positive numbers"), ((10.0, -1.0), "numbers from 1e-09"), ((10.0, 0.0), "numbers from")],
)
def test_gains_that_cannot_be_are_refused(gains: tuple[float, ...], message: str, planar: SyntheticLog) -> None:
    with pytest.raises(JointwiseError, match=f"gains must be {message}"):
        fitted(planar, gains=gains)


# -- filters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hysteresis", [True, False])
@pytest.mark.parametrize("lag", [0.0, 8e-3, -8e-3])
def test_a_lag_of_the_output_is_found_and_none_is_made_up(lag: float, hysteresis: bool) -> None:
    synthetic = made(hysteresis=hysteresis, duration=30.0)
    late = np.column_stack([np.interp(synthetic.log.t + lag, synthetic.log.t, i) for i in synthetic.log.channel("i").T])
    regression = make_regression([with_current(synthetic.log, late)], PLANAR, "table", "current", Options())
    chosen, choices = select_filters(regression, synthetic.truth.gains, None, None)
    assert chosen.filters.lag == pytest.approx(lag, abs=1.5e-3 if lag else 0.0)
    assert [choice.question for choice in choices] == ["lag of the output", "position cut-off"]


def test_given_filters_are_kept(planar: SyntheticLog) -> None:
    found = fitted(planar, position_cutoff=11.0, lag=2e-3, decimation=3, rate=250.0)
    actual = found.filters
    assert (actual.position_cutoff, actual.lag, actual.decimation, actual.rate) == (11.0, 2e-3, 3, 250.0)


def test_the_parallel_filter_changes_the_estimate_within_its_interval(planar: SyntheticLog) -> None:
    plain, filtered = fitted(planar, SIGN), fitted(planar, SIGN, parallel_cutoff=20.0)
    half = plain.estimate.factor * plain.estimate.deviation[: plain.model.base.count]
    apart = np.abs(base_values(plain) - base_values(filtered))
    assert apart.max() > 0.0
    assert (apart < 1.5 * half).all()


def test_pieces_of_a_long_log_give_what_one_piece_gives(planar: SyntheticLog, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted(planar)
    monkeypatch.setattr(conditioning, "CHUNK", 900)
    pieces = fitted(planar)
    apart = np.abs(base_values(whole) - base_values(pieces)) / whole.estimate.deviation[: whole.model.base.count]
    assert apart.max() < 0.1
    error = np.abs(whole.predict(planar.log) - pieces.predict(planar.log)).max(axis=0)
    assert (error < 0.05 * planar.log.channel("i").std(axis=0)).all()


def test_choices_on_a_long_log_are_made_on_an_excerpt(planar: SyntheticLog, monkeypatch: pytest.MonkeyPatch) -> None:
    regression = make_regression([planar.log], PLANAR, "table", "current", Options())
    assert regression.excerpt() is regression
    monkeypatch.setattr(regression_module, "EXCERPT", 1200)
    part = regression.excerpt()
    segments = part.logs[0].segments
    assert len(segments) == conditioning.WINDOWS
    assert sum(segment.stop - segment.start for segment in segments) == pytest.approx(1200, rel=0.02)
    assert segments[0].start == 0
    assert segments[-1].stop > 0.8 * planar.log.samples
    assert all(segment.stop <= after.start for segment, after in pairwise(segments))
    chosen, _ = select_filters(regression, planar.truth.gains, None, None)
    assert chosen.logs is regression.logs


# -- clocks and gaps -------------------------------------------------------------------------------------------------


def test_a_jittered_clock_with_lost_samples_gives_the_truth() -> None:
    synthetic = made(jitter=1e-3, dropped=0.02, duration=30.0)
    found = fitted(synthetic)
    assert found.filters.rate == pytest.approx(400.0, rel=0.02)
    assert np.mean(np.abs(misses(synthetic, found)) < 1.2) > 0.8


def test_a_gap_parts_the_log_and_every_stamp_is_predicted(planar: SyntheticLog) -> None:
    log = planar.log
    kept = np.concatenate([np.arange(1500), np.arange(1900, log.samples)])
    broken = log.take(kept, "cut")
    assert len(clean_log(broken).segments) == 2
    found = fitted(SyntheticLog(broken, planar.truth))
    np.testing.assert_allclose(base_values(found), base_values(fitted(planar)), rtol=0.03, atol=0.05)
    predicted = found.predict(broken)
    assert np.isfinite(predicted).all()
    error = (predicted - broken.channel("i")).std(axis=0) / broken.channel("i").std(axis=0)
    assert error.max() < 0.1


def test_rows_that_repeat_the_positions_before_them_are_left_out(planar: SyntheticLog) -> None:
    q = planar.log.q.copy()
    stale = np.arange(500, 3500, 10)
    q[stale] = q[stale - 1]
    clean = clean_log(replace(planar.log, q=q))
    assert set(stale) & set(clean.kept.tolist()) == set()
    assert clean.samples > planar.log.samples - len(stale) - 20


def test_reversed_stamps_are_refused(planar: SyntheticLog) -> None:
    t = planar.log.t.copy()
    t[700], t[701] = t[701], t[700]
    with pytest.raises(DataError, match="go backwards"):
        clean_log(replace(planar.log, t=t))


# -- the automatic choice --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def automatic() -> tuple[SyntheticLog, Calibration]:
    synthetic = synthetic_log(UR5E, duration=30.0, rate=200.0, seed=4)
    return synthetic, computed.calibrated(synthetic.log, UR5E)


def test_with_no_options_hysteresis_and_load_dependence_are_found(automatic: tuple[SyntheticLog, Calibration]) -> None:
    _, found = automatic
    assert found.structure.direction == "hysteresis"
    assert found.structure.load == "square"
    assert found.structure.relaxation == 0.0  # it stood nowhere, so nothing speaks for it
    assert found.structure.ripple == 0.0
    assert found.filters.lag == 0.0


def test_with_no_options_base_parameters_are_mostly_inside(automatic: tuple[SyntheticLog, Calibration]) -> None:
    assert np.mean(np.abs(misses(*automatic)) < 1.0) > 0.85


def test_with_no_options_another_motion_is_predicted_to_the_noise(automatic: tuple[SyntheticLog, Calibration]) -> None:
    _, found = automatic
    other = synthetic_log(UR5E, duration=15.0, rate=200.0, seed=9)
    error = found.predict(other.log) - other.log.channel("i")
    assert np.sqrt(np.mean(error**2, axis=0)).max() < 0.06  # noise is 0.03 A


def test_every_choice_is_recorded_with_its_alternatives(automatic: tuple[SyntheticLog, Calibration]) -> None:
    _, found = automatic
    requested = [choice.question for choice in found.choices]
    assert requested[:2] == ["lag of the output", "position cut-off"]
    assert {"direction of dry friction", "viscous powers", "load dependence"} <= set(requested)
    for choice in found.choices[2:]:
        assert choice.taken in [name for name, _ in choice.alternatives]
        assert len(choice.alternatives) > 1


def test_plain_friction_gets_no_load_dependence() -> None:
    synthetic = synthetic_log(PLANAR, duration=30.0, rate=200.0, seed=2, hysteresis=False, load_dependence="none")
    assert calibrate(synthetic.log, PLANAR, options=Options(gains=synthetic.truth.gains)).structure.load == "none"


# -- intervals -------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(("robot", "seeds", "duration"), [(PLANAR, 40, 20.0), (UR5E, 12, 30.0)])
def test_ninety_five_percent_intervals_hold_the_truth_about_that_often(
    robot: Robot, seeds: int, duration: float
) -> None:
    inside = []
    for seed in range(seeds):
        synthetic = made(robot, duration=duration, seed=100 + seed)
        inside.append(np.abs(misses(synthetic, fitted(synthetic, robot=robot))) < 1.0)
    share = float(np.mean(np.concatenate(inside)))
    assert 0.90 <= share <= 0.99, f"{share:.3f} of the base parameters of {robot.name} are inside"


def test_intervals_shrink_with_the_length_of_the_log() -> None:
    motion = fourier_trajectory(PLANAR, 40.0, 1)
    whole = made(trajectory=motion)
    half = SyntheticLog(whole.log.slice(0, whole.log.samples // 2), whole.truth)
    count = fitted(whole).model.base.count
    ratio = fitted(half).estimate.deviation[:count] / fitted(whole).estimate.deviation[:count]
    assert 1.1 < np.median(ratio) < 2.5


def test_fit_structure_alone_gives_the_same_numbers(planar: SyntheticLog) -> None:
    options = Options(position_cutoff=20.0, lag=0.0)
    regression = make_regression([planar.log], PLANAR, "table", "current", options)
    fit = fit_structure(regression, HYSTERETIC, planar.truth.gains)
    np.testing.assert_array_equal(fit.solution.values, fitted(planar).estimate.values)


def test_a_structure_that_needs_a_speed_is_refused_where_none_was_measured() -> None:
    silent = synthetic_log(PLANAR, duration=10.0, rate=100.0, speed_noise=None).log
    for structure in (Structure(ripple=0.01), Structure("hysteresis", drivers=("track",))):
        with pytest.raises(EstimationError, match="needs a measured speed"):
            calibrate(silent, PLANAR, options=Options(structure=structure, free=()))


def test_the_scale_of_a_power_law_is_chosen_joint_by_joint() -> None:
    """Two joints whose hysteresis differs by a factor of ten are distinguished, from the training log alone."""
    true = [replace(law, scale=scale) for law, scale in zip(default_friction(PLANAR), (1e-3, 1e-2), strict=True)]
    law = synthetic_log(PLANAR, duration=30.0, rate=200.0, seed=4, friction=true, load_dependence="none").log
    structure = Structure("hysteresis", powers=(1.0, 2.0), limits=Hysteresis.polynomial_limits(4, 1e-3))
    found = calibrate(law, PLANAR, options=Options(structure=structure, free=(), scaled=True, lag=0.0))
    small, large = found.structure.scales
    assert large >= 4.0 * small
    limits = [term.limits[-1] for terms in found.model.terms for term in terms if isinstance(term, Hysteresis)]
    assert limits == pytest.approx([1e-3 * small, 1e-3 * large])
    assert found.choices[-1].question == "scale of hysteresis, joint by joint"


def test_stamps_that_count_from_1970_give_the_same_model(planar: SyntheticLog) -> None:
    late = SyntheticLog(replace(planar.log, t=planar.log.t + 1.7e9), planar.truth)
    found, reference = fitted(late), fitted(planar)
    np.testing.assert_allclose(found.estimate.values, reference.estimate.values, rtol=1e-4, atol=1e-6)
