"""Options: those of release 0.1 keep spelling, default and meaning; files of options; misspelt names."""

from __future__ import annotations

import json
from dataclasses import MISSING
from pathlib import Path
from typing import Any, get_args

import pytest

from cli_runs import bench, done, refused, run, settings_for
from jointwise.cli import every_command
from jointwise.cli.command import Command, parser_of
from jointwise.errors import OutputError
from jointwise.experiment.motion_directory import search_in
from jointwise.settings import Setting, settings_of

RELEASE = json.loads((Path(__file__).parent / "data" / "interface.json").read_text(encoding="utf-8"))
"""The options of every command of release 0.1, and what it read from command lines of help, pages and tests."""
COMMANDS: dict[str, Command] = {" ".join(words): command for words, command in every_command()}
CHANGED = {
    ("joint plan", "--no-clearance"): 0.05,
    ("energy optimize", "--no-clearance"): 0.05,
    ("excite", "--no-clearance"): 0.05,
    ("rehearse", "--robot"): "ur5e",
}
"""Defaults that are now those of the setting; the meaning is the same."""


def spelt(command: Command) -> dict[str, Setting]:
    """Return the settings of a command by every spelling."""
    found = {}
    for each in settings_of(command.settings):
        negative = [f"--no-{each.name.replace('_', '-')}"] if each.type is bool and each.optional else []
        off = [each.option.off[0]] if each.option.off else []
        names = [each.name] if each.option.argument else each.spellings
        found.update(dict.fromkeys([*names, *negative, *off], each))
    return found


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", RELEASE["options"])
def test_options_of_the_release_are_there_with_their_defaults_and_choices(name: str) -> None:
    known = spelt(COMMANDS[name])
    for row in RELEASE["options"][name]:
        for spelling in row["names"]:
            each = known[spelling]
            default = None if each.default in (MISSING, ()) or each.default is False else each.default
            assert default == CHANGED.get((name, spelling), row.get("default")), spelling
            assert set(row.get("choices", [])) <= set(map(str, get_args(each.type))), spelling
            assert row.get("required", False) or each.default is not MISSING, spelling


