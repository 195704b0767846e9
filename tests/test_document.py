"""Documents on disk: every reader rejects the same things in the same words, and names the file and the entry."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from jointwise.cli.aurt import BODIES, MODEL, load_aurt_model, load_bodies
from jointwise.document import LARGEST, Kind, check_kind, content_hash, load_document, read_document, write_document
from jointwise.errors import ModelError
from jointwise.joint import PHENOMENA, load_joints, save_joints
from jointwise.joint.model import KIND as JOINTS
from jointwise.result.model_file import KIND as CALIBRATION
from jointwise.result.model_file import load_calibration, to_document
from jointwise.simulation.recording import KIND as TRUTH
from jointwise.simulation.recording import digital_robot_from_truth, load_truth
from jointwise.toml import DEEPEST, LONGEST_TEXT

pytestmark = pytest.mark.compat

DATA = Path(__file__).parent / "data"
"""Files of schema 1, written by the first version that wrote them."""
Reader = Callable[[str | Path], object]
READERS: list[tuple[Reader, Kind]] = [
    (load_calibration, CALIBRATION),
    (load_truth, TRUTH),
    (load_joints, JOINTS),
    (load_bodies, BODIES),
    (load_aurt_model, MODEL),
]
NAMES = [kind.format for _, kind in READERS]
WRONG = {
    "": "not a JSON document",
    "{": "not a JSON document",
    "\x80\x04": "not a JSON document",
    "[" * 100_000: "not a JSON document",
    '{"a":' * 50_000: "not a JSON document",
    "[NaN]": "not a JSON document",
    '{"format": -Infinity}': "not a JSON document",
    "null": "not {name}",
    "[1, 2]": "not {name}",
    "{}": "not {name}",
    '{"format": 5}': "not {name}",
    '{"format": "{format}"}': "schema None, but this version reads schema {schema}. {remedy}",
    '{"format": "{format}", "schema": 99}': "schema 99, but this version reads schema {schema}. Update jointwise.",
    '{"format": "{format}", "schema": true}': "schema True, but this version reads schema {schema}. {remedy}",
    '{"format": "{format}", "schema": "1"}': "schema '1'",
}


def filled(text: str, kind: Kind) -> str:
    for name in ("format", "name", "remedy", "schema"):
        text = text.replace(f"{{{name}}}", str(getattr(kind, name)))
    return text


def error(read: Reader, path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    assert len(line) < 300 + len(str(path))
    return line


@pytest.mark.parametrize(("read", "kind"), READERS, ids=NAMES)
def test_every_reader_rejects_the_same_in_the_same_words(read: Reader, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for text, words in WRONG.items():
        path.write_bytes(filled(text, kind).encode("latin-1"))
        assert filled(words, kind) in error(read, path)


@pytest.mark.parametrize(("read", "kind"), READERS, ids=NAMES)
def test_every_reader_names_a_file_that_cannot_be_read(read: Reader, kind: Kind, tmp_path: Path) -> None:
    assert "no such file" in error(read, tmp_path / "none.json")
    assert "cannot be read" in error(read, tmp_path)
    assert "not a regular file" in error(read, Path("/dev/zero"))
    os.mkfifo(tmp_path / "pipe.json")
    assert "not a regular file" in error(read, tmp_path / "pipe.json")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(LARGEST + 1)
    assert f"larger than a {kind.noun} may be" in error(read, tmp_path / "large.json")


def holds(new: Any, old: Any) -> bool:
    """Return whether a document has all that an older one has; later versions add entries."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and holds(new[key], value) for key, value in old.items())
    if isinstance(old, list):
        return len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)


def test_files_of_the_first_version_load_and_come_back_the_same(tmp_path: Path) -> None:
    old = json.loads((DATA / "joints_schema1.json").read_text(encoding="utf-8"))
    models = load_joints(DATA / "joints_schema1.json")
    assert tuple(models[0].parts) == tuple(PHENOMENA)
    save_joints(models, tmp_path / "j.json")
    assert json.loads((tmp_path / "j.json").read_text(encoding="utf-8")) == old
    model = json.loads((DATA / "model_schema1.json").read_text(encoding="utf-8"))
    written = json.loads(json.dumps(to_document(load_calibration(DATA / "model_schema1.json"))))
    assert written["schema"] == 2
    assert written["run"].keys() == {"version", "date", "seconds"}
    assert holds({**written, "schema": 1, "provenance": written["provenance"] | written["run"]}, model)


