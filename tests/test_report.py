"""The calibration report: self-contained, correct about validation, and safe for any names in a log."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointwise
from browser import needs_browser, opened
from jointwise.calibration import calibrate
from jointwise.data import Log, check_quality, holdout
from jointwise.data.overlap import sketch
from jointwise.data.write import write_csv
from jointwise.errors import DataError, MissingExtraError, ModelError, OutputError
from jointwise.estimation.cross_validation import Choice
from jointwise.estimation.structure import Structure
from jointwise.finding import Finding, worst
from jointwise.formatting import fixed, listed, number
from jointwise.model.terms import Coulomb, Hysteresis, PowerFlow, Rated, Stribeck, Viscous
from jointwise.options import Options
from jointwise.report import write_report
from jointwise.report.calibration import SECTIONS
from jointwise.report.data import collect
from jointwise.report.figure import downsample, safe_json
from jointwise.report.page import Html, element, environment, markup, table
from jointwise.report.sections.reproduce import default_command, python_lines
from jointwise.report.sections.verdict import Assessment, assess, joint_grade
from jointwise.result import Calibration, save_model, validate
from jointwise.result.diagnostics import friction_curve, friction_samples, hysteresis_loops, steady_columns
from jointwise.result.metrics import Pooled
from report_numbers import numbers
from synthetic import synthetic_log

pytest.importorskip("jinja2")
HOSTILE = "<script>alert(1)</script>&\"'</title>.csv"


@pytest.fixture(scope="module")
def logs() -> tuple[Log, Log]:
    robot = jointwise.load_robot("ur5e")
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
    return calibrate(log, jointwise.load_robot("ur5e"), options=options)


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
        attributes = dict(attrs)
        self.tags.append(tag)
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        if tag not in ("meta", "br", "hr", "link", "img"):
            self.open.append(tag)
        self.json = tag == "script" and attributes.get("type") == "application/json"
        for key in ("src", "srcset", "href", "data", "action", "poster"):
            if attributes.get(key) and not str(attributes[key]).startswith("#"):
                self.loads.append(str(attributes[key]))

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


def page_content(text: str) -> str:
    """Return the page without the library and without the figures' numbers."""
    start = text.index('<script type="application/gzip"')
    return re.sub(r'"bdata":"[^"]*"', "", text[:start] + text[text.index("</script>", start) :])


def test_page_has_every_section_and_is_well_formed(page: Path) -> None:
    reader = Reader(page.read_text(encoding="utf-8"))
    assert not reader.open
    known = [id_ for id_, _, _ in SECTIONS]
    assert [name for name in reader.ids if name in known] == known
    assert reader.tags.count("h1") == 1
    assert reader.tags.count("h2") == len(SECTIONS)
    assert {"caption", "figcaption", "noscript", "nav", "main"} <= set(reader.tags)
    for words in ("R²", "Fit %", "validation data", "SHA-256", "a" * 64, "b" * 64, "95 % confidence interval"):
        assert words in reader.text


def test_every_r2_states_its_samples(page: Path) -> None:
    """Cards count from the first to the last movement of all logs, captions all samples of one log: they differ."""
    text = page.read_text(encoding="utf-8")
    captions = re.findall(r"<figcaption>.*?</figcaption>", text)
    assert text.count("validation data, first to last movement") == text.count('class="card-number"') > 0
    fits = [caption for caption in captions if "R² " in caption]
    assert fits and all("all samples" in caption for caption in fits)


def test_page_loads_nothing_from_the_network(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    reader = Reader(text)
    assert reader.loads == []
    content = page_content(text)
    assert "http://" not in content and "https://" not in content
    assert "url(" not in content and "@import" not in content
    (library,) = re.findall(r'<script type="application/gzip" id="library">(.*?)</script>', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    scripts = gzip.decompress(base64.b64decode(library)), script.encode()
    policy = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(each).digest()).decode()}'" for each in scripts)
    assert f"default-src 'none'; script-src {policy}; style-src" in unescape(text)
    assert "sendChartToCloud" not in content and 'plotlyServerURL: ""' in content


