"""Every wrong log: one clear line with file, row and column, and no log."""

from __future__ import annotations

import os

import numpy as np
import pytest

from data_files import SHARED, needs_shared, rows_text, write
from jointwise.data import check_quality, read_log
from jointwise.errors import DataError

HEADER = "t,q1,q2,i1,i2\n"
DAMAGE = np.frombuffer(b',;\n\r"# \t.e-+9naif\x00\xff\x80', dtype=np.uint8)


def refused(path, **options) -> str:
    with pytest.raises(DataError) as caught:
        read_log(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text or text.startswith("columns")
    return text


def with_row(row: str, after: int = 3) -> str:
    lines = (HEADER + rows_text(10)).splitlines()
    lines.insert(after, row)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0.1,abc,1,2,3", "row 4, column 'q1': 'abc' is not a number"),
        ("0.1,1,1,2", "row 4: 4 fields instead of 5"),
        ("0.1,1,1,2,3,4", "row 4: 6 fields instead of 5"),
        ("0.1,1,nan,2,3", "row 4, column 'q2' is missing or not finite"),
        ("0.1,1,1,inf,3", "row 4, column 'i1' is missing or not finite"),
        ("0.1,1,,2,3", "row 4, column 'q2' is missing or not finite"),
        ("nan,1,1,2,3", "row 4, column 't' is missing or not finite"),
        ("0.1,1e180,1,2,3", "row 4, column 'q1': 1e+180 rad is out of range"),
        ("0.1,1,1,-1e9,3", "row 4, column 'i1': -1e+09 A is out of range"),
        ("0.1,1,1,0x10,3", "row 4, column 'i1': '0x10' is not a number"),
        ("0.1,1,\r1,1,3", "row 4: a stray carriage return"),
        ("2020-01-01T00:00:00,1,1,1,3", "row 4, column 't'"),
    ],
)
def test_bad_rows(tmp_path, row, words):
    assert words in refused(write(tmp_path, with_row(row)))


def test_further_bad_rows_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("jointwise.data.csv.BLOCK_BYTES", 300)
    text = with_row("0.1,1,x,2,3") + rows_text(20) + "1,2\n" + rows_text(20) + "9,y,1,1,1\n"
    assert "row 4, column 'q2': 'x' is not a number (and 2 more bad rows)" in refused(write(tmp_path, text))


def test_binary_garbage(tmp_path):
    content = (HEADER + rows_text(4)).encode() + b"0.1,\x00\xff\xfe\x80,1,2,3\n" + rows_text(3).encode()
    assert "row 6, column 'q1'" in refused(write(tmp_path, content))


def test_random_damage_never_surprises(tmp_path):
    """Whatever happens to the bytes: a clean log or one line, never another error."""
    rng = np.random.default_rng(7)
    for _ in range(150):
        content = bytearray((HEADER + rows_text(20)).encode())
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(content)))
            content[at : at + int(rng.integers(0, 5))] = bytes(rng.choice(DAMAGE, int(rng.integers(0, 5))))
        path = write(tmp_path, bytes(content))
        try:
            log = read_log(path)
            assert all(np.isfinite(getattr(log, name)).all() for name in log.available)
            check_quality(log).lines()
        except DataError as problem:
            assert len(str(problem).splitlines()) == 1


def test_text_in_an_ignored_column_is_fine(tmp_path):
    assert read_log(write(tmp_path, "t,q1,note\n0,1,a\n1,2,b\n")).samples == 2


