"""Files appear whole or not at all, also when one is written inside another."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from jointwise.atomic import SUFFIX, atomic_path, atomic_write, make_directory, output_set
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


def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("before")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "a.txt")
    with atomic_write(tmp_path / "link.txt") as file:
        file.write("after")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "a.txt").read_text() == "after"


def test_dangling_link_makes_its_target_or_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "new.txt")
    (tmp_path / "far.txt").symlink_to(tmp_path / "nowhere" / "new.txt")
    with atomic_write(tmp_path / "link.txt") as file:
        file.write("x")
    assert (tmp_path / "new.txt").read_text() == "x"
    with pytest.raises(OutputError, match="there is no directory .*nowhere"), atomic_write(tmp_path / "far.txt"):
        pytest.fail("it began to write")


def test_read_only_file_is_rejected_and_mode_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    path.chmod(0o640)
    with atomic_write(path) as file:
        file.write("after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o444)
    with pytest.raises(OutputError, match="is read-only"), atomic_write(path):
        pytest.fail("it began to write")
    assert path.read_text() == "after"


def test_devices_stay_devices(tmp_path: Path) -> None:
    with atomic_write("/dev/null") as file:
        file.write("x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    if Path("/dev/full").exists():
        with pytest.raises(OutputError, match="No space left"), atomic_write("/dev/full") as file:
            file.write("x")
        assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_pipe_without_a_reader_is_rejected_and_one_with_a_reader_gets_the_content(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="no program reads"), atomic_write(pipe):
        pytest.fail("it began to write")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_write(pipe) as file:
        file.write("content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_set_appears_together_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), output_set():
        make_directory(tmp_path / "plan" / "deep")
        for name in ("a.txt", "plan/b.txt"):
            with atomic_write(tmp_path / name) as file:
                file.write(name)
        assert not (tmp_path / "a.txt").exists()
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with output_set(), output_set():
        make_directory(tmp_path / "plan")
        for name in ("a.txt", "plan/b.txt"):
            with atomic_write(tmp_path / name) as file:
                file.write(name)
    assert (tmp_path / "plan" / "b.txt").read_text() == "plan/b.txt"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "plan"]


def test_temporary_file_of_a_killed_run_is_removed_and_a_living_one_stays(tmp_path: Path) -> None:
    stale = tmp_path / f".a.txt.killed{SUFFIX}"
    stale.write_text("half")
    with atomic_write(tmp_path / "a.txt") as first:
        first.write("1")
        with atomic_write(tmp_path / "a.txt") as second:
            second.write("2")
        first.write("1")
    assert not stale.exists()
    assert (tmp_path / "a.txt").read_text() == "11"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
