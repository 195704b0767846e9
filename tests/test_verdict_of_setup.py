"""A model whose training data contradict its set-up is for no use, and every command that reads it says so."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import jointwise as jw
from cli_runs import bench, done, run
from jointwise.data import read_log
from jointwise.finding import Finding
from jointwise.report import write_report
from jointwise.result import load_calibration
from jointwise.result.plausibility.wording import SETUP, Setup
from jointwise.result.verdict import log_verdict, parameter_verdict
from runtime_models import fitted

DO_NOT_USE = "do not use: set-up contradicted"


@cache
def unseen() -> jw.Log:
    return read_log(bench().unseen)


def with_setup(status: Setup) -> jw.Calibration:
    """Return a good model whose set-up has a status."""
    severity = next(each for each, word in SETUP.items() if word == status)
    return replace(fitted(), plausibility=(Finding(severity, "output sign", "evidence", "Invert it."),))


def saved(folder: Path, status: Setup = "contradicted") -> Path:
    jw.save_model(with_setup(status), folder / "model.json")
    return folder / "model.json"


@pytest.mark.parametrize(
    ("status", "grades"), [("ok", {"good"}), ("suspect", {"fair"}), ("contradicted", {"contradicted"})]
)
def test_no_use_is_better_than_the_set_up(status: Setup, grades: set[str]) -> None:
    assert {use.code for use in log_verdict(jw.validate(with_setup(status), unseen())).uses} == grades
    assert (parameter_verdict(with_setup(status)).code == "contradicted") == (status == "contradicted")


def test_training_data_validate_no_use() -> None:
    found = log_verdict(jw.validate(load_calibration(bench().model), read_log(bench().training)))
    assert {use.code for use in found.uses} == {"unvalidated"}
    assert found.line() == "verdict (motion): not validated (feed-forward, monitoring, simulation)"


def test_a_contradicted_model_fails_every_limit_also_after_saving(tmp_path: Path) -> None:
    model = with_setup("contradicted")
    found = jw.validate(model, unseen())
    assert found.failure(-1e9) == "the training data contradict the declared set-up of the model"
    jw.save_model(replace(model, validation=(found,)), tmp_path / "m.json")
    (stored,) = load_calibration(tmp_path / "m.json").validation
    assert log_verdict(stored).to_dict()["uses"] == dict.fromkeys(
        ("feed_forward", "monitoring", "simulation"), DO_NOT_USE
    )


@pytest.mark.parametrize(
    ("status", "limit", "passed"),
    [
        ("ok", (), None),
        ("suspect", (), None),
        ("contradicted", (), False),
        ("ok", (-1e9,), True),
        ("ok", (1.1,), False),
    ],
)
def test_json_says_passed_only_of_a_limit(
    status: Setup, limit: tuple[float, ...], passed: bool | None, tmp_path: Path
) -> None:
    options = [word for value in limit for word in ("--min-r2", value)]
    for logs in ([bench().unseen], [bench().unseen, bench().unseen]):
        found = run("validate", saved(tmp_path, status), *logs, *options, "--json")
        assert json.loads(found.out)["passed"] is passed
        assert found.code == int(bool(limit) and not passed)


def test_json_does_not_say_that_training_data_passed() -> None:
    found = json.loads(done("validate", bench().model, bench().training, bench().unseen, "--json"))
    assert [found["passed"], *(log["passed"] for log in found["logs"])] == [None] * 3


def test_reports_of_contradicted_and_unvalidated_models_have_no_green(tmp_path: Path) -> None:
    page = write_report(with_setup("contradicted"), tmp_path / "red.html", [], [unseen()])
    assert page.read_text().count(f"</span> {DO_NOT_USE}</span>") == 3 + 1 + 2  # uses, parameters, joints
    training = write_report(
        load_calibration(bench().model), tmp_path / "grey.html", [read_log(bench().training)], []
    ).read_text()
    uses = training[training.index("Verdict by log and use") : training.index("Parameters: ")]
    assert uses.count("not validated") == 3
    assert "badge good" not in uses


@pytest.mark.parametrize(
    "words",
    [
        ("validate", "MODEL", "LOG"),
        ("predict", "MODEL", "LOG", "--output", "OUT"),
        ("compare", "MODEL", "OTHER", "LOG"),
        ("monitor", "MODEL", "LOG"),
        pytest.param(("export", "MODEL", "--to", "c", "--output", "OUT"), marks=pytest.mark.thorough),
        ("report", "MODEL", "LOG", "--output", "OUT"),
        ("payload", "MODEL", "LOG"),
        ("simulate", "--model", "MODEL", "--experiment", "excitation", "--duration", "2", "--output", "OUT.csv"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_marks_a_contradicted_model(words: tuple[str, ...], tmp_path: Path) -> None:
    model, other = saved(tmp_path), tmp_path / "other.json"
    jw.save_model(fitted(), other)
    names = {
        "MODEL": model,
        "OTHER": other,
        "LOG": bench().unseen,
        "OUT": tmp_path / "out",
        "OUT.csv": tmp_path / "out.csv",
    }
    ended = run(*(names.get(word, word) for word in words))
    assert f"{model}: do not use: the training data contradict the declared set-up (output sign)" in ended.err


@pytest.mark.thorough
def test_json_states_the_set_up(tmp_path: Path) -> None:
    model, log = saved(tmp_path), bench().unseen
    found = json.loads(done("validate", model, log, "--json"))
    assert (found["setup"], found["parameters"]["verdict"]) == ("contradicted", DO_NOT_USE)
    assert set(found["verdict"]["uses"].values()) == {DO_NOT_USE}
    assert run("validate", model, log, "--min-r2", "0").code == 1
    predicted = json.loads(done("predict", model, log, "--output", tmp_path / "p.csv", "--json"))
    assert predicted["setup"] == "contradicted"
    monitored = json.loads(run("monitor", model, log, "--json").out)
    assert (monitored["setup"], monitored["status"] != "ok") == ("contradicted", True)
    assert "contradict the declared set-up" in monitored["reasons"][0]
    (exported,) = json.loads(done("export", model, "--to", "c", "--output", tmp_path / "c", "--json"))
    assert exported["setup"] == "contradicted"
    assert "Do not use" in (tmp_path / "c" / "EXPORT.md").read_text()