def test_decimal_commas(tmp_path):
    assert "decimal comma" in refused(write(tmp_path, "t;q1;i1\n0.0;1.5;1\n0,1;1,6;1\n"))
    assert "Decimal commas?" in refused(write(tmp_path, "t,q1\n0,0,1,5\n0,1,1,6\n"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("# nothing\n# more\n", "only comments"),
        (HEADER, "no rows below the header"),
        (HEADER + "0,1,2,3,4\n", "only one row"),
        ("q1,i1\n1,2\n3,4\n", "no column for 't'. Found: q1, i1"),
        ("t,x,y\n1,2,3\n3,4,5\n", "no column for 'q'. Found: t, x, y"),
        ("tiem,q1\n1,2\n3,4\n", "Is it 'tiem'? Name it: --columns 't=tiem'"),
        ("t,q1,q2,i2\n1,2,3,4\n3,4,5,6\n", "A column without values stands for an output that was not measured"),
        ("t,q1,q1\n1,2,3\n3,4,5\n", "two columns are named 'q1'"),
        ("t,q1,q3\n1,2,3\n3,4,5\n", "q of joint number 2 is missing"),
        ("t,q2,q3\n1,2,3\n3,4,5\n", "q of joint number 1 is missing"),
        ("t,q1,q2,i1\n1,2,3,4\n3,4,5,6\n", "current has 1 columns, q has 2"),
        ("t,q1,i1,actual_current_0\n1,2,3,4\n3,4,5,6\n", "'i' and 'actual_current' are both current"),
        ("0,1,2\n1,2,3\n", "no header row, 3 columns. Name them in order"),
        (b"\x1f\x8b\x08\x00abc", "compressed"),
        (b"PK\x03\x04abc", "ZIP"),
        (b"\x89MCAP0\r\n", "Give it the ending .mcap"),
        (b"SQLite format 3\x00", "give it the ending .db3"),
        ("t,q1\n".encode("utf-16"), "UTF-16"),
        (b"\x00\x01\x02\x03" * 50, "not a text file"),
        (b"x" * 2_000_000, "no line break"),
        (",".join(f"c{k}" for k in range(5000)) + "\n", "at most 4096"),
        (b"PAR1 and then nothing of the kind", "damaged Parquet file"),
    ],
)
def test_wrong_files(tmp_path, content, words):
    assert words in refused(write(tmp_path, content))


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("jointwise.data.csv.BLOCK_BYTES", 1000)
    assert "row 7 is longer than" in refused(write(tmp_path, HEADER + rows_text(5) + "1" * 5000))


def test_wrong_joint_count(tmp_path):
    assert "the log has 2 joints (columns of q), the robot has 6" in refused(
        write(tmp_path, HEADER + rows_text()), joints=6
    )


def test_no_such_file_and_directory(tmp_path):
    assert "no such file" in refused(tmp_path / "nothing.csv")
    assert "is a directory" in refused(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(tmp_path):
    path = write(tmp_path, HEADER + rows_text())
    path.chmod(0)
    assert "cannot be read" in refused(path)


def test_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("t=time", "no column 'time' for 't'. Known: t, q1"),
        ("t,q*2", "names 3 columns, the file has 5"),
        ("t,q*2,i*2@volt", "unit of 'current' must be one of A, mA. Got 'volt'"),
        ("speed=q1", "unknown channel 'speed'"),
        ("t=t,q", "no column 'q' for 't'"),
        ("t,q**2", "must be a channel and a count"),
        ("t,t,q*3", "'t' is given twice"),
        ("q=q1,q=q2", "'q' is given twice"),
        ("q=q1..i2", "must count up"),
        ("q=q1|q1", "assigned twice"),
        ("q=", "names no column"),
        ("tau=@mNm", "the file has no such channel"),
        ("", "empty"),
        ("nowhere.toml", "no such file"),
        ({"order": "t,q*4", "columns": {}}, "not both"),
        ({"units": 3}, "must be a table"),
        ({"columns": {"q": 3}}, "must be a name or a list"),
        ({"unit": {}, "columns": {}}, "unknown key 'unit'"),
    ],
)
def test_wrong_mappings(tmp_path, columns, words):
    with pytest.raises(DataError, match=".") as caught:
        read_log(write(tmp_path, HEADER + rows_text()), columns=columns)
    assert words in str(caught.value)


def test_wrong_mapping_file(tmp_path):
    mapping = write(tmp_path, "[columns\n", "mapping.toml")
    with pytest.raises(DataError, match="not valid TOML"):
        read_log(write(tmp_path, HEADER + rows_text()), columns=mapping)


def test_full_disk_while_spooling(tmp_path, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    with pytest.raises(DataError, match="No space left on device.*TMPDIR"):
        read_log(write(tmp_path, HEADER + rows_text(100)), spool_bytes=10)


def test_parquet_with_garbage(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({"t": [0.0, 1.0], "q1": [1.0, 1e180]}), path)
    assert "row 2, column 'q1': 1e+180 is out of range" in refused(path)
    parquet.write_table(pa.table({"t": [0.0, 1.0], "q1": [1.0, None]}), path)
    assert "row 2, column 'q1' is missing" in refused(path)
    parquet.write_table(pa.table({"t": [0.0, 1.0], "q1": ["a", "b"]}), path)
    assert "column 'q1' is string, not a number" in refused(path)
    parquet.write_table(pa.table({"t": [0.0], "q1": [1.0]}), path)
    assert "only one row" in refused(path)


@needs_shared
def test_real_corrupt_log():
    text = refused(SHARED / "messy" / "headerless_corrupt.csv", columns="t,q*6,qd*6,i*6")
    assert "row 3, column 'q2'" in text
    assert "more bad rows" in text


@needs_shared
def test_real_headerless_without_columns():
    assert "no header row, 31 columns" in refused(SHARED / "messy" / "headerless_31_columns.csv")
