"""Every reader, on small files: what it understands."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from data_files import SHARED, needs_shared, rows_text, write
from jointwise.data import read_log

HEADER = "t,q1,q2,i1,i2\n"
RTDE = "timestamp actual_q_0 actual_q_1 actual_current_0 actual_current_1 target_moment_0 target_moment_1\n"


def test_our_names(tmp_path):
    path = write(tmp_path, HEADER + rows_text())
    log = read_log(path)
    assert (log.samples, log.joints, log.available) == (5, 2, ("t", "q", "current"))
    assert log.t.tolist() == [0.0, 0.01, 0.02, 0.03, 0.04]
    assert log.q[1].tolist() == [0.101, 0.201]
    assert log.names["current"] == ("i1", "i2")
    assert log.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (log.origin.rows, log.origin.size, log.origin.reader) == (5, path.stat().st_size, "csv")
    assert log.origin.where(0) == "row 2"


def test_all_channels(tmp_path):
    stems = ["q", "qd", "theta", "i", "tau", "temp", "q_des", "qd_des", "qdd_des", "i_des", "tau_des"]
    log = read_log(write(tmp_path, ",".join(["t", *(f"{s}1" for s in stems)]) + "\n" + rows_text(3, 12)))
    expected = ("t", "q", "qd", "theta", "current", "torque", "temperature")
    assert log.available == (*expected, "q_des", "qd_des", "qdd_des", "current_des", "torque_des")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_delimiters_and_line_ends(tmp_path, delimiter, ending):
    text = HEADER.replace(",", delimiter) + rows_text(delimiter=delimiter)
    log = read_log(write(tmp_path, text.replace("\n", ending)))
    assert log.q.shape == (5, 2)
    assert log.origin.first_line == 2


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_bom_comments_quotes_and_spaces(tmp_path, bom):
    text = '# recorded today\n\n"t", "q1", "q2", "i1", "i2"\n' + rows_text(delimiter=" ,  ")
    log = read_log(write(tmp_path, bom + text.encode()))
    assert log.origin.where(0) == "row 4"
    assert log.current is not None
    assert log.current[0].tolist() == [0.3, 0.4]


def test_doubled_quotes_stand_for_one(tmp_path):
    text = '"t","q1 ""left""","q2 ""left""","i1","i2"\n' + rows_text()
    log = read_log(write(tmp_path, text), columns={"q": ['q1 "left"', 'q2 "left"']})
    assert log.names["q"] == ('q1 "left"', 'q2 "left"')


def test_no_newline_at_the_end_and_blank_lines(tmp_path):
    assert read_log(write(tmp_path, (HEADER + rows_text()).rstrip("\n"))).origin.first_line == 2
    blanks = read_log(write(tmp_path, HEADER + rows_text().replace("\n", "\n\n")))
    assert (blanks.samples, blanks.origin.where(3)) == (5, "sample 3")


@pytest.mark.parametrize("delimiter", [" ", ","])
def test_rtde_and_aurt(tmp_path, delimiter):
    text = RTDE.replace(" ", delimiter) + rows_text(columns=7, delimiter=delimiter)
    log = read_log(write(tmp_path, text))
    assert log.available == ("t", "q", "current", "torque_des")
    assert log.names["q"] == ("actual_q_0", "actual_q_1")


def test_aligned_spaces(tmp_path):
    text = "  t   q1  i1 \n  0.0   1.0  2.0 \n  0.1   1.5 -2.0\n"
    assert read_log(write(tmp_path, text)).q.ravel().tolist() == [1.0, 1.5]


def test_header_in_a_comment(tmp_path):
    assert read_log(write(tmp_path, "# t q1 i1\n" + rows_text(columns=3, delimiter=" "))).available == (
        "t",
        "q",
        "current",
    )


def test_unknown_columns_are_ignored_and_reported(tmp_path):
    log = read_log(write(tmp_path, "t,q1,mode,i1\n0,1,auto,3\n1,1,manual,3\n"))
    assert log.available == ("t", "q", "current")
    assert log.origin.notes == ("columns ignored: mode",)


def test_single_joint_without_numbers(tmp_path):
    assert read_log(write(tmp_path, "t,q,i\n" + rows_text(columns=3))).joints == 1


def test_one_ambient_temperature_is_no_channel(tmp_path):
    assert read_log(write(tmp_path, "t,q1,q2,temperature\n" + rows_text(columns=4))).temperature is None


@pytest.mark.parametrize(
    "columns",
    [
        "t=time,q=pos_0..pos_1,current=cur[0]..cur[1]",
        "t=time,q=pos_0|pos_1,i=cur[0]|cur[1]",
        {"t": "time", "q": ["pos_0", "pos_1"], "current": "cur[0]..cur[1]"},
        {"columns": {"t": "time", "q": ["pos_0", "pos_1"], "current": ["cur[0]", "cur[1]"]}},
    ],
)
def test_mapping_by_name(tmp_path, columns):
    log = read_log(write(tmp_path, "time,pos_0,pos_1,cur[0],cur[1]\n" + rows_text()), columns=columns)
    assert log.available == ("t", "q", "current")
    assert log.names["current"] == ("cur[0]", "cur[1]")


