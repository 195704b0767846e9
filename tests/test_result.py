"""The artefact: a calibration that survives its file, metrics that are what they say, intervals that read well."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointwise.calibrate import Options, calibrate
from jointwise.data.log import Log
from jointwise.description import catalog_robot
from jointwise.errors import JointwiseError, ModelError
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Hysteresis, Viscous
from jointwise.result import Calibration, load_calibration, save_calibration, validate
from jointwise.result.calibration import SHOWN
from jointwise.result.store import SCHEMA, from_document, to_document
from jointwise.result.validation import MOVING_SPEED, metrics, moving_samples, pool
from jointwise.result.words import explained
from jointwise.simulation.synthetic import synthetic_log

ROBOT = catalog_robot("planar2")
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
    return copy.deepcopy(to_document(model))


# -- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_calibration_survives_its_file_to_the_bit(name: str, tmp_path: Path) -> None:
    own = calibrated(STRUCTURES[name])
    save_calibration(own, tmp_path / "model.json")
    again = load_calibration(tmp_path / "model.json")
    assert to_document(again) == to_document(own)
    np.testing.assert_array_equal(again.predict(LOG), own.predict(LOG))
    np.testing.assert_array_equal(again.estimate.covariance, own.estimate.covariance)
    assert again.summary() == own.summary()


def test_the_file_is_plain_json_with_a_schema_and_its_origin(model: Calibration, tmp_path: Path) -> None:
    save_calibration(model, tmp_path / "model.json")
    own = json.loads((tmp_path / "model.json").read_text())
    assert (own["format"], own["schema"]) == ("jointwise calibration", SCHEMA)
    assert own["provenance"]["logs"][0]["samples"] == LOG.samples
    assert own["output"]["unit"] == "A"
    assert [row["name"] for row in own["parameters"]] == [info.name for info in model.model.parameters]
    assert all(row["unit"] for row in own["parameters"])


def spoil_format(own: dict[str, Any]) -> None:
    own["format"] = "recipe"


def spoil_schema(own: dict[str, Any]) -> None:
    own["schema"] = SCHEMA + 1


def spoil_term(own: dict[str, Any]) -> None:
    own["model"]["terms"][0][0]["kind"] = "magic"


def spoil_names(own: dict[str, Any]) -> None:
    own["parameters"][0]["name"] = "ZZ9"


def spoil_gravity(own: dict[str, Any]) -> None:
    own["model"]["gravity"] = [0.0, -9.81]


def spoil_value(own: dict[str, Any]) -> None:
    own["parameters"][0]["value"] = "heavy"


def spoil_output(own: dict[str, Any]) -> None:
    own["output"]["signal"] = "voltage"


def spoil_gains(own: dict[str, Any]) -> None:
    own["output"]["gains"] = [1.0]


def spoil_robot(own: dict[str, Any]) -> None:
    del own["robot"]


def spoil_filters(own: dict[str, Any]) -> None:
    own["filters"]["colour"] = 1


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_format, "not a Jointwise calibration"),
        (spoil_schema, "Update jointwise"),
        (spoil_term, "unknown term 'magic'"),
        (spoil_names, "do not belong to this model"),
        (spoil_gravity, "gravity must be three numbers"),
        (spoil_value, "damaged model"),
        (spoil_output, "output signal must be current or torque"),
        (spoil_gains, "do not fit the model"),
        (spoil_robot, "damaged model: KeyError 'robot'"),
        (spoil_filters, "damaged model: TypeError"),
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
    with pytest.raises(ModelError, match="cannot be read"):
        load_calibration(tmp_path / "missing.json")


def test_numbers_that_are_not_finite_are_refused(document: dict[str, Any]) -> None:
    document["output"]["gains"][0] = float("inf")
    with pytest.raises(ModelError, match="not finite"):
        from_document(document)


def test_a_failed_write_leaves_nothing_behind(model: Calibration, tmp_path: Path) -> None:
    broken = replace(model, training={"nmse": [float("nan")]})
    with pytest.raises((JointwiseError, ValueError)):
        save_calibration(broken, tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


# -- the numbers -----------------------------------------------------------------------------------------------------


def test_intervals_are_values_and_deviations(model: Calibration) -> None:
    own = model.estimate
    for k in range(model.model.count):
        low, high = model.interval(k)
        assert high - low == pytest.approx(2.0 * own.factor * own.deviation[k])
        assert 0.5 * (low + high) == pytest.approx(own.values[k])


def test_a_status_says_where_zero_lies(model: Calibration) -> None:
    for k, status in enumerate(model.estimate.status):
        low, high = model.interval(k)
        if status == "determined":
            assert low > 0.0 or high < 0.0
        elif status == "weak":
            assert low <= 0.0 <= high
        elif status == "at bound":
            assert model.estimate.values[k] == 0.0


def test_relative_deviations_and_correlations_are_those_of_the_covariance(model: Calibration) -> None:
    own = model.estimate
    assert own.relative[0] == pytest.approx(100.0 * own.deviation[0] / abs(own.values[0]))
    scale = np.where(own.deviation > 0.0, own.deviation, np.inf)
    correlation = own.covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 0.0)
    for k in range(model.model.count):
        partner, size = own.worst_partner(k)
        assert abs(size) == pytest.approx(np.abs(correlation[k]).max(), abs=1e-12)
        assert abs(size) <= 1.0 + 1e-9
        assert size == pytest.approx(correlation[k, partner], abs=1e-12)


def test_the_full_summary_names_every_parameter_once(model: Calibration) -> None:
    lines = model.summary(full=True).splitlines()
    named = [line.split()[0] for line in lines[4:]]
    assert named == [info.name for info in model.model.parameters]


def test_the_summary_is_short_and_shows_the_best_known(model: Calibration) -> None:
    lines = model.summary().splitlines()
    assert len(lines) <= 4 + 2 * (SHOWN + 1) + 1
    shown = [line.split()[0] for line in lines if line.endswith("]")]
    own = [k for k, info in enumerate(model.model.parameters) if info.joint is not None]
    known = [k for k in own if model.estimate.status[k] in ("determined", "weak")]
    best = min(known, key=lambda k: float(model.estimate.relative[k]))
    assert model.model.parameters[best].name in shown
    assert sum(number for _, number, _ in model.counts()) == model.model.count
    assert "full=True" in lines[-1]


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_words_of_a_joint_model_are_explained(name: str) -> None:
    structure = STRUCTURES[name]
    text, lines = structure.describe(), explained(json.loads(json.dumps(structure.to_dict())))
    for word in ("hysteresis", "relaxing", "Stribeck", "answer to speed ripple", " load dependence"):
        told = any(word in line.partition(":")[0] for line in lines)
        assert told == (word in text.replace("no load dependence", ""))


def test_viscous_friction_knows_the_speeds_it_was_trained_on(model: Calibration) -> None:
    known = [term.known for own in model.model.terms for term in own if isinstance(term, Viscous)]
    assert LOG.qd is not None
    np.testing.assert_allclose(known, np.abs(LOG.qd).max(axis=0), rtol=0.05)
    np.testing.assert_array_equal(known, model.fastest)


# -- prediction and validation ---------------------------------------------------------------------------------------


def test_every_stamp_is_predicted_from_positions_alone(model: Calibration) -> None:
    bare = Log(t=LOG.t, q=LOG.q)
    assert model.predict(bare).shape == LOG.q.shape
    assert np.isfinite(model.predict(bare)).all()


def test_a_model_says_what_it_reaches_from_positions_alone(model: Calibration) -> None:
    assert (model.extras, validate(model, LOG).alone) == ((), None)
    assert "positions_alone" not in model.training
    rich = calibrated(STRUCTURES["ripple"])
    assert rich.extras == ("qd",)
    own, bare = validate(rich, LOG), validate(rich, LOG.select(qd=False))
    assert own.alone is not None
    assert bare.alone is None
    assert own.alone.mean_nmse == pytest.approx(bare.mean_nmse)
    assert own.alone.mean_nmse != own.mean_nmse
    assert rich.training["positions_alone"] == pytest.approx([joint.nmse for joint in bare.joints])
    assert own.to_dict()["positions_alone"]["mean_nmse"] == own.alone.mean_nmse


def test_prediction_does_not_look_at_the_measured_output(model: Calibration) -> None:
    other = replace(LOG, current=LOG.channel("i") + 100.0)
    np.testing.assert_array_equal(model.predict(other), model.predict(LOG))


def test_pieces_of_a_prediction_follow_each_other(model: Calibration) -> None:
    ends = [(piece.start, piece.stop) for piece, _ in model.predict_pieces(LOG)]
    assert ends[0][0] == 0
    assert ends[-1][1] == LOG.samples


def test_a_log_of_another_robot_is_refused(model: Calibration) -> None:
    with pytest.raises(ModelError, match="the log has 1 joints, the model 2"):
        model.predict(Log(t=LOG.t, q=LOG.q[:, :1]))


def test_metrics_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    y, p = rng.normal(2.0, 3.0, 500), rng.normal(2.0, 3.0, 500)
    own, e = metrics(y, p), y - p
    assert own.samples == 500
    assert own.mse == pytest.approx(np.mean(e**2))
    assert own.rmse == pytest.approx(np.sqrt(np.mean(e**2)))
    assert (own.mean, own.max) == (pytest.approx(np.abs(e).mean()), pytest.approx(np.abs(e).max()))
    assert own.nmse == pytest.approx(np.mean(e**2) / np.var(y))
    assert own.nmse_amplitude == pytest.approx(np.mean(e**2) / np.abs(y).mean())
    distance = np.linalg.norm(e) / np.linalg.norm(y - y.mean())
    assert own.nrmse_percent == pytest.approx(100.0 * (1.0 - distance))
    assert own.r2 == pytest.approx(1.0 - distance**2)


def test_a_perfect_prediction_and_the_mean_are_one_and_zero() -> None:
    y = np.random.default_rng(1).normal(size=100)
    assert metrics(y, y).r2 == 1.0
    assert metrics(y, np.full(100, y.mean())).r2 == pytest.approx(0.0, abs=1e-12)


def test_a_constant_measurement_has_no_relative_error() -> None:
    own = metrics(np.zeros(5), np.ones(5))
    assert (own.nmse, own.r2, own.nrmse_percent, own.nmse_amplitude) == (None, None, None, None)
    assert own.mse == 1.0


@pytest.mark.parametrize(("measured", "doubt"), [(True, 0.006), (False, 0.05)])
def test_moving_samples_are_those_above_the_speed(measured: bool, doubt: float) -> None:
    own = synthetic_log(ROBOT, "point_to_point", duration=15.0, rate=200.0, seed=3)
    speed = np.abs(own.truth.states.qd)
    clear = np.abs(speed - MOVING_SPEED) > doubt
    clear[:20] = clear[-20:] = False
    moving = moving_samples(own.log if measured else own.log.select(qd=False))
    np.testing.assert_array_equal(moving[clear], (speed > MOVING_SPEED)[clear])
    assert 0.2 < moving.mean() < 0.95


def test_validation_separates_moving_samples(model: Calibration) -> None:
    own = validate(model, LOG)
    assert [joint.samples for joint in own.joints] == [LOG.samples] * 2
    assert all(part is not None and part.samples < LOG.samples for part in own.moving)
    assert own.mean_nmse == pytest.approx(np.mean([joint.nmse for joint in own.joints]))
    assert own.mean_nmse + own.mean_r2 == pytest.approx(1.0)
    stored = json.loads(json.dumps(own.to_dict(), allow_nan=False))
    assert stored["joints"][0]["mse"] == own.joints[0].mse
    assert {"mse", "rmse", "nmse", "nrmse_percent", "r2", "max", "mean"} <= set(stored["joints"][0]["moving"])


def test_the_noise_floor_is_that_of_the_sensor(model: Calibration) -> None:
    clean = model.predict(LOG)
    noisy = replace(LOG, current=clean + 0.05 * np.random.default_rng(3).normal(size=clean.shape))
    own = validate(model, noisy)
    assert [joint.noise for joint in own.joints] == pytest.approx([0.05, 0.05], rel=0.15)
    assert pool([own.joints[0]]).at_noise
    assert not pool([validate(model, replace(noisy, current=noisy.channel("i") + 0.2)).joints[0]]).at_noise


def test_a_given_prediction_is_judged_instead(model: Calibration) -> None:
    perfect = validate(model, LOG, LOG.channel("i"))
    assert all(joint.mse == 0.0 for joint in perfect.joints)
