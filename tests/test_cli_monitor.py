"""The command monitor: exit codes, JSON lines, streams from stdin and growing files, damaged rows, history, page."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
import time

import numpy as np
import pytest

import jointwise as jw
from cli_runs import bench, done, refused, run
from jointwise.data.row_stream import csv_rows
from jointwise.data.write import write_csv

KEYS = {"file", "robot", "status", "contacts", "external_torque_rms", "payload", "friction", "data", "missing"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a quiet log, and one with a push of both joints, as paths."""
    folder, source = tmp_path_factory.mktemp("monitor"), jw.read_log(bench().training)
    model = jw.load_model(bench().model)
    acts = (source.t > source.t[0] + 8.0) & (source.t < source.t[0] + 9.0)
    torque = model.jacobian(np.asarray(source.q))[:, :3].transpose(0, 2, 1) @ np.array([0.0, 0.0, 60.0])
    from dataclasses import replace

    pushed = replace(source, current=source.current - acts[:, None] * torque / model.gains, torque=None)
    write_csv(replace(source, torque=None), folder / "quiet.csv")
    write_csv(pushed, folder / "pushed.csv")
    return folder


def json_lines(path, count=None):
    """Return a log as JSON lines."""
    log = jw.read_log(path)
    rows = range(log.samples if count is None else count)
    return [
        json.dumps({"t": log.t[k], "q": log.q[k].tolist(), "qd": log.qd[k].tolist(), "i": log.current[k].tolist()})
        for k in rows
    ]


def test_exit_codes_and_json_lines(files):
    ended = run("monitor", bench().model, files / "quiet.csv", files / "pushed.csv", "--json")
    assert ended.code == 3, ended
    quiet, pushed = (json.loads(line) for line in ended.out.splitlines())
    assert set(quiet) >= KEYS
    assert (quiet["status"], quiet["contacts"]) == ("ok", [])
    assert pushed["status"] == "contact"
    (contact,) = pushed["contacts"]
    assert {"start", "end", "joint", "peak"} <= set(contact)
    assert contact["start"] == pytest.approx(8.1, abs=0.15)
    text = done("monitor", bench().model, files / "quiet.csv")
    assert "external torque rms" in text
    assert "not monitored: temperature" in text


def test_stdin_gives_the_numbers_of_the_log(files, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(json_lines(files / "pushed.csv")) + "\n"))
    streamed = run("monitor", bench().model, "-", "--json")
    assert streamed.code == 3
    *events, summary = (json.loads(line) for line in streamed.out.splitlines())
    assert [event["event"] for event in events] == ["contact", "contact update", "contact end"]
    assert (events[0]["peak"], events[0]["force"]) == (None, None)
    assert events[1]["peak"] is not None
    whole = json.loads(run("monitor", bench().model, files / "pushed.csv", "--json").out)
    assert summary["contacts"] == whole["contacts"]
    assert summary["external_torque_rms"] == pytest.approx(whole["external_torque_rms"], rel=1e-12)
    assert summary["payload"] == whole["payload"]


def test_a_log_without_the_output_of_a_joint(files, tmp_path):
    table = read_table(files / "quiet.csv")
    joints = sum(name.startswith("q") and not name.startswith("qd") for name in table)
    last = next(name for name in table if name in (f"i{joints}", f"current{joints}", f"current_{joints}"))
    rows = zip(*(values for name, values in table.items() if name != last), strict=True)
    path = tmp_path / "less.csv"
    path.write_text("\n".join([",".join(name for name in table if name != last), *(",".join(row) for row in rows)]))
    assert "--ignore-output" in refused("monitor", bench().model, path)
    result = json.loads(run("monitor", bench().model, path, "--ignore-output", joints, "--json").out)
    assert result["external_torque_rms"][-1] is None
    assert any(f"joint {joints}: no measured" in line for line in result["missing"])
    assert "outputs may be null" in run("monitor", bench().model, "-", "--ignore-output", "1").err


def read_table(path):
    """Return the columns of a CSV file as texts."""
    header, *rows = (line.split(",") for line in path.read_text().splitlines() if not line.startswith("#"))
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def test_lines_that_are_no_samples_are_counted(files, monkeypatch):
    lines = json_lines(files / "quiet.csv", 900)
    lines[100] = "not json"
    lines[200] = '{"t": 2.0}'
    lines[300] = '{"t": 3.0, "q": [1, 2, 3], "i": [1, 2]}'
    lines[400] = lines[400].replace('"i": [', '"i": [null, ').rsplit(",", 1)[0] + "]}"
    lines[500] = "[" * 100_000
    lines[600] = json.dumps({"t": json.loads(lines[600])["t"], "q": [0.1, 0.2]})  # no output any more
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    result = json.loads(run("monitor", bench().model, "-", "--json").out.splitlines()[-1])
    assert result["data"]["malformed"] == 4
    assert result["data"]["dropped"] == {"not finite": 2}
    assert result["data"]["samples"] == 900 - 6
    monkeypatch.setattr("sys.stdin", io.StringIO("x\ny\n"))
    assert "no sample" in refused("monitor", bench().model, "-")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "no sample (it is empty)." in refused("monitor", bench().model, "-")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"q": [0, 0], "i": [0, 0]}\n'))
    assert "no sample (a line must have t and q)." in refused("monitor", bench().model, "-")


