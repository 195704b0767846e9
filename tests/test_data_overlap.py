"""Shared samples are found whatever the file, the format and the part; training data never pass for held-out data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli_runs import PLAIN, bench, done, refused, run
from corpus import valid_files
from jointwise import read_log, validate
from jointwise.data import Log, write_log
from jointwise.data.overlap import SKETCH, shared_fraction, sketch, sketched_fraction
from jointwise.data.write import write_csv
from jointwise.result import load_calibration


def make_log(path: Path, seed: int, samples: int = 20_000) -> Log:
    rng = np.random.default_rng(seed)
    t = np.arange(samples) * 0.002
    q = np.cumsum(rng.normal(0.0, 1e-3, (samples, 2)), axis=0)
    columns = np.column_stack([t, q, rng.normal(0.0, 1.0, (samples, 2))])
    np.savetxt(path, columns, delimiter=",", header="t,q1,q2,i1,i2", comments="", fmt="%.10g")
    return read_log(path)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, Log]:
    folder = tmp_path_factory.mktemp("overlap")
    return make_log(folder / "a.csv", 1), make_log(folder / "b.csv", 2)


def fractions(log: Log, known: Log) -> tuple[float, float]:
    """Return the shared fraction from the logs themselves, and that from the sketch of the second."""
    return shared_fraction(log, [known], "current"), sketched_fraction(log, [sketch(known, "current")], "current")


def test_different_recordings_share_nothing(logs: tuple[Log, Log]) -> None:
    assert fractions(logs[1], logs[0]) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["copy.parquet", "copy.csv"])
def test_copy_in_another_format_is_found(logs: tuple[Log, Log], tmp_path: Path, name: str) -> None:
    write_log(logs[0], tmp_path / name)
    assert fractions(read_log(tmp_path / name), logs[0]) == (1.0, 1.0)


@pytest.mark.parametrize("decimals", [4, 6])
def test_copy_with_fewer_decimals_later_stamps_and_fewer_channels_is_found(
    logs: tuple[Log, Log], decimals: int
) -> None:
    first, _ = logs
    copy = Log(first.t + 1.7e9, np.round(first.q, decimals), current=np.round(np.asarray(first.current), decimals))
    assert min(fractions(copy, first)) > 0.9
    single = Log(first.t, first.q.astype(np.float32), current=np.asarray(first.current, dtype=np.float32))
    assert min(fractions(single, first)) > 0.9


@pytest.mark.parametrize("part", [slice(0, 300), slice(1000, 12_000), slice(19_900, 20_000), slice(0, None, 10)])
def test_part_of_a_log_is_found(logs: tuple[Log, Log], part: slice) -> None:
    first, _ = logs
    assert first.current is not None
    assert fractions(Log(first.t[part], first.q[part], current=first.current[part]), first) == (1.0, 1.0)


def test_fraction_counts_the_samples_of_the_log(logs: tuple[Log, Log]) -> None:
    half = logs[0].slice(0, 10_000)
    assert fractions(logs[0], half) == pytest.approx((0.5, 0.5), abs=0.05)


def test_noise_free_rest_in_one_posture_is_chance() -> None:
    t = np.arange(1000) * 0.01
    rest = np.zeros((1000, 2))
    rng = np.random.default_rng(0)
    motion = np.vstack([np.zeros((500, 2)), rng.normal(size=(500, 2))])
    assert fractions(Log(t, rest, current=rest), Log(t, motion, current=motion)) == (0.0, 0.0)


def test_sketch_is_small_and_exact_in_json(logs: tuple[Log, Log]) -> None:
    known = sketch(logs[0], "current")
    assert len(known.hashes) == SKETCH
    assert known.distinct == 20_000
    assert all(float(value) == value for value in known.hashes)


def copies(folder: Path) -> dict[str, Path]:
    """Return files with samples of the training log, by kind."""
    log = read_log(bench().training)
    write_log(log, folder / "copy.parquet")
    write_csv(log.slice(500, 1500), folder / "part.csv")
    (folder / "copy.csv").write_bytes(bench().training.read_bytes() + b"\n")
    return {"same": bench().training, **{path.stem + path.suffix: path for path in folder.iterdir()}}


@pytest.mark.parametrize("kind", ["same", "copy.csv", "copy.parquet", "part.csv"])
def test_commands_never_report_training_data_as_held_out(tmp_path: Path, kind: str) -> None:
    log, model = copies(tmp_path)[kind], bench().model
    words = "training errors, not a validation: the model was trained on 100 % of these samples"
    shown = run("validate", model, log)
    assert (shown.code, words in shown.err, words in shown.out) == (0, True, True)
    failed = run("validate", model, log, "--min-r2", 0.1, "--json")
    document = json.loads(failed.out)
    assert (failed.code, document["passed"], document["shared"]) == (1, False, 1.0)
    other = tmp_path / "other.json"
    other.write_bytes(model.read_bytes())
    ranking = json.loads(run("compare", model, other, log, "--json").out)["ranking"]
    assert [entry["seen"] for entry in ranking] == [True, True]
    assert "training" in run("compare", model, other, log).out


@pytest.mark.parametrize("kind", ["same", "copy.csv", "copy.parquet", "part.csv"])
def test_calibrate_refuses_repeated_samples_and_labels_them_in_a_validation(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("jinja2")
    log, out = copies(tmp_path)[kind], ("--robot", "planar2", "--output", tmp_path / "m.json", *PLAIN)
    assert "of its samples are in the logs before it" in refused("calibrate", bench().training, log, *out)
    assert not (tmp_path / "m.json").exists()
    ended = run("calibrate", bench().training, "--validate", log, "--report", tmp_path / "r", *out)
    assert ended.code == 0
    assert "training errors, not a validation" in ended.err
    assert "validation error" not in ended.out
    assert "not validated yet" in ended.out
    page = (tmp_path / "r" / "report.html").read_text()
    assert "Not validated" in page
    assert "which were not used for training" not in page
    assert not load_calibration(tmp_path / "m.json").validation[0].held_out


def test_report_of_another_session_recognises_training_data(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    files = copies(tmp_path)
    mixed = read_log(bench().training).slice(0, 1000)
    other = read_log(bench().unseen).slice(0, 1000)
    joined = {name: np.concatenate([mixed.channel(name), other.channel(name)]) for name in ("q", "qd", "current")}
    write_csv(Log(t=np.arange(2000) * 0.01, **joined), tmp_path / "mixed.csv")
    paths = (files["copy.parquet"], tmp_path / "mixed.csv", bench().unseen)
    text = done("report", bench().model, *paths, "--output", tmp_path / "r")
    assert "1 training, 1 partly training, 1 held-out logs" in text
    page = (tmp_path / "r" / "report.html").read_text()
    assert "overlaps the training data" in page


def test_held_out_part_of_a_training_file_is_held_out(tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    done("calibrate", bench().training, "--robot", "planar2", "--output", model, "--holdout", 0.3, *PLAIN)
    calibration, log = load_calibration(model), read_log(bench().training)
    assert calibration.validation[0].held_out
    assert validate(calibration, log.slice(1400, 2000)).held_out
    assert validate(calibration, log).shared == pytest.approx(0.7, abs=0.02)


def test_no_estimate_counts_samples_twice(tmp_path: Path) -> None:
    """Payload, motor, power and single-joint commands refuse a log that is given twice, in another file too."""
    known = valid_files()
    for k, (name, words) in enumerate(
        {
            "loaded": ("payload", known.path("model")),
            "targets": ("motor", "--robot", "ur5e"),
            "bus": ("energy", "fit", "--robot", "planar2", "--gains", "9,9", "--output", tmp_path / "p.json"),
            "log": ("joint", "friction", "--robot", "planar2", "--joint", 1, "--gain", 10, "--output", tmp_path / "j"),
        }.items()
    ):
        copy = tmp_path / f"{k}.csv"
        copy.write_bytes(known.path(name).read_bytes())
        first = 2 if words[0] in ("energy", "joint") else len(words) if words[0] == "payload" else 1
        ended = refused(*words[:first], known.path(name), copy, *words[first:])
        assert "100 % of its samples are in the logs before it and would count twice" in ended
