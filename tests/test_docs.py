"""The examples in README and docs run, in order, page by page."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import operator
import re
import shlex
from pathlib import Path

import pytest

import jointwise
from jointwise.cli import COMMANDS, every_command, main
from jointwise.settings import settings_of

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


QUICK = {"README", "adaptive-control", "energy", "getting-started", "my-robot", "noisy-encoders", "record-a-log"}
"""Pages whose examples take a second or two; the others are thorough."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=() if page.stem in QUICK else pytest.mark.thorough)
        for page in PAGES
        if blocks(page)
    ],
)
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


SETTINGS = {words: settings_of(command.settings) for words, command in every_command()}


def all_commands() -> list[tuple[str, ...]]:
    """Return the words of every command and subcommand."""
    return list(SETTINGS)


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_help_has_examples_and_json(words):
    text = help_text(*words)
    examples = text.partition("\nexamples:\n")[2]
    assert f"jointwise {' '.join(words)}" in examples
    assert "--json" in text


CALLS = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
PYTHON_NAME = re.compile(r"\bjw((?:\.\w+)+)")


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_command_has_a_python_call(words):
    row = re.search(rf"^\| `jointwise {' '.join(words)}` \| (.*?) \|", CALLS, re.MULTILINE)
    assert row is not None
    names = PYTHON_NAME.findall(row[1])
    assert names
    for name in names:
        operator.attrgetter(name[1:])(jointwise)


DEFAULTS = {
    ("simulate",): (jointwise.simulate, {"rate": "rate", "seed": "seed", "duration": "duration"}),
    ("rehearse",): (jointwise.rehearse, {"duration": "duration", "seed": "seed", "optimize": "optimize"}),
    ("record",): (jointwise.record, {"rate": "rate", "preset": "preset", "port": "port", "duration": "duration"}),
    ("excite",): (
        jointwise.design.ExcitationOptions,
        {name: name for name in ("duration", "speed", "seed", "criterion", "basis", "clearance", "acceleration")},
    ),
    ("joint", "plan"): (jointwise.write_plan, {"rate": "rate"}),
    ("monitor",): (jointwise.monitoring.monitor_log, {"false_alarms": "false_alarms"}),
    ("motor",): (jointwise.joint.identify_drives, {"alike": "alike"}),
    ("joint", "online-stiffness"): (jointwise.monitoring.monitor_stiffness, {"side": "side", "variant": "variant"}),
    ("energy", "sheet"): (
        jointwise.energy.power_from_motors,
        {"standing": "standing", "conversion": "conversion", "gear_ratio": "gear_ratio"},
    ),
    ("virtual-ur",): (jointwise.virtual_ur.serve, {"port": "port", "once": "once"}),
}
"""Command -> function, and option -> argument."""


@pytest.mark.parametrize("words", DEFAULTS, ids=" ".join)
def test_options_have_the_defaults_of_the_function(words):
    function, names = DEFAULTS[words]
    arguments = inspect.signature(function).parameters
    defaults = {each.name: each.default for each in SETTINGS[words]}
    for option, argument in names.items():
        assert defaults[option] == arguments[argument].default, option


@functools.cache
def examples_and_pages() -> str:
    """Return the examples of all commands, some of which share options, and the text of all pages."""
    examples = [help_text(*words).partition("\nexamples:\n")[2] for words in all_commands()]
    return "\n".join([*examples, *(page.read_text(encoding="utf-8") for page in PAGES)])


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_option_has_an_example(words):
    for each in SETTINGS[words]:
        names = [] if each.option.argument else each.spellings
        shown = [re.search(rf"{name}(?![\w-])", examples_and_pages()) for name in names]
        assert any(shown) or not names, f"{names} in no example and on no page"
