"""Wrong input on the command line: one clear line, the right exit code, no partial output, no traceback."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cli_runs import PLAIN, TRAINING, bench, refused, run
from data_files import SHARED, needs_shared
from jointwise.cli import output
from jointwise.errors import OutputError
from jointwise.formatting import table


def lines() -> list[list[str]]:
    """Return the cells of the training log."""
    return [line.split(",") for line in bench().training.read_text().split()]


def write(path: Path, rows: list[list[str]]) -> Path:
    path.write_text("\n".join(",".join(row) for row in rows) + "\n")
    return path


def without(column: str) -> Callable[[list[list[str]]], list[list[str]]]:
    def change(rows: list[list[str]]) -> list[list[str]]:
        place = rows[0].index(column)
        return [row[:place] + row[place + 1 :] for row in rows]

    return change


def with_cell(row: int, column: str, text: str) -> Callable[[list[list[str]]], list[list[str]]]:
    def change(rows: list[list[str]]) -> list[list[str]]:
        rows[row][rows[0].index(column)] = text
        return rows

    return change


def scaled(column: str, factor: float) -> Callable[[list[list[str]]], list[list[str]]]:
    def change(rows: list[list[str]]) -> list[list[str]]:
        places = [k for k, name in enumerate(rows[0]) if name.rstrip("12") == column]
        return [rows[0]] + [
            [repr(factor * float(cell)) if k in places else cell for k, cell in enumerate(row)] for row in rows[1:]
        ]

    return change


def backwards(rows: list[list[str]]) -> list[list[str]]:
    return [*rows[:300], *rows[500:700], *rows[300:500], *rows[700:]]


def shuffled(rows: list[list[str]]) -> list[list[str]]:
    order = np.random.default_rng(0).permutation(np.arange(1, len(rows)))
    return [rows[0]] + [row[:5] + rows[k][5:] for row, k in zip(rows[1:], order, strict=True)]


def still(rows: list[list[str]]) -> list[list[str]]:
    return [rows[0]] + [[row[0], *rows[1][1:3], "0.0", "0.0", *row[5:]] for row in rows[1:]]


def zeros(rows: list[list[str]]) -> list[list[str]]:
    return [rows[0]] + [["0"] * len(rows[0])] * 200_000


def stamped_zeros(rows: list[list[str]]) -> list[list[str]]:
    return [rows[0]] + [[f"{0.002 * k:.3f}", *["0"] * (len(rows[0]) - 1)] for k in range(200_000)]


BROKEN = {
    "missing column": (without("q1"), "q"),
    "missing stamps": (without("t"), "no column for 't'"),
    "missing joint of the output": (without("i2"), "current has 1 columns, q has 2"),
    "NaN": (with_cell(7, "q2", "nan"), "row 8, column 'q2' is missing or not finite"),
    "empty cell": (with_cell(7, "i1", ""), "row 8, column 'i1' is missing or not finite"),
    "text in a number": (with_cell(9, "q1", "12x"), "row 10, column 'q1': '12x' is not a number"),
    "garbage": (with_cell(9, "q1", "\x00\x01\x02"), "row 10, column 'q1'"),
    "empty": (lambda rows: [], "empty"),
    "header only": (lambda rows: rows[:1], "no rows"),
    "one row": (lambda rows: rows[:2], "only one row"),
    "few rows": (lambda rows: rows[:30], ""),
    "time backwards": (backwards, "first at row 501"),
    "degrees": (scaled("q", 180 / np.pi), "degrees"),
    "milliseconds": (scaled("t", 1000.0), "milliseconds?"),
    "shuffled output": (shuffled, "not identifiable"),
    "no motion": (still, "nothing moves"),
    "zeros": (zeros, ""),
    "zeros with stamps": (stamped_zeros, ""),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_logs_make_no_model(tmp_path: Path, kind: str) -> None:
    change, words = BROKEN[kind]
    log = write(tmp_path / "log.csv", change(lines()))
    argv = ("--robot", "planar2", "--output", tmp_path / "model.json", "--out-params", tmp_path / "parameters.csv")
    line = refused("calibrate", log, *argv)
    assert words in line
    assert str(log) in line or kind == "shuffled output"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv"]


@pytest.mark.parametrize(
    "kind", ["missing column", "NaN", "text in a number", "empty", "one row", "time backwards", "degrees", "zeros"]
)
def test_broken_logs_make_no_prediction(tmp_path: Path, kind: str) -> None:
    change, words = BROKEN[kind]
    log = write(tmp_path / "log.csv", change(lines()))
    assert words in refused("predict", bench().model, log, "--output", tmp_path / "p.csv")
    assert words in refused("validate", bench().model, log)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv"]


def test_a_very_large_file_of_zero_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    with log.open("wb") as file:
        file.truncate(300_000_000)
    refused("calibrate", log, "--robot", "planar2", "--output", tmp_path / "m.json")
    refused("inspect", log, "--robot", "planar2")


@needs_shared
def test_messy_files_become_no_model(tmp_path: Path) -> None:
    argv = ("--robot", "ur10e", "--output", tmp_path / "m.json")
    corrupt, nameless = (SHARED / "messy" / f"headerless_{name}.csv" for name in ("corrupt", "31_columns"))
    assert "no header row" in refused("calibrate", corrupt, *argv)
    assert "row" in refused("calibrate", corrupt, *argv, "--columns", "t,q*6,qd*6,i*6")
    assert "no header row, 31 columns" in refused("inspect", nameless, "--robot", "ur10e")
    columns = ("--columns", "t,q*6,qd*6,i*6,i_des*6,tau_des*6")
    assert json.loads(run("inspect", nameless, "--robot", "ur10e", *columns, "--json").out)["joints"] == 6
    assert not (tmp_path / "m.json").exists()


def test_wrong_robot(tmp_path: Path) -> None:
    log, out = bench().training, ("--output", tmp_path / "m.json")
    assert "Did you mean planar" in refused("calibrate", log, "--robot", "planar3", *out)
    assert "no such file" in refused("calibrate", log, "--robot", "none.urdf", *out)
    assert "the log has 2 joints" in refused("calibrate", log, "--robot", "ur5e", *out)
    assert "unknown mounting" in refused("calibrate", log, "--robot", "planar2", "--mounting", "roof", *out)
    assert "no such file" in refused("calibrate", "none.csv", "--robot", "planar2", *out)
    assert "gains must be 2" in refused("calibrate", log, "--robot", "planar2", *out, "--gains", 1, 2, 3)
    assert "unknown channel" in refused("calibrate", log, "--robot", "planar2", *out, "--columns", "speed=v")
    assert not (tmp_path / "m.json").exists()


@needs_shared
def test_a_model_for_another_robot(tmp_path: Path) -> None:
    assert "the log has 6 joints" in refused("validate", bench().model, TRAINING)
    assert "the log has 6 joints" in refused("predict", bench().model, TRAINING, "--output", tmp_path / "p.csv")


def newer(document: dict[str, object]) -> str:
    return json.dumps({**document, "schema": 99})


MODELS: dict[str, tuple[Callable[[dict[str, object]], str], str]] = {
    "empty": (lambda _: "", "not a JSON document"),
    "cut off": (lambda document: json.dumps(document)[:2000], "not a JSON document"),
    "other JSON": (lambda _: "[1, 2]", "not a Jointwise calibration"),
    "newer schema": (newer, "schema 99"),
    "missing part": (
        lambda document: json.dumps({k: v for k, v in document.items() if k != "filters"}),
        "'filters' is missing",
    ),
    "not finite": (lambda document: json.dumps({**document, "fastest": [float("nan"), 1]}), "not a JSON document"),
    "nested": (lambda _: "[" * 100_000, "not a JSON document"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_wrong_models(tmp_path: Path, kind: str) -> None:
    change, words = MODELS[kind]
    model = tmp_path / "model.json"
    model.write_text(change(json.loads(bench().model.read_text())))
    for argv in (
        ("validate", model, bench().unseen),
        ("predict", model, bench().unseen, "--output", tmp_path / "p.csv"),
        ("compare", bench().model, model, bench().unseen),
    ):
        assert words in refused(*argv)
    assert not (tmp_path / "p.csv").exists()


def test_no_model_at_all(tmp_path: Path) -> None:
    assert "no such file" in refused("validate", tmp_path / "none.json", bench().unseen)
    assert "cannot be read" in refused("validate", tmp_path, bench().unseen)
    assert "no such file" in refused("predict", tmp_path / "none", bench().unseen, "--output", tmp_path / "p")


def outputs(target: Path) -> list[tuple[object, ...]]:
    """Return commands that write to a path."""
    files = bench()
    return [
        ("calibrate", files.training, "--robot", "planar2", "--output", target, *PLAIN),
        ("calibrate", files.training, "--robot", "planar2", "--out-params", target, *PLAIN),
        ("predict", files.model, files.unseen, "--output", target),
        ("compile-rbd", "--mdh", files.training, "--out", target),
    ]


def test_the_output_is_refused_before_the_work(tmp_path: Path) -> None:
    for argv in outputs(tmp_path):
        assert "is a directory" in refused(*argv)
    for argv in outputs(tmp_path / "none" / "x"):
        assert "there is no directory" in refused(*argv)
    (tmp_path / "file").write_text("")
    argv = ("report", bench().model, bench().unseen, "--output", tmp_path / "file")
    assert "is a file" in refused(*argv)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported by the system: up front, or only when the file is created."""

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkstemp", forbidden)
        for argv in outputs(tmp_path / "x")[:3]:
            assert "cannot be written (Permission denied)" in refused(*argv)
    monkeypatch.setattr("os.access", lambda *_: False)
    for argv in outputs(tmp_path / "x"):
        assert "no permission" in refused(*argv)
    assert "no permission" in refused("report", bench().model, bench().unseen, "--output", tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stood there stays, nothing half-written is left."""
    real = os.fdopen

    class FullDisk:
        def __init__(self, *args: object, **options: object) -> None:
            self.file = real(*args, **options)  # type: ignore[call-overload]
            self.margin = 100

        def __enter__(self) -> FullDisk:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, text: str) -> int:
            self.margin -= len(text)
            if self.margin < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self.file.write(text))

        def writelines(self, texts: list[str]) -> None:
            for text in texts:
                self.write(text)

    bench()
    monkeypatch.setattr("jointwise.atomic.os.fdopen", FullDisk)
    target = tmp_path / "x"
    target.write_text("as before")
    for argv in outputs(target)[:3]:
        assert "cannot be written (No space left on device)" in refused(*argv)
    assert target.read_text() == "as before"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_standard_output_on_a_full_disk() -> None:
    command = [sys.executable, "-m", "jointwise", "validate", str(bench().model), str(bench().unseen)]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "jointwise: No space left on device.\n"


SLOW_FIT = """
import jointwise.calibration
real = jointwise.calibration.fit_structure
def slow(*args, **options):
    print("working", flush=True)
    time.sleep(60)
jointwise.calibration.fit_structure = slow
"""
SLOW_PIECES = """
import jointwise.result.predict
real = jointwise.result.predict.predict_chunks
def slow(*args):
    for piece, values in real(*args):
        yield piece, values
        print("working", flush=True)
        time.sleep(60)
jointwise.result.predict.predict_chunks = slow
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
@pytest.mark.parametrize(("slow", "which"), [(SLOW_FIT, 0), (SLOW_PIECES, 2)])
def test_interrupt_during_work(tmp_path: Path, slow: str, which: int) -> None:
    argv = [str(word) for word in outputs(tmp_path / "x")[which]]
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"  # a background shell ignores it
    script = f"import sys, time\n{heard}\n{slow}\nfrom jointwise.cli import main\nsys.exit(main({argv!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "jointwise: interrupted.\n")
    assert list(tmp_path.iterdir()) == []


INTERRUPTED_IMPORT = """
import sys
import jointwise.__main__ as program

class Interrupted:
    def find_spec(self, name, *_):
        if name == "jointwise.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
program.start()
"""


def test_interrupt_while_loading() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "jointwise: interrupted.\n")


