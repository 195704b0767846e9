"""The examples in README and docs run, in order, page by page."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import shlex
from pathlib import Path

import pytest

from jointwise.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")] if "_build" not in page.parts)
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)\)")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def run_console(text: str) -> None:
    """Run the lines that start with `$ jointwise`; a backslash continues a line."""
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        if line.startswith("$ "):
            program, *arguments = shlex.split(line[2:], comments=True)
            assert program == "jointwise", f"only jointwise is run here: {line}"
            assert main(arguments) == 0, line


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":
        make_logs(tmp_path)
    names: dict[str, object] = {}
    for kind, text in blocks(page):
        if kind == "console":
            run_console(text)
        else:
            exec(compile(text, str(page), "exec"), names)


def make_logs(folder: Path) -> None:
    """Put the logs that README speaks of into a folder."""
    import jointwise
    from jointwise.data.write import write_csv
    from synthetic import synthetic_log

    for name, seed in (("log.csv", 1), ("other.csv", 2)):
        write_csv(synthetic_log(jointwise.load_robot("ur10e"), duration=15, rate=100, seed=seed).log, folder / name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


NAMED = re.compile(r"jointwise (?!\.)([a-z][a-z-]*)((?: [^`\n]*)?)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@functools.cache
def help_text(*words: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main([*words, "--help"]) == 0, words
    return output.getvalue()


def named_commands(page: Path) -> list[tuple[tuple[str, ...], set[str]]]:
    """Return the words of every command line in a page, with its options."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = []
    for match in NAMED.finditer(text):
        if match[1] in COMMANDS:
            rest = match[2].split()
            nested = match[1] in ("energy", "joint", "robots") and rest and rest[0].isalpha() and rest[0].islower()
            words = (match[1], rest[0]) if nested else (match[1],)
            found.append((words, set(OPTION.findall(match[2]))))
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if named_commands(page)], ids=lambda page: page.stem)
def test_named_commands_have_the_named_options(page):
    for words, options in named_commands(page):
        unknown = {option for option in options if option not in help_text(*words)}
        assert not unknown, f"jointwise {' '.join(words)}: {sorted(unknown)}"