def test_page_is_small_and_contains_no_nan(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert page.stat().st_size < 1_500_000
    assert not re.search(r"\b(NaN|nan|inf|Infinity|None)\b", page_content(Html(text)).split('"use strict"')[0])


def test_every_figure_has_a_description_and_data(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    documents = Reader(text).documents
    assert len(documents) == text.count('class="plot"') == text.count('role="img" aria-label="Joint')
    assert len(documents) == 6 * 7  # two logs, friction, hysteresis, residual over position, speed and time
    for document in documents:
        for trace in document["data"]:
            x = document["x"] if trace["x"] == "shared" else trace["x"]
            assert len(numbers(x)) == len(numbers(trace["y"])) <= 1502


def test_residual_and_peaks_are_preserved(page: Path, calibration: Calibration, logs: tuple[Log, Log]) -> None:
    document = Reader(page.read_text(encoding="utf-8")).documents[0]  # joint 1, the validation log first
    measured, predicted, residual = (numbers(trace["y"]) for trace in document["data"])
    bounds = [0.5 * trace["y"]["step"] for trace in document["data"]]  # of the rounding to 16 bits
    np.testing.assert_allclose(measured - predicted, residual, rtol=0.0, atol=sum(bounds) + 1e-9)
    current = logs[1].channel("current")[:, 0]
    error = current - calibration.predict(logs[1])[:, 0]
    assert measured.max() == pytest.approx(current.max()) and measured.min() == pytest.approx(current.min())
    assert residual.max() == pytest.approx(error.max(), abs=1e-9)


def test_hostile_names_are_escaped(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
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


def test_warns_without_validation(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    reader = Reader(write_report(calibration, tmp_path, [logs[0]]).read_text(encoding="utf-8"))
    assert "The model was not validated on held-out data." in reader.text
    assert "not used for training" not in reader.text
    assert "Not validated" in reader.text


def trained_on(calibration: Calibration, log: Log) -> Calibration:
    """Return a calibration whose training data are a log."""
    source = replace(calibration.provenance.logs[0], sketch=sketch(log, calibration.output))
    return replace(calibration, provenance=replace(calibration.provenance, logs=(source,)))


def test_training_log_is_not_validation_data(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    data = collect(calibration, [logs[0]], [logs[0]])
    assert data.held_out == ()
    assert assess(data).basis != "validation"
    assert collect(calibration, [], [logs[0]]).held_out == ()
    first, second = holdout(logs[0], 0.3)
    assert collect(calibration, [first], [second]).held_out == ()
    assert len(collect(trained_on(calibration, first), [first], [second]).held_out) == 1


def test_assessment_equals_the_validation_error(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    data = collect(calibration, [logs[0]], [logs[1]])
    assert assess(data).mean == pytest.approx(data.held_out[0].validation.motion_nmse)
    stored = replace(calibration, validation=(data.held_out[0].validation,))
    result = assess(collect(stored, [logs[0]], []))
    assert (result.basis, result.mean) == ("validation", pytest.approx(data.held_out[0].validation.motion_nmse))


def at_rest(log: Log, calibration: Calibration, off: float) -> Log:
    """Return a log in which no joint moves and the output is off by a constant."""
    rng = np.random.default_rng(5)
    q = log.q[0] + 1e-5 * rng.normal(size=log.q.shape)
    still = replace(log, q=q, qd=None, theta=None, current=log.current, origin=replace(log.origin, sha256="rest"))
    noise = 0.02 * rng.normal(size=q.shape)
    return replace(still, current=calibration.predict(still) + off + noise)


def test_log_at_rest_does_not_count(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    still = at_rest(logs[1], calibration, 0.24)
    alone = assess(collect(calibration, [logs[0]], [logs[1]]))
    both = assess(collect(calibration, [logs[0]], [logs[1], still]))
    assert (both.mean, both.grade) == (pytest.approx(alone.mean), alone.grade)
    assert all(joint.rest == pytest.approx(0.24, abs=0.02) for joint in both.joints)
    assert assess(collect(calibration, [logs[0]], [still])).basis != "validation"
    reader = Reader(write_report(calibration, tmp_path, [logs[0]], [still]).read_text(encoding="utf-8"))
    assert "the RMS error there is up to 0.24 A" in reader.text
    assert "The model was not validated on held-out data in which a joint moves." in reader.text
    assert "overlaps the training data" not in reader.text
    assert "Moving samples" in reader.text  # of the training log
    assert reader.text.count("No joint moves in this log") == 1


def test_error_at_sensor_noise_is_good() -> None:
    """A small signal under noise has a low R²; the same R² far above the noise is poor."""
    quiet, loud = Pooled(0.2, 0.03, noise=0.025), Pooled(0.2, 0.3, noise=0.025)
    assert (joint_grade(quiet), joint_grade(loud)) == ("good", "poor")
    assert Assessment("validation", 0.2, (quiet, quiet)).grade == "good"
    assert Assessment("validation", 0.2, (loud, loud)).grade == "poor"


def test_logs_are_pooled_by_their_variance(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    quiet = replace(logs[1].slice(0, logs[1].samples // 10), origin=replace(logs[1].origin, sha256="quiet"))
    exhibits = collect(calibration, [logs[0]], [logs[1], quiet]).held_out
    result = assess(collect(calibration, [logs[0]], [logs[1], quiet]))
    for j, joint in enumerate(result.joints):
        rows = [one.validation.in_motion[j] for one in exhibits if one.validation.in_motion[j].nmse is not None]
        error = sum(row.samples * row.mse for row in rows) / sum(row.samples * row.variance for row in rows)
        assert joint.nmse == pytest.approx(error)


def test_wrong_model_is_graded_poor(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    wrong = replace(calibration, estimate=replace(calibration.estimate, values=0.3 * calibration.estimate.values))
    reader = Reader(write_report(wrong, tmp_path, [logs[0]], [logs[1]]).read_text(encoding="utf-8"))
    assert "Do not use" in reader.text


def test_torque_output_and_friction_without_hysteresis(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path
) -> None:
    training, other = (in_torque(log, calibration.gains) for log in logs)
    model = fitted(training, Structure("tanh", stribeck=0.1, powers=(1.0, 2.0)))
    reader = Reader(write_report(model, tmp_path, [training], [other]).read_text(encoding="utf-8"))
    assert "predicts the joint torque of the" in reader.text and "RMSE [Nm]" in reader.text
    assert len(reader.documents) == 6 * 6  # no hysteresis loops


def test_parameters_that_are_not_identifiable_have_no_value(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path
) -> None:
    values = calibration.estimate.values.copy()
    values[0] = 123.456789
    status = ("undetermined", *calibration.estimate.status[1:])
    lost = replace(calibration, estimate=replace(calibration.estimate, values=values, status=status))
    text = write_report(lost, tmp_path, [], [logs[1]]).read_text(encoding="utf-8")
    assert "123.4" not in page_content(text)
    assert "1 not identifiable" in Reader(text).text


def test_infinite_condition_numbers_are_shown(calibration: Calibration, tmp_path: Path) -> None:
    endless = replace(calibration.estimate, condition=np.inf, condition_scaled=np.inf)
    reader = Reader(write_report(replace(calibration, estimate=endless), tmp_path, []).read_text(encoding="utf-8"))
    assert "infinite" in reader.text


def test_gaps_interrupt_the_lines(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    log = logs[1]
    late = replace(log, t=np.where(np.arange(log.samples) < 900, log.t, log.t + 2.0))
    document = Reader(write_report(calibration, tmp_path, [], [late]).read_text(encoding="utf-8")).documents[0]
    assert np.isnan(numbers(document["data"][0]["y"])).sum() == 1
    assert np.isfinite(numbers(document["x"])).all()


def test_predictions_and_measures_are_computed_once(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str]] = []

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append((name, arguments[-1].origin.path))
            return function(*arguments, **options)

        return call

    for module, name in (("jointwise.result.calibration", "predict"), ("jointwise.data.quality", "measure")):
        monkeypatch.setattr(f"{module}.{name}", counted(name, getattr(sys.modules[module], name)))
    training, other = (replace(log) for log in logs)
    check_quality(training)
    write_report(calibration, tmp_path, [training], [validate(calibration, other)])
    files = ("other.csv", "training.csv")
    assert sorted(calls) == [(name, file) for name in ("measure", "predict") for file in files]


def test_many_logs_stay_small(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    others = [named(logs[1], f"other{k}.csv", f"{k:064d}") for k in range(7)]
    path = write_report(calibration, tmp_path, [logs[0]], others)
    assert path.stat().st_size < 1_500_000
    assert "3 more logs" in Reader(path.read_text(encoding="utf-8")).text


def test_usage_section_runs(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_report(calibration, tmp_path, [logs[0]], file="my arm.json").read_text(encoding="utf-8")
    reader = Reader(page)
    assert "jointwise predict 'my arm.json' LOG.csv --output predicted.csv" in reader.text
    titles = [title for _, title, _ in SECTIONS]
    assert titles[-2:] == ["Usage", "Reproduce"]
    save_model(calibration, tmp_path / "my arm.json")
    write_csv(logs[1], tmp_path / "LOG.csv")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(python_lines("my arm.json", calibration), "page", "exec"), names)
    np.testing.assert_allclose(names[calibration.output], calibration.predict(logs[1]), atol=1e-6)


def test_command_names_the_validation_data(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    first, second = holdout(logs[0], 0.3)
    assert "--holdout 0.3" in default_command(collect(trained_on(calibration, first), [first], [second]))
    spaced = named(logs[1], "my log.csv", "c" * 64)
    assert "--validate 'my log.csv' --output-signal" in default_command(collect(calibration, [logs[0]], [spaced]))
    reader = Reader(write_report(calibration, tmp_path, [], [], "jointwise do it").read_text(encoding="utf-8"))
    assert "jointwise do it" in reader.text


def test_jinja2_missing(monkeypatch: pytest.MonkeyPatch, calibration: Calibration, tmp_path: Path) -> None:
    environment.cache_clear()
    hide(monkeypatch, "jinja2")
    with pytest.raises(MissingExtraError, match=re.escape("a report needs jinja2. Install it with: pip install 'join")):
        write_report(calibration, tmp_path / "none", [])
    assert not (tmp_path / "none").exists()


def hide(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for name in [module for module in sys.modules if module.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)


def test_failed_reports_leave_no_files(calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no channel 'current'"):
        write_report(calibration, tmp_path / "a", [], [logs[1].select(current=False)])
    narrow = replace(logs[1], **{name: getattr(logs[1], name)[:, :5] for name in ("q", "qd", "current")}, names={})
    with pytest.raises(ModelError, match="5 joints"):
        write_report(calibration, tmp_path / "a", [], [narrow])
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="the directory cannot be created"):
        write_report(calibration, tmp_path / "file" / "b", [])


def test_steady_friction_equals_the_settled_terms() -> None:
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


def test_curve_follows_the_measured_points(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    data = friction_samples(calibration, [logs[0]])
    assert 350 <= len(data.speed) <= 700
    for joint in (0, 1):
        curve = friction_curve(calibration, joint, float(data.typical[joint]))
        fast = np.abs(data.speed[:, joint]) > 0.2
        meant = np.interp(data.speed[fast, joint], curve.speed, curve.torque)
        assert np.corrcoef(meant, data.torque[fast, joint])[0, 1] > 0.97
        assert (curve.half_width >= 0.0).all() and curve.half_width.max() > 0.0
        np.testing.assert_allclose(curve.torque, -curve.torque[::-1], atol=1e-9)


def test_loops_close_and_dissipate_energy(calibration: Calibration) -> None:
    for loop in hysteresis_loops(calibration, 0):
        assert loop.torque[0] == pytest.approx(loop.torque[-1], abs=0.02 * np.abs(loop.torque).max())
        assert np.trapezoid(loop.torque, loop.displacement) > 0.0


def test_downsampling_keeps_peaks_and_ends() -> None:
    random = np.random.default_rng(3)
    for samples in (1, 2, 399, 400, 401, 100_003):
        a, b = random.normal(size=(2, samples))
        rows = downsample(a, b, most=400)
        assert len(rows) <= 400 and (np.diff(rows) > 0).all()
        assert (rows[0], rows[-1]) == (0, samples - 1)
        for values in (a, b):
            assert values[rows].max() == values.max() and values[rows].min() == values.min()


def test_everything_but_markup_is_escaped() -> None:
    assert element("p", "<b>", Html("<i></i>"), class_="a", title='"x"', hidden=None) == (
        '<p class="a" title="&quot;x&quot;">&lt;b&gt;<i></i></p>'
    )
    assert markup(3) == "3"
    assert "&lt;x&gt;" in table("<x>", ["a"], [["b"]])
    assert safe_json({"a": "</script><!--&\u2028"}) == r'{"a":"\u003c/script\u003e\u003c!--\u0026\u2028"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        safe_json(float("nan"))


def test_findings_of_a_log_are_shown_with_their_severity(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path
) -> None:
    turned = replace(logs[1], qd=-np.asarray(logs[1].qd))
    text = write_report(calibration, tmp_path, [], [turned]).read_text(encoding="utf-8")
    assert (
        '<span class="badge error"><span class="mark" aria-hidden="true">✕</span> error</span> qd1 has the opp' in text
    )
    assert '<span class="advice">Turn it.</span>' in text
    style = text[: text.index("</style>")]
    assert all(f".badge.{severity}" in style for severity in ("ok", "warning", "error"))


def test_a_finding_is_the_same_as_text_json_and_html() -> None:
    found = Finding("warning", "payload", "<2 kg> more", "Declare it.", joint=1)
    assert found.line() == "warning: payload: <2 kg> more. Declare it."
    assert "<strong>payload</strong>: &lt;2 kg&gt; more." in found.__html__()
    entries = found.to_dict(check="subject")
    assert (entries["check"], entries["joint"], entries["evidence"]) == ("payload", 2, "<2 kg> more")
    assert worst([found, replace(found, severity="info")]) == "warning" and worst([]) == "ok"


def test_number_formats() -> None:
    assert (fixed(-1e-9, 2), fixed(None, 2), number(float("inf")), number(0.123456)) == ("0.00", "–", "–", "0.1235")
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")


@needs_browser
def test_browser_reports_no_errors(page: Path, tmp_path: Path) -> None:
    with opened(page, tmp_path, size=(1280, 9000)) as view:  # the animation has a separate test
        view.wait("document.querySelectorAll('.main-svg').length > 0")
        assert view.evaluate("document.querySelectorAll('[role=tab]').length") == 6 + 6 + 6 + 7
        assert view.complaints == []
        assert [url for url in view.requests if not url.startswith(("data:", "blob:"))] == [page.as_uri()]
        assert view.evaluate(WIDE_TABLES) == ""


WIDE_TABLES = """[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)
  .map(box => box.querySelector('caption').innerText).join()"""
"""JavaScript: captions of the tables of which a part is hidden."""


def test_without_validation_the_worse_error_counts(calibration: Calibration, logs: tuple[Log, Log]) -> None:
    fitted_error = assess(collect(calibration, [logs[0]], []))
    assert fitted_error.basis == "training"
    for held_out, ground in ((0.5 * fitted_error.mean, "training"), (2.0 * fitted_error.mean, "cross-validation")):
        chosen = replace(calibration, choices=(Choice("load dependence", (("none", held_out),), "none"),))
        result = assess(collect(chosen, [logs[0]], []))
        assert (result.basis, result.mean) == (ground, max(held_out, fitted_error.mean))
        assert result.grade != "good"


@needs_browser
def test_three_logs_print_on_fewer_than_twelve_pages(
    calibration: Calibration, logs: tuple[Log, Log], tmp_path: Path
) -> None:
    third = named(logs[1].slice(0, logs[1].samples // 2), "third.csv", "c" * 64)
    path = write_report(calibration, tmp_path, [logs[0]], [logs[1], third])
    with opened(path, tmp_path / "profile") as view:
        view.wait("Boolean(window.Plotly)")
        document = base64.b64decode(view.ask("Page.printToPDF", preferCSSPageSize=True)["data"])
        assert view.complaints == []
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", document)) < 12
