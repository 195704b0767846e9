"""Files appear whole or not at all, also when one is written inside another."""

from __future__ import annotations

from pathlib import Path

import pytest

from jointwise.atomic import atomic_path, atomic_write
from jointwise.errors import OutputError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.txt") as file:
        file.write("whole")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")
    with pytest.raises(RuntimeError), atomic_write(tmp_path / "a.txt") as file:
        file.write("half")
        raise RuntimeError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "before"}


@pytest.mark.parametrize("writer", [atomic_write, atomic_path])
def test_a_directory_is_refused_before_anything_is_written(tmp_path: Path, writer: object) -> None:
    assert callable(writer)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="folder: is a directory"), writer(tmp_path / "folder"):
        pytest.fail("it began to write")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_of_two_files_none_appears_where_one_cannot(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for outer, inner in (("folder", "a.txt"), ("a.txt", "folder")):
        with (
            pytest.raises(OutputError, match="is a directory"),
            atomic_write(tmp_path / outer) as first,
            atomic_write(tmp_path / inner) as second,
        ):
            first.write("1")
            second.write("2")
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]
