"""The report: complete in itself, honest about what was proven, and safe whatever the names in a log."""

from __future__ import annotations

import base64
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise
from browser import needs_browser, opened
from jointwise.calibrate import Options, calibrate
from jointwise.data import Log, holdout
from jointwise.data.write import write_csv
from jointwise.errors import DataError, MissingExtraError, ModelError, OutputError
from jointwise.estimation.select import Choice
from jointwise.estimation.structure import Structure
from jointwise.model.terms import Coulomb, Hysteresis, PowerFlow, Rated, Stribeck, Viscous
from jointwise.report import plot_prediction, write_report
from jointwise.report.evidence import gather
from jointwise.report.figure import safe_json
from jointwise.report.friction import friction_curve, friction_data, hysteresis_loops, steady_columns
from jointwise.report.markup import Html, element, markup, table
from jointwise.report.numbers import fixed, listed, number
from jointwise.report.sections import SECTIONS
from jointwise.report.sections.reproduce import usual_command
from jointwise.report.sections.use import python_lines
from jointwise.report.sections.verdict import Score, evidence_score, tone_of
from jointwise.report.thinning import thin
from jointwise.result import Calibration, save_calibration
from jointwise.result.validation import Pooled
from jointwise.simulation.synthetic import synthetic_log

pytest.importorskip("plotly")
HOSTILE = "<script>alert(1)</script>&\"'</title>.csv"


@pytest.fixture(scope="module")
def logs() -> tuple[Log, Log]:
    robot = jointwise.robot("ur5e")
    first = synthetic_log(robot, duration=15.0, rate=200.0, seed=1).log
    second = synthetic_log(robot, duration=10.0, rate=200.0, seed=2).log
    return named(first, "training.csv", "a" * 64), named(second, "other.csv", "b" * 64)


@pytest.fixture(scope="module")
def calibration(logs: tuple[Log, Log]) -> Calibration:
    return fitted(logs[0], Structure("hysteresis", load="square", relaxation=3.0))


