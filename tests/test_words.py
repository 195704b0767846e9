"""The vocabulary of the project is plain technical English."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def words():
    spec = importlib.util.spec_from_file_location("check_words", ROOT / "tools" / "check_words.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
def test_no_banned_word_is_used(words):
    findings = words.check()
    assert not findings, "\n".join(map(str, findings))


def test_banned_words_are_found_with_their_line(words):
    text = "# The summary t" + "old how much r" + "oom is left.\no" + "wn = 1\n"
    found = [(finding.line, finding.word) for finding in words.findings_in_text("a.py", text)]
    assert sorted(found) == [(1, "r" + "oom"), (1, "t" + "old"), (2, "o" + "wn")]


def test_ordinary_words_that_contain_a_banned_one_pass(words):
    text = "# Its own bedroom, a stretched arm, plugin, foretold.\nknown = shown = 1\n"
    assert list(words.findings_in_text("a.py", text)) == []


def test_entries_of_the_exceptions_exist(words):
    named = [where for where, _ in words.ALLOWED]
    assert [name for name in named if not (ROOT / name).exists()] == []
