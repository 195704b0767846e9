"""Mutated files of all kinds: the exit code is 0, 1 or 2, with one line at most, and never a traceback.

Each case has a seed, printed when it fails; JOINTWISE_FUZZ_SEED=<that seed> tries it first. JOINTWISE_FUZZ_SECONDS
extends the time for all kinds together.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cli_runs import run_measured
from corpus import valid_files
from test_corpus import check, words_of

SECONDS = float(os.environ.get("JOINTWISE_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("JOINTWISE_FUZZ_SEED", "1"))
Generator = np.random.Generator
KINDS = {
    "log": "inspect",
    "log.parquet": "validate-parquet",
    "robot.csv": "robots-check",
    "robot.toml": "robots-show",
    "columns.toml": "inspect-columns",
    "drive.toml": "simulate-drive",
    "robot.urdf": "robots-show-urdf",
    "model": "validate",
    "joint.json": "calibrate-joint",
}
"""File to mutate -> command line of the corpus that reads it."""
NUMBER = rb"-?\d+\.?\d*(?:[eE][-+]?\d+)?"
TEXT = rb'"[^"\n]{0,60}"'
NUMBERS = (b"nan", b"inf", b"-1", b"0", b"1e308", b"-1e-320", b"1e999", b"9" * 400, b"true", b"null", b"", b"1.2.3")
TEXTS = (b'""', b"1", b'"\\u001b[31m"', b'"\xc3\xa9"', b'"\xff"', b'"' + b"x" * 5000 + b'"', b"[]", b"{}", b'"nan"')
NESTS = ((b"[", b"]", 1), (b"[", b"]", 200), (b'{"a":', b"}", 1), (b'{"a":', b"}", 5000), (b"<a>", b"</a>", 300))


def place(rng: Generator, content: bytes) -> int:
    """Return a position in a file, every second time near its beginning, where names and headers are."""
    return int(rng.integers(min(len(content), 300 if rng.random() < 0.5 else len(content)) or 1))


def flipped(rng: Generator, content: bytes) -> bytes:
    k = place(rng, content)
    return content[:k] + bytes(b ^ 1 << int(rng.integers(8)) for b in content[k : k + 1]) + content[k + 1 :]


def deleted(rng: Generator, content: bytes) -> bytes:
    k = place(rng, content)
    return content[:k] + content[k + int(rng.integers(1, 200)) :]


def doubled(rng: Generator, content: bytes) -> bytes:
    k = place(rng, content)
    piece = content[k : k + int(rng.integers(1, 200))]
    return content[:k] + piece * int(rng.integers(2, 5)) + content[k + len(piece) :]


def exchanged(rng: Generator, content: bytes) -> bytes:
    """Put a piece of the file at another place."""
    k, to = place(rng, content), place(rng, content)
    return content[:to] + content[k : k + int(rng.integers(1, 100))] + content[to:]


def with_match(rng: Generator, content: bytes, pattern: bytes, new: Callable[[bytes], bytes]) -> bytes:
    """Replace one match of a pattern near a position."""
    match = re.compile(pattern).search(content, place(rng, content))
    return content if match is None else content[: match.start()] + new(match[0]) + content[match.end() :]


def other_number(rng: Generator, content: bytes) -> bytes:
    return with_match(rng, content, NUMBER, lambda _: NUMBERS[rng.integers(len(NUMBERS))])


def other_text(rng: Generator, content: bytes) -> bytes:
    return with_match(rng, content, TEXT, lambda _: TEXTS[rng.integers(len(TEXTS))])


def nested(rng: Generator, content: bytes) -> bytes:
    before, after, times = NESTS[rng.integers(len(NESTS))]
    return with_match(rng, content, NUMBER + b"|" + TEXT, lambda found: before * times + found + after * times)


MUTATIONS = (flipped, deleted, doubled, exchanged, other_number, other_text, nested)


def mutated(content: bytes, seed: int) -> bytes:
    """Return a file after one to three mutations."""
    rng = np.random.default_rng(seed)
    for _ in range(int(rng.integers(1, 4))):
        content = MUTATIONS[rng.integers(len(MUTATIONS))](rng, content)
    return content


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files(tmp_path: Path, kind: str) -> None:
    content, folder, file = valid_files().path(kind).read_bytes(), tmp_path / "out", tmp_path / f"x{Path(kind).suffix}"
    seed, end = SEED, time.monotonic() + SECONDS / len(KINDS)
    while time.monotonic() < end or seed == SEED:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        file.write_bytes(mutated(content, seed))
        ended = run_measured(*words_of(KINDS[kind], folder, **{kind.replace(".", "_"): file}))
        check(ended, folder, f"{kind}: JOINTWISE_FUZZ_SEED={seed}")
        seed += 1
    print(f"{kind}: {seed - SEED} cases from seed {SEED}")


def test_mutations_change_files() -> None:
    content = valid_files().path("robot.toml").read_bytes()
    changed = [mutated(content, seed) for seed in range(200)]
    assert len(set(changed) - {content}) > 150
    assert changed == [mutated(content, seed) for seed in range(200)]
