"""Text logs as other programs write them: line ends, decimal commas, text stamps, one value per line, other columns."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import jointwise as jw
from cli_runs import run
from data_files import SHARED, needs_shared, rows_text, write
from jointwise.data import read_log, write_log
from jointwise.errors import DataError
from synthetic import synthetic_log

pytestmark = pytest.mark.compat

HEADER = "t,q1,q2,i1,i2\n"


def reference(tmp_path):
    """Return the log of an ordinary file."""
    return read_log(write(tmp_path, HEADER + rows_text(), "plain.csv"))


def same(log, other):
    """Return whether two logs have the same stamps, positions and currents."""
    return all(np.array_equal(log.channel(name), other.channel(name)) for name in ("t", "q", "current"))


@pytest.mark.parametrize("ending", ["\r", "\r\r"])
def test_bare_carriage_returns(tmp_path, ending):
    path = write(tmp_path, (HEADER + rows_text()).replace("\n", ending))
    log = read_log(path)
    assert same(log, reference(tmp_path))
    assert log.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_bad_row_of_a_file_with_carriage_returns(tmp_path):
    text = (HEADER + rows_text() + "0.05,1,1,x,1\n").replace("\n", "\r")
    with pytest.raises(DataError, match="row 7, column 'i1': 'x' is not a number"):
        read_log(write(tmp_path, text))


def test_rows_of_delimiters_are_empty(tmp_path):
    lines = (HEADER + rows_text()).splitlines()
    assert same(read_log(write(tmp_path, "\n".join([*lines[:3], ",,,,", "", *lines[3:]]))), reference(tmp_path))


@pytest.mark.parametrize("delimiter", [";", "\t", " "])
def test_decimal_commas(tmp_path, delimiter):
    text = (HEADER + rows_text()).replace(",", delimiter).replace(".", ",")
    log = read_log(write(tmp_path, text))
    assert same(log, reference(tmp_path))
    with pytest.raises(DataError, match="row 7, column 'q1': 'abc' is not a number"):
        read_log(write(tmp_path, text + delimiter.join(["0,05", "abc", "1,0", "1,0", "1,0"]) + "\n"))


@pytest.mark.parametrize("zone", ["", "Z", "+00:00"])
@pytest.mark.parametrize("date", ["2021-10-05T", "2021:10:05:", "2021/10/05 ", ""])
def test_stamps_as_text(tmp_path, date, zone):
    rows = [line.split(",", 1) for line in rows_text().splitlines()]
    text = "".join(f"{date}12:08:{float(t):09.6f}{zone},{rest}\n" for t, rest in rows)
    log = read_log(write(tmp_path, HEADER + text))
    start = 1633392000.0 if date else 0.0
    assert np.allclose(log.t - start - 43680.0, reference(tmp_path).t, atol=1e-6)
    with pytest.raises(DataError, match="row 7, column 't' is missing"):
        read_log(write(tmp_path, HEADER + text + "2021-13-77T99:00:00,1,1,1,1\n"))


def test_an_offset_from_utc(tmp_path):
    text = "t,q1\n2021-10-05T12:00:00+02:00,1\n2021-10-05T12:00:01+02:00,1\n"
    assert read_log(write(tmp_path, text)).t.tolist() == [1633428000.0, 1633428001.0]


def test_of_two_stamps_the_number_that_does_not_count_rows(tmp_path):
    text = "time,when,timestamp,q1\n1,12:00:00,5.10,1\n2,12:00:01,5.14,2\n3,12:00:02,5.18,3\n"
    assert read_log(write(tmp_path, text)).t.tolist() == [5.10, 5.14, 5.18]
    with pytest.raises(DataError, match="'time' and 'timestamp' are both t"):
        read_log(write(tmp_path, "time,timestamp,q1\n0.1,5.10,1\n0.2,5.14,2\n"))


@pytest.mark.parametrize("order", ["samples", "channels"])
def test_long_form(tmp_path, order):
    log = reference(tmp_path)
    values = {"q1": log.q[:, 0], "q2": log.q[:, 1], "i1": log.current[:, 0], "i2": log.current[:, 1]}
    lines = [f"{t!r},{name},{x[k]!r}" for k, t in enumerate(log.t.tolist()) for name, x in values.items()]
    lines.sort(key=lambda line: line.split(",")[1] if order == "channels" else "")
    path = write(tmp_path, "time,name,value\n" + "\n".join(lines).replace("np.float64(", "").replace(")", ""))
    read = read_log(path)
    assert same(read, log)
    assert read.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DataError, match="two values of 'q1' at the stamp"):
        read_log(write(tmp_path, path.read_text() + "\n0.0,q1,5\n"))


@pytest.mark.parametrize("names", [True, False])
def test_one_column(tmp_path, names):
    values = rows_text().replace(",", "\n")
    text = (HEADER.replace(",", "\n") if names else "") + values
    log = read_log(write(tmp_path, text), columns=None if names else "t,q*2,i*2")
    assert same(log, reference(tmp_path))
    with pytest.raises(DataError, match="multiple of the 5 columns"):
        read_log(write(tmp_path, text + "1.0\n"), columns=None if names else "t,q*2,i*2")


def test_one_column_without_names_needs_their_order(tmp_path):
    with pytest.raises(DataError, match="State their order"):
        read_log(write(tmp_path, "0\n1\n2\n3\n"))


def test_extra_columns(tmp_path):
    text = "t,q1,bus_voltage,mode,bus_current\n0,1,48,auto,2\n1,1,47,auto,3\n2,1,46,auto,\n"
    log = read_log(write(tmp_path, text), extra=["bus_*"])
    assert list(log.extra) == ["bus_voltage", "bus_current"]
    assert log.slice(1, 3).extra["bus_voltage"].tolist() == [47.0, 46.0]
    assert np.isnan(log.extra["bus_current"][2])
    assert not read_log(write(tmp_path, text)).extra
    with pytest.raises(DataError, match="Did you mean bus_voltage"):
        read_log(write(tmp_path, text), extra=["bus_voltag"])
    with pytest.raises(DataError, match=r"extra columns \(mode\) must be numbers"):
        read_log(write(tmp_path, text), extra=["mode"])


def test_extra_columns_of_parquet(tmp_path):
    write_log(reference(tmp_path), tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet", extra=["i2"])
    assert np.array_equal(log.extra["i2"], log.channel("current")[:, 1])


@needs_shared
@pytest.mark.parametrize(("name", "samples"), [("L0L1", 29), ("L2L3", 40), ("L3L4", 49)])
def test_rows_of_a_ur_controller(name, samples):
    log = read_log(SHARED / "ur3e_power" / f"{name}.csv", extra=["actual_robot_voltage", "actual_robot_current"])
    assert (log.samples, log.joints) == (samples, 6)
    assert {"qd", "current", "temperature", "q_des", "qdd_des", "torque_des"} <= set(log.available)
    assert np.allclose(np.diff(log.t), 0.04, atol=0.02)
    power = log.extra["actual_robot_voltage"] * log.extra["actual_robot_current"]
    assert 30.0 < power.min() < power.max() < 65.0


@pytest.mark.parametrize(
    "columns",
    [
        "t=time,q=torso,arm1..arm2,i=c_0..c_1,hand",
        "t=time,q=torso|arm1..arm2,i=c_0|c_1|hand",
        {"t": "time", "q": ["torso", "arm1..arm2"], "i": ["c_0..c_1", "hand"]},
        {"t": "time", "q": "torso,arm1..arm2", "i": "c_0..c_1, hand"},
    ],
)
def test_lists_and_ranges_mixed(tmp_path, columns):
    text = "time,torso,arm1,arm2,c_0,c_1,hand\n" + rows_text(columns=7)
    log = read_log(write(tmp_path, text), columns=columns)
    assert log.names["q"] == ("torso", "arm1", "arm2")
    assert log.names["current"] == ("c_0", "c_1", "hand")


def test_a_unit_after_a_list(tmp_path):
    log = read_log(write(tmp_path, "t,a,b1,b2\n0,180,180,180\n1,0,0,0\n"), columns="q=a,b1..b2@deg")
    assert np.allclose(log.q[0], np.pi)


def test_close_names_are_suggested(tmp_path):
    path = write(tmp_path, "time,pos_1,pos_2\n" + rows_text(columns=3))
    with pytest.raises(DataError, match="no column 'Pos1' for 'q'. Did you mean pos_1"):
        read_log(path, columns="q=Pos1,pos_2")
    with pytest.raises(DataError, match="'pos_1' must be channel=column"):
        read_log(path, columns="pos_1,q=pos_2")


def test_inspection_without_a_robot(tmp_path):
    path = tmp_path / "log.csv"
    write_log(synthetic_log(jw.load_robot("planar2"), duration=5, rate=100).log, path)
    result = jw.inspect(read_log(path))
    assert result.identifiability is None
    assert not result.rejected
    done = run("inspect", path)
    assert done.code == 0
    assert "verdict: good" in done.out