def test_mapping_file_with_units(tmp_path):
    mapping = write(
        tmp_path,
        '[columns]\nt = "time"\nq = ["a", "b"]\n[units]\nt = "ms"\nq = "deg"\ncurrent = "mA"\n',
        "mapping.toml",
    )
    log = read_log(write(tmp_path, "time,a,b,i1,i2\n0,180,90,1000,0\n10,0,0,500,0\n"), columns=str(mapping))
    assert np.allclose(log.t, [0.0, 0.01])
    assert np.allclose(log.q[0], [np.pi, np.pi / 2])
    assert log.current is not None
    assert log.current[:, 0].tolist() == [1.0, 0.5]
    assert "q: converted from deg to rad" in log.origin.notes


def test_unit_of_recognised_columns(tmp_path):
    log = read_log(write(tmp_path, HEADER + "0,180,90,1,0\n1,0,0,1,0\n"), columns="q=@deg,i=@mA")
    assert np.allclose(log.q[0], [np.pi, np.pi / 2])


def test_headerless_by_order(tmp_path):
    log = read_log(write(tmp_path, rows_text(columns=7)), columns="t,q*2@deg,-*2,i*2")
    assert log.names["current"] == ("i1", "i2")
    assert np.allclose(log.q[0], np.deg2rad([0.1, 0.2]))
    assert log.origin.where(0) == "row 1"
    assert log.origin.notes[-1] == "columns ignored: column 4, column 5"


def test_order_over_a_header(tmp_path):
    log = read_log(write(tmp_path, "a,b,c\n" + rows_text(columns=3)), columns="t,q,i")
    assert log.names["q"] == ("b",)


def test_missing_value_costs_an_optional_channel(tmp_path):
    log = read_log(write(tmp_path, "t,q1,qd1,i1\n0,1,nan,3\n1,1,2,3\n2,1,inf,3\n"))
    assert log.available == ("t", "q", "current")
    assert log.origin.notes == ("qd left out: 2 of its values are missing or not finite",)


def test_empty_column_is_left_out(tmp_path):
    assert read_log(write(tmp_path, "t,q1,i1,tau1\n0,1,3,\n1,1,3,\n")).torque is None


def test_spooled_equals_plain(tmp_path):
    path = write(tmp_path, HEADER + rows_text(2000))
    plain, spooled = read_log(path), read_log(path, spool_bytes=1000)
    assert plain.pages is None
    assert spooled.pages is not None
    for name in plain.available:
        assert np.array_equal(getattr(plain, name), getattr(spooled, name))
        assert not getattr(spooled, name).flags.writeable


def test_spool_over_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("jointwise.data.csv.BLOCK_BYTES", 1000)
    path = write(tmp_path, HEADER + rows_text(500))
    log = read_log(path, spool_bytes=4000)
    assert np.allclose(log.t, 0.01 * np.arange(500))
    assert log.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"t": [0.0, 0.1, 0.2], "q1": [1, 2, 3], "i1": [0.5, 0.6, 0.7], "qd1": [1.0, None, 2.0]})
    path = tmp_path / "log.parquet"
    parquet.write_table(table, path, row_group_size=2)
    for spool_bytes in (None, 10):
        log = read_log(path, spool_bytes=spool_bytes)
        assert log.q.ravel().tolist() == [1.0, 2.0, 3.0]
        assert log.available == ("t", "q", "current")
        assert log.origin.reader == "parquet"
        assert log.origin.notes[0].startswith("qd left out")


def test_parquet_stamps(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"t": pa.array([10, 20], pa.timestamp("ms")), "q1": [1.0, 2.0]})
    parquet.write_table(table, tmp_path / "log.parquet")
    assert np.allclose(read_log(tmp_path / "log.parquet").t, [0.01, 0.02])


def test_importing_does_not_load_pyarrow():
    program = "import sys, jointwise.data; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_file_is_untouched(tmp_path):
    path = write(tmp_path, HEADER + rows_text())
    before = path.read_bytes(), path.stat().st_mtime_ns
    read_log(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@needs_shared
def test_real_logs_read():
    log = read_log(SHARED / "ur10e" / "id_20_02_12_50sec_12harm.csv", joints=6)
    assert log.q.shape == (5457, 6)
    assert log.available == ("t", "q", "qd", "current", "current_des", "torque_des")
    panda = read_log(SHARED / "panda" / "traj1_first60.csv")
    assert panda.q.shape == (11704, 7)
    assert panda.torque is not None


@needs_shared
def test_real_headerless_mapped():
    log = read_log(SHARED / "messy" / "headerless_31_columns.csv", columns="t,q*6,qd*6,i*6,i_des*6,tau_des*6")
    twin = read_log(SHARED / "ur10e" / "id_20_01_31_unload.csv")
    assert log.samples == twin.samples
    assert np.allclose(log.q, twin.q, atol=1e-4)
    assert np.allclose(log.t - log.t[0], twin.t, atol=1e-6)