def test_a_kind_may_have_several_migrations_and_a_hash_without_what_passes() -> None:
    kind = Kind(
        "book", "a book", "book", "Write again.", schema=3, passing=("date",),
        migrations={1: lambda old: {**old, "title": old["name"]}, 2: lambda old: {**old, "pages": 1}},
    )  # fmt: skip
    assert check_kind({"format": "book", "schema": 1, "name": "a"}, kind) == {
        "format": "book", "schema": 3, "name": "a", "title": "a", "pages": 1,
    }  # fmt: skip
    assert check_kind({"format": "book", "schema": 2}, kind)["pages"] == 1
    first, later, other = ({"title": title, "date": day} for title, day in (("a", 1), ("a", 2), ("b", 1)))
    assert content_hash(first, kind) == content_hash(later, kind) != content_hash(other, kind)
    assert digital_robot_from_truth(load_truth(DATA / "truth_schema1.json")).robot.name == "planar2"


@dataclass(frozen=True)
class Page:
    title: str
    numbers: tuple[float, ...] = ()
    kind: Literal["short", "long"] = "short"
    size: tuple[int, int] | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.title == "wrong":
            raise ModelError("title must be right. Got 'wrong' instead.")


@dataclass(frozen=True)
class Book:
    pages: tuple[Page, ...]
    index: Page | None = None


BOOK = Kind("book", name="a book", noun="book", remedy="Write again.")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    content = {"pages": [{"title": "ä", "numbers": [1, 2.5], "size": [1, 2], "more": {"a": [None, True, "x"]}}]}
    write_document(BOOK.stamped(content), tmp_path / "b.json")
    assert read_document(tmp_path / "b.json", BOOK) == BOOK.stamped(content)
    page = Page("ä", (1.0, 2.5), "short", (1, 2), {"a": [None, True, "x"]})
    assert load_document(tmp_path / "b.json", BOOK, Book) == Book((page,))


def test_a_number_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        write_document(BOOK.stamped({"pages": [float("nan")]}), tmp_path / "b.json")
    assert not list(tmp_path.iterdir())


MESSAGES: dict[str, tuple[Any, str]] = {
    "type": ([{"title": 5}], "pages[0].title must be a string. Got 5 instead."),
    "type of an item": ([{"title": "", "numbers": [1, "2"]}], "pages[0].numbers[1] must be a number. Got '2' instead."),
    "flag": ([{"title": "", "numbers": [True]}], "pages[0].numbers[0] must be a number. Got True instead."),
    "choice": ([{"title": "", "kind": "big"}], "pages[0].kind must be one of long, short. Got 'big' instead."),
    "optional": ([{"title": "", "size": 3}], "pages[0].size must be a list or null. Got 3 instead."),
    "count": ([{"title": "", "size": [3]}], "pages[0].size must be a list of length 2. Got [3] instead."),
    "integer": ([{"title": "", "size": [3, 1.5]}], "pages[0].size[1] must be an integer. Got 1.5 instead."),
    "missing": ([{}], "pages[0]: 'title' is missing."),
    "unknown": ([{"title": "", "colour": 1}], "pages[0] has no 'colour'. Known: title, numbers, kind, size, more."),
    "own check": ([{"title": "wrong"}], "pages[0]: title must be right. Got 'wrong' instead."),
    "huge": ([{"title": "", "numbers": [1e31]}], "pages[0].numbers[0] must be finite and at most 1e+30. Got 1e+31"),
    "many digits": ([{"title": "", "more": {"a": 10**400}}], "pages[0].more.a must be finite and at most 1e+30."),
    "long text": ([{"title": "x" * (LONGEST_TEXT + 1)}], "pages[0].title must be at most 10000 characters."),
    "no list": ({"a": 1}, "pages must be a list. Got {'a': 1} instead."),
    "shortened": ("x" * 900, "pages must be a list. Got 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... instead."),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_an_error_names_the_entry_and_what_must_be_there(name: str, tmp_path: Path) -> None:
    pages, words = MESSAGES[name]
    (tmp_path / "b.json").write_text(json.dumps(BOOK.stamped({"pages": pages})), encoding="utf-8")
    assert words in error(lambda path: load_document(path, BOOK, Book), tmp_path / "b.json")


def test_depth_is_limited_where_anything_may_stand(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(DEEPEST + 1):
        deep = [deep]
    write_document(BOOK.stamped({"pages": [{"title": "", "more": {"a": deep}}]}), tmp_path / "b.json")
    assert f"at most {DEEPEST} levels deep" in error(lambda path: load_document(path, BOOK, Book), tmp_path / "b.json")


def test_an_unknown_entry_at_the_top_is_rejected(tmp_path: Path) -> None:
    write_document(BOOK.stamped({"pages": [], "cover": 1}), tmp_path / "b.json")
    words = error(lambda path: load_document(path, BOOK, Book), tmp_path / "b.json")
    assert words.endswith("the document has no 'cover'. Known: pages, index.")
