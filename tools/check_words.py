"""Check the vocabulary of the project: words that a reader would have to decode are reported with a replacement.

Run `python tools/check_words.py` for the whole repository, or `python tools/check_words.py PATH...` for files and
directories. Exit code 1 means that words were found.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKED = ("src", "tests", "docs", "benchmarks", "examples", "tools", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
SUFFIXES = {".py", ".md", ".c", ".h", ".toml", ".html", ".css", ".js"}
IGNORED_PARTS = {"_build", "__pycache__"}

TEXT = {
    r"told|tells?|telling": "reports, shows, lists, states, warns; distinguish (for 'tell apart')",
    r"asked|asks?(?= for)": "requested, commanded, required",
    r"rubs?|rubbing": "friction acts, slides",
    r"no votes?|votes?": "is excluded from the mean",
    r"beyond belief|believable": "implausible, outside the plausible range",
    r"leftovers?": "residual",
    r"(?:model|fit|bodies|terms?) leaves?|leaves? unexplained": "residual, unexplained torque",
    r"judges? and do(?:es)? not choose|they judge": "held-out data are used for reporting only, not for selection",
    r"warmth": "temperature, warm-up",
    r"rooms?": "headroom, clearance, margin, package",
    r"plugs?": "the name of what it does",
    r"stretch|stretches": "segment (gap-free), chunk (memory), block (jackknife), fold (cross-validation)",
    r"honest|honestly": "measured, unbiased, reliable",
    r"front door": "public interface",
    r"answers? to speed": "response to speed ripple",
    r"taken off": "subtracted, removed",
    r"all the same": "anyway",
    r"one an? (?:joint|link|log|term|sample|block)": "one per joint, ...",
    r"what (?:calibrate|compile-rb?d|energy fit) wrote": "model file of 'jointwise calibrate', ...",
    r"turns? with the motion": "changes its sign at a reversal",
    r"nothing verifies": "cannot be verified",
}
"""Regular expression of whole words (an underscore separates words) -> what to write instead."""

NAMES = {
    "own": "joint, term, item, value, ...: what it is",
    "told": "reported",
    "asked": "requested, config, options",
    "given": "known, fixed, options",
    "way": "direction, method, travel, path",
    "ways": "directions, methods, pairs of runs",
}
"""Part of a Python identifier -> what to use instead. Words of `TEXT` are found in identifiers too."""

ALLOWED = {
    ("tools/check_words.py", ""): "lists the words",
    ("src/jointwise/simulation/recording.py", "warmth"): "an entry of older files",
    ("tests", "given"): "a decorator of Hypothesis",
}
"""(file or directory, word or "" for all words) -> reason."""

_TEXT = [(re.compile(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", re.IGNORECASE), use) for words, use in TEXT.items()]


@dataclass(frozen=True)
class Finding:
    """A word at a 1-based line of a file, and what to write instead."""

    path: str
    line: int
    word: str
    use: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: '{self.word}': use {self.use}"


def findings_in_text(path: str, text: str) -> Iterator[Finding]:
    """Yield the words of `TEXT` in a text, and for Python source the words of `NAMES` in its identifiers."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, use in _TEXT:
            for match in pattern.finditer(line):
                yield Finding(path, number, match[0], use)
    if path.endswith(".py"):
        yield from _findings_in_names(path, text)


def _findings_in_names(path: str, text: str) -> Iterator[Finding]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not token.string.startswith("test_"):  # names of tests are sentences
            for part in token.string.lower().split("_"):
                if part in NAMES:
                    yield Finding(path, token.start[0], part, NAMES[part])


def files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the text files among `paths` and below them."""
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path] if path.is_file() else []
        for file in found:
            if file.suffix in SUFFIXES and not IGNORED_PARTS & set(file.parts) and ".min." not in file.name:
                yield file


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def is_allowed(finding: Finding) -> bool:
    """Return whether the list of exceptions holds a finding."""
    return any(_is_below(finding.path, where) and word in ("", finding.word.lower()) for where, word in ALLOWED)


def check(paths: Sequence[Path] = ()) -> list[Finding]:
    """Return the findings in `paths`, by default in everything of `CHECKED`."""
    findings = []
    for file in files_of(paths or [ROOT / name for name in CHECKED]):
        path = file.resolve().relative_to(ROOT).as_posix()
        findings += [f for f in findings_in_text(path, file.read_text(encoding="utf-8")) if not is_allowed(f)]
    return findings


def main(arguments: Sequence[str]) -> int:
    """Print the findings and return the exit code."""
    findings = check([Path(argument) for argument in arguments])
    for finding in findings:
        print(finding)
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