@pytest.mark.parametrize("line", RELEASE["lines"], ids=lambda line: " ".join(line["words"])[:80])
def test_command_lines_of_the_release_mean_the_same(line: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    settings = settings_for(*line["words"])
    for each in settings_of(type(settings)):
        value, expected = getattr(settings, each.name), line["stated"].get(each.name)
        if each.name in line["stated"]:
            assert plain(value) == expected, each.name
        else:
            assert value == each.default, each.name


def test_every_command_has_the_common_options() -> None:
    for name, command in COMMANDS.items():
        assert {"--json", "--quiet", "--config", "--save-config"} <= set(spelt(command)), name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_parser_has_every_option_of_the_settings(name: str) -> None:
    actions = parser_of(COMMANDS[name], "jointwise")._actions
    assert {each.name for each in settings_of(COMMANDS[name].settings)} == {a.dest for a in actions} - {"help"}


# -- files of options --


def test_options_come_from_a_file_and_the_command_line_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'logs = ["a.csv"]\nrobot = "planar2"\noutput = "m.json"\npayload = [2, 0, 0, 0.1]\n"viscous-powers" = [1, 2]\n'
        'mounting = "wall"\nripple = false\nholdout = 0.3\njoint = ["b.json"]\n'
    )
    settings = settings_for("calibrate", "--config", file, "--holdout", 0.4, "--gravity", 0, 0, 1)
    assert (settings.logs, settings.robot, settings.ripple, settings.holdout) == (("a.csv",), "planar2", False, 0.4)
    assert (settings.viscous_powers, settings.joint) == ((1.0, 2.0), ("b.json",))
    assert (settings.mounting, settings.gravity) == (None, (0.0, 0.0, 1.0))  # one excludes the other


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rat = 3", "there is no setting 'rat'. Did you mean rate"),
        ("rate = -3", "rate must be a number above 0 to 100000. Got -3 instead."),
        ("rate = true", "rate must be a number above 0 to 100000. Got True instead."),
        ('rate = "fast"', "rate must be a number above 0 to 100000. Got 'fast' instead."),
        ("rate = [1]", "rate must be a number"),
        ("quiet = 3", "quiet must be true or false. Got 3 instead."),
        ('rotors = "spog"', "rotors must be spong or complete. Got 'spog' instead."),
        ('age = "friction"', "age must read friction=X,stiffness=Y"),
        ("rate = ", "not valid TOML"),
    ],
)
def test_wrong_files_of_options(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    line = refused("simulate", "--config", file)
    assert words in line and str(file) in line
    assert "no such file" in refused("simulate", "--config", tmp_path / "none.toml")


def test_a_file_may_miss_what_is_required(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('model = "m.json"\n')
    ended = run("validate", "--config", file)
    assert (ended.code, ended.out) == (2, "")
    assert "the following arguments are required: LOG" in ended.err


def test_saved_options_repeat_the_run(tmp_path: Path) -> None:
    file, words = tmp_path / "run.toml", ("--robot", "planar2", "--duration", 2, "--age", "friction=0.2", "--seed", 3)
    events = ("--payload-at", "1:2,0,0,0.1", "--without", "hysteresis", "--quiet")
    done("simulate", *words, *events, "--output", tmp_path / "a.csv", "--save-config", file)
    assert "# rate =" in file.read_text() and "seed = 3" in file.read_text()
    done("simulate", "--config", file, "--output", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_saved_options_replace_no_file_of_the_command(tmp_path: Path) -> None:
    words = ("validate", bench().model, bench().unseen)
    before = bench().model.read_bytes()
    assert run(*words, "--save-config", bench().model).code == 2
    assert bench().model.read_bytes() == before


@pytest.mark.parametrize("words", [line["words"] for line in RELEASE["lines"][::7]], ids=lambda words: words[0])
def test_every_setting_can_be_saved_and_read(words: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    inner = 2 if " ".join(words[:2]) in COMMANDS else 1
    saved = settings_for(*words, "--save-config", "run.toml")
    read = settings_for(*words[:inner], "--config", "run.toml")
    for each in settings_of(type(saved)):
        if each.name not in ("config", "save_config"):
            assert getattr(read, each.name) == getattr(saved, each.name), each.name


# -- misspelt names, and what is quiet --


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("calibrat", "log.csv"), "there is no command 'calibrat'. Did you mean calibrate"),
        (("joint", "frction", "log.csv"), "there is no command 'frction'. Did you mean friction?"),
        (("inspect", "log.csv", "--robt", "ur5e"), "unrecognized arguments: --robt ur5e. Did you mean --robot"),
        (("inspect", "log.csv", "--nothing-like-it"), "unrecognized arguments: --nothing-like-it (see"),
        (("calibrate", "a.csv", "--method", "wsl"), "--method: must be wls, ols, huber or iv. Got 'wsl' instead. Did"),
    ],
)
def test_misspelt_names(words: tuple[str, ...], expected: str) -> None:
    ended = run(*words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert expected in ended.err


def test_a_quiet_command_prints_nothing() -> None:
    words = ("validate", bench().model, bench().training)
    assert "note" in run(*words).err
    ended = run(*words, "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.parametrize("name", ["joint plan", "excite", "energy optimize", "rehearse", "export"])
def test_commands_that_fill_a_directory_can_be_forced(name: str, tmp_path: Path) -> None:
    assert {"--output", "--force"} <= set(spelt(COMMANDS[name]))


def test_force_overwrites_and_keeps_other_files(tmp_path: Path) -> None:
    words = ("joint", "plan", "--robot", "planar2", "--joint", 1, "--experiments", "friction", "--rate", 10)
    (tmp_path / "mine.txt").write_text("mine")
    assert "is not empty" in refused(*words, "--output", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    done(*words, "--output", tmp_path, "--force")
    assert (tmp_path / "plan.json").exists() and (tmp_path / "mine.txt").read_text() == "mine"


def test_a_search_in_a_directory_with_other_files_can_be_forced(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")

    def write(text: str, folder: Path) -> None:
        (folder / "old.json").write_text(text)

    with pytest.raises(OutputError, match="is not empty"):
        search_in(tmp_path, lambda state: "new", write)
    assert search_in(tmp_path, lambda state: "new", write, force=True) == "new"
    assert (tmp_path / "old.json").read_text() == "new"