INTERRUPTED_START = """
import os, signal
signal.signal(signal.SIGINT, signal.{handler})  # a background shell ignores it
import jointwise.__main__ as program
import jointwise.cli

def settings_from(*args):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise AttributeError("as libraries do") from None
    return Common()

import jointwise.cli.demo
from jointwise.cli.command import Common
jointwise.cli.settings_from = settings_from
jointwise.cli.demo.run = lambda args: 0
import sys
sys.argv = ["jointwise", "demo"]
program.start()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
@pytest.mark.parametrize(("handler", "ending"), [("default_int_handler", (130, "interrupted")), ("SIG_IGN", (0, ""))])
def test_interrupt_while_a_command_loads(handler: str, ending: tuple[int, str]) -> None:
    script = INTERRUPTED_START.format(handler=handler)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    line = f"jointwise: {ending[1]}.\n" if ending[1] else ""
    assert (ended.returncode, ended.stdout, ended.stderr) == (ending[0], "", line)


def test_interrupt_that_a_library_turns_into_another_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(_: object) -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("Error calling __set_name__") from None

    monkeypatch.setattr("jointwise.cli.demo.run", turned)
    assert refused("demo", code=130) == "jointwise: interrupted.\n"


def test_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: object) -> int:
        raise MemoryError

    monkeypatch.setattr("jointwise.cli.demo.run", exhausted)
    assert "not enough memory" in refused("demo")


def test_a_report_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    line = refused("report", bench().model, bench().unseen, "--output", tmp_path / "r")
    assert "pip install 'jointwise[report]'" in line
    assert not (tmp_path / "r").exists()


def test_files_of_a_command_are_written_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = pytest.importorskip("jointwise.report")

    def failing(*_: object) -> Path:
        raise OutputError("report: cannot be written (No space left on device).")

    monkeypatch.setattr(report, "write_report", failing)
    flags = ("--output", tmp_path / "m.json", "--report", tmp_path / "r", *PLAIN)
    refused("calibrate", bench().training, "--robot", "planar2", *flags)
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    monkeypatch.setattr(output, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with output.Progress(quiet) as progress:
        progress("thinking")
        if not quiet:
            progress._timer.join()
        progress("simulating", 0.5)
    assert ("simulating" in terminal.getvalue()) is not quiet


def test_tables_are_plain_in_a_pipe_and_fit_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", 1.23456789, "long words " * 20), ("[b]", None, "")]
    lines = table(("name", "value", "text"), rows).splitlines()
    assert [line.split()[:2] for line in lines] == [["name", "value"], ["a", "1.23457"], ["[b]", "-"]]
    assert not any("\x1b" in line for line in lines)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    folded = table(("name", "value", "text"), rows).splitlines()
    assert len(folded) > 5
    assert max(len(line) for line in folded) <= 60


def raising(_: object) -> int:
    raise ZeroDivisionError("a\nb\x1b[31m")


def test_an_unexpected_error_is_one_line_with_what_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointwise.cli.demo.run", raising)
    line = refused("demo")
    assert "unexpected ZeroDivisionError in test_cli_wrong_input.py:" in line
    assert "report this line" in line
    assert "\x1b" not in line


@pytest.mark.parametrize("debug", [True, False])
def test_the_traceback_of_an_unexpected_error_can_be_shown(monkeypatch: pytest.MonkeyPatch, debug: bool) -> None:
    monkeypatch.setattr("jointwise.cli.demo.run", raising)
    if not debug:
        monkeypatch.setenv("JOINTWISE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run(*(["--debug"] if debug else []), "demo")


@pytest.mark.parametrize("redirect", [">&-", ">/dev/null"])
def test_standard_output_that_is_closed_or_has_another_code_page(redirect: str) -> None:
    command = f"PYTHONIOENCODING=ascii {sys.executable} -m jointwise robots show ur5e {redirect}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_letters_that_a_code_page_lacks_are_replaced() -> None:
    script = "import jointwise.cli as c, jointwise.cli.demo as d\nd.run = lambda _: bool(print('τ'))\nc.main(['demo'])"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert ended.stdout == "?\n"