@pytest.fixture(scope="module")
def page(calibration: Calibration, logs: tuple[Log, Log], tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = replace(calibration, choices=(Choice("load dependence", (("none", 0.02), ("square", 0.01)), "square"),))
    return write_report(chosen, tmp_path_factory.mktemp("report") / "new" / "folder", [logs[0]], [logs[1]])


def fitted(log: Log, structure: Structure) -> Calibration:
    options = Options(structure=structure, free=(), position_cutoff=8.0, lag=0.0)
    return calibrate(log, jointwise.robot("ur5e"), options=options)


def named(log: Log, path: str, sha256: str = "") -> Log:
    return replace(log, origin=replace(log.origin, path=path, sha256=sha256))


def in_torque(log: Log, gains: Any) -> Log:
    return replace(log, torque=log.channel("current") * gains, current=None, names={})


class Reader(HTMLParser):
    """Collects tags, the sources they load, the figures' documents and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.documents: list[Any] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.json = False
        self.feed(text)
        self.close()
        self.text = " ".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        self.tags.append(tag)
        if own.get("id"):
            self.ids.append(str(own["id"]))
        if tag not in ("meta", "br", "hr", "link", "img"):
            self.open.append(tag)
        self.json = tag == "script" and own.get("type") == "application/json"
        for key in ("src", "srcset", "href", "data", "action", "poster"):
            if own.get(key) and not str(own[key]).startswith("#"):
                self.loads.append(str(own[key]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closes something else"

    def handle_data(self, data: str) -> None:
        if self.json:
            self.documents.append(json.loads(data, parse_constant=refused))
            self.json = False
        elif not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)


def refused(literal: str) -> None:
    raise AssertionError(f"{literal} is no JSON")


def numbers(spec: dict[str, str]) -> Any:
    return np.frombuffer(base64.b64decode(spec["bdata"]), dtype="<f4")


def own_part(text: str) -> str:
    """Return the page without the library and without the figures' numbers."""
    start = text.index("<script>")
    return re.sub(r'"bdata":"[^"]*"', "", text[:start] + text[text.index("</script>", start) :])


def test_the_page_has_every_section_and_is_well_formed(page: Path) -> None:
    reader = Reader(page.read_text(encoding="utf-8"))
    assert not reader.open
    assert [own for own in reader.ids if own in {section.ID for section in SECTIONS}] == [own.ID for own in SECTIONS]
    assert reader.tags.count("h1") == 1
    assert reader.tags.count("h2") == len(SECTIONS)
    assert {"caption", "figcaption", "noscript", "nav", "main"} <= set(reader.tags)
    for words in ("R²", "Fit %", "unseen data", "training data", "SHA-256", "a" * 64, "b" * 64, "95 % interval"):
        assert words in reader.text


def test_the_page_loads_nothing(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    reader = Reader(text)
    assert reader.loads == []
    own = own_part(text)
    assert "http://" not in own and "https://" not in own
    assert "url(" not in own and "@import" not in own
    assert "default-src 'none'" in own
    assert "sendChartToCloud" not in own and 'plotlyServerURL: ""' in own


def test_the_page_is_small_and_has_no_nan(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert page.stat().st_size < 8_000_000
    assert not re.search(r"\b(NaN|nan|inf|Infinity|None)\b", own_part(Html(text)).split('"use strict"')[0])


def test_every_figure_has_words_and_numbers(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    documents = Reader(text).documents
    assert len(documents) == text.count('class="plot"') == text.count('role="img" aria-label="Joint')
    assert len(documents) == 6 * 7  # two logs, friction, hysteresis, residual over position, speed and time
    for document in documents:
        for trace in document["data"]:
            x = document["x"] if trace["x"] == "shared" else trace["x"]
            assert len(numbers(x)) == len(numbers(trace["y"])) <= 4002


def test_residual_and_peaks_survive(page: Path, calibration: Calibration, logs: tuple[Log, Log]) -> None:
    document = Reader(page.read_text(encoding="utf-8")).documents[0]  # joint 1, the unseen log first
    measured, predicted, residual = (numbers(trace["y"]) for trace in document["data"])
    np.testing.assert_allclose(measured - predicted, residual, atol=1e-5)
    current = logs[1].channel("current")[:, 0]
    error = current - calibration.predict(logs[1])[:, 0]
    assert measured.max() == pytest.approx(current.max()) and measured.min() == pytest.approx(current.min())
    assert residual.max() == pytest.approx(error.max(), abs=1e-5)


def test_hostile_names_are_text(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    log = named(logs[0], HOSTILE)
    source = replace(calibration.provenance.logs[0], file=HOSTILE, findings=(HOSTILE,))
    robot = calibration.model.robot
    joints = (replace(robot.joints[0], name=HOSTILE), *robot.joints[1:])
    hostile = replace(
        calibration,
        provenance=replace(calibration.provenance, logs=(source,), mounting=HOSTILE),
        model=replace(calibration.model, robot=replace(robot, title=HOSTILE, joints=joints)),
        choices=(Choice(HOSTILE, ((HOSTILE, 0.1),), HOSTILE),),
        structure_text=HOSTILE,
        gain_source=HOSTILE,
    )
    for training in ([log], []):
        text = write_report(hostile, tmp_path, training, [named(logs[1], HOSTILE)], HOSTILE).read_text(encoding="utf-8")
        reader = Reader(text)
        assert not reader.open
        assert "<script>alert" not in text
        assert reader.tags.count("title") == 1
        assert HOSTILE in reader.text


def test_without_validation_it_warns(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    reader = Reader(write_report(calibration, tmp_path, [logs[0]]).read_text(encoding="utf-8"))
    assert "Nothing was validated on unseen data" in reader.text
    assert "on data it has not seen" not in reader.text
    assert "Use with care" in reader.text


def test_a_training_log_is_no_proof(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    evidence = gather(calibration, [logs[0]], [logs[0]], None)
    assert evidence.unseen == ()
    assert evidence_score(evidence).ground != "unseen"
    assert gather(calibration, [], [logs[0]], None).unseen == ()
    first, second = holdout(logs[0], 0.3)
    assert len(gather(calibration, [first], [second], None).unseen) == 1
    assert gather(calibration, [logs[0]], [second], None).unseen == ()


def test_the_score_is_that_of_the_validation(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    evidence = gather(calibration, [logs[0]], [logs[1]], None)
    assert evidence_score(evidence).mean == pytest.approx(evidence.unseen[0].validation.mean_nmse)
    stored = replace(calibration, validation={"logs": [evidence.unseen[0].validation.to_dict()]})
    score = evidence_score(gather(stored, [logs[0]], [], None))
    assert (score.ground, score.mean) == ("unseen", pytest.approx(evidence.unseen[0].validation.mean_nmse))


def at_rest(log: Log, calibration: Calibration, off: float) -> Log:
    """Return a log in which no joint moves and the output is off by a constant."""
    rng = np.random.default_rng(5)
    q = log.q[0] + 1e-5 * rng.normal(size=log.q.shape)
    still = replace(log, q=q, qd=None, theta=None, current=log.current, origin=replace(log.origin, sha256="rest"))
    noise = 0.02 * rng.normal(size=q.shape)
    return replace(still, current=calibration.predict(still) + off + noise)


def test_a_log_at_rest_does_not_decide(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    still = at_rest(logs[1], calibration, 0.24)
    alone = evidence_score(gather(calibration, [logs[0]], [logs[1]], None))
    both = evidence_score(gather(calibration, [logs[0]], [logs[1], still], None))
    assert (both.mean, both.tone) == (pytest.approx(alone.mean), alone.tone)
    assert all(own.rest == pytest.approx(0.24, abs=0.02) for own in both.joints)
    assert evidence_score(gather(calibration, [logs[0]], [still], None)).ground != "unseen"
    reader = Reader(write_report(calibration, tmp_path, [logs[0]], [still]).read_text(encoding="utf-8"))
    assert "off by up to 0.24 A" in reader.text
    assert "Nothing was validated on unseen data that move." in reader.text
    assert "part of the training data" not in reader.text
    assert "Moving samples" in reader.text  # of the training log
    assert reader.text.count("No joint moves in this log") == 1


def test_an_error_that_is_sensor_noise_is_good() -> None:
    """A small signal under noise has a low R²; the same R² far above the noise is poor."""
    quiet, loud = Pooled(0.2, 0.03, noise=0.025), Pooled(0.2, 0.3, noise=0.025)
    assert (tone_of(quiet), tone_of(loud)) == ("good", "poor")
    assert Score("unseen", 0.2, (quiet, quiet)).tone == "good"
    assert Score("unseen", 0.2, (loud, loud)).tone == "poor"


def test_logs_are_pooled_by_their_variance(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    quiet = replace(logs[1].slice(0, logs[1].samples // 10), origin=replace(logs[1].origin, sha256="quiet"))
    exhibits = gather(calibration, [logs[0]], [logs[1], quiet], None).unseen
    score = evidence_score(gather(calibration, [logs[0]], [logs[1], quiet], None))
    for j, own in enumerate(score.joints):
        rows = [one.validation.joints[j] for one in exhibits if one.validation.joints[j].nmse is not None]
        error = sum(row.samples * row.mse for row in rows) / sum(row.samples * row.variance for row in rows)
        assert own.nmse == pytest.approx(error)


def test_a_bad_model_is_called_bad(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    wrong = replace(calibration, estimate=replace(calibration.estimate, values=0.3 * calibration.estimate.values))
    reader = Reader(write_report(wrong, tmp_path, [logs[0]], [logs[1]]).read_text(encoding="utf-8"))
    assert "Do not rely on it" in reader.text


def test_torque_and_other_friction(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    training, other = (in_torque(log, calibration.gains) for log in logs)
    own = fitted(training, Structure("tanh", stribeck=0.1, powers=(1.0, 2.0)))
    reader = Reader(write_report(own, tmp_path, [training], [other]).read_text(encoding="utf-8"))
    assert "joint torque of your" in reader.text and "RMSE [Nm]" in reader.text
    assert len(reader.documents) == 6 * 6  # no hysteresis loops


def test_undetermined_parameters_have_no_number(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path
) -> None:
    values = calibration.estimate.values.copy()
    values[0] = 123.456789
    status = ("undetermined", *calibration.estimate.status[1:])
    lost = replace(calibration, estimate=replace(calibration.estimate, values=values, status=status))
    text = write_report(lost, tmp_path, [], [logs[1]]).read_text(encoding="utf-8")
    assert "123.4" not in own_part(text)
    assert "1 undetermined" in Reader(text).text


def test_infinite_condition_numbers_are_told(calibration: Calibration, tmp_path: Path) -> None:
    endless = replace(calibration.estimate, condition=np.inf, condition_scaled=np.inf)
    reader = Reader(write_report(replace(calibration, estimate=endless), tmp_path, []).read_text(encoding="utf-8"))
    assert "infinite" in reader.text


def test_gaps_interrupt_the_lines(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    log = logs[1]
    late = replace(log, t=np.where(np.arange(log.samples) < 900, log.t, log.t + 2.0))
    document = Reader(write_report(calibration, tmp_path, [], [late]).read_text(encoding="utf-8")).documents[0]
    assert np.isnan(numbers(document["data"][0]["y"])).sum() == 1
    assert np.isfinite(numbers(document["x"])).all()


def test_many_logs_stay_small(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    others = [named(logs[1], f"other{k}.csv", f"{k:064d}") for k in range(7)]
    path = write_report(calibration, tmp_path, [logs[0]], others)
    assert path.stat().st_size < 8_000_000
    assert "3 more logs" in Reader(path.read_text(encoding="utf-8")).text


def test_the_page_says_how_to_use_the_model(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_report(calibration, tmp_path, [logs[0]], file="my arm.json").read_text(encoding="utf-8")
    reader = Reader(page)
    assert "jointwise predict 'my arm.json' LOG.csv --output predicted.csv" in reader.text
    titles = [section.TITLE for section in SECTIONS]
    assert titles[-2:] == ["How to use it", "How to reproduce"]
    save_calibration(calibration, tmp_path / "my arm.json")
    write_csv(logs[1], tmp_path / "LOG.csv")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(python_lines("my arm.json", calibration), "page", "exec"), names)
    np.testing.assert_allclose(names[calibration.output], calibration.predict(logs[1]), atol=1e-6)


def test_the_command_names_what_was_used(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    first, second = holdout(logs[0], 0.3)
    assert "--holdout 0.3" in usual_command(gather(calibration, [first], [second], None))
    spaced = named(logs[1], "my log.csv", "c" * 64)
    assert "--validate 'my log.csv' --output-signal" in usual_command(gather(calibration, [logs[0]], [spaced], None))
    reader = Reader(write_report(calibration, tmp_path, [], [], "jointwise do it").read_text(encoding="utf-8"))
    assert "jointwise do it" in reader.text


def test_plotly_missing(monkeypatch: pytest.MonkeyPatch, calibration: Calibration, tmp_path: Path) -> None:
    hide(monkeypatch, "plotly")
    with pytest.raises(MissingExtraError, match=re.escape("a report needs plotly. Install it with: pip install 'join")):
        write_report(calibration, tmp_path / "none", [])
    assert not (tmp_path / "none").exists()


def hide(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for name in [own for own in sys.modules if own.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)


def test_wrong_logs_and_places_leave_nothing(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no channel 'current'"):
        write_report(calibration, tmp_path / "a", [], [logs[1].select(current=False)])
    narrow = replace(logs[1], **{name: getattr(logs[1], name)[:, :5] for name in ("q", "qd", "current")}, names={})
    with pytest.raises(ModelError, match="5 joints"):
        write_report(calibration, tmp_path / "a", [], [narrow])
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        write_report(calibration, tmp_path / "file" / "b", [])


def test_a_picture(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = plot_prediction(calibration, logs[1], tmp_path / "plot.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [own.name for own in tmp_path.iterdir()] == ["plot.png"]
    with pytest.raises(OutputError, match="cannot be written"):
        plot_prediction(calibration, logs[1], tmp_path / "none" / "plot.png")


def test_matplotlib_missing(monkeypatch: pytest.MonkeyPatch, calibration: Calibration, logs: tuple[Log, Log]) -> None:
    hide(monkeypatch, "matplotlib")
    with pytest.raises(MissingExtraError, match=re.escape("jointwise[plot]")):
        plot_prediction(calibration, logs[1], "plot.png")


def test_steady_friction_is_that_of_the_terms() -> None:
    speed = np.array([-1.0, -0.3, 0.3, 1.0])
    forgetful = Hysteresis((1e-3, 2e-2), 0.1, load="square", shape=(0.25, 0.75))
    bristle = Rated("lugre", (1e-3,), (1.0,), extra=0.3, speed=0.2, load="square")
    long = np.arange(4000) / 1000.0
    for term in (Coulomb("absolute"), Viscous((1.0, 2.0)), Stribeck(0.2), PowerFlow(), forgetful, bristle):
        columns = steady_columns(term, speed, 2.0)
        for k, v in enumerate(speed):
            moving = {"q": v * long, "qd": np.full(4000, v), "qdd": 0.0 * long, "load": np.full(4000, 2.0)}
            settled = term.columns(jointwise_signals(moving))[0][-1]
            np.testing.assert_allclose(columns[k], settled, rtol=2e-2, atol=1e-9)


def jointwise_signals(moving: dict[str, Any]) -> Any:
    from jointwise.model.terms import JointSignals

    return JointSignals(rate=1000.0, **moving)


def test_the_curve_meets_the_points(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    data = friction_data(calibration, [logs[0]])
    assert 500 <= len(data.speed) <= 1000
    for joint in (0, 1):
        curve = friction_curve(calibration, joint, float(data.typical[joint]))
        fast = np.abs(data.speed[:, joint]) > 0.2
        meant = np.interp(data.speed[fast, joint], curve.speed, curve.torque)
        assert np.corrcoef(meant, data.torque[fast, joint])[0, 1] > 0.97
        assert (curve.half >= 0.0).all() and curve.half.max() > 0.0
        np.testing.assert_allclose(curve.torque, -curve.torque[::-1], atol=1e-9)


def test_loops_close_and_take_energy(calibration: Calibration) -> None:
    for loop in hysteresis_loops(calibration, 0):
        assert loop.torque[0] == pytest.approx(loop.torque[-1], abs=0.02 * np.abs(loop.torque).max())
        assert np.trapezoid(loop.torque, loop.displacement) > 0.0


def test_thinning_keeps_peaks_and_ends() -> None:
    random = np.random.default_rng(3)
    for samples in (1, 2, 399, 400, 401, 100_003):
        a, b = random.normal(size=(2, samples))
        rows = thin(a, b, most=400)
        assert len(rows) <= 400 and (np.diff(rows) > 0).all()
        assert (rows[0], rows[-1]) == (0, samples - 1)
        for own in (a, b):
            assert own[rows].max() == own.max() and own[rows].min() == own.min()


def test_markup_escapes_all_but_markup() -> None:
    assert element("p", "<b>", Html("<i></i>"), class_="a", title='"x"', hidden=None) == (
        '<p class="a" title="&quot;x&quot;">&lt;b&gt;<i></i></p>'
    )
    assert markup(3) == "3"
    assert "&lt;x&gt;" in table("<x>", ["a"], [["b"]])
    assert safe_json({"a": "</script><!--&\u2028"}) == r'{"a":"\u003c/script\u003e\u003c!--\u0026\u2028"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        safe_json(float("nan"))


def test_numbers_read_well() -> None:
    assert (fixed(-1e-9, 2), fixed(None, 2), number(float("inf")), number(0.123456)) == ("0.00", "–", "–", "0.1235")
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")


@needs_browser
def test_a_browser_finds_nothing_wrong(page: Path, tmp_path: Path) -> None:
    with opened(page, tmp_path, size=(1280, 9000)) as view:  # the motion in space has a test of its own
        view.wait("document.querySelectorAll('.main-svg').length > 0")
        assert view.evaluate("document.querySelectorAll('[role=tab]').length") == 6 + 6 + 6 + 7
        assert view.complaints == []
        assert [own for own in view.requests if not own.startswith(("data:", "blob:"))] == [page.as_uri()]


def test_without_validation_the_worse_figure_stands(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    fitted_error = evidence_score(gather(calibration, [logs[0]], [], None))
    assert fitted_error.ground == "training"
    for held_out, ground in ((0.5 * fitted_error.mean, "training"), (2.0 * fitted_error.mean, "held out")):
        chosen = replace(calibration, choices=(Choice("load dependence", (("none", held_out),), "none"),))
        score = evidence_score(gather(chosen, [logs[0]], [], None))
        assert (score.ground, score.mean) == (ground, max(held_out, fitted_error.mean))
        assert score.tone != "good"
