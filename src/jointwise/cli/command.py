"""A command: the parser that its settings make, its settings from the words, `--config` and `--save-config`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn, get_args, get_origin

from jointwise.errors import JointwiseError, ModelError, nearest
from jointwise.settings import Setting, build, from_toml, option, settings_of, to_toml

GENERAL = "general"


class UsageError(Exception):
    """Arguments that contradict each other; reported like any wrong usage, exit code 2."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options that every command has."""

    json: bool = option(False, "print the result as JSON", group=GENERAL)
    quiet: bool = option(False, "print nothing but errors", group=GENERAL)
    config: str | None = option(
        None, "read options from this file; those on the command line come first", metavar="TOML", group=GENERAL
    )
    save_config: str | None = option(
        None, "write the options to this file, for --config, and run", metavar="TOML", group=GENERAL
    )
    command_line: str = ""
    """What was typed; no option."""

    @property
    def silent(self) -> bool:
        """Whether no progress is shown."""
        return self.json or self.quiet


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Attributes:
        settings: Its settings.
        run: What they run; returns the exit code.
        about: What it does, at the beginning of its help.
        examples: The end of its help.
    """

    settings: type[Common]
    run: Callable[[Any], int]
    about: str
    examples: str


def command_of(module: ModuleType, name: str, words: Sequence[str]) -> tuple[Command | None, list[str], list[str]]:
    """Return the command that some words name, its further name (``joint friction``), and the other words.

    A module has `Settings`, `EXAMPLES` and `run`, or `COMMANDS` with commands by their own or further name, or both;
    the command is None where the further name is missing or unknown.
    """
    inner: Mapping[str, Command] = getattr(module, "COMMANDS", {})
    if name in inner:
        return inner[name], [], list(words)
    place = next((k for k, word in enumerate(words) if not word.startswith("-")), None) if inner else None
    if place is not None:
        rest = [*words[:place], *words[place + 1 :]]
        return (
            inner.get(words[place]),
            [words[place]] * (words[place] in inner),
            rest if words[place] in inner else list(words),
        )
    if not hasattr(module, "run"):
        return None, [], list(words)
    return Command(module.Settings, module.run, module.__doc__ or "", module.EXAMPLES), [], list(words)


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line."""

    def __init__(self, prog: str, about: str, end: str) -> None:
        """Take the name, what it does, and the end of its help."""
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=prog, description=about, epilog=end, formatter_class=form, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Leave with one line and exit code 2."""
        from jointwise.cli.output import one_line

        if message.endswith("expected one argument"):
            message += "; a value that begins with - is written --name=VALUE"
        if message.startswith("unrecognized arguments: -"):
            typed = message.split()[2].partition("=")[0].lstrip("-")
            close = nearest(typed, [name.lstrip("-") for action in self._actions for name in action.option_strings])
            message += f". {close.replace('mean ', 'mean --').replace(' or ', ' or --')}" * close.startswith("Did")
        self.exit(2, one_line(f"{self.prog}: {message} (see '{self.prog} --help')") + "\n")


def parser_of(command: Command, prog: str, required: bool = True) -> Parser:
    """Return the parser of a command; it collects words and converts none.

    Args:
        command: The command.
        prog: How it is called.
        required: Whether options without default must be there; not where a file may state them.

    """
    parser = Parser(prog, command.about, command.examples)
    groups: dict[str, Any] = {"": parser}
    for each in settings_of(command.settings):
        group = groups.setdefault(each.option.group, None) or parser.add_argument_group(each.option.group)
        groups[each.option.group] = group
        if each.option.one_of:
            key = f"one of {each.option.one_of}"
            groups[key] = group = groups.get(key) or group.add_mutually_exclusive_group()
        _add(group, each, required and each.default is MISSING)
    return parser


def _add(group: Any, each: Setting, required: bool) -> None:
    """Add the option of a setting."""
    choice = each.option
    names = [each.name] if choice.argument else list(each.spellings)
    options: dict[str, Any] = {"help": each.help.replace("%", "%%"), "default": argparse.SUPPRESS}
    if not choice.argument:
        options |= {"dest": each.name, "required": required}
    if each.type is bool and each.optional:
        options["action"] = argparse.BooleanOptionalAction
    elif each.type is bool:
        options["action"] = "store_true"
    else:
        options["metavar"] = _metavar(each)
        fixed = [kind for kind in get_args(each.type) if kind is not ...] if get_origin(each.type) is tuple else []
        if choice.argument:
            options["nargs"] = ("+" if each.many else None) if required else ("*" if each.many else "?")
        elif choice.many == "repeat":
            options["action"] = "append"
        elif choice.many:
            options |= {"nargs": "+", "action": "extend" if choice.many == "extend" else "store"}
        elif len(fixed) > 1:
            options["nargs"] = len(fixed)
    group.add_argument(*names, **options)
    if choice.off is not None:
        name, text = choice.off
        group.add_argument(name, dest=each.name, action="store_const", const=None, default=argparse.SUPPRESS, help=text)


def _metavar(each: Setting) -> str | tuple[str, ...]:
    if each.option.metavar:
        return each.option.metavar
    if get_origin(each.type) is Literal:
        return f"{{{','.join(map(str, get_args(each.type)))}}}"
    return each.name.upper()


def settings_from(command: Command, prog: str, words: Sequence[str], line: str = "") -> Any:
    """Return the settings that some words state, those of the file of `--config` included.

    Raises:
        UsageError: An option is out of range.
        ModelError: The file of `--config` is damaged or states something wrong.

    """
    configured = any(word == "--config" or word.startswith("--config=") for word in words)
    parser = parser_of(command, prog, required=not configured)
    for word in words:
        if word.startswith("--") and word.endswith("=--"):  # argparse drops the value
            parser.error(f"argument {word[:-3]}: expected one argument")
    typed = vars(parser.parse_intermixed_args(list(words)))
    cls = command.settings
    known = {each.name: each for each in settings_of(cls)}
    stated = {name: value for name, value in typed.items() if not (known[name].option.argument and value == [])}
    if configured:
        from_file = _configured(cls, typed["config"])
        taken = {known[name].option.one_of for name in stated} - {""}
        stated = {n: value for n, value in from_file.items() if known[n].option.one_of not in taken} | stated
        missing = [each.spellings[0] for n, each in known.items() if each.default is MISSING and n not in stated]
        if missing:
            parser.error(f"the following arguments are required: {', '.join(missing)}")
    try:
        settings = build(cls, stated, lambda each: f"argument {'/'.join(each.spellings)}: ")
    except ModelError as problem:
        raise UsageError(str(problem)) from None
    if settings.save_config is not None:
        _save(settings, {name: stated[name] for name in stated if name not in ("config", "save_config")})
    return replace(settings, command_line=line)


def _configured(cls: type[Common], path: str) -> dict[str, Any]:
    """Return what a file states, after a check of every value, so that an error names the file."""
    from jointwise.atomic import read_limited
    from jointwise.toml import LONGEST_TOML

    try:
        stated = from_toml(cls, read_limited(path, LONGEST_TOML, "a file of options").decode())
        for each in settings_of(cls):
            if each.name in stated:
                try:
                    each.value(stated[each.name])
                except ValueError as problem:
                    raise ModelError(f"{each.name} {problem}") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path}: not a text file.") from None
    except JointwiseError as problem:
        raise ModelError(f"{path}: {problem}") from None
    return stated


def _save(settings: Common, stated: Mapping[str, Any]) -> None:
    """Write what is stated, unless the file is one that the command reads or writes."""
    from jointwise.atomic import atomic_write
    from jointwise.cli.output import check_files

    path = str(settings.save_config)
    others = vars(replace(settings, save_config=None)).values()
    words = [item for value in others for item in (value if isinstance(value, tuple) else [value])]
    check_files([word for word in words if isinstance(word, str)], {"--save-config": path})
    with atomic_write(Path(path)) as file:
        file.write(to_toml(type(settings), stated))
