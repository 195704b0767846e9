"""Documents on disk: every reader refuses the same things with the same words, and names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jointwise.cli.aurt import BODIES, MODEL, load_bodies, load_model
from jointwise.document import Kind, build, load_document, read_document, write_document
from jointwise.errors import ModelError
from jointwise.joint import load_joints
from jointwise.joint.model import KIND as JOINTS
from jointwise.result.store import KIND as CALIBRATION
from jointwise.result.store import load_calibration
from jointwise.simulation.recording import load_truth
from jointwise.simulation.recording.truth import KIND as TRUTH

Reader = Callable[[str | Path], object]
READERS: list[tuple[Reader, Kind]] = [
    (load_calibration, CALIBRATION),
    (load_truth, TRUTH),
    (load_joints, JOINTS),
    (load_bodies, BODIES),
    (load_model, MODEL),
]
NAMES = [kind.format for _, kind in READERS]
WRONG = {
    "": "not a JSON document",
    "{": "not a JSON document",
    "\x80\x04": "not a JSON document",
    "[" * 100_000: "not a JSON document",
    '{"a":' * 50_000: "not a JSON document",
    "[NaN]": "NaN is not finite",
    '{"format": -Infinity}': "not finite",
    "null": "not {name}",
    "[1, 2]": "not {name}",
    "{}": "not {name}",
    '{"format": 5}': "not {name}",
    '{"format": "{format}"}': "schema None, but this version reads schema 1. {remedy}",
    '{"format": "{format}", "schema": 99}': "schema 99, but this version reads schema 1. Update jointwise.",
    '{"format": "{format}", "schema": true}': "schema True",
    '{"format": "{format}", "schema": "1"}': "schema '1'",
}


def told(words: str, kind: Kind) -> str:
    for name in ("format", "name", "remedy"):
        words = words.replace(f"{{{name}}}", getattr(kind, name))
    return words


def refusal(read: Reader, path: Path) -> str:
    with pytest.raises(ModelError) as refused:
        read(path)
    line = str(refused.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line


@pytest.mark.parametrize(("read", "kind"), READERS, ids=NAMES)
def test_every_reader_refuses_the_same_in_the_same_words(read: Reader, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for text, words in WRONG.items():
        path.write_bytes(told(text, kind).encode("latin-1"))
        assert told(words, kind) in refusal(read, path)


@pytest.mark.parametrize(("read", "kind"), READERS, ids=NAMES)
def test_every_reader_names_a_file_that_is_not_there_or_too_large(read: Reader, kind: Kind, tmp_path: Path) -> None:
    assert "cannot be read" in refusal(read, tmp_path / "none.json")
    assert "cannot be read" in refusal(read, tmp_path)
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(kind.largest + 1)
    assert f"larger than a {kind.noun} may be" in refusal(read, tmp_path / "large.json")


NOTE = Kind("note", 1, name="a note", noun="note", remedy="Write again.", largest=1000)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    written = NOTE.stamped({"numbers": [1, 2.5, None], "text": "ä"})
    write_document(written, tmp_path / "n.json")
    assert read_document(tmp_path / "n.json", NOTE) == written
    assert load_document(tmp_path / "n.json", NOTE, lambda own: own["text"]) == "ä"
    assert json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))["format"] == "note"


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda own: own["missing"], "KeyError 'missing'"),
        (lambda own: own["list"][3], "IndexError"),
        (lambda own: own["list"] + 1, "TypeError"),
        (lambda own: float("x"), "ValueError"),
        (lambda own: own.nothing, "AttributeError"),
        (lambda own: float(10**400), "OverflowError"),
    ],
)
def test_what_a_maker_stumbles_over_is_damage(make: Callable[[dict[str, object]], object], word: str) -> None:
    with pytest.raises(ModelError, match=f"damaged note: {word}"):
        build(NOTE.stamped({"list": []}), NOTE, make)