def test_a_growing_file_is_followed(files, tmp_path):
    lines = (files / "pushed.csv").read_text().splitlines(keepends=True)
    path = tmp_path / "growing.csv"
    path.write_text("".join(lines[:200]))

    def grow():
        for first in range(200, len(lines), 300):
            time.sleep(0.1)
            with path.open("a") as file:
                file.write("".join(lines[first : first + 300])[:-3])
                file.flush()
                time.sleep(0.02)
                file.write("".join(lines[first : first + 300])[-3:])

    writer = threading.Thread(target=grow)
    writer.start()
    followed = run("monitor", bench().model, path, "--follow", "--idle", "0.6", "--json")
    writer.join()
    result = json.loads(followed.out.splitlines()[-1])
    assert (followed.code, result["data"]["malformed"]) == (3, 0)
    whole = json.loads(run("monitor", bench().model, files / "pushed.csv", "--json").out)
    assert result["contacts"] == whole["contacts"]


def test_damaged_rows_of_a_log_are_dropped_and_counted(files, tmp_path):
    lines = (files / "pushed.csv").read_text().splitlines()
    cells = lines[300].split(",")
    cells[1] = "nan"
    lines[300], lines[400], lines[500] = ",".join(cells), "1,2,3", lines[500].replace(".", "x", 1)
    path = tmp_path / "damaged.csv"
    path.write_text("\n".join(lines) + "\n")
    ended = run("monitor", bench().model, path, "--json")
    result = json.loads(ended.out)
    assert ended.code == 3
    assert "row by row" in ended.err
    assert result["data"]["malformed"] == 1
    assert result["data"]["dropped"] == {"not finite": 2}
    assert len(result["contacts"]) == 1


def test_history_and_page(files, tmp_path):
    words = ("monitor", bench().model, files / "quiet.csv", "--history", tmp_path / "h.sqlite", "--name", "cell7")
    assert "cell7: 1 run in 0 days" in done(*words)
    assert "cell7: 1 run in 0 days" in done(*words)  # the same log again
    os.utime(shutil.copy(files / "quiet.csv", tmp_path / "later.csv"), (2e9, 2e9))
    text = done(*words[:2], tmp_path / "later.csv", *words[3:], "--report", tmp_path / "page")
    assert "cell7: 2 runs in" in text
    page = (tmp_path / "page" / "monitor.html").read_text()
    assert "External torque of the joints" in page
    joint = json.loads(done(*words[:2], tmp_path / "later.csv", "--json"))["friction"][0]
    assert joint["change_error"] > joint["change_deviation"]  # errors of the model repeat in short motions
    assert f"{100.0 * joint['change']:+.1f} % ± {196.0 * joint['change_error']:.1f} %" in page
    assert "Friction of the joints against the model" in page


def test_wrong_usage(files, tmp_path):
    assert "only LOG" in run("monitor", bench().model, "-", files / "quiet.csv").err
    assert "A stream (-) ends with its input" in run("monitor", bench().model, "-", "--follow").err
    assert "A stream (-) ends with its input" in run("monitor", bench().model, "-", "--idle", "3").err
    assert "--idle needs --follow" in run("monitor", bench().model, files / "quiet.csv", "--idle", "3").err
    assert "no such file" in refused("monitor", bench().model, tmp_path / "none.csv")
    assert "no such file" in refused("monitor", bench().model, tmp_path / "none.csv", "--follow")
    (tmp_path / "h.sqlite").write_text("this is not a data base at all" * 50)
    words = ("monitor", bench().model, files / "quiet.csv", "--history", tmp_path / "h.sqlite")
    assert "history" in refused(*words)


def test_rows_of_a_file_that_is_not_complete(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t,q1,q2,i1,i2\n0,1,2,3,4\n0.1,1,2,3,4\n0.2,1,,3,4\n0.3,1")
    (rows,) = csv_rows(path)
    assert rows.malformed == 1
    assert np.isnan(rows.channels["q"][2, 1])
    assert rows.channels["t"].tolist() == [0.0, 0.1, 0.2]
