"""The artefact: a calibration that survives its file, metrics that are what they say, intervals that read well."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from jointwise.calibration import calibrate
from jointwise.data import Log
from jointwise.data.statistics import MOVING_SPEED, moving_samples
from jointwise.description import load_robot
from jointwise.document import decode, decode_document
from jointwise.errors import JointwiseError, ModelError
from jointwise.estimation.structure import Structure
from jointwise.formatting import rounded
from jointwise.model.terms import Hysteresis, Viscous
from jointwise.options import Options
from jointwise.result import Calibration, load_calibration, save_model, validate
from jointwise.result.metrics import TrainingErrors, metrics, pool
from jointwise.result.model_file import KIND, SCHEMA, ModelFile, hash_of, to_document
from jointwise.result.predict import predict_chunks
from jointwise.result.text import SHOWN, explain_structure
from jointwise.result.validation import compare
from synthetic import synthetic_log

ROBOT = load_robot("planar2")
LOG = synthetic_log(ROBOT, duration=12.0, rate=200.0, seed=1).log
STRUCTURES = {
    "sign": Structure("sign", "none"),
    "loaded": Structure("tanh", "absolute", (1.0, 2.0)),
    "hysteresis": Structure("hysteresis", "square", limits=Hysteresis.polynomial_limits(3, 3e-3), relaxation=2.0),
    "ripple": Structure("hysteresis", drivers=("q", "track"), limits=(1e-4, 1e-3), ripple=0.005, stribeck=0.1),
    "power flow": Structure("tanh", power_flow=True),
}


def calibrated(structure: Structure) -> Calibration:
    options = Options(structure=structure, free=(), position_cutoff=15.0, lag=0.0, gains=(10.0, 10.0))
    return calibrate(LOG, ROBOT, options=options)


@pytest.fixture(scope="module")
def model() -> Calibration:
    return calibrated(STRUCTURES["hysteresis"])


@pytest.fixture
def document(model: Calibration) -> dict[str, Any]:
    return json.loads(json.dumps(to_document(model)))  # type: ignore[no-any-return]


# -- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_calibration_survives_its_file_to_the_bit(name: str, tmp_path: Path) -> None:
    calibration = calibrated(STRUCTURES[name])
    save_model(calibration, tmp_path / "model.json")
    again = load_calibration(tmp_path / "model.json")
    assert to_document(again) == to_document(calibration)
    np.testing.assert_array_equal(again.predict(LOG), calibration.predict(LOG))
    np.testing.assert_array_equal(again.estimate.covariance, calibration.estimate.covariance)
    assert again.summary() == calibration.summary()


def test_the_file_is_plain_json_with_a_schema_and_its_origin(model: Calibration, tmp_path: Path) -> None:
    save_model(model, tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    assert (content["format"], content["schema"]) == ("jointwise calibration", SCHEMA)
    assert content["provenance"]["logs"][0]["samples"] == LOG.samples
    assert content["output"]["unit"] == "A"
    assert [row["name"] for row in content["parameters"]] == [info.name for info in model.model.parameters]
    assert all(row["unit"] for row in content["parameters"])


def spoil_format(content: dict[str, Any]) -> None:
    content["format"] = "recipe"


def spoil_schema(content: dict[str, Any]) -> None:
    content["schema"] = SCHEMA + 1


def spoil_term(content: dict[str, Any]) -> None:
    content["model"]["terms"][0][0]["kind"] = "magic"


def spoil_names(content: dict[str, Any]) -> None:
    content["parameters"][0]["name"] = "ZZ9"


def spoil_gravity(content: dict[str, Any]) -> None:
    content["model"]["gravity"] = [0.0, -9.81]


def spoil_value(content: dict[str, Any]) -> None:
    content["parameters"][0]["value"] = "heavy"


def spoil_output(content: dict[str, Any]) -> None:
    content["output"]["signal"] = "voltage"


def spoil_gains(content: dict[str, Any]) -> None:
    content["output"]["gains"] = [1.0]


def spoil_robot(content: dict[str, Any]) -> None:
    del content["robot"]


def spoil_filters(content: dict[str, Any]) -> None:
    content["filters"]["colour"] = 1


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_format, "not a Jointwise calibration"),
        (spoil_schema, "Update jointwise"),
        (spoil_term, "unknown term 'magic'"),
        (spoil_names, "do not belong to this model"),
        (spoil_gravity, "model.gravity must be a list of length 3"),
        (spoil_value, "parameters[0].value must be a number. Got 'heavy' instead."),
        (spoil_output, "output.signal must be one of current, torque. Got 'voltage' instead."),
        (spoil_gains, "does not match the model"),
        (spoil_robot, "'robot' is missing."),
        (spoil_filters, "filters has no 'colour'. Known: rate, "),
    ],
)
def test_a_spoilt_file_is_refused_in_one_line(spoil: Any, words: str, document: dict[str, Any], tmp_path: Path) -> None:
    spoil(document)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError) as refused:
        load_calibration(path)
    assert words in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", '"model"', "\x00\x01", "[" * 5000])
def test_what_is_no_document_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ModelError, match="not a"):
        load_calibration(path)


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        load_calibration(tmp_path / "missing.json")


def test_numbers_that_are_not_finite_are_refused(document: dict[str, Any]) -> None:
    document["output"]["gains"][0] = float("inf")
    with pytest.raises(ModelError, match=r"output.gains\[0\] must be finite"):
        decode_document(document, KIND, ModelFile)


def test_the_hash_of_a_model_is_that_of_what_it_says(model: Calibration) -> None:
    later = replace(model, provenance=replace(model.provenance, date="2030-01-01T00:00:00", seconds=99.0))
    other = replace(model, gains=model.gains * (1.0 + 1e-12))
    assert hash_of(later) == hash_of(model) != hash_of(other)


def test_a_failed_write_leaves_nothing_behind(model: Calibration, tmp_path: Path) -> None:
    broken = replace(model, training=TrainingErrors((float("nan"),)))
    with pytest.raises((JointwiseError, ValueError)):
        save_model(broken, tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


# -- the numbers -----------------------------------------------------------------------------------------------------


def test_intervals_are_values_and_deviations(model: Calibration) -> None:
    estimate = model.estimate
    for k in range(model.model.count):
        low, high = model.conf_int()[k]
        assert high - low == pytest.approx(2.0 * estimate.factor * estimate.deviation[k])
        assert 0.5 * (low + high) == pytest.approx(estimate.values[k])


def test_residuals_are_measured_minus_predicted(model: Calibration) -> None:
    np.testing.assert_array_equal(model.residuals(LOG), LOG.current - model.predict(LOG))


def test_undetermined_parameters_have_no_confidence_interval(model: Calibration) -> None:
    status = ("undetermined", *model.estimate.status[1:])
    intervals = replace(model, estimate=replace(model.estimate, status=status)).conf_int()
    assert np.isnan(intervals[0]).all()
    np.testing.assert_array_equal(intervals[1:], model.conf_int()[1:])


def test_parameters_as_a_data_frame(model: Calibration) -> None:
    pytest.importorskip("pandas")
    table = model.to_dataframe()
    assert list(table.index) == [info.name for info in model.model.parameters]
    np.testing.assert_array_equal(table[["low", "high"]].to_numpy(), model.conf_int())
    np.testing.assert_array_equal(table["value"], model.estimate.values)
    assert table["joint"].isna().sum() == model.model.base.count


def test_a_status_says_where_zero_lies(model: Calibration) -> None:
    for k, status in enumerate(model.estimate.status):
        low, high = model.conf_int()[k]
        if status == "determined":
            assert low > 0.0 or high < 0.0
        elif status == "weak":
            assert low <= 0.0 <= high
        elif status == "at bound":
            assert model.estimate.values[k] == 0.0


def test_relative_deviations_and_correlations_are_those_of_the_covariance(model: Calibration) -> None:
    estimate = model.estimate
    assert estimate.relative[0] == pytest.approx(100.0 * estimate.deviation[0] / abs(estimate.values[0]))
    scale = np.where(estimate.deviation > 0.0, estimate.deviation, np.inf)
    correlation = estimate.covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 0.0)
    for k in range(model.model.count):
        partner, size = estimate.worst_partner(k)
        assert abs(size) == pytest.approx(np.abs(correlation[k]).max(), abs=1e-12)
        assert abs(size) <= 1.0 + 1e-9
        assert size == pytest.approx(correlation[k, partner], abs=1e-12)


def test_the_full_summary_names_every_parameter_once(model: Calibration) -> None:
    lines = model.summary(full=True).splitlines()
    header = next(k for k, line in enumerate(lines) if line.split()[0] == "parameter")
    named = [line.split()[0] for line in lines[header + 1 :]]
    assert named == [info.name for info in model.model.parameters]


def test_the_summary_is_short_and_shows_the_best_known(model: Calibration) -> None:
    lines = model.summary().splitlines()
    assert len(lines) <= 5 + 2 * (SHOWN + 1) + 1
    shown = [line.split()[0] for line in lines if line.endswith("]")]
    actual = [k for k, info in enumerate(model.model.parameters) if info.joint is not None]
    known = [k for k in actual if model.estimate.status[k] in ("determined", "weak")]
    best = min(known, key=lambda k: float(model.estimate.relative[k]))
    assert model.model.parameters[best].name in shown
    assert sum(number for _, number, _ in model.counts()) == model.model.count
    assert "full=True" in lines[-1]


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_words_of_a_joint_model_are_explained(name: str) -> None:
    structure = STRUCTURES[name]
    text, lines = (
        structure.describe(),
        explain_structure(decode(json.loads(json.dumps(structure.to_dict())), Structure)),
    )
    for word in ("hysteresis", "relaxing", "Stribeck", "speed-ripple response", " load dependence"):
        explained = any(word in line.partition(":")[0] for line in lines)
        assert explained == (word in text.replace("no load dependence", ""))


def test_viscous_friction_knows_the_speeds_it_was_trained_on(model: Calibration) -> None:
    known = [term.known for joint_terms in model.model.terms for term in joint_terms if isinstance(term, Viscous)]
    assert LOG.qd is not None
    np.testing.assert_allclose(known, np.abs(LOG.qd).max(axis=0), rtol=0.05)
    np.testing.assert_array_equal(known, model.fastest)


# -- prediction and validation ---------------------------------------------------------------------------------------


def test_every_stamp_is_predicted_from_positions_alone(model: Calibration) -> None:
    bare = Log(t=LOG.t, q=LOG.q)
    assert model.predict(bare).shape == LOG.q.shape
    assert np.isfinite(model.predict(bare)).all()


def test_a_model_says_what_it_reaches_from_positions_alone(model: Calibration) -> None:
    assert (model.extras, validate(model, LOG).from_positions) == ((), None)
    assert model.training.from_positions is None
    rich = calibrated(STRUCTURES["ripple"])
    assert rich.extras == ("qd",)
    result, bare = validate(rich, LOG), validate(rich, LOG.select(qd=False))
    assert result.from_positions is not None
    assert bare.from_positions is None
    assert result.from_positions.mean_nmse == pytest.approx(bare.mean_nmse)
    assert result.from_positions.mean_nmse != result.mean_nmse
    assert result.from_positions.motion is not None
    assert rich.training.from_positions == pytest.approx([joint.nmse for joint in result.from_positions.motion])
    assert result.to_dict()["positions_alone"]["mean_nmse"] == result.from_positions.mean_nmse


def test_prediction_does_not_look_at_the_measured_output(model: Calibration) -> None:
    other = replace(LOG, current=LOG.channel("i") + 100.0)
    np.testing.assert_array_equal(model.predict(other), model.predict(LOG))


def test_pieces_of_a_prediction_follow_each_other(model: Calibration) -> None:
    ends = [(piece.start, piece.stop) for piece, _ in predict_chunks(model, LOG)]
    assert ends[0][0] == 0
    assert ends[-1][1] == LOG.samples


def test_a_log_of_another_robot_is_refused(model: Calibration) -> None:
    with pytest.raises(ModelError, match="the log has 1 joints, the model 2"):
        model.predict(Log(t=LOG.t, q=LOG.q[:, :1]))


def test_metrics_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    y, p = rng.normal(2.0, 3.0, 500), rng.normal(2.0, 3.0, 500)
    result, e = metrics(y, p), y - p
    assert result.samples == 500
    assert result.mse == pytest.approx(np.mean(e**2))
    assert result.rmse == pytest.approx(np.sqrt(np.mean(e**2)))
    assert (result.mean, result.max) == (pytest.approx(np.abs(e).mean()), pytest.approx(np.abs(e).max()))
    assert result.nmse == pytest.approx(np.mean(e**2) / np.var(y))
    assert result.nmse_amplitude == pytest.approx(np.mean(e**2) / np.abs(y).mean())
    distance = np.linalg.norm(e) / np.linalg.norm(y - y.mean())
    assert result.nrmse_percent == pytest.approx(100.0 * (1.0 - distance))
    assert result.r2 == pytest.approx(1.0 - distance**2)


def test_a_perfect_prediction_and_the_mean_are_one_and_zero() -> None:
    y = np.random.default_rng(1).normal(size=100)
    assert metrics(y, y).r2 == 1.0
    assert metrics(y, np.full(100, y.mean())).r2 == pytest.approx(0.0, abs=1e-12)


def test_a_constant_measurement_has_no_relative_error() -> None:
    result = metrics(np.zeros(5), np.ones(5))
    assert (result.nmse, result.r2, result.nrmse_percent, result.nmse_amplitude) == (None, None, None, None)
    assert result.mse == 1.0


@pytest.mark.parametrize(("measured", "doubt"), [(True, 0.006), (False, 0.05)])
def test_moving_samples_are_those_above_the_speed(measured: bool, doubt: float) -> None:
    synthetic = synthetic_log(ROBOT, "point_to_point", duration=15.0, rate=200.0, seed=3)
    speed = np.abs(synthetic.truth.states.qd)
    clear = np.abs(speed - MOVING_SPEED) > doubt
    clear[:20] = clear[-20:] = False
    moving = moving_samples(synthetic.log if measured else synthetic.log.select(qd=False))
    np.testing.assert_array_equal(moving[clear], (speed > MOVING_SPEED)[clear])
    assert 0.2 < moving.mean() < 0.95


def test_validation_separates_moving_samples(model: Calibration) -> None:
    result = validate(model, LOG)
    assert [joint.samples for joint in result.joints] == [LOG.samples] * 2
    assert all(part is not None and part.samples < LOG.samples for part in result.moving)
    assert result.mean_nmse == pytest.approx(np.mean([joint.nmse for joint in result.joints]))
    assert result.mean_nmse + result.mean_r2 == pytest.approx(1.0)
    stored = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert stored["joints"][0]["mse"] == result.joints[0].mse
    assert {"mse", "rmse", "nmse", "nrmse_percent", "r2", "max", "mean"} <= set(stored["joints"][0]["moving"])


def test_the_noise_floor_is_that_of_the_sensor(model: Calibration) -> None:
    clean = model.predict(LOG)
    noisy = replace(LOG, current=clean + 0.05 * np.random.default_rng(3).normal(size=clean.shape))
    result = validate(model, noisy)
    assert [joint.noise for joint in result.joints] == pytest.approx([0.05, 0.05], rel=0.15)
    assert pool([result.joints[0]]).at_noise
    assert not pool([validate(model, replace(noisy, current=noisy.channel("i") + 0.2)).joints[0]]).at_noise


def test_validate_accepts_a_prediction(model: Calibration) -> None:
    perfect = validate(model, LOG, prediction=LOG.channel("i"))
    assert all(joint.mse == 0.0 for joint in perfect.joints)


def test_confidence_intervals_of_another_level(model: Calibration) -> None:
    usual, wide = model.conf_int(), model.conf_int(0.99)
    np.testing.assert_array_equal(usual, model.conf_int(0.95))
    half = (wide[:, 1] - wide[:, 0]) / 2.0
    known = model.estimate.deviation > 0.0
    ratio = half[known] / model.estimate.deviation[known]
    np.testing.assert_allclose(ratio, stdtrit(23.0, 0.995), rtol=1e-3)  # 24 blocks of the jackknife
    with pytest.raises(JointwiseError, match="between 0 and 1"):
        model.conf_int(95.0)


def test_a_validation_has_the_residuals_of_its_errors(model: Calibration) -> None:
    found = validate(model, LOG)
    rms = np.sqrt(np.mean(found.residuals() ** 2, axis=0))
    np.testing.assert_allclose(rms, [joint.rmse for joint in found.joints])
    np.testing.assert_array_equal(found.residuals(), model.residuals(LOG))
    with pytest.raises(ModelError, match="no prediction. Repeat it with validate"):
        compare({"a": model}, LOG)[0].validation.residuals()


def test_a_validation_is_text_and_a_data_frame(model: Calibration) -> None:
    pytest.importorskip("pandas")
    found = validate(model, LOG)
    frame = found.to_dataframe()
    np.testing.assert_array_equal(frame.loc[(slice(None), "all"), "rmse"], [joint.rmse for joint in found.joints])
    moving = [joint.r2 for joint in found.moving if joint is not None]
    np.testing.assert_array_equal(frame.loc[(slice(None), "moving"), "r2"], moving)
    text = found.summary()
    assert f"MSE/variance {rounded(found.mean_nmse)}" in text
    assert text.startswith(found.file)
